"""Switches of code written for PyTorch. They change nothing, as devtensor computes no gradients."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar, overload

_F = TypeVar("_F", bound=Callable[..., Any])
_G = TypeVar("_G", bound="_GradMode")


class _GradMode:
    """Context manager and decorator, with parentheses and without."""

    @overload
    def __new__(cls, mode: _F) -> _F: ...  # type: ignore[misc]
    @overload
    def __new__(cls: type[_G], mode: bool = True) -> _G: ...

    def __new__(cls, mode: Any = True) -> Any:
        return mode if callable(mode) else super().__new__(cls)

    def __call__(self, function: _F) -> _F:
        return function

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class no_grad(_GradMode):
    """For code written for PyTorch: changes nothing.

    >>> with dt.no_grad():
    ...     x = dt.ones(2) + 1
    """


class inference_mode(_GradMode):
    """For code written for PyTorch: changes nothing.

    >>> with dt.inference_mode():
    ...     x = dt.ones(2) + 1
    """


class enable_grad(_GradMode):
    """For code written for PyTorch: changes nothing, as there are no gradients.

    >>> with dt.enable_grad():
    ...     x = dt.ones(2) + 1
    """


class set_grad_enabled(_GradMode):
    """For code written for PyTorch: changes nothing, as there are no gradients.

    >>> with dt.set_grad_enabled(False):
    ...     x = dt.ones(2) + 1
    """
