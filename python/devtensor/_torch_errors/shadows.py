"""What an expression would be, computed on tensors without elements: its shape, dtype and device.

A temporary such as x.T or model_input * 2 has ended when its error arrives. Its expression is evaluated again on the
meta device, where nothing is computed, if nothing but compiled ops of PyTorch stands in it.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from devtensor._diagnosis import arrays
from devtensor._diagnosis.variables import MISSING, is_a, resolve
from devtensor._torch_errors import tensors

BINARY: dict[type[ast.AST], tuple[str, Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add, operator.iadd), ast.Sub: ("sub", operator.sub, operator.isub),
    ast.Mult: ("mul", operator.mul, operator.imul), ast.Div: ("div", operator.truediv, operator.itruediv),
    ast.FloorDiv: ("floor_divide", operator.floordiv, operator.ifloordiv),
    ast.Mod: ("remainder", operator.mod, operator.imod), ast.Pow: ("pow", operator.pow, operator.ipow),
    ast.MatMult: ("matmul", operator.matmul, operator.imatmul),
    ast.BitAnd: ("bitwise_and", operator.and_, operator.iand), ast.BitOr: ("bitwise_or", operator.or_, operator.ior),
    ast.BitXor: ("bitwise_xor", operator.xor, operator.ixor),
}  # fmt: skip
COMPARE: dict[type[ast.AST], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("eq", operator.eq), ast.NotEq: ("ne", operator.ne), ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le), ast.Gt: ("gt", operator.gt), ast.GtE: ("ge", operator.ge),
}  # fmt: skip
UNARY: dict[type[ast.AST], tuple[str, Callable[[Any], Any]]] = {
    ast.USub: ("neg", operator.neg), ast.UAdd: ("positive", operator.pos), ast.Invert: ("bitwise_not", operator.invert)
}  # fmt: skip
_VIEWS = {"T", "mT", "H", "mH", "data", "real", "imag"}
_TOLD = {"shape", "dtype", "device", "ndim"}
_LARGEST = 1 << 40


class Shadow(NamedTuple):
    """A tensor without elements, and the device that the real one is on."""

    meta: Any
    device: str


def of(value: Any) -> Shadow:
    """The shadow of a tensor that is there."""
    torch = tensors.torch()
    meta = torch.empty_strided(
        tuple(value.shape), value.stride() if value.layout is torch.strided else (1,) * value.dim(),
        dtype=value.dtype, device="meta",
    )  # fmt: skip
    return Shadow(meta, str(value.device))


def shadowed(value: Any) -> Any:
    """The value with shadows in the place of tensors, also in lists and tuples."""
    if arrays.is_array(value):
        return of(value)
    if type(value) in (list, tuple):
        return type(value)(map(shadowed, value))
    return value


def metas(value: Any) -> Any:
    """The value with its metas in the place of shadows."""
    if type(value) is Shadow:
        return value.meta
    if type(value) in (list, tuple):
        return type(value)(map(metas, value))
    torch = tensors.torch()
    return torch.device("meta") if type(value) is torch.device else value


def all_in(value: Any) -> list[Shadow]:
    if type(value) is Shadow:
        return [value]
    return [one for part in value for one in all_in(part)] if type(value) in (list, tuple) else []


def value_of(frame: Any, node: ast.AST | None, owner: str | None) -> Any:
    """What an expression holds: the object, or a Shadow of what it was; MISSING where that is not known."""
    held = resolve(frame, node, owner)
    if held is not MISSING or node is None:
        return held
    try:
        return _evaluated(frame, node, owner)
    except Exception:  # an op that the meta device lacks, or one that fails on it too
        return MISSING


def _evaluated(frame: Any, node: ast.AST, owner: str | None) -> Any:
    if isinstance(node, ast.Attribute):
        return _attribute(value_of(frame, node.value, owner), node.attr)
    if isinstance(node, ast.BinOp):
        function: Any = BINARY[type(node.op)][1]
        return _applied(function, [value_of(frame, side, owner) for side in (node.left, node.right)], {})
    if isinstance(node, ast.UnaryOp):
        return _applied(UNARY[type(node.op)][1], [value_of(frame, node.operand, owner)], {})
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        given = [value_of(frame, side, owner) for side in (node.left, node.comparators[0])]
        return _applied(COMPARE[type(node.ops[0])][1], given, {})
    if isinstance(node, ast.Subscript):
        return _applied(operator.getitem, [value_of(frame, node.value, owner), _index(frame, node.slice, owner)], {})
    if isinstance(node, ast.Tuple | ast.List):
        parts = [value_of(frame, part, owner) for part in node.elts]
        return MISSING if any(part is MISSING for part in parts) else type(parts)(parts)
    if isinstance(node, ast.Call):
        return _called(frame, node, owner)
    return MISSING


def _attribute(base: Any, name: str) -> Any:
    if base is MISSING:
        return MISSING
    shadow = of(base) if arrays.is_array(base) else base
    if type(shadow) is not Shadow:
        return MISSING
    if name in _TOLD:
        return tensors.torch().device(shadow.device) if name == "device" else getattr(shadow.meta, name)
    return Shadow(getattr(shadow.meta, name), shadow.device) if name in _VIEWS else MISSING


def _index(frame: Any, node: ast.AST, owner: str | None) -> Any:
    if isinstance(node, ast.Slice):
        parts = [value_of(frame, part, owner) if part is not None else None
                 for part in (node.lower, node.upper, node.step)]  # fmt: skip
        return MISSING if any(part is MISSING for part in parts) else slice(*parts)
    if isinstance(node, ast.Tuple):
        entries = [_index(frame, part, owner) for part in node.elts]
        return MISSING if any(one is MISSING for one in entries) else tuple(entries)
    return value_of(frame, node, owner)


def function_of(frame: Any, func: ast.expr, owner: str | None) -> tuple[Any, Any]:
    """What is called: a compiled op of PyTorch, or a method of tensors and the tensor; (None, None) of all else."""
    torch = tensors.torch()
    callee = resolve(frame, func, owner)
    if callee is not MISSING:
        return (callee, None) if tensors.is_op(callee) else (None, None)
    if not isinstance(func, ast.Attribute):
        return None, None
    base = value_of(frame, func.value, owner)
    if arrays.is_array(base) or type(base) is Shadow:
        found = vars(torch.Tensor).get(func.attr) or getattr(torch._C.TensorBase, func.attr, None)
        return (found, base) if tensors.is_method(found) else (None, None)
    if getattr(base, "__name__", "") == "torch._VF":
        found = getattr(torch._C._VariableFunctions, func.attr, None)
        return (found, None) if found is not None else (None, None)
    return None, None


def arguments_of(
    frame: Any, node: ast.Call, owner: str | None
) -> tuple[list[Any], dict[str, Any], list[ast.expr]] | None:
    """Positional values, keyword values and the expressions of the positional ones; None where one is not known."""
    given: list[Any] = []
    nodes: list[ast.expr] = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            held = resolve(frame, argument.value, owner)
            if type(held) not in (list, tuple):
                return None
            given += held
            nodes += [argument.value] * len(held)
        else:
            given.append(value_of(frame, argument, owner))
            nodes.append(argument)
    named: dict[str, Any] = {}
    for keyword in node.keywords:
        held = value_of(frame, keyword.value, owner)
        if keyword.arg is not None:
            named[keyword.arg] = held
        elif type(held) is dict:
            named |= held
        else:
            return None
    return given, named, nodes


def _called(frame: Any, node: ast.Call, owner: str | None) -> Any:
    read = arguments_of(frame, node, owner)
    callee = resolve(frame, node.func, owner)
    if (
        read is not None
        and getattr(callee, "__name__", "") == "get_enum"
        and callee.__module__ == "torch.nn._reduction"
    ):
        return MISSING if any(one is MISSING for one in read[0]) else callee(*read[0])  # "mean" as a number
    function, base = function_of(frame, node.func, owner)
    if function is None or read is None:
        return MISSING
    given, named, _ = read
    name = getattr(function, "__name__", "")
    if (name.endswith("_") and not name.endswith("__")) or "out" in named:
        return MISSING
    if name == "from_numpy" and len(given) == 1 and arrays_of_numpy(given[0]):
        return _from_numpy(given[0])
    return _applied(function, given if base is None else [base, *given], named)


def arrays_of_numpy(value: Any) -> bool:
    return (type(value).__module__, type(value).__name__) == ("numpy", "ndarray")


def _from_numpy(array: Any) -> Any:
    torch = tensors.torch()
    dtype = getattr(torch, {"bool": "bool"}.get(array.dtype.name, array.dtype.name), None)
    return Shadow(torch.empty(array.shape, dtype=dtype, device="meta"), "cpu") if dtype is not None else MISSING


def _applied(function: Any, given: list[Any], named: dict[str, Any]) -> Any:
    if any(one is MISSING for one in [*given, *named.values()]):
        return MISSING
    torch = tensors.torch()
    given, named = [shadowed(one) for one in given], {key: shadowed(one) for key, one in named.items()}
    shadows = all_in([*given, *named.values()])
    device = _device_after(function, given, named, shadows)
    if device is None or (not shadows and not tensors.is_op(function)):
        return MISSING
    name = getattr(function, "__name__", "")
    plain = [metas(one) for one in given]
    words = {key: metas(one) for key, one in named.items() if key not in ("device", "generator", "pin_memory")}
    if not shadows:
        if name in ("from_numpy", "from_dlpack", "frombuffer", "load"):
            return MISSING
        words["device"] = "meta"
    elif name in ("to", "cuda", "cpu"):
        return Shadow(_cast(shadows[0].meta, given[1:], named), device)
    result = function(*plain, **words)
    if is_a(result, torch.Tensor):
        return Shadow(result, device) if result.device.type == "meta" and result.numel() < _LARGEST else MISSING
    if is_a(result, tuple, list):
        parts = [Shadow(one, device) if is_a(one, torch.Tensor) else one for one in result]
        return parts
    return result


def _device_after(function: Any, given: list[Any], named: dict[str, Any], shadows: list[Shadow]) -> str | None:
    torch = tensors.torch()
    name = getattr(function, "__name__", "")
    if named.get("device") is not None:
        return str(torch.device(named["device"]))
    if name == "cpu" and shadows:
        return "cpu"
    if name == "cuda" and shadows:
        return f"cuda:{torch.cuda.current_device()}" if torch.cuda.is_initialized() else None
    if name == "to" and shadows:
        for one in given[1:2]:
            if type(one) is Shadow:
                return one.device
            if isinstance(one, str | torch.device):
                return str(torch.device(one))
        return shadows[0].device
    if not shadows:
        return _default_device()
    places = {one.device for one in shadows if one.meta.dim() or one.device != "cpu"} or {shadows[0].device}
    return places.pop() if len(places) == 1 else None


def _default_device() -> str:
    try:
        return str(tensors.torch().get_default_device())
    except AttributeError:  # of PyTorch 2.4 after set_default_device(None)
        return "cpu"


def _cast(meta: Any, given: list[Any], named: dict[str, Any]) -> Any:
    torch = tensors.torch()
    told = [one for one in [*given, named.get("dtype")] if type(one) is torch.dtype]
    like = [one.meta.dtype for one in given[:1] if type(one) is Shadow]
    return meta.to((told or like or [meta.dtype])[0])
