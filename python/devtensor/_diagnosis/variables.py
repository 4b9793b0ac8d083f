"""What a name, an attribute or an entry holds in a frame, looked up without running any code of the user's."""

from __future__ import annotations

import ast
import collections
import inspect
import types
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

from devtensor import _C
from devtensor._diagnosis import arrays

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING"})()

_DICTS = (dict, collections.OrderedDict, collections.defaultdict)
_KEYS = (int, str, bool, float, bytes, type(None))
_FIELD = type(collections.namedtuple("_Field", "x").x)  # type: ignore[attr-defined]
_OPTIMIZED = inspect.CO_OPTIMIZED


def is_a(value: Any, *kinds: type) -> bool:
    """isinstance, without asking the object for its __class__."""
    return issubclass(type(value), kinds)


def fast_names(code: CodeType) -> tuple[str, ...]:
    """The names that live in the frame itself."""
    return code.co_varnames + code.co_cellvars + code.co_freevars


def variable(frame: FrameType, name: str) -> Any:
    """The value of a name as the code of the frame sees it, or MISSING."""
    if _is_doubted(frame, name):
        return MISSING
    code = frame.f_code
    if name in fast_names(code):
        value = _C._frame_variable(getattr(frame, "real", frame), name, MISSING)
        if value is not MISSING or code.co_flags & _OPTIMIZED:
            return value
    spaces = [frame.f_globals, frame.f_builtins]
    if not code.co_flags & _OPTIMIZED:
        spaces.insert(0, frame.f_locals)  # of a module or a class: no snapshot, but the namespace itself
    for space in spaces:
        if type(space) is dict and name in space:
            return space[name]
    return MISSING


def _is_doubted(frame: FrameType, what: str) -> bool:
    """Whether the frame has run on since the failing instruction, and may have stored this meanwhile."""
    doubts = getattr(frame, "doubts", None)
    return doubts is not None and bool(doubts(what))


