"""Mixed precision: blocks in which ops choose their dtypes (autocast), and GradScaler for float16 gradients."""

from __future__ import annotations

from devtensor.amp.autocast_mode import (
    autocast,
    custom_bwd,
    custom_fwd,
    get_autocast_dtype,
    is_autocast_available,
    is_autocast_enabled,
)
from devtensor.amp.grad_scaler import GradScaler

__all__ = [
    "GradScaler",
    "autocast",
    "custom_bwd",
    "custom_fwd",
    "get_autocast_dtype",
    "is_autocast_available",
    "is_autocast_enabled",
]


def __dir__() -> list[str]:
    return sorted(__all__)
