"""DLPack on devices: what is refused, whose stream waits, and who releases memory when."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from dlpack_capsules import COPIED, DTYPES, LATEST, LAYOUTS, Capsule, Producer, patterns
from support import REAL, bits_of, counted, from_bits, lay_out

import devtensor as dt


@pytest.fixture
def lent() -> Iterator[None]:
    """Addresses of simulated devices are given away, to libraries of these tests that know what they are."""
    dt._C._test.lend_simulated(True)
    yield
    dt._C._test.lend_simulated(False)


@pytest.mark.skipif(REAL, reason="what a real device refuses is nothing")
def test_a_simulated_device_is_not_handed_out(cuda: str) -> None:
    x = dt.arange(3, dtype=dt.float32, device=cuda)
    assert x.__dlpack_device__() == (12, int(cuda[-1]))
    calls: list[Callable[[], Any]] = [x.__dlpack__, lambda: x.__dlpack__(max_version=LATEST), lambda: np.from_dlpack(x)]
    calls.append(lambda: dt.ones(2).__dlpack__(dl_device=(2, int(cuda[-1]))))
    for call in calls:
        with pytest.raises(BufferError, match=rf"{cuda} is a simulated GPU, .* Use \.cpu\(\)"):
            call()
    with dt.record_transfers() as log:
        assert np.from_dlpack(x, device="cpu").tolist() == [0, 1, 2]
    assert [(t.nbytes, str(t.source), str(t.target)) for t in log] == [(12, cuda, "cpu")]
    with pytest.raises(BufferError, match=f"{cuda} cannot be given to another device with copy=False"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    assert dt.from_dlpack(x).data_ptr() == x.data_ptr()


@pytest.mark.skipif(REAL, reason="what a real device refuses is nothing")
def test_torch_passes_the_reason_on(cuda: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = dt.arange(3, dtype=dt.float32, device=cuda)
    with pytest.raises(BufferError, match="simulated GPU"):
        torch.from_dlpack(x)
    assert torch.from_dlpack(x.cpu()).tolist() == [0, 1, 2]


STREAMS: dict[str, tuple[Any, int]] = {"None": (None, 1), "1": (1, 1), "2": (2, 1), "-1": (-1, 0)}


@pytest.mark.parametrize("stream", list(STREAMS))
def test_the_consumers_stream_waits(stream: str, cuda: str, lent: None) -> None:
    x = dt.arange(1000, device=cuda) + 1
    number, waits = STREAMS[stream]
    before = counted("cuStreamWaitEvent")
    seen = Capsule(x.__dlpack__(stream=number, max_version=LATEST))
    assert counted("cuStreamWaitEvent") - before == waits
    t = seen.tensor
    assert (t.data, t.device_type, t.device_id) == (x.data_ptr(), 2, int(cuda[-1]))
    for wrong in (0, -2):
        with pytest.raises(ValueError, match=rf"stream must be None, -1 .* got {wrong}"):
            x.__dlpack__(stream=wrong)


def test_a_consumer_on_a_stream_of_its_own(cuda: str, lent: None, streams: list[dt.cuda.Stream]) -> None:
    """The consumer's stream waits for the last write, on whichever stream that was; on the same one nothing waits."""
    first, second = streams
    with dt.cuda.stream(first):
        x = dt.zeros(1000, device=cuda)
        x += 1
        before = counted("cuStreamWaitEvent")
        Capsule(x.__dlpack__(stream=first.cuda_stream))
        assert counted("cuStreamWaitEvent") == before
    Capsule(x.__dlpack__(stream=second.cuda_stream))
    assert counted("cuStreamWaitEvent") - before == 2  # ours for the first, the consumer's for ours
    with dt.cuda.stream(second):
        assert x.sum().item() == 1000


WAITS = ("cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize")


def test_shared_device_memory_comes_back_in_order(cuda: str, lent: None) -> None:
    """Where the consumer used it is not known: ours comes behind everything, and the host waits for nothing."""
    before = dt.cuda.memory_allocated(cuda)
    x = dt.zeros(1000, device=cuda)
    waits, events = counted(*WAITS), counted("cuCtxRecordEvent")
    seen = Capsule(x.__dlpack__())
    seen.consume()
    del x
    assert dt.cuda.memory_allocated(cuda) > before and counted("cuCtxRecordEvent") == events
    seen.release()
    assert dt.cuda.memory_allocated(cuda) == before and counted("cuCtxRecordEvent") == events + 1
    other = dt.zeros(1000, device=cuda)
    del other
    assert (counted("cuCtxRecordEvent"), counted(*WAITS)) == (events + 1, waits)


