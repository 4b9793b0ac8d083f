"""Counts of classes: one draw as a row with a single 1, or several together."""

from __future__ import annotations

import math
from typing import ClassVar

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_ints
from devtensor.distributions import constraints
from devtensor.distributions.categorical import Categorical
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.counts import Binomial
from devtensor.distributions.distribution import Distribution, Shape


class OfClasses(Distribution):
    """The base of distributions over rows that are given by a Categorical's parameters."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {"probs": constraints.simplex, "logits": constraints.real_vector}

    _categorical: Categorical

    def _take(self, probs: DeviceArray | None, logits: DeviceArray | None, validate_args: bool | None) -> None:
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        Distribution.__init__(self, shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Shape) -> OfClasses:
        made = self._expanded(batch_shape)
        made._categorical = self._categorical.expand(batch_shape)
        return made

    @property
    def probs(self) -> DeviceArray:
        """The probability of each class."""
        return self._categorical.probs

    @property
    def logits(self) -> DeviceArray:
        """The logarithms of probs."""
        return self._categorical.logits

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of the parameter."""
        return self._categorical.param_shape


class OneHotCategorical(OfClasses):
    """One of the classes of Categorical, as a row of zeros with a single 1.

    >>> dt.distributions.OneHotCategorical(probs=dt.tensor([1.0, 3.0])).mode
    DeviceArray([0., 1.], device='cpu', dtype=float32)
    """

    support: ClassVar[Constraint] = constraints.one_hot
    has_enumerate_support: bool = True

    def __init__(
        self,
        probs: DeviceArray | None = None,
        logits: DeviceArray | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits, validate_args)

    def _row(self, classes: DeviceArray) -> DeviceArray:
        every = _C.arange(self._event_shape[0], device=classes.device)
        return (classes.unsqueeze(-1) == every).to(self._categorical._param.dtype)

    @property
    def mean(self) -> DeviceArray:
        return self.probs

    @property
    def mode(self) -> DeviceArray:
        return self._row(self.probs.argmax(-1))

    @property
    def variance(self) -> DeviceArray:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> DeviceArray:
        return self._row(self._categorical.sample(sample_shape))

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self._beside("log_prob", value, "probs")
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> DeviceArray:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> DeviceArray:
        count, ones = self._event_shape[0], (1,) * len(self._batch_shape)
        rows = _C.eye(count, dtype=self.probs.dtype, device=self.probs.device).reshape(count, *ones, count)
        if not _need_bool("enumerate_support", "expand", expand):
            return rows
        return rows.expand(count, *self._batch_shape, count)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical whose rsample lets gradients flow to probs as if the row were probs.

    >>> dt.distributions.OneHotCategoricalStraightThrough(dt.ones(3)).rsample().sum()
    DeviceArray(1., device='cpu', dtype=float32)
    """

    has_rsample: bool = True

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(OfClasses):
    """How often each class of Categorical comes in total_count draws.

    >>> dt.distributions.Multinomial(4, probs=dt.tensor([1.0, 3.0])).mean
    DeviceArray([1., 3.], device='cpu', dtype=float32)
    """

    total_count: int

    def __init__(
        self,
        total_count: int = 1,
        probs: DeviceArray | None = None,
        logits: DeviceArray | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._take(probs, logits, validate_args)

    @property
    def support(self) -> Constraint:
        """What a value is."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> DeviceArray:
        return self.total_count * self.probs

    @property
    def variance(self) -> DeviceArray:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> DeviceArray:
        shape = self._extended_shape(sample_shape)
        drawn = self._categorical.sample((self.total_count, *_need_ints("sample", "sample_shape", sample_shape)))
        classes = drawn.flatten(1).t() if drawn.ndim > 1 else drawn.unsqueeze(0)
        counts = _C.zeros((classes.shape[0], shape[-1]), dtype=_C.int64, device=drawn.device)
        counts = counts.scatter_add(-1, classes, _C.ones_like(classes))
        return counts.reshape(shape).to(self.probs.dtype)

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self._beside("log_prob", value, "logits")
        value = value.to(self.logits.dtype)
        never = (value == 0) & (self.logits == -math.inf)
        powers = (_C.where(never, 0.0, self.logits) * value).sum(-1)
        return (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1) + powers

    def entropy(self) -> DeviceArray:
        n, probs = self.total_count, self.probs
        each = Binomial(n, probs=probs, validate_args=False)._log_probs("entropy")
        counts = _C.arange(1, n + 1, dtype=probs.dtype, device=probs.device)
        weights = (counts + 1).lgamma().reshape(n, *(1,) * probs.ndim)
        ways = _C.tensor(float(n + 1), dtype=probs.dtype, device=probs.device).lgamma()
        return n * self._categorical.entropy() - ways + (each[1:].exp() * weights).sum((0, -1))
