"""torch.serialization: which classes of yours a checkpoint may hold."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from devtensor._checkpoints import trusted

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "safe_globals"]


def __dir__() -> list[str]:
    return __all__


def add_safe_globals(safe_globals: Sequence[Any]) -> None:
    """Let load make, and save write, objects of these classes: their code is then run for what a file holds.

    safe_globals: classes and functions, or pairs of one and the full name that a file has for it. Raises TypeError for
    others, ValueError for what belongs to sys, os, posix or nt, as PyTorch.

    >>> class Options:
    ...     lr = 0.1
    >>> dt.serialization.add_safe_globals([Options])
    >>> dt.serialization.clear_safe_globals()
    """
    trusted.add(safe_globals)


def get_safe_globals() -> list[Any]:
    """What add_safe_globals was given.

    >>> dt.serialization.get_safe_globals()
    []
    """
    return list(trusted.given.values())


def clear_safe_globals() -> None:
    """Forget what add_safe_globals was given.

    >>> dt.serialization.clear_safe_globals()
    """
    trusted.given.clear()


class safe_globals:
    """add_safe_globals within a with block.

    >>> class Options:
    ...     lr = 0.1
    >>> with dt.serialization.safe_globals([Options]):
    ...     len(dt.serialization.get_safe_globals())
    1
    """

    def __init__(self, safe_globals: Sequence[Any]) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        self._before = dict(trusted.given)
        trusted.add(self.safe_globals)

    def __exit__(self, type: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        trusted.given.clear()
        trusted.given.update(self._before)
