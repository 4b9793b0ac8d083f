"""The >>> examples in docstrings run on the cpu and print what stands there."""

from __future__ import annotations

import ast
import contextlib
import doctest
import gc
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import public_names
import pytest
from support import CUDA_DEVICES, RUNS_KERNELS

import devtensor as dt

pytestmark = pytest.mark.skipif(len(CUDA_DEVICES) != 2, reason="the examples show two simulated GPUs")
STUB = Path(dt.__file__).with_name("_C.pyi")
DOCUMENTED = public_names.documented()
EXAMPLES = {
    name: parsed
    for name, value in DOCUMENTED.items()
    if (parsed := doctest.DocTestParser().get_examples(inspect.getdoc(value) or "", name))
}


def failures(name: str, examples: list[doctest.Example]) -> str:
    """What a run of examples says is wrong; empty when they print what they state."""
    said: list[str] = []
    known = {"dt": dt, "np": np, "nn": dt.nn, "F": dt.nn.functional, "__name__": "__main__"}
    test = doctest.DocTest(examples, known, name, None, None, None)
    dt.manual_seed(0)
    doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    return "".join(said)


@contextlib.contextmanager
def garbage() -> Iterator[list[Any]]:
    """What the block leaves in cycles: it ends when the collector comes, be the memory of a device needed before."""
    gc.collect()
    gc.garbage.clear()
    gc.set_debug(gc.DEBUG_SAVEALL)
    found: list[Any] = []
    try:
        yield found
        gc.collect()
        found += gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


def holds_an_array(value: Any) -> bool:
    return any(isinstance(held, dt.DeviceArray) for held in gc.get_referents(value))


HOMES = sorted({name.rpartition(".")[0] for name in EXAMPLES})  # modules, and classes with examples of their own


@pytest.mark.parametrize("home", HOMES)
def test_examples_print_what_they_state(home: str, capsys: Any) -> None:
    here = {name: examples for name, examples in EXAMPLES.items() if name.rpartition(".")[0] == home}
    if not RUNS_KERNELS:
        here = {n: examples for n, examples in here.items() if not any("RawKernel" in e.source for e in examples)}
    raising = {name for name, examples in here.items() if any(one.exc_msg for one in examples)}
    said = {name: failures(name, here[name]) for name in raising}  # doctest keeps the frames of an exception
    with garbage() as found:
        said |= {name: failures(name, here[name]) for name in here if name not in raising}
    assert [one for one in found if holds_an_array(one)] == []
    assert {name: text for name, text in said.items() if text} == {}


def test_each_function_has_an_example() -> None:
    assert [name for name, value in public_names.functions().items() if ">>> " not in doc_of(value)] == []


WRONG = {
    "value": (">>> dt.ones(2)\nDeviceArray([1., 2.], device='cpu', dtype=float32)\n", True),
    "error": (">>> dt.ones(2) + dt.ones(3)\n", True),
    "stated error": (">>> dt.ones(2) + dt.ones(3)\nTraceback (most recent call last):\n    ...\n{}...\n", False),
    "right": (">>> F.relu(dt.tensor(-1.0))\nDeviceArray(0., device='cpu', dtype=float32)\n", False),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_wrong_is_found(kind: str) -> None:
    text, wrong = WRONG[kind]
    examples = doctest.DocTestParser().get_examples(text.format("devtensor.ShapeMismatchError: "))
    assert bool(failures(kind, examples)) == wrong


def doc_of(value: Any) -> str:
    return (inspect.getdoc(value) or "").strip()


def in_stub() -> dict[str, str | None]:
    """The docstrings that an editor reads for what is compiled."""
    found: dict[str, str | None] = {}
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.setdefault(node.name, ast.get_docstring(node))
            for item in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(item, ast.FunctionDef):
                    found.setdefault(f"{node.name}.{item.name}", ast.get_docstring(item))
    return found


@pytest.mark.parametrize("owner", [dt._C, dt.DeviceArray, dt.device, dt.dtype, dt.Generator, dt.Stream, dt.Event])
def test_docstrings_reach_the_editor(owner: Any) -> None:
    """tools/package/make_stubs.py writes them without the line of the signature."""
    prefix, stub = "" if owner is dt._C else f"{owner.__name__}.", in_stub()
    members = {key: inspect.getattr_static(owner, key) for key in dir(owner) if not key.startswith("_")}
    wanted = {key: value for key, value in members.items() if callable(value) or inspect.isdatadescriptor(value)}
    assert [key for key, value in wanted.items() if stub[prefix + key] != doc_of(value)] == []
    assert not inspect.isclass(owner) or stub[owner.__name__] == doc_of(owner)
