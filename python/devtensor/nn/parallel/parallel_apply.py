"""Several modules, each on its own arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devtensor._types import Device
from devtensor.nn.module import Module


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Device | None] | None = None,
) -> list[Any]:
    """The results of all modules, each called with its inputs, a tuple of arguments or the one argument.

    They are called one after the other, in the same order each time; work on GPUs is only sent, so that they compute at
    the same time. devices is accepted: arrays know theirs. Raises what a module raises.

    >>> nn.parallel.parallel_apply([nn.ReLU(), nn.Tanh()], [dt.zeros(1), (dt.zeros(1),)])
    [DeviceArray([0.], device='cpu', dtype=float32), DeviceArray([0.], device='cpu', dtype=float32)]
    """
    named = [{} for _ in modules] if kwargs_tup is None else kwargs_tup
    for name, values in (
        ("inputs", inputs),
        ("kwargs_tup", named),
        ("devices", modules if devices is None else devices),
    ):
        if len(values) != len(modules):
            raise AssertionError(
                f"The number of modules {len(modules)} is not equal to the number of {name} {len(values)}"
            )
    return [
        module(*(given if isinstance(given, (tuple, list)) else (given,)), **more)
        for module, given, more in zip(modules, inputs, named, strict=True)
    ]
