"""What layers compute: conv1d, normalisation, dropout, one_hot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_ints, _need_number, conv2d
from devtensor._composed.arguments import dims_of, for_kernel, need_array, need_sizes, widened
from devtensor._composed.reductions.moments import norm
from devtensor._composed.written import takes_out
from devtensor._diagnosis import watching
from devtensor._dtypes.autocast import autocasts
from devtensor.autograd.grad_mode import no_grad

_One: TypeAlias = int | Sequence[int]


def _single(name: str, value: Any) -> int:
    ints = _need_ints("conv1d", name, value)
    if len(ints) != 1:
        raise ValueError(f"conv1d(): argument '{name}' must be an int or one int in a sequence, not {len(ints)}")
    return ints[0]


@autocasts
def conv1d(
    input: DeviceArray,
    weight: DeviceArray,
    bias: DeviceArray | None = None,
    stride: _One = 1,
    padding: _One | Literal["same", "valid"] = 0,
    dilation: _One = 1,
    groups: int = 1,
) -> DeviceArray:
    """Cross-correlation of rows: input (N, C, L) or (C, L), weight (K, C / groups, R), bias (K): (N, K, P) or (K, P).

    Floats of one dtype on one device. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, RuntimeError
    for other parameters that do not fit.

    >>> F.conv1d(dt.tensor([[1.0, 2.0, 3.0]]), dt.ones(1, 1, 2))
    DeviceArray([[3., 5.]], device='cpu', dtype=float32)
    """
    names, arrays = ("input", "weight", "bias"), (input, weight, bias)
    need_array("conv1d", "weight", weight)
    _C._check("conv1d", names, arrays, convolution=True)
    _C._check_rank("conv1d", names, arrays, 0, 2, 3)
    _C._check_rank("conv1d", names, arrays, 1, 3, 3)
    step, spread = _single("stride", stride), _single("dilation", dilation)
    if step <= 0 or spread <= 0:
        raise RuntimeError(f"conv1d: stride and dilation must be positive, but got {step} and {spread}")
    reach = spread * (weight.shape[2] - 1) + 1
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise RuntimeError("conv1d: padding must be numbers, 'same' or 'valid'")
        if padding == "same" and step != 1:
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        added = reach - 1 if padding == "same" else 0
        wanted: Any = padding
    else:
        around = _single("padding", padding)
        if around < 0:
            raise RuntimeError("negative padding is not supported")
        added, wanted = 2 * around, (0, around)
    for name, value, size in (("padding", padding, input.shape[-1] + added), ("dilation", spread, reach)):
        if size >= 2**63:
            raise RuntimeError(f"{name}={value} is too large: sizes of the padded input must fit in 64 bits")
    _C._check_conv1d("conv1d", names, arrays, groups, input.shape[-1] + added, reach)
    rows = conv2d(input.unsqueeze(-2), weight.unsqueeze(-2), bias, (1, step), wanted, (1, spread), groups)
    return rows.squeeze(-2)


_STRETCH = 16  # numbers of a channel that lie side by side, from which on it is read by itself


@autocasts
def batch_norm(
    input: DeviceArray,
    running_mean: DeviceArray | None,
    running_var: DeviceArray | None,
    weight: DeviceArray | None = None,
    bias: DeviceArray | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> DeviceArray:
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel of input (N, C, ...).

    Mean and variance are the running ones; with training those of the batch, and the running ones are updated in
    place. Floats of one dtype on one device, computed in float32 for the half types. Raises DeviceMismatchError,
    DTypeMismatchError, ShapeMismatchError, ValueError for one value per channel in training, one running number without
    the other, an eps below 0 or, in training, of 0. A batch of no elements leaves the running ones as they are.

    >>> x = dt.tensor([[1.0], [3.0]])
    >>> F.batch_norm(x, dt.tensor([2.0]), dt.tensor([1.0]))
    DeviceArray([[-1.0000],
                 [ 1.0000]], device='cpu', dtype=float32)
    """
    training = _need_bool("batch_norm", "training", training)
    momentum = _need_number("batch_norm", "momentum", momentum)
    eps = _need_number("batch_norm", "eps", eps)
    if eps < 0 or (training and eps == 0):
        what = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm eps must be {what}, but got {eps}")
    if not training and running_mean is not None and running_var is not None:
        return _C._batch_norm(input, running_mean, running_var, weight, bias, eps)
    names = ("input", "running_mean", "running_var", "weight", "bias")
    _C._check("batch_norm", names, (input, running_mean, running_var, weight, bias), channels=True)
    if not training:
        raise RuntimeError("batch_norm: running_mean and running_var must be given in evaluation mode")
    need_both_running(running_mean, running_var)
    channels = input.shape[1]
    count = input.shape[0] * math.prod(input.shape[2:])
    if count == 1:
        text = f"Expected more than 1 value per channel when training, got input size {input.shape}"
        raise _C._explained("batch_norm", ("input",), (input,), "invalid-argument", ValueError(text))
    if not input.numel():  # nothing that the running ones could follow
        none = _C.zeros(channels, dtype=input.dtype, device=input.device)
        return _C._batch_norm(input, none, none, weight, bias, 1.0)
    x, dims = widened(input), [d for d in range(input.ndim) if d != 1]
    if x.is_contiguous() and count >= _STRETCH * input.shape[0]:
        stats = _C.empty(2, channels, dtype=x.dtype, device=x.device)
        wide = [None if a is None else widened(a) for a in (weight, bias)]
        result = _C._normalize_channels(x, wide[0], wide[1], stats, eps)
        if running_mean is not None and running_var is not None:
            _follow((running_mean, running_var), (stats[0], stats[1]), momentum)
        return result.to(input.dtype)
    mean = x.mean(dims, keepdim=True)
    distance = x - mean
    var = distance.square().mean(dims, keepdim=True)  # a sum of squares may leave the dtype where their mean does not
    _update(running_mean, mean.reshape(channels), momentum)
    _update(running_var, var.reshape(channels) * (count / (count - 1)), momentum)
    view = (1, channels) + (1,) * (input.ndim - 2)
    scale = (var + eps).rsqrt()
    return _affine(
        distance,
        scale if weight is None else scale * weight.reshape(view),
        None if bias is None else bias.reshape(view),
    ).to(input.dtype)


