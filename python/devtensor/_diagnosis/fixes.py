"""One statement, in the caller's names, with which the failing one passes; nothing where that is not sure."""

from __future__ import annotations

import ast
import collections
import contextlib
import re
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from devtensor._diagnosis import arrays, callers, expressions, indices, origins, places, shapes, sources, variables
from devtensor._diagnosis.facts import Fact, Failure, Fix, is_ndarray
from devtensor._diagnosis.reads import FORMS, UNARY, Reads
from devtensor._diagnosis.sources import Site
from devtensor._diagnosis.variables import MISSING, resolve

Conversion = tuple[Fact, str]

_CASTS = {
    "float32": "float", "float64": "double", "float16": "half", "bfloat16": "bfloat16", "int64": "long",
    "int32": "int", "int16": "short", "int8": "char", "uint8": "byte", "bool": "bool",
}  # fmt: skip
_ATOMS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.List, ast.Tuple)
_CATEGORY = {"bool": 0, "uint8": 1, "int8": 1, "int16": 1, "int32": 1, "int64": 1}
_FLOATS = {"float16", "bfloat16", "float32", "float64"}
_BY_CODE = {
    "read-only": ".clone()", "overlapping-write": ".clone()",
    "view-needs-copy": ".contiguous()", "not-contiguous": ".contiguous()", "grad-not-scalar": ".mean()",
    "grad-flag": ".detach()", "grad-dtype": ".float()",
    "grad-view-in-place": ".clone()", "grad-shared": ".clone()", "grad-captured": ".clone()",
}  # fmt: skip
_CLASS_NUMBERS = ("int64", "uint8")
HOST = ("host-access", "grad-host-access")  # NumPy was to read an array
_OF_CALLERS = {
    "device-mismatch": "device", "dtype-mismatch": "dtype", "dtype-not-supported": "dtype", "shape-mismatch": "shape",
    "rank-mismatch": "shape",
}  # fmt: skip
_ONE_DTYPE = shapes.PRODUCTS | shapes.CONVOLUTIONS | shapes.PROBABILITIES | shapes.CLASSES | {*shapes.RECURRENT} | {
    "outer", "isclose", "allclose", "batch_norm", "huber_loss", "kl_div", "l1_loss", "lerp", "mse_loss",
    "pairwise_distance", "poisson_nll_loss", "scaled_dot_product_attention", "smooth_l1_loss", "soft_margin_loss",
}  # fmt: skip


def propose(failure: Failure) -> Fix | None:
    """The fix, or None."""
    if failure.site is None or failure.frame is None:
        return None
    if failure.code == "numpy-operand" or _is_numpy_argument(failure):
        return _from_numpy(failure)
    culprit = failure.facts[failure.culprit] if failure.culprit >= 0 else None
    sure: callers.Held | None = None
    if culprit is not None and culprit.owner is None and culprit.is_array and failure.code in _OF_CALLERS:
        with contextlib.suppress(Exception):  # what is here can be told without the callers
            for held in callers.find(failure, culprit, _OF_CALLERS[failure.code]):
                failure.held, sure = held, held if held.sure else sure
    conversions = _conversions(failure)
    if any(fact is failure.stays for fact, _ in conversions):
        return None
    if not conversions or (failure.passes is not None and not failure.passes(conversions)):
        return None
    found = None
    if len(conversions) == 1 and conversions[0][0] is culprit:
        with contextlib.suppress(Exception):
            found = _as_made(failure, *conversions[0], sure) or (sure and _of_caller(sure, conversions[0][1]))
    if found is None:
        found = statement(failure, conversions)
        failure.odd = [fact for fact, _ in conversions] if found is not None else []
    return _as_seen(failure, found)


def _as_made(failure: Failure, fact: Fact, text: str, held: callers.Held | None) -> Fix | None:
    """The call that made the operand, with the device of the others: torch.arange(n, device=x.device)."""
    device = re.fullmatch(r"\.to\(\"(.*)\"\)", text)
    found = callers.made(failure, fact, held, device.group(1)) if device is not None else None
    if found is None:
        return None
    return places.instead(found.frame, found.site, found.node, found.text)


def _of_caller(held: callers.Held, text: str) -> Fix | None:
    """The conversion of what a caller handed on, in the caller's words."""
    written = held.text
    value = f"{written}{text}" if isinstance(held.node, _ATOMS) else f"({written}){text}"
    if places.is_assignable(held.frame, held.site, held.node) and not places.comes_again(held.site, held.node, text):
        return places.before(held.frame, held.site, f"{written} = {value}")
    unpacked = _repacked(held.frame, held.site, held.node, value)
    return unpacked or places.instead(held.frame, held.site, held.node, value)


