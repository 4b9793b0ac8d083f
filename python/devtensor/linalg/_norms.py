"""Norms of vectors and matrices: formulas over sums, and over singular values where the norm needs them."""

from __future__ import annotations

import math
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_dtype, _need_ints, _need_number
from devtensor._composed.arguments import dims_of, misshapen, need_array, widened
from devtensor._composed.reductions.moments import norm_over
from devtensor._composed.written import takes_out
from devtensor._dtypes.autocast import autocasts
from devtensor._types import Dims
from devtensor.linalg._decompositions import singular_values
from devtensor.linalg._lapack import check, on_cpu

Order = float | str


def _of_floats(op: str, name: str, x: DeviceArray, dtype: Any) -> DeviceArray:
    """x in dtype, which is wider; checked."""
    need_array(op, name, x)
    _C._check(op, (name,), (x,))
    if dtype is None:
        return x
    kind = _need_dtype(op, "dtype", dtype)
    if not kind.is_floating_point or kind.itemsize < x.dtype.itemsize:
        text = f"linalg.{op}: the dtype of the input ({x.dtype}) should be convertible without narrowing to the"
        raise RuntimeError(f"{text} specified dtype ({kind})")
    return x.to(kind)


def _vector_norm(op: str, name: str, x: DeviceArray, order: float, dims: tuple[int, ...], keep: bool) -> DeviceArray:
    if (order < 0 or order == math.inf) and any(x.shape[d] == 0 for d in dims if x.ndim):
        text = f"linalg.vector_norm cannot compute the {order} norm on an empty tensor because the operation does not"
        raise misshapen(op, (name,), (x,), f"{text} have an identity", 0)
    return norm_over(widened(x), order, dims, keep).to(x.dtype)


