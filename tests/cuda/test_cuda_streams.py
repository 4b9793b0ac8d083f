"""Streams and events as objects: names, errors, lives and failures."""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from support import CUDA_DEVICES, REAL, counted, python_path
from test_cuda_order import Array, bytes_of, source

import devtensor as dt


def test_current_stream(cuda: str) -> None:
    default = dt.cuda.default_stream(cuda)
    a, b = dt.cuda.Stream(cuda), dt.cuda.Stream(cuda)
    assert a != b and a != default and len({a, b, default, dt.cuda.default_stream(cuda)}) == 3
    assert dt.cuda.current_stream(cuda) == default
    with dt.cuda.stream(a) as context:
        assert context.stream == a
        assert dt.cuda.current_stream(cuda) == a == dt.cuda.current_stream()
        with dt.cuda.stream(None):
            assert dt.cuda.current_stream(cuda) == a
        with dt.cuda.stream(b), dt.cuda.stream(a):
            assert dt.cuda.current_stream(cuda) == a
        with pytest.raises(KeyError), dt.cuda.stream(default):
            assert dt.cuda.current_stream(cuda) == default
            raise KeyError
        assert dt.cuda.current_stream(cuda) == a
    assert dt.cuda.current_stream(cuda) == default
    assert a.device == dt.device(cuda) and a.cuda_stream not in (0, b.cuda_stream)
    assert f"device={cuda} cuda_stream=" in repr(a)
    assert a != "a" and a != a.cuda_stream


def test_set_stream(cuda: str) -> None:
    device, stream = dt.cuda.current_device(), dt.cuda.Stream(cuda)
    dt.cuda.set_stream(None)
    dt.cuda.set_stream(stream)
    try:
        assert dt.cuda.current_stream() == stream
        assert f"cuda:{dt.cuda.current_device()}" == cuda
        with ThreadPoolExecutor(1) as pool:  # other threads choose for themselves
            found = pool.submit(dt.cuda.current_stream, cuda).result()
        assert found == dt.cuda.default_stream(cuda)
    finally:
        dt.cuda.set_stream(dt.cuda.default_stream(cuda))
        dt.cuda.set_device(device)


def test_a_context_can_be_entered_again(cuda: str) -> None:
    context = dt.cuda.stream(dt.cuda.Stream(cuda))
    with context, context:
        assert dt.cuda.current_stream() == context.stream
    with context:
        assert dt.cuda.current_stream() == context.stream
    assert dt.cuda.current_stream(cuda) == dt.cuda.default_stream(cuda)


@pytest.mark.parametrize("kind", ["stream", "device"])
def test_threads_may_share_a_context(kind: str, cuda: str) -> None:
    """Each thread is put back to what it had: a default stream here, a stream of its own there."""
    context = dt.cuda.stream(dt.cuda.Stream(cuda)) if kind == "stream" else dt.cuda.device(cuda)

    def work(own: bool) -> bool:
        stream = dt.cuda.Stream(cuda) if own else dt.cuda.default_stream(cuda)
        dt.cuda.set_stream(stream)
        kept = True
        for _ in range(2000):
            with context, context:
                pass
            kept &= dt.cuda.current_stream(cuda) == stream
        return kept

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(work, [False, True, False, True]))
    finally:
        sys.setswitchinterval(before)


def test_a_stream_lives_while_it_is_used(cuda: str) -> None:
    def work() -> Array:
        dt.cuda.set_stream(dt.cuda.Stream(cuda))
        gc.collect()
        other = dt.cuda.Stream(cuda)  # not the one in use
        assert other != dt.cuda.current_stream()
        return dt.full((100,), 4.0, device=cuda) + 1

    with ThreadPoolExecutor(1) as pool:
        x = pool.submit(work).result()
    assert x.sum().item() == 500


def test_streams_are_used_again(cuda: str) -> None:
    dt.cuda.Stream(cuda)
    before = counted("cuStreamCreateWithPriority")
    for i in range(10):
        stream = dt.cuda.Stream(cuda)
        with dt.cuda.stream(stream):
            assert (dt.full((10,), float(i), device=cuda) + 1).sum().item() == 10 * (i + 1)
    del stream
    assert counted("cuStreamCreateWithPriority") <= before + 1
    many = [dt.cuda.Stream(cuda) for _ in range(40)]
    assert len(set(many)) == 32