def _as_seen(failure: Failure, fix: Fix | None) -> Fix | None:
    """Without its place where that is the failing line."""
    at, frame = fix.at if fix is not None else None, failure.frame
    if fix is None or at is None or frame is None:
        return fix
    here = (at.filename, at.lineno) == (frame.f_code.co_filename, frame.f_lineno)
    return fix._replace(at=None) if here else fix


def blame(failure: Failure) -> None:
    """Where one operand alone has to change and it is sure how, that operand is the odd one."""
    failure.stays = _that_stays(failure)
    others = [i for i, fact in enumerate(failure.facts) if fact is not failure.stays]
    if failure.stays is not None and failure.code == "device-mismatch" and len(others) == 1:
        failure.culprit = others[0]
    found = {"shape-mismatch": _reshaped, "dtype-mismatch": _to_one_dtype}.get(failure.code, lambda _: [])(failure)
    if len(found) == 1 and (failure.passes is None or failure.passes(found)):
        failure.culprit = next(i for i, fact in enumerate(failure.facts) if fact is found[0][0])


# ---------------------------------------------------------------- what to convert


def _conversions(failure: Failure) -> list[Conversion]:
    culprit = failure.facts[failure.culprit] if failure.culprit >= 0 else None
    if failure.proposed is not None:
        return failure.proposed
    if failure.code == "device-mismatch":
        return _to_one_device(failure)
    if failure.op in shapes.CLASSES and culprit is not None and culprit.name == "target":
        found = _to_classes(failure)
        if found:
            return found
    if failure.code == "dtype-mismatch":
        return _to_one_dtype(failure)
    if failure.code == "dtype-not-supported":
        return _to_float(failure)
    if culprit is None:
        return []
    if failure.code == "dtype-of-index":
        return _to_index(failure, culprit)
    if failure.code in HOST and arrays.is_array(culprit.object):
        return [(culprit, _to_host([culprit.object]))]
    if failure.code == "invalid-argument" and _first_passes(failure, culprit):
        return [(culprit, "[0]")]
    if failure.code in _BY_CODE:
        return [(culprit, _BY_CODE[failure.code])]
    if failure.code in ("shape-mismatch", "rank-mismatch"):
        return _reshaped(failure)
    return []


def _to_host(held: Sequence[Any]) -> str:
    """What makes NumPy arrays of them possible."""
    recorded = any(map(arrays.requires_grad, held))
    return ".detach()" * recorded + ".cpu()" * any(str(one.device) != "cpu" for one in held)


def _most(values: Sequence[Any], preferred: Any) -> Any:
    """The commonest value; of a tie, a preferred one."""
    counts = collections.Counter(values)
    return max(counts, key=lambda value: (counts[value], preferred(value)))


def _alike(failure: Failure) -> list[Fact]:
    """The operands that must have one dtype: all but the classes of a loss."""
    loss = failure.op in shapes.CLASSES
    return [fact for fact in failure.facts if not (loss and fact.name == "target" and fact.dtype_name in _CATEGORY)]


def _votes(failure: Failure, what: str) -> list[Any]:
    """The values of all but the culprit, one for each Module."""
    culprit = failure.facts[failure.culprit]
    values, modules = [], set()
    for fact in failure.facts if what == "device" else _alike(failure):
        if fact is culprit or (fact.owner is not None and culprit.owner is not None and same_owner(fact, culprit)):
            continue
        if fact.owner is not None:
            if id(fact.owner.module) in modules:
                continue
            modules.add(id(fact.owner.module))
        values.append(getattr(fact, what))
    return values or [getattr(fact, what) for fact in failure.facts if fact is not culprit]


def same_owner(a: Fact, b: Fact) -> bool:
    return a.owner is not None and b.owner is not None and a.owner.module is b.owner.module


def _shapes(failure: Failure) -> dict[str, tuple[int, ...]]:
    return {fact.name: fact.shape for fact in failure.facts}


def _shapes_pass(failure: Failure) -> bool:
    if failure.passes is not None:
        return True  # which propose asks
    if failure.op in ("getitem", "setitem"):
        return indices.pass_(failure)
    held = _shapes(failure)
    if shapes.column(failure.op, held) is None:
        passed = shapes.passes(failure.op, held, _options(failure))
        if passed is False or (passed is None and shapes.has_rule(failure.op)):
            return False
    written = held.get("out") or (held.get("input") if failure.call is not None and failure.call.writes else None)
    if written is None or failure.op not in shapes.ELEMENTWISE:
        return True
    return all(shapes.broadcast(written, shape) == written for shape in held.values())


