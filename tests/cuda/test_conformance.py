"""The C programs that hold the simulated table to the documented behaviour of CUDA, cuBLASLt, cuDNN and NVRTC."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support import ROOT, needs_compiler

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """Compiles one; they share objects."""
    sys.path.insert(0, str(ROOT / "tools" / "gpu"))
    from conformance import compile_program

    folder = tmp_path_factory.mktemp("conformance")
    return lambda sources, name: compile_program(folder, sources, name)


def test_simulated_table(program: Callable[[str, str], Path]) -> None:
    """What only the simulated table promises too: guards, refusals, work as late as it may run."""
    run = subprocess.run([program("test_sim*.c", "test_sim")], capture_output=True, text=True, timeout=300)
    found = re.fullmatch(r"(\d+) passed, (\d+) failed", run.stdout.strip().splitlines()[-1])
    assert run.returncode == 0 and found, run.stdout[-2000:] + run.stderr[-2000:]
    assert int(found[1]) >= 200 and found[2] == "0"


def test_conformance_list(program: Callable[[str, str], Path]) -> None:
    """The list that a real GPU is held to as well, by tools/gpu/conformance.py."""
    run = subprocess.run([program("conform*.c", "conform"), "simulated"], capture_output=True, text=True, timeout=300)
    lines = [line.split("\t") for line in run.stdout.splitlines()]
    names = [tuple(line[1:3]) for line in lines if line[0] == "ok"]
    assert [line for line in lines if line[0] == "FAIL"] == []
    assert run.returncode == 0, run.stderr
    assert len(set(names)) >= 200
