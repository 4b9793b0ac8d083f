"""24 threads on two devices, every result compared with that of one thread: nothing wrong, nothing stuck.

DEVTENSOR_THREAD_OPS is the number of ops of each thread: a few hundred here, 10000 for a proof.
"""

from __future__ import annotations

import faulthandler
import os
import random
import sys
import threading
from collections.abc import Callable

import numpy as np
from support import CUDA_DEVICES, bits_of

import devtensor as dt
from devtensor import nn
from devtensor.nn import functional

THREADS = 24
OPS = int(os.environ.get("DEVTENSOR_THREAD_OPS", "250"))
HALF_WAY = CUDA_DEVICES[-1]

Work = Callable[["Place"], dt.DeviceArray]


class Place:
    """What the ops read on one device; nobody writes it."""

    def __init__(self, device: str) -> None:
        self.device = device
        rng = np.random.default_rng(5)

        def numbers(*shape: int) -> dt.DeviceArray:
            return dt.from_numpy(rng.integers(-8, 9, shape).astype(np.float32) / 4).to(device)

        self.a, self.b, self.row = numbers(24, 24), numbers(24, 24), numbers(24)
        self.long, self.image, self.filter = numbers(5000), numbers(2, 3, 9, 9), numbers(4, 3, 3, 3)
        self.half = self.a.half()
        self.index = dt.arange(23, -1, -1, device=device)
        self.layer = nn.Linear(24, 8, device=device)
        self.layer.load_state_dict({"weight": self.a[:8], "bias": self.row[:8]})
        self.stream = dt.cuda.Stream(device) if device != "cpu" else None


def add_in_place(p: Place) -> dt.DeviceArray:
    x = p.a.clone()
    x += p.row
    x[3:5] = p.b[:2]
    x.mul_(2)
    return x


def on_another_stream(p: Place) -> dt.DeviceArray:
    with dt.cuda.stream(p.stream):
        x = p.a * 2
    return x + p.b


def across(p: Place) -> dt.DeviceArray:
    return (p.a.to(HALF_WAY) + 1).to(p.device)


def seeded(p: Place) -> dt.DeviceArray:
    return dt.randn(50, generator=dt.Generator(p.device).manual_seed(3), device=p.device)


def refused(p: Place) -> dt.DeviceArray:
    """The cpu's array meets a device's, or float32 meets float64: the error knows its own operands."""
    other = p.a.cpu() if p.device != "cpu" else p.a.double()
    try:
        dt.matmul(p.b, other)
    except (dt.DeviceMismatchError, dt.DTypeMismatchError) as error:
        return p.a + len(error.operands) + (error.operands[1].dtype == other.dtype)
    raise AssertionError("no error")


OPERATIONS: dict[str, Work] = {
    "a + b": lambda p: p.a + p.b,
    "broadcast": lambda p: p.a * p.row - 1,
    "matmul": lambda p: p.a @ p.b,
    "half matmul": lambda p: p.half @ p.half.T,
    "linear": lambda p: p.layer(p.a),
    "conv2d": lambda p: dt.conv2d(p.image, p.filter, padding=1),
    "max_pool2d": lambda p: dt.max_pool2d(p.image, 3),
    "softmax": lambda p: dt.softmax(p.a, dim=1),
    "sum": lambda p: p.long.sum() + p.a.sum(dim=0),
    "cast": lambda p: p.long.bfloat16().double(),
    "transposed": lambda p: p.a.T.contiguous(),
    "cat": lambda p: dt.cat([p.a, p.b[:3]]),
    "index_select": lambda p: dt.index_select(p.a, 0, p.index),
    "index_add": lambda p: dt.index_add(p.b, 0, p.index, p.a),
    "cross_entropy": lambda p: functional.cross_entropy(p.a, p.index),
    "in place": add_in_place,
    "stream": on_another_stream,
    "across devices": across,
    "randn": seeded,
    "error": refused,
    "non_blocking": lambda p: p.long.to("cpu", non_blocking=True) + 1,
    "pinned": lambda p: p.long.cpu().pin_memory().to(p.device, non_blocking=True) * 2,
    "fresh sizes": lambda p: dt.zeros(int(p.long.numel() * random.random()) + 1, device=p.device)[:1],
}


def test_many_threads() -> None:
    places = [Place(device) for device in CUDA_DEVICES]
    expected = {
        (name, i): bits_of(work(place)).tobytes() for name, work in OPERATIONS.items() for i, place in enumerate(places)
    }
    barrier = threading.Barrier(THREADS)
    done, wrong = [0] * THREADS, []

    def work(thread: int) -> None:
        chance = random.Random(thread)
        names = list(OPERATIONS)
        try:
            barrier.wait(60)
            for _ in range(OPS):
                name, i = chance.choice(names), chance.randrange(len(places))
                if bits_of(OPERATIONS[name](places[i])).tobytes() != expected[name, i]:
                    wrong.append(f"{name} on {CUDA_DEVICES[i]} in thread {thread}")
                done[thread] += 1
        except BaseException as error:
            wrong.append(f"{type(error).__name__} in thread {thread}: {error}")

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120 + OPS * 0.2)
    if any(thread.is_alive() for thread in threads):
        faulthandler.dump_traceback(file=sys.__stderr__)
        raise AssertionError(f"stuck after {done} ops")
    assert not wrong, wrong[:20]
    assert done == [OPS] * THREADS
