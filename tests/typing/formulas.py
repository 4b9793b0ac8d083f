"""Ops that are formulas of others, and second names: functions, methods and what they write in place."""

from __future__ import annotations

from typing import assert_type

import devtensor as dt

x, y, mask = dt.rand(2, 3), dt.rand(2, 3), dt.rand(2, 3) > 0.5
places, labels, double = dt.zeros(2, 3, dtype=dt.int64), dt.tensor([0, 1]), dt.rand(2, dtype=dt.float64)

for value in (
    dt.addcdiv(x, x, y + 1, value=2), dt.addcmul(x, x, y), dt.clamp_max(x, 1), dt.clamp_min(x, y), dt.copysign(x, -1.0),
    dt.deg2rad(x), dt.digamma(x), dt.exp2(x), dt.float_power(x, 2), dt.float_power(2.0, x), dt.frac(x),
    dt.heaviside(x, y), dt.isneginf(x), dt.isposinf(x), dt.isreal(x), dt.ldexp(x, labels[0]), dt.lgamma(x),
    dt.logit(x, eps=1e-6), dt.nan_to_num(x, nan=1.0), dt.rad2deg(x), dt.round(x, decimals=2), dt.signbit(x), dt.sinc(x),
    dt.xlogy(x, y), dt.xlogy(2, y), dt.count_nonzero(x, dim=0), dt.dist(x, y), dt.nanmean(x, 1), dt.nansum(x),
    dt.renorm(x, 2, 0, 1.0), dt.aminmax(x).min, dt.arcsin(x), dt.arccos(x), dt.arctan(x), dt.arcsinh(x),
    dt.arccosh(x + 1), dt.arctanh(x), dt.arctan2(x, y), dt.divide(x, 2, rounding_mode="floor"), dt.fix(x),
    dt.greater(x, y), dt.greater_equal(x, y), dt.less(x, y), dt.less_equal(x, y), dt.multiply(x, y), dt.negative(x),
    dt.not_equal(x, y), dt.sgn(x), dt.subtract(x, y, alpha=2), dt.true_divide(x, y + 1),
):  # fmt: skip
    assert_type(value, dt.DeviceArray)
for value in (
    dt.erfc(x), x.erfc(), x.clone().erfc_(),
    dt.scatter(x, 1, places, x), dt.scatter(x, 1, places, value=1.0), dt.scatter_reduce(x, 1, places, x, "sum"),
    dt.index_copy(x, 0, labels, y), dt.index_fill(x, 0, labels, 1.0), dt.index_put(x, (labels, labels), y[0, :2]),
    dt.put(x, labels, y[0, :2]), dt.masked_scatter(x, mask, y),
):  # fmt: skip
    assert_type(value, dt.DeviceArray)
for pair in (dt.std_mean(x, 0), dt.var_mean(x, correction=0)):
    assert_type(pair, tuple[dt.DeviceArray, dt.DeviceArray])
assert_type(dt.promote_types(dt.int32, dt.float16), dt.dtype)
assert_type(dt.result_type(x, 1), dt.dtype)
assert_type(dt.can_cast(dt.int32, dt.float16), bool)
assert_type(dt.is_nonzero(dt.ones(1)), bool)
for value in (
    dt.gcd(labels, labels), dt.lcm(labels, labels), dt.frexp(x).exponent, dt.igamma(x, y), dt.igammac(x, y),
    dt.polygamma(2, x), dt.mvlgamma(x + 1, 1), dt.histogram(x, dt.tensor([0.0, 1.0]), density=True).hist,
    *dt.gradient(x, spacing=2.0, dim=0, edge_order=1), dt.poisson(x.abs()), dt.binomial(dt.ones(2), dt.ones(2)),
    dt.resolve_neg(x),
):  # fmt: skip
    assert_type(value, dt.DeviceArray)
for answer in (
    x.is_same_size(y), x.is_set_to(y), x.is_conj(), x.is_neg(), x.is_distributed(), x.is_inference(), x.is_shared(),
    dt.is_same_size(x, y), dt.is_inference(x), dt.ones(1).is_nonzero(), x.dim_order() == (0, 1),
):  # fmt: skip
    assert_type(answer, bool)

for value in (
    x.addcdiv(x, y + 1), x.addcmul(x, y, value=2), x.clamp_max(1), x.clamp_min(y), x.copysign(y), x.deg2rad(),
    x.digamma(), x.exp2(), x.float_power(2), x.frac(), x.heaviside(y), x.isneginf(), x.isposinf(), x.isreal(),
    x.ldexp(labels[0]), x.lgamma(), x.logit(), x.nan_to_num(), x.rad2deg(), x.round(decimals=1), x.signbit(), x.sinc(),
    x.xlogy(y), x.count_nonzero(), x.dist(y), x.nanmean(), x.nansum(0), x.renorm(2, 0, 1.0), x.aminmax(dim=0).max,
    dt.index_reduce(x, 0, labels, y, "mean"), x.index_reduce(0, labels, y, "prod"),
    x.scatter(1, places, x), x.scatter_reduce(1, places, x, "mean"), x.index_copy(0, labels, y),
    x.index_fill(0, labels, 1), x.index_put((labels,), y), x.put(labels, y[0, :2]), x.masked_scatter(mask, y),
    x.divide(2), x.true_divide(y + 1), x.subtract(1), x.multiply(y), x.negative(), x.arctan2(y), x.clip(0, y),
    labels.gcd(labels), labels.lcm(labels), x.frexp().mantissa, x.igamma(y), x.igammac(y), x.polygamma(1),
    x.mvlgamma(1),
    x.histogram(4, range=(0, 1), weight=x).bin_edges, x.resolve_neg(), x.new_empty_strided((2,), (1,)),
):  # fmt: skip
    assert_type(value, dt.DeviceArray)
for value in (
    x.addcdiv_(x, y + 1), x.addcmul_(x, y), x.clamp_max_(1), x.clamp_min_(y), x.copysign_(y), x.deg2rad_(),
    x.digamma_(), x.exp2_(), double.float_power_(2), x.frac_(), x.heaviside_(y), x.ldexp_(labels[0]), x.lgamma_(),
    x.logit_(), x.nan_to_num_(), x.rad2deg_(), x.round_(decimals=1), x.sinc_(), x.xlogy_(y), x.renorm_(2, 0, 1.0),
    x.index_reduce_(0, labels, y, "amax", include_self=False),
    x.scatter_(1, places, 1.0), x.scatter_reduce_(1, places, x, "sum"), x.index_copy_(0, labels, y),
    x.index_fill_(0, labels, 1), x.index_put_((labels,), y), x.put_(labels, y[0, :2]), x.masked_scatter_(mask, y),
    x.divide_(2), x.true_divide_(y + 1), x.subtract_(1), x.multiply_(y), x.clip_(0, 1),
    labels.clone().gcd_(labels), labels.clone().lcm_(labels), x.clone().igamma_(y), x.clone().igammac_(y),
    x.clone().polygamma_(1), x.clone().mvlgamma_(1), x.clone().i0_(), labels.clone().bitwise_left_shift_(1),
    labels.clone().bitwise_right_shift_(1), dt.ones(3).addmv_(dt.ones(3, 2), dt.ones(2), beta=2),
    dt.ones(3, 2).addr_(dt.ones(3), dt.ones(2)), dt.ones(3, 2).addmm_(dt.ones(3, 4), dt.ones(4, 2), alpha=2),
    dt.ones(1, 3, 2).baddbmm_(dt.ones(1, 3, 4), dt.ones(1, 4, 2)),
):  # fmt: skip
    assert_type(value, dt.DeviceArray)
