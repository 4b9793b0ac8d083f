"""What runs in a worker process of a DataLoader, and what travels between it and the loader.

The loader sends ("task", contents) once, where the worker is no copy of it; ("epoch", number, seed), then ("batch",
number, indices); None ends the worker. It answers (epoch, number, kind, value): "data", "end" of an IterableDataset, or
"error".
"""

from __future__ import annotations

import os
import pickle
import queue
import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from devtensor import _C
from devtensor.data._parcel import Parcel
from devtensor.data._transport import Packed


@dataclass(frozen=True)
class WorkerInfo:
    """Which worker this is: its id below num_workers, its seed, its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a worker process of a DataLoader its WorkerInfo, elsewhere None."""
    return _info


@dataclass(frozen=True)
class Task:
    """What a worker needs to know."""

    dataset: Any
    collate: Callable[[Any], Any]
    auto_batch: bool
    iterable: bool
    drop_last: bool
    init: Callable[[int], None] | None
    worker: int
    workers: int


@dataclass(frozen=True)
class Failure:
    """An exception of a worker: its type where that can be pickled, and its text with the traceback."""

    kind: type[BaseException] | None
    text: str

    @classmethod
    def of(cls, error: BaseException, worker: int) -> Failure:
        """The failure that error is."""
        try:
            pickle.loads(pickle.dumps(type(error)))
            kind: type[BaseException] | None = type(error)
        except Exception:
            kind = None
        trace = "".join(traceback.format_exception(error))
        return cls(kind, f"Caught {type(error).__name__} in DataLoader worker process {worker}.\nOriginal {trace}")

    def exception(self) -> BaseException:
        """An exception of the same type, where it can be made of a text."""
        if self.kind is KeyError:  # whose str() is a repr, on one line
            return RuntimeError(self.text)
        try:
            made = self.kind(self.text) if self.kind is not None else None
        except Exception:
            made = None
        return made if isinstance(made, Exception) else RuntimeError(self.text)


class Fetcher:
    """Samples to batches; an IterableDataset is gone through once."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.samples: Iterator[Any] | None = iter(task.dataset) if task.iterable else None

    def fetch(self, indices: Any) -> Any:
        """The batch of these indices; of an IterableDataset the next one. Raises StopIteration at its end."""
        task = self.task
        if self.samples is not None:
            if not task.auto_batch:
                return task.collate(next(self.samples))
            taken = [sample for _, sample in zip(range(len(indices)), self.samples, strict=False)]
            if not taken or (task.drop_last and len(taken) < len(indices)):
                raise StopIteration
            return task.collate(taken)
        if not task.auto_batch:
            return task.collate(task.dataset[indices])
        together = getattr(task.dataset, "__getitems__", None)
        return task.collate(together(indices) if together else [task.dataset[i] for i in indices])


def seed_all(seed: int) -> None:
    """Every generator of random numbers that the dataset may use."""
    random.seed(seed)
    _C.manual_seed(seed)
    if "numpy" in sys.modules:
        import numpy as np

        np.random.seed(seed % 2**32)


def run(pipe: Connection, parcel: Parcel) -> None:
    """The life of a worker. The terminal's Ctrl-C is the loader's to handle; without a loader it ends at once."""
    global _info
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # what the dataset starts is not to begin so
    _C.set_num_threads(1)  # the workers share the cores among them
    messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(pipe, os.getppid(), messages), daemon=True).start()
    fetcher: Fetcher | None = None
    problem: Failure | None = None
    epoch, initialised = -1, False
    while (message := messages.get()) is not None:
        if message[0] == "task":
            parcel.fill(message[1])
            continue
        if message[0] == "epoch":
            _, epoch, seed = message
            fetcher, problem = None, None
            try:
                task: Task = parcel.open()
                _info = WorkerInfo(task.worker, task.workers, seed, task.dataset)
                if not initialised:
                    initialised = True
                    seed_all(seed)
                    if task.init is not None:
                        task.init(task.worker)
                fetcher = Fetcher(task)
            except Exception as error:
                problem = Failure.of(error, parcel.worker)
            continue
        _, number, indices = message
        try:
            if problem is not None or fetcher is None:
                answer: tuple[str, Any] = ("error", problem)
            else:
                answer = ("data", fetcher.fetch(indices))
        except StopIteration:
            answer = ("end", None)
        except Exception as error:
            answer = ("error", Failure.of(error, parcel.worker))
        try:
            packed = Packed((epoch, number, *answer))
        except Exception as error:
            packed = Packed((epoch, number, "error", Failure.of(error, parcel.worker)))
        try:
            packed.send(pipe)
        except OSError:
            return


def _receive(pipe: Connection, parent: int, messages: queue.SimpleQueue[Any]) -> None:
    """Reads at once what the loader sends, so that it never waits; ends the process when the loader has gone."""
    while True:
        try:
            while not wait([pipe], timeout=1.0):
                if os.getppid() != parent:
                    os._exit(1)
            message = pipe.recv()
        except (EOFError, OSError):
            os._exit(1)
        messages.put(message)
        if message is None:
            return