def instance_dict(value: Any) -> dict[str, Any]:
    """The __dict__ of an object, without asking the object."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except Exception:
        return {}
    return found if type(found) is dict else {}


def module_tables(value: Any) -> list[dict[str, Any]]:
    """The parameters, buffers and modules of a Module by name, known by its registers; empty for anything else."""
    own = instance_dict(value)
    if is_a(value, type):
        return []
    tables: list[Any] = [own.get(table) for table in ("_parameters", "_buffers", "_modules")]
    if all(type(table) in _DICTS for table in tables) and arrays.is_module(value):
        return [dict(table) for table in tables]
    names = [own.get(table) for table in ("_parameter_names", "_buffer_names", "_module_names")]
    if not all(type(table) is dict for table in names):
        return []
    return [{name: own.get(name, held) for name, held in table.items()} for table in names]  # type: ignore[union-attr]


def attribute(value: Any, name: str) -> Any:
    """value.name, or MISSING where finding out would run code."""
    if arrays.is_plain_array(value) or arrays.is_registered(value):
        return MISSING  # x.T makes a new array each time
    if is_a(value, types.ModuleType):
        return instance_dict(value).get(name, MISSING)
    found = inspect.getattr_static(value, name, MISSING)
    if type(found) in (types.MemberDescriptorType, _FIELD):
        return MISSING if is_a(value, type) else found.__get__(value, type(value))
    if type(found) is staticmethod:
        return found.__func__
    own = instance_dict(value)
    if name in own and found is own[name]:
        return found
    if found is MISSING:  # a Module of PyTorch has them in its tables alone
        return next((table[name] for table in module_tables(value) if table.get(name) is not None), MISSING)
    plain = is_a(found, types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType)
    return found if plain or inspect.getattr_static(type(found), "__get__", None) is None else MISSING


def entry(value: Any, key: Any) -> Any:
    """value[key] of a list, tuple, dict or Module container, or MISSING."""
    if type(value) is list or (is_a(value, tuple) and type(value).__getitem__ is tuple.__getitem__):
        if type(key) is int and -len(value) <= key < len(value):
            return tuple.__getitem__(value, key) if is_a(value, tuple) else value[key]
        return MISSING
    if type(value) in _DICTS and _is_key(key):
        return dict.get(value, key, MISSING)
    tables = module_tables(value)
    if tables and type(key) in (int, str):
        return tables[2].get(str(key), MISSING)
    return MISSING


def _is_key(key: Any) -> bool:
    return type(key) in _KEYS or (type(key) is tuple and all(_is_key(part) for part in key))


def resolve(frame: FrameType, node: ast.AST | None, owner: str | None = None) -> Any:
    """What an expression holds, for names, attributes, entries and constants; MISSING for everything else.

    owner is the class around the code, for names like self.__weight.
    """
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return variable(frame, node.id)
    if isinstance(node, ast.NamedExpr):
        return resolve(frame, node.target, owner)
    if isinstance(node, ast.Attribute):
        base = resolve(frame, node.value, owner)
        if base is MISSING:
            return MISSING
        name = node.attr
        if _is_doubted(frame, f".{name}"):
            return MISSING
        if owner and name.startswith("__") and not name.endswith("__"):
            name = f"_{owner.lstrip('_')}{name}"
        return attribute(base, name)
    if isinstance(node, ast.Subscript):
        base, key = resolve(frame, node.value, owner), resolve(frame, node.slice, owner)
        return MISSING if base is MISSING or key is MISSING or _is_doubted(frame, "[]") else entry(base, key)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = resolve(frame, node.operand, owner)
        return -value if type(value) in (int, float) else MISSING
    if isinstance(node, ast.Tuple):
        parts = tuple(resolve(frame, part, owner) for part in node.elts)
        return MISSING if any(part is MISSING for part in parts) else parts
    return MISSING


def visible(frame: FrameType) -> Iterator[tuple[str, Any]]:
    """The variables of the frame, then those of its module."""
    code = frame.f_code
    seen = set()
    for name in fast_names(code):
        value = _C._frame_variable(getattr(frame, "real", frame), name, MISSING)
        if value is not MISSING and not _is_doubted(frame, name):
            seen.add(name)
            yield name, value
    spaces = [frame.f_globals]
    if not code.co_flags & _OPTIMIZED:
        spaces.insert(0, frame.f_locals)
    for space in spaces:
        if type(space) is dict:
            for name, value in list(space.items()):
                if type(name) is str and name not in seen and not _is_doubted(frame, name):
                    seen.add(name)
                    yield name, value


def find(frame: FrameType, wanted: Any) -> str | None:
    """A variable, or an attribute of one, that is this very object."""
    names = list(visible(frame))[:2000]
    for name, value in names:
        if value is wanted and not name.startswith("@"):
            return name
    local = set(fast_names(frame.f_code))
    for name, value in names:
        if name in local and not is_a(value, type, types.ModuleType):
            for key, held in list(instance_dict(value).items())[:200]:
                if held is wanted and type(key) is str and key.isidentifier():
                    return f"{name}.{key}"
    return None


def below(module: Any, limit: int = 10000) -> list[tuple[str, Any]]:
    """(path, Module) of a Module and those below it, such as ("layer3.", ...); nothing for anything else."""
    stack: list[tuple[str, Any]] = [("", module)]
    found: list[tuple[str, Any]] = []
    seen: set[int] = set()
    while stack and len(found) < limit:
        path, current = stack.pop()
        tables = module_tables(current)
        if id(current) in seen or not tables:
            continue
        seen.add(id(current))
        found.append((path, current))
        stack += [(f"{path}{key}.", child) for key, child in tables[2].items()]
    return found


def inside(module: Any, wanted: Any) -> str | None:
    """The path of a parameter or buffer below a Module, such as "layer3.conv1.weight"."""
    for path, one in below(module):
        for table in module_tables(one)[:2]:
            for key, held in table.items():
                if held is wanted:
                    return f"{path}{key}"
    return None