_OF_LAYERS = ("batch_first", "num_layers", "bidirectional")
_DEFAULTS = {"groups": 1, "dim": 0, "padding": 0, "dilation": 1}


def _options(failure: Failure) -> dict[str, Any]:
    """What decides beside the shapes whether they pass."""
    found, call = callers.options(failure, {*_DEFAULTS, *_OF_LAYERS}), failure.call
    if not found and call is not None and arrays.signature(call.callee) is not None:
        found = dict(_DEFAULTS)
        for argument in call.arguments:
            if argument.name in found and failure.frame is not None and failure.site is not None:
                found[argument.name] = resolve(failure.frame, argument.node, failure.site.owner)
    return {name: value for name, value in found.items() if value is not MISSING}


def _to_one_device(failure: Failure) -> list[Conversion]:
    if "on a CUDA device" in failure.message:  # a kernel was given arrays of the host
        return [(fact, '.to("cuda")') for fact in failure.facts]
    if failure.culprit < 0 or not _shapes_pass(failure):
        return []
    device = _most([str(d) for d in _votes(failure, "device")], lambda d: d != "cpu")
    if failure.stays is not None:
        device = str(failure.stays.device)
    casts = {} if failure.passes is not None else _casts(failure)
    if casts is None:
        return []
    found = []
    for fact in failure.facts:
        text = "" if str(fact.device) == device else f'.to("{device}")'
        text += casts.get(fact.name, "")
        if text:
            found.append((fact, text))
    if failure.call is not None and failure.call.writes and _widens(failure):
        return []
    return found


def _casts(failure: Failure) -> dict[str, str] | None:
    """By operand, the conversions that the call would ask for next; None where those are not sure."""
    op, alike = failure.op, _alike(failure)
    casts = {}
    for fact in failure.facts:
        if indices.wants_integers(op, fact):
            text = indices.cast(failure, fact)
            if text is None:
                return None
            casts[fact.name] = text
    masks = [fact for fact in failure.facts if fact.name in ("mask", "condition")]
    casts |= {fact.name: ".bool()" for fact in masks if fact.dtype_name != "bool"}
    if op in shapes.BITS and any(fact.dtype_name not in _CATEGORY for fact in alike):
        return None
    if op == "addcdiv" and all(fact.dtype_name in _CATEGORY for fact in alike if fact.name != "input"):
        return None
    if op in _ONE_DTYPE:
        dtype = _common_dtype(alike)
        if dtype in _CATEGORY:  # which products of ints are refused for next
            return None
        casts |= {fact.name: f".{_CASTS[dtype]}()" for fact in alike if fact.dtype_name != dtype}
    if op in shapes.CLASSES:
        if any(fact.name == "input" and fact.dtype_name in _CATEGORY for fact in alike):
            return None
        casts |= {fact.name: text for fact, text in _to_classes(failure)}
        scores, target = failure.named("input"), failure.named("target")
        if scores is not None and target is not None and scores.shape == target.shape and "target" not in casts:
            if target.dtype_name in _CATEGORY:  # probabilities of the classes are floats
                return None
    _add_column(failure, casts)
    return casts


def _common_dtype(facts: Sequence[Fact]) -> str:
    names = [fact.dtype_name for fact in facts]
    return str(_most(names, lambda name: name not in _CATEGORY and name != "float64"))


def _widens(failure: Failure) -> bool:
    """Whether an in-place op would be refused next, for its dtype."""
    target, *others = failure.facts
    kinds = [_CATEGORY.get(fact.dtype_name, 2) for fact in others]
    return failure.op != "setitem" and bool(kinds) and max(kinds) > _CATEGORY.get(target.dtype_name, 2)


