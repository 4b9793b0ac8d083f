"""The exponential distribution."""

from __future__ import annotations

from typing import ClassVar

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.creating.sampling import exponential_
from devtensor.distributions import constraints
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.distribution import Distribution, Shape


class Exponential(Distribution):
    """The density rate * exp(-rate * x) from 0 on.

    >>> dt.distributions.Exponential(2.0).mean
    DeviceArray(0.5000, device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {"rate": constraints.positive}
    support: ClassVar[Constraint] = constraints.nonnegative
    has_rsample: bool = True
    _names: tuple[str, ...] = ("rate",)

    rate: DeviceArray

    def __init__(self, rate: DeviceArray | float, validate_args: bool | None = None) -> None:
        (self.rate,) = self._broadcast(rate=rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> DeviceArray:
        return self.rate.reciprocal()

    @property
    def mode(self) -> DeviceArray:
        return _C.zeros_like(self.rate)

    @property
    def stddev(self) -> DeviceArray:
        return self.rate.reciprocal()

    @property
    def variance(self) -> DeviceArray:
        return self.rate.square().reciprocal()

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        shape = self._extended_shape(sample_shape)
        return exponential_(_C.empty(shape, dtype=self.rate.dtype, device=self.rate.device)) / self.rate

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "rate")
        return self.rate.log() - self.rate * value

    def cdf(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("cdf", value, "rate")
        return 1 - (-self.rate * value).exp()

    def icdf(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("icdf", value, "rate", of_support=False)
        return -(-value).log1p() / self.rate

    def entropy(self) -> DeviceArray:
        return 1.0 - self.rate.log()
