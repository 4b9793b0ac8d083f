"""The worker processes of a DataLoader, seen from the loader."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import signal
import time
import weakref
from collections.abc import Iterator
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

from devtensor.data import _parcel, _transport, _worker

_PATIENCE = 2.0  # seconds that a worker has to end by itself


@contextlib.contextmanager
def _interrupts_held_back(context: Any) -> Iterator[None]:
    """A process that is started begins without Ctrl-C, until it ignores it: only the loader's process tells it."""
    resource_tracker.ensure_running()  # its start lets signals through again
    if context.get_start_method() == "forkserver":
        forkserver.ensure_running()  # which hands what is held back on to all that it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _usual_method() -> str:
    """How workers are started unless the program says so.

    A program written for PyTorch counts on Python's default, on Linux a fork: its workers see what no import would make
    again. As in PyTorch they cannot use CUDA then where the program has, which they are told.
    """
    return multiprocessing.get_start_method() if _parcel.run_as_torch() else "spawn"


class Pool:
    """Some workers, and the epoch they are in. They end with close(), with the last reference, or with the program."""

    def __init__(self, tasks: list[_worker.Task], context: Any, timeout: float) -> None:
        if not hasattr(context, "Process"):
            context = multiprocessing.get_context(context or _usual_method())
        self.timeout = timeout
        self.epoch = 0
        self.processes: list[Any] = []
        self.pipes: list[Connection] = []
        self._finalizer = weakref.finalize(self, _stop, self.processes, self.pipes)
        try:
            parcels = [_parcel.Parcel(task, task.worker) for task in tasks]
            copied = context.get_start_method() == "fork"
            if not copied:
                _parcel.check_guard()
            contents = [] if copied else [parcel.contents() for parcel in parcels]
            for task, parcel in zip(tasks, parcels, strict=True):
                ours, theirs = context.Pipe()
                self.pipes.append(ours)
                process = context.Process(
                    target=_worker.run, args=(theirs, parcel), daemon=True, name=f"DataLoader worker {task.worker}"
                )
                with theirs, _parcel.startable(), _interrupts_held_back(context):
                    process.start()
                    self.processes.append(process)
            for i, content in enumerate(contents):
                self._send(i, ("task", content))
        except BaseException:
            self.close()
            raise

    @property
    def closed(self) -> bool:
        """Whether the workers have been ended."""
        return not self._finalizer.alive

    def close(self) -> None:
        """End the workers and wait for that."""
        self._finalizer()

    def batches(self, indices: Iterator[Any], seed: int, ahead: int, keep: bool) -> Iterator[Any]:
        """One epoch: starts at once, so that the workers are busy before the first batch is asked for."""
        self.epoch += 1
        epoch = _Epoch(self, indices, ahead)
        for i, _ in enumerate(self.pipes):
            self._send(i, ("epoch", self.epoch, seed + i))
        epoch.fill()
        return epoch.run(keep)

    def _send(self, worker: int, message: Any) -> None:
        try:
            self.pipes[worker].send(message)
        except OSError:
            self._fail(worker)

    def receive(self, worker: int) -> tuple[int, int, str, Any]:
        """The next answer of a worker. Raises RuntimeError where there will be none."""
        pipe, sentinel = self.pipes[worker], self.processes[worker].sentinel
        try:
            found = wait([pipe, sentinel], timeout=self.timeout or None)
            if not found:
                raise RuntimeError(f"DataLoader timed out after {self.timeout} seconds")
            if pipe not in found and not pipe.poll():
                raise EOFError
            answer: tuple[int, int, str, Any] = _transport.receive(pipe)
            return answer
        except (EOFError, OSError):
            self._fail(worker)
        except BaseException:  # Ctrl-C in the middle of an answer too
            self.close()
            raise

    def _fail(self, worker: int) -> NoReturn:
        process = self.processes[worker]
        process.join(_PATIENCE)
        code, pid = process.exitcode, process.pid
        self.close()
        reason = f"exit code {code}"
        if code is not None and code < 0:
            reason = f"signal {signal.Signals(-code).name}"
        hint = ""
        if code == 1 and _parcel.main_file() is not None:
            hint = ' (a script that starts workers needs `if __name__ == "__main__":` around what it runs)'
        raise RuntimeError(f"DataLoader worker (pid {pid}) exited unexpectedly with {reason}{hint}") from None


class _Epoch:
    """Batches are numbered in the order in which they are asked for, worker by worker, and given back in that order."""

    def __init__(self, pool: Pool, indices: Iterator[Any], ahead: int) -> None:
        self.pool = pool
        self.epoch = pool.epoch
        self.indices = indices
        self.most = ahead * len(pool.pipes)
        self.turns = itertools.cycle(range(len(pool.pipes)))
        self.ended: set[int] = set()
        self.pending: list[tuple[int, int]] = []  # (number, worker)
        self.numbers = itertools.count()

    def fill(self) -> None:
        """Ask for batches until enough are under way."""
        workers = len(self.pool.pipes)
        while len(self.pending) < self.most and len(self.ended) < workers:
            worker = next(turn for turn in self.turns if turn not in self.ended)
            try:
                wanted = next(self.indices)
            except StopIteration:
                return
            number = next(self.numbers)
            self.pending.append((number, worker))
            self.pool._send(worker, ("batch", number, wanted))

    def run(self, keep: bool) -> Iterator[Any]:
        """The batches. At their end, or dropped, the workers end unless they are to be kept."""
        try:
            while self.pending:
                number, worker = self.pending.pop(0)
                kind, value = self.answer(worker, number)
                if kind == "error":
                    raise value.exception()
                if kind == "end":
                    self.ended.add(worker)
                self.fill()
                if kind == "data":
                    yield value
        finally:
            if not keep:
                self.pool.close()

    def answer(self, worker: int, number: int) -> tuple[str, Any]:
        """What a worker answers to a number; older answers, of an epoch that was left, are dropped."""
        while True:
            if self.pool.closed or self.pool.epoch != self.epoch:
                raise RuntimeError("the workers of this DataLoader have ended, or another iteration has begun")
            epoch, answered, kind, value = self.pool.receive(worker)
            if (epoch, answered) == (self.epoch, number):
                return kind, value


def _stop(processes: list[Any], pipes: list[Connection]) -> None:
    """Ask the workers to end, and make them."""
    for pipe in pipes:
        try:
            pipe.send(None)
        except OSError:
            pass
        pipe.close()
    end = time.monotonic() + _PATIENCE
    for process in processes:
        process.join(max(0.0, end - time.monotonic()))
        if process.is_alive():
            process.terminate()
            process.join(_PATIENCE)
        if process.is_alive():
            process.kill()
            process.join()
