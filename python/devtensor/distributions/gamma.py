"""The gamma distribution, and what is made of it."""

from __future__ import annotations

from typing import ClassVar

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import need_array
from devtensor._composed.creating.rejection import standard_gamma
from devtensor._composed.elementwise.gamma_functions import igamma
from devtensor._dtypes.info import finfo
from devtensor.distributions import constraints
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.distribution import Distribution, Shape


class Gamma(Distribution):
    """The density rate**a * x**(a - 1) * exp(-rate * x) / gamma(a) for a = concentration.

    >>> dt.distributions.Gamma(2.0, 4.0).mean
    DeviceArray(0.5000, device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support: ClassVar[Constraint] = constraints.nonnegative
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
        return self.concentration / self.rate

    @property
    def mode(self) -> DeviceArray:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> DeviceArray:
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        return standard_gamma(self.concentration, self._extended_shape(sample_shape)) / self.rate

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "rate")
        powers = self.concentration.xlogy(self.rate) + (self.concentration - 1).xlogy(value)
        return powers - self.rate * value - self.concentration.lgamma()

    def cdf(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("cdf", value, "rate")
        return igamma(self.concentration, self.rate * value)

    def entropy(self) -> DeviceArray:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()


class Chi2(Gamma):
    """The sum of df squares of standard normal numbers: Gamma(df / 2, 1 / 2).

    >>> dt.distributions.Chi2(3.0).variance
    DeviceArray(6., device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {"df": constraints.positive}

    def __init__(self, df: DeviceArray | float, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> DeviceArray:
        """How many squares."""
        return self.concentration * 2


class Beta(Distribution):
    """The density of x**(concentration1 - 1) * (1 - x)**(concentration0 - 1), from 0 to 1.

    >>> dt.distributions.Beta(1.0, 3.0).mean
    DeviceArray(0.2500, device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support: ClassVar[Constraint] = constraints.unit_interval
    has_rsample: bool = True
    _names: tuple[str, ...] = ("concentration1", "concentration0")

    concentration1: DeviceArray
    concentration0: DeviceArray

    def __init__(
        self,
        concentration1: DeviceArray | float,
        concentration0: DeviceArray | float,
        validate_args: bool | None = None,
    ) -> None:
        given = {"concentration1": concentration1, "concentration0": concentration0}
        self.concentration1, self.concentration0 = self._broadcast(**given)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    @property
    def mean(self) -> DeviceArray:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> DeviceArray:
        return _dirichlet_mode(self._both())[..., 0]

    @property
    def variance(self) -> DeviceArray:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.square() * (total + 1))

    def _both(self) -> DeviceArray:
        return _C.stack((self.concentration1, self.concentration0), -1)

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        shape = self._extended_shape(sample_shape)
        return _shares(standard_gamma(self._both(), (*shape, 2)))[..., 0]

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "concentration1")
        one, zero = self.concentration1, self.concentration0
        powers = (one - 1).xlogy(value) + (zero - 1).xlogy(1 - value)
        return powers + (one + zero).lgamma() - one.lgamma() - zero.lgamma()

    def entropy(self) -> DeviceArray:
        return _dirichlet_entropy(self._both())


class Dirichlet(Distribution):
    """Shares that sum to 1, whose density is that of the product of x**(concentration - 1).

    concentration is (..., K). rsample divides gamma numbers by their sum and differentiates that.

    >>> dt.distributions.Dirichlet(dt.tensor([1.0, 3.0])).mean
    DeviceArray([0.2500, 0.7500], device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "concentration": constraints.independent(constraints.positive, 1)
    }
    support: ClassVar[Constraint] = constraints.simplex
    has_rsample: bool = True

    concentration: DeviceArray

    def __init__(self, concentration: DeviceArray, validate_args: bool | None = None) -> None:
        need_array("Dirichlet", "concentration", concentration)
        _C._check("Dirichlet", ("concentration",), (concentration,))
        if concentration.ndim < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Shape) -> Dirichlet:
        return self._expanded(batch_shape, "concentration", rest=self._event_shape)

    @property
    def mean(self) -> DeviceArray:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> DeviceArray:
        return _dirichlet_mode(self.concentration)

    @property
    def variance(self) -> DeviceArray:
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        return _shares(standard_gamma(self.concentration, self._extended_shape(sample_shape)))

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "concentration")
        a = self.concentration
        return (a - 1).xlogy(value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    def entropy(self) -> DeviceArray:
        return _dirichlet_entropy(self.concentration)


def _shares(drawn: DeviceArray) -> DeviceArray:
    limits = finfo(drawn.dtype)
    return (drawn / drawn.sum(-1, keepdim=True)).clamp(min=limits.tiny, max=1 - limits.eps / 2)


def _dirichlet_mode(concentration: DeviceArray) -> DeviceArray:
    above = (concentration - 1).clamp(min=0)
    shares = above / above.sum(-1, keepdim=True)
    corner = _C.arange(concentration.shape[-1], device=concentration.device)
    corner = (corner == concentration.argmax(-1, keepdim=True)).to(concentration.dtype)
    return _C.where((concentration < 1).all(-1, keepdim=True), corner, shares)


def _dirichlet_entropy(concentration: DeviceArray) -> DeviceArray:
    total, count = concentration.sum(-1), concentration.shape[-1]
    normal = concentration.lgamma().sum(-1) - total.lgamma()
    slopes = ((concentration - 1) * concentration.digamma()).sum(-1)
    return normal + (total - count) * total.digamma() - slopes
