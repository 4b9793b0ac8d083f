"""What layers draw in training: slopes, samples of classes, and which features are left out."""

from __future__ import annotations

import math
import warnings

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number
from devtensor._composed.arguments import dims_of, need_array, widened
from devtensor._composed.creating.sampling import _exponential
from devtensor._composed.elementwise.activations import replaced
from devtensor._composed.layers.basic import need_probability
from devtensor._diagnosis import watching

_SELU_LEAST = -1.7580993408473766  # what selu of minus infinity is: what is left out becomes that


def rrelu(
    input: DeviceArray,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> DeviceArray:
    """x where x > 0, else slope * x: in training a slope for each element, uniform in [lower, upper], else their mean.

    Floats, computed in float32 for the half types. Raises DTypeMismatchError, RuntimeError for a lower above upper.

    >>> F.rrelu(dt.tensor([-1.0, 2.0]), 0.1, 0.3)
    DeviceArray([-0.2000,  2.0000], device='cpu', dtype=float32)
    """
    return _sloped("rrelu", input, lower, upper, training, _need_bool("rrelu", "inplace", inplace))


def _sloped(op: str, input: DeviceArray, lower: float, upper: float, training: bool, inplace: bool) -> DeviceArray:
    lower, upper = _need_number(op, "lower", lower), _need_number(op, "upper", upper)
    training = _need_bool(op, "training", training)
    _C._check(op, ("input",), (input,))
    if not lower <= upper:
        raise RuntimeError(f"Lower bound should be less than or equal to the upper bound, but got {lower} and {upper}")

    def formula(x: DeviceArray) -> DeviceArray:
        if not training:
            return _C.leaky_relu(x, (lower + upper) / 2)
        slope = _C.rand(x.shape, dtype=x.dtype, device=x.device) * (upper - lower) + lower
        return _C.where(x > 0, x, x * slope)

    return replaced(op, input, formula) if inplace else formula(widened(input)).to(input.dtype)


def rrelu_(input: DeviceArray, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> DeviceArray:
    """rrelu, written into input. Floats. Raises DTypeMismatchError, RuntimeError for a lower above upper.

    >>> F.rrelu_(dt.tensor([-1.0, 2.0]), 0.1, 0.3)
    DeviceArray([-0.2000,  2.0000], device='cpu', dtype=float32)
    """
    return _sloped("rrelu_", input, lower, upper, training, True)


def gumbel_softmax(
    logits: DeviceArray, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> DeviceArray:
    """softmax((logits + g) / tau) over dim, where g are Gumbel numbers, -log of exponential ones.

    With hard the largest becomes 1 and the others 0, while gradients are those of the soft one. Floats. Raises
    DTypeMismatchError, IndexError for a dim out of range; an eps is ignored with a warning.

    >>> F.gumbel_softmax(dt.tensor([0.0, 100.0]), hard=True)
    DeviceArray([0., 1.], device='cpu', dtype=float32)
    """
    op = "gumbel_softmax"
    tau, hard = _need_number(op, "tau", tau), _need_bool(op, "hard", hard)
    if _need_number(op, "eps", eps) != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    _C._check(op, ("logits",), (logits,))
    (d,) = dims_of(op, _need_int(op, "dim", dim), logits.ndim, logits)
    x = widened(logits)
    soft = _C.softmax((x - _exponential(x, None).log()) / tau, d)
    if hard:
        places = _C.arange(soft.shape[d] if soft.ndim else 1, device=soft.device)
        places = places.reshape([-1] + [1] * (soft.ndim - 1 - d)) if soft.ndim else places.reshape(())
        first = soft.detach().argmax(d, keepdim=True)
        soft = (places == first).to(soft.dtype) - soft.detach() + soft
    return soft.to(logits.dtype)


# ---------------------------------------------------------------- dropouts


def _dropped(
    op: str, input: DeviceArray, p: float, training: bool, inplace: bool, features: bool, alpha: bool = False
) -> DeviceArray:
    """input with elements, or whole features (n, c), left out: 0, or with alpha what keeps mean and variance."""
    p = need_probability(op, p)
    training, inplace = _need_bool(op, "training", training), _need_bool(op, "inplace", inplace)
    if not training or p == 0.0:
        return input
    _C._check(op, ("input",), (input,))
    _C._check_rank(op, ("input",), (input,), 0, 2 if features else 0, 8)
    if watching.report is not None and not _C.is_grad_enabled():
        watching.report.dropped()
    shape = [*input.shape[:2], *[1] * (input.ndim - 2)] if features else input.shape
    keep = _C.rand(shape, dtype=_C.float32, device=input.device) >= p
    x = widened(input)
    if p == 1.0:
        result = _C.where(keep, x, 0.0)
    elif alpha:
        scale = 1 / math.sqrt((_SELU_LEAST**2 * p + 1) * (1 - p))
        shift = -scale * _SELU_LEAST * p
        result = _C.where(keep, x * scale + shift, scale * _SELU_LEAST + shift)
    else:
        result = _C.where(keep, x * (1 / (1 - p)), 0.0)
    return input.copy_(result) if inplace else result.to(input.dtype)


def dropout1d(input: DeviceArray, p: float = 0.5, training: bool = True, inplace: bool = False) -> DeviceArray:
    """In training each channel of input (N, C, L) or (C, L) is 0 with probability p, else divided by 1 - p.

    Raises ValueError for a p that is not a probability, DTypeMismatchError for integers in training,
    ShapeMismatchError.

    >>> F.dropout1d(dt.ones(2, 3), training=False).shape
    (2, 3)
    """
    _C._check_rank("dropout1d", ("input",), (input,), 0, 2, 3)
    return _channels_dropped("dropout1d", input, 2, p, training, inplace)


def _channels_dropped(op: str, input: DeviceArray, single: int, p: float, training: bool, inplace: bool) -> DeviceArray:
    """Without channels of input, which is one sample where it has `single` dimensions."""
    if input.ndim != single:
        return _dropped(op, input, p, training, inplace, True)
    result = _dropped(op, input.unsqueeze(0), p, training, inplace, True)
    return input if inplace else result.squeeze(0)


def dropout2d(input: DeviceArray, p: float = 0.5, training: bool = True, inplace: bool = False) -> DeviceArray:
    """In training each channel of input (N, C, H, W) is 0 with probability p, else divided by 1 - p.

    Three dimensions are read as (N, C, L), as in PyTorch, with a warning. Raises ValueError for a p that is not a
    probability, DTypeMismatchError for integers in training, ShapeMismatchError for fewer than two dimensions.

    >>> F.dropout2d(dt.ones(1, 2, 3, 3), training=False).shape
    (1, 2, 3, 3)
    """
    _C._check_rank("dropout2d", ("input",), (input,), 0, 2, 8)
    if input.ndim == 3:
        text = "dropout2d: a 3-D input is read as (N, C, L), not as (C, H, W); dropout1d says so"
        warnings.warn(text, stacklevel=2)
    elif input.ndim != 4:
        warnings.warn(f"dropout2d: a {input.ndim}-D input is read as (N, C, ...)", stacklevel=2)
    return _dropped("dropout2d", input, p, training, inplace, True)


def dropout3d(input: DeviceArray, p: float = 0.5, training: bool = True, inplace: bool = False) -> DeviceArray:
    """In training each channel of input (N, C, D, H, W) or (C, D, H, W) is 0 with probability p, else divided by 1 - p.

    Raises ValueError for a p that is not a probability, DTypeMismatchError for integers in training,
    ShapeMismatchError for fewer than two dimensions.

    >>> F.dropout3d(dt.ones(1, 2, 3, 3, 3), training=False).shape
    (1, 2, 3, 3, 3)
    """
    _C._check_rank("dropout3d", ("input",), (input,), 0, 2, 8)
    if input.ndim not in (4, 5):
        warnings.warn(f"dropout3d: a {input.ndim}-D input is read as (N, C, ...)", stacklevel=2)
    return _channels_dropped("dropout3d", input, 4, p, training, inplace)


def alpha_dropout(input: DeviceArray, p: float = 0.5, training: bool = False, inplace: bool = False) -> DeviceArray:
    """In training each element becomes the least value of selu with probability p; all are then scaled and shifted.

    So the mean 0 and the variance 1 of what selu gives are kept. Raises ValueError for a p that is not a probability,
    DTypeMismatchError for integers in training.

    >>> F.alpha_dropout(dt.ones(3), training=False)
    DeviceArray([1., 1., 1.], device='cpu', dtype=float32)
    """
    need_array("alpha_dropout", "input", input)
    return _dropped("alpha_dropout", input, p, training, inplace, False, True)


def feature_alpha_dropout(
    input: DeviceArray, p: float = 0.5, training: bool = False, inplace: bool = False
) -> DeviceArray:
    """alpha_dropout of whole channels of input (N, C, ...).

    Raises ValueError for a p that is not a probability, DTypeMismatchError for integers in training,
    ShapeMismatchError for fewer than two dimensions in training.

    >>> F.feature_alpha_dropout(dt.ones(1, 3, 2), training=False).shape
    (1, 3, 2)
    """
    need_array("feature_alpha_dropout", "input", input)
    return _dropped("feature_alpha_dropout", input, p, training, inplace, True, True)


__all__ = [
    "alpha_dropout",
    "feature_alpha_dropout",
    "rrelu",
    "rrelu_",
]
