"""The op that failed: which function of PyTorch, with which operands, by the source of the frame it was called in."""

from __future__ import annotations

import ast
import inspect
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from devtensor._diagnosis import arrays, expressions, sources
from devtensor._diagnosis.facts import Fact, is_ndarray
from devtensor._diagnosis.variables import MISSING, resolve, variable
from devtensor._torch_errors import frames, recorder, shadows, tensors
from devtensor._torch_errors.shadows import Shadow

_KINDS = (*sources.EXPRESSIONS,)
_NAMES = {
    "cross_entropy_loss": "cross_entropy", "nll_loss_nd": "nll_loss", "nll_loss2d": "nll_loss", "_softmax": "softmax",
    "conv2d": "conv2d", "l1_loss": "l1_loss", "__matmul__": "matmul", "__add__": "add", "__mul__": "mul",
    "__sub__": "sub", "__truediv__": "div", "__rsub__": "sub", "__pow__": "pow",
}  # fmt: skip
_UNNAMED = {
    "cross_entropy": ("input", "target", "weight"), "nll_loss": ("input", "target", "weight"),
    "mse_loss": ("input", "target"), "l1_loss": ("input", "target"), "smooth_l1_loss": ("input", "target"),
    "huber_loss": ("input", "target"), "binary_cross_entropy": ("input", "target", "weight"),
    "embedding": ("weight", "input"),
    "batch_norm": ("input", "weight", "bias", "running_mean", "running_var"),
    "layer_norm": ("input", "normalized_shape", "weight", "bias"),
    "group_norm": ("input", "num_groups", "weight", "bias"),
    "broadcast_tensors": ("tensors",), "scaled_dot_product_attention": ("query", "key", "value", "attn_mask"),
}  # fmt: skip


@dataclass
class Failed:
    """A call that failed: its op, its function with all arguments, and the facts of its tensors."""

    op: str
    function: Callable[..., Any] | None
    given: list[Any] | None  # None where one is not known
    named: dict[str, Any] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    whole: bool = True  # every operand is among the facts
    fresh: bool = False  # the frame has done nothing since: its variables are what they were

    def replay(self, conversions: list[tuple[Fact, str]] | None = None) -> str | None:
        """What the call says on the meta device after conversions: "" if it passes, None where that is not known."""
        if self.function is None or self.given is None:
            return None
        held = [*self.given, *self.named.values()]
        if any(one is MISSING for one in held) or self.named.get("out") is not None:
            return None
        by_object = {id(fact.object): text for fact, text in conversions or () if fact.object is not None}
        by_name = {fact.name: text for fact, text in conversions or () if fact.object is None}
        if by_name:
            return None
        made: dict[int, Any] = {}

        def convert(value: Any) -> Any:
            if id(value) in made:
                return made[id(value)]
            if arrays.is_array(value):
                shadow = shadows.of(value).meta
                text = by_object.get(id(value), "")
                return made.setdefault(id(value), converted(shadow, text) if text else shadow)
            if type(value) in (list, tuple):
                return type(value)(map(convert, value))
            return shadows.metas(value)

        words = {key: convert(one) for key, one in self.named.items() if key not in ("device", "generator")}
        try:
            self.function(*map(convert, self.given), **words)
        except NotImplementedError:
            return None
        except Exception as error:
            return str(error) or type(error).__name__
        return ""


def converted(meta: Any, text: str) -> Any:
    """A shadow after what a fix appends to an expression, such as .to("cuda:0").float()."""
    node = ast.parse(f"x{text}", mode="eval").body
    return _convert(meta, node)


