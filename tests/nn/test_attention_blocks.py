"""Attention in one pass over blocks, beside a slow reference in float64: values, layouts, gradients, memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import CUDA_DEVICES

import devtensor as dt
from devtensor.nn import functional as F

TOLERANCE = {"float32": 2e-5, "float64": 1e-12, "float16": 4e-3, "bfloat16": 3e-2}
# batch, heads of keys, heads of query for each, L, S, E, V: around the blocks of each device
SHAPES = {
    "small": (2, 2, 1, 5, 6, 3, 7),
    "one query": (2, 3, 1, 1, 300, 16, 8),
    "one query of a group": (1, 2, 3, 1, 70, 5, 33),
    "few queries": (1, 2, 1, 4, 530, 9, 5),
    "groups": (1, 2, 2, 20, 37, 8, 8),
    "narrow": (1, 2, 1, 70, 65, 32, 31),
    "middle": (1, 1, 1, 33, 129, 64, 40),
    "wide": (1, 1, 1, 17, 70, 100, 128),
    "wider": (1, 1, 1, 20, 30, 130, 129),
    "long": (1, 1, 1, 130, 1030, 6, 6),
}
MASKS = ("none", "causal", "bool", "numbers", "keys")


def values(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def mask_of(kind: str, batch: int, heads: int, rows: int, keys: int) -> np.ndarray | None:
    numbers = np.random.default_rng(7)
    if kind == "bool":
        chosen = numbers.random((rows, keys)) > 0.3
        chosen[0] = False
        return chosen
    if kind == "numbers":
        added = numbers.standard_normal((1, heads, rows, keys))
        return np.where(numbers.random(added.shape) > 0.8, -np.inf, added)
    return numbers.random((batch, 1, 1, keys)) > 0.3 if kind == "keys" else None


def reference(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray | None, scale: float, causal: bool
) -> np.ndarray:
    group = query.shape[1] // key.shape[1]
    key, value = (np.repeat(x, group, 1) for x in (key, value))
    scores = query @ np.swapaxes(key, -1, -2) * scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(top == -np.inf, 0, top))
    total = weights.sum(-1, keepdims=True)
    return np.where(total == 0, 0, weights @ value / np.where(total == 0, 1, total))


def laid_out(x: np.ndarray, layout: str, dtype: str, device: str) -> dt.DeviceArray:
    """x of (batch, heads, length, size): contiguous, as .view().transpose(1, 2) gives it, or with a stride at last."""
    array = dt.from_numpy(x).to(getattr(dt, dtype))
    if layout == "heads beside each other":
        array = array.transpose(1, 2).contiguous().transpose(1, 2)
    elif layout == "strided":
        array = dt.stack([array, array], -1)
    array = array.to(device)
    return array[..., 0] if layout == "strided" else array


def attend(
    sizes: tuple[int, ...], layout: str, dtype: str, mask: str, device: str
) -> tuple[dt.DeviceArray, np.ndarray]:
    """What attention gives, and what it should give."""
    batch, heads, group, rows, keys, depth, columns = sizes
    shapes = ((batch, heads * group, rows, depth), (batch, heads, keys, depth), (batch, heads, keys, columns))
    inputs = [laid_out(values(s, i), layout, dtype, device) for i, s in enumerate(shapes)]
    exact = [x.cpu().double().numpy() for x in inputs]
    given = mask_of(mask, batch, heads * group, rows, keys)
    ours = None if given is None else dt.from_numpy(given).to(device)
    if ours is not None and given is not None and given.dtype != bool:
        ours = ours.to(getattr(dt, dtype))
        given = ours.cpu().double().numpy()
    options: dict[str, Any] = {"is_causal": mask == "causal", "scale": 0.3, "enable_gqa": group > 1}
    found = F.scaled_dot_product_attention(*inputs, attn_mask=ours, **options)
    return found, reference(exact[0], exact[1], exact[2], given, 0.3, mask == "causal")


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_values(dtype: str, mask: str, device: str) -> None:
    for number, (name, sizes) in enumerate(SHAPES.items()):
        layout = ("contiguous", "heads beside each other", "strided")[number % 3]
        found, expected = attend(sizes, layout, dtype, mask, device)
        assert found.dtype is getattr(dt, dtype) and str(found.device) == device
        np.testing.assert_allclose(
            found.cpu().double().numpy(), expected, rtol=0, atol=TOLERANCE[dtype], err_msg=f"{name}, {layout}"
        )


@settings(max_examples=40, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.tuples(
        *[st.integers(0, 3)] * 2, st.integers(0, 40), st.integers(0, 600), st.integers(0, 40), st.integers(0, 40)
    ),
    st.sampled_from(MASKS),
    st.sampled_from(["float32", "float64"]),
    st.sampled_from(["cpu", CUDA_DEVICES[0]]),
)
def test_any_shape(shape: tuple[int, ...], mask: str, dtype: str, place: str) -> None:
    batch, heads, rows, keys, depth, columns = shape
    sizes = ((batch, heads, rows, depth), (batch, heads, keys, depth), (batch, heads, keys, columns))
    exact = [values(s, i).astype(dtype) for i, s in enumerate(sizes)]
    given = mask_of(mask, batch, heads, rows, keys) if rows and keys else None
    given = given if given is None or given.dtype == bool else given.astype(dtype)
    ours = None if given is None else dt.from_numpy(given).to(place)
    inputs = [dt.from_numpy(x).to(place) for x in exact]
    found = F.scaled_dot_product_attention(*inputs, attn_mask=ours, is_causal=mask == "causal", scale=0.3)
    assert found.shape == (batch, heads, rows, columns)
    if keys and math.prod(found.shape):
        expected = reference(exact[0].astype(float), exact[1], exact[2], given, 0.3, mask == "causal")
        np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=0, atol=TOLERANCE[dtype])
    else:
        assert not found.any().item()


def test_numbers_that_are_none(device: str) -> None:
    """As PyTorch's formula: a query without any weight is 0, a NaN stays in its row, an infinite score makes one."""
    for dtype in (dt.float32, dt.float64):
        x = dt.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=dtype, device=device).repeat(12, 1)[:20]
        nothing = dt.full((20, 20), -math.inf, dtype=dtype, device=device)
        assert not F.scaled_dot_product_attention(x, x, x, nothing).any().item()
        if dtype is dt.float32 or device == "cpu":  # others are parts, which look at the mask alone
            assert not F.scaled_dot_product_attention(dt.full_like(x, -math.inf), x, x).any().item()
        for number in (math.nan, math.inf):
            mask = dt.zeros(20, 20, dtype=dtype, device=device)
            mask[3, 2] = number
            rows = F.scaled_dot_product_attention(x, x, x, mask).isnan().all(-1)
            assert rows.nonzero().flatten().tolist() == [3]


