"""What torch.distributed.nn.functional has: collectives on record, beside the plain ones, which are not."""

from __future__ import annotations

from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor.autograd.function import Function
from devtensor.distributed import _collectives as plain
from devtensor.distributed._collectives import ReduceOp
from devtensor.distributed._world import current

__all__ = ["all_gather", "all_reduce"]


class _AllReduce(Function):
    """A sum over the processes; its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, tensor: DeviceArray, op: ReduceOp, group: Any) -> DeviceArray:
        ctx.op, ctx.group = op, group
        total = tensor.clone()
        plain.all_reduce(total, op, group)
        return total

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        total = grad_outputs[0].clone()
        plain.all_reduce(total, ctx.op, ctx.group)
        return total, None, None


class _AllGather(Function):
    """The arrays of all processes; to each flows what all of them pass back."""

    @staticmethod
    def forward(ctx: Any, tensor: DeviceArray, group: Any) -> tuple[DeviceArray, ...]:
        ctx.group = group
        found = [_C.empty_like(tensor) for _ in range(current(group).size())]
        plain.all_gather(found, tensor, group)
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        totals = _C.stack(list(grad_outputs))
        plain.all_reduce(totals, ReduceOp.SUM, ctx.group)
        return totals[current(ctx.group).rank()], None


def all_reduce(tensor: DeviceArray, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> DeviceArray:
    """The sum of tensor over all processes, or the mean with ReduceOp.AVG, as a new array that is on record.

    Raises ValueError before init_process_group and for another op, whose gradient is not that of its result.

    >>> dt.distributed.init_process_group()
    >>> x = dt.ones(2, requires_grad=True)
    >>> dt.distributed.nn.all_reduce(x).sum().backward()
    >>> x.grad.tolist()
    [1.0, 1.0]
    >>> dt.distributed.destroy_process_group()
    """
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise ValueError(f"all_reduce(): gradients flow through ReduceOp.SUM and ReduceOp.AVG, not {op}")
    found: DeviceArray = _AllReduce.apply(tensor, op, group)
    return found


def all_gather(tensor: DeviceArray, group: Any = None) -> tuple[DeviceArray, ...]:
    """tensor of every process, by rank, as new arrays that are on record.

    Raises ValueError before init_process_group.

    >>> dt.distributed.init_process_group()
    >>> [x.tolist() for x in dt.distributed.nn.all_gather(dt.ones(2))]
    [[1.0, 1.0]]
    >>> dt.distributed.destroy_process_group()
    """
    found: tuple[DeviceArray, ...] = _AllGather.apply(tensor, group)
    return found
