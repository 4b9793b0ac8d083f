"""autocast: only its way off is there, for programs that turn it on by an option."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from devtensor import _C, cuda

_F = TypeVar("_F", bound=Callable[..., Any])


class autocast:
    """A block, or a function, in which ops choose their dtypes: enabled=False, which changes nothing, is what is there.

    Without a CUDA device autocast("cuda") turns itself off with a warning, as PyTorch's does. Raises
    NotImplementedError where ops would have to be cast, RuntimeError for another kind of device.

    >>> with dt.autocast("cpu", enabled=False):
    ...     (dt.ones(2) + 1).dtype
    devtensor.float32
    """

    def __init__(
        self,
        device_type: str,
        dtype: _C.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if device_type not in ("cpu", "cuda"):
            raise RuntimeError(f"autocast(): device_type must be 'cpu' or 'cuda', not {_C._shown(device_type)}")
        self.device = device_type
        if enabled and device_type == "cuda" and not cuda.is_available():
            warnings.warn(
                "User provided device_type of 'cuda', but CUDA is not available. Disabling",
                stacklevel=2 if type(self) is autocast else 3,
            )
            enabled = False
        if enabled:
            raise NotImplementedError(
                "autocast(): ops are not cast by themselves yet. Cast the model and its input (model.bfloat16(), "
                "x.bfloat16()), or use enabled=False"
            )

    def __enter__(self) -> autocast:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def __call__(self, function: _F) -> _F:
        """Make a function run in this mode."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return call  # type: ignore[return-value]


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether ops choose their dtypes: never.

    >>> dt.is_autocast_enabled()
    False
    """
    _C._need_str("is_autocast_enabled", "device_type", device_type)
    return False
