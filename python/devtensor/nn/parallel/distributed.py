"""DistributedDataParallel: one module in each process, whose gradients are averaged over all of them."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor.autograd.grad_mode import no_grad
from devtensor.nn.lazy import refuse_uncalled
from devtensor.nn.module import Module

T = TypeVar("T", bound=Module)

_MIB = 1 << 20
_FIRST = 1  # MiB of the bucket that is full first
_UNFINISHED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that "
    "your module has parameters that were not used in producing loss. find_unused_parameters=True looks for them in "
    "each forward. Parameters that had no gradient: {names}"
)


class DistributedDataParallel(Module):
    """A module in each process of dt.distributed; after backward the gradients are the mean over all processes.

    At the start the parameters and buffers of process 0 are written to those of all others. During backward gradients
    are put into flat buckets of bucket_cap_mb MiB, in the order in which they come, and each full bucket is averaged by
    one all_reduce. Arrays on a GPU go by way of the host, as MPI may know nothing of GPUs; record_transfers shows it.
    In training each forward writes the buffers of process 0 to the others, unless broadcast_buffers is False.

    find_unused_parameters: look in each forward for parameters that the result does not depend on, whose gradients then
    do not come. device_ids may have one device, that of the module. static_graph, gradient_as_bucket_view,
    check_reduction and the rest are accepted and change nothing; mixed_precision, device_mesh and
    delay_all_reduce_named_params are refused. Keys of state_dict() begin with "module.".

    Raises ValueError before init_process_group, RuntimeError for a module without a parameter that requires a gradient,
    for a lazy one that has had no call yet, and in the next forward where a gradient did not come.

    >>> dt.distributed.init_process_group()
    >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    >>> model(dt.ones(3, 2)).sum().backward()
    >>> model.module.weight.grad.tolist()
    [[3.0, 3.0]]
    >>> dt.distributed.destroy_process_group()
    """

    def __init__(
        self,
        module: T,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        from devtensor.distributed import _world

        op = "DistributedDataParallel"
        if not isinstance(module, Module):
            raise TypeError(f"{op}(): argument 'module' must be a Module, not {type(module).__name__}")
        for name, value in (
            ("delay_all_reduce_named_params", delay_all_reduce_named_params),
            ("param_to_hook_all_reduce", param_to_hook_all_reduce),
            ("mixed_precision", mixed_precision),
            ("device_mesh", device_mesh),
        ):
            if value is not None:
                raise NotImplementedError(f"{op}({name}=) is not implemented")
        group = _world.current(process_group)
        self.module = module
        self.dim: int = _C._need_int(op, "dim", dim)
        self.device_ids = device_ids
        self.output_device = output_device
        self.find_unused_parameters: bool = _C._need_bool(op, "find_unused_parameters", find_unused_parameters)
        self.broadcast_buffers: bool = broadcast_buffers is not False and forward_sync_buffers is not False
        self.require_backward_grad_sync: bool = True
        self.process_group = group
        refuse_uncalled(module, f"used with {op}")
        wanted = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        if not wanted:
            raise RuntimeError(f"{op} is not needed when a module doesn't have any parameter that requires a gradient.")
        self._check_devices(op)
        if _C._need_bool(op, "init_sync", init_sync):
            self._send([*module.parameters(), *module.buffers()])
        cap = 25.0 if bucket_cap_mb is None else _C._need_number(op, "bucket_cap_mb", bucket_cap_mb)
        self._reducer = _Reducer(self, wanted, int(cap * _MIB))

    def _check_devices(self, op: str) -> None:
        if self.device_ids is None:
            return
        if len(self.device_ids) != 1:
            raise ValueError(
                f"{op}(): device_ids has one device, that of this process, or is None; got {self.device_ids}"
            )
        device = _C._need_device(op, "device_ids", self.device_ids[0])
        for name, parameter in self.module.named_parameters():
            if parameter.device != device:
                raise ValueError(
                    f"{op}(): device_ids is [{str(device)!r}], and {name} is on {parameter.device}: "
                    f"module.to({str(device)!r}) moves it"
                )

    def _send(self, arrays: list[DeviceArray]) -> None:
        """What process 0 has, to all others, in one message for each device and dtype."""
        if self.process_group.size() == 1:
            return
        from devtensor.distributed import broadcast

        kinds: dict[Any, list[DeviceArray]] = {}
        for array in arrays:
            kinds.setdefault((str(array.device), str(array.dtype)), []).append(array)
        for parts in kinds.values():
            flat = _flat([part.detach() for part in parts])
            broadcast(flat, src=0)
            _unflatten(flat, parts)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The result of module; backward then averages the gradients."""
        syncs = _C.is_grad_enabled() and self.require_backward_grad_sync
        if syncs:
            self._reducer.begin()
        if self.broadcast_buffers and self.training and self.require_backward_grad_sync:
            self._send(list(self.module.buffers()))
        if self.device_ids is not None:
            from devtensor.nn.parallel.scatter_gather import scatter_kwargs

            given, named = scatter_kwargs(inputs, kwargs, self.device_ids)
            result = self.module(*(given[0] if given else ()), **(named[0] if named else {}))
        else:
            result = self.module(*inputs, **kwargs)
        if syncs and self.find_unused_parameters:
            self._reducer.look_for_unused(result)
        return result

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within it backward adds up the gradients of this process alone; the next backward outside averages the sums.

        >>> dt.distributed.init_process_group()
        >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
        >>> with model.no_sync():
        ...     model(dt.ones(3, 2)).sum().backward()
        >>> dt.distributed.destroy_process_group()
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before


