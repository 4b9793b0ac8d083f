"""Distributions of numbers from 0 to 1 with a distribution function in closed form."""

from __future__ import annotations

import math
from typing import ClassVar

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._dtypes.info import finfo
from devtensor.distributions import constraints
from devtensor.distributions.bernoulli import OfProbs
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.distribution import Distribution, Shape
from devtensor.distributions.utils import euler_constant


class Kumaraswamy(Distribution):
    """The distribution function 1 - (1 - x**a)**b from 0 to 1, for a = concentration1 and b = concentration0.

    >>> dt.distributions.Kumaraswamy(1.0, 1.0).mean
    DeviceArray(0.5000, device='cpu', dtype=float32)
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

    def _moment(self, n: int) -> DeviceArray:
        power, b = 1 + n / self.concentration1, self.concentration0
        return b * (power.lgamma() + b.lgamma() - (power + b).lgamma()).exp()

    @property
    def mean(self) -> DeviceArray:
        return self._moment(1)

    @property
    def mode(self) -> DeviceArray:
        a, b = self.concentration1, self.concentration0
        return _C.where((a < 1) | (b < 1), math.nan, ((a - 1) / (a * b - 1)) ** a.reciprocal())

    @property
    def variance(self) -> DeviceArray:
        return self._moment(2) - self.mean.square()

    def _at(self, probability: DeviceArray) -> DeviceArray:
        """The number that is not reached with this probability."""
        inner = -((-probability).log1p() / self.concentration0).expm1()
        return inner ** self.concentration1.reciprocal()

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        limits, shape = finfo(self.concentration1.dtype), self._extended_shape(sample_shape)
        uniform = _C.rand(shape, dtype=self.concentration1.dtype, device=self.concentration1.device)
        return self._at(uniform.clamp(min=limits.tiny, max=1 - limits.eps))

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "concentration1")
        a, b = self.concentration1, self.concentration0
        return (a * b).log() + (a - 1).xlogy(value) + (b - 1) * (-(value**a)).log1p()

    def cdf(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("cdf", value, "concentration1")
        return 1 - (1 - value**self.concentration1) ** self.concentration0

    def icdf(self, value: DeviceArray) -> DeviceArray:
        return self._beside("icdf", value, "concentration1", of_support=False)._at(value)

    def entropy(self) -> DeviceArray:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + euler_constant
        return 1 - b.reciprocal() + (1 - a.reciprocal()) * harmonic - (a * b).log()


class ContinuousBernoulli(OfProbs):
    """The density that is proportional to probs**x * (1 - probs)**(1 - x), from 0 to 1 (Loaiza-Ganem and others 2019).

    Of probs or of their logits. Between the two numbers of lims a series around 0.5 takes the place of quotients.

    >>> dt.distributions.ContinuousBernoulli(0.5).mean
    DeviceArray(0.5000, device='cpu', dtype=float32)
    """

    support: ClassVar[Constraint] = constraints.unit_interval
    has_rsample: bool = True

    def __init__(
        self,
        probs: DeviceArray | float | None = None,
        logits: DeviceArray | float | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits)
        self._lims = lims
        super().__init__(self._param.shape, validate_args=validate_args)

    def _split(self) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
        """Where probs are near 0.5, all probs within the dtype's reach, and those that are not near."""
        limits, given = finfo(self._param.dtype), self.probs
        p = given.clamp(limits.eps, 1 - limits.eps)
        near = (p > self._lims[0]) & (p <= self._lims[1])
        return near, p, _C.where(near, self._lims[0], p)

    def _log_constant(self) -> DeviceArray:
        near, p, far = self._split()
        below = _C.where(far <= 0.5, far, 0.0)
        above = _C.where(far >= 0.5, far, 1.0)
        exact = ((-far).log1p() - far.log()).abs().log()
        exact = exact - _C.where(far <= 0.5, (-2 * below).log1p(), (2 * above - 1).log())
        square = (p - 0.5).square()
        return _C.where(near, math.log(2.0) + (4 / 3 + 104 / 45 * square) * square, exact)

    @property
    def mean(self) -> DeviceArray:
        near, p, far = self._split()
        exact = far / (2 * far - 1) + 1 / ((-far).log1p() - far.log())
        x = p - 0.5
        return _C.where(near, 0.5 + (1 / 3 + 16 / 45 * x.square()) * x, exact)

    @property
    def variance(self) -> DeviceArray:
        near, p, far = self._split()
        exact = far * (far - 1) / (1 - 2 * far).square() + 1 / ((-far).log1p() - far.log()).square()
        square = (p - 0.5).square()
        return _C.where(near, 1 / 12 - (1 / 15 - 128 / 945 * square) * square, exact)

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        shape, like = self._extended_shape(sample_shape), self._param
        limits = finfo(like.dtype)
        uniform = _C.rand(shape, dtype=like.dtype, device=like.device)
        return self._at(uniform.clamp(limits.eps, 1 - limits.eps))

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "probs")
        _, p, _ = self._split()
        return value * p.log() + (1 - value) * (-p).log1p() + self._log_constant()

    def cdf(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("cdf", value, "probs")
        near, _, far = self._split()
        exact = (far**value * (1 - far) ** (1 - value) + far - 1) / (2 * far - 1)
        found = _C.where(near, value, exact)
        return _C.where(value <= 0, 0.0, _C.where(value >= 1, 1.0, found))

    def _at(self, probability: DeviceArray) -> DeviceArray:
        near, _, far = self._split()
        exact = ((-far + probability * (2 * far - 1)).log1p() - (-far).log1p()) / (far.log() - (-far).log1p())
        return _C.where(near, probability, exact)

    def icdf(self, value: DeviceArray) -> DeviceArray:
        return self._beside("icdf", value, "probs", of_support=False)._at(value)

    def entropy(self) -> DeviceArray:
        low, high = (-self.probs).log1p(), self.probs.log()
        return self.mean * (low - high) - self._log_constant() - low
