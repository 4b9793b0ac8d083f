"""Order between streams: results do not depend on the streams that ops were sent to, and nobody had to say so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support import CUDA_DEVICES, REAL, bits_of, counted, python_path, stepped

import devtensor as dt

Array = dt.DeviceArray

# An op for each slot and each way that it reads memory, of an x (1, 4, 8, 8), float32.
READS: dict[str, Callable[[Array], Array]] = {
    "unary": lambda x: x.exp(),
    "binary": lambda x: x + x,
    "binary with a number": lambda x: 3 - x,
    "promotion": lambda x: x + dt.ones(8, dtype=dt.float64, device=x.device),
    "in place": lambda x: dt.ones_like(x).mul_(x),
    "ternary": lambda x: dt.where(x > 1, x, -x),
    "lerp": lambda x: dt.lerp(x, x + 1, dt.full_like(x, 0.25)),
    "reduce": lambda x: x.sum(dim=-1),
    "reduce all": lambda x: x.mean(),
    "argmax": lambda x: x.argmax(),
    "max of a dim": lambda x: x.max(dim=1)[0],
    "softmax": lambda x: dt.softmax(x, dim=1),
    "matmul, left": lambda x: x @ dt.ones((8, 3), device=x.device),
    "matmul, right": lambda x: dt.ones((3, 8), device=x.device) @ x,
    "linear": lambda x: dt.linear(dt.ones((2, 8), device=x.device), x[0, 0], x[0, 1, 0]),
    "addmm": lambda x: dt.addmm(x[0, 0], x[0, 1], x[0, 2]),
    "conv2d, input": lambda x: dt.conv2d(x, dt.ones((2, 4, 3, 3), device=x.device)),
    "conv2d, weight": lambda x: dt.conv2d(dt.ones((1, 4, 9, 9), device=x.device), x),
    "conv2d, bias": lambda x: dt.conv2d(dt.ones((1, 1, 4, 4), device=x.device), x[0, :, None, :3, :3], x[0, :, 0, 0]),
    "max_pool2d": lambda x: dt.max_pool2d(x, 2),
    "avg_pool2d": lambda x: dt.avg_pool2d(x, 2),
    "copy": lambda x: x.clone(),
    "strided copy": lambda x: x.transpose(2, 3).contiguous(),
    "cast": lambda x: x.to(dt.float16),
    "copy_": lambda x: dt.empty_like(x).copy_(x),
    "cat": lambda x: dt.cat([x, x]),
    "tril": lambda x: dt.tril(x),
    "getitem": lambda x: x[..., ::2] + 0,
    "optimizer": lambda x: stepped(dt.ones_like(x), x, momentum=0.5),
    "to the host": lambda x: x.cpu(),
    "to the host and float16": lambda x: x.to("cpu", dt.float16),
    "item": lambda x: dt.tensor(x[0, 1, 2, 3].item()),
}
# And what writes without reading.
WRITES: dict[str, Callable[[str], Array]] = {
    "zeros": lambda device: dt.zeros((50, 50), device=device),
    "full": lambda device: dt.full((50, 50), 1.5, device=device),
    "arange": lambda device: dt.arange(2500, device=device),
    "eye": lambda device: dt.eye(50, device=device),
    "uniform": lambda device: dt.rand(50, 50, device=device),
    "normal": lambda device: dt.randn(50, 50, device=device),
    "integers": lambda device: dt.randint(0, 100, (50, 50), device=device),
    "permutation": lambda device: dt.randperm(2500, device=device),
    "from the host": lambda device: dt.arange(2500, dtype=dt.float32).to(device),
    "from page-locked memory": lambda device: (
        dt.arange(2500, dtype=dt.float32).pin_memory().to(device, non_blocking=True)
    ),
    "optimizer": lambda device: stepped(dt.ones(50, 50, device=device), dt.ones(50, 50, device=device), momentum=0.5),
    "indices": lambda device: dt.max_pool2d(dt.ones((1, 1, 50, 50), device=device), 2, return_indices=True)[1],
}


def source(device: str) -> Array:
    return ((dt.arange(256, dtype=dt.float32, device=device) * 37 % 101) / 32).reshape(1, 4, 8, 8)


def bytes_of(x: Array) -> bytes:
    return bits_of(x).tobytes()


@pytest.mark.parametrize("kind", READS)
def test_reads_see_what_another_stream_wrote(kind: str, cuda: str, streams: list[dt.cuda.Stream]) -> None:
    first, second = streams
    base, op = source(cuda), READS[kind]
    want = bytes_of(op(base * 2))
    with dt.cuda.stream(first):
        x = base * 2
    with dt.cuda.stream(second):
        y = op(x)
    assert bytes_of(y) == want


@pytest.mark.parametrize("kind", READS)
def test_writes_let_reads_of_another_stream_finish(kind: str, cuda: str, streams: list[dt.cuda.Stream]) -> None:
    base, op = source(cuda), READS[kind]
    want = bytes_of(op(base))
    x = base.clone()
    with dt.cuda.stream(streams[0]):
        y = op(x)
    x.fill_(-7)
    assert bytes_of(y) == want
    assert bits_of(x).view(np.float32).max() == -7


@pytest.mark.parametrize("kind", WRITES)
def test_results_are_seen_by_other_streams(kind: str, cuda: str, streams: list[dt.cuda.Stream]) -> None:
    make = WRITES[kind]
    dt.manual_seed(5)
    want = bytes_of(make(cuda))
    dt.manual_seed(5)
    with dt.cuda.stream(streams[0]):
        x = make(cuda)
    with dt.cuda.stream(streams[1]):
        y = x + 0
    assert bytes_of(y) == want
    assert bytes_of(x) == want


def test_the_last_write_wins(cuda: str, streams: list[dt.cuda.Stream]) -> None:
    x = dt.zeros(1000, device=cuda)
    for i in range(1, 10):
        with dt.cuda.stream(streams[i % 2]):
            x.fill_(i)
            x += 0.5
    assert bits_of(x).view(np.float32).tolist() == [9.5] * 1000


def test_more_readers_than_are_remembered(cuda: str) -> None:
    streams = [dt.cuda.Stream(cuda) for _ in range(12)]
    x, found = dt.full((1000,), 3.0, device=cuda), []
    for stream in streams:
        with dt.cuda.stream(stream):
            found.append((x * 2).sum())
    x.zero_()
    assert [one.item() for one in found] == [6000.0] * 12


def test_views_share_their_order(cuda: str, streams: list[dt.cuda.Stream]) -> None:
    x = dt.zeros((4, 100), device=cuda)
    with dt.cuda.stream(streams[0]):
        x[1].fill_(2)
    with dt.cuda.stream(streams[1]):
        y = x.T[::3].sum()
    assert y.item() == 2 * 34


@pytest.mark.skipif(len(CUDA_DEVICES) < 2, reason="needs two devices")
def test_between_devices() -> None:
    near, far = dt.cuda.Stream(CUDA_DEVICES[0]), dt.cuda.Stream(CUDA_DEVICES[1])
    with dt.cuda.stream(near):
        x = dt.full((5000,), 2.0, device=CUDA_DEVICES[0]) * 3
        with dt.cuda.stream(far):
            y = x.to(CUDA_DEVICES[1]) + 1
        x.zero_()
    assert bits_of(y).view(np.float32).tolist() == [7.0] * 5000
    assert bits_of(x).view(np.float32).max() == 0


PLANTED = """
import json, sys
import devtensor as dt
from test_cuda_order import READS, bytes_of, source

