"""Batch norm with the statistics of all processes of dt.distributed."""

from __future__ import annotations

from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import widened
from devtensor.autograd.function import Function
from devtensor.autograd.grad_mode import no_grad


class _Sum(Function):
    """The sum over all processes; so is its gradient."""

    @staticmethod
    def forward(ctx: Any, x: DeviceArray) -> DeviceArray:
        return _total(x)

    @staticmethod
    def backward(ctx: Any, gradient: DeviceArray) -> DeviceArray:
        return _total(gradient)


def _total(x: DeviceArray) -> DeviceArray:
    from devtensor.distributed import all_reduce

    total: DeviceArray = x.detach().clone()
    all_reduce(total)
    return total


def several(group: Any) -> bool:
    """Whether there are other processes. Raises ValueError for a group before init_process_group."""
    from devtensor.distributed import _world

    return (group is not None or _world.initialized()) and _world.current(group).size() > 1


def normalised(
    x: DeviceArray,
    running_mean: DeviceArray | None,
    running_var: DeviceArray | None,
    weight: DeviceArray | None,
    bias: DeviceArray | None,
    momentum: float,
    eps: float,
) -> DeviceArray:
    """(x - mean) / sqrt(var + eps) * weight + bias, with mean and variance of all processes."""
    dims = (0, *range(2, x.ndim))
    shape = (1, -1, *(1 for _ in range(2, x.ndim)))
    wide = widened(x)
    here = _C.full((1,), wide.numel() // x.shape[1], dtype=wide.dtype, device=x.device)
    sums: DeviceArray = _Sum.apply(_C.cat([wide.sum(dims), here]))
    count = sums[-1].detach()
    mean = sums[:-1] / count
    apart = wide - mean.reshape(shape)
    var: DeviceArray = _Sum.apply((apart * apart).sum(dims)) / count
    if running_mean is not None and running_var is not None:
        with no_grad():
            unbiased = var.detach() * (count / (count - 1))
            running_mean.mul_(1 - momentum).add_(mean.detach().to(running_mean.dtype), alpha=momentum)
            running_var.mul_(1 - momentum).add_(unbiased.to(running_var.dtype), alpha=momentum)
    result = apart * (var + eps).rsqrt().reshape(shape)
    if weight is not None:
        result = result * weight.to(wide.dtype).reshape(shape)
    if bias is not None:
        result = result + bias.to(wide.dtype).reshape(shape)
    return result.to(x.dtype)
