"""For code written for PyTorch: devtensor.utils.data is devtensor.data."""

from __future__ import annotations

import sys

from devtensor import data
from devtensor.utils import checkpoint, model_zoo

sys.modules[f"{__name__}.data"] = data

__all__ = ["checkpoint", "data", "model_zoo"]


def __dir__() -> list[str]:
    return __all__