def test_a_thread_that_ends_gives_its_stream_back(cuda: str) -> None:
    stream = dt.cuda.Stream(cuda)
    first = stream.cuda_stream
    thread = threading.Thread(target=dt.cuda.set_stream, args=(stream,))
    thread.start()
    thread.join()
    del stream
    held: list[dt.cuda.Stream] = []  # threads of other tests may have given theirs back just now: those come first
    until = time.monotonic() + 60  # the system ends a thread a little after Python does
    while (taken := dt.cuda.Stream(cuda)).cuda_stream != first and time.monotonic() < until:
        held += [taken] * (len(held) < 16)
        time.sleep(0.01)
    assert taken.cuda_stream == first


def test_priorities(cuda: str) -> None:
    low, high = dt.cuda.Stream(cuda, 1000), dt.cuda.Stream(cuda, priority=-1000)
    assert low.priority == 0
    assert high.priority < 0
    assert dt.cuda.Stream(cuda, priority=-1).priority == -1
    assert dt.cuda.default_stream(cuda).priority == 0


def test_synchronize_waits_for_every_stream(cuda: str, streams: list[dt.cuda.Stream]) -> None:
    for stream in streams:
        with dt.cuda.stream(stream):
            x = dt.ones(1000, device=cuda) * 2
    if not REAL:
        assert not streams[0].query()
    dt.cuda.synchronize(cuda)
    assert all(stream.query() for stream in streams)
    with dt.cuda.stream(streams[0]):
        x = x + 1
    streams[0].synchronize()
    assert streams[0].query()
    assert x.sum().item() == 3000


def test_wait_stream(cuda: str, streams: list[dt.cuda.Stream]) -> None:
    with dt.cuda.stream(streams[0]):
        x = dt.ones(1000, device=cuda) * 2
    streams[1].wait_stream(streams[0])
    streams[1].wait_stream(streams[1])
    before = counted("cuStreamWaitEvent")
    with dt.cuda.stream(streams[1]):
        y = x * 2
    assert counted("cuStreamWaitEvent") == before
    assert y.sum().item() == 4000


# ---------------------------------------------------------------- Event


def test_events(cuda: str, streams: list[dt.cuda.Stream]) -> None:
    event = dt.cuda.Event()
    assert event.query() and event.device is None and event.cuda_event == 0
    event.synchronize()
    event.wait(streams[0])
    streams[0].wait_event(event)
    with dt.cuda.stream(streams[0]):
        x = dt.full((100,), 2.0, device=cuda) * 3
        event.record()
        with dt.cuda.stream(streams[1]):
            event.wait()
    assert event.device == dt.device(cuda) and event.cuda_event
    if not REAL:
        assert not event.query()
    event.synchronize()
    assert event.query()
    assert x.sum().item() == 600
    assert streams[0].record_event(event) is event
    assert isinstance(streams[0].record_event(), dt.cuda.Event)
    assert "devtensor.cuda.Event" in repr(event)


def test_an_event_stands_for_its_stream(cuda: str, streams: list[dt.cuda.Stream]) -> None:
    """An op that comes after a wait of the user's needs no wait of its own."""
    with dt.cuda.stream(streams[0]):
        x = dt.full((100,), 2.0, device=cuda)
        event = streams[0].record_event()
        streams[1].wait_event(event)
        before = counted("cuStreamWaitEvent")
        with dt.cuda.stream(streams[1]):
            y = x + 1
        assert counted("cuStreamWaitEvent") == before
        x.fill_(50)  # after the event, and after the read
        with dt.cuda.stream(streams[1]):
            z = x + 1
    assert y.sum().item() == 300
    assert z.sum().item() == 5100


def test_elapsed_time(cuda: str) -> None:
    stream = dt.cuda.Stream(cuda)
    start, end = dt.cuda.Event(enable_timing=True), dt.cuda.Event(enable_timing=True, blocking=True)
    start.record(stream)
    with dt.cuda.stream(stream):
        x = dt.ones((300, 300), device=cuda)
        for _ in range(5):
            x = x @ x / 300
    end.record(stream)
    end.synchronize()
    assert 0 <= start.elapsed_time(end) < 60_000
    assert end.elapsed_time(start) <= 0


