"""The normal distribution of vectors whose covariance is a matrix of low rank and a diagonal."""

from __future__ import annotations

import math
from typing import ClassVar

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import need_array
from devtensor._composed.shapes.diagonals import diag_embed
from devtensor._composed.shapes.joining import broadcast_shapes
from devtensor.distributions import constraints
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.covariances import log_diagonal
from devtensor.distributions.distribution import Distribution, Shape
from devtensor.distributions.multivariate_normal import squared_distance
from devtensor.linalg import cholesky, inv


class LowRankMultivariateNormal(Distribution):
    """The normal distribution of vectors of mean loc (..., n) and covariance cov_factor @ cov_factor.mT + cov_diag.

    cov_factor (..., n, rank), cov_diag (..., n), a diagonal. Only matrices (rank, rank) are solved, by Woodbury's
    identity.

    >>> dt.distributions.LowRankMultivariateNormal(dt.zeros(2), dt.ones(2, 1), dt.ones(2)).variance
    DeviceArray([2., 2.], device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support: ClassVar[Constraint] = constraints.real_vector
    has_rsample: bool = True

    loc: DeviceArray

    def __init__(
        self, loc: DeviceArray, cov_factor: DeviceArray, cov_diag: DeviceArray, validate_args: bool | None = None
    ) -> None:
        op, names, arrays = "LowRankMultivariateNormal", ("loc", "cov_factor", "cov_diag"), (loc, cov_factor, cov_diag)
        for name, array in zip(names, arrays, strict=True):
            need_array(op, name, array)
        _C._check(op, names, arrays)
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if cov_factor.ndim < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        count = loc.shape[-1]
        if cov_factor.shape[-2] != count:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {count} x m")
        if cov_diag.shape[-1:] != (count,):
            raise ValueError(f"cov_diag must be a batch of vectors with shape {count}")
        batch = broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc: DeviceArray = loc.expand(*batch, count)
        self.cov_factor: DeviceArray = cov_factor.expand(*batch, *cov_factor.shape[-2:])
        self.cov_diag: DeviceArray = cov_diag.expand(*batch, count)
        super().__init__(batch, (count,), validate_args=validate_args)

    def expand(self, batch_shape: Shape) -> LowRankMultivariateNormal:
        made = self._expanded(batch_shape, "loc", "cov_diag", rest=self._event_shape)
        made.cov_factor = self.cov_factor.expand(*made._batch_shape, *self.cov_factor.shape[-2:])
        return made

    def _capacitance(self) -> DeviceArray:
        """The lower Cholesky factor of I + W.mT @ inv(D) @ W."""
        W = self.cov_factor
        one = _C.eye(W.shape[-1], dtype=W.dtype, device=W.device)
        return cholesky(one + W.mT @ (W / self.cov_diag.unsqueeze(-1)))

    @property
    def covariance_matrix(self) -> DeviceArray:
        """The covariance of each pair of elements."""
        return self.cov_factor @ self.cov_factor.mT + diag_embed(self.cov_diag)

    @property
    def scale_tril(self) -> DeviceArray:
        """The lower Cholesky factor of covariance_matrix."""
        return cholesky(self.covariance_matrix)

    @property
    def precision_matrix(self) -> DeviceArray:
        """The inverse of covariance_matrix."""
        return inv(self.covariance_matrix)

    @property
    def mean(self) -> DeviceArray:
        return self.loc

    @property
    def mode(self) -> DeviceArray:
        return self.loc

    @property
    def variance(self) -> DeviceArray:
        return self.cov_factor.square().sum(-1) + self.cov_diag

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        shape, like = self._extended_shape(sample_shape), self.loc
        of_factor = _C.randn(*shape[:-1], self.cov_factor.shape[-1], dtype=like.dtype, device=like.device)
        of_diagonal = _C.randn(shape, dtype=like.dtype, device=like.device)
        return self.loc + (self.cov_factor @ of_factor.unsqueeze(-1)).squeeze(-1) + self.cov_diag.sqrt() * of_diagonal

    def _log_determinant(self, capacitance: DeviceArray) -> DeviceArray:
        return 2 * log_diagonal(capacitance) + self.cov_diag.log().sum(-1)

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self._beside("log_prob", value, "loc")
        apart, capacitance = value - self.loc, self._capacitance()
        scaled = apart / self.cov_diag
        inner = (self.cov_factor.mT @ scaled.unsqueeze(-1)).squeeze(-1)
        distance = (apart * scaled).sum(-1) - squared_distance(capacitance, inner)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_determinant(capacitance) + distance)

    def entropy(self) -> DeviceArray:
        count = self._event_shape[0]
        return 0.5 * (count * (1 + math.log(2 * math.pi)) + self._log_determinant(self._capacitance()))
