"""The notes under a message: a table of the operands, the steps, the fix, and where to read on."""

from __future__ import annotations

import ast
import math
from typing import Any

from devtensor._diagnosis import arrays, origins, shapes
from devtensor._diagnosis.callers import Held
from devtensor._diagnosis.causes import CAUSES, see
from devtensor._diagnosis.expressions import Owner
from devtensor._diagnosis.facts import Fact, Failure, Fix
from devtensor._diagnosis.variables import below, inside, instance_dict, module_tables, resolve, visible

MARK = "<- the odd one"
_WIDEST = 48


def disputed(code: str) -> str:
    """Which property an error is about."""
    if code in ("device-mismatch", "host-access", "numpy-operand", "transfer-forbidden"):
        return "device"
    return "dtype" if code.startswith("dtype") else "shape"


def cut(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."


def shape_text(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def _row(fact: Fact, what: str) -> list[str]:
    if not fact.is_array:
        return [fact.name, cut(fact.expression or ""), "", type(fact.object).__name__, "", ""]
    i = origins.deciding(fact.history, what)
    text = origins.describe(fact.history, i, what) if i >= 0 else ""
    return [fact.name, cut(fact.expression or ""), shape_text(fact.shape), fact.dtype_name, str(fact.device), text]


def table(failure: Failure) -> str:
    """One line an operand; columns that are empty throughout are left out."""
    what = disputed(failure.code)
    rows = [_row(fact, what) for fact in failure.facts]
    if len(rows) > 1 and failure.culprit >= 0:
        odd = [failure.facts[failure.culprit], *failure.odd]
        for row, fact in zip(rows, failure.facts, strict=True):
            row.append(MARK if any(fact is one for one in odd) else "")
    used = [column for column in zip(*rows, strict=True) if any(column)]
    widths = [max(map(len, column)) for column in used]
    return "\n".join(
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*used, strict=True)
    )


def steps(failure: Failure) -> list[str]:
    """How the odd operand became what it is, when that took more than one step."""
    if failure.culprit < 0:
        return []
    fact, what = failure.facts[failure.culprit], disputed(failure.code)
    text = origins.chain(fact.history, what)
    return [f"{what} of {fact.expression or fact.name}: {text}"] if text else []


def remarks(failure: Failure) -> list[str]:
    """What else is worth saying: sizes by dimension, Modules, forgotten registration."""
    found = []
    weight, held = failure.named("weight"), {fact.name: fact.shape for fact in failure.facts}
    layer = weight is not None and weight.owner is not None
    text = shapes.explanation(failure.op, failure.code, failure.message, held, layer)
    if text:
        found.append(text)
    found += _features(failure)
    found += _first_of(failure)
    culprit = failure.facts[failure.culprit] if failure.culprit >= 0 else None
    if culprit is not None and culprit.owner is not None:
        owner = culprit.owner
        found.append(
            f"{owner.expression}.{owner.path} belongs to the Module {owner.expression}, which moves as a whole"
        )
    if failure.code == "transfer-forbidden":
        from devtensor._transfers import refused_by

        found.append(
            f"forbidden by forbid_transfers() at {refused_by()}; to allow it: forbid_transfers(allow=...) with this "
            f"line or function, or `with {_library(failure)}.allow_transfers():` around it"
        )
    if culprit is not None and failure.held is not None:
        found.append(_known_as(culprit, failure.held))
    if culprit is not None and failure.code == "device-mismatch":
        found += _unregistered(failure, culprit) or _in_plain_containers(failure, culprit)
    return found


def _features(failure: Failure) -> list[str]:
    """What a linear layer takes, where its operand has another size."""
    weight, given = failure.named("weight"), failure.named("input")
    if failure.code != "shape-mismatch" or failure.op != "linear" or weight is None or given is None:
        return []
    if weight.owner is None or len(weight.shape) != 2 or not given.shape or given.shape[-1] == weight.shape[1]:
        return []
    path = weight.owner.path.rpartition(".")[0]
    layer = weight.owner.expression + (f".{path}" if path else "")
    name = given.expression
    text = (
        f"{layer} takes {weight.shape[1]} features in the last dimension; {name or 'its input'} has {given.shape[-1]}"
    )
    if name is not None and _fits_flat(given, weight):
        text += f", and {name}.flatten(1) would have {weight.shape[1]}"
    elif name is None and _fits_flat(given, weight) and _is_in_sequence(weight.owner):
        text += f", and would have {weight.shape[1]} with nn.Flatten() before it"
    return [text]


def _fits_flat(given: Fact, weight: Fact) -> bool:
    return len(given.shape) > 2 and math.prod(given.shape[1:]) == weight.shape[1]


def _is_in_sequence(owner: Owner) -> bool:
    """Whether the layer of a parameter is one of a Sequential, which hands it what the layer before it gives."""
    path, _, name = owner.path.rpartition(".")[0].rpartition(".")
    above = dict(below(owner.module)).get(f"{path}." if path else "")
    kinds = type(above).__mro__ if name.isdigit() else ()
    return any(kind.__name__ == "Sequential" and arrays.is_of_library(kind) for kind in kinds)


def _first_of(failure: Failure) -> list[str]:
    """What stands in a tuple that was given for an array."""
    fact = failure.facts[failure.culprit] if failure.culprit >= 0 else None
    held: Any = fact.object if fact is not None and failure.code == "invalid-argument" else None
    if fact is None or type(held) is not tuple or not held or not arrays.is_array(held[0]):
        return []
    name = cut(fact.expression) if fact.expression else fact.name
    return [f"{name} is a tuple of {len(held)}, as nn.LSTM, nn.GRU and nn.MultiheadAttention give: entry [0] is the "
            f"output, {shape_text(tuple(held[0].shape))}"]  # fmt: skip


def _known_as(fact: Fact, held: Held) -> str:
    """What a caller calls the odd one."""
    name = fact.expression or fact.name
    return f"{name} is {'' if held.direct else 'made of '}`{cut(held.text)}` at {held.place}"


def _library(failure: Failure) -> str:
    from devtensor._diagnosis.fixes import library_name

    return (library_name(failure.frame, failure.library) if failure.frame is not None else None) or "devtensor"


def _unregistered(failure: Failure, fact: Fact) -> list[str]:
    """The plain arrays of Modules that the odd one is, or was computed of in the failing expression."""
    frame, site = failure.frame, failure.site
    if fact.node is None or frame is None or site is None:
        return []
    whole = isinstance(fact.node, ast.Attribute) and fact.object is not None
    found = []
    for node in ast.walk(fact.node):
        if not isinstance(node, ast.Attribute):
            continue
        base = resolve(frame, node.value, site.owner)
        tables = module_tables(base)
        held: Any = instance_dict(base).get(node.attr)
        if not tables or any(node.attr in table for table in tables) or not arrays.is_array(held):
            continue
        if held is fact.object or (not whole and held.device == fact.device):
            found.append(
                f"{ast.unparse(node)} is a plain attribute, not a parameter or buffer, so .to() on the Module leaves "
                f'it where it is; register it: {ast.unparse(node.value)}.register_buffer("{node.attr}", ...)'
            )
    return found


_REGISTERING = {"list": ("ModuleList", "ParameterList"), "dict": ("ModuleDict", "ParameterDict")}


def _in_plain_containers(failure: Failure, fact: Fact) -> list[str]:
    """Lists and dictionaries of a Module that hold the odd one, or the Module that it belongs to, unregistered."""
    frame = failure.frame if fact.owner is None else fact.owner.frame
    wanted = fact.object if fact.owner is None else fact.owner.module
    if frame is None or (fact.owner is None and not arrays.is_registered(wanted)):
        return []
    for name, base in visible(frame):
        tables = module_tables(base)
        if not tables or inside(base, wanted) is not None or any(one is wanted for _, one in below(base)):
            continue  # it is registered as well
        for key, held in instance_dict(base).items():
            kind = "list" if type(held) in (list, tuple) else "dict" if type(held) is dict else None
            if kind is None or any(key in table for table in tables):
                continue
            if any(one is wanted for one in (held.values() if kind == "dict" else held)):
                fits = _REGISTERING[kind][fact.owner is None]
                text = (
                    f"{name}.{key} is a plain {type(held).__name__}, so .to() on the Module leaves what is in it where "
                    f"it is; make it an nn.{fits}"
                )
                if kind == "dict" and not all(type(part) is str for part in held):
                    return [f"{text}, whose keys are strings"]
                return [f"{text}: {name}.{key} = nn.{fits}({name}.{key})"]
    return []


def notes(failure: Failure, fix: Fix | None) -> list[str]:
    """All notes of an error, in the order they are shown."""
    found = [failure.late] if failure.late else [table(failure)] if failure.facts else []
    found += steps(failure)
    found += remarks(failure)
    if fix is not None:
        found.append(f"Fix: {fix}")
    return found + see(failure.code, failure.library)


def explanation(error: Any) -> str:
    """The long form of an error: message, notes, cause."""
    lines = [f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])]
    cause = CAUSES.get(error.code or "")
    if cause:
        lines += ["", cause]
    return "\n".join(lines)
