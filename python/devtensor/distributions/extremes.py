"""Distributions of extremes: Gumbel, Pareto and Weibull."""

from __future__ import annotations

import math
from typing import ClassVar

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._dtypes.info import finfo
from devtensor.distributions import constraints
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.distribution import Distribution, Shape
from devtensor.distributions.utils import euler_constant


class Gumbel(Distribution):
    """The distribution function exp(-exp(-(x - loc) / scale)).

    >>> dt.distributions.Gumbel(1.0, 2.0).mean
    DeviceArray(2.1544, device='cpu', dtype=float32)
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
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> DeviceArray:
        return self.loc

    @property
    def stddev(self) -> DeviceArray:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> DeviceArray:
        return self.stddev.square()

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        return self._at(_uniform(self.loc, self._extended_shape(sample_shape)))

    def _at(self, probability: DeviceArray) -> DeviceArray:
        return self.loc - self.scale * (-probability.log()).log()

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "loc")
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    def cdf(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("cdf", value, "loc")
        return (-((self.loc - value) / self.scale).exp()).exp()

    def icdf(self, value: DeviceArray) -> DeviceArray:
        return self._beside("icdf", value, "loc", of_support=False)._at(value)

    def entropy(self) -> DeviceArray:
        return self.scale.log() + (1 + euler_constant)


class Pareto(Distribution):
    """The density alpha * scale**alpha / x**(alpha + 1) from scale on.

    >>> dt.distributions.Pareto(1.0, 2.0).mean
    DeviceArray(2., device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {"alpha": constraints.positive, "scale": constraints.positive}
    has_rsample: bool = True
    _names: tuple[str, ...] = ("scale", "alpha")

    scale: DeviceArray
    alpha: DeviceArray

    def __init__(
        self, scale: DeviceArray | float, alpha: DeviceArray | float, validate_args: bool | None = None
    ) -> None:
        self.scale, self.alpha = self._broadcast(scale=scale, alpha=alpha)
        super().__init__(self.scale.shape, validate_args=validate_args)

    @property
    def support(self) -> Constraint:
        """What a value is."""
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> DeviceArray:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> DeviceArray:
        return self.scale

    @property
    def variance(self) -> DeviceArray:
        a = self.alpha.clamp(min=2)
        return self.scale.square() * a / ((a - 1).square() * (a - 2))

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        return self._above(_uniform(self.scale, self._extended_shape(sample_shape)))

    def _above(self, probability: DeviceArray) -> DeviceArray:
        """The number that is exceeded with this probability."""
        return self.scale * (-probability.log() / self.alpha).exp()

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "scale")
        return self.alpha.log() + self.alpha * (self.scale / value).log() - value.log()

    def cdf(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("cdf", value, "scale")
        return 1 - (self.scale / value) ** self.alpha

    def icdf(self, value: DeviceArray) -> DeviceArray:
        return self._beside("icdf", value, "scale", of_support=False)._above(1 - value)

    def entropy(self) -> DeviceArray:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Weibull(Distribution):
    """The distribution function 1 - exp(-(x / scale)**concentration) from 0 on.

    >>> dt.distributions.Weibull(2.0, 1.0).mean
    DeviceArray(2., device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "scale": constraints.positive,
        "concentration": constraints.positive,
    }
    support: ClassVar[Constraint] = constraints.positive
    has_rsample: bool = True
    _names: tuple[str, ...] = ("scale", "concentration")

    scale: DeviceArray
    concentration: DeviceArray

    def __init__(
        self, scale: DeviceArray | float, concentration: DeviceArray | float, validate_args: bool | None = None
    ) -> None:
        self.scale, self.concentration = self._broadcast(scale=scale, concentration=concentration)
        super().__init__(self.scale.shape, validate_args=validate_args)

    @property
    def concentration_reciprocal(self) -> DeviceArray:
        """1 / concentration."""
        return self.concentration.reciprocal()

    @property
    def mean(self) -> DeviceArray:
        return self.scale * (1 + self.concentration_reciprocal).lgamma().exp()

    @property
    def mode(self) -> DeviceArray:
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration_reciprocal

    @property
    def variance(self) -> DeviceArray:
        second = (1 + 2 * self.concentration_reciprocal).lgamma().exp()
        return self.scale.square() * (second - (2 * (1 + self.concentration_reciprocal).lgamma()).exp())

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        return self._above(_uniform(self.scale, self._extended_shape(sample_shape)))

    def _above(self, probability: DeviceArray) -> DeviceArray:
        """The number that is exceeded with this probability."""
        return self.scale * (-probability.log()) ** self.concentration_reciprocal

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "scale")
        k, ratio = self.concentration, value / self.scale
        return (k / self.scale).log() + (k - 1) * ratio.log() - ratio**k

    def cdf(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("cdf", value, "scale")
        return 1 - (-((value / self.scale) ** self.concentration)).exp()

    def icdf(self, value: DeviceArray) -> DeviceArray:
        return self._beside("icdf", value, "scale", of_support=False)._above(1 - value)

    def entropy(self) -> DeviceArray:
        shared = euler_constant * (1 - self.concentration_reciprocal)
        return shared + (self.scale * self.concentration_reciprocal).log() + 1


def _uniform(like: DeviceArray, shape: tuple[int, ...]) -> DeviceArray:
    """Uniform numbers, so far from 0 and 1 that logarithms of them, and of those, are finite."""
    limits = finfo(like.dtype)
    return _C.rand(shape, dtype=like.dtype, device=like.device).clamp(min=limits.tiny, max=1 - limits.eps)


class GeneralizedPareto(Distribution):
    """Excesses above loc: (1 + concentration * z) ** -(1 + 1 / concentration) / scale for z = (x - loc) / scale.

    A concentration of 0 is the exponential distribution; of one below 0 no number is above loc - scale / concentration.

    >>> dt.distributions.GeneralizedPareto(0.0, 1.0, 0.0).log_prob(dt.tensor(2.0))
    DeviceArray(-2., device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample: bool = True
    _names: tuple[str, ...] = ("loc", "scale", "concentration")

    loc: DeviceArray
    scale: DeviceArray
    concentration: DeviceArray

    def __init__(
        self,
        loc: DeviceArray | float,
        scale: DeviceArray | float,
        concentration: DeviceArray | float,
        validate_args: bool | None = None,
    ) -> None:
        given = {"loc": loc, "scale": scale, "concentration": concentration}
        self.loc, self.scale, self.concentration = self._broadcast(**given)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def support(self) -> Constraint:
        """What a value is."""
        most = _C.where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, most)

    @property
    def mean(self) -> DeviceArray:
        return _C.where(self.concentration < 1, self.loc + self.scale / (1 - self.concentration), math.nan)

    @property
    def mode(self) -> DeviceArray:
        return self.loc

    @property
    def variance(self) -> DeviceArray:
        c = _C.where(self.concentration < 0.5, self.concentration, math.nan)
        return self.scale.square() / ((1 - c).square() * (1 - 2 * c))

    def _split(self) -> tuple[DeviceArray, DeviceArray]:
        """Where concentration is 0, and a concentration that one can divide by."""
        zero = _C.isclose(self.concentration, _C.zeros_like(self.concentration))
        return zero, _C.where(zero, 1.0, self.concentration)

    def _log_left(self, value: DeviceArray) -> DeviceArray:
        """The logarithm of the probability of more than value."""
        (zero, c), z = self._split(), (value - self.loc) / self.scale
        return _C.where(zero, -z, -(c * z).log1p() / c)

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        return self._at(_C.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device))

    def _at(self, probability: DeviceArray) -> DeviceArray:
        zero, c = self._split()
        left = (-probability).log1p()
        return self.loc + self.scale * _C.where(zero, -left, (-c * left).expm1() / c)

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "loc")
        (zero, c), z = self._split(), (value - self.loc) / self.scale
        power = 1 / c + 1
        return -self.scale.log() - _C.where(zero, z, _C.where(power == 0, 0.0, power * (c * z).log1p()))

    def log_survival_function(self, value: DeviceArray) -> DeviceArray:
        """The logarithm of the probability of more than value."""
        return self._beside("log_survival_function", value, "loc")._log_left(value)

    def log_cdf(self, value: DeviceArray) -> DeviceArray:
        """The logarithm of the probability of at most value."""
        return (-self._beside("log_cdf", value, "loc")._log_left(value).exp()).log1p()

    def cdf(self, value: DeviceArray) -> DeviceArray:
        return -self._beside("cdf", value, "loc")._log_left(value).expm1()

    def icdf(self, value: DeviceArray) -> DeviceArray:
        return self._beside("icdf", value, "loc", of_support=False)._at(value)

    def entropy(self) -> DeviceArray:
        return self.scale.log() + self.concentration + 1
