"""Reads the parameters of a kernel from its CUDA C++ source: a documented subset, and a clear refusal of the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from devtensor._errors import KernelArgumentError

ARRAY, BOOL, INT, FLOAT = range(4)


class Param(NamedTuple):
    """One parameter of a kernel.

    dtype is that of the array behind a pointer ("" for void *: any), or of a number; lanes is 4 for float4 *.
    """

    name: str
    declaration: str
    kind: int
    dtype: str
    size: int
    lanes: int
    is_signed: bool
    constant: bool


# (kind, size, signed) of numbers, by their words in alphabetical order; unsigned types have no dtype of their own.
_INTS = {
    "char": (1, True), "char signed": (1, True), "char unsigned": (1, False),
    "short": (2, True), "int short": (2, True), "short signed": (2, True), "int short signed": (2, True),
    "short unsigned": (2, False), "int short unsigned": (2, False),
    "int": (4, True), "signed": (4, True), "int signed": (4, True),
    "unsigned": (4, False), "int unsigned": (4, False),
    "long": (8, True), "int long": (8, True), "long signed": (8, True), "int long signed": (8, True),
    "long unsigned": (8, False), "int long unsigned": (8, False),
    "long long": (8, True), "int long long": (8, True), "long long signed": (8, True),
    "int long long signed": (8, True), "long long unsigned": (8, False), "int long long unsigned": (8, False),
    "int8_t": (1, True), "int16_t": (2, True), "int32_t": (4, True), "int64_t": (8, True),
    "uint8_t": (1, False), "uint16_t": (2, False), "uint32_t": (4, False), "uint64_t": (8, False),
    "size_t": (8, False), "ptrdiff_t": (8, True), "intptr_t": (8, True), "uintptr_t": (8, False),
    "uchar": (1, False), "ushort": (2, False), "uint": (4, False), "ulong": (8, False),
}  # fmt: skip
_FLOATS = {
    "float": "float32", "double": "float64", "half": "float16", "__half": "float16", "__nv_half": "float16",
    "__nv_bfloat16": "bfloat16", "nv_bfloat16": "bfloat16",
}  # fmt: skip
_ITEMSIZE = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
_PAIRS = {"half2": "half", "__half2": "half", "__nv_bfloat162": "nv_bfloat16", "nv_bfloat162": "nv_bfloat16"}
_VECTOR = re.compile(r"(u?char|u?short|u?int|u?long|u?longlong|float|double)([1-4])\Z")
_WORDS = {"signed", "unsigned", "char", "short", "int", "long"}
_ENDS = (";", "{", "}", "__global__")  # of a declaration
_RESTRICT = {"__restrict__", "__restrict", "restrict"}
_TOKEN = re.compile(r"[A-Za-z_]\w*|[0-9][\w.]*|::|.", re.DOTALL)
# A line of the preprocessor goes on where it ends in a backslash.
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*", re.MULTILINE | re.DOTALL)
_LINES = re.compile(
    r"""//(?:[^\n\\]|\\.)*|/\*.*?(?:\*/|\Z)|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?""",
    re.DOTALL,
)


def refuse(message: str) -> KernelArgumentError:
    """The error that a kernel cannot be made or called like that."""
    error = KernelArgumentError(message)
    error.op, error.code = "RawKernel", "kernel-argument"
    return error


def plain(source: str) -> str:
    """The source without comments, strings and lines of the preprocessor, every line where it was."""

    def blank(match: re.Match[str]) -> str:
        kept = "\n" * match.group().count("\n")
        return (" " if match.group()[0] == "/" else '""') + kept

    return _DIRECTIVE.sub(lambda match: "\n" * match.group().count("\n"), _LINES.sub(blank, source))


def tokens(text: str) -> list[str]:
    return [token for token in _TOKEN.findall(text) if not token.isspace()]


class Kernel(NamedTuple):
    """A declaration in the source: the tokens between its parentheses, and whether its name is that of C."""

    name: str
    parameters: list[str]
    is_c: bool


