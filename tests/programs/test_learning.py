"""First programs of those who learn PyTorch: they run unchanged with devtensor, and print the same numbers."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import devtensor as dt

pytestmark = pytest.mark.skipif(os.environ.get("DEVTENSOR_TEST_DEVICES") == "real", reason="starts simulated devices")

FOLDER = Path(__file__).parent / "learning"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py"))
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")


def with_devtensor(name: str, device: str) -> str:
    env = {k: v for k, v in os.environ.items() if k != "DEVTENSOR_CUDA"}
    env["PYTHONPATH"] = str(Path(dt.__file__).parent.parent)
    flags = ["--as-torch", "--no-report", *(["--simulate", "1"] if device != "cpu" else [])]
    command = [sys.executable, "-m", "devtensor", "run", *flags, str(FOLDER / f"{name}.py"), device]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@functools.cache
def with_pytorch(name: str) -> str:
    output, arguments = io.StringIO(), sys.argv
    sys.argv = [name, "cpu"]
    try:
        with contextlib.redirect_stdout(output), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of inputs that want no gradient, which devtensor's hooks do without
            runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    finally:
        sys.argv = arguments
    return output.getvalue()


def test_there_are_seven() -> None:
    assert len(PROGRAMS) == 7


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_prints_what_pytorch_prints(name: str, device: str) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    ours, theirs = with_devtensor(name, device), with_pytorch(name)
    assert NUMBER.sub("", ours) == NUMBER.sub("", theirs)
    found, wanted = ([float(text) for text in NUMBER.findall(output)] for output in (ours, theirs))
    assert len(found) > 4
    assert found == pytest.approx(wanted, rel=1e-4, abs=1e-4)
