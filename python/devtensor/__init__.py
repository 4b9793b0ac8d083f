"""Arrays that never change device or dtype behind your back, on the CPU, on CUDA and on a simulated GPU."""

from __future__ import annotations

import contextlib
import functools
import math
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from devtensor import _C, _composed
from devtensor._C import *  # noqa: F403
from devtensor._composed import (
    flip,
    is_floating_point,
    is_tensor,
    logsumexp,
    norm,
    pad,
    ravel,
    repeat_interleave,
    roll,
    std,
    var,
)
from devtensor._diagnosis import get_error_detail, set_error_detail
from devtensor._errors import (
    CudaError,
    DeviceMismatchError,
    DeviceNotAvailableError,
    DTypeMismatchError,
    HostAccessError,
    KernelArgumentError,
    KernelCompileError,
    OutOfMemoryError,
    ShapeMismatchError,
    TransferForbiddenError,
)
from devtensor._files import load, save
from devtensor._transfers import Transfer, TransferLog, allow_transfers, forbid_transfers, record_transfers
from devtensor._version import __version__ as __version__

from devtensor import cpu, cuda, data, nn, testing, utils  # isort: skip
from devtensor.nn.functional import batch_norm, conv1d, cross_entropy, dropout, layer_norm, mse_loss, nll_loss

for _name in """expand_as flip is_floating_point logsumexp norm ravel repeat repeat_interleave roll std type_as var
view_as""".split():
    _C._add_method(_name, getattr(_composed, _name))
for _function in (nn.init.normal_, nn.init.uniform_):
    _C._add_method(_function.__name__, _function)

# Second names, PyTorch's and NumPy's.
absolute, clip, concat, concatenate, moveaxis, swapaxes = _C.abs, _C.clamp, _C.cat, _C.cat, _C.movedim, _C.transpose
for _name, _other in (("absolute", "abs"), ("clip", "clamp"), ("moveaxis", "movedim"), ("swapaxes", "transpose")):
    _C._add_method(_name, getattr(_C.DeviceArray, _other))

for _name, _text, _valid in _C._misread_environment():
    with contextlib.suppress(RuntimeWarning):  # an import never fails, not where warnings are errors either
        warnings.warn(f"{_name}={_text} is not understood and changes nothing: valid is {_valid}", RuntimeWarning, 2)

_F = TypeVar("_F", bound=Callable[..., Any])


class _GradMode:
    """Context manager and decorator that changes nothing: devtensor computes no gradients."""

    def __init__(self, mode: Any = True) -> None:
        self._function = mode if callable(mode) else None
        if self._function is not None:
            functools.update_wrapper(self, self._function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._function is not None:
            return self._function(*args, **kwargs)
        return args[0]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if self._function is None else self._function.__get__(instance, owner)

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class no_grad(_GradMode):
    """For code written for PyTorch: changes nothing."""


class inference_mode(_GradMode):
    """For code written for PyTorch: changes nothing."""


class enable_grad(_GradMode):
    """For code written for PyTorch: changes nothing, as there are no gradients."""


class set_grad_enabled(_GradMode):
    """For code written for PyTorch: changes nothing, as there are no gradients."""


Tensor = _C.DeviceArray

# PyTorch's other names of the dtypes; last, as two of them hide builtins.
half, double, short, long = _C.float16, _C.float64, _C.int16, _C.int64
float, int = _C.float32, _C.int32
e, inf, nan, pi = math.e, math.inf, math.nan, math.pi

__all__ = [
    "CudaError",
    "DTypeMismatchError",
    "DeviceMismatchError",
    "DeviceNotAvailableError",
    "HostAccessError",
    "KernelArgumentError",
    "KernelCompileError",
    "OutOfMemoryError",
    "ShapeMismatchError",
    "Tensor",
    "Transfer",
    "TransferForbiddenError",
    "TransferLog",
    "absolute",
    "allow_transfers",
    "batch_norm",
    "clip",
    "concat",
    "concatenate",
    "conv1d",
    "cpu",
    "cross_entropy",
    "cuda",
    "data",
    "dropout",
    "e",
    "enable_grad",
    "flip",
    "forbid_transfers",
    "get_error_detail",
    "inf",
    "inference_mode",
    "is_floating_point",
    "is_tensor",
    "layer_norm",
    "load",
    "logsumexp",
    "moveaxis",
    "mse_loss",
    "nan",
    "nll_loss",
    "nn",
    "no_grad",
    "norm",
    "pad",
    "pi",
    "ravel",
    "record_transfers",
    "repeat_interleave",
    "roll",
    "save",
    "set_error_detail",
    "set_grad_enabled",
    "std",
    "swapaxes",
    "testing",
    "utils",
    "var",
]
__all__ += [name for name in dir(_C) if not name.startswith("_")]