def _convert(meta: Any, node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        return meta
    if isinstance(node, ast.Attribute):
        return getattr(_convert(meta, node.value), node.attr)
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    inner, name = _convert(meta, node.func.value), node.func.attr
    if name in ("to", "cpu", "cuda"):
        return inner
    return getattr(inner, name)(*map(ast.literal_eval, node.args))


def op_name(function: Any) -> str:
    name = str(getattr(function, "__name__", ""))
    if name == "__get__":
        name = str(getattr(getattr(function, "__self__", None), "__name__", ""))
    name = _NAMES.get(name, name)
    return name.strip("_") or name


def read(stack: list[frames.At]) -> Failed | None:
    """The failing call of a stack, the innermost frame that tells of one; None where there is none of PyTorch's."""
    for at in reversed(stack):
        if recorder.is_mode(at.f_code):
            return _recorded(at)
        if not frames.is_inside(at.f_code.co_filename):
            break
    else:
        return None
    if frames.raises(at):
        return _of_parameters(stack, at)
    site = sources.locate(at, _KINDS)  # type: ignore[arg-type]
    found = _written(at, site) if site is not None else None
    if at.doubted:
        return None
    if found is not None:
        found.fresh = at.real.f_lasti == at.f_lasti
    return found


# ---------------------------------------------------------------- by the source


def _written(at: frames.At, site: sources.Site) -> Failed | None:
    node, owner = site.node, site.owner
    if isinstance(node, ast.BinOp | ast.AugAssign):
        name, plain, in_place = shadows.BINARY[type(node.op)]
        sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.target, node.value]
        function: Any = plain if isinstance(node, ast.BinOp) else in_place
        return _operator(at, name, function, sides, owner)
    if isinstance(node, ast.UnaryOp) and type(node.op) in shadows.UNARY:
        name, one = shadows.UNARY[type(node.op)]
        return _operator(at, name, one, [node.operand], owner)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in shadows.COMPARE:
        name, two = shadows.COMPARE[type(node.ops[0])]
        return _operator(at, name, two, [node.left, node.comparators[0]], owner)
    if isinstance(node, ast.Subscript):
        return _subscript(at, site, node)
    if isinstance(node, ast.Attribute):
        return _operator(at, node.attr, None, [node.value], owner)
    return _called(at, site, node) if isinstance(node, ast.Call) else None


def _operator(at: frames.At, op: str, function: Any, sides: list[ast.expr], owner: str | None) -> Failed | None:
    given = [shadows.value_of(at, side, owner) for side in sides]
    found = Failed(op, function, given)
    for name, value, node in zip(("input", "other"), given, sides, strict=False):
        _add(found, name, value, node)
    return found if found.facts else None


def _subscript(at: frames.At, site: sources.Site, node: ast.Subscript) -> Failed | None:
    base = shadows.value_of(at, node.value, site.owner)
    index = shadows._index(at, node.slice, site.owner)
    if isinstance(node.ctx, ast.Load):
        found = Failed("getitem", operator.getitem, [base, index])
    else:
        value = MISSING
        for outer in reversed(site.path):
            if isinstance(outer, ast.Assign) and any(target is node for target in outer.targets):
                value = shadows.value_of(at, outer.value, site.owner)
                found = Failed("setitem", operator.setitem, [base, index, value])
                _add(found, "value", value, outer.value)
                break
        else:
            return None
    _add(found, "input", base, node.value)
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    values = index if isinstance(node.slice, ast.Tuple) and type(index) is tuple else [index]
    for part, one in zip(parts, values, strict=False):
        _add(found, "index", one, part)
    found.facts.sort(key=lambda fact: ("input", "index", "value").index(fact.name))
    return found if found.facts else None


def _called(at: frames.At, site: sources.Site, node: ast.Call) -> Failed | None:
    callee = resolve(at, node.func, site.owner)  # type: ignore[arg-type]
    if type(callee) in (type, FunctionType) or arrays.is_module(callee):
        return None  # its own frame would be there
    function, base = shadows.function_of(at, node.func, site.owner)
    if function is None:
        return _converting(at, site, node, callee)
    read = shadows.arguments_of(at, node, site.owner)
    method = tensors.is_method(function)
    receiver = node.func.value if base is not None and isinstance(node.func, ast.Attribute) else None
    if read is None:
        return None
    given, named, nodes = read
    if receiver is not None:
        given, nodes = [base, *given], [receiver, *nodes]
    op = op_name(function)
    signature = arrays.signature(function)
    names = _UNNAMED.get(op) or (signature[0] if signature is not None else ())
    if method and names[:1] != ("input",):
        names = ("input", *names)
    found = Failed(op, function, given, named)
    for i, (value, one) in enumerate(zip(given, nodes, strict=True)):
        _add(found, names[i] if i < len(names) else _last_word(one, i), value, one)
    for key, value in named.items():
        _add(found, key, value, next((k.value for k in node.keywords if k.arg == key), None))
    return found if found.facts else None


