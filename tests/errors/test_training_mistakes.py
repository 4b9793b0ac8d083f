"""Warnings of training programs: one at the line of the mistake, with variables and fix; none for correct programs."""

from __future__ import annotations

import itertools
import linecache
import re
import warnings
from typing import Any

import pytest
from gradient_mistakes import Mistake
from source_files import repaired
from support import DEVICES
from training_mistakes import CORRECT, MISTAKES, START

import devtensor as dt

_numbers = itertools.count()


def warned(text: str, device: str) -> list[tuple[Any, int]]:
    """The GradientWarnings of a program, each with its line."""
    filename = f"<program {next(_numbers)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        exec(compile(text, filename, "exec"), {"dev": device, "__name__": "__main__"})
    linecache.cache.pop(filename, None)
    found = [one for one in caught if issubclass(one.category, dt.GradientWarning)]
    assert all(one.filename == filename for one in found)
    return [(one.message, one.lineno) for one in found]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("row", MISTAKES, ids=lambda row: row.name)
def test_mistake(row: Mistake, device: str) -> None:
    text = START + row.text
    ((warning, line),) = warned(text, device)
    assert "# here" in text.splitlines()[line - 1]
    assert (warning.code, warning.fix, warning.fix_of) == (row.code, row.fix, row.fix_of)
    for sentence in row.says:
        assert sentence in str(warning)
    if row.fix is not None:
        assert f"Fix: {row.fix}" in str(warning)
        assert warned(repaired(text, warning), device) == []


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CORRECT)
def test_correct_programs_are_silent(name: str, device: str) -> None:
    assert warned(START + CORRECT[name], device) == []


def test_there_are_enough_correct_programs() -> None:
    assert len(CORRECT) >= 25


def test_a_warning_comes_once_a_line() -> None:
    text = START + "loss = net(x).sum()\nfor i in range(3):\n    opt.step()\n"
    assert len(warned(text, "cpu")) == 1


def test_a_leaf_made_elsewhere_is_proposed_where_it_is_wanted() -> None:
    text = START + f'w = dt.randn(3, requires_grad=True).to("{DEVICES[-1]}")\nw.sum().backward()\nw.grad\n'
    ((warning, _),) = warned(text, "cpu")
    assert warning.fix == f'dt.randn(3, requires_grad=True, device="{DEVICES[-1]}")'
    assert re.search(r"instead of dt\.randn\(3, requires_grad=True\)\.to", str(warning))
