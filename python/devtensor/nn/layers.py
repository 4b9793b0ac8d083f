"""Linear, Embedding, Dropout, pooling, shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast, overload

from devtensor import _C
from devtensor._C import (
    DeviceArray,
    _need_bool,
    _need_device,
    _need_dtype,
    _need_int,
    _need_ints,
    _need_size,
    _Parameter,
)
from devtensor._types import Device, DType
from devtensor.nn import init
from devtensor.nn.module import Module

_Pair: TypeAlias = int | Sequence[int]
_Pooled = TypeVar("_Pooled", covariant=True)  # one array, or with return_indices a pair


def _float_options(op: str, device: Device | None, dtype: DType | None) -> dict[str, Any]:
    return {
        "device": None if device is None else _need_device(op, "device", device),
        "dtype": None if dtype is None else _need_dtype(op, "dtype", dtype),
    }


def _size(op: str, name: str, value: _Pair) -> _Pair:
    """value for both directions, as an int or a tuple of ints: which of them extra_repr() shows."""
    size = _need_size(op, name, value)
    if isinstance(size, tuple) and len(size) not in (1, 2):
        raise ValueError(f"{op}(): {name} must be an int or 2 of them, not {len(size)}")
    return size


class Identity(Module):
    """Gives its input back; other arguments are ignored.

    >>> nn.Identity()(dt.ones(2))
    DeviceArray([1., 1.], device='cpu', dtype=float32)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: DeviceArray) -> DeviceArray:
        return input


class Linear(Module):
    """x @ weight.T + bias for input (*, in_features): (*, out_features).

    weight (out_features, in_features) and bias (out_features) are initialised uniformly in ±1 / sqrt(in_features).

    >>> nn.Linear(8, 3)(dt.zeros(2, 8)).shape
    (2, 3)
    """

    weight: _Parameter
    bias: _Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool | None = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        in_features = _need_int("Linear", "in_features", in_features)
        self.in_features: int = in_features
        out_features = _need_int("Linear", "out_features", out_features)
        self.out_features: int = out_features
        bias = bias is not None and _need_bool("Linear", "bias", bias)
        options = _float_options("Linear", device, dtype)
        self.weight = _Parameter(_C.empty((out_features, in_features), **options))
        self.register_parameter("bias", _Parameter(_C.empty(out_features, **options)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """New random numbers in weight and bias."""
        _reset(self.weight, self.bias)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return _C.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def _reset(weight: DeviceArray, bias: DeviceArray | None) -> None:
    init.kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None:
        fan_in, _ = init._calculate_fan_in_and_fan_out(weight)
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
        init.uniform_(bias, -bound, bound)


# ---------------------------------------------------------------- shapes


class Flatten(Module):
    """The dimensions from start_dim to end_dim become one.

    >>> nn.Flatten()(dt.zeros(2, 3, 4)).shape
    (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim: int = _need_int("Flatten", "start_dim", start_dim)
        self.end_dim: int = _need_int("Flatten", "end_dim", end_dim)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One dimension becomes several: Unflatten(1, (3, 4)).

    >>> nn.Unflatten(1, (3, 4))(dt.zeros(2, 12)).shape
    (2, 3, 4)
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim: int = _need_int("Unflatten", "dim", dim)
        self.unflattened_size: tuple[int, ...] = _need_ints("Unflatten", "unflattened_size", unflattened_size)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


# ---------------------------------------------------------------- pooling


class MaxPool2d(Module, Generic[_Pooled]):
    """The largest element of each window of (C, H, W) or (N, C, H, W).

    >>> nn.MaxPool2d(2)(dt.ones(2, 3, 8, 8)).shape
    (2, 3, 4, 4)
    """

    @overload
    def __init__(
        self: MaxPool2d[DeviceArray],
        kernel_size: _Pair,
        stride: _Pair | None = None,
        padding: _Pair = 0,
        dilation: _Pair = 1,
        return_indices: Literal[False] = False,
        ceil_mode: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: MaxPool2d[tuple[DeviceArray, DeviceArray]],
        kernel_size: _Pair,
        stride: _Pair | None = None,
        padding: _Pair = 0,
        dilation: _Pair = 1,
        *,
        return_indices: Literal[True],
        ceil_mode: bool = False,
    ) -> None: ...
    def __init__(
        self,
        kernel_size: _Pair,
        stride: _Pair | None = None,
        padding: _Pair = 0,
        dilation: _Pair = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size: _Pair = _size("MaxPool2d", "kernel_size", kernel_size)
        self.stride: _Pair = self.kernel_size if stride is None else _size("MaxPool2d", "stride", stride)
        self.padding: _Pair = _size("MaxPool2d", "padding", padding)
        self.dilation: _Pair = _size("MaxPool2d", "dilation", dilation)
        self.return_indices: bool = _need_bool("MaxPool2d", "return_indices", return_indices)
        self.ceil_mode: bool = _need_bool("MaxPool2d", "ceil_mode", ceil_mode)

    def forward(self, input: DeviceArray) -> _Pooled:
        window = (self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)
        if self.return_indices:
            return cast(_Pooled, _C.max_pool2d(input, *window, return_indices=True))
        return cast(_Pooled, _C.max_pool2d(input, *window))

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class AvgPool2d(Module):
    """The mean of each window of (C, H, W) or (N, C, H, W).

    >>> nn.AvgPool2d(2)(dt.ones(2, 3, 8, 8)).shape
    (2, 3, 4, 4)
    """

    def __init__(
        self,
        kernel_size: _Pair,
        stride: _Pair | None = None,
        padding: _Pair = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size: _Pair = _size("AvgPool2d", "kernel_size", kernel_size)
        self.stride: _Pair = self.kernel_size if stride is None else _size("AvgPool2d", "stride", stride)
        self.padding: _Pair = _size("AvgPool2d", "padding", padding)
        self.ceil_mode: bool = _need_bool("AvgPool2d", "ceil_mode", ceil_mode)
        self.count_include_pad: bool = _need_bool("AvgPool2d", "count_include_pad", count_include_pad)
        if divisor_override is not None:
            divisor_override = _need_int("AvgPool2d", "divisor_override", divisor_override)
        self.divisor_override = divisor_override

    def forward(self, input: DeviceArray) -> DeviceArray:
        return _C.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


def _output_size(value: int | Sequence[int | None]) -> int | Sequence[int | None]:
    if isinstance(value, (list, tuple)):
        return tuple(None if size is None else _need_int("AdaptiveAvgPool2d", "output_size", size) for size in value)
    return _need_size("AdaptiveAvgPool2d", "output_size", value)


class AdaptiveAvgPool2d(Module):
    """Means of windows such that output_size of them come out; None keeps a size.

    >>> nn.AdaptiveAvgPool2d(1)(dt.ones(2, 3, 8, 8)).shape
    (2, 3, 1, 1)
    """

    def __init__(self, output_size: int | Sequence[int | None]) -> None:
        super().__init__()
        self.output_size: int | Sequence[int | None] = _output_size(output_size)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return _C.adaptive_avg_pool2d(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"
