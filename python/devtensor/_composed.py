"""Ops made of compiled ones, with the checks and errors of those. They move nothing between devices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_ints, _need_number, _need_str
from devtensor._types import Dims

_HALVES = (_C.float16, _C.bfloat16)


def _need_array(op: str, name: str, value: DeviceArray) -> None:
    """Raises TypeError, as a compiled op does, for a value that is not an array."""
    _C._check_rank(op, (name,), (value,), 0, 0, 8)


def _wide(x: DeviceArray) -> DeviceArray:
    """The dtype that sums are formed in: float32 for the half types."""
    return x.to(_C.float32) if x.dtype in _HALVES else x


def _need_sizes(op: str, name: str, value: object) -> tuple[int, ...]:
    """value, an int or a sequence of them, as a tuple. Raises RuntimeError for a negative one."""
    sizes = _need_ints(op, name, value)
    if any(size < 0 for size in sizes):
        raise RuntimeError(f"{op}: {name} must hold sizes from 0, but got {sizes}")
    return sizes


def _dims(op: str, dim: Any, ndim: int, input: DeviceArray | None = None, name: str = "dim") -> tuple[int, ...]:
    """dim, an int, some of them or None for all, counted from the front. Errors speak of input."""
    if dim is None:
        return tuple(range(ndim))
    wanted = _need_ints(op, name, dim)
    most = max(ndim, 1)
    for d in wanted:
        if not -most <= d < most:
            text = f"Dimension out of range (expected to be in range of [{-most}, {most - 1}], but got {d})"
            raise _C._explained(op, ("input",), (input,), "dimension-out-of-range", IndexError(text))
    found = tuple(d % most for d in wanted)
    for d in found:
        if found.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims of {op}")
    return found or tuple(range(ndim))


def _over(op: str, input: DeviceArray, dim: Any, axis: Any) -> tuple[int, ...]:
    """The dimensions that a reduction is over, which NumPy calls axis."""
    if dim is not None and axis is not None:
        raise TypeError(f"{op}() got multiple values for argument 'dim'")
    return _dims(op, dim, input.ndim, input) if axis is None else _dims(op, axis, input.ndim, input, "axis")


def _keep(op: str, keepdim: bool, keepdims: bool | None) -> bool:
    return _need_bool(op, "keepdim", keepdim) if keepdims is None else _need_bool(op, "keepdims", keepdims)


def is_tensor(obj: object) -> bool:
    """Whether obj is a DeviceArray.

    >>> dt.is_tensor(dt.zeros(2)), dt.is_tensor([0.0])
    (True, False)
    """
    return isinstance(obj, DeviceArray)


# ---------------------------------------------------------------- statistics


def _variance(
    op: str,
    input: DeviceArray,
    dim: Any,
    unbiased: bool | None,
    keepdim: bool,
    correction: float | None,
    axis: Any,
    keepdims: bool | None,
) -> DeviceArray:
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, unbiased = None, dim
    _C._check(op, ("input",), (input,))
    if unbiased is not None and correction is not None:
        raise TypeError(f"{op}() takes unbiased or correction, not both")
    if correction is None:
        lost: float = unbiased is None or _need_bool(op, "unbiased", unbiased)
    else:
        lost = _need_number(op, "correction", correction)
    dims = _over(op, input, dim, axis)
    keep = _keep(op, keepdim, keepdims)
    x = _wide(input)
    count = math.prod(x.shape[d] for d in dims) if x.ndim else 1
    if x.ndim:
        distance = x - (x.sum(dims, keepdim=True) / count if count else x.sum(dims, keepdim=True))
        total = distance.square().sum(dims, keepdim=keep)
    else:
        total = (x - x).square()
    rest = max(count - lost, 0)
    return total / rest if rest else total / _C.zeros_like(total)


def var(
    input: DeviceArray,
    dim: Dims | bool | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Dims | None = None,
    keepdims: bool | None = None,
) -> DeviceArray:
    """Variance over the given dimensions, all by default: the sum of squared distances to the mean over n - correction.

    Floats only, computed in float32 for the half types; correction is 1 by default (unbiased=True), NaN comes of too
    few elements. Raises DTypeMismatchError for integers, IndexError for a dim out of range.

    >>> dt.var(dt.tensor([1.0, 2.0, 3.0]))
    DeviceArray(1., device='cpu', dtype=float32)
    """
    return _variance("var", input, dim, unbiased, keepdim, correction, axis, keepdims).to(input.dtype)


def std(
    input: DeviceArray,
    dim: Dims | bool | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Dims | None = None,
    keepdims: bool | None = None,
) -> DeviceArray:
    """Standard deviation over the given dimensions: the square root of var, with its parameters and errors.

    >>> dt.std(dt.tensor([1.0, 2.0, 3.0]), correction=0)
    DeviceArray(0.8165, device='cpu', dtype=float32)
    """
    return _variance("std", input, dim, unbiased, keepdim, correction, axis, keepdims).sqrt().to(input.dtype)


def logsumexp(input: DeviceArray, dim: Dims, keepdim: bool = False, *, keepdims: bool | None = None) -> DeviceArray:
    """log(sum(exp(x))) over the given dimensions, without overflow.

    Floats only. Raises DTypeMismatchError for integers, IndexError for a dim out of range.

    >>> dt.logsumexp(dt.tensor([0.0, 0.0]), dim=0)
    DeviceArray(0.6931, device='cpu', dtype=float32)
    """
    _C._check("logsumexp", ("input",), (input,))
    keep = _keep("logsumexp", keepdim, keepdims)
    dims = _dims("logsumexp", _need_ints("logsumexp", "dim", dim), input.ndim, input)
    if input.ndim == 0:
        return input.clone()
    x = _wide(input)
    if any(x.shape[d] == 0 for d in dims):
        return x.exp().sum(dims, keepdim=keep).log().to(input.dtype)
    most = x.amax(dims, keepdim=True)
    most = _C.where(most.isfinite(), most, 0.0)
    result = (x - most).exp().sum(dims, keepdim=True).log() + most
    return (result if keep else result.squeeze(dims)).to(input.dtype)


def _order(p: float | str | None) -> float:
    if not isinstance(p, str):
        return 2.0 if p is None else float(_need_number("norm", "p", p))
    if p == "nuc":
        raise NotImplementedError("norm(): the nuclear norm is not implemented")
    if p != "fro":
        raise ValueError(f"norm(): argument 'p' must be a number, 'fro' or None, not {p!r}")
    return 2.0


def norm(
    input: DeviceArray,
    p: float | str | None = "fro",
    dim: Dims | None = None,
    keepdim: bool = False,
    *,
    axis: Dims | None = None,
    keepdims: bool | None = None,
) -> DeviceArray:
    """The vector norm over the given dimensions: sum(abs(x) ** p) ** (1 / p); "fro" is 2, inf the largest element.

    Floats only. Raises DTypeMismatchError for integers, IndexError for a dim out of range, NotImplementedError for
    "nuc".

    >>> dt.norm(dt.tensor([3.0, 4.0]))
    DeviceArray(5., device='cpu', dtype=float32)
    """
    _C._check("norm", ("input",), (input,))
    order = _order(p)
    keep = _keep("norm", keepdim, keepdims)
    dims = _over("norm", input, dim, axis)
    x = _wide(input).abs()
    if x.ndim == 0:
        x, dims, keep = x.reshape(1), (0,), False
    if order == math.inf:
        result = x.amax(dims, keepdim=keep)
    elif order == -math.inf:
        result = x.amin(dims, keepdim=keep)
    elif order == 0:
        result = (x != 0).sum(dims, keepdim=keep).to(x.dtype)
    elif order == 1:
        result = x.sum(dims, keepdim=keep)
    elif order == 2:
        result = x.square().sum(dims, keepdim=keep).sqrt()
    else:
        result = (x**order).sum(dims, keepdim=keep) ** (1.0 / order)
    return result.to(input.dtype)


# ---------------------------------------------------------------- shape


def _memory_order(x: DeviceArray) -> list[int]:
    """The dimensions from the outermost to the innermost in memory where x fills a block, else as they are."""
    steps = x.stride()
    order = sorted(range(x.ndim), key=lambda d: -steps[d])
    dense = not x.is_contiguous() and x.permute(order).is_contiguous()
    return order if dense else list(range(x.ndim))


def _permuted_back(x: DeviceArray, order: list[int]) -> DeviceArray:
    return x.permute([order.index(d) for d in range(x.ndim)])


def flip(input: DeviceArray, dims: int | Sequence[int], *more: int) -> DeviceArray:
    """The elements in reverse along the given dimensions: a copy, with the strides of input where that is dense.

    Raises IndexError for a dim out of range.

    >>> dt.flip(dt.tensor([[1, 2], [3, 4]]), 1)
    DeviceArray([[2, 1],
                 [4, 3]], device='cpu', dtype=int64)
    """
    _need_array("flip", "input", input)
    wanted = _need_ints("flip", "dims", (dims, *more) if more else dims)
    turned = [d for d in _dims("flip", wanted, input.ndim, input) if input.ndim] if wanted else []
    if not turned:
        return input.clone()
    order = _memory_order(input)
    result = input.permute(order)
    for d in turned:
        back = _C.arange(input.shape[d] - 1, -1, -1, device=input.device)
        result = result.index_select(order.index(d), back)
    return _permuted_back(result, order)


def roll(input: DeviceArray, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> DeviceArray:
    """The elements moved by shifts along dims, those that fall off put in at the other end: a copy.

    Without dims as if input had one dimension. Raises IndexError for a dim out of range, RuntimeError where there are
    not as many shifts as dims.

    >>> dt.roll(dt.tensor([1, 2, 3]), 1)
    DeviceArray([3, 1, 2], device='cpu', dtype=int64)
    """
    _need_array("roll", "input", input)
    steps = _need_ints("roll", "shifts", shifts)
    if dims is None:
        return roll(input.flatten(), steps, 0).reshape(input.shape)
    wanted = _need_ints("roll", "dims", dims)
    if len(steps) != len(wanted):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, dims:{len(wanted)}")
    result = input
    for step, d in zip(steps, wanted, strict=True):
        (d,) = _dims("roll", d, input.ndim, input)
        size = input.shape[d] if input.ndim else 0
        back = step % size if size else 0
        if back:
            result = _C.cat([result.narrow(d, size - back, back), result.narrow(d, 0, size - back)], d)
    return input.clone() if result is input else result


def repeat(input: DeviceArray, *sizes: Dims) -> DeviceArray:
    """input side by side as often as sizes say, one for each dimension and more for new ones in front: a copy.

    Raises RuntimeError for fewer sizes than dimensions or a negative one.

    >>> dt.tensor([1, 2]).repeat(2, 2)
    DeviceArray([[1, 2, 1, 2],
                 [1, 2, 1, 2]], device='cpu', dtype=int64)
    """
    _need_array("repeat", "input", input)
    times = _need_ints("repeat", "sizes", sizes[0] if len(sizes) == 1 else sizes)
    new = len(times) - input.ndim
    if new < 0:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor "
            f"({len(times)} for {input.ndim})"
        )
    x = result = input.reshape([1] * new + list(input.shape))
    for d, count in enumerate(times):
        if count != 1:
            places = _C.arange(_repeated("repeat", x.shape[d], count), device=x.device)
            result = result.index_select(d, places % x.shape[d])
    return result.clone() if result is x else result


def _repeated(op: str, size: int, count: int) -> int:
    if count < 0:
        raise RuntimeError(f"{op}(): repeats must be ints from 0, not {count}")
    return size * count


def repeat_interleave(input: DeviceArray, repeats: int, dim: int | None = None) -> DeviceArray:
    """Each element `repeats` times along dim, by default of input as if it had one dimension: a copy.

    Raises IndexError for a dim out of range, RuntimeError for a negative number, TypeError for an array of them.

    >>> dt.repeat_interleave(dt.tensor([1, 2]), 2)
    DeviceArray([1, 1, 2, 2], device='cpu', dtype=int64)
    """
    _need_array("repeat_interleave", "input", input)
    repeats = _need_int("repeat_interleave", "repeats", repeats)
    x = input.flatten() if dim is None or not input.ndim else input
    (d,) = _dims("repeat_interleave", 0 if dim is None else _need_int("repeat_interleave", "dim", dim), x.ndim, x)
    places = _C.arange(_repeated("repeat_interleave", x.shape[d], repeats), device=x.device)
    return x.index_select(d, places // repeats)


def type_as(input: DeviceArray, other: DeviceArray) -> DeviceArray:
    """input.to(other.dtype), on the device of input.

    >>> dt.tensor([1, 2]).type_as(dt.zeros(1, dtype=dt.float64)).dtype
    devtensor.float64
    """
    _need_array("type_as", "input", input)
    _need_array("type_as", "other", other)
    return input.to(other.dtype)


def ravel(input: DeviceArray) -> DeviceArray:
    """input.flatten().

    >>> dt.ravel(dt.tensor([[1, 2], [3, 4]]))
    DeviceArray([1, 2, 3, 4], device='cpu', dtype=int64)
    """
    _need_array("ravel", "input", input)
    return input.flatten()


def is_floating_point(input: DeviceArray) -> bool:
    """Whether the dtype of input is a float.

    >>> dt.is_floating_point(dt.zeros(2))
    True
    """
    _need_array("is_floating_point", "input", input)
    return input.dtype.is_floating_point


def pad(input: DeviceArray, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> DeviceArray:
    """The array with elements added at its edges; negative numbers take some away.

    pad counts from the last dimension: (left, right, top, bottom, ...). mode: "constant" with value (0 by default),
    "reflect" without the edge itself, "replicate" its edge, "circular" the other side. Raises ShapeMismatchError where
    pad does not fit the shape, NotImplementedError for another mode.

    >>> dt.pad(dt.tensor([1.0, 2.0]), (1, 2))
    DeviceArray([0., 1., 2., 0., 0.], device='cpu', dtype=float32)
    """
    _need_array("pad", "input", input)
    if _need_str("pad", "mode", mode) not in ("constant", "reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {_C._shown(mode)}")
    amounts = _need_ints("pad", "pad", pad)
    value = None if value is None else _need_number("pad", "value", value)
    names, arrays = ("input",), (input,)
    if len(amounts) % 2:
        raise RuntimeError(f"Padding length must be divisible by 2, but got {len(amounts)}")
    _C._check_rank("pad", names, arrays, 0, len(amounts) // 2, 64)
    if mode != "constant" and value not in (None, 0, 0.0):
        raise ValueError(f'Padding mode "{mode}" doesn\'t take in value argument')
    sides = [(input.ndim - 1 - k, amounts[2 * k], amounts[2 * k + 1]) for k in range(len(amounts) // 2)]
    for d, before, after in sides:
        size, most = input.shape[d], max(before, after)
        wrong = size + before + after < 0
        wrong |= mode == "reflect" and most >= max(size, 1) and most > 0
        wrong |= mode == "replicate" and size == 0 and most > 0
        least = max(most, 1 - min(before, 0) - min(after, 0)) if mode == "circular" and most > 0 else 0
        wrong |= size < least
        if wrong:
            wanted = [-1] * input.ndim
            wanted[d] = most + 1 if mode == "reflect" else least or max(-before - after, 1)
            _C._check_shape("pad", names, arrays, 0, wanted)
    order = _memory_order(input)
    x = input.permute(order)
    sides = [(order.index(d), before, after) for d, before, after in sides]
    if mode == "constant":
        return _permuted_back(_pad_constant(x, sides, 0 if value is None else value), order)
    result = x
    for d, before, after in sides:
        if before or after:
            result = result.index_select(d, _sources(result.shape[d], before, after, mode, x.device))
    return input.clone() if result is x else _permuted_back(result, order)


def _pad_constant(x: DeviceArray, sides: list[tuple[int, int, int]], value: float) -> DeviceArray:
    shape, inner = list(x.shape), x
    for d, before, after in sides:
        shape[d] += before + after
        start, stop = max(-before, 0), x.shape[d] - max(-after, 0)
        inner = inner.narrow(d, min(start, x.shape[d]), max(stop - start, 0))
    result = _C.full(shape, value, dtype=x.dtype, device=x.device)
    target = result
    for d, before, _ in sides:
        target = target.narrow(d, min(max(before, 0), shape[d]), inner.shape[d])
    target.copy_(inner)
    return result


def _sources(size: int, before: int, after: int, mode: str, device: _C.device) -> DeviceArray:
    """Which element stands at each place from -before to size + after."""
    places = _C.arange(-before, size + after, device=device)
    if mode == "replicate":
        return places.clamp(0, size - 1)
    if mode == "reflect":
        return (size - 1) - ((size - 1) - places.abs()).abs()
    first = max(-before, 0)  # what is taken away does not come round
    return (places - first) % (size - first + min(after, 0)) + first
