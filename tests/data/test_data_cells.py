"""DataLoader workers for what the program defines itself: in a notebook, at a prompt, on standard input, with -c, -m.

Workers cannot import that. cloudpickle sends it by value; without cloudpickle one error says what to do, before any
worker is started.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import data_samples as samples
import pytest
from support import python_path

from devtensor import data
from devtensor.data import _parcel

CLOUDPICKLE = importlib.util.find_spec("cloudpickle") is not None
# The absence of cloudpickle, and its presence where it is installed.
INSTALLED = [False, pytest.param(True, marks=pytest.mark.skipif(not CLOUDPICKLE, reason="needs cloudpickle"))]
KERNEL = all(importlib.util.find_spec(name) is not None for name in ("nbclient", "ipykernel"))
WAYS = [
    "-c",
    "stdin",
    "prompt",
    "-m",
    pytest.param("notebook", marks=pytest.mark.skipif(not KERNEL, reason="nbclient")),
]

CELLS = [
    """
import sys
sys.modules.update({{"cloudpickle": None}} if {absent} else {{}})
import collections, multiprocessing
import devtensor as dt
from devtensor import data
Pair = collections.namedtuple("Pair", "value index")
SCALE = 3
""",
    """
def scaled(index):
    return Pair(index * SCALE, index)
""",
    """
class Cells(data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return scaled(index)
""",
    """
def kept(batch):
    return batch
""",
    """
try:
    batches = list(data.DataLoader(Cells(), 2, num_workers=2, collate_fn=kept))
    print([[tuple(pair) for pair in batch] for batch in batches], type(batches[0][0]) is Pair)
except Exception as error:
    print(type(error).__name__, error, len(multiprocessing.active_children()))
""",
]
FOUND = "[[(0, 0), (3, 1)], [(6, 2), (9, 3)]] True"

NOTEBOOK = """
import json, sys, nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
notebook = new_notebook(cells=[new_code_cell(cell) for cell in json.load(sys.stdin)])
NotebookClient(notebook, timeout=100, kernel_name="python3").execute()
for cell in notebook.cells:
    for output in cell.outputs:
        print(output.get("text", output), end="", file=sys.stderr if output.get("name") == "stderr" else sys.stdout)
"""


def run(way: str, cells: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """The cells as one program, started in one of the ways."""
    text = "\n".join(cell.strip() + "\n" for cell in cells)
    command, given = [sys.executable], ""
    if way == "-c":
        command += ["-c", text]
    elif way == "stdin":
        command, given = [*command, "-"], text
    elif way == "prompt":
        command, given = [*command, "-i", "-q"], text
    elif way == "-m":
        (folder / "package").mkdir()
        (folder / "package" / "__main__.py").write_text(text)
        command += ["-m", "package"]
    else:
        command, given = [*command, "-c", NOTEBOOK], json.dumps(cells)
    env = os.environ | {"PYTHONPATH": python_path(), "DEVTENSOR_CUDA": "off"}
    return subprocess.run(command, input=given, cwd=folder, env=env, capture_output=True, text=True, timeout=200)


@pytest.mark.parametrize("installed", INSTALLED)
@pytest.mark.parametrize("way", WAYS)
def test_a_dataset_of_the_program_itself(way: str, installed: bool, tmp_path: Path) -> None:
    cells = [CELLS[0].format(absent=not installed), *CELLS[1:]]
    done = run(way, cells, tmp_path)
    assert "Traceback" not in done.stdout + done.stderr and "spawn" not in done.stderr
    if installed:
        assert done.stdout.strip() == FOUND, done.stderr
        return
    assert done.stdout.strip() == (
        "PicklingError DataLoader: worker processes cannot import the class 'Cells', since it is defined in a "
        "notebook, at a prompt or in a program without a file. Put it into a module file and import it, or "
        "install cloudpickle (pip install cloudpickle), or use num_workers=0 0"
    ), done.stderr


@pytest.mark.parametrize("installed", INSTALLED)
def test_a_function_of_a_cell(installed: bool, tmp_path: Path) -> None:
    """The dataset is from a module; so it is the function that the error names."""
    last = """
try:
    print(list(data.DataLoader(data.TensorDataset(dt.arange(2)), 2, num_workers=1, collate_fn=kept))[0][1][0].item())
except Exception as error:
    print(type(error).__name__, error)
"""
    done = run("stdin", [CELLS[0].format(absent=not installed), CELLS[3], last], tmp_path)
    assert done.stdout.strip() == "1" if installed else "cannot import the function 'kept'" in done.stdout, done.stderr


@pytest.mark.parametrize("way", ["-c", "stdin", "-m"])
def test_modules_need_no_cloudpickle(way: str, tmp_path: Path) -> None:
    cells = [
        CELLS[0].format(absent=True),
        "print(list(data.DataLoader(data.TensorDataset(dt.ones(3)), num_workers=2)))",
    ]
    done = run(way, cells, tmp_path)
    assert done.stdout.count("DeviceArray") == 3 and done.stderr == ""


@pytest.mark.skipif(not CLOUDPICKLE, reason="needs cloudpickle")
def test_a_script_with_a_file_keeps_its_classes(tmp_path: Path) -> None:
    """A lambda goes by value, the classes beside it by name, as the worker has them from the file."""
    script = tmp_path / "script.py"
    cells = [CELLS[0].format(absent=False), *CELLS[1:3]]
    script.write_text("".join(cells) + '\nif __name__ == "__main__":\n'
        "    batches = list(data.DataLoader(Cells(), 2, num_workers=2, collate_fn=lambda batch: batch))\n"
        "    print([[tuple(pair) for pair in batch] for batch in batches], type(batches[0][0]) is Pair)\n")  # fmt: skip
    env = os.environ | {"PYTHONPATH": python_path(), "DEVTENSOR_CUDA": "off"}
    done = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=200)
    assert (done.stdout.strip(), done.stderr) == (FOUND, "")


def test_what_cannot_be_pickled_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(Exception, match="pickle") as caught:
        iter(data.DataLoader(samples.Squares(3), num_workers=1, collate_fn=lambda batch: batch))
    assert "lambdas and what is defined in a function can be sent where cloudpickle" in "".join(caught.value.__notes__)


@pytest.mark.skipif(not CLOUDPICKLE, reason="needs cloudpickle")
def test_a_lambda_goes_by_value() -> None:
    factor = 3
    loader = data.DataLoader(samples.Squares(3), num_workers=1, collate_fn=lambda batch: batch[0] * factor)
    assert list(loader) == [0, 3, 12]


class Stubborn(samples.Squares):
    """Cannot be unpickled."""

    def __setstate__(self, state: Any) -> None:
        raise KeyError("no such state")


def test_what_fails_in_the_worker_is_told_here(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match=r"Caught KeyError in DataLoader worker process 0") as caught:
        list(data.DataLoader(Stubborn(3), num_workers=1))
    assert "no such state" in str(caught.value)
    assert capfd.readouterr().err == ""


def test_a_parcel_is_the_task_itself_where_nothing_is_pickled() -> None:
    task = object()
    assert _parcel.Parcel(task, 3).open() is task
