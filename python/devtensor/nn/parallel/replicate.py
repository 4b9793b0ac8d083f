"""A copy of a module on each device, through which gradients flow to the module itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._types import Device
from devtensor.nn.lazy import refuse_uncalled
from devtensor.nn.module import Module
from devtensor.nn.parallel.scatter_gather import devices_of, moved

T = TypeVar("T", bound=Module)


def replicate(network: T, devices: Sequence[Device], detach: bool = False) -> list[T]:
    """A copy of network for each device. Its parameters are copies of network's, to which their gradients flow.

    On the device where an array of network is, the copy has that array itself: what is written in place there stays. A
    copy has no parameters() of its own. detach: no gradients flow. Raises TypeError for what is no Module, RuntimeError
    for a lazy module that has had no call yet.

    >>> network = nn.Linear(2, 1)
    >>> (copy,) = nn.parallel.replicate(network, ["cpu"])
    >>> copy.weight is network.weight
    True
    """
    if not isinstance(network, Module):
        raise TypeError(f"replicate(): argument 'network' must be a Module, not {type(network).__name__}")
    detach = _C._need_bool("replicate", "detach", detach)
    refuse_uncalled(network, "copied to several devices")
    return [_replica(network, device, detach) for device in devices_of("replicate", "devices", devices)]


def _replica(network: T, device: _C.device, detach: bool) -> T:
    arrays: dict[int, DeviceArray] = {}  # one copy of an array that is there twice
    copies: dict[int, Module] = {}

    def there(array: DeviceArray) -> DeviceArray:
        if id(array) not in arrays:
            arrays[id(array)] = moved(array.detach() if detach else array, device)
        return arrays[id(array)]

    def copied(module: Module) -> Module:
        if id(module) in copies:
            return copies[id(module)]
        copy: Module = type(module).__new__(type(module))
        copies[id(module)] = copy
        own = copy.__dict__
        own.update(module.__dict__)
        own.update(
            _parameter_names={},
            _former_names=dict(module._parameter_names),  # what a ParameterList goes over
            _buffer_names=dict(module._buffer_names),
            _module_names=dict(module._module_names),
        )
        for name in module._parameter_names:
            own[name] = own[name] if own[name] is None else there(own[name])
        for name in module._buffer_names:
            own[name] = own[name] if own[name] is None else _buffer(own[name], device)
        for name in module._module_names:
            own[name] = own[name] if own[name] is None else copied(own[name])
        return copy

    return copied(network)  # type: ignore[return-value]


def _buffer(array: DeviceArray, device: _C.device) -> DeviceArray:
    return array if array.device == device else moved(array.detach(), device)
