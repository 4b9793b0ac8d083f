"""x[rows[:, None], columns]: the offsets of a line are found once, and each line adds that of its row."""

from __future__ import annotations

import numpy as np
import pytest
from formats import STORAGE
from support import bits_of, from_bits

import devtensor as dt


@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
def test_two_indices_each_along_its_own_dimension(index_dtype: str, device: str) -> None:
    """Rows and columns: long runs of columns forwards, backwards and of one, and some here and there."""
    rng = np.random.default_rng(4)
    columns = [np.arange(40), np.arange(39, -1, -1), np.r_[3, 2, 1, np.arange(30), 28, 27], np.full(33, 7)]
    columns += [
        rng.integers(-40, 40, 50),
        np.array([5]),
        np.r_[np.arange(20), rng.integers(0, 40, 9), np.arange(-12, 0)],
    ]
    rows = [np.arange(8, -1, -1), np.array([0, -1, 4, 4, 8, 2, 1])]
    for dtype in ("uint8", "float16", "float32", "int64"):
        bits = rng.integers(0, 100, (3, 9, 40, 2)).astype(STORAGE[dtype])
        for j in columns:
            for i in rows:
                at = tuple(dt.array(k, device=device).to(getattr(dt, index_dtype)) for k in (i, j))
                for x, key in (
                    (bits[..., 0], (slice(None), at[0][:, None], at[1])),
                    (bits, (0, at[0][:, None], at[1])),
                ):
                    array = from_bits(x, dtype, device)
                    want = x[:, i[:, None], j] if x is not bits else x[0, i[:, None], j]
                    np.testing.assert_array_equal(bits_of(array[key]), want)


@pytest.mark.parametrize(
    "i, j, wrong", [((0, 9, 1), (0, 1), 9), ((0, 1, 2), (0, 40), 40), ((0, 1, -10), (0, -41), -41)]
)
def test_one_of_two_indices_is_out_of_range(i: tuple[int, ...], j: tuple[int, ...], wrong: int) -> None:
    rows, columns = dt.array((*i, *range(9)))[:, None], dt.array((*range(20), *j))
    with pytest.raises(IndexError, match=f"index {wrong} is out of"):
        dt.zeros(9, 40)[rows, columns]
