"""Datasets for test_data and test_data_workers, at the top of a module as worker processes need them."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from multiprocessing import util
from pathlib import Path
from typing import Any

import devtensor as dt
from devtensor import data

marked = ""


def mark(worker: int) -> None:
    global marked
    marked = f"worker {worker}"


def leave_word(folder: str, worker: int) -> None:
    """Once the worker ends by itself."""
    util.Finalize(None, lambda: (time.sleep(0.3), Path(folder, str(worker)).touch()), exitpriority=1)


def fail(worker: int) -> None:
    raise ValueError(f"init of {worker} failed")


def same(batch: Any) -> Any:
    return batch


class Squares(data.Dataset[int]):
    def __init__(self, count: int) -> None:
        self.count = count

    def __getitem__(self, index: int) -> int:
        return index * index

    def __len__(self) -> int:
        return self.count


class Failing(Squares):
    def __init__(self, count: int, at: int) -> None:
        super().__init__(count)
        self.at = at

    def __getitem__(self, index: int) -> int:
        return 1 // 0 if index == self.at else index  # 1 / 0


class Who(Squares):
    """Where a sample was made."""

    def __getitem__(self, index: int) -> Any:
        info = data.get_worker_info()
        assert info is not None and info.dataset is self
        numbers = dt.rand(1).item() + random.random()
        return {"worker": info.id, "workers": info.num_workers, "pid": os.getpid(), "mark": marked, "random": numbers}


class Slow(Squares):
    def __getitem__(self, index: int) -> int:
        time.sleep(0.05)
        return os.getpid()


class Odd(Exception):
    def __init__(self, one: str, two: str) -> None:
        super().__init__(one, two)


class Mistakes(Squares):
    def __init__(self, kind: str) -> None:
        super().__init__(4)
        self.kind = kind

    def __getitem__(self, index: int) -> Any:
        if self.kind == "key":
            raise KeyError("missing")
        if self.kind == "odd":
            raise Odd("two", "arguments")
        if self.kind == "shape":
            return dt.ones(2) + dt.ones(3)
        if self.kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.kind == "hang":
            time.sleep(1000)
        return threading.Lock()


class Counting(data.IterableDataset[int]):
    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[int]:
        info = data.get_worker_info()
        return iter(range(self.count) if info is None else range(info.id, self.count, info.num_workers))

    def __len__(self) -> int:
        return self.count


class Endless(data.IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        i = 0
        while True:
            yield i
            i += 1


class OnDevice(data.Dataset[dt.DeviceArray]):
    """Samples that are on a device."""

    def __init__(self, device: str, size: int) -> None:
        self.device, self.size = device, size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> dt.DeviceArray:
        if not 0 <= index < self.size:
            raise IndexError(index)
        return dt.full((2,), float(index), device=self.device)


class Pictures(data.Dataset[tuple[dt.DeviceArray, int]]):
    """Picture i is full of i."""

    def __init__(self, count: int, size: int) -> None:
        self.count, self.size = count, size

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[dt.DeviceArray, int]:
        return dt.full((3, self.size, self.size), float(index)), index


class Threads(data.Dataset[int]):
    """How many threads an op has here."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> int:
        return dt.get_num_threads()


def doubled(x: dt.DeviceArray) -> tuple[str, int, dt.DeviceArray]:
    """Where x is, in which process, and its double."""
    return str(x.device), os.getpid(), x * 2


def busy_total(device: str, value: int) -> float:
    """Some work on a device: 64 * 64 * 20 times the value."""
    x, total = dt.full((64, 64), float(value), device=device), dt.zeros((), device=device)
    for _ in range(20):
        total += x.sum()
    return float(total.item())


def tell_whether_ctrl_c_is_blocked() -> None:
    print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []), flush=True)
