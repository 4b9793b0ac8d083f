"""Whether a function only looks at an array, or reshapes it, before a line: then the array may be converted before the
function is called, in place of in front of that line."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from devtensor._diagnosis import arrays
from devtensor._diagnosis.sources import WHOLE, Site
from devtensor._diagnosis.variables import MISSING, below, instance_dict, module_tables, resolve

# What tells of an array without its elements.
METADATA = {
    "shape", "size", "ndim", "dim", "ndimension", "dtype", "device", "numel", "nelement", "element_size", "itemsize",
    "nbytes", "stride", "strides", "is_contiguous", "requires_grad", "layout", "names",
}  # fmt: skip
# What of it another device or dtype changes.
_CHANGED = {"device": {"device"}, "dtype": {"dtype", "element_size", "itemsize", "nbytes"}}
_OF_ANY_SHAPE = {"dtype", "device", "requires_grad", "numel", "itemsize"}
# Ops of one array that keep its device and dtype, and take any dtype.
FORMS = {
    "view", "reshape", "flatten", "unflatten", "ravel", "permute", "transpose", "swapaxes", "swapdims", "movedim",
    "moveaxis", "t", "T", "mT", "unsqueeze", "squeeze", "expand", "broadcast_to", "contiguous", "detach", "clone",
    "chunk", "split", "tensor_split", "unbind", "narrow", "select", "flip", "roll", "repeat", "tile", "getitem",
    "atleast_1d", "atleast_2d", "atleast_3d", "view_as_real", "repeat_interleave", "diagonal",
}  # fmt: skip
# Ops of one array that keep its device.
UNARY = FORMS | {
    "relu", "relu6", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish", "softplus", "sigmoid", "tanh",
    "hardtanh", "hardsigmoid", "hardswish", "logsigmoid", "softmax", "log_softmax", "normalize", "dropout", "abs",
    "neg", "exp", "log", "log1p", "log2", "log10", "expm1", "sqrt", "rsqrt", "square", "sin", "cos", "tan", "floor",
    "ceil", "round", "sign", "reciprocal", "erf", "mean", "sum", "amax", "amin", "argmax", "argmin", "cumsum", "float",
    "double", "half", "bfloat16", "long", "int", "bool", "max_pool1d", "max_pool2d", "avg_pool1d", "avg_pool2d",
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool2d", "pad", "interpolate", "clamp", "tril", "triu",
}  # fmt: skip
ARITHMETIC = {"add", "sub", "mul", "div", "true_divide", "pow", "rsub", "floor_divide", "remainder"}
_ASKING = {"len", "print", "isinstance", "type", "repr", "str", "id", "list", "tuple", "enumerate", "reversed"}
_NUMBERS = {"len", "int", "float", "min", "max", "range", "round", "abs", "slice"}
_SEVERAL = {"stack", "cat"}


def root(node: ast.AST) -> str | None:
    """The variable that an expression begins with: batch of batch["image"]."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def arguments_of(code: CodeType) -> tuple[str, ...]:
    """The parameters of a function, *args and **kwargs among them."""
    count = code.co_argcount + code.co_kwonlyargcount
    return code.co_varnames[: count + bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)]


def is_plain(frame: FrameType, node: ast.AST | None) -> bool:
    """Whether an expression surely is or has no array: a number, a slice, a shape, a word."""
    if node is None or isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Attribute) and node.attr in METADATA:
        return True
    if isinstance(node, ast.Name | ast.Attribute):
        held = resolve(frame, node)
        return type(held) in (int, float, bool, str) or arrays.is_told(held) or held is None or held is Ellipsis
    if isinstance(node, ast.Call):
        func, given = node.func, [*node.args, *(keyword.value for keyword in node.keywords)]
        if isinstance(func, ast.Attribute) and func.attr in METADATA:
            return True
        if isinstance(func, ast.Name) and func.id == "len":
            return True
        return isinstance(func, ast.Name) and func.id in _NUMBERS and all(is_plain(frame, one) for one in given)
    if isinstance(node, ast.Subscript):
        return is_plain(frame, node.value)
    parts = (ast.Tuple, ast.List, ast.Slice, ast.UnaryOp, ast.BinOp, ast.keyword, ast.Starred)
    inner = (
        one for one in ast.iter_child_nodes(node) if not isinstance(one, ast.operator | ast.unaryop | ast.expr_context)
    )
    return isinstance(node, parts) and all(is_plain(frame, one) for one in inner)


