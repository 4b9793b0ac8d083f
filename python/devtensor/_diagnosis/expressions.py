"""Which expression of the caller's stands for which operand.

An expression is named only when the position of the running instruction leads to it, and when it holds the very operand
as far as that can be looked up without running anything.
"""

from __future__ import annotations

import ast
import dis
import functools
import inspect
from collections.abc import Iterator, Sequence
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

from devtensor._diagnosis import arrays
from devtensor._diagnosis.sources import Site
from devtensor._diagnosis.variables import MISSING, module_tables, resolve, variable

_CONVERSIONS = (float, int, bool, len, iter)

IMPLICIT = ("bool", "iter")  # what Python asks of an array also where no call stands
ASKING = (ast.expr, ast.If, ast.While, ast.Assert, ast.For)


class Argument(NamedTuple):
    """An expression that may stand for the parameter called name (None: for any); sure: its position proves it."""

    name: str | None
    node: ast.expr
    sure: bool


class Call(NamedTuple):
    """What the source says at the failing place."""

    arguments: list[Argument]
    callee: Any  # what is called, as far as it is known
    func: ast.expr | None
    writes: bool  # in place


def synthetic(text: str) -> ast.expr:
    """An expression that stands nowhere in the source, such as an entry of what * unpacks."""
    node = ast.parse(text, mode="eval").body
    node.synthetic = True  # type: ignore[attr-defined]
    return node


# ---------------------------------------------------------------- what stands at the place


def read(frame: FrameType, site: Site) -> Call | None:
    """The arguments at a site."""
    node = site.node
    if isinstance(node, ast.Call):
        return _call(frame, site, node)
    if isinstance(node, ast.BinOp):
        return _operator([node.left, node.right], False)
    if isinstance(node, ast.AugAssign):
        return _operator([node.target, node.value], True)
    if isinstance(node, ast.UnaryOp):
        return _operator([node.operand], False)
    if isinstance(node, ast.Compare):
        if len(node.ops) == 1:
            return _operator([node.left, node.comparators[0]], False)
        return Call([Argument(None, side, False) for side in (node.left, *node.comparators)], None, None, False)
    if isinstance(node, ast.Subscript):
        return _subscript(site, node)
    if isinstance(node, ast.Attribute):
        return _attribute(site, node)
    return None


def read_implicit(frame: FrameType, site: Site, instruction: str) -> Call | None:
    """What an if, a while, a not or a for looks at; which part of an `and` it was cannot be told."""
    node: Any = site.node
    if "UNPACK" in instruction:
        outer = site.path[-2] if len(site.path) > 1 else None
        node = outer.value if isinstance(outer, ast.Assign) else None
    elif "ITER" in instruction:
        node = getattr(node, "generators", [node])[0]
        node = node.iter if isinstance(node, ast.For | ast.comprehension) else node
    elif "JUMP" in instruction or "BOOL" in instruction or "NOT" in instruction:
        node = getattr(node, "test", node)
        while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node = node.operand
        several = isinstance(node, ast.BoolOp) or (isinstance(node, ast.Compare) and len(node.ops) > 1)
        node = None if several or hasattr(node, "generators") else node
    elif "COMPARE" in instruction and isinstance(node, ast.Compare):  # it may ask its own result, as an if does
        sides = [resolve(frame, side, site.owner) for side in (node.left, *node.comparators)]
        node = node if len(sides) == 2 and any(map(arrays.is_array, sides)) else None
    else:
        node = None
    return _operator([node], False) if isinstance(node, ast.expr) else None


def _operator(sides: Sequence[ast.expr], writes: bool) -> Call:
    names = ("input", "other")
    return Call([Argument(names[i], side, True) for i, side in enumerate(sides)], None, None, writes)


def _subscript(site: Site, node: ast.Subscript) -> Call:
    alone = not isinstance(node.slice, ast.Tuple)
    arguments = [Argument("input", node.value, True), Argument("index", node.slice, alone)]
    if isinstance(node.slice, ast.Tuple):
        arguments += [Argument("index", part, False) for part in node.slice.elts]
    if isinstance(node.ctx, ast.Load):
        return Call(arguments, None, None, False)
    return Call([*arguments, *_assigned(site, node, "value")], None, None, True)


def _attribute(site: Site, node: ast.Attribute) -> Call:
    """x.grad, or what is assigned to it."""
    given = [Argument("input", node.value, True)]
    return Call([*given, *_assigned(site, node, node.attr)], None, None, False)


