"""Inverses and solutions where several dimensions are one, and powers as columns."""

from __future__ import annotations

import math
from collections.abc import Sequence

from devtensor import _C
from devtensor._C import DeviceArray, _need_int, _need_ints
from devtensor._composed.arguments import misshapen
from devtensor._composed.written import takes_out
from devtensor.linalg._lapack import check, on_cpu
from devtensor.linalg._solving import inverse_of, solution_of


@takes_out
def tensorinv(A: DeviceArray, ind: int = 2, *, out: DeviceArray | None = None) -> DeviceArray:
    """The inverse of A as a matrix of its first ind dimensions by the others: shape[ind:] + shape[:ind].

    float32 and float64 on the cpu, by LAPACK. Raises DTypeMismatchError, ShapeMismatchError where the products of both
    parts of the shape differ, LinAlgError, RuntimeError for an ind that is not above 0, NotImplementedError on a CUDA
    device.

    >>> dt.linalg.tensorinv(dt.eye(6).reshape(2, 3, 6), ind=2).shape
    (6, 2, 3)
    """
    op = "tensorinv"
    ind = _need_int(op, "ind", ind)
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    check(op, ("A",), (A,), 0)
    rows, columns = A.shape[:ind], A.shape[ind:]
    if math.prod(rows) != math.prod(columns):
        sizes = f"{math.prod(columns)} != {math.prod(rows)}"
        text = f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]): {sizes}"
        raise misshapen(op, ("A",), (A,), text, 0)
    on_cpu(op, ("A",), (A,))
    return inverse_of(op, "A", A.reshape(math.prod(rows), -1)).reshape(*columns, *rows)


@takes_out
def tensorsolve(
    A: DeviceArray, B: DeviceArray, dims: Sequence[int] | None = None, *, out: DeviceArray | None = None
) -> DeviceArray:
    """The X with tensordot(A, X, X.ndim) == B; the dimensions dims of A are moved to its end first.

    float32 and float64 on the cpu, by LAPACK. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError where
    A is no square matrix of B's dimensions by the others, LinAlgError, NotImplementedError on a CUDA device.

    >>> dt.linalg.tensorsolve(dt.eye(6).reshape(2, 3, 6), dt.ones(2, 3)).shape
    (6,)
    """
    op, names = "tensorsolve", ("A", "B")
    check(op, names, (A, B), 0)
    if dims is not None:
        moved = [d % max(A.ndim, 1) for d in _need_ints(op, "dims", dims)]
        A = A.permute(*(d for d in range(A.ndim) if d not in moved), *moved)
    shape = A.shape[B.ndim :]
    if math.prod(A.shape[: B.ndim]) != math.prod(shape) or math.prod(shape) != B.numel():
        text = "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim])"
        raise misshapen(op, names, (A, B), text, 0)
    on_cpu(op, names, (A, B))
    return solution_of(op, A.reshape(B.numel(), -1), B.flatten(), True).reshape(shape)


def vander(x: DeviceArray, *, N: int | None = None) -> DeviceArray:
    """Powers of each number from 0 on: x (..., n) gives (..., n, N), N by default n. Numbers; integers give int64.

    Raises DTypeMismatchError for bools, ShapeMismatchError, RuntimeError for an N below 2.

    >>> dt.linalg.vander(dt.tensor([1, 2, 3]), N=3)
    DeviceArray([[1, 1, 1],
                 [1, 2, 4],
                 [1, 3, 9]], device='cpu', dtype=int64)
    """
    op = "vander"
    _C._check_rank(op, ("x",), (x,), 0, 0, 7)
    if x.dtype == _C.bool:
        _C._fail_dtype(op, ("x",), (x,), 0, "numbers")
    x = x if x.ndim else x.unsqueeze(0)
    size = x.shape[-1] if N is None else _need_int(op, "N", N)
    if size <= 1 and N is not None:
        raise RuntimeError("N must be greater than 1.")
    powers = x.unsqueeze(-1).expand(*x.shape, size - 1).cumprod(-1)
    return _C.cat([_C.ones(*x.shape, 1, dtype=powers.dtype, device=x.device), powers], -1)
