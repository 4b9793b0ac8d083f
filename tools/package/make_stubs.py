"""Writes what people, type checkers and editors read of the compiled extension.

python/devtensor/_C.pyi: signatures from csrc/py/signatures.pyi, docstrings from the extension.
docs/reference.md: a line of these for each. python/devtensor/__init__.py: the compiled names in __all__.
And csrc/py/signatures.h, which the extension is built with.

python tools/package/make_stubs.py           writes them
python tools/package/make_stubs.py --check   fails when they are not what would be written
"""

import ast
import importlib
import inspect
import re
import sys
from dataclasses import replace
from pathlib import Path

import reference
import signatures
from stub_types import DUNDERS, FAMILY, GETSETS, HEADER, INHERITED, NEW, OTHER_DUNDERS, REPLACED, SETTERS, SIZE

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "devtensor" / "__init__.py"
TARGET = PACKAGE.with_name("_C.pyi")

BASETYPE = 1 << 10  # Py_TPFLAGS_BASETYPE

ENTRIES = signatures.read(signatures.SOURCE.read_text())

problems: list[str] = []


def declared(owner: str, name: str) -> tuple[signatures.Signature, ...] | None:
    """What signatures.pyi says of a function (no owner) or of a method, and of the overloads where it has some."""
    for entry in ENTRIES:
        if entry.owner == owner and entry.name == name:
            return entry.overloads or (entry.signature,)
        if owner == "DeviceArray" and not entry.owner and name in entry.method_names():
            return tuple(signature.of_method() for signature in entry.overloads or (entry.signature,))
    return None


def of_family(owner: object) -> signatures.Signature:
    """The signature of an op of core/elementwise.def or core/reductions.def, which says its names and defaults."""
    parameters = []
    for p in inspect.signature(owner).parameters.values():  # type: ignore[arg-type]
        default = None if p.default is p.empty else repr(p.default)
        parameters.append(signatures.Parameter(p.name, p.kind, FAMILY.get(p.name, "_Number"), default))
    return signatures.Signature(tuple(parameters), "DeviceArray")


def spelled(signature: signatures.Signature, overloaded: bool) -> str:
    def spell(p: signatures.Parameter) -> str:
        text = p.name if p.type is None else f"{p.name}: {p.type}"
        return text if p.default is None else f"{text} = {literal(ast.literal_eval(p.default))}"

    parameters = list(signature.parameters)
    if parameters and parameters[0].name == "self" and not overloaded:
        parameters[0] = replace(parameters[0], kind=signatures.POSITIONAL_ONLY)
    return f"({signatures.arranged(parameters, spell)}) -> {signature.result}"


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


def define(owner: str, name: str, value: object, indent: str) -> list[str]:
    """A function (no owner) or a method."""
    found = declared(owner, name) or (of_family(value),)
    texts = [spelled(signature, len(found) > 1) for signature in found]
    if not owner and name in REPLACED:
        texts = [REPLACED[name]]
    hidden = name.startswith("_") or inspect.isfunction(value)
    if len(found) == 1 and " dim:" in texts[0] and not hidden:  # NumPy's spelling
        texts.append(texts[0].replace(" dim:", " axis:").replace(" keepdim:", " keepdims:"))
    lines = []
    for i, text in enumerate(texts):
        if len(texts) > 1:
            lines.append(f"{indent}@overload")
        documented = value if i == 0 and not name.startswith("_") else None
        lines += with_docstring(f"{indent}def {name}{qualify(text)}: ...", documented, indent)
    return lines


def class_stub(name: str, cls: type) -> list[str]:
    parent = "(DeviceArray)" if cls.__base__ is not object else ""
    final = [] if cls.__flags__ & BASETYPE else ["@final"]
    lines = ["", *final, f"class {name}{parent}:", *docstring(cls, "    ")]
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
        elif key in INHERITED or key == "__dict__":
            continue
        elif inspect.isgetsetdescriptor(value) or inspect.ismemberdescriptor(value) or isinstance(value, property):
            text = GETSETS.get(f"{name}.{key}") or GETSETS.get(key)
            if text is None:
                problems.append(f"no type for attribute {name}.{key}")
            definition = f"    def {key}(self) -> {qualify(text or 'Any')}: ..."
            lines += ["    @property", *with_docstring(definition, value, "    ")]
            if (name, key) in SETTERS:
                lines += [f"    @{key}.setter", f"    def {key}(self, value: {qualify(text or 'Any')}) -> None: ..."]
        elif callable(value):
            lines += define(name, key, value, "    ")
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
            if name == "Size":
                lines += ["", "@final", "class Size(tuple[builtins.int, ...]):", *docstring(value, "    "), *SIZE]
            elif issubclass(value, tuple):
                lines += ["", "@final", f"class {name}(structseq[DeviceArray], tuple[DeviceArray, DeviceArray]):"]
                lines += docstring(value, "    ")
                lines.append(f"    __match_args__: Final = {value.__match_args__!r}".replace("'", '"'))
                for field in value.__match_args__:
                    lines += ["    @property", f"    def {field}(self) -> DeviceArray: ..."]
            else:
                lines += class_stub(name, value)
        elif callable(value):
            functions += define("", name, value, "")
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
    texts = {
        signatures.HEADER: signatures.header(ENTRIES),
        TARGET: generate(),
        PACKAGE: with_names(PACKAGE.read_text()),
        reference.PAGE: reference.page(ENTRIES),
    }
    for path, text in texts.items():
        same = path.exists() and path.read_text() == text
        stale = stale or not same
        if check:
            print(f"{path.name} is {'up to date' if same else 'stale: run python tools/package/make_stubs.py'}")
        elif not same:
            path.write_text(text)
            print(f"{path}: {len(text.splitlines())} lines")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems or (check and stale) else 0


if __name__ == "__main__":
    sys.exit(main())
