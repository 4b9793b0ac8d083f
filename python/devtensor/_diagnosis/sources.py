"""The piece of source that a frame stands on: text, tree and the node of the running instruction."""

from __future__ import annotations

import ast
import contextlib
import dis
import functools
import itertools
import linecache
import os
import re
import sys
import time
import warnings
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

_STARTED = time.time()
WHOLE = 80  # lines of a file that is parsed as one, which takes a millisecond
_NAMES = 1000  # lines of one where a name like self.__x needs the class around it
_PART = 1500  # lines of the longest part that is parsed
_KEPT = 8  # trees

_trees: dict[Any, ast.AST | None] = {}
_sites: dict[Any, tuple[list[str], Site | None]] = {}
_checked: dict[Any, bool] = {}

EXPRESSIONS = (ast.Call, ast.BinOp, ast.AugAssign, ast.Compare, ast.UnaryOp, ast.Subscript, ast.Attribute)


class Place(NamedTuple):
    """What locate asks of a frame, for one that is over."""

    f_code: CodeType
    f_lasti: int
    f_globals: dict[str, Any]


class Site(NamedTuple):
    """Where a frame stands: the node that runs, the nodes around it from the outside in, the lines of the file."""

    node: ast.AST
    path: tuple[ast.AST, ...]
    lines: list[str]

    def text(self, node: ast.AST) -> str:
        """The node as the user wrote it, on one line."""
        line, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
        if line is None or line != last or getattr(node, "synthetic", False):
            return ast.unparse(node)
        raw = self.lines[line - 1].encode()
        text: str = raw[node.col_offset : node.end_col_offset].decode()  # type: ignore[attr-defined]
        return text

    @property
    def owner(self) -> str | None:
        """The class around the node."""
        names = [node.name for node in self.path if isinstance(node, ast.ClassDef)]
        return names[-1] if names else None


