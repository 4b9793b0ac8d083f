"""The switches of torch.backends, as far as they can be true here.

What switches TF32 on or off does that (`set_float32_precision`); what asks for determinism changes nothing, since every
result is deterministic; benchmark is `dt.cuda.tune`, which asks for more than a switch, and changes nothing here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from devtensor import _C
from devtensor import cuda as _cuda

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]


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

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None: ...  # __setattr__ does it


class _Cudnn(_Switches):
    """cuDNN's switches: enabled benchmark deterministic allow_tf32."""

    def is_available(self) -> bool:
        return _cuda.is_available()

    def version(self) -> int | None:
        return _cuda.library_versions()["cudnn"]

    @contextlib.contextmanager
    def flags(
        self,
        enabled: bool = True,
        benchmark: bool = False,
        benchmark_limit: int = 10,
        deterministic: bool = False,
        allow_tf32: bool | None = None,
        fp32_precision: str = "none",
    ) -> Iterator[None]:
        """A block in which the switches stand so; allow_tf32 stays as it is unless it is given."""
        before = dict(self.__dict__), self.allow_tf32
        self.__dict__.update(
            enabled=enabled, benchmark=benchmark, benchmark_limit=benchmark_limit, deterministic=deterministic
        )
        if allow_tf32 is not None:
            self.allow_tf32 = allow_tf32
        try:
            yield
        finally:
            self.__dict__.update(before[0])
            self.allow_tf32 = before[1]


class _Cpu(_Switches):
    """Of the host: what asks which instruction set PyTorch's own loops use is told that they are not here."""

    def get_cpu_capability(self) -> str:
        return "DEFAULT"


class _Cuda(_Switches):
    """Switches of products and of attention, of which there is one way here: they may be set, and change nothing."""

    def is_built(self) -> bool:
        return True

    def enable_flash_sdp(self, enabled: bool) -> None: ...
    def enable_math_sdp(self, enabled: bool) -> None: ...
    def enable_mem_efficient_sdp(self, enabled: bool) -> None: ...
    def enable_cudnn_sdp(self, enabled: bool) -> None: ...

    def flash_sdp_enabled(self) -> bool:
        return True

    def math_sdp_enabled(self) -> bool:
        return True

    def mem_efficient_sdp_enabled(self) -> bool:
        return True

    def cudnn_sdp_enabled(self) -> bool:
        return True

    @contextlib.contextmanager
    def sdp_kernel(
        self,
        enable_flash: bool = True,
        enable_math: bool = True,
        enable_mem_efficient: bool = True,
        enable_cudnn: bool = True,
    ) -> Iterator[None]:
        """A block, in which attention is computed as elsewhere."""
        yield


class _Absent(_Switches):
    """What is not there."""

    def is_available(self) -> bool:
        return False

    is_built = is_available


cpu: _Cpu = _Cpu("cpu")
cudnn: _Cudnn = _Cudnn("cudnn", enabled=True, benchmark=False, deterministic=True, benchmark_limit=10)
_PRODUCTS = {"allow_bf16_reduced_precision_reduction": False, "allow_fp16_reduced_precision_reduction": False}
cuda: _Cuda = _Cuda("cuda", matmul=_Switches("cuda.matmul", **_PRODUCTS))
mkl: _Absent = _Absent("mkl")
mkldnn: _Absent = _Absent("mkldnn", enabled=False)
mps: _Absent = _Absent("mps")
openmp: _Absent = _Absent("openmp")


def __dir__() -> list[str]:
    return sorted(__all__)
