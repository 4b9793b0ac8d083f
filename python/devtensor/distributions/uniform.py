"""The uniform distribution."""

from __future__ import annotations

import math

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor.distributions import constraints
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.distribution import Distribution, Shape


class Uniform(Distribution):
    """Uniform from low up to high.

    >>> dt.distributions.Uniform(0.0, 4.0).entropy()
    DeviceArray(1.3863, device='cpu', dtype=float32)
    """

    has_rsample: bool = True
    _names: tuple[str, ...] = ("low", "high")

    low: DeviceArray
    high: DeviceArray

    def __init__(self, low: DeviceArray | float, high: DeviceArray | float, validate_args: bool | None = None) -> None:
        self.low, self.high = self._broadcast(low=low, high=high)
        super().__init__(self.low.shape, validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        """What each parameter must be, by name."""
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @property
    def support(self) -> Constraint:
        """What a value is."""
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> DeviceArray:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> DeviceArray:
        return math.nan * self.high

    @property
    def stddev(self) -> DeviceArray:
        return (self.high - self.low) / math.sqrt(12)

    @property
    def variance(self) -> DeviceArray:
        return (self.high - self.low).square() / 12

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        shape = self._extended_shape(sample_shape)
        uniform = _C.rand(shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + uniform * (self.high - self.low)

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "low")
        inside = _C.logical_and(self.low <= value, self.high > value)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("cdf", value, "low")
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("icdf", value, "low", of_support=False)
        return value * (self.high - self.low) + self.low

    def entropy(self) -> DeviceArray:
        return (self.high - self.low).log()
