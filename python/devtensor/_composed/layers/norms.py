"""Normalisation of groups of channels, of samples, and of neighbouring channels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number
from devtensor._composed.arguments import for_kernel, need_sizes, widened
from devtensor._composed.layers.basic import _affine, _update, batch_norm, need_both_running
from devtensor._composed.shapes.arrange import pad
from devtensor._dtypes.autocast import autocasts

_LONG = 1 << 10  # from so many elements on a product of a row with itself is faster than squares and their mean
_FEW = 8  # with fewer pixels a call for each channel takes longer than what it saves
_EPSILON = {_C.float64: 2.0**-52}


def _mean_of_squares(rows: DeviceArray) -> DeviceArray:
    """Of each row of (rows, n): (rows, 1)."""
    if rows.is_cuda or rows.shape[1] < _LONG or (_C.is_grad_enabled() and rows.requires_grad):
        return rows.square().mean(1, keepdim=True)
    return _C.bmm(rows.unsqueeze(1), rows.unsqueeze(2)).squeeze(2) / rows.shape[1]


def _normalised(
    input: DeviceArray,
    groups: int,
    weight: DeviceArray | None,
    bias: DeviceArray | None,
    eps: float,
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """input (N, C, ...) with mean 0 and variance 1 in each group of channels; the means and variances, (N, groups)."""
    n, channels, *rest = input.shape
    each, pixels = channels // max(groups, 1), math.prod(rest)
    rows = widened(input).reshape(n * groups, each * pixels)
    mean = rows.mean(1, keepdim=True)
    distance = rows - mean
    var = _mean_of_squares(distance)
    scale = (var + eps).rsqrt()
    if weight is not None or bias is not None:
        distance, scale = distance.reshape(n, groups, each, pixels), scale.reshape(n, groups, 1, 1)
    by_channel = (1, groups, each, 1)
    result = _affine(
        distance,
        scale if weight is None else scale * weight.reshape(by_channel),
        None if bias is None else bias.reshape(by_channel),
    )
    return result.reshape(input.shape).to(input.dtype), mean.reshape(n, groups), var.reshape(n, groups)


def _of_groups(
    input: DeviceArray, groups: int, weight: DeviceArray | None, bias: DeviceArray | None, eps: float
) -> DeviceArray:
    n, channels, *rest = input.shape
    pixels = math.prod(rest)
    if pixels < _FEW and not input.is_cuda:
        return _normalised(input, groups, weight, bias, eps)[0]
    each = channels // max(groups, 1)
    x, affine = for_kernel(input, weight, bias)
    scale, shift = (None if a is None else a.reshape(groups, each) for a in affine)
    result = _C._group_norm(x.reshape(n, groups, each, pixels), scale, shift, eps)
    return result.reshape(input.shape).to(input.dtype)


@autocasts
def group_norm(
    input: DeviceArray,
    num_groups: int,
    weight: DeviceArray | None = None,
    bias: DeviceArray | None = None,
    eps: float = 1e-5,
) -> DeviceArray:
    """(x - mean) / sqrt(var + eps) * weight + bias over each of num_groups groups of the channels of input (N, C, ...).

    weight and bias (C). Floats of one dtype on one device, computed in float32 for the half types. Raises
    DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, RuntimeError where the groups do not divide the
    channels, ValueError for a single element.

    >>> F.group_norm(dt.tensor([[1.0, 3.0, 2.0, 6.0]]), 2)
    DeviceArray([[-1.0000,  1.0000, -1.0000,  1.0000]], device='cpu', dtype=float32)
    """
    op, names, arrays = "group_norm", ("input", "weight", "bias"), (input, weight, bias)
    num_groups, eps = _need_int(op, "num_groups", num_groups), _need_number(op, "eps", eps)
    _check_affine(op, names, arrays)
    channels = input.shape[1]
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if channels % num_groups:
        text = (
            "Expected number of channels in input to be divisible by num_groups, "
            f"but got input of shape {list(input.shape)} and num_groups={num_groups}"
        )
        raise _C._explained(op, names, arrays, "invalid-argument", RuntimeError(text), 0)
    _need_several(op, input, input.shape[0] * channels // num_groups * math.prod(input.shape[2:]), "value per channel")
    return _of_groups(input, num_groups, weight, bias, eps)


def _check_affine(op: str, names: tuple[str, ...], arrays: tuple[DeviceArray | None, ...]) -> None:
    """One device and dtype; the first (N, C, ...), the others (C)."""
    _C._check(op, names, arrays)
    _C._check_rank(op, names, arrays, 0, 2, 8)
    for which, array in enumerate(arrays[1:], 1):
        if array is not None:
            _C._check_rank(op, names, arrays, which, 1, 1)
    _C._check(op, names, arrays, channels=True)


def _need_several(op: str, input: DeviceArray, count: int, what: str) -> None:
    if count == 1:
        text = f"Expected more than 1 {what} when training, got input size {list(input.shape)}"
        raise _C._explained(op, ("input",), (input,), "invalid-argument", ValueError(text))


@autocasts
def instance_norm(
    input: DeviceArray,
    running_mean: DeviceArray | None = None,
    running_var: DeviceArray | None = None,
    weight: DeviceArray | None = None,
    bias: DeviceArray | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> DeviceArray:
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel of each sample of input (N, C, ...).

    With use_input_stats mean and variance are those of the channel, and the running ones, where given, follow their
    means over the samples in place; else they are the running ones. Floats of one dtype on one device, computed in
    float32 for the half types. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, ValueError for
    channels of one element and for one running number without the other.

    >>> F.instance_norm(dt.tensor([[[1.0, 3.0]]]))
    DeviceArray([[[-1.0000,  1.0000]]], device='cpu', dtype=float32)
    """
    op, names = "instance_norm", ("input", "running_mean", "running_var", "weight", "bias")
    arrays = (input, running_mean, running_var, weight, bias)
    use_input_stats = _need_bool(op, "use_input_stats", use_input_stats)
    momentum, eps = _need_number(op, "momentum", momentum), _need_number(op, "eps", eps)
    _check_affine(op, names, arrays)
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    need_both_running(running_mean, running_var)
    count = math.prod(input.shape[2:])
    _need_several(op, input, count, "spatial element")
    if running_mean is None:
        return _of_groups(input, input.shape[1], weight, bias, eps)
    result, mean, var = _normalised(input, input.shape[1], weight, bias, eps)
    _update(running_mean, mean.mean(0), momentum)
    _update(running_var, var.mean(0) * (count / (count - 1) if count else 1.0), momentum)
    return result


