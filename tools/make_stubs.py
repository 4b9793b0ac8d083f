"""Writes what type checkers and editors read of the compiled extension.

python/devtensor/_C.pyi: signatures and docstrings from the extension, types from stub_types.py. In
python/devtensor/__init__.py: the compiled names of __all__.

python tools/make_stubs.py           writes both
python tools/make_stubs.py --check   fails when they are not what would be written
"""

import importlib
import inspect
import re
import sys
from pathlib import Path

from stub_types import (
    DUNDERS,
    GETSETS,
    HEADER,
    INHERITED,
    NEW,
    OTHER_DUNDERS,
    PARAMETERS,
    RESULTS,
    TAKES_NUMBER,
    WRITTEN,
    WRITTEN_FUNCTIONS,
)

PACKAGE = Path(__file__).resolve().parent.parent / "python" / "devtensor" / "__init__.py"
TARGET = PACKAGE.with_name("_C.pyi")

BASETYPE = 1 << 10  # Py_TPFLAGS_BASETYPE

problems: list[str] = []


def base(name: str) -> str:
    return name if name.startswith("__") else name.rstrip("_")


def annotation(function: str, parameter: inspect.Parameter) -> str:
    name = parameter.name
    if name == "other" and base(function) in TAKES_NUMBER:
        return "_Operand"
    for key in (f"{function}.{name}", f"{base(function)}.{name}", name):
        if key in PARAMETERS:
            found = PARAMETERS[key]
            break
    else:
        problems.append(f"no type for parameter {name} of {function}")
        return "Any"
    if name == "dim" and parameter.default is None and found == "_Int":
        found = "_Ints | None"
    if parameter.default is None and "None" not in found:
        found += " | None"
    return found


def signature(function: str, owner: object, method: bool) -> str:
    try:
        parsed = inspect.signature(owner)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        problems.append(f"{function} has no text signature")
        return "(*args: Any, **kwargs: Any)"
    parts, keyword_only = [], False
    parameters = list(parsed.parameters.values())
    for i, p in enumerate(parameters):
        if p.kind is p.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            if not any(q.kind is q.VAR_POSITIONAL for q in parameters):
                parts.append("*")
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        text = star + p.name
        if not (method and i == 0):
            text += f": {annotation(function, p)}"
            if p.default is not p.empty:
                text += f" = {literal(p.default)}"
        parts.append(text)
        if p.kind is p.POSITIONAL_ONLY and (i + 1 == len(parameters) or parameters[i + 1].kind is not p.kind):
            parts.append("/")
    return f"({', '.join(parts)})"


def literal(value: object) -> str:
    if value is None or isinstance(value, (bool, int, float, str)):
        text = repr(value)
        return text.replace("'", '"') if isinstance(value, str) else text
    return "..."


def qualify(text: str) -> str:
    """The types in a signature, told apart from the attributes and functions that have the same names."""
    text = re.sub(r"(?<![\w.\"])(bool|int|float|type)(?![\w:\"])", r"builtins.\1", text)
    return re.sub(r"(?<![\w.\"])(dtype|device)(?![\w:\"])", r"_\1", text)


def docstring(owner: object, indent: str) -> list[str]:
    """The lines of a docstring in a stub; none where there is none."""
    text = inspect.cleandoc(getattr(owner, "__doc__", None) or "").replace("\\", "\\\\").replace('"""', "'''")
    if not text:
        return []
    first, *rest = [(indent + line).rstrip() for line in text.splitlines()]
    lines = [f'{indent}"""{first.strip()}', *rest]
    if rest or text.endswith('"'):
        return [*lines, f'{indent}"""']
    return [f'{lines[0]}"""']


def with_docstring(definition: str, owner: object, indent: str) -> list[str]:
    """A definition that ends in ": ..." with the docstring of a public owner in its place."""
    doc = docstring(owner, indent + "    ")
    return [definition.removesuffix(" ..."), *doc] if doc else [definition]


def define(name: str, owner: object, indent: str, method: bool) -> list[str]:
    if not method and name in WRITTEN_FUNCTIONS:
        texts = WRITTEN_FUNCTIONS[name]
    elif name in WRITTEN:
        first = "self" if method else "input: DeviceArray"
        texts = [text.format(x=first) for text in WRITTEN[name]]
    else:
        if name.startswith("_") and name not in RESULTS:
            problems.append(f"no type for the result of {name}")
        texts = [f"{signature(name, owner, method)} -> {RESULTS.get(name, 'DeviceArray')}"]
        if " dim:" in texts[0] and not inspect.isfunction(owner):  # NumPy's spelling
            texts.append(texts[0].replace(" dim:", " axis:").replace(" keepdim:", " keepdims:"))
    lines = []
    for i, text in enumerate(texts):
        if len(texts) > 1:
            lines.append(f"{indent}@overload")
        documented = owner if i == 0 and not name.startswith("_") else None
        lines += with_docstring(f"{indent}def {name}{qualify(text)}: ...", documented, indent)
    return lines


