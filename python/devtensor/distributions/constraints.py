"""What a parameter or a value of a distribution must be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._dtypes.info import finfo

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
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
    _bounds: tuple[str, ...] = ()  # the attributes that repr shows

    def check(self, value: DeviceArray) -> DeviceArray:
        """Whether each element is right."""
        raise NotImplementedError

    def __repr__(self) -> str:
        shown = [
            f"{name}={value.item() if isinstance(value, DeviceArray) and value.numel() == 1 else value}"
            for name, value in ((name, getattr(self, name)) for name in self._bounds)
        ]
        return f"{type(self).__name__.lstrip('_')}({', '.join(shown)})"


# ---------------------------------------------------------------- of elements


class _Real(Constraint):
    """No NaN."""

    def check(self, value: DeviceArray) -> DeviceArray:
        return value == value


class _Boolean(Constraint):
    """0 or 1."""

    is_discrete = True

    def check(self, value: DeviceArray) -> DeviceArray:
        return (value == 0) | (value == 1)


class _GreaterThan(Constraint):
    """Above lower_bound.

    >>> dt.distributions.constraints.greater_than(1.0).check(dt.tensor([1.0, 2.0])).tolist()
    [False, True]
    """

    _bounds = ("lower_bound",)

    def __init__(self, lower_bound: DeviceArray | float) -> None:
        self.lower_bound: DeviceArray | float = lower_bound

    def check(self, value: DeviceArray) -> DeviceArray:
        return value > self.lower_bound


class _GreaterThanEq(_GreaterThan):
    """At least lower_bound.

    >>> dt.distributions.constraints.greater_than_eq(1.0).check(dt.tensor([1.0, 0.5])).tolist()
    [True, False]
    """

    def check(self, value: DeviceArray) -> DeviceArray:
        return value >= self.lower_bound


class _IntegerGreaterThan(_GreaterThanEq):
    """A whole number from lower_bound."""

    is_discrete = True

    def check(self, value: DeviceArray) -> DeviceArray:
        return super().check(value) & (value % 1 == 0)


class _LessThan(Constraint):
    """Below upper_bound.

    >>> dt.distributions.constraints.less_than(1.0).check(dt.tensor([1.0, 0.5])).tolist()
    [False, True]
    """

    _bounds = ("upper_bound",)

    def __init__(self, upper_bound: DeviceArray | float) -> None:
        self.upper_bound: DeviceArray | float = upper_bound

    def check(self, value: DeviceArray) -> DeviceArray:
        return value < self.upper_bound


class _Interval(Constraint):
    """From lower_bound to upper_bound.

    >>> dt.distributions.constraints.interval(0.0, 1.0).check(dt.tensor([1.0, 2.0])).tolist()
    [True, False]
    """

    _bounds = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound: DeviceArray | float, upper_bound: DeviceArray | float) -> None:
        self.lower_bound: DeviceArray | float = lower_bound
        self.upper_bound: DeviceArray | float = upper_bound

    def check(self, value: DeviceArray) -> DeviceArray:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_Interval):
    """From lower_bound up to upper_bound, which is not in it.

    >>> dt.distributions.constraints.half_open_interval(0.0, 1.0).check(dt.tensor([0.0, 1.0])).tolist()
    [True, False]
    """

    def check(self, value: DeviceArray) -> DeviceArray:
        return (value >= self.lower_bound) & (value < self.upper_bound)


class _IntegerInterval(_Interval):
    """A whole number from lower_bound to upper_bound.

    >>> dt.distributions.constraints.integer_interval(0, 2).check(dt.tensor([1.0, 1.5])).tolist()
    [True, False]
    """

    is_discrete = True

    def check(self, value: DeviceArray) -> DeviceArray:
        return super().check(value) & (value % 1 == 0)


# ---------------------------------------------------------------- of rows and matrices


class _Simplex(Constraint):
    """Rows of numbers from 0 whose sum is 1."""

    event_dim = 1

    def check(self, value: DeviceArray) -> DeviceArray:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _OneHot(Constraint):
    """Rows of zeros with a single 1."""

    is_discrete = True
    event_dim = 1

    def check(self, value: DeviceArray) -> DeviceArray:
        return boolean.check(value).all(-1) & (value.sum(-1) == 1)


class _Multinomial(Constraint):
    """Rows of numbers from 0 whose sum is at most upper_bound.

    >>> dt.distributions.constraints.multinomial(3).check(dt.tensor([[1.0, 2.0], [2.0, 2.0]])).tolist()
    [True, False]
    """

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: DeviceArray | float) -> None:
        self.upper_bound: DeviceArray | float = upper_bound

    def check(self, value: DeviceArray) -> DeviceArray:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    """Matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value: DeviceArray) -> DeviceArray:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    """Lower triangular matrices whose diagonal is above 0."""

    def check(self, value: DeviceArray) -> DeviceArray:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Lower triangular matrices of rows of length 1 whose diagonal is above 0."""

    def check(self, value: DeviceArray) -> DeviceArray:
        length = value.detach().square().sum(-1).sqrt()
        far = finfo(value.dtype).eps * value.shape[-1] * 10
        return super().check(value) & ((length - 1).abs() <= far).all(-1)


class _Square(Constraint):
    """Matrices of as many rows as columns."""

    event_dim = 2

    def check(self, value: DeviceArray) -> DeviceArray:
        right = value.shape[-2] == value.shape[-1]
        return _C.full(value.shape[:-2], right, dtype=_C.bool, device=value.device)


class _Symmetric(_Square):
    """Matrices that are their transposes."""

    def check(self, value: DeviceArray) -> DeviceArray:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return ((value - value.mT).abs() <= 1e-6 + 1e-5 * value.mT.abs()).flatten(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices of eigenvalues from 0."""

    def check(self, value: DeviceArray) -> DeviceArray:
        right = super().check(value)
        return right & self._signs(value) if value.shape[-2] == value.shape[-1] else right

    def _signs(self, value: DeviceArray) -> DeviceArray:
        return (_eigenvalues(value) >= 0).all(-1)


