"""From one process to another, and collectives over one array with a part for each process."""

from __future__ import annotations

from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import need_array
from devtensor._errors import DTypeMismatchError
from devtensor.distributed import _collectives
from devtensor.distributed._collectives import ReduceOp
from devtensor.distributed._world import ProcessGroup, current


def _other(op: str, name: str, rank: Any, group_rank: Any, group: ProcessGroup) -> int:
    number = _collectives._rank(op, name, rank, group_rank, group)
    if number == group.rank():
        raise ValueError(f"{op}(): {name}={number} is this process itself")
    return number


def _host(op: str, name: str, x: Any) -> DeviceArray:
    """x where MPI can read it."""
    return _collectives._host_of_bools(_collectives._ready(op, name, x))


def _departure(
    op: str, tensor: DeviceArray, dst: int | None, group: Any, tag: int, group_dst: int | None
) -> tuple[Any, DeviceArray, dict[str, int]]:
    """Who sends, what, and where to."""
    need_array(op, "tensor", tensor)
    world = current(group)
    target = _other(op, "dst", dst, group_dst, world)
    return world._comm, _host(op, "tensor", tensor), {"dest": target, "tag": _C._need_int(op, "tag", tag)}


def _arrival(
    op: str, tensor: DeviceArray, src: int | None, group: Any, tag: int, group_src: int | None
) -> tuple[Any, DeviceArray, dict[str, int]]:
    """Who receives, the memory for it, and where from."""
    need_array(op, "tensor", tensor)
    world = current(group)
    anybody = src is None and group_src is None
    if anybody and world.size() == 1:
        raise ValueError(f"{op}(): there is no other process")
    source = -1 if anybody else _other(op, "src", src, group_src, world)
    from mpi4py import MPI  # type: ignore[import-not-found, unused-ignore]

    host = _C.empty_like(_host(op, "tensor", tensor))
    number = _C._need_int(op, "tag", tag)
    return world._comm, host, {"source": MPI.ANY_SOURCE if anybody else source, "tag": number}


