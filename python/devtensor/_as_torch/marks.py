"""Attributes that a program sets on plain arrays, as PyTorch lets it: x.tag = 1. An array has no room for them."""

from __future__ import annotations

import difflib
import sys
import weakref
from typing import Any

from devtensor import _C, _diagnosis
from devtensor._C import DeviceArray

_SETTABLE = ("requires_grad", "grad", "data")
_marks: dict[int, tuple[weakref.ref[DeviceArray], dict[str, Any]]] = {}


def read(array: DeviceArray, name: str) -> Any:
    """The value, or NotImplemented where there is none."""
    found = _marks.get(id(array))
    return NotImplemented if found is None else found[1].get(name, NotImplemented)


def write(array: DeviceArray, name: str, *value: Any) -> Any:
    """Keeps value, or without one deletes what is kept; NotImplemented where name cannot be set or deleted."""
    key = id(array)
    if hasattr(DeviceArray, name) or (not value and read(array, name) is NotImplemented):
        return NotImplemented
    if not value:
        del _marks[key][1][name]
        return None
    if key not in _marks:
        _marks[key] = weakref.ref(array, lambda _: _marks.pop(key, None)), {}
        _warn_of_misspelling(name)
    _marks[key][1][name] = value[0]
    return None


def _warn_of_misspelling(name: str) -> None:
    meant = difflib.get_close_matches(name, _SETTABLE, 1, 0.8)
    if meant:
        text = f"{name} is no attribute of arrays, and setting it changes nothing; did you mean {meant[0]}?"
        _diagnosis.warn_at(_diagnosis._caller(sys._getframe()), UserWarning(text))


def install() -> None:
    """From now on plain arrays keep what is set on them."""
    _C._keep_marks(read, write)
