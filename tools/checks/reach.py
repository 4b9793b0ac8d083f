"""Runs the tests on each guarded change (guarded.py): only those that meet it, the shortest first, until one fails.

    python tools/checks/reach.py PLAN [OPTION ...]     in the copy of the checkout; options of pytest

PLAN is a JSON file: "file" the shared one, "numbers" the changes, "most" the highest of all, "met" where to keep which
test meets what, "tried" which tests a change has passed, "seconds" the most that the tests of a change take, "share" n
for one test in n. What an earlier run has put into "met" and "tried" is not run again.
The tests are collected once. What each test meets is found by one run of all; then each change has a process of its
own, forked from this one, which has not used a device. Prints a JSON object for each change.
"""

from __future__ import annotations

import json
import mmap
import os
import select
import signal
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

GRACE = 20  # seconds that a test may take more than it did, for a slow machine


class Shared:
    """The file that all processes have in memory."""

    def __init__(self, path: str) -> None:
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)

    def select(self, number: int) -> None:
        self.memory[0:4] = number.to_bytes(4, "little")

    def taken(self, numbers: list[int]) -> list[int]:
        """Those that were met since the last time."""
        met = [n for n in numbers if self.memory[4 + n]]
        for n in met:
            self.memory[4 + n] = 0
        return met


class Runner:
    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.shared = Shared(plan["file"])
        self.failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid

    def run(self, items: list[pytest.Item]) -> Iterator[tuple[str, float]]:
        """Each item: its failure, and how long it took."""
        for item, after in zip(items, [*items[1:], None], strict=True):
            self.failed, began = "", time.monotonic()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            yield self.failed, time.monotonic() - began

    def met(self, items: list[pytest.Item]) -> dict[str, dict[str, Any]]:
        """By test: how long it takes, and the changes that it meets. What fails without a change is not there."""
        known = {row["test"] for row in rows_of(self.plan["met"])}
        forked(self.write_met, [item for item in items if item.nodeid not in known], 4 * 3600)
        rows = rows_of(self.plan["met"])
        passed = {row["test"]: row for row in rows if not row["failed"]}
        if 2 * len(passed) < len(rows):  # such as when a test module opens CUDA, which no fork survives
            raise pytest.UsageError(f"without a change {len(rows) - len(passed)} of {len(rows)} tests fail")
        return passed

    def write_met(self, items: list[pytest.Item], say: Callable[[str], None]) -> None:
        all_changes = list(range(1, self.plan["most"] + 1))
        self.shared.taken(all_changes)
        for item, (failed, seconds) in zip(items, self.run(items), strict=True):
            met = self.shared.taken(all_changes)
            append(self.plan["met"], {"test": item.nodeid, "seconds": round(seconds, 4), "met": met, "failed": failed})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.shared.select(0)
        met = self.met([item for item in session.items if zlib.crc32(item.nodeid.encode()) % self.plan["share"] == 0])
        tried = {(row["number"], test) for row in rows_of(self.plan["tried"]) for test in row["tests"]}
        for number in self.plan["numbers"]:
            items = [item for item in session.items if number in met.get(item.nodeid, {}).get("met", ())]
            items = [item for item in items if (number, item.nodeid) not in tried]
            items.sort(key=lambda item: met[item.nodeid]["seconds"])
            chosen, total = [], 0.0
            for item in items:
                total += met[item.nodeid]["seconds"]
                if chosen and total > self.plan["seconds"]:
                    break
                chosen.append(item)
            began = time.monotonic()
            test = self.killer(number, chosen, GRACE + 5 * total)
            if not test:
                append(self.plan["tried"], {"number": number, "tests": [item.nodeid for item in chosen]})
            answer = {"number": number, "meet": len(items), "run": len(chosen), "test": test}
            print("\n" + json.dumps(answer | {"seconds": round(time.monotonic() - began, 1)}), flush=True)
        return True

    def killer(self, number: int, items: list[pytest.Item], limit: float) -> str:
        """Which test fails with the change, and passes without it behind the same tests."""
        while items:
            self.shared.select(number)
            test = forked(self.first_failure, items, limit)
            self.shared.select(0)
            at = next((i for i, item in enumerate(items) if item.nodeid == test), None)
            if at is None or not forked(self.first_failure, items[: at + 1], limit):
                return test
            items = [*items[:at], *items[at + 1 :]]
        return ""

    def first_failure(self, items: list[pytest.Item], say: Callable[[str], None]) -> None:
        for failed, _ in self.run(items):
            if failed:
                say(failed)
                return


def rows_of(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def append(path: str, row: dict[str, Any]) -> None:
    with Path(path).open("a") as file:
        file.write(json.dumps(row) + "\n")


def forked(
    body: Callable[[list[pytest.Item], Callable[[str], None]], None], items: list[pytest.Item], limit: float
) -> str:
    """What body says of items in a process of its own; how that ended where it ended badly."""
    read, write = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        status = 3
        try:
            body(items, lambda text: os.write(write, text.encode()) and None)
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    ended = select.select([read], [], [], limit)[0]
    said = os.read(read, 65536).decode() if ended else ""
    os.close(read)
    if not ended or said:
        os.killpg(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if not ended:
        return "a hang"
    return said or (f"the process ended with status {status}" if status else "")


def main(plan: str, *options: str) -> int:
    runner = Runner(json.loads(Path(plan).read_text()))
    return pytest.main(["-q", "-p", "no:cacheprovider", *options], plugins=[runner])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
