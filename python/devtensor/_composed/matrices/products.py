"""Products of matrices and vectors beside those that are compiled, and sums of what lies on a diagonal."""

from __future__ import annotations

import math
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray, _need_int, _need_number, _need_str
from devtensor._composed.arguments import dims_of, misshapen, need_array, need_entries, widened
from devtensor._composed.matrices.contraction import contracted
from devtensor._composed.reductions.moments import norm
from devtensor._composed.shapes.diagonals import triu_indices
from devtensor._composed.written import numbers_first, takes_out
from devtensor._dtypes.autocast import SOME, autocasts
from devtensor._types import Dims
from devtensor.autograd.function import Function, FunctionCtx


def _leaves_some(a: DeviceArray, b: DeviceArray, dims: Any = 2, out: None = None) -> bool:
    """Whether tensordot leaves dimensions over: else it is a sum of products, not a product of matrices."""
    count = dims if isinstance(dims, int) else len(dims[0]) if isinstance(dims[0], (list, tuple)) else 1
    return not a.ndim == b.ndim == count


SOME["tensordot"] = _leaves_some


@autocasts
def tensordot(a: DeviceArray, b: DeviceArray, dims: int | tuple[Dims, Dims] = 2, out: None = None) -> DeviceArray:
    """The sum of products over pairs of dimensions: the last of a with the first of b, or those that two lists name.

    Floats of one dtype on one device. dims: how many, or a list of dimensions for each array. The other dimensions of a
    come first, then those of b. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError where the sizes of a
    pair differ, IndexError for a dim out of range, RuntimeError for lists of two lengths.

    >>> dt.tensordot(dt.ones(2, 3), dt.ones(3, 4), dims=1).shape
    (2, 4)
    """
    op, names, arrays = "tensordot", ("a", "b"), (a, b)
    need_array(op, "b", b)
    _C._check(op, names, arrays)
    if out is not None:
        raise TypeError(f"{op}(): argument 'out' must be None, as the result is always a new array")
    mine, others = _dims_of_both(a, b, dims)
    for i, j in zip(mine, others, strict=True):
        if a.shape[i] != b.shape[j] and 1 not in (a.shape[i], b.shape[j]):
            text = f"contracted dimensions need to match, but first has size {a.shape[i]} in dim {i} and second has"
            raise misshapen(op, names, arrays, f"{text} size {b.shape[j]} in dim {j}", 1)
    gone = {i: chr(97 + n) for n, i in enumerate(mine)}
    left = "".join(gone.get(d, chr(65 + d)) for d in range(a.ndim))
    right = "".join(gone[mine[others.index(d)]] if d in others else chr(75 + d) for d in range(b.ndim))
    kept = "".join(label for label in left + right if label.isupper())
    return contracted(op, names, arrays, (left, right), kept)


