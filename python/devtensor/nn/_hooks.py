"""Hooks: functions that a module calls before and after its forward."""

from __future__ import annotations

import itertools
import warnings
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from devtensor.nn._passage import Passage

if TYPE_CHECKING:
    from devtensor.nn.module import Module

_numbers = itertools.count(1)


class RemovableHandle:
    """Takes a hook out again: by remove(), or at the end of a with block."""

    def __init__(self, hooks_dict: dict[int, Any], key: int | None = None, *, extra_dict: Any = None) -> None:
        self._hooks = hooks_dict
        self._beside = (
            () if extra_dict is None else extra_dict if isinstance(extra_dict, (list, tuple)) else (extra_dict,)
        )
        self.id: int = next(_numbers) if key is None else key

    def remove(self) -> None:
        """Take the hook out; nothing happens the second time."""
        for hooks in (self._hooks, *self._beside):
            hooks.pop(self.id, None)

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
        self.before: dict[int, Any] = OrderedDict()
        self.before_with_kwargs: dict[int, bool] = OrderedDict()
        self.after: dict[int, Any] = OrderedDict()
        self.after_with_kwargs: dict[int, bool] = OrderedDict()
        self.after_always: dict[int, bool] = OrderedDict()
        self.backward: dict[int, Any] = OrderedDict()
        self.before_backward: dict[int, Any] = OrderedDict()
        self.before_state: dict[int, Any] = OrderedDict()
        self.after_state: dict[int, Any] = OrderedDict()
        self.before_load: dict[int, Any] = OrderedDict()
        self.after_load: dict[int, Any] = OrderedDict()

    def add(
        self, hooks: dict[int, Any], entry: Any, prepend: bool, *marks: tuple[dict[int, bool], bool]
    ) -> RemovableHandle:
        """marks: dictionaries in which the hook has a True, where it shall."""
        handle = RemovableHandle(hooks, extra_dict=[mark for mark, _ in marks])
        others = dict(hooks) if prepend else {}
        if prepend:
            hooks.clear()
        hooks[handle.id] = entry
        hooks.update(others)
        for mark, wanted in marks:
            if wanted:
                mark[handle.id] = True
        return handle

    def run(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        kwargs, result, called = kwargs or {}, None, set()
        if not (self.before or self.after or self.backward or self.before_backward):
            return module.forward(*args, **kwargs)
        passage = None
        if self.backward or self.before_backward:
            passage = Passage(module, list(self.backward.values()), list(self.before_backward.values()))

        def call(hook: Any, with_kwargs: bool) -> Any:
            given = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
            return result if given is None else given

        try:
            for key, hook in list(self.before.items()):
                with_kwargs = key in self.before_with_kwargs
                given = hook(module, args, kwargs) if with_kwargs else hook(module, args)
                if given is not None and with_kwargs:
                    args, kwargs = given
                elif given is not None:
                    args = given if isinstance(given, tuple) else (given,)
            if passage is not None:
                args = passage.enter(args)
            result = module.forward(*args, **kwargs)
            for key, hook in list(self.after.items()):
                called.add(key)
                result = call(hook, key in self.after_with_kwargs)
        except Exception:
            for key, hook in list(self.after.items()):
                if key in self.after_always and key not in called:
                    try:
                        result = call(hook, key in self.after_with_kwargs)
                    except Exception as error:
                        warnings.warn(f"a forward hook with always_call=True raised {error!r}", stacklevel=2)
            raise
        return result if passage is None else passage.leave(result)
