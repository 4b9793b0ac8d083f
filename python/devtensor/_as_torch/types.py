"""torch.types: the names of PyTorch's annotations."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, TypeAlias

from devtensor import _C
from devtensor._C import DeviceArray as Tensor

_device, _dtype = _C.device, _C.dtype
_int, _float, _bool = builtins.int, builtins.float, builtins.bool
_size: TypeAlias = "list[int] | tuple[int, ...]"
_TensorOrTensors: TypeAlias = "Tensor | Sequence[Tensor]"
Device: TypeAlias = "_C.device | str | int | None"
Number: TypeAlias = "int | float | bool"
FileLike: TypeAlias = Any
Storage: TypeAlias = Any
SymInt: TypeAlias = "int"

__all__ = ["Device", "FileLike", "Number", "Storage", "SymInt", "Tensor"]


def __dir__() -> list[str]:
    return __all__
