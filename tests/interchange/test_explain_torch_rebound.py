"""Variables that have another value by the time an error of PyTorch's is explained: nothing is said, or what is true.

Each program of rebound_programs makes the mistake (2, 3) @ (4, 5).
"""

from __future__ import annotations

import contextlib
import linecache
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rebound_programs import HARMLESS, PROGRAMS
from support import python_path

import devtensor as dt

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

TABLE = ("  input  x  (2, 3)  float32  cpu", "  other  w  (4, 5)  float32  cpu")


def run(text: str) -> str:
    """What is shown of the error that a program shows or raises."""
    said: list[str] = []

    def show(error: BaseException) -> None:
        said.append("".join(traceback.format_exception(error)))

    linecache.cache["<rebound>"] = (len(text), None, text.splitlines(keepends=True), "<rebound>")
    space = {"torch": torch, "X": torch.ones(2, 3), "W": torch.ones(4, 5), "show": show}
    space |= {"OTHER": torch.ones(5, 4), "block": torch.no_grad}
    try:
        with dt.explain_torch():
            exec(compile(text, "<rebound>", "exec"), space)
    except RuntimeError as error:
        show(error)
    assert len(said) == 1 and "cannot be multiplied (2x3 and 4x5)" in said[0]
    return said[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_may_have_changed_is_not_told(name: str) -> None:
    text, told = PROGRAMS[name]
    said = run(text)
    assert all(line in said for line in TABLE) == told, said
    assert ("  input  " in said) == told and "(5, 4)  float32" not in said, said


def test_calls_that_change_nothing_leave_no_doubt(capsys: pytest.CaptureFixture[str]) -> None:
    said = run(HARMLESS)
    assert TABLE[0] in said.replace("x       ", "x  ") and "held.w  (4, 5)  float32  cpu" in said


@pytest.mark.parametrize(("ends", "told"), [(lambda x: None, True), (lambda x: x.set_(x.contiguous()), False)])
def test_what_would_succeed_now_is_not_told(ends: Callable[[Any], None], told: bool) -> None:
    """The block that ends with the error changes the operand."""

    @contextlib.contextmanager
    def block(x: Any) -> Iterator[None]:
        try:
            yield
        finally:
            ends(x)

    text = "x = torch.ones(2, 3).t()\nwith block(x):\n    x.view(6)\n"
    linecache.cache["<alone>"] = (len(text), None, text.splitlines(keepends=True), "<alone>")
    with pytest.raises(RuntimeError, match="view size is not compatible") as caught, dt.explain_torch():
        exec(compile(text, "<alone>", "exec"), {"torch": torch, "block": block})
    assert any("x  (3, 2)" in note for note in getattr(caught.value, "__notes__", [])) == told


def test_a_script_that_nothing_catches(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(
        "import torch\nx = torch.ones(2, 3)\nfor w in [torch.ones(4, 5), torch.ones(5, 4)]:\n"
        "    with torch.no_grad():\n        x @ w\n"
    )
    env = {**os.environ, "PYTHONPATH": python_path()}
    done = subprocess.run(
        [sys.executable, "-m", "devtensor", "run", "--torch", str(path)], env=env, capture_output=True,
        text=True, timeout=200,
    )  # fmt: skip
    assert all(line in done.stderr for line in TABLE), done.stderr


def test_no_tensor_is_kept_by_an_explanation() -> None:
    import gc
    import weakref

    gone = []

    def work() -> None:
        x, w = torch.ones(2, 3), torch.ones(4, 5)
        gone.append(weakref.ref(w))
        x @ w

    gc.disable()
    try:
        try:
            work()
        except RuntimeError as error:
            assert dt.explanation(error) is not None
        assert gone[0]() is None
    finally:
        gc.enable()