def test_an_export_ends_with_its_capsule(cuda: str, lent: None) -> None:
    """Memory that outlives its consumers is ours again; a capsule that nobody took never made it theirs."""
    x = dt.zeros(1000, device=cuda)
    seen = Capsule(x.__dlpack__())
    seen.consume()
    seen.release()
    events = counted("cuCtxRecordEvent")
    x.__dlpack__()
    del x
    assert counted("cuCtxRecordEvent") == events


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("taken", ["dlpack", "interface"])
def test_work_of_others_comes_before_ours(taken: str, many: bool, cuda: str, lent: None) -> None:
    """The simulated device runs work as late as it may: what does not wait overwrites what comes later. The other
    library is a second array over the same memory, of whose work the books of the first know nothing."""
    theirs = dt.cuda.Stream(cuda)
    ours = dt.cuda.Stream(cuda) if many else dt.cuda.current_stream(cuda)
    with dt.cuda.stream(ours):
        x = dt.zeros(1000, device=cuda)
        address, waits = x.data_ptr(), counted(*WAITS)
        seen = Capsule(x.__dlpack__(stream=theirs.cuda_stream)) if taken == "dlpack" else x.__cuda_array_interface__
    y = dt.from_dlpack(Producer(address, (1000,), (1,), device=(2, int(cuda[-1])), flags=0))
    if taken == "interface":
        theirs.wait_stream(ours)  # as its "stream" asks of the consumer
    with dt.cuda.stream(theirs):
        y += 1
    if isinstance(seen, Capsule):
        seen.consume()
        seen.release()
    del x
    with dt.cuda.stream(ours):
        z = dt.empty(1000, device=cuda)
        z[:] = 7
    assert z.data_ptr() == address and counted(*WAITS) == waits
    assert z[0].item() == 7
    dt.cuda.synchronize(cuda)
    assert z.tolist() == [7] * 1000


def test_the_host_waits_where_the_driver_cannot(cuda: str, lent: None) -> None:
    """No event of the context: its release is what it was without, and nobody hears of it."""
    x = dt.zeros(1000, device=cuda)
    seen = Capsule(x.__dlpack__())
    seen.consume()
    waits = counted("cuCtxSynchronize")
    dt._C._test.api_fail("cuCtxRecordEvent", 0, 801)
    del x
    seen.release()
    dt._C._test.api_fail(None, -1, 0)
    assert counted("cuCtxSynchronize") == waits + 1
    assert (dt.zeros(1000, device=cuda) + 1).sum().item() == 1000


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", list(DTYPES))
def test_device_memory_of_others(dtype: str, layout: str, cuda: str) -> None:
    """Shared and kept alive; our stream is the one that the producer is told; our work ends before the owner's does."""
    x = lay_out(patterns(dtype, 2, 3), dtype, cuda, layout)
    producer = Producer(x.data_ptr(), x.shape, x.stride(), DTYPES[dtype], (2, int(cuda[-1])), flags=0)
    y = dt.from_dlpack(producer)
    assert producer.asked["stream"] == dt.cuda.default_stream(cuda).cuda_stream
    assert (str(y.device), y.data_ptr(), y.strides) == (cuda, x.data_ptr(), x.strides)
    assert np.array_equal(bits_of(y), bits_of(x))
    if layout != "expanded":
        y.zero_()
        assert not bits_of(x).any()
    waits = dt._C.counters()["synchronizations"]
    del y
    assert producer.deleted == 1
    assert dt._C.counters()["synchronizations"] > waits


def test_a_producer_that_was_told_no_stream(cuda: str) -> None:
    """Of a capsule it is not known who made it: our work comes after the legacy default stream's."""
    x = dt.ones(3, device=cuda)
    place = {"device": (2, int(cuda[-1])), "flags": 0}
    for source, waits in (
        (Producer(x.data_ptr(), (3,), **place).capsule(), 1),
        (Producer(x.data_ptr(), (3,), **place), 0),
    ):
        before = counted("cuStreamWaitEvent")
        y = dt.from_dlpack(source)
        assert counted("cuStreamWaitEvent") == before + waits
        assert y.tolist() == [1, 1, 1]


