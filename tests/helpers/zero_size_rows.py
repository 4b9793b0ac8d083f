"""Rows of the case table with operands of no elements, made from the shapes: a new row has its own at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cases import Case, Operand, Shape

Place = tuple[int, int]  # operand, dimension


def places(case: Case) -> list[Place]:
    return [(k, d) for k, o in enumerate(case.operands) if isinstance(o, Operand) for d in range(len(o.shape))]


def groups(case: Case) -> Iterator[set[Place]]:
    """Dimensions that become 0 together: those of one size, those that meet from the left or the right, each alone."""
    all_places = places(case)
    shape_of = {k: o.shape for k, o in enumerate(case.operands) if isinstance(o, Operand)}
    sizes = dict.fromkeys(shape_of[k][d] for k, d in all_places)
    for size in sizes:
        yield {(k, d) for k, d in all_places if shape_of[k][d] == size}
    for d in range(max(map(len, shape_of.values()))):
        yield {place for place in all_places if place[1] == d}
        yield {(k, e) for k, e in all_places if len(shape_of[k]) - e == d + 1}
    for place in all_places:
        yield {place}


def zeroed(case: Case, group: set[Place]) -> Case:
    def shape(k: int, operand: Operand) -> Shape:
        return tuple(0 if (k, d) in group else size for d, size in enumerate(operand.shape))

    operands = tuple(
        replace(o, shape=shape(k, o)) if isinstance(o, Operand) else o for k, o in enumerate(case.operands)
    )
    return replace(case, operands=operands)


def without_elements(case: Case) -> list[Case]:
    """The row with some dimensions of its operands 0; operands without dimensions get one."""
    if not places(case):
        operands = tuple(replace(o, shape=(0,)) if isinstance(o, Operand) else o for o in case.operands)
        return [replace(case, operands=operands)]
    found = {str(zero): zero for zero in (zeroed(case, group) for group in groups(case))}
    return list(found.values())
