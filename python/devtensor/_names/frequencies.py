"""What of torch.fft has no complex numbers: the order of frequencies."""

from __future__ import annotations

from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray, _need_int, _need_number


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """The n frequencies of samples at distances d, in the order of a transform: 0, 1, ..., -2, -1, over n * d."""
    return _frequencies("fftfreq", n, d, (_need_int("fftfreq", "n", n) + 1) // 2, dtype, device, requires_grad)


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """Those from 0 on: 0, 1, ..., n // 2, over n * d."""
    half = _need_int("rfftfreq", "n", n) // 2 + 1
    return _frequencies("rfftfreq", n, d, n, dtype, device, False)[:half].requires_grad_(requires_grad)


def _frequencies(op: str, n: int, d: float, first: int, dtype: Any, device: Any, requires_grad: bool) -> DeviceArray:
    """0, 1, ... of which first ones are not negative."""
    if n < 1:
        raise RuntimeError(f"{op}: n must be at least 1, but got {n}")
    wanted = _C.get_default_dtype() if dtype is None else _C._need_dtype(op, "dtype", dtype)
    places = _C.arange(n, dtype=_C.float64, device=device)
    step = 1 / (n * _need_number(op, "d", d))
    return (_C.where(places < first, places, places - n) * step).to(wanted).requires_grad_(requires_grad)


def _shifted(input: DeviceArray, dim: Any, forward: bool) -> DeviceArray:
    dims = range(input.ndim) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    halves = [input.shape[d] // 2 if forward else -(input.shape[d] // 2) for d in dims]
    return input.roll(halves, tuple(dims)) if halves else input.clone()


def fftshift(input: DeviceArray, dim: Any = None) -> DeviceArray:
    """input with the second half of each dimension in front, so that frequency 0 is in the middle."""
    return _shifted(input, dim, True)


def ifftshift(input: DeviceArray, dim: Any = None) -> DeviceArray:
    """The way back from fftshift."""
    return _shifted(input, dim, False)