def position(code: CodeType, instruction: int) -> tuple[int, int, int, int] | None:
    """Line, last line, column and last column (in bytes) of an instruction; None where they were not recorded."""
    found = next(itertools.islice(code.co_positions(), instruction // 2, None), None)
    if found is None or any(part is None for part in found):
        return None
    return found  # type: ignore[return-value]


def instruction(frame: FrameType) -> str:
    """The name of the running instruction."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]]


def locate(frame: FrameType | Place, kinds: tuple[type[ast.AST], ...] = EXPRESSIONS) -> Site | None:
    """The site of a frame; None where the source is missing, is not that of the code, or has none of kinds there."""
    code = frame.f_code
    where = position(code, frame.f_lasti)
    if where is None:
        return None
    lines = linecache.getlines(code.co_filename, frame.f_globals)
    if not 0 < where[1] <= len(lines):
        return None
    key = (
        code.co_filename,
        code.co_qualname,
        where,
        kinds,
        hash(code.co_code),
    )  # and not the code, which would be kept
    known = _sites.get(key)
    if known is not None and known[0] is lines:
        return known[1]
    site = _search(code, lines, where, kinds) if _is_current(code, lines, frame) else None
    _remember(_sites, key, (lines, site))
    return site


def _search(
    code: CodeType, lines: list[str], where: tuple[int, int, int, int], kinds: tuple[type[ast.AST], ...]
) -> Site | None:
    for first, last in _parts(code, lines, where):
        tree = _parse(code.co_filename, lines, first, last) if last - first <= _PART else None
        path = _descend(tree, where, kinds) if tree is not None else None
        if path is not None:
            return Site(path[-1], tuple(path), lines)
    return None


def _remember(cache: dict[Any, Any], key: Any, value: Any) -> Any:
    while len(cache) >= _KEPT:
        try:
            cache.pop(next(iter(cache)), None)
        except (StopIteration, RuntimeError):  # another thread was here
            break
    cache[key] = value
    return value


# ---------------------------------------------------------------- is this the source of that code


def _is_current(code: CodeType, lines: list[str], frame: FrameType | Place) -> bool:
    """A file that was written after the program began is compared with the code that runs."""
    held = linecache.cache.get(code.co_filename)
    written = held[1] if held is not None and len(held) == 4 else None
    if written is None or written <= _STARTED or type(frame.f_globals.get("__loader__")).__name__.startswith("Assert"):
        return True
    text = "".join(lines)
    key = (code.co_filename, hash(text), code.co_firstlineno, code.co_code)
    if key not in _checked:
        matches = len(lines) <= _NAMES * 2 and _compiles_to(code, text)
        _remember(_checked, key, matches)
    return _checked[key]


def _compiles_to(code: CodeType, text: str) -> bool:
    try:
        with _ignored():
            stack = [compile(text, code.co_filename, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return False
    while stack:
        one = stack.pop()
        if (one.co_qualname, one.co_firstlineno, one.co_code, one.co_names, one.co_varnames) == (
            code.co_qualname,
            code.co_firstlineno,
            code.co_code,
            code.co_names,
            code.co_varnames,
        ):
            return True
        stack += [held for held in one.co_consts if isinstance(held, CodeType)]
    return False


# ---------------------------------------------------------------- parsing no more than needed


def _parts(code: CodeType, lines: list[str], where: tuple[int, int, int, int]) -> Iterator[tuple[int, int]]:
    """Ranges of lines [first, last] that may be parsed: the file, the function, the statement at its left edge."""
    private = any("__" in line for line in lines[where[0] - 1 : where[1]])
    if len(lines) <= (_NAMES if private else WHOLE):
        yield 1, len(lines)
        return
    if code.co_name.isidentifier() and code.co_firstlineno <= where[0]:
        yield code.co_firstlineno, _end_of_block(lines, code.co_firstlineno, where[1])
    first = where[0]
    for _ in range(5):
        while first > 1 and not _is_edge(lines[first - 1]):
            first -= 1
        last = where[1]
        while last < len(lines) and not _is_edge(lines[last]):
            last += 1
        yield first, last
        if first == 1:
            return
        first -= 1


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _is_edge(line: str) -> bool:
    """Whether a statement of the module may begin here."""
    return bool(line.strip()) and line[0] not in " \t#)]}\r\n" and not line.startswith(("el", "except", "finally"))


def _end_of_block(lines: list[str], first: int, at_least: int) -> int:
    depth, last, inside = _indent(lines[first - 1]), first, False
    for number in range(first, len(lines) + 1):
        line = lines[number - 1]
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if _indent(line) > depth:
            inside = True
        elif inside and number > at_least and line.lstrip()[0] not in ")]}":
            break
        last = number
    return last


# Escapes that no string has, and numbers that run into a word: what a parser warns of.
_ODD = re.compile(
    r"""\\(?:[\\\n\r'"abfnrtvxNuU0-3]|[4-7](?![0-7]{2})|(.))|\b[0-9]\w*(if|or|and|in|is|else|for|not)\b"""
)


def _no_warnings(text: str) -> contextlib.AbstractContextManager[Any]:
    """Without the warnings of the parser, which were given when the user's code was compiled.

    Only where there are some, since to change the filters makes all of the user's own warnings appear once more.
    """
    if not any(found[1] or found[2] for found in _ODD.finditer(text)):
        return contextlib.nullcontext()
    return _ignored()


@contextlib.contextmanager
def _ignored() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _parse(filename: str, lines: list[str], first: int, last: int) -> ast.AST | None:
    text = "".join(lines[first - 1 : last])
    key = (filename, first, hash(text))
    if key in _trees:
        return _trees[key]
    shift = first - 1
    if _indent(lines[first - 1]):
        text, shift = "if 1:\n" + text, shift - 1
    tree: ast.AST | None
    try:
        with _no_warnings(text):
            tree = ast.parse("\n" * shift + text)  # so that nodes have the lines of the file, without a walk over them
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    if tree is not None and shift < 0:
        ast.increment_lineno(tree, shift)
    return _remember(_trees, key, tree)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- the node of an instruction


def _descend(tree: ast.AST, where: tuple[int, int, int, int], kinds: tuple[type[ast.AST], ...]) -> list[ast.AST] | None:
    """The nodes from the tree down to the one that the position is that of."""
    line, last, _, _ = where
    stack: list[tuple[ast.AST, list[ast.AST]]] = [(tree, [tree])]
    while stack:
        node, path = stack.pop()
        if isinstance(node, kinds) and _is_at(node, where):
            return path
        for child in ast.iter_child_nodes(node):
            begin, end = getattr(child, "lineno", None), getattr(child, "end_lineno", None)
            for decorator in getattr(child, "decorator_list", ()):
                begin = min(begin or line, decorator.lineno)
            if begin is None or end is None or (begin <= line and last <= end):
                stack.append((child, [*path, child]))
    return None


def _is_at(node: Any, where: tuple[int, int, int, int]) -> bool:
    line, last, column, end = where
    if (node.end_lineno, node.end_col_offset) != (last, end):
        return False
    if (node.lineno, node.col_offset) == (line, column):
        return True
    # A method call that spans lines begins, for the interpreter, at the name of the method.
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and line == node.func.end_lineno


def file_name(filename: str) -> str:
    """A file as messages show it: relative when it is below the working directory; a notebook cell by its number."""
    if filename.startswith("<ipython-input-"):
        return f"cell In[{filename.split('-')[2]}]"
    if "ipykernel_" in filename and (cell := _cell(filename)):
        return cell
    try:
        return _relative(filename, os.getcwd())
    except (ValueError, OSError):
        return filename


def _cell(filename: str) -> str | None:
    """ "cell In[3]" for the file that a Jupyter kernel makes of a cell."""
    try:
        kind, name = sys.modules["IPython"].get_ipython().compile.format_code_name(filename)
    except Exception:  # no such kernel, or another version of it
        return None
    return f"{kind.lower()} {name}"


@functools.lru_cache(64)
def _relative(filename: str, directory: str) -> str:
    relative = os.path.relpath(filename, directory)
    return filename if filename.startswith("<") or relative.startswith("..") else relative
