"""DLPack both ways: every dtype and layout, with NumPy, PyTorch, a consumer and a producer of our own, and itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from dlpack_capsules import (
    COPIED,
    DTYPES,
    LATEST,
    LAYOUTS,
    READONLY,
    Capsule,
    Producer,
    from_capsules,
    numpys,
    own,
    patterns,
    torchs,
)
from formats import STORAGE
from hypothesis import given, settings
from hypothesis import strategies as st
from support import bits_of, lay_out, name_of

import devtensor as dt

# ---------------------------------------------------------------- what a capsule holds


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", list(DTYPES))
@pytest.mark.parametrize("version", [None, (0, 8), LATEST, (2, 0)], ids=str)
def test_every_field(version: Any, dtype: str, layout: str) -> None:
    stored = patterns(dtype, 2, 3)
    x = lay_out(stored, dtype, "cpu", layout)
    if layout == "expanded" and version in (None, (0, 8)):
        with pytest.raises(BufferError, match="read-only"):
            x.__dlpack__(max_version=version)
        return
    seen = Capsule(x.__dlpack__(max_version=version))
    assert seen.name == (b"dltensor" if version in (None, (0, 8)) else b"dltensor_versioned")
    if seen.name == b"dltensor_versioned":
        assert (seen.managed.major, seen.managed.minor >= 0) == (1, True)
        assert seen.managed.flags == (READONLY if layout == "expanded" else 0)
    t = seen.tensor
    assert (t.code, t.bits, t.lanes) == (Producer(0, (), None, DTYPES[dtype])._managed.tensor.code, DTYPES[dtype][1], 1)
    assert (t.device_type, t.device_id) == (1, 0)
    assert (seen.shape, seen.strides, t.byte_offset) == (x.shape, x.stride(), 0)
    assert t.data == x.data_ptr()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1)])
def test_numbers_and_empty_arrays(shape: tuple[int, ...]) -> None:
    x = dt.ones(shape)
    seen = Capsule(x.__dlpack__(max_version=LATEST))
    assert (seen.shape, seen.tensor.data) == (shape, x.data_ptr() or None)
    assert dt.from_dlpack(np.ones(shape)).tolist() == np.ones(shape).tolist()
    assert np.from_dlpack(x).tolist() == np.ones(shape).tolist()


def test_copies_are_said_to_be_copies() -> None:
    x = dt.arange(6).reshape(2, 3)
    seen = Capsule(x.__dlpack__(max_version=LATEST, copy=True))
    assert seen.managed.flags == COPIED
    assert seen.tensor.data != x.data_ptr()
    assert Capsule(x.__dlpack__(max_version=LATEST, copy=False)).tensor.data == x.data_ptr()
    fixed = dt.from_numpy(np.broadcast_to(np.float32(3), (2,)))
    assert Capsule(fixed.__dlpack__(max_version=LATEST)).managed.flags == READONLY
    assert Capsule(fixed.__dlpack__(copy=True)).name == b"dltensor"


# ---------------------------------------------------------------- ours, to others


def stored_in(array: Any, dtype: str) -> np.ndarray:
    if isinstance(array, dt.DeviceArray):
        return bits_of(array)
    if not isinstance(array, np.ndarray):
        import torch

        array = array.view(getattr(torch, np.dtype(STORAGE[dtype]).name)).numpy()
    return array.view(STORAGE[dtype])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", list(DTYPES))
@pytest.mark.parametrize("consumer", [numpys, torchs, own])
@pytest.mark.filterwarnings("ignore:.*not writable.*:UserWarning")
def test_consumers(consumer: Callable[[dt.DeviceArray], Any], dtype: str, layout: str) -> None:
    """The same elements in the same memory; what one writes the other sees."""
    stored = patterns(dtype, 2, 3)
    x = lay_out(stored, dtype, "cpu", layout)
    if consumer is numpys and dtype == "bfloat16":
        with pytest.raises((BufferError, RuntimeError), match="dtype"):  # which, depends on NumPy's version
            np.from_dlpack(x)
        return
    want = bits_of(x)
    y = consumer(x)
    assert np.array_equal(stored_in(y, dtype), want)
    if layout != "expanded":
        x[0, 0] = 0
        assert stored_in(y, dtype)[0, 0] == 0
        y[1, 1] = 0
        assert bits_of(x)[1, 1] == 0
    elif consumer is numpys:
        assert not y.flags.writeable


# ---------------------------------------------------------------- others', to us


def from_numpys(stored: np.ndarray, dtype: str) -> Any:
    return stored.view(dtype)


def from_torchs(stored: np.ndarray, dtype: str) -> Any:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    return torch.from_numpy(stored).view(getattr(torch, dtype))


def from_old_capsules(stored: np.ndarray, dtype: str) -> Any:
    return from_capsules(stored, dtype, None)


PRODUCERS = [from_numpys, from_torchs, from_capsules, from_old_capsules]
CUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "contiguous": lambda stored: stored,
    "transposed": lambda stored: stored.T,
    "sliced": lambda stored: stored[:, 1::2],
    "part": lambda stored: stored[1:],
}


@pytest.mark.parametrize("layout", list(CUTS))
@pytest.mark.parametrize("dtype", list(DTYPES))
@pytest.mark.parametrize("producer", PRODUCERS)
def test_producers(producer: Callable[[np.ndarray, str], Any], dtype: str, layout: str) -> None:
    stored = CUTS[layout](patterns(dtype, 2, 4))
    if producer is from_numpys and dtype == "bfloat16":
        return  # NumPy has none
    x = dt.from_dlpack(producer(stored, dtype))
    assert name_of(x.dtype) == dtype
    assert (x.shape, x.strides, x.data_ptr()) == (stored.shape, stored.strides, stored.ctypes.data)
    assert np.array_equal(bits_of(x), stored)
    x[0, 1] = 0
    assert stored[0, 1] == 0
    assert x.origin is not None and x.origin.action == "from_dlpack"


def test_what_is_asked_of_a_producer() -> None:
    stored = patterns("float32", 3)
    new, old = from_capsules(stored, "float32"), from_old_capsules(stored, "float32")
    dt.from_dlpack(new)
    assert new.asked == {"max_version": (1, 1)}
    dt.from_dlpack(new, copy=False)
    assert new.asked == {"max_version": (1, 1), "copy": False}
    dt.from_dlpack(new, device="cpu")
    assert new.asked == {"max_version": (1, 1)}
    dt.from_dlpack(old)
    assert old.asked == {}


def test_read_only_memory_stays_so() -> None:
    stored = patterns("float32", 3)
    fixed = dt.from_dlpack(from_capsules(stored, "float32", READONLY))
    with pytest.raises(RuntimeError, match="read-only"):
        fixed.zero_()
    again = np.from_dlpack(fixed)
    assert not again.flags.writeable
    with pytest.raises(BufferError, match=r"read-only.*\.clone\(\)"):
        fixed.__dlpack__()
    dt.from_dlpack(from_capsules(stored, "float32", READONLY), copy=True).zero_()
    stored.setflags(write=False)
    with pytest.raises(RuntimeError, match="read-only"):
        dt.from_dlpack(stored).add_(1)


def test_copy() -> None:
    stored = np.arange(3.0)
    assert dt.from_dlpack(stored, copy=True).data_ptr() != stored.ctypes.data
    assert dt.from_dlpack(stored, copy=None).data_ptr() == stored.ctypes.data
    x = dt.ones(3)
    assert dt.from_dlpack(x).data_ptr() == x.data_ptr() != dt.from_dlpack(x, copy=True).data_ptr()
    copied = from_capsules(patterns("float32", 3), "float32", COPIED)
    y = dt.from_dlpack(copied, copy=True)  # once is enough
    assert y.data_ptr() == copied._managed.tensor.data
    y += 1


def test_device(cuda: str) -> None:
    """An explicit device is an explicit move."""
    stored = np.arange(3.0)
    with dt.record_transfers() as log:
        x = dt.from_dlpack(stored, device=cuda)
        assert (str(x.device), x.tolist()) == (cuda, [0, 1, 2])
        host = dt.from_dlpack(x, device="cpu")
        assert str(host.device) == "cpu" and str(dt.from_dlpack(x).device) == cuda
    assert [(t.action, t.nbytes) for t in log] == [("from_dlpack", 24), ("tolist", 24), ("from_dlpack", 24)]
    with pytest.raises(ValueError, match=f"on cpu and cannot be on {cuda} with copy=False"):
        dt.from_dlpack(stored, device=cuda, copy=False)
    with dt.forbid_transfers(), pytest.raises(dt.TransferForbiddenError):
        dt.from_dlpack(x, device="cpu")


@pytest.mark.parametrize("flags", [None, 0])
def test_an_offset_out_of_the_address_space(flags: int | None) -> None:
    stored = patterns("float32", 2, 3)
    for offset in (2**64 - 4, 2**64 - stored.ctypes.data):
        for address in (stored.ctypes.data, 0):
            producer = Producer(address, (2, 3), byte_offset=offset, flags=flags)
            with pytest.raises(BufferError, match="no memory"):
                dt.from_dlpack(producer)
        assert dt.from_dlpack(Producer(stored.ctypes.data, (0, 3), byte_offset=offset, flags=flags)).shape == (0, 3)


def test_unusual_but_right() -> None:
    stored = patterns("float32", 2, 3)
    rows = dt.from_dlpack(Producer(stored.ctypes.data, (2, 3)))  # no strides: contiguous
    assert np.array_equal(bits_of(rows), stored)
    part = dt.from_dlpack(Producer(stored.ctypes.data, (2,), (1,), byte_offset=4))
    assert part.data_ptr() == stored.ctypes.data + 4
    one = dt.from_dlpack(Producer(stored.ctypes.data, (1, 3), (-77, 1)))  # nobody goes that way
    assert np.array_equal(bits_of(one), stored[:1])
    assert dt.from_dlpack(Producer(0, (0, 3), (5, -2))).shape == (0, 3)
    pinned = dt.from_dlpack(Producer(stored.ctypes.data, (2, 3), device=(3, 0)))
    assert str(pinned.device) == "cpu"
    kept = dt.from_dlpack(Producer(stored.ctypes.data, (2, 3), deleter=False))
    del kept
    newer = dt.from_dlpack(Producer(stored.ctypes.data, (2, 3), flags=0, version=(1, 99)))
    assert newer.shape == (2, 3)


BASE = patterns("float64", 8, 8)
ADDRESS = BASE.ctypes.data
REFUSED: list[tuple[str, type[Exception], str, Callable[[], Any]]] = [
    ("complex", BufferError, "code 5, 64 bits", lambda: Producer(ADDRESS, (2,), (1,), ("complex", 64))),
    ("uint16", BufferError, "code 1, 16 bits", lambda: Producer(ADDRESS, (2,), (1,), ("uint", 16))),
    ("lanes", BufferError, "4 lanes", lambda: Producer(ADDRESS, (2,), (1,), lanes=4)),
    ("negative stride", BufferError, "stride -1 of dimension 0 is negative", lambda: Producer(ADDRESS, (2,), (-1,))),
    ("misaligned", BufferError, "not aligned", lambda: Producer(ADDRESS + 2, (2,), (1,))),
    ("no address", BufferError, "no memory", lambda: Producer(0, (2,), (1,))),
    ("negative size", RuntimeError, "negative dimension", lambda: Producer(ADDRESS, (-2,), (1,))),
    ("huge", RuntimeError, "overflowed", lambda: Producer(ADDRESS, (2**62, 2**62), (1, 1))),
    ("far", BufferError, "beyond what 64 bits", lambda: Producer(ADDRESS, (3, 3), (2**62, 2**62))),
    ("rank", BufferError, "at most", lambda: Producer(ADDRESS, (1,) * 65, (1,) * 65)),
    ("version", BufferError, r"DLPack 2\.7", lambda: Producer(ADDRESS, (2,), (1,), flags=0, version=(2, 7))),
    ("rocm", BufferError, r"device \(10, 0\)", lambda: Producer(ADDRESS, (2,), (1,), device=(10, 0))),
    ("name", TypeError, '"something else"', lambda: Producer(ADDRESS, (2,), (1,), name=b"something else")),
    ("no protocol", TypeError, "not list", lambda: [1.0]),
    ("no device", dt.DeviceNotAvailableError, "cuda:200", lambda: Producer(ADDRESS, (2,), (1,), device=(2, 200))),
]


@pytest.mark.parametrize(("error", "text", "make"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(error: type[Exception], text: str, make: Callable[[], Any]) -> None:
    """Nothing is taken over: the capsule still owns its contents."""
    producer = make()
    with pytest.raises(error, match=text):
        dt.from_dlpack(producer)
    assert getattr(producer, "deleted", 0) == 0


def test_producers_that_fail() -> None:
    class Broken:
        answer: Any = None

        def __dlpack_device__(self) -> Any:
            return (1, 0)

        def __dlpack__(self, **keywords: Any) -> Any:
            if isinstance(self.answer, BaseException):
                raise self.answer
            return self.answer

    broken = Broken()
    with pytest.raises(TypeError, match="__dlpack__ of Broken gave NoneType"):
        dt.from_dlpack(broken)
    for error in (ZeroDivisionError("x"), TypeError("x"), KeyboardInterrupt()):
        broken.answer = error
        with pytest.raises(type(error)):
            dt.from_dlpack(broken)
    for pair in (None, 3, ("a", 0), (1,), (2**40, 0)):
        broken.__class__.__dlpack_device__ = lambda self, pair=pair: pair  # type: ignore[method-assign]
        with pytest.raises((TypeError, OverflowError)):
            dt.from_dlpack(broken)


def test_a_capsule_is_consumed_once() -> None:
    x = dt.ones(3)
    for keywords in ({}, {"max_version": LATEST}):
        capsule = x.__dlpack__(**keywords)
        assert dt.from_dlpack(capsule).data_ptr() == x.data_ptr()
        with pytest.raises(ValueError, match="consumed already"):
            dt.from_dlpack(capsule)


ARGUMENTS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"stream": 5}, ValueError, "stream must be None for an array on the cpu, got 5"),
    ({"stream": "x"}, TypeError, "stream"),
    ({"max_version": 1}, TypeError, "max_version"),
    ({"max_version": (1.5, 0)}, TypeError, "max_version"),
    ({"dl_device": 1}, TypeError, "dl_device"),
    ({"dl_device": (10, 0)}, BufferError, r"dl_device \(10, 0\)"),
    ({"dl_device": (2, -1)}, BufferError, "dl_device"),
    ({"copy": "x"}, TypeError, "copy"),
    ({"other": 1}, TypeError, "other"),
]


@pytest.mark.parametrize(("keywords", "error", "text"), ARGUMENTS, ids=str)
def test_arguments(keywords: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        dt.ones(2).__dlpack__(**keywords)
    assert Capsule(dt.ones(2).__dlpack__(stream=-1, max_version=None, dl_device=(1, 0), copy=None)).shape == (2,)


# ---------------------------------------------------------------- any shape and strides


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_views_of_numpy_arrays(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(0, 4), min_size=0, max_size=4).map(tuple))
    dtype = data.draw(st.sampled_from([d for d in DTYPES if d != "bfloat16"]))
    whole = patterns(dtype, *shape).view(dtype)
    cut = tuple(slice(data.draw(st.integers(0, 2)), None, data.draw(st.integers(1, 3))) for _ in shape)
    view = whole[(*cut, ...)].transpose(data.draw(st.permutations(range(len(shape)))))
    x = dt.from_dlpack(view)
    assert x.tolist() == view.tolist()
    back = np.from_dlpack(x)
    assert back.dtype == view.dtype and np.array_equal(back, view)
    if view.size:
        assert np.shares_memory(back, view)
