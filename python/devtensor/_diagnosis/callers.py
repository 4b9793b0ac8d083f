"""Where the callers of the failing line had an operand: their own variable, or the call that made it.

An array comes into a library's layer by the name x. The caller knows it by another name, and there it is to be
converted. That holds where each function on the way only looks at it before the failing line (reads.py).
"""

from __future__ import annotations

import ast
import functools
import os
import sys
import sysconfig
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

from devtensor._diagnosis import arrays, expressions, origins, places, sources, variables
from devtensor._diagnosis.facts import Fact, Failure
from devtensor._diagnosis.reads import ARITHMETIC, FORMS, UNARY, Reads, arguments_of, root
from devtensor._diagnosis.sources import Site
from devtensor._diagnosis.variables import MISSING, resolve
from devtensor._errors import Step

_DEPTH = 64
_OPS = {"device": UNARY | ARITHMETIC, "dtype": FORMS, "shape": set[str]()}


class Held(NamedTuple):
    """An operand as a caller wrote it, and where.

    direct: it is the operand itself, and not what the operand was made of. sure: converted there, the failing line
    passes as well.
    """

    frame: FrameType
    site: Site
    node: ast.expr
    text: str
    direct: bool
    sure: bool

    @property
    def place(self) -> str:
        return f"{sources.file_name(self.frame.f_code.co_filename)}:{self.frame.f_lineno}"


@functools.cache
def _libraries() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple({os.path.join(path, "") for path in map(sysconfig.get_path, names) if path})


def is_library(filename: str) -> bool:
    """Whether a file is one of an installed library, and not the user's own."""
    return filename.startswith(("<frozen", *_libraries())) or f"{os.sep}site-packages{os.sep}" in filename


def _is_of_module(frame: FrameType) -> bool:
    """Whether a frame runs a method of a Module."""
    code = frame.f_code
    held = variables.variable(frame, code.co_varnames[0]) if code.co_argcount else MISSING
    classes = type(held).__mro__ if variables.module_tables(held) else ()
    return any(getattr(vars(one).get(code.co_name), "__code__", None) is code for one in classes)


def options(failure: Failure, names: set[str]) -> dict[str, Any]:
    """What else the call inside of the failing line was given, such as groups: as the layer that runs has it, or the
    function of the library that was called."""
    frame: FrameType | None = failure.innermost or sys._getframe()
    found: dict[str, Any] = {}
    while frame is not None and frame is not failure.frame:
        code = frame.f_code
        if _is_of_module(frame):
            own = variables.instance_dict(variables.variable(frame, code.co_varnames[0]))
            return {name: own[name] for name in names if name in own}
        if arrays.is_of_library(frame.f_globals.get(code.co_name)):
            found = {name: variables.variable(frame, name) for name in names.intersection(arguments_of(code))}
        frame = frame.f_back
    return found


def steps_of(array: Any) -> tuple[Step, ...]:
    return tuple(one.step for one in arrays.steps(array))


def find(failure: Failure, fact: Fact, what: str) -> list[Held]:
    """The variables or expressions of the user's that the operand came from, through calls of Modules and of libraries,
    the outermost last; none where it is known here alone. what: the property that is disputed."""
    return list(_Way(failure, fact, what).outwards())


class Users(NamedTuple):
    """A call in the user's own code, and an array that is given there, where that is known."""

    frame: FrameType
    site: Site
    call: expressions.Call
    node: ast.expr | None
    array: Any


def in_the_users_words(failure: Failure, fact: Fact, frame: FrameType) -> Users | None:
    """The nearest line of the user's own from which a library's line in a frame was reached, and what is given there
    that the operand is, or was made of."""
    from devtensor._diagnosis import _caller

    outer: FrameType | None = frame
    while outer is not None and is_library(outer.f_code.co_filename):
        outer = _caller(outer.f_back)
    site = sources.locate(outer) if outer is not None else None
    call = expressions.read(outer, site) if outer is not None and site is not None else None
    if outer is None or site is None or call is None:
        return None
    node, array = _Way(failure, fact, "device").given(outer, site, call, None) or (None, fact.object)
    if node is None:  # made in the call itself: plt.plot(net(x))
        given = [part for one in call.arguments for part in getattr(one.node, "elts", (one.node,))]
        new = [node for node in given if resolve(outer, node, site.owner) is MISSING and isinstance(node, _MADE)]
        file = outer.f_code.co_filename
        lines = {step.lineno for step in fact.history if step.filename == file and not step.elided}
        if len(new) == 1 and any(new[0].lineno <= line <= (new[0].end_lineno or 0) for line in lines):
            node = new[0]
    return Users(outer, site, call, node, array)


_MADE = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Subscript, ast.Attribute)