def test_elapsed_time_needs_both_events(cuda: str) -> None:
    """Both have to be timed, and recorded, whichever of the two is not."""
    forms = [(timed, recorded) for timed in (True, False) for recorded in (True, False)]
    for forms_of_both in itertools.product(forms, forms):
        start, end = (dt.cuda.Event(enable_timing=timed) for timed, _ in forms_of_both)
        for one, (_, recorded) in zip((start, end), forms_of_both, strict=True):
            if recorded:
                one.record(dt.cuda.current_stream(cuda))
        dt.cuda.synchronize(cuda)
        timed, recorded = (all(column) for column in zip(*forms_of_both, strict=True))
        if timed and recorded:
            assert start.elapsed_time(end) >= 0
            continue
        with pytest.raises(RuntimeError, match="must be recorded before" if timed else "must be created with"):
            start.elapsed_time(end)


ERRORS: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "not timed": (
        lambda: dt.cuda.Event().elapsed_time(dt.cuda.Event(enable_timing=True)),
        RuntimeError,
        "Both events must be created with argument 'enable_timing=True'.",
    ),
    "not recorded": (
        lambda: dt.cuda.Event(True).elapsed_time(dt.cuda.Event(True)),
        RuntimeError,
        "Both events must be recorded before calculating elapsed time.",
    ),
    "no event": (
        lambda: dt.cuda.Event(True).elapsed_time(None),  # type: ignore[arg-type]
        TypeError,
        "elapsed_time(): argument 'end_event' must be an Event, not NoneType",
    ),
    "record on no stream": (
        lambda: dt.cuda.Event().record(5),  # type: ignore[arg-type]
        TypeError,
        "record(): argument 'stream' must be a Stream, not int",
    ),
    "wait for nothing": (
        lambda: dt.cuda.default_stream().wait_stream(None),  # type: ignore[arg-type]
        TypeError,
        "wait_stream(): argument 'stream' must be a Stream, not NoneType",
    ),
    "wait for no event": (
        lambda: dt.cuda.default_stream().wait_event("x"),  # type: ignore[arg-type]
        TypeError,
        "wait_event(): argument 'event' must be an Event, not str",
    ),
    "stream of the cpu": (
        lambda: dt.cuda.Stream("cpu"),
        ValueError,
        "Stream(): Expected a cuda device, but got: cpu",
    ),
    "current stream of the cpu": (
        lambda: dt.cuda.current_stream("cpu"),
        ValueError,
        "current_stream(): Expected a cuda device, but got: cpu",
    ),
    "no such device": (lambda: dt.cuda.Stream(250), dt.DeviceNotAvailableError, "Device cuda:250 does not exist"),
    "priority": (lambda: dt.cuda.Stream(priority="high"), TypeError, "priority"),  # type: ignore[arg-type]
    "stream": (lambda: dt.cuda.stream(3), TypeError, "argument 'stream' must be Stream, not int"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, kind, text = ERRORS[name]
    before = dt.cuda.current_stream()
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)
    assert dt.cuda.current_stream() == before


@pytest.mark.skipif(len(CUDA_DEVICES) < 2, reason="needs two devices")
def test_an_event_belongs_to_its_device() -> None:
    near, far = dt.cuda.Stream(CUDA_DEVICES[0]), dt.cuda.Stream(CUDA_DEVICES[1])
    first, second = dt.cuda.Event(enable_timing=True), dt.cuda.Event(enable_timing=True)
    first.record(near)
    with pytest.raises(RuntimeError, match=r"^Event device 0 does not match recording stream's device 1\.$"):
        first.record(far)
    second.record(far)
    first.wait(far)  # waiting is allowed
    far.wait_stream(near)
    with pytest.raises(RuntimeError, match="on the same device"):
        first.elapsed_time(second)


