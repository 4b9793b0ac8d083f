"""Every op that PyTorch has too, given PyTorch's own samples: what differs is in the table, what is there differs.

Needs PyTorch. DEVTENSOR_TORCH_SAMPLES=all takes all samples (ten minutes), else a share of them.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from typing import Any

import pytest
from support import HELPERS, ROOT
from torch_differences import DIFFERENT, NOT_THERE, VERSION, page
from torch_seen import Difference, Lacking, Seen, explains

WHOLE = os.environ.get("DEVTENSOR_TORCH_SAMPLES") == "all"


@functools.cache
def compared() -> tuple[list[Seen], dict[str, int]]:
    """In a process of its own: PyTorch's test suite changes settings of the one that imports it."""
    command = [sys.executable, str(HELPERS / "pytorch" / "torch_samples.py"), *(["--all"] if WHOLE else [])]
    env = {**os.environ, "DEVTENSOR_CUDA": "sim:1", "DEVTENSOR_CACHE": "0"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=3600 if WHOLE else 900)
    assert done.returncode == 0, done.stderr[-4000:]
    *lines, total = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [Seen(**line) for line in lines], total


@pytest.fixture
def found() -> list[Seen]:
    for module in ("torch", "expecttest"):  # PyTorch's samples come with its test suite, which imports expecttest
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"PyTorch's samples need {module}, which is not installed")
    installed = importlib.metadata.version("torch")
    if not installed.startswith(f"{VERSION}."):
        pytest.skip(f"PyTorch {installed} is installed; the table is of {VERSION}")
    return compared()[0]


def test_nothing_else_differs(found: list[Seen]) -> None:
    rows = [*DIFFERENT, *NOT_THERE]
    unexplained = [str(seen) for seen in found if not any(explains(row, seen) for row in rows)]
    assert not unexplained, f"{len(unexplained)} differences, such as\n" + "\n".join(unexplained[:20])


@pytest.mark.parametrize("row", [*DIFFERENT, *NOT_THERE], ids=lambda row: f"{row.ops.split()[0]}-{row.kind}")
def test_each_row_differs(row: Difference | Lacking, found: list[Seen]) -> None:
    """Each op of it."""
    if row.rare and not WHOLE:
        pytest.skip("seen in the whole comparison only: DEVTENSOR_TORCH_SAMPLES=all")
    assert {seen.op for seen in found if explains(row, seen)} == set(row.ops.split())


def test_most_of_it_agrees(found: list[Seen]) -> None:
    total = compared()[1]
    assert total["violations"] == 0
    assert total["compared"] > 20_000
    assert total["agreed"] > 0.85 * total["compared"]


def test_the_page_is_the_table() -> None:
    assert (ROOT / "docs" / "differences.md").read_text() == page()


@pytest.mark.parametrize("change", [{"op": "sub"}, {"kind": "values"}, {"dtype": "int8"}, {"text": "another"}])
def test_a_row_explains_nothing_else(change: dict[str, Any]) -> None:
    seen = {"op": "add", "variant": "function", "dtype": "bool", "kind": "refused", "sample": ""}
    seen["text"] = "\"add\" not implemented for 'bool'"
    (row,) = [row for row in DIFFERENT if row.ops == "add"]
    assert explains(row, Seen(**seen))
    assert not explains(row, Seen(**{**seen, **change}))
