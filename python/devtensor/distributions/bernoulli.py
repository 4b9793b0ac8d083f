"""The distribution of 1 and 0."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.creating.sampling import bernoulli
from devtensor._composed.losses.basic import binary_cross_entropy_with_logits
from devtensor.autograd.grad_mode import no_grad
from devtensor.distributions import constraints
from devtensor.distributions.categorical import enumerated, one_of
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.distribution import Distribution, Shape
from devtensor.distributions.utils import common_shape, lazy_property, logits_to_probs, probs_to_logits


class OfProbs(Distribution):
    """The base of distributions that are given by probs, each between 0 and 1, or by their logits."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {"probs": constraints.unit_interval, "logits": constraints.real}
    _names: tuple[str, ...] = ("_param", "probs", "logits")

    _param: DeviceArray

    def _take(self, probs: Any, logits: Any, **others: Any) -> tuple[DeviceArray, ...]:
        """Keeps the one that is given; it and others, as arrays of one shape."""
        name, given = one_of(probs, logits)
        arrays = self._broadcast(**others, **{name: given})
        self._param = self.__dict__[name] = arrays[-1]
        return arrays

    @lazy_property
    def probs(self) -> DeviceArray:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=True)

    @lazy_property
    def logits(self) -> DeviceArray:
        """log(probs / (1 - probs))."""
        return probs_to_logits(self.probs, is_binary=True)

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of the parameter."""
        return self._param.shape


class Bernoulli(OfProbs):
    """1 with probability probs, which is sigmoid(logits), else 0.

    >>> dt.distributions.Bernoulli(probs=0.25).log_prob(dt.tensor(1.0))
    DeviceArray(-1.3863, device='cpu', dtype=float32)
    """

    support: ClassVar[Constraint] = constraints.boolean
    has_enumerate_support: bool = True

    def __init__(
        self,
        probs: DeviceArray | float | None = None,
        logits: DeviceArray | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> DeviceArray:
        return self.probs

    @property
    def mode(self) -> DeviceArray:
        larger = (self.probs >= 0.5).to(self.probs.dtype)
        return _C.where(self.probs == 0.5, math.nan, larger)

    @property
    def variance(self) -> DeviceArray:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> DeviceArray:
        with no_grad():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "logits")
        shape = common_shape((self.logits, value))
        wanted = value.to(self.logits.dtype).expand(shape)
        return -binary_cross_entropy_with_logits(self.logits.expand(shape), wanted, reduction="none")

    def entropy(self) -> DeviceArray:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> DeviceArray:
        return enumerated(2, self._batch_shape, expand, self._param.device).to(self._param.dtype)
