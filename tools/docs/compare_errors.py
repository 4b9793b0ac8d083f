"""Writes docs/errors-compared.md: the same mistakes in PyTorch (on the cpu) and here, and what each says.

Run it with a Python that has PyTorch: python tools/docs/compare_errors.py. The programs are those of
tests/helpers/mistakes/faulty_programs.py which need no second device.
"""

from __future__ import annotations

import re
import runpy
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "helpers" / "mistakes"))
TARGET = ROOT / "docs" / "errors-compared.md"


def message(text: str, library: str, folder: Path) -> str | None:
    """What the program says, with the notes; None when it raises nothing."""
    source = f"import {library} as dt\n" + text.replace("from devtensor", f"from {library}")
    if library == "torch":
        source = source.replace("dt.linear(", "dt.nn.functional.linear(")
    (folder / "main.py").write_text(source)
    try:
        runpy.run_path(str(folder / "main.py"), run_name="__main__")
    except Exception as error:
        notes = "\n".join(getattr(error, "__notes__", []))
        return f"{type(error).__name__}: {error}\n{notes}".strip().replace(f"{folder}/", "")
    return None


def answers(said: str, culprit: str, line: int) -> tuple[bool, bool, bool]:
    """Whether it names the variable, the line where it came from, and a fix."""
    variable = re.search(rf"(?<![\w.]){re.escape(culprit)}(?![\w(])", said) is not None
    return variable, f"main.py:{line}" in said, "Fix: " in said or "Use ." in said


def cell(text: str) -> str:
    return text.splitlines()[0].replace("|", "\\|")


def table() -> str:
    import faulty_programs
    import torch

    rows, counts = [], {"torch": [0, 0, 0], "devtensor": [0, 0, 0]}
    for script in faulty_programs.FAULTY:
        if "cuda" in script.text or "## " in script.text:
            continue
        said: dict[str, Any] = {}
        for library in counts:
            with tempfile.TemporaryDirectory() as folder:
                said[library] = message(script.text, library, Path(folder))
        if said["torch"] is None:
            continue
        lines = ("import\n" + script.text).splitlines()
        line = next(i for i, text in enumerate(lines, 1) if text.endswith("# origin"))
        row = [script.name]
        for library, count in counts.items():
            found = answers(said[library], script.culprit, line)
            for i, yes in enumerate(found):
                count[i] += yes
            row += [cell(said[library]), " ".join("yes" if yes else "no" for yes in found)]
        rows.append(row)
    header = ["mistake", f"PyTorch {torch.__version__}", "variable, line, fix", "devtensor", "variable, line, fix"]
    text = [f"| {' | '.join(row)} |" for row in [header, ["---"] * 5, *rows]]
    summary = [
        f"- {name}: the variable in {c[0]}, the line where it became so in {c[1]}, a fix in {c[2]} of {len(rows)}."
        for name, c in (("PyTorch", counts["torch"]), ("devtensor", counts["devtensor"]))
    ]
    return "\n".join(
        [
            "# The same mistake in PyTorch and here",
            "",
            "This page shows the first line of each error in PyTorch and in devtensor. The counts are for the whole",
            "message with its notes. Both also have Python's traceback, which ends at the line that fails. The tests",
            "execute every fix. `tools/docs/compare_errors.py` writes the page from",
            "`tests/helpers/mistakes/faulty_programs.py`: the programs that fail on the cpu, since PyTorch needs a GPU",
            "for device mistakes.",
            "",
            *summary,
            "",
            *text,
            "",
        ]
    )  # fmt: skip


TRAINING = re.compile(r"(?:main|program)\.py:(\d+)")


def heard(text: str, library: str, folder: Path) -> tuple[str, int]:
    """What a training program says on the cpu, warnings too, and how many lines before the failing one it names."""
    path = folder / "program.py"
    path.write_text(text.replace("devtensor", library) if library == "torch" else text)
    space = {"dev": "cpu", "dt": __import__(library)}
    said = ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            runpy.run_path(str(path), init_globals=space, run_name="__main__")
        except Exception as error:
            said = "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])])
    told = [one for one in caught if issubclass(one.category, UserWarning)]
    said = said or "".join(f"{one.category.__name__}: {one.message}" for one in told[:1])
    said = said.replace(f"{folder}/", "")
    return said, len(set(TRAINING.findall(said)))


def training_table() -> list[str]:
    import gradient_mistakes
    import training_mistakes

    rows = [(one.name, one.text, one.fix) for one in gradient_mistakes.MISTAKES if "other" not in one.text]
    rows += [(one.name, training_mistakes.START + one.text, one.fix) for one in training_mistakes.MISTAKES]
    text = ["| mistake | PyTorch | devtensor | lines named | fix |", "| --- | --- | --- | --- | --- |"]
    silent = lines = fixes = 0
    for name, program, fix in rows:
        with tempfile.TemporaryDirectory() as folder:
            theirs, named = heard(program, "torch", Path(folder))
            ours, own = heard(program, "devtensor", Path(folder))
        assert ours, name
        silent += not theirs
        lines += named > 0
        fixes += fix is not None
        text.append(f"| {name} | {cell(theirs or 'nothing')} | {cell(ours)} | {own} | {f'`{fix}`' if fix else ''} |")
    return [
        "## Training",
        "",
        "The programs of `tests/helpers/mistakes/gradient_mistakes.py` and `training_mistakes.py`, on the cpu. Counted",
        "are the lines of the program that the message names. The tests run every program on each device, check class,",
        f"variable and lines, apply every fix, and run {len(training_mistakes.CORRECT)} correct programs, which must "
        "give no warning.",
        "",
        f"- PyTorch: {silent} of {len(rows)} pass in silence; a line of the program is named in {lines}.",
        f"- devtensor: none passes in silence; {fixes} of {len(rows)} come with a fix.",
        "",
        *text,
        "",
    ]


if __name__ == "__main__":
    TARGET.write_text(table() + "\n".join(["", *training_table()]))
    print(f"{TARGET} written")
