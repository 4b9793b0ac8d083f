"""Numbers in a row: logspace, and the range of old programs."""

from __future__ import annotations

import builtins
import math

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number
from devtensor._composed.written import made_as_asked, made_in_out
from devtensor._memory_formats import layout
from devtensor._types import Device, DType, Operand


def _need_bounds(op: str, device: _C.device, **given: Operand) -> list[DeviceArray | float]:
    """Bounds as numbers, or as 0-dimensional arrays of float64 on the device of the result."""
    arrays = {name: value for name, value in given.items() if isinstance(value, DeviceArray)}
    bounds = [v if isinstance(v, DeviceArray) else _need_number(op, name, v) for name, v in given.items()]
    names, all_of = ("out", *arrays), (_C.empty(0, device=device), *arrays.values())
    _C._check_devices(op, names, all_of)
    for which in builtins.range(1, len(names)):
        _C._check_rank(op, names, all_of, which, 0, 0)
    return [bound.detach().to(_C.float64) if isinstance(bound, DeviceArray) else bound for bound in bounds]


def _whole(bound: DeviceArray | float) -> DeviceArray | float:
    return bound.trunc() if isinstance(bound, DeviceArray) else math.trunc(bound)


def _spaced(start: DeviceArray | float, end: DeviceArray | float, steps: int, device: _C.device) -> DeviceArray:
    """The numbers of linspace in float64: each half is counted from its own end, so that the last one is end."""
    if not (isinstance(start, DeviceArray) or isinstance(end, DeviceArray)):
        return _C.linspace(start, end, steps, dtype=_C.float64, device=device)
    places = _C.arange(steps, dtype=_C.float64, device=device)
    step = (end - start) / max(steps - 1, 1)
    return _C.where(places < (steps + 1) // 2, start + step * places, end - step * (steps - 1 - places))


@made_in_out
@made_as_asked
def linspace(
    start: Operand,
    end: Operand,
    steps: int,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
    layout: layout | None = None,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """steps numbers from start to end, both included, evenly spaced.

    A bound may be a 0-dimensional array on the device of the result, which is computed there; no gradient flows to it.
    dtype and device default to those that set_default_dtype and set_default_device chose (float32, cpu). Raises
    DeviceMismatchError, ShapeMismatchError for a bound with dimensions, RuntimeError for negative steps,
    DeviceNotAvailableError, MemoryError or OutOfMemoryError.

    >>> dt.linspace(0, dt.tensor(4.0), 3)
    DeviceArray([0., 2., 4.], device='cpu', dtype=float32)
    """
    op = "linspace"
    if not (isinstance(start, DeviceArray) or isinstance(end, DeviceArray)):
        return _C.linspace(start, end, steps, dtype=dtype, device=device, requires_grad=requires_grad)
    place = _C.get_default_device() if device is None else _C._need_device(op, "device", device)
    steps = _need_int(op, "steps", steps)
    first, last = _need_bounds(op, place, start=start, end=end)
    if steps < 0:
        raise RuntimeError(f"number of steps must be non-negative, but got {steps}")
    wanted = _C.get_default_dtype() if dtype is None else _C._need_dtype(op, "dtype", dtype)
    requires_grad = _need_bool(op, "requires_grad", requires_grad)
    if not wanted.is_floating_point:
        first, last = _whole(first), _whole(last)
    result = _spaced(first, last, steps, place).to(wanted)
    return result.requires_grad_() if requires_grad else result


@made_in_out
@made_as_asked
def logspace(
    start: DeviceArray | float,
    end: DeviceArray | float,
    steps: int,
    base: float = 10.0,
    *,
    dtype: _C.dtype | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
    layout: layout | None = None,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """base ** x for x from start to end in equal steps, both ends included.

    Computed in float64; of the default dtype unless dtype says otherwise. A bound may be a 0-dimensional array on the
    device of the result; no gradient flows to it. Raises DeviceMismatchError, ShapeMismatchError for a bound with
    dimensions, RuntimeError for negative steps.

    >>> dt.logspace(0, 2, 3)
    DeviceArray([  1.,  10., 100.], device='cpu', dtype=float32)
    """
    op = "logspace"
    place = _C.get_default_device() if device is None else _C._need_device(op, "device", device)
    steps, base = _need_int(op, "steps", steps), _need_number(op, "base", base)
    first, last = _need_bounds(op, place, start=start, end=end)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    wanted = _C.get_default_dtype() if dtype is None else _C._need_dtype(op, "dtype", dtype)
    if not wanted.is_floating_point:  # as PyTorch reads the bounds
        first, last = _whole(first), _whole(last)
    requires_grad = _need_bool(op, "requires_grad", requires_grad)
    result = (float(base) ** _spaced(first, last, steps, place)).to(wanted)
    return result.requires_grad_() if requires_grad else result


@made_in_out
@made_as_asked
def range(
    start: float,
    end: float | None = None,
    step: float = 1,
    *,
    dtype: _C.dtype | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
    layout: layout | None = None,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """start, start + step, ... up to end, which is included where it is met: the old form of arange, of floats.

    range(end) starts at 0. Raises RuntimeError for a step of 0 and for one away from end.

    >>> dt.range(1, 3)
    DeviceArray([1., 2., 3.], device='cpu', dtype=float32)
    """
    op = "range"
    start = _need_number(op, "start", start)
    start, stop = (0, start) if end is None else (start, _need_number(op, "end", end))
    step = _need_number(op, "step", step)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(stop)):
        raise RuntimeError(f"unsupported range: {start} -> {stop}")
    if (stop - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    wanted = _C.get_default_dtype() if dtype is None else _C._need_dtype(op, "dtype", dtype)
    device = None if device is None else _C._need_device(op, "device", device)
    requires_grad = _need_bool(op, "requires_grad", requires_grad)
    places = _C.arange(math.floor((stop - start) / step) + 1, device=device)
    numbers = places.to(_C.float64) if wanted.is_floating_point else places
    result = (numbers * step + start).to(wanted)
    return result.requires_grad_() if requires_grad else result


__all__ = [
    "logspace",
    "range",
]
