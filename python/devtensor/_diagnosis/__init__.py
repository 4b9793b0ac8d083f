"""Explains a refusal: which variable, the line that made it so, and what to type.

Runs when an error is raised and at no other time. It looks and never touches: no property, no __repr__, no import of
the user's is run, no frame or array is kept, and whatever goes wrong here leaves the error as it was.
"""

from __future__ import annotations

import ast
import linecache
import os
import re
import sys
import threading
import warnings
from types import CodeType, FrameType
from typing import Any

from devtensor import _C
from devtensor._diagnosis import arrays, callers, expressions, fixes, gradients, notes, origins, sources, variables
from devtensor._diagnosis.devices import device_notes, fault_notes
from devtensor._diagnosis.facts import Fact, Failure, is_ndarray
from devtensor._dtypes import autocast
from devtensor._errors import Operand, Step

_OWN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_PROGRAMS = os.path.join(_OWN, "digits", "")
_C._set_own_directory(_OWN)

_detail = "full"
_busy = threading.local()


def set_error_detail(detail: str) -> None:
    """How much errors say: "full" adds notes below the message, "short" leaves the one line.

    Raises ValueError for other words.

    >>> dt.set_error_detail("short")
    >>> dt.set_error_detail("full")
    """
    global _detail
    if detail not in ("full", "short"):
        raise ValueError(f'set_error_detail(): argument \'detail\' must be "full" or "short", not {_C._shown(detail)}')
    _detail = detail


def get_error_detail() -> str:
    """ "full" or "short".

    >>> dt.get_error_detail()
    'full'
    """
    return _detail


def is_own(filename: str) -> bool:
    """Whether a file is one of devtensor's own; its programs are users of it."""
    return (filename.startswith(_OWN) and not filename.startswith(_PROGRAMS)) or arrays.is_own(filename)


def warn_at(frame: FrameType | None, warning: Warning) -> None:
    """Gives a warning at the line where a frame of the user's stands, once a line."""
    if frame is None:
        warnings.warn(warning, stacklevel=2)
        return
    space = frame.f_globals
    warnings.warn_explicit(
        warning,
        type(warning),
        frame.f_code.co_filename,
        frame.f_lineno,
        space.get("__name__", "<unknown>"),
        space.setdefault("__warningregistry__", {}),  # which makes it once a line
    )


def operands_of(given: tuple[tuple[Any, ...], ...]) -> tuple[Operand, ...]:
    """The operands without anything that has to be looked up."""
    return tuple(Operand(name, None, shape, dtype, device, None) for name, shape, dtype, device, *_ in given)


def written(frame: FrameType, array: Any) -> tuple[str | None, str | None]:
    """How the caller in a frame wrote an array, and the path from there where it belongs to a Module. Never raises."""
    fact = Fact("input", (), None, None, (), array)
    failure = Failure("", "", "", [fact], 0)
    try:
        _find_expressions(failure, frame)
        return (fact.owner.expression, fact.owner.path) if fact.owner is not None else (fact.expression, None)
    except Exception:
        return None, None


def explain(error: Any, given: tuple[tuple[Any, ...], ...], culprit: int, about: Any = None) -> None:
    """Completes an error: operands, culprit, fix, notes. Never raises.

    about is a NumPy array among the operands, or the Node whose gradient failed.
    """
    if getattr(_busy, "now", False):
        return
    _busy.now = True
    try:
        _explain(error, given, culprit, about)
    except Exception:  # an explanation that fails must not hide what it explains
        pass
    finally:
        _busy.now = False


def _explain(error: Any, given: tuple[tuple[Any, ...], ...], culprit: int, about: Any) -> None:
    facts = [_fact(*one) for one in given]
    if is_ndarray(about) and facts:
        facts, culprit = _with_numpy(facts[0], about, error.op)
    failure = Failure(error.op or "", error.code or "", str(error), facts, culprit, about=about)
    try:
        _complete(error, failure)
    finally:
        for fact in facts:  # nothing of the caller's stays behind
            fact.object = fact.node = fact.owner = None
        failure.frame = failure.site = failure.call = failure.held = failure.about = failure.innermost = None


