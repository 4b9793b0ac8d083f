"""Activations with inplace=."""

from __future__ import annotations

from typing import Literal

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool
from devtensor._composed.arguments import need_array


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
