"""Distributions with heavy tails: Cauchy, half of it, and Student's t."""

from __future__ import annotations

import math
from typing import ClassVar

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.creating.rejection import standard_gamma
from devtensor.distributions import constraints
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.distribution import Distribution, Shape


class Cauchy(Distribution):
    """The density 1 / (pi * scale * (1 + ((x - loc) / scale)**2)).

    >>> dt.distributions.Cauchy(0.0, 1.0).cdf(dt.tensor(1.0))
    DeviceArray(0.7500, device='cpu', dtype=float32)
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
        return _C.full_like(self.loc, math.nan)

    @property
    def mode(self) -> DeviceArray:
        return self.loc

    @property
    def variance(self) -> DeviceArray:
        return _C.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        shape = self._extended_shape(sample_shape)
        uniform = _C.rand(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + self.scale * (math.pi * (uniform - 0.5)).tan()

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "loc")
        return -math.log(math.pi) - self.scale.log() - ((value - self.loc) / self.scale).square().log1p()

    def cdf(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("cdf", value, "loc")
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("icdf", value, "loc", of_support=False)
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> DeviceArray:
        return math.log(4 * math.pi) + self.scale.log()


class StudentT(Distribution):
    """loc + scale * z / sqrt(c / df) of a standard normal z and a Chi2(df) number c.

    >>> dt.distributions.StudentT(4.0).variance
    DeviceArray(2., device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support: ClassVar[Constraint] = constraints.real
    has_rsample: bool = True
    _names: tuple[str, ...] = ("df", "loc", "scale")

    df: DeviceArray
    loc: DeviceArray
    scale: DeviceArray

    def __init__(
        self,
        df: DeviceArray | float,
        loc: DeviceArray | float = 0.0,
        scale: DeviceArray | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self.df, self.loc, self.scale = self._broadcast(df=df, loc=loc, scale=scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> DeviceArray:
        return _C.where(self.df <= 1, math.nan, self.loc)

    @property
    def mode(self) -> DeviceArray:
        return self.loc

    @property
    def variance(self) -> DeviceArray:
        some = self.scale.square() * self.df / (self.df - 2)
        return _C.where(self.df > 2, some, _C.where(self.df > 1, math.inf, _C.full_like(self.df, math.nan)))

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        shape = self._extended_shape(sample_shape)
        normal = _C.randn(shape, dtype=self.df.dtype, device=self.df.device)
        squares = 2 * standard_gamma(0.5 * self.df, shape)
        return self.loc + self.scale * normal * (squares / self.df).rsqrt()

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "df")
        half = 0.5 * (self.df + 1)
        normal = 0.5 * (self.df * math.pi).log() + (0.5 * self.df).lgamma() - half.lgamma()
        return -half * (((value - self.loc) / self.scale).square() / self.df).log1p() - self.scale.log() - normal

    def entropy(self) -> DeviceArray:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        normal = 0.5 * (self.df * math.pi).log() + half.lgamma() - more.lgamma()
        return self.scale.log() + more * (more.digamma() - half.digamma()) + normal