def _fact(name: str, shape: tuple[int, ...], dtype: Any, device: Any, steps: Any, held: Any) -> Fact:
    """An operand as the compiled part gives it; of what is no DeviceArray it gives nothing but the object."""
    if dtype is None and is_ndarray(held):
        shape, dtype, device = held.shape, held.dtype, _C.device("cpu")
    return Fact(name, shape, dtype, device, tuple(Step(*step) for step in steps), autocast.original(held))


def _with_numpy(ours: Fact, foreign: Any, op: str) -> tuple[list[Fact], int]:
    """Both sides of an operator that met a NumPy array, in their order; the NumPy one is the culprit."""
    second = "value" if op == "setitem" else "index" if op == "getitem" else "other"
    first = ours.name == "input"
    theirs = Fact(second if first else "input", foreign.shape, foreign.dtype, _C.device("cpu"), (), foreign)
    return ([ours, theirs], 1) if first else ([theirs, ours], 0)


_LATE = re.compile(r"(?<=; the call is at )(.+):(\d+)$")


def _tell_late(error: Any, failure: Failure) -> None:
    """Of a call that a later one tells of: its line; the operand of the later one has nothing to do with it."""
    found = _LATE.search(failure.message)
    if found is None:
        return
    where = f"{sources.file_name(found[1])}:{found[2]}"
    error.args = (_LATE.sub(lambda _: where, failure.message),)
    text = linecache.getline(found[1], int(found[2])).strip()
    failure.late = f"  {text}  {where}" if text else f"  {where}"
    failure.facts, failure.culprit = [], -1


def _complete(error: Any, failure: Failure) -> None:
    _tell_late(error, failure)
    try:
        _find_expressions(failure)
        _vote(failure)
        fixes.blame(failure)
    except Exception:
        failure.site = failure.call = None
    what = notes.disputed(failure.code)
    error.operands = tuple(
        Operand(f.name, f.expression, f.shape, f.dtype, f.device, origins.origin(f.history, what), f.history)
        for f in failure.facts
    )
    error.culprit = error.operands[failure.culprit] if failure.culprit >= 0 else None
    account, fix = None, None
    try:
        account = gradients.account(failure)
        fix = fixes.propose(failure) if account is None or account.fix is None else account.fix
    except Exception:
        fix = None
    if fix is not None:
        error.fix, error.fix_at, error.fix_how, error.fix_of = fix
    if account is not None:
        account.complete(error)
    if _detail == "full":
        if failure.code == "device-not-available":
            text = device_notes(error)
        elif failure.code == "out-of-memory":
            from devtensor._diagnosis.memory import memory_notes

            text = memory_notes(error)
        elif failure.code == "cuda-error":
            text = fault_notes(error)
        elif failure.code in ("kernel-argument", "stream-race"):
            text = notes.notes(failure, fix)
        elif account is not None:
            text = account.notes(failure, error)
        else:
            text = notes.notes(failure, fix) if failure.facts or failure.late else []
        for note in text:
            error.add_note(note)


# ---------------------------------------------------------------- the caller


def _caller(frame: FrameType | None) -> FrameType | None:
    """The nearest frame outside devtensor's own files."""
    while frame is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _called(caller: FrameType, code: CodeType | None, innermost: FrameType | None) -> FrameType | None:
    """The frame of the function with this code below the caller, else the one that the caller called."""
    frame: FrameType | None = innermost or sys._getframe()
    first = found = None
    while frame is not None and frame is not caller:
        first = frame
        found = frame if frame.f_code is code else found
        frame = frame.f_back
    return first if found is None else found


