"""What all processes do together: each function is called by each of them, in the same order."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import need_array
from devtensor._errors import DTypeMismatchError
from devtensor.autograd.grad_mode import no_grad
from devtensor.distributed._world import ProcessGroup, current


class ReduceOp(enum.Enum):
    """How the arrays of the processes become one."""

    SUM = "SUM"
    AVG = "AVG"
    PRODUCT = "PROD"
    MIN = "MIN"
    MAX = "MAX"
    BAND = "BAND"
    BOR = "BOR"
    BXOR = "BXOR"


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]  # PyTorch's own class of these values


class Work:
    """What async_op=True gives. The work is done when the function returns, so nothing is left to wait for."""

    def wait(self, timeout: Any = None) -> bool:
        """True, at once."""
        return True

    def is_completed(self) -> bool:
        """True."""
        return True

    def is_success(self) -> bool:
        """True: a failure was raised."""
        return True


_HALVES = (_C.float16, _C.bfloat16)


def _ready(op: str, name: str, x: Any) -> DeviceArray:
    """x on the host, one element after the other, in a dtype that MPI has."""
    need_array(op, name, x)
    host: DeviceArray = x.detach().cpu()
    return (host.to(_C.float32) if host.dtype in _HALVES else host).contiguous()


def _fill(target: DeviceArray, host: DeviceArray) -> None:
    with no_grad():
        target.detach().copy_(host.to(target.dtype).reshape(target.shape))


def _done(async_op: Any, op: str) -> Work | None:
    return Work() if _C._need_bool(op, "async_op", async_op) else None


def _rank(op: str, name: str, rank: Any, group_rank: Any, group: ProcessGroup) -> int:
    """The number of a process, given in one of two ways."""
    given = [value for value in (rank, group_rank) if value is not None]
    if len(given) != 1:
        raise ValueError(f"{op}() takes {name} or group_{name}, one of them")
    number = _C._need_int(op, name, given[0])
    if not 0 <= number < group.size():
        raise ValueError(f"{op}(): {name}={number}, and the ranks are 0 to {group.size() - 1}")
    return number


def _sum_op(op: str, how: Any, x: DeviceArray) -> tuple[Any, bool]:
    """MPI's operation, and whether the result is to be divided by the number of processes."""
    from mpi4py import MPI  # type: ignore[import-not-found, unused-ignore]

    return getattr(MPI, "SUM" if how is ReduceOp.AVG else how.value), how is ReduceOp.AVG


def _check_op(op: str, how: Any, x: DeviceArray) -> ReduceOp:
    if not isinstance(how, ReduceOp):
        raise TypeError(f"{op}(): argument 'op' must be a ReduceOp, not {type(how).__name__}")
    if how is ReduceOp.AVG and not x.dtype.is_floating_point:
        raise TypeError(f"{op}(): ReduceOp.AVG needs floats, but got {x.dtype}: SUM, then divide")
    if how in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR) and x.dtype.is_floating_point:
        raise TypeError(f"{op}(): ReduceOp.{how.name} needs integers, but got {x.dtype}")
    return how


def _host_of_bools(host: DeviceArray) -> DeviceArray:
    return host.to(_C.uint8) if host.dtype == _C.bool else host


