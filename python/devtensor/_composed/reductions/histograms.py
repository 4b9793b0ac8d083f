"""Counts between the edges of bins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number
from devtensor._composed.arguments import need_array
from devtensor._composed.creating.ranges import linspace
from devtensor._composed.reductions.groups import searchsorted
from devtensor._composed.written import takes_out


class histogram_result(NamedTuple):
    """What histogram gives."""

    hist: DeviceArray
    bin_edges: DeviceArray


_FLOATS = (_C.float32, _C.float64)


def _ends(op: str, x: DeviceArray, range: Sequence[float] | None) -> tuple[DeviceArray | float, DeviceArray | float]:
    """From where to where equal bins reach; 1 wide where all elements are equal."""
    if range is not None:
        if isinstance(range, (str, DeviceArray)) or not isinstance(range, Sequence) or len(range) != 2:
            raise TypeError(f"{op}(): argument 'range' must be two numbers, not {_C._shown(range)}")
        low, high = (float(_need_number(op, "range", limit)) for limit in range)
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"{op}(): range [{low:g}, {high:g}] is not finite")
        if low > high:
            raise RuntimeError(f"{op}(): min should not exceed max, but got min {low:g} max {high:g}")
        return (low - 0.5, high + 0.5) if low == high else (low, high)
    if not x.shape[0]:
        return 0.0, 1.0
    least, most = x.amin(), x.amax()
    if not (x.is_cuda or bool((most - least).isfinite())):
        text = f"{op}(): range [{least.item():g}, {most.item():g}] is not finite"
        raise _C._explained(op, ("input",), (x,), "invalid-argument", RuntimeError(text), 0)
    equal = least == most
    return _C.where(equal, least - 0.5, least), _C.where(equal, most + 0.5, most)


@takes_out
def histogram(
    input: DeviceArray,
    bins: int | DeviceArray = 100,
    *,
    range: Sequence[float] | None = None,
    weight: DeviceArray | None = None,
    density: bool = False,
    out: tuple[DeviceArray, DeviceArray] | None = None,
) -> histogram_result:
    """(hist, bin_edges): how many elements are in each bin, which has its left edge; the last one has both.

    bins is the number of equal bins between the two numbers of range, or the least and the largest element; or a vector
    of edges, sorted. What is outside, and NaN, is not counted. weight: what each element counts, in the shape of input.
    density: over the sum of all and the width of the bin. float32 and float64, which the results have; no gradients.
    Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, RuntimeError for bins below 1, and for a range
    that is not finite (of elements on the cpu only).

    >>> dt.histogram(dt.tensor([1.0, 2.0, 1.0]), 4, range=(0.0, 3.0)).hist
    DeviceArray([0., 2., 1., 0.], device='cpu', dtype=float32)
    """
    op, named = "histogram", {"input": input}
    need_array(op, "input", input)
    named |= {"bins": bins} if isinstance(bins, DeviceArray) else {}
    if weight is not None:
        need_array(op, "weight", weight)
        named["weight"] = weight
    names, arrays = tuple(named), tuple(named.values())
    _C._check_devices(op, names, arrays)
    _C._check_dtypes(op, names, arrays)
    if input.dtype not in _FLOATS:
        _C._fail_dtype(op, names, arrays, 0, "float32 and float64")
    if weight is not None:
        _C._check_shape(op, names, arrays, len(arrays) - 1, input.shape)
    density = _need_bool(op, "density", density)
    x = input.detach().flatten()
    if isinstance(bins, DeviceArray):
        _C._check_rank(op, names, arrays, 1, 1, 1)
        if range is not None:
            raise TypeError(f"{op}(): range goes with a number of bins: their edges say it too")
        edges = bins.detach().contiguous()
        if edges.shape[0] < 2:
            raise RuntimeError(f"{op}(): bins must have two edges or more, but got {edges.shape[0]}")
    else:
        count = _need_int(op, "bins", bins)
        if count < 1:
            raise RuntimeError(f"{op}(): bins must be > 0, but got {count}")
        low, high = _ends(op, x, range)
        edges = linspace(low, high, count + 1, dtype=x.dtype, device=x.device)
    count = edges.shape[0] - 1
    inside = (x >= edges[0]) & (x <= edges[-1])
    place = (searchsorted(edges, x, right=True) - 1).clamp(0, count - 1)
    place = _C.where(inside, place, count)
    each = _C.ones_like(x) if weight is None else weight.detach().flatten()
    hist = _C.zeros(count + 1, dtype=x.dtype, device=x.device).scatter_add(0, place, each).narrow(0, 0, count)
    if density:
        hist = hist / (hist.sum() * (edges[1:] - edges[:-1]))
    return histogram_result(hist, edges)


__all__ = [
    "histogram",
]
METHODS = (histogram,)
