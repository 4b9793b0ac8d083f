"""A module's books by PyTorch's names, which libraries read and write: what is registered, its hooks, and its part of a
state dictionary."""

from __future__ import annotations

import functools
from collections.abc import (
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    MutableMapping,
    MutableSet,
    ValuesView,
)
from types import CodeType
from typing import TYPE_CHECKING, Any

from devtensor.nn._hooks import RemovableHandle, _Hooks

if TYPE_CHECKING:
    from devtensor.nn.module import Module

# Names that an attribute of a module cannot have, since its own bookkeeping stands there.
OWN = ("_parameter_names", "_buffer_names", "_module_names", "_hooks_of_module", "training")
_EXTRA = "_extra_state"


if TYPE_CHECKING:  # the two declare the same methods in two ways
    _Mapping = MutableMapping[str, Any]
else:

    class _Mapping(MutableMapping, dict):
        pass


class Registered(_Mapping):
    """What a module has under the names of one kind. To write here registers, without the checks of an assignment.

    A dictionary, as programs ask whether it is one; it holds nothing itself, as a module is no part of a cycle.
    """

    def __init__(self, module: Module, what: str) -> None:
        self._module, self._what = module, what

    @property
    def _names(self) -> dict[str, Any]:
        return self._module.__dict__[f"_{self._what}_names"]  # type: ignore[no-any-return]

    def __getitem__(self, name: str) -> Any:
        names = self._names
        if name not in names:
            raise KeyError(name)
        return self._module._child(name) if self._what == "module" else self._module.__dict__[name]

    def __setitem__(self, name: str, value: Any) -> None:
        names, module = self._names, self._module
        if name not in names:
            module._forget(name)  # one name is of one kind
        if self._what == "module":
            module._hold(name, value)
        elif name in names or not hasattr(type(module), name):
            names.setdefault(name, True if self._what == "buffer" else None)
            module.__dict__[name] = value
        else:  # which says that the class has it
            getattr(module, f"register_{self._what}")(name, value)

    def __delitem__(self, name: str) -> None:
        del self._names[name]
        self._module.__dict__.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._names))

    def __len__(self) -> int:
        return len(self._names)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._names))

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __repr__(self) -> str:
        return repr(self.copy())

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return dict, (self.copy(),)  # copies and pickles are plain

    def copy(self) -> dict[str, Any]:
        """A plain dictionary of it."""
        return {name: self[name] for name in self._names}

    def keys(self) -> KeysView[str]:
        """Those of a dictionary, which reversed() takes."""
        return self.copy().keys()

    def values(self) -> ValuesView[Any]:
        """Those of a dictionary, which reversed() takes."""
        return self.copy().values()

    def items(self) -> ItemsView[str, Any]:
        """Those of a dictionary, which reversed() takes."""
        return self.copy().items()

    def popitem(self) -> tuple[str, Any]:
        """The last one, as a dictionary gives it."""
        if not self:
            raise KeyError("popitem(): dictionary is empty")
        name = next(reversed(self))
        return name, self.pop(name)

    def __or__(self, other: Any) -> Any:
        return self.copy() | dict(other) if isinstance(other, dict) else NotImplemented

    def __ror__(self, other: Any) -> Any:
        return dict(other) | self.copy() if isinstance(other, dict) else NotImplemented

    def __ior__(self, other: Any) -> Registered:
        self.update(other)
        return self


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
        _hooks_of_module: _Hooks | None
        _parameter_names: dict[str, None]
        _buffer_names: dict[str, bool]
        _module_names: dict[str, Module | None]

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
        return True if self._hooks_of_module is not None and self._hooks_of_module.backward else None

    # ------------------------------------------------------------ modules below

    def _child(self, name: str) -> Any:
        """What is registered as a module under name: an attribute, or what _hold has hidden."""
        hidden = self._module_names[name]
        return self.__dict__.get(name) if hidden is None else hidden

    def _hold(self, name: str, module: Module | None) -> None:
        """Register without a check. What the class has under name stays there, as in PyTorch, and hides the module."""
        hidden = hasattr(type(self), name) and any(name in vars(kind) for kind in type(self).__mro__)
        self._module_names[name] = module if hidden else None
        if not hidden:
            self.__dict__[name] = module

    def _forget(self, name: str) -> None:
        """What stands under name is replaced by something of another kind."""
        if name in OWN:
            raise KeyError(f"attribute '{name}' already exists")
        for names in (self._parameter_names, self._buffer_names, self._module_names):
            names.pop(name, None)
        self.__dict__.pop(name, None)

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


def attribute(self: Module, name: str) -> Any:
    """Module.__getattr__, there as soon as a class has one or asks for it: it gives a part by its name."""
    if name in OWN:
        return object.__getattribute__(self, name)
    own = self.__dict__
    if own.get("_module_names", {}).get(name) is not None:  # the class hides it
        return own["_module_names"][name]
    try:
        return own[name]
    except KeyError:
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self) from None


def asks_for_getattr(kind: type) -> bool:
    """Whether a function of a class names __getattr__, as self.__getattr__("conv1") does."""
    return any(_names_it(getattr(member, "__wrapped__", member)) for member in vars(kind).values())


def _names_it(function: Any) -> bool:
    waiting = [getattr(function, "__code__", None)]
    while waiting:
        code = waiting.pop()
        if isinstance(code, CodeType):
            if "__getattr__" in code.co_names:
                return True
            waiting += code.co_consts
    return False


# ---------------------------------------------------------------- modules that PyTorch has pickled


def is_of_torch(state: Any) -> bool:
    """Whether a state is that of a module of PyTorch."""
    return isinstance(state, dict) and "_modules" in state and not isinstance(state.get("_module_names"), dict)


def fill(module: Module, state: Mapping[str, Any]) -> None:
    """An empty module takes the attributes that one of PyTorch was pickled with."""
    from devtensor.nn.module import Module

    Module.__init__(module)
    for name, value in state.items():
        check_own(type(module), name)
        if not hasattr(Books, name):
            module.__dict__[name] = value
        elif value and name != "_is_full_backward_hook":
            setattr(module, name, value)


_METHODS = ("_child", "_hold", "_forget", "_own_hooks", "_check_name", "_is_taken", "_explain")


def check_own(kind: type, name: str) -> None:
    """Raises AttributeError for an attribute that would stand in the place of the bookkeeping."""
    if name in _METHODS or (name in OWN and name != "training"):
        raise AttributeError(
            f"a module of class {kind.__name__} cannot have an attribute {name!r}: devtensor keeps its books under "
            "that name; give it another one"
        )


class _State(dict[str, Any]):
    """What a __setstate__ gets: the attributes, and PyTorch's books to read."""

    def __init__(self, module: Module) -> None:
        super().__init__(module.__dict__)
        self._books = {name: dict(getattr(module, name)) for name in ("_modules", "_parameters", "_buffers")}

    def __missing__(self, name: str) -> Any:
        return self._books[name]


def takes_state(function: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """The __setstate__ of a class: what it gets is written as devtensor has it, also if PyTorch has pickled it."""

    @functools.wraps(function)
    def set_state(module: Any, state: Any) -> None:
        if isinstance(state, dict) and ("_module_names" in state or "_modules" in state):
            if is_of_torch(state):
                fill(module, state)
            else:
                module.__dict__.update(state)
            state = _State(module)
            module.__dict__.clear()
        function(module, state)

    return set_state
