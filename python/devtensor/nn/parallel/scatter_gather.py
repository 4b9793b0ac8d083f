"""A batch cut into a part for each device, and the parts of a result joined on one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from devtensor import _C, cuda
from devtensor._C import DeviceArray
from devtensor._types import Device


def device_of(op: str, name: str, device: Any) -> _C.device:
    """A device from itself, its text, or the number of a GPU; -1 is the cpu."""
    if type(device) is int and device == -1:
        return _C.device("cpu")
    return _C._need_device(op, name, device)


def devices_of(op: str, name: str, devices: Any) -> list[_C.device]:
    """All GPUs for None."""
    if devices is None:
        return [_C.device("cuda", i) for i in range(cuda.device_count())]
    if isinstance(devices, str) or not isinstance(devices, Sequence):
        raise TypeError(f"{op}(): argument '{name}' must be a list of devices, not {type(devices).__name__}")
    return [device_of(op, f"{name}[{i}]", device) for i, device in enumerate(devices)]


def moved(x: DeviceArray, device: _C.device) -> DeviceArray:
    """x on device, without a wait where its memory allows."""
    return x.to(device, non_blocking=x.is_pinned())


def scatter(inputs: Any, target_gpus: Sequence[Device], dim: int = 0) -> Any:
    """For each device its part of inputs: arrays are cut along dim as by chunk and moved; anything else is repeated.

    inputs: an array, or tuples, lists and dictionaries with arrays in them. There are as many parts as chunk gives,
    at most one for each device. Gradients flow back. Raises IndexError for a dim that an array lacks.

    >>> [part.shape for part in nn.parallel.scatter(dt.ones(3, 2), ["cpu", "cpu"])]
    [(2, 2), (1, 2)]
    """
    return _scattered(inputs, devices_of("scatter", "target_gpus", target_gpus), _C._need_int("scatter", "dim", dim))


def _scattered(value: Any, devices: list[_C.device], dim: int) -> list[Any]:
    if isinstance(value, DeviceArray):
        parts = value.chunk(len(devices), dim)
        return [moved(part, device) for part, device in zip(parts, devices, strict=False)]
    if isinstance(value, (tuple, list)) and value:
        items = zip(*(_scattered(item, devices, dim) for item in value), strict=False)
        if hasattr(value, "_fields"):
            return [type(value)(*item) for item in items]
        return [item if isinstance(value, tuple) else list(item) for item in items]
    if isinstance(value, dict) and value:
        values = zip(*(_scattered(item, devices, dim) for item in value.values()), strict=False)
        return [type(value)(zip(value, part, strict=True)) for part in values]
    return [value for _ in devices]


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Device], dim: int = 0
) -> tuple[list[tuple[Any, ...]], list[dict[str, Any]]]:
    """scatter of the arguments of a call: the shorter one is filled up with empty ones."""
    devices = devices_of("scatter", "target_gpus", target_gpus)
    positional: list[Any] = _scattered(inputs, devices, dim) if inputs else []
    named: list[Any] = _scattered(kwargs, devices, dim) if kwargs else []
    positional += [() for _ in range(len(named) - len(positional))]
    named += [{} for _ in range(len(positional) - len(named))]
    return positional, named


def gather(outputs: Any, target_device: Device, dim: int = 0) -> Any:
    """The results of all devices as one on target_device: arrays are moved and joined along dim.

    outputs: arrays, or tuples, lists and dictionaries with arrays at the same places; None stays None. Numbers
    (0-dimensional arrays) become a vector, with a UserWarning. Gradients flow back. target_device -1 is the cpu. Raises
    ValueError for dictionaries with other keys, TypeError for what cannot be joined.

    >>> nn.parallel.gather([dt.ones(2), dt.zeros(1)], "cpu")
    DeviceArray([1., 1., 0.], device='cpu', dtype=float32)
    """
    device = device_of("gather", "target_device", target_device)
    return _gathered(list(outputs), device, _C._need_int("gather", "dim", dim))


def _gathered(outputs: list[Any], device: _C.device, dim: int) -> Any:
    first = outputs[0]
    if isinstance(first, DeviceArray):
        if first.ndim == 0 and dim == 0:
            warnings.warn(
                "Was asked to gather along dimension 0, but all input tensors were scalars; will instead unsqueeze and "
                "return a vector.",
                stacklevel=4,
            )
            outputs = [output.unsqueeze(0) for output in outputs]
        return _C.cat([moved(output, device) for output in outputs], dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(output.keys() != first.keys() for output in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, _gathered([output[key] for output in outputs], device, dim)) for key in first)
    if isinstance(first, (tuple, list)):
        items = [_gathered(list(item), device, dim) for item in zip(*outputs, strict=True)]
        return type(first)(*items) if hasattr(first, "_fields") else type(first)(items)
    raise TypeError(f"gather(): a result of class {type(first).__name__} cannot be joined; a module returns arrays")
