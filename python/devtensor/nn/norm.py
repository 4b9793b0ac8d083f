"""Normalisation as modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number, _Parameter
from devtensor._composed.arguments import need_sizes
from devtensor._types import Device, DType
from devtensor.nn import functional as F
from devtensor.nn import init
from devtensor.nn.layers import _float_options
from devtensor.nn.module import Module


def _reset_affine(weight: DeviceArray | None, bias: DeviceArray | None) -> None:
    if weight is not None:
        init.ones_(weight)
    if bias is not None:
        init.zeros_(bias)


class _NormBase(Module):
    """What has weight and bias, and keeps means and variances, for each of num_features channels."""

    weight: _Parameter | None
    bias: _Parameter | None
    running_mean: DeviceArray | None
    running_var: DeviceArray | None
    num_batches_tracked: DeviceArray | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
        *,
        bias: bool | None = True,
    ) -> None:
        super().__init__()
        op = type(self).__name__
        num_features = _need_int(op, "num_features", num_features)
        self.num_features: int = num_features
        self.eps: float = _need_number(op, "eps", eps)
        self.momentum: float | None = None if momentum is None else _need_number(op, "momentum", momentum)
        affine = _need_bool(op, "affine", affine)
        self.affine: bool = affine
        tracked = _need_bool(op, "track_running_stats", track_running_stats)
        self.track_running_stats: bool = tracked
        bias = bias is not None and _need_bool(op, "bias", bias)
        options = _float_options(op, device, dtype)
        self.register_parameter("weight", _Parameter(_C.ones(num_features, **options)) if affine else None)
        self.register_parameter("bias", _Parameter(_C.zeros(num_features, **options)) if affine and bias else None)
        self.register_buffer("running_mean", _C.zeros(num_features, **options) if tracked else None)
        self.register_buffer("running_var", _C.ones(num_features, **options) if tracked else None)
        count = _C.zeros((), dtype=_C.int64, device=device) if tracked else None
        self.register_buffer("num_batches_tracked", count)

    def reset_running_stats(self) -> None:
        """Forget what training has seen."""
        if self.track_running_stats:
            assert self.running_mean is not None and self.running_var is not None
            assert self.num_batches_tracked is not None
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """weight 1, bias 0, and reset_running_stats()."""
        self.reset_running_stats()
        _reset_affine(self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_NormBase):
    _ranks: tuple[int, int]

    def forward(self, input: DeviceArray) -> DeviceArray:
        low, high = self._ranks
        if not low <= input.ndim <= high:
            _C._check_rank("batch_norm", ("input",), (input,), 0, low, high)
        if not self.training:
            # statistics of the batch where none are kept
            use_batch = self.running_mean is None
            return F.batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, use_batch, 0.0, self.eps
            )
        momentum = 0.0 if self.momentum is None else self.momentum
        count = self.num_batches_tracked
        if count is not None:
            count += 1
            if self.momentum is None:  # the mean of all batches
                momentum = 1.0 / int(count)
        return self._of_batch(input, momentum)

    def _of_batch(self, input: DeviceArray, momentum: float) -> DeviceArray:
        return F.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, True, momentum, self.eps
        )


class BatchNorm1d(_BatchNorm):
    """(x - mean) / sqrt(var + eps) * weight + bias for each of num_features channels of (N, C) or (N, C, L).

    >>> nn.BatchNorm1d(4)(dt.ones(2, 4)).shape
    (2, 4)
    """

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """(x - mean) / sqrt(var + eps) * weight + bias for each of num_features channels of (N, C, H, W).

    In training, mean and variance are those of the batch, and running_mean and running_var follow them; in evaluation
    these are used.

    >>> nn.BatchNorm2d(3).eval()(dt.zeros(8, 3, 4, 4)).shape
    (8, 3, 4, 4)
    """

    _ranks = (4, 4)


class BatchNorm3d(_BatchNorm):
    """(x - mean) / sqrt(var + eps) * weight + bias for each of num_features channels of (N, C, D, H, W).

    >>> nn.BatchNorm3d(3).eval()(dt.zeros(2, 3, 4, 4, 4)).shape
    (2, 3, 4, 4, 4)
    """

    _ranks = (5, 5)


class SyncBatchNorm(_BatchNorm):
    """Batch norm of (N, C, ...) with the statistics of all processes of dt.distributed; without it, of this one.

    process_group: what dt.distributed.new_group() gave. Raises TypeError for another.

    >>> net = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm1d(4)))
    >>> type(net[0]).__name__
    'SyncBatchNorm'
    """

    _ranks = (2, 8)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Device | None = None,
        dtype: DType | None = None,
        *,
        bias: bool | None = True,
    ) -> None:
        from devtensor.distributed import ProcessGroup

        if process_group is not None and not isinstance(process_group, ProcessGroup):
            raise TypeError(
                "SyncBatchNorm(): argument 'process_group' must be None or what new_group() gave, "
                f"not {type(process_group).__name__}"
            )
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _of_batch(self, input: DeviceArray, momentum: float) -> DeviceArray:
        from devtensor.nn import _sync_norm

        if not _sync_norm.several(self.process_group):
            return super()._of_batch(input, momentum)
        arrays = self.running_mean, self.running_var, self.weight, self.bias
        _C._check("batch_norm", ("input", "running_mean", "running_var", "weight", "bias"), (input, *arrays))
        _C._check_shape("batch_norm", ("input",), (input,), 0, (input.shape[0], self.num_features, *input.shape[2:]))
        return _sync_norm.normalised(input, *arrays, momentum, self.eps)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """module with a SyncBatchNorm of the same parameters and statistics in the place of each batch norm in it."""
        if not isinstance(module, Module):
            raise TypeError(f"convert_sync_batchnorm(): argument 'module' must be Module, not {type(module).__name__}")
        result: Module = module
        if isinstance(module, _BatchNorm):
            result = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                setattr(result, name, getattr(module, name))
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


class LayerNorm(Module):
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions, which are normalized_shape.

    >>> nn.LayerNorm(2)(dt.tensor([[1.0, 3.0]])).shape
    (1, 2)
    """

    weight: _Parameter | None
    bias: _Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool | None = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape: tuple[int, ...] = need_sizes("LayerNorm", "normalized_shape", normalized_shape)
        self.eps: float = _need_number("LayerNorm", "eps", eps)
        elementwise_affine = _need_bool("LayerNorm", "elementwise_affine", elementwise_affine)
        self.elementwise_affine: bool = elementwise_affine
        bias = bias is not None and _need_bool("LayerNorm", "bias", bias)
        options, shape = _float_options("LayerNorm", device, dtype), self.normalized_shape
        self.register_parameter("weight", _Parameter(_C.ones(shape, **options)) if elementwise_affine else None)
        self.register_parameter("bias", _Parameter(_C.zeros(shape, **options)) if elementwise_affine and bias else None)

    def reset_parameters(self) -> None:
        """weight 1, bias 0."""
        _reset_affine(self.weight, self.bias)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )
