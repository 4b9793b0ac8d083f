"""The allocator of device memory: what it keeps, what it gives back, and what it says about that."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support import REAL, bits_of, counted, python_path

import devtensor as dt

DRIVER = ("cuMemAllocAsync", "cuMemFreeAsync", "cuMemAlloc_v2", "cuMemFree_v2", "cuMemPoolTrimTo")
MIB = 1 << 20


def child(code: str, **environment: str) -> Any:
    """What a fresh process prints, as JSON."""
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=480,
        env=os.environ | {"PYTHONPATH": python_path()} | environment,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.fixture
def stats(cuda: str) -> Callable[[], dict[str, int]]:
    gc.collect()
    dt.cuda.synchronize(cuda)
    dt.cuda.empty_cache()
    return lambda: dt.cuda.memory_stats(cuda)


@pytest.fixture
def limited(cuda: str, stats: Callable[[], dict[str, int]]) -> Iterator[Callable[[int], None]]:
    """Allows so many bytes more than are in use."""
    total = dt.cuda.get_device_properties(cuda).total_memory

    def limit(nbytes: int) -> None:
        dt.cuda.set_per_process_memory_fraction((stats()["reserved_bytes.all.current"] + nbytes) / total, cuda)

    yield limit
    dt.cuda.set_per_process_memory_fraction(1.0, cuda)


# ---------------------------------------------------------------- what is kept


@pytest.mark.parametrize(
    "nbytes", [1, 511, 512, 513, 4096, 4097, 5000, 65537, 10**6, 2**24 - 1, 2**24 + 1, 2**26, 2**26 + 1, 10**8]
)
def test_size_classes(nbytes: int, cuda: str, stats: Callable[[], dict[str, int]]) -> None:
    """At most an eighth more than was asked for, or 512 bytes; the next array of about that size gets the block."""
    before = stats()
    x = dt.empty(nbytes, dtype=dt.uint8, device=cuda)
    during = stats()
    size = during["allocated_bytes.all.current"] - before["allocated_bytes.all.current"]
    assert during["requested_bytes.all.current"] - before["requested_bytes.all.current"] == nbytes
    assert during["reserved_bytes.all.current"] - before["reserved_bytes.all.current"] == size
    assert nbytes <= size <= max(nbytes * 9 // 8 + 1, nbytes + 511)
    assert size % 512 == 0
    assert size <= 2**26 or (size % 2**21 == 0 and size - nbytes < 2**21)
    where = x.data_ptr()
    del x
    after = stats()
    assert after["allocated_bytes.all.current"] == before["allocated_bytes.all.current"]
    assert after["reserved_bytes.all.current"] == during["reserved_bytes.all.current"]
    assert after["inactive_bytes.all.current"] - before["inactive_bytes.all.current"] == size
    y = dt.empty(size, dtype=dt.uint8, device=cuda)
    assert y.data_ptr() == where
    assert stats()["num_device_alloc"] == before["num_device_alloc"] + 1


def test_large_blocks_serve_their_own_size(cuda: str, stats: Callable[[], dict[str, int]]) -> None:
    sizes = [65 * MIB, 70 * MIB]
    arrays = [dt.empty(n, dtype=dt.uint8, device=cuda) for n in sizes]
    where = [x.data_ptr() for x in arrays]
    del arrays
    made = stats()["num_device_alloc"]
    arrays = [dt.empty(n - 5, dtype=dt.uint8, device=cuda) for n in sizes]
    assert [x.data_ptr() for x in arrays] == where
    assert stats()["num_device_alloc"] == made
    dt.empty(73 * MIB, dtype=dt.uint8, device=cuda)
    assert stats()["num_device_alloc"] == made + 1
    del arrays
    dt.cuda.empty_cache()


def test_sizes_share_no_memory(cuda: str) -> None:
    """Blocks of all sizes, alive and used again, keep their own values."""
    random = np.random.default_rng(0)
    alive: dict[int, dt.DeviceArray] = {}
    for i in range(300):
        n = int(random.integers(1, 1 << int(random.integers(1, 16))))
        alive[i] = dt.full((n,), float(i), device=cuda)
        if len(alive) > 30:
            j = list(alive)[int(random.integers(len(alive)))]
            assert set(bits_of(alive.pop(j)).view(np.float32).tolist()) == {float(j)}
    for i, x in alive.items():
        assert set(bits_of(x).view(np.float32).tolist()) == {float(i)}


STEADY = """
import json
import devtensor as dt

x = dt.rand(8, 3, 16, 16, device="cuda")
w, b = dt.rand(4, 3, 3, 3, device="cuda"), dt.rand(4, device="cuda")
v = dt.rand(4 * 14 * 14, 10, device="cuda")

def step():
    y = dt.relu(dt.conv2d(x, w, b))
    y = dt.softmax(y.flatten(1) @ v, dim=-1)
    return dt.where(y > 0.1, y, 0.0).T.contiguous().sum(dim=0).to(dt.float16)

for _ in range(3):
    step()
before = dt._C._test.api_calls()
for _ in range(50):
    step()
after = dt._C._test.api_calls()
print(json.dumps({name: after[name] - before[name] for name in after if after[name] != before[name]}))
"""


def test_a_loop_makes_no_call_but_its_work() -> None:
    calls = child(STEADY)
    assert calls["cuLaunchKernel"] > 200
    assert calls["cublasLtMatmul"] == calls["cudnnBackendExecute"] == 50
    forbidden = ("cuMem", "cuEvent", "cuStream", "cuModule", "cuCtxSet", "cuCtxSync", "cudnnSetStream")
    assert [name for name in calls if name.startswith(forbidden)] == []


def test_a_loop_with_two_streams_settles(cuda: str) -> None:
    """Batches made on one stream and used on another: no allocation after the start, a few events a step."""
    others = [dt.cuda.Stream(cuda) for _ in range(40)]  # which nobody uses any more
    del others
    stream = dt.cuda.Stream(cuda)

    def batch(i: int) -> dt.DeviceArray:
        with dt.cuda.stream(stream):
            return dt.full((1000,), float(i), device=cuda) * 2

    total = dt.zeros((), device=cuda)
    following = batch(0)
    for i in range(40):
        if i == 20:
            before, events = counted(*DRIVER), counted("cuEventRecord", "cuStreamWaitEvent")
        current, following = following, batch(i + 1)
        total += (current + 1).sum()
    assert counted(*DRIVER) == before
    assert counted("cuEventRecord", "cuStreamWaitEvent") - events <= 20 * 8
    assert total.item() == 1000 * (2 * sum(range(40)) + 40)


@pytest.mark.parametrize("n", [100, 3 << 20])
def test_memory_goes_from_stream_to_stream(n: int, cuda: str, stats: Callable[[], dict[str, int]]) -> None:
    """A block that another stream may still read is not written before that."""
    streams = [dt.cuda.Stream(cuda) for _ in range(3)]
    dt.cuda.reset_peak_memory_stats(cuda)
    before, found = stats()["reserved_bytes.all.current"], []
    for i in range(30):
        with dt.cuda.stream(streams[i % 3]):
            x = dt.full((n,), float(i), device=cuda)
            found.append(x[::17].sum() / len(x[::17]))
            del x
    x = dt.full((n,), -1.0, device=cuda)
    for stream in reversed(streams):  # a write that did not wait would now come first
        stream.synchronize()
    assert [one.item() for one in found] == [float(i) for i in range(30)]
    assert x[5].item() == -1
    del x, found
    if n > 100:  # large blocks are waited for, not multiplied
        assert stats()["reserved_bytes.all.peak"] - before < 15 * 4 * n


def test_an_array_may_be_used_on_another_stream_first(cuda: str, streams: list[dt.cuda.Stream]) -> None:
    for _ in range(3):
        dt.cuda.empty_cache()
        with dt.cuda.stream(streams[0]):
            x = dt.empty(1000, device=cuda)
        with dt.cuda.stream(streams[1]):
            x.fill_(3)
        assert x.sum().item() == 3000
        del x


def test_each_stream_has_a_workspace(cuda: str) -> None:
    x = dt.full((64, 64), 2.0, device=cuda)
    stream, last = dt.cuda.Stream(cuda, priority=-2), x @ x
    dt.cuda.empty_cache()
    free = dt.cuda.mem_get_info(cuda)[0]
    with dt.cuda.stream(stream):
        last = x @ x
    assert dt.cuda.mem_get_info(cuda)[0] <= free - 32 * MIB
    assert last.sum().item() == 64 * 64 * 256


RELEASED = {
    "read by another stream": """
x = dt.full((n,), 1.0, device="cuda")
s = dt.cuda.Stream()
with dt.cuda.stream(s):
    y = x.sum()
del x
z = dt.full((n,), -1.0, device="cuda")
dt.cuda.default_stream().synchronize()
""",
    "before there was another stream": """
x = dt.full((n,), 1.0, device="cuda")
y = x.sum()
del x
s = dt.cuda.Stream()
with dt.cuda.stream(s):
    z = dt.full((n,), -1.0, device="cuda")
s.synchronize()
""",
}


@pytest.mark.parametrize("cache", ["0", "1"])
@pytest.mark.parametrize("n", [1000, 17 * MIB])
@pytest.mark.parametrize("code", RELEASED.values(), ids=RELEASED)
def test_released_memory_waits_for_its_readers(code: str, n: int, cache: str) -> None:
    code = f"import devtensor as dt\nn = {n}{code}print([y.item(), z[n - 1].item()])"
    assert child(code, DEVTENSOR_CUDA_CACHE=cache) == [float(n), -1.0]


def test_scratch_memory_of_two_streams(cuda: str) -> None:
    """Temporaries and workspaces inside ops are ordered like arrays."""
    streams = [dt.cuda.Stream(cuda), dt.cuda.Stream(cuda)]
    x = dt.arange(200 * 300, dtype=dt.float32, device=cuda).reshape(200, 300) / 60000
    strided = x[:, ::3]
    want = bits_of(strided.T @ strided).tobytes(), x.sum(dtype=dt.float64).item()
    found = []
    for i in range(20):
        with dt.cuda.stream(streams[i % 2]):
            found.append((strided.T @ strided, x.sum(dtype=dt.float64)))
    for product, total in found:
        assert (bits_of(product).tobytes(), total.item()) == want


def test_threads_share_the_allocator(cuda: str, stats: Callable[[], dict[str, int]]) -> None:
    before = stats()["allocated_bytes.all.current"]
    wrong: list[Any] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for i in range(60):
            n = int(random.integers(1, 20000))
            x = dt.full((n,), float(seed * 100 + i), device=cuda)
            if (x - (seed * 100 + i)).abs().sum().item() != 0:
                wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert wrong == []
    assert stats()["allocated_bytes.all.current"] == before


# ---------------------------------------------------------------- statistics


def test_stats(cuda: str, stats: Callable[[], dict[str, int]]) -> None:
    dt.cuda.reset_peak_memory_stats(cuda)
    before = stats()
    assert set(before) >= {
        f"{kind}_bytes.all.{when}"
        for kind in ("requested", "allocated", "active", "reserved")
        for when in ("current", "peak")
    } | {"num_alloc_retries", "num_ooms", "num_device_alloc", "num_device_free", "inactive_bytes.all.current"}
    x = dt.empty(MIB, dtype=dt.uint8, device=cuda)
    y = dt.empty(0, device=cuda)
    during = stats()
    assert during["allocation.all.current"] == before["allocation.all.current"] + 1
    assert dt.cuda.memory_allocated(cuda) == before["allocated_bytes.all.current"] + MIB
    del x, y
    after = stats()
    assert after["allocation.all.freed"] == before["allocation.all.freed"] + 1
    assert after["num_cache_hits"] == before["num_cache_hits"]
    assert dt.cuda.max_memory_allocated(cuda) == before["allocated_bytes.all.current"] + MIB
    assert (
        dt.cuda.max_memory_reserved(cuda) == dt.cuda.memory_reserved(cuda) == before["reserved_bytes.all.current"] + MIB
    )
    dt.cuda.empty_cache()
    assert dt.cuda.memory_reserved(cuda) == before["reserved_bytes.all.current"]
    assert stats()["num_device_free"] == after["num_device_free"] + 1
    dt.cuda.reset_peak_memory_stats(cuda)
    assert dt.cuda.max_memory_reserved(cuda) == dt.cuda.memory_reserved(cuda)
    assert dt.cuda.max_memory_allocated(cuda) == dt.cuda.memory_allocated(cuda)


def test_empty_cache_gives_all_back(cuda: str, stats: Callable[[], dict[str, int]]) -> None:
    free = dt.cuda.mem_get_info(cuda)[0]
    stream = dt.cuda.Stream(cuda)
    with dt.cuda.stream(stream):
        x = dt.full((8 * MIB,), 1.0, device=cuda)
    y = x + 1
    del x, y
    assert dt.cuda.mem_get_info(cuda)[0] < free
    dt.cuda.empty_cache()
    assert dt.cuda.mem_get_info(cuda)[0] == free
    assert stats()["inactive_bytes.all.current"] == 0


# ---------------------------------------------------------------- out of memory


def test_a_full_cache_is_given_back_first(
    cuda: str, stats: Callable[[], dict[str, int]], limited: Callable[[int], None]
) -> None:
    limited(10 * MIB)
    before = stats()
    for n in (6, 3):
        dt.empty(n * MIB, dtype=dt.uint8, device=cuda)
    x = dt.full((2 * MIB,), 5.0, device=cuda)
    after = stats()
    assert after["num_alloc_retries"] == before["num_alloc_retries"] + 1
    assert after["num_ooms"] == before["num_ooms"]
    assert x.sum().item() == 10 * MIB


def test_out_of_memory(cuda: str, stats: Callable[[], dict[str, int]], limited: Callable[[int], None]) -> None:
    limited(10 * MIB)
    before = stats()
    x = dt.full((MIB,), 5.0, device=cuda)
    for _ in range(2):
        with pytest.raises(dt.OutOfMemoryError) as caught:
            dt.empty(7 * MIB, dtype=dt.uint8, device=cuda)
        assert caught.value.requested == 7 * MIB
        assert str(caught.value.device) == cuda
        text = str(caught.value)
        assert f"Tried to allocate {7 * MIB} bytes (0.01 GiB) on {cuda}, which has" in text
        assert "are in use by devtensor and 0.00 GiB are cached" in text
        assert "set_per_process_memory_fraction() allows" in text
    after = stats()
    assert after["num_ooms"] == before["num_ooms"] + 2
    assert after["reserved_bytes.all.current"] == before["reserved_bytes.all.current"] + 4 * MIB
    assert x.sum().item() == 5 * MIB
    del x
    assert dt.full((7 * MIB // 4,), 2.0, device=cuda)[-1].item() == 2


@pytest.mark.parametrize("fraction", [-0.1, 1.5, float("nan")])
def test_fractions(fraction: float, cuda: str) -> None:
    with pytest.raises(RuntimeError, match="the fraction must be from 0 to 1, got"):
        dt.cuda.set_per_process_memory_fraction(fraction, cuda)
    with pytest.raises(TypeError):
        dt.cuda.set_per_process_memory_fraction("half", cuda)  # type: ignore[arg-type]


FULL = """
import json
import devtensor as dt

MIB = 1 << 20
found = []
x = dt.full((9 * MIB,), 1.0, device="cuda")
del x
y = dt.full((10 * MIB,), 2.0, device="cuda")  # needs the memory of x
found.append(y.sum().item() == 20 * MIB)
try:
    dt.empty(8 * MIB, device="cuda")
    found.append("no error")
except dt.OutOfMemoryError as error:
    found.append("has 0.06 GiB in total" in str(error))
try:
    a = dt.ones((400, 1000), device="cuda")
    b = a.T @ a  # the workspace of the library does not fit either
    found.append("no error")
except dt.OutOfMemoryError as error:
    found.append(error.requested == 32 * MIB)
del y
found.append((a.T @ a)[0, 0].item() == 400)
stats = dt.cuda.memory_stats()
print(json.dumps([found, stats["num_alloc_retries"], stats["num_ooms"]]))
"""


@pytest.mark.skipif(REAL, reason="fills a small device")
@pytest.mark.parametrize("cache", ["0", "1"])
def test_a_device_that_is_full(cache: str) -> None:
    found, retries, failures = child(
        FULL, DEVTENSOR_CUDA="sim:1", DEVTENSOR_SIM_MEMORY=str(64 * MIB), DEVTENSOR_CUDA_CACHE=cache
    )
    assert found == [True] * 4
    assert retries >= 2
    assert failures == 2


@pytest.mark.parametrize("symbol", ["cuMemAllocAsync", "cuMemFreeAsync", "cuMemPoolTrimTo", "cuCtxSynchronize"])
def test_the_driver_fails(
    symbol: str, cuda: str, stats: Callable[[], dict[str, int]], limited: Callable[[int], None]
) -> None:
    """Wherever the way to new memory ends, nothing is lost and the next try succeeds."""
    limited(10 * MIB)
    held = stats()["allocated_bytes.all.current"]
    for n in (6, 3):
        dt.empty(n * MIB, dtype=dt.uint8, device=cuda)
    dt._C._test.api_fail(symbol, 0, 999)
    try:
        with pytest.raises(dt.CudaError, match=symbol):
            dt.empty(8 * MIB, dtype=dt.uint8, device=cuda)
    finally:
        dt._C._test.api_fail(None, -1, 0)
    assert stats()["allocated_bytes.all.current"] == held
    x = dt.full((2 * MIB,), 3.0, device=cuda)
    assert x.sum().item() == 6 * MIB
    del x
    dt.cuda.empty_cache()
    assert stats()["inactive_bytes.all.current"] == 0


# ---------------------------------------------------------------- the case table without the cache, and with streams

TABLE = """
import json
import devtensor as dt
from cases import CASES
from support import Built

streams = [dt.cuda.Stream() for _ in range({streams})]
wrong, points = [], 0
for case in CASES:
    for dtype in case.dtypes:
        points += 1
        built = Built(case, dtype, "cuda:0", case.layouts[0])
        try:
            with dt.cuda.stream(streams[points % len(streams)] if streams else None):
                result = built.call()
            built.check(result)
        except Exception as error:
            wrong.append(f"{{case}} {{dtype}}: {{error}}")
dt.cuda.synchronize()
stats = [dt.cuda.memory_stats()[key] for key in ("num_cache_hits", "num_device_alloc")]
print(json.dumps([wrong[:5], points, dt._C._test.guard_violations(), *stats]))
"""


@pytest.mark.skipif(REAL, reason="guards and NaN around blocks are the simulated device's")
@pytest.mark.parametrize(("cache", "streams"), [("0", 0), ("1", 3)])
def test_the_case_table(cache: str, streams: int) -> None:
    """Without the cache each block comes from the driver, of the very size: an overrun of one byte or a read of old
    data shows. With several streams each op runs beside the one that made its operands."""
    code = TABLE.format(streams=streams)
    wrong, points, violations, hits, allocations = child(code, DEVTENSOR_CUDA="sim:1", DEVTENSOR_CUDA_CACHE=cache)
    assert wrong == []
    assert points > 500
    assert violations == 0
    assert (hits, allocations > points) == (0, True) if cache == "0" else hits > points
