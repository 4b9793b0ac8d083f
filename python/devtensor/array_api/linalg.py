"""The extension for linear algebra, as far as dt.linalg has it. What LAPACK does runs on the cpu, in floats."""

from __future__ import annotations

from typing import Any, NamedTuple

import devtensor as dt
from devtensor import _C
from devtensor import linalg as _of_torch
from devtensor._C import DeviceArray
from devtensor._composed.arguments import misshapen, need_array
from devtensor.array_api._linear import matmul, matrix_transpose, tensordot, vecdot
from devtensor.array_api._operands import Axes, axes_of, one_axis, one_dtype, pair

inf: float = float("inf")


class eigh_result(NamedTuple):
    """What eigh gives."""

    eigenvalues: DeviceArray
    eigenvectors: DeviceArray


class qr_result(NamedTuple):
    """What qr gives."""

    Q: DeviceArray
    R: DeviceArray


class slogdet_result(NamedTuple):
    """What slogdet gives."""

    sign: DeviceArray
    logabsdet: DeviceArray


class svd_result(NamedTuple):
    """What svd gives."""

    U: DeviceArray
    S: DeviceArray
    Vh: DeviceArray


def cholesky(x: DeviceArray, /, *, upper: bool = False) -> DeviceArray:
    """The lower, or upper, triangular factor of symmetric positive definite matrices. LinAlgError for others.

    >>> xp.linalg.cholesky(xp.asarray([[4.0]])).tolist()
    [[2.0]]
    """
    need_array("cholesky", "x", x)
    upper = _C._need_bool("cholesky", "upper", upper)
    return _of_torch.cholesky(x, upper=upper)


