"""tests/typing: programs that .ci/run gives to mypy and pyright. They use every public name, and run."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import public_names
import pytest
from support import ROOT, python_path

import devtensor as dt

PROGRAMS = [path for path in sorted((ROOT / "tests" / "typing").glob("*.py")) if path.name != "wrong.py"]
# backward raises; of these PyTorch has more to say.
NOT_USED = {"backward", "grad", "is_leaf", "H"}


def mentioned() -> set[str]:
    """The attributes that the programs use."""
    nodes = [node for path in PROGRAMS for node in ast.walk(ast.parse(path.read_text()))]
    return {node.attr for node in nodes if isinstance(node, ast.Attribute)}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
@pytest.mark.parametrize("devices", ["off", "sim:1"])
def test_programs_run(path: Path, devices: str) -> None:
    env = {**os.environ, "DEVTENSOR_CUDA": devices, "PYTHONPATH": python_path()}
    done = subprocess.run([sys.executable, str(path)], env=env, capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


def test_programs_use_every_public_name() -> None:
    assert [name for name, _ in public_names.names() if name.rpartition(".")[2] not in mentioned()] == []


def test_programs_use_every_method() -> None:
    names = {name for name in dir(dt.DeviceArray) if not name.startswith("_")}
    assert names - mentioned() == NOT_USED & names
