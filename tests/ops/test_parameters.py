"""What a parameter cannot be, for every public function, method and class: the error names the op and the parameter.

The parameters are read off the signatures, so that one which is added later is tested, or fails for want of a value.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from parameter_samples import EXCEPTIONS, GIVEN, NOT_CALLED, VALUES
from support import DEVICES

import devtensor as dt

pytestmark = pytest.mark.usefixtures("unexplained")
OURS = ("devtensor.nn", "devtensor.data", "devtensor.cuda")  # modules with classes that are written in Python
NUMPY = {"axis": "dim", "keepdims": "keepdim"}  # NumPy's name for a parameter, and PyTorch's


class Parameter(NamedTuple):
    name: str
    types: str  # the annotation, of overloads all of them
    needed: bool
    star: bool


class Form(NamedTuple):
    """Something to call, with what is written of its parameters; a method has self behind it."""

    name: str
    kind: str
    function: Callable[..., Any]
    parameters: tuple[Parameter, ...]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


# ---------------------------------------------------------------- what is public, by its signatures


def stub_parameters(node: ast.FunctionDef, method: bool) -> dict[str, Parameter]:
    given, found = node.args, {}
    plain = [*given.posonlyargs, *given.args]
    needed = len(plain) - len(given.defaults)
    for i, arg in enumerate(plain):
        found[arg.arg] = (arg, i < needed, False)
    if given.vararg:
        found[given.vararg.arg] = (given.vararg, True, True)
    for arg, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        found[arg.arg] = (arg, default is None, False)
    names = list(found)[method:]
    return {n: Parameter(n, ast.unparse(found[n][0].annotation or ast.Constant("Any")), *found[n][1:]) for n in names}


def compiled_forms() -> Iterator[Form]:
    """The functions and methods of the stub file, which is made from the signatures."""
    stub = ast.parse((Path(dt.__file__).parent / "_C.pyi").read_text())
    (cls,) = (node for node in stub.body if isinstance(node, ast.ClassDef) and node.name == "DeviceArray")
    for owner, body in ((dt._C, stub.body), (dt.DeviceArray, cls.body)):
        found: dict[str, dict[str, Parameter]] = {}
        for node in body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_") or node.decorator_list[1:]:
                continue
            if any(isinstance(one, ast.Name) and one.id == "property" for one in node.decorator_list):
                continue
            if any(isinstance(one, ast.Attribute) and one.attr == "setter" for one in node.decorator_list):
                continue
            first = node.name not in found
            known = found.setdefault(node.name, {})
            for name, p in stub_parameters(node, owner is dt.DeviceArray).items():
                if name in known:
                    types = f"{known[name].types} | {p.types}"
                    known[name] = p._replace(types=types, needed=p.needed and known[name].needed)
                else:  # in another overload only: need not be given
                    known[name] = p if first else p._replace(needed=False)
        for name, parameters in found.items():
            kind = "method" if owner is dt.DeviceArray else "function"
            function = getattr(owner, name)
            if function.__name__ == name:  # it may have a second name
                yield Form(name, kind, function, tuple(parameters.values()))


def written(function: Any) -> tuple[Parameter, ...]:
    """The parameters of a function or class written in Python."""
    found = inspect.signature(function).parameters.values()
    return tuple(
        Parameter(p.name, str(p.annotation), p.default is p.empty, p.kind is p.VAR_POSITIONAL)
        for p in found
        if p.kind is not p.VAR_KEYWORD
    )


def composed_forms() -> Iterator[Form]:
    modules = {"": dt, "functional": dt.nn.functional, "init": dt.nn.init, "nn": dt.nn, "data": dt.data,
               "cuda": dt.cuda, "cpu": dt.cpu, "testing": dt.testing, "linalg": dt.linalg}  # fmt: skip
    for where, module in modules.items():
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value):
                name = (
                    value.__name__ if getattr(module, value.__name__, None) is value else name
                )  # it may have a second
                yield Form(name, where or "function", value, written(value))
            elif inspect.isclass(value) and value.__module__.startswith(OURS):
                if value.__init__ is not object.__init__:
                    yield Form(name, where, value, written(value))
    for name in dir(dt.DeviceArray):
        method = getattr(dt.DeviceArray, name)
        if inspect.isfunction(method) and not name.startswith("_"):
            yield Form(name, "method", method, written(method)[1:])


def forms() -> list[Form]:
    found: dict[Any, Form] = {}
    for form in (*compiled_forms(), *composed_forms()):
        found.setdefault((form.function, form.kind == "method"), form)
    return list(found.values())


FORMS = forms()


# ---------------------------------------------------------------- what a parameter cannot be


TEXT = r"\b(str|Literal\[['\"]\w+|_?Device|_?[Dd]evice|_?DType|Reduction|_Mode|_Padding|Nonlinearity|Path)"
ARRAY = r"\b(DeviceArray|_Operand|Tensor)\b"
INTEGER = r"(?<![\w.])(_Ints?|_Pair|(builtins\.)?int|Dims|_One|_Size|_Padding)\b"
NUMBER = r"\b(_Number|_Operand|float)\b"
FREE = r"\b(Any|object|Buffer|Dataset|Iterable|Sized|NDArray|ArrayLike)\b"


def wrong(types: str) -> Iterator[Any]:
    """Values that are none of the types."""
    if re.search(FREE, types):
        return
    if not re.search(TEXT, types):
        yield "a"
    if not re.search(ARRAY, types):
        yield from (dt.ones(1, dtype=dt.int64, device=device) for device in DEVICES)
        yield dt.ones(2, 2)
    if not re.search(r"\bNone\b", types):
        yield None
    if re.search(INTEGER, types) and not re.search(NUMBER, types):
        yield float("nan")


def value_of(form: Form, name: str) -> Any:
    for key in (f"{form.name.rstrip('_')}.{name}", f"{form.name}.{name}", name):
        if key in VALUES:
            value = VALUES[key]
            return value() if callable(value) else value
    raise AssertionError(f"no value for {name} of {form}: add one to parameter_samples.py")


def call(form: Form, changed: dict[str, Any]) -> Any:
    """The op with right values but for those changed."""
    needed = [p.name for p in form.parameters if p.needed or p.name in GIVEN.get(form.name.rstrip("_"), ())]
    twice = {NUMPY.get(name) for name in changed}
    given = {name: value_of(form, name) for name in needed if name not in twice and name not in changed} | changed
    first = [value_of(form, "input")] if form.kind == "method" else []
    for p in form.parameters:
        if p.star and p.name in given:
            before = [given.pop(q.name) for q in form.parameters[: form.parameters.index(p)] if q.name in given]
            star = given.pop(p.name)
            return form.function(*first, *before, *(star if isinstance(star, tuple) else (star,)), **given)
    return form.function(*first, **given)


def complaint(form: Form, name: str, value: Any) -> str:
    """What is wrong about the error; "" where nothing is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(form, {name: value})
    except (TypeError, ValueError, RuntimeError) as error:
        text = str(error).splitlines()[0]
        op = form.name.rstrip("_") if form.kind == "method" else form.name
        named = re.search(rf"(?<!\w){op}_?\b", text) and re.search(rf"(?<!\w){name}\b", text)
        return "" if named else f"{type(error).__name__}: {text}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"


