"""Fixes of random programs are executed: each program fails later then, or not at all."""

from __future__ import annotations

import linecache
import traceback
from typing import Any

import pytest
import source_files
from random_layers import program
from support import CUDA_DEVICES


def run(text: str) -> Any:
    """The error of a program, with the lines that led to it as .lines."""
    filename = "<program>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    try:
        exec(compile(text, filename, "exec"), {"__name__": "program"})
    except Exception as error:
        error.lines = [one.lineno for one in traceback.extract_tb(error.__traceback__) if one.filename == filename]  # type: ignore[attr-defined]
        return error
    finally:
        linecache.cache.pop(filename, None)
    return None


def repaired(text: str, error: Any) -> tuple[str, int]:
    """The program with the fix in it, and from which line on there is one more."""
    line = error.fix_at.lineno if error.fix_at is not None else error.lines[-1]
    lines = text.splitlines()
    fixed = source_files.repaired("\n".join([*lines[: line - 1], lines[line - 1] + "  # here", *lines[line:]]), error)
    return fixed.replace("  # here", ""), line if len(fixed.splitlines()) > len(lines) else len(lines) + 1


@pytest.mark.parametrize("first", range(0, 480, 60))
def test_fixes_of_random_programs(first: int) -> None:
    fixed = elsewhere = 0
    for seed in range(first, first + 60):
        text = program(seed, CUDA_DEVICES[0])
        error = run(text)
        fix = getattr(error, "fix", None)
        if fix is None or (
            error.fix_how == "instead"
            and error.fix_at is None
            and text.splitlines()[error.lines[-1] - 1].strip().startswith("if")
        ):
            continue
        again, moved = repaired(text, error)
        after = run(again)
        fixed, elsewhere = fixed + 1, elsewhere + (error.fix_at is not None)
        if after is None:
            continue
        lines = [number - (number > moved) for number in after.lines]
        same = lines == error.lines and str(after) == str(error)
        assert lines >= error.lines and not same, f"seed {seed}\n{again}\n{error}\nFix: {fix} {error.fix_at}\n{after}"
    assert fixed > 20 and elsewhere > 1, (fixed, elsewhere)
