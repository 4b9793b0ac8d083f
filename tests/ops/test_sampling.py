"""multinomial, bernoulli and exponential numbers: how often, what never, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import devtensor as dt


def shares(x: dt.DeviceArray, classes: int) -> list[float]:
    return [float((x == k).double().mean()) for k in range(classes)]


@pytest.mark.parametrize("dtype", [dt.float16, dt.bfloat16, dt.float32, dt.float64])
def test_multinomial_draws_in_proportion(dtype: dt.dtype, device: str) -> None:
    dt.manual_seed(3)
    weights = dt.tensor([[0.0, 1.0, 2.0, 5.0], [3.0, 0.0, 0.0, 1.0]], dtype=dtype, device=device)
    drawn = dt.multinomial(weights, 4000, replacement=True)
    assert drawn.shape == (2, 4000) and drawn.dtype is dt.int64 and drawn.device == dt.device(device)
    np.testing.assert_allclose(shares(drawn[0], 4), [0, 1 / 8, 2 / 8, 5 / 8], atol=0.03)
    np.testing.assert_allclose(shares(drawn[1], 4), [3 / 4, 0, 0, 1 / 4], atol=0.03)
    assert not (drawn[0] == 0).any() and not (drawn[1] == 1).any()
    one = weights[:1].expand(4000, 4).multinomial(1)
    np.testing.assert_allclose(shares(one, 4), [0, 1 / 8, 2 / 8, 5 / 8], atol=0.03)


def test_without_replacement_each_comes_once(device: str) -> None:
    weights = dt.tensor([1.0, 2.0, 0.0, 4.0], device=device).expand(2000, 4)
    drawn = dt.multinomial(weights, 3)
    assert (drawn.sum(1) == 4).all() and not (drawn[:, 0] == drawn[:, 1]).any()
    np.testing.assert_allclose(shares(drawn[:, 0], 4), [1 / 7, 2 / 7, 0, 4 / 7], atol=0.04)
    assert sorted(dt.multinomial(weights[0], 4).tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", [dt.float16, dt.bfloat16, dt.float32, dt.float64])
def test_no_uniform_number_is_the_upper_bound(dtype: dt.dtype, device: str) -> None:
    for low, high in ((0.0, 1.0), (-1.0, 2.0), (100.0, 101.0), (-3.0, -1.0), (-0.5, 0.0), (0.0, 6e-8), (0.0, 7e4)):
        if high > dt.finfo(dtype).max:
            continue
        dt.manual_seed(1)
        x = dt.empty(20000, dtype=dtype, device=device).uniform_(low, high)
        assert low <= x.min().item() and x.max().item() < high, (low, high, x.max().item())
        reached = dt.empty(5, dtype=dtype, device=device).uniform_(high, high)
        assert reached.tolist() == [dt.tensor(high, dtype=dtype).item()] * 5  # nothing is between them


def test_what_has_no_weight_is_not_drawn(device: str) -> None:
    """The sums of a row never fall, so that no number is between those around a weight of 0."""
    weights = dt.rand(2, 5000, dtype=dt.float64) * (dt.rand(2, 5000) < 0.1)
    drawn = dt.multinomial(weights.to(device), 4000, replacement=True).cpu()
    assert (weights.gather(1, drawn) > 0).all()


def test_the_same_numbers_on_every_device(device: str) -> None:
    weights = dt.arange(1, 301, dtype=dt.float32).reshape(2, 150)
    for draw in (
        lambda x: dt.multinomial(x, 50, True),
        lambda x: dt.multinomial(x, 3),
        lambda x: dt.bernoulli(x / 300),
    ):
        dt.manual_seed(1)
        first = draw(weights)
        dt.manual_seed(1)
        assert dt.equal(first, draw(weights.to(device)).cpu())
    x, y = dt.zeros(1000), dt.zeros(1000, device=device)
    dt.manual_seed(1)
    x.exponential_()
    dt.manual_seed(1)
    dt.testing.assert_close(x, y.exponential_().cpu(), rtol=1e-6, atol=0.0)
    generators = [dt.Generator(device).manual_seed(5) for _ in range(2)]
    pair = [dt.multinomial(weights.to(device), 9, True, generator=generator) for generator in generators]
    assert dt.equal(*pair)


def test_bernoulli(device: str) -> None:
    p = dt.tensor([0.0, 0.25, 1.0], device=device).expand(4000, 3)
    np.testing.assert_allclose(dt.bernoulli(p).mean(0).tolist(), [0, 0.25, 1], atol=0.03)
    x = dt.zeros(4000, 3, device=device)
    assert x.bernoulli_(p[0]) is x
    np.testing.assert_allclose(x.mean(0).tolist(), [0, 0.25, 1], atol=0.03)
    assert 0.45 < float(x.bernoulli_().mean()) < 0.55
    whole = dt.zeros(100, dtype=dt.int64, device=device)
    assert set(whole.bernoulli_(0.5).tolist()) == {0, 1}
    assert dt.bernoulli(p.double()[:2]).dtype is dt.float64
    assert not p.clone().requires_grad_().bernoulli().requires_grad


@pytest.mark.parametrize("dtype", [dt.float16, dt.float32, dt.float64])
def test_exponential(dtype: dt.dtype, device: str) -> None:
    x = dt.empty(20000, dtype=dtype, device=device).exponential_(4.0)
    assert (x > 0).all() and x.isfinite().all()
    assert abs(float(x.double().mean()) - 0.25) < 0.01


ERRORS: list[tuple[Any, type[Exception], str]] = [
    (lambda: dt.multinomial(dt.ones(3), 0), RuntimeError, "cannot sample n_sample <= 0 samples"),
    (lambda: dt.multinomial(dt.ones(3), 4), RuntimeError, "samples without replacement"),
    (lambda: dt.multinomial(dt.tensor([1.0, -1.0]), 1), RuntimeError, "`inf`, `nan` or element < 0"),
    (lambda: dt.multinomial(dt.tensor([1.0, float("nan")]), 1), RuntimeError, "`inf`, `nan` or element < 0"),
    (lambda: dt.multinomial(dt.zeros(3), 1), RuntimeError, "sum of probabilities <= 0"),
    (lambda: dt.multinomial(dt.ones(2, 2, 2), 1), dt.ShapeMismatchError, "Expected input to be"),
    (lambda: dt.multinomial(dt.ones(2, dtype=dt.int64), 1), dt.DTypeMismatchError, "not implemented for 'int64'"),
    (lambda: dt.bernoulli(dt.tensor([1.5])), RuntimeError, "Expected p_in >= 0"),
    (lambda: dt.zeros(2).bernoulli_(1.5), RuntimeError, "Expected p_in >= 0"),
    (lambda: dt.zeros(2).bernoulli_(dt.tensor([float("nan")])), RuntimeError, "Expected p_in >= 0"),
    (lambda: dt.zeros(2).bernoulli_(dt.ones(3)), dt.ShapeMismatchError, r"p to have shape \(2,\)"),
    (lambda: dt.zeros(2).bernoulli_(dt.ones(2, device="cuda:0")), dt.DeviceMismatchError, "p on cuda:0"),
    (lambda: dt.zeros(2).exponential_(0), RuntimeError, "expects lambda > 0.0"),
]


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS)
def test_what_is_refused(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


def test_no_rows(device: str) -> None:
    assert dt.multinomial(dt.zeros(0, 3, device=device), 2).shape == (0, 2)
    assert dt.multinomial(dt.zeros(0, 3, device=device), 2, True).shape == (0, 2)
    assert dt.bernoulli(dt.zeros(0, device=device)).shape == (0,)
