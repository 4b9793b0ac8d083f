"""The Laplace distribution."""

from __future__ import annotations

import math
from typing import ClassVar

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._dtypes.info import finfo
from devtensor.distributions import constraints
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.distribution import Distribution, Shape


class Laplace(Distribution):
    """The density exp(-abs(x - loc) / scale) / (2 * scale).

    >>> dt.distributions.Laplace(0.0, 1.0).log_prob(dt.tensor(0.0))
    DeviceArray(-0.6931, device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {"loc": constraints.real, "scale": constraints.positive}
    support: ClassVar[Constraint] = constraints.real
    has_rsample: bool = True
    _names: tuple[str, ...] = ("loc", "scale")

    loc: DeviceArray
    scale: DeviceArray

    def __init__(self, loc: DeviceArray | float, scale: DeviceArray | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = self._broadcast(loc=loc, scale=scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> DeviceArray:
        return self.loc

    @property
    def mode(self) -> DeviceArray:
        return self.loc

    @property
    def stddev(self) -> DeviceArray:
        return math.sqrt(2) * self.scale

    @property
    def variance(self) -> DeviceArray:
        return 2 * self.scale.square()

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        shape = self._extended_shape(sample_shape)
        uniform = _C.rand(shape, dtype=self.loc.dtype, device=self.loc.device) * 2 - 1
        least = finfo(self.loc.dtype).eps - 1  # of -abs(...): its log1p stays finite
        return self.loc - self.scale * uniform.sign() * (-uniform.abs()).clamp(min=least).log1p()

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "loc")
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("cdf", value, "loc")
        distance = value - self.loc
        return 0.5 - 0.5 * distance.sign() * _C.expm1(-distance.abs() / self.scale)

    def icdf(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("icdf", value, "loc", of_support=False)
        centred = value - 0.5
        return self.loc - self.scale * centred.sign() * (-2 * centred.abs()).log1p()

    def entropy(self) -> DeviceArray:
        return 1 + (2 * self.scale).log()