class _PositiveDefinite(_PositiveSemidefinite):
    """Symmetric matrices of eigenvalues above 0."""

    def _signs(self, value: DeviceArray) -> DeviceArray:
        return (_eigenvalues(value) > 0).all(-1)


def _eigenvalues(value: DeviceArray) -> DeviceArray:
    from devtensor.linalg import eigvalsh

    return eigvalsh(value)


# ---------------------------------------------------------------- of other constraints


class _IndependentConstraint(Constraint):
    """base_constraint for all elements of the last dimensions together.

    >>> pairs = dt.distributions.constraints.independent(dt.distributions.constraints.positive, 1)
    >>> pairs.check(dt.tensor([[1.0, 2.0], [1.0, -2.0]])).tolist()
    [True, False]
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint: Constraint = base_constraint
        self.reinterpreted_batch_ndims: int = reinterpreted_batch_ndims
        self.is_discrete: bool = base_constraint.is_discrete
        self.event_dim: int = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: DeviceArray) -> DeviceArray:
        found = self.base_constraint.check(value)
        dims = self.reinterpreted_batch_ndims
        if found.ndim < dims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.ndim}")
        return found.flatten(found.ndim - dims).all(-1) if dims else found

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """base_constraint for a value beside each of the components of a mixture.

    >>> mixed = dt.distributions.constraints.MixtureSameFamilyConstraint(dt.distributions.constraints.positive)
    >>> mixed.check(dt.tensor([1.0, -2.0])).tolist()
    [True, False]
    """

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint: Constraint = base_constraint
        self.is_discrete: bool = base_constraint.is_discrete
        self.event_dim: int = base_constraint.event_dim

    def check(self, value: DeviceArray) -> DeviceArray:
        kept = value.ndim - self.event_dim
        if kept < 0:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.ndim}")
        return self.base_constraint.check(value.unsqueeze(kept)).flatten(kept).all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _Cat(Constraint):
    """A constraint for each part of dimension dim: the first lengths[0] entries, and so on.

    >>> both = dt.distributions.constraints.cat([dt.distributions.constraints.positive] * 2, lengths=[1, 2])
    >>> both.check(dt.tensor([1.0, 2.0, -3.0])).tolist()
    [True, True, False]
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        self.cseq: list[Constraint] = list(cseq)
        self.lengths: list[int] = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})")
        self.dim: int = dim
        self.is_discrete: bool = any(part.is_discrete for part in self.cseq)
        self.event_dim: int = max(part.event_dim for part in self.cseq)

    def check(self, value: DeviceArray) -> DeviceArray:
        found, start = [], 0
        for part, length in zip(self.cseq, self.lengths, strict=True):
            found.append(part.check(value.narrow(self.dim, start, length)))
            start += length
        return _C.cat(found, self.dim)


