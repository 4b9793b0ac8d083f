"""What DLPack shares lives until its last holder goes: in every order, in other threads, to the end of the process."""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from dlpack_capsules import LATEST, Capsule, from_capsules, live, numpys, own, patterns, torchs
from support import python_path

import devtensor as dt


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
@pytest.mark.parametrize("consumer", [numpys, torchs, own])
def test_ours_released_in_every_order(consumer: Callable[[Any], Any], order: tuple[int, ...]) -> None:
    """The array, the other library's, and a view of that."""
    consumer(dt.ones(2))
    before = live()
    x = dt.arange(1000)
    y = consumer(x)
    held = [x, y, y[500:]]
    del x, y
    for i in order:
        assert all(array is None or int(array[-1]) == 999 for array in held)
        held[i] = None
    assert live() == before


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
@pytest.mark.parametrize("flags", [0, None])
def test_theirs_released_in_every_order(flags: int | None, order: tuple[int, ...]) -> None:
    stored = patterns("float32", 1000)
    producer = from_capsules(stored, "float32", flags)
    before = live()
    capsule = producer.capsule()
    x = dt.from_dlpack(capsule)
    held: list[Any] = [x, x[500:], capsule]
    del x, capsule
    for i in order:
        assert producer.deleted == (held[0] is None and held[1] is None)
        held[i] = None
    assert (producer.deleted, live()) == (1, before)


def test_a_numpy_array_lives_as_long_as_it_is_used() -> None:
    class Watched(np.ndarray):
        pass

    stored = np.arange(5.0).view(Watched)
    gone = weakref.ref(stored)
    x = dt.from_dlpack(stored)
    part = x[2:]
    del stored, x
    gc.collect()
    assert gone() is not None and part.tolist() == [2, 3, 4]
    del part
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("version", [None, LATEST])
def test_a_capsule_that_nobody_consumed(version: Any) -> None:
    before = live()
    capsule = dt.arange(1000).__dlpack__(max_version=version)
    assert live() > before
    del capsule
    assert live() == before


@pytest.mark.parametrize("version", [None, LATEST])
def test_released_in_another_thread_without_python(version: Any) -> None:
    """The deleter needs no interpreter state; here it runs in a thread that has none of its own at first."""
    before = live()
    taken = []
    for _ in range(10):
        taken.append(Capsule(dt.arange(1000).__dlpack__(max_version=version)))
        taken[-1].consume()
    assert live() > before
    thread = threading.Thread(target=lambda: [capsule.release() for capsule in taken])
    thread.start()
    thread.join()
    assert live() == before


def test_a_bytearray_stays_locked_until_the_consumer_ends() -> None:
    raw = bytearray(16)
    seen = Capsule(dt.frombuffer(raw, dtype=dt.float32).__dlpack__())
    seen.consume()
    gc.collect()
    with pytest.raises(BufferError):
        raw.extend(b"more")
    seen.release()
    raw.extend(b"more")


EXIT = """
import numpy as np, devtensor as dt, sys
from dlpack_capsules import Capsule, Producer
mine = Capsule(dt.arange(1000).__dlpack__())
mine.consume()                                  # never released
kept = dt.from_dlpack(np.arange(1000.0))        # alive at exit
sys.kept = np.from_dlpack(dt.arange(1000))
sys.capsule = dt.arange(1000).__dlpack__()
print(kept[-1].item())
"""


def test_the_end_of_the_process() -> None:
    environment = os.environ | {"PYTHONPATH": python_path()}
    child = subprocess.run([sys.executable, "-c", EXIT], env=environment, capture_output=True, text=True, check=False)
    assert (child.returncode, child.stdout, child.stderr) == (0, "999.0\n", "")


def test_threads() -> None:
    stored = np.arange(64.0)

    def work() -> None:
        for _ in range(300):
            x = dt.from_dlpack(stored)
            assert np.from_dlpack(x + 1)[-1] == 64
            assert dt.from_dlpack(np.from_dlpack(dt.from_dlpack(x))).shape == (64,)

    before = live()
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert live() <= before
