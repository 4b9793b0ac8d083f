"""python -m devtensor explain CODE: the page of an error code, out of the page that docs/errors.md is."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from importlib import resources

from devtensor._diagnosis.causes import CAUSES


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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Prints the page of an error code: the cause, the correction and examples."
    parser.add_argument("code", nargs="?", metavar="CODE", help="such as device-mismatch; without it, all are listed")


def run(options: argparse.Namespace) -> int:
    """The exit code."""
    if options.code is None:
        width = max(map(len, CAUSES))
        for code, cause in CAUSES.items():
            first = re.split(r"(?<=[.:]) ", cause)[0].rstrip(":")
            print(f"{code:<{width}}  {first}")
        return 0
    code = options.code.strip().removeprefix("#").lower()
    if code not in CAUSES:
        near = difflib.get_close_matches(code, CAUSES, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        print(f"no error code {options.code!r}{hint}\n`python -m devtensor explain` lists the codes", file=sys.stderr)
        return 2
    print(page(code))
    return 0
