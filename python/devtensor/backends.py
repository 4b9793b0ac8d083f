"""The switches of torch.backends, as far as they can be true here.

What switches TF32 on or off does that (`set_float32_precision`); what asks for determinism changes nothing, since every
result is deterministic; benchmark is `dt.cuda.tune`, which asks for more than a switch, and changes nothing here.
"""

from __future__ import annotations

from typing import Any

from devtensor import _C
from devtensor import cuda as _cuda

__all__ = ["cuda", "cudnn", "mps"]


class _Switches:
    """Switches of torch.backends, which may be set; allow_tf32 is that of set_float32_precision."""

    _name: str

    def __init__(self, name: str, **values: Any) -> None:
        self.__dict__.update(values, _name=name)

    def __repr__(self) -> str:
        return f"<devtensor.backends.{self._name}>"

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "allow_tf32":
            _C.set_float32_precision("tf32" if value else "highest")
        elif name not in self.__dict__:
            raise AttributeError(f"devtensor.backends.{self._name} has no switch {name!r}")
        else:
            self.__dict__[name] = value

    @property
    def allow_tf32(self) -> bool:
        """Whether products and convolutions of float32 may round their factors to TF32, on CUDA."""
        return _C.get_float32_precision() == "tf32"


class _Cudnn(_Switches):
    """cuDNN's switches: enabled benchmark deterministic allow_tf32."""

    def is_available(self) -> bool:
        return _cuda.is_available()

    def version(self) -> int | None:
        return _cuda.library_versions()["cudnn"]


class _Absent(_Switches):
    """What is not there."""

    def is_available(self) -> bool:
        return False

    is_built = is_available


cudnn: _Cudnn = _Cudnn("cudnn", enabled=True, benchmark=False, deterministic=True, benchmark_limit=10)
cuda: _Switches = _Switches("cuda", matmul=_Switches("cuda.matmul", allow_fp16_reduced_precision_reduction=False))
mps: _Absent = _Absent("mps")


def __dir__() -> list[str]:
    return sorted(__all__)
