"""Which names of a frame can have another value now than when an exception came out of one of its instructions.

The exception knows that instruction, the frame knows where it stands now or where it ended. What any path from the one
to the other stores is in doubt. While the exception is being handled, or has left the frame, no path goes on past the
handler: so a loop around it puts nothing in doubt.
"""

from __future__ import annotations

import dis
import functools
from types import CodeType
from typing import NamedTuple

_ENDS = {"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "INTERPRETER_EXIT"}
_ENTRY = "[]"  # stands for any x[i] = ..., as ".name" does for x.name = ..., and 42 for the call at that instruction
_DEEPEST = 8  # handlers within handlers


class _Step(NamedTuple):
    op: str
    after: tuple[int, ...]  # the instructions that may come next
    caught: int | None  # the handler of an exception
    stores: tuple[str | int, ...]


@functools.lru_cache(maxsize=64)
def _steps(code: CodeType) -> dict[int, _Step]:
    handlers = _handlers(code)
    found: dict[int, _Step] = {}
    instructions = list(dis.get_instructions(code))
    for one, below in zip(instructions, [*instructions[1:], None], strict=True):
        follows = (below.offset,) if below is not None else ()
        jumps = (one.argval,) if one.opcode in dis.hasjrel or one.opcode in dis.hasjabs else ()
        after = () if one.opname in _ENDS else jumps if one.opname.startswith("JUMP_") else follows + jumps
        found[one.offset] = _Step(one.opname, after, handlers.get(one.offset), _stores(one))
    return found


def _handlers(code: CodeType) -> dict[int, int]:
    """The handler of each instruction that has one. Entries of the table are start, length, target and the depth of
    the stack, each a number of six bits a byte."""
    numbers, value = [], 0
    for byte in code.co_exceptiontable:
        value = value << 6 | byte & 63
        if not byte & 64:
            numbers.append(value)
            value = 0
    found: dict[int, int] = {}
    for start, length, target in zip(numbers[::4], numbers[1::4], numbers[2::4], strict=True):
        found.update(dict.fromkeys(range(start * 2, (start + length) * 2, 2), target * 2))
    return found


def _stores(one: dis.Instruction) -> tuple[str | int, ...]:
    name = one.opname
    if name.startswith("CALL") and "INTRINSIC" not in name:
        return (one.offset,)
    if name == "LOAD_FAST_AND_CLEAR":
        return (one.argval,)
    if not name.startswith(("STORE_", "DELETE_")):
        return ()
    if name.endswith(("_SUBSCR", "_SLICE")):
        return (_ENTRY,)
    if name.endswith("_ATTR"):
        return (f".{one.argval}",)
    if type(one.argval) is tuple:  # two in one instruction
        return one.argval[:1] if "LOAD" in name else one.argval
    return (one.argval,)


def all_stored(code: CodeType) -> frozenset[str | int]:
    """Every name that the code stores, and its calls."""
    return frozenset(name for step in _steps(code).values() for name in step.stores)


@functools.lru_cache(maxsize=256)
def stored_since(code: CodeType, failed: int, now: int, handling: bool) -> frozenset[str | int]:
    """What a frame may have stored, and which calls it may have made, from the instruction that failed to where it
    stands now; the call that it stands in is not one of them."""
    if failed == now:
        return frozenset()
    steps = _steps(code)
    failed, now = (max((one for one in steps if one <= place), default=0) for place in (failed, now))  # not a cache
    handler = steps[failed].caught
    if handler is None:
        return all_stored(code)
    for inside in (True, False) if handling else (False,):
        edges = _paths(steps, handler, inside)
        reached = {node for node in edges if node[0] == now}
        if reached:
            return _on_the_way(steps, edges, reached) - {now}
    return all_stored(code)


_Node = tuple[int, int]  # an instruction, and within how many handlers


def _paths(steps: dict[int, _Step], handler: int, inside: bool) -> dict[_Node, set[_Node]]:
    """What may run from a handler on, each instruction with those that may come next."""
    edges: dict[_Node, set[_Node]] = {}
    waiting: list[_Node] = [(handler, 0)]
    while waiting:
        node = waiting.pop()
        if node in edges:
            continue
        offset, depth = node
        step = steps[offset]
        edges[node] = set()
        if step.op == "PUSH_EXC_INFO":
            depth = min(depth + 1, _DEEPEST)
        elif step.op == "POP_EXCEPT":
            depth = max(depth - 1, 0)
            if inside and depth == 0 and not any(steps[one].op == "RERAISE" for one in step.after):
                continue  # the exception has been dealt with
        for one in (*step.after, step.caught):
            if one is not None:
                edges[node].add((one, depth))
        waiting += edges[node]
    return edges


def _on_the_way(steps: dict[int, _Step], edges: dict[_Node, set[_Node]], reached: set[_Node]) -> frozenset[str | int]:
    before: dict[_Node, list[_Node]] = {}
    for node, following in edges.items():
        for one in following:
            before.setdefault(one, []).append(node)
    waiting, seen = list(reached), set(reached)
    while waiting:
        for one in before.get(waiting.pop(), ()):
            if one not in seen:
                seen.add(one)
                waiting.append(one)
    return frozenset(name for offset, _ in seen for name in steps[offset].stores)
