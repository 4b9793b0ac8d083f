"""Attention in parts: what it gives whole, with gradients, and without all scores in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import CUDA_DEVICES

import devtensor as dt
from devtensor._composed.layers import attention
from devtensor.nn import functional as F

RNG = np.random.default_rng(0)
SIZES = {
    "heads": ((2, 3, 20, 4), (2, 3, 30, 4), (2, 3, 30, 5)),
    "one head": ((40, 4), (30, 4), (30, 5)),
    "more queries than keys": ((2, 3, 40, 4), (2, 3, 20, 4), (2, 3, 20, 4)),
}
MASKS: dict[str, Any] = {
    "none": None,
    "bool": RNG.random((20, 30)) > 0.4,
    "keys of each sample": RNG.random((2, 1, 1, 30)) > 0.4,
    "of each sample": RNG.standard_normal((2, 1, 20, 30)),
    "of each head": RNG.random((1, 3, 20, 30)) > 0.4,
    "of each sample and head": RNG.standard_normal((2, 3, 20, 30)),
    "one key column": RNG.random((3, 20, 1)) > 0.4,
}
MASKS["bool"][3] = False


def arrays(shapes: tuple[tuple[int, ...], ...], device: str, gradient: bool) -> list[dt.DeviceArray]:
    numbers = np.random.default_rng(1)
    return [dt.from_numpy(numbers.standard_normal(s)).to(device).requires_grad_(gradient) for s in shapes]


def limit(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    for name in ("_CACHED", "_BUSY", "_DRAWN", "_RECORDED"):
        monkeypatch.setattr(attention, name, size)


def outcome(inputs: list[dt.DeviceArray], **options: Any) -> list[np.ndarray]:
    result = F.scaled_dot_product_attention(*inputs, **options)
    if not inputs[0].requires_grad:
        return [result.cpu().numpy()]
    (result * result.detach().sin()).sum().backward()
    return [result.detach().cpu().numpy(), *(x.grad.cpu().numpy() for x in inputs if x.grad is not None)]


def compare(monkeypatch: pytest.MonkeyPatch, shapes: Any, device: str, **options: Any) -> None:
    for gradient in (False, True):
        limit(monkeypatch, 1 << 30)
        whole = outcome(arrays(shapes, device, gradient), **options)
        for size in (6000, 100):
            limit(monkeypatch, size)
            for found, expected in zip(outcome(arrays(shapes, device, gradient), **options), whole, strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("mask", MASKS)
def test_masks(mask: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values = None if MASKS[mask] is None else dt.from_numpy(MASKS[mask]).to(device)
    compare(monkeypatch, SIZES["heads"], device, attn_mask=values)


@pytest.mark.parametrize("sizes", SIZES)
def test_causal(sizes: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(monkeypatch, SIZES[sizes], device, is_causal=True)
    limit(monkeypatch, 100)
    query, key, value = (x.cpu().numpy() for x in arrays(SIZES[sizes], "cpu", False))
    scores = query @ np.swapaxes(key, -1, -2) / 2.0
    shares = np.exp(np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf))
    expected = shares / shares.sum(-1, keepdims=True) @ value
    found = F.scaled_dot_product_attention(*arrays(SIZES[sizes], device, False), is_causal=True)
    np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"attn_mask": "bool"}, {"attn_mask": "of each sample"}])
def test_heads_that_share_keys(options: dict[str, Any], device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "attn_mask" in options:
        options = {"attn_mask": dt.from_numpy(MASKS[options["attn_mask"]]).to(device)}
    compare(monkeypatch, ((2, 6, 20, 4), (2, 2, 30, 4), (2, 2, 30, 5)), device, enable_gqa=True, **options)


def test_dropout_draws_the_same_numbers_for_its_gradient_and_on_every_device(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, 2000)
    seen = []
    for device in ("cpu", CUDA_DEVICES[0]):
        dt.manual_seed(3)
        query, key, value = arrays(SIZES["heads"], device, True)
        result = F.scaled_dot_product_attention(query, key, value, dropout_p=0.5)
        result.sum().backward()
        # The result is linear in value: its gradient has the same zeros.
        assert value.grad is not None and dt.allclose((value.grad * value).sum(), result.sum())
        seen.append(result.detach().cpu().numpy())
    np.testing.assert_allclose(seen[0], seen[1], rtol=1e-12)


def test_leading_dimensions_broadcast(device: str) -> None:
    query, key, value = arrays(((3, 5, 2), (2, 1, 4, 2), (2, 3, 4, 2)), device, False)
    whole = [x.expand(2, 3, *x.shape[-2:]) for x in (query, key, value)]
    assert dt.equal(F.scaled_dot_product_attention(query, key, value), F.scaled_dot_product_attention(*whole))


def test_gradients_of_gradients(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, 100)
    inputs = tuple(arrays(((1, 2, 5, 2), (1, 2, 4, 2), (1, 2, 4, 2)), device, True))

    def attend(*x: dt.DeviceArray) -> dt.DeviceArray:
        return F.scaled_dot_product_attention(*x, is_causal=True)

    assert dt.autograd.gradcheck(attend, inputs)
    assert dt.autograd.gradgradcheck(attend, inputs)


@pytest.fixture
def usual_settings() -> Iterator[None]:
    yield
    dt._C._test.kernel_settings()


@pytest.mark.usefixtures("usual_settings")
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"attn_mask": True}])
def test_all_scores_are_never_in_memory(
    options: dict[str, bool], gradient: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, 1 << 18)
    dt._C._test.kernel_settings(attention_scores=1 << 18)
    device, length = CUDA_DEVICES[0], 512
    given: dict[str, Any] = dict(options)
    if "attn_mask" in options:
        given["attn_mask"] = dt.ones(2, 1, 1, length, dtype=dt.bool, device=device)
    inputs = [dt.rand(2, 4, length, 2, device=device, requires_grad=gradient) for _ in range(3)]
    dt.cuda.synchronize()
    before = dt.cuda.memory_allocated(device)
    dt.cuda.reset_peak_memory_stats(device)
    result = F.scaled_dot_product_attention(*inputs, **given)
    if gradient:
        result.sum().backward()
    assert dt.cuda.max_memory_allocated(device) - before < (3 << 20)  # all scores: 8 MiB


@pytest.mark.parametrize("queries", [1, 3, 70])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("step", [-2000.0, -1.0, 1.0, 2000.0])
def test_keys_whose_weights_are_far_apart(step: float, dtype: str, queries: int, device: str) -> None:
    """Where the scores rise, what was summed of the keys before shrinks, to nothing where they rise far."""
    keys, rng = 1500, np.random.default_rng(2)
    scores = rng.standard_normal((queries, keys)) + step * (np.arange(keys) // 500)
    value = rng.standard_normal((keys, 5))
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ value
    query, key = np.zeros((queries, 3)), np.zeros((keys, 3))
    given = (dt.tensor(x[None, None], dtype=getattr(dt, dtype), device=device) for x in (query, key, value, scores))
    query, key, value, mask = given
    found = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    np.testing.assert_allclose(found[0, 0].cpu().numpy(), expected, rtol=0, atol=2e-3 if dtype == "float32" else 1e-11)