missed = []
for i, (kind, op) in enumerate(READS.items()):
    device = f"cuda:{i}"
    want = bytes_of(op(source(device) * 2))
    first, second = dt.cuda.Stream(device), dt.cuda.Stream(device)
    base = source(device)
    with dt.cuda.stream(first):
        x = base * 2
    try:
        with dt.cuda.stream(second):
            dt._C._test.api_fail("cuStreamWaitEvent", 0, 0, True)
            y = op(x)
            dt._C._test.api_fail(None, -1, 0)
        second.synchronize()
        if bytes_of(y) == want:
            missed.append(kind)
    except dt.CudaError:
        pass
    dt._C._test.api_fail(None, -1, 0)
print(json.dumps(missed))
"""


@pytest.mark.skipif(REAL, reason="a wait that is left out shows every time on a simulated device only")
def test_a_wait_that_is_left_out_shows() -> None:
    """The driver says yes to a wait and does not wait: each of the tests above would notice."""
    environment = os.environ | {"DEVTENSOR_CUDA": f"sim:{len(READS)}", "PYTHONPATH": python_path()}
    run = subprocess.run([sys.executable, "-c", PLANTED], capture_output=True, text=True, env=environment, timeout=300)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == []


# ---------------------------------------------------------------- how much waiting


def test_each_wait_is_made_once(cuda: str, streams: list[dt.cuda.Stream]) -> None:
    waits = ("cuStreamWaitEvent", "cuEventRecord")
    with dt.cuda.stream(streams[0]):
        xs = [dt.full((10,), float(i), device=cuda) for i in range(5)]
    before = counted(*waits)
    for _ in range(3):
        total = sum((x.sum() for x in xs), dt.zeros((), device=cuda))
    assert counted(*waits) <= before + 1  # by the event that stands at the end of the block
    assert total.item() == 100


def test_one_stream_never_waits(cuda: str) -> None:
    calls = ("cuStreamWaitEvent", "cuEventRecord", "cuEventQuery")
    stream = dt.cuda.Stream(cuda)
    with dt.cuda.stream(stream):
        x = dt.ones((20, 20), device=cuda)
        before = counted(*calls)
        for _ in range(20):
            x = dt.softmax(x @ x, dim=-1) + 1
        assert counted(*calls) == before
        assert x.sum().item() == pytest.approx(420)


def test_a_block_of_another_stream_is_not_waited_for_in_full(cuda: str, streams: list[dt.cuda.Stream]) -> None:
    """Batch i is ready at the end of its block, whatever was sent there since."""
    batches = []
    for i in range(3):
        with dt.cuda.stream(streams[0]):
            batches.append(dt.full((100,), float(i), device=cuda) * 2)
    (batches[0] + 1).sum()
    if not REAL:
        dt.cuda.default_stream(cuda).synchronize()
        assert not streams[0].query()
    assert [b.sum().item() for b in batches] == [0.0, 200.0, 400.0]


# ---------------------------------------------------------------- threads


def test_threads_with_a_stream_each(cuda: str) -> None:
    weights = dt.rand(32, 32, device=cuda)
    want = [bytes_of(chain(weights, i)) for i in range(8)]
    barrier = threading.Barrier(8)

    def work(i: int) -> bool:
        with dt.cuda.stream(dt.cuda.Stream(cuda)):
            barrier.wait(60)
            return all(bytes_of(chain(weights, i)) == want[i] for _ in range(10))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def chain(weights: Array, i: int) -> Array:
    x = dt.softmax(weights @ (weights + i), dim=0)
    image = dt.conv2d(x.reshape(1, 1, 32, 32), weights[:3, :3].contiguous().reshape(1, 1, 3, 3), padding=1)
    return dt.max_pool2d(image, 2).sum(dim=-1)


def test_results_that_threads_hand_on(cuda: str) -> None:
    """One stream of work per thread; each takes what the one before made."""

    def step(x: Array) -> Array:
        with dt.cuda.stream(dt.cuda.Stream(cuda)):
            return x * 2 + 1

    x = dt.zeros(1000, device=cuda)
    for _ in range(10):
        with ThreadPoolExecutor(1) as pool:
            x = pool.submit(step, x).result()
    assert x.sum().item() == 1000 * (2**10 - 1)
