"""Distributions of counts: geometric, Poisson, binomial and negative binomial."""

from __future__ import annotations

from typing import Any, ClassVar

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.creating import rejection
from devtensor._composed.losses.basic import binary_cross_entropy_with_logits
from devtensor._dtypes.info import finfo
from devtensor.distributions import constraints
from devtensor.distributions.bernoulli import OfProbs
from devtensor.distributions.categorical import enumerated
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.distribution import Distribution, Shape


class Geometric(OfProbs):
    """How many trials fail before the first success: probs * (1 - probs)**k.

    >>> dt.distributions.Geometric(0.25).mean
    DeviceArray(3., device='cpu', dtype=float32)
    """

    support: ClassVar[Constraint] = constraints.nonnegative_integer

    def __init__(
        self,
        probs: DeviceArray | float | None = None,
        logits: DeviceArray | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not self._param.is_cuda and not bool((self._param > 0).all()):
            text = (
                f"Expected parameter probs (Tensor of shape {self._param.shape}) of distribution {self!r} "
                f"to be positive but found invalid values:\n{self._param}"
            )
            raise _C._explained("Geometric", ("probs",), (self._param,), "invalid-argument", ValueError(text), 0)

    @property
    def mean(self) -> DeviceArray:
        return 1 / self.probs - 1

    @property
    def mode(self) -> DeviceArray:
        return _C.zeros_like(self.probs)

    @property
    def variance(self) -> DeviceArray:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Shape = ()) -> DeviceArray:
        probs = self.probs.detach()
        shape = self._extended_shape(sample_shape)
        uniform = _C.rand(shape, dtype=probs.dtype, device=probs.device).clamp(min=finfo(probs.dtype).tiny)
        return (uniform.log() / (-probs).log1p()).floor()

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "probs")
        sure = (self.probs == 1) & (value == 0)
        return value * (-_C.where(sure, 0.0, self.probs)).log1p() + self.probs.log()

    def entropy(self) -> DeviceArray:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


class Poisson(Distribution):
    """rate**k * exp(-rate) / k! for k from 0.

    >>> dt.distributions.Poisson(2.0).log_prob(dt.tensor(0.0))
    DeviceArray(-2., device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {"rate": constraints.nonnegative}
    support: ClassVar[Constraint] = constraints.nonnegative_integer
    _names: tuple[str, ...] = ("rate",)

    rate: DeviceArray

    def __init__(self, rate: DeviceArray | float, validate_args: bool | None = None) -> None:
        (self.rate,) = self._broadcast(rate=rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> DeviceArray:
        return self.rate

    @property
    def mode(self) -> DeviceArray:
        return self.rate.floor()

    @property
    def variance(self) -> DeviceArray:
        return self.rate

    def sample(self, sample_shape: Shape = ()) -> DeviceArray:
        return rejection.poisson(self.rate, self._extended_shape(sample_shape))

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "rate")
        value = value.to(self.rate.dtype)
        return value.xlogy(self.rate) - self.rate - (value + 1).lgamma()


class _OfTrials(OfProbs):
    """total_count trials; it takes the dtype of the other parameter."""

    _names: tuple[str, ...] = (*OfProbs._names, "total_count")

    total_count: DeviceArray

    def _take_trials(self, total_count: Any, probs: Any, logits: Any) -> None:
        if isinstance(total_count, DeviceArray):
            given = probs if logits is None else logits
            total_count = total_count.to(given.dtype if isinstance(given, DeviceArray) else _C.get_default_dtype())
        self.total_count = self._take(probs, logits, total_count=total_count)[0]


class Binomial(_OfTrials):
    """How many of total_count trials succeed, each with probability probs.

    entropy and enumerate_support read total_count, which must be the same everywhere, from its device.

    >>> dt.distributions.Binomial(10, 0.25).mean
    DeviceArray(2.5000, device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "total_count": constraints.nonnegative_integer,
        **OfProbs.arg_constraints,
    }
    has_enumerate_support: bool = True

    def __init__(
        self,
        total_count: DeviceArray | int = 1,
        probs: DeviceArray | float | None = None,
        logits: DeviceArray | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._take_trials(total_count, probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def support(self) -> Constraint:
        """What a value is."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> DeviceArray:
        return self.total_count * self.probs

    @property
    def mode(self) -> DeviceArray:
        return ((self.total_count + 1) * self.probs).floor().minimum(self.total_count)

    @property
    def variance(self) -> DeviceArray:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> DeviceArray:
        return rejection.binomial(self.total_count, self.probs, self._extended_shape(sample_shape))

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "logits")
        value = value.to(self.logits.dtype)
        n = self.total_count
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return ways + value * self.logits - n * _C.softplus(self.logits)

    def entropy(self) -> DeviceArray:
        found = self._log_probs("entropy")
        return -(found.exp() * found).sum(0)

    def _log_probs(self, op: str) -> DeviceArray:
        values = enumerated(self._trials(op) + 1, self._batch_shape, False, self._param.device)
        return self._expanded(self._batch_shape).log_prob(values.to(self._param.dtype))

    def _trials(self, op: str) -> int:
        most = int(self.total_count.max())
        if int(self.total_count.min()) != most:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{op}`.")
        return most

    def enumerate_support(self, expand: bool = True) -> DeviceArray:
        count = self._trials("enumerate_support") + 1
        return enumerated(count, self._batch_shape, expand, self._param.device).to(self._param.dtype)


class NegativeBinomial(_OfTrials):
    """How many trials succeed, each with probability probs, before total_count failures.

    >>> dt.distributions.NegativeBinomial(3.0, 0.5).mean
    DeviceArray(3., device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support: ClassVar[Constraint] = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: DeviceArray | float,
        probs: DeviceArray | float | None = None,
        logits: DeviceArray | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._take_trials(total_count, probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> DeviceArray:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> DeviceArray:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> DeviceArray:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Shape = ()) -> DeviceArray:
        shape = self._extended_shape(sample_shape)
        rate = rejection.standard_gamma(self.total_count.detach(), shape) * self.logits.detach().exp()
        return rejection.poisson(rate, shape)

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "logits")
        value = value.to(self.logits.dtype)
        n = self.total_count
        powers = -n * _C.softplus(self.logits) - value * _C.softplus(-self.logits)
        ways = (n + value).lgamma() - (1 + value).lgamma() - n.lgamma()
        return powers + _C.where(n + value == 0, 0.0, ways)