def looked_at(form: Form) -> list[Parameter]:
    """The parameters that refuse something."""
    if form.name in NOT_CALLED:
        return []
    known = (p for p in form.parameters if f"{form.name}.{p.name}" not in EXCEPTIONS)
    return [p for p in known if not re.search(FREE, p.types)]


@contextlib.contextmanager
def process_as_it_was() -> Iterator[None]:
    """A right call may set something for the process."""
    threads, host = dt.get_num_threads(), dt.cpu.memory_stats()
    yield
    dt.set_num_threads(threads)
    dt.cpu.set_cache_limit(host["limit_bytes"])
    dt.cpu.set_packed_limit(host["packed_limit_bytes"])
    dt.cuda.set_workspace_limit(None)
    dt.cuda.set_per_process_memory_fraction(1.0)
    dt.cuda.tune(False)


def complaints(form: Form) -> dict[str, str]:
    """What is wrong about the errors of an op, by what it was given; and of the right call."""
    with process_as_it_was():
        try:
            call(form, {})
        except Exception as error:
            return {f"{form}": f"{type(error).__name__}: {error}"}
        tried = {(p.name, repr(value)): complaint(form, p.name, value)
                 for p in looked_at(form) for value in wrong(p.types)}  # fmt: skip
    return {f"{form}, {name}={value}": said for (name, value), said in tried.items() if said}


