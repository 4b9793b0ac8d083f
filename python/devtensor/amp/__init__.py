"""Mixed precision: GradScaler for float16 gradients, and autocast as far as it changes nothing."""

from __future__ import annotations

from devtensor.amp.autocast_mode import autocast, is_autocast_enabled
from devtensor.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "is_autocast_enabled"]


def __dir__() -> list[str]:
    return sorted(__all__)
