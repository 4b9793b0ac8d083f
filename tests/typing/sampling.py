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
    distributions.Independent(distributions.Normal(weights, 1.0), 1),
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
    constraints.independent(constraints.real, 1),
):  # fmt: skip
    assert_type(constraint.check(weights), dt.DeviceArray)