@autocasts
def rms_norm(
    input: DeviceArray,
    normalized_shape: int | Sequence[int],
    weight: DeviceArray | None = None,
    eps: float | None = None,
) -> DeviceArray:
    """x / sqrt(mean(x ** 2) + eps) * weight over the last dimensions of input, which are normalized_shape.

    weight has that shape; eps is by default the distance of 1 from the next number of the dtype that is computed in,
    float32 for the half types. Floats of one dtype on one device. Raises DeviceMismatchError, DTypeMismatchError,
    ShapeMismatchError.

    >>> F.rms_norm(dt.tensor([[3.0, 4.0]]), 2)
    DeviceArray([[0.8485, 1.1314]], device='cpu', dtype=float32)
    """
    op, names, arrays = "rms_norm", ("input", "weight"), (input, weight)
    shape = need_sizes(op, "normalized_shape", normalized_shape)
    small = None if eps is None else _need_number(op, "eps", eps)
    _C._check(op, names, arrays)
    if not shape:
        raise RuntimeError("Expected normalized_shape to be at least 1-dimensional, but got ()")
    _C._check_rank(op, names, arrays, 0, len(shape), 64)
    lead = input.ndim - len(shape)
    _C._check_shape(op, names, arrays, 0, [-1] * lead + list(shape))
    if weight is not None:
        _C._check_shape(op, names, arrays, 1, shape)
    if small is None:
        small = _EPSILON.get(input.dtype, 2.0**-23)
    x, (wide,) = for_kernel(input, weight)
    return _C._rms_norm(x, wide, None, lead, small, False).to(input.dtype)


def local_response_norm(
    input: DeviceArray, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> DeviceArray:
    """x / (k + alpha * mean of x ** 2 over size neighbouring channels) ** beta, for input (N, C, ...).

    Channels beyond the ends count as 0. Floats, computed in float32 for the half types. Raises DTypeMismatchError,
    ValueError for fewer than three dimensions.

    >>> F.local_response_norm(dt.ones(1, 2, 1), 2, alpha=1.0, beta=1.0)
    DeviceArray([[[0.6667],
                  [0.5000]]], device='cpu', dtype=float32)
    """
    op = "local_response_norm"
    size, alpha = _need_int(op, "size", size), _need_number(op, "alpha", alpha)
    beta, k = _need_number(op, "beta", beta), _need_number(op, "k", k)
    _C._check(op, ("input",), (input,))
    if input.ndim < 3:
        text = f"Expected 3D or higher dimensionality input (got {input.ndim} dimensions)"
        raise _C._explained(op, ("input",), (input,), "invalid-argument", ValueError(text))
    if size <= 0:
        raise RuntimeError(f"{op}: size must be greater than zero, but got {size}")
    if not input.numel():
        return input
    x = widened(input)
    n, channels = input.shape[:2]
    squares = pad(x.square().reshape(n, 1, channels, -1), (0, 0, size // 2, (size - 1) // 2))
    means = _C.avg_pool2d(squares, (size, 1), stride=1).reshape(input.shape)
    return (x / (means * alpha + k) ** beta).to(input.dtype)


__all__ = [
    "group_norm",
    "instance_norm",
    "rms_norm",
]
