"""Programs as people write them: the right variable, the line where it became so, and a fix that works."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

import pytest
import source_files
from correct_programs import CORRECT
from faulty_callers import PROGRAMS, Called
from faulty_programs import FAULTY, Script
from faulty_projects import PROJECTS

pytestmark = pytest.mark.skipif(os.environ.get("DEVTENSOR_TEST_DEVICES") == "real", reason="names cuda:0 and cuda:1")

HEAD = "import devtensor as dt\n"


def files(text: str) -> dict[str, str]:
    """name to source; the main file last."""
    if not text.lstrip().startswith("## "):
        return {"main.py": HEAD + text}
    parts = [part.partition("\n") for part in text.split("## ")[1:]]
    return {name: (HEAD + body if name == "main.py" else body) for name, _, body in parts}


def execute(sources: dict[str, str], folder: Path) -> Any:
    """The exception that the program raises, or None."""
    folder.mkdir()
    for name, source in sources.items():
        (folder / name).write_text(source)
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        runpy.run_path(str(folder / "main.py"), run_name="__main__")
    except Exception as error:
        return error
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            if name.startswith("scripts_"):
                del sys.modules[name]
    return None


def place(sources: dict[str, str], mark: str) -> tuple[str, int]:
    for name, source in sources.items():
        for number, line in enumerate(source.splitlines(), 1):
            if line.endswith(mark):
                return name, number
    raise AssertionError(mark)


@pytest.mark.parametrize("script", [*FAULTY, *PROJECTS], ids=lambda script: script.name)
def test_mistakes(script: Script, tmp_path: Path) -> None:
    sources = files(script.text)
    error = execute(sources, tmp_path / "faulty")
    assert isinstance(error, RuntimeError), error
    shown = "".join(traceback.format_exception(error))
    assert error.culprit.expression == script.culprit, shown
    origin = error.culprit.origin
    assert (Path(origin.filename).name, origin.lineno) == place(sources, "# origin"), shown
    assert f"{Path(origin.filename).name}:{origin.lineno}" in shown
    if not script.fixed:
        assert error.fix is None, shown
        return
    assert f"Fix: {error.fix}" in shown, shown
    name, _ = place(sources, "# here")
    sources[name] = source_files.repaired(sources[name], error)
    again = execute(sources, tmp_path / "fixed")
    assert again is None, (sources, again)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_mistakes_of_callers(program: Called, tmp_path: Path) -> None:
    """The fix is in the words of who called the layer, on the line where that stands; and it works there."""
    sources = files(program.text)
    error = execute(sources, tmp_path / "faulty")
    assert isinstance(error, RuntimeError), error
    shown = "".join(traceback.format_exception(error)).replace(f"{tmp_path / 'faulty'}/", "")
    assert error.fix == program.fix, shown
    assert program.said is None or program.said in shown, shown
    name, line = place(sources, "# fix")
    at = error.fix_at
    assert at is None or (Path(at.filename).name, at.lineno) == (name, line), shown
    assert at is not None or place(sources, "# here # fix") == (name, line), shown
    sources[name] = source_files.repaired(sources[name], error)
    again = execute(sources, tmp_path / "fixed")
    assert again is None, (sources, again)


@pytest.mark.parametrize("name", list(CORRECT))
def test_correct_programs_are_left_alone(name: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert execute(files(CORRECT[name]), tmp_path / "correct") is None


def test_there_are_enough() -> None:
    assert len(FAULTY) >= 40
    assert len(CORRECT) >= 15
    assert len(PROJECTS) >= 15
    assert sum(script.fixed for script in [*FAULTY, *PROJECTS]) >= 0.9 * (len(FAULTY) + len(PROJECTS))
