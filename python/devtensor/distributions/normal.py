"""The normal distribution."""

from __future__ import annotations

import math
from typing import ClassVar

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor.distributions import constraints
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.distribution import Distribution, Shape


class Normal(Distribution):
    """The normal distribution of mean loc and standard deviation scale.

    >>> dt.distributions.Normal(0.0, 1.0).log_prob(dt.tensor(0.0))
    DeviceArray(-0.9189, device='cpu', dtype=float32)
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
        return self.scale

    @property
    def variance(self) -> DeviceArray:
        return self.scale.square()

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        shape = self._extended_shape(sample_shape)
        return self.loc + _C.randn(shape, dtype=self.loc.dtype, device=self.loc.device) * self.scale

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "loc")
        distance = value - self.loc
        return -distance.square() / (2 * self.variance) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("cdf", value, "loc")
        return 0.5 * (1 + _C.erf((value - self.loc) / (self.scale * math.sqrt(2))))

    def icdf(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("icdf", value, "loc", of_support=False)
        return self.loc + self.scale * _C.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> DeviceArray:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()