def _dims_of_both(a: DeviceArray, b: DeviceArray, dims: object) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The dimensions that tensordot sums over, of a and of b."""
    op = "tensordot"
    if isinstance(dims, (tuple, list)):
        if len(dims) != 2:
            raise RuntimeError(f"{op}(): argument 'dims' must be an int or two lists of ints, but it has {len(dims)}")
        first, second = (_C._need_ints(op, "dims", entry) for entry in dims)
        if len(first) != len(second):
            raise RuntimeError("both dimension lists should have same length")
        return (
            dims_of(op, first, a.ndim, a, of="a") if first else (),
            dims_of(op, second, b.ndim, b, of="b") if second else (),
        )
    count = _need_int(op, "dims", dims)
    if count < 0:
        raise RuntimeError(f"tensordot expects dims >= 0, but got dims={count}")
    if count > min(a.ndim, b.ndim):
        raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={count}")
    return tuple(range(a.ndim - count, a.ndim)), tuple(range(count))


@takes_out
def inner(input: DeviceArray, other: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """The sum of products over the last dimension of both; with a number of no dimensions, its product with the other.

    Floats of one dtype on one device. The other dimensions of input come first, then those of other. Raises
    DeviceMismatchError, DTypeMismatchError, ShapeMismatchError.

    >>> dt.inner(dt.tensor([1.0, 2.0]), dt.tensor([3.0, 4.0]))
    DeviceArray(11., device='cpu', dtype=float32)
    """
    op, names, arrays = "inner", ("input", "other"), (input, other)
    need_array(op, "other", other)
    _C._check(op, names, arrays)
    if not input.ndim or not other.ndim:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        _C._check_shape(op, names, arrays, 1, [*[-1] * (other.ndim - 1), input.shape[-1]])
    left = "".join(chr(65 + d) for d in range(input.ndim - 1))
    right = "".join(chr(75 + d) for d in range(other.ndim - 1))
    return contracted(op, names, arrays, (left + "a", right + "a"), left + right)


@takes_out
def vdot(input: DeviceArray, other: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """The sum of products of two vectors of one length: dot, as there are no complex numbers.

    Floats of one dtype on one device. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError.

    >>> dt.vdot(dt.tensor([1.0, 2.0]), dt.tensor([3.0, 4.0]))
    DeviceArray(11., device='cpu', dtype=float32)
    """
    op, names, arrays = "vdot", ("input", "other"), (input, other)
    need_array(op, "other", other)
    _C._check(op, names, arrays)
    for which in (0, 1):
        _C._check_rank(op, names, arrays, which, 1, 1)
    _C._check_shape(op, names, arrays, 1, input.shape)
    return input.dot(other)


@takes_out
def kron(input: DeviceArray, other: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """The Kronecker product: a block input[i, j] * other for each element of input.

    At most 4 dimensions, of which the array that has fewer gets more in front. dtypes promote. Raises
    DeviceMismatchError, ShapeMismatchError for more dimensions.

    >>> dt.kron(dt.eye(2), dt.ones(1, 2))
    DeviceArray([[1., 1., 0., 0.],
                 [0., 0., 1., 1.]], device='cpu', dtype=float32)
    """
    op, names, arrays = "kron", ("input", "other"), (input, other)
    need_array(op, "other", other)
    _C._check_devices(op, names, arrays)
    _C._check_rank(op, names, arrays, 0, 0, 4)
    _C._check_rank(op, names, arrays, 1, 0, 4)
    ndim = max(input.ndim, other.ndim)
    outside = [1] * (ndim - input.ndim) + list(input.shape)
    inside = [1] * (ndim - other.ndim) + list(other.shape)
    x = input.reshape([size for pair in zip(outside, [1] * ndim, strict=True) for size in pair])
    y = other.reshape([size for pair in zip([1] * ndim, inside, strict=True) for size in pair])
    result = x & y if input.dtype == other.dtype == _C.bool else x * y
    return result.reshape([i * j for i, j in zip(outside, inside, strict=True)])


def crossed(op: str, input: DeviceArray, other: DeviceArray, dim: int | None) -> DeviceArray:
    """The cross product of vectors along dim, by default the first dimension of size 3."""
    names, arrays = ("input", "other"), (input, other)
    need_array(op, "other", other)
    _C._check_devices(op, names, arrays)
    _C._check_dtypes(op, names, arrays)
    if input.dtype == _C.bool:
        _C._fail_dtype(op, names, arrays, 0, "a number")
    _C._check_rank(op, names, arrays, 1, input.ndim, input.ndim)
    if dim is None:
        d = input.shape.index(3) if 3 in input.shape else -1
        if d < 0:
            raise misshapen(op, names, arrays, "no dimension of size 3 in input", 0)
    else:
        _C._check_rank(op, names, arrays, 0, 1, 8)
        (d,) = dims_of(op, _need_int(op, "dim", dim), input.ndim, input)
    wanted = [-1] * input.ndim
    wanted[d] = 3
    _C._check_shape(op, names, arrays, 0, wanted)
    _C._check_shape(op, names, arrays, 1, wanted)
    _C._check_broadcast(op, names, arrays)
    x, y = widened(input).unbind(d), widened(other).unbind(d)
    parts = [x[(k + 1) % 3] * y[(k + 2) % 3] - x[(k + 2) % 3] * y[(k + 1) % 3] for k in range(3)]
    return _C.stack(parts, d).to(input.dtype)


@takes_out
@autocasts
def cross(
    input: DeviceArray, other: DeviceArray, dim: int | None = None, *, out: DeviceArray | None = None
) -> DeviceArray:
    """The cross product of vectors of 3 elements along dim, by default the first dimension of that size.

    Numbers of one dtype on one device, whose shapes broadcast. Raises DeviceMismatchError, DTypeMismatchError,
    ShapeMismatchError, IndexError for a dim out of range.

    >>> dt.cross(dt.tensor([1, 0, 0]), dt.tensor([0, 1, 0]))
    DeviceArray([0, 0, 1], device='cpu', dtype=int64)
    """
    return crossed("cross", input, other, dim)


@autocasts
def trace(input: DeviceArray) -> DeviceArray:
    """The sum of the diagonal of a matrix: of integers in int64.

    Raises DTypeMismatchError for bools, ShapeMismatchError for another number of dimensions.

    >>> dt.trace(dt.eye(3))
    DeviceArray(3., device='cpu', dtype=float32)
    """
    need_array("trace", "input", input)
    if input.dtype == _C.bool:
        _C._fail_dtype("trace", ("input",), (input,), 0, "a number")
    _C._check_rank("trace", ("input",), (input,), 0, 2, 2)
    return input.diagonal().sum()


def _added(
    op: str, names: tuple[str, ...], arrays: tuple[DeviceArray, ...], ranks: tuple[int, int], beta: float, alpha: float
) -> tuple[float, float]:
    """The checks of input + two factors before their sizes: what stands before the product, and before input."""
    for name, array in zip(names[1:], arrays[1:], strict=True):
        need_array(op, name, array)
    _C._check(op, names, arrays)
    for which, rank in enumerate(ranks, 1):
        _C._check_rank(op, names, arrays, which, rank, rank)
    return _need_number(op, "beta", beta), _need_number(op, "alpha", alpha)


def _check_addend(op: str, names: tuple[str, ...], arrays: tuple[DeviceArray, ...], shape: tuple[int, ...]) -> None:
    """Raises ShapeMismatchError for an input that does not expand to shape."""
    given = arrays[0].shape
    fits = len(given) <= len(shape)
    fits = fits and all(i in (1, j) for i, j in zip(reversed(given), reversed(shape), strict=False))
    if not fits:
        _C._check_shape(op, names, arrays, 0, shape)


@takes_out
@autocasts
@numbers_first
def addmv(
    input: DeviceArray,
    mat: DeviceArray,
    vec: DeviceArray,
    *,
    beta: float = 1,
    alpha: float = 1,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """beta * input + alpha * (mat @ vec); input expands to the shape of the product, and with beta 0 does not count.

    Floats of one dtype on one device: mat (n, m), vec (m). Raises DeviceMismatchError, DTypeMismatchError,
    ShapeMismatchError.

    >>> dt.addmv(dt.ones(2), dt.eye(2), dt.tensor([1.0, 2.0]))
    DeviceArray([2., 3.], device='cpu', dtype=float32)
    """
    op, names, arrays = "addmv", ("input", "mat", "vec"), (input, mat, vec)
    beta, alpha = _added(op, names, arrays, (2, 1), beta, alpha)
    _C._check_shape(op, names, arrays, 2, [mat.shape[1]])
    _check_addend(op, names, arrays, (mat.shape[0],))
    base = input.unsqueeze(-1) if input.ndim else input
    return _C.addmm(base, mat, vec.unsqueeze(1), beta=beta, alpha=alpha).squeeze(1)


@takes_out
@autocasts
@numbers_first
def addr(
    input: DeviceArray,
    vec1: DeviceArray,
    vec2: DeviceArray,
    *,
    beta: float = 1,
    alpha: float = 1,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """beta * input + alpha * outer(vec1, vec2); input expands to the shape of the product, with beta 0 it is left out.

    Floats of one dtype on one device: vec1 (n), vec2 (m). Raises DeviceMismatchError, DTypeMismatchError,
    ShapeMismatchError.

    >>> dt.addr(dt.zeros(2, 2), dt.tensor([1.0, 2.0]), dt.tensor([1.0, 3.0]))
    DeviceArray([[1., 3.],
                 [2., 6.]], device='cpu', dtype=float32)
    """
    op, names, arrays = "addr", ("input", "vec1", "vec2"), (input, vec1, vec2)
    beta, alpha = _added(op, names, arrays, (1, 1), beta, alpha)
    _check_addend(op, names, arrays, (vec1.shape[0], vec2.shape[0]))
    return _C.addmm(input, vec1.unsqueeze(1), vec2.unsqueeze(0), beta=beta, alpha=alpha)


@takes_out
@autocasts
@numbers_first
def addbmm(
    input: DeviceArray,
    batch1: DeviceArray,
    batch2: DeviceArray,
    *,
    beta: float = 1,
    alpha: float = 1,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """beta * input + alpha * the sum of the products batch1[k] @ batch2[k]; with beta 0 input is left out.

    Floats of one dtype on one device: batch1 (b, n, m), batch2 (b, m, p), input expands to (n, p). Raises
    DeviceMismatchError, DTypeMismatchError, ShapeMismatchError.

    >>> dt.addbmm(dt.zeros(1, 1), dt.ones(5, 1, 2), dt.ones(5, 2, 1))
    DeviceArray([[10.]], device='cpu', dtype=float32)
    """
    op, names, arrays = "addbmm", ("input", "batch1", "batch2"), (input, batch1, batch2)
    beta, alpha = _added(op, names, arrays, (3, 3), beta, alpha)
    count, rows, inside = batch1.shape
    _C._check_shape(op, names, arrays, 2, [count, inside, -1])
    _check_addend(op, names, arrays, (rows, batch2.shape[2]))
    left = batch1.transpose(0, 1).reshape(rows, count * inside)
    return _C.addmm(input, left, batch2.reshape(count * inside, batch2.shape[2]), beta=beta, alpha=alpha)


def chained(matrices: tuple[DeviceArray, ...]) -> DeviceArray:
    """The product of matrices of checked shapes in the order that takes the fewest multiplications."""
    sizes = [matrices[0].shape[0], *(m.shape[1] for m in matrices)]
    count = len(matrices)
    costs = [[0] * count for _ in range(count)]
    cuts = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            tried = [(costs[i][k] + costs[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            costs[i][j], cuts[i][j] = min(tried)
    return _product(matrices, cuts, 0, count - 1)


def _product(matrices: tuple[DeviceArray, ...], cuts: list[list[int]], i: int, j: int) -> DeviceArray:
    """Of matrices i to j, cut in two where cuts says."""
    if i == j:
        return matrices[i]
    cut = cuts[i][j]
    return _product(matrices, cuts, i, cut) @ _product(matrices, cuts, cut + 1, j)


def check_floats(op: str, names: tuple[str, ...], arrays: tuple[DeviceArray, ...]) -> None:
    """Raises for entries of a list of several devices or dtypes, or that are no floats."""
    _C._check(op, names[:8], arrays[:8])
    for k in range(8, len(arrays)):  # an error holds no more of them
        _C._check(op, (names[0], names[k]), (arrays[0], arrays[k]))


@autocasts
def chain_matmul(*matrices: DeviceArray, out: None = None) -> DeviceArray:
    """The product of matrices, in the order that takes the fewest multiplications.

    Floats of one dtype on one device. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, RuntimeError
    for none.

    >>> dt.chain_matmul(dt.ones(2, 3), dt.ones(3, 4), dt.ones(4, 1)).shape
    (2, 1)
    """
    op = "chain_matmul"
    if out is not None:
        raise TypeError(f"{op}(): argument 'out' must be None, as the result is always a new array")
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    names, arrays = need_entries(op, "matrices", matrices)
    check_floats(op, names, arrays)
    for k in range(len(arrays)):
        _C._check_rank(op, (names[k],), (arrays[k],), 0, 2, 2)
    for k in range(1, len(arrays)):
        if arrays[k].shape[0] != arrays[k - 1].shape[1]:
            _C._check_shape(op, names[k - 1 : k + 1], arrays[k - 1 : k + 1], 1, [arrays[k - 1].shape[1], -1])
    return arrays[0].clone() if len(arrays) == 1 else chained(arrays)


_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": True,
    "donot_use_mm_for_euclid_dist": False,
}


@autocasts
def cdist(
    x1: DeviceArray,
    x2: DeviceArray,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> DeviceArray:
    """The p-norms of the differences of each row of x1 and each row of x2.

    Arrays (..., n, d) and (..., m, d) give (..., n, m): floats of one dtype on one device, whose leading dimensions
    broadcast; half types are computed in float32. For p 2
    and more than 25 rows the squares come from a product of matrices, as compute_mode says. Raises DeviceMismatchError,
    DTypeMismatchError, ShapeMismatchError, RuntimeError for a negative p, ValueError for another compute_mode.

    >>> dt.cdist(dt.tensor([[0.0, 0.0]]), dt.tensor([[3.0, 4.0], [0.0, 1.0]]))
    DeviceArray([[5., 1.]], device='cpu', dtype=float32)
    """
    op, names, arrays = "cdist", ("x1", "x2"), (x1, x2)
    need_array(op, "x2", x2)
    _C._check(op, names, arrays)
    _C._check_rank(op, names, arrays, 0, 2, 8)
    _C._check_rank(op, names, arrays, 1, 2, 8)
    _C._check_shape(op, names, arrays, 1, [*[-1] * (x2.ndim - 1), x1.shape[-1]])
    lead = broadcast_of(op, names, arrays, x1.shape[:-2], x2.shape[:-2])
    p = _need_number(op, "p", p)
    if not p >= 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if _need_str(op, "compute_mode", compute_mode) not in _MODES:
        raise ValueError(f"{_C._shown(compute_mode)} is not a valid value for compute_mode")
    rows, columns, size = x1.shape[-2], x2.shape[-2], x1.shape[-1]
    by_product = _MODES[compute_mode]
    if by_product is None:
        by_product = rows > 25 or columns > 25
    batch = math.prod(lead)
    x = widened(x1).expand(*lead, rows, size).reshape(batch, rows, size)
    y = widened(x2).expand(*lead, columns, size).reshape(batch, columns, size)
    if p == 2 and by_product:
        result = _from_squares(x, y)
    elif size == 0:
        result = (x.unsqueeze(-2) - y.unsqueeze(-3)).sum(-1)
    elif p == math.inf:
        result = _Largest.apply(x.unsqueeze(-2) - y.unsqueeze(-3))
    else:
        result = norm(x.unsqueeze(-2) - y.unsqueeze(-3), p, -1)
    return result.reshape(*lead, rows, columns).to(x1.dtype)


class _Largest(Function):
    """The largest size in each row: as in PyTorch each that has it gets the whole gradient."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: DeviceArray) -> DeviceArray:
        result = x.abs().amax(-1)
        ctx.save_for_backward(x, result)
        return result

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Any) -> Any:
        x, result = ctx.saved_tensors
        return _C.where(x.abs() == result.unsqueeze(-1), grad.unsqueeze(-1) * x.sign(), 0.0)


