"""Transforms of each element."""

from __future__ import annotations

import math
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._dtypes.info import finfo
from devtensor.distributions import constraints
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.transform import Shape, Transform
from devtensor.distributions.utils import broadcast_sizes


class ExpTransform(Transform):
    """exp(x).

    >>> dt.distributions.ExpTransform()(dt.tensor(0.0))
    DeviceArray(1., device='cpu', dtype=float32)
    """

    codomain: constraints.Constraint = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: DeviceArray) -> DeviceArray:
        return x.exp()

    def _inverse(self, y: DeviceArray) -> DeviceArray:
        return y.log()

    def log_abs_det_jacobian(self, x: DeviceArray, y: DeviceArray) -> DeviceArray:
        return x


class PowerTransform(Transform):
    """x**exponent of x above 0.

    >>> dt.distributions.PowerTransform(2.0)(dt.tensor(3.0))
    DeviceArray(9., device='cpu', dtype=float32)
    """

    domain: constraints.Constraint = constraints.positive
    codomain: constraints.Constraint = constraints.positive
    bijective = True

    def __init__(self, exponent: DeviceArray | float, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent: DeviceArray | float = exponent

    @property
    def sign(self) -> Any:
        return _sign(self.exponent)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and _same(self.exponent, other.exponent)

    def _call(self, x: DeviceArray) -> DeviceArray:
        return x**self.exponent

    def _inverse(self, y: DeviceArray) -> DeviceArray:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: DeviceArray, y: DeviceArray) -> DeviceArray:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Shape) -> Shape:
        return broadcast_sizes(shape, self.exponent)

    inverse_shape = forward_shape


def clipped_sigmoid(x: DeviceArray) -> DeviceArray:
    """sigmoid(x), so far from 0 and 1 that logarithms are finite."""
    return x.sigmoid().clamp(min=finfo(x.dtype).tiny, max=1 - finfo(x.dtype).eps)


class SigmoidTransform(Transform):
    """1 / (1 + exp(-x)).

    >>> dt.distributions.SigmoidTransform()(dt.tensor(0.0))
    DeviceArray(0.5000, device='cpu', dtype=float32)
    """

    codomain: constraints.Constraint = constraints.unit_interval
    bijective = True
    sign = 1

    def _call(self, x: DeviceArray) -> DeviceArray:
        return clipped_sigmoid(x)

    def _inverse(self, y: DeviceArray) -> DeviceArray:
        y = y.clamp(min=finfo(y.dtype).tiny, max=1 - finfo(y.dtype).eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: DeviceArray, y: DeviceArray) -> DeviceArray:
        return -_C.softplus(-x) - _C.softplus(x)


class SoftplusTransform(Transform):
    """log(1 + exp(x)).

    >>> dt.distributions.SoftplusTransform()(dt.tensor(0.0))
    DeviceArray(0.6931, device='cpu', dtype=float32)
    """

    codomain: constraints.Constraint = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: DeviceArray) -> DeviceArray:
        return _C.softplus(x)

    def _inverse(self, y: DeviceArray) -> DeviceArray:
        return (-_C.expm1(-y)).log() + y

    def log_abs_det_jacobian(self, x: DeviceArray, y: DeviceArray) -> DeviceArray:
        return -_C.softplus(-x)


class TanhTransform(Transform):
    """tanh(x). Better than an AffineTransform of a SigmoidTransform near 1 and -1.

    >>> dt.distributions.TanhTransform()(dt.tensor(0.0))
    DeviceArray(0., device='cpu', dtype=float32)
    """

    codomain: constraints.Constraint = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = 1

    def _call(self, x: DeviceArray) -> DeviceArray:
        return x.tanh()

    def _inverse(self, y: DeviceArray) -> DeviceArray:
        return y.atanh()

    def log_abs_det_jacobian(self, x: DeviceArray, y: DeviceArray) -> DeviceArray:
        return 2 * (math.log(2) - x - _C.softplus(-2 * x))


class AbsTransform(Transform):
    """abs(x).

    >>> dt.distributions.AbsTransform()(dt.tensor(-1.0))
    DeviceArray(1., device='cpu', dtype=float32)
    """

    codomain: constraints.Constraint = constraints.positive

    def _call(self, x: DeviceArray) -> DeviceArray:
        return x.abs()

    def _inverse(self, y: DeviceArray) -> DeviceArray:
        return y


class AffineTransform(Transform):
    """loc + scale * x, for values of event_dim dimensions.

    >>> dt.distributions.AffineTransform(1.0, 2.0)(dt.tensor(3.0))
    DeviceArray(7., device='cpu', dtype=float32)
    """

    bijective = True

    def __init__(
        self, loc: DeviceArray | float, scale: DeviceArray | float, event_dim: int = 0, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.loc: DeviceArray | float = loc
        self.scale: DeviceArray | float = scale
        self._event_dim = event_dim
        if event_dim:
            rows = constraints.independent(constraints.real, event_dim)
            self.domain: constraints.Constraint = rows
            self.codomain: constraints.Constraint = rows

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @property
    def sign(self) -> Any:
        return _sign(self.scale)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and _same(self.loc, other.loc) and _same(self.scale, other.scale)

    def _call(self, x: DeviceArray) -> DeviceArray:
        return self.loc + self.scale * x

    def _inverse(self, y: DeviceArray) -> DeviceArray:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: DeviceArray, y: DeviceArray) -> DeviceArray:
        if isinstance(self.scale, DeviceArray):
            result = self.scale.abs().log()
        else:
            result = _C.full_like(x, math.log(abs(self.scale)))
        if self._event_dim:
            result = result.reshape(*result.shape[: result.ndim - self._event_dim], -1).sum(-1)
        return result.expand(x.shape[: x.ndim - self._event_dim])

    def forward_shape(self, shape: Shape) -> Shape:
        return broadcast_sizes(shape, self.loc, self.scale)

    inverse_shape = forward_shape


def _sign(value: DeviceArray | float) -> Any:
    return value.sign() if isinstance(value, DeviceArray) else (value > 0) - (value < 0)


def _same(one: Any, other: Any) -> bool:
    same = one == other
    return bool(same.all() if isinstance(same, DeviceArray) else same)


class CumulativeDistributionTransform(Transform):
    """The distribution function of a distribution; its inverse is icdf.

    >>> normal = dt.distributions.Normal(0.0, 1.0)
    >>> dt.distributions.CumulativeDistributionTransform(normal)(dt.tensor(0.0))
    DeviceArray(0.5000, device='cpu', dtype=float32)
    """

    codomain: constraints.Constraint = constraints.unit_interval
    bijective = True
    sign = 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution: Any = distribution

    @property
    def domain(self) -> Constraint:  # type: ignore[override]
        support: Constraint = self.distribution.support
        return support

    def _call(self, x: DeviceArray) -> DeviceArray:
        result: DeviceArray = self.distribution.cdf(x)
        return result

    def _inverse(self, y: DeviceArray) -> DeviceArray:
        result: DeviceArray = self.distribution.icdf(y)
        return result

    def log_abs_det_jacobian(self, x: DeviceArray, y: DeviceArray) -> DeviceArray:
        result: DeviceArray = self.distribution.log_prob(x)
        return result