class _Stack(Constraint):
    """A constraint for each entry of dimension dim.

    >>> both = dt.distributions.constraints.stack([dt.distributions.constraints.positive] * 2)
    >>> both.check(dt.tensor([1.0, -3.0])).tolist()
    [True, False]
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq: list[Constraint] = list(cseq)
        self.dim: int = dim
        self.is_discrete: bool = any(part.is_discrete for part in self.cseq)
        most = max(part.event_dim for part in self.cseq)
        self.event_dim: int = most + 1 if dim + most < 0 else most

    def check(self, value: DeviceArray) -> DeviceArray:
        found = [part.check(value.select(self.dim, i)) for i, part in enumerate(self.cseq)]
        return _C.stack(found, self.dim)


class _Dependent(Constraint):
    """A constraint that depends on other parameters, so that nobody can check it without them.

    >>> dt.distributions.constraints.dependent(is_discrete=True).is_discrete
    True
    """

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._given = {"is_discrete": is_discrete, "event_dim": event_dim}

    def _told(self, name: str) -> Any:
        if self._given[name] is NotImplemented:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return self._given[name]

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether values are whole numbers."""
        return bool(self._told("is_discrete"))

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """How many dimensions one value has."""
        return int(self._told("event_dim"))

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        given = {"is_discrete": is_discrete, "event_dim": event_dim}
        return _Dependent(**self._given | {name: value for name, value in given.items() if value is not NotImplemented})

    def check(self, value: DeviceArray) -> DeviceArray:
        raise ValueError("Cannot determine validity of dependent constraint")


class dependent_property(property, _Dependent):
    """A property that gives a constraint, and is a dependent one where it is read of the class.

    >>> class Above(dt.distributions.Normal):
    ...     @dt.distributions.constraints.dependent_property(is_discrete=False, event_dim=0)
    ...     def support(self):
    ...         return dt.distributions.constraints.greater_than(self.loc)
    >>> Above(1.0, 2.0).support, dt.distributions.constraints.is_dependent(Above.support)
    (GreaterThan(lower_bound=1.0), True)
    """

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        self._given = {"is_discrete": is_discrete, "event_dim": event_dim}

    def __call__(self, fn: Callable[..., Any]) -> dependent_property:  # type: ignore[override]
        return dependent_property(fn, **self._given)


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on other parameters.

    >>> dt.distributions.constraints.is_dependent(dt.distributions.constraints.real)
    False
    """
    return isinstance(constraint, _Dependent)


greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
interval = _Interval
half_open_interval = _HalfOpenInterval
integer_interval = _IntegerInterval
independent = _IndependentConstraint
multinomial = _Multinomial
cat = _Cat
stack = _Stack

boolean: Constraint = _Boolean()
real: Constraint = _Real()
real_vector: Constraint = independent(real, 1)
positive: Constraint = greater_than(0.0)
nonnegative: Constraint = greater_than_eq(0.0)
positive_integer: Constraint = _IntegerGreaterThan(1)
nonnegative_integer: Constraint = _IntegerGreaterThan(0)
unit_interval: Constraint = interval(0.0, 1.0)
simplex: Constraint = _Simplex()
one_hot: Constraint = _OneHot()
lower_triangular: Constraint = _LowerTriangular()
lower_cholesky: Constraint = _LowerCholesky()
corr_cholesky: Constraint = _CorrCholesky()
square: Constraint = _Square()
symmetric: Constraint = _Symmetric()
positive_semidefinite: Constraint = _PositiveSemidefinite()
positive_definite: Constraint = _PositiveDefinite()
dependent: Constraint = _Dependent()
