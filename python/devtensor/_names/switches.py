"""Functions of PyTorch that ask for what is always so here, or for what changes no result."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from devtensor import _C

_F = TypeVar("_F", bound=Callable[..., Any])


@functools.cache
def _say_that_nothing_is_compiled() -> None:
    warnings.warn("compile(): devtensor compiles nothing; the model runs as it is", stacklevel=3)


def compile(model: Any = None, **options: Any) -> Any:
    """model itself, or a decorator that gives back what it decorates; says once that nothing is compiled.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     dt.compile(abs)(-1)
    1
    """
    _say_that_nothing_is_compiled()
    return (lambda function: function) if model is None else model


def set_float32_matmul_precision(precision: str) -> None:
    """ "highest" keeps float32 whole; "high" and "medium" let products and convolutions on CUDA use TF32.

    Raises ValueError for other words.

    >>> dt.set_float32_matmul_precision("highest")
    """
    if precision not in ("highest", "high", "medium"):
        raise ValueError(
            "set_float32_matmul_precision(): argument 'precision' must be 'highest', 'high' or 'medium', not "
            f"{_C._shown(precision)}"
        )
    _C.set_float32_precision("highest" if precision == "highest" else "tf32")


def get_float32_matmul_precision() -> str:
    """ "highest", or "high" where TF32 may be used.

    >>> dt.get_float32_matmul_precision()
    'highest'
    """
    return "highest" if _C.get_float32_precision() == "highest" else "high"


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Changes nothing: every result is deterministic.

    >>> dt.use_deterministic_algorithms(True)
    """
    _C._need_bool("use_deterministic_algorithms", "mode", mode)
    _C._need_bool("use_deterministic_algorithms", "warn_only", warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """True.

    >>> dt.are_deterministic_algorithms_enabled()
    True
    """
    return True


def is_inference_mode_enabled() -> bool:
    """Whether nothing is recorded: inference_mode is no_grad here.

    >>> dt.is_inference_mode_enabled()
    False
    """
    return not _C.is_grad_enabled()
