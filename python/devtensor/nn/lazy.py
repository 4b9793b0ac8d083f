"""Layers that learn the number of their inputs at their first call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _Parameter
from devtensor._composed.arguments import need_array
from devtensor._types import Device, DType
from devtensor.autograd.grad_mode import no_grad
from devtensor.nn.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    _Conv,
    _ConvTranspose,
)
from devtensor.nn.layers import Linear, _float_options
from devtensor.nn.module import Module
from devtensor.nn.norm import BatchNorm1d, BatchNorm2d, BatchNorm3d, _NormBase
from devtensor.nn.normalization import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d

_Size: TypeAlias = int | Sequence[int]
_Padding: TypeAlias = _Size | Literal["same", "valid"]
_Mode: TypeAlias = Literal["zeros", "reflect", "replicate", "circular"]


class _Lazy(Module):
    """Until then parameters have no elements; they stay the same objects, so an optimizer may hold them already.
    Device and dtype are theirs, which .to() changes. Then the module becomes one of the other class."""

    _becomes: type[Module]

    def has_uninitialized_params(self) -> bool:
        """Whether the first call is still to come."""
        return True

    def reset_parameters(self) -> None:
        """Zeros: random numbers are drawn by the first call."""
        with no_grad():
            for parameter in self.parameters():
                parameter.zero_()

    def _channels(self, input: DeviceArray) -> int:
        """The number of inputs that this call shows."""
        raise NotImplementedError

    def _channels_of(self, weight: DeviceArray) -> int | None:
        """The number of inputs that such a weight has; None: it is another module's."""
        raise NotImplementedError

    def _grow(self, channels: int) -> None:
        """Parameters and buffers for so many inputs."""
        raise NotImplementedError

    def _become(self, channels: int, reset: bool = True) -> None:
        self._grow(channels)
        self.__class__ = self._becomes  # type: ignore[assignment]
        if reset:
            begin: Any = self.reset_parameters
            begin()

    def _take_shapes(self, state: Mapping[str, Any], prefix: str) -> None:
        """The same by a state dictionary, which is loaded then. One of a lazy module shows nothing: it stays lazy."""
        weight = state.get(f"{prefix}weight")
        channels = self._channels_of(weight) if isinstance(weight, DeviceArray) else None
        if channels:
            own = (*self._parameter_names, *self._buffer_names)
            # what the dictionary has draws no random numbers before
            self._become(channels, any(self.__dict__[k] is not None and f"{prefix}{k}" not in state for k in own))

    def forward(self, *args: Any, **kwargs: Any) -> DeviceArray:
        input: Any = args[0] if args else kwargs.get("input")
        need_array(type(self).__name__, "input", input)
        self._become(self._channels(input))
        ready: Any = self.forward
        result: DeviceArray = ready(*args, **kwargs)
        return result


def refuse_uncalled(network: Module, cannot: str) -> None:
    """RuntimeError where a part of network has had no call yet: its copies would find their shapes each for itself."""
    for path, part in network.named_modules():
        if isinstance(part, _Lazy):
            raise RuntimeError(
                f"Modules with uninitialized parameters can't be {cannot}: {path or 'the module'} is a "
                f"{type(part).__name__} that has had no call yet. Call the module once before"
            )


def _resize(array: DeviceArray, *shape: int) -> None:
    array.data = _C.empty(shape, dtype=array.dtype, device=array.device)


class LazyLinear(_Lazy, Linear):
    """A Linear whose in_features are those of its first input (*, in_features).

    >>> layer = nn.LazyLinear(3)
    >>> layer(dt.zeros(2, 8)).shape, layer
    ((2, 3), Linear(in_features=8, out_features=3, bias=True))
    """

    _becomes = Linear

    def __init__(
        self, out_features: int, bias: bool | None = True, device: Device | None = None, dtype: DType | None = None
    ) -> None:
        out_features = _need_int("LazyLinear", "out_features", out_features)
        bias = bias is not None and _need_bool("LazyLinear", "bias", bias)
        super().__init__(0, out_features, bias, **_float_options("LazyLinear", device, dtype))

    def _channels(self, input: DeviceArray) -> int:
        _C._check_rank("LazyLinear", ("input",), (input,), 0, 1, 64)
        return input.shape[-1]

    def _channels_of(self, weight: DeviceArray) -> int | None:
        return weight.shape[1] if weight.ndim == 2 else None

    def _grow(self, channels: int) -> None:
        self.in_features = channels
        _resize(self.weight, self.out_features, channels)


