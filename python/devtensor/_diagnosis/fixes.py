"""One statement, in the caller's names, with which the failing one passes; nothing where that is not sure."""

from __future__ import annotations

import ast
import collections
import contextlib
import inspect
import re
import sys
import types
from collections.abc import Sequence
from types import FrameType
from typing import Any

from devtensor._diagnosis import arrays, callers, shapes, variables
from devtensor._diagnosis.facts import Fact, Failure, Fix, is_ndarray
from devtensor._diagnosis.reads import FORMS, UNARY, Reads
from devtensor._diagnosis.sources import Site
from devtensor._diagnosis.variables import MISSING, attribute, entry, instance_dict, is_a, module_tables, resolve
from devtensor._errors import Origin

Conversion = tuple[Fact, str]

_CASTS = {
    "float32": "float", "float64": "double", "float16": "half", "bfloat16": "bfloat16", "int64": "long",
    "int32": "int", "int16": "short", "int8": "char", "uint8": "byte", "bool": "bool",
}  # fmt: skip
_NESTED = ("<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
_INNER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_ATOMS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.List, ast.Tuple)
_CATEGORY = {"bool": 0, "uint8": 1, "int8": 1, "int16": 1, "int32": 1, "int64": 1}
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
_ONE_DTYPE = shapes.PRODUCTS | {"conv2d", "outer", "isclose", "allclose"}


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
        return found
    at = found.at
    here = at is not None and (at.filename, at.lineno) == (failure.frame.f_code.co_filename, failure.frame.f_lineno)
    return found._replace(at=None) if here else found


def _told(text: str | None) -> Fix | None:
    return Fix(text) if text is not None else None


def _as_made(failure: Failure, fact: Fact, text: str, held: callers.Held | None) -> Fix | None:
    """The call that made the operand, with the device of the others: torch.arange(n, device=x.device)."""
    device = re.fullmatch(r"\.to\(\"(.*)\"\)", text)
    found = callers.made(failure, fact, held, device.group(1)) if device is not None else None
    if found is None:
        return None
    return _instead(found.frame, found.site, found.node, found.text, found.node.lineno)


def _of_caller(held: callers.Held, text: str) -> Fix | None:
    """The conversion of what a caller handed on, in the caller's words."""
    written = held.text
    value = f"{written}{text}" if isinstance(held.node, _ATOMS) else f"({written}){text}"
    line = next((one.lineno for one in reversed(held.site.path) if isinstance(one, ast.stmt)), 0)
    at = Origin("call", held.frame.f_code.co_filename, line)
    if line and is_assignable(held.frame, held.site, held.node) and not _comes_again(held.site, held.node, text):
        begins_anew = held.site.lines[line - 1].lstrip().startswith("elif")
        return None if begins_anew else Fix(f"{written} = {value}", at)
    unpacked = _repacked(held.frame, held.node, value)
    if unpacked is not None and line:
        return Fix(unpacked, at)
    return _instead(held.frame, held.site, held.node, value, getattr(held.node, "lineno", 0))


def _instead(frame: FrameType, site: Site, node: ast.expr, text: str, lineno: int) -> Fix | None:
    """text in the place of an expression, where that stands on its line once."""
    of = site.text(node)
    if not 0 < lineno <= len(site.lines) or site.lines[lineno - 1].count(of) != 1:
        return None
    return Fix(text, Origin("call", frame.f_code.co_filename, lineno), "instead", of)


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
    return failure.op in ("getitem", "setitem") or shapes.passes(failure.op, _shapes(failure)) is not False


def _to_one_device(failure: Failure) -> list[Conversion]:
    if "on a CUDA device" in failure.message:  # a kernel was given arrays of the host
        return [(fact, '.to("cuda")') for fact in failure.facts]
    if failure.culprit < 0 or not _shapes_pass(failure):
        return []
    device = _most([str(d) for d in _votes(failure, "device")], lambda d: d != "cpu")
    if failure.stays is not None:
        device = str(failure.stays.device)
    dtype = _common_dtype(failure) if failure.op in _ONE_DTYPE else None
    if dtype is not None and (_CATEGORY.get(dtype, 2) < 2 or any(_CATEGORY.get(f.dtype_name) for f in failure.facts)):
        return []
    found = []
    for fact in failure.facts:
        text = "" if str(fact.device) == device else f'.to("{device}")'
        if dtype is not None and fact.dtype_name != dtype:
            text += f".{_CASTS[dtype]}()"
        if text:
            found.append((fact, text))
    if failure.call is not None and failure.call.writes and _widens(failure):
        return []
    return found


def _common_dtype(failure: Failure) -> str:
    names = [fact.dtype_name for fact in failure.facts]
    return str(_most(names, lambda name: name != "float64"))


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
    if _CATEGORY.get(dtype, 2) < 2:  # products of ints are refused next
        dtype = next((fact.dtype_name for fact in failure.facts if fact.dtype_name not in _CATEGORY), None)
        if dtype is None:
            return []
    return [(fact, f".{_CASTS[dtype]}()") for fact in _alike(failure) if fact.dtype_name != dtype]


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


