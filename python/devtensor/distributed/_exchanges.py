"""Messages that are under way while the program goes on, and parts from every process to every other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import need_array
from devtensor._errors import DTypeMismatchError
from devtensor.distributed import _collectives
from devtensor.distributed._collectives import ReduceOp, Work
from devtensor.distributed._messages import _arrival, _departure, _host
from devtensor.distributed._world import ProcessGroup, current


class Pending(Work):
    """A message under way. Its arrays are left alone until wait()."""

    def __init__(self, request: Any, host: DeviceArray, arrived: Callable[[], None] | None) -> None:
        self._request, self._host, self._arrived = request, host, arrived  # MPI reads or writes host

    def _end(self) -> None:
        arrived, self._arrived = self._arrived, None
        if arrived is not None:
            arrived()

    def wait(self, timeout: Any = None) -> bool:
        """Wait until the message is sent, or until it is in the array that it was asked for."""
        self._request.Wait()
        self._end()
        return True

    def is_completed(self) -> bool:
        """Whether wait() would return at once."""
        if not self._request.Test():
            return False
        self._end()
        return True


def isend(
    tensor: DeviceArray, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work:
    """send, which does not wait: wait() of what it gives does. tensor is copied before isend returns.

    >>> dt.distributed.init_process_group()
    >>> dt.distributed.isend(dt.ones(2), dst=0)
    Traceback (most recent call last):
    ValueError: isend(): dst=0 is this process itself
    >>> dt.distributed.destroy_process_group()
    """
    comm, host, where = _departure("isend", tensor, dst, group, tag, group_dst)
    copied = host.clone()
    return Pending(comm.Isend(copied, **where), copied, None)


def irecv(
    tensor: DeviceArray, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work:
    """recv, which does not wait: wait() of what it gives does, and then tensor has what was sent.

    >>> dt.distributed.init_process_group()
    >>> dt.distributed.irecv(dt.ones(2), src=0)
    Traceback (most recent call last):
    ValueError: irecv(): src=0 is this process itself
    >>> dt.distributed.destroy_process_group()
    """
    comm, host, where = _arrival("irecv", tensor, src, group, tag, group_src)
    return Pending(comm.Irecv(host, **where), host, lambda: _collectives._fill(tensor, host))


class P2POp:
    """A message for batch_isend_irecv: op is isend or irecv, peer the other process.

    >>> dt.distributed.P2POp(dt.distributed.isend, dt.ones(2), 1).peer
    1
    """

    def __init__(
        self,
        op: Callable[..., Work],
        tensor: DeviceArray,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError("P2POp(): argument 'op' must be distributed.isend or distributed.irecv")
        need_array("P2POp", "tensor", tensor)
        self.op: Callable[..., Work] = op
        self.tensor: DeviceArray = tensor
        self.peer: int | None = peer
        self.group: ProcessGroup | None = group
        self.tag: int = tag
        self.group_peer: int | None = group_peer


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin all messages of a list of P2POp; wait() of each of the results waits for it.

    >>> dt.distributed.batch_isend_irecv([])
    []
    """
    if not isinstance(p2p_op_list, list) or not all(isinstance(one, P2POp) for one in p2p_op_list):
        raise ValueError("batch_isend_irecv(): argument 'p2p_op_list' must be a list of P2POp")
    return [one.op(one.tensor, one.peer, one.group, one.tag, one.group_peer) for one in p2p_op_list]


# ---------------------------------------------------------------- parts for every process


def _exchanged(world: ProcessGroup, sent: DeviceArray, counts: list[int], wanted: list[int]) -> DeviceArray:
    """What the others have for this process, one after the other: so many elements for each, of a vector."""
    if world.size() == 1:
        return sent
    received = _C.empty(sum(wanted), dtype=sent.dtype, device="cpu")
    world._comm.Alltoallv([sent, counts], [received, wanted])
    return received


def _listed(op: str, name: str, arrays: Any, size: int) -> list[DeviceArray]:
    found = list(arrays) if isinstance(arrays, Sequence) else None
    if found is None or len(found) != size:
        raise ValueError(f"{op}(): {name} must be a list of {size} arrays, one for each process")
    for i, array in enumerate(found):
        need_array(op, f"{name}[{i}]", array)
    return found


