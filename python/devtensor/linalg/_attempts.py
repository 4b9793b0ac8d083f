"""Functions that say in info where they fail, what is made of Cholesky's factors, and condition numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_number
from devtensor._composed.arguments import misshapen
from devtensor._composed.matrices.products import broadcast_of
from devtensor._composed.written import takes_out
from devtensor.linalg._decompositions import cholesky_of, singular_values
from devtensor.linalg._lapack import LinAlgError, check, check_square, computed, on_cpu
from devtensor.linalg._norms import matrix_norm
from devtensor.linalg._solving import inverse_of, solution_of, solved


class CholeskyEx(NamedTuple):
    """What cholesky_ex gives."""

    L: DeviceArray
    info: DeviceArray


class InvEx(NamedTuple):
    """What inv_ex gives."""

    inverse: DeviceArray
    info: DeviceArray


class SolveEx(NamedTuple):
    """What solve_ex gives."""

    result: DeviceArray
    info: DeviceArray


def _attempt(
    op: str,
    A: DeviceArray,
    whole: Callable[[DeviceArray], DeviceArray],
    place: Callable[[Any, Any], int],
    check_errors: bool,
) -> tuple[DeviceArray, DeviceArray]:
    """whole(A), and info: 0, or for a matrix that fails the place where it does; its result is NaN."""
    try:
        return whole(A), _C.zeros(A.shape[:-2], dtype=_C.int32, device=A.device)
    except LinAlgError:
        if check_errors:
            raise

    def places(np: Any, a: Any) -> Any:
        return np.array([place(np, one) for one in a.reshape(-1, *a.shape[-2:])], "int32").reshape(a.shape[:-2])

    info: DeviceArray = computed(op, (A,), places, "")
    failed = (info != 0).unsqueeze(-1).unsqueeze(-1)
    result = whole(_C.where(failed, _C.eye(A.shape[-1], dtype=A.dtype, device=A.device), A))
    return result.masked_fill(_failed_of(failed, result), math.nan), info


def _failed_of(failed: DeviceArray, result: DeviceArray) -> DeviceArray:
    """failed of matrices, for a result that may hold a vector for each."""
    return failed if result.ndim >= failed.ndim else failed.squeeze(-1)


def _not_positive(np: Any, a: Any) -> int:
    """The size of the first corner of a matrix that is not positive-definite, 0 if there is none."""

    def fails(size: int) -> bool:
        corner = a[:size, :size]
        try:
            return not np.isfinite(np.linalg.cholesky(np.tril(corner))).all()
        except np.linalg.LinAlgError:
            return True

    if not fails(len(a)):
        return 0
    low, high = 0, len(a)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(middle) else (middle, high)
    return high


def _no_pivot(np: Any, a: Any) -> int:
    """The first column in which elimination finds no number but 0, 0 if there is none."""
    a = a.copy()
    with np.errstate(all="ignore"):
        for k in range(len(a)):
            row = k + int(np.abs(a[k:, k]).argmax())
            if a[row, k] == 0:
                return k + 1
            a[[k, row]] = a[[row, k]]
            a[k + 1 :, k:] -= a[k + 1 :, k : k + 1] / a[k, k] * a[k, k:]
    return 0


@takes_out
def cholesky_ex(
    A: DeviceArray,
    *,
    upper: bool = False,
    check_errors: bool = False,
    out: tuple[DeviceArray, DeviceArray] | None = None,
) -> CholeskyEx:
    """(L, info): cholesky(A), and 0 for each matrix; or the size of its first corner that is not positive-definite.

    L of such a matrix is NaN; check_errors raises LinAlgError instead. info is int32. float32 and float64 on the cpu,
    by LAPACK. Raises DTypeMismatchError, ShapeMismatchError, NotImplementedError on a CUDA device.

    >>> dt.linalg.cholesky_ex(dt.tensor([[1.0, 0.0], [0.0, -1.0]])).info
    DeviceArray(2, device='cpu', dtype=int32)
    """
    op = "cholesky_ex"
    check(op, ("A",), (A,))
    check_square(op, ("A",), (A,))
    above, raises = _need_bool(op, "upper", upper), _need_bool(op, "check_errors", check_errors)
    on_cpu(op, ("A",), (A,))
    matrices = A.mT if above else A
    L, info = _attempt(op, matrices, lambda a: cholesky_of("A", a, False), _not_positive, raises)
    return CholeskyEx(L.mT if above else L, info)


@takes_out
def inv_ex(A: DeviceArray, *, check_errors: bool = False, out: tuple[DeviceArray, DeviceArray] | None = None) -> InvEx:
    """(inverse, info): inv(A), and 0 for each matrix; or the first column in which elimination finds no pivot.

    The inverse of such a matrix is NaN; check_errors raises LinAlgError instead. info is int32. float32 and float64 on
    the cpu, by LAPACK. Raises DTypeMismatchError, ShapeMismatchError, NotImplementedError on a CUDA device.

    >>> dt.linalg.inv_ex(dt.tensor([[1.0, 0.0], [0.0, 0.0]])).info
    DeviceArray(2, device='cpu', dtype=int32)
    """
    op = "inv_ex"
    check(op, ("A",), (A,))
    check_square(op, ("A",), (A,))
    raises = _need_bool(op, "check_errors", check_errors)
    on_cpu(op, ("A",), (A,))
    return InvEx(*_attempt(op, A, lambda a: inverse_of(op, "A", a), _no_pivot, raises))


@takes_out
def solve_ex(
    A: DeviceArray,
    B: DeviceArray,
    *,
    left: bool = True,
    check_errors: bool = False,
    out: tuple[DeviceArray, DeviceArray] | None = None,
) -> SolveEx:
    """(result, info): solve(A, B), and 0 for each matrix; or the first column in which elimination finds no pivot.

    The result of such a matrix is NaN; check_errors raises LinAlgError instead. info is int32. float32 and float64 on
    the cpu, by LAPACK. Raises what solve raises.

    >>> dt.linalg.solve_ex(dt.tensor([[0.0]]), dt.tensor([[2.0]])).info
    DeviceArray(1, device='cpu', dtype=int32)
    """
    op = "solve_ex"
    raises = _need_bool(op, "check_errors", check_errors)
    return SolveEx(*_attempt(op, A, lambda a: solution_of(op, a, B, left), _no_pivot, raises))


def _lower(L: DeviceArray, upper: bool) -> DeviceArray:
    """L, lower triangular."""
    return L.triu().mT if upper else L.tril()


@takes_out
def cholesky_solve(
    B: DeviceArray, L: DeviceArray, upper: bool = False, *, out: DeviceArray | None = None
) -> DeviceArray:
    """The X with L @ L.mT @ X == B for each lower triangular L; upper: L.mT @ L @ X == B for an upper one.

    Batches broadcast. Of L only that triangle is read. float32 and float64 on the cpu, by LAPACK. Raises
    DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, LinAlgError for a singular matrix, NotImplementedError
    on a CUDA device.

    >>> dt.cholesky_solve(dt.tensor([[8.0]]), dt.tensor([[2.0]]))
    DeviceArray([[2.]], device='cpu', dtype=float32)
    """
    op, names, arrays = "cholesky_solve", ("B", "L"), (B, L)
    check(op, names, arrays)
    _C._check_rank(op, names, arrays, 1, 2, 8)
    above = _need_bool(op, "upper", upper)
    rows, columns = L.shape[-2:]
    if rows != columns or B.shape[-2] != rows:
        text = f"{op}: L must hold square matrices with as many rows as those of B"
        raise misshapen(op, names, arrays, text, 1)
    lead = broadcast_of(op, names, arrays, B.shape[:-2], L.shape[:-2])
    on_cpu(op, names, arrays)
    factor = _lower(L.expand(*lead, rows, rows), above)
    return solved(factor.mT, solved(factor, B.expand(*lead, *B.shape[-2:])))


@takes_out
def cholesky_inverse(L: DeviceArray, upper: bool = False, *, out: DeviceArray | None = None) -> DeviceArray:
    """The inverse of L @ L.mT for each lower triangular L; upper: of L.mT @ L for an upper one.

    Of L only that triangle is read. float32 and float64 on the cpu, by LAPACK. Raises DTypeMismatchError,
    ShapeMismatchError, LinAlgError for a singular matrix, NotImplementedError on a CUDA device.

    >>> dt.cholesky_inverse(dt.tensor([[2.0]]))
    DeviceArray([[0.2500]], device='cpu', dtype=float32)
    """
    op = "cholesky_inverse"
    check(op, ("L",), (L,))
    check_square(op, ("L",), (L,))
    above = _need_bool(op, "upper", upper)
    on_cpu(op, ("L",), (L,))
    inverse = inverse_of(op, "L", _lower(L, above))
    return inverse.mT @ inverse


_ORDERS = (None, "fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)


@takes_out
def cond(A: DeviceArray, p: float | str | None = None, *, out: DeviceArray | None = None) -> DeviceArray:
    """The condition number of each matrix: norm(A, p) * norm(inverse of A, p), infinite for a singular one.

    p: as ord of matrix_norm; None and 2: the largest singular value divided by the smallest, -2 the smallest by the
    largest, also of matrices that are not square. float32 and float64 on the cpu, by LAPACK. Raises DTypeMismatchError,
    ShapeMismatchError, RuntimeError for another p, NotImplementedError on a CUDA device.

    >>> dt.linalg.cond(dt.tensor([[4.0, 0.0], [0.0, 2.0]]))
    DeviceArray(2., device='cpu', dtype=float32)
    """
    op = "cond"
    check(op, ("A",), (A,))
    order = p if p is None or isinstance(p, str) else _need_number(op, "p", p)
    if order not in (None, 2, -2):
        check_square(op, ("A",), (A,))
    if order not in _ORDERS:
        raise RuntimeError(f"linalg.{op} got an invalid norm type: {_C._shown(p)}")
    on_cpu(op, ("A",), (A,))
    if not A.numel():
        return A.sum((-2, -1))
    if order in (None, 2, -2):
        S = singular_values(op, A)
        first, last = S.select(-1, 0), S.select(-1, -1)
        return last / first if order == -2 else first / last
    inverse, info = inv_ex(A)
    found = matrix_norm(A, order) * matrix_norm(inverse.nan_to_num(0.0), order)
    return found.masked_fill(info != 0, math.inf)
