"""Distributions of transformed random numbers."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from devtensor import _C
from devtensor._C import DeviceArray, _need_ints
from devtensor.autograd.grad_mode import no_grad
from devtensor.distributions import constraints
from devtensor.distributions.cauchy import Cauchy
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.distribution import Distribution, Shape
from devtensor.distributions.independent import Independent
from devtensor.distributions.normal import Normal
from devtensor.distributions.transforms import (
    AbsTransform,
    ComposeTransform,
    ExpTransform,
    StickBreakingTransform,
    Transform,
)
from devtensor.distributions.utils import sum_rightmost


class TransformedDistribution(Distribution):
    """transforms of what base_distribution draws, one after the other; densities take them back.

    >>> d = dt.distributions
    >>> d.TransformedDistribution(d.Uniform(0.0, 1.0), d.AffineTransform(1.0, 2.0)).log_prob(dt.tensor(1.5))
    DeviceArray(-0.6931, device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}

    base_dist: Any
    transforms: list[Transform]

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:
        if isinstance(transforms, Transform):
            transforms = [transforms]
        if not isinstance(transforms, list):
            raise ValueError(f"transforms must be a Transform or list, but was {_C._shown(transforms)}")
        if not all(isinstance(t, Transform) for t in transforms):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        self.transforms = transforms
        shape, dims = base_distribution.batch_shape + base_distribution.event_shape, len(base_distribution.event_shape)
        whole = ComposeTransform(transforms)
        inner, outer = whole.domain.event_dim, whole.codomain.event_dim
        if len(shape) < inner:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {inner}, but got {tuple(shape)}."
            )
        forward = whole.forward_shape(shape)
        wanted = whole.inverse_shape(forward)
        if tuple(shape) != tuple(wanted):
            base_distribution = base_distribution.expand(wanted[: len(wanted) - dims])
        if inner > dims:
            base_distribution = Independent(base_distribution, inner - dims)
        self.base_dist = base_distribution
        cut = len(forward) - max(outer, dims + outer - inner)
        super().__init__(forward[:cut], forward[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Shape) -> TransformedDistribution:
        made = self._expanded(batch_shape)
        shape: tuple[int, ...] = (*_need_ints("expand", "batch_shape", batch_shape), *self._event_shape)
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        made.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return made

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether there is rsample."""
        return bool(self.base_dist.has_rsample)

    @property
    def support(self) -> Constraint:
        """What a value is."""
        if not self.transforms:
            base: Constraint = self.base_dist.support
            return base
        found = self.transforms[-1].codomain
        more = len(self._event_shape) - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    def _forward(self, x: DeviceArray) -> DeviceArray:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Shape = ()) -> DeviceArray:
        with no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        return self._forward(self.base_dist.rsample(sample_shape))

    def _look(self, op: str, value: DeviceArray, of_support: bool = True) -> None:
        if not isinstance(value, DeviceArray):
            raise ValueError(f"The value argument to {op} must be a Tensor")
        self._check_value(op, ("value",), (value,), of_support)

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self._look("log_prob", value)
        dims, y = len(self._event_shape), value
        changes = []
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            dims += transform.domain.event_dim - transform.codomain.event_dim
            change = transform.log_abs_det_jacobian(x, y)
            changes.append(sum_rightmost(change, dims - transform.domain.event_dim))
            y = x
        result = sum_rightmost(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))
        for change in reversed(changes):
            result = result - change
        return result

    def _upwards(self, value: DeviceArray) -> DeviceArray:
        """value for transforms that grow, 1 - value for those that fall."""
        sign = ComposeTransform(self.transforms).sign
        if isinstance(sign, int) and sign == 1:
            return value
        turned: DeviceArray = sign * (value - 0.5) + 0.5
        return turned

    def cdf(self, value: DeviceArray) -> DeviceArray:
        self._look("cdf", value, of_support=False)
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        return self._upwards(self.base_dist.cdf(value))

    def icdf(self, value: DeviceArray) -> DeviceArray:
        self._look("icdf", value, of_support=False)
        return self._forward(self.base_dist.icdf(self._upwards(value)))


class LogNormal(TransformedDistribution):
    """exp of normal numbers of mean loc and standard deviation scale.

    >>> dt.distributions.LogNormal(0.0, 1.0).mode
    DeviceArray(0.3679, device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {"loc": constraints.real, "scale": constraints.positive}
    support: ClassVar[Constraint] = constraints.positive

    base_dist: Normal

    def __init__(self, loc: DeviceArray | float, scale: DeviceArray | float, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def loc(self) -> DeviceArray:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> DeviceArray:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> DeviceArray:
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def mode(self) -> DeviceArray:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> DeviceArray:
        square = self.scale.square()
        return _C.expm1(square) * (2 * self.loc + square).exp()

    def entropy(self) -> DeviceArray:
        return self.base_dist.entropy() + self.loc


class LogisticNormal(TransformedDistribution):
    """Numbers above 0 whose sum is 1, made of normal ones of mean loc and standard deviation scale, one fewer.

    By StickBreakingTransform: its last one has no normal number of its own.

    >>> dt.distributions.LogisticNormal(dt.zeros(3), dt.ones(3)).sample().shape
    (4,)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {"loc": constraints.real, "scale": constraints.positive}
    support: ClassVar[Constraint] = constraints.simplex

    base_dist: Independent

    def __init__(self, loc: DeviceArray | float, scale: DeviceArray | float, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def loc(self) -> DeviceArray:
        """The means of the normal numbers."""
        found: DeviceArray = self.base_dist.base_dist.loc  # type: ignore[attr-defined]
        return found

    @property
    def scale(self) -> DeviceArray:
        """The standard deviations of the normal numbers."""
        found: DeviceArray = self.base_dist.base_dist.scale  # type: ignore[attr-defined]
        return found


class _Half(TransformedDistribution):
    """abs of a symmetric distribution around 0."""

    arg_constraints: ClassVar[dict[str, Constraint]] = {"scale": constraints.positive}
    support: ClassVar[Constraint] = constraints.nonnegative

    base_dist: Normal | Cauchy

    @property
    def scale(self) -> DeviceArray:
        """The scale of the whole distribution."""
        return self.base_dist.scale

    @property
    def mode(self) -> DeviceArray:
        return _C.zeros_like(self.scale)

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self._look("log_prob", value)
        return _C.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: DeviceArray) -> DeviceArray:
        self._look("cdf", value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: DeviceArray) -> DeviceArray:
        self._look("icdf", value, of_support=False)
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> DeviceArray:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """abs of normal numbers of mean 0 and standard deviation scale.

    >>> dt.distributions.HalfNormal(1.0).mean
    DeviceArray(0.7979, device='cpu', dtype=float32)
    """

    base_dist: Normal

    def __init__(self, scale: DeviceArray | float, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0.0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def mean(self) -> DeviceArray:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> DeviceArray:
        return self.scale.square() * (1 - 2 / math.pi)


class HalfCauchy(_Half):
    """abs of Cauchy numbers around 0.

    >>> dt.distributions.HalfCauchy(1.0).cdf(dt.tensor(1.0))
    DeviceArray(0.5000, device='cpu', dtype=float32)
    """

    base_dist: Cauchy

    def __init__(self, scale: DeviceArray | float, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0.0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def mean(self) -> DeviceArray:
        return _C.full_like(self.scale, math.inf)

    @property
    def variance(self) -> DeviceArray:
        return self.base_dist.variance
