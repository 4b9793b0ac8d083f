"""Eight threads, mixed ops, shared and private arrays, on every device: no wrong bits, no deadlock."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import DEVICES, bits_of, python_path

import devtensor as dt

THREADS = 8


def together(work: Callable[[int], Any]) -> list[Any]:
    """Runs work(0..7) at once; every error comes back."""
    barrier = threading.Barrier(THREADS)

    def run(i: int) -> Any:
        barrier.wait(60)
        return work(i)

    with ThreadPoolExecutor(THREADS) as pool:
        return [future.result(120) for future in [pool.submit(run, i) for i in range(THREADS)]]


def mixed(x: dt.DeviceArray, w: dt.DeviceArray) -> bytes:
    y = dt.relu(x @ w + 1)
    y = dt.softmax(y * 0.1, dim=-1)
    image = y.reshape(1, 1, 16, 16)
    z = dt.conv2d(image, w.reshape(1, 1, 16, 16)[..., :3, :3].contiguous(), padding=1)
    z = dt.max_pool2d(z, 2)
    return bits_of(z.sum(dim=-1)).tobytes() + bits_of(y.to(dt.float16).T.contiguous()).tobytes()


def test_shared_inputs(device: str) -> None:
    x, w = dt.rand(16, 16, device=device), dt.rand(16, 16, device=device)
    want = mixed(x, w)
    for found in together(lambda _: {mixed(x, w) for _ in range(15)}):
        assert found == {want}


def test_each_thread_on_its_own_device() -> None:
    def work(i: int) -> list[float]:
        device = DEVICES[i % len(DEVICES)]
        found = []
        for n in range(20):
            x = dt.full((32, 32), float(i + n), device=device)
            found.append((x @ x).sum().item() / 32**3)
            assert str(x.device) == device
        return found

    for i, found in enumerate(together(work)):
        assert found == [float((i + n) ** 2) for n in range(20)]


def test_moves_between_devices() -> None:
    values = np.arange(5000, dtype=np.float64)

    def work(i: int) -> None:
        x = dt.from_numpy(values)
        for n in range(10):
            there = x.to(DEVICES[(i + n) % len(DEVICES)], dt.float32)
            assert there.sum().item() == values.sum()
            assert there.cpu().tolist() == values.tolist()

    together(work)


def test_errors_in_threads(cuda: str) -> None:
    def work(i: int) -> int:
        seen = 0
        for _ in range(30):
            x, y = dt.ones((2, i + 1), device=cuda), dt.ones((2, i + 1))
            try:
                x + y
            except dt.DeviceMismatchError as error:
                seen += error.operands[0].shape == (2, i + 1)
        return seen

    assert together(work) == [30] * THREADS


def test_a_new_thread_begins_with_the_first_device_and_the_default_stream(cuda: str) -> None:
    found: list[Any] = []
    with dt.cuda.device(len(DEVICES) - 2), dt.cuda.stream(dt.cuda.Stream()):
        thread = threading.Thread(target=lambda: found.extend([dt.cuda.current_device(), dt.cuda.current_stream(cuda)]))
        thread.start()
        thread.join(60)
    assert found == [0, dt.cuda.default_stream(cuda)]


def test_current_device_belongs_to_the_thread() -> None:
    count = len(DEVICES) - 1

    def work(i: int) -> bool:
        for _ in range(50):
            with dt.cuda.device(i % count):
                if str(dt.zeros(1, device="cuda").device) != f"cuda:{i % count}":
                    return False
        return True

    assert all(together(work))


def test_random_numbers_are_never_drawn_twice(device: str) -> None:
    dt.manual_seed(5)
    found = together(lambda _: [x for _ in range(10) for x in dt.randint(0, 2**62, (20,), device=device).tolist()])
    drawn = [x for part in found for x in part]
    assert len(set(drawn)) == len(drawn)
    dt.manual_seed(5)
    assert sorted(dt.randint(0, 2**62, (len(drawn),), device=device).tolist()) == sorted(drawn)


def test_a_generator_for_each_thread(device: str) -> None:
    def draw(i: int) -> list[float]:
        generator = dt.Generator(device).manual_seed(i)
        return [x for _ in range(10) for x in dt.rand(20, generator=generator, device=device).tolist()]

    assert together(draw) == [draw(i) for i in range(THREADS)]


def test_in_place_on_one_array_of_a_gpu(cuda: str) -> None:
    """Each op is done whole before the next of the same stream, whoever sent it."""
    x, one = dt.zeros(1000, device=cuda), dt.ones(1000, device=cuda)
    together(lambda _: [x.add_(one) for _ in range(50)])
    assert set(x.tolist()) == {50.0 * THREADS}


def test_in_place_on_one_array_of_the_cpu() -> None:
    """No promise of what is in it, but that nothing crashes and each element is one that somebody wrote."""
    x = dt.zeros(100000)
    together(lambda i: [x.fill_(float(i)) for _ in range(20)])
    assert set(x.tolist()) <= {float(i) for i in range(THREADS)}


WORK: dict[str, Callable[[], Any]] = {
    "a product": lambda: dt.ones(1500, 1500) @ dt.ones(1500, 1500),
    "a large array": lambda: dt.ones(20_000_000).exp(),
    "a wait for a GPU": lambda: (dt.ones(400, 400, device="cuda") @ dt.ones(400, 400, device="cuda")).sum().item(),
    "a copy": lambda: dt.ones(20_000_000).to("cuda"),
}


@pytest.mark.parametrize("work", WORK.values(), ids=list(WORK))
def test_the_gil_is_given_up(work: Callable[[], Any]) -> None:
    """Python never takes the GIL from a thread here, so that another one runs only where it is given up."""
    before = sys.getswitchinterval()
    started, done = threading.Event(), False

    def run() -> None:
        nonlocal done
        started.set()
        work()
        done = True

    seen = False  # that the work was not done yet
    sys.setswitchinterval(1000)
    try:
        for _ in range(50):  # a thread that the system does not let run in time proves nothing
            started.clear()
            done = False
            thread = threading.Thread(target=run)
            thread.start()
            started.wait(60)
            seen = not done
            thread.join(60)
            if seen:
                break
    finally:
        sys.setswitchinterval(before)
    assert seen


def test_asyncio(device: str) -> None:
    """The loop goes on while an op runs in a thread."""

    async def main() -> tuple[float, int]:
        x = dt.ones(500, 500, device=device)
        ticks = 0
        work = asyncio.ensure_future(asyncio.to_thread(lambda: (x @ x).sum().item()))
        while not work.done():
            ticks += 1
            await asyncio.sleep(0)
        return await work, ticks

    total, ticks = asyncio.run(main())
    assert total == 500.0**3 and ticks > 0


def test_in_place_on_parts_of_one_array(device: str) -> None:
    x = dt.zeros((THREADS, 1000), device=device)

    def work(i: int) -> None:
        for _ in range(20):
            x[i] += i

    together(work)
    assert x.sum(dim=1).tolist() == [20.0 * i * 1000 for i in range(THREADS)]


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_the_number_of_threads_changes_no_bit(threads: int) -> None:
    x, w = dt.rand(300, 257), dt.rand(257, 130)
    image, kernel = dt.rand(2, 8, 30, 30), dt.rand(16, 8, 3, 3)
    before = dt.get_num_threads()

    def results() -> list[bytes]:
        found = (x @ w, dt.conv2d(image, kernel), x.sum(), x.sum(dim=0), dt.softmax(x, dim=1), x.exp())
        return [bits_of(y).tobytes() for y in found]

    try:
        dt.set_num_threads(1)
        want = results()
        dt.set_num_threads(threads)
        assert dt.get_num_threads() == threads
        assert results() == want
    finally:
        dt.set_num_threads(before)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system tells no thread's processors")
@pytest.mark.parametrize("processors", [1, 1000])
def test_workers_may_run_where_the_process_may(processors: int) -> None:
    """However often they were woken, and moved out of the way of the thread that woke them."""
    script = f"""
        import os, time
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:{processors}])
        import devtensor as dt
        dt.set_num_threads(2)
        x = dt.full((512, 512), 0.5)
        for _ in range(20):
            assert (x @ x)[511, 511].item() == 128
            time.sleep(0.01)
        threads = os.listdir("/proc/self/task")
        assert len(threads) == 2, threads
        assert {{frozenset(os.sched_getaffinity(int(t))) for t in threads}} == {{frozenset(os.sched_getaffinity(0))}}
    """
    environment = {**os.environ, "PYTHONPATH": python_path(), "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("DEVTENSOR_NUM_THREADS", None)
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], env=environment, check=True, timeout=300)


@pytest.mark.parametrize("n", [-1, 0, 1025, 10**8, 2**31, 2**40])
def test_a_number_of_threads_that_cannot_be_is_refused(n: int) -> None:
    before = dt.get_num_threads()
    with pytest.raises(RuntimeError, match="set_num_threads expects a positive integer" if n < 1 else "from 1 to 1024"):
        dt.set_num_threads(n)
    assert dt.get_num_threads() == before


FAULT = """
import faulthandler, os, sys
import numpy as np, devtensor as dt
faulthandler.enable()
n = 1 << 22
open(sys.argv[1], "wb").truncate(4 * n)
x = dt.from_numpy(np.memmap(sys.argv[1], np.float32, "r+"))
dt.set_num_threads(int(sys.argv[2]))
os.truncate(sys.argv[1], 3 * n)
x.abs().sum().item()
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_a_fault_in_a_worker_is_told(threads: int, tmp_path: Path) -> None:
    """Of memory that a file no longer has; faulthandler runs in the thread that the signal is for."""
    command = [sys.executable, "-c", FAULT, str(tmp_path / "x"), str(threads)]
    sanitizer = os.environ.get("ASAN_OPTIONS", "") + ":handle_sigbus=0"  # which has a report of its own
    environment = {**os.environ, "PYTHONPATH": python_path(), "ASAN_OPTIONS": sanitizer.lstrip(":")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGBUS and "Fatal Python error: Bus error" in done.stderr
