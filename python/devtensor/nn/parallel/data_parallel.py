"""DataParallel: one module over all GPUs of this process, each with its part of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, TypeVar

from devtensor import _C, cuda
from devtensor._types import Device
from devtensor.nn.module import Module
from devtensor.nn.parallel.parallel_apply import parallel_apply
from devtensor.nn.parallel.replicate import replicate
from devtensor.nn.parallel.scatter_gather import device_of, devices_of, gather, scatter_kwargs

T = TypeVar("T", bound=Module)


class DataParallel(Module):
    """Calls module on several GPUs, each with its part of the batch; the results come together on output_device.

    device_ids: the devices, by default all GPUs; if there is none the module is called as it is. The parameters and
    buffers of module must be on the first. At each call they are copied to the others and the arguments are cut along
    dim, as scatter does it; gradients flow back to module. A DataParallel is a request for these transfers. With one
    device the module is moved there when the DataParallel is made. Changes of attributes in forward are lost, but for
    what is written in place on the first device.

    Keys of state_dict() begin with "module.". Raises RuntimeError where an array of module is on another device.

    >>> model = nn.DataParallel(nn.Linear(3, 2))
    >>> model.module
    Linear(in_features=3, out_features=2, bias=True)
    """

    def __init__(
        self,
        module: T,
        device_ids: Sequence[Device] | None = None,
        output_device: Device | None = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        if not isinstance(module, Module):
            raise TypeError(f"DataParallel(): argument 'module' must be a Module, not {type(module).__name__}")
        self.dim: int = _C._need_int("DataParallel", "dim", dim)
        devices = devices_of("DataParallel", "device_ids", device_ids)
        self.module = module
        self._devices = devices
        self.device_ids: list[Any] = [device.index if device.type == "cuda" else device for device in devices]
        self.output_device: _C.device | None = None
        if devices:
            self.output_device = device_of(
                "DataParallel", "output_device", devices[0] if output_device is None else output_device
            )
        if len(devices) == 1:
            module.to(devices[0])

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_devices" not in self.__dict__:
            self._use_what_is_here()

    def _use_what_is_here(self) -> None:
        """Of the devices that PyTorch has pickled those that are here, if the module is on the first."""
        own = self.__dict__
        ids = [i for i in own.get("device_ids", ()) if isinstance(i, int) and i < cuda.device_count()]
        devices = [_C.device("cuda", i) for i in ids]
        first = next(chain(self.module.parameters(), self.module.buffers()), None)
        if first is not None and devices and first.device != devices[0]:
            devices = []
        target = own.get("output_device")
        own.pop("src_device_obj", None)
        own["dim"] = own.get("dim", 0)
        own["_devices"], own["device_ids"] = devices, [device.index for device in devices]
        own["output_device"] = None
        if devices:
            own["output_device"] = _C.device("cuda", target) if target in ids else devices[0]

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The result of module for the whole batch, on output_device."""
        if not self._devices or self.output_device is None:
            return self.module(*inputs, **kwargs)
        return _apply(self.module, inputs, kwargs, self._devices, self.output_device, self.dim)


def _apply(
    module: Module,
    inputs: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    devices: list[_C.device],
    output_device: _C.device,
    dim: int,
) -> Any:
    for array in chain(module.parameters(), module.buffers()):
        if array.device != devices[0]:
            raise RuntimeError(
                f"module must have its parameters and buffers on device {devices[0]} (device_ids[0]) but found one of "
                f"them on device: {array.device}. module.to({str(devices[0])!r}) moves them"
            )
    positional, named = scatter_kwargs(inputs, kwargs, devices, dim)
    if not positional and not named:
        positional, named = [()], [{}]
    if len(devices) == 1:
        return module(*positional[0], **named[0])
    replicas = replicate(module, devices[: len(positional)], not _C.is_grad_enabled())
    return gather(parallel_apply(replicas, positional, named), output_device, dim)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Device] | None = None,
    output_device: Device | None = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """One call of module on several GPUs, as a DataParallel calls it.

    inputs: a tuple of arguments, or the one argument. Raises RuntimeError if there is no GPU, and where an array of
    module is not on the first device.

    >>> nn.parallel.data_parallel(nn.ReLU(), dt.ones(2), ["cpu", "cpu"])
    DeviceArray([1., 1.], device='cpu', dtype=float32)
    """
    op = "data_parallel"
    if not isinstance(module, Module):
        raise TypeError(f"{op}(): argument 'module' must be a Module, not {type(module).__name__}")
    devices = devices_of(op, "device_ids", device_ids)
    if not devices:
        raise RuntimeError("data_parallel(): no available devices were found; module(*inputs) calls it on the cpu")
    target = device_of(op, "output_device", devices[0] if output_device is None else output_device)
    given = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return _apply(module, given, module_kwargs, devices, target, _C._need_int(op, "dim", dim))
