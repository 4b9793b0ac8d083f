"""How batches travel from a worker: large arrays in shared memory, all else in the pickle, and nothing changed."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable
from multiprocessing import resource_tracker
from typing import Any

import data_samples as samples
import numpy as np
import pytest
from support import bits_of, from_bits

import devtensor as dt
from devtensor import data
from devtensor.data import _transport

DTYPES = ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")
LARGE = 100_000  # elements: more than 64 KiB of any dtype


def sent(value: Any) -> Any:
    """value on the other side of a pipe."""
    ours, theirs = multiprocessing.Pipe()
    packed = _transport.Packed(value)
    with ours, theirs:
        thread = threading.Thread(target=packed.send, args=(theirs,))
        thread.start()
        got = _transport.receive(ours)
        thread.join(60)
    return got


def numbers(dtype: str, count: int) -> dt.DeviceArray:
    if dtype == "bool":
        return dt.arange(count) % 3 == 0
    return (dt.arange(count) % 100).to(getattr(dt, dtype))


@pytest.mark.parametrize("count", [0, 3, LARGE])
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str, count: int) -> None:
    x = numbers(dtype, count)
    y = sent(x)
    assert type(y) is dt.DeviceArray and y.dtype == x.dtype and y.shape == x.shape
    assert bits_of(y).tobytes() == bits_of(x).tobytes()


def test_every_bit() -> None:
    """NaNs with payloads and minus zero too."""
    bits = (np.arange(LARGE, dtype=np.uint32) * np.uint32(42949)).view(np.float32)
    assert bits_of(sent(from_bits(bits, "float32"))).tobytes() == bits.tobytes()


LAYOUTS: dict[str, Callable[[dt.DeviceArray], dt.DeviceArray]] = {
    "transposed": lambda x: x.reshape(100, -1).T,
    "every second": lambda x: x[::2],
    "from the middle": lambda x: x[7:-9],
    "expanded": lambda x: x[:1].expand(LARGE),
    "4D": lambda x: x.reshape(2, 5, 10, -1),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_layouts(layout: Callable[[dt.DeviceArray], dt.DeviceArray]) -> None:
    x = layout(dt.arange(LARGE))
    assert sent(x).tolist() == x.tolist()


def test_what_is_around_the_arrays() -> None:
    x = dt.arange(LARGE)
    parameter = dt.nn.Parameter(dt.ones(LARGE))
    got = sent({"a": [x, ("text", x[:2])], "b": np.arange(LARGE), "c": dt.ones(LARGE, device="cuda"), "d": parameter})
    assert dt.equal(got["a"][0], x) and got["a"][1][0] == "text" and got["a"][1][1].tolist() == [0, 1]
    assert (got["b"] == np.arange(LARGE)).all()
    assert got["c"].is_cuda and got["c"].sum().item() == LARGE
    assert type(got["d"]) is dt.nn.Parameter and got["d"].sum().item() == LARGE


def test_arrays_are_their_owners_own() -> None:
    """They can be written, one write changes one array, and they outlive everything that they came with."""
    first, second = sent([dt.zeros(LARGE), dt.zeros(LARGE)])
    first += 1
    assert first.sum().item() == LARGE and second.sum().item() == 0
    del first
    gc.collect()
    second.fill_(2)
    assert second.sum().item() == 2 * LARGE
    shared = second.numpy()
    del second
    assert shared.sum() == 2 * LARGE


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def mapped() -> int:
    with open("/proc/self/maps") as maps:
        return sum("devtensor batch" in line for line in maps)


def test_nothing_is_left() -> None:
    before = descriptors()
    kept = [sent(dt.ones(LARGE)) for _ in range(20)]
    assert descriptors() == before and mapped() == 20
    kept.clear()
    gc.collect()
    assert mapped() == 0


class Unwilling:
    def __reduce__(self) -> Any:
        raise ValueError("not me")


def test_what_cannot_be_pickled_leaves_nothing() -> None:
    before = descriptors()
    with pytest.raises(ValueError, match="not me"):
        _transport.Packed([dt.ones(LARGE), Unwilling()])
    assert descriptors() == before


def test_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    before = descriptors()
    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space left"):
        _transport.Packed(dt.ones(LARGE))
    assert descriptors() == before


def test_without_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    x = dt.arange(LARGE)
    assert dt.equal(sent(x), x) and mapped() == 0


@pytest.mark.parametrize("lost", ["message", "file"])
def test_a_worker_that_has_gone(lost: str) -> None:
    ours, theirs = multiprocessing.Pipe()
    if lost == "file":
        packed = _transport.Packed(dt.ones(LARGE))
        theirs.send_bytes(packed._message)
        os.close(packed._file)  # type: ignore[arg-type]
    theirs.close()
    with ours, pytest.raises((EOFError, OSError)):
        _transport.receive(ours)


def test_a_loader_that_has_gone() -> None:
    ours, theirs = multiprocessing.Pipe()
    before = descriptors()
    packed = _transport.Packed(dt.ones(LARGE))
    ours.close()
    with pytest.raises(OSError):
        packed.send(theirs)
    assert descriptors() == before - 1
    theirs.close()


def test_it_is_a_pickle() -> None:
    """As other libraries' arrays travel, so by the same protocol."""
    ours, theirs = multiprocessing.Pipe()
    with ours, theirs:
        _transport.Packed([1, "two"]).send(theirs)
        message = ours.recv_bytes()
    assert message[:8] == bytes(8) and pickle.loads(message[8:]) == [1, "two"]


@pytest.mark.parametrize("persistent", [False, True])
def test_batches_of_workers(persistent: bool) -> None:
    """All epochs kept: no memory of a batch is used for another."""
    resource_tracker.ensure_running()  # which keeps a descriptor
    before = descriptors()
    loader = data.DataLoader(samples.Pictures(12, 64), 4, num_workers=2, persistent_workers=persistent)
    batches = [batch for _ in range(3 if persistent else 1) for batch in loader]
    assert len(batches) == 3 * (3 if persistent else 1)
    for i, (images, labels) in enumerate(batches):
        first = i % 3 * 4
        assert images.shape == (4, 3, 64, 64) and labels.tolist() == list(range(first, first + 4))
        assert images.mean(dim=(1, 2, 3)).tolist() == [float(n) for n in range(first, first + 4)]
    del loader
    gc.collect()
    assert descriptors() == before
    assert mapped() == len(batches)


def test_workers_use_one_thread_each() -> None:
    assert [int(n) for batch in data.DataLoader(samples.Threads(), num_workers=2) for n in batch] == [1, 1]
