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
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from support import REAL, synchronize

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


Action = Callable[[Shared, Random], bool]
ACTIONS: list[Action] = [
    viewed,
    cast,
    pickled,
    copied,
    exported,
    computed,
    moved,
    on_a_stream,
]


def wrong_in_threads(device: str, actions: Sequence[Action], add: Callable[[Shared, int], object]) -> list[str]:
    """What was not as it should be while each thread did its actions, and added 1 to its row after each."""
    shared, wrong = Shared(device), list[str]()
    begin = threading.Barrier(THREADS)

    def work(number: int) -> None:
        rng = Random(f"{device}/{number}")
        begin.wait()
        for i in range(ROUNDS):
            action = rng.choice(actions)
            try:
                if not action(shared, rng):
                    wrong.append(f"{action.__name__} in round {i} of thread {number}")
            except Exception as error:
                wrong.append(f"{action.__name__} in round {i} of thread {number}: {error!r}")
            add(shared, number)

    run_threads([threading.Thread(target=work, args=(number,)) for number in range(THREADS)])
    if not same(shared.rows, np.full((THREADS, 8), float(ROUNDS))):
        wrong.append("the threads' own rows")
    if not same(shared.read, shared.values):
        wrong.append("the array that nobody writes")
    return wrong


def run_threads(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def add_to_own_row(s: Shared, number: int) -> None:
    s.rows[number] += 1


def test_threads_on_shared_arrays(device: str, quick_switches: None) -> None:
    assert not wrong_in_threads(device, ACTIONS, add_to_own_row)


def growth_by_drops(device: str, drop: Callable[[list[Any]], None]) -> int:
    """Blocks that ten rounds more leave, in each of which threads drop arrays, views and exports of one storage."""
    for rounds in range(20):
        x = dt.arange(100, device=device)
        things = [x[i : i + 10] for i in range(40)] + [x.detach() for _ in range(20)]
        things += [memoryview(x) for _ in range(20)] if device == "cpu" else []
        threads = [threading.Thread(target=drop, args=(things[n::THREADS],)) for n in range(THREADS)]
        del x
        things.clear()
        run_threads(threads)
        del threads
        if rounds == 9:
            before = blocks()
    return blocks() - before


def blocks() -> int:
    synchronize()
    gc.collect()
    dt.cuda.empty_cache()
    return dt._C._test.live_blocks()


def drop_all(things: list[Any]) -> None:
    while things:
        things.pop()


def test_the_last_reference_goes_in_any_thread(device: str, quick_switches: None) -> None:
    assert growth_by_drops(device, drop_all) == 0


# ---------------------------------------------------------------- bugs that are planted in threads

TOGETHER = threading.Barrier(THREADS)


def wrong_action(s: Shared, rng: Random) -> bool:
    return same(s.read, s.values + 1)


def failing_action(s: Shared, rng: Random) -> bool:
    raise SystemError("planted")


def writing_action(s: Shared, rng: Random) -> bool:
    s.read[5, 7] = 0
    return True


def add_without_a_lock(s: Shared, number: int) -> None:
    """The row of a neighbour is written back with what it was."""
    rows = s.rows.clone()
    rows[number] += 1
    TOGETHER.wait()
    s.rows.copy_(rows)
    TOGETHER.wait()


PLANTED_IN_THREADS: dict[str, tuple[list[Action], Callable[[Shared, int], object], str]] = {
    "a wrong value": ([viewed, wrong_action], add_to_own_row, "wrong_action in round"),
    "an exception": ([viewed, failing_action], add_to_own_row, "SystemError('planted')"),
    "a write": ([viewed, writing_action], add_to_own_row, "the array that nobody writes"),
    "an update that is lost": ([viewed], add_without_a_lock, "the threads' own rows"),
}


@pytest.mark.parametrize("bug", PLANTED_IN_THREADS)
def test_a_planted_bug_of_threads_is_found(bug: str, device: str) -> None:
    actions, add, told = PLANTED_IN_THREADS[bug]
    assert any(told in line for line in wrong_in_threads(device, actions, add))


def test_a_planted_leak_of_a_thread_is_found(device: str) -> None:
    kept = []

    def leaks(things: list[Any]) -> None:
        drop_all(things)
        kept.append(dt.ones(1, device=device))

    assert growth_by_drops(device, leaks) >= 10 * THREADS


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
    before = signal.signal(signal.SIGALRM, found.handler)
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # an interrupt may fall into a destructor
    yield found
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


SIDE = 48


class Work:
    """Things that take a while, each with what it has to give."""

    def __init__(self, device: str, folder: Path, interrupts: Interrupts) -> None:
        self.device, self.path, self.interrupts = device, folder / "x.safetensors", interrupts
        self.values = np.arange(SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE) % 7
        self.x = dt.array(self.values, device=device)
        self.product = self.values @ self.values
        self.model = dt.nn.Sequential(dt.nn.Linear(SIDE, SIDE), dt.nn.ReLU(), dt.nn.Linear(SIDE, 3)).to(device)
        self.answer = self.model(self.x).detach().cpu().numpy()
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
        return bool(np.array_equal(self.model(self.x).detach().cpu().numpy(), self.answer))

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


WORKS: list[Callable[[Work], bool]] = [
    Work.multiply,
    Work.move,
    Work.forward,
    Work.load_data,
    Work.save_and_load,
    Work.pickle,
    Work.select,
    Work.fail,
]


def wrong_after_interrupts(
    work: Callable[[Work], bool], device: str, folder: Path, interrupts: Interrupts, patience: float = 20
) -> list[str]:
    """What was not as it should be while work was interrupted at eighty moments, and then."""
    rng, wrong = Random(work.__name__), list[str]()
    others = set(threading.enumerate())  # of pytest, or left by other tests
    state = Work(device, folder, interrupts)
    used = []
    for i in range(80):
        if i % 20 == 0:
            used.append(blocks_after(state, work))
        answer = interrupts.during(lambda: work(state), rng.choice((2e-5, 1e-4, 5e-4, 2e-3)) * (0.5 + rng.random()))
        if answer not in (True, None):
            wrong.append(f"an answer, in round {i}")
        if not same(state.x, state.values):
            wrong.append(f"an array, in round {i}")
        for thread in set(threading.enumerate()) - others:  # a data loader's ends, and gives back its stream
            thread.join(patience)
            if thread.is_alive():
                wrong.append(f"a thread, in round {i}: {thread.name}")
    used.append(blocks_after(state, work))
    if not work(state):
        wrong.append("the last answer")
    if [path.name for path in folder.iterdir()] != [state.path.name]:
        wrong.append("the files that there are")
    if not saved(state):
        wrong.append("what was saved")
    if used[-1] > used[-2]:  # what is kept for later calls has its size by then
        wrong.append(f"memory: {used}")
    return wrong


def saved(state: Work) -> bool:
    try:
        return same(dt.load(state.path)["x"], state.values)
    except RuntimeError:  # half a file
        return False


def blocks_after(state: Work, work: Callable[[Work], bool]) -> int:
    """Work that is interrupted holds less than work that was done; what caches keep of that is kept before, too."""
    work(state)
    return blocks()


@pytest.mark.skipif(REAL, reason="counts what simulated devices do")
@pytest.mark.parametrize("work", WORKS)
def test_interrupts_at_any_moment(
    work: Callable[[Work], bool], device: str, tmp_path: Path, interrupts: Interrupts
) -> None:
    assert not wrong_after_interrupts(work, device, tmp_path, interrupts)


# ---------------------------------------------------------------- bugs that are planted in interrupted work


def until_interrupted(state: Work) -> None:
    while state.interrupts.armed:
        pass


def changes_for_a_while(state: Work) -> bool:
    state.x.add_(1)
    until_interrupted(state)
    state.x.sub_(1)
    return True


def answers_wrong(state: Work) -> bool:
    return not state.interrupts.armed


def leaves_a_part(state: Work) -> bool:
    part = state.path.with_suffix(f".{state.interrupts.seen}.part")
    part.touch()
    until_interrupted(state)
    part.unlink()
    return True


def writes_in_place(state: Work) -> bool:
    whole = state.path.read_bytes()
    state.path.write_bytes(whole[:-4] + b"half")
    until_interrupted(state)
    state.path.write_bytes(whole)
    return True


def keeps_a_block(state: Work) -> bool:
    KEPT.append(dt.ones(1, device=state.device))
    until_interrupted(state)
    KEPT.pop()
    return True


def leaves_a_thread(state: Work) -> bool:
    try:
        until_interrupted(state)
    except KeyboardInterrupt:
        threading.Thread(target=time.sleep, args=(2,), daemon=True, name="planted").start()
        raise
    return True


KEPT: list[dt.DeviceArray] = []
PLANTED: list[tuple[Callable[[Work], bool], str]] = [
    (changes_for_a_while, "an array, in round 0"),
    (answers_wrong, "an answer, in round"),
    (leaves_a_part, "the files that there are"),
    (writes_in_place, "what was saved"),
    (keeps_a_block, "memory: "),
    (leaves_a_thread, "a thread, in round 0: planted"),
]


@pytest.mark.skipif(REAL, reason="counts what simulated devices do")
@pytest.mark.parametrize(("work", "told"), PLANTED)
def test_a_planted_bug_of_interrupts_is_found(
    work: Callable[[Work], bool], told: str, device: str, tmp_path: Path, interrupts: Interrupts
) -> None:
    found = wrong_after_interrupts(work, device, tmp_path, interrupts, patience=0.01)
    assert any(line.startswith(told) for line in found), found
    KEPT.clear()


# ---------------------------------------------------------------- the ends of blocks, and the harness


@pytest.mark.skipif(REAL, reason="needs no device of its own")
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Ctrl-C may fall behind __enter__, of a lock too")
def test_a_block_is_left_whole_at_any_moment(cuda: str, interrupts: Interrupts) -> None:
    """Wherever Ctrl-C falls, of the first instruction of a block or the last, stream and device are what they were."""
    chosen, usual = dt.cuda.Stream(cuda), dt.cuda.default_stream(cuda)

    def work() -> None:
        while interrupts.armed:
            with dt.cuda.stream(chosen), dt.cuda.device(cuda):
                pass

    rng = Random(cuda)
    for _ in range(500):
        interrupts.during(work, 2e-5 * (1 + 10 * rng.random()))
        assert (dt.cuda.current_device(), dt.cuda.current_stream(cuda)) == (0, usual)
    assert interrupts.seen > 400


def test_an_interrupt_is_seen(interrupts: Interrupts) -> None:
    """The harness itself: work that never ends by itself ends by the interrupt, and devices go on."""

    def forever() -> None:
        x = dt.ones(100)
        while True:
            x = x + 1

    assert interrupts.during(forever, 1e-3) is None
    assert interrupts.seen == 1
    assert dt.ones(2, device="cuda:0").tolist() == [1, 1]
