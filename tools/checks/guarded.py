"""Source text that has many changes in it, each of which acts only where its number is the one asked for.

One build then serves all the changes of tools/checks/plant.py. A file tells two things between processes: which change
acts, and which changes were met on the way. C reads and writes it through guarded.h, Python through guarded_here.py,
both of which are put into the copy of the checkout.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from pathlib import Path
from typing import Protocol

MOST = 4096  # changes at once

# The file is an int, the number of the change that acts, and a byte for each change, which is 1 when it was met.
HEADER = f"""#ifndef GUARDED_H
#define GUARDED_H
struct guarded {{ volatile int now; volatile char met[{MOST}]; }};
extern __attribute__((visibility("default"))) struct guarded *guarded;
#define GUARDED(n) (guarded->met[n] = 1, guarded->now == (n))
#endif
"""
SOURCE = """#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "guarded.h"
static struct guarded alone;
struct guarded *guarded = &alone;
__attribute__((constructor)) static void share(void)
{
    const char *path = getenv("GUARDED_FILE");
    int file = path != NULL ? open(path, O_RDWR) : -1;
    void *shared = file >= 0 ? mmap(NULL, sizeof(alone), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    guarded = shared != MAP_FAILED ? shared : &alone;
    if (file >= 0) {
        close(file);
    }
}
"""
PYTHON = f"""import mmap, os
try:
    with open(os.environ.get("GUARDED_FILE", ""), "r+b") as _file:
        _shared = mmap.mmap(_file.fileno(), 4 + {MOST})
except OSError:
    _shared = bytearray(4 + {MOST})
def guarded(n):
    _shared[4 + n] = 1
    return _shared[0] | _shared[1] << 8 == n
"""


class Change(Protocol):
    kind: str
    begin: int
    end: int
    new: str


Piece = tuple[int, int, str]  # from, to, the text there


def with_changes(text: str, pieces: list[Piece], first: str = "") -> str:
    for begin, end, new in sorted(pieces, reverse=True):
        text = text[:begin] + new + text[end:]
    return first + text


# ---------------------------------------------------------------- C


def expression_of_c(code: str, begin: int, end: int) -> tuple[int, int] | None:
    """Where the largest expression around the change begins and ends that is no statement or list."""
    depth, start = 0, begin
    while start > 0:
        c = code[start - 1]
        if c in ")]":
            depth += 1
        elif c in "([":
            if depth == 0:
                break
            depth -= 1
        elif depth == 0:
            if c in "{};,?:" or (c == "=" and code[start - 2] not in "<>=!" and code[start] != "="):
                break
            if code[max(start - 7, 0) : start] == " return":
                break
        start -= 1
    depth, stop = 0, end
    while stop < len(code):
        c = code[stop]
        if c in "([":
            depth += 1
        elif c in ")]":
            if depth == 0:
                break
            depth -= 1
        elif depth == 0 and c in "{};,?:":
            break
        stop += 1
    inside = code[start:begin] + code[end:stop]
    if "{" in inside or re.search(r"(?<![=<>!+\-*/%&|^])=(?!=)", inside):
        return None
    return start, stop


def pieces_of_c(text: str, code: str, change: Change, n: int) -> list[Piece]:
    old = text[change.begin : change.end]
    if change.kind in ("dropped", "call"):
        return [(change.begin, change.end, f"do {{ if (!GUARDED({n})) {{ {old}; }} }} while (0)")]
    if change.kind == "exchanged":
        first, second = old.split(", ")
        at = change.begin + len(first) + 2
        return [
            (change.begin, change.begin + len(first), f"(GUARDED({n}) ? {second} : {first})"),
            (at, change.end, f"(GUARDED({n}) ? {first} : {second})"),
        ]
    around = expression_of_c(code, change.begin, change.end)
    if around is None:
        return []
    start, stop = around
    new = "!!" if change.kind == "negation" else change.new
    changed = text[start : change.begin] + new + text[change.end : stop]
    lead = len(text[start:stop]) - len(text[start:stop].lstrip())
    body = text[start + lead : stop]
    return [(start + lead, stop, f"(GUARDED({n}) ? ({changed.strip()}) : ({body}))")]


# ---------------------------------------------------------------- Python


def pieces_of_python(text: str, change: Change, n: int, tree: ast.Module) -> list[Piece]:
    lines = [0]
    for line in text.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    whole = text.encode()

    def at(row: int, column: int) -> int:
        return len(whole[: lines[row - 1] + column].decode())

    bodies = [
        (at(node.body[0].lineno, node.body[0].col_offset), at(node.end_lineno or 0, node.end_col_offset or 0))
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    if not any(begin <= change.begin < end for begin, end in bodies):  # what an import decides is decided once
        return []
    best: tuple[int, int] | None = None
    hidden = [
        (at(node.lineno, node.col_offset), at(node.end_lineno or 0, node.end_col_offset or 0))
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr | ast.pattern)
    ]
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr) or isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            continue
        begin, end = at(node.lineno, node.col_offset), at(node.end_lineno or 0, node.end_col_offset or 0)
        if not (begin <= change.begin and change.end <= end) or any(b <= begin and end <= e for b, e in hidden):
            continue
        if isinstance(node, ast.Slice | ast.Starred) or (best is not None and end - begin >= best[1] - best[0]):
            continue
        if change.kind in ("dropped", "call"):
            if (begin, end) != (change.begin, change.end):
                continue
            changed = "None"
        else:
            changed = text[begin : change.begin] + change.new + text[change.end : end]
        try:
            ast.parse(f"({changed})", mode="eval")
        except SyntaxError:
            continue
        best = begin, end
        kept = changed
    if best is None:
        return []
    return [(*best, f"(({kept}) if guarded({n}) else ({text[best[0] : best[1]]}))")]


def after_future(text: str, tree: ast.Module) -> int:
    """Where a file's own imports may begin."""
    rows = text.splitlines(keepends=True)
    last = 0
    for i, node in enumerate(tree.body):
        is_doc = i == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_doc or (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            last = node.end_lineno or 0
    return sum(map(len, rows[:last]))


class Guarded:
    """One file with its changes, which are numbered; what overlaps or cannot be guarded is left out."""

    def __init__(self, path: Path, text: str, code: str) -> None:
        self.path, self.text, self.code = path, text, code
        self.python = path.suffix == ".py"
        self.tree = ast.parse(text) if self.python else ast.Module([], [])
        self.pieces: dict[int, list[Piece]] = {}

    def add(self, change: Change, n: int) -> bool:
        if self.python:
            found = pieces_of_python(self.text, change, n, self.tree)
        else:
            found = pieces_of_c(self.text, self.code, change, n)
        taken = sorted((begin, end) for pieces in self.pieces.values() for begin, end, _ in pieces)
        for begin, end, _ in found:
            i = bisect_right(taken, (end, 0))
            if i > 0 and taken[i - 1][1] > begin:
                return False
        if found:
            self.pieces[n] = found
        return bool(found)

    def guarded(self, numbers: list[int]) -> str:
        pieces = [piece for n in numbers for piece in self.pieces[n]]
        if self.python and pieces:
            start = after_future(self.text, self.tree)
            pieces.append((start, start, "\nfrom guarded_here import guarded\n"))
        return with_changes(self.text, pieces)