def test_threads_and_queries_beside_change_no_bit() -> None:
    for dtype in (dt.float32, dt.float16, dt.float64):
        query, key = (dt.from_numpy(values((2, 3, n, 24), n)).to(dtype) for n in (150, 700))
        before, found = dt.get_num_threads(), []
        try:
            for threads in (1, 2, 3, 8):
                dt.set_num_threads(threads)
                found.append(F.scaled_dot_product_attention(query, key, key))
        finally:
            dt.set_num_threads(before)
        assert all(dt.equal(found[0], other) for other in found[1:])
        assert dt.equal(F.scaled_dot_product_attention(query[:, :, 90:], key, key), found[0][:, :, 90:])


def test_the_result_lies_as_the_query(device: str) -> None:
    """So that heads become one dimension again without a copy."""
    query = dt.rand(2, 20, 3, 4, device=device).transpose(1, 2)
    found = F.scaled_dot_product_attention(query, query, query)
    assert found.stride() == query.stride()
    assert found.transpose(1, 2).is_contiguous()


def test_scores_are_never_in_memory() -> None:
    """On a device by its own counts; on the host, by the blocks that it asks for."""
    device, length = CUDA_DEVICES[0], 512
    inputs = [dt.rand(1, 2, length, 2, device=device) for _ in range(3)]
    dt.cuda.synchronize()
    before = dt.cuda.memory_allocated(device)
    for scores in (0, 1 << 18):
        dt.cuda.reset_peak_memory_stats(device)
        try:
            dt._C._test.kernel_settings(attention_scores=scores)
            result = F.scaled_dot_product_attention(*inputs)
        finally:
            dt._C._test.kernel_settings()
        assert dt.cuda.max_memory_allocated(device) - before <= scores + 2 * result.nbytes  # all scores: 2 MiB
        del result
    one = dt.rand(1, 1, 4096, 8)
    dt._C._cpu_trim_cache()
    F.scaled_dot_product_attention(one, one, one)
    assert dt._C._cpu_cache()["kept"] < 16 << 20  # all scores: 64 MiB


