"""python -m devtensor explain CODE: the page of an error code, out of the page that docs/errors.md is."""

from __future__ import annotations

import difflib
import re
import sys
from importlib import resources

from devtensor._diagnosis.causes import CAUSES

USAGE = """usage: python -m devtensor explain [CODE]

Prints the page of an error code: the cause, the correction and examples. Without CODE it lists the codes."""


def page(code: str) -> str:
    """The page of a code as text for a terminal."""
    text = resources.files("devtensor").joinpath("_diagnosis", "errors.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {re.escape(code)}\n\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None, code
    lines = [code, ""]
    kind = None  # of the block of code that a line is in
    for line in section[1].strip().splitlines():
        if line.startswith("```"):
            kind = line[3:] or None
            lines += [""] if kind == "text" else []
        else:
            lines.append(f"    {line}".rstrip() if kind else line)
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    """The exit code."""
    if not argv:
        width = max(map(len, CAUSES))
        for code, cause in CAUSES.items():
            first = re.split(r"(?<=[.:]) ", cause)[0].rstrip(":")
            print(f"{code:<{width}}  {first}")
        return 0
    if argv in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    if len(argv) > 1:
        print(USAGE, file=sys.stderr)
        return 2
    code = argv[0].strip().removeprefix("#").lower()
    if code not in CAUSES:
        near = difflib.get_close_matches(code, CAUSES, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        print(f"no error code {argv[0]!r}{hint}\n`python -m devtensor explain` lists the codes", file=sys.stderr)
        return 2
    print(page(code))
    return 0
