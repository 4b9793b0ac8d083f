"""torch._utils: private functions of PyTorch that training programs of several processes use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from devtensor import _C, cuda
from devtensor._C import DeviceArray


def _flatten_dense_tensors(tensors: Sequence[DeviceArray]) -> DeviceArray:
    """One array of all their elements."""
    return _C.cat([x.reshape(-1) for x in tensors])


def _unflatten_dense_tensors(flat: DeviceArray, tensors: Sequence[DeviceArray]) -> tuple[DeviceArray, ...]:
    """Views of flat, of the shapes of tensors."""
    parts = flat.split([x.numel() for x in tensors])
    return tuple(part.view(x.shape) for part, x in zip(parts, tensors, strict=True))


def _take_tensors(tensors: Iterable[DeviceArray], size_limit: int) -> Iterator[list[DeviceArray]]:
    """Lists of arrays of one dtype and device, each list of up to size_limit bytes, or of one array."""
    held: dict[Any, list[DeviceArray]] = {}
    for x in tensors:
        bucket = held.setdefault((x.dtype, x.device), [])
        if bucket and sum(other.nbytes for other in bucket) + x.nbytes > size_limit:
            yield bucket
            bucket = held[x.dtype, x.device] = []
        bucket.append(x)
    yield from held.values()


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a CUDA device: of a number, a name or a device. optional: None is the current one; -1 is the cpu."""
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    if device is None and optional:
        return cuda.current_device()
    found = _C._need_device("_get_device_index", "device", device)
    if found.type == "cpu" and allow_cpu:
        return -1
    if found.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {found}")
    return cuda.current_device() if found.index is None else found.index


def is_compiling() -> bool:
    """False: nothing is compiled."""
    return False