@autocasts
def pdist(input: DeviceArray, p: float = 2.0) -> DeviceArray:
    """The p-norms of the differences of each two rows of (n, d), as a vector: of rows 0 and 1, 0 and 2, ..., 1 and 2.

    Floats; half types are computed in float32. Raises DTypeMismatchError, ShapeMismatchError for another rank,
    RuntimeError for a negative p.

    >>> dt.pdist(dt.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    DeviceArray([5.0000, 1.0000, 4.2426], device='cpu', dtype=float32)
    """
    op, names, arrays = "pdist", ("input",), (input,)
    _C._check(op, names, arrays)
    _C._check_rank(op, names, arrays, 0, 2, 2)
    p = _need_number(op, "p", p)
    if not p >= 0:
        raise RuntimeError("pdist only supports non-negative p values")
    rows, size = input.shape
    first, second = triu_indices(rows, rows, 1, device=input.device)
    if not size:
        return _C.zeros(first.shape, dtype=input.dtype, device=input.device)
    x = widened(input)
    return norm(x.index_select(0, first) - x.index_select(0, second), p, -1).to(input.dtype)


def _from_squares(x: DeviceArray, y: DeviceArray) -> DeviceArray:
    """sqrt(x.x + y.y - 2 x.y), with a gradient of 0 where it is 0."""
    squares = x.square().sum(-1, keepdim=True) + y.square().sum(-1).unsqueeze(-2)
    squares = (squares - 2 * (x @ y.transpose(-1, -2))).clamp(min=0)
    if not squares.requires_grad:
        return squares.sqrt()
    zero = squares == 0
    return _C.where(zero, 0.0, _C.where(zero, 1.0, squares).sqrt())


