"""Bilinear forms as a module."""

from __future__ import annotations

import math

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _Parameter
from devtensor._types import Device, DType
from devtensor.nn import functional as F
from devtensor.nn import init
from devtensor.nn.layers import _float_options
from devtensor.nn.module import Module


class Bilinear(Module):
    """input1 @ weight[k] @ input2 + bias[k] for each k: (*, in1_features) and (*, in2_features) give (*, out_features).

    weight (out_features, in1_features, in2_features) and bias are initialised uniformly in ±1 / sqrt(in1_features).

    >>> nn.Bilinear(4, 3, 2)(dt.ones(5, 4), dt.ones(5, 3)).shape
    (5, 2)
    """

    weight: _Parameter
    bias: _Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool | None = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        in1_features = _need_int("Bilinear", "in1_features", in1_features)
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features: int = in1_features
        self.in2_features: int = _need_int("Bilinear", "in2_features", in2_features)
        self.out_features: int = _need_int("Bilinear", "out_features", out_features)
        bias = bias is not None and _need_bool("Bilinear", "bias", bias)
        options = _float_options("Bilinear", device, dtype)
        shape = (self.out_features, self.in1_features, self.in2_features)
        self.weight = _Parameter(_C.empty(shape, **options))
        self.register_parameter("bias", _Parameter(_C.empty(self.out_features, **options)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """New random numbers in weight and bias."""
        bound = 1 / math.sqrt(self.weight.shape[1])
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: DeviceArray, input2: DeviceArray) -> DeviceArray:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