def _to_one_dtype(failure: Failure) -> list[Conversion]:
    if not _shapes_pass(failure):
        return []
    out = re.match(r"Expected \w+ tensor to have dtype (\w+)", failure.message)
    in_place = re.match(r"result type (\w+) ", failure.message)
    said = out or in_place
    if said is not None:
        fact = failure.facts[failure.culprit if out else 0]
        return [(fact, f".{_CASTS[said.group(1)]}()")]
    if failure.culprit < 0:
        return []
    names = [str(d).rpartition(".")[2] for d in _votes(failure, "dtype")]
    dtype = _most(names, lambda name: name != "float64")
    if any(_is_meant(fact) for fact in failure.facts) and {fact.dtype_name for fact in _alike(failure)} <= _FLOATS:
        dtype = "float64"
    if _CATEGORY.get(dtype, 2) < 2:  # products of ints are refused next
        dtype = next((fact.dtype_name for fact in failure.facts if fact.dtype_name not in _CATEGORY), None)
        if dtype is None:
            return []
    casts = {fact.name: f".{_CASTS[dtype]}()" for fact in _alike(failure) if fact.dtype_name != dtype}
    _add_column(failure, casts)
    return [(fact, casts[fact.name]) for fact in failure.facts if fact.name in casts]


def _is_meant(fact: Fact) -> bool:
    """Whether a whole Module was made float64, as by model.double(); what is known of its history must not say that the
    parameter alone was."""
    if fact.owner is None or fact.dtype_name != "float64":
        return False
    if not all(str(p.dtype).endswith("float64") for p in fact.owner.module.parameters()):
        return False
    at = origins.deciding(fact.history, "dtype") if fact.history else -1
    newer = [step.action for step in fact.history[: at + 1]]
    return not fact.history or (at >= 0 and newer[-1] in origins.MOVES and "Parameter" not in newer)


def _add_column(failure: Failure, casts: dict[str, str]) -> None:
    """A shape that the call would ask for next."""
    column = shapes.column(failure.op, _shapes(failure)) if failure.passes is None else None
    if column is not None:
        casts[column[0]] = casts.get(column[0], "") + column[1]


def _to_float(failure: Failure) -> list[Conversion]:
    kinds = failure.message.rpartition("it takes")[2].partition(f" ({failure.op}: ")[0]
    if kinds == " int64" and len(failure.facts) == 1:
        return [(failure.facts[0], ".long()")]
    if "float32" not in kinds or not _shapes_pass(failure):
        return []
    facts = _alike(failure)
    target = failure.named("target") if failure.op in shapes.CLASSES else None
    if target is not None and target.dtype_name in _CATEGORY and target.dtype_name not in _CLASS_NUMBERS:
        return []  # which is refused next
    floats = {fact.dtype_name for fact in facts} - set(_CATEGORY)
    dtype = floats.pop() if len(floats) == 1 else "float32"
    return [(fact, f".{_CASTS[dtype]}()") for fact in facts if fact.dtype_name in _CATEGORY]


def _first_passes(failure: Failure, culprit: Fact) -> bool:
    """Whether an array is taken and a tuple was given whose first entry is one that passes, as (output, state) is."""
    held = culprit.object
    if " must be DeviceArray, not tuple" not in failure.message or type(held) is not tuple or not held:
        return False
    if not arrays.is_array(held[0]) or not all(fact.is_array for fact in failure.facts if fact is not culprit):
        return False
    alike = {(fact.dtype_name, str(fact.device)) for fact in failure.facts if fact is not culprit}
    first = (str(held[0].dtype).rpartition(".")[2], str(held[0].device))
    given = {**_shapes(failure), culprit.name: tuple(held[0].shape)}
    return alike <= {first} and shapes.passes(failure.op, given, _options(failure)) is True


def _to_index(failure: Failure, culprit: Fact) -> list[Conversion]:
    """uint8 may be meant as a mask or as places."""
    if "bool tensor for mask" in failure.message:
        return [(culprit, ".bool()")]
    text = indices.cast(failure, culprit) if culprit.dtype_name not in ("uint8", "bool") else None
    return [(culprit, text)] if text is not None else []


def _reshaped(failure: Failure) -> list[Conversion]:
    if failure.call is None or failure.call.writes or len(failure.facts) < 2:
        return []
    if failure.op in shapes.CLASSES:
        return _to_classes(failure)
    found = shapes.reading(failure.op, failure.code, failure.message, _shapes(failure))
    fact = failure.named(found[0]) if found is not None else None
    return [(fact, found[1])] if fact is not None and found is not None else []


def _to_classes(failure: Failure) -> list[Conversion]:
    """Labels in another form than one class a row: fractions, a one for the class among zeros, a column."""
    scores, target = failure.named("input"), failure.named("target")
    if scores is None or target is None or len(scores.shape) < 2:
        return []
    rows, whole = scores.shape[:1] + scores.shape[2:], target.dtype_name in _CLASS_NUMBERS
    if target.shape == rows and not whole:
        return [(target, ".long()")] if scores.dtype_name not in _CATEGORY else []
    if target.shape == scores.shape and target.dtype_name in _CATEGORY:
        return [(target, ".argmax(1)")]
    column = scores.shape[:1] + (1,) + scores.shape[2:]
    return [(target, ".squeeze(1)")] if target.shape == column and whole else []


