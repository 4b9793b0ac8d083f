"""Which module an error came out of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from devtensor.nn.module import Module

_NOTE = "In module: "


class _Modules(tuple[Any, ...]):
    """They are not pickled with an error; their names are."""

    def __reduce__(self) -> Any:
        return tuple, ()


def add_module(error: Any, module: Module) -> None:
    """The error came out of a call of module: it tells so. Runs once for each module on the way out."""
    path, modules = type(module).__name__, getattr(error, "modules", ())
    if modules:
        inner, rest = modules[-1], (error.module_path or "").partition(".")[2]
        name = next((name for name, part in module.named_modules() if part is inner), type(inner).__name__)
        path = ".".join(part for part in (path, name, rest) if part)
    error.modules = _Modules((*modules, module))
    error.module_path = path
    kept = [note for note in getattr(error, "__notes__", []) if not note.startswith(_NOTE)]
    error.__notes__ = [*kept, f"{_NOTE}{path}"]
