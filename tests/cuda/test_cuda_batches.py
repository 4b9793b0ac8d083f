"""Products over batches on CUDA: what is one call, what is copied for it, and what is not."""

from __future__ import annotations

from typing import Any

import formats
import numpy as np
import pytest
from formats import FLOATS
from support import wide_of
from test_cuda_matmul import PRODUCT, simulated, watch, whole

import devtensor as dt

BATCH, HEADS, TIME, DEPTH = 5, 3, 36, 16


def attention(dtype: str, cuda: str, heads: int, seed: int) -> Any:
    """(batch, heads, time, depth) as attention sees what a linear layer gave, and its values."""
    x, values = whole((BATCH, TIME, heads * DEPTH), dtype, cuda, seed, top=1)
    wide = values.reshape(BATCH, TIME, heads, DEPTH).swapaxes(1, 2)
    return x.view(BATCH, TIME, heads, DEPTH).transpose(1, 2), wide


def same(got: Any, want: np.ndarray, dtype: str) -> bool:
    return np.array_equal(wide_of(got).astype(np.float64), formats.round_to(want, dtype).astype(np.float64))


@pytest.mark.parametrize("dtype", FLOATS)
def test_attention_is_one_call(dtype: str, cuda: str) -> None:
    """Batch and heads of a view are no multiples of one stride: each such operand is copied once."""
    q, wide_q = attention(dtype, cuda, HEADS, 1)
    k, wide_k = attention(dtype, cuda, HEADS, 2)
    v, wide_v = attention(dtype, cuda, HEADS, 3)
    want = wide_q @ wide_k.swapaxes(-1, -2)
    with watch() as change:
        weights = q @ k.transpose(-1, -2)
    assert same(weights, want, dtype)
    assert change.calls[PRODUCT] == 1 and change.launches == 3
    used = dt.cuda.memory_allocated(cuda)
    with watch() as change:
        got = dt.matmul(weights, v)
    assert same(got, want @ wide_v, dtype)
    assert change.calls[PRODUCT] == 1 and change.launches == 2
    del got
    assert dt.cuda.memory_allocated(cuda) == used


@pytest.mark.parametrize("dtype", FLOATS)
def test_heads_that_share_keys_are_rows_of_one_product(dtype: str, cuda: str) -> None:
    """Grouped queries: the keys are copied once, not once for each group."""
    groups = 2
    q, wide_q = attention(dtype, cuda, HEADS * groups, 4)
    k, wide_k = attention(dtype, cuda, HEADS, 5)
    q, wide_q = (x.reshape(BATCH, HEADS, groups, TIME, DEPTH) for x in (q, wide_q))
    keys = k.transpose(-1, -2)[:, :, None].expand(BATCH, HEADS, groups, DEPTH, TIME)
    dt.cuda.reset_peak_memory_stats(cuda)
    before = dt.cuda.memory_stats(cuda)["requested_bytes.all.current"]
    with watch() as change:
        got = q @ keys
    assert same(got, wide_q @ wide_k.swapaxes(-1, -2)[:, :, None], dtype)
    assert change.calls[PRODUCT] == 1 and change.launches == 3
    assert dt.cuda.memory_stats(cuda)["requested_bytes.all.peak"] - before == got.nbytes + q.nbytes + k.nbytes


@pytest.mark.parametrize("dtype", FLOATS)
def test_rows_of_a_shared_matrix_need_no_batch(dtype: str, cuda: str) -> None:
    """The innermost batch dimension shares b, the outer ones do not."""
    a, wide_a = whole((4, 3, 40, 9), dtype, cuda, 6)
    b, wide_b = whole((4, 1, 9, 40), dtype, cuda, 7)
    with watch() as change:
        got = a @ b
    assert same(got, wide_a @ wide_b, dtype)
    assert change.launches == 1


def test_what_is_shared_by_the_outer_dimension_is_written_out(cuda: str) -> None:
    a, wide_a = whole((6, 3, 40, 9), "float32", cuda, 8)
    b, wide_b = whole((3, 9, 40), "float32", cuda, 9)
    with watch() as change:
        got = a @ b
    assert same(got, wide_a @ wide_b, "float32")
    assert change.calls[PRODUCT] == 1 and change.launches == 2


def test_few_calls_are_not_worth_copies(cuda: str) -> None:
    q, wide_q = attention("float32", cuda, HEADS, 1)
    k, wide_k = attention("float32", cuda, HEADS, 2)
    with watch() as change:
        got = q[:2] @ k[:2].transpose(-1, -2)
    assert same(got, wide_q[:2] @ wide_k[:2].swapaxes(-1, -2), "float32")
    assert change.calls[PRODUCT] == 2 and change.launches == 2


def test_matrices_without_unit_stride(cuda: str) -> None:
    x, values = whole((BATCH, TIME, HEADS, 2 * DEPTH), "float32", cuda, 10)
    q, wide = x.transpose(1, 2)[..., ::2], values.swapaxes(1, 2)[..., ::2]
    with watch() as change:
        got = q @ q.transpose(-1, -2)
    assert same(got, wide @ wide.swapaxes(-1, -2), "float32")
    assert change.calls[PRODUCT] == 1 and change.launches == 3


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.0])
def test_values_pass_through_copies(bad: float, cuda: str) -> None:
    q, _ = attention("float32", cuda, HEADS, 1)
    one = dt.eye(DEPTH, device=cuda).expand(BATCH, HEADS, DEPTH, DEPTH)
    q = q.contiguous().transpose(1, 2).contiguous().transpose(1, 2)
    q[1, 2, 3, 4] = bad
    got, host = wide_of(q @ one), wide_of(q.cpu() @ one.cpu())
    assert np.array_equal(got, host, equal_nan=True)


@simulated
def test_without_memory_for_copies_there_are_more_calls(cuda: str) -> None:
    q, wide_q = attention("float32", cuda, HEADS, 1)
    k, wide_k = attention("float32", cuda, HEADS, 2)
    want = wide_q @ wide_k.swapaxes(-1, -2)
    q @ k.transpose(-1, -2)
    out = dt.empty((BATCH, HEADS, TIME, TIME), device=cuda)
    total = dt.cuda.mem_get_info(cuda)[1]
    dt.cuda.empty_cache()
    try:
        dt.cuda.set_per_process_memory_fraction(dt.cuda.memory_reserved(cuda) / total, cuda)
        with watch() as change:
            dt.matmul(q, k.transpose(-1, -2), out=out)
        assert same(out, want, "float32")
        assert change.calls[PRODUCT] == BATCH
    finally:
        dt.cuda.set_per_process_memory_fraction(1.0, cuda)