def broadcast_of(
    op: str, names: tuple[str, ...], arrays: tuple[DeviceArray, ...], first: tuple[int, ...], second: tuple[int, ...]
) -> tuple[int, ...]:
    """The shape that two leading shapes broadcast to. Raises ShapeMismatchError of both arrays."""
    ndim = max(len(first), len(second))
    found = []
    for i, j in zip((1,) * (ndim - len(first)) + first, (1,) * (ndim - len(second)) + second, strict=True):
        if i != j and 1 not in (i, j):
            raise misshapen(op, names, arrays, f"the leading dimensions {first} and {second} do not broadcast", 1)
        found.append(j if i == 1 else i)
    return tuple(found)


def powered(x: DeviceArray, times: int) -> DeviceArray:
    """The product of so many x, by squares."""
    if times == 0:
        return _C.eye(x.shape[-1], dtype=x.dtype, device=x.device).expand(x.shape).clone()
    result, square = None, x
    while times:
        if times % 2:
            result = square if result is None else result @ square
        times //= 2
        square = square @ square if times else square
    assert result is not None
    return result.clone() if result is x else result


def check_square(op: str, name: str, x: DeviceArray) -> None:
    """Raises ShapeMismatchError for what is no square matrix, nor a batch of them."""
    _C._check_rank(op, (name,), (x,), 0, 2, 8)
    if x.shape[-1] != x.shape[-2]:
        text = f"{op}(): {name} must be batches of square matrices, but they are {x.shape[-2]} by {x.shape[-1]}"
        raise misshapen(op, (name,), (x,), f"{text} matrices", 0)


__all__ = [
    "addbmm",
    "addmv",
    "addr",
    "cdist",
    "chain_matmul",
    "cross",
    "inner",
    "kron",
    "pdist",
    "tensordot",
    "trace",
    "vdot",
]
METHODS = (
    inner,
    kron,
    cross,
    trace,
    addmv,
    addr,
    addbmm,
    vdot,
)