def kernels(source: str) -> list[Kernel]:
    """All kernels of a source, in their order."""
    found = []
    words = tokens(plain(source))
    linkage: list[bool] = []  # for each open brace: whether it is that of extern "C" {
    start = 0  # of the declaration
    for i, word in enumerate(words):
        if word == "{":
            linkage.append(words[start:i] == ["extern", '"', '"'])
        if word == "}" and linkage:
            linkage.pop()
        if word in ("{", "}", ";"):
            start = i + 1
        if word == "__global__":
            kernel = _read_kernel(words, start, i, any(linkage))
            if kernel is not None:
                found.append(kernel)
    return found


def _read_kernel(words: list[str], start: int, i: int, inside: bool) -> Kernel | None:
    """The kernel whose __global__ stands at i."""
    k = i + 1
    while k < len(words) and words[k] not in ("(", *_ENDS):
        k += 1
        if k < len(words) and words[k - 1] == "__launch_bounds__" and words[k] == "(":
            k = _closing(words, k) + 1
    if k >= len(words) or words[k] != "(" or not words[k - 1].isidentifier():
        return None
    end = _closing(words, k)
    if end >= len(words):
        return None
    return Kernel(words[k - 1], words[k + 1 : end], inside or words[start : start + 3] == ["extern", '"', '"'])


def _closing(words: Sequence[str], i: int) -> int:
    """Where the parenthesis that opens at i closes; the number of words if it does not in this declaration."""
    depth = 0
    while i < len(words) and words[i] not in _ENDS:
        depth += {"(": 1, ")": -1}.get(words[i], 0)
        if depth == 0:
            return i
        i += 1
    return len(words)


def parameters(source: str, name: str) -> tuple[Param, ...]:
    """The parameters of one kernel. Raises KernelArgumentError."""
    found = kernels(source)
    mine = [kernel for kernel in found if kernel.name == name]
    if not mine:
        names = ", ".join(dict.fromkeys(kernel.name for kernel in found)) or "none"
        raise refuse(f"there is no kernel {name} in the source; its __global__ functions: {names}")
    if not any(kernel.is_c for kernel in mine):
        raise refuse(f'{name} must be declared extern "C", or its name in the machine code is another one')
    lists = {tuple(_without_names(kernel.parameters)) for kernel in mine}
    if len(lists) > 1:
        raise refuse(f"there are {len(mine)} kernels {name} with different parameters in the source; give params=")
    return parse(name, mine[-1].parameters, aliases(source))


def _without_names(words: list[str]) -> list[str]:
    return [" ".join(part[:-1]) for part in _split(words)]


def explicit(name: str, source: str, text: str) -> tuple[Param, ...]:
    """Parameters given as a C parameter list."""
    return parse(name, tokens(plain(text)), aliases(source))


def aliases(source: str) -> dict[str, list[str]]:
    """Names that the source gives to types: by `#define T float`, `typedef float T;` and `using T = float;`."""
    found: dict[str, list[str]] = {}
    for line in _LINES.sub(" ", source).split("\n"):
        words = tokens(line) if line.lstrip().startswith("#") else []
        if len(words) > 3 and words[1] == "define" and all(word.isidentifier() or word == "*" for word in words[2:]):
            found[words[2]] = words[3:]
    start, words = 0, tokens(plain(source))
    for i, word in enumerate(words):
        if word in (";", "{", "}"):
            part, start = words[start:i], i + 1
            if len(part) > 2 and part[0] == "typedef" and all(other.isidentifier() for other in part):
                found[part[-1]] = part[1:-1]
            if len(part) > 3 and part[0] == "using" and part[2] == "=":
                found[part[1]] = part[3:]
    return found


def _split(words: Sequence[str]) -> Iterator[list[str]]:
    part: list[str] = []
    depth = 0
    for word in words:
        depth += {"(": 1, "[": 1, "<": 1, ")": -1, "]": -1, ">": -1}.get(word, 0)
        if word == "," and depth == 0:
            yield part
            part = []
        else:
            part.append(word)
    if part:
        yield part


