"""tests/typing: programs that .ci/run gives to mypy and pyright. They use every public name, and run."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import public_names
import pytest
from support import ROOT, python_path, skip_kernels

import devtensor as dt

PROGRAMS = [path for path in sorted((ROOT / "tests" / "typing").glob("*.py")) if path.name != "wrong.py"]


def mentioned() -> set[str]:
    """The attributes that the programs use."""
    nodes = [node for path in PROGRAMS for node in ast.walk(ast.parse(path.read_text()))]
    return {node.attr for node in nodes if isinstance(node, ast.Attribute)}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
@pytest.mark.parametrize("devices", ["off", "sim:1"])
def test_programs_run(path: Path, devices: str) -> None:
    if devices != "off":
        skip_kernels(path.read_text())
    env = {**os.environ, "DEVTENSOR_CUDA": devices, "PYTHONPATH": python_path()}
    done = subprocess.run([sys.executable, str(path)], env=env, capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


def signatures(owner: str) -> dict[str, str]:
    """The stub's types of the compiled functions, or of the methods of a class, by name."""
    body = ast.parse((ROOT / "python" / "devtensor" / "_C.pyi").read_text()).body
    if owner:
        (body,) = [node.body for node in body if isinstance(node, ast.ClassDef) and node.name == owner]
    found: dict[str, str] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            returns = "" if node.returns is None else ast.unparse(node.returns)
            found[node.name] = f"{found.get(node.name, '')} ({ast.unparse(node.args)}) -> {returns}"
    return found


def alike(owner: str) -> set[str]:
    """Names whose types are those of one that the programs use: to a type checker they are the same."""
    types = signatures(owner)
    used = {types[name] for name in mentioned() & types.keys()}
    return {name for name in types if types[name] in used}


def test_programs_use_every_public_name() -> None:
    covered = mentioned() | alike("")
    assert [name for name, _ in public_names.names() if name.rpartition(".")[2] not in covered] == []


def test_programs_use_every_method() -> None:
    names = {name for name in dir(dt.DeviceArray) if not name.startswith("_")}
    assert names - mentioned() - alike("DeviceArray") == set()
