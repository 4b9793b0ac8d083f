"""torch.version: of devtensor and of CUDA."""

from __future__ import annotations

from devtensor import _C
from devtensor._version import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

debug = False
git_version = "unknown"
hip = None
xpu = None
cuda: str | None


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> str | None:
    """cuda: the version of CUDA that the driver has, such as "13.0"; None where there is no device."""
    if name != "cuda":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from devtensor import cuda

    if not cuda.is_available():
        return None
    driver = _C._cuda_versions()["driver"]
    return f"{driver // 1000}.{driver % 1000 // 10}"
