"""Writes docs/errors-compared.md: the same mistakes in PyTorch (on the cpu) and here, and what each says.

Run it with a Python that has PyTorch: python tools/compare_errors.py. The programs are those of
tests/helpers/faulty_programs.py which need no second device.
"""

from __future__ import annotations

import re
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "helpers"))
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
            "Written by `tools/compare_errors.py` from the programs of `tests/helpers/faulty_programs.py` that fail on",
            "the cpu alone; device mistakes need a GPU in PyTorch. Shown is the first line; counted is the whole",
            "message with its notes. Both also have Python's traceback, which ends at the line that fails. The tests",
            "execute every fix.",
            "",
            *summary,
            "",
            *text,
            "",
        ]
    )  # fmt: skip


if __name__ == "__main__":
    TARGET.write_text(table())
    print(f"{TARGET} written")
