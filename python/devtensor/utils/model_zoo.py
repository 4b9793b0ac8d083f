"""torch.utils.model_zoo: the older name of hub.load_state_dict_from_url."""

from __future__ import annotations

from typing import Any

from devtensor import hub
from devtensor.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]


def __getattr__(name: str) -> Any:
    return hub.__getattr__(name)


def __dir__() -> list[str]:
    return __all__