def all_to_all(
    output_tensor_list: list[DeviceArray],
    input_tensor_list: list[DeviceArray],
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """Send input_tensor_list[i] to process i, and write what process i sends to output_tensor_list[i].

    All of one dtype; sizes may differ if both sides agree. Raises ValueError for lists of another length than there are
    processes, DTypeMismatchError.

    >>> dt.distributed.init_process_group()
    >>> found = [dt.zeros(2)]
    >>> dt.distributed.all_to_all(found, [dt.ones(2)])
    >>> found[0].tolist()
    [1.0, 1.0]
    >>> dt.distributed.destroy_process_group()
    """
    op, world = "all_to_all", current(group)
    outputs = _listed(op, "output_tensor_list", output_tensor_list, world.size())
    inputs = _listed(op, "input_tensor_list", input_tensor_list, world.size())
    for name, arrays in (("output_tensor_list", outputs), ("input_tensor_list", inputs)):
        for i, array in enumerate(arrays):
            if array.dtype != inputs[0].dtype:
                names = f"{name}[{i}]", "input_tensor_list[0]"
                text = f"{op}: {names[0]} has {array.dtype}, and {names[1]} {inputs[0].dtype}"
                raise _C._explained(op, names, (array, inputs[0]), "dtype-mismatch", DTypeMismatchError(text), 0)
    counts, wanted = [x.numel() for x in inputs], [x.numel() for x in outputs]
    if counts[world.rank()] != wanted[world.rank()]:
        raise ValueError(f"{op}(): process {world.rank()} sends itself {counts[world.rank()]} elements, and expects "
                         f"{wanted[world.rank()]}")  # fmt: skip
    sent = _C.cat([_host(op, f"input_tensor_list[{i}]", x).flatten() for i, x in enumerate(inputs)])
    received = _exchanged(world, sent, counts, wanted)
    for place, part in zip(outputs, received.split(wanted), strict=True):
        _collectives._fill(place, part)
    return _collectives._done(async_op, op)


def _rows(op: str, name: str, x: DeviceArray, splits: Any, of: str, size: int) -> list[int]:
    """How many rows of x belong to each process."""
    if x.ndim == 0:
        _C._check_rank(op, (of,), (x,), 0, 1, 8)
    if splits is None or (isinstance(splits, Sequence) and len(splits) == 0):
        if x.shape[0] % size:
            raise ValueError(f"{op}(): the first dimension of {of}, {x.shape[0]}, is not divisible by {size} processes")
        return [x.shape[0] // size] * size
    found = list(_C._need_ints(op, name, splits))
    if len(found) != size or min(found) < 0 or sum(found) != x.shape[0]:
        raise ValueError(f"{op}(): {name} must be {size} sizes whose sum is {x.shape[0]}, but got {found}")
    return found


def all_to_all_single(
    output: DeviceArray,
    input: DeviceArray,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """all_to_all of the parts of input along its first dimension, into those of output: equal ones, or of given sizes.

    Raises ValueError for sizes that do not add up, DTypeMismatchError, ShapeMismatchError.

    >>> dt.distributed.init_process_group()
    >>> found = dt.zeros(2)
    >>> dt.distributed.all_to_all_single(found, dt.ones(2))
    >>> found.tolist()
    [1.0, 1.0]
    >>> dt.distributed.destroy_process_group()
    """
    op, names, world = "all_to_all_single", ("output", "input"), current(group)
    for name, x in zip(names, (output, input), strict=True):
        need_array(op, name, x)
    if output.dtype != input.dtype:
        text = f"{op}: output has {output.dtype}, and input {input.dtype}"
        raise _C._explained(op, names, (output, input), "dtype-mismatch", DTypeMismatchError(text), 0)
    wanted = _rows(op, "output_split_sizes", output, output_split_sizes, "output", world.size())
    counts = _rows(op, "input_split_sizes", input, input_split_sizes, "input", world.size())
    _C._check_shape(op, names, (output, input), 0, [sum(wanted), *input.shape[1:]])
    row = input[0].numel() if input.shape[0] else output[0].numel() if output.shape[0] else 1
    sent = _host(op, "input", input).flatten()
    received = _exchanged(world, sent, [n * row for n in counts], [n * row for n in wanted])
    _collectives._fill(output, received)
    return _collectives._done(async_op, op)


def reduce_scatter(
    output: DeviceArray,
    input_list: list[DeviceArray],
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """The sum of input_list[i] over all processes, or what op says, written to output in process i.

    Raises ValueError for a list of another length than there are processes, TypeError for an op that the dtype lacks,
    DTypeMismatchError, ShapeMismatchError.

    >>> dt.distributed.init_process_group()
    >>> part = dt.zeros(2)
    >>> dt.distributed.reduce_scatter(part, [dt.ones(2)])
    >>> part.tolist()
    [1.0, 1.0]
    >>> dt.distributed.destroy_process_group()
    """
    name = "reduce_scatter"
    need_array(name, "output", output)
    world, how = current(group), _collectives._check_op(name, op, output)
    parts = _collectives._check_list(name, "input_list", input_list, output, world.size())
    hosts = _C.stack([_host(name, f"input_list[{i}]", part) for i, part in enumerate(parts)])
    total = hosts[0]
    if world.size() > 1:
        operation, mean = _collectives._sum_op(name, how, output)
        total = _C.empty_like(hosts[0])
        world._comm.Reduce_scatter_block(hosts, total, operation)
        total = total / world.size() if mean else total
    _collectives._fill(output, total)
    return _collectives._done(async_op, name)


# ---------------------------------------------------------------- objects, and a barrier


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Put scatter_object_input_list[i] of the process src at place 0 of the list of process i, sent by pickle.

    >>> dt.distributed.init_process_group()
    >>> found = [None]
    >>> dt.distributed.scatter_object_list(found, ["a"], src=0)
    >>> found
    ['a']
    >>> dt.distributed.destroy_process_group()
    """
    op, world = "scatter_object_list", current(group)
    source = _collectives._rank(op, "src", 0 if src is None and group_src is None else src, group_src, world)
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError(f"{op}(): scatter_object_output_list must be a list with a place")
    given, mine = scatter_object_input_list, world.rank() == source
    if mine and (not isinstance(given, list) or len(given) != world.size()):
        raise ValueError(f"{op}(): scatter_object_input_list must be a list of {world.size()}, one for each process")
    if world.size() > 1:
        scatter_object_output_list[0] = world._comm.scatter(given if mine else None, root=source)
    elif given is not None:
        scatter_object_output_list[0] = given[0]


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """barrier(): who does not come is not told. timeout and wait_all_ranks are accepted and change nothing.

    >>> dt.distributed.init_process_group()
    >>> dt.distributed.monitored_barrier()
    >>> dt.distributed.destroy_process_group()
    """
    _collectives.barrier(group)
