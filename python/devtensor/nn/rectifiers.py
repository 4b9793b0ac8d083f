"""Activations of two branches, and those with a slope that is learned or drawn, as modules."""

from __future__ import annotations

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number, _Parameter
from devtensor._types import Device, DType
from devtensor.nn import functional as F
from devtensor.nn import init
from devtensor.nn.activation import _InPlace
from devtensor.nn.layers import _float_options
from devtensor.nn.module import Module


class PReLU(Module):
    """x where x > 0, else weight * x; num_parameters weights, one or one for each channel, begin at init.

    >>> nn.PReLU()(dt.tensor([-2.0, 2.0])).tolist()
    [-0.5, 2.0]
    """

    weight: _Parameter

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Device | None = None, dtype: DType | None = None
    ) -> None:
        super().__init__()
        count = _need_int("PReLU", "num_parameters", num_parameters)
        self.num_parameters: int = count
        self.init: float = _need_number("PReLU", "init", init)
        self.weight = _Parameter(_C.empty(count, **_float_options("PReLU", device, dtype)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """weight as it begins."""
        init.constant_(self.weight, self.init)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """x where x > 0, else slope * x: in training a slope for each element, uniform in [lower, upper], else their mean.

    >>> nn.RReLU(0.1, 0.3).eval()(dt.tensor([-1.0, 2.0]))
    DeviceArray([-0.2000,  2.0000], device='cpu', dtype=float32)
    """

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower: float = _need_number("RReLU", "lower", lower)
        self.upper: float = _need_number("RReLU", "upper", upper)
        self.inplace: bool = _need_bool("RReLU", "inplace", inplace)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}{', inplace=True' if self.inplace else ''}"


class CELU(Module):
    """x where x > 0, else alpha * (exp(x / alpha) - 1).

    >>> nn.CELU(2.0)(dt.tensor([-1.0, 1.0]))
    DeviceArray([-0.7869,  1.0000], device='cpu', dtype=float32)
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha: float = _need_number("CELU", "alpha", alpha)
        self.inplace: bool = _need_bool("CELU", "inplace", inplace)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}{', inplace=True' if self.inplace else ''}"


class Threshold(Module):
    """x where x > threshold, else value.

    >>> nn.Threshold(1.0, 0.0)(dt.tensor([0.5, 2.0]))
    DeviceArray([0., 2.], device='cpu', dtype=float32)
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold: float = _need_number("Threshold", "threshold", threshold)
        self.value: float = _need_number("Threshold", "value", value)
        self.inplace: bool = _need_bool("Threshold", "inplace", inplace)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}{', inplace=True' if self.inplace else ''}"


class _Shrink(Module):
    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd: float = _need_number(type(self).__name__, "lambd", lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(_Shrink):
    """x where abs(x) > lambd, else 0.

    >>> nn.Hardshrink()(dt.tensor([-1.0, 0.25, 2.0]))
    DeviceArray([-1.,  0.,  2.], device='cpu', dtype=float32)
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.hardshrink(input, self.lambd)


class Softshrink(_Shrink):
    """x - lambd where x > lambd, x + lambd where x < -lambd, else 0.

    >>> nn.Softshrink()(dt.tensor([-1.0, 0.25, 2.0]))
    DeviceArray([-0.5000,  0.0000,  1.5000], device='cpu', dtype=float32)
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.softshrink(input, self.lambd)


class SELU(_InPlace):
    """1.0507 * x where x > 0, else 1.7581 * (exp(x) - 1).

    >>> nn.SELU()(dt.tensor([-1.0, 1.0]))
    DeviceArray([-1.1113,  1.0507], device='cpu', dtype=float32)
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.selu(input, self.inplace)


class Hardswish(_InPlace):
    """x * min(max(x + 3, 0), 6) / 6.

    >>> nn.Hardswish()(dt.tensor([-4.0, 1.0, 4.0]))
    DeviceArray([-0.0000,  0.6667,  4.0000], device='cpu', dtype=float32)
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.hardswish(input, self.inplace)


class Hardsigmoid(_InPlace):
    """min(max(x + 3, 0), 6) / 6.

    >>> nn.Hardsigmoid()(dt.tensor([-4.0, 0.0, 4.0]))
    DeviceArray([0.0000, 0.5000, 1.0000], device='cpu', dtype=float32)
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.hardsigmoid(input, self.inplace)


class Tanhshrink(Module):
    """x - tanh(x).

    >>> nn.Tanhshrink()(dt.tensor([0.0, 2.0]))
    DeviceArray([0.0000, 1.0360], device='cpu', dtype=float32)
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.tanhshrink(input)
