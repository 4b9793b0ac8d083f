"""torch.utils.dlpack."""

from __future__ import annotations

from typing import Any

from devtensor import _C
from devtensor._C import from_dlpack

__all__ = ["from_dlpack", "to_dlpack"]


def __dir__() -> list[str]:
    return __all__


def to_dlpack(tensor: _C.DeviceArray) -> Any:
    """A DLPack capsule of the memory of tensor, for one reader.

    >>> capsule = dt.utils._dlpack.to_dlpack(dt.ones(2))
    """
    return tensor.__dlpack__()