def need_both_running(mean: DeviceArray | None, var: DeviceArray | None) -> None:
    if (mean is None) != (var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")


def _affine(x: DeviceArray, scale: DeviceArray | None, shift: DeviceArray | None) -> DeviceArray:
    """x * scale + shift, in place where no gradient needs x."""
    if _C.is_grad_enabled() and any(a is not None and a.requires_grad for a in (x, scale, shift)):
        x = x if scale is None else x * scale
        return x if shift is None else x + shift
    if scale is not None and shift is not None:
        return _C._affine_(x, scale, shift)
    if scale is not None:
        x *= scale
    if shift is not None:
        x += shift
    return x


def _follow(running: tuple[DeviceArray, ...], batch: tuple[DeviceArray, ...], momentum: float) -> None:
    """_update of all at once, where their dtype is that of the batch."""
    if any(a.dtype is not b.dtype for a, b in zip(running, batch, strict=True)):
        for a, b in zip(running, batch, strict=True):
            _update(a, b, momentum)
        return
    with no_grad():
        numbers = {"kept": 1 - momentum, "fresh": momentum}
        _C._update("running", running, batch, (), numbers, tuple(range(len(running))))


def _update(running: DeviceArray | None, batch: DeviceArray, momentum: float) -> None:
    if running is not None:
        with no_grad():
            running.copy_(widened(running) * (1 - momentum) + batch * momentum)


@autocasts
def layer_norm(
    input: DeviceArray,
    normalized_shape: int | Sequence[int],
    weight: DeviceArray | None = None,
    bias: DeviceArray | None = None,
    eps: float = 1e-5,
) -> DeviceArray:
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions of input, which are normalized_shape.

    weight and bias have that shape. Floats of one dtype on one device, computed in float32 for the half types. Raises
    DeviceMismatchError, DTypeMismatchError, ShapeMismatchError.

    >>> F.layer_norm(dt.tensor([[1.0, 3.0]]), 2)
    DeviceArray([[-1.0000,  1.0000]], device='cpu', dtype=float32)
    """
    shape = need_sizes("layer_norm", "normalized_shape", normalized_shape)
    eps = _need_number("layer_norm", "eps", eps)
    names, arrays = ("input", "weight", "bias"), (input, weight, bias)
    _C._check("layer_norm", names, arrays)
    if not shape:
        raise RuntimeError("Expected normalized_shape to be at least 1-dimensional, but got ()")
    _C._check_rank("layer_norm", names, arrays, 0, len(shape), 64)
    lead = input.ndim - len(shape)
    _C._check_shape("layer_norm", names, arrays, 0, [-1] * lead + list(shape))
    for i, array in enumerate(arrays[1:], 1):
        if array is not None:
            _C._check_shape("layer_norm", names, arrays, i, shape)
    x, (scale, shift) = for_kernel(input, weight, bias)
    return _C._layer_norm(x, scale, shift, lead, eps, True).to(input.dtype)


@takes_out
def normalize(
    input: DeviceArray,
    p: float = 2.0,
    dim: int | Sequence[int] | None = 1,
    eps: float = 1e-12,
    *,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """input / max(its norm over dim, eps). Floats. Raises DTypeMismatchError, IndexError.

    >>> F.normalize(dt.tensor([[3.0, 4.0]]))
    DeviceArray([[0.6000, 0.8000]], device='cpu', dtype=float32)
    """
    _C._check("normalize", ("input",), (input,))
    order, least = _need_number("normalize", "p", p), _need_number("normalize", "eps", eps)
    dims = dims_of("normalize", dim, input.ndim, input)
    return input / norm(input, order, dims, keepdim=True).clamp(min=least)


def need_probability(op: str, p: float, name: str = "p") -> float:
    """p of dropout, a number from 0 to 1. Raises ValueError for another."""
    p = _need_number(op, name, p)
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return p


def dropout(input: DeviceArray, p: float = 0.5, training: bool = True, inplace: bool = False) -> DeviceArray:
    """In training each element is 0 with probability p, else divided by 1 - p; input itself otherwise.

    Raises ValueError for a p that is not a probability, DTypeMismatchError for integers in training.

    >>> F.dropout(dt.ones(3), p=0.5, training=False)
    DeviceArray([1., 1., 1.], device='cpu', dtype=float32)
    """
    p = need_probability("dropout", p)
    training, inplace = _need_bool("dropout", "training", training), _need_bool("dropout", "inplace", inplace)
    if not training or p == 0.0:
        return input
    result = _C._dropout(input, p)
    if watching.report is not None and not _C.is_grad_enabled():
        watching.report.dropped()
    return input.copy_(result) if inplace else result


def one_hot(tensor: DeviceArray, num_classes: int = -1) -> DeviceArray:
    """int64 array (*, num_classes): 1 at the places of tensor, int64 of shape (*), else 0.

    With -1 the largest value decides, which is read from the device. Raises DTypeMismatchError, and IndexError on the
    cpu for a value out of range.

    >>> F.one_hot(dt.tensor([0, 2]), 3)
    DeviceArray([[1, 0, 0],
                 [0, 0, 1]], device='cpu', dtype=int64)
    """
    need_array("one_hot", "tensor", tensor)
    if tensor.dtype is not _C.int64:
        _C._fail_dtype("one_hot", ("tensor",), (tensor,), 0, "int64")
    num_classes = _need_int("one_hot", "num_classes", num_classes)
    if num_classes < 0:
        if tensor.numel() == 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        num_classes = int(tensor.max()) + 1
    if not tensor.is_cuda and tensor.numel() and not 0 <= int(tensor.amin()) <= int(tensor.amax()) < num_classes:
        text = f"one_hot(): class values must be at least 0 and smaller than num_classes ({num_classes})"
        raise _C._explained("one_hot", ("tensor",), (tensor,), "index-out-of-range", IndexError(text))
    classes = _C.arange(num_classes, device=tensor.device)
    return (tensor.unsqueeze(-1) == classes).to(_C.int64)


__all__ = [
    "batch_norm",
    "conv1d",
    "dropout",
    "layer_norm",
]
