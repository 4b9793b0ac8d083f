"""Divergences of two distributions of different classes: the mean of -log q under p, less the entropy of p."""

from __future__ import annotations

import math
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor.distributions.bernoulli import Bernoulli
from devtensor.distributions.counts import Binomial, Poisson
from devtensor.distributions.exponential import Exponential
from devtensor.distributions.extremes import Gumbel, Pareto
from devtensor.distributions.gamma import Beta, Gamma
from devtensor.distributions.kl import register_kl
from devtensor.distributions.laplace import Laplace
from devtensor.distributions.normal import Normal
from devtensor.distributions.uniform import Uniform
from devtensor.distributions.unit_interval import ContinuousBernoulli
from devtensor.distributions.utils import euler_constant

# What draws numbers that the other never draws.
_INFINITE: tuple[tuple[type, tuple[type, ...]], ...] = (
    (Beta, (Pareto,)),
    (ContinuousBernoulli, (Pareto,)),
    (Exponential, (Beta, ContinuousBernoulli, Pareto, Uniform)),
    (Gamma, (Beta, ContinuousBernoulli, Pareto, Uniform)),
    (Gumbel, (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    (Laplace, (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    (Normal, (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    (Pareto, (Beta, ContinuousBernoulli, Uniform)),
    (Poisson, (Bernoulli, Binomial)),
)


def _infinite(p: Any, q: Any) -> DeviceArray:
    return _C.full(p.batch_shape, math.inf, dtype=p.mean.dtype, device=p.mean.device)


def _to_normal(p: Any, q: Normal) -> DeviceArray:
    spread: DeviceArray = (p.variance + (p.mean - q.loc).square()) / (2 * q.scale.square())
    entropy: DeviceArray = p.entropy()
    return spread + q.scale.log() + 0.5 * math.log(2 * math.pi) - entropy


def _inside(p: Any, least: DeviceArray | float, result: DeviceArray) -> DeviceArray:
    """result, or infinity where p is uniform from below least."""
    return _C.where(p.low < least, math.inf, result) if isinstance(p, Uniform) else result


def _to_exponential(p: Any, q: Exponential) -> DeviceArray:
    result: DeviceArray = q.rate * p.mean - q.rate.log() - p.entropy()
    return _inside(p, 0.0, result)


def _mean_log(p: Any) -> DeviceArray:
    """The mean of log x."""
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Exponential):
        return -p.rate.log() - euler_constant
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    return _uniform_mean_log(p.low, p.high)


def _uniform_mean_log(low: DeviceArray, high: DeviceArray) -> DeviceArray:
    return (high.xlogy(high) - low.xlogy(low)) / (high - low) - 1


def _to_gamma(p: Any, q: Gamma) -> DeviceArray:
    a = q.concentration
    normal = a.lgamma() - a * q.rate.log() - p.entropy()
    return _inside(p, 0.0, normal + q.rate * p.mean - (a - 1) * _mean_log(p))


def _to_gumbel(p: Any, q: Gumbel) -> DeviceArray:
    s = q.scale
    if isinstance(p, Exponential):
        power = p.rate * s / (p.rate * s + 1)
    elif isinstance(p, Gamma):
        power = (1 + 1 / (p.rate * s)) ** -p.concentration
    elif isinstance(p, Normal):
        power = (0.5 * (p.scale / s).square() - p.loc / s).exp()
    else:
        power = s * ((-p.low / s).exp() - (-p.high / s).exp()) / (p.high - p.low)
    result: DeviceArray = s.log() + (p.mean - q.loc) / s + (q.loc / s).exp() * power - p.entropy()
    return result


def _to_continuous_bernoulli(p: Any, q: ContinuousBernoulli) -> DeviceArray:
    """Uniform numbers may reach the ends, unlike in PyTorch: there is a density."""
    result: DeviceArray = -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._log_constant()
    return _C.where(p.high > 1, math.inf, _inside(p, 0.0, result)) if isinstance(p, Uniform) else result


for _p, _others in _INFINITE:
    for _q in _others:
        register_kl(_p, _q)(_infinite)
for _p in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform):
    register_kl(_p, Normal)(_to_normal)
for _p in (Beta, ContinuousBernoulli, Gamma, Pareto, Uniform):
    register_kl(_p, Exponential)(_to_exponential)
for _p in (Beta, ContinuousBernoulli, Uniform):
    register_kl(_p, ContinuousBernoulli)(_to_continuous_bernoulli)
for _p in (Beta, Exponential, Pareto, Uniform):
    register_kl(_p, Gamma)(_to_gamma)
for _p in (Exponential, Gamma, Normal, Uniform):
    register_kl(_p, Gumbel)(_to_gumbel)


@register_kl(Bernoulli, Poisson)
def _to_poisson(p: Bernoulli, q: Poisson) -> DeviceArray:
    return q.rate - p.probs * q.rate.log() - p.entropy()


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _shares_to_uniform(p: Beta | ContinuousBernoulli, q: Uniform) -> DeviceArray:
    result = (q.high - q.low).log() - p.entropy()
    return _C.where((q.low > 0) | (q.high < 1), math.inf, result)


@register_kl(Normal, Laplace)
def _normal_to_laplace(p: Normal, q: Laplace) -> DeviceArray:
    far = p.loc - q.loc
    ratio = far / p.scale
    mean = math.sqrt(2 / math.pi) * p.scale * (-0.5 * ratio.square()).exp() + far * (math.sqrt(0.5) * ratio).erf()
    return (2 * q.scale).log() + mean / q.scale - p.entropy()


@register_kl(Uniform, Beta)
def _uniform_to_beta(p: Uniform, q: Beta) -> DeviceArray:
    one, zero = q.concentration1, q.concentration0
    powers = (one - 1) * _uniform_mean_log(p.low, p.high) + (zero - 1) * _uniform_mean_log(1 - p.high, 1 - p.low)
    result = one.lgamma() + zero.lgamma() - (one + zero).lgamma() - powers - p.entropy()
    return _C.where((p.high > 1) | (p.low < 0), math.inf, result)


@register_kl(Uniform, Pareto)
def _uniform_to_pareto(p: Uniform, q: Pareto) -> DeviceArray:
    powers = (q.alpha + 1) * _mean_log(p) - q.alpha.log() - q.alpha.xlogy(q.scale)
    return _inside(p, q.scale, powers - p.entropy())
