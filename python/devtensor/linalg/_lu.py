"""A as a permutation times a lower times an upper triangle, by Gaussian elimination with pivots; and what that solves.

The gradients are those of De Hoog, Anderssen and Lukas, Differentiation of matrix functionals using triangular
factorization (2011), for matrices that are not square as PyTorch has them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool
from devtensor._composed.arguments import misshapen, need_array
from devtensor._composed.written import takes_out
from devtensor.autograd.function import Function
from devtensor.linalg._lapack import LinAlgError, check, check_square, computed, on_cpu
from devtensor.linalg._solving import solve_triangular


class LU(NamedTuple):
    """What lu gives."""

    P: DeviceArray
    L: DeviceArray
    U: DeviceArray


class LUFactor(NamedTuple):
    """What lu_factor gives."""

    LU: DeviceArray
    pivots: DeviceArray


class LUFactorEx(NamedTuple):
    """What lu_factor_ex gives."""

    LU: DeviceArray
    pivots: DeviceArray
    info: DeviceArray


_BLOCK = 48  # columns that are eliminated one by one before the others follow by a product


def _eliminated(np: Any, a: Any, pivot: bool) -> tuple[Any, Any, Any]:
    """The factors in one array, with which row each row was exchanged, counted from 1, and the first pivot of 0."""
    lead, (m, n) = a.shape[:-2], a.shape[-2:]
    a, k = a.reshape(math.prod(lead), m, n), min(m, n)
    each, pivots = np.arange(len(a)), np.empty((len(a), k), "int32")
    info = np.zeros(len(a), "int32")
    for first in range(0, k, _BLOCK):
        last = min(first + _BLOCK, k)
        for j in range(first, last):
            row = np.abs(a[:, j:, j]).argmax(1) + j if pivot and len(a) else np.full(len(a), j)
            pivots[:, j] = row + 1
            a[each, row], a[:, j] = a[:, j].copy(), a[each, row]
            top = a[:, j, j]
            info = np.where((top == 0) & (info == 0), j + 1, info).astype("int32")
            a[:, j + 1 :, j] /= np.where(top == 0, 1, top)[:, None]
            a[:, j + 1 :, j + 1 : last] -= a[:, j + 1 :, j, None] * a[:, j, None, j + 1 : last]
        if last < n:
            corner = np.tril(a[:, first:last, first:last], -1) + np.eye(last - first, dtype=a.dtype)
            a[:, first:last, last:] = np.linalg.solve(corner, a[:, first:last, last:])
            a[:, last:, last:] -= a[:, last:, first:last] @ a[:, first:last, last:]
    return a.reshape(*lead, m, n), pivots.reshape(*lead, k), info.reshape(lead)


def _order(np: Any, pivots: Any, m: int) -> Any:
    """Which row of the matrix became each row of the factors."""
    count, k = math.prod(pivots.shape[:-1]), pivots.shape[-1]
    if pivots.size and not (1 <= pivots.min() and pivots.max() <= m):
        raise RuntimeError(f"Pivots must all be from 1 to {m}, which lu_factor gives: some are not")
    found, each = np.broadcast_to(np.arange(m), (count, m)).copy(), np.arange(count)
    for j, row in enumerate(pivots.reshape(count, k).T - 1):
        found[each, j], found[each, row] = found[each, row], found[each, j]
    return found.reshape(*pivots.shape[:-1], m)


def _rows(op: str, pivots: DeviceArray, m: int) -> DeviceArray:
    found: DeviceArray = computed(op, (pivots,), lambda np, p: _order(np, p, m), "", ("pivots",))
    return found


def _permutation(op: str, pivots: DeviceArray, m: int, dtype: _C.dtype) -> DeviceArray:
    """P, of which column i is 1 in the row that became row i."""
    rows = _rows(op, pivots, m)
    return (_C.arange(m, device=rows.device).unsqueeze(1) == rows.unsqueeze(-2)).to(dtype)


def _permuted(x: DeviceArray, rows: DeviceArray) -> DeviceArray:
    """The rows of x in another order."""
    return x.take_along_dim(rows.unsqueeze(-1), -2)


class _Factor(Function):
    @staticmethod
    def forward(ctx: Any, A: DeviceArray, pivot: bool, op: str) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
        found, pivots, info = computed(op, (A,), lambda np, a: _eliminated(np, a, pivot), "")
        ctx.save_for_backward(found, pivots)
        ctx.mark_non_differentiable(pivots, info)
        ctx.op = op
        return found, pivots, info

    @staticmethod
    def backward(ctx: Any, gradient: DeviceArray, *_: Any) -> tuple[DeviceArray, None, None]:
        found, pivots = ctx.saved_tensors
        m, n = found.shape[-2:]
        k = min(m, n)
        L, U = _triangles(found)
        gL, gU = gradient.tril(-1)[..., :k], gradient.triu()[..., :k, :]
        first, upper = L[..., :k, :], U[..., :k]
        lower = first.mT @ gL[..., :k, :]
        right = gU[..., :k] @ upper.mT
        if m > k:  # below the square part
            right = right - L[..., k:, :].mT @ gL[..., k:, :]
        if n > k:  # beside it
            lower = lower - gU[..., k:] @ U[..., k:].mT
        inner = lower.tril(-1) + right.triu()
        inner = solve_triangular(first.mT, inner, upper=True, unitriangular=True)
        parts = solve_triangular(upper.mT, inner, upper=False, left=False)
        if n > k:
            beside = solve_triangular(first.mT, gU[..., k:], upper=True, unitriangular=True)
            parts = _C.cat([parts, beside], -1)
        if m > k:
            below = solve_triangular(upper.mT, gL[..., k:, :], upper=False, left=False)
            parts = _C.cat([parts, below], -2)
        return _permutation(ctx.op, pivots, m, found.dtype) @ parts, None, None


def _triangles(found: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    m, n = found.shape[-2:]
    k = min(m, n)
    ones = _C.eye(m, k, dtype=found.dtype, device=found.device)
    return found[..., :k].tril(-1) + ones, found[..., :k, :].triu()


def _factors(op: str, A: DeviceArray, pivot: Any) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    check(op, ("A",), (A,))
    pivot = _need_bool(op, "pivot", pivot)
    on_cpu(op, ("A",), (A,))
    found: tuple[DeviceArray, DeviceArray, DeviceArray] = _Factor.apply(A, pivot, op)
    return found


@takes_out
def lu(A: DeviceArray, *, pivot: bool = True, out: tuple[DeviceArray, DeviceArray, DeviceArray] | None = None) -> LU:
    """(P, L, U) with P @ L @ U == A: a permutation, a lower triangle with ones on its diagonal, an upper triangle.

    A (..., M, N) gives (..., M, M), (..., M, K) and (..., K, N), where K is the smaller. pivot=False: no rows are
    exchanged, and P is empty. float32 and float64 on the cpu, by elimination in NumPy. Raises DTypeMismatchError,
    ShapeMismatchError, NotImplementedError on a CUDA device.

    >>> dt.linalg.lu(dt.tensor([[0.0, 2.0], [4.0, 1.0]])).U
    DeviceArray([[4., 1.],
                 [0., 2.]], device='cpu', dtype=float32)
    """
    found, pivots, _ = _factors("lu", A, pivot)
    P = _permutation("lu", pivots, A.shape[-2], A.dtype) if pivot else _C.empty(0, dtype=A.dtype, device=A.device)
    return LU(P, *_triangles(found))


@takes_out
def lu_factor(A: DeviceArray, *, pivot: bool = True, out: tuple[DeviceArray, DeviceArray] | None = None) -> LUFactor:
    """(LU, pivots): both triangles of lu in one array, and with which row each row was exchanged, counted from 1.

    pivots is int32. Raises what lu raises, and LinAlgError for a matrix of which a pivot is 0.

    >>> dt.linalg.lu_factor(dt.tensor([[0.0, 2.0], [4.0, 1.0]])).pivots
    DeviceArray([2, 2], device='cpu', dtype=int32)
    """
    return lu_factor_of("lu_factor", A, pivot)


def lu_factor_of(op: str, A: DeviceArray, pivot: Any) -> LUFactor:
    """lu_factor of an op of that name."""
    found, pivots, info = _factors(op, A, pivot)
    _refuse(op, A, info)
    return LUFactor(found, pivots)


def _refuse(op: str, A: DeviceArray, info: DeviceArray) -> None:
    place = int(info.max()) if info.numel() else 0
    if place:
        text = f"linalg.{op}: U[{place},{place}] is zero and using it on lu_solve would divide by it."
        raise _C._explained(op, ("A",), (A,), "invalid-argument", LinAlgError(text), 0)


@takes_out
def lu_factor_ex(
    A: DeviceArray,
    *,
    pivot: bool = True,
    check_errors: bool = False,
    out: tuple[DeviceArray, DeviceArray, DeviceArray] | None = None,
) -> LUFactorEx:
    """(LU, pivots, info): lu_factor, and 0 for each matrix, or the first column whose pivot is 0; info is int32.

    check_errors raises LinAlgError for those. Raises what lu raises.

    >>> dt.linalg.lu_factor_ex(dt.zeros(2, 2)).info
    DeviceArray(1, device='cpu', dtype=int32)
    """
    raises = _need_bool("lu_factor_ex", "check_errors", check_errors)
    found, pivots, info = _factors("lu_factor_ex", A, pivot)
    if raises:
        _refuse("lu_factor_ex", A, info)
    return LUFactorEx(found, pivots, info)


@takes_out
def lu_solve(
    LU: DeviceArray,
    pivots: DeviceArray,
    B: DeviceArray,
    *,
    left: bool = True,
    adjoint: bool = False,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """The X with A @ X == B, of what lu_factor gives of square matrices A; left=False: X @ A == B; adjoint: A.mT for A.

    B (..., N, K), or (..., K, N) for left=False; batches broadcast. float32 and float64 on the cpu. Raises
    DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, NotImplementedError on a CUDA device.

    >>> A, B = dt.tensor([[0.0, 2.0], [4.0, 1.0]]), dt.tensor([[2.0], [5.0]])
    >>> dt.linalg.lu_solve(*dt.linalg.lu_factor(A), B)
    DeviceArray([[1.],
                 [1.]], device='cpu', dtype=float32)
    """
    return lu_solution("lu_solve", ("LU", "pivots", "B"), LU, pivots, B, left, adjoint)


def lu_solution(
    op: str, names: tuple[str, str, str], LU: DeviceArray, pivots: DeviceArray, B: DeviceArray, left: Any, adjoint: Any
) -> DeviceArray:
    """lu_solve of an op of that name."""
    first, turned = _need_bool(op, "left", left), _need_bool(op, "adjoint", adjoint)
    need_array(op, names[1], pivots)
    check(op, (names[0], names[2]), (LU, B))
    check_square(op, names, (LU, pivots, B))
    _C._check_devices(op, names, (LU, pivots, B))
    _C._check_rank(op, names, (LU, pivots, B), 2, 2, 8)
    n = LU.shape[-1]
    if pivots.dtype != _C.int32:
        _C._fail_dtype(op, names, (LU, pivots, B), 1, "int32")
    if pivots.shape != LU.shape[:-1]:
        raise misshapen(
            op, names, (LU, pivots, B), f"linalg.{op}: {names[1]} must have the shape {names[0]}.shape[:-1]", 1
        )
    if B.shape[-2 if first else -1] != n:
        text = f"linalg.{op}: Incompatible shapes of {names[0]} and {names[2]} for the equation "
        raise misshapen(op, names, (LU, pivots, B), text + ("AX = B" if first else "XA = B"), 2)
    on_cpu(op, names, (LU, pivots, B))
    right = B if first else B.mT
    lead = _C.zeros(LU.shape[:-2]).add(_C.zeros(B.shape[:-2])).shape if LU.ndim + B.ndim > 4 else ()
    LU, right = LU.expand(*lead, n, n), right.expand(*lead, *right.shape[-2:])
    rows = _rows(op, pivots, n).expand(*lead, n)
    if turned == first:  # A.mT @ X == right
        X = solve_triangular(LU.mT, right, upper=False)
        X = solve_triangular(LU.mT, X, upper=True, unitriangular=True)
        X = _permuted(X, rows.argsort(-1))
    else:
        X = solve_triangular(LU, _permuted(right, rows), upper=False, unitriangular=True)
        X = solve_triangular(LU, X, upper=True)
    return X if first else X.mT


def lu_unpack(LU_data: DeviceArray, LU_pivots: DeviceArray, unpack_data: bool = True, unpack_pivots: bool = True) -> LU:
    """(P, L, U) of what linalg.lu_factor gives; what is not asked for is empty.

    >>> dt.lu_unpack(*dt.linalg.lu_factor(dt.tensor([[0.0, 2.0], [4.0, 1.0]]))).P
    DeviceArray([[0., 1.],
                 [1., 0.]], device='cpu', dtype=float32)
    """
    op, names, arrays = "lu_unpack", ("LU_data", "LU_pivots"), (LU_data, LU_pivots)
    data, pivots = _need_bool(op, "unpack_data", unpack_data), _need_bool(op, "unpack_pivots", unpack_pivots)
    need_array(op, "LU_pivots", LU_pivots)
    check(op, names[:1], arrays[:1])
    _C._check_devices(op, names, arrays)
    m, n = LU_data.shape[-2:]
    if LU_pivots.dtype != _C.int32:
        _C._fail_dtype(op, names, arrays, 1, "int32")
    _C._check_shape(op, names, arrays, 1, [*LU_data.shape[:-2], min(m, n)])
    on_cpu(op, names, arrays)
    none = _C.empty(0, dtype=LU_data.dtype, device=LU_data.device)
    P = _permutation(op, LU_pivots, m, LU_data.dtype) if pivots else none
    return LU(P, *(_triangles(LU_data) if data else (none, none)))
