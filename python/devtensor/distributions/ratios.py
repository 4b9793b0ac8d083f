"""Distributions of quotients of gamma numbers."""

from __future__ import annotations

import math
from typing import ClassVar

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.creating.rejection import standard_gamma
from devtensor._dtypes.info import finfo
from devtensor.distributions import constraints
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.distribution import Distribution, Shape


class InverseGamma(Distribution):
    """1 / x of gamma numbers: the density rate**a * x**(-a - 1) * exp(-rate / x) / gamma(a) for a = concentration.

    >>> dt.distributions.InverseGamma(3.0, 4.0).mean
    DeviceArray(2., device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support: ClassVar[Constraint] = constraints.positive
    has_rsample: bool = True
    _names: tuple[str, ...] = ("concentration", "rate")

    concentration: DeviceArray
    rate: DeviceArray

    def __init__(
        self, concentration: DeviceArray | float, rate: DeviceArray | float, validate_args: bool | None = None
    ) -> None:
        self.concentration, self.rate = self._broadcast(concentration=concentration, rate=rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> DeviceArray:
        found = self.rate / (self.concentration - 1)
        return _C.where(self.concentration > 1, found, math.inf)

    @property
    def mode(self) -> DeviceArray:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> DeviceArray:
        a = self.concentration
        return _C.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        return self.rate / standard_gamma(self.concentration, self._extended_shape(sample_shape))

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "rate")
        powers = self.concentration.xlogy(self.rate) - (self.concentration + 1) * value.log()
        return powers - self.rate / value - self.concentration.lgamma()

    def entropy(self) -> DeviceArray:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class FisherSnedecor(Distribution):
    """The quotient of means of df1 and of df2 squares of standard normal numbers: the F distribution.

    >>> dt.distributions.FisherSnedecor(2.0, 4.0).mean
    DeviceArray(2., device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {"df1": constraints.positive, "df2": constraints.positive}
    support: ClassVar[Constraint] = constraints.positive
    has_rsample: bool = True
    _names: tuple[str, ...] = ("df1", "df2")

    df1: DeviceArray
    df2: DeviceArray

    def __init__(self, df1: DeviceArray | float, df2: DeviceArray | float, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = self._broadcast(df1=df1, df2=df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> DeviceArray:
        return _C.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> DeviceArray:
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return _C.where(self.df1 > 2, found, math.nan)

    @property
    def variance(self) -> DeviceArray:
        a, b = self.df1, self.df2
        found = 2 * b.square() * (a + b - 2) / (a * (b - 2).square() * (b - 4))
        return _C.where(b > 4, found, math.nan)

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        shape = self._extended_shape(sample_shape)
        tiny = finfo(self.df1.dtype).tiny
        above, below = (standard_gamma(df / 2, shape) * 2 / df for df in (self.df1, self.df2))
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "df1")
        a, b, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        shared = (a + b).lgamma() - a.lgamma() - b.lgamma()
        return shared + a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()
