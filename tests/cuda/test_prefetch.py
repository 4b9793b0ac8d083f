"""prefetch: batches arrive in order, ahead of their use; copies wait for no work on the device, nor it for copies."""

from __future__ import annotations

import functools
import gc
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import data_samples as samples
import pytest
from support import DEVICES, REAL

import devtensor as dt
from devtensor import data

# Work of a real GPU, or in an order that is drawn, is not run as late as possible.
NO_ORDER = REAL or os.environ.get("DEVTENSOR_SIM_ORDER", "0") != "0"


def test_batches_arrive(device: str) -> None:
    x = dt.arange(20, dtype=dt.float32).reshape(10, 2)
    loader = data.DataLoader(data.TensorDataset(x, dt.arange(10)), 3, pin_memory=True)
    ahead = data.prefetch(loader, device)
    assert len(ahead) == 4
    for _ in range(2):
        batches = list(ahead)
        assert {str(part.device) for batch in batches for part in batch} == {device}
        assert dt.cat([batch[0] * 2 for batch in batches]).tolist() == (x * 2).tolist()


def test_batches_of_any_kind(cuda: str) -> None:
    batches: list[Any] = [{"x": dt.ones(2), "name": "a", "both": (dt.zeros(1), [dt.ones(1)])}, dt.ones(3, device=cuda)]
    first, second = data.prefetch(batches, cuda, depth=1)
    assert str(first["x"].device) == str(first["both"][1][0].device) == cuda and first["name"] == "a"
    assert second is batches[1]


def test_it_runs_ahead(device: str) -> None:
    asked: list[int] = []

    def batches() -> Iterator[dt.DeviceArray]:
        for i in range(6):
            asked.append(i)
            yield dt.full((2,), i)

    ahead = iter(data.prefetch(batches(), device, depth=2))
    assert asked == []
    assert next(ahead).tolist() == [0, 0] and asked == [0, 1, 2]
    assert next(ahead).tolist() == [1, 1] and asked == [0, 1, 2, 3]
    assert [batch.tolist()[0] for batch in ahead] == [2, 3, 4, 5]


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="depth must be at least 1"):
        data.prefetch([], "cpu", depth=0)
    with pytest.raises(RuntimeError):
        data.prefetch([], "gpu")
    with pytest.raises(dt.DeviceNotAvailableError):
        list(data.prefetch([dt.ones(1)], "cuda:9"))
    assert data.prefetch([], 1).device == "cuda:1"


# ---------------------------------------------------------------- overlap


class Timeline:
    """Marks in streams, and the order in which the device passed them."""

    def __init__(self) -> None:
        self.marks: list[tuple[str, dt.cuda.Event]] = []

    def mark(self, name: str, stream: dt.cuda.Stream) -> None:
        event = dt.cuda.Event(enable_timing=True)
        event.record(stream)
        self.marks.append((name, event))

    def order(self) -> list[str]:
        def compare(a: tuple[str, dt.cuda.Event], b: tuple[str, dt.cuda.Event]) -> float:
            return -a[1].elapsed_time(b[1])

        return [name for name, _ in sorted(self.marks, key=functools.cmp_to_key(compare))]  # type: ignore[arg-type]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[dt.cuda.Stream]:
    """The streams that are made from now on."""
    found: list[dt.cuda.Stream] = []
    make = dt.cuda.Stream

    def noted(*args: Any) -> dt.cuda.Stream:
        found.append(make(*args))
        return found[-1]

    monkeypatch.setattr(dt.cuda, "Stream", noted)
    return found


def train(cuda: str, batches: int, copies: Callable[[], dt.cuda.Stream], ahead: bool, size: int) -> Timeline:
    """Sends the copies and the work of some batches, and waits for nothing. copies() is the stream of the copies."""
    timeline = Timeline()
    weight = dt.ones(size, size, device=cuda)
    dt.cuda.synchronize(cuda)
    hosts = [dt.full((size, size), float(i)).pin_memory() for i in range(batches)]

    def loader() -> Iterator[dt.DeviceArray]:
        for i, host in enumerate(hosts):
            yield host
            timeline.mark(f"copy {i}", copies())  # the next one is asked for, so this one is on its way

    arriving: Any = data.prefetch(loader(), cuda) if ahead else (x.to(cuda, non_blocking=True) for x in loader())
    for i, batch in enumerate(arriving):
        for _ in range(1 if size < 1000 else 20):
            batch = batch @ weight
        timeline.mark(f"work {i}", dt.cuda.default_stream(cuda))
    return timeline


