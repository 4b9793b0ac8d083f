"""Running sums, elements in order, and what is read off them."""

from __future__ import annotations

from typing import assert_type

import devtensor as dt

x, places = dt.rand(2, 3), dt.tensor([2, 0, 1])

for value in (
    dt.cumsum(x, 1), dt.cumprod(x, 1, dtype=dt.float64), dt.logcumsumexp(x, 0), dt.argsort(x, stable=True),
    dt.msort(x), dt.median(x), dt.nanmedian(x), dt.quantile(x, 0.5), dt.nanquantile(x, dt.rand(2), 1, True),
    dt.searchsorted(places.sort().values, places, right=True), dt.searchsorted(places, 1, sorter=places),
    dt.bucketize(x, dt.arange(3.0)), dt.bucketize(0.5, dt.arange(3.0), out_int32=True), dt.isin(x, places),
    dt.isin(x, 1, invert=True), dt.bincount(places, minlength=4), dt.histc(x, 4, 0, 1), dt.argwhere(x),
    dt.cumsum(x, 1, out=dt.empty(2, 3)),
):  # fmt: skip
    assert_type(value, dt.DeviceArray)
for value in (
    x.cumsum(1), x.cumprod(0), x.cumsum_(0), x.cumprod_(1), x.logcumsumexp(1), x.argsort(descending=True), x.msort(),
    x.median(), x.nanmedian(), x.quantile(0.5, interpolation="lower"), x.nanquantile(0.5), places.bincount(),
    x.histc(), x.argwhere(),
):  # fmt: skip
    assert_type(value, dt.DeviceArray)

for function, method in ((dt.cummax(x, 1), x.cummax(0)),):
    assert_type(function, dt.cummax_result)
    assert_type(method.values, dt.DeviceArray)
assert_type(dt.cummin(x, 1), dt.cummin_result)
assert_type(x.cummin(1), dt.cummin_result)
assert_type(dt.sort(x, 1, True), dt.sort_result)
assert_type(x.sort().indices, dt.DeviceArray)
assert_type(dt.topk(x, 2, largest=False), dt.topk_result)
assert_type(x.topk(2), dt.topk_result)
assert_type(dt.kthvalue(x, 2), dt.kthvalue_result)
assert_type(x.kthvalue(2, keepdim=True), dt.kthvalue_result)
assert_type(dt.median(x, 1), dt.median_result)
assert_type(x.median(1), dt.median_result)
assert_type(dt.nanmedian(x, 1), dt.nanmedian_result)
assert_type(x.nanmedian(1), dt.nanmedian_result)
assert_type(dt.mode(x), dt.mode_result)
assert_type(x.mode(), dt.mode_result)
values: dt.DeviceArray
values, inverse = dt.unique(x, return_inverse=True)
values = x.unique(dim=0)
values = dt.unique_consecutive(places)
values, counts = places.unique_consecutive(return_counts=True)
