"""Transforms from all numbers to those that a constraint allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor.distributions import constraints, transforms
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.transforms import Transform

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


def __dir__() -> list[str]:
    return __all__


Factory = Callable[[Any], Transform]


class ConstraintRegistry:
    """Calls the function that register() has kept for the class of a constraint.

    >>> registry = dt.distributions.constraint_registry.ConstraintRegistry()
    >>> _ = registry.register(dt.distributions.constraints.real, lambda _: dt.distributions.identity_transform)
    >>> registry(dt.distributions.constraints.real) is dt.distributions.identity_transform
    True
    """

    def __init__(self) -> None:
        self._registry: dict[type, Factory] = {}

    def register(self, constraint: Constraint | type, factory: Factory | None = None) -> Any:
        """Keeps factory for a constraint or its class; without factory, decorates one."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, Constraint)):
            raise TypeError(
                f"Expected constraint to be either a Constraint subclass or instance, but got {_C._shown(constraint)}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        """The transform to what constraint allows. Raises NotImplementedError for a class that is not there."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to: ConstraintRegistry = ConstraintRegistry()
transform_to: ConstraintRegistry = ConstraintRegistry()


def _of_both(*kinds: Constraint | type) -> Callable[[Factory], Factory]:
    def decorator(factory: Factory) -> Factory:
        for registry in (biject_to, transform_to):
            for kind in kinds:
                registry.register(kind, factory)
        return factory

    return decorator


@_of_both(constraints.real)
def _real(constraint: Any) -> Transform:
    return transforms.identity_transform


@_of_both(constraints.greater_than, constraints.greater_than_eq)
def _greater_than(constraint: Any) -> Transform:
    affine = transforms.AffineTransform(constraint.lower_bound, 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), affine])


@_of_both(constraints.less_than)
def _less_than(constraint: Any) -> Transform:
    affine = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), affine])


@_of_both(constraints.interval, constraints.half_open_interval)
def _interval(constraint: Any) -> Transform:
    lower, upper = constraint.lower_bound, constraint.upper_bound
    sigmoid = transforms.SigmoidTransform()
    if not isinstance(lower, DeviceArray) and not isinstance(upper, DeviceArray) and (lower, upper) == (0, 1):
        return sigmoid
    return transforms.ComposeTransform([sigmoid, transforms.AffineTransform(lower, upper - lower)])


for _registry in (biject_to, transform_to):

    def _independent(constraint: Any, registry: ConstraintRegistry = _registry) -> Transform:
        base = registry(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    def _cat(constraint: Any, registry: ConstraintRegistry = _registry) -> Transform:
        return transforms.CatTransform([registry(c) for c in constraint.cseq], constraint.dim, constraint.lengths)

    def _stack(constraint: Any, registry: ConstraintRegistry = _registry) -> Transform:
        return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)

    _registry.register(constraints.independent, _independent)
    _registry.register(constraints.cat, _cat)
    _registry.register(constraints.stack, _stack)
    _registry.register(constraints.corr_cholesky, lambda _: transforms.CorrCholeskyTransform())

biject_to.register(constraints.simplex, lambda _: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda _: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda _: transforms.LowerCholeskyTransform())
transform_to.register(constraints.positive_definite, lambda _: transforms.PositiveDefiniteTransform())
transform_to.register(constraints.positive_semidefinite, lambda _: transforms.PositiveDefiniteTransform())
