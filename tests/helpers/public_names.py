"""What users can reach: the public modules and what stands in them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import devtensor as dt


def modules(module: ModuleType = dt) -> Iterator[ModuleType]:
    """devtensor and the modules that it shows, with those that they show."""
    yield module
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            yield from modules(value)


def names() -> Iterator[tuple[str, Any]]:
    """Every public name with its modules in front, and what it stands for; modules left out."""
    for module in {m.__name__: m for m in modules()}.values():
        for name in module.__all__:
            value = getattr(module, name)
            if not isinstance(value, ModuleType):
                yield f"{module.__name__}.{name}", value


def functions() -> dict[str, Any]:
    """The public functions, each under the first of its names."""
    found: dict[int, tuple[str, Any]] = {}
    for name, value in names():
        if callable(value) and not inspect.isclass(value):
            found.setdefault(id(value), (name, value))
    return dict(found.values())


def documented() -> dict[str, Any]:
    """Everything public that can have a docstring: modules, classes with their public members, functions."""
    found: dict[int, tuple[str, Any]] = {id(module): (module.__name__, module) for module in modules()}
    for name, value in names():
        if not callable(value):
            continue
        found.setdefault(id(value), (name, value))
        for key in dir(value) if inspect.isclass(value) else ():
            member = inspect.getattr_static(value, key)
            if not key.startswith("_") and getattr(member, "__doc__", None):
                found.setdefault(id(member), (f"{name}.{key}", member))
    return dict(found.values())
