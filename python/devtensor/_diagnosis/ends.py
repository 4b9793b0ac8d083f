"""Where a gradient ends without an op that says so: arrays made of the numbers of others, and detached operands that
the history of a result does not have, since it follows one operand of each op."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from devtensor._diagnosis import arrays, variables
from devtensor._diagnosis.facts import Failure, Fix
from devtensor._errors import Origin

if TYPE_CHECKING:
    from devtensor._diagnosis.gradients import Line

NUMBERS = {"tensor", "array", "as_tensor", "asarray", "from_numpy", "full"}
_REMARK = "an array made of numbers, which have no gradient"
_HOST = ("item", "tolist", "numpy")
_CUTS = {name: f"no gradient flows through .{name}()" for name in ("detach", *_HOST)}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
_MOST = 64  # entries of a list, and statements of a function


def of_numbers(failure: Failure, line: Line) -> tuple[str, Fix | None] | None:
    """What to say of an array made of the numbers of others; None where it was not, as far as that is known."""
    node = line.site.node if line.site is not None else None
    if not isinstance(node, ast.Call) or not node.args or line.site is None:
        return None
    given, library = node.args[0], ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else None
    if isinstance(given, ast.ListComp | ast.GeneratorExp):
        return (_REMARK, None) if _read(failure, given.elt, True) else None
    held = _entries(failure, given)
    if held is not None and any(map(arrays.requires_grad, held)):
        remark = f"an array made of the numbers in {line.site.text(given)}, which have no gradient"
        if library is None or not _stack(held):
            return remark, None
        return remark, Fix(f"{library}.stack({line.site.text(given)})", line.origin("stack"), "instead",
                           line.site.text(node))  # fmt: skip
    parts = given.elts if isinstance(given, ast.List | ast.Tuple) else [given]
    found = [_read(failure, part) for part in parts]
    if not any(found):
        return None
    names = [ast.unparse(part) for part in found if part is not None]
    if len(names) < len(parts) or library is None:
        return _REMARK, None
    text = names[0] if given is parts[0] else f"{library}.stack([{', '.join(names)}])"
    return _REMARK, Fix(text, line.origin("stack"), "instead", line.site.text(node))


def asked(failure: Failure, line: Line) -> str | None:
    """What to say where nothing is known of what an array was made of; None where it surely was no array."""
    node = line.site.node if line.site is not None else None
    if not isinstance(node, ast.Call) or not node.args or line.site is None:
        return None
    given = node.args[0]
    parts = [given] if not isinstance(given, ast.List | ast.Tuple) else list(ast.walk(given))
    made = (ast.Call, ast.Name, ast.Attribute, ast.Subscript, ast.ListComp, ast.GeneratorExp)
    if not any(isinstance(part, made) and _held(failure, part) is variables.MISSING for part in parts):
        return None
    function = line.site.text(node.func)
    text, library = f"{function} keeps nothing but the numbers of what it is given", function.rpartition(".")[0]
    several = isinstance(given, ast.Name | ast.Call | ast.ListComp) and library and not function.endswith("from_numpy")
    return f"{text}: of a list of arrays, {library}.stack keeps the gradients" if several else text


def _entries(failure: Failure, node: ast.expr) -> list[Any] | None:
    """What a list or a tuple holds: one in a variable, list(...) of it, or list(d.values())."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("list", "tuple"):
        return _entries(failure, node.args[0]) if len(node.args) == 1 else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "values":
        table = _held(failure, node.func.value)
        return list(table.values())[:_MOST] if type(table) is dict else None
    held = _held(failure, node) if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) else None
    return list(held)[:_MOST] if isinstance(held, list | tuple) else None


def _stack(held: list[Any]) -> bool:
    """Whether stack takes all of them."""
    return all(map(arrays.is_array, held)) and len({(one.shape, one.dtype, one.device) for one in held}) == 1


def _held(failure: Failure, node: ast.AST) -> Any:
    return variables.resolve(failure.frame, node) if failure.frame is not None else variables.MISSING


def _read(failure: Failure, node: ast.expr, any_: bool = False) -> ast.expr | None:
    """The array whose number an expression gives: x of x, x.item() or float(x). any_: also where x is not known."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in (*_HOST, "detach"):
        return node.func.value if any_ else _read(failure, node.func.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float" and node.args:
        return _read(failure, node.args[0], any_)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "cpu":
        return _read(failure, node.func.value, any_)
    return node if arrays.is_array(_held(failure, node)) else None


# ---------------------------------------------------------------- what the history does not have


class Hidden(NamedTuple):
    """A part of a statement through which no gradient flows."""

    statement: ast.stmt
    remark: str
    fix: Fix | None


def hidden(failure: Failure, now: Line) -> Hidden | None:
    """The last x.detach(), or the like, of an x that requires a gradient, in a statement of the failing function that
    makes what the failing line is about."""
    site, frame = now.site, failure.frame
    if site is None or frame is None:
        return None
    function = next((node for node in reversed(site.path) if isinstance(node, _FUNCTIONS)), None)
    own = [node for node in ast.walk(function) if isinstance(node, ast.stmt)] if function is not None else []
    last = [node for node in site.path if isinstance(node, ast.stmt)][-1:]
    names = {one.id for statement in last for one in ast.walk(statement) if isinstance(one, ast.Name)}
    simple = [one for one in own if isinstance(one, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr)]
    made, before = last, 0
    while len(names) > before and len(made) < _MOST:
        before = len(names)
        made = [one for one in simple if one in last or names & _changes(one)]
        names |= {one.id for statement in made for one in ast.walk(statement) if isinstance(one, ast.Name)}
    for statement in sorted(made, key=lambda one: -one.lineno):
        for node, inner, remark in _cuts(statement):
            if arrays.requires_grad(_held(failure, _root(inner))):
                at = Origin("detach", frame.f_code.co_filename, node.lineno)
                fix = Fix(site.text(inner), at, "instead", site.text(node))
                known = isinstance(inner, ast.Name) and not any(name in remark for name in _HOST)
                whole = getattr(statement, "value", None) is node  # in a formula it may be meant
                return Hidden(statement, remark, fix if known and whole else None)
    return None


def _root(node: ast.AST) -> ast.AST:
    """The variable that an expression begins with: out of out.sum()."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


def _changes(statement: ast.stmt) -> set[str]:
    """The variables that a statement gives a value, adds to, or writes in place: x = ..., x += ..., x.append(...)."""
    if isinstance(statement, ast.Expr):
        call = statement.value
        base: ast.AST = call.func if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else statement
        while isinstance(base, ast.Attribute | ast.Subscript):
            base = base.value
        return {base.id} if isinstance(base, ast.Name) else set()
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]  # type: ignore
    return {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}


def _cuts(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr, str]]:
    """(whole, x, why) of each x.detach(), x.data, x.detach().numpy() in a statement."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CUTS:
            inner = node.func.value
            if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "cpu":
                inner = inner.func.value
            if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "detach":
                inner = inner.func.value
            yield node, inner, _CUTS[node.func.attr]
        if isinstance(node, ast.Attribute) and node.attr == "data":
            yield node, node.value, "no gradient flows through .data"
