"""The graph behind an array, as text."""

from __future__ import annotations

from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._diagnosis import gradients, notes, training
from devtensor._diagnosis.facts import Fact, Failure
from devtensor._errors import Step
from devtensor._transfers import size_text

_MOST = 10000  # nodes that are looked at
_SHOWN = 200


def explain(input: DeviceArray) -> str:
    """Return the graph that backward() of input goes through, one line an op, the latest first.

    Each line has the op, the line that called it, and the bytes that it keeps for its gradient; each leaf the line that
    made it and its name in a Module of the caller's. Of an array without a graph, the line that has cut it. Nothing is
    computed.

    >>> w = dt.ones(3, requires_grad=True)
    >>> print(dt.autograd.explain((w * w).sum()))
    SumBackward0 ...
    MulBackward0 ...
    leaf ...
    2 ops keep 12 bytes
    """
    from devtensor._composed.arguments import need_array

    need_array("explain", "input", input)
    node = _C._node_of(input)
    if node is None or not input.requires_grad:
        return _cut(input)
    nodes = _reached(node)
    names = training.sought(_names) or {}
    rows, blocks = [], {}
    for one in nodes:
        kept = dict(_C._kept_memory(one))
        blocks.update(kept)
        line = gradients.line_of(one._facts[3])
        where, text = (line.where, notes.cut(line.text)) if line is not None else ("?", "")
        if one.next_functions:
            freed = "used up by a backward()" if one._facts[2] and not kept else ""
            rows.append([one.name(), where, f"keeps {size_text(sum(kept.values()))}" if kept else freed, text])
        else:
            rows.append(["leaf", where, names.get(one, ""), text])
    ops = sum(row[0] != "leaf" for row in rows)
    widths = [max(map(len, column)) for column in zip(*rows[:_SHOWN], strict=True)]
    lines = ["  ".join(cell.ljust(n) for cell, n in zip(row, widths, strict=True)).rstrip() for row in rows[:_SHOWN]]
    lines += [f"... and {len(rows) - _SHOWN} more"] if len(rows) > _SHOWN else []
    lines.append(f"{ops} op{'s' if ops != 1 else ''} keep{'' if ops != 1 else 's'} {size_text(sum(blocks.values()))}")
    return "\n".join(lines)


def _reached(node: _C.Node) -> list[_C.Node]:
    """The nodes behind node, the latest first, leaves last."""
    stack, seen = [node], {node}
    while stack and len(seen) < _MOST:
        for operand, _ in stack.pop().next_functions:
            if operand is not None and operand not in seen:
                seen.add(operand)
                stack.append(operand)
    return sorted(seen, key=lambda one: (not one.next_functions, -one._facts[1]))


def _names() -> dict[Any, str]:
    """The leaves of the parameters of the caller's Modules."""
    found: dict[Any, str] = {}
    for name, module in training.modules():
        for path, param in gradients.parameters_of(module):
            leaf = _C._node_of(param)
            if leaf is not None:
                found.setdefault(leaf, f"{name}.{path}")
    return found


def _cut(input: DeviceArray) -> str:
    """Why no gradient flows to an array."""
    steps = tuple(Step(*step) for step, _, _ in _C._steps(input))
    fact = Fact("input", input.shape, input.dtype, input.device, steps, input)
    failure = Failure("explain", "grad-missing", "", [fact], 0)
    failure.frame = training.frame_of_caller()
    account = gradients.account(failure)
    rows = [row for row in account.rows if row[0] != "needed"] if account is not None else []
    lines = ["no gradient flows to it"]
    lines += [f"{role}  {notes.cut(line.text)}  {line.where}  {remark}".rstrip() for role, line, remark in rows]
    lines += account.remarks if account is not None else []
    return "\n".join(lines)
