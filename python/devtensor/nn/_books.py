"""A module's books by PyTorch's names, which libraries read and write: what is registered, its hooks, and its part of a
state dictionary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, MutableSet
from typing import TYPE_CHECKING, Any

from devtensor.nn._hooks import RemovableHandle, _Hooks

if TYPE_CHECKING:
    from devtensor.nn.module import Module

_EXTRA = "_extra_state"


class Registered(MutableMapping[str, Any]):
    """What a module has under the names of one kind. To write here registers, without the checks of an assignment."""

    def __init__(self, module: Module, what: str) -> None:
        self._module, self._what = module, what

    @property
    def _names(self) -> dict[str, Any]:
        return self._module.__dict__[f"_{self._what}_names"]  # type: ignore[no-any-return]

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        return self._module.__dict__[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if name in self._names:
            self._module.__dict__[name] = value
            return
        for what in ("parameter", "buffer", "module"):  # one name is of one kind
            self._module.__dict__[f"_{what}_names"].pop(name, None)
        self._module.__dict__.pop(name, None)
        getattr(self._module, f"register_{self._what}")(name, value)

    def __delitem__(self, name: str) -> None:
        del self._names[name]
        del self._module.__dict__[name]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._names))

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return repr(dict(self))

    def copy(self) -> dict[str, Any]:
        """A plain dictionary of it."""
        return dict(self)


class _RegisteredOf:
    """One of a module's dictionaries of what is registered; the entries of one that is assigned take its place."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __get__(self, module: Module | None, owner: type) -> Any:
        return self if module is None else Registered(module, self._what)

    def __set__(self, module: Module, value: Mapping[str, Any]) -> None:
        entries, held = dict(value), Registered(module, self._what)
        held.clear()
        held.update(entries)


class NotPersistent(MutableSet[str]):
    """The names of a module's buffers that are not in its state_dict()."""

    def __init__(self, buffers: dict[str, bool]) -> None:
        self._buffers = buffers  # name to whether it is persistent

    @classmethod
    def _from_iterable(cls, names: Iterable[str]) -> set[str]:  # type: ignore[override]
        return set(names)

    def __contains__(self, name: object) -> bool:
        return self._buffers.get(name) is False  # type: ignore[call-overload]

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, persistent in self._buffers.items() if not persistent])

    def __len__(self) -> int:
        return sum(not persistent for persistent in self._buffers.values())

    def add(self, value: str) -> None:
        if value in self._buffers:
            self._buffers[value] = False

    def discard(self, value: str) -> None:
        if value in self._buffers:
            self._buffers[value] = True

    def __repr__(self) -> str:
        return repr(set(self))


class _HooksOf:
    """One of a module's dictionaries of hooks, by their keys; one that is assigned takes its place."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, module: Module | None, owner: type) -> Any:
        return self if module is None else getattr(module._own_hooks(), self._name)

    def __set__(self, module: Module, value: dict[int, Any]) -> None:
        setattr(module._own_hooks(), self._name, value)


class Books:
    """The part of Module that PyTorch's other names for its books are."""

    _forward_pre_hooks = _HooksOf("before")
    _forward_pre_hooks_with_kwargs = _HooksOf("before_with_kwargs")
    _forward_hooks = _HooksOf("after")
    _forward_hooks_with_kwargs = _HooksOf("after_with_kwargs")
    _forward_hooks_always_called = _HooksOf("after_always")
    _backward_hooks = _HooksOf("backward")
    _backward_pre_hooks = _HooksOf("before_backward")
    _state_dict_pre_hooks = _HooksOf("before_state")
    _state_dict_hooks = _HooksOf("after_state")
    _load_state_dict_pre_hooks = _HooksOf("before_load")
    _load_state_dict_post_hooks = _HooksOf("after_load")
    _version: int = 1

    if TYPE_CHECKING:
        _hooks: _Hooks | None
        _buffer_names: dict[str, bool]

        def _own_hooks(self) -> _Hooks: ...

    _modules = _RegisteredOf("module")
    _parameters = _RegisteredOf("parameter")
    _buffers = _RegisteredOf("buffer")

    @property
    def _non_persistent_buffers_set(self) -> NotPersistent:
        return NotPersistent(self._buffer_names)

    @_non_persistent_buffers_set.setter
    def _non_persistent_buffers_set(self, names: Iterable[str]) -> None:
        self._buffer_names.update((name, name not in names) for name in self._buffer_names)

    @property
    def _is_full_backward_hook(self) -> bool | None:
        return True if self._hooks is not None and self._hooks.backward else None

    # ------------------------------------------------------------ hooks of state dictionaries

    def register_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call hook(module, prefix, keep_vars) before state_dict() collects what the module has."""
        hooks = self._own_hooks()
        return hooks.add(hooks.before_state, hook, False)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(module, state_dict, prefix, local_metadata) after state_dict() has collected what the module has.

        It may change state_dict. Raises RuntimeError where it returns something.
        """
        hooks = self._own_hooks()

        def checked(*args: Any) -> None:
            if hook(*args) is not None:
                raise RuntimeError("state_dict post-hook must return None")

        return hooks.add(hooks.after_state, checked, False)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The same, where what hook returns, unless None, takes the place of state_dict."""
        hooks = self._own_hooks()
        return hooks.add(hooks.after_state, hook, False)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call hook before load_state_dict looks at anything.

        Its arguments: module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs. It
        may change state_dict, which is a copy of the caller's; what it appends to error_msgs is raised.
        """
        return self._register_load_state_dict_pre_hook(hook, True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., None], with_module: bool = False
    ) -> RemovableHandle:
        """The same; without with_module the hook does not get the module."""
        hooks = self._own_hooks()
        return hooks.add(
            hooks.before_load, (lambda module, *args: hook(module, *args) if with_module else hook(*args)), False
        )

    def register_load_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call hook(module, incompatible_keys) after load_state_dict has filled the module and what is below it.

        It may change the lists missing_keys and unexpected_keys, after which strict looks at them.
        """
        hooks = self._own_hooks()
        return hooks.add(hooks.after_load, hook, False)

    # ------------------------------------------------------------ what subclasses override

    def get_extra_state(self) -> Any:
        """What else belongs into state_dict(): a subclass defines this, and set_extra_state."""
        raise NotImplementedError(f"{type(self).__name__} has no extra state: define get_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Take what get_extra_state gave."""
        raise NotImplementedError(f"{type(self).__name__} has no extra state: define set_extra_state")

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Called before anything is loaded: a subclass may change state_dict.

        What asks for this one is loaded by load_state_dict, later and together with all others; one that does not
        loads what it wants by itself. A subclass may also change the lists of keys and of messages.
        """
        from devtensor.nn._state import load_usually

        missing, unexpected = load_usually(self, state_dict, prefix)  # type: ignore[arg-type]
        missing_keys += missing
        unexpected_keys += unexpected


def extra_key(module: Any, prefix: str) -> str | None:
    """Under which key a state dictionary has the extra state of a module, where it has one."""
    return prefix + _EXTRA if type(module).get_extra_state is not Books.get_extra_state else None