@pytest.mark.skipif(REAL, reason="work of a simulated device ends only when it is waited for")
def test_elapsed_time_of_events_that_are_not_done() -> None:
    start, end = dt.cuda.Event(enable_timing=True), dt.cuda.Event(enable_timing=True)
    start.record()
    end.record()
    with pytest.raises(RuntimeError, match=r"^Both events must be completed before calculating elapsed time\.$"):
        start.elapsed_time(end)


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize("symbol", ["cuStreamWaitEvent", "cuEventRecord"])
def test_a_wait_that_fails_is_an_error_of_the_op(symbol: str, cuda: str, streams: list[dt.cuda.Stream]) -> None:
    with dt.cuda.stream(streams[0]):
        x = dt.full((100,), 2.0, device=cuda)
        y = dt.zeros(100, device=cuda)
        dt.cuda.set_stream(streams[1])
        dt._C._test.api_fail(symbol, 0, 999)
        try:
            with pytest.raises(dt.CudaError, match=symbol):
                streams[1].wait_stream(streams[0])
            dt._C._test.api_fail("cuStreamWaitEvent", 0, 999, True)
            with pytest.raises(dt.CudaError, match="cuStreamWaitEvent"):
                dt.add(x, 1, out=y)
        finally:
            dt._C._test.api_fail(None, -1, 0)
        dt.add(x, 1, out=y)
    assert y.sum().item() == 300


@pytest.mark.parametrize("symbol", ["cuCtxGetStreamPriorityRange", "cuStreamCreateWithPriority"])
def test_a_stream_that_cannot_be_made(symbol: str, cuda: str) -> None:
    held, made = [], counted("cuStreamCreateWithPriority")
    while counted("cuStreamCreateWithPriority") == made:  # until none is left over from before
        held.append(dt.cuda.Stream(cuda, -3))
    dt._C._test.api_fail(symbol, 0, 999)
    try:
        with pytest.raises(dt.CudaError, match=symbol):
            dt.cuda.Stream(cuda, -3)
    finally:
        dt._C._test.api_fail(None, -1, 0)
    assert dt.cuda.Stream(cuda, -3) not in held


def test_allocations_that_fail(cuda: str) -> None:
    """Each of the host's allocations on the way: MemoryError, the right result when tried again, nothing lost."""
    base = source(cuda)

    def run() -> bytes:
        stream, event = dt.cuda.Stream(cuda), dt.cuda.Event()
        with dt.cuda.stream(stream):
            x = base * 2
            event.record()
        event.wait()
        return bytes_of(x @ x)

    def live() -> int:
        gc.collect()
        dt.cuda.empty_cache()
        return dt._C._test.live_blocks()

    def sweep() -> None:
        count, failed = dt._C._test.allocation_count(), 0
        assert run() == want
        count = dt._C._test.allocation_count() - count
        assert count > 5
        for n in range(count):
            dt._C._test.fail_allocations(n)
            try:
                assert run() == want  # an event that would only have saved time may be missing
            except MemoryError:
                failed += 1
            finally:
                dt._C._test.fail_allocations(-1)
                assert dt.cuda.current_stream(cuda) == dt.cuda.default_stream(cuda)
            assert run() == want
        assert failed > count // 2

    want = run()
    for _ in range(10):  # until every event that is kept is there
        assert run() == want
    for _ in range(40):  # a staged copy whose end could not be marked makes the next one take another slot, for good
        before = live()
        sweep()
        if live() <= before:
            break
    assert live() <= before


SCRIPTS = {
    "current at exit": "dt.cuda.set_stream(s); x = dt.ones(100, device='cuda') * 2",
    "work at exit": "\nwith dt.cuda.stream(s):\n    x = dt.ones(100, device='cuda') * 2\ne = s.record_event()",
    "forked": (
        "import os, gc\nwith dt.cuda.stream(s):\n    x = dt.ones(100, device='cuda') * 2\n    e = s.record_event()\n"
        "    if os.fork() == 0:\n        del x, e, s\n        gc.collect()\n        os._exit(0)\n"
        "    assert os.wait()[1] == 0"
    ),
    "freed in a thread": (
        "import threading\nbox = [dt.ones(100, device='cuda') * 2]\n"
        "t = threading.Thread(target=box.clear); t.start(); t.join()"
    ),
}


@pytest.mark.parametrize("cache", ["0", "1"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_the_end_is_silent(name: str, cache: str) -> None:
    code = f"import devtensor as dt\ns = dt.cuda.Stream()\n{SCRIPTS[name]}"
    environment = os.environ | {"PYTHONPATH": python_path(), "DEVTENSOR_CUDA_CACHE": cache}
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, env=environment, timeout=120
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
