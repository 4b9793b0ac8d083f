"""Hooks: functions that a module calls before and after its forward."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from devtensor.nn._passage import Passage

if TYPE_CHECKING:
    from devtensor.nn.module import Module


class RemovableHandle:
    """Takes a hook out again: by remove(), or at the end of a with block."""

    def __init__(self, hooks: dict[int, Any], key: int) -> None:
        self._hooks = hooks
        self._key = key

    def remove(self) -> None:
        """Take the hook out; nothing happens the second time."""
        self._hooks.pop(self._key, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *details: object) -> None:
        self.remove()


class Handles(RemovableHandle):
    """That of several hooks together."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        super().__init__({}, 0)
        self._handles = tuple(handles)

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()


class _Hooks:
    """The hooks of one module, which only modules with hooks have."""

    def __init__(self) -> None:
        self.before: dict[int, Any] = {}
        self.after: dict[int, Any] = {}
        self.backward: dict[int, Any] = {}
        self.before_backward: dict[int, Any] = {}
        self.count = 0

    def add(self, hooks: dict[int, Any], entry: Any, prepend: bool) -> RemovableHandle:
        self.count += 1
        others = dict(hooks) if prepend else {}
        if prepend:
            hooks.clear()
        hooks[self.count] = entry
        hooks.update(others)
        return RemovableHandle(hooks, self.count)

    def run(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        kwargs, result, called = kwargs or {}, None, set()
        passage = None
        if self.backward or self.before_backward:
            passage = Passage(module, list(self.backward.values()), list(self.before_backward.values()))

        def call(hook: Any, with_kwargs: bool) -> Any:
            given = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
            return result if given is None else given

        try:
            for hook, with_kwargs in list(self.before.values()):
                given = hook(module, args, kwargs) if with_kwargs else hook(module, args)
                if given is not None and with_kwargs:
                    args, kwargs = given
                elif given is not None:
                    args = given if isinstance(given, tuple) else (given,)
            if passage is not None:
                args = passage.enter(args)
            result = module.forward(*args, **kwargs)
            for key, (hook, with_kwargs, _) in list(self.after.items()):
                called.add(key)
                result = call(hook, with_kwargs)
        except Exception:
            for key, (hook, with_kwargs, always) in list(self.after.items()):
                if always and key not in called:
                    try:
                        result = call(hook, with_kwargs)
                    except Exception as error:
                        warnings.warn(f"a forward hook with always_call=True raised {error!r}", stacklevel=2)
            raise
        return result if passage is None else passage.leave(result)