def cross(x1: DeviceArray, x2: DeviceArray, /, *, axis: int = -1) -> DeviceArray:
    """The cross products of vectors of three elements along an axis; the other axes broadcast.

    >>> xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    first, second = pair("cross", x1, x2)
    place = _C._need_int("cross", "axis", axis)
    for name, one in (("x1", first), ("x2", second)):
        if one.shape[one_axis("cross", place, one.ndim)] != 3:
            raise misshapen("cross", ("x1", "x2"), (first, second), f"{name} must have size 3 along axis {place}")
    return _of_torch.cross(*dt.broadcast_tensors(first, second), dim=place)


def det(x: DeviceArray, /) -> DeviceArray:
    """The determinants of square matrices.

    >>> xp.linalg.det(xp.eye(2)).item()
    1.0
    """
    need_array("det", "x", x)
    return _of_torch.det(x)


def diagonal(x: DeviceArray, /, *, offset: int = 0) -> DeviceArray:
    """The diagonals of matrices, offset above or below the main one: a view.

    >>> xp.linalg.diagonal(xp.asarray([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    need_array("diagonal", "x", x)
    return _C.diagonal(x, _C._need_int("diagonal", "offset", offset), -2, -1)


def eigh(x: DeviceArray, /) -> eigh_result:
    """The eigenvalues of symmetric matrices, in order, and the eigenvectors, as columns.

    >>> xp.linalg.eigh(xp.asarray([[2.0]])).eigenvalues.tolist()
    [2.0]
    """
    need_array("eigh", "x", x)
    return eigh_result(*_of_torch.eigh(x))


def eigvalsh(x: DeviceArray, /) -> DeviceArray:
    """The eigenvalues of symmetric matrices, in order.

    >>> xp.linalg.eigvalsh(xp.asarray([[2.0]])).tolist()
    [2.0]
    """
    need_array("eigvalsh", "x", x)
    return _of_torch.eigvalsh(x)


def inv(x: DeviceArray, /) -> DeviceArray:
    """The inverses of square matrices. Raises LinAlgError for a singular one.

    >>> xp.linalg.inv(xp.asarray([[2.0]])).tolist()
    [[0.5]]
    """
    need_array("inv", "x", x)
    return _of_torch.inv(x)


def matrix_norm(x: DeviceArray, /, *, keepdims: bool = False, ord: Any = "fro") -> DeviceArray:
    """The norms of matrices: "fro", "nuc", 1, -1, 2, -2, inf or -inf.

    >>> xp.linalg.matrix_norm(xp.asarray([[3.0, 4.0]])).item()
    5.0
    """
    need_array("matrix_norm", "x", x)
    keepdims = _C._need_bool("matrix_norm", "keepdims", keepdims)
    return _of_torch.matrix_norm(x, "fro" if ord is None else ord, (-2, -1), keepdims)


def matrix_power(x: DeviceArray, n: int, /) -> DeviceArray:
    """Square matrices to the power of n; below 0 that of the inverses.

    >>> xp.linalg.matrix_power(xp.asarray([[2.0]]), 3).tolist()
    [[8.0]]
    """
    need_array("matrix_power", "x", x)
    return _of_torch.matrix_power(x, _C._need_int("matrix_power", "n", n))


def matrix_rank(x: DeviceArray, /, *, rtol: float | DeviceArray | None = None) -> DeviceArray:
    """The number of singular values above rtol times the largest, by default max(M, N) * eps.

    >>> xp.linalg.matrix_rank(xp.ones((2, 2))).item()
    1
    """
    need_array("matrix_rank", "x", x)
    if not isinstance(rtol, DeviceArray):
        return _of_torch.matrix_rank(x, rtol=rtol)
    _C._check_devices("matrix_rank", ("x", "rtol"), (x, rtol))
    values = _of_torch.svdvals(x)
    return _C.sum(values > rtol[..., None] * values[..., :1], -1)


def outer(x1: DeviceArray, x2: DeviceArray, /) -> DeviceArray:
    """The product of each element of a vector with each of another.

    >>> xp.linalg.outer(xp.asarray([1, 2]), xp.asarray([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    first, second = one_dtype("outer", ("x1", "x2"), (x1, x2))
    for index in (0, 1):
        _C._check_rank("outer", ("x1", "x2"), (first, second), index, 1, 1)
    return first[:, None] * second


def pinv(x: DeviceArray, /, *, rtol: float | DeviceArray | None = None) -> DeviceArray:
    """The pseudo-inverses of matrices, without singular values up to rtol times the largest.

    >>> xp.linalg.pinv(xp.asarray([[2.0]])).tolist()
    [[0.5]]
    """
    need_array("pinv", "x", x)
    if not isinstance(rtol, DeviceArray):
        return _of_torch.pinv(x, rtol=rtol)
    _C._check_devices("pinv", ("x", "rtol"), (x, rtol))
    left, values, right = _of_torch.svd(x, False)
    kept = values > rtol[..., None] * values[..., :1]
    inverse = _C.where(kept, 1 / _C.where(kept, values, 1.0), 0.0)
    return (right.mT * inverse[..., None, :]) @ left.mT


def qr(x: DeviceArray, /, *, mode: str = "reduced") -> qr_result:
    """Matrices as products of Q, of orthonormal columns, and R, upper triangular; mode "complete": a square Q.

    >>> xp.linalg.qr(xp.ones((3, 2))).Q.shape
    (3, 2)
    """
    need_array("qr", "x", x)
    if mode not in ("reduced", "complete"):
        raise ValueError(f'qr(): mode must be "reduced" or "complete", not {_C._shown(mode)}')
    return qr_result(*_of_torch.qr(x, mode))


def slogdet(x: DeviceArray, /) -> slogdet_result:
    """The sign of the determinants of square matrices, and the logarithm of their absolute values.

    >>> xp.linalg.slogdet(xp.eye(2)).logabsdet.item()
    0.0
    """
    need_array("slogdet", "x", x)
    return slogdet_result(*_of_torch.slogdet(x))


def solve(x1: DeviceArray, x2: DeviceArray, /) -> DeviceArray:
    """x of x1 @ x = x2, for a vector x2 or matrices. Raises LinAlgError for a singular x1.

    >>> xp.linalg.solve(xp.asarray([[2.0]]), xp.asarray([6.0])).tolist()
    [3.0]
    """
    first, second = one_dtype("solve", ("x1", "x2"), (x1, x2))
    if second.ndim == 1:
        return _of_torch.solve(first, second[:, None])[..., 0]
    batch = dt.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    right = _C.broadcast_to(second, (*batch, *second.shape[-2:]))
    return _of_torch.solve(_C.broadcast_to(first, (*batch, *first.shape[-2:])), right)


def svd(x: DeviceArray, /, *, full_matrices: bool = True) -> svd_result:
    """Matrices as products U @ diag(S) @ Vh of orthonormal U and Vh, with S from large to small.

    >>> xp.linalg.svd(xp.asarray([[2.0]])).S.tolist()
    [2.0]
    """
    need_array("svd", "x", x)
    return svd_result(*_of_torch.svd(x, _C._need_bool("svd", "full_matrices", full_matrices)))


def svdvals(x: DeviceArray, /) -> DeviceArray:
    """The singular values of matrices, from large to small.

    >>> xp.linalg.svdvals(xp.asarray([[2.0]])).tolist()
    [2.0]
    """
    need_array("svdvals", "x", x)
    return _of_torch.svdvals(x)


def trace(x: DeviceArray, /, *, offset: int = 0, dtype: _C.dtype | None = None) -> DeviceArray:
    """The sums of the diagonals of matrices, in dtype; without one integers give int64.

    >>> xp.linalg.trace(xp.asarray([[1, 2], [3, 4]])).item()
    5
    """
    need_array("trace", "x", x)
    wanted = x.dtype if x.dtype.is_floating_point else _C.int64
    wanted = wanted if dtype is None else _C._need_dtype("trace", "dtype", dtype)
    return _C.sum(diagonal(x, offset=offset), -1, dtype=wanted)


def vector_norm(x: DeviceArray, /, *, axis: Axes = None, keepdims: bool = False, ord: float = 2) -> DeviceArray:
    """The norms of vectors along some axes, or of all elements: (sum |x|**ord) ** (1 / ord), with its limits.

    >>> xp.linalg.vector_norm(xp.asarray([3.0, 4.0])).item()
    5.0
    """
    need_array("vector_norm", "x", x)
    keepdims = _C._need_bool("vector_norm", "keepdims", keepdims)
    axes = axes_of("vector_norm", axis, x.ndim)
    if not axes:  # of one number each
        return _of_torch.vector_norm(x[..., None], ord, -1, False)
    return _of_torch.vector_norm(x, ord, axes, keepdims)


__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def __dir__() -> list[str]:
    return __all__
