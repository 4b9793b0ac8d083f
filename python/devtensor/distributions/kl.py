"""Divergences of pairs of distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor.distributions.bernoulli import Bernoulli
from devtensor.distributions.categorical import Categorical
from devtensor.distributions.cauchy import Cauchy
from devtensor.distributions.counts import Binomial, Geometric, Poisson
from devtensor.distributions.distribution import Distribution
from devtensor.distributions.exp_family import ExponentialFamily, divergence
from devtensor.distributions.exponential import Exponential
from devtensor.distributions.extremes import Gumbel, Pareto
from devtensor.distributions.gamma import Beta, Dirichlet, Gamma
from devtensor.distributions.independent import Independent
from devtensor.distributions.laplace import Laplace
from devtensor.distributions.normal import Normal
from devtensor.distributions.one_hot_categorical import OneHotCategorical
from devtensor.distributions.ratios import InverseGamma
from devtensor.distributions.transformed_distribution import HalfNormal, TransformedDistribution
from devtensor.distributions.uniform import Uniform
from devtensor.distributions.utils import euler_constant, sum_rightmost

Formula = Callable[[Any, Any], DeviceArray]
F = TypeVar("F", bound=Formula)

_FORMULAS: dict[tuple[type, type], Formula] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[F], F]:
    """Decorates a function (p, q) that kl_divergence calls for distributions of these classes.

    >>> @dt.distributions.register_kl(dt.distributions.Laplace, dt.distributions.Normal)
    ... def divergence(p, q):
    ...     return dt.zeros(())
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {_C._shown(kind)}")

    def decorator(formula: F) -> F:
        _FORMULAS[type_p, type_q] = formula
        return formula

    return decorator


def kl_divergence(p: Distribution, q: Distribution) -> DeviceArray:
    """The divergence of q from p: the mean under p of log p - log q.

    Raises NotImplementedError for classes that no register_kl names.

    >>> normal = dt.distributions.Normal
    >>> dt.distributions.kl_divergence(normal(0.0, 1.0), normal(1.0, 1.0))
    DeviceArray(0.5000, device='cpu', dtype=float32)
    """
    for one in type(p).__mro__:
        for other in type(q).__mro__:
            if (one, other) in _FORMULAS:
                return _FORMULAS[one, other](p, q)
    raise NotImplementedError(
        f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
    )


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> DeviceArray:
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> DeviceArray:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * (-distance / p.scale).exp() - 1


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> DeviceArray:
    outside = _C.logical_or(q.low > p.low, q.high < p.high)
    return _C.where(outside, math.inf, ((q.high - q.low) / (p.high - p.low)).log())


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> DeviceArray:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> DeviceArray:
    yes = p.probs * (_C.softplus(-q.logits) - _C.softplus(-p.logits))
    yes = _C.where(p.probs == 0, 0.0, _C.where(q.probs == 0, math.inf, yes))
    no = (1 - p.probs) * (_C.softplus(q.logits) - _C.softplus(p.logits))
    return yes + _C.where(p.probs == 1, 0.0, _C.where(q.probs == 1, math.inf, no))


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> DeviceArray:
    parts = p.probs * (p.logits - q.logits)
    return _C.where(p.probs == 0, 0.0, _C.where(q.probs == 0, math.inf, parts)).sum(-1)


@register_kl(InverseGamma, InverseGamma)  # of the inverses it is the same
@register_kl(Gamma, Gamma)
def _gamma(p: Gamma | InverseGamma, q: Gamma | InverseGamma) -> DeviceArray:
    a = p.concentration
    slopes = (a - q.concentration) * a.digamma() + (q.rate - p.rate) * (a / p.rate)
    return q.concentration * (p.rate / q.rate).log() + q.concentration.lgamma() - a.lgamma() + slopes


def _dirichlets(p: DeviceArray, q: DeviceArray) -> DeviceArray:
    """The divergence of Dirichlet distributions of these concentrations."""
    total = p.sum(-1)
    normal = total.lgamma() - q.sum(-1).lgamma() - (p.lgamma() - q.lgamma()).sum(-1)
    return normal + ((p - q) * (p.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> DeviceArray:
    return _dirichlets(p.concentration, q.concentration)


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> DeviceArray:
    return _dirichlets(p._both(), q._both())


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> DeviceArray:
    return ((p.scale + q.scale).square() + (p.loc - q.loc).square()).log() - (4 * p.scale * q.scale).log()


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> DeviceArray:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc) / q.scale
    rest = ((1 + ratio).lgamma() - distance).exp() + ratio * euler_constant
    return distance - ratio.log() + rest - (1 + euler_constant)


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> DeviceArray:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return _C.where(p.scale < q.scale, math.inf, result)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> DeviceArray:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> DeviceArray:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> DeviceArray:
    if not p.total_count.is_cuda and bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    parts = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    fewer = _C.where(p.total_count < q.total_count, math.nan, p.total_count * parts)
    return _C.where(p.total_count > q.total_count, math.inf, fewer)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> DeviceArray:
    return _normal(p.base_dist, q.base_dist)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> DeviceArray:
    return _categorical(p._categorical, q._categorical)


register_kl(ExponentialFamily, ExponentialFamily)(divergence)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> DeviceArray:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence of distributions with different transforms or event_shape")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> DeviceArray:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence of Independent with several reinterpreted_batch_ndims")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