# ---------------------------------------------------------------- gradients


def test_gradients_and_theirs(device: str) -> None:
    keys = dt.from_numpy(np.random.default_rng(3).random((1, 1, 1, 5)) > 0.4).to(device)
    keys[..., 0] = True
    for options in ({}, {"is_causal": True}, {"attn_mask": keys}, {"scale": 0.7}):
        sizes = ((1, 2, 4, 2), (1, 2, 5, 2), (1, 2, 5, 3))
        inputs = [dt.from_numpy(values(s, i)).to(device).requires_grad_() for i, s in enumerate(sizes)]

        def attend(*x: dt.DeviceArray, options: dict[str, Any] = options) -> dt.DeviceArray:
            return F.scaled_dot_product_attention(*x, **options)

        assert dt.autograd.gradcheck(attend, inputs)
        assert dt.autograd.gradgradcheck(attend, inputs)


def test_gradients_of_groups_are_those_of_repeated_heads(device: str) -> None:
    sizes = ((2, 6, 20, 4), (2, 2, 30, 4), (2, 2, 30, 5))
    for dtype in ("float32", "float64"):
        found = []
        for shared in (True, False):
            inputs = [
                dt.from_numpy(values(s, i).astype(dtype)).to(device).requires_grad_() for i, s in enumerate(sizes)
            ]
            query, key, value = inputs
            if not shared:
                key, value = (x.repeat_interleave(3, 1) for x in (key, value))
            F.scaled_dot_product_attention(query, key, value, enable_gqa=shared).sin().sum().backward()
            found.append([x.grad.cpu().numpy() for x in inputs])
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE[dtype])


def test_gradients_of_one_operand_alone(device: str) -> None:
    """Beside PyTorch's: one requires a gradient, in half types too."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for dtype in ("float32", "bfloat16"):
        for which in range(3):
            ours, theirs = [], []
            for i, n in enumerate((20, 30, 30)):
                x = values((1, 2, n, 8), i).astype("float32")
                ours.append(dt.from_numpy(x).to(device).to(getattr(dt, dtype)).requires_grad_(i == which))
                theirs.append(torch.from_numpy(x).to(getattr(torch, dtype)).requires_grad_(i == which))
            F.scaled_dot_product_attention(*ours, is_causal=True).float().square().sum().backward()
            attend = torch.nn.functional.scaled_dot_product_attention
            attend(*theirs, is_causal=True).float().square().sum().backward()
            grad = ours[which].grad
            assert [x.grad is None for x in ours] == [i != which for i in range(3)]
            np.testing.assert_allclose(
                grad.cpu().float().numpy(),
                theirs[which].grad.float().numpy(),
                rtol=0,
                atol=5e-5 if dtype == "float32" else 0.1,
            )
