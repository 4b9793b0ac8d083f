"""Activations: compiled ones with inplace=, and those that are made of several ops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, TypeAlias

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_dtype, _need_int, _need_number
from devtensor._composed.arguments import dims_of, need_array, widened
from devtensor._dtypes.autocast import autocasts
from devtensor._types import DType

_Formula: TypeAlias = Callable[[DeviceArray], DeviceArray]
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def _activated(op: str, input: DeviceArray, inplace: bool, *args: float) -> DeviceArray:
    if not _need_bool(op, "inplace", inplace):
        result: DeviceArray = getattr(_C, op)(input, *args)
        return result
    need_array(op, "input", input)
    written: DeviceArray = getattr(input, op + "_")(*args)
    return written


def relu(input: DeviceArray, inplace: bool = False) -> DeviceArray:
    """max(x, 0); NaN stays.

    >>> F.relu(dt.tensor([-1.0, 2.0]))
    DeviceArray([0., 2.], device='cpu', dtype=float32)
    """
    return _activated("relu", input, inplace)


def relu6(input: DeviceArray, inplace: bool = False) -> DeviceArray:
    """min(max(x, 0), 6); NaN stays.

    >>> F.relu6(dt.tensor([-1.0, 2.0, 9.0]))
    DeviceArray([0., 2., 6.], device='cpu', dtype=float32)
    """
    return _activated("relu6", input, inplace)


def leaky_relu(input: DeviceArray, negative_slope: float = 0.01, inplace: bool = False) -> DeviceArray:
    """x where x > 0, else negative_slope * x.

    >>> F.leaky_relu(dt.tensor([-1.0, 2.0]))
    DeviceArray([-0.0100,  2.0000], device='cpu', dtype=float32)
    """
    return _activated("leaky_relu", input, inplace, negative_slope)


def elu(input: DeviceArray, alpha: float = 1.0, inplace: bool = False) -> DeviceArray:
    """x where x > 0, else alpha * (exp(x) - 1).

    >>> F.elu(dt.tensor([-1.0, 2.0]))
    DeviceArray([-0.6321,  2.0000], device='cpu', dtype=float32)
    """
    return _activated("elu", input, inplace, alpha)


def gelu(input: DeviceArray, approximate: Literal["none", "tanh"] = "none") -> DeviceArray:
    """x times the normal distribution function of x; "tanh" approximates it.

    >>> F.gelu(dt.tensor([-1.0, 1.0]))
    DeviceArray([-0.1587,  0.8413], device='cpu', dtype=float32)
    """
    return _C.gelu(input, approximate=approximate)


def silu(input: DeviceArray, inplace: bool = False) -> DeviceArray:
    """x * sigmoid(x).

    >>> F.silu(dt.tensor([-1.0, 2.0]))
    DeviceArray([-0.2689,  1.7616], device='cpu', dtype=float32)
    """
    return _activated("silu", input, inplace)


def hardtanh(input: DeviceArray, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> DeviceArray:
    """x limited to [min_val, max_val]; NaN stays. Raises ValueError where min_val is above max_val.

    >>> F.hardtanh(dt.tensor([-3.0, 0.5, 3.0]))
    DeviceArray([-1.0000,  0.5000,  1.0000], device='cpu', dtype=float32)
    """
    return _activated("hardtanh", input, inplace, min_val, max_val)


# ---------------------------------------------------------------- of several ops


def _computed(op: str, input: DeviceArray, inplace: bool, formula: _Formula) -> DeviceArray:
    """formula of input, widened, in its dtype; with inplace written into input."""
    inplace = _need_bool(op, "inplace", inplace)
    _C._check(op, ("input",), (input,))
    return replaced(op, input, formula) if inplace else formula(widened(input)).to(input.dtype)


def replaced(op: str, input: DeviceArray, formula: _Formula) -> DeviceArray:
    """formula of input, widened, written into input. A gradient that needs what stood there reads a copy."""
    _C._check_in_place(op, ("input",), (input,), input.dtype, input.shape)
    x = input.clone() if _C.is_grad_enabled() and input.requires_grad else input
    return input.copy_(formula(widened(x)))


def selu(input: DeviceArray, inplace: bool = False) -> DeviceArray:
    """1.0507 * x where x > 0, else 1.7581 * (exp(x) - 1), so that layers keep mean 0 and variance 1.

    Floats, computed in float32 for the half types. Raises DTypeMismatchError.

    >>> F.selu(dt.tensor([-1.0, 1.0]))
    DeviceArray([-1.1113,  1.0507], device='cpu', dtype=float32)
    """
    return _computed("selu", input, inplace, selu_formula)


def selu_formula(x: DeviceArray) -> DeviceArray:
    """What selu and selu_ compute."""
    return _C.elu(x, _SELU_ALPHA) * _SELU_SCALE


def celu(input: DeviceArray, alpha: float = 1.0, inplace: bool = False) -> DeviceArray:
    """x where x > 0, else alpha * (exp(x / alpha) - 1).

    Floats, computed in float32 for the half types. Raises DTypeMismatchError, RuntimeError for an alpha of 0.

    >>> F.celu(dt.tensor([-1.0, 1.0]), 2.0)
    DeviceArray([-0.7869,  1.0000], device='cpu', dtype=float32)
    """
    return _computed("celu", input, inplace, celu_formula("celu", alpha))


def celu_formula(op: str, alpha: float) -> _Formula:
    """What celu and celu_ compute."""
    alpha = _need_number(op, "alpha", alpha)
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return lambda x: _C.relu(x) + _C.expm1(x.clamp(max=0) / alpha) * alpha


def mish(input: DeviceArray, inplace: bool = False) -> DeviceArray:
    """x * tanh(log(1 + exp(x))).

    Floats, computed in float32 for the half types. Raises DTypeMismatchError.

    >>> F.mish(dt.tensor([-1.0, 1.0]))
    DeviceArray([-0.3034,  0.8651], device='cpu', dtype=float32)
    """
    return _computed("mish", input, inplace, lambda x: x * _C.tanh(_C.softplus(x)))


def hardswish(input: DeviceArray, inplace: bool = False) -> DeviceArray:
    """x * min(max(x + 3, 0), 6) / 6.

    >>> F.hardswish(dt.tensor([-4.0, 1.0, 4.0]))
    DeviceArray([-0.0000,  0.6667,  4.0000], device='cpu', dtype=float32)
    """
    return _activated("hardswish", input, inplace)


def hardsigmoid(input: DeviceArray, inplace: bool = False) -> DeviceArray:
    """min(max(x + 3, 0), 6) / 6.

    Floats, computed in float32 for the half types. Raises DTypeMismatchError.

    >>> F.hardsigmoid(dt.tensor([-4.0, 0.0, 4.0]))
    DeviceArray([0.0000, 0.5000, 1.0000], device='cpu', dtype=float32)
    """
    return _computed("hardsigmoid", input, inplace, lambda x: _C.relu6(x + 3) / 6)


def logsigmoid(input: DeviceArray) -> DeviceArray:
    """log(1 / (1 + exp(-x))), without overflow.

    Floats, computed in float32 for the half types. Raises DTypeMismatchError.

    >>> F.logsigmoid(dt.tensor([-100.0, 0.0]))
    DeviceArray([-100.0000,   -0.6931], device='cpu', dtype=float32)
    """
    return _computed("logsigmoid", input, False, lambda x: -_C.softplus(-x, threshold=40.0))


def threshold(input: DeviceArray, threshold: float, value: float, inplace: bool = False) -> DeviceArray:
    """x where x > threshold, else value; NaN stays.

    Every dtype but bool; of integers both numbers lose their fraction. Raises DTypeMismatchError for bool.

    >>> F.threshold(dt.tensor([-1.0, 0.5, 2.0]), 1.0, 0.0)
    DeviceArray([0., 0., 2.], device='cpu', dtype=float32)
    """
    inplace = _need_bool("threshold", "inplace", inplace)
    low, put = threshold_parts("threshold", input, threshold, value)
    return input.masked_fill_(low, put) if inplace else input.masked_fill(low, put)


def threshold_parts(op: str, input: DeviceArray, threshold: float, value: float) -> tuple[DeviceArray, float]:
    """Where input is replaced, and by what."""
    threshold, value = _need_number(op, "threshold", threshold), _need_number(op, "value", value)
    need_array(op, "input", input)
    if input.dtype is _C.bool:
        _C._fail_dtype(op, ("input",), (input,), 0, "numbers")
    if not input.dtype.is_floating_point:
        threshold, value = (math.trunc(v) if math.isfinite(v) else v for v in (threshold, value))
    return input <= threshold, value


@autocasts
def prelu(input: DeviceArray, weight: DeviceArray) -> DeviceArray:
    """x where x > 0, else weight * x, with one weight or one for each channel of input (N, C, ...).

    Floats of one dtype on one device, computed in float32 for the half types; weight (), (1) or (C), where an input of
    fewer than two dimensions has one channel. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError.

    >>> F.prelu(dt.tensor([-2.0, 2.0]), dt.tensor([0.25]))
    DeviceArray([-0.5000,  2.0000], device='cpu', dtype=float32)
    """
    names, arrays = ("input", "weight"), (input, weight)
    need_array("prelu", "weight", weight)
    _C._check("prelu", names, arrays)
    _C._check_rank("prelu", names, arrays, 1, 0, 1)
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.numel() != 1:
        _C._check_shape("prelu", names, arrays, 1, (channels,))
    x, w = widened(input), widened(weight)
    if input.ndim > 1:
        w = w.reshape([-1] + [1] * (input.ndim - 2))
    # the slope meets what is not above 0 alone, so that infinities have no say in its gradient
    return _C.where(x > 0, x, x.clamp(max=0) * w.reshape(() if not input.ndim else w.shape)).to(input.dtype)


def glu(input: DeviceArray, dim: int = -1) -> DeviceArray:
    """a * sigmoid(b), where a and b are the halves of input along dim.

    Floats, computed in float32 for the half types. Raises DTypeMismatchError, ShapeMismatchError for an input without
    dimensions, IndexError for a dim out of range, RuntimeError for an odd size of dim.

    >>> F.glu(dt.tensor([1.0, 2.0, 0.0, 100.0]))
    DeviceArray([0.5000, 2.0000], device='cpu', dtype=float32)
    """
    _C._check("glu", ("input",), (input,))
    _C._check_rank("glu", ("input",), (input,), 0, 1, 8)
    (d,) = dims_of("glu", _need_int("glu", "dim", dim), input.ndim, input)
    if input.shape[d] % 2:
        text = f"Halving dimension must be even, but dimension {d} is size {input.shape[d]}"
        raise _C._explained("glu", ("input",), (input,), "invalid-argument", RuntimeError(text), 0)
    half = input.shape[d] // 2
    x = widened(input)
    return (x.narrow(d, 0, half) * _C.sigmoid(x.narrow(d, half, half))).to(input.dtype)


@autocasts
def softmin(input: DeviceArray, dim: int | None = None, *, dtype: DType | None = None) -> DeviceArray:
    """exp(-x) / sum(exp(-x)) over dim.

    Floats; with dtype integers too, which are cast to it. Raises DTypeMismatchError, IndexError for a dim out of range.

    >>> F.softmin(dt.tensor([1.0, 1.0]), 0)
    DeviceArray([0.5000, 0.5000], device='cpu', dtype=float32)
    """
    need_array("softmin", "input", input)
    if input.dtype is _C.bool:
        _C._fail_dtype("softmin", ("input",), (input,), 0, "numbers")
    if dtype is None:
        _C._check("softmin", ("input",), (input,))
    if dim is not None:
        (dim,) = dims_of("softmin", _need_int("softmin", "dim", dim), input.ndim, input)
    return _C.softmax(-input, dim, dtype=None if dtype is None else _need_dtype("softmin", "dtype", dtype))


def softsign(input: DeviceArray) -> DeviceArray:
    """x / (1 + abs(x)).

    Floats; integers give the default dtype. Raises DTypeMismatchError for bool.

    >>> F.softsign(dt.tensor([-1.0, 3.0]))
    DeviceArray([-0.5000,  0.7500], device='cpu', dtype=float32)
    """
    return _of_numbers("softsign", input, lambda x: x / (_C.abs(x) + 1))


def _of_numbers(op: str, input: DeviceArray, formula: _Formula) -> DeviceArray:
    """formula of input, widened. Raises DTypeMismatchError for bool."""
    need_array(op, "input", input)
    if input.dtype is _C.bool:
        _C._fail_dtype(op, ("input",), (input,), 0, "numbers")
    result = formula(widened(input))
    return result.to(input.dtype) if input.dtype.is_floating_point else result


def tanhshrink(input: DeviceArray) -> DeviceArray:
    """x - tanh(x).

    Floats; integers give the default dtype. Raises DTypeMismatchError for bool.

    >>> F.tanhshrink(dt.tensor([0.0, 2.0]))
    DeviceArray([0.0000, 1.0360], device='cpu', dtype=float32)
    """
    return _of_numbers("tanhshrink", input, lambda x: x - _C.tanh(x))


def hardshrink(input: DeviceArray, lambd: float = 0.5) -> DeviceArray:
    """x where abs(x) > lambd, else 0; NaN stays. Floats. Raises DTypeMismatchError.

    >>> F.hardshrink(dt.tensor([-1.0, 0.25, 2.0]))
    DeviceArray([-1.,  0.,  2.], device='cpu', dtype=float32)
    """
    _C._check("hardshrink", ("input",), (input,))
    return input.masked_fill(_C.abs(input) <= _need_number("hardshrink", "lambd", lambd), 0)


def softshrink(input: DeviceArray, lambd: float = 0.5) -> DeviceArray:
    """x - lambd where x > lambd, x + lambd where x < -lambd, else 0; NaN stays.

    Floats. Raises DTypeMismatchError, RuntimeError for a lambd below 0.

    >>> F.softshrink(dt.tensor([-1.0, 0.25, 2.0]))
    DeviceArray([-0.5000,  0.0000,  1.5000], device='cpu', dtype=float32)
    """
    lambd = _need_number("softshrink", "lambd", lambd)
    _C._check("softshrink", ("input",), (input,))
    if not lambd >= 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    x = widened(input)
    return (x - x.clamp(-lambd, lambd)).to(input.dtype)


__all__ = [
    "celu",
    "hardshrink",
    "prelu",
    "selu",
    "threshold",
]
METHODS = (
    hardshrink,
    prelu,
)
