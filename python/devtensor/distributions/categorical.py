"""The distribution of one of several classes."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool
from devtensor._composed.arguments import need_array
from devtensor._composed.creating.sampling import multinomial
from devtensor._composed.reductions.moments import logsumexp
from devtensor._dtypes.info import finfo
from devtensor.distributions import constraints
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.distribution import Distribution, Shape
from devtensor.distributions.utils import common_shape, lazy_property, logits_to_probs, probs_to_logits


def one_of(probs: Any, logits: Any) -> tuple[str, Any]:
    """The name and the value of the parameter that is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return ("probs", probs) if logits is None else ("logits", logits)


def enumerated(count: int, batch_shape: tuple[int, ...], expand: bool, device: _C.device) -> DeviceArray:
    """0 to count - 1 along a new first dimension."""
    values = _C.arange(count, device=device).reshape(count, *(1,) * len(batch_shape))
    return values.expand(count, *batch_shape) if _need_bool("enumerate_support", "expand", expand) else values


class Categorical(Distribution):
    """One of the classes 0 to C - 1: probs (..., C) holds weights, or logits their logarithms.

    >>> dt.distributions.Categorical(probs=dt.tensor([1.0, 3.0])).log_prob(dt.tensor(1))
    DeviceArray(-0.2877, device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support: bool = True

    def __init__(
        self,
        probs: DeviceArray | None = None,
        logits: DeviceArray | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, given = one_of(probs, logits)
        need_array("Categorical", name, given)
        _C._check("Categorical", (name,), (given,))
        if given.ndim < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if name == "probs":
            self._param: DeviceArray = given / given.sum(-1, keepdim=True)
        else:
            self._param = given - logsumexp(given, -1, keepdim=True)
        self.__dict__[name] = self._param
        super().__init__(given.shape[:-1], validate_args=validate_args)

    def expand(self, batch_shape: Shape) -> Categorical:
        return self._expanded(batch_shape, "_param", "probs", "logits", rest=self._param.shape[-1:])

    @lazy_property
    def probs(self) -> DeviceArray:
        """The probability of each class."""
        return logits_to_probs(self.logits)

    @lazy_property
    def logits(self) -> DeviceArray:
        """The logarithms of probs."""
        return probs_to_logits(self.probs)

    @property
    def support(self) -> Constraint:
        """What a value is."""
        return constraints.integer_interval(0, self._param.shape[-1] - 1)

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of the parameter."""
        return self._param.shape

    @property
    def mean(self) -> DeviceArray:
        return _C.full(self._batch_shape, math.nan, dtype=self._param.dtype, device=self._param.device)

    @property
    def mode(self) -> DeviceArray:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> DeviceArray:
        return self.mean

    def sample(self, sample_shape: Shape = ()) -> DeviceArray:
        shape = self._extended_shape(sample_shape)
        count = math.prod(shape[: len(shape) - len(self._batch_shape)])
        if 0 in shape:
            return _C.empty(shape, dtype=_C.int64, device=self._param.device)
        rows = self.probs.reshape(-1, self._param.shape[-1])
        return multinomial(rows, count, True).t().reshape(shape)

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "logits")
        classes = value.to(_C.int64).unsqueeze(-1)
        *shape, count = common_shape((classes, self.logits))
        return self.logits.expand(*shape, count).gather(-1, classes.expand(*shape, 1)).squeeze(-1)

    def entropy(self) -> DeviceArray:
        least = finfo(self.logits.dtype).min
        return -(self.logits.clamp(min=least) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> DeviceArray:
        return enumerated(self._param.shape[-1], self._batch_shape, expand, self._param.device)
