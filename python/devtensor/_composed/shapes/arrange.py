"""What puts the elements of an array in other places, and what tells of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray, _need_int, _need_ints, _need_number, _need_str
from devtensor._composed.arguments import dims_of, need_array
from devtensor._composed.reductions.groups import searchsorted
from devtensor._composed.shapes.remapped import CIRCULAR, FLIP, REFLECT, REPLICATE, Along, has_pass, remapped
from devtensor._types import Dims
from devtensor.autograd.function import Function

_MOST_DIMS = 8  # of an array


def is_tensor(obj: object) -> bool:
    """Whether obj is a DeviceArray.

    >>> dt.is_tensor(dt.zeros(2)), dt.is_tensor([0.0])
    (True, False)
    """
    return isinstance(obj, DeviceArray)


def is_floating_point(input: DeviceArray) -> bool:
    """Whether the dtype of input is a float.

    >>> dt.is_floating_point(dt.zeros(2))
    True
    """
    need_array("is_floating_point", "input", input)
    return input.dtype.is_floating_point


def _memory_order(x: DeviceArray) -> list[int]:
    """The dimensions from the outermost to the innermost in memory where x fills a block, else as they are."""
    steps = x.stride()
    order = sorted(range(x.ndim), key=lambda d: -steps[d])
    dense = not x.is_contiguous() and x.permute(order).is_contiguous()
    return order if dense else list(range(x.ndim))


def _permuted_back(x: DeviceArray, order: list[int]) -> DeviceArray:
    return x.permute([order.index(d) for d in range(x.ndim)])


_LINES = 4  # from which on a gather over two dimensions takes lines


def _selected(x: DeviceArray, places: dict[int, DeviceArray]) -> DeviceArray:
    """x at these places of its dimensions: of neighbours in one pass, unless the gradient goes back by dimension."""
    dims = sorted(places)
    while dims:
        d = dims.pop()
        if dims and dims[-1] == d - 1 and places[d - 1].numel() >= _LINES and not x.requires_grad:
            dims.pop()
            x = x[(slice(None),) * (d - 1) + (places[d - 1].unsqueeze(1), places[d])]
        else:
            x = x.index_select(d, places[d])
    return x


_SMALL = 1 << 15  # elements of which a Function takes longer than it gains


class Flip(Function):
    """The gradient of a flip is a flip, where that of a selection adds up."""

    @staticmethod
    def forward(ctx: Any, input: DeviceArray, dims: list[int]) -> DeviceArray:
        ctx.dims = dims
        return _turned(input, dims)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[DeviceArray | None, ...]:
        return flip(gradients[0], ctx.dims), None


def _turned(input: DeviceArray, dims: list[int]) -> DeviceArray:
    order = _memory_order(input)
    x = input.permute(order)
    if has_pass(x):
        return _permuted_back(remapped(x, {order.index(d): Along(FLIP, input.shape[d]) for d in dims}), order)
    backwards = {n: _C.arange(n - 1, -1, -1, device=input.device) for n in {input.shape[d] for d in dims}}
    places = {order.index(d): backwards[input.shape[d]] for d in dims}
    return _permuted_back(_selected(x, places), order)


def flip(input: DeviceArray, dims: int | Sequence[int], *more: int) -> DeviceArray:
    """The elements in reverse along the given dimensions: a copy, with the strides of input where that is dense.

    Raises IndexError for a dim out of range.

    >>> dt.flip(dt.tensor([[1, 2], [3, 4]]), 1)
    DeviceArray([[2, 1],
                 [4, 3]], device='cpu', dtype=int64)
    """
    need_array("flip", "input", input)
    wanted = _need_ints("flip", "dims", (dims, *more) if more else dims)
    turned = [d for d in dims_of("flip", wanted, input.ndim, input) if input.ndim] if wanted else []
    if not turned:
        return input.clone()
    return Flip.apply(input, turned) if input.requires_grad and input.numel() > _SMALL else _turned(input, turned)


def roll(input: DeviceArray, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> DeviceArray:
    """The elements moved by shifts along dims, those that fall off put in at the other end: a copy.

    Without dims as if input had one dimension. Raises IndexError for a dim out of range, RuntimeError if there are not
    as many shifts as dims.

    >>> dt.roll(dt.tensor([1, 2, 3]), 1)
    DeviceArray([3, 1, 2], device='cpu', dtype=int64)
    """
    need_array("roll", "input", input)
    steps = _need_ints("roll", "shifts", shifts)
    if dims is None:
        return roll(input.flatten(), steps, 0).reshape(input.shape)
    wanted = _need_ints("roll", "dims", dims)
    if len(steps) != len(wanted):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, dims:{len(wanted)}")
    result = input
    for step, d in zip(steps, wanted, strict=True):
        (d,) = dims_of("roll", d, input.ndim, input)
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
    need_array("repeat", "input", input)
    times = _need_ints("repeat", "sizes", sizes[0] if len(sizes) == 1 else sizes)
    new = len(times) - input.ndim
    if new < 0:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor "
            f"({len(times)} for {input.ndim})"
        )
    x = result = input.reshape([1] * new + list(input.shape))
    wide = [_repeated("repeat", size, count) for size, count in zip(x.shape, times, strict=True)]
    pairs = list(zip(x.shape, times, strict=True))
    beside = [n for size, count in pairs for n in ((size,) if count == 1 else (count, size))]
    if len(beside) <= _MOST_DIMS:
        apart = [n for size, count in pairs for n in ((size,) if count == 1 else (1, size))]
        result = x.reshape(apart).expand(beside).reshape(wide)
    else:
        for d in reversed(range(x.ndim)):
            if times[d] != 1:
                rows = result.reshape(math.prod(x.shape[:d]), 1, math.prod(result.shape[d:]))
                again = rows.expand(rows.shape[0], times[d], rows.shape[2])
                result = again.reshape(*x.shape[:d], *wide[d:])
    result = result.contiguous()
    return result.clone() if result.data_ptr() == input.data_ptr() else result  # of sizes of 1: a view


def _repeated(op: str, size: int, count: int) -> int:
    if count < 0:
        raise RuntimeError(f"{op}(): repeats must be ints from 0, not {count}")
    return size * count


def repeat_interleave(
    input: DeviceArray,
    repeats: DeviceArray | int | None = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> DeviceArray:
    """Each element `repeats` times along dim, by default of input as if it had one dimension: a copy.

    repeats: a number, or a vector of integers with one for each entry of dim; without it input is that vector, of the
    places 0, 1, ... Of a vector the sum is read from its device, unless output_size says it. Raises IndexError for a
    dim out of range, RuntimeError for a negative number (of a vector on the cpu), DeviceMismatchError,
    DTypeMismatchError, ShapeMismatchError.

    >>> dt.repeat_interleave(dt.tensor([1, 2]), dt.tensor([1, 3]))
    DeviceArray([1, 2, 2, 2], device='cpu', dtype=int64)
    """
    op = "repeat_interleave"
    need_array(op, "input", input)
    size = None if output_size is None else _need_int(op, "output_size", output_size)
    if repeats is None:
        if dim is not None:
            raise TypeError(f"{op}() missing required argument: 'repeats'")
        return _interleaved(op, ("input",), (input,), 0, input.ndim and input.shape[0], size)
    x = input.flatten() if dim is None or not input.ndim else input
    (d,) = dims_of(op, 0 if dim is None else _need_int(op, "dim", dim), x.ndim, x)
    if isinstance(repeats, DeviceArray):
        places = _interleaved(op, ("input", "repeats"), (input, repeats), 1, x.shape[d], size)
        return x.index_select(d, places)
    repeats = _need_int(op, "repeats", repeats)
    places = _C.arange(_repeated(op, x.shape[d], repeats), device=x.device)
    if size is not None and size != places.shape[0]:
        raise RuntimeError(f"{op}: Invalid output_size, expected {places.shape[0]} but got {size}")
    return x.index_select(d, places // repeats)


def _interleaved(
    op: str, names: tuple[str, ...], arrays: tuple[DeviceArray, ...], which: int, entries: int, size: int | None
) -> DeviceArray:
    """Place k as often as number k of the vector among arrays says."""
    repeats = arrays[which]
    _C._check_devices(op, names, arrays)
    _C._check_indices(op, names, arrays, which)
    _C._check_rank(op, names, arrays, which, 1 - which, 1)
    if repeats.ndim and repeats.shape[0] != 1:
        _C._check_shape(op, names, arrays, which, [entries])
    repeats = repeats.to(_C.int64).expand(entries)
    if not repeats.is_cuda and entries and bool((repeats < 0).any()):
        raise RuntimeError("repeats can not be negative")
    if size is None or not repeats.is_cuda:
        total = int(repeats.sum()) if entries else 0
        if size not in (None, total):
            raise RuntimeError(f"{op}: Invalid output_size, expected {total} but got {size}")
        size = total
    if not size:
        return _C.empty(0, dtype=_C.int64, device=repeats.device)
    wanted = _C.arange(size, device=repeats.device)
    return searchsorted(repeats.cumsum(0), wanted, right=True).clamp(max=max(entries - 1, 0))


def type_as(input: DeviceArray, other: DeviceArray) -> DeviceArray:
    """input.to(other): of the dtype of other, and on its device.

    >>> dt.tensor([1, 2]).type_as(dt.zeros(1, dtype=dt.float64)).dtype
    devtensor.float64
    """
    need_array("type_as", "input", input)
    need_array("type_as", "other", other)
    return input.to(other)


def ravel(input: DeviceArray) -> DeviceArray:
    """All elements in one contiguous dimension: a view where they lie so already, else a copy.

    flatten() and reshape(-1) give a view of x[:, 0], whose elements have gaps between them; ravel() copies it.

    >>> dt.ravel(dt.tensor([[1, 2], [3, 4]]))
    DeviceArray([1, 2, 3, 4], device='cpu', dtype=int64)
    """
    need_array("ravel", "input", input)
    return input.flatten().contiguous()


_KINDS = {"reflect": REFLECT, "replicate": REPLICATE, "circular": CIRCULAR}


def pad(input: DeviceArray, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> DeviceArray:
    """The array with elements added at its edges; negative numbers take some away.

    pad counts from the last dimension: (left, right, top, bottom, ...). mode: "constant" with value (0 by default),
    "reflect" without the edge itself, "replicate" its edge, "circular" the other side. Raises ShapeMismatchError where
    pad does not fit the shape, NotImplementedError for another mode.

    >>> dt.pad(dt.tensor([1.0, 2.0]), (1, 2))
    DeviceArray([0., 1., 2., 0., 0.], device='cpu', dtype=float32)
    """
    need_array("pad", "input", input)
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
    spans = {d: (x.shape[d], before, after) for d, before, after in sides if before or after}
    if spans and has_pass(x, pads=True):
        kind = _KINDS[mode]
        return _permuted_back(remapped(x, {d: Along(kind, sum(span), span[1]) for d, span in spans.items()}), order)
    sources = {span: _sources(*span, mode, x.device) for span in set(spans.values())}
    moved = {d: sources[span] for d, span in spans.items()}
    return _permuted_back(_selected(x, moved), order) if moved else input.clone()


def _pad_constant(x: DeviceArray, sides: list[tuple[int, int, int]], value: float) -> DeviceArray:
    shape, inner = list(x.shape), x
    for d, before, after in sides:
        shape[d] += before + after
        start, stop = max(-before, 0), x.shape[d] - max(-after, 0)
        inner = inner.narrow(d, min(start, x.shape[d]), max(stop - start, 0))
    result = _C.full(shape, value, dtype=x.dtype, device=x.device)
    place = [slice(None)] * x.ndim
    for d, before, _ in sides:
        start = min(max(before, 0), shape[d])
        place[d] = slice(start, start + inner.shape[d])
    result[tuple(place)] = inner
    return result


def _sources(size: int, before: int, after: int, mode: str, device: _C.device) -> DeviceArray:
    """Which element stands at each place from -before to size + after."""
    if mode == "reflect":
        from_last = _C.arange(size - 1 + before, -1 - after, -1, device=device)
        places = (size - 1) - (from_last.abs() if after > 0 else from_last)
        return places.abs() if before > 0 else places
    places = _C.arange(-before, size + after, device=device)
    if mode == "replicate":
        return places.clamp(0, size - 1)
    first = max(-before, 0)  # what is taken away does not come round
    return (places - first) % (size - first + min(after, 0)) + first


__all__ = [
    "flip",
    "is_floating_point",
    "is_tensor",
    "pad",
    "ravel",
    "repeat_interleave",
    "roll",
]
METHODS = (
    flip,
    repeat,
    repeat_interleave,
    roll,
    ravel,
    is_floating_point,
    type_as,
)
