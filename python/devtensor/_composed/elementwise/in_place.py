"""Activations that write into their input, as functions."""

from __future__ import annotations

from devtensor import _C
from devtensor._C import DeviceArray, _need_number
from devtensor._composed.arguments import need_array
from devtensor._composed.elementwise.activations import celu_formula, replaced, selu_formula, threshold_parts


def relu_(input: DeviceArray) -> DeviceArray:
    """max(x, 0), written into input; NaN stays.

    >>> F.relu_(dt.tensor([-1.0, 2.0]))
    DeviceArray([0., 2.], device='cpu', dtype=float32)
    """
    need_array("relu_", "input", input)
    return input.relu_()


def leaky_relu_(input: DeviceArray, negative_slope: float = 0.01) -> DeviceArray:
    """x where x > 0, else negative_slope * x, written into input.

    >>> F.leaky_relu_(dt.tensor([-1.0, 2.0]))
    DeviceArray([-0.0100,  2.0000], device='cpu', dtype=float32)
    """
    need_array("leaky_relu_", "input", input)
    return input.leaky_relu_(_need_number("leaky_relu_", "negative_slope", negative_slope))


def elu_(input: DeviceArray, alpha: float = 1.0) -> DeviceArray:
    """x where x > 0, else alpha * (exp(x) - 1), written into input.

    >>> F.elu_(dt.tensor([-1.0, 2.0]))
    DeviceArray([-0.6321,  2.0000], device='cpu', dtype=float32)
    """
    need_array("elu_", "input", input)
    return input.elu_(_need_number("elu_", "alpha", alpha))


def hardtanh_(input: DeviceArray, min_val: float = -1.0, max_val: float = 1.0) -> DeviceArray:
    """x limited to [min_val, max_val], written into input; NaN stays. Raises ValueError where min_val is above max_val.

    >>> F.hardtanh_(dt.tensor([-3.0, 0.5, 3.0]))
    DeviceArray([-1.0000,  0.5000,  1.0000], device='cpu', dtype=float32)
    """
    need_array("hardtanh_", "input", input)
    low, high = _need_number("hardtanh_", "min_val", min_val), _need_number("hardtanh_", "max_val", max_val)
    return input.hardtanh_(low, high)


def selu_(input: DeviceArray) -> DeviceArray:
    """1.0507 * x where x > 0, else 1.7581 * (exp(x) - 1), written into input. Floats. Raises DTypeMismatchError.

    >>> F.selu_(dt.tensor([-1.0, 1.0]))
    DeviceArray([-1.1113,  1.0507], device='cpu', dtype=float32)
    """
    _C._check("selu_", ("input",), (input,))
    return replaced("selu_", input, selu_formula)


def celu_(input: DeviceArray, alpha: float = 1.0) -> DeviceArray:
    """x where x > 0, else alpha * (exp(x / alpha) - 1), written into input.

    Floats. Raises DTypeMismatchError, RuntimeError for an alpha of 0.

    >>> F.celu_(dt.tensor([-1.0, 1.0]), 2.0)
    DeviceArray([-0.7869,  1.0000], device='cpu', dtype=float32)
    """
    _C._check("celu_", ("input",), (input,))
    return replaced("celu_", input, celu_formula("celu_", alpha))


def threshold_(input: DeviceArray, threshold: float, value: float) -> DeviceArray:
    """x where x > threshold, else value, written into input; NaN stays. Raises DTypeMismatchError for bool.

    >>> F.threshold_(dt.tensor([-1.0, 0.5, 2.0]), 1.0, 0.0)
    DeviceArray([0., 0., 2.], device='cpu', dtype=float32)
    """
    low, put = threshold_parts("threshold_", input, threshold, value)
    return input.masked_fill_(low, put)


__all__ = [
    "celu_",
    "relu_",
    "selu_",
    "threshold_",
]
