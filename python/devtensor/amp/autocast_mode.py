"""autocast: a block in which ops choose their dtypes, because the user asked for it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar, overload

from devtensor import _C, cuda
from devtensor._dtypes.autocast import Mode, here, mapped

_F = TypeVar("_F", bound=Callable[..., Any])

_LOWER = {"cpu": (_C.bfloat16, _C.float16), "cuda": (_C.float16, _C.bfloat16)}  # the first is the default


def _kind(op: str, device_type: str) -> str:
    if not isinstance(device_type, str) or device_type not in _LOWER:  # a device equals its name
        raise RuntimeError(f"{op}(): device_type must be 'cpu' or 'cuda', not {_C._shown(device_type)}")
    return device_type


class autocast:
    """A block, or a function, in which ops on one kind of device choose their dtypes.

    Products and convolutions cast float operands to dtype (by default bfloat16 on the CPU, float16 on CUDA). Losses,
    and on CUDA sums, norms, softmax, powers and exponentials too, cast float16 and bfloat16 operands to float32. Other
    ops compute in the dtypes that they are given. float64 is never cast, in-place ops and out= are left alone. The
    casts are recorded: weights get gradients in their own dtype. A weight is cast once a block; write to weights
    outside of it. The rules are PyTorch's.

    Without a CUDA device autocast("cuda") turns itself off with a warning, as does a dtype that is not a half type.
    Raises RuntimeError for another kind of device.

    >>> weight = dt.ones(3, 3, requires_grad=True)
    >>> with dt.autocast("cpu"):
    ...     product = dt.ones(2, 3) @ weight
    >>> product.dtype
    devtensor.bfloat16
    >>> product.sum().backward()
    >>> weight.grad.dtype
    devtensor.float32
    """

    def __init__(
        self,
        device_type: str,
        dtype: _C.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        self.device: str = _kind("autocast", device_type)
        self.fast_dtype: _C.dtype = (
            _LOWER[device_type][0] if dtype is None else _C._need_dtype("autocast", "dtype", dtype)
        )
        self._enabled: bool = enabled
        self._cache_enabled: bool = here.caching if cache_enabled is None else cache_enabled
        self._modes: list[Mode] = []
        if not enabled:
            return
        why = ""
        if device_type == "cuda" and not cuda.is_available():
            why = "User provided device_type of 'cuda', but CUDA is not available. Disabling"
        elif self.fast_dtype not in _LOWER[device_type]:
            why = (
                f"autocast({device_type!r}) computes in float16 or bfloat16, but dtype is {self.fast_dtype}. "
                "Disabling autocast."
            )
        if why:
            warnings.warn(why, stacklevel=2 if type(self) is autocast else 3)
            self._enabled = False

    def __enter__(self) -> autocast:
        dtypes = {kind: dtype for kind, dtype in here.dtypes.items() if kind != self.device}
        if self._enabled:
            dtypes[self.device] = self.fast_dtype
        self._modes.append(Mode(dtypes, self._cache_enabled))
        self._modes[-1].__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._modes.pop().__exit__()

    def __call__(self, function: _F) -> _F:
        """Make a function run in this mode."""

        @functools.wraps(function)
        def _call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return _call  # type: ignore[return-value]


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether ops on this kind of device choose their dtypes here.

    >>> dt.is_autocast_enabled("cpu")
    False
    """
    _C._need_str("is_autocast_enabled", "device_type", device_type)
    return device_type in here.dtypes


def get_autocast_dtype(device_type: str) -> _C.dtype:
    """The dtype of the autocast block for this kind of device, or the default of one. Raises RuntimeError for others.

    >>> dt.get_autocast_dtype("cpu")
    devtensor.bfloat16
    """
    kind = _kind("get_autocast_dtype", device_type)
    return here.dtypes.get(kind, _LOWER[kind][0])


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast knows this kind of device: "cpu" or "cuda".

    >>> dt.amp.is_autocast_available("cpu")
    True
    """
    _C._need_str("is_autocast_available", "device_type", device_type)
    return device_type in _LOWER


@overload
def custom_fwd(
    fwd: Callable[..., Any], *, device_type: str, cast_inputs: _C.dtype | None = None
) -> Callable[..., Any]: ...
@overload
def custom_fwd(
    fwd: None = None, *, device_type: str, cast_inputs: _C.dtype | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
def custom_fwd(fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: _C.dtype | None = None) -> Any:
    """For forward of an autograd.Function: backward, if it is a custom_bwd, runs in the same mode.

    With cast_inputs forward gets its float arrays on that kind of device in this dtype, float64 aside, and runs with
    autocast off; outside of a block nothing is cast. Raises RuntimeError for another kind of device.

    >>> class Double(dt.autograd.Function):
    ...     @staticmethod
    ...     @dt.amp.custom_fwd(device_type="cpu", cast_inputs=dt.float32)
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     @dt.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> with dt.autocast("cpu"):
    ...     Double.apply(dt.ones(1).bfloat16()).dtype
    devtensor.float32
    """
    kind = _kind("custom_fwd", device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    forward = fwd

    @functools.wraps(forward)
    def _call(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        ctx._dtype, ctx._fwd_used_autocast = get_autocast_dtype(kind), kind in here.dtypes
        ctx._given = [getattr(array, "dtype", None) for array in args]  # whose dtypes gradients have
        if cast_inputs is None or not ctx._fwd_used_autocast:
            return forward(ctx, *args, **kwargs)

        def change(array: _C.DeviceArray) -> _C.DeviceArray:
            fits = array.device.type == kind and array.dtype.is_floating_point and array.dtype != _C.float64
            return array.to(cast_inputs) if fits else array

        ctx._fwd_used_autocast = False
        with autocast(kind, enabled=False):
            return forward(ctx, *mapped(args, change), **{key: mapped(value, change) for key, value in kwargs.items()})

    return _call


@overload
def custom_bwd(bwd: Callable[..., Any], *, device_type: str) -> Callable[..., Any]: ...
@overload
def custom_bwd(bwd: None = None, *, device_type: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """For backward of an autograd.Function whose forward is a custom_fwd: it runs in the mode that forward ran in.

    Gradients are cast to the dtypes of what forward was given.

    Raises RuntimeError for another kind of device. custom_fwd has an example.

    >>> dt.amp.custom_bwd(lambda ctx, grad: grad, device_type="cpu").__name__
    '<lambda>'
    """
    kind = _kind("custom_bwd", device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    backward = bwd

    @functools.wraps(backward)
    def _call(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(kind, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            grads = backward(ctx, *args, **kwargs)
        several = isinstance(grads, tuple)
        cast = tuple(
            grad.to(dtype) if isinstance(grad, _C.DeviceArray) and dtype is not None else grad
            for grad, dtype in zip(grads if several else (grads,), ctx._given, strict=False)
        )
        return cast if several else cast[0]

    return _call