def _flat(arrays: list[DeviceArray]) -> DeviceArray:
    return _C.cat([array.reshape(-1) for array in arrays])


def _unflatten(flat: DeviceArray, targets: list[DeviceArray]) -> None:
    start = 0
    with no_grad():
        for target in targets:
            target.detach().copy_(flat.narrow(0, start, target.numel()).reshape(target.shape))
            start += target.numel()


def _weakly(method: Callable[[DeviceArray], None]) -> Callable[[DeviceArray], None]:
    """method, for a hook that does not keep its object."""
    found = weakref.WeakMethod(method)

    def call(parameter: DeviceArray) -> None:
        alive = found()
        if alive is not None:
            alive(parameter)

    return call


class _Bucket:
    """Parameters whose gradients go together: of one device and dtype."""

    def __init__(self) -> None:
        self.parameters: list[DeviceArray] = []
        self.nbytes = 0


class _Reducer:
    """Puts gradients into buckets as they come, and averages full ones, in the same order in every process."""

    def __init__(
        self, owner: DistributedDataParallel, parameters: Sequence[tuple[str, DeviceArray]], limit: int
    ) -> None:
        self.owner: Any = weakref.proxy(owner)  # which has this
        self.names = {id(p): name for name, p in parameters}
        self.buckets = _buckets([p for _, p in reversed(parameters)], limit)
        self.leaves: dict[Any, DeviceArray] = {}
        self.missing: list[set[int]] = []
        self.unused: set[int] = set()
        self.next = len(self.buckets)
        self.some_came = False  # a backward has begun
        for _, parameter in parameters:
            parameter.register_post_accumulate_grad_hook(_weakly(self._came))

    def begin(self) -> None:
        """A forward whose backward will average."""
        unfinished, self.some_came = self.some_came and self.next < len(self.buckets), False
        if unfinished:
            names = sorted(self.names[key] for missing in self.missing for key in missing)
            raise RuntimeError(_UNFINISHED.format(names=", ".join(names)))
        self.missing = [{id(p) for p in bucket.parameters} for bucket in self.buckets]
        self.unused = set()
        self.next = 0

    def look_for_unused(self, result: Any) -> None:
        """Parameters that result does not depend on: their gradients do not come."""
        if not self.leaves:
            for bucket in self.buckets:
                for parameter in bucket.parameters:
                    node = parameter.view(parameter.shape).grad_fn
                    if node is not None:
                        self.leaves[node.next_functions[0][0]] = parameter
        used = _reached(result)
        self.unused = {id(p) for node, p in self.leaves.items() if node not in used}
        for missing in self.missing:
            missing -= self.unused
        self._average_full()

    def _came(self, parameter: DeviceArray) -> None:
        if not self.owner.require_backward_grad_sync or self.next >= len(self.buckets):
            return
        self.some_came = True
        for missing in self.missing[self.next :]:
            missing.discard(id(parameter))
        self._average_full()

    def _average_full(self) -> None:
        while self.next < len(self.buckets) and not self.missing[self.next]:
            self._average(self.buckets[self.next])
            self.next += 1

    def _average(self, bucket: _Bucket) -> None:
        if self.owner.process_group.size() == 1:
            return
        from devtensor.distributed import ReduceOp, all_reduce

        with no_grad():
            none = {id(p) for p in bucket.parameters if p.grad is None}
            grads = [_C.zeros_like(p.detach()) if p.grad is None else p.grad.detach() for p in bucket.parameters]
            flat = _flat(grads)
            all_reduce(flat, ReduceOp.AVG)
            if self.owner.find_unused_parameters:
                there = _C.tensor([float(id(p) not in self.unused) for p in bucket.parameters], device="cpu")
                all_reduce(there)
                somewhere = there.tolist()
            else:
                somewhere = [1.0] * len(grads)
            _unflatten(flat, grads)
            for parameter, grad, count in zip(bucket.parameters, grads, somewhere, strict=True):
                if id(parameter) in none and count:
                    parameter.grad = grad


def _buckets(parameters: list[DeviceArray], limit: int) -> list[_Bucket]:
    found: list[_Bucket] = []
    open_: dict[tuple[str, str], _Bucket] = {}
    for parameter in parameters:
        kind = str(parameter.device), str(parameter.dtype)
        room = min(limit, _FIRST * _MIB) if len(found) <= 1 else limit
        bucket = open_.get(kind)
        if bucket is None or bucket.nbytes + parameter.nbytes > room:
            bucket = open_[kind] = _Bucket()
            found.append(bucket)
        bucket.parameters.append(parameter)
        bucket.nbytes += parameter.nbytes
    return found


def _arrays(value: Any) -> Iterator[DeviceArray]:
    if isinstance(value, DeviceArray):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _arrays(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _arrays(item)
    elif hasattr(value, "__dict__"):
        yield from _arrays(vars(value))


def _reached(result: Any) -> set[Any]:
    """All nodes that backward from result will come to."""
    waiting = [array.grad_fn for array in _arrays(result) if array.grad_fn is not None]
    seen = set(waiting)
    while waiting:
        for node, _ in waiting.pop().next_functions:
            if node is not None and node not in seen:
                seen.add(node)
                waiting.append(node)
    return seen
