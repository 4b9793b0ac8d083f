"""Runs the Python blocks of a page, in order, and compares what they print with the text block below each.

A block that imports devtensor begins a program; one that does not goes on with the one before. What is stated may be
the beginning of what is printed. `python tests/helpers/doc_blocks.py PAGE ...` prints of each page, as JSON, the status
of the process that ran it, what differs, and what was said on stderr.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STREAM = re.compile(r"\b0x5200[0-9a-f]+")  # a simulated stream's name, which depends on those before it


class Block(NamedTuple):
    line: int
    kind: str
    text: str
    stated: str | None  # by the text block that follows at once


def blocks(page: str) -> list[Block]:
    """The blocks of a page that are no stated output of another."""
    found = list(BLOCK.finditer(page))
    result: list[Block] = []
    end = -1
    for i, match in enumerate(found):
        if match[1] == "text" and match.start() == end:
            continue
        following = found[i + 1] if i + 1 < len(found) else None
        end = match.end() + 1
        stated = following[2] if following and following[1] == "text" and following.start() == end else None
        result.append(Block(page.count("\n", 0, match.start()) + 1, match[1], match[2], stated))
        if stated is None or match[1] not in ("python", "sh"):
            end = -1
    return result


def printed(block: Block, namespace: dict[str, Any]) -> tuple[str, bool]:
    """What a block prints, the error that ends it included, and whether one did."""
    import source_files

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        error = source_files.run(block.text, namespace, filename="<train.py>")
    if error is not None:
        lines = [f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])]
        out.write("\n".join(lines).replace("<train.py>", "train.py") + "\n")
    return STREAM.sub("0x5200000000000004", out.getvalue()), error is not None


def problems(page: Path) -> list[str]:
    """What is wrong with the Python blocks of a page."""
    found: list[str] = []
    namespace: dict[str, Any] = {}
    for block in blocks(page.read_text()):
        if block.kind != "python":
            continue
        if "import devtensor" in block.text:
            namespace = {"__name__": "__main__"}
        said, failed = printed(block, namespace)
        stated = block.stated or ""
        if (failed and not stated) or said.splitlines()[: len(stated.splitlines())] != stated.splitlines():
            found.append(f"{page.name}:{block.line} states\n{stated}but prints\n{said}")
    return found


def main() -> int:
    """Forks for each page, in an empty folder: what is imported serves all, and what a page has set ends with it."""
    os.environ["DEVTENSOR_CUDA"] = "sim:2"
    importlib.import_module("devtensor")
    told = {}
    for page in map(os.path.abspath, sys.argv[1:]):
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            child = os.fork()
            if child == 0:
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                os.chdir(tempfile.mkdtemp(dir="."))
                found = problems(Path(page))
                print("\n".join(found))
                return 1 if found else 0
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            out.seek(0), err.seek(0)
            told[page] = status, out.read(), err.read()
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
