"""Probability distributions with PyTorch's names: samples, logarithms of densities, entropies, divergences.

Parameters are floats of one dtype on one device, whose shapes broadcast; samples are on that device. Values are checked
on the cpu only: on a CUDA device that would wait.
"""

from __future__ import annotations

from devtensor.distributions import constraints
from devtensor.distributions.bernoulli import Bernoulli
from devtensor.distributions.categorical import Categorical
from devtensor.distributions.cauchy import Cauchy, StudentT
from devtensor.distributions.counts import Binomial, Geometric, NegativeBinomial, Poisson
from devtensor.distributions.distribution import Distribution
from devtensor.distributions.exponential import Exponential
from devtensor.distributions.extremes import Gumbel, Pareto, Weibull
from devtensor.distributions.gamma import Beta, Chi2, Dirichlet, Gamma
from devtensor.distributions.independent import Independent
from devtensor.distributions.kl import kl_divergence, register_kl
from devtensor.distributions.laplace import Laplace
from devtensor.distributions.normal import Normal
from devtensor.distributions.uniform import Uniform

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "Gamma",
    "Geometric",
    "Gumbel",
    "Independent",
    "Laplace",
    "NegativeBinomial",
    "Normal",
    "Pareto",
    "Poisson",
    "StudentT",
    "Uniform",
    "Weibull",
    "constraints",
    "kl_divergence",
    "register_kl",
]


def __dir__() -> list[str]:
    return __all__
