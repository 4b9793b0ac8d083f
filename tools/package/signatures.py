"""Reads csrc/py/signatures.pyi, the one list of signatures, and writes csrc/py/signatures.h for the C files.

It needs no extension: a function is listed, then this runs, then its C is built. tools/package/make_stubs.py makes the
rest, and its --check looks at the header too.
"""

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "csrc" / "py" / "signatures.pyi"
HEADER = SOURCE.with_suffix(".h")
HEADING = "# ---------------------------------------------------------------- "
# The ops that are not in this list: the list of the core that has them, and their heading in docs/reference.md.
FAMILIES = {
    "DT_UNARY": ("elementwise.def", "Elementwise: one array"),
    "DT_BINARY": ("elementwise.def", "Elementwise: two arrays"),
    "DT_REDUCE": ("reductions.def", "Reductions"),
}

POSITIONAL_ONLY, POSITIONAL, REST, KEYWORD, KEYWORDS = range(5)  # in the order of inspect.Parameter's kinds


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: int
    type: str | None
    default: str | None


@dataclass(frozen=True)
class Signature:
    parameters: tuple[Parameter, ...]
    result: str | None

    def of_method(self) -> "Signature":
        """That of the method that a function is: the first array is self, and there is no out."""
        others = [p for p in self.parameters[1:] if p.name != "out"]
        return replace(self, parameters=(Parameter("self", POSITIONAL, None, None), *others))


@dataclass(frozen=True)
class Entry:
    name: str
    owner: str  # a class; empty: the module
    heading: str
    op: str  # what errors call it
    marks: tuple[str, ...]  # its decorators
    signature: Signature
    overloads: tuple[Signature, ...] = ()

    def method_names(self) -> list[str]:
        """The methods of DeviceArray that this function is too."""
        in_place = "in_place" in self.marks
        return [self.name] * ("method" in self.marks or in_place) + [f"{self.name}_"] * in_place


# ---------------------------------------------------------------- reading


def read(text: str) -> list[Entry]:
    entries: list[Entry] = []
    headings = [(i, line) for i, line in enumerate(text.splitlines(), 1) if line.startswith(HEADING)]
    for node in ast.parse(text).body:
        heading = [line.removeprefix(HEADING) for i, line in headings if i < node.lineno][-1:]
        owner, functions = (node.name, node.body) if isinstance(node, ast.ClassDef) else ("", [node])
        for function in functions:
            if isinstance(function, ast.FunctionDef):
                entry = read_function(function, owner, *heading)
                if entries and "overload" in entries[-1].marks:
                    before = entries.pop()
                    entry = replace(entry, overloads=(*before.overloads, before.signature))
                entries.append(entry)
    return entries


def read_function(node: ast.FunctionDef, owner: str, heading: str) -> Entry:
    op = node.name
    for mark in node.decorator_list:
        if isinstance(mark, ast.Call):  # @op("name")
            op = ast.literal_eval(mark.args[0])
    marks = tuple(mark.id for mark in node.decorator_list if isinstance(mark, ast.Name))
    signature = Signature(tuple(parameters(node.args)), source(node.returns))
    return Entry(node.name, owner, heading, op, marks, signature)


def source(node: ast.expr | None) -> str | None:
    return None if node is None else ast.unparse(node).replace("'", '"')


def parameters(args: ast.arguments) -> Iterator[Parameter]:
    def parameter(arg: ast.arg, kind: int, default: ast.expr | None = None) -> Parameter:
        return Parameter(arg.arg, kind, source(arg.annotation), source(default))

    positional = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(positional) - len(args.defaults)) + args.defaults
    for i, (arg, default) in enumerate(zip(positional, defaults, strict=True)):
        yield parameter(arg, POSITIONAL_ONLY if i < len(args.posonlyargs) else POSITIONAL, default)
    if args.vararg is not None:
        yield parameter(args.vararg, REST)
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        yield parameter(arg, KEYWORD, default)
    if args.kwarg is not None:
        yield parameter(args.kwarg, KEYWORDS)


# ---------------------------------------------------------------- writing


def arranged(given: Iterable[Parameter], spell: Callable[[Parameter], str]) -> str:
    """The parameters with the stars and the slash that stand between them."""
    parts: list[str] = []
    before = None
    for p in given:
        if before == POSITIONAL_ONLY and p.kind != POSITIONAL_ONLY:
            parts.append("/")
        if p.kind == KEYWORD and before not in (REST, KEYWORD):
            parts.append("*")
        parts.append({REST: "*", KEYWORDS: "**"}.get(p.kind, "") + spell(p))
        before = p.kind
    return ", ".join([*parts, "/"] if before == POSITIONAL_ONLY else parts)


def text_signature(signature: Signature) -> str:
    """What Python finds in the docstring of a C function."""

    def spell(p: Parameter) -> str:
        name = "$self" if p.name == "self" else p.name
        return name if p.default is None else f"{name}={p.default}"

    return arranged(signature.parameters, spell).replace('"', "'")


def spec(entry: Entry) -> str:
    """A py_spec: op, required, positional, varargs, names, and the function that it stands in. self is named input."""
    given = [replace(p, name="input") if p.name == "self" else p for p in entry.signature.parameters]
    given = given if entry.owner in ("", "DeviceArray") or not given or given[0].name != "input" else given[1:]
    rest = next((i for i, p in enumerate(given) if p.kind == REST), -1)
    anything = rest >= 0 and given[rest].name == "args"  # none is needed, and none has this name
    needed = [p.default is None and not (p.kind == REST and anything) for p in given]
    required = needed.index(False) if False in needed else len(needed)
    if True in needed[required:]:
        raise ValueError(f"{entry.name}: a parameter that must be given stands behind one that need not")
    positional = rest + 1 if rest >= 0 else sum(p.kind <= POSITIONAL for p in given)
    names = ['""' if anything and p.kind == REST else f'"{p.name}"' for p in given]
    return f'{{"{entry.op}", {required}, {positional}, {rest}, {{{", ".join(names or ["NULL"])}}}, __func__}}'


def header(entries: list[Entry]) -> str:
    lines = [
        "/* Made by tools/package/signatures.py of signatures.pyi. PY_SPEC_f: what PY_PARSE(f) reads. PY_TEXT_f and",
        " * PY_SELF_f: the parameters of the function and of the method f in their docstrings. */",
        "#ifndef DEVTENSOR_SIGNATURES_H",
        "#define DEVTENSOR_SIGNATURES_H",
        "/* clang-format off */",
    ]
    functions = {entry.name for entry in entries if entry.owner == ""}
    for entry in entries:
        if "composed" in entry.marks:
            continue
        name = entry.name
        if entry.owner not in ("", "DeviceArray", "_test"):
            name = f"{entry.owner}_{name}"
        elif entry.owner == "DeviceArray" and name in functions:
            name = f"self_{name}"
        if all(p.kind != KEYWORDS for p in entry.signature.parameters):
            lines.append(f"#define PY_SPEC_{name} {spec(entry)}")
        method = entry.owner not in ("", "_test")
        lines.append(
            f"#define PY_{'SELF' if method else 'TEXT'}_{entry.name if entry.owner == 'DeviceArray' else name}"
            f' "{text_signature(entry.signature)}"'
        )
        for method_name in entry.method_names():
            lines.append(f'#define PY_SELF_{method_name} "{text_signature(entry.signature.of_method())}"')
    return "\n".join([*lines, "/* clang-format on */", "#endif"]) + "\n"


if __name__ == "__main__":
    HEADER.write_text(header(read(SOURCE.read_text())))
