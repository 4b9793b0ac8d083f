"""Who keeps memory alive, and that it goes when nobody does."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import devtensor as dt


def live(device: str) -> int:
    gc.collect()
    if device == "cpu":
        return dt._C._test.live_blocks()
    dt.cuda.synchronize(device)
    return dt.cuda.memory_allocated(device)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_views_keep_their_storage(order: tuple[int, ...], device: str) -> None:
    """Whatever goes first, the rest still reads right; with the last one the memory goes."""
    before = live(device)
    x = dt.arange(1000, dtype=dt.float32, device=device)
    holders: list[Any] = [x, x[500:], x.reshape(10, 100), x.reshape(10, 100).T[3:, 1:]]
    sums = [float(h.sum().item()) for h in holders]
    del x
    for dropped in order:
        holders[dropped] = None
        for holder, total in zip(holders, sums, strict=True):
            if holder is not None:
                assert holder.sum().item() == total
    del holder
    assert live(device) <= before


def test_a_result_outlives_its_operands(device: str) -> None:
    y = dt.ones((100, 100), device=device) @ dt.ones((100, 100), device=device)
    for _ in range(5):
        dt.zeros((100, 100), device=device)
    assert y.sum().item() == 100 * 100 * 100


def test_memory_in_use_is_not_reused(device: str) -> None:
    """Work that is still queued reads its operands even after they were dropped."""
    total = dt.zeros((), device=device)
    for i in range(50):
        x = dt.full((1000,), float(i), device=device)
        total = total + x.sum()
        del x
    assert total.item() == 1000 * sum(range(50))


def test_weak_references(device: str) -> None:
    x = dt.zeros(3, device=device)
    seen = []
    watch = weakref.ref(x, seen.append)
    assert watch() is x
    del x
    gc.collect()
    assert watch() is None
    assert len(seen) == 1


def test_exported_buffers_hold_the_memory() -> None:
    before = live("cpu")
    x = dt.arange(1000, dtype=dt.float64)
    view = memoryview(x)
    part = np.asarray(x)[10:20]
    del x
    gc.collect()
    assert view[7] == 7.0
    assert part.tolist() == list(range(10, 20))
    view.release()
    del part
    assert live("cpu") <= before


def test_a_bytearray_cannot_be_resized_while_it_is_shared() -> None:
    raw = bytearray(16)
    x = dt.frombuffer(raw, dtype=dt.float32)
    with pytest.raises(BufferError):
        raw.extend(b"more")
    del x
    gc.collect()
    raw.extend(b"more")


def test_errors_do_not_keep_arrays(device: str) -> None:
    """An exception describes its operands; it does not hold their memory."""
    before = live(device)

    def mistake() -> dt.ShapeMismatchError:
        x, y = dt.ones((1000, 7), device=device), dt.ones((5, 1000), device=device)
        try:
            x @ y
        except dt.ShapeMismatchError as error:
            return error.with_traceback(None)
        raise AssertionError

    error = mistake()
    assert live(device) <= before + 16
    assert error.operands[0].shape == (1000, 7)


def test_release_on_another_thread(device: str) -> None:
    before = live(device)
    box = [dt.zeros(1000, device=device) for _ in range(10)]
    values = np.zeros(1000)
    box += [dt.from_numpy(values) for _ in range(10)]
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    assert live(device) <= before


def test_cycles_are_collected(device: str) -> None:
    before = live(device)

    class Node:
        pass

    for _ in range(20):
        node = Node()
        node.array, node.self = dt.zeros(1000, device=device), node  # type: ignore[attr-defined]
    del node
    assert live(device) <= before


def test_the_array_is_no_subclass_trap() -> None:
    """A subclass cannot change what an array is: one made of nothing has no elements, as in PyTorch."""
    kind = type("Mine", (dt.DeviceArray,), {})
    made = kind()
    assert type(made) is kind and made.shape == (0,) and made.tolist() == [] and type(made.detach()) is kind


def test_default_generator_and_devices_live_as_long_as_the_process(device: str) -> None:
    held = [dt.device(device) for _ in range(1000)]
    assert all(one == held[0] for one in held)
    del held
    gc.collect()
    assert str(dt.device(device)) == device


def test_the_collector_sees_what_the_module_holds() -> None:
    """What m_clear gives up m_traverse must visit."""
    held = gc.get_referents(dt._C)
    for thing in (dt.DeviceArray, dt.float32, dt.bool, dt.zeros(1).device):
        assert any(other is thing for other in held), thing
