"""Where a property of an array was decided, and the steps from there, as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devtensor._diagnosis.sources import file_name
from devtensor._errors import Origin, Step

MOVES = {"to", "cuda", "cpu", "float", "double", "half", "bfloat16", "int", "long", "short", "char", "byte", "bool",
          "astype", "type", "pin_memory"}  # fmt: skip
_CREATES = {
    "array", "tensor", "asarray", "as_tensor", "empty", "zeros", "ones", "full", "arange", "linspace", "eye", "rand",
    "randn", "randint", "randperm", "normal", "from_numpy", "from_dlpack", "frombuffer", "unpickle", "load",
    "empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like", "new_empty",
    "new_zeros", "new_ones", "new_full", "new_tensor", "Parameter", "new", "scalar_tensor", "logspace", "range",
    "empty_strided", "new_empty_strided", "tril_indices", "triu_indices", "hann_window",
    "hamming_window", "blackman_window", "bartlett_window", "kaiser_window",
}  # fmt: skip


def deciding(history: Sequence[Step], what: str) -> int:
    """The index of the step that decided the device, the dtype or the shape; -1 for an empty history."""
    if what == "shape" or not history:
        made = (i for i, step in enumerate(history) if step.action not in MOVES or step.elided)
        return next(made, len(history) - 1)
    value = getattr(history[0], what)
    for i, step in enumerate(history):
        if getattr(step, what) != value:
            return i - 1
        if step.decides == what:
            return i
    return len(history) - 1


def origin(history: Sequence[Step], what: str) -> Origin | None:
    """The place of that step."""
    i = deciding(history, what)
    step = history[i] if i >= 0 else None
    return Origin(step.action, step.filename, step.lineno) if step is not None and step.filename else None


def is_making(action: str) -> bool:
    """Whether an action makes or moves an array; others may give a view of one."""
    return action in _CREATES or action in MOVES


def place(step: Step) -> str:
    return f"{file_name(step.filename or '')}:{step.lineno}"


def describe(history: Sequence[Step], i: int, what: str = "device") -> str:
    """'created by from_numpy at train.py:3', 'moved by .to("cuda:0") at train.py:5'; of what decided a dtype, the
    device is not said."""
    step = history[i]
    if not step.filename:
        return ""
    before = history[i + 1] if i + 1 < len(history) else None
    if step.action in MOVES:
        parts = []
        moved = what != "dtype" and (before is None or before.device != step.device)
        if moved:
            parts.append(f'"{step.device}"')
        if before is None or before.dtype != step.dtype:
            parts.append(dtype_name(step.dtype))
        verb = "moved" if moved else "cast"
        written = ", ".join(parts) if step.action in ("to", "astype", "type") else ""
        return f"{verb} by .{step.action}({written}) at {place(step)}"
    verb = "created by" if step.action in _CREATES else "result of"
    return f"{verb} {step.action} at {place(step)}"


def chain(history: Sequence[Step], what: str) -> str:
    """The steps from the one that decided to the array itself; empty where that is one step. A move to another device
    is none on the way of a dtype or a shape."""
    i = deciding(history, what)
    if i >= 0 and not history[i].action:
        return ""  # it was there before anything was recorded
    steps: list[str] = []
    for k in range(i, -1, -1):
        if what != "device" and k < i and history[k].action in MOVES:
            continue
        if history[k].elided and k < i:
            steps.append("...")
        step = f"{history[k].action} ({place(history[k])})" if history[k].filename else history[k].action
        moved = what == "device" and k < i and history[k].device != history[k + 1].device
        if moved or steps[-1:] != [step]:  # an op is made of others, and a Parameter that was moved is one again
            steps.append(step)
    return " -> ".join(steps) if len(steps) > 1 else ""


def dtype_name(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


def html(values: str, shape: tuple[int, ...], steps: Sequence[tuple[Any, ...]]) -> str:
    """An array in a notebook: its values, device and dtype, and below them its shape and what made it."""
    from html import escape  # for notebooks alone

    made = describe([Step(*step) for step in steps], 0) if steps else ""
    about = f"shape {shape}" + (f", {made}" if made else "")
    font = "font-family:var(--jp-code-font-family,monospace)"  # so that columns stay below each other
    return f'<pre style="{font}">{escape(values)}</pre><small>{escape(about)}</small>'
