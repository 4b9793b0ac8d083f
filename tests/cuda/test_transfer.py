"""Copies between devices: every dtype and layout both ways, slots, threads, page-locked memory, peers."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import formats
import numpy as np
import pytest
from formats import DTYPES, STORAGE
from support import CUDA_DEVICES, ONE, REAL, bits_of, calls, lay_out

import devtensor as dt

SMALL, LARGE = 64 << 10, 4 << 20  # bytes of the slots
LAYOUTS = ("contiguous", "transposed", "channels_last", "sliced", "expanded")


def patterns(count: int, dtype: str, seed: int = 3) -> np.ndarray:
    """Stored elements of every kind, NaN and infinities too."""
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 256, count * formats.ITEMSIZE[dtype], dtype=np.uint8)
    return (raw & 1).view(STORAGE[dtype]) if dtype == "bool" else raw.view(STORAGE[dtype])


def same(got: dt.DeviceArray, want: np.ndarray) -> bool:
    return bits_of(got).tobytes() == np.ascontiguousarray(want).tobytes()


# ---------------------------------------------------------------- values


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_every_pair_of_dtypes(source: str, target: str, cuda: str) -> None:
    """Both ways, from every layout, pageable and page-locked; the bus carries the narrower of the two."""
    bits = patterns(2 * 3 * 4 * 5, source).reshape(2, 3, 4, 5)
    width = min(formats.ITEMSIZE[source], formats.ITEMSIZE[target])
    for layout in LAYOUTS:
        stored = np.broadcast_to(bits[:1], bits.shape) if layout == "expanded" else bits
        want = formats.cast(stored, source, target)
        here, there = lay_out(bits, source, "cpu", layout), lay_out(bits, source, cuda, layout)
        before = dt._C.counters()
        for host in (here, here.pin_memory()):
            assert same(host.to(cuda, getattr(dt, target)), want), layout
        between = dt._C.counters()
        assert between["bytes_to_device"] - before["bytes_to_device"] == 2 * 120 * width
        for non_blocking in (False, True):
            got = there.to("cpu", getattr(dt, target), non_blocking=non_blocking)
            assert same(got, want), layout
            assert got.is_pinned() == non_blocking
        after = dt._C.counters()
        assert after["bytes_to_host"] - between["bytes_to_host"] == 2 * 120 * width


@pytest.mark.parametrize("source", ["float32", "float64", "uint8"])
@pytest.mark.parametrize("target", ["float32", "bfloat16"])
@pytest.mark.parametrize("pinned", [False, True], ids=["pageable", "pinned"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_copy_into_every_layout(source: str, target: str, pinned: bool, layout: str, cuda: str) -> None:
    """Both sides strided and of other dtypes, at once or later."""
    bits = patterns(2 * 3 * 4 * 5, source).reshape(2, 3, 4, 5)
    want = formats.cast(bits, source, target)
    for non_blocking in (False, True):
        for devices in (("cpu", cuda), (cuda, "cpu")):
            x = lay_out(bits, source, devices[0], "sliced" if layout == "expanded" else layout)
            whole = lay_out(patterns(240, target, 4).reshape(2, 3, 4, 10), target, devices[1], "contiguous")
            whole = whole.pin_memory() if pinned and devices[1] == "cpu" else whole
            rest = bits_of(whole)[..., ::2]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                whole[..., 1::2].copy_(x, non_blocking=non_blocking)
            assert same(whole[..., 1::2], want)
            assert same(whole[..., ::2], rest)


SIZES = [0, 1, 7, SMALL - 1, SMALL, SMALL + 1, LARGE - 1, LARGE, LARGE + 1, 2 * LARGE + 12345, 10 * LARGE + 1]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("source", "target"), [("uint8", "uint8"), ("int16", "uint8"), ("uint8", "int16")])
def test_around_the_size_of_a_slot(size: int, source: str, target: str, cuda: str) -> None:
    bits = patterns(size, source)
    x = dt.from_numpy(bits)
    want = bits.astype(target)
    for host in (x, x.pin_memory()):
        there = host.to(cuda, getattr(dt, target))
        assert same(there, want)
    for non_blocking in (False, True):
        assert same(x.to(cuda).to("cpu", getattr(dt, target), non_blocking=non_blocking), want)


@pytest.mark.parametrize(
    "shape", [(3, LARGE // 4 + 7), (5, 2, LARGE // 8 - 1), (1, 9, LARGE // 4), (LARGE // 4 + 3, 2)]
)
def test_large_strided_sources_and_targets(shape: tuple[int, ...], cuda: str) -> None:
    """Rows shorter and longer than a slot, gathered on their way and put back."""
    x = np.arange(2 * np.prod(shape), dtype=np.int32).reshape(*shape[:-1], 2 * shape[-1])
    part = x[..., ::2]
    assert same(dt.from_numpy(x)[..., ::2].to(cuda), part)
    turned = dt.from_numpy(x)[..., ::2].to(cuda).permute(*range(len(shape))[::-1])
    assert same(turned.cpu(), part.T)
    target = np.zeros_like(x)
    dt.from_numpy(target)[..., 1::2].copy_(dt.from_numpy(x)[..., ::2].to(cuda))
    assert np.array_equal(target[..., 1::2], part)
    assert not target[..., ::2].any()
    host = dt.zeros(2, 3, dtype=dt.int32).T
    host.copy_(dt.arange(6, dtype=dt.int32, device=cuda).reshape(3, 2))
    assert host.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_an_image_stays_channels_last(cuda: str) -> None:
    image = dt.rand(2, 64, 64, 3).permute(0, 3, 1, 2)
    there = image.to(cuda, dt.float16)
    assert there.stride() == image.stride()
    back = there.to("cpu", dt.float32, non_blocking=True)
    assert back.stride() == image.stride()
    assert back.tolist() == image.half().float().tolist()


# ---------------------------------------------------------------- the host need not wait


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_small_transfers_to_a_device_do_not_wait(dtype: str, cuda: str) -> None:
    sources = [dt.full((SMALL // 8,), float(i), dtype=getattr(dt, dtype)) for i in range(20)]
    sources[0].to(cuda)
    dt.cuda.synchronize(cuda)
    with calls("cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize", synchronizations=0):
        there = []
        for x in sources:
            there.append(x.to(cuda, dt.float32))
            x.fill_(-1)
    for i, y in enumerate(there):
        assert y.tolist() == [float(i)] * (SMALL // 8)


def test_pinned_copies_do_not_wait(cuda: str) -> None:
    x = dt.arange(100_000, dtype=dt.float32).pin_memory()
    y = dt.empty(100_000).pin_memory()
    x.to(cuda).to("cpu", non_blocking=True).sum()
    with calls("cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize", synchronizations=0):
        there = x.to(cuda, non_blocking=True)
        wide = x.to(cuda, dt.float64, non_blocking=True)
        back = (there * 2).to("cpu", non_blocking=True)
        widened = (there * 2).to("cpu", dt.float64, non_blocking=True)
        y.copy_(there + 1, non_blocking=True)
        view = back[10:20].reshape(2, 5).T
    want = np.arange(100_000, dtype=np.float64)
    assert view.tolist() == (want[10:20] * 2).reshape(2, 5).T.tolist()
    assert np.array_equal(back.numpy(), want * 2)
    assert np.array_equal(widened.numpy(), want * 2)
    assert np.array_equal(y.numpy(), want + 1)
    assert np.array_equal(wide.cpu().numpy(), want)


def test_a_wait_happens_once(cuda: str) -> None:
    back = dt.ones(1000, device=cuda).to("cpu", non_blocking=True)
    with calls(synchronizations=1):
        assert back.sum().item() == 1000
        assert back.numpy().sum() == 1000


def test_steady_state_calls_no_slow_function(cuda: str) -> None:
    slow = ("cuMemHostAlloc", "cuMemFreeHost", "cuEventCreate", "cuEventDestroy_v2", "cuMemAlloc_v2")
    large, pinned = dt.rand(LARGE // 2), dt.rand(LARGE // 2).pin_memory()

    def step() -> None:
        dt.rand(100).to(cuda).cpu()
        large.to(cuda).to("cpu", dt.float64)
        pinned.to(cuda, non_blocking=True).to("cpu", non_blocking=True).sum()
        large.pin_memory().to(cuda, non_blocking=True)
        dt.cuda.synchronize(cuda)

    rounds: list[dict[str, int]] = []
    while not rounds or any(rounds[-1].values()):  # slots and events are made while all others are taken
        assert len(rounds) < 8, rounds
        before = dt._C._test.api_calls()
        for _ in range(10):
            step()
        after = dt._C._test.api_calls()
        rounds.append({name: after[name] - before[name] for name in slow})


def test_non_blocking_from_pageable_memory_warns_once_a_line() -> None:
    script = """
