"""Which module an error came out of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devtensor._errors import _Explained

if TYPE_CHECKING:
    from devtensor.nn.module import Module

_NOTE = "In module: "


def add_module(error: _Explained, module: Module) -> None:
    """The error came out of a call of module: it tells so. Runs once for each module on the way out."""
    path = type(module).__name__
    if error.modules:
        inner, rest = error.modules[-1], (error.module_path or "").partition(".")[2]
        name = next((name for name, part in module.named_modules() if part is inner), type(inner).__name__)
        path = ".".join(part for part in (path, name, rest) if part)
    error.modules = (*error.modules, module)
    error.module_path = path
    kept = [note for note in getattr(error, "__notes__", []) if not note.startswith(_NOTE)]
    error.__notes__ = [*kept, f"{_NOTE}{path}"]