def _to_index(failure: Failure, culprit: Fact) -> list[Conversion]:
    """uint8 may be meant as a mask or as places."""
    if "bool tensor for mask" in failure.message:
        return [(culprit, ".bool()")]
    return [(culprit, ".long()")] if culprit.dtype_name not in ("uint8", "bool") else []


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
        return is_assignable(frame, site, node)
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
    frame, site = failure.frame, failure.site
    assert frame is not None and site is not None
    if all(fact.owner is not None and same_owner(fact, conversions[0][0]) for fact, _ in conversions):
        return _told(_module_statement(failure, conversions))
    of_tuple = _tuple_statement(frame, site, conversions)
    if of_tuple is not None:
        return Fix(of_tuple)
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
        if not is_assignable(frame, site, fact.node) or _comes_again(site, fact.node, text):
            unpacked = _repacked(frame, fact.node, value) if len(conversions) == 1 else None
            if unpacked is not None:
                return Fix(unpacked)
            if len(conversions) != 1 or _is_written(failure, fact):
                return None
            return Fix(value, None, "instead", written)
        if written not in targets:
            targets.append(written)
            values.append(value)
    return Fix(f"{', '.join(targets)} = {', '.join(values)}")


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
    return Fix(f"{name} = {value}") if is_assignable(frame, site, node.value) else Fix(value, None, "instead", name)


def _repacked(frame: FrameType, node: ast.expr, value: str) -> str | None:
    """The tuple that * unpacks, args, with value in the place of its entry args[1]."""
    if not getattr(node, "synthetic", False) or not isinstance(node, ast.Subscript):
        return None
    base, key = node.value, getattr(node.slice, "value", None)
    if not isinstance(base, ast.Name) or type(key) is not int or not _is_own_name(frame, base.id):
        return None
    name = base.id
    return f"{name} = (*{name}[:{key}], {value}, *{name}[{key + 1}:])"


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
    places = {key % len(held): text for key, (_, text) in zip(keys, conversions, strict=True)}
    if not is_assignable(frame, site, ast.Name(name)):
        return None
    if len(places) == len(held) and len(set(places.values())) == 1:
        return f"{name} = tuple(one{min(places.values())} for one in {name})"
    entries = ", ".join(f"{name}[{i}]{places.get(i, '')}" for i in range(len(held)))
    return f"{name} = ({entries})"


def _is_written(failure: Failure, fact: Fact) -> bool:
    """Whether the operand is what the statement assigns to: no expression can stand in its place."""
    node = failure.site.node if failure.site is not None else None
    return fact.name == "input" and isinstance(node, ast.AugAssign | ast.Subscript)


def _module_statement(failure: Failure, conversions: list[Conversion]) -> str | None:
    texts = {text for _, text in conversions}
    owner = conversions[0][0].owner
    if owner is None or len(texts) != 1:
        return None
    text = texts.pop()
    whole = text.startswith((".to(", ".cpu(")) or text in (".float()", ".double()", ".half()", ".bfloat16()")
    return f"{owner.expression}{text}" if whole else None


def is_assignable(frame: FrameType, site: Site, node: ast.expr) -> bool:
    """Whether `node = ...`, just before the statement, changes what the statement sees."""
    if frame.f_code.co_name in _NESTED or any(isinstance(outer, _INNER) for outer in site.path):
        return False
    start = max((i for i, outer in enumerate(site.path) if isinstance(outer, ast.stmt)), default=0)
    statement = site.path[start]
    if any(isinstance(outer, ast.match_case) for outer in site.path[start:]):
        return False
    bound = {inner.target.id for inner in ast.walk(statement) if isinstance(inner, ast.NamedExpr)}
    names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    if bound & names:
        return False
    if isinstance(node, ast.Name):
        return _is_own_name(frame, node.id)
    if isinstance(node, ast.Attribute):
        return _is_plain_attribute(resolve(frame, node.value, site.owner), node.attr)
    if isinstance(node, ast.Subscript):
        base, key = resolve(frame, node.value, site.owner), resolve(frame, node.slice, site.owner)
        return type(base) in (list, dict) and key is not MISSING and entry(base, key) is not MISSING
    return False


# What is another array when it is done twice.
_ONCE = (".T", ".mT", ".permute(", ".transpose(", ".unsqueeze(", ".squeeze(", ".argmax(")


def _comes_again(site: Site, node: ast.expr, text: str) -> bool:
    """Whether the statement may run again with what was assigned: x = x.T in a loop would turn x back."""
    if not text.startswith(_ONCE):
        return False
    loops = [outer for outer in site.path if isinstance(outer, ast.For | ast.While | ast.AsyncFor)]
    return bool(loops) or isinstance(node, ast.Attribute | ast.Subscript)


def _is_own_name(frame: FrameType, name: str) -> bool:
    code = frame.f_code
    if code.co_flags & inspect.CO_OPTIMIZED:
        return name in code.co_varnames or name in code.co_cellvars
    return type(frame.f_locals) is dict and name in frame.f_locals


def _is_plain_attribute(base: Any, name: str) -> bool:
    if base is MISSING or is_a(base, type):
        return False
    if is_a(base, types.ModuleType):
        return name in instance_dict(base)
    plain = inspect.getattr_static(type(base), "__setattr__") is object.__setattr__ or bool(module_tables(base))
    if name.startswith("__") or not plain:
        return False
    static = inspect.getattr_static(type(base), name, MISSING)
    if type(static) is types.MemberDescriptorType:
        return True
    return name in instance_dict(base) and attribute(base, name) is instance_dict(base)[name]


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
    if is_assignable(frame, site, theirs.node):
        return Fix(f"{theirs.expression} = {text}")
    return Fix(text, None, "instead", theirs.expression)
