"""Filling of parameters with numbers: torch.nn.init. Each function writes into its array and returns it.

The random ones take a generator and give the same numbers on every device.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed import _need_array

__all__ = [
    "calculate_gain",
    "constant_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]


def __dir__() -> list[str]:
    return __all__


Nonlinearity = Literal["linear", "conv1d", "conv2d", "conv3d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"]


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which an activation makes values smaller, to be undone by larger weights. Raises ValueError.

    >>> nn.init.calculate_gain("relu")
    1.4142135623730951
    """
    if nonlinearity in ("linear", "conv1d", "conv2d", "conv3d", "sigmoid"):
        return 1.0
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else float(param)
        return math.sqrt(2.0 / (1 + slope**2))
    gains = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
    if not isinstance(nonlinearity, str) or nonlinearity not in gains:
        raise ValueError(f"Unsupported nonlinearity {_C._shown(nonlinearity)}")
    return gains[nonlinearity]


def _calculate_fan_in_and_fan_out(tensor: DeviceArray) -> tuple[int, int]:
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _fan(tensor: DeviceArray, mode: str) -> int:
    if not isinstance(mode, str) or mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode.lower() == "fan_in" else fan_out


def _options(tensor: DeviceArray, generator: Any) -> dict[str, Any]:
    wide = _C.float64 if tensor.dtype is _C.float64 else _C.float32
    return {"dtype": wide, "device": tensor.device, "generator": generator}


def constant_(tensor: DeviceArray, val: float) -> DeviceArray:
    """Every element is val.

    >>> nn.init.constant_(dt.empty(2), 0.5)
    DeviceArray([0.5000, 0.5000], device='cpu', dtype=float32)
    """
    _need_array("constant_", "tensor", tensor)
    return tensor.fill_(val)


def zeros_(tensor: DeviceArray) -> DeviceArray:
    """Every element is 0.

    >>> nn.init.zeros_(dt.empty(2))
    DeviceArray([0., 0.], device='cpu', dtype=float32)
    """
    _need_array("zeros_", "tensor", tensor)
    return tensor.zero_()


def ones_(tensor: DeviceArray) -> DeviceArray:
    """Every element is 1.

    >>> nn.init.ones_(dt.empty(2))
    DeviceArray([1., 1.], device='cpu', dtype=float32)
    """
    _need_array("ones_", "tensor", tensor)
    return tensor.fill_(1)


def eye_(tensor: DeviceArray) -> DeviceArray:
    """A matrix with ones on its diagonal, else 0. Raises ValueError for another rank.

    >>> nn.init.eye_(dt.empty(2, 2))
    DeviceArray([[1., 0.],
                 [0., 1.]], device='cpu', dtype=float32)
    """
    _need_array("eye_", "tensor", tensor)
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return tensor.copy_(_C.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def uniform_(tensor: DeviceArray, a: float = 0.0, b: float = 1.0, generator: _C.Generator | None = None) -> DeviceArray:
    """Uniform in [a, b). Raises DTypeMismatchError for integers, RuntimeError for a above b.

    >>> bool((nn.init.uniform_(dt.empty(100), -1.0, 1.0).abs() <= 1).all())
    True
    """
    _need_array("uniform_", "tensor", tensor)
    _C._check("uniform_", ("tensor",), (tensor,))
    if not a <= b:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={a} > to={b}")
    return tensor.copy_(_C.rand(tensor.shape, **_options(tensor, generator)) * (b - a) + a)


def normal_(
    tensor: DeviceArray, mean: float = 0.0, std: float = 1.0, generator: _C.Generator | None = None
) -> DeviceArray:
    """Normal with a mean and a standard deviation. Raises DTypeMismatchError for integers, RuntimeError for std < 0.

    >>> nn.init.normal_(dt.empty(1000), std=0.02).std().item() < 0.03
    True
    """
    _need_array("normal_", "tensor", tensor)
    _C._check("normal_", ("tensor",), (tensor,))
    if not std >= 0:
        raise RuntimeError(f"normal_ expects std >= 0.0, but found std {std}")
    return tensor.copy_(_C.randn(tensor.shape, **_options(tensor, generator)) * std + mean)


def xavier_uniform_(tensor: DeviceArray, gain: float = 1.0, generator: _C.Generator | None = None) -> DeviceArray:
    """Uniform in [-a, a), a = gain * sqrt(6 / (fan in + fan out)). Raises ValueError for fewer than 2 dimensions.

    >>> bool((nn.init.xavier_uniform_(dt.empty(3, 3)).abs() <= 1).all())
    True
    """
    _need_array("xavier_uniform_", "tensor", tensor)
    fans = sum(_calculate_fan_in_and_fan_out(tensor))
    if 0 in tensor.shape:
        return tensor
    bound = gain * math.sqrt(6.0 / fans)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: DeviceArray, gain: float = 1.0, generator: _C.Generator | None = None) -> DeviceArray:
    """Normal, std = gain * sqrt(2 / (fan in + fan out)). Raises ValueError for fewer than 2 dimensions.

    >>> nn.init.xavier_normal_(dt.empty(3, 5)).shape
    (3, 5)
    """
    _need_array("xavier_normal_", "tensor", tensor)
    fans = sum(_calculate_fan_in_and_fan_out(tensor))
    if 0 in tensor.shape:
        return tensor
    std = gain * math.sqrt(2.0 / fans)
    return normal_(tensor, 0.0, std, generator)


def kaiming_uniform_(
    tensor: DeviceArray,
    a: float = 0,
    mode: Literal["fan_in", "fan_out"] = "fan_in",
    nonlinearity: Nonlinearity = "leaky_relu",
    generator: _C.Generator | None = None,
) -> DeviceArray:
    """Uniform in [-b, b), b = gain * sqrt(3 / fan). Raises ValueError for fewer than 2 dimensions.

    >>> bound = 3**0.5 / 100**0.5
    >>> bool((nn.init.kaiming_uniform_(dt.empty(8, 100), nonlinearity="linear").abs() <= bound).all())
    True
    """
    _need_array("kaiming_uniform_", "tensor", tensor)
    if 0 in tensor.shape:
        return tensor
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3.0 / _fan(tensor, mode))
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: DeviceArray,
    a: float = 0,
    mode: Literal["fan_in", "fan_out"] = "fan_in",
    nonlinearity: Nonlinearity = "leaky_relu",
    generator: _C.Generator | None = None,
) -> DeviceArray:
    """Normal, std = gain / sqrt(fan). Raises ValueError for fewer than 2 dimensions.

    >>> nn.init.kaiming_normal_(dt.empty(64, 3, 7, 7), mode="fan_out").shape
    (64, 3, 7, 7)
    """
    _need_array("kaiming_normal_", "tensor", tensor)
    if 0 in tensor.shape:
        return tensor
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode)), generator)
