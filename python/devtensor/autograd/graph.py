"""What recorded ops keep, and hooks of several arrays."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from devtensor import _C
from devtensor._C import DeviceArray

if TYPE_CHECKING:
    from devtensor.nn._hooks import RemovableHandle

Node = _C.Node

__all__ = [
    "GradientEdge",
    "Node",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]

_Pack = Callable[[DeviceArray], Any]
_Unpack = Callable[[Any], DeviceArray]


def __dir__() -> list[str]:
    return __all__


class _OfThread(threading.local):
    """The hooks of this thread, the innermost last, and why there may be none."""

    def __init__(self) -> None:
        self.hooks: list[tuple[_Pack, _Unpack]] = []
        self.refusal: str | None = None


_thread = _OfThread()


class saved_tensors_hooks:
    """Within the block each array that an op keeps for backward goes through pack_hook, and comes back by unpack_hook.

    pack_hook takes a detached DeviceArray, which it must not write to, and gives any object. unpack_hook takes that
    object, each time that a gradient needs it, and gives an array of the same shape, dtype and device. Nothing is
    recorded in either. Blocks nest: the innermost pair works. Ops in a checkpoint keep nothing, so nothing of theirs is
    packed. Raises RuntimeError within disable_saved_tensors_hooks.

    >>> w = dt.tensor([1.0, 2.0], requires_grad=True)
    >>> with dt.autograd.graph.saved_tensors_hooks(lambda x: x.half(), lambda x: x.float()):
    ...     y = w.exp()
    >>> y.sum().backward()
    >>> w.grad
    DeviceArray([2.7188, 7.3906], device='cpu', dtype=float32)
    """

    def __init__(self, pack_hook: _Pack, unpack_hook: _Unpack) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        if _thread.refusal is not None:
            raise RuntimeError(_thread.refusal)
        _thread.hooks.append((self.pack_hook, self.unpack_hook))
        _C._pack_saved(True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _thread.hooks.pop()
        _C._pack_saved(bool(_thread.hooks))


class save_on_cpu(saved_tensors_hooks):
    """Within the block ops keep what they need for backward on the host; backward brings it back to its device.

    Both ways are transfers, which record_transfers sees and forbid_transfers stops. With pin_memory the host's memory
    is page-locked, and the way back asynchronous. device_type is taken for code written for PyTorch.

    >>> w = dt.ones(2, device="cuda", requires_grad=True)
    >>> with dt.autograd.graph.save_on_cpu():
    ...     y = w.exp()
    >>> y.sum().backward()
    >>> w.grad
    DeviceArray([2.7183, 2.7183], device='cuda:0', dtype=float32)
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(x: DeviceArray) -> tuple[Any, DeviceArray]:
            if not pin_memory or not x.is_cuda:
                return x.device, x.cpu()
            return x.device, _C.empty(x.shape, dtype=x.dtype, device="cpu").pin_memory().copy_(x)

        def unpack(packed: tuple[Any, DeviceArray]) -> DeviceArray:
            device, x = packed
            return x.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Within the block saved_tensors_hooks raises RuntimeError(error_message), as this does where hooks are on already.

    >>> with dt.autograd.graph.disable_saved_tensors_hooks("not here"), dt.autograd.graph.save_on_cpu():
    ...     pass
    Traceback (most recent call last):
        ...
    RuntimeError: not here
    """
    if _thread.hooks:
        raise RuntimeError(error_message)
    before, _thread.refusal = _thread.refusal, error_message
    try:
        yield
    finally:
        _thread.refusal = before


class GradientEdge(NamedTuple):
    """Where the gradient of an array goes: the node of its op, or of a leaf, and which result of it."""

    node: _C.Node
    output_nr: int
    ownership_token: _C.Node | None = None


def get_gradient_edge(tensor: DeviceArray) -> GradientEdge:
    """Return the node that the gradient of tensor goes to. Raises RuntimeError for an array that wants none.

    >>> dt.autograd.graph.get_gradient_edge(dt.ones(2, requires_grad=True)).node.name()
    'AccumulateGrad'
    """
    node = _C._node_of(tensor) if tensor.requires_grad else None
    if node is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(node, 0)


def register_multi_grad_hook(
    tensors: Sequence[DeviceArray], fn: Callable[[Any], None], *, mode: Literal["all", "any"] = "all"
) -> RemovableHandle:
    """Call fn in each backward once: with "all", when the gradients of all tensors that it reaches are complete.

    "all": fn takes a list with the gradient of each of tensors, None for those that this backward does not reach.
    "any": fn takes the first gradient that is complete. What fn gives is not looked at. Raises GradientError for an
    array that wants no gradient, ValueError for another mode. Results of ops are held until the handle is removed.

    >>> a, b = dt.ones(1, requires_grad=True), dt.ones(1, requires_grad=True)
    >>> handle = dt.autograd.graph.register_multi_grad_hook((a, b), lambda grads: print([g.item() for g in grads]))
    >>> (2 * a + 3 * b).sum().backward()
    [2.0, 3.0]
    """
    from devtensor.nn._hooks import Handles

    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    arrays = tuple(tensors)
    held = [weakref.ref(x) if x.is_leaf else lambda x=x: x for x in arrays]  # a leaf holds its hooks
    lock = threading.Lock()
    came: dict[int, list[DeviceArray | None]] = {}  # of each backward that works: the gradients so far
    missing: dict[int, int] = {}
    latest = 0

    def hook_of(i: int) -> Callable[[DeviceArray], None]:
        def came_to(gradient: DeviceArray) -> None:
            run, _ = _C._backward_of(gradient)
            with lock:
                if run not in came:
                    alive = [x for x in (one() for one in held) if x is not None]
                    came[run] = [None] * len(held)
                    missing[run] = sum(_C._backward_of(x)[1] for x in alive)
                came[run][i] = gradient
                missing[run] -= 1
                if missing[run]:
                    return
                found = came.pop(run)
                del missing[run]
            fn(found)

        return came_to

    def first(gradient: DeviceArray) -> None:
        nonlocal latest
        run, _ = _C._backward_of(gradient)
        with lock:
            if run == latest:
                return
            latest = run
        fn(gradient)

    handles = [x.register_hook(hook_of(i) if mode == "all" else first) for i, x in enumerate(arrays)]
    return Handles(handles)


def increment_version(tensor: DeviceArray | Iterable[DeviceArray]) -> None:
    """Say that tensor, or each of several, was written to by what devtensor does not see, such as NumPy.

    An op that keeps its memory for backward then raises GradientError, as it does after other writes.

    >>> w, x = dt.ones(2, requires_grad=True), dt.ones(2)
    >>> y = w * x
    >>> x.numpy()[0] = 5
    >>> dt.autograd.graph.increment_version(x)
    >>> y.sum().backward()
    Traceback (most recent call last):
        ...
    devtensor.GradientError: one of the variables needed for gradient computation has been modified by an inplace...
    """
    for x in (tensor,) if isinstance(tensor, DeviceArray) else tuple(tensor):
        _C._increment_version(x)


# ---------------------------------------------------------------- called by the compiled part


def _pack(arrays: tuple[DeviceArray | None, ...]) -> tuple[tuple[Any, ...], _Unpack]:
    pack, unpack = _thread.hooks[-1]
    return tuple(None if x is None else pack(x) for x in arrays), unpack


def _unpack(packed: tuple[tuple[Any, ...], _Unpack], k: int, shape: tuple[int, ...], dtype: Any) -> DeviceArray:
    objects, unpack = packed
    x = unpack(objects[k])
    if not isinstance(x, DeviceArray):
        raise TypeError(
            f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(x).__name__}"
        )
    if x.shape != shape or x.dtype is not dtype:
        raise RuntimeError(
            f"saved_tensors_hooks: unpack_hook gave {x.dtype.name} {x.shape} in the place of {dtype.name} {shape}"
        )
    return x