# ---------------------------------------------------------------- what is written


def _that_stays(failure: Failure) -> Fact | None:
    """The array that the call writes to, unless a converted copy can take its place: where others look at the array,
    such as the caller whose argument it is, a copy would get the result and they would not."""
    written = next((fact for fact in failure.facts if fact.name == "out"), None)
    if written is None and failure.call is not None and failure.call.writes:
        written = failure.named("input")
    if written is None or written.owner is not None or failure.code not in _OF_CALLERS:
        return None
    with contextlib.suppress(Exception):
        if _is_replaceable(failure, written):
            return None
    return written


def _is_replaceable(failure: Failure, fact: Fact) -> bool:
    frame, site, node = failure.frame, failure.site, fact.node
    if frame is None or site is None or node is None or arrays.is_registered(fact.object):
        return False
    if failure.code == "device-mismatch" and failure.culprit >= 0 and failure.facts[failure.culprit] is fact:
        if callers.made(failure, fact, None, _most([str(d) for d in _votes(failure, "device")], lambda d: d != "cpu")):
            return True
    if not isinstance(node, ast.Name):
        return places.is_assignable(frame, site, node)
    reads = Reads(frame, site, _OF_CALLERS[failure.code], UNARY)
    made = reads.made_by(node.id)
    step = fact.history[0] if fact.history else None
    if made is None or (step is None and not callers.is_maker(frame, made)):
        return False
    if step is not None:
        here = step.filename == frame.f_code.co_filename and made.lineno <= step.lineno <= (made.end_lineno or 0)
        if step.elided or not here or step.action in FORMS | callers.SHARING:
            return False
    return reads.follow(made)


# ---------------------------------------------------------------- how to say it


def statement(failure: Failure, conversions: list[Conversion]) -> Fix | None:
    """What to write at the failing line, or at that of the Module's call."""
    return _as_seen(failure, _statement(failure, conversions))


def _statement(failure: Failure, conversions: list[Conversion]) -> Fix | None:
    frame, site = failure.frame, failure.site
    assert frame is not None and site is not None
    if all(fact.owner is not None and same_owner(fact, conversions[0][0]) for fact, _ in conversions):
        of_module = _module_statement(failure, conversions)
        if of_module is not None:
            return of_module
    of_tuple = _tuple_statement(frame, site, conversions)
    if of_tuple is not None:
        return places.before(frame, site, of_tuple)
    if failure.code in HOST:
        of_all = _entries_statement(frame, site, conversions[0][0])
        if of_all is not None:
            return of_all
    targets, values = [], []
    for fact, text in conversions:
        if fact.node is None or fact.expression is None:
            return None
        written = site.text(fact.node)
        if isinstance(fact.node, _ATOMS):
            value = f"{written}{text}"
        else:
            value = f"({written}){text}"
        if not places.is_assignable(frame, site, fact.node) or places.comes_again(site, fact.node, text):
            if len(conversions) != 1 or _is_written(failure, fact):
                return None
            return _repacked(frame, site, fact.node, value) or places.instead(frame, site, fact.node, value)
        if written not in targets:
            targets.append(written)
            values.append(value)
    return places.before(frame, site, f"{', '.join(targets)} = {', '.join(values)}")


def _entries_statement(frame: FrameType, site: Site, fact: Fact) -> Fix | None:
    """The list or tuple that the operand is an entry of, with all its entries converted."""
    node = fact.node
    if not isinstance(node, ast.Subscript) or not getattr(node, "synthetic", False):
        return None
    held, name = resolve(frame, node.value, site.owner), ast.unparse(node.value)
    if type(held) not in (list, tuple) or not all(map(arrays.is_array, held)):
        return None
    text = _to_host(held)
    value = f"[one{text} for one in {name}]" if type(held) is list else f"tuple(one{text} for one in {name})"
    if places.is_assignable(frame, site, node.value):
        return places.before(frame, site, f"{name} = {value}")
    return places.instead(frame, site, expressions.synthetic(name), value)


