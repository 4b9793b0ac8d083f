"""Hooks of arrays."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from devtensor import _C
from devtensor.nn._hooks import RemovableHandle

_count = itertools.count()


def _add(op: str, array: _C.DeviceArray, hook: Callable[..., Any], after: bool) -> RemovableHandle:
    if not callable(hook):
        raise TypeError(f"{op}(): argument 'hook' must be callable, not {type(hook).__name__}")
    hooks = _C._grad_hooks(array, after)
    key = next(_count)
    hooks[key] = hook
    return RemovableHandle(hooks, key)


def add_node_hook(op: str, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> RemovableHandle:
    """Of the compiled part: a node's hooks are kept by it."""
    if not callable(hook):
        raise TypeError(f"{op}(): argument 'fn' must be callable, not {type(hook).__name__}")
    key = next(_count)
    hooks[key] = hook
    return RemovableHandle(hooks, key)


def run_node_hooks(hooks: list[Callable[..., Any]], seen: tuple[Any, ...], also: tuple[Any, ...] | None) -> Any:
    """What hooks make of seen, one after the other; also: what a hook sees beside it."""
    for hook in hooks:
        answer = hook(seen) if also is None else hook(seen, also)
        if answer is None:
            continue
        if not isinstance(answer, tuple):
            raise TypeError(f"expected tuple, but hook returned '{type(answer).__name__}'")
        name = getattr(hook, "__name__", type(hook).__name__)
        if len(answer) != len(seen):
            raise RuntimeError(
                f"hook '{name}' has returned an incorrect number of values (got {len(answer)}, but expected "
                f"{len(seen)})"
            )
        for before, after in zip(seen, answer, strict=True):
            if (before is None) != (after is None):
                text = "None with an array" if before is None else "an array with None"
                raise RuntimeError(f"hook '{name}' has replaced {text}")
            if after is not None and not isinstance(after, _C.DeviceArray):
                raise TypeError(f"hook '{name}' must return DeviceArrays, not {type(after).__name__}")
        seen = answer
    return seen


def register_hook(self: _C.DeviceArray, hook: Callable[[_C.DeviceArray], _C.DeviceArray | None]) -> RemovableHandle:
    """Call hook with the gradient of this array each time that it is complete; what it returns takes its place.

    Parameters
    ----------
    hook : callable
        Takes a DeviceArray, gives one of the same shape, dtype and device, or None.

    Returns
    -------
    RemovableHandle

    Raises
    ------
    GradientError
        Where this array wants no gradient.

    Examples
    --------
    >>> x = dt.ones(2, requires_grad=True)
    >>> handle = x.register_hook(lambda gradient: gradient * 10)
    >>> x.sum().backward()
    >>> x.grad
    DeviceArray([10., 10.], device='cpu', dtype=float32)
    """
    return _add("register_hook", self, hook, False)


def register_post_accumulate_grad_hook(self: _C.DeviceArray, hook: Callable[[_C.DeviceArray], None]) -> RemovableHandle:
    """Call hook with this leaf after its .grad has been added to.

    Parameters
    ----------
    hook : callable
        Takes this array; what it returns is not looked at.

    Returns
    -------
    RemovableHandle

    Raises
    ------
    GradientError
        Where this array wants no gradient, or is no leaf.

    Examples
    --------
    >>> x = dt.ones(2, requires_grad=True)
    >>> handle = x.register_post_accumulate_grad_hook(lambda x: print(x.grad))
    >>> x.sum().backward()
    DeviceArray([1., 1.], device='cpu', dtype=float32)
    """
    return _add("register_post_accumulate_grad_hook", self, hook, True)