def _last_word(node: ast.expr, i: int) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else f"argument {i + 1}"


def _converting(at: frames.At, site: sources.Site, node: ast.Call, callee: Any) -> Failed | None:
    """float(x), bool(x), len(x): Python asks the tensor."""
    if callee not in (float, int, bool, len, iter) or len(node.args) != 1:
        return None
    found = Failed(callee.__name__, None, None)
    _add(found, "input", shadows.value_of(at, node.args[0], site.owner), node.args[0])
    return found if found.facts else None


# ---------------------------------------------------------------- raised by a function of PyTorch's, or recorded


def _of_parameters(stack: list[frames.At], at: frames.At) -> Failed | None:
    """A function of PyTorch's written in Python that refuses its arguments: those of the outermost such frame."""
    if not frames.is_torch(at.f_code.co_filename):
        return None
    public = at
    for one in reversed(stack[: stack.index(at)]):
        if not frames.is_torch(one.f_code.co_filename):
            break
        if one.f_code.co_name not in ("_wrapped_call_impl", "_call_impl", "__call__", "wrapper", "decorate_context"):
            public = one if not _is_container(one) else public
    code = public.f_code
    op = code.co_name
    module = variable(public, code.co_varnames[0]) if code.co_argcount else MISSING  # type: ignore[arg-type]
    if op == "forward" and arrays.is_module(module):
        op = type(module).__name__
    found = Failed(op, None, None)
    changed = expressions.rebound(code)
    handed = [variable(one, name) for one in stack[stack.index(public) + 1 :] for name in _arguments(one)]  # type: ignore[arg-type]
    for name in _arguments(public):
        value = variable(public, name)  # type: ignore[arg-type]
        if name not in changed or any(value is one for one in handed):  # what a helper was given is there to be told
            _add(found, name, value, None)
    return found if found.facts and not public.doubted else None


def _arguments(at: frames.At) -> tuple[str, ...]:
    return at.f_code.co_varnames[: at.f_code.co_argcount + at.f_code.co_kwonlyargcount]


def _is_container(at: frames.At) -> bool:
    module = variable(at, "self")  # type: ignore[arg-type]
    return arrays.is_module(module) and type(module).__name__ in ("Sequential", "DataParallel")


def _recorded(at: frames.At) -> Failed | None:
    """The variables of the mode's own frame are the call."""
    function = variable(at, "func")  # type: ignore[arg-type]
    args, kwargs = variable(at, "args"), variable(at, "kwargs")  # type: ignore[arg-type]
    if function is MISSING or type(args) is not tuple:
        return None
    op = op_name(function)
    signature = arrays.signature(function)
    names: tuple[str, ...] = _UNNAMED.get(op) or (signature[0] if signature is not None else ())
    if type(function) is FunctionType:
        names = tuple(inspect.signature(function).parameters)
    elif tensors.is_method(function) and names[:1] != ("input",):
        names = ("input", *names)
    found = Failed(op, function, list(args), dict(kwargs or {}), fresh=True)
    for i, value in enumerate(args):
        _add(found, names[i] if i < len(names) else f"argument {i + 1}", value, None)
    for key, value in (kwargs or {}).items():
        _add(found, key, value, None)
    return found if found.facts else None


# ---------------------------------------------------------------- facts


def _add(found: Failed, name: str, value: Any, node: ast.expr | None) -> None:
    if value is MISSING:
        found.whole = False
        return
    if type(value) in (list, tuple) and len(value) <= 64:
        for i, one in enumerate(value):
            if arrays.is_array(one) or type(one) is Shadow:
                _add(found, f"{name}[{i}]", one, None)
        return
    if type(value) is Shadow:
        shape, dtype, device = tuple(value.meta.shape), value.meta.dtype, tensors.torch().device(value.device)
        found.facts.append(Fact(name, shape, dtype, device, (), None, node))
    elif arrays.is_array(value):
        history = tuple(one.step for one in arrays.steps(value))
        fact = Fact(name, tuple(map(int, value.shape)), value.dtype, value.device, history, value, node)
        found.facts.append(fact)
    elif is_ndarray(value):
        found.facts.append(Fact(name, value.shape, value.dtype, tensors.torch().device("cpu"), (), value, node))
