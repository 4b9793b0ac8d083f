"""Probability distributions with PyTorch's names: samples, logarithms of densities, entropies, divergences.

Parameters are floats of one dtype on one device, whose shapes broadcast; samples are on that device. Values are checked
on the cpu only: on a CUDA device that would wait.
"""

from __future__ import annotations

from devtensor.distributions import constraints
from devtensor.distributions.bernoulli import Bernoulli
from devtensor.distributions.categorical import Categorical
from devtensor.distributions.distribution import Distribution
from devtensor.distributions.exponential import Exponential
from devtensor.distributions.independent import Independent
from devtensor.distributions.kl import kl_divergence, register_kl
from devtensor.distributions.laplace import Laplace
from devtensor.distributions.normal import Normal
from devtensor.distributions.uniform import Uniform

__all__ = [
    "Bernoulli",
    "Categorical",
    "Distribution",
    "Exponential",
    "Independent",
    "Laplace",
    "Normal",
    "Uniform",
    "constraints",
    "kl_divergence",
    "register_kl",
]


def __dir__() -> list[str]:
    return __all__
