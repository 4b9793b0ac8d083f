"""A backend for einops, so that einops.rearrange(x, "b c -> c b") takes a DeviceArray.

einops asks the subclasses of its AbstractBackend which of them knows an array. Ours is defined when einops is
imported, before or after devtensor, and einops is not imported for it. Nor is importlib.abc: what it needs takes long.
"""

from __future__ import annotations

import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import Any

_WATCHED = "einops._backends"


def _define(backends: Any) -> None:
    """Adds the backend to einops' module of them. Its class for PyTorch asks nothing that devtensor does not have."""
    theirs = getattr(backends, "TorchBackend", None)
    if theirs is None:
        return

    def init(self: Any) -> None:
        import devtensor

        self.torch = devtensor

    own = {"framework_name": "devtensor", "__init__": init, "layers": backends.AbstractBackend.layers}
    backends.DevtensorBackend = type("DevtensorBackend", (theirs,), own)  # else nobody holds it


class _Loader:
    """einops' own loader, and then _define."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        made: types.ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__.loader = module.__loader__ = self._loader  # type: ignore[union-attr]
        self._loader.exec_module(module)
        _define(module)


class _Finder:
    """Sees the first import of einops._backends and no other."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != _WATCHED:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


def register() -> None:
    """Defines the backend, now or when einops is imported."""
    if _WATCHED in sys.modules:
        _define(sys.modules[_WATCHED])
    else:
        sys.meta_path.insert(0, _Finder())
