"""Divergences of normal distributions of vectors, each of a whole covariance or of one of low rank."""

from __future__ import annotations

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.shapes.joining import broadcast_shapes
from devtensor.distributions.covariances import log_diagonal
from devtensor.distributions.kl import register_kl
from devtensor.distributions.low_rank import LowRankMultivariateNormal
from devtensor.distributions.multivariate_normal import MultivariateNormal, squared_distance
from devtensor.linalg import solve_triangular

_Vectors = MultivariateNormal | LowRankMultivariateNormal


def _root(d: _Vectors) -> DeviceArray:
    """A matrix whose product with its own transpose is the covariance."""
    if isinstance(d, MultivariateNormal):
        return d._factor
    return _C.cat((d.cov_factor, d.cov_diag.sqrt().diag_embed()), -1)


def _log_determinant(d: _Vectors) -> DeviceArray:
    if isinstance(d, MultivariateNormal):
        return 2 * log_diagonal(d._factor)
    return d._log_determinant(d._capacitance())


def _solved(factor: DeviceArray, right: DeviceArray) -> DeviceArray:
    batch = broadcast_shapes(factor.shape[:-2], right.shape[:-2])
    operands = (a.expand(*batch, *a.shape[-2:]) for a in (factor, right))
    found: DeviceArray = solve_triangular(*operands, upper=False)
    return found


def _spread(q: _Vectors, root: DeviceArray) -> DeviceArray:
    """The trace of the inverse covariance of q times root @ root.mT; of low rank by Woodbury's identity."""
    if isinstance(q, MultivariateNormal):
        return _solved(q._factor, root).square().sum((-2, -1))
    inner = _solved(q._capacitance(), (q.cov_factor / q.cov_diag.unsqueeze(-1)).mT) @ root
    return (root / q.cov_diag.sqrt().unsqueeze(-1)).square().sum((-2, -1)) - inner.square().sum((-2, -1))


def _vectors(p: _Vectors, q: _Vectors) -> DeviceArray:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes cannot be computed"
        )
    apart, n = q.loc - p.loc, p.event_shape[0]
    if isinstance(q, MultivariateNormal):
        distance = squared_distance(q._factor.expand(*apart.shape, n), apart)
    else:
        distance = _spread(q, apart.unsqueeze(-1))
    return 0.5 * (_log_determinant(q) - _log_determinant(p) + _spread(q, _root(p)) + distance - n)


for _p in (MultivariateNormal, LowRankMultivariateNormal):
    for _q in (MultivariateNormal, LowRankMultivariateNormal):
        register_kl(_p, _q)(_vectors)
