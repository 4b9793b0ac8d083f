"""The normal distribution of vectors."""

from __future__ import annotations

import math
from typing import ClassVar

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import need_array
from devtensor._composed.shapes.joining import broadcast_shapes
from devtensor.distributions import constraints
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.covariances import OfCovariance, factor_of, given_form, log_diagonal, need_matrix
from devtensor.distributions.distribution import Shape
from devtensor.linalg import solve_triangular


class MultivariateNormal(OfCovariance):
    """The normal distribution of vectors of mean loc (..., n).

    One of covariance_matrix, precision_matrix (its inverse) and scale_tril (its lower Cholesky factor), all
    (..., n, n), says how they spread.

    >>> dt.distributions.MultivariateNormal(dt.zeros(2), dt.eye(2)).log_prob(dt.zeros(2))
    DeviceArray(-1.8379, device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support: ClassVar[Constraint] = constraints.real_vector
    has_rsample: bool = True

    loc: DeviceArray

    def __init__(
        self,
        loc: DeviceArray,
        covariance_matrix: DeviceArray | None = None,
        precision_matrix: DeviceArray | None = None,
        scale_tril: DeviceArray | None = None,
        validate_args: bool | None = None,
    ) -> None:
        op = "MultivariateNormal"
        need_array(op, "loc", loc)
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = given_form(op, covariance_matrix, precision_matrix, scale_tril)
        _C._check(op, ("loc", name), (loc, matrix))
        need_matrix(name, matrix)
        batch, count = broadcast_shapes(loc.shape[:-1], matrix.shape[:-2]), loc.shape[-1:]
        self.loc = loc.expand(*batch, *count)
        self._keep(name, matrix, batch)
        super().__init__(batch, count, validate_args=validate_args)
        self._factor = factor_of(name, matrix)

    def expand(self, batch_shape: Shape) -> MultivariateNormal:
        made = self._expanded(batch_shape, "loc", rest=self._event_shape)
        made._expand_forms(self)
        return made

    @property
    def mean(self) -> DeviceArray:
        return self.loc

    @property
    def mode(self) -> DeviceArray:
        return self.loc

    @property
    def variance(self) -> DeviceArray:
        return self._factor.square().sum(-1).expand(self.loc.shape)

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        shape = self._extended_shape(sample_shape)
        normal = _C.randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self._factor @ normal.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self._beside("log_prob", value, "loc")
        distance = squared_distance(self.scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - log_diagonal(self._factor)

    def entropy(self) -> DeviceArray:
        entropy = 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + log_diagonal(self._factor)
        return entropy.expand(self._batch_shape)


def squared_distance(factor: DeviceArray, x: DeviceArray) -> DeviceArray:
    """The sum of squares of inv(factor) @ x: each matrix of factor is used once for all x beside it."""
    batch, n = factor.shape[:-2], factor.shape[-1]
    shape = broadcast_shapes(x.shape[:-1], batch)
    many = math.prod(shape[: len(shape) - len(batch)])
    columns = x.expand(*shape, n).reshape(many, *shape[len(shape) - len(batch) :], n).movedim(0, -1)
    found: DeviceArray = solve_triangular(factor, columns, upper=False).square().sum(-2)
    return found.movedim(-1, 0).reshape(shape)
