"""Mixtures of distributions of one class."""

from __future__ import annotations

from typing import ClassVar

from devtensor import _C
from devtensor._C import DeviceArray, _need_ints
from devtensor._composed.reductions.moments import logsumexp
from devtensor.autograd.grad_mode import no_grad
from devtensor.distributions import constraints
from devtensor.distributions.categorical import Categorical
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.distribution import Distribution, Shape


class MixtureSameFamily(Distribution):
    """Values of one of the distributions along the last batch dimension of component_distribution.

    mixture_distribution, a Categorical, says of which.

    >>> d = dt.distributions
    >>> halves, normals = d.Categorical(dt.ones(2)), d.Normal(dt.tensor([-1.0, 1.0]), 1.0)
    >>> d.MixtureSameFamily(halves, normals).variance
    DeviceArray(2., device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        mixed, batch = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        if any(i != j and 1 not in (i, j) for i, j in zip(reversed(mixed), reversed(batch), strict=False)):
            raise ValueError(
                f"`mixture_distribution.batch_shape` ({mixed}) is not compatible with "
                f"`component_distribution.batch_shape`({batch})"
            )
        count, wanted = mixture_distribution.param_shape[-1], component_distribution.batch_shape[-1]
        if count != wanted:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({wanted})"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        super().__init__(batch, component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Shape) -> MixtureSameFamily:
        made = self._expanded(batch_shape)
        count = self._mixture_distribution.param_shape[-1]
        shape = _need_ints("expand", "batch_shape", batch_shape)
        made._component_distribution = self._component_distribution.expand((*shape, count))
        made._mixture_distribution = self._mixture_distribution.expand(shape)
        return made

    @property
    def mixture_distribution(self) -> Categorical:
        """Which distribution a value is of."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The distributions."""
        return self._component_distribution

    @property
    def support(self) -> Constraint:
        """What a value is."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def _dim(self) -> int:
        """The dimension of the distributions."""
        return -1 - len(self._event_shape)

    def _mixed(self, values: DeviceArray) -> DeviceArray:
        """The mean over the distributions."""
        probs = self._mixture_distribution.probs
        probs = probs.reshape(*probs.shape, *(1,) * len(self._event_shape))
        return (probs * values).sum(self._dim)

    @property
    def mean(self) -> DeviceArray:
        return self._mixed(self._component_distribution.mean)

    @property
    def variance(self) -> DeviceArray:
        own = self._component_distribution
        far = (own.mean - self.mean.unsqueeze(self._dim)).square()
        return self._mixed(own.variance) + self._mixed(far)

    def sample(self, sample_shape: Shape = ()) -> DeviceArray:
        with no_grad():
            drawn = self._component_distribution.sample(sample_shape)
            dim = drawn.ndim + self._dim
            which = self._mixture_distribution.expand(self._batch_shape).sample(sample_shape)
            which = which.reshape(*which.shape, *(1,) * (drawn.ndim - which.ndim))
            return drawn.gather(dim, which.expand(*drawn.shape[:dim], 1, *self._event_shape)).squeeze(dim)

    def _spread(self, op: str, value: DeviceArray) -> DeviceArray:
        if not isinstance(value, DeviceArray):
            raise ValueError(f"The value argument to {op} must be a Tensor")
        own = self._mixture_distribution.logits
        _C._check(op, ("mixture_distribution.logits", "value"), (own, value), apart=1)
        self._check_value(op, ("value",), (value,))
        return value.unsqueeze(self._dim)

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        found = self._component_distribution.log_prob(self._spread("log_prob", value))
        return logsumexp(found + self._mixture_distribution.logits.log_softmax(-1), -1)

    def cdf(self, value: DeviceArray) -> DeviceArray:
        found = self._component_distribution.cdf(self._spread("cdf", value))
        return (found * self._mixture_distribution.probs).sum(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