@pytest.mark.skipif(NO_ORDER, reason="only the simulated GPU can be told which stream goes first")
@pytest.mark.parametrize("first", ["copies", "work"])
def test_copies_and_work_wait_for_nothing_but_their_batch(first: str, cuda: str, made: list[dt.cuda.Stream]) -> None:
    """Whichever stream runs first gets as far as it can: a real GPU, which runs both at once, overlaps them."""
    timeline = train(cuda, 5, lambda: made[0], True, 8)
    (copies,) = made
    work = dt.cuda.default_stream(cuda)
    for stream in (copies, work) if first == "copies" else (work, copies):
        stream.synchronize()
    if first == "copies":  # all of them without any work
        assert timeline.order() == [*(f"copy {i}" for i in range(5)), *(f"work {i}" for i in range(5))]
    else:  # batch i is worked on before anything after its copy has run, its mark and the copy of batch i + 1 included
        assert timeline.order() == [f"{what} {i}" for i in range(5) for what in ("work", "copy")]


@pytest.mark.skipif(NO_ORDER, reason="looks at what the simulated GPU has done when the host has waited for one batch")
def test_work_waits_for_its_own_copy_alone(cuda: str, made: list[dt.cuda.Stream]) -> None:
    """The work on batch 0 is done, right, and the copies of later batches have not begun."""
    ahead = iter(data.prefetch([dt.full((100,), float(i)).pin_memory() for i in range(4)], cuda, depth=3))
    batch = next(ahead)
    assert (batch + 1).sum().item() == 100
    assert not made[0].query()
    assert [x.sum().item() for x in ahead] == [100.0, 200.0, 300.0]


@pytest.mark.skipif(NO_ORDER, reason="compares with the order on the simulated GPU")
def test_without_prefetch_they_take_turns(cuda: str) -> None:
    """Here no other order is possible."""
    default = dt.cuda.default_stream(cuda)
    timeline = train(cuda, 3, lambda: default, False, 8)
    default.synchronize()
    assert timeline.order() == ["work 0", "copy 0", "work 1", "copy 1", "work 2", "copy 2"]


@pytest.mark.skipif(not REAL, reason="needs a GPU that runs two streams at once")
def test_copies_beside_work_on_a_gpu(cuda: str, made: list[dt.cuda.Stream]) -> None:
    """While the device works on batch 0 for long, the next three arrive."""
    train(cuda, 2, lambda: made[-1], True, 2048)
    timeline = train(cuda, 5, lambda: made[-1], True, 2048)
    dt.cuda.synchronize(cuda)
    order = timeline.order()
    assert order.index("copy 2") < order.index("work 0")


def test_nobody_waits_for_a_pinned_batch(cuda: str) -> None:
    loader = data.DataLoader(data.TensorDataset(dt.rand(12, 100)), 3, pin_memory=True)
    with dt.record_transfers() as log:
        for (batch,) in data.prefetch(loader, cuda):
            batch * 2
    assert len(log) == 4 and not any(copy.synchronous for copy in log)


# ---------------------------------------------------------------- ends


def host_batches(count: int, size: int = 5000) -> list[dt.DeviceArray]:
    return [dt.full((size,), float(i)).pin_memory() for i in range(count)]


def test_an_early_end(cuda: str) -> None:
    """What was on its way is dropped, and neither memory nor order is harmed."""
    batches = host_batches(8)
    for _ in range(3):  # so that all blocks are there
        [x.sum().item() for x in data.prefetch(batches, cuda)]
    gc.collect()
    before = dt.cuda.memory_allocated(cuda)
    for turn in range(20):
        total = dt.zeros((), device=cuda)
        for i, batch in enumerate(data.prefetch(batches, cuda, depth=1 + turn % 4)):
            total += batch.sum()
            if i == turn % 5:
                break
        del batch
        assert total.item() == 5000 * sum(range(turn % 5 + 1))
    del total
    assert dt.cuda.memory_allocated(cuda) == before