def _repacked(frame: FrameType, site: Site, node: ast.expr, value: str) -> Fix | None:
    """The tuple that * unpacks, args, with value in the place of its entry args[1]."""
    if not getattr(node, "synthetic", False) or not isinstance(node, ast.Subscript):
        return None
    base, key = node.value, getattr(node.slice, "value", None)
    if not isinstance(base, ast.Name) or type(key) is not int or not places.is_own_name(frame, base.id):
        return None
    name = base.id
    return places.before(frame, site, f"{name} = (*{name}[:{key}], {value}, *{name}[{key + 1}:])")


def _tuple_statement(frame: FrameType, site: Site, conversions: list[Conversion]) -> str | None:
    """The tuple whose entries several operands are, such as a state (h, c), with them converted."""
    nodes = [fact.node for fact, _ in conversions]
    names = {node.value.id for node in nodes if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)}
    if len(nodes) < 2 or len(names) != 1 or not all(isinstance(node, ast.Subscript) for node in nodes):
        return None
    held = variables.variable(frame, name := min(names))
    keys = [resolve(frame, node.slice, site.owner) for node in nodes]  # type: ignore[union-attr]
    if type(held) is not tuple or len(held) > 4 or not all(type(key) is int for key in keys):
        return None
    texts = {key % len(held): text for key, (_, text) in zip(keys, conversions, strict=True)}
    if not places.is_assignable(frame, site, ast.Name(name)):
        return None
    if len(texts) == len(held) and len(set(texts.values())) == 1:
        return f"{name} = tuple(one{min(texts.values())} for one in {name})"
    entries = ", ".join(f"{name}[{i}]{texts.get(i, '')}" for i in range(len(held)))
    return f"{name} = ({entries})"


def _is_written(failure: Failure, fact: Fact) -> bool:
    """Whether the operand is what the statement assigns to: no expression can stand in its place."""
    node = failure.site.node if failure.site is not None else None
    return fact.name == "input" and isinstance(node, ast.AugAssign | ast.Subscript)


def _module_statement(failure: Failure, conversions: list[Conversion]) -> Fix | None:
    """The whole Module moved or cast, before the call that led here, or where it is called."""
    texts = {text for _, text in conversions}
    owner = conversions[0][0].owner
    if owner is None or len(texts) != 1:
        return None
    text = texts.pop()
    if not text.startswith((".to(", ".cpu(")) and text not in (".float()", ".double()", ".half()", ".bfloat16()"):
        return None
    site = failure.site if owner.frame is failure.frame else sources.locate(owner.frame)
    if site is None:
        return None
    if places.is_known_before(owner.frame, site, owner.node):
        return places.before(owner.frame, site, f"{owner.expression}{text}")
    value = f"{owner.expression}{text}" if isinstance(owner.node, _ATOMS) else f"({owner.expression}){text}"
    return places.instead(owner.frame, site, owner.node, value)


# ---------------------------------------------------------------- NumPy


def library_name(frame: FrameType, library: str = "devtensor") -> str | None:
    """What the frame calls the library."""
    wanted = sys.modules[library]
    return next((name for name, value in variables.visible(frame) if value is wanted), None)


def _is_numpy_argument(failure: Failure) -> bool:
    """A NumPy array is the one argument that is wrong, where an array of devtensor is taken."""
    held = failure.facts[failure.culprit].object if failure.culprit >= 0 else None
    return failure.code == "invalid-argument" and is_ndarray(held) and " must be DeviceArray" in failure.message


def _from_numpy(failure: Failure) -> Fix | None:
    frame, site = failure.frame, failure.site
    theirs = failure.facts[failure.culprit]
    ours = next((fact for fact in failure.facts if fact is not theirs), None)
    if frame is None or site is None or theirs.node is None or theirs.name == "index" or theirs.expression is None:
        return None
    array, library = theirs.object, library_name(frame, failure.library)
    usable = array.dtype.isnative and array.flags.aligned and all(stride >= 0 for stride in array.strides)
    if not is_ndarray(array) or library is None or array.dtype.name not in _CASTS or not usable:
        return None
    if not _shapes_pass(failure) or (failure.call is not None and failure.call.writes and _widens(failure)):
        return None
    text = f"{library}.from_numpy({theirs.expression})"
    if ours is not None:
        text += f'.to("{ours.device}")' if str(ours.device) != "cpu" else ""
        if failure.op in _ONE_DTYPE and theirs.dtype_name != ours.dtype_name:
            text += f".{_CASTS[ours.dtype_name]}()"
    if places.is_assignable(frame, site, theirs.node):
        found = places.before(frame, site, f"{theirs.expression} = {text}")
    else:
        found = places.instead(frame, site, theirs.node, text)
    return _as_seen(failure, found)