@pytest.mark.parametrize("kind", sorted({form.kind for form in FORMS}))
def test_a_wrong_value_is_told_of_op_and_parameter(kind: str) -> None:
    found = [complaints(form) for form in FORMS if form.kind == kind and looked_at(form)]
    assert [said for said in found if said] == []


# ---------------------------------------------------------------- the test itself


def test_exceptions_are_of_parameters_that_are_there() -> None:
    known = {f"{form.name}.{p.name}" for form in FORMS for p in form.parameters}
    assert set(EXCEPTIONS) <= known
    assert set(NOT_CALLED) <= {form.name for form in FORMS}
    assert len(EXCEPTIONS) + len(NOT_CALLED) < 9


@pytest.mark.parametrize(
    "planted",
    [
        lambda input, n: n > 3,  # a bare error of Python
        lambda input, n: dt.roll(input, n),  # another op's
        lambda input, n: int(n) if isinstance(n, dt.DeviceArray) else dt._C._need_int("shuffle", "n", n),  # a transfer
        lambda input, n: dt._C._need_int("shuffle", "count", n),  # another parameter
    ],
)
def test_an_op_that_does_not_look_is_found(planted: Callable[..., Any]) -> None:
    n = Parameter("n", "int", True, False)
    form = Form("shuffle", "function", planted, (Parameter("input", "Any", True, False), n))
    assert complaints(form)


def test_an_op_that_looks_is_right() -> None:
    n = Parameter("n", "int", True, False)
    form = Form("shuffle", "function", lambda n: dt._C._need_int("shuffle", "n", n), (n,))
    assert complaints(form) == {}


def test_what_fits_is_taken() -> None:
    """Whatever has __index__, NumPy's numbers, and a list for a tuple."""
    x = dt.arange(6, dtype=dt.float32).reshape(2, 3)
    assert dt.roll(x, np.int64(1), [np.int32(0)]).tolist() == [[3, 4, 5], [0, 1, 2]]
    assert dt.nn.Linear(np.int64(3), np.int16(2), bias=np.bool_(False))(x).shape == (2, 2)
    assert dt.nn.functional.dropout(x, np.float32(0), np.bool_(True)).tolist() == x.tolist()
    assert dt.norm(x, p=np.float64(1), dim=np.int64(1), keepdim=np.bool_(True)).tolist() == [[3], [12]]
    assert dt.nn.MaxPool2d([2, np.int64(2)]).kernel_size == (2, 2)
    assert dt.nn.MaxPool2d(np.int64(2)).kernel_size == 2
    assert dt.var(x, correction=2**70).isinf().item()
    assert dt.var(x, correction=-(2**63)).item() == 17.5 / 2**63


def test_sizes_are_not_negative() -> None:
    x = dt.ones(2, 3)
    for call in (lambda: dt.layer_norm(x, -1), lambda: dt.layer_norm(x, (2, -3)), lambda: dt.nn.LayerNorm(-1)):
        with pytest.raises(RuntimeError, match="(layer_norm|LayerNorm): normalized_shape must hold sizes from 0"):
            call()