def _find_expressions(failure: Failure, frame: FrameType | None = None) -> None:
    failure.frame = frame = _caller(frame or failure.innermost or sys._getframe())
    if frame is None:
        return
    if failure.code in fixes.HOST and callers.is_library(frame.f_code.co_filename):
        (fact,) = failure.facts
        found = callers.in_the_users_words(failure, fact, frame)
        if found is not None:
            failure.frame, failure.site, failure.call, fact.node, array = found
            fact.expression = found.site.text(found.node) if found.node is not None else None
            fact.object, fact.history = array, callers.steps_of(array)
            fact.shape, fact.dtype, fact.device = tuple(array.shape), array.dtype, array.device
            return
    asked = sources.instruction(frame) if failure.op in expressions.IMPLICIT else "CALL"
    implicit = "CALL" not in asked
    failure.site = site = sources.locate(frame, expressions.ASKING if implicit else sources.EXPRESSIONS)
    if site is None:
        _find_names(failure, frame)
        return
    failure.call = call = expressions.read_implicit(frame, site, asked) if implicit else expressions.read(frame, site)
    if call is None:
        return
    code = expressions.code_of(call.callee) or expressions.forward_of(call.callee)
    passed = expressions.passed(frame, site, call, _called(frame, code, failure.innermost))
    for fact in failure.facts:
        fact.node = expressions.match(frame, site, call, fact.name, fact.object)
        if fact.node is None:
            fact.node = next((node for held, node in passed if held is fact.object), None)
        if fact.node is not None:
            part = failure.op == "setitem" and fact.name == "input" and not _is_whole(fact)
            fact.expression = site.text(site.node if part else fact.node)
    if any(map(_may_be_owned, failure.facts)):
        _find_owners(failure, frame, site)


def _find_names(failure: Failure, frame: FrameType) -> None:
    """Without the source, as below %%time or in exec(): the one variable of the code that is the operand."""
    names = {*frame.f_code.co_names, *variables.fast_names(frame.f_code)}
    held = {name: variables.variable(frame, name) for name in sorted(names)}
    for fact in failure.facts:
        found = [name for name, value in held.items() if value is fact.object]
        if fact.object is not None and len(found) == 1:
            fact.expression = found[0]


def _is_whole(fact: Fact) -> bool:
    """False for x[0] = y, where the operand is a part of x."""
    return not arrays.is_array(fact.object) or tuple(fact.object.shape) == fact.shape


def _may_be_owned(fact: Fact) -> bool:
    """What no expression stands for may be in a Module; a parameter or buffer is moved with its Module anyway."""
    return fact.object is not None and (fact.node is None or arrays.is_registered(fact.object))


def _find_owners(failure: Failure, frame: FrameType, site: sources.Site) -> None:
    """Operands that are parameters or buffers of a Module: the outermost one whose call led here, by its name there,
    else the one that the failing line takes them from."""
    missing = [fact for fact in failure.facts if _may_be_owned(fact)]
    for fact in missing:
        fact.owner = _own_module(frame, site, fact)
    looked: FrameType | None = frame
    place: sources.Site | None = site
    for _ in range(64):
        if looked is None:
            break
        found = expressions.called_module(looked, place) if place is not None else None
        if found is not None:
            node, module = found
            for fact in missing:
                path = variables.inside(module, fact.object)
                if path is not None:
                    text = place.text(node) if place is not None else ""
                    fact.owner = expressions.Owner(looked, text, node, path, module)
                    fact.expression = f"{text}.{path}"
        looked = _caller(looked.f_back)
        place = sources.locate(looked) if looked is not None and missing else None
        if place is None:
            break


def _own_module(frame: FrameType, site: sources.Site, fact: Fact) -> expressions.Owner | None:
    """The Module of self.w, where that is its parameter or buffer."""
    node = fact.node
    base = variables.resolve(frame, node.value, site.owner) if isinstance(node, ast.Attribute) else None
    for table in variables.module_tables(base)[:2]:
        for path, held in table.items():
            if held is fact.object and isinstance(node, ast.Attribute):
                return expressions.Owner(frame, site.text(node.value), node.value, path, base)
    return None


def _vote(failure: Failure) -> None:
    """The parameters of one Module have one vote together, and are to blame together."""
    what = notes.disputed(failure.code)
    owned = [fact for fact in failure.facts if fact.owner is not None]
    if what == "shape" or len(owned) < 2 or failure.culprit < 0:
        return
    values = {str(getattr(fact, what)) for fact in owned}
    others = [fact for fact in failure.facts if fact.owner is None]
    if len(values) == 1 and len(others) == 1:
        odd = others[0]
        own, theirs = str(getattr(odd, what)), values.pop()
        if what == "device" and own != "cpu" and theirs == "cpu":
            odd = owned[0]
        if what == "dtype" and theirs.endswith("float64") and not own.endswith("float64"):
            odd = owned[0]
        failure.culprit = next(i for i, fact in enumerate(failure.facts) if fact is odd)