class _Way:
    """From the failing line outwards, call by call, with the array that was handed on."""

    def __init__(self, failure: Failure, fact: Fact, what: str) -> None:
        self.fact, self.what = fact, what
        self.frame, self.site = failure.frame, failure.site
        self.call = failure.call
        self.array, self.node = fact.object, fact.node
        self.sure, self.crossed = True, False
        self.lines: list[tuple[str, int, int]] = []  # of the functions that were looked at, before where they stand

    def outwards(self) -> Iterator[Held]:
        if self.frame is None or self.site is None or self.array is None:
            return
        if self.node is None:  # what a Module has made of what it was given here
            if self.call is None or expressions.called_module(self.frame, self.site) is None:
                return
            made = self.given(self.frame, self.site, self.call, None)
            if made is None:
                return
            self.node, self.array = made
            if not is_library(self.frame.f_code.co_filename):
                yield self._held()
        for _ in range(_DEPTH):
            if not self._outwards():
                break
            if self.crossed and not is_library(self.frame.f_code.co_filename):
                yield self._held()

    def _held(self) -> Held:
        assert self.frame is not None and self.site is not None and self.node is not None
        direct = self.array is self.fact.object
        sure = self.sure and (direct or self._is_made_of(self.array) is True)
        return Held(self.frame, self.site, self.node, self.site.text(self.node), direct, sure)

    def _outwards(self) -> bool:
        """Goes on to the caller, where that has the array."""
        from devtensor._diagnosis import _caller

        inner, inner_site, node = self.frame, self.site, self.node
        assert inner is not None and inner_site is not None and node is not None
        outer = _caller(inner.f_back)
        place = sources.locate(outer) if outer is not None else None
        call = expressions.read(outer, place) if outer is not None and place is not None else None
        if outer is None or place is None or call is None:
            return False
        made = self.given(outer, place, call, inner)
        if made is None:
            return False
        if self.sure:
            self.sure = self._only_read(inner, inner_site, node, made[1])
        self.crossed = _is_of_module(inner) or is_library(inner.f_code.co_filename)
        self.lines.append((inner.f_code.co_filename, inner.f_code.co_firstlineno, inner.f_lineno))
        self.frame, self.site, self.node, self.array = outer, place, *made
        return True

    def given(
        self, frame: FrameType, site: Site, call: expressions.Call, inner: FrameType | None
    ) -> tuple[ast.expr, Any] | None:
        """The argument that is the array, or that it was made of, and that array."""
        if type(site.node) is not ast.Call:
            return None
        own = site.node.func.value if isinstance(site.node.func, ast.Attribute) else None
        given = [argument.node for argument in call.arguments if argument.node is not own]
        unnamed = [expressions.Argument(None, node, False) for node in given]
        named = expressions.match(frame, site, call._replace(arguments=unnamed), "", self.array)
        if named is not None:
            return named, self.array
        for held, node in expressions.passed(frame, site, call, inner):
            if held is self.array:
                return node, held
        made = [pair for node in given for pair in self._entries(node, resolve(frame, node, site.owner))
                if arrays.is_plain_array(pair[1]) and self._is_made_of(pair[1]) is not None]  # fmt: skip
        return made[0] if len(made) == 1 else None

    def _entries(self, node: ast.expr, held: Any) -> list[tuple[ast.expr, Any]]:
        """The expression with what it holds, or the entries of a list, a tuple or a dictionary."""
        if type(held) not in (list, tuple, dict):
            return [(node, held)]
        entries = held.items() if type(held) is dict else enumerate(held)
        text = ast.unparse(node)
        return [(expressions.synthetic(f"{text}[{key!r}]"), one) for key, one in list(entries)[:64]]

    def _is_made_of(self, array: Any) -> bool | None:
        """Whether the operand was surely made of array alone; None where its steps do not lead there."""
        steps = steps_of(array)
        full = self.fact.history
        more = len(full) - len(steps)
        if more <= 0 or not steps or full[more:] != steps or any(step.elided for step in full[:more]):
            return None
        if self.what != "shape" and origins.deciding(full, self.what) < more:
            return None
        ops, what = _OPS[self.what], self.what
        return what != "shape" and all(
            getattr(step, what) == getattr(array, what)
            and step.action in ops
            and (step.action not in ARITHMETIC | {"getitem"} or self._was_looked_at(step))
            for step in full[:more]
        )

    def _was_looked_at(self, step: Step) -> bool:
        """Whether a step stands in a function whose reads are known, where it has no other array."""
        return any(step.filename == file and first <= step.lineno < last for file, first, last in self.lines)

    def _only_read(self, frame: FrameType, site: Site, node: ast.expr, array: Any) -> bool:
        """Whether the function of a frame has it from its caller, and only looks at it before."""
        name, reads = root(node), Reads(frame, site, self.what, _OPS[self.what])
        if name is None and isinstance(node, ast.expr):
            names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        else:
            names = {name} if name is not None else set()
        seeds = {one for one in arguments_of(frame.f_code) if self._holds(variables.variable(frame, one), array)}
        if not seeds:
            seeds = names & set(arguments_of(frame.f_code))
        return bool(seeds) and reads.spread(seeds) and bool(names & reads.names)

    def _holds(self, value: Any, array: Any, depth: int = 2) -> bool:
        if value is array or value is self.fact.object:
            return True
        if arrays.is_plain_array(value):
            if self.what != "shape" and getattr(value, self.what) != getattr(array, self.what):
                return False  # it was converted already
            steps = steps_of(array)
            return bool(steps) and steps_of(value)[-len(steps) :] == steps
        entries = list(value.values()) if type(value) is dict else value if type(value) in (list, tuple) else ()
        return depth > 0 and any(self._holds(one, array, depth - 1) for one in entries[:64])


