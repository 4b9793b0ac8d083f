"""Which lines keep graphs alive: arrays that an op made, by that op's line, with the nodes behind them."""

from __future__ import annotations

from types import CodeType
from typing import Any, NamedTuple

from devtensor import _C
from devtensor._diagnosis import gradients, memory, sources

_MOST = 20000  # nodes that are looked at, for each line


class Held(NamedTuple):
    """What the arrays of one line keep alive: their number, recorded ops, bytes that formulas would read."""

    place: tuple[CodeType, int] | None
    arrays: int
    ops: int
    nbytes: int

    @property
    def where(self) -> str:
        line = gradients.line_of(self.place)
        return line.where if line is not None else "?"


def held_graphs(unused: bool = False) -> list[Held]:
    """One entry for each line, the most ops first; with unused only arrays that no backward has been called on."""
    lines: dict[Any, tuple[Any, dict[int, Any]]] = {}
    for found in memory.held():
        node = found.grad_fn if type(found) is _C.DeviceArray else None
        if node is None or (unused and node._facts[2]):
            continue
        place = _C._steps(found)[0][1]
        lines.setdefault(line_key(place), (place, {}))[1][id(found)] = found
    held = [_behind(place, list(arrays.values())) for place, arrays in lines.values()]
    return sorted(held, key=lambda one: -one.ops)


def line_key(place: tuple[CodeType, int] | None) -> tuple[str, int] | None:
    """File and line."""
    where = sources.position(*place) if place is not None else None
    return (place[0].co_filename, where[0]) if place is not None and where is not None else None


def _behind(place: Any, arrays: list[Any]) -> Held:
    stack = [array.grad_fn for array in arrays]
    seen = set(stack)
    blocks: dict[int, int] = {}
    ops = 0
    while stack:
        node = stack.pop()
        blocks.update(_C._kept_memory(node))
        operands = node.next_functions
        ops += bool(operands)  # else a leaf
        for operand, _ in operands:
            if operand is not None and operand not in seen and len(seen) < _MOST:
                seen.add(operand)
                stack.append(operand)
    return Held(place, len(arrays), ops, sum(blocks.values()))
