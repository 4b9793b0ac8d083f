"""Large blocks of the host: kept warm, bounded, given back on demand, and never twice in use."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

import devtensor as dt

MIB = 1 << 20


def kept() -> int:
    return dt.cpu.memory_stats()["kept_bytes"]


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    limit = dt.cpu.memory_stats()["limit_bytes"]
    dt.cpu.empty_cache()
    yield
    dt.cpu.set_cache_limit(limit)
    dt.cpu.empty_cache()


keeps = pytest.mark.skipif(
    dt.cpu.memory_stats()["limit_bytes"] == 0, reason="under the sanitizer freed memory is never kept"
)


@keeps
def test_a_block_given_back_serves_the_next_request() -> None:
    x = dt.zeros(MIB)
    address = x.data_ptr()
    del x
    assert 4 * MIB <= kept() <= 5 * MIB
    before = dt.cpu.memory_stats()["reused"]
    y = dt.ones(MIB)
    assert y.data_ptr() == address and kept() == 0
    assert dt.cpu.memory_stats()["reused"] == before + 1
    assert (y == 1).all()


@keeps
def test_a_block_much_larger_is_not_given_for_a_small_one() -> None:
    x = dt.empty(MIB)
    del x
    before = kept()
    small = dt.empty(MIB // 2)
    assert kept() == before and small.numel() == MIB // 2


def test_limit_and_empty_cache() -> None:
    dt.cpu.set_cache_limit(6 * MIB)
    arrays = [dt.empty(MIB) for _ in range(4)]
    del arrays
    assert kept() <= 6 * MIB
    dt.cpu.set_cache_limit(0)
    assert kept() == 0
    x = dt.empty(MIB)
    del x
    assert kept() == 0
    with pytest.raises(RuntimeError, match="not negative"):
        dt.cpu.set_cache_limit(-1)


def test_live_arrays_never_share_a_block() -> None:
    """Threads that make and drop arrays of a few sizes: what one wrote, no other has changed."""

    def work(seed: int, wrong: list[int]) -> None:
        random = np.random.default_rng(seed)
        live: list[tuple[int, dt.DeviceArray]] = []
        for i in range(200):
            size = int(random.choice([40_000, 300_000, 301_000, 600_000]))
            value = seed * 1000 + i
            live.append((value, dt.full((size,), value, dtype=dt.int32)))
            if len(live) > 3:
                value, array = live.pop(int(random.integers(3)))
                wrong.append(int((array != value).any()))

    wrong: list[int] = []
    threads = [threading.Thread(target=work, args=(seed, wrong)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wrong) == 4 * 197 and not any(wrong)
