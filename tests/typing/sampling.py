"""Random numbers of given distributions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_type

import devtensor as dt
import devtensor.distributions as distributions
from devtensor.distributions import constraints

weights, x = dt.rand(2, 3), dt.rand(3)
for drawn in (
    dt.multinomial(weights, 2, replacement=True), weights.multinomial(1), dt.bernoulli(x), x.bernoulli(),
    x.clone().bernoulli_(0.5), x.clone().bernoulli_(x), x.clone().exponential_(lambd=2.0),
):  # fmt: skip
    assert_type(drawn, dt.DeviceArray)

for d in (
    distributions.Normal(x, 1.0), distributions.Laplace(x, x + 1), distributions.Uniform(0.0, x + 1),
    distributions.Exponential(x + 1), distributions.Bernoulli(probs=x), distributions.Bernoulli(logits=x),
    distributions.Categorical(probs=weights), distributions.Categorical(logits=weights),
    distributions.Independent(distributions.Normal(weights, 1.0), 1), distributions.Gamma(x + 1, 1.0),
    distributions.Chi2(x + 1), distributions.Beta(x + 1, 1.0), distributions.Dirichlet(weights + 1),
    distributions.Cauchy(x, 1.0), distributions.Gumbel(x, 1.0), distributions.Pareto(x + 1, 3.0),
    distributions.Geometric(x), distributions.Binomial(3, x),
):  # fmt: skip
    assert isinstance(d, distributions.Distribution)
    assert_type(d.sample(), dt.DeviceArray)
    assert_type(d.sample((2, 3)), dt.DeviceArray)
    assert_type(d.entropy() + d.perplexity(), dt.DeviceArray)
    assert_type(d.mean + d.variance + d.stddev, dt.DeviceArray)
    assert_type(d.batch_shape + d.event_shape, dt.Size)
    assert_type(distributions.kl_divergence(d, d), dt.DeviceArray)
    assert isinstance(d.arg_constraints, Mapping)
    assert_type(d.support, constraints.Constraint)

for other in (
    distributions.StudentT(x + 1), distributions.Weibull(x + 1, 1.0), distributions.Poisson(x + 1),
    distributions.NegativeBinomial(3.0, x), distributions.InverseGamma(x + 3, 1.0),
    distributions.Kumaraswamy(x + 1, 2.0),
    distributions.FisherSnedecor(x + 3, 9.0), distributions.ContinuousBernoulli(logits=x),
    distributions.GeneralizedPareto(x, x + 1, 0.0),
):  # fmt: skip
    assert_type(other.sample(), dt.DeviceArray)
    assert_type(other.expand((2, 3)).log_prob(dt.ones(3)), dt.DeviceArray)

low_rank = distributions.LowRankMultivariateNormal(dt.zeros(3), dt.ones(3, 2), dt.ones(3))
assert_type(low_rank.log_prob(low_rank.rsample((2,))) + low_rank.entropy(), dt.DeviceArray)
assert_type(distributions.LogisticNormal(x, 1.0).sample(), dt.DeviceArray)
square = dt.eye(3)
for one in (
    distributions.LogNormal(x, 1.0), distributions.HalfNormal(x + 1), distributions.HalfCauchy(x + 1),
    distributions.VonMises(x, 1.0), distributions.Multinomial(3, weights), distributions.OneHotCategorical(weights),
    distributions.OneHotCategoricalStraightThrough(weights), distributions.RelaxedBernoulli(0.5, x),
    distributions.RelaxedOneHotCategorical(0.5, weights), distributions.relaxed.ExpRelaxedCategorical(0.5, weights),
    distributions.relaxed.LogitRelaxedBernoulli(0.5, x), distributions.MultivariateNormal(x, square),
    distributions.MixtureSameFamily(distributions.Categorical(x), distributions.Normal(x, 1.0)),
):  # fmt: skip
    assert isinstance(one, distributions.Distribution)
    assert_type(one.sample(), dt.DeviceArray)
assert_type(distributions.HalfNormal(x + 1).scale, dt.DeviceArray)

exp = distributions.ExpTransform()
for transform in (
    exp, exp.inv, distributions.AbsTransform(), distributions.AffineTransform(x, 2.0), distributions.SigmoidTransform(),
    distributions.CatTransform([exp, exp], 0, [1, 2]), distributions.ComposeTransform([exp, exp]),
    distributions.CumulativeDistributionTransform(distributions.Normal(0.0, 1.0)), distributions.SoftmaxTransform(),
    distributions.IndependentTransform(exp, 1), distributions.PowerTransform(2.0), distributions.SoftplusTransform(),
    distributions.ReshapeTransform((3,), (3, 1)), distributions.StackTransform([exp] * 3),
    distributions.TanhTransform(), distributions.StickBreakingTransform(), distributions.identity_transform,
):  # fmt: skip
    assert isinstance(transform, distributions.Transform)
    assert_type(transform(x + 1), dt.DeviceArray)
    assert_type(transform.inv, distributions.Transform)
for of_matrices in (distributions.LowerCholeskyTransform(), distributions.PositiveDefiniteTransform()):
    assert_type(of_matrices(square), dt.DeviceArray)
assert_type(distributions.biject_to(constraints.positive), distributions.Transform)
assert_type(distributions.transform_to(constraints.simplex), distributions.Transform)
registry: distributions.constraint_registry.ConstraintRegistry = distributions.transform_to
squashed = distributions.TransformedDistribution(
    distributions.Normal(x, 1.0), [distributions.transforms.TanhTransform()]
)
assert_type(squashed.rsample(), dt.DeviceArray)

normal = distributions.Normal(0.0, 1.0, validate_args=True)
assert_type(normal.loc, dt.DeviceArray)
assert_type(normal.rsample([2]), dt.DeviceArray)
assert_type(normal.log_prob(x), dt.DeviceArray)
assert_type(normal.cdf(x), dt.DeviceArray)
assert_type(normal.expand((2, 3)), distributions.Normal)
assert_type(distributions.Categorical(weights).logits, dt.DeviceArray)
assert_type(distributions.Bernoulli(x).enumerate_support(), dt.DeviceArray)
distributions.Distribution.set_default_validate_args(True)


class Shifted(distributions.Normal):
    pass


@distributions.register_kl(Shifted, distributions.Normal)
def divergence(p: Shifted, q: distributions.Normal) -> dt.DeviceArray:
    return p.loc - q.loc


assert_type(divergence(Shifted(0.0, 1.0), normal), dt.DeviceArray)
for constraint in (
    constraints.boolean, constraints.real, constraints.real_vector, constraints.positive, constraints.nonnegative,
    constraints.unit_interval, constraints.simplex, constraints.greater_than(0.0), constraints.greater_than_eq(0),
    constraints.less_than(x), constraints.interval(0, 1), constraints.integer_interval(0, 3),
    constraints.independent(constraints.real, 1), constraints.half_open_interval(0, 1), constraints.multinomial(3),
    constraints.cat([constraints.real] * 2), constraints.stack([constraints.real] * 2), constraints.one_hot,
    constraints.positive_integer, constraints.nonnegative_integer, constraints.lower_triangular,
    constraints.lower_cholesky, constraints.corr_cholesky, constraints.square, constraints.symmetric,
    constraints.MixtureSameFamilyConstraint(constraints.real),
):  # fmt: skip
    assert_type(constraint.check(weights), dt.DeviceArray)
for matrix in (constraints.positive_definite, constraints.positive_semidefinite):
    assert_type(matrix.check(dt.eye(2)), dt.DeviceArray)
assert constraints.is_dependent(constraints.dependent)


class Above(distributions.Uniform):
    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def range(self) -> constraints.Constraint:
        return constraints.greater_than(self.low)


assert constraints.is_dependent(Above.range)

assert_type(distributions.LKJCholesky(2, 1.5).sample((2,)), dt.DeviceArray)
assert isinstance(distributions.Wishart(3.0, scale_tril=dt.eye(2)), distributions.ExponentialFamily)
assert_type(distributions.CorrCholeskyTransform()(dt.ones(3)), dt.DeviceArray)
