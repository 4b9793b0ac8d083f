"""Distributions over numbers between 0 and 1 that come near to classes: the Gumbel softmax."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from devtensor import _C
from devtensor._C import DeviceArray, _need_number
from devtensor._composed.reductions.moments import logsumexp
from devtensor.distributions import constraints
from devtensor.distributions.bernoulli import OfProbs
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.distribution import Shape
from devtensor.distributions.one_hot_categorical import OfClasses
from devtensor.distributions.transformed_distribution import TransformedDistribution
from devtensor.distributions.transforms import ExpTransform, SigmoidTransform
from devtensor.distributions.utils import clamp_probs

__all__ = ["ExpRelaxedCategorical", "LogitRelaxedBernoulli", "RelaxedBernoulli", "RelaxedOneHotCategorical"]


def __dir__() -> list[str]:
    return __all__


def _need_temperature(op: str, temperature: Any, like: DeviceArray) -> None:
    if isinstance(temperature, DeviceArray):
        _C._check(op, ("temperature", "probs"), (temperature, like))
    else:
        _need_number(op, "temperature", temperature)


def _log(temperature: DeviceArray | float) -> DeviceArray | float:
    return temperature.log() if isinstance(temperature, DeviceArray) else math.log(temperature)


def _uniform(like: DeviceArray, shape: tuple[int, ...]) -> DeviceArray:
    return clamp_probs(_C.rand(shape, dtype=like.dtype, device=like.device))


class LogitRelaxedBernoulli(OfProbs):
    """(logits + logistic noise) / temperature: the logits of RelaxedBernoulli.

    >>> dt.distributions.relaxed.LogitRelaxedBernoulli(1.0, logits=0.0).log_prob(dt.tensor(0.0))
    DeviceArray(-1.3863, device='cpu', dtype=float32)
    """

    support: ClassVar[Constraint] = constraints.real
    has_rsample: bool = True

    def __init__(
        self,
        temperature: DeviceArray | float,
        probs: DeviceArray | float | None = None,
        logits: DeviceArray | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits)
        _need_temperature(type(self).__name__, temperature, self._param)
        self.temperature: DeviceArray | float = temperature
        super().__init__(self._param.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        probs = clamp_probs(self.probs)
        uniform = _uniform(probs, self._extended_shape(sample_shape))
        noise = uniform.log() - (-uniform).log1p()
        return (noise + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "logits")
        far = self.logits - value * self.temperature
        return _log(self.temperature) + far - 2 * far.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """sigmoid((logits + logistic noise) / temperature): near 0 or 1 for low temperatures.

    >>> 0 < dt.distributions.RelaxedBernoulli(0.5, probs=0.3).rsample() < 1
    DeviceArray(True, device='cpu', dtype=bool)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support: ClassVar[Constraint] = constraints.unit_interval

    base_dist: LogitRelaxedBernoulli

    def __init__(
        self,
        temperature: DeviceArray | float,
        probs: DeviceArray | float | None = None,
        logits: DeviceArray | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> DeviceArray | float:
        """What the noisy logits are divided by."""
        return self.base_dist.temperature

    @property
    def probs(self) -> DeviceArray:
        """The probability of being nearer to 1."""
        return self.base_dist.probs

    @property
    def logits(self) -> DeviceArray:
        """log(probs / (1 - probs))."""
        return self.base_dist.logits


class ExpRelaxedCategorical(OfClasses):
    """log_softmax((logits + Gumbel noise) / temperature): the logarithms of RelaxedOneHotCategorical.

    >>> dt.distributions.relaxed.ExpRelaxedCategorical(1.0, dt.ones(3)).rsample().shape
    (3,)
    """

    support: ClassVar[Constraint] = constraints.real_vector
    has_rsample: bool = True

    def __init__(
        self,
        temperature: DeviceArray | float,
        probs: DeviceArray | None = None,
        logits: DeviceArray | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits, validate_args)
        _need_temperature(type(self).__name__, temperature, self._categorical._param)
        self.temperature: DeviceArray | float = temperature

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        gumbel = -(-_uniform(self.logits, self._extended_shape(sample_shape)).log()).log()
        scores = (self.logits + gumbel) / self.temperature
        return scores - logsumexp(scores, -1, keepdim=True)

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self._beside("log_prob", value, "logits")
        count = self._event_shape[0]
        score = self.logits - value * self.temperature
        score = (score - logsumexp(score, -1, keepdim=True)).sum(-1)
        return score + (math.lgamma(count) + (count - 1) * _log(self.temperature))


class RelaxedOneHotCategorical(TransformedDistribution):
    """softmax((logits + Gumbel noise) / temperature): near a single 1 for low temperatures.

    >>> dt.distributions.RelaxedOneHotCategorical(0.5, dt.ones(3)).rsample().shape
    (3,)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support: ClassVar[Constraint] = constraints.simplex

    base_dist: ExpRelaxedCategorical

    def __init__(
        self,
        temperature: DeviceArray | float,
        probs: DeviceArray | None = None,
        logits: DeviceArray | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> DeviceArray | float:
        """What the noisy logits are divided by."""
        return self.base_dist.temperature

    @property
    def probs(self) -> DeviceArray:
        """The probability of each class of being the nearest."""
        return self.base_dist.probs

    @property
    def logits(self) -> DeviceArray:
        """The logarithms of probs."""
        return self.base_dist.logits
