"""Which rows are quick: each value of each parameter, on the cpu and on a GPU."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import quick_rows
from support import ROOT, python_path


def test_a_test_with_rows_of_its_own_is_one_that_is_there() -> None:
    text = {path.name: path.read_text() for path in (ROOT / "tests").rglob("test_*.py")}
    tests = [name.split("::") for name in (*quick_rows.SLOW, *quick_rows.EACH_OP, *quick_rows.EACH_KIND)]
    assert [test for file, test in tests if f"\ndef {test}(" not in text[file]] == []
    assert set(quick_rows.LONGEST) <= set(text)


class Item(SimpleNamespace):
    __hash__ = object.__hash__  # type: ignore[assignment]


def row(test: str, device: str, *values: str) -> Any:
    spec = SimpleNamespace(params={"device": device}, _idlist=[device, *values])
    return Item(nodeid=f"tests/{test}[{'-'.join([device, *values])}]", callspec=spec)


DEVICES, DTYPES, LAYOUTS = ("cpu", "cuda:0", "cuda:1"), ("float16", "float32", "int64"), ("contiguous", "reversed")


def test_each_value_is_met_and_not_each_combination() -> None:
    rows = [row("test_a.py::test_it", *values) for values in itertools.product(DEVICES, DTYPES, LAYOUTS)]
    kept: Any = quick_rows.rows_to_keep(rows)
    for kind in ("cpu", "cuda"):
        met = {value for item in kept for value in item.callspec._idlist if item.callspec._idlist[0].startswith(kind)}
        assert met >= {*DTYPES, *LAYOUTS}
    assert len(kept) < len(rows)
    assert {item.nodeid for item in quick_rows.rows_to_keep(rows[::-1])} == {item.nodeid for item in kept}


def test_a_test_without_parameters_stays_and_a_slow_one_has_its_share() -> None:
    name, share = next((name, share) for name, share in quick_rows.SLOW.items() if share > 1)
    plain: Any = Item(nodeid="tests/test_a.py::test_plain")
    slow = [row(name, "cpu", str(i)) for i in range(share + 5)]
    kept = quick_rows.rows_to_keep([plain, *slow])
    assert plain in kept and len(kept) == share + 1


@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["one process", "two processes"])
def test_a_file_that_is_named_runs_whole(options: list[str]) -> None:
    if options:
        pytest.importorskip("xdist")
    file = ROOT / "tests" / "ops" / "test_to.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)]

    def passed(*more: str) -> int:
        env = os.environ | {"PYTHONPATH": python_path()}
        env = {name: value for name, value in env.items() if not name.startswith("PYTEST_")}
        done = subprocess.run([*command, *options, *more], cwd=ROOT, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
        return int(re.findall(r"(\d+) passed", done.stdout)[-1])

    assert passed() == passed("-m", "") > passed("-m", "not whole")
