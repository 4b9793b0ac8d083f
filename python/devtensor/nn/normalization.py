"""Normalisation of groups of channels, of samples, and of neighbouring channels as modules."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number, _Parameter
from devtensor._composed.arguments import need_sizes
from devtensor._types import Device, DType
from devtensor.nn import functional as F
from devtensor.nn.layers import _float_options
from devtensor.nn.module import Module
from devtensor.nn.norm import _NormBase, _reset_affine


class GroupNorm(Module):
    """(x - mean) / sqrt(var + eps) * weight + bias over each of num_groups groups of the channels of (N, C, ...).

    >>> nn.GroupNorm(2, 4)(dt.ones(2, 4, 3)).shape
    (2, 4, 3)
    """

    weight: _Parameter | None
    bias: _Parameter | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        groups, channels = (
            _need_int("GroupNorm", "num_groups", num_groups),
            _need_int("GroupNorm", "num_channels", num_channels),
        )
        self.num_groups: int = groups
        self.num_channels: int = channels
        self.eps: float = _need_number("GroupNorm", "eps", eps)
        affine, bias = _need_bool("GroupNorm", "affine", affine), _need_bool("GroupNorm", "bias", bias)
        self.affine: bool = affine
        if groups <= 0 or channels % groups:
            raise ValueError(f"num_channels ({channels}) must be divisible by num_groups ({groups})")
        options = _float_options("GroupNorm", device, dtype)
        self.register_parameter("weight", _Parameter(_C.ones(channels, **options)) if affine else None)
        self.register_parameter("bias", _Parameter(_C.zeros(channels, **options)) if affine and bias else None)

    def reset_parameters(self) -> None:
        """weight 1, bias 0."""
        _reset_affine(self.weight, self.bias)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class _InstanceNorm(_NormBase):
    _batched: int  # dimensions of an input of several samples

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Device | None = None,
        dtype: DType | None = None,
        *,
        bias: bool | None = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: DeviceArray) -> DeviceArray:
        _C._check_rank("instance_norm", ("input",), (input,), 0, self._batched - 1, self._batched)
        at = input.ndim - self._batched + 1
        if input.shape[at] != self.num_features:
            if self.affine:
                text = (
                    f"expected input's size at dim={at} to match num_features ({self.num_features}), "
                    f"but got: {input.shape[at]}."
                )
                raise _C._explained("instance_norm", ("input",), (input,), "invalid-argument", ValueError(text))
            warnings.warn(
                f"input's size at dim={at} does not match num_features. You can silence this warning by not passing in "
                "num_features, which is not used because affine=False",
                stacklevel=2,
            )
        result = F.instance_norm(
            input if at else input.unsqueeze(0),
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return result if at else result.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """(x - mean) / sqrt(var + eps) for each channel of each sample of (N, C, L) or (C, L).

    >>> nn.InstanceNorm1d(3)(dt.ones(2, 3, 5)).shape
    (2, 3, 5)
    """

    _batched = 3


class InstanceNorm2d(_InstanceNorm):
    """(x - mean) / sqrt(var + eps) for each channel of each sample of (N, C, H, W) or (C, H, W).

    affine adds weight and bias; track_running_stats keeps means and variances for evaluation.

    >>> nn.InstanceNorm2d(3)(dt.ones(2, 3, 4, 4)).shape
    (2, 3, 4, 4)
    """

    _batched = 4


class InstanceNorm3d(_InstanceNorm):
    """(x - mean) / sqrt(var + eps) for each channel of each sample of (N, C, D, H, W) or (C, D, H, W).

    >>> nn.InstanceNorm3d(3)(dt.ones(2, 3, 4, 4, 4)).shape
    (2, 3, 4, 4, 4)
    """

    _batched = 5


class RMSNorm(Module):
    """x / sqrt(mean(x ** 2) + eps) * weight over the last dimensions, which are normalized_shape.

    >>> nn.RMSNorm(2)(dt.tensor([[3.0, 4.0]])).shape
    (1, 2)
    """

    weight: _Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape: tuple[int, ...] = need_sizes("RMSNorm", "normalized_shape", normalized_shape)
        self.eps: float | None = None if eps is None else _need_number("RMSNorm", "eps", eps)
        affine = _need_bool("RMSNorm", "elementwise_affine", elementwise_affine)
        self.elementwise_affine: bool = affine
        options = _float_options("RMSNorm", device, dtype)
        self.register_parameter("weight", _Parameter(_C.ones(self.normalized_shape, **options)) if affine else None)

    def reset_parameters(self) -> None:
        """weight 1."""
        _reset_affine(self.weight, None)

    def forward(self, x: DeviceArray) -> DeviceArray:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class LocalResponseNorm(Module):
    """x / (k + alpha * mean of x ** 2 over size neighbouring channels) ** beta, for (N, C, ...).

    >>> nn.LocalResponseNorm(2)(dt.ones(2, 4, 5, 5)).shape
    (2, 4, 5, 5)
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size: int = _need_int("LocalResponseNorm", "size", size)
        self.alpha: float = _need_number("LocalResponseNorm", "alpha", alpha)
        self.beta: float = _need_number("LocalResponseNorm", "beta", beta)
        self.k: float = _need_number("LocalResponseNorm", "k", k)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
