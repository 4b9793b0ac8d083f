"""Linear algebra: torch.linalg. What LAPACK does runs on the cpu, in float32 and float64, and has a gradient."""

from __future__ import annotations

from devtensor._C import matmul
from devtensor.linalg._attempts import cholesky_ex, cond, inv_ex, solve_ex
from devtensor.linalg._decompositions import cholesky, eigh, eigvalsh, matrix_rank, qr, svd, svdvals
from devtensor.linalg._lapack import LinAlgError
from devtensor.linalg._lu import lu, lu_factor, lu_factor_ex, lu_solve
from devtensor.linalg._norms import matrix_norm, norm, vector_norm
from devtensor.linalg._products import cross, diagonal, matrix_power, multi_dot, vecdot
from devtensor.linalg._solving import det, inv, lstsq, matrix_exp, pinv, slogdet, solve, solve_triangular
from devtensor.linalg._tensors import tensorinv, tensorsolve, vander

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "inv_ex",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]


def __dir__() -> list[str]:
    return __all__
