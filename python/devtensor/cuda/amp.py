"""The older names of devtensor.amp, for CUDA alone."""

from __future__ import annotations

from devtensor import _C
from devtensor.amp.autocast_mode import autocast as _autocast
from devtensor.amp.grad_scaler import GradScaler as _GradScaler

__all__ = ["GradScaler", "autocast"]


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


def __dir__() -> list[str]:
    return sorted(__all__)
