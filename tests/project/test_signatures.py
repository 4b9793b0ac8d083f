"""What a function's parser takes is what inspect.signature says of it, and what csrc/py/signatures.pyi says of both."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, MethodDescriptorType
from typing import Any

import pytest
from support import ROOT

import devtensor as dt

sys.path.insert(0, str(ROOT / "tools" / "package"))
import signatures

sys.path.pop(0)

C = dt._C
READ_ELSEWHERE = {"_shown", "_cuda_set_search_path", "DeviceArray.backward"}
READ_ELSEWHERE |= {"DeviceArray.__deepcopy__", "DeviceArray.__format__"}  # whose signatures Python reads from 3.14 on
OWNERS: list[Any] = [C, C._test, C.DeviceArray, C.Stream, C.Event]


def functions() -> Iterator[tuple[str, Any, list[inspect.Parameter]]]:
    """The compiled functions with parameters, and these; without self."""
    for owner in OWNERS:
        for name, function in sorted(vars(owner).items()):
            of_class = inspect.isclass(owner)
            kind = MethodDescriptorType if of_class else BuiltinFunctionType  # the slots of operators are neither
            if not isinstance(function, kind) or not getattr(function, "__text_signature__", None):
                continue
            parameters = list(inspect.signature(function).parameters.values())[of_class:]
            key = f"{owner.__name__}.{name}" if of_class else name
            if parameters and not key.startswith("DeviceArray.__r") and key not in READ_ELSEWHERE:
                yield key, function, parameters


FUNCTIONS = {key: (function, parameters) for key, function, parameters in functions()}


def bound(key: str) -> Callable[..., Any]:
    function = FUNCTIONS[key][0]
    owners: dict[str, Callable[[], Any]] = {"DeviceArray": lambda: dt.ones(2), "Event": dt.cuda.Event}
    owners["Stream"] = lambda: dt.cuda.Stream("cuda:0")
    owner, dot, _ = key.rpartition(".")
    return lambda *args, **kwargs: function(*([owners[owner]()] if dot else []), *args, **kwargs)


def complaint(call: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    with pytest.raises(TypeError) as caught:
        call(*args, **kwargs)
    return str(caught.value)


def is_rest(parameter: inspect.Parameter) -> bool:
    return parameter.kind is parameter.VAR_POSITIONAL


def test_how_many_may_go_unnamed() -> None:
    wrong = []
    for key, (_, parameters) in FUNCTIONS.items():
        if not any(is_rest(p) for p in parameters):
            most = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
            text = complaint(bound(key), *[None] * 30)
            wrong += [] if f"takes at most {most} positional argument" in text else [(key, text)]
    assert wrong == []


def test_the_names() -> None:
    """Each name is known: the complaint is of the next one. What inspect.signature does not say is not."""
    wrong = []
    for key, (_, parameters) in FUNCTIONS.items():
        for name in [p.name for p in parameters if not (is_rest(p) and p.name == "args")]:
            text = complaint(bound(key), **{name: None, "no_such_name": None})
            wrong += [] if "unexpected keyword argument 'no_such_name'" in text else [(key, text)]
    assert wrong == []


def test_what_must_be_given() -> None:
    wrong = []
    for key, (_, parameters) in FUNCTIONS.items():
        needed = [p.name for p in parameters if p.default is p.empty and not (is_rest(p) and p.name == "args")]
        for i, name in enumerate(needed):
            text = complaint(bound(key), **dict.fromkeys(needed[:i]))
            wrong += [] if text.endswith(f"missing required argument: '{name}'") else [(key, text)]
    assert wrong == []


def test_no_more_must_be_given_and_no_other_name_is_known() -> None:
    """The specs in the header have no name and no need that the text beside them does not have."""
    header = (ROOT / "csrc" / "py" / "signatures.h").read_text()
    specs = dict(re.findall(r'#define PY_SPEC_(\w+) \{"\w+", (\d+, .*), __func__\}$', header, re.MULTILINE))
    texts = dict(re.findall(r'#define PY_TEXT_(\w+) "(.*)"$', header, re.MULTILINE))
    assert len(texts) > 150
    wrong = []
    for name in texts:
        required, _, _, names = re.fullmatch(r"(\d+), (\d+), (-?\d+), \{(.*)\}", specs[name]).groups()  # type: ignore[union-attr]
        written = [part for part in texts[name].split(", ") if part not in ("", "*")]
        named = [part.split("=")[0].lstrip("*") for part in written]
        if re.findall(r'"(\w*)"', names) != named or int(required) != sum("=" not in part for part in written):
            wrong.append(name)
    assert wrong == []


def test_the_header_is_made_of_the_list() -> None:
    entries = signatures.read(signatures.SOURCE.read_text())
    assert signatures.HEADER.read_text() == signatures.header(entries)


def test_the_list_has_every_function_but_those_of_the_def_files() -> None:
    listed: set[str] = set()
    for entry in signatures.read(signatures.SOURCE.read_text()):
        listed.add(entry.name if entry.owner in ("", "_test") else f"{entry.owner}.{entry.name}")
        listed.update(f"DeviceArray.{name}" for name in entry.method_names() if not entry.owner)
    lines = "".join((ROOT / "csrc" / "core" / f"{file}.def").read_text() for file in ("elementwise", "reductions"))
    families = set(re.findall(r"^DT_\w+\((\w+)", lines, re.MULTILINE))
    missing = {key for key in FUNCTIONS if key not in listed and FUNCTIONS[key][0].__name__.rstrip("_") not in families}
    assert missing == set()


@pytest.mark.parametrize(
    "text",
    [
        "def f(a, b=1, c=2, *, d): ...",
        "def f(*, out=None, d): ...",
    ],
)
def test_what_the_parser_cannot_say_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="f: a parameter that must be given"):
        signatures.header(signatures.read(signatures.HEADING + "Ops\n" + text))
