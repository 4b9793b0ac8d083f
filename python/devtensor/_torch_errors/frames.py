"""Frames as they stood when an exception passed them: a traceback knows where, the frame may have gone on since."""

from __future__ import annotations

import dis
import os
import sys
from types import CodeType, FrameType
from typing import Any

# What C code of PyTorch calls back into; no user and no layer stands there.
_INSIDE = (
    "_prims", "_prims_common", "_refs", "_decomp", "_library", "_subclasses", "_ops.py", "_meta_registrations.py",
    "_jit_internal.py", "_compile.py", "library.py", os.path.join("_dynamo", "eval_frame.py"), "overrides.py",
    "_custom_op", "_higher_order_ops", "fx", "_tensor_str.py", os.path.join("utils", "_device.py"),
    os.path.join("utils", "_python_dispatch.py"), os.path.join("utils", "_contextlib.py"),
    os.path.join("autograd", "grad_mode.py"),
)  # fmt: skip


class At:
    """A frame and the instruction that an exception came from; real is the frame itself."""

    __slots__ = ("f_back", "f_builtins", "f_code", "f_globals", "f_lasti", "f_lineno", "real")

    def __init__(self, real: FrameType, instruction: int, line: int, back: Any) -> None:
        self.real, self.f_lasti, self.f_lineno, self.f_back = real, instruction, line, back
        self.f_code: CodeType = real.f_code
        self.f_globals: dict[str, Any] = real.f_globals
        self.f_builtins: dict[str, Any] = real.f_builtins

    @property
    def f_locals(self) -> Any:
        return self.real.f_locals


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


def stack(error: BaseException) -> list[At]:
    """The frames of an exception, the outermost first, each with the one that called it."""
    found: list[At] = []
    trace, back = error.__traceback__, None
    if trace is not None:
        back = trace.tb_frame.f_back
    while trace is not None and len(found) < 1000:
        found.append(At(trace.tb_frame, trace.tb_lasti, trace.tb_lineno, found[-1] if found else back))
        trace = trace.tb_next
    return found


def raises(frame: At) -> bool:
    """Whether a raise statement stands at the place, and no call of C code."""
    return "RAISE" in dis.opname[frame.f_code.co_code[frame.f_lasti]]
