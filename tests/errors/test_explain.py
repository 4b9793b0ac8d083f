"""`python -m devtensor explain`, and the commands beside it: what the wheel carries of the documentation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import python_path

import devtensor as dt
from devtensor import __main__ as command
from devtensor._diagnosis.causes import CAUSES

PAGE = Path(dt.__file__).parent / "_diagnosis" / "errors.md"


def test_each_code_has_its_page(capsys: Any) -> None:
    for code, cause in CAUSES.items():
        assert command.main(["explain", code]) == 0
        said = capsys.readouterr().out
        assert said.startswith(f"{code}\n\n{cause}\n")
        assert f"See: python -m devtensor explain {code}\n" in said or code == "kernel-compile"
        assert "```" not in said and "\n## " not in said


def test_the_codes_are_listed(capsys: Any) -> None:
    assert command.main(["explain"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(CAUSES)


@pytest.mark.parametrize(
    "words, said",
    [
        (["device-mismatc"], "no error code 'device-mismatc'; did you mean device-mismatch?"),
        (["zebra"], "no error code 'zebra'\n`python -m devtensor explain` lists"),
        (["device-mismatch", "dtype-mismatch"], "usage: python -m devtensor"),
    ],
)
def test_other_words_are_refused(words: list[str], said: str, capsys: Any) -> None:
    assert command.main(["explain", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith(said)


def test_an_error_names_a_command_that_works(tmp_path: Path) -> None:
    with pytest.raises(dt.ShapeMismatchError) as caught:
        dt.ones(2) + dt.ones(3)
    name, _, words = caught.value.__notes__[-1].removeprefix("See: ").partition(" ")
    assert name == "python"
    done = subprocess.run(
        [sys.executable, *words.split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": python_path()},
    )
    assert done.returncode == 0 and done.stdout.startswith("shape-mismatch\n"), done.stderr


def test_the_version(capsys: Any) -> None:
    assert command.main(["--version"]) == 0
    assert capsys.readouterr().out == f"devtensor {dt.__version__}\n"


def test_the_page_is_that_of_the_documentation() -> None:
    page = Path(__file__).parents[2] / "docs" / "errors.md"
    if not page.exists():
        pytest.skip("this test reads the documentation")
    assert page.read_text() == PAGE.read_text()


def test_a_reader_that_has_read_enough() -> None:
    """python -m devtensor explain CODE | head"""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "devtensor", "explain", "device-mismatch"]
    env = {**os.environ, "PYTHONPATH": python_path()}
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, env=env, text=True, timeout=100)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")
