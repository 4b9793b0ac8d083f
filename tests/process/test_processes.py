"""What docs/threads.md says of processes and of Ctrl-C; all kinds of forks are in test_import and test_shutdown."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import data_samples as samples
import pytest
from test_data import run

import devtensor as dt
from devtensor import data


def spawned() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


def test_arrays_travel_by_value(device: str) -> None:
    """To a process started afresh and back, on their device."""
    x = dt.arange(6, dtype=dt.float32, device=device).reshape(2, 3)
    with spawned() as pool:
        where, pid, y = pool.submit(samples.doubled, x).result(60)
    assert where == device == str(y.device) and pid != os.getpid()
    assert y.tolist() == [[0, 2, 4], [6, 8, 10]] and x.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_several_processes_on_one_gpu(cuda: str) -> None:
    with spawned() as pool:
        totals = list(pool.map(samples.busy_total, [cuda] * 4, [1, 2, 3, 4], timeout=100))
    assert totals == [64.0**2 * n * 20 for n in (1, 2, 3, 4)]
    assert dt.ones(3, device=cuda).sum().item() == 3


def test_a_child_of_fork_may_be_the_first_to_use_the_gpu() -> None:
    script = """
        import multiprocessing
        import data_samples as samples
        import devtensor as dt
        dt.ones(200, 200) @ dt.ones(200, 200)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.starmap(samples.busy_total, [("cuda:0", 1), ("cuda:0", 2)]))
        print(dt.ones(3, device="cuda").sum().item())
    """
    assert run(script) == "[81920.0, 163840.0]\n3.0\n"


def test_workers_that_use_the_gpu(cuda: str) -> None:
    loader = data.DataLoader(samples.OnDevice(cuda, 6), batch_size=2, num_workers=2)
    batches = list(loader)
    assert [str(batch.device) for batch in batches] == [cuda] * 3
    assert [batch.tolist() for batch in batches] == [[[0, 0], [1, 1]], [[2, 2], [3, 3]], [[4, 4], [5, 5]]]


def interrupted(work: Any) -> int:
    """How often work() was over before Ctrl-C came, which ends it."""
    times = 0
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        for _ in range(100000):
            work()
            times += 1
    except KeyboardInterrupt:
        return times
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    raise AssertionError("no KeyboardInterrupt")


def test_ctrl_c_leaves_arrays_whole(device: str) -> None:
    """An op in place has been done or not, never half."""
    x, one = dt.zeros(300, 300, device=device), dt.ones(300, 300, device=device)

    def work() -> None:
        x.add_(one)
        x.sum().item()

    times = interrupted(work)
    values = set(x.flatten().tolist())
    assert values in ({float(times)}, {float(times + 1)})
    assert (one @ one).sum().item() == 300**3


@pytest.mark.parametrize("how", ["synchronize", "copy"])
def test_ctrl_c_while_waiting_for_a_gpu(cuda: str, how: str) -> None:
    x = dt.ones(200, 200, device=cuda)

    def work() -> None:
        y = x @ x
        if how == "copy":
            y.cpu()
        else:
            dt.cuda.synchronize(cuda)

    interrupted(work)
    assert (x @ x).sum().item() == 200**3
