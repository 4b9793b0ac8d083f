"""Probability distributions with PyTorch's names: samples, logarithms of densities, entropies, divergences.

Parameters are floats of one dtype on one device, whose shapes broadcast; samples are on that device. Values are checked
on the cpu only: on a CUDA device that would wait.
"""

from __future__ import annotations

from devtensor.distributions import constraint_registry, constraints, kl_pairs, kl_vectors, relaxed, transforms
from devtensor.distributions.bernoulli import Bernoulli
from devtensor.distributions.categorical import Categorical
from devtensor.distributions.cauchy import Cauchy, StudentT
from devtensor.distributions.constraint_registry import biject_to, transform_to
from devtensor.distributions.correlation import LKJCholesky
from devtensor.distributions.counts import Binomial, Geometric, NegativeBinomial, Poisson
from devtensor.distributions.distribution import Distribution
from devtensor.distributions.exp_family import ExponentialFamily
from devtensor.distributions.exponential import Exponential
from devtensor.distributions.extremes import GeneralizedPareto, Gumbel, Pareto, Weibull
from devtensor.distributions.gamma import Beta, Chi2, Dirichlet, Gamma
from devtensor.distributions.independent import Independent
from devtensor.distributions.kl import kl_divergence, register_kl
from devtensor.distributions.laplace import Laplace
from devtensor.distributions.low_rank import LowRankMultivariateNormal
from devtensor.distributions.mixture_same_family import MixtureSameFamily
from devtensor.distributions.multivariate_normal import MultivariateNormal
from devtensor.distributions.normal import Normal
from devtensor.distributions.one_hot_categorical import Multinomial, OneHotCategorical, OneHotCategoricalStraightThrough
from devtensor.distributions.ratios import FisherSnedecor, InverseGamma
from devtensor.distributions.relaxed import RelaxedBernoulli, RelaxedOneHotCategorical
from devtensor.distributions.transformed_distribution import (
    HalfCauchy,
    HalfNormal,
    LogisticNormal,
    LogNormal,
    TransformedDistribution,
)
from devtensor.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from devtensor.distributions.uniform import Uniform
from devtensor.distributions.unit_interval import ContinuousBernoulli, Kumaraswamy
from devtensor.distributions.von_mises import VonMises
from devtensor.distributions.wishart import Wishart

del kl_pairs, kl_vectors  # they have registered their formulas

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "ContinuousBernoulli",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "constraint_registry",
    "constraints",
    "identity_transform",
    "kl_divergence",
    "register_kl",
    "relaxed",
    "transform_to",
    "transforms",
]


def __dir__() -> list[str]:
    return __all__
