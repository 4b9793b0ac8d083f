"""What a transformed function may write to."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from devtensor import _C


@contextlib.contextmanager
def calling(*trees: Any, maps: bool = False) -> Iterator[None]:
    """Around a call of a transformed function with the arrays of trees: writes in place to others that were there
    before raise GradientError. maps: it is called once for each entry."""
    from devtensor.utils._pytree import tree_leaves  # of a package that few programs load

    before = _C._enter_transform([x for x in tree_leaves(trees) if isinstance(x, _C.DeviceArray)], maps)
    try:
        yield
    finally:
        _C._leave_transform(before)


_NONE = (0, False)


@contextlib.contextmanager
def own_writes() -> Iterator[None]:
    """Around writes of a module to what nobody else sees: they are no effect of the function that calls it."""
    before = _C._enter_transform([], False)
    _C._leave_transform(_NONE)
    try:
        yield
    finally:
        _C._leave_transform(before)
