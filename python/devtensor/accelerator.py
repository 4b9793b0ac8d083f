"""The kind of device beside the cpu, which is CUDA: the names of torch.accelerator."""

from __future__ import annotations

from devtensor import _C, cuda
from devtensor._C import Stream
from devtensor._types import Device

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "empty_cache",
    "is_available",
    "max_memory_allocated",
    "memory_allocated",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]


def __dir__() -> list[str]:
    return __all__


def is_available() -> bool:
    """Whether there is a CUDA device, real or simulated.

    >>> dt.accelerator.is_available() == dt.cuda.is_available()
    True
    """
    return cuda.is_available()


def device_count() -> int:
    """How many CUDA devices there are.

    >>> dt.accelerator.device_count() == dt.cuda.device_count()
    True
    """
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> _C.device | None:
    """The current CUDA device; None if there is none.

    >>> dt.accelerator.current_accelerator()
    device(type='cuda', index=0)
    """
    _C._need_bool("current_accelerator", "check_available", check_available)
    return _C.device("cuda") if cuda.is_available() else None


def current_device_index() -> int:
    """The index of the current CUDA device.

    >>> dt.accelerator.current_device_index()
    0
    """
    return cuda.current_device()


def set_device_index(device: Device) -> None:
    """Makes a CUDA device the current one. Raises DeviceNotAvailableError.

    >>> dt.accelerator.set_device_index(0)
    """
    cuda.set_device(device)


current_device_idx = current_device_index
set_device_idx = set_device_index


def synchronize(device: Device | None = None) -> None:
    """Waits for all work of a CUDA device, the current one by default.

    >>> dt.accelerator.synchronize()
    """
    cuda.synchronize(device)


def current_stream(device: Device | None = None) -> Stream:
    """The stream that work of this thread is sent to.

    >>> dt.accelerator.current_stream() == dt.cuda.current_stream()
    True
    """
    return cuda.current_stream(device)


def set_stream(stream: Stream) -> None:
    """Sends the work of this thread to a stream from now on.

    >>> dt.accelerator.set_stream(dt.cuda.current_stream())
    """
    cuda.set_stream(stream)


def empty_cache() -> None:
    """Gives memory that no array has back to the devices.

    >>> dt.accelerator.empty_cache()
    """
    cuda.empty_cache()


def memory_allocated(device_index: Device | None = None) -> int:
    """Bytes of arrays on a CUDA device, the current one by default.

    >>> dt.accelerator.memory_allocated() == dt.cuda.memory_allocated()
    True
    """
    return cuda.memory_allocated(device_index)


def max_memory_allocated(device_index: Device | None = None) -> int:
    """The most bytes of arrays that a CUDA device has held.

    >>> dt.accelerator.max_memory_allocated() == dt.cuda.max_memory_allocated()
    True
    """
    return cuda.max_memory_allocated(device_index)
