"""The mistakes of the other tables, made with PyTorch: what it says, what the notes say, and whether the fix works.

Device mistakes are made with the meta device, which a build for the cpu has too.
`python tests/helpers/mistakes/torch_mistakes.py` prints the counts with and without origins.
"""

from __future__ import annotations

import collections
import linecache
import re
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import faulty_programs
import gradient_mistakes

import devtensor as dt

ROLES = ("kept", "changed", "made", "freed", "used", "cut", "off", "moved")
# What a tensor without elements cannot do, which is no mistake of the program.
WITHOUT_ELEMENTS = ("cannot be called on meta tensors", "Cannot copy out of meta tensor")


class Told(NamedTuple):
    """One program: what PyTorch raises without us and with us, and what was found."""

    name: str
    text: str
    plain: Exception
    error: Exception
    found: dt.Explanation | None
    said: str
    fixed: str | None  # how the program ends with the fix: "" at its end; None without a fix


def converted(text: str, device: str = "meta") -> str:
    """A program for devtensor as one for PyTorch."""
    for ours, theirs in (
        ("import devtensor as dt", "import torch as dt"), ("devtensor.data", "torch.utils.data"),
        ("from devtensor", "from torch"), ("import devtensor.", "import torch."),
        ("dt.linear(", "dt.nn.functional.linear("), ('"cuda:1"', f'"{device}"'), ('"cuda:0"', '"cpu"'),
        ('"cuda"', f'"{device}"'),
    ):  # fmt: skip
        text = text.replace(ours, theirs)
    return "import torch as dt\n" + text


def run(text: str, path: Path, space: dict[str, Any] | None = None) -> Exception | None:
    """The exception that a program raises."""
    path.write_text(text)
    linecache.checkcache(str(path))
    try:
        exec(compile(text, str(path), "exec"), {"__name__": "__main__", "__file__": str(path)} | (space or {}))
    except Exception as error:
        return error
    return None


def repaired(text: str, found: dt.Explanation) -> str:
    """The text with the fix applied where it belongs, by default to the marked line."""
    lines = text.splitlines()
    at = found.fix_at.lineno - 1 if found.fix_at is not None else None
    i = at if at is not None else next(i for i, line in enumerate(lines) if "# here" in line)
    assert found.fix is not None
    if found.fix_how == "instead":
        import source_files

        assert found.fix_of is not None
        lines[i] = source_files.replaced(lines, i, found.fix_of, found.fix)
    else:
        indent = lines[i][: len(lines[i]) - len(lines[i].lstrip())]
        lines.insert(i, indent + found.fix)
    return "\n".join(lines) + "\n"


def told(name: str, text: str, origins: bool, folder: Path, space: dict[str, Any] | None = None) -> Told | None:
    """None where PyTorch accepts the program, or lacks what it uses."""
    path = folder / "program.py"
    plain = run(text, path, space)
    if plain is None or type(plain) in (AttributeError, ImportError):
        return None
    if any(words in str(plain) for words in WITHOUT_ELEMENTS):
        return None
    with dt.explain_torch(origins=origins):
        error = run(text, path, space)
        assert error is not None, name
        shown = "".join(traceback.format_exception(error))  # as a program that catches it shows it
    found = dt.explanation(error)
    said = "\n".join(getattr(error, "__notes__", ())).replace(f"{folder}/", "")
    assert found is None or "\n".join(found.notes).replace(f"{folder}/", "") == said
    assert all(line in shown.replace(f"{folder}/", "") for line in said.splitlines()), shown
    fixed = None
    if found is not None and found.fix is not None:
        after = run(repaired(text, found), folder / "fixed.py", space)
        passes = after is None or any(words in str(after) for words in WITHOUT_ELEMENTS)
        fixed = "" if passes else f"{type(after).__name__}: {after}"
    return Told(name, text, plain, error, found, said, fixed)


def faulty(origins: bool, folder: Path) -> list[tuple[Told, faulty_programs.Script]]:
    """The programs of faulty_programs that PyTorch refuses."""
    found = []
    for script in faulty_programs.FAULTY:
        if "## " in script.text:  # of several files
            continue
        one = told(script.name, converted(script.text), origins, folder)
        if one is not None:
            found.append((one, script))
    return found


def gradients(origins: bool, folder: Path) -> list[tuple[Told, gradient_mistakes.Mistake]]:
    """Those of gradient_mistakes."""
    import torch

    found = []
    for mistake in gradient_mistakes.MISTAKES:
        if "other" in mistake.text:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one = told(mistake.name, mistake.text, origins, folder, {"dt": torch, "dev": "cpu"})
        if one is not None:
            found.append((one, mistake))
    return found


def names(said: str, variable: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(variable)}(?![\w(])", said) is not None


def marked(text: str, role: str) -> list[int]:
    return [n for n, line in enumerate(text.splitlines(), 1) if re.search(rf"# .*\b{role}\b", line)]


def counts(origins: bool, folder: Path) -> collections.Counter[str]:
    """How many are refused, unchanged, explained, with the right variable, line and fix."""
    count: collections.Counter[str] = collections.Counter()
    rows: list[tuple[Told, Any]] = [*faulty(origins, folder), *gradients(origins, folder)]
    for one, row in rows:
        kind = "gradient " if isinstance(row, gradient_mistakes.Mistake) else ""
        count[f"{kind}mistakes"] += 1
        count[f"{kind}unchanged"] += (type(one.error), str(one.error)) == (type(one.plain), str(one.plain))
        count[f"{kind}explained"] += bool(one.said)
        count[f"{kind}fix"] += one.fixed is not None
        count[f"{kind}fix works"] += one.fixed == ""
        if kind:
            wanted = [(role, n) for role in ROLES for n in marked(one.text, role)]
            count["gradient lines wanted"] += len(wanted)
            count["gradient lines"] += sum(
                re.search(rf"^  {role} .*program\.py:{n}\b", one.said, re.MULTILINE) is not None for role, n in wanted
            )
        else:
            line = next(n for n, text in enumerate(one.text.splitlines(), 1) if text.endswith("# origin"))
            count["variable"] += names(one.said, row.culprit)
            count["origin"] += f"program.py:{line}" in one.said
    return count


def main() -> None:
    for origins in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            print(f"origins={origins}: {dict(counts(origins, Path(folder)))}")


if __name__ == "__main__":
    sys.path[:0] = map(str, (Path(__file__).resolve().parents[1], Path(__file__).resolve().parents[2]))
    main()
