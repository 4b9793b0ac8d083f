"""Activations as modules."""

from __future__ import annotations

import warnings
from typing import Literal

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number, _need_str
from devtensor.nn import functional as F
from devtensor.nn.module import Module


class _InPlace(Module):
    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = _need_bool(type(self).__name__, "inplace", inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_InPlace):
    """max(x, 0).

    >>> nn.ReLU()(dt.tensor([-1.0, 2.0]))
    DeviceArray([0., 2.], device='cpu', dtype=float32)
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        return input.relu_() if self.inplace else _C.relu(input)


class ReLU6(_InPlace):
    """min(max(x, 0), 6).

    >>> nn.ReLU6()(dt.tensor([-1.0, 2.0, 9.0]))
    DeviceArray([0., 2., 6.], device='cpu', dtype=float32)
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.relu6(input, self.inplace)


class SiLU(_InPlace):
    """x * sigmoid(x).

    >>> nn.SiLU()(dt.tensor([-1.0, 2.0]))
    DeviceArray([-0.2689,  1.7616], device='cpu', dtype=float32)
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.silu(input, self.inplace)


class Mish(_InPlace):
    """x * tanh(log(1 + exp(x))).

    >>> nn.Mish()(dt.tensor([-1.0, 1.0]))
    DeviceArray([-0.3034,  0.8651], device='cpu', dtype=float32)
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.mish(input, self.inplace)


class LeakyReLU(Module):
    """x where x > 0, else negative_slope * x.

    >>> nn.LeakyReLU(0.1)(dt.tensor([-1.0, 2.0]))
    DeviceArray([-0.1000,  2.0000], device='cpu', dtype=float32)
    """

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope: float = _need_number("LeakyReLU", "negative_slope", negative_slope)
        self.inplace: bool = _need_bool("LeakyReLU", "inplace", inplace)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}{', inplace=True' if self.inplace else ''}"


class ELU(Module):
    """x where x > 0, else alpha * (exp(x) - 1).

    >>> nn.ELU()(dt.tensor([-1.0, 2.0]))
    DeviceArray([-0.6321,  2.0000], device='cpu', dtype=float32)
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha: float = _need_number("ELU", "alpha", alpha)
        self.inplace: bool = _need_bool("ELU", "inplace", inplace)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}{', inplace=True' if self.inplace else ''}"


class GELU(Module):
    """x times the normal distribution function of x; approximate="tanh" is faster.

    >>> nn.GELU()(dt.tensor([-1.0, 1.0]))
    DeviceArray([-0.1587,  0.8413], device='cpu', dtype=float32)
    """

    def __init__(self, approximate: Literal["none", "tanh"] = "none") -> None:
        super().__init__()
        _need_str("GELU", "approximate", approximate)
        self.approximate: Literal["none", "tanh"] = approximate

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Hardtanh(Module):
    """x limited to [min_val, max_val].

    >>> nn.Hardtanh()(dt.tensor([-3.0, 0.5, 3.0]))
    DeviceArray([-1.0000,  0.5000,  1.0000], device='cpu', dtype=float32)
    """

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        if min_value is not None or max_value is not None:
            warnings.warn("min_value and max_value are now min_val and max_val", FutureWarning, stacklevel=2)
            min_val = min_val if min_value is None else _need_number("Hardtanh", "min_value", min_value)
            max_val = max_val if max_value is None else _need_number("Hardtanh", "max_value", max_value)
        min_val, max_val = _need_number("Hardtanh", "min_val", min_val), _need_number("Hardtanh", "max_val", max_val)
        if min_val >= max_val:
            raise ValueError(f"max_val must be larger than min_val, but got {min_val} and {max_val}")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace: bool = _need_bool("Hardtanh", "inplace", inplace)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}{', inplace=True' if self.inplace else ''}"


class Sigmoid(Module):
    """1 / (1 + exp(-x)).

    >>> nn.Sigmoid()(dt.tensor([0.0, 2.0]))
    DeviceArray([0.5000, 0.8808], device='cpu', dtype=float32)
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        return _C.sigmoid(input)


class LogSigmoid(Module):
    """log(1 / (1 + exp(-x))), without overflow.

    >>> nn.LogSigmoid()(dt.tensor([-100.0, 0.0]))
    DeviceArray([-100.0000,   -0.6931], device='cpu', dtype=float32)
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.logsigmoid(input)


class Softsign(Module):
    """x / (1 + abs(x)).

    >>> nn.Softsign()(dt.tensor([-1.0, 3.0]))
    DeviceArray([-0.5000,  0.7500], device='cpu', dtype=float32)
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.softsign(input)


class GLU(Module):
    """a * sigmoid(b), where a and b are the halves of the input along dim.

    >>> nn.GLU()(dt.tensor([1.0, 2.0, 0.0, 100.0]))
    DeviceArray([0.5000, 2.0000], device='cpu', dtype=float32)
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim: int = _need_int("GLU", "dim", dim)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Tanh(Module):
    """Hyperbolic tangent.

    >>> nn.Tanh()(dt.tensor([0.0, 1.0]))
    DeviceArray([0.0000, 0.7616], device='cpu', dtype=float32)
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        return _C.tanh(input)


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x > threshold.

    >>> nn.Softplus()(dt.tensor([0.0, 30.0]))
    DeviceArray([ 0.6931, 30.0000], device='cpu', dtype=float32)
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta: float = _need_number("Softplus", "beta", beta)
        self.threshold: float = _need_number("Softplus", "threshold", threshold)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return _C.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class _OverDim(Module):
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim: int | None = None if dim is None else _need_int(type(self).__name__, "dim", dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_OverDim):
    """exp(x) / sum(exp(x)) over dim.

    >>> nn.Softmax(dim=1)(dt.zeros(1, 2))
    DeviceArray([[0.5000, 0.5000]], device='cpu', dtype=float32)
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        return _C.softmax(input, self.dim)


class LogSoftmax(_OverDim):
    """Logarithm of Softmax, without overflow.

    >>> nn.LogSoftmax(dim=1)(dt.zeros(1, 2))
    DeviceArray([[-0.6931, -0.6931]], device='cpu', dtype=float32)
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        return _C.log_softmax(input, self.dim)


class Softmin(_OverDim):
    """exp(-x) / sum(exp(-x)) over dim.

    >>> nn.Softmin(dim=1)(dt.zeros(1, 2))
    DeviceArray([[0.5000, 0.5000]], device='cpu', dtype=float32)
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.softmin(input, self.dim)


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W).

    >>> nn.Softmax2d()(dt.zeros(2, 1, 1)).tolist()
    [[[0.5]], [[0.5]]]
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        _C._check_rank("softmax", ("input",), (input,), 0, 3, 4)
        return _C.softmax(input, -3)