def _assigned(site: Site, node: ast.expr, name: str) -> Iterator[Argument]:
    for outer in reversed(site.path):
        if isinstance(outer, ast.Assign) and any(target is node for target in outer.targets):
            yield Argument(name, outer.value, True)
        if isinstance(outer, ast.AnnAssign) and outer.value is not None and outer.target is node:
            yield Argument(name, outer.value, True)


def _call(frame: FrameType, site: Site, node: ast.Call) -> Call:
    func = node.func
    callee = resolve(frame, func, site.owner)
    given = list(_given(frame, site, node))
    while type(callee) is functools.partial:
        if callee.args or callee.keywords:
            return Call([Argument(None, value, False) for _, value in given], callee, func, False)
        callee = callee.func
    signature = arrays.signature(callee)
    if signature is not None:
        return Call(_named(given, signature[0]), callee, func, signature[1])
    if any(callee is one for one in _CONVERSIONS) and len(given) == 1:
        return Call(_named(given, ("input",)), callee, func, False)
    if callee is MISSING and isinstance(func, ast.Attribute):
        names = arrays.method(resolve(frame, func.value, site.owner), func.attr, MISSING)
        if names is not None:
            receiver = Argument("input", func.value, True)
            return Call([receiver, *_named(given, names[1:])], callee, func, func.attr.endswith("_"))
    arguments = [Argument(None, value, False) for _, value in given]
    if isinstance(func, ast.Attribute):
        arguments.append(Argument(None, func.value, False))
    return Call(arguments, callee, func, False)


def _given(frame: FrameType, site: Site, node: ast.Call) -> Iterator[tuple[int | str, ast.expr]]:
    """(position or keyword, expression), as far as the positions are known."""
    place = 0
    known = True
    for value in node.args:
        if isinstance(value, ast.Starred):
            held = resolve(frame, value.value, site.owner)
            known = known and type(held) in (tuple, list)
            if known:
                text = ast.unparse(value.value)
                for i in range(min(len(held), 64)):
                    yield place + i, synthetic(f"{text}[{i}]")
                place += len(held)
        elif known:
            yield place, value
            place += 1
    for keyword in node.keywords:
        if keyword.arg is not None:
            yield keyword.arg, keyword.value
            continue
        held = resolve(frame, keyword.value, site.owner)
        if type(held) is dict:
            text = ast.unparse(keyword.value)
            for key in list(held)[:64]:
                if type(key) is str:
                    yield key, synthetic(f"{text}[{key!r}]")


def _named(given: list[tuple[int | str, ast.expr]], names: Sequence[str]) -> list[Argument]:
    found = []
    for place, node in given:
        if isinstance(place, str):
            found.append(Argument(place, node, True))
        elif place < len(names):
            found.append(Argument(names[place], node, True))
    return found


# ---------------------------------------------------------------- from operands to expressions


def match(frame: FrameType, site: Site, call: Call, name: str, wanted: Any) -> ast.expr | None:
    """The expression of the operand called name, which is the object wanted (None: not known)."""
    plain, _, rest = name.partition("[")
    if rest[:-1].isdigit():
        return _match_entry(frame, site, call, plain, int(rest[:-1]), wanted)
    exact = [argument for argument in call.arguments if argument.name == name]
    if not exact and name != "input" and isinstance(site.node, ast.BinOp | ast.AugAssign):
        exact = [argument for argument in call.arguments if argument.name == "other"]
    for argument in exact:
        held = resolve(frame, argument.node, site.owner)
        told = wanted is None or _is_same_constant(held, wanted)
        told = told or (held is MISSING and not isinstance(argument.node, ast.Tuple))  # no tuple is an array
        if held is wanted or (argument.sure and told):
            return argument.node
    if wanted is None:
        return None
    for argument in call.arguments:
        if argument not in exact and resolve(frame, argument.node, site.owner) is wanted:
            return argument.node
    for argument in call.arguments:  # what a sum is over, or kernel(grid, block, (x, y))
        entry = _entry_that_is(frame, site, argument.node, wanted)
        if entry is not None:
            return entry
    return None


def passed(frame: FrameType, site: Site, call: Call, inner: FrameType | None) -> list[tuple[Any, ast.expr]]:
    """The objects that a function of devtensor's own was called with, by what its parameters hold, and their
    expressions: also where those are calls. inner is the frame of that function."""
    if inner is None or not isinstance(site.node, ast.Call):
        return []
    code = inner.f_code
    if code_of(call.callee) is code:
        skipped = 0
    elif _is_forward(frame, site, code, inner):
        skipped = 1  # self
    else:
        return []
    names = code.co_varnames[skipped : code.co_argcount + code.co_kwonlyargcount]
    named = _named(list(_given(frame, site, site.node)), names)
    kept = [one for one in named if one.name in names and one.name not in rebound(code)]
    return [(variable(inner, str(one.name)), one.node) for one in kept]