import warnings
import devtensor as dt
warnings.simplefilter("always")
x, y = dt.ones(1000), dt.ones(1000, device="cuda")
with warnings.catch_warnings(record=True) as found:
    y.to("cpu", non_blocking=True)
    x.pin_memory().to("cuda", non_blocking=True)
    x.to("cpu", non_blocking=True), x.to(dt.float64, non_blocking=True), y.to("cuda", non_blocking=True)
    dt.ones(0).to("cuda", non_blocking=True)
    assert not found, found
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in (lambda: x.to("cuda", non_blocking=True), lambda: x.copy_(y, non_blocking=True)):
            try:
                call()
            except UserWarning as warning:
                assert "not page-locked" in str(warning) and "pin_memory" in str(warning), warning
            else:
                raise AssertionError
    warnings.simplefilter("default")
    wide = dt.ones(8, 8).pin_memory()[:, ::2]
    for i in range(3):
        assert x.to("cuda", non_blocking=True).sum().item() == 1000
        assert y.copy_(x, non_blocking=True).sum().item() == 1000
        wide.to("cuda", non_blocking=True)
        dt.ones(8).pin_memory().to("cuda", dt.float16, non_blocking=True)
assert [(w.category, w.filename, w.lineno - found[0].lineno) for w in found] == [
    (UserWarning, "<string>", i) for i in range(4)
], found
assert ["page-locked" in str(w.message) for w in found] == [True, True, False, False]
assert "side by side" in str(found[2].message) and "narrower dtype" in str(found[3].message)
"""
    child = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (child.returncode, child.stderr) == (0, "")


# ---------------------------------------------------------------- page-locked memory


def test_pinned_memory_is_kept_and_given_back() -> None:
    gc.collect()
    dt.cuda.empty_cache()
    before = dt.cuda.host_memory_stats()
    x = dt.zeros(100_000).pin_memory()
    held = dt.cuda.host_memory_stats()
    assert held["active_requests.current"] - before["active_requests.current"] == 1
    assert 400_000 <= held["active_bytes.current"] - before["active_bytes.current"] <= 500_000
    assert held["allocated_bytes.current"] > before["allocated_bytes.current"]
    assert held["num_host_alloc"] == before["num_host_alloc"] + 1
    del x
    kept = dt.cuda.host_memory_stats()
    assert kept["active_bytes.current"] == before["active_bytes.current"]
    assert kept["allocated_bytes.current"] == held["allocated_bytes.current"]
    with calls("cuMemHostAlloc"):
        x = dt.zeros(100_000).pin_memory()
    del x
    dt.cuda.empty_cache()
    after = dt.cuda.host_memory_stats()
    assert after["allocated_bytes.current"] == before["allocated_bytes.current"]
    assert after["num_host_free"] == before["num_host_free"] + 1
    assert after["allocations.peak"] >= held["allocations.current"]
    assert after["host_alloc_time.count"] == after["num_host_alloc"]


def test_unused_pinned_memory_is_bounded() -> None:
    """Little more than was once in use at the same time stays locked, whatever the sizes."""
    gc.collect()
    dt.cuda.empty_cache()
    for k in range(40):
        dt.zeros((8 << 20) + k * (1 << 20)).pin_memory()
    stats = dt.cuda.host_memory_stats()
    limit = max(256 << 20, stats["active_bytes.peak"] * 9 // 8)
    assert stats["allocated_bytes.current"] <= limit
    dt.cuda.empty_cache()


def test_no_pinned_memory_left() -> None:
    """The sizes are told, nothing breaks, and later it works again."""
    if REAL:
        pytest.skip("faults are planted in the simulated driver")
    dt.cuda.empty_cache()
    x = dt.ones(300_000)
    dt._C._test.api_fail("cuMemHostAlloc", 0, 2, True)
    try:
        with pytest.raises(dt.OutOfMemoryError, match=r"page-locked host memory. Tried to allocate \d+ bytes"):
            x.pin_memory()
        with pytest.raises(dt.OutOfMemoryError, match="page-locked"):
            dt.ones(300_000, device="cuda:0").to("cpu", non_blocking=True)
    finally:
        dt._C._test.api_fail("cuMemHostAlloc", -1, 0)
    dt._C._test.api_fail("cuMemHostAlloc", 0, 2)  # one failure: unused blocks are given back, and it is tried again
    assert x.pin_memory().sum().item() == 300_000


@pytest.mark.parametrize("sticky", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize(
    "symbol", ["cuEventCreate", "cuEventRecord", "cuEventSynchronize", "cuEventQuery", "cuMemcpyHtoDAsync_v2",
               "cuMemcpyDtoHAsync_v2", "cuMemHostAlloc", "cuMemFreeHost", "cuStreamWaitEvent", "cuStreamSynchronize",
               "cuCtxSynchronize", "cuMemcpyPeerAsync"],
)  # fmt: skip
def test_no_failure_takes_a_slot_away(symbol: str, sticky: bool) -> None:
    """Each call of each transfer fails in turn; whatever happens then, the next transfers are right."""
    if REAL:
        pytest.skip("faults are planted in the simulated driver")
    if ONE and symbol == "cuMemcpyPeerAsync":
        pytest.skip("there is no peer")
    values = np.arange(LARGE // 4 + 100, dtype=np.float32)
    x, pinned, there = dt.from_numpy(values), dt.from_numpy(values).pin_memory(), dt.from_numpy(values).to("cuda:0")
    failures = 0
    for n in range(6):
        for move in (
            lambda: x.to("cuda:0").sum().item(),
            lambda: x[:100].to("cuda:0", dt.float16).sum().item(),
            lambda: pinned.to("cuda:0", non_blocking=True).sum().item(),
            lambda: there.cpu().sum().item(),
            lambda: there[::2].to("cpu", dt.float64, non_blocking=True).sum().item(),
            lambda: there[:100].to(CUDA_DEVICES[-1]).sum().item(),
            lambda: pinned.copy_(there, non_blocking=True).sum().item(),
        ):
            want = move()
            dt._C._test.api_fail(symbol, n, 999, sticky)
            try:
                assert move() == want
            except dt.CudaError as error:
                failures += 1
                assert symbol in str(error)
            finally:
                dt._C._test.api_fail(symbol, -1, 0)
            assert move() == want
    assert failures or symbol in ("cuEventQuery", "cuStreamSynchronize", "cuCtxSynchronize", "cuMemFreeHost",
                                  "cuMemHostAlloc", "cuEventCreate")  # fmt: skip


# ---------------------------------------------------------------- threads


def test_threads_stage_at_once() -> None:
    """More threads than slots, both ways, on all devices, with large, small and page-locked memory."""
    barrier = threading.Barrier(8)

    def work(i: int) -> None:
        rng = np.random.default_rng(i)
        values = rng.standard_normal(LARGE // 4 * 2 + i)
        x = dt.from_numpy(values)
        barrier.wait(60)
        for n in range(3):
            device = CUDA_DEVICES[(i + n) % len(CUDA_DEVICES)]
            there = x.to(device, dt.float32)
            small = [x[k : k + 100].to(device) for k in range(50)]
            assert np.array_equal(there.cpu().numpy(), values.astype(np.float32))
            later = there.to("cpu", dt.float64, non_blocking=True)
            for k, y in enumerate(small):
                assert np.array_equal(y.cpu().numpy(), values[k : k + 100])
            assert np.array_equal(later.numpy(), values.astype(np.float32))

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(work, i) for i in range(8)]:
            future.result(300)


# ---------------------------------------------------------------- between devices


@pytest.mark.skipif(len(CUDA_DEVICES) < 2, reason="needs two CUDA devices")
@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", ["float32", "int64", "bool", "bfloat16"])
def test_peers(source: str, target: str) -> None:
    """The narrower dtype goes over the link, the source may go at once, and the host waits for nothing."""
    bits = patterns(120, source).reshape(2, 3, 4, 5)
    width = min(formats.ITEMSIZE[source], formats.ITEMSIZE[target])
    for layout in LAYOUTS:
        stored = np.broadcast_to(bits[:1], bits.shape) if layout == "expanded" else bits
        x = lay_out(bits, source, "cuda:0", layout)
        before = dt._C.counters()
        with calls("cuStreamSynchronize", "cuEventSynchronize", "cuMemcpyDtoHAsync_v2", synchronizations=0):
            y = x.clone().to("cuda:1", getattr(dt, target))
            z = y.to("cuda:0").to("cuda:1")
            dt.full((2, 3, 4, 5), 1, device="cuda:0")
        after = dt._C.counters()
        want = formats.cast(stored, source, target)
        assert after["bytes_between_devices"] - before["bytes_between_devices"] == 120 * width + 2 * want.nbytes
        assert same(y, want)
        assert same(z, want)


@pytest.mark.skipif(len(CUDA_DEVICES) < 2, reason="needs two CUDA devices")
def test_peers_in_threads() -> None:
    def work(i: int) -> None:
        x = dt.arange(1000, device=CUDA_DEVICES[i % 2]) + i
        for _ in range(20):
            x = x.to(CUDA_DEVICES[(i + 1) % 2]).to(CUDA_DEVICES[i % 2])
        assert x.tolist() == list(range(i, 1000 + i))

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(work, i) for i in range(8)]:
            future.result(300)
