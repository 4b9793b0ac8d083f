"""Numbers in a row: logspace, and the range of old programs."""

from __future__ import annotations

import math

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number
from devtensor._types import Device


def logspace(
    start: float,
    end: float,
    steps: int,
    base: float = 10.0,
    *,
    dtype: _C.dtype | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
) -> DeviceArray:
    """base ** x for x from start to end in equal steps, both ends included.

    Computed in float64; of the default dtype unless dtype says otherwise. Raises RuntimeError for negative steps.

    >>> dt.logspace(0, 2, 3)
    DeviceArray([  1.,  10., 100.], device='cpu', dtype=float32)
    """
    op = "logspace"
    start, end = _need_number(op, "start", start), _need_number(op, "end", end)
    steps, base = _need_int(op, "steps", steps), _need_number(op, "base", base)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    wanted = _C.get_default_dtype() if dtype is None else _C._need_dtype(op, "dtype", dtype)
    device = None if device is None else _C._need_device(op, "device", device)
    if not wanted.is_floating_point:  # as PyTorch reads the bounds
        start, end = math.trunc(start), math.trunc(end)
    powers = _C.linspace(start, end, steps, dtype=_C.float64, device=device)
    requires_grad = _need_bool(op, "requires_grad", requires_grad)
    result = (float(base) ** powers).to(wanted)
    return result.requires_grad_() if requires_grad else result


def range(
    start: float,
    end: float | None = None,
    step: float = 1,
    *,
    dtype: _C.dtype | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
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