def _is_stateless(module: Any) -> bool:
    """A layer of devtensor's own without parameters and buffers, such as ReLU."""
    found = below(module)
    for _, one in found:
        if not arrays.is_of_library(type(one)):
            return False
        if any(module_tables(one)[:2]) or any(map(arrays.is_array, instance_dict(one).values())):
            return False
    return bool(found)


class Reads:
    """What the function of a frame does to some of its variables before the line where it stands.

    what: the property that would be another one ("device", "dtype", "shape"). ops: those that keep it.
    """

    def __init__(self, frame: FrameType, site: Site, what: str, ops: set[str]) -> None:
        self.frame, self.site, self.ops = frame, site, ops
        self.changed = _CHANGED.get(what, set[str]())
        inner = (ast.FunctionDef, ast.AsyncFunctionDef)
        name = frame.f_code.co_name
        places = [i for i, node in enumerate(site.path) if isinstance(node, inner) and node.name == name]
        if name == "<module>" and len(site.lines) <= WHOLE:
            places = [0]
        self.function: ast.AST | None = site.path[places[-1]] if places else None
        after = site.path[places[-1] + 1 :] if places else ()
        loops = [node for node in after if isinstance(node, ast.For | ast.While | ast.AsyncFor)]
        statements = [node for node in after if isinstance(node, ast.stmt)]
        last: Any = loops[0] if loops else statements[-1] if statements else site.node
        self.last = last.end_lineno
        # what the failing expression is a part of has not been computed yet, if this is the first time
        self.later = set() if loops else {node for node in site.path if isinstance(node, ast.expr)}
        self.parents: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(self.function) if self.function is not None else ():
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
        self.stack: list[str] = []
        self.names: set[str] = set()

    def spread(self, seeds: set[str]) -> bool:
        """Whether what the seeds hold, and what is made of it, is only looked at; names then has all their names."""
        if self.function is None:
            return False
        self.stack = sorted(seeds)
        while self.stack:
            name = self.stack.pop()
            if name in self.names:
                continue
            self.names.add(name)
            for node in self.parents:
                if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                    if node.lineno <= self.last and not self._is_harmless(node):
                        return False
        return True

    def follow(self, node: ast.expr) -> bool:
        """Whether what an expression makes is only looked at."""
        return bool(self._ends_well(node)) and self.spread(set(self.stack))

    def made_by(self, name: str) -> ast.Call | ast.BinOp | None:
        """The expression that a variable of the function has its array from, if it is given one once."""
        if name in arguments_of(self.frame.f_code):
            return None
        named = [one for one in self.parents if isinstance(one, ast.Name) and one.id == name]
        bound = [self.parents[one] for one in named if not isinstance(one.ctx, ast.Load)]
        bound = [one for one in bound if not isinstance(one, ast.AugAssign)]
        statement = bound[0] if len(bound) == 1 else None
        value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        return value if isinstance(value, ast.Call | ast.BinOp) else None

    def _is_harmless(self, node: ast.expr) -> bool:
        value = resolve(self.frame, node, self.site.owner)
        while value is not MISSING and not arrays.is_array(value):  # batch of batch["image"]
            outer = self.parents.get(node)
            if not isinstance(outer, ast.Attribute | ast.Subscript) or outer.value is not node:
                break
            node, value = outer, resolve(self.frame, outer, self.site.owner)
        if not isinstance(node, ast.Name) and value is not MISSING and not arrays.is_array(value):
            return type(value) not in (list, tuple, dict)  # another entry
        return self._ends_well(node)

    def _ends_well(self, node: ast.AST) -> bool:
        step: ast.AST | bool = node
        while isinstance(step, ast.AST):
            step = self._step(step)
        return step

    def _step(self, node: ast.AST) -> ast.AST | bool:
        """The expression around that is made of node alone, or whether the use of node is harmless."""
        parent, frame = self.parents.get(node), self.frame
        around = parent
        while isinstance(around, ast.keyword | ast.List | ast.Tuple | ast.Starred):
            around = self.parents.get(around)
        if node is self.site.node or around is self.site.node or around in self.later:
            return True
        handler = _STEPS.get(type(parent))
        if handler is not None:
            return handler(self, node, parent)
        if isinstance(parent, ast.Return | ast.Expr | ast.JoinedStr | ast.FormattedValue):
            return True
        if not self.ops:
            return False
        if isinstance(parent, ast.UnaryOp) and not isinstance(parent.op, ast.Not):
            return parent
        if isinstance(parent, ast.BinOp):
            other = parent.right if parent.left is node else parent.left
            return parent if is_plain(frame, other) and not self.ops.isdisjoint(ARITHMETIC) else False
        if isinstance(parent, ast.Compare):
            return all(isinstance(op, ast.Is | ast.IsNot) for op in parent.ops)
        return False

    def _assigned(self, node: ast.AST, parent: Any) -> ast.AST | bool:
        targets: list[Any] = [one for target in getattr(parent, "targets", None) or [parent.target]
                              for one in getattr(target, "elts", [target])]  # fmt: skip
        if getattr(parent, "value", None) is not node or not all(isinstance(one, ast.Name) for one in targets):
            return False
        self.stack += [one.id for one in targets]
        return parent if isinstance(parent, ast.NamedExpr) else True

    def _attribute(self, node: ast.AST, parent: Any) -> ast.AST | bool:
        call = self.parents.get(parent)
        if call is self.site.node:
            return True
        if parent.attr in self.changed and self._decides(parent, set()):
            return False
        if parent.attr in METADATA:
            return bool(self.ops) or parent.attr in _OF_ANY_SHAPE
        if parent.attr in ("T", "mT") and self.ops:
            return parent  # type: ignore[no-any-return]
        if parent.attr not in self.ops or not isinstance(call, ast.Call) or call.func is not parent:
            return False
        return call if all(is_plain(self.frame, one) for one in (*call.args, *call.keywords)) else False

    def _decides(self, node: ast.AST, seen: set[str]) -> bool:
        """Whether a condition is made of what an expression gives, such as x.device: then other lines may run."""
        parent = self.parents.get(node)
        while parent is not None and node is not self.site.node:
            if isinstance(parent, ast.Compare | ast.BoolOp | ast.Match | ast.comprehension):
                return True
            if isinstance(parent, ast.If | ast.IfExp | ast.While | ast.Assert) and parent.test is node:
                return True
            if isinstance(parent, ast.keyword) and parent.arg in ("device", "dtype"):
                return False  # dt.ones(3, device=x.device): what is made is where x is
            if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr == "to":
                return False
            if isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr) and self._names_decide(parent, seen):
                return True
            if isinstance(parent, ast.stmt):
                return False
            node, parent = parent, self.parents.get(parent)
        return False

    def _names_decide(self, assignment: Any, seen: set[str]) -> bool:
        targets = getattr(assignment, "targets", None) or [assignment.target]
        names = {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)} - seen
        seen |= names
        uses = (one for one in self.parents if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load))
        return any(one.id in names and one.lineno <= self.last and self._decides(one, seen) for one in uses)

    def _called(self, node: ast.AST, parent: Any) -> ast.AST | bool:
        func = parent.func
        if isinstance(func, ast.Name) and func.id in _ASKING:
            return True
        held = resolve(self.frame, func, self.site.owner)
        if module_tables(held):
            return parent if _is_stateless(held) and "relu" in self.ops else False
        name = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
        others = [*parent.args[1:], *parent.keywords]
        known = name in self.ops and arrays.is_of_library(held)
        plain = all(is_plain(self.frame, one) for one in others)
        return parent if known and plain and parent.args[:1] == [node] else False

    def _subscript(self, node: ast.AST, parent: Any) -> ast.AST | bool:
        return parent if parent.value is node and is_plain(self.frame, parent.slice) else False


_STEPS: dict[Any, Callable[[Reads, ast.AST, Any], ast.AST | bool]] = {
    ast.Assign: Reads._assigned, ast.AnnAssign: Reads._assigned, ast.NamedExpr: Reads._assigned,
    ast.Attribute: Reads._attribute, ast.Call: Reads._called, ast.Subscript: Reads._subscript,
}  # fmt: skip
