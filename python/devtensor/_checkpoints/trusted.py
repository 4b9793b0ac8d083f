"""The classes that a program has said files may hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

given: dict[str, Any] = {}  # by full name

_BLOCKED = ("sys", "os", "posix", "nt")


def add(classes: Sequence[Any]) -> None:
    """See serialization.add_safe_globals."""
    found = {}
    for entry in classes:
        made, name = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, None)
        if not callable(made) or not isinstance(name, (str, type(None))):
            raise TypeError(f"add_safe_globals() takes classes and functions, not {type(entry).__name__}")
        name = name or f"{made.__module__}.{made.__qualname__}"
        if name.rpartition(".")[0] in _BLOCKED or getattr(made, "__module__", None) in _BLOCKED:
            raise ValueError(f"add_safe_globals(): {name} is of a module that no file may use")
        found[name] = made
    given.update(found)


def other_name(kind: Any) -> tuple[str, str] | None:
    """Module and name that a file has for a class that was added under another name than its own."""
    names = [name for name, made in given.items() if made is kind]
    if not names or f"{kind.__module__}.{kind.__qualname__}" in names:
        return None
    module, _, last = names[0].rpartition(".")
    return module, last


def new(kind: Any, *arguments: Any) -> Any:
    """An object before its state, as pickle makes it."""
    return kind.__new__(kind, *arguments)


def set_state(target: Any, state: Any) -> None:
    """The state of an object, as pickle sets it."""
    if hasattr(target, "__setstate__"):
        target.__setstate__(state)
        return
    state, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if state:
        target.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(target, name, value)
