"""CUDA devices, real or simulated: the names of torch.cuda."""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import Any, NamedTuple

from devtensor import _C

# Where NVIDIA's wheels put their libraries, below a directory of sys.path.
_WHEELS = ("nvidia/cu13/lib", "nvidia/cudnn/lib", "nvidia/cublas/lib", "nvidia/cuda_nvrtc/lib")


def _wheel_directories() -> list[str]:
    """Existing, absolute and without the separator; never the working directory."""
    roots = [p for p in sys.path if os.path.isabs(p) and ":" not in p and os.path.isdir(os.path.join(p, "nvidia"))]
    found = [os.path.join(root, wheel) for root in roots for wheel in _WHEELS]
    return [directory for directory in found if os.path.isdir(directory)]


_C._cuda_set_search_path(":".join(_wheel_directories()))


def is_available() -> bool:
    """Whether there is at least one CUDA device, real or simulated. Never raises."""
    return device_count() > 0


def device_count() -> int:
    """Number of CUDA devices; 0 where CUDA cannot be used. Never raises."""
    try:
        return _C._cuda_device_count()
    except (RuntimeError, MemoryError):
        return 0


def current_device() -> int:
    """Index of the current device of this thread: what a bare "cuda" means."""
    return _C._cuda_current_device()


def set_device(device: Any) -> None:
    """Choose the current device of this thread. Raises DeviceNotAvailableError."""
    _C._cuda_set_device(device)


class device:
    """Context manager: `with device(1):` makes cuda:1 the current device of this thread."""

    def __init__(self, device: Any) -> None:
        self.idx: int = _C._cuda_index(device)
        self.prev_idx = -1

    def __enter__(self) -> device:
        self.prev_idx = current_device()
        set_device(self.idx)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.prev_idx != current_device():
            set_device(self.prev_idx)


class DeviceProperties(NamedTuple):
    """What does not change about a device."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    is_simulated: bool


def get_device_name(device: Any = None) -> str:
    """The name of a device, the current one by default; a simulated one says so."""
    name: str = _C._cuda_info(device)["name"]
    return name


def get_device_properties(device: Any = None) -> DeviceProperties:
    """Name, compute capability, memory and multiprocessors of a device."""
    info = _C._cuda_info(device)
    return DeviceProperties(
        info["name"],
        info["major"],
        info["minor"],
        info["total_memory"],
        info["multi_processor_count"],
        info["simulated"],
    )


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability, such as (9, 0)."""
    info = _C._cuda_info(device)
    return info["major"], info["minor"]


def is_simulated() -> bool:
    """Whether the CUDA devices are simulated ones; False where there are none."""
    return is_available() and _C._cuda_is_simulated()


def synchronize(device: Any = None) -> None:
    """Wait for all work on a device. Raises CudaError for what went wrong in it."""
    _C._cuda_synchronize(device)


def empty_cache() -> None:
    """Give unused device memory back to the driver; nothing to do without CUDA."""
    if is_available():
        _C._cuda_empty_cache()


def _memory(device: Any, key: str) -> int:
    number: int = _C._cuda_info(device)[key] if is_available() else 0
    return number


def memory_allocated(device: Any = None) -> int:
    """Bytes of device memory that arrays hold."""
    return _memory(device, "allocated_memory")


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that arrays have held at once."""
    return _memory(device, "peak_memory")


def reset_peak_memory_stats(device: Any = None) -> None:
    """Start the count of max_memory_allocated anew."""
    if is_available():
        _C._cuda_reset_peak(device)


def memory_reserved(device: Any = None) -> int:
    """Bytes of device memory taken from the driver, unused ones included."""
    return _memory(device, "reserved_memory")


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes of a device. Raises DeviceNotAvailableError without CUDA."""
    info = _C._cuda_info(device)
    return info["free_memory"], info["total_memory"]


def memory_stats(device: Any = None) -> dict[str, int]:
    """Bytes by PyTorch's names; empty without CUDA."""
    if not is_available():
        return {}
    info = _C._cuda_info(device)
    return {
        "allocated_bytes.all.current": info["allocated_memory"],
        "allocated_bytes.all.peak": info["peak_memory"],
        "reserved_bytes.all.current": info["reserved_memory"],
    }
