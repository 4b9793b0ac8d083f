"""Windows of signals: hann, hamming, blackman, bartlett, kaiser."""

from __future__ import annotations

import math
from collections.abc import Callable

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number
from devtensor._composed.elementwise.bessel import i0
from devtensor._composed.written import made_as_asked
from devtensor._memory_formats import layout
from devtensor._types import Device


def _window(
    op: str,
    height: Callable[[DeviceArray], DeviceArray],
    window_length: int,
    periodic: bool,
    dtype: _C.dtype | None,
    device: Device | None,
    requires_grad: bool,
) -> DeviceArray:
    """height of 2 pi n / N for the elements of a window, computed in float64; a single element is 1."""
    length, periodic = _need_int(op, "window_length", window_length), _need_bool(op, "periodic", periodic)
    if length < 0:
        raise RuntimeError(f"{op} requires non-negative window_length, got window_length={length}")
    wanted = _C.get_default_dtype() if dtype is None else _C._need_dtype(op, "dtype", dtype)
    place = _C.get_default_device() if device is None else _C._need_device(op, "device", device)
    if not wanted.is_floating_point:
        _C._fail_dtype(op, ("out",), (_C.empty(0, dtype=wanted, device=place),), 0, "floats")
    requires_grad = _need_bool(op, "requires_grad", requires_grad)
    last = max(length if periodic else length - 1, 1)
    window = height(_C.arange(length, dtype=_C.float64, device=place) * (2 * math.pi / last))
    result = (_C.ones_like(window) if length == 1 else window).to(wanted)
    return result.requires_grad_() if requires_grad else result


@made_as_asked
def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: _C.dtype | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
    layout: layout | None = None,
) -> DeviceArray:
    """(1 - cos(2 pi n / N)) / 2 for the elements n of a window: a vector of window_length.

    periodic: a window of one more element without its last, as Fourier transforms need it. Floats. Raises RuntimeError
    for a negative length, DTypeMismatchError for integers and bools.

    >>> dt.hann_window(4)
    DeviceArray([0.0000, 0.5000, 1.0000, 0.5000], device='cpu', dtype=float32)
    """
    return _window(
        "hann_window", lambda angle: 0.5 - 0.5 * angle.cos(), window_length, periodic, dtype, device, requires_grad
    )


@made_as_asked
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: _C.dtype | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
    layout: layout | None = None,
) -> DeviceArray:
    """alpha - beta * cos(2 pi n / N) for the elements n of a window: a vector of window_length.

    periodic: a window of one more element without its last, as Fourier transforms need it. Floats. Raises RuntimeError
    for a negative length, DTypeMismatchError for integers and bools.

    >>> dt.hamming_window(4)
    DeviceArray([0.0800, 0.5400, 1.0000, 0.5400], device='cpu', dtype=float32)
    """
    op = "hamming_window"
    alpha, beta = _need_number(op, "alpha", alpha), _need_number(op, "beta", beta)
    return _window(op, lambda angle: alpha - beta * angle.cos(), window_length, periodic, dtype, device, requires_grad)


@made_as_asked
def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: _C.dtype | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
    layout: layout | None = None,
) -> DeviceArray:
    """0.42 - 0.5 * cos(2 pi n / N) + 0.08 * cos(4 pi n / N) for the elements n of a window.

    periodic: a window of one more element without its last, as Fourier transforms need it. Floats. Raises RuntimeError
    for a negative length, DTypeMismatchError for integers and bools.

    >>> dt.blackman_window(4)[1:]
    DeviceArray([0.3400, 1.0000, 0.3400], device='cpu', dtype=float32)
    """

    def height(angle: DeviceArray) -> DeviceArray:
        return 0.42 - 0.5 * angle.cos() + 0.08 * (2 * angle).cos()

    return _window("blackman_window", height, window_length, periodic, dtype, device, requires_grad)


@made_as_asked
def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: _C.dtype | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
    layout: layout | None = None,
) -> DeviceArray:
    """1 - abs(2 n / N - 1) for the elements n of a window: a triangle of window_length.

    periodic: a window of one more element without its last, as Fourier transforms need it. Floats. Raises RuntimeError
    for a negative length, DTypeMismatchError for integers and bools.

    >>> dt.bartlett_window(4)
    DeviceArray([0.0000, 0.5000, 1.0000, 0.5000], device='cpu', dtype=float32)
    """
    return _window(
        "bartlett_window",
        lambda angle: 1 - (angle / math.pi - 1).abs(),
        window_length,
        periodic,
        dtype,
        device,
        requires_grad,
    )


@made_as_asked
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: _C.dtype | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
    layout: layout | None = None,
) -> DeviceArray:
    """i0(beta * sqrt(1 - (2 n / N - 1) ** 2)) / i0(beta) for the elements n of a window: a vector of window_length.

    periodic: a window of one more element without its last, as Fourier transforms need it. Floats. Raises RuntimeError
    for a negative length, DTypeMismatchError for integers and bools.

    >>> dt.kaiser_window(4, beta=2.0)
    DeviceArray([0.4387, 0.8348, 1.0000, 0.8348], device='cpu', dtype=float32)
    """
    op = "kaiser_window"
    beta = _need_number(op, "beta", beta)

    def height(angle: DeviceArray) -> DeviceArray:
        found = i0((1 - (angle / math.pi - 1).square()).clamp(min=0).sqrt() * beta)
        return found / i0(_C.full_like(found, beta))

    return _window(op, height, window_length, periodic, dtype, device, requires_grad)


__all__ = [
    "bartlett_window",
    "blackman_window",
    "hamming_window",
    "hann_window",
    "kaiser_window",
]
