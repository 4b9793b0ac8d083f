"""What old synchronised batch normalisations import from torch.nn.parallel._functions: copies that gradients pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devtensor._C import DeviceArray
from devtensor.nn.parallel.scatter_gather import device_of, devices_of, gather, moved


class Broadcast:
    """Arrays on every one of several devices."""

    @staticmethod
    def apply(target_gpus: Sequence[Any], *inputs: DeviceArray) -> tuple[DeviceArray, ...]:
        """All inputs on the first device, then all on the second, and so on."""
        return tuple(moved(x, device) for device in devices_of("Broadcast", "target_gpus", target_gpus) for x in inputs)


class ReduceAddCoalesced:
    """Sums over devices."""

    @staticmethod
    def apply(destination: Any, num_inputs: int, *grads: DeviceArray) -> tuple[DeviceArray, ...]:
        """Of what Broadcast gives of num_inputs arrays: the sum of each over the devices, on destination."""
        device = device_of("ReduceAddCoalesced", "destination", destination)
        sums = [moved(x, device) for x in grads[:num_inputs]]
        for i, x in enumerate(grads[num_inputs:]):
            sums[i % num_inputs] = sums[i % num_inputs] + moved(x, device)
        return tuple(sums)


class Gather:
    """gather of arrays."""

    @staticmethod
    def apply(target_device: Any, dim: int, *inputs: DeviceArray) -> DeviceArray:
        """The inputs on target_device, joined along dim."""
        joined: DeviceArray = gather(inputs, target_device, dim)
        return joined


class Scatter:
    """The parts of an array, one for each device."""

    @staticmethod
    def apply(
        target_gpus: Sequence[Any], chunk_sizes: Sequence[int] | None, dim: int, input: DeviceArray
    ) -> tuple[DeviceArray, ...]:
        """Parts of equal sizes along dim, or of chunk_sizes."""
        devices = devices_of("Scatter", "target_gpus", target_gpus)
        parts = input.chunk(len(devices), dim) if chunk_sizes is None else input.split(list(chunk_sizes), dim)
        return tuple(moved(part, device) for part, device in zip(parts, devices, strict=False))