def class_stub(name: str, cls: type) -> list[str]:
    parent = "(DeviceArray)" if cls.__base__ is not object else ""
    ignored = "  # type: ignore[misc]" if parent else ""
    final = [] if cls.__flags__ & BASETYPE else ["@final"]
    lines = ["", *final, f"class {name}{parent}:{ignored}", *docstring(cls, "    ")]
    top = len(lines)
    members = dict(vars(cls))
    if name == "DeviceArray":
        members.setdefault("__buffer__", None)  # Python 3.11 does not show the buffer protocol
    for key, value in sorted(members.items()):
        if key in DUNDERS or key in OTHER_DUNDERS:
            text = DUNDERS[key] if name == "DeviceArray" else OTHER_DUNDERS.get(key, "").format(cls=name) or None
            if text is not None and text.startswith(":"):
                lines.append(f"    {key}{text}")
            elif text is not None:
                lines.append(f"    def {key}{qualify(text)}" + ("" if ": ..." in text else ": ..."))
        elif key in INHERITED:
            continue
        elif inspect.isgetsetdescriptor(value) or inspect.ismemberdescriptor(value):
            text = GETSETS.get(f"{name}.{key}") or GETSETS.get(key)
            if text is None:
                problems.append(f"no type for attribute {name}.{key}")
            definition = f"    def {key}(self) -> {qualify(text or 'Any')}: ..."
            lines += ["    @property", *with_docstring(definition, value, "    ")]
        elif callable(value):
            lines += define(key, value, "    ", True)
        else:
            problems.append(f"{name}.{key} is neither a method nor an attribute: {value!r}")
    if name == "Generator":
        lines.insert(top, '    def __new__(cls, device: _Device = "cpu") -> Generator: ...')
    if name == "device":
        lines.insert(top, "    def __new__(cls, type: _Device, index: _Int | None = None) -> _device: ...")
    if name in NEW:
        lines.insert(top, f"    def __new__{NEW[name]}: ...")
    return lines


def generate() -> str:
    module = importlib.import_module("devtensor._C")
    lines, functions = [HEADER.rstrip()], []
    constants = []
    for name, value in sorted(vars(module).items()):
        if name.startswith("__"):
            continue
        if inspect.isclass(value):
            if issubclass(value, tuple):
                lines += ["", "@final", f"class {name}(structseq[DeviceArray], tuple[DeviceArray, DeviceArray]):"]
                lines += docstring(value, "    ")
                lines.append(f"    __match_args__: Final = {value.__match_args__!r}".replace("'", '"'))
                for field in value.__match_args__:
                    lines += ["    @property", f"    def {field}(self) -> DeviceArray: ..."]
            else:
                lines += class_stub(name, value)
        elif callable(value):
            functions += define(name, value, "", False)
        else:
            kind = "ModuleType" if inspect.ismodule(value) else type(value).__name__
            constants.append(f"{name}: {kind}")
    return "\n".join([*lines, "", *constants, "", *functions]) + "\n"


def with_names(text: str) -> str:
    """__init__.py with the names of the extension in its __all__."""
    names = [name for name in dir(importlib.import_module("devtensor._C")) if not name.startswith("_")]
    block = "".join(f'    "{name}",\n' for name in sorted(names, key=sort_key))
    text, found = re.subn(r"^__all__ \+= \[.*?\]$", f"__all__ += [\n{block}]", text, flags=re.MULTILINE | re.DOTALL)
    if found != 1:
        problems.append(f"{PACKAGE.name} has {found} places for the names")
    return text


def sort_key(name: str) -> tuple[object, ...]:
    """Ruff's order of __all__: constants, classes, then the rest; numbers by their value."""
    group = 0 if name.isupper() else 1 if name[0].isupper() else 2
    return group, [(part.isdigit(), int(part) if part.isdigit() else part) for part in re.split(r"(\d+)", name)]


def main() -> int:
    check, stale = "--check" in sys.argv[1:], False
    for path, text in ((TARGET, generate()), (PACKAGE, with_names(PACKAGE.read_text()))):
        same = path.exists() and path.read_text() == text
        stale = stale or not same
        if check:
            print(f"{path.name} is {'up to date' if same else 'stale: run python tools/make_stubs.py'}")
        elif not same:
            path.write_text(text)
            print(f"{path}: {len(text.splitlines())} lines")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems or (check and stale) else 0


if __name__ == "__main__":
    sys.exit(main())
