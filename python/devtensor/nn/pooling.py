"""Pooling of one and three dimensions, adaptive pools, norms of windows, and the way back from maxima."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast, overload

from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number, _need_size
from devtensor.nn import functional as F
from devtensor.nn.module import Module

_Size: TypeAlias = int | Sequence[int]
_Pooled = TypeVar("_Pooled", covariant=True)  # one array, or with return_indices a pair


def _size(op: str, name: str, value: _Size, dims: int) -> _Size:
    """value as an int or a tuple of ints, whichever was given: extra_repr() shows it."""
    size = _need_size(op, name, value)
    if isinstance(size, tuple) and len(size) not in (1, dims):
        raise ValueError(f"{op}(): {name} must be an int or {dims} of them, not {len(size)}")
    return size


def _sizes(op: str, name: str, value: _Size, dims: int) -> tuple[int, ...]:
    size = _size(op, name, value, dims)
    return (size,) * dims if isinstance(size, int) else tuple(size) * (dims if len(size) == 1 else 1)


# ---------------------------------------------------------------- maxima


class _MaxPool(Module, Generic[_Pooled]):
    _dims: int

    def __init__(
        self,
        kernel_size: _Size,
        stride: _Size | None = None,
        padding: _Size = 0,
        dilation: _Size = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        op, dims = type(self).__name__, self._dims
        self.kernel_size: _Size = _size(op, "kernel_size", kernel_size, dims)
        self.stride: _Size = self.kernel_size if stride is None else _size(op, "stride", stride, dims)
        self.padding: _Size = _size(op, "padding", padding, dims)
        self.dilation: _Size = _size(op, "dilation", dilation, dims)
        self.return_indices: bool = _need_bool(op, "return_indices", return_indices)
        self.ceil_mode: bool = _need_bool(op, "ceil_mode", ceil_mode)

    def forward(self, input: DeviceArray) -> _Pooled:
        pool: Any = F.max_pool1d if self._dims == 1 else F.max_pool3d
        window = (self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)
        return cast(_Pooled, pool(input, *window, return_indices=self.return_indices))

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool[_Pooled]):
    """The largest element of each window of (C, L) or (N, C, L).

    >>> nn.MaxPool1d(2)(dt.ones(2, 3, 8)).shape
    (2, 3, 4)
    """

    _dims = 1

    @overload
    def __init__(
        self: MaxPool1d[DeviceArray],
        kernel_size: _Size,
        stride: _Size | None = None,
        padding: _Size = 0,
        dilation: _Size = 1,
        return_indices: Literal[False] = False,
        ceil_mode: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: MaxPool1d[tuple[DeviceArray, DeviceArray]],
        kernel_size: _Size,
        stride: _Size | None = None,
        padding: _Size = 0,
        dilation: _Size = 1,
        *,
        return_indices: Literal[True],
        ceil_mode: bool = False,
    ) -> None: ...
    def __init__(
        self,
        kernel_size: _Size,
        stride: _Size | None = None,
        padding: _Size = 0,
        dilation: _Size = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, padding, dilation, return_indices, ceil_mode)


class MaxPool3d(_MaxPool[_Pooled]):
    """The largest element of each window of (C, D, H, W) or (N, C, D, H, W).

    >>> nn.MaxPool3d(2)(dt.ones(2, 3, 8, 8, 8)).shape
    (2, 3, 4, 4, 4)
    """

    _dims = 3

    @overload
    def __init__(
        self: MaxPool3d[DeviceArray],
        kernel_size: _Size,
        stride: _Size | None = None,
        padding: _Size = 0,
        dilation: _Size = 1,
        return_indices: Literal[False] = False,
        ceil_mode: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: MaxPool3d[tuple[DeviceArray, DeviceArray]],
        kernel_size: _Size,
        stride: _Size | None = None,
        padding: _Size = 0,
        dilation: _Size = 1,
        *,
        return_indices: Literal[True],
        ceil_mode: bool = False,
    ) -> None: ...
    def __init__(
        self,
        kernel_size: _Size,
        stride: _Size | None = None,
        padding: _Size = 0,
        dilation: _Size = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, padding, dilation, return_indices, ceil_mode)


# ---------------------------------------------------------------- means


class AvgPool1d(Module):
    """The mean of each window of (C, L) or (N, C, L).

    >>> nn.AvgPool1d(2)(dt.ones(2, 3, 8)).shape
    (2, 3, 4)
    """

    def __init__(
        self,
        kernel_size: _Size,
        stride: _Size | None = None,
        padding: _Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size: tuple[int, ...] = _sizes("AvgPool1d", "kernel_size", kernel_size, 1)
        self.stride: tuple[int, ...] = self.kernel_size if stride is None else _sizes("AvgPool1d", "stride", stride, 1)
        self.padding: tuple[int, ...] = _sizes("AvgPool1d", "padding", padding, 1)
        self.ceil_mode: bool = _need_bool("AvgPool1d", "ceil_mode", ceil_mode)
        self.count_include_pad: bool = _need_bool("AvgPool1d", "count_include_pad", count_include_pad)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool3d(Module):
    """The mean of each window of (C, D, H, W) or (N, C, D, H, W).

    >>> nn.AvgPool3d(2)(dt.ones(2, 3, 8, 8, 8)).shape
    (2, 3, 4, 4, 4)
    """

    def __init__(
        self,
        kernel_size: _Size,
        stride: _Size | None = None,
        padding: _Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size: _Size = _size("AvgPool3d", "kernel_size", kernel_size, 3)
        self.stride: _Size = self.kernel_size if stride is None else _size("AvgPool3d", "stride", stride, 3)
        self.padding: _Size = _size("AvgPool3d", "padding", padding, 3)
        self.ceil_mode: bool = _need_bool("AvgPool3d", "ceil_mode", ceil_mode)
        self.count_include_pad: bool = _need_bool("AvgPool3d", "count_include_pad", count_include_pad)
        if divisor_override is not None:
            divisor_override = _need_int("AvgPool3d", "divisor_override", divisor_override)
        self.divisor_override = divisor_override

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.avg_pool3d(
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


# ---------------------------------------------------------------- windows that follow from the result's size


def _output_size(op: str, value: int | Sequence[int | None] | None) -> int | Sequence[int | None] | None:
    if isinstance(value, (list, tuple)):
        return tuple(None if size is None else _need_int(op, "output_size", size) for size in value)
    return None if value is None else _need_size(op, "output_size", value)


class _AdaptiveAvgPool(Module):
    _dims: int

    def __init__(self, output_size: int | Sequence[int | None] | None) -> None:
        super().__init__()
        self.output_size: int | Sequence[int | None] | None = _output_size(type(self).__name__, output_size)

    def forward(self, input: DeviceArray) -> DeviceArray:
        pool = F.adaptive_avg_pool1d if self._dims == 1 else F.adaptive_avg_pool3d
        return pool(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Means of windows such that output_size of them come out; None keeps a size.

    >>> nn.AdaptiveAvgPool1d(1)(dt.ones(2, 3, 8)).shape
    (2, 3, 1)
    """

    _dims = 1


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Means of windows such that output_size of them come out; None keeps a size.

    >>> nn.AdaptiveAvgPool3d(1)(dt.ones(2, 3, 8, 8, 8)).shape
    (2, 3, 1, 1, 1)
    """

    _dims = 3


class _AdaptiveMaxPool(Module, Generic[_Pooled]):
    _dims: int

    def __init__(self, output_size: int | Sequence[int | None] | None, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size: int | Sequence[int | None] | None = _output_size(type(self).__name__, output_size)
        self.return_indices: bool = _need_bool(type(self).__name__, "return_indices", return_indices)

    def forward(self, input: DeviceArray) -> _Pooled:
        pool: Any = (F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d)[self._dims - 1]
        return cast(_Pooled, pool(input, self.output_size, self.return_indices))

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPool[_Pooled]):
    """Maxima of windows such that output_size of them come out; None keeps a size.

    >>> nn.AdaptiveMaxPool1d(3)(dt.ones(2, 3, 8)).shape
    (2, 3, 3)
    """

    _dims = 1

    @overload
    def __init__(
        self: AdaptiveMaxPool1d[DeviceArray],
        output_size: int | Sequence[int | None] | None,
        return_indices: Literal[False] = False,
    ) -> None: ...
    @overload
    def __init__(
        self: AdaptiveMaxPool1d[tuple[DeviceArray, DeviceArray]],
        output_size: int | Sequence[int | None] | None,
        return_indices: Literal[True],
    ) -> None: ...
    def __init__(self, output_size: int | Sequence[int | None] | None, return_indices: bool = False) -> None:
        super().__init__(output_size, return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPool[_Pooled]):
    """Maxima of windows such that output_size of them come out; None keeps a size.

    >>> nn.AdaptiveMaxPool2d(3)(dt.ones(2, 3, 8, 8)).shape
    (2, 3, 3, 3)
    """

    _dims = 2

    @overload
    def __init__(
        self: AdaptiveMaxPool2d[DeviceArray],
        output_size: int | Sequence[int | None] | None,
        return_indices: Literal[False] = False,
    ) -> None: ...
    @overload
    def __init__(
        self: AdaptiveMaxPool2d[tuple[DeviceArray, DeviceArray]],
        output_size: int | Sequence[int | None] | None,
        return_indices: Literal[True],
    ) -> None: ...
    def __init__(self, output_size: int | Sequence[int | None] | None, return_indices: bool = False) -> None:
        super().__init__(output_size, return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPool[_Pooled]):
    """Maxima of windows such that output_size of them come out; None keeps a size.

    >>> nn.AdaptiveMaxPool3d(3)(dt.ones(2, 3, 8, 8, 8)).shape
    (2, 3, 3, 3, 3)
    """

    _dims = 3

    @overload
    def __init__(
        self: AdaptiveMaxPool3d[DeviceArray],
        output_size: int | Sequence[int | None] | None,
        return_indices: Literal[False] = False,
    ) -> None: ...
    @overload
    def __init__(
        self: AdaptiveMaxPool3d[tuple[DeviceArray, DeviceArray]],
        output_size: int | Sequence[int | None] | None,
        return_indices: Literal[True],
    ) -> None: ...
    def __init__(self, output_size: int | Sequence[int | None] | None, return_indices: bool = False) -> None:
        super().__init__(output_size, return_indices)


# ---------------------------------------------------------------- norms, and the way back


class _LPPool(Module):
    _dims: int

    def __init__(
        self, norm_type: float, kernel_size: _Size, stride: _Size | None = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        op, dims = type(self).__name__, self._dims
        self.norm_type: float = _need_number(op, "norm_type", norm_type)
        self.kernel_size: _Size = _size(op, "kernel_size", kernel_size, dims)
        self.stride: _Size | None = None if stride is None else _size(op, "stride", stride, dims)
        self.ceil_mode: bool = _need_bool(op, "ceil_mode", ceil_mode)

    def forward(self, input: DeviceArray) -> DeviceArray:
        pool = (F.lp_pool1d, F.lp_pool2d, F.lp_pool3d)[self._dims - 1]
        return pool(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """(sum of x ** norm_type) ** (1 / norm_type) of each window of (C, L) or (N, C, L).

    >>> nn.LPPool1d(2, 2)(dt.ones(2, 3, 8)).shape
    (2, 3, 4)
    """

    _dims = 1


class LPPool2d(_LPPool):
    """(sum of x ** norm_type) ** (1 / norm_type) of each window of (C, H, W) or (N, C, H, W).

    >>> nn.LPPool2d(2, 2)(dt.ones(2, 3, 8, 8)).shape
    (2, 3, 4, 4)
    """

    _dims = 2


class LPPool3d(_LPPool):
    """(sum of x ** norm_type) ** (1 / norm_type) of each window of (C, D, H, W) or (N, C, D, H, W).

    >>> nn.LPPool3d(2, 2)(dt.ones(2, 3, 8, 8, 8)).shape
    (2, 3, 4, 4, 4)
    """

    _dims = 3


class _MaxUnpool(Module):
    _dims: int

    def __init__(self, kernel_size: _Size, stride: _Size | None = None, padding: _Size = 0) -> None:
        super().__init__()
        op, dims = type(self).__name__, self._dims
        self.kernel_size: tuple[int, ...] = _sizes(op, "kernel_size", kernel_size, dims)
        self.stride: tuple[int, ...] = self.kernel_size if stride is None else _sizes(op, "stride", stride, dims)
        self.padding: tuple[int, ...] = _sizes(op, "padding", padding, dims)

    def forward(
        self, input: DeviceArray, indices: DeviceArray, output_size: Sequence[int] | None = None
    ) -> DeviceArray:
        unpool = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[self._dims - 1]
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """The maxima of MaxPool1d where they were, by its indices; 0 elsewhere.

    >>> values, indices = nn.MaxPool1d(2, return_indices=True)(dt.ones(2, 3, 8))
    >>> nn.MaxUnpool1d(2)(values, indices).shape
    (2, 3, 8)
    """

    _dims = 1


class MaxUnpool2d(_MaxUnpool):
    """The maxima of MaxPool2d where they were, by its indices; 0 elsewhere.

    >>> values, indices = nn.MaxPool2d(2, return_indices=True)(dt.ones(2, 3, 8, 8))
    >>> nn.MaxUnpool2d(2)(values, indices).shape
    (2, 3, 8, 8)
    """

    _dims = 2


class MaxUnpool3d(_MaxUnpool):
    """The maxima of MaxPool3d where they were, by its indices; 0 elsewhere.

    >>> values, indices = nn.MaxPool3d(2, return_indices=True)(dt.ones(2, 3, 8, 8, 8))
    >>> nn.MaxUnpool3d(2)(values, indices).shape
    (2, 3, 8, 8, 8)
    """

    _dims = 3
