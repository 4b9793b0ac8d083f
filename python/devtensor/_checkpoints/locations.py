"""Where the storages of a checkpoint go: to the device that the file names, or where map_location says."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from devtensor import _C, cuda
from devtensor._C import DeviceArray


def mover(map_location: Any) -> Callable[[DeviceArray, str], DeviceArray]:
    """What takes the bytes of a storage and the file's word for its device, and gives the bytes on their device."""
    if map_location is None:
        return _restored
    if isinstance(map_location, Mapping):
        return lambda memory, location: _mapped(memory, map_location.get(location, location))
    if isinstance(map_location, (str, int, _C.device)):
        target = _C._need_device("load", "map_location", map_location)
        return lambda memory, location: memory.to(target)
    if callable(map_location):
        return lambda memory, location: _chosen(memory, location, map_location)
    wanted = "a device, a dictionary of devices or a function of a storage and its location"
    raise TypeError(f"load(): argument 'map_location' must be {wanted}, not {type(map_location).__name__}")


def _mapped(memory: DeviceArray, target: Any) -> DeviceArray:
    if isinstance(target, str):
        return _restored(memory, target)
    return memory.to(_C._need_device("load", "map_location", target))


def _chosen(memory: DeviceArray, location: str, choose: Callable[[Any, str], Any]) -> DeviceArray:
    found = choose(memory, location)
    if found is None:
        return _restored(memory, location)
    if not isinstance(found, DeviceArray) or found.dtype != _C.uint8 or found.shape != memory.shape:
        raise TypeError(
            f"load(): map_location must return the storage that it is given, moved or not, or None; it returned "
            f"{type(found).__name__}"
        )
    return found


def _restored(memory: DeviceArray, location: str) -> DeviceArray:
    index = location.partition(":")[2]
    if location == "cpu":
        return memory
    if not re.fullmatch("cuda(:[0-9]{1,9})?", location):
        raise RuntimeError(
            f"don't know how to restore data location of storage (tagged with {location!r:.60}): "
            'load(f, map_location="cpu") takes its bytes to the host'
        )
    if not cuda.is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but cuda.is_available() is False. If you are running on "
            "a CPU-only machine, please use load(f, map_location='cpu') to map your storages to the CPU."
        )
    if int(index or 0) >= cuda.device_count():
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {int(index or 0)} but cuda.device_count() is "
            f"{cuda.device_count()}. Please use load(f, map_location=...) to map your storages to an existing device."
        )
    return memory.to(_C.device(f"cuda:{int(index or 0)}"))
