"""Runs pieces of source as files are run, so that the errors in them can find their text."""

from __future__ import annotations

import ast
import itertools
import linecache
import re
import textwrap
from typing import Any

import numpy as np
from support import CUDA_DEVICES

import devtensor as dt

_numbers = itertools.count()
GPU = CUDA_DEVICES[0]


class Box:
    """An object with attributes."""

    def __init__(self, **held: Any) -> None:
        self.__dict__.update(held)


def names() -> dict[str, Any]:
    """What every snippet has: x, y on the cpu, g on a GPU, all (2, 3) float32; m (3, 2) and its GPU copy n."""
    return {
        "__name__": "__main__", "dt": dt, "np": np, "Box": Box, "GPU": GPU,
        "x": dt.ones((2, 3)), "y": dt.ones((2, 3)), "g": dt.ones((2, 3), device=GPU),
        "F": dt.nn.functional, "m": dt.ones((3, 2)), "n": dt.ones((3, 2), device=GPU),
    }  # fmt: skip


def run(text: str, namespace: dict[str, Any] | None = None, filename: str | None = None, cached: bool = True) -> Any:
    """The exception that the text raises, or None."""
    text = textwrap.dedent(text)
    filename = filename or f"<snippet {next(_numbers)}>"
    if cached:
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    races = dt._C._test.sim_races(-1)
    try:
        exec(compile(text, filename, "exec"), names() if namespace is None else namespace)
    except Exception as error:
        return error
    finally:
        linecache.cache.pop(filename, None)
        dt._C._test.sim_races(races)
    return None


def repaired(text: str, error: Any, mark: str = "# here") -> str:
    """The text with the fix of the error applied where it belongs, by default to the marked line."""
    lines = textwrap.dedent(text).splitlines()
    at = getattr(error, "fix_at", None)
    i = at.lineno - 1 if at is not None else next(i for i, line in enumerate(lines) if mark in line)
    if getattr(error, "fix_how", "before") == "instead":
        lines[i] = replaced(lines, i, error.fix_of, error.fix)
    else:
        indent = lines[i][: len(lines[i]) - len(lines[i].lstrip())]
        lines.insert(i, indent + error.fix)
    return "\n".join(lines)


def replaced(lines: list[str], i: int, expression: str, fix: str) -> str:
    """Line i of a program, with the one place there that reads the expression, or that is this text, changed."""
    line = lines[i]
    if line.count(expression) == 1:
        return line.replace(expression, fix)
    wanted = ast.unparse(ast.parse(f"({expression})", mode="eval"))
    found = [
        node
        for node in ast.walk(ast.parse("\n".join(lines)))
        if isinstance(node, ast.expr)
        and node.lineno == i + 1
        and ast.unparse(node) == wanted
        and not isinstance(getattr(node, "ctx", None), ast.Store)
    ]
    assert len(found) == 1, (line, expression)
    begin, end = found[0].col_offset, found[0].end_col_offset
    return f"{line[:begin]}{fix}{line[end:]}"


def told(error: Any) -> str:
    """All that an error says, with the name of its device left out; nothing for no error."""
    if error is None:
        return ""
    culprit = getattr(getattr(error, "culprit", None), "name", None)
    operands = [(o.name, o.expression, o.shape) for o in getattr(error, "operands", ())]
    said = [type(error).__name__, str(error), *getattr(error, "__notes__", ()), f"{culprit} {operands}"]
    return re.sub(r" +", " ", "\n".join(said).replace(GPU, "cpu"))
