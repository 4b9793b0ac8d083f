"""Attention of large heads on CUDA: two products with a kernel between them, some heads and queries at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from support import CUDA_DEVICES
from test_attention_blocks import MASKS, TOLERANCE, attend
from test_cuda_matmul import PRODUCT, simulated, watch

import devtensor as dt
from devtensor.nn import functional as F

CUDA = CUDA_DEVICES[0]
# batch, heads of keys, heads of query for each, L, S, E, V; the bytes of scores in memory
SHAPES = {
    "whole": ((2, 3, 1, 64, 128, 8, 8), 24 << 20),
    "some heads": ((2, 3, 1, 64, 130, 16, 24), 2 * 64 * 136 * 4),
    "one head": ((2, 2, 1, 70, 128, 8, 8), 64),
    "some queries": ((1, 2, 1, 300, 200, 8, 16), 128 * 200 * 4),
    "groups": ((2, 2, 3, 70, 133, 16, 8), 4 * 70 * 136 * 4),
    "many queries": ((1, 2, 1, 600, 520, 8, 8), 1 << 20),
    "wide": ((1, 2, 1, 65, 200, 136, 136), 24 << 20),
    "long": ((1, 1, 2, 64, 4200, 8, 8), 24 << 20),
}
LAYOUTS = ("contiguous", "heads beside each other", "strided")


@pytest.fixture(autouse=True)
def usual_settings() -> Iterator[None]:
    yield
    dt._C._test.kernel_settings()


def counted(
    sizes: tuple[int, ...], layout: str, dtype: str, mask: str
) -> tuple[dt.DeviceArray, np.ndarray, dict[str, int]]:
    """What attention gives, what it should give, and the calls on the way."""
    with watch() as change:
        found, expected = attend(sizes, layout, dtype, mask, CUDA)
    return found, expected, change.calls


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_values(dtype: str, mask: str) -> None:
    for number, (name, (sizes, scores)) in enumerate(SHAPES.items()):
        layout = LAYOUTS[number % 3]
        dt._C._test.kernel_settings(attention_scores=scores)
        found, expected, calls = counted(sizes, layout, dtype, mask)
        assert calls[PRODUCT] >= 2
        got = found.cpu().double().numpy()
        np.testing.assert_allclose(got, expected, rtol=0, atol=TOLERANCE[dtype], err_msg=f"{name}, {layout}")
        assert dt.equal(counted(sizes, layout, dtype, mask)[0], found), name


@pytest.mark.parametrize("layout", LAYOUTS)
def test_two_products_for_all_heads(layout: str) -> None:
    for dtype in ("float32", "float16"):
        assert counted((5, 4, 1, 64, 128, 8, 8), layout, dtype, "none")[2][PRODUCT] == 2
    dt._C._test.kernel_settings(attention_scores=2 * 64 * 128 * 4)  # two heads
    assert counted((5, 4, 1, 64, 128, 8, 8), layout, "float32", "none")[2][PRODUCT] == 2 * 10


def test_later_keys_are_left_out() -> None:
    """A hidden value would show as NaN, since it would be multiplied by 0."""
    x = dt.rand(2, 512, 8, device=CUDA)
    value = dt.rand(2, 512, 8, device=CUDA)
    value[:, 256:] = math.nan
    dt._C._test.kernel_settings(attention_scores=1 << 20)
    found = F.scaled_dot_product_attention(x, x, value, is_causal=True)
    assert not found[:, :256].isnan().any().item() and found[:, 256:].isnan().all().item()


@pytest.mark.parametrize(
    ("sizes", "dtype"),
    [
        ((1, 2, 1, 63, 128, 8, 8), "float32"),
        ((1, 2, 1, 64, 127, 8, 8), "float32"),
        ((1, 2, 1, 64, 128, 12, 8), "float16"),
        ((1, 2, 1, 64, 128, 8, 12), "float16"),
    ],
)
def test_others_are_one_pass(sizes: tuple[int, ...], dtype: str) -> None:
    found, expected, calls = counted(sizes, "contiguous", dtype, "none")
    assert PRODUCT not in calls
    np.testing.assert_allclose(found.cpu().double().numpy(), expected, rtol=0, atol=TOLERANCE[dtype])


def test_small_weights_of_float16_keep_their_digits() -> None:
    """Of 2**15 keys each weight is 2**-15, which float16 has with fewer digits than it has for 1."""
    keys = 1 << 15
    query = dt.zeros(1, 64, 8, dtype=dt.float16, device=CUDA)
    key = dt.zeros(1, keys, 8, dtype=dt.float16, device=CUDA)
    value = dt.ones(1, keys, 8, dtype=dt.float16, device=CUDA)
    added = dt.zeros(64, keys, dtype=dt.float16, device=CUDA)
    added[:, ::2] = math.log(3)  # weights of 3 : 1
    value[:, 1::2] = 0
    found = F.scaled_dot_product_attention(query, key, value, added)
    np.testing.assert_allclose(found.cpu().float().numpy(), 0.75, rtol=1e-3)


def test_numbers_that_are_none() -> None:
    x = dt.tensor([[1.0, 2.0], [3.0, 4.0]], device=CUDA).repeat(64, 1)
    nothing = dt.full((128, 128), -math.inf, device=CUDA)
    assert not F.scaled_dot_product_attention(x, x, x, nothing).any().item()
    assert not F.scaled_dot_product_attention(dt.full_like(x, -math.inf), x, x).any().item()
    for number in (math.nan, math.inf):
        mask = dt.zeros(128, 128, device=CUDA)
        mask[3, 2] = number
        rows = F.scaled_dot_product_attention(x, x, x, mask).isnan().all(-1)
        assert rows.nonzero().flatten().tolist() == [3]


@simulated
def test_without_memory_for_scores_it_is_one_pass() -> None:
    query, key = (dt.rand(2, 4, n, 8, device=CUDA) for n in (256, 1024))
    F.scaled_dot_product_attention(query, key, key)  # the workspace of products stays
    dt._C._test.kernel_settings(attention_scores=0)
    expected = F.scaled_dot_product_attention(query, key, key)
    dt._C._test.kernel_settings()
    dt.cuda.synchronize()
    dt.cuda.empty_cache()
    room = dt.cuda.memory_reserved(CUDA) + (4 << 20)  # scores: 8 MiB
    try:
        dt.cuda.set_per_process_memory_fraction(room / dt.cuda.mem_get_info(CUDA)[1], CUDA)
        with watch() as change:
            found = F.scaled_dot_product_attention(query, key, key)
    finally:
        dt.cuda.set_per_process_memory_fraction(1.0, CUDA)
    assert PRODUCT not in change.calls and dt.equal(found, expected)
