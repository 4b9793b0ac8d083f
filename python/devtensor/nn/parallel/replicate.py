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
    return [_Copies(device, detach).module(network) for device in devices_of("replicate", "devices", devices)]


class _Copies:
    """Of modules and their arrays on a device: one of what is there twice."""

    def __init__(self, device: _C.device, detach: bool) -> None:
        self.device, self.detach = device, detach
        self.arrays: dict[int, DeviceArray] = {}
        self.modules: dict[int, Module] = {}

    def parameter(self, array: DeviceArray) -> DeviceArray:
        if id(array) not in self.arrays:
            self.arrays[id(array)] = moved(array.detach() if self.detach else array, self.device)
        return self.arrays[id(array)]

    def module(self, module: T) -> T:
        if id(module) in self.modules:
            return self.modules[id(module)]  # type: ignore[return-value]
        copy = type(module).__new__(type(module))
        self.modules[id(module)] = copy
        own = copy.__dict__
        own.update(module.__dict__)
        own.update(
            _parameter_names={},
            _former_names=dict(module._parameter_names),  # what a ParameterList goes over
            _buffer_names=dict(module._buffer_names),
            _module_names=dict(module._module_names),
        )
        for name in module._parameter_names:
            own[name] = own[name] if own[name] is None else self.parameter(own[name])
        for name in module._buffer_names:
            own[name] = own[name] if own[name] is None else _buffer(own[name], self.device)
        for name in module._module_names:
            child = module._child(name)
            copy._hold(name, None if child is None else self.module(child))
        return copy


def _buffer(array: DeviceArray, device: _C.device) -> DeviceArray:
    return array if array.device == device else moved(array.detach(), device)
