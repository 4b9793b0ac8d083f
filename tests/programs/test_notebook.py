"""examples/tutorial.ipynb: its cells do what its committed outputs show, in plain Python and in a Jupyter kernel."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest
from support import ONE, REAL, ROOT, python_path

NOTEBOOK = ROOT / "examples" / "tutorial.ipynb"
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")

pytestmark = [
    pytest.mark.skipif(REAL or ONE, reason="the committed outputs are of two simulated GPUs"),
    pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="the notebook plots: needs matplotlib"),
]

# Runs the cells one after the other, as IPython would, and prints a list of [printed, error or None] of each.
PLAIN = """
import contextlib, io, json, sys
import matplotlib
import source_files
matplotlib.use("Agg")
cells, namespace, found = json.load(sys.stdin), {"__name__": "__main__"}, []
for i, cell in enumerate(cells):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        error = source_files.run(cell, namespace, filename=f"<cell {i}>")
    found.append([out.getvalue(), None if error is None else f"{type(error).__name__}: {error}"])
print(json.dumps(found))
"""

# Executes the notebook of standard input in a kernel of its own, and prints it.
KERNEL = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.stdin, as_version=4)
NotebookClient(notebook, timeout=200, kernel_name="python3").execute()
print(nbformat.writes(notebook))
"""


def run(program: str, given: Any) -> Any:
    env = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    env |= {"DEVTENSOR_CUDA": "sim:2", "PYTHONPATH": python_path()}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, input=json.dumps(given), env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def committed() -> Any:
    return json.loads(NOTEBOOK.read_text())


def text(lines: Any) -> str:
    return lines if isinstance(lines, str) else "".join(lines)


def printed(cell: Any) -> str:
    return "".join(text(o["text"]) for o in cell["outputs"] if o["output_type"] == "stream")


def error(cell: Any) -> str | None:
    """The first line of the error that ended the cell."""
    found = [o for o in cell["outputs"] if o["output_type"] == "error"]
    return f"{found[0]['ename']}: {found[0]['evalue']}".partition("\n")[0] if found else None


def test_cells_in_plain_python() -> None:
    cells = code_cells(committed())
    assert len(cells) >= 12
    found = run(PLAIN, [text(cell["source"]) for cell in cells])
    for cell, (said, failure) in zip(cells, found, strict=True):
        assert said == printed(cell)
        assert failure == error(cell)
        assert (failure is not None) == ("raises-exception" in cell["metadata"].get("tags", []))


def shown(cell: Any) -> list[tuple[str, ...]]:
    """What a cell shows, by kind and text; of a plot the kind alone."""
    result: list[tuple[str, ...]] = []
    for one in cell["outputs"]:
        data = one.get("data", {})
        if one["output_type"] == "error":
            trace = ESCAPES.sub("", "\n".join(one["traceback"]))
            result.append(("error", trace[trace.rindex(f"{one['ename']}: ") :]))  # with its notes
        elif "image/png" in data:
            result.append(("plot",))
        else:
            result.append(
                (one["output_type"], text(data.get("text/html", data.get("text/plain", one.get("text", "")))))
            )
    return result


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("nbclient", "ipykernel")),
    reason="needs nbclient and ipykernel: pip install 'devtensor[dev]'",
)
def test_in_a_kernel() -> None:
    """Values as HTML with cell and line, errors with their notes, tables of transfers, plots."""
    before, after = committed(), run(KERNEL, committed())
    everything: list[tuple[str, ...]] = []
    for old, new in zip(code_cells(before), code_cells(after), strict=True):
        assert shown(new) == shown(old)
        everything += shown(new)
    whole = "\n".join("".join(one) for one in everything)
    assert "dtype=float32)</pre><small>shape (2, 3), result of mul at cell In[2]:2" in whole
    assert "created by rand at cell In[3]:1" in whole and 'Fix: images = images.to("cuda:0")' in whole
    assert "self.scale is a plain attribute, not a parameter or buffer" in whole
    assert "<table><tr><th>times</th>" in whole
    assert sum(one == ("plot",) for one in everything) == 3
