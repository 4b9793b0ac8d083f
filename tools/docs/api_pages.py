"""The pages of the API reference: an entry for every public name, made of signatures and docstrings.

tools/docs/build_docs.py puts them on the site; tests/project/test_site.py counts their entries.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / "helpers"), str(ROOT / "tools" / "package")]

import public_names  # noqa: E402
import signatures  # noqa: E402

import devtensor as dt  # noqa: E402

CODE = re.compile(r"(`[^`\n]+`)")
SPECIAL = re.compile(r"([\\*_<>\[\]{}|$~#])")
BEGIN = re.compile(r"^(\s*)(?:([-+=:])|(\d+)([.)]))")  # of a line that Markdown would take for more than text


def plain(line: str) -> str:
    """A line of a docstring as Markdown: what stands between backticks is code, and nothing else is markup."""
    parts = CODE.split(line)
    parts[::2] = [SPECIAL.sub(r"\\\1", part) for part in parts[::2]]
    return BEGIN.sub(lambda m: f"{m[1]}\\{m[2]}" if m[2] else f"{m[1]}{m[3]}\\{m[4]}", "".join(parts))


def markdown(docstring: str) -> list[str]:
    """The lines of a docstring as Markdown: examples and tables as blocks of code, the rest as paragraphs."""
    lines: list[str] = []
    for block in re.split(r"\n\s*\n", docstring.strip()):
        if block.lstrip().startswith(">>>"):
            lines += ["", "```pycon", *inspect.cleandoc(block).splitlines(), "```"]
        elif any(line.startswith("  ") for line in block.splitlines()):
            lines += ["", "```text", *block.splitlines(), "```"]
        else:
            lines += ["", *map(plain, block.splitlines())]
    return lines


def signature_of(value: Any, method: bool = False) -> str:
    """The parameters, without types: an editor shows those."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    parameters = list(found.parameters.values())
    if method and parameters and parameters[0].name == "self":
        parameters = parameters[1:]
    text = str(
        found.replace(parameters=[p.replace(annotation=p.empty) for p in parameters], return_annotation=found.empty)
    )
    return re.sub(r"<([\w. ]+?)(?: at 0x[0-9a-f]+)?>", "...", text)


def directive(kind: str, name: str, docstring: str, options: tuple[str, ...] = (), depth: int = 4) -> list[str]:
    fence = ":" * depth
    return ["", f"{fence}{{py:{kind}}} {name}", *options, *markdown(docstring), fence]


def members(name: str, cls: type) -> Iterator[tuple[str, Any]]:
    """What a class adds to its bases, and can be called or read."""
    for key, value in sorted(vars(cls).items()):
        if not key.startswith("_") and getattr(value, "__doc__", None) and not inspect.isclass(value):
            yield key, value


def entry(name: str, value: Any) -> list[str]:
    """One public name: its signature, its text, and of a class what belongs to it."""
    doc = inspect.getdoc(value) or ""
    if not callable(value):
        kind = type(value).__name__
        return directive("data", name, doc if type(value).__doc__ != value.__doc__ else f"A `{kind}`.")
    if not inspect.isclass(value):
        return directive("function", f"{name}{signature_of(value)}", doc)
    bases = [base for base in value.__bases__ if base is not object and not base.__name__.startswith("_")]
    under = f"Bases: {', '.join(f'`{base.__name__}`' for base in bases)}." if bases else ""
    kind = "exception" if issubclass(value, BaseException) else "class"
    shown = name if issubclass(value, BaseException) else f"{name}{signature_of(value)}"
    own = doc if value.__doc__ else ""
    lines = ["", f":::::{{py:{kind}}} {shown}", *markdown(own)]
    if under:
        lines += ["", under]
    for key, member in members(name, value):
        text = inspect.getdoc(member) or ""
        function = getattr(dt, key, None)
        if value is dt.DeviceArray and callable(function) and len(text) > 200 and ">>>" in text:
            text = text.partition("\n\n")[0] + f"\n\nSee `devtensor.{key}`, which takes the array as first parameter."
        if isinstance(member, (staticmethod, classmethod)):
            lines += directive("method", f"{key}{signature_of(getattr(value, key))}", text)
        elif callable(member):
            lines += directive("method", f"{key}{signature_of(member, method=True)}", text)
        else:
            lines += directive("attribute", key, text)
    return [*lines, ":::::"]


def subject(value: Any, headings: dict[str, str]) -> str:
    """The page of the module devtensor on which a name stands."""
    if value is dt.DeviceArray:
        return "DeviceArray"
    if inspect.isclass(value) and issubclass(value, BaseException):
        return "Errors and warnings"
    if isinstance(value, dt.dtype):
        return "Dtypes"
    if inspect.isclass(value):
        return "Other classes"
    if not callable(value):
        return "Constants"
    name = getattr(value, "__name__", "")
    if name in headings:
        return headings[name]
    module = getattr(value, "__module__", "") or ""
    if "._composed." in module:
        return module.split("._composed.")[1].split(".")[0].replace("_", " ").capitalize()
    return "Settings, files and the rest"


def headings() -> dict[str, str]:
    """Under which heading csrc/py/signatures.pyi, and the lists of the core, have a compiled function."""
    found = {}
    entries = signatures.read(signatures.SOURCE.read_text())
    for macro, (path, heading) in signatures.FAMILIES.items():
        text = (ROOT / "csrc" / "core" / path).read_text()
        found |= dict.fromkeys(re.findall(rf"^{macro}\((\w+)", text, re.MULTILINE), heading)
    return found | {e.name: e.heading for e in entries if not e.owner}


def slug(title: str) -> str:
    """The name of a page's file: that of the module, or of a part of devtensor's own names."""
    return re.sub(r"[^\w.]+", "-", title.lower()).strip("-") if ":" in title else title


def pages() -> dict[str, str]:
    """The text of each page by its name."""
    known = headings()
    groups: dict[str, dict[str, list[str]]] = {}
    intros: dict[str, str] = {}
    first: dict[int, str] = {}
    for module in {m.__name__: m for m in public_names.modules()}.values():
        for name in sorted(module.__all__, key=str.lower):
            value = getattr(module, name)
            if inspect.ismodule(value):
                continue
            full = f"{module.__name__}.{name}"
            page = f"devtensor: {subject(value, known)}" if module is dt else module.__name__
            intros.setdefault(page, "" if module is dt else inspect.getdoc(module) or "")
            seen = first.setdefault(id(value), full) if inspect.isclass(value) or inspect.isroutine(value) else full
            if seen == full:
                lines = entry(full, value)
            else:
                kind = "class" if inspect.isclass(value) else "function"
                lines = ["", f"::::{{py:{kind}}} {full}", "", f"The same as {{py:obj}}`{seen}`.", "::::"]
            groups.setdefault(page, {})[full] = lines
    result = {}
    ordered = sorted(groups.items(), key=lambda item: (not item[0].startswith("devtensor:"), item[0]))
    for page, entries in ordered:
        lines = [f"# {page}", *markdown(intros[page])]
        for part in entries.values():
            lines += part
        result[slug(page)] = "\n".join(lines) + "\n"
    index = ["# API reference", "", "Every public name, with its parameters, its text and an example. The names and"]
    index += ["signatures are PyTorch's. [One table](../reference.md) lists the compiled functions in a line each.", ""]
    for page, entries in ordered:
        shown = " ".join(f"`{name.rpartition('.')[2]}`" for name in entries)
        index += [f"**[{page}]({slug(page)}.md)**: {shown}", ""]  # a table would be too wide for a phone
    result["index"] = "\n".join(index) + "\n"
    return result
