"""Indices that are arrays: whether an array may stand there, once it is on the device of the others."""

from __future__ import annotations

import ast

from devtensor._diagnosis import shapes
from devtensor._diagnosis.facts import Fact, Failure

_WHOLE = ("int32", "int64")
_PARTS = ("getitem", "setitem")


def wants_integers(op: str, fact: Fact) -> bool:
    """Whether a place is asked for, and this is none: where indexing takes masks, they may be meant."""
    name = fact.name.partition("[")[0]
    places = name in ("index", "indices") or (op == "embedding" and name == "input")
    return places and fact.dtype_name not in (_WHOLE if op not in _PARTS else (*_WHOLE, "uint8", "bool"))


def cast(failure: Failure, fact: Fact) -> str | None:
    """What makes an index of floats: places, or a mask where it has its shape and nothing but 0 and 1 in it. None where
    it has that shape, and its values would have to come from a GPU."""
    whole, at = failure.named("input"), _dimension(failure, fact)
    if failure.op not in _PARTS or whole is None or at is None or not fact.shape:
        return ".long()"
    if whole.shape[at : at + len(fact.shape)] != fact.shape:
        return ".long()"
    if str(fact.device) != "cpu" or not fact.is_array:
        return None
    held = fact.object.detach()
    return ".bool()" if bool(((held == 0) | (held == 1)).all()) else ".long()"


def pass_(failure: Failure) -> bool:
    """Whether what stands in x[...], and what is assigned to it, has a shape that fits."""
    whole, value = failure.named("input"), failure.named("value")
    given = [fact for fact in failure.facts if fact.name.startswith("index")]
    if whole is None:
        return False
    for fact in given:
        if fact.dtype_name in ("bool", "uint8"):
            at = _dimension(failure, fact)
            if at is None or whole.shape[at : at + len(fact.shape)] != fact.shape:
                return False
    if value is None:
        return True
    if not given:  # whole is the part that is written
        return shapes.broadcast(whole.shape, value.shape) == whole.shape
    alone = len(given) == 1 and given[0].dtype_name not in ("bool", "uint8") and _dimension(failure, given[0]) == 0
    part = (*given[0].shape, *whole.shape[1:]) if alone else None
    return not value.shape or (part is not None and shapes.broadcast(part, value.shape) == part)


def _dimension(failure: Failure, fact: Fact) -> int | None:
    """The dimension that an entry of an index, index[1], is for; None behind an array or what is not known."""
    node, at = failure.site.node if failure.site is not None else None, fact.name[len("index[") : -1]
    if not isinstance(node, ast.Subscript):
        return None
    if not isinstance(node.slice, ast.Tuple):
        return 0
    parts = node.slice.elts[: int(at)] if at.isdigit() else None
    if parts is None:
        return next((i for i, part in enumerate(node.slice.elts) if i == 0 and part is fact.node), None)
    ints = (type(part.value) is int for part in parts if isinstance(part, ast.Constant))
    return len(parts) if all(isinstance(part, ast.Slice | ast.Constant) for part in parts) and all(ints) else None
