"""Divergences of pairs of distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor.distributions.bernoulli import Bernoulli
from devtensor.distributions.categorical import Categorical
from devtensor.distributions.distribution import Distribution
from devtensor.distributions.exponential import Exponential
from devtensor.distributions.independent import Independent
from devtensor.distributions.laplace import Laplace
from devtensor.distributions.normal import Normal
from devtensor.distributions.uniform import Uniform
from devtensor.distributions.utils import sum_rightmost

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


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> DeviceArray:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence of Independent with several reinterpreted_batch_ndims")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