def code_of(function: Any) -> CodeType | None:
    """The code of a function, of the one inside where decorators were put around it."""
    for _ in range(4):
        if type(function) is FunctionType and "__wrapped__" in function.__dict__:
            function = function.__dict__["__wrapped__"]
    code = getattr(function, "__code__", None)
    return code if type(code) is CodeType else None


def forward_of(module: Any) -> CodeType | None:
    """The code of forward of a Module."""
    code = getattr(inspect.getattr_static(type(module), "forward", None), "__code__", None)
    return code if type(code) is CodeType and module_tables(module) else None


_WHOLE = {"to", "cuda", "cpu", "eval", "train", "float", "double", "half", "bfloat16", "requires_grad_"}


def _is_forward(frame: FrameType, site: Site, code: CodeType, inner: FrameType) -> bool:
    """Whether what is called at a site is a Module, whose forward runs in inner."""
    func = site.node.func if isinstance(site.node, ast.Call) else None
    while isinstance(func, ast.Call):  # Net().to("cuda")(x)
        method = func.func if isinstance(func.func, ast.Attribute) and func.func.attr in _WHOLE else None
        held = resolve(frame, func.func, site.owner)
        forward = arrays.forward(held)
        if forward is not None:
            return forward is code
        func = method.value if method is not None else None
    return forward_of(resolve(frame, func, site.owner)) is code


@functools.cache
def rebound(code: CodeType) -> set[str]:
    """The variables that a function gives another value."""
    stores = [one.argval for one in dis.get_instructions(code) if "STORE_FAST" in one.opname]
    return {name for one in stores for name in ((one,) if isinstance(one, str) else one)}


def _entry_that_is(frame: FrameType, site: Site, node: ast.expr, wanted: Any) -> ast.expr | None:
    if isinstance(node, ast.Tuple | ast.List):
        return next((part for part in _entries(frame, site, node) if resolve(frame, part, site.owner) is wanted), None)
    held = resolve(frame, node, site.owner)
    if type(held) in (tuple, list):
        entries: list[tuple[Any, Any]] = list(enumerate(held[:64]))
    elif type(held) is dict:
        entries = [(key, one) for key, one in list(held.items())[:1000] if type(key) is str]
    else:
        return None
    place = next((key for key, one in entries if one is wanted), None)
    return None if place is None else synthetic(f"{ast.unparse(node)}[{place!r}]")


def _is_same_constant(held: Any, wanted: Any) -> bool:
    return type(held) is type(wanted) and type(held) in (str, int, float, bytes) and held == wanted


def _match_entry(frame: FrameType, site: Site, call: Call, name: str, index: int, wanted: Any) -> ast.expr | None:
    for argument in call.arguments:
        if argument.name not in (name, None):
            continue
        node = argument.node
        if isinstance(node, ast.Tuple | ast.List):
            entries = _entries(frame, site, node)
            if index < len(entries):
                found = entries[index]
                held = resolve(frame, found, site.owner)
                if held is wanted or (held is MISSING and argument.sure):
                    return found
            continue
        held = resolve(frame, node, site.owner)
        if type(held) in (tuple, list) and index < len(held) and held[index] is wanted:
            return synthetic(f"{ast.unparse(node)}[{index}]")
    return None


def _entries(frame: FrameType, site: Site, node: ast.Tuple | ast.List) -> list[ast.expr]:
    entries: list[ast.expr] = []
    for part in node.elts:
        if not isinstance(part, ast.Starred):
            entries.append(part)
            continue
        held = resolve(frame, part.value, site.owner)
        if type(held) not in (tuple, list):
            break
        text = ast.unparse(part.value)
        entries += [synthetic(f"{text}[{i}]") for i in range(len(held))]
    return entries


# ---------------------------------------------------------------- Modules


class Owner(NamedTuple):
    """The Module that an operand is a parameter or buffer of: its expression in a frame, and the path from there."""

    frame: FrameType
    expression: str
    node: ast.expr
    path: str
    module: Any


def called_module(frame: FrameType, site: Site) -> tuple[ast.expr, Any] | None:
    """The Module that is called at a site, directly or by one of its methods."""
    node = site.node
    if not isinstance(node, ast.Call):
        return None
    for candidate in (node.func, node.func.value if isinstance(node.func, ast.Attribute) else None):
        if candidate is not None:
            held = resolve(frame, candidate, site.owner)
            if held is not MISSING and module_tables(held):
                return candidate, held
    return None