# ---------------------------------------------------------------- made without a device

_MAKERS = {
    "arange", "array", "as_tensor", "asarray", "empty", "eye", "full", "linspace", "normal", "ones", "rand", "randint",
    "randn", "randperm", "tensor", "zeros",
}  # fmt: skip
SHARING = {"from_numpy", "asarray", "as_tensor", "from_dlpack", "frombuffer"}  # the memory of something else


def is_maker(frame: FrameType, node: ast.expr) -> bool:
    """Whether an expression is a call of a function that makes a new array."""
    func = node.func if isinstance(node, ast.Call) else None
    name = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
    return name in _MAKERS - SHARING and arrays.is_of_library(resolve(frame, func))


class Made(NamedTuple):
    """A call that made an operand where no device was said, such as torch.arange(n), and the same call with one."""

    frame: FrameType
    site: Site
    node: ast.Call
    text: str


def made(failure: Failure, fact: Fact, held: Held | None, device: str) -> Made | None:
    """The call, in a function on the stack, that made an operand on the cpu; None where it is not sure that with the
    device of the others the failing line passes. held: where a caller had the operand, if it may be converted there."""
    history = fact.history
    i = origins.deciding(history, "device")
    if i < 0 or str(fact.device) != "cpu" or history[i].action not in _MAKERS or not history[i].filename:
        return None
    if any(step.elided or step.action not in UNARY - {"getitem"} for step in history[:i]):
        return None
    known = [(failure.frame, failure.site, fact.node)]
    if held is not None and held.frame is not failure.frame:
        known.append((held.frame, held.site, held.node))
    for frame, site, node in known:
        if frame is None or site is None or frame.f_code.co_filename != history[i].filename:
            continue
        call = _maker(frame, site, history[i])
        if call is None:
            continue
        given = node if node is not None else site.node
        here = any(one is call for one in ast.walk(given)) and (node is not None or call in getattr(given, "args", ()))
        value = _device(failure, frame, site, device, here)
        if here or (not isinstance(value, ast.Constant) and _is_only_read(frame, site, call)):
            place = f'"{device}"' if isinstance(value, ast.Constant) else ast.unparse(value)
            return Made(frame, site, call, places.with_keyword(site, call, "device", place))
    return None


def _maker(frame: FrameType, site: Site, step: Step) -> ast.Call | None:
    """The one call on the line of a step that is the step's action: in the failing expression, or in the function."""
    around = [site.node]
    functions = [one for one in site.path if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    if functions and functions[-1].name == frame.f_code.co_name:
        around.append(functions[-1])
    found = {
        one: None
        for tree in around
        for one in ast.walk(tree)
        if isinstance(one, ast.Call) and one.lineno == one.end_lineno == step.lineno and _makes(frame, one, step.action)
    }
    if len(found) != 1:
        return None
    call = next(iter(found))
    told = any(keyword.arg in ("device", None) for keyword in call.keywords)
    return None if told or any(isinstance(one, ast.Starred) for one in call.args) else call


def _makes(frame: FrameType, call: ast.Call, action: str) -> bool:
    return arrays.makes(resolve(frame, call.func), action)


def _is_only_read(frame: FrameType, site: Site, call: ast.Call) -> bool:
    """Whether what a call makes goes to a variable that is only looked at before the failing line."""
    reads = Reads(frame, site, "device", UNARY)
    return call in reads.parents and reads.follow(call)


def _device(failure: Failure, frame: FrameType, site: Site, device: str, here: bool) -> ast.expr:
    """x.device, of an array that is there when the call is made, else the name of the device."""
    own = arguments_of(frame.f_code) if frame.f_code.co_flags & 0x01 else ()
    kept = [name for name in own if name not in expressions.rebound(frame.f_code)]
    nodes = [fact.node for fact in failure.facts if fact.node is not None] if frame is failure.frame else []
    for node in nodes:
        if isinstance(node, ast.Name | ast.Attribute) and not getattr(node, "synthetic", False):
            if (here or root(node) in kept) and _is_on(resolve(frame, node, site.owner), device):
                return ast.Attribute(node, "device")
    for name in kept:
        if _is_on(variables.variable(frame, name), device):
            return ast.Attribute(ast.Name(name), "device")
    return ast.Constant(device)


def _is_on(value: Any, device: str) -> bool:
    return arrays.is_array(value) and str(value.device) == device