def all_reduce(tensor: DeviceArray, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    """The sum of tensor over all processes, or what op says, in place, in every process.

    Halves are added in float32. An array on a GPU goes through the host; record_transfers shows these copies. Raises
    ValueError before init_process_group, TypeError for an op that the dtype lacks.

    >>> dt.distributed.init_process_group()
    >>> x = dt.ones(2)
    >>> dt.distributed.all_reduce(x)
    >>> x.tolist()
    [1.0, 1.0]
    >>> dt.distributed.destroy_process_group()
    """
    need_array("all_reduce", "tensor", tensor)
    world, how = current(group), _check_op("all_reduce", op, tensor)
    if world.size() > 1:
        host = _host_of_bools(_ready("all_reduce", "tensor", tensor))
        total = _C.empty_like(host)
        operation, mean = _sum_op("all_reduce", how, tensor)
        world._comm.Allreduce(host, total, operation)
        _fill(tensor, total / world.size() if mean else total)
    return _done(async_op, "all_reduce")


def reduce(
    tensor: DeviceArray,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """As all_reduce, but only the process dst gets the result; in the others tensor stays.

    >>> dt.distributed.init_process_group()
    >>> dt.distributed.reduce(dt.ones(2), dst=0)
    >>> dt.distributed.destroy_process_group()
    """
    need_array("reduce", "tensor", tensor)
    world, how = current(group), _check_op("reduce", op, tensor)
    target = _rank("reduce", "dst", dst, group_dst, world)
    if world.size() > 1:
        host = _host_of_bools(_ready("reduce", "tensor", tensor))
        total = _C.empty_like(host)
        operation, mean = _sum_op("reduce", how, tensor)
        world._comm.Reduce(host, total, operation, root=target)
        if world.rank() == target:
            _fill(tensor, total / world.size() if mean else total)
    return _done(async_op, "reduce")


def broadcast(
    tensor: DeviceArray,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """Write the tensor of the process src to that of all others.

    >>> dt.distributed.init_process_group()
    >>> dt.distributed.broadcast(dt.ones(2), src=0)
    >>> dt.distributed.destroy_process_group()
    """
    need_array("broadcast", "tensor", tensor)
    world = current(group)
    source = _rank("broadcast", "src", src, group_src, world)
    if world.size() > 1:
        host = _host_of_bools(_ready("broadcast", "tensor", tensor))
        host = host.clone()  # MPI writes there
        world._comm.Bcast(host, root=source)
        if world.rank() != source:
            _fill(tensor, host)
    return _done(async_op, "broadcast")


def _check_list(op: str, name: str, arrays: Any, like: DeviceArray, size: int) -> list[DeviceArray]:
    found = list(arrays) if isinstance(arrays, Sequence) else None
    if found is None or len(found) != size:
        raise ValueError(f"{op}(): {name} must be a list of {size} arrays, one for each process")
    for i, array in enumerate(found):
        need_array(op, f"{name}[{i}]", array)
        names = f"{name}[{i}]", "tensor"
        if array.dtype != like.dtype:
            text = f"{op}: {names[0]} has {array.dtype}, and tensor {like.dtype}"
            raise _C._explained(op, names, (array, like), "dtype-mismatch", DTypeMismatchError(text), 0)
        _C._check_shape(op, names, (array, like), 0, tuple(like.shape))
    return found


def all_gather(tensor_list: list[DeviceArray], tensor: DeviceArray, group: Any = None, async_op: bool = False) -> Any:
    """Write the tensor of process i to tensor_list[i], in every process.

    >>> dt.distributed.init_process_group()
    >>> parts = [dt.zeros(2)]
    >>> dt.distributed.all_gather(parts, dt.ones(2))
    >>> parts[0].tolist()
    [1.0, 1.0]
    >>> dt.distributed.destroy_process_group()
    """
    need_array("all_gather", "tensor", tensor)
    world = current(group)
    targets = _check_list("all_gather", "tensor_list", tensor_list, tensor, world.size())
    host = _host_of_bools(_ready("all_gather", "tensor", tensor))
    if world.size() > 1:
        whole = _C.empty(world.size(), *host.shape, dtype=host.dtype, device="cpu")
        world._comm.Allgather(host, whole)
    else:
        whole = host.unsqueeze(0)
    for target, part in zip(targets, whole, strict=True):
        _fill(target, part)
    return _done(async_op, "all_gather")


def gather(
    tensor: DeviceArray,
    gather_list: list[DeviceArray] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """Write the tensor of process i to gather_list[i] in the process dst; the others give no list.

    >>> dt.distributed.init_process_group()
    >>> dt.distributed.gather(dt.ones(2), [dt.zeros(2)], dst=0)
    >>> dt.distributed.destroy_process_group()
    """
    need_array("gather", "tensor", tensor)
    world = current(group)
    target = _rank("gather", "dst", 0 if dst is None and group_dst is None else dst, group_dst, world)
    mine = world.rank() == target
    targets = _check_list("gather", "gather_list", gather_list, tensor, world.size()) if mine else []
    host = _host_of_bools(_ready("gather", "tensor", tensor))
    whole = _C.empty(world.size(), *host.shape, dtype=host.dtype, device="cpu") if mine else None
    if world.size() > 1:
        world._comm.Gather(host, whole, root=target)
    else:
        whole = host.unsqueeze(0)
    for place, part in zip(targets, whole if mine and whole is not None else (), strict=True):
        _fill(place, part)
    return _done(async_op, "gather")


def scatter(
    tensor: DeviceArray,
    scatter_list: list[DeviceArray] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """Write scatter_list[i] of the process src to the tensor of process i; the others give no list.

    >>> dt.distributed.init_process_group()
    >>> dt.distributed.scatter(dt.zeros(2), [dt.ones(2)], src=0)
    >>> dt.distributed.destroy_process_group()
    """
    need_array("scatter", "tensor", tensor)
    world = current(group)
    source = _rank("scatter", "src", 0 if src is None and group_src is None else src, group_src, world)
    mine = world.rank() == source
    parts = _check_list("scatter", "scatter_list", scatter_list, tensor, world.size()) if mine else []
    hosts = [_host_of_bools(_ready("scatter", "scatter_list", part)) for part in parts]
    whole = _C.stack(hosts) if hosts else None
    if world.size() > 1:
        part = _C.empty_like(_host_of_bools(_ready("scatter", "tensor", tensor)))
        world._comm.Scatter(whole, part, root=source)
        _fill(tensor, part)
    elif whole is not None:
        _fill(tensor, whole[0])
    return _done(async_op, "scatter")


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: Any = None) -> Any:
    """Wait until all processes are here. device_ids and timeout are accepted and change nothing.

    >>> dt.distributed.init_process_group()
    >>> dt.distributed.barrier()
    >>> dt.distributed.destroy_process_group()
    """
    world = current(group)
    if world.size() > 1:
        world._comm.Barrier()
    return _done(async_op, "barrier")


# ---------------------------------------------------------------- objects


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Replace the objects in the list by those of the process src, sent by pickle.

    >>> dt.distributed.init_process_group()
    >>> dt.distributed.broadcast_object_list([1, "a"], src=0)
    >>> dt.distributed.destroy_process_group()
    """
    op, world = "broadcast_object_list", current(group)
    source = _rank(op, "src", 0 if src is None and group_src is None else src, group_src, world)
    if not isinstance(object_list, list):
        raise TypeError(f"{op}(): argument 'object_list' must be list, not {type(object_list).__name__}")
    if world.size() > 1:
        object_list[:] = world._comm.bcast(object_list if world.rank() == source else None, root=source)


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Put the obj of process i at object_list[i], in every process, sent by pickle.

    >>> dt.distributed.init_process_group()
    >>> found = [None]
    >>> dt.distributed.all_gather_object(found, {"loss": 0.5})
    >>> found
    [{'loss': 0.5}]
    >>> dt.distributed.destroy_process_group()
    """
    op, world = "all_gather_object", current(group)
    if not isinstance(object_list, list) or len(object_list) != world.size():
        raise ValueError(f"{op}(): object_list must be a list of {world.size()}, one place for each process")
    object_list[:] = world._comm.allgather(obj) if world.size() > 1 else [obj]
