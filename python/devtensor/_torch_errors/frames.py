"""Frames as they stood when an exception passed them: a traceback knows where, the frame may have gone on since."""

from __future__ import annotations

import ast
import collections
import dis
import functools
import inspect
import os
import sys
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from devtensor._diagnosis import sources
from devtensor._diagnosis.variables import fast_names
from devtensor._torch_errors import rebinding

# What C code of PyTorch calls back into; no user and no layer stands there.
_INSIDE = (
    "_prims", "_prims_common", "_refs", "_decomp", "_library", "_subclasses", "_ops.py", "_meta_registrations.py",
    "_jit_internal.py", "_compile.py", "library.py", os.path.join("_dynamo", "eval_frame.py"), "overrides.py",
    "_custom_op", "_higher_order_ops", "fx", "_tensor_str.py", os.path.join("utils", "_device.py"),
    os.path.join("utils", "_python_dispatch.py"), os.path.join("utils", "_contextlib.py"),
    os.path.join("autograd", "grad_mode.py"),
)  # fmt: skip


# What a handler calls that changes no attribute and no entry of an operand.
_HARMLESS = frozenset(
    "bool float format getattr hasattr int isinstance len print repr round str sum tuple type".split()
)
_HARMLESS_OF = frozenset("log logger logging os sys time traceback warnings".split())
_HARMLESS_METHODS = frozenset(
    "append critical debug dim error exception flush format info item join numel size warning write".split()
)


class At:
    """A frame and the instruction that an exception came from; real is the frame itself."""

    def __init__(self, real: FrameType, instruction: int, line: int, back: Any, stack: list[At]) -> None:
        self.real, self.f_lasti, self.f_lineno, self.f_back = real, instruction, line, back
        self.f_code: CodeType = real.f_code
        self.f_globals: dict[str, Any] = real.f_globals
        self.f_builtins: dict[str, Any] = real.f_builtins
        self.stack = stack
        self.handling = False  # the exception is being handled here, or has left the frame
        self.doubted = False  # a name was asked for that is in doubt

    @property
    def f_locals(self) -> Any:
        return self.real.f_locals

    @functools.cached_property
    def changed(self) -> frozenset[str | int]:
        return rebinding.stored_since(self.f_code, self.f_lasti, self.real.f_lasti, self.handling)

    def doubts(self, name: str) -> bool:
        """Whether a name (or an attribute, as ".name", or an entry, as "[]") can have had another value when the
        exception came."""
        code = self.f_code
        doubt = name in self.changed or (not name.isidentifier() and self._has_called_others)
        if name in code.co_cellvars or name in code.co_freevars:
            doubt = doubt or name in self._changed_around
        elif name not in code.co_varnames:
            doubt = doubt or name in self._changed_globals or (name in self._stored_beneath and self._may_vary(name))
        self.doubted = self.doubted or doubt
        return doubt

    @functools.cached_property
    def _has_called_others(self) -> bool:
        """Whether functions ran meanwhile that may change what an operand is an attribute or an entry of."""
        return not all(self._is_harmless(one) for one in self.changed if isinstance(one, int))

    def _is_harmless(self, instruction: int) -> bool:
        site = sources.locate(sources.Place(self.f_code, instruction, self.f_globals), (ast.Call,))
        func = site.node.func if site is not None and isinstance(site.node, ast.Call) else None
        if isinstance(func, ast.Attribute):
            root: ast.expr = func.value
            while isinstance(root, ast.Attribute):
                root = root.value
            return func.attr in _HARMLESS_METHODS or (isinstance(root, ast.Name) and root.id.lower() in _HARMLESS_OF)
        return isinstance(func, ast.Name) and func.id in _HARMLESS

    def _may_vary(self, name: str) -> bool:
        return not isinstance(self.f_globals.get(name), ModuleType | FunctionType | type)

    @property
    def _names_changed(self) -> frozenset[str]:
        return frozenset(name for name in self.changed if isinstance(name, str))

    @functools.cached_property
    def _changed_around(self) -> set[str]:
        """By functions around or inside of this one, whose variables those are too."""
        shared = ((one._names_changed, (*one.f_code.co_cellvars, *one.f_code.co_freevars)) for one in self.stack)
        return {name for changed, names in shared for name in changed.intersection(names)}

    @functools.cached_property
    def _changed_globals(self) -> set[str]:
        same = [one for one in self.stack if one.f_globals is self.f_globals]
        return {name for one in same for name in one._names_changed.difference(fast_names(one.f_code))}

    @functools.cached_property
    def _stored_beneath(self) -> frozenset[str]:
        """What the module stores, where it has run on since the function that it called caught the exception."""
        if any(one.f_globals is self.f_globals and _is_module_level(one.f_code) for one in self.stack):
            return frozenset()  # its own place is known
        beneath: FrameType | None = self.stack[0].f_back if self._has_been_left else None
        while beneath is not None and not (beneath.f_globals is self.f_globals and _is_module_level(beneath.f_code)):
            beneath = beneath.f_back
        stored = rebinding.all_stored(beneath.f_code) if beneath is not None else frozenset()
        return frozenset(name for name in stored if isinstance(name, str))

    @functools.cached_property
    def _has_been_left(self) -> bool:
        """Whether the frame that caught the exception has gone, so that those beneath it have run on."""
        frame: FrameType | None = sys._getframe()
        while frame is not None and frame is not self.stack[0].real:
            frame = frame.f_back
        return frame is None and not self.stack[0].handling


def _is_module_level(code: CodeType) -> bool:
    return not code.co_flags & inspect.CO_OPTIMIZED


def folder() -> str | None:
    """Where the PyTorch that was imported lies, with the separator."""
    torch = sys.modules.get("torch")
    file = getattr(torch, "__file__", None)
    return os.path.join(os.path.dirname(file), "") if isinstance(file, str) else None


def is_torch(filename: str) -> bool:
    where = folder()
    return where is not None and filename.startswith(where)


def is_inside(filename: str) -> bool:
    where = folder()
    if where is None or not filename.startswith(where):
        return False
    rest = filename[len(where) :]
    if rest == "__init__.py":  # torch._check
        return True
    return any(rest == one or rest.startswith(one + os.sep) for one in _INSIDE)


def stack(error: BaseException, left: BaseException | None = None) -> list[At]:
    """The frames of an exception, the outermost first, each with the one that called it.

    left is the exception that nothing has caught.
    """
    found: list[At] = []
    trace, back = error.__traceback__, None
    if trace is not None:
        back = trace.tb_frame.f_back
    while trace is not None and len(found) < 1000:
        found.append(At(trace.tb_frame, trace.tb_lasti, trace.tb_lineno, found[-1] if found else back, found))
        trace = trace.tb_next
    times = collections.Counter(one.real for one in found)
    for i, one in enumerate(found):
        straight = i > 0 and one.real.f_back is found[i - 1].real
        one.handling = times[one.real] == 1 and (straight or _is_within(error, left) or _is_within(error))
    return found


def _is_within(error: BaseException, latest: BaseException | None = None) -> bool:
    """Whether an exception is being handled, perhaps with others that came meanwhile."""
    one = latest if latest is not None else sys.exception()
    for _ in range(16):
        if one is None or one is error:
            break
        one = one.__context__
    return one is error


def raises(frame: At) -> bool:
    """Whether a raise statement stands at the place, and no call of C code."""
    return "RAISE" in dis.opname[frame.f_code.co_code[frame.f_lasti]]
