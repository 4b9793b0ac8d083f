"""What there is to call, found by looking: the stubs of the compiled part, the signatures of the rest."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import devtensor as dt

MODULES = ("dt", "dt.special", "dt.nn.functional", "dt.nn.init", "dt.nn", "dt.linalg", "dt.cuda", "dt.cpu", "dt.data")
INSTANCES = ("DeviceArray", "Event", "Stream", "Generator", "device", "dtype")

# Names that are no business of this fuzzer, and why.
APART = {
    "dt.load": "files have a fuzzer of their own",
    "dt.save": "files have a fuzzer of their own",
    "dt.nn.Module": "is written by users",
    "dt.cuda.RawKernel": "compiles: drawn with its own pools",
    "dt.data.DataLoader": "drawn with its own pools",
    "dt.cuda.DeviceProperties": "a tuple",
    "dt.max_result": "a tuple",
    "dt.min_result": "a tuple",
    "dt.cummax_result": "a tuple",
    "dt.cummin_result": "a tuple",
    "dt.kthvalue_result": "a tuple",
    "dt.median_result": "a tuple",
    "dt.mode_result": "a tuple",
    "dt.nanmedian_result": "a tuple",
    "dt.sort_result": "a tuple",
    "dt.topk_result": "a tuple",
    "dt.Transfer": "a tuple",
    "dt.TransferLog": "made by record_transfers",
}


METHODS_APART = (
    "__new__",  # the class is a target itself
    "__buffer__",  # Python 3.12's name of a protocol that the fuzzer of buffers uses
    "backward",  # raises, whatever it is given
)


@dataclass(frozen=True)
class Parameter:
    name: str
    annotation: str
    optional: bool
    starred: bool = False
    keyword_only: bool = False
    positional_only: bool = False


@dataclass(frozen=True)
class Target:
    """One signature: a function `path`, a class, or with owner a method or an attribute of instances."""

    path: str
    parameters: tuple[Parameter, ...] = ()
    owner: str = ""
    attribute: bool = False
    builds: bool = False  # a class whose instances are called afterwards

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def in_place(self) -> bool:
        """Whether the call writes its first operand."""
        if self.name.startswith("__"):
            return self.name == "__setitem__" or (self.name.startswith("__i") and self.name[3:-2] in WITH_IN_PLACE)
        return self.name.endswith("_")


WITH_IN_PLACE = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "matmul", "lshift", "rshift",
)  # fmt: skip


def of_stub(function: ast.FunctionDef, method: bool) -> tuple[Parameter, ...]:
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    required = len(plain) - len(given.defaults)

    def text(arg: ast.arg) -> str:
        return ast.unparse(arg.annotation).replace("builtins.", "") if arg.annotation else ""

    found = [
        Parameter(arg.arg, text(arg), i >= required, positional_only=i < len(given.posonlyargs))
        for i, arg in enumerate(plain)
    ]
    found = found[1:] if method else found
    if given.vararg:
        found.append(Parameter(given.vararg.arg, text(given.vararg), True, starred=True))
    for arg, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        found.append(Parameter(arg.arg, text(arg), default is not None, keyword_only=True))
    return tuple(found)


def of_signature(function: Callable[..., Any], method: bool = False) -> tuple[Parameter, ...]:
    found = []
    for p in list(inspect.signature(function).parameters.values())[1 if method else 0 :]:
        if p.kind is p.VAR_KEYWORD or p.name.startswith("_"):
            continue
        annotation = "" if p.annotation is p.empty else str(p.annotation)
        optional = p.default is not p.empty or p.kind is p.VAR_POSITIONAL
        found.append(
            Parameter(
                p.name,
                annotation,
                optional,
                p.kind is p.VAR_POSITIONAL,
                p.kind is p.KEYWORD_ONLY,
                p.kind is p.POSITIONAL_ONLY,
            )
        )
    return tuple(found)


def stubbed() -> Iterator[Target]:
    """Functions, methods and attributes of the compiled part, one target a signature."""
    tree = ast.parse((Path(dt.__path__[0]) / "_C.pyi").read_text())
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and hasattr(dt, node.name):
            yield Target(f"dt.{node.name}", of_stub(node, False))
        if not isinstance(node, ast.ClassDef) or node.name not in INSTANCES:
            continue
        for member in node.body:
            if not isinstance(member, ast.FunctionDef) or member.name in METHODS_APART:
                continue
            attribute = any(isinstance(d, ast.Name) and d.id == "property" for d in member.decorator_list)
            yield Target(member.name, of_stub(member, True), node.name, attribute)


def public(module: ModuleType) -> list[str]:
    names = getattr(module, "__all__", None) or [
        name for name in dir(module) if str(getattr(getattr(module, name), "__module__", "")).startswith("devtensor")
    ]
    return sorted(name for name in names if not name.startswith("_"))


def of_modules(known: set[str]) -> Iterator[Target]:
    for path in MODULES:
        module = dt
        for part in path.split(".")[1:]:
            module = getattr(module, part)
        for name in public(module):
            value, whole = getattr(module, name), f"{path}.{name}"
            if whole in known or whole in APART or not callable(value) or isinstance(value, ModuleType):
                continue
            if inspect.isclass(value):
                if issubclass(value, BaseException) or value is dt.DeviceArray:
                    continue
                yield from of_class(whole, value)
            else:
                yield Target(whole, of_signature(value))


def of_class(path: str, cls: type) -> Iterator[Target]:
    if cls in (dt.dtype, dt.nn.Parameter, dt.nn.Buffer):
        return
    try:
        parameters = of_signature(cls)
    except ValueError:  # a compiled one
        wanted = {"device": "type: str, index: int = None", "Event": "enable_timing: bool = 0, blocking: bool = 0"}
        text = wanted.get(cls.__name__, "device: _Device = 0, priority: int = 0")
        parameters = of_stub(ast.parse(f"def f({text}): ...").body[0], False)  # type: ignore[arg-type]
    yield Target(path, parameters, builds=issubclass(cls, dt.nn.Module))


def targets() -> dict[str, list[Target]]:
    """By path, sorted; overloads share one."""
    found: dict[str, list[Target]] = {}
    compiled = list(stubbed())
    known = {t.path for t in compiled if not t.owner}
    for target in [*compiled, *of_modules(known)]:
        found.setdefault(f"{target.owner}.{target.path}" if target.owner else target.path, []).append(target)
    return dict(sorted(found.items()))
