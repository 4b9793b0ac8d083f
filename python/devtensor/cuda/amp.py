"""The older names of devtensor.amp, for CUDA alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from devtensor import _C
from devtensor.amp.autocast_mode import autocast as _autocast
from devtensor.amp.autocast_mode import custom_bwd as _custom_bwd
from devtensor.amp.autocast_mode import custom_fwd as _custom_fwd
from devtensor.amp.grad_scaler import GradScaler as _GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(_autocast):
    """devtensor.autocast("cuda").

    >>> with dt.cuda.amp.autocast(enabled=False):
    ...     pass
    """

    def __init__(self, enabled: bool = True, dtype: _C.dtype = _C.float16, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(_GradScaler):
    """devtensor.amp.GradScaler("cuda").

    >>> dt.cuda.amp.GradScaler(enabled=False).is_enabled()
    False
    """

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


@overload
def custom_fwd(fwd: Callable[..., Any], *, cast_inputs: _C.dtype | None = None) -> Callable[..., Any]: ...
@overload
def custom_fwd(
    fwd: None = None, *, cast_inputs: _C.dtype | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
def custom_fwd(fwd: Callable[..., Any] | None = None, *, cast_inputs: _C.dtype | None = None) -> Any:
    """devtensor.amp.custom_fwd(device_type="cuda").

    >>> dt.cuda.amp.custom_fwd(lambda ctx, x: x).__name__
    '<lambda>'
    """
    return _custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


@overload
def custom_bwd(bwd: Callable[..., Any]) -> Callable[..., Any]: ...
@overload
def custom_bwd(bwd: None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
def custom_bwd(bwd: Callable[..., Any] | None = None) -> Any:
    """devtensor.amp.custom_bwd(device_type="cuda").

    >>> dt.cuda.amp.custom_bwd(lambda ctx, grad: grad).__name__
    '<lambda>'
    """
    return _custom_bwd(bwd, device_type="cuda")


def __dir__() -> list[str]:
    return sorted(__all__)
