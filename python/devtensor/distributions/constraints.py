"""What a parameter or a value of a distribution must be."""

from __future__ import annotations

from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray

__all__ = [
    "Constraint",
    "boolean",
    "greater_than",
    "greater_than_eq",
    "independent",
    "integer_interval",
    "interval",
    "less_than",
    "nonnegative",
    "positive",
    "real",
    "real_vector",
    "simplex",
    "unit_interval",
]


def __dir__() -> list[str]:
    return __all__


class Constraint:
    """check(value) tells element by element, or row by row, whether value is what it must be.

    event_dim is how many dimensions one value has; is_discrete whether values are whole numbers.

    >>> dt.distributions.constraints.positive.check(dt.tensor([1.0, -1.0]))
    DeviceArray([ True, False], device='cpu', dtype=bool)
    """

    is_discrete: bool = False
    event_dim: int = 0

    def check(self, value: DeviceArray) -> DeviceArray:
        """Whether each element is right."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__.lstrip('_')}()"


class _Real(Constraint):
    """No NaN."""

    def check(self, value: DeviceArray) -> DeviceArray:
        return value == value


class _Boolean(Constraint):
    """0 or 1."""

    is_discrete = True

    def check(self, value: DeviceArray) -> DeviceArray:
        return _C.logical_or(value == 0, value == 1)


class _Simplex(Constraint):
    """Rows of numbers from 0 whose sum is 1."""

    event_dim = 1

    def check(self, value: DeviceArray) -> DeviceArray:
        return _C.logical_and((value >= 0).all(-1), (value.sum(-1) - 1).abs() < 1e-6)


class _Bounded(Constraint):
    """With bounds, which are numbers or arrays."""

    def __init__(self, **bounds: Any) -> None:
        self.__dict__.update(bounds)
        self._bounds = tuple(bounds)

    def __repr__(self) -> str:
        shown = [
            f"{name}={value.item() if isinstance(value, DeviceArray) and value.numel() == 1 else value}"
            for name, value in ((name, getattr(self, name)) for name in self._bounds)
        ]
        return f"{type(self).__name__.lstrip('_')}({', '.join(shown)})"


class _GreaterThan(_Bounded):
    """Above lower_bound."""

    lower_bound: DeviceArray | float

    def check(self, value: DeviceArray) -> DeviceArray:
        return value > self.lower_bound


class _GreaterThanEq(_GreaterThan):
    """At least lower_bound."""

    def check(self, value: DeviceArray) -> DeviceArray:
        return value >= self.lower_bound


class _LessThan(_Bounded):
    """Below upper_bound."""

    upper_bound: DeviceArray | float

    def check(self, value: DeviceArray) -> DeviceArray:
        return value < self.upper_bound


class _Interval(_Bounded):
    """From lower_bound to upper_bound."""

    lower_bound: DeviceArray | float
    upper_bound: DeviceArray | float

    def check(self, value: DeviceArray) -> DeviceArray:
        return _C.logical_and(value >= self.lower_bound, value <= self.upper_bound)


class _IntegerInterval(_Interval):
    """A whole number from lower_bound to upper_bound."""

    is_discrete = True

    def check(self, value: DeviceArray) -> DeviceArray:
        return _C.logical_and(super().check(value), value % 1 == 0)


class _IndependentConstraint(Constraint):
    """A constraint for all elements of the last dimensions together."""

    def __init__(self, base: Constraint, dims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base, dims
        self.is_discrete, self.event_dim = base.is_discrete, base.event_dim + dims

    def check(self, value: DeviceArray) -> DeviceArray:
        found = self.base_constraint.check(value)
        return found.flatten(found.ndim - self.reinterpreted_batch_ndims).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint}, {self.reinterpreted_batch_ndims})"


def greater_than(lower_bound: Any) -> Constraint:
    """Above lower_bound.

    >>> dt.distributions.constraints.greater_than(1.0).check(dt.tensor([1.0, 2.0])).tolist()
    [False, True]
    """
    return _GreaterThan(lower_bound=lower_bound)


def greater_than_eq(lower_bound: Any) -> Constraint:
    """At least lower_bound.

    >>> dt.distributions.constraints.greater_than_eq(1.0).check(dt.tensor([1.0, 0.5])).tolist()
    [True, False]
    """
    return _GreaterThanEq(lower_bound=lower_bound)


def less_than(upper_bound: Any) -> Constraint:
    """Below upper_bound.

    >>> dt.distributions.constraints.less_than(1.0).check(dt.tensor([1.0, 0.5])).tolist()
    [False, True]
    """
    return _LessThan(upper_bound=upper_bound)


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """From lower_bound to upper_bound.

    >>> dt.distributions.constraints.interval(0.0, 1.0).check(dt.tensor([1.0, 2.0])).tolist()
    [True, False]
    """
    return _Interval(lower_bound=lower_bound, upper_bound=upper_bound)


def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """A whole number from lower_bound to upper_bound.

    >>> dt.distributions.constraints.integer_interval(0, 2).check(dt.tensor([1.0, 1.5])).tolist()
    [True, False]
    """
    return _IntegerInterval(lower_bound=lower_bound, upper_bound=upper_bound)


def independent(base_constraint: Constraint, reinterpreted_batch_ndims: int) -> Constraint:
    """base_constraint for all elements of the last dimensions together.

    >>> pairs = dt.distributions.constraints.independent(dt.distributions.constraints.positive, 1)
    >>> pairs.check(dt.tensor([[1.0, 2.0], [1.0, -2.0]])).tolist()
    [True, False]
    """
    return _IndependentConstraint(base_constraint, reinterpreted_batch_ndims)


boolean: Constraint = _Boolean()
real: Constraint = _Real()
real_vector: Constraint = independent(real, 1)
positive: Constraint = greater_than(0.0)
nonnegative: Constraint = greater_than_eq(0.0)
unit_interval: Constraint = interval(0.0, 1.0)
simplex: Constraint = _Simplex()