def parse(name: str, words: Sequence[str], known: dict[str, list[str]]) -> tuple[Param, ...]:
    """The parameters of a list of tokens."""
    parts = list(_split(words))
    if parts == [["void"]]:
        return ()
    found = tuple(_parameter(name, i, part, known) for i, part in enumerate(parts))
    if len({param.name for param in found}) < len(found):
        raise refuse(f"two parameters of {name} have one name")
    return found


def _expand(words: Sequence[str], known: dict[str, list[str]]) -> list[str]:
    for _ in range(8):
        longer = [other for word in words for other in known.get(word, [word])]
        if longer == list(words) or len(longer) > 64:
            break
        words = longer
    return list(words)


def _parameter(name: str, i: int, part: list[str], known: dict[str, list[str]]) -> Param:
    text = _written(part)
    words = list(part)
    if "=" in words:
        raise refuse(f"parameter {i + 1} of {name}, {text}: a kernel's parameters have no defaults")
    brackets = 0
    while words and words[-1] == "]" and "[" in words:
        words = words[: len(words) - 1 - words[::-1].index("[")]
        brackets += 1
    own = words.pop() if words and words[-1].isidentifier() and words[-1] not in _WORDS | {"const", "void"} else ""
    words = [word for word in _expand(words, known) if word not in _RESTRICT | {"volatile", "__grid_constant__"}]
    stars = words.count("*") + min(brackets, 1)
    pointed = words[: words.index("*")] if "*" in words else words
    constant = "const" in pointed
    base = " ".join(sorted(word for word in pointed if word != "const"))
    if not own or stars > 1 or brackets > 1 or "&" in words:
        raise _unreadable(name, i, text)
    if stars == 1:
        element = _element(base)
        if element is not None:
            return Param(own, text, ARRAY, element[0], 8, element[1], False, constant)
    elif base == "bool":
        return Param(own, text, BOOL, "bool", 1, 1, False, True)
    elif base in _INTS:
        size, is_signed = _INTS[base]
        return Param(own, text, INT, _int_dtype(size, is_signed), size, 1, is_signed, True)
    elif base in _FLOATS:
        dtype = _FLOATS[base]
        return Param(own, text, FLOAT, dtype, _ITEMSIZE[dtype], 1, True, True)
    raise _unreadable(name, i, text)


def _unreadable(name: str, i: int, text: str) -> KernelArgumentError:
    return refuse(
        f"parameter {i + 1} of {name}, {text or 'nothing'}, cannot be read: pointers to numbers and numbers can "
        f"(docs/raw-kernel.md); params= gives the list in such types",
    )


def _int_dtype(size: int, is_signed: bool) -> str:
    return "uint8" if size == 1 and not is_signed else f"int{8 * size}"


def _element(base: str) -> tuple[str, int] | None:
    """dtype and lanes of what a pointer points to."""
    if base == "void":
        return "", 1
    if base == "bool":
        return "bool", 1
    if base in _INTS:
        return _int_dtype(*_INTS[base]), 1
    if base in _FLOATS:
        return _FLOATS[base], 1
    if base in _PAIRS:
        return _FLOATS[_PAIRS[base]], 2
    vector = _VECTOR.match(base)
    if vector is None or vector.group(2) == "3":
        return None
    kind = vector.group(1)
    unsigned = kind.startswith("u")
    words = kind[unsigned:].replace("longlong", "long long")
    words = " ".join(sorted([*words.split(), *(["unsigned"] if unsigned else [])]))
    dtype = _FLOATS.get(words) or _int_dtype(*_INTS[words])
    return dtype, int(vector.group(2))


def _written(part: list[str]) -> str:
    """The declaration as one would write it: const float *x."""
    text = ""
    for word in part:
        glue = text == "" or text[-1] in "*&([<" or word in ",)]>[" or (text.endswith("::") or word == "::")
        text += word if glue else f" {word}"
    return text
