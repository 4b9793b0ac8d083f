"""Where a fix can be written: a statement on a line of its own, or text in the place of an expression."""

from __future__ import annotations

import ast
import inspect
import sys
import types
from types import FrameType
from typing import Any

from devtensor._diagnosis.facts import Fix
from devtensor._diagnosis.sources import Site
from devtensor._diagnosis.variables import MISSING, attribute, entry, instance_dict, is_a, module_tables, resolve
from devtensor._errors import Origin

_NESTED = ("<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
_INNER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def statement_of(site: Site) -> tuple[int, ast.AST]:
    """The innermost statement around a site, and its place in the path."""
    start = max((i for i, outer in enumerate(site.path) if isinstance(outer, ast.stmt)), default=0)
    return start, site.path[start]


def line_before(site: Site) -> int | None:
    """The line before which a new statement runs just before the one at a site; None where there is no such line:
    behind `if x:` or a semicolon on the same line, in `elif`, `except` or `case`."""
    start, statement = statement_of(site)
    if any(isinstance(outer, ast.ExceptHandler | ast.match_case) for outer in site.path[start:]):
        return None
    decorators = getattr(statement, "decorator_list", ())
    number = min((one.lineno for one in (statement, *decorators)), default=0)
    if not 0 < number <= len(site.lines):
        return None
    line, above = site.lines[number - 1].lstrip(), site.lines[number - 2].rstrip() if number > 1 else ""
    column = getattr(statement, "col_offset", 0)
    begins = bool(decorators) or not site.lines[number - 1].encode()[:column].strip()
    return None if not begins or line.startswith("elif") or above.endswith("\\") else number


def before(frame: FrameType, site: Site, text: str) -> Fix | None:
    """A new statement before the one at a site."""
    line = line_before(site)
    return Fix(text, Origin("call", frame.f_code.co_filename, line)) if line is not None else None


def instead(frame: FrameType, site: Site, node: ast.expr, value: str) -> Fix | None:
    """A value in the place of an expression; with the op around it where the expression alone stands on its line twice;
    None where that does so too."""
    node = _written(site, node) if getattr(node, "synthetic", False) else node
    if '"' in value and sys.version_info < (3, 12) and any(isinstance(one, ast.JoinedStr) for one in site.path):
        return None  # the quotes of the f-string end there
    at = Origin("call", frame.f_code.co_filename, node.lineno)
    if len(_alike(site, node)) == 1:
        return Fix(value, at, "instead", site.text(node))
    whole = site.node
    one_line = isinstance(whole, ast.expr) and whole.lineno == whole.end_lineno == node.lineno == node.end_lineno
    if not one_line or len(_alike(site, whole)) != 1:  # type: ignore[arg-type]
        return None
    begin, end = whole.col_offset, whole.end_col_offset  # type: ignore[attr-defined]
    line = site.lines[node.lineno - 1].encode()
    if not begin <= node.col_offset <= (node.end_col_offset or 0) <= end:
        return None
    text = f"{line[begin : node.col_offset].decode()}{value}{line[node.end_col_offset : end].decode()}"
    return Fix(text, at, "instead", site.text(whole))


def with_keyword(site: Site, call: ast.Call, name: str, value: str) -> str:
    """A call as the user wrote it, with one more argument."""
    text = site.text(call)
    given = text[:-1].rstrip().removesuffix(",")
    comma = ", " if call.args or call.keywords else ""
    return f"{given}{comma}{name}={value})"


def _alike(site: Site, node: ast.expr) -> list[ast.expr]:
    """The expressions on the line of one, itself among them, that read the same."""
    text = site.text(node)
    return [
        one
        for one in ast.walk(site.path[0])
        if isinstance(one, ast.expr)
        and one.lineno == node.lineno
        and not isinstance(getattr(one, "ctx", None), ast.Store | ast.Del)
        and site.text(one) == text
    ]


def _written(site: Site, node: ast.expr) -> ast.expr:
    """What stands at a site for an expression that was made up; itself where nothing does."""
    text = ast.unparse(node)
    return next((one for one in ast.walk(site.node) if isinstance(one, ast.expr) and site.text(one) == text), node)


def is_known_before(frame: FrameType, site: Site, node: ast.expr) -> bool:
    """Whether an expression is, before the statement at a site, what it is within: the statement does not bind it."""
    if frame.f_code.co_name in _NESTED or any(isinstance(outer, _INNER) for outer in site.path):
        return False
    _, statement = statement_of(site)
    inner = statement.items if isinstance(statement, ast.With | ast.AsyncWith) else [statement]
    bound = {one.target.id for part in inner for one in ast.walk(part) if isinstance(one, ast.NamedExpr)}
    for item in inner if isinstance(statement, ast.With | ast.AsyncWith) else ():
        bound |= _stored(item)
    return line_before(site) is not None and not bound & _names(node)


def is_assignable(frame: FrameType, site: Site, node: ast.expr) -> bool:
    """Whether `node = ...`, just before the statement, changes what the statement sees."""
    if not is_known_before(frame, site, node) or _is_bound_each_turn(site, node):
        return False
    if isinstance(node, ast.Name):
        return is_own_name(frame, node.id)
    if isinstance(node, ast.Attribute):
        return _is_plain_attribute(resolve(frame, node.value, site.owner), node.attr)
    if isinstance(node, ast.Subscript):
        base, key = resolve(frame, node.value, site.owner), resolve(frame, node.slice, site.owner)
        return type(base) in (list, dict) and key is not MISSING and entry(base, key) is not MISSING
    return False


def _names(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _stored(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def _is_bound_each_turn(site: Site, node: ast.expr) -> bool:
    """Whether the condition of a while looks at what its body gives another value: before the loop, only the first
    turn would see an assignment."""
    _, statement = statement_of(site)
    if not isinstance(statement, ast.While) or site.node in statement.body:
        return False
    stored = set().union(*map(_stored, statement.body))
    return not isinstance(node, ast.Name) or node.id in stored


# What is another array when it is done twice.
_ONCE = (".T", ".mT", ".permute(", ".transpose(", ".unsqueeze(", ".squeeze(", ".argmax(", "[0]")


def comes_again(site: Site, node: ast.expr, text: str) -> bool:
    """Whether the statement may run again with what was assigned: x = x.T in a loop would turn x back."""
    if not any(part in text for part in _ONCE):
        return False
    loops = [outer for outer in site.path if isinstance(outer, ast.For | ast.While | ast.AsyncFor)]
    return bool(loops) or isinstance(node, ast.Attribute | ast.Subscript)


def is_own_name(frame: FrameType, name: str) -> bool:
    """Whether a name is a variable of the frame's own, which an assignment there changes."""
    code = frame.f_code
    if code.co_flags & inspect.CO_OPTIMIZED:
        return name in code.co_varnames or name in code.co_cellvars
    return type(frame.f_locals) is dict and name in frame.f_locals


def _is_plain_attribute(base: Any, name: str) -> bool:
    if base is MISSING or is_a(base, type):
        return False
    if is_a(base, types.ModuleType):
        return name in instance_dict(base)
    tables = module_tables(base)
    if tables and name in tables[0]:
        return False  # a Module takes nothing but another Parameter there
    plain = inspect.getattr_static(type(base), "__setattr__") is object.__setattr__ or bool(tables)
    if name.startswith("__") or not plain:
        return False
    static = inspect.getattr_static(type(base), name, MISSING)
    if type(static) is types.MemberDescriptorType:
        return True
    return name in instance_dict(base) and attribute(base, name) is instance_dict(base)[name]
