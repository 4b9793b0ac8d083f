"""Splits a batch over all GPUs, one thread each, and gathers the results where the batch was.

    python examples/several_gpus.py
    DEVTENSOR_CUDA=sim:2 python examples/several_gpus.py     # two simulated GPUs, on any machine

With no GPU the whole batch is the cpu's. Every move is a line of this file: nothing else goes between devices.
"""

from __future__ import annotations

import copy
import sys
from concurrent.futures import ThreadPoolExecutor

import devtensor as dt
from devtensor import nn


def all_devices() -> list[dt.device]:
    """Every GPU, or the cpu where there is none."""
    return [dt.device("cuda", i) for i in range(dt.cuda.device_count())] or [dt.device("cpu")]


class Split:
    """A module on several devices: calling it splits a batch along its first dimension."""

    def __init__(self, model: nn.Module, devices: list[dt.device]) -> None:
        self.devices = devices
        self.replicas = [copy.deepcopy(model).to(device) for device in devices]
        self.pool = ThreadPoolExecutor(len(devices))

    def part(self, i: int, piece: dt.DeviceArray) -> dt.DeviceArray:
        """One device's share. The GIL is free while the host copies, so that the threads work side by side."""
        return self.replicas[i](piece.to(self.devices[i]))

    def __call__(self, batch: dt.DeviceArray) -> dt.DeviceArray:
        pieces = batch.chunk(len(self.devices))  # fewer than devices where the batch is small
        results = list(self.pool.map(self.part, range(len(pieces)), pieces))
        return dt.cat([result.to(batch.device) for result in results])


def main(count: int) -> None:
    dt.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 10)
    )
    batch = dt.randn(count, 3, 32, 32)
    devices = all_devices()
    split = Split(model, devices)
    got, want = split(batch), model(batch)
    for device, piece in zip(devices, batch.chunk(len(devices))):  # noqa: B905  (fewer pieces than devices)
        print(f"{device}: {len(piece)} of {count} images")
    print(f"gathered {tuple(got.shape)} on {got.device}; as on one device: {dt.allclose(got, want, atol=1e-5)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 64)
