"""Where errors of PyTorch's are explained, with a stand-in for PyTorch: nothing here says what PyTorch itself does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch_sentences
from support import HELPERS, python_path

import devtensor as dt
from devtensor._torch_errors import families

MISTAKE = """
batch, weight = torch.ones(8, 3), torch.ones(3, 2, device="cuda:0")
scores = batch @ weight
"""
FIX = 'Fix: batch = batch.to("cuda:0")'
TABLE = "batch   (8, 3)  float32  cpu     <- the odd one"


def run(folder: Path, text: str, *command: str) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(text)
    env = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    env["PYTHONPATH"] = os.pathsep.join([python_path(), str(HELPERS / "pytorch" / "fake_torch")])
    env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return subprocess.run(
        [sys.executable, *command, "train.py"], cwd=folder, env=env, capture_output=True, text=True, timeout=100
    )


def test_a_script(tmp_path: Path) -> None:
    done = run(tmp_path, f"import torch\nprint('begins'){MISTAKE}", "-m", "devtensor", "run", "--torch")
    assert (done.returncode, done.stdout) == (1, "begins\n")
    assert "RuntimeError: Expected all tensors to be on the same device" in done.stderr
    assert TABLE in done.stderr and FIX in done.stderr
    assert "_commands" not in done.stderr


def test_a_script_that_succeeds_is_silent(tmp_path: Path) -> None:
    text = "import sys, torch\nprint(sys.argv, __name__)\nsys.exit(3)\n"
    done = run(tmp_path, text, "-m", "devtensor", "run", "--torch")
    assert (done.returncode, done.stdout, done.stderr) == (3, "['train.py'] __main__\n", "")


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    for options in (["--torch", "--as-torch"], ["--torch", "--simulate", "1"], ["--origins"]):
        done = run(tmp_path, "", "-m", "devtensor", "run", *options)
        assert done.returncode == 2 and "--torch" in done.stderr


CALLED_ONCE = """
import logging, sys, threading, traceback
import devtensor as dt
dt.explain_torch()
assert "torch" not in sys.modules
import torch

def work():{}

try:
    work()
except RuntimeError:
    traceback.print_exc()
    print("--", file=sys.stderr)
try:
    work()
except RuntimeError:
    logging.exception("failed")
    print("--", file=sys.stderr)
thread = threading.Thread(target=work)
thread.start()
thread.join()
print("--", file=sys.stderr)
try:
    work()
except RuntimeError as error:
    raise ValueError("of the user") from error
""".format(MISTAKE.replace("\n", "\n    "))


def test_what_is_caught_and_shown(tmp_path: Path) -> None:
    done = run(tmp_path, CALLED_ONCE)
    parts = done.stderr.split("--\n")
    assert len(parts) == 4
    for part in parts:
        assert part.count(FIX) == 1, part


def test_blocks_nest_and_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading
    import traceback

    def hooks() -> tuple[object, ...]:
        return traceback.TracebackException.__init__, sys.excepthook, threading.excepthook

    before = hooks()
    with dt.explain_torch() as outer:
        with outer:
            assert all(a is not b for a, b in zip(before, hooks(), strict=True))
        assert hooks() != before
    assert hooks() == before
    with pytest.raises(TypeError, match="'origins' must be bool"):
        dt.explain_torch(origins=1)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(RuntimeError, match="PyTorch is not installed"):
        dt.explain_torch(origins=True)
    assert hooks() == before


def test_pytest(tmp_path: Path) -> None:
    text = "import torch\n\ndef test_it():" + MISTAKE.replace("\n", "\n    ")
    done = run(tmp_path, text, "-m", "pytest", "-q", "-p", "devtensor_pytest", "--explain-torch", "--rootdir=.")
    assert FIX in done.stdout and done.returncode == 1
    done = run(tmp_path, text, "-m", "pytest", "-q", "-p", "devtensor_pytest", "--rootdir=.")
    assert "Fix:" not in done.stdout and done.returncode == 1


def test_an_explanation_of_ours_and_of_none() -> None:
    try:
        dt.ones(2, 3) @ dt.ones(3, 2).double()
    except dt.DTypeMismatchError as error:
        found = dt.explanation(error)
        assert found is not None and found.notes == error.__notes__ and found.operands == error.operands
        assert found.to_dict()["code"] == "dtype-mismatch" and found.to_dict()["culprit"]["dtype"] == "float64"
    assert dt.explanation(KeyError("x")) is None
    with pytest.raises(TypeError, match="'error' must be an exception"):
        dt.explanation("text")  # type: ignore[arg-type]


def test_sentences_have_a_family() -> None:
    older = {code: [template for template, _ in rows] for code, rows in torch_sentences.OLDER.items()}
    for code, templates in [*torch_sentences.CUDA.items(), *older.items()]:
        for sentence in map(torch_sentences.filled, templates):
            found = [family.code for family in families.families(sentence)]
            assert code in found and found.count("dtype-not-supported") <= (code == "dtype-not-supported"), sentence
    assert families.families("invalid literal for int() with base 10: 'x'") == []
    assert families.dtypes_in("expected m1 and m2 to have the same dtype, but got: double != float") == {
        "float32",
        "float64",
    }
    assert families.dtypes_in("Input type (double) and bias type (c10::Half) should be the same") == {
        "float64",
        "float16",
    }
    assert families.dtypes_in("Input type (CPUBFloat16Type) and weight type (torch.FloatTensor)") == {
        "bfloat16",
        "float32",
    }
    assert families.dtypes_in("got: input c10::BFloat16, batch1: float, batch2: float") == {"bfloat16", "float32"}
    assert families.dtypes_in("... have the same dtype, but got: long int != float") == {"int64", "float32"}
    assert families.in_our_words("result type Float can't be cast to the desired output type Long\nmore") == (
        "result type float32 can't be cast to the desired output type int64"
    )
