"""What `devtensor` shows of linalg: some of it, and older functions of PyTorch with other defaults."""

from __future__ import annotations

from typing import NamedTuple

from devtensor._C import DeviceArray, _need_bool, _need_number
from devtensor._composed.arguments import need_array
from devtensor._composed.written import takes_out
from devtensor.linalg._attempts import cholesky_inverse, cholesky_solve
from devtensor.linalg._decompositions import QR, cholesky_of, qr_of, svd_of
from devtensor.linalg._lu import LUFactor, lu_factor_of, lu_solution
from devtensor.linalg._lu import lu_unpack as lu_unpack
from devtensor.linalg._products import matrix_power
from devtensor.linalg._solving import det, inverse_of, matrix_exp, pseudoinverse_of, slogdet, slogdet_of


class OldSVD(NamedTuple):
    """What dt.svd gives: V is not transposed."""

    U: DeviceArray
    S: DeviceArray
    V: DeviceArray


@takes_out
def inverse(input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """linalg.inv(input), with its errors.

    >>> dt.inverse(dt.tensor([[2.0]]))
    DeviceArray([[0.5000]], device='cpu', dtype=float32)
    """
    return inverse_of("inverse", "input", input)


@takes_out
def cholesky(input: DeviceArray, upper: bool = False, *, out: DeviceArray | None = None) -> DeviceArray:
    """linalg.cholesky(input, upper=upper), with its errors.

    >>> dt.cholesky(dt.tensor([[4.0, 2.0], [2.0, 5.0]]))
    DeviceArray([[2., 0.],
                 [1., 2.]], device='cpu', dtype=float32)
    """
    return cholesky_of("input", input, upper)


@takes_out
def qr(input: DeviceArray, some: bool = True, *, out: tuple[DeviceArray, DeviceArray] | None = None) -> QR:
    """linalg.qr(input): reduced, or complete with some=False; with its errors.

    >>> dt.qr(dt.ones(3, 2), some=False).Q.shape
    (3, 3)
    """
    need_array("qr", "input", input)
    return qr_of("input", input, "reduced" if _need_bool("qr", "some", some) else "complete")


@takes_out
def svd(
    input: DeviceArray,
    some: bool = True,
    compute_uv: bool = True,
    *,
    out: tuple[DeviceArray, DeviceArray, DeviceArray] | None = None,
) -> OldSVD:
    """(U, S, V) with U @ diag(S) @ V.mT == input: reduced, or square with some=False; with the errors of linalg.svd.

    compute_uv=False: U and V are zeros.

    >>> dt.svd(dt.ones(3, 2)).V.shape
    (2, 2)
    """
    need_array("svd", "input", input)
    reduced, wanted = _need_bool("svd", "some", some), _need_bool("svd", "compute_uv", compute_uv)
    if wanted:
        U, S, Vh = svd_of("input", input, not reduced)
        return OldSVD(U, S, Vh.mT)
    U, S, Vh = svd_of("input", input, True)
    return OldSVD(U.new_zeros(U.shape), S, U.new_zeros(Vh.shape))


def pinverse(input: DeviceArray, rcond: float = 1e-15) -> DeviceArray:
    """linalg.pinv(input, rtol=rcond), with its errors.

    >>> dt.pinverse(dt.tensor([[2.0], [0.0]]))
    DeviceArray([[0.5000, 0.0000]], device='cpu', dtype=float32)
    """
    need_array("pinverse", "input", input)
    return pseudoinverse_of("pinverse", "input", input, False, 0.0, _need_number("pinverse", "rcond", rcond))


def logdet(input: DeviceArray) -> DeviceArray:
    """log(det(input)) of each square matrix: NaN where the determinant is negative; with the errors of linalg.slogdet.

    >>> dt.logdet(dt.tensor([[1.0, 0.0], [0.0, 1.0]]))
    DeviceArray(0., device='cpu', dtype=float32)
    """
    sign, log = slogdet_of("logdet", "input", input)
    return log.where(sign != -1, float("nan"))


def lu(A: DeviceArray, pivot: bool = True, get_infos: bool = False) -> tuple[DeviceArray, ...]:
    """linalg.lu_factor(A, pivot=pivot), with its errors; get_infos: and zeros, as other matrices are refused.

    >>> len(dt.lu(dt.eye(2), get_infos=True))
    3
    """
    found = LUFactor(*lu_factor_of("lu", A, pivot))
    wanted = _need_bool("lu", "get_infos", get_infos)
    return (*found, found.pivots.new_zeros(A.shape[:-2])) if wanted else tuple(found)


@takes_out
def lu_solve(
    b: DeviceArray, LU_data: DeviceArray, LU_pivots: DeviceArray, *, out: DeviceArray | None = None
) -> DeviceArray:
    """linalg.lu_solve(LU_data, LU_pivots, b), with its errors.

    >>> dt.lu_solve(dt.ones(2, 1), *dt.lu(dt.eye(2))).shape
    (2, 1)
    """
    return lu_solution("lu_solve", ("LU_data", "LU_pivots", "b"), LU_data, LU_pivots, b, True, False)


__all__ = [
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "det",
    "inverse",
    "logdet",
    "lu",
    "lu_solve",
    "lu_unpack",
    "matrix_exp",
    "matrix_power",
    "pinverse",
    "qr",
    "slogdet",
    "svd",
]
METHODS = tuple(globals()[name] for name in __all__ if name != "lu_unpack")