def test_a_copy_to_the_host_may_name_a_stream(cuda: str) -> None:
    seen = Capsule(dt.ones(3, device=cuda).__dlpack__(stream=1, dl_device=(1, 0), max_version=LATEST))
    assert (seen.tensor.device_type, seen.managed.flags) == (1, COPIED)


def test_device_memory_of_others_and_streams(cuda: str, streams: list[dt.cuda.Stream]) -> None:
    x = dt.zeros(1000, device=cuda)
    dt.cuda.synchronize(cuda)
    producer = Producer(x.data_ptr(), (1000,), (1,), device=(2, int(cuda[-1])), flags=0)
    y = dt.from_dlpack(producer)
    for i in range(8):
        with dt.cuda.stream(streams[i % 2]):
            y += 1
    total = y.sum()
    del y
    assert producer.deleted == 1
    assert (total.item(), x.sum().item()) == (8000, 8000)


def test_addresses_that_are_no_device_memory(cuda: str) -> None:
    stored = np.zeros(4, dtype=np.float32)
    for address in (stored.ctypes.data, 4096):
        producer = Producer(address, (4,), (1,), device=(2, int(cuda[-1])), flags=0)
        with pytest.raises(RuntimeError, match=rf"0x{address:x} is not an address in the memory of {cuda}"):
            dt.from_dlpack(producer)
        assert producer.deleted == 0
    pinned = dt.ones(4).pin_memory()
    with pytest.raises(RuntimeError, match="is not an address"):
        dt.from_dlpack(Producer(pinned.data_ptr(), (4,), (1,), device=(2, int(cuda[-1])), flags=0))
    empty = dt.from_dlpack(Producer(0, (0,), (1,), device=(2, int(cuda[-1])), flags=0))
    assert (empty.shape, str(empty.device)) == ((0,), cuda)


def test_a_refused_capsule_stays_its_producers(cuda: str) -> None:
    """Its name is what it was, so that somebody else may take it, or its destructor free it."""
    place = {"device": (2, int(cuda[-1])), "flags": 0}
    capsule = Producer(4096, (4,), (1,), **place).capsule()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="is not an address"):
            dt.from_dlpack(capsule)
        assert Capsule(capsule).name == b"dltensor_versioned"


def test_memory_of_another_device(lent: None) -> None:
    if dt.cuda.device_count() < 2:
        pytest.skip("one device")
    x = dt.ones(3, device="cuda:1")
    with pytest.raises(RuntimeError, match="is not an address in the memory of cuda:0"):
        dt.from_dlpack(Producer(x.data_ptr(), (3,), (1,), device=(2, 0), flags=0))
    seen = Capsule(x.__dlpack__(dl_device=(2, 0), max_version=LATEST))
    assert (seen.tensor.device_id, seen.managed.flags) == (0, COPIED)


def test_a_shared_pinned_array_never_shows_garbage(cuda: str) -> None:
    """Who reads it elsewhere does not wait for a copy that is still to arrive: so the copy is waited for."""
    for share in (np.from_dlpack, np.asarray, lambda p: np.asarray(memoryview(p)), lambda p: p.numpy()):
        target = dt.full((1000,), -1.0).pin_memory()
        seen = share(target)
        with pytest.warns(UserWarning, match="shared with another library"):
            target.copy_(dt.ones(1000, device=cuda) * 3, non_blocking=True)
        assert seen.tolist() == [3.0] * 1000


def test_bits_survive(device: str) -> None:
    """NaN payloads, negative zeros: nothing is converted."""
    stored = np.array([0x7FC12345, 0x80000000, 1, 0xFF800000], dtype=np.uint32).view(np.float32)
    x = from_bits(stored, "float32", device)
    assert bits_of(dt.from_dlpack(dt.from_dlpack(x), device="cpu", copy=True)).tobytes() == stored.tobytes()


def test_pointers_in_ctypes() -> None:
    """The capsule's address is that of the elements for a C library too."""
    x = dt.arange(4, dtype=dt.float64)
    seen = Capsule(x.__dlpack__())
    assert list((ctypes.c_double * 4).from_address(seen.tensor.data)) == [0, 1, 2, 3]
