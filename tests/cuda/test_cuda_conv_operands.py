"""Convolution on CUDA of operands that lie badly: addresses that are not multiples of 16 bytes."""

from __future__ import annotations

from typing import Any

import formats
import images
import numpy as np
import pytest
from formats import FLOATS
from support import from_bits, wide_of
from test_cuda_matmul import watch

import devtensor as dt

LAYOUTS = ("contiguous", "channels_last")


def shifted(values: Any, dtype: str, device: str, layout: str, nbytes: int) -> Any:
    """An array of these values that begins nbytes behind an aligned address."""
    if layout == "channels_last":
        values = values.transpose(0, 2, 3, 1)
    n, itemsize = values.size, getattr(dt, dtype).itemsize
    room = np.zeros(n + 16)
    room[nbytes // itemsize :][:n] = values.reshape(-1)
    flat = from_bits(formats.wide_to_bits(room, dtype), dtype, device)
    x = flat[nbytes // itemsize :][:n].reshape(values.shape)
    return x.permute(0, 3, 1, 2) if layout == "channels_last" else x


def whole(shape: tuple[int, ...], seed: int) -> Any:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float64)


@pytest.mark.parametrize("activation", [None, "relu"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_views_at_any_address(dtype: str, layout: str, activation: Any, cuda: str) -> None:
    """Each operand alone, then all: the values are those of aligned ones, and each but the weight is copied
    at every call."""
    x, weight, bias = whole((2, 4, 6, 7), 1), whole((8, 4, 3, 3), 2), whole((8, 1, 1, 1), 3)
    want = formats.round_to(images.conv2d(x, weight, bias.reshape(-1), padding=1), dtype).astype(np.float64)
    want = np.maximum(want, 0) if activation else want
    dt.cuda.empty_cache()  # where another test has filled the device, less has been kept since
    for nbytes in (2, 4, 8):
        if nbytes % getattr(dt, dtype).itemsize:
            continue
        for moved in (set(), {0}, {1}, {2}, {0, 1, 2}):
            a, w, b = (
                shifted(v, dtype, cuda, layout, nbytes if i in moved else 0) for i, v in enumerate((x, weight, bias))
            )
            for _ in range(2):
                dt.conv2d(a, w, b.reshape(8), padding=1, activation=activation)
            used = dt.cuda.memory_allocated(cuda)
            with watch() as change:
                got = dt.conv2d(a, w, b.reshape(8), padding=1, activation=activation)
            assert np.array_equal(wide_of(got).astype(np.float64), want), (nbytes, moved)
            assert change.calls["cudnnBackendExecute"] == 1
            assert "cudnnBackendGetAttribute" not in change.calls  # one plan for all addresses
            assert change.launches == 1 + len(moved - {1}), (nbytes, moved)  # a weight's copy is kept
            del got
            assert dt.cuda.memory_allocated(cuda) == used, (nbytes, moved)


def test_rows_of_a_batch(cuda: str) -> None:
    """What a loop over a batch gives: images and biases at odd places."""
    for dtype in FLOATS:
        x, weight, bias = whole((3, 1, 5, 5), 4), whole((3, 1, 3, 3), 5), whole((4,), 6)
        on = [from_bits(formats.wide_to_bits(v, dtype), dtype, cuda) for v in (x, weight, bias)]
        got = dt.conv2d(on[0][1:], on[1], on[2][1:])
        want = formats.round_to(images.conv2d(x[1:], weight, bias[1:]), dtype)
        assert np.array_equal(wide_of(got).astype(np.float64), want.astype(np.float64)), dtype