class _LazyConv(_Lazy):
    weight: _Parameter
    in_channels: int
    groups: int
    transposed: bool

    def _channels(self, input: DeviceArray) -> int:
        dims = self.weight.ndim - 2
        _C._check_rank(type(self).__name__, ("input",), (input,), 0, dims + 1, dims + 2)
        channels = input.shape[-1 - dims]
        if channels % self.groups:
            wanted = [-1] * input.ndim
            wanted[-1 - dims] = (channels // self.groups + 1) * self.groups
            _C._check_shape(type(self).__name__, ("input",), (input,), 0, wanted)
        return channels

    def _channels_of(self, weight: DeviceArray) -> int | None:
        if weight.ndim != self.weight.ndim:
            return None
        return weight.shape[0] if self.transposed else weight.shape[1] * self.groups

    def _grow(self, channels: int) -> None:
        self.in_channels = channels
        first, second, *kernel = self.weight.shape
        if self.transposed:
            _resize(self.weight, channels, second, *kernel)
        else:
            _resize(self.weight, first, channels // self.groups, *kernel)


class _LazyForward(_LazyConv, _Conv):
    def __init__(
        self,
        out_channels: int,
        kernel_size: _Size,
        stride: _Size = 1,
        padding: _Padding = 0,
        dilation: _Size = 1,
        groups: int = 1,
        bias: bool | None = True,
        padding_mode: _Mode = "zeros",
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(
            0, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype
        )


class LazyConv1d(_LazyForward, Conv1d):
    """A Conv1d whose in_channels are those of its first input.

    >>> layer = nn.LazyConv1d(4, 3)
    >>> layer(dt.zeros(1, 2, 8)).shape, layer.in_channels
    ((1, 4, 6), 2)
    """

    _becomes = Conv1d


class LazyConv2d(_LazyForward, Conv2d):
    """A Conv2d whose in_channels are those of its first input.

    >>> layer = nn.LazyConv2d(4, 3)
    >>> layer(dt.zeros(1, 2, 8, 8)).shape, layer.in_channels
    ((1, 4, 6, 6), 2)
    """

    _becomes = Conv2d


class LazyConv3d(_LazyForward, Conv3d):
    """A Conv3d whose in_channels are those of its first input.

    >>> layer = nn.LazyConv3d(4, 3)
    >>> layer(dt.zeros(1, 2, 8, 8, 8)).shape, layer.in_channels
    ((1, 4, 6, 6, 6), 2)
    """

    _becomes = Conv3d


class _LazyTransposed(_LazyConv, _ConvTranspose):
    def __init__(
        self,
        out_channels: int,
        kernel_size: _Size,
        stride: _Size = 1,
        padding: _Size = 0,
        output_padding: _Size = 0,
        groups: int = 1,
        bias: bool | None = True,
        dilation: _Size = 1,
        padding_mode: str = "zeros",
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(
            0,
            out_channels,
            kernel_size,
            stride,
            padding,
            output_padding,
            groups,
            bias,
            dilation,
            padding_mode,
            device,
            dtype,
        )


class LazyConvTranspose1d(_LazyTransposed, ConvTranspose1d):
    """A ConvTranspose1d whose in_channels are those of its first input.

    >>> layer = nn.LazyConvTranspose1d(4, 3)
    >>> layer(dt.zeros(1, 2, 4)).shape, layer.in_channels
    ((1, 4, 6), 2)
    """

    _becomes = ConvTranspose1d


class LazyConvTranspose2d(_LazyTransposed, ConvTranspose2d):
    """A ConvTranspose2d whose in_channels are those of its first input.

    >>> layer = nn.LazyConvTranspose2d(4, 3)
    >>> layer(dt.zeros(1, 2, 4, 4)).shape, layer.in_channels
    ((1, 4, 6, 6), 2)
    """

    _becomes = ConvTranspose2d


class LazyConvTranspose3d(_LazyTransposed, ConvTranspose3d):
    """A ConvTranspose3d whose in_channels are those of its first input.

    >>> layer = nn.LazyConvTranspose3d(4, 3)
    >>> layer(dt.zeros(1, 2, 4, 4, 4)).shape, layer.in_channels
    ((1, 4, 6, 6, 6), 2)
    """

    _becomes = ConvTranspose3d


class _LazyNorm(_Lazy, _NormBase):
    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
        *,
        bias: bool | None = True,
    ) -> None:
        super().__init__(0, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _channels(self, input: DeviceArray) -> int:
        _C._check_rank(type(self).__name__, ("input",), (input,), 0, *self._ranks)
        return input.shape[1]

    def _channels_of(self, weight: DeviceArray) -> int | None:
        return weight.shape[0] if weight.ndim == 1 else None

    def _take_shapes(self, state: Mapping[str, Any], prefix: str) -> None:
        shown = state.get(f"{prefix}weight", state.get(f"{prefix}running_mean"))
        super()._take_shapes({**state, f"{prefix}weight": shown}, prefix)

    def _grow(self, channels: int) -> None:
        self.num_features = channels
        for array in (self.weight, self.bias, self.running_mean, self.running_var):
            if array is not None:
                _resize(array, channels)


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """A BatchNorm1d whose num_features are the channels of its first input.

    >>> layer = nn.LazyBatchNorm1d()
    >>> layer(dt.zeros(2, 3, 8)).shape, layer.num_features
    ((2, 3, 8), 3)
    """

    _becomes = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """A BatchNorm2d whose num_features are the channels of its first input.

    >>> layer = nn.LazyBatchNorm2d()
    >>> layer(dt.zeros(2, 3, 8, 8)).shape, layer.num_features
    ((2, 3, 8, 8), 3)
    """

    _becomes = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """A BatchNorm3d whose num_features are the channels of its first input.

    >>> layer = nn.LazyBatchNorm3d()
    >>> layer(dt.zeros(2, 3, 8, 8, 8)).shape, layer.num_features
    ((2, 3, 8, 8, 8), 3)
    """

    _becomes = BatchNorm3d


class _LazyInstanceNorm(_LazyNorm):
    def _channels(self, input: DeviceArray) -> int:
        _C._check_rank(type(self).__name__, ("input",), (input,), 0, *self._ranks)
        channels: int = input.shape[input.ndim - self._ranks[0]]
        return channels


class LazyInstanceNorm1d(_LazyInstanceNorm, InstanceNorm1d):
    """An InstanceNorm1d whose num_features are the channels of its first input.

    >>> layer = nn.LazyInstanceNorm1d()
    >>> layer(dt.zeros(2, 3, 8)).shape, layer.num_features
    ((2, 3, 8), 3)
    """

    _becomes = InstanceNorm1d
    _ranks = (2, 3)


class LazyInstanceNorm2d(_LazyInstanceNorm, InstanceNorm2d):
    """An InstanceNorm2d whose num_features are the channels of its first input.

    >>> layer = nn.LazyInstanceNorm2d()
    >>> layer(dt.zeros(2, 3, 8, 8)).shape, layer.num_features
    ((2, 3, 8, 8), 3)
    """

    _becomes = InstanceNorm2d
    _ranks = (3, 4)


class LazyInstanceNorm3d(_LazyInstanceNorm, InstanceNorm3d):
    """An InstanceNorm3d whose num_features are the channels of its first input.

    >>> layer = nn.LazyInstanceNorm3d()
    >>> layer(dt.zeros(2, 3, 8, 8, 8)).shape, layer.num_features
    ((2, 3, 8, 8, 8), 3)
    """

    _becomes = InstanceNorm3d
    _ranks = (4, 5)
