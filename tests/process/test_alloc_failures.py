"""Any host allocation may fail: MemoryError, nothing changed or leaked, and the next call is right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from support import HELPERS, REAL, python_path

import devtensor as dt

SWEEP = HELPERS / "sweeps" / "failing_allocations.py"


def run(device: str, mode: str, *wanted: str) -> tuple[list[dict[str, Any]], str]:
    """The answers of one process, and how it ended."""
    child = subprocess.run(
        [sys.executable, "-X", "faulthandler", str(SWEEP), device, mode, *wanted],
        env=os.environ | {"DEVTENSOR_CUDA": "auto" if REAL else "sim:1", "PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
        timeout=900,  # with the sanitizers and beside others
        check=False,
    )
    answers = [json.loads(line) for line in child.stdout.splitlines()]
    return answers, child.stderr[-3000:] if child.returncode else ""


@pytest.mark.parametrize("mode", ["once", "from-there-on"])
@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_every_allocation_of_every_op(device: str, mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    answers, crash = run(device, mode)
    done = [answer for answer in answers if "points" in answer]
    assert not crash, f"in {answers[-1]}\n{crash}"
    wrong = {answer["name"]: answer["found"] for answer in done if answer["found"]}
    points = sum(answer["points"] for answer in done)
    with capsys.disabled():
        print(f"\n{device}, {mode}: {points} allocation points in {len(done)} calls")
    assert not wrong
    assert points > len(done) // 2


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_less_and_less_memory(device: str) -> None:
    """What the system refuses to the process, not what a test makes fail."""
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("the sanitizer maps terabytes itself")
    more = {"MALLOC_MMAP_THRESHOLD_": "65536", "DEVTENSOR_CUDA": "auto" if REAL else "sim:1"}  # what is freed goes back
    child = subprocess.run(
        [sys.executable, "-X", "faulthandler", str(HELPERS / "sweeps" / "shrinking_memory.py"), device],
        env=os.environ | more | {"PYTHONPATH": python_path()},
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr[-3000:]
    answer = json.loads(child.stdout)
    assert not answer["found"] and 0 < answer["refused"] < answer["calls"]


def test_a_planted_failure_is_found() -> None:
    """The sweep sees a leak, a changed input, a wrong exception and a wrong result."""
    import failing_allocations

    kept: list[Any] = []
    x = dt.ones(1000)

    def leaks() -> Any:
        try:
            return x + 1
        except MemoryError:
            kept.append(dt.ones(1000))
            raise

    def changes() -> Any:
        x.add_(1)
        return dt.zeros(1000)

    def hides() -> Any:
        try:
            return x + 1
        except MemoryError:
            raise ValueError("hidden") from None

    def forgets() -> Any:
        try:
            return x + float(len(kept))
        except MemoryError:
            kept.append(None)
            raise

    for planted, complaint in (
        (leaks, "leaked"),
        (changes, "changed"),
        (hides, "ValueError"),
        (forgets, "another result"),
    ):
        points, found = failing_allocations.sweep(planted, [x] if planted is changes else [], False, False)
        assert any(complaint in text for text in found), (planted, points, found)


def test_the_injector_counts(device: str) -> None:
    x = dt.ones(3, device=device)
    before = dt._C._test.live_blocks()
    dt._C._test.fail_allocations(0, True)
    try:
        with pytest.raises(MemoryError):
            dt.full((100_003,), 1.0, device="cpu")
        with pytest.raises(MemoryError):
            dt.full((100_003,), 1.0, device="cpu")
    finally:
        dt._C._test.fail_allocations(-1, False)
    assert dt._C._test.live_blocks() == before
    assert (x + x).tolist() == [2, 2, 2]