def send(
    tensor: DeviceArray, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> None:
    """Send tensor to the process dst, which calls recv. Raises ValueError for a rank that is none, or this one's.

    >>> dt.distributed.init_process_group()
    >>> dt.distributed.send(dt.ones(2), dst=0)
    Traceback (most recent call last):
    ValueError: send(): dst=0 is this process itself
    >>> dt.distributed.destroy_process_group()
    """
    comm, host, where = _departure("send", tensor, dst, group, tag, group_dst)
    comm.Send(host, **where)


def recv(
    tensor: DeviceArray, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> int:
    """Write what the process src sends, from any where src is None, to tensor; returns the rank of the sender.

    The sender's array has the same dtype and number of elements. Raises ValueError for a rank that is none, or this
    one's.

    >>> dt.distributed.init_process_group()
    >>> dt.distributed.recv(dt.ones(2), src=0)
    Traceback (most recent call last):
    ValueError: recv(): src=0 is this process itself
    >>> dt.distributed.destroy_process_group()
    """
    comm, host, where = _arrival("recv", tensor, src, group, tag, group_src)
    from mpi4py import MPI  # type: ignore[import-not-found, unused-ignore]

    status = MPI.Status()
    comm.Recv(host, **where, status=status)
    _collectives._fill(tensor, host)
    return int(status.Get_source())


def _parts(op: str, names: tuple[str, str], whole: DeviceArray, part: DeviceArray, size: int) -> None:
    """whole has the elements of part for each of size processes, one after the other or along a new dimension."""
    for name, array in zip(names, (whole, part), strict=True):
        need_array(op, name, array)
    if whole.dtype != part.dtype:
        text = f"{op}: {names[0]} has {whole.dtype}, and {names[1]} {part.dtype}"
        raise _C._explained(op, names, (whole, part), "dtype-mismatch", DTypeMismatchError(text), 0)
    if whole.shape != (size, *part.shape):
        first = part.shape[0] * size if part.ndim else size
        _C._check_shape(op, names, (whole, part), 0, (first, *part.shape[1:]))


def all_gather_into_tensor(
    output_tensor: DeviceArray, input_tensor: DeviceArray, group: Any = None, async_op: bool = False
) -> Any:
    """Write the input_tensors of all processes one after the other to output_tensor, in every process.

    output_tensor: size times as long in its first dimension, or with one of that size in front.

    >>> dt.distributed.init_process_group()
    >>> whole = dt.zeros(1, 2)
    >>> dt.distributed.all_gather_into_tensor(whole, dt.ones(2))
    >>> whole.tolist()
    [[1.0, 1.0]]
    >>> dt.distributed.destroy_process_group()
    """
    op, world = "all_gather_into_tensor", current(group)
    _parts(op, ("output_tensor", "input_tensor"), output_tensor, input_tensor, world.size())
    places = output_tensor.detach().view((world.size(), *input_tensor.shape))
    return _collectives.all_gather(list(places.unbind(0)), input_tensor, group, async_op)


def reduce_scatter_tensor(
    output: DeviceArray, input: DeviceArray, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """The sum of input over all processes, or what op says; process i writes its i-th part to output.

    >>> dt.distributed.init_process_group()
    >>> part = dt.zeros(2)
    >>> dt.distributed.reduce_scatter_tensor(part, dt.ones(2))
    >>> part.tolist()
    [1.0, 1.0]
    >>> dt.distributed.destroy_process_group()
    """
    world = current(group)
    _parts("reduce_scatter_tensor", ("input", "output"), input, output, world.size())
    total = input.detach().clone()
    work = _collectives.all_reduce(total, op, group, async_op)
    _collectives._fill(output, total.reshape((world.size(), *output.shape))[world.rank()])
    return work


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Put the obj of process i at object_gather_list[i] in the process dst, sent by pickle; the others give no list.

    >>> dt.distributed.init_process_group()
    >>> found = [None]
    >>> dt.distributed.gather_object("a", found, dst=0)
    >>> found
    ['a']
    >>> dt.distributed.destroy_process_group()
    """
    op, world = "gather_object", current(group)
    target = _collectives._rank(op, "dst", 0 if dst is None and group_dst is None else dst, group_dst, world)
    mine = world.rank() == target
    if mine and (not isinstance(object_gather_list, list) or len(object_gather_list) != world.size()):
        raise ValueError(f"{op}(): object_gather_list must be a list of {world.size()}, one place for each process")
    found = world._comm.gather(obj, root=target) if world.size() > 1 else [obj]
    if mine and object_gather_list is not None:
        object_gather_list[:] = found


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The ranks of the processes of group, of all by None. Raises ValueError before init_process_group.

    >>> dt.distributed.init_process_group()
    >>> dt.distributed.get_process_group_ranks(dt.distributed.group.WORLD)
    [0]
    >>> dt.distributed.destroy_process_group()
    """
    return list(range(current(group).size()))


def _known(op: str, name: str, rank: Any, group: ProcessGroup) -> int:
    number = _C._need_int(op, name, rank)
    if not 0 <= number < current(group).size():
        raise ValueError(f"{op}(): {name}={number} is not part of the group")
    return number


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank among all processes of one of group: the same, as there is one group. ValueError for none of them.

    >>> dt.distributed.init_process_group()
    >>> dt.distributed.get_global_rank(dt.distributed.group.WORLD, 0)
    0
    >>> dt.distributed.destroy_process_group()
    """
    return _known("get_global_rank", "group_rank", group_rank, group)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank within group of one of all processes: the same, as there is one group. ValueError for none of them.

    >>> dt.distributed.init_process_group()
    >>> dt.distributed.get_group_rank(dt.distributed.group.WORLD, 0)
    0
    >>> dt.distributed.destroy_process_group()
    """
    return _known("get_group_rank", "global_rank", global_rank, group)