def test_an_early_end_ends_the_loader(cuda: str) -> None:
    ended = []

    def batches() -> Iterator[dt.DeviceArray]:
        try:
            yield from host_batches(10)
        finally:
            ended.append(True)

    ahead = iter(data.prefetch(batches(), cuda))
    next(ahead)
    assert not ended
    del ahead
    assert ended


@pytest.mark.parametrize("at", [0, 1, 3])
def test_an_error_comes_after_the_batches_before_it(device: str, at: int) -> None:
    def batches() -> Iterator[dt.DeviceArray]:
        for i in range(5):
            if i == at:
                raise KeyError(f"sample {i}")
            yield dt.full((3,), float(i))

    ahead, got = iter(data.prefetch(batches(), device, depth=2)), []
    with pytest.raises(KeyError, match=f"sample {at}") as caught:
        for batch in ahead:
            got.append(batch.tolist()[0])
    assert got == [float(i) for i in range(at)]
    assert caught.traceback[-1].name == "batches"
    assert list(ahead) == []


def test_an_error_of_a_worker(device: str) -> None:
    loader = data.DataLoader(samples.Failing(10, 5), 2, num_workers=2)
    got = []
    with pytest.raises(ZeroDivisionError, match="in DataLoader worker process 0"):
        for batch in data.prefetch(loader, device):
            got.append(batch.tolist())
    assert len(got) == 2


def test_an_error_while_moving(cuda: str) -> None:
    class Stuck:
        def to(self, device: Any) -> None:
            raise MemoryError("no room")

    ahead = iter(data.prefetch([dt.ones(2), Stuck(), dt.ones(2)], cuda))
    assert next(ahead).tolist() == [1, 1]
    with pytest.raises(MemoryError, match="no room"):
        next(ahead)
    assert dt.cuda.current_stream(cuda) == dt.cuda.default_stream(cuda)


def test_ctrl_c_is_not_kept(device: str) -> None:
    def batches() -> Iterator[dt.DeviceArray]:
        yield dt.ones(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        next(iter(data.prefetch(batches(), device)))


# ---------------------------------------------------------------- several who take


def test_two_at_once_over_one_loader(device: str) -> None:
    loader = data.DataLoader(data.TensorDataset(dt.arange(20)), 3, pin_memory=True)
    ahead = data.prefetch(loader, device)
    pairs = list(zip(ahead, ahead, strict=True))
    assert [a.tolist() for (a,), _ in pairs] == [b.tolist() for _, (b,) in pairs]
    assert dt.cat([a for (a,), _ in pairs]).tolist() == list(range(20))


def test_threads_that_share_an_iterator(device: str) -> None:
    """Each batch goes to one of them, and is whole."""
    ahead = iter(
        data.prefetch(host_batches(60, 1000) if device != "cpu" else [dt.full((1000,), i) for i in range(60)], device)
    )
    barrier = threading.Barrier(6)

    def take(_: int) -> list[float]:
        barrier.wait(60)
        return [(batch * 2).sum().item() / 2000 for batch in ahead]

    with ThreadPoolExecutor(6) as pool:
        found = [future.result(100) for future in [pool.submit(take, i) for i in range(6)]]
    assert sorted(x for part in found for x in part) == [float(i) for i in range(60)]


def test_a_thread_for_each_device() -> None:
    def work(i: int) -> list[float]:
        device = DEVICES[i % len(DEVICES)]
        loader = data.DataLoader(data.TensorDataset(dt.arange(30, dtype=dt.float32)), 4, pin_memory=True)
        return [x.sum().item() for _ in range(5) for (x,) in data.prefetch(loader, device)]

    want = [float(sum(range(n, min(n + 4, 30)))) for n in range(0, 30, 4)] * 5
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(work, range(6))) == [want] * 6


def test_work_on_another_stream(cuda: str) -> None:
    results = []
    for i, batch in enumerate(data.prefetch(host_batches(10), cuda, depth=3)):
        with dt.cuda.stream(dt.cuda.Stream(cuda)):
            batch += 1
            results.append((batch * i).sum())
        del batch
    assert [x.item() for x in results] == [5000.0 * (i + 1) * i for i in range(10)]