@takes_out
@autocasts
def vector_norm(
    x: DeviceArray,
    ord: float = 2,
    dim: Dims | None = None,
    keepdim: bool = False,
    *,
    dtype: _C.dtype | str | None = None,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """sum(abs(x) ** ord) ** (1 / ord) over the given dimensions, all by default.

    inf is the largest element, -inf the smallest, 0 how many are not 0. Floats on any device; dtype: what x becomes
    first. Raises DTypeMismatchError, ShapeMismatchError if there is no element to choose from, IndexError for a dim out
    of range.

    >>> dt.linalg.vector_norm(dt.tensor([3.0, 4.0]))
    DeviceArray(5., device='cpu', dtype=float32)
    """
    op = "vector_norm"
    values = _of_floats(op, "x", x, dtype)
    order = _need_number(op, "ord", ord)
    dims = dims_of(op, dim, x.ndim, x, of="x")
    return _vector_norm(op, "x", values, order, dims, _need_bool(op, "keepdim", keepdim))


_ORDERS = "'fro', 'nuc', inf, -inf, 1, -1, 2 or -2"


def _matrix_norm(op: str, name: str, A: DeviceArray, order: Order, dims: tuple[int, ...], keep: bool) -> DeviceArray:
    """The norm of the matrices over two dimensions."""
    _C._check_rank(op, (name,), (A,), 0, 2, 8)
    if len(dims) != 2:
        raise RuntimeError(f"linalg.{op}: dim must be a 2-tuple, but got {dims}")
    known = order in ("fro", "nuc") if isinstance(order, str) else abs(order) in (1, 2, math.inf)
    if not known:
        raise RuntimeError(f"linalg.{op}: ord must be {_ORDERS}: {_C._shown(order)} is not supported")
    if order == "fro":
        return _vector_norm(op, name, A, 2, dims, keep)
    if order in ("nuc", 2, -2):
        check(op, (name,), (A,))
        x = A.movedim(dims, (-2, -1))
        on_cpu(op, (name,), (A,))
        values = singular_values(op, x)
        result = values.sum(-1) if order == "nuc" else _chosen(op, name, values, -1, order == 2)
    else:
        rows, columns = dims if abs(order) == 1 else dims[::-1]  # type: ignore[arg-type]
        sums = widened(A).abs().sum(rows, keepdim=True)
        result = _chosen(op, name, sums, columns, order > 0).squeeze(rows if rows < columns else rows - 1)  # type: ignore[operator]
        result = result.to(A.dtype)
    for d in sorted(dims) if keep else ():
        result = result.unsqueeze(d)
    return result


def _chosen(op: str, name: str, x: DeviceArray, d: int, largest: bool) -> DeviceArray:
    if x.shape[d] == 0 and largest:  # norms are at least 0
        return x.sum(d)
    if x.shape[d] == 0:
        text = f"linalg.{op}: there is no element to choose from in an empty matrix"
        raise misshapen(op, (name,), (x,), text, 0)
    return x.amax(d) if largest else x.amin(d)


@takes_out
@autocasts
def matrix_norm(
    A: DeviceArray,
    ord: float | str = "fro",
    dim: tuple[int, int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: _C.dtype | str | None = None,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """The norm of the matrices over two dimensions.

    ord: "fro" the root of the sum of squares, "nuc" the sum of the singular values, 2 and -2 the largest and the
    smallest of them, 1 and -1 the largest and the smallest sum of a column, inf and -inf of a row. Floats; on any
    device, but for "nuc", 2 and -2, which take float32 and float64 on the cpu. Raises DTypeMismatchError,
    ShapeMismatchError, IndexError for a dim out of range, RuntimeError for another ord, NotImplementedError where
    LAPACK is needed on a CUDA device.

    >>> dt.linalg.matrix_norm(dt.tensor([[1.0, -2.0], [3.0, 4.0]]), 1)
    DeviceArray(6., device='cpu', dtype=float32)
    """
    op = "matrix_norm"
    values = _of_floats(op, "A", A, dtype)
    order = ord if isinstance(ord, str) else _need_number(op, "ord", ord)
    wanted = _need_ints(op, "dim", dim)
    keep = _need_bool(op, "keepdim", keepdim)
    _C._check_rank(op, ("A",), (A,), 0, 2, 8)
    return _matrix_norm(op, "A", values, order, dims_of(op, wanted, A.ndim, A, of="A"), keep)


@takes_out
@autocasts
def norm(
    A: DeviceArray,
    ord: float | str | None = None,
    dim: Dims | None = None,
    keepdim: bool = False,
    *,
    dtype: _C.dtype | str | None = None,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """vector_norm or matrix_norm: of one dimension the first, of two the second.

    Without ord the 2-norm over all of dim, by default over all dimensions. With ord and without dim A is a vector or a
    matrix. Raises what the two raise, and ShapeMismatchError for another number of dimensions.

    >>> dt.linalg.norm(dt.tensor([[3.0, 0.0], [0.0, 4.0]]))
    DeviceArray(5., device='cpu', dtype=float32)
    """
    op = "norm"
    values = _of_floats(op, "A", A, dtype)
    order = ord if ord is None or isinstance(ord, str) else _need_number(op, "ord", ord)
    wanted = None if dim is None else _need_ints(op, "dim", dim)
    keep = _need_bool(op, "keepdim", keepdim)
    if wanted is None and order is not None:
        _C._check_rank(op, ("A",), (A,), 0, 1, 2)
    dims = dims_of(op, wanted, A.ndim, A, of="A")
    if order is None or (len(dims) == 1 and not isinstance(order, str)):
        return _vector_norm(op, "A", values, 2.0 if order is None else order, dims, keep)
    return _matrix_norm(op, "A", values, order, dims, keep)


def nuclear_norm(op: str, input: DeviceArray, dims: tuple[int, ...], keep: bool) -> DeviceArray:
    """norm(p="nuc") of dt.norm."""
    return _matrix_norm(op, "input", input, "nuc", dims, keep)
