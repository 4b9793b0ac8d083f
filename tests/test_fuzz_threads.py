"""Threads on shared arrays, and Ctrl-C at any moment: fixed work from fixed seeds, and every value is checked.

Nothing here measures time. How threads and interrupts fall is not fixed; what has to hold, holds however they fall.
"""

from __future__ import annotations

import copy
import gc
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from support import REAL

import devtensor as dt

THREADS, ROUNDS = 5, 60


@pytest.fixture
def quick_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


# ---------------------------------------------------------------- threads


class Shared:
    """Arrays that all threads use: one that nobody writes, and one of which each thread writes its own row."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.values = np.arange(6.0 * 8).reshape(6, 8)
        self.read = dt.array(self.values, device=device)
        self.rows = dt.zeros(THREADS, 8, dtype=dt.float64, device=device)


def same(x: dt.DeviceArray, want: Any) -> bool:
    return bool(np.array_equal(x.cpu().numpy(), want))


def viewed(s: Shared, rng: Random) -> bool:
    i = rng.randrange(6)
    return same(s.read[i:].T, s.values[i:].T)


def cast(s: Shared, rng: Random) -> bool:
    return same(s.read.to(rng.choice((dt.int32, dt.float32, dt.int64))).double(), s.values)


def pickled(s: Shared, rng: Random) -> bool:
    return same(pickle.loads(pickle.dumps(s.read[:, ::2], rng.choice((2, 4, 5)))), s.values[:, ::2])


def copied(s: Shared, rng: Random) -> bool:
    one, other = copy.deepcopy([s.read, s.read[1]])
    one.zero_()
    return not one.any().item() and same(other, 0 * s.values[1])


def exported(s: Shared, rng: Random) -> bool:
    if s.device != "cpu":
        return np.array_equal(np.from_dlpack(s.read, device="cpu"), s.values)
    view = memoryview(s.read) if rng.random() < 0.5 else np.from_dlpack(s.read)
    return np.array_equal(np.asarray(view), s.values)


def computed(s: Shared, rng: Random) -> bool:
    return same((s.read * 2 + 1).sum(0), (s.values * 2 + 1).sum(0))


def moved(s: Shared, rng: Random) -> bool:
    return same(s.read.cuda().cpu() if s.device == "cpu" else s.read.cpu().to(s.device), s.values)


def on_a_stream(s: Shared, rng: Random) -> bool:
    with dt.cuda.stream(dt.cuda.Stream("cuda:0")):
        return same(s.read.to("cuda:0", copy=True).neg_(), -s.values)


ACTIONS: list[Callable[[Shared, Random], bool]] = [
    viewed,
    cast,
    pickled,
    copied,
    exported,
    computed,
    moved,
    on_a_stream,
]


def test_threads_on_shared_arrays(device: str, quick_switches: None) -> None:
    shared, wrong = Shared(device), list[str]()
    begin = threading.Barrier(THREADS)

    def work(number: int) -> None:
        rng = Random(f"{device}/{number}")
        row = shared.rows[number]
        begin.wait()
        for i in range(ROUNDS):
            action = rng.choice(ACTIONS)
            try:
                if not action(shared, rng):
                    wrong.append(f"{action.__name__} in round {i} of thread {number}")
            except Exception as error:
                wrong.append(f"{action.__name__} in round {i} of thread {number}: {error!r}")
            row += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert same(shared.rows, np.full((THREADS, 8), float(ROUNDS)))
    assert same(shared.read, shared.values)


def test_the_last_reference_goes_in_any_thread(device: str, quick_switches: None) -> None:
    """Arrays, views and exports of one storage are dropped by different threads."""
    gc.collect()
    before = dt._C._live_blocks()

    def drop(things: list[Any]) -> None:
        while things:
            things.pop()

    for _ in range(20):
        x = dt.arange(100, device=device)
        things = [x[i : i + 10] for i in range(40)] + [x.detach() for _ in range(20)]
        things += [memoryview(x) for _ in range(20)] if device == "cpu" else []
        threads = [threading.Thread(target=drop, args=(things[n::THREADS],)) for n in range(THREADS)]
        del x
        things.clear()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    del threads
    for name in ("cuda:0",):
        dt.cuda.synchronize(name)
    gc.collect()
    assert dt._C._live_blocks() - before < 60  # what is kept for later does not grow with the rounds


# ---------------------------------------------------------------- interrupts


class Interrupts:
    """Ctrl-C after some microseconds, once, and only while it is waited for."""

    def __init__(self) -> None:
        self.armed = False
        self.seen = 0

    def handler(self, *_: Any) -> None:
        if self.armed:
            self.armed = False
            self.seen += 1
            raise KeyboardInterrupt

    def during(self, work: Callable[[], Any], delay: float) -> Any:
        """What work gave, or None where it was interrupted."""
        result = None
        try:
            try:
                self.armed = True
                signal.setitimer(signal.ITIMER_REAL, delay)
                result = work()
            finally:
                self.armed = False
        except KeyboardInterrupt:
            result = None
        signal.setitimer(signal.ITIMER_REAL, 0)
        return result


@pytest.fixture
def interrupts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Interrupts]:
    found = Interrupts()
    current = dt.cuda.current_device()
    before = signal.signal(signal.SIGALRM, found.handler)
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # an interrupt may fall into a destructor
    yield found
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    dt.cuda.set_device(current)  # Python may interrupt a context manager before its __exit__ has begun


SIDE = 48


class Work:
    """Things that take a while, each with what it has to give."""

    def __init__(self, device: str, folder: Path) -> None:
        self.device, self.path = device, folder / "x.safetensors"
        self.values = np.arange(SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE) % 7
        self.x = dt.array(self.values, device=device)
        self.product = self.values @ self.values
        self.model = dt.nn.Sequential(dt.nn.Linear(SIDE, SIDE), dt.nn.ReLU(), dt.nn.Linear(SIDE, 3)).to(device)
        self.answer = self.model(self.x).cpu().numpy()
        dt.save({"x": self.x}, self.path)

    def multiply(self) -> bool:
        for _ in range(20):
            found = self.x @ self.x
        return same(found, self.product)

    def move(self) -> bool:
        y = self.x
        for _ in range(20):
            y = y.cpu().to("cuda:0").to(self.device)
        return same(y, self.values)

    def forward(self) -> bool:
        return bool(np.array_equal(self.model(self.x).cpu().numpy(), self.answer))

    def load_data(self) -> bool:
        loader = dt.data.DataLoader(dt.data.TensorDataset(self.x.cpu()), batch_size=5, drop_last=False)
        batches = [batch[0] for batch in dt.data.prefetch(loader, self.device)]
        return same(dt.cat(batches), self.values)

    def save_and_load(self) -> bool:
        dt.save({"x": self.x}, self.path)
        return same(dt.load(self.path)["x"], self.values)

    def pickle(self) -> bool:
        return same(pickle.loads(pickle.dumps(self.x)), self.values)

    def select(self) -> bool:
        return same(self.x[self.x > 3], self.values[self.values > 3])

    def fail(self) -> bool:
        """An error is explained."""
        try:
            self.x @ self.x[1:]
        except dt.ShapeMismatchError as error:
            return "matmul" in str(error)
        return False


@pytest.mark.skipif(REAL, reason="counts what simulated devices do")
@pytest.mark.parametrize(
    "name", ["multiply", "move", "forward", "load_data", "save_and_load", "pickle", "select", "fail"]
)
def test_interrupts_at_any_moment(name: str, device: str, tmp_path: Path, interrupts: Interrupts) -> None:
    """After each: the file is whole, nothing lies beside it, and the same work gives the right answer."""
    rng = Random(name)
    others = set(threading.enumerate())  # of pytest, or left by other tests
    state = Work(device, tmp_path)
    work: Callable[[], bool] = getattr(state, name)
    assert work()
    for _ in range(40):
        assert interrupts.during(work, rng.choice((2e-5, 1e-4, 5e-4, 2e-3)) * (0.5 + rng.random())) in (True, None)
        assert same(state.x, state.values)
    assert work()
    assert [path.name for path in tmp_path.iterdir()] == ["x.safetensors"]
    assert same(dt.load(state.path)["x"], state.values)
    for thread in set(threading.enumerate()) - others:  # none of a data loader is left behind
        thread.join(20)
        assert not thread.is_alive(), thread
    gc.collect()
    before = dt._C._live_blocks()
    for _ in range(3):
        assert work()
    dt.cuda.synchronize("cuda:0")
    gc.collect()
    assert dt._C._live_blocks() <= before + 24


def test_an_interrupt_is_seen(interrupts: Interrupts) -> None:
    """The harness itself: work that never ends by itself ends by the interrupt, and devices go on."""

    def forever() -> None:
        x = dt.ones(100)
        while True:
            x = x + 1

    assert interrupts.during(forever, 1e-3) is None
    assert interrupts.seen == 1
    assert dt.ones(2, device="cuda:0").tolist() == [1, 1]
