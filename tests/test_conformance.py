"""The C program that holds the simulated table to the documented behaviour of CUDA, cuBLASLt and cuDNN."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on the path")
def test_simulated_table(tmp_path: Path) -> None:
    sources = [*ROOT.glob("tests/c/test_sim*.c"), *ROOT.glob("csrc/core/*.c"), *ROOT.glob("csrc/cpu/*.c")]
    sources += ROOT.glob("csrc/sim/*.c")
    command = ["cc", "-std=gnu11", "-O1", "-ffp-contract=off", "-o", tmp_path / "test_sim", *sources]
    subprocess.run([*command, "-lm", "-lpthread"], check=True)
    run = subprocess.run([tmp_path / "test_sim"], capture_output=True, text=True, timeout=300)
    found = re.fullmatch(r"(\d+) passed, (\d+) failed", run.stdout.strip().splitlines()[-1])
    assert run.returncode == 0 and found, run.stdout[-2000:] + run.stderr[-2000:]
    assert int(found[1]) >= 200 and found[2] == "0"
