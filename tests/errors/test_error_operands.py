"""Every op of several arrays speaks in its own parameters, all of them, in the order of its signature.

The ops are read off the signatures, so that one which is added later is tested, or fails here for want of a sample.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from operand_samples import NO_SAMPLE, NOT_OPERANDS, SAMPLES, Array, Sample
from source_files import told
from support import CUDA_DEVICES, name_of

import devtensor as dt
from devtensor import nn
from devtensor._composed.written import method_of

GPU = CUDA_DEVICES[0]
WAYS = [("cpu", GPU), (GPU, "cpu"), *itertools.pairwise(CUDA_DEVICES)]
OTHER_DTYPES = ("float32", "float64", "int64", "bool")


class Form(NamedTuple):
    """A function, a method or an in-place method, and its parameters that take arrays."""

    name: str
    kind: str
    function: Callable[..., Any]
    arrays: tuple[str, ...]

    @property
    def op(self) -> str:
        return self.name.removesuffix("_") if self.name not in SAMPLES else self.name

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


# ---------------------------------------------------------------- the ops, by their signatures


def takes_array(annotation: str) -> bool:
    return re.search(r"\b(DeviceArray|_Operand|Tensor)\b", annotation) is not None


def stub_arrays(node: ast.FunctionDef, method: bool) -> tuple[str, ...]:
    """The parameters that take arrays; a method's self is the first parameter of its function."""
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    names = ["input"] if method else []
    names += [a.arg for a in given[method:] if a.annotation is not None and takes_array(ast.unparse(a.annotation))]
    return tuple(names)


# Whose out is looked at once the result is there, as that of ops that are formulas: see test_out.py.
WRITTEN_AFTER = (
    "argsort cat cummax cummin gather index_select masked_select sort stack take take_along_dim topk".split()
)
WRITTEN_AFTER += ["normal", "tril", "triu"]


def compiled_forms() -> Iterator[Form]:
    """The functions and methods of the stub file, which is made from the signatures. Of overloads, all parameters."""
    stub = ast.parse((Path(dt.__file__).parent / "_C.pyi").read_text())
    (cls,) = (node for node in stub.body if isinstance(node, ast.ClassDef) and node.name == "DeviceArray")
    for owner, body in ((dt._C, stub.body), (dt.DeviceArray, cls.body)):
        method = owner is dt.DeviceArray
        found: dict[str, dict[str, None]] = {}
        for node in body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and not is_property(node):
                found.setdefault(node.name, {}).update(dict.fromkeys(stub_arrays(node, method)))
        for name, arrays in found.items():
            kind = "in place" if method and name.endswith("_") else "method" if method else "function"
            function = getattr(owner, name)
            arrays = dict.fromkeys(a for a in arrays if a != "out" or function.__name__ not in WRITTEN_AFTER)
            yield Form(function.__name__, kind, function, tuple(arrays))  # it may be there under a second name


def is_property(node: ast.FunctionDef) -> bool:
    """Or what sets one."""
    return any(
        (isinstance(one, ast.Name) and one.id == "property")
        or (isinstance(one, ast.Attribute) and one.attr == "setter")
        for one in node.decorator_list
    )


def composed_forms() -> Iterator[Form]:
    """The functions written in Python, with their annotations."""
    for module, names in ((dt, dt.__all__), (nn.functional, nn.functional.__all__)):
        for name in names:
            function = getattr(module, name)
            if inspect.isfunction(function) and getattr(module, function.__name__, function) is function:
                name = function.__name__ if hasattr(module, function.__name__) else name  # it may have a second one
                given = inspect.signature(method_of(function)).parameters.values()
                arrays = [p.name for p in given if takes_array(str(p.annotation))]
                kept = tuple(a for a in arrays if a != "out" or name not in WRITTEN_AFTER)
                yield Form(name, "function", function, kept)


def is_list(form: Form) -> bool:
    return form.arrays == ("tensors",)


def forms() -> list[Form]:
    """Those of several arrays, each function once whatever its names."""
    found: dict[Any, Form] = {}
    for form in (*compiled_forms(), *composed_forms()):
        if len(form.arrays) > 1 or is_list(form):
            found.setdefault(form.function, form)
    return list(found.values())


FORMS = forms()
# x.max(other) gives the array by position, where a dim may stand; .to(other) reads metadata
SYNONYMS = {"max": {"dim": "other"}, "min": {"dim": "other"}}


def test_there_is_a_sample() -> None:
    for form in FORMS:
        check_sample(form)


def check_sample(form: Form) -> None:
    if form.op in NO_SAMPLE:
        return
    assert form.op in SAMPLES, f"no sample for op {form.op}: add one to operand_samples.py"
    known = {*SAMPLES[form.op].arrays, *SYNONYMS.get(form.op, ()), *NOT_OPERANDS.get(form.op, ()), "out"}
    if form.kind != "function":
        known.add("input")
    missing = set(form.arrays) - known
    assert not missing, f"no sample for op {form.op}: {missing} take arrays"


def test_samples_are_of_ops_that_are_there() -> None:
    assert set(SAMPLES) | set(NO_SAMPLE) == {form.op for form in FORMS}
    assert {"linear", "where", "clamp", "cross_entropy", "copy_", "exp"} <= {form.op for form in FORMS}
    assert {form.kind for form in FORMS} == {"function", "method", "in place"}


# ---------------------------------------------------------------- calls


Given = dict[str, Array]


def made(array: Array, device: str) -> Any:
    def one() -> Any:
        return dt.zeros(array.shape, dtype=getattr(dt, array.dtype), device=device)

    return [one() for _ in range(array.entries)] if array.entries else one()


def call(form: Form, given: dict[str, Any], others: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # losses of shapes that broadcast
        return called(form, given, others)


def called(form: Form, given: dict[str, Any], others: dict[str, Any]) -> Any:
    if form.kind == "function":
        return form.function(**given, **others)
    (_, target), *rest = sorted(given.items(), key=lambda item: item[0] != "input")
    return form.function(target, **dict(rest), **others)


def order(form: Form) -> list[str]:
    """The parameters of the op: those of its function, where there is one."""
    function = getattr(dt, form.op, None) or getattr(nn.functional, form.op, None) or form.function
    names = list(inspect.signature(function).parameters)
    return ["input", *names[1:]] if names[0] == "self" else names


def variants(form: Form, sample: Sample) -> list[Given]:
    """Arrays given: with and without each that may be left out, and with out= as the result is."""
    optional = [p for p in order(form) if p in sample.arrays and is_optional(form, p)]
    found = []
    for count in range(len(optional) + 1):
        for left_out in itertools.combinations(optional, count):
            given = {name: array for name, array in sample.arrays.items() if name not in left_out}
            try:
                result = call(form, {name: made(a, "cpu") for name, a in given.items()}, sample.others)
            except (RuntimeError, TypeError, ValueError):
                assert left_out, "the sample itself is refused"
                continue
            if len(given) > 1 or is_list(form):
                found.append(given)
            if "out" in form.arrays and not left_out:
                found.append({**given, "out": Array(result.shape, name_of(result.dtype))})
    return found


def is_optional(form: Form, name: str) -> bool:
    parameter = inspect.signature(form.function).parameters.get(name)
    return parameter is not None and parameter.default is None and name != "other"


def entries(form: Form, given: Given) -> list[str]:
    """The operands as an error names them, in order."""
    if is_list(form):
        return [f"tensors[{k}]" for k in range(given["tensors"].entries)]
    return [name for name in order(form) if name in given]


def built(given: Given, device: str, flipped: str, changed: Callable[[Any], Any]) -> dict[str, Any]:
    """The arrays of a call, one of them changed."""
    arrays = {name: made(array, device) for name, array in given.items()}
    name, _, rest = flipped.partition("[")
    if rest:
        arrays[name][int(rest[:-1])] = changed(arrays[name][int(rest[:-1])])
    else:
        arrays[name] = changed(arrays[name])
    return arrays


def error_of(form: Form, arrays: dict[str, Any], others: dict[str, Any]) -> Any:
    try:
        call(form, arrays, others)
    except Exception as error:
        return error
    return None


def flat(form: Form, arrays: dict[str, Any]) -> dict[str, Any]:
    """The operands by the names of an error."""
    if is_list(form):
        return {f"tensors[{k}]": x for k, x in enumerate(arrays["tensors"])}
    return arrays


PARAMETERS = ("weight", "bias", "running_mean", "running_var")


def odd_one(names: list[str], values: dict[str, str], special: tuple[str, ...]) -> str:
    """By majority; of a tie the first special one, the data rather than the parameter, the later one."""
    votes = {name: sum(values[other] == values[name] for other in names) for name in names}
    least = [name for name in names if votes[name] == min(votes.values())]
    for value in special:
        if any(values[name] == value for name in least):
            least = [name for name in least if values[name] == value]
            break
    least = [name for name in least if name not in PARAMETERS] or least
    return least[-1]


def check(form: Form, given: Given, error: Any, kind: type[Exception], arrays: dict[str, Any]) -> None:
    assert type(error) is kind, (error, form)
    assert error.op == form.op.removesuffix("_") or error.op == form.op
    assert [operand.name for operand in error.operands] == entries(form, given), error
    held = flat(form, arrays)
    for operand in error.operands:
        x = held[operand.name]
        assert (operand.shape, operand.dtype, operand.device) == (tuple(x.shape), x.dtype, x.device)
    first = str(error).splitlines()[0]
    assert f"({error.op}: " in first
    listed = first.rpartition(f"({error.op}: ")[2]
    for name in entries(form, given):
        assert re.search(rf"(?<!\w){re.escape(name)}(?!\w)", listed), first
    assert any(error.culprit is operand for operand in error.operands)


def cases() -> list[tuple[Form, Sample]]:
    return [(form, SAMPLES[form.op]) for form in FORMS if form.op in SAMPLES]


def marked(chosen: list[tuple[Form, Sample]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("form", "sample"), chosen, ids=[str(form) for form, _ in chosen])


def is_repeated(form: Form) -> bool:
    """A method that is its function with self for the first parameter."""
    return form.kind == "method" and any(
        other.kind == "function" and other.op == form.op and other.arrays[0] == "input" for other in FORMS
    )


ALL = marked(cases())
ONCE = marked([(form, sample) for form, sample in cases() if not is_repeated(form)])


# ---------------------------------------------------------------- flipped: device, dtype, shape


@ALL
def test_devices(form: Form, sample: Sample) -> None:
    for given in variants(form, sample):
        for flipped in entries(form, given):
            for home, away in WAYS:
                arrays = built(given, home, flipped, lambda x, away=away: x.to(away))
                error = error_of(form, arrays, sample.others)
                if "device" in sample.free.get(flipped, ()):
                    assert error is None, error
                    continue
                check(form, given, error, dt.DeviceMismatchError, arrays)
                names = entries(form, given)
                where = {name: str(x.device) for name, x in flat(form, arrays).items()}
                written = form.kind == "in place" and len(names) == 2  # by a call that a converted copy would not get
                assert error.culprit.name == (names[1] if written else odd_one(names, where, ("cpu",))), error
                assert ", ".join(f"{name} on {where[name]}" for name in names) in str(error)


@ONCE
def test_dtypes(form: Form, sample: Sample) -> None:
    for given in variants(form, sample):
        for flipped in entries(form, given):
            for dtype in OTHER_DTYPES:
                shown = set()
                for device in ("cpu", GPU):
                    arrays = built(given, device, flipped, lambda x, dtype=dtype: x.to(getattr(dt, dtype)))
                    error = error_of(form, arrays, sample.others)
                    shown.add(told(error))
                    if error is None:
                        continue
                    assert "dtype" not in sample.free.get(flipped, ())
                    if flipped in sample.decides and isinstance(error, dt.ShapeMismatchError):
                        continue
                    check(form, given, error, dt.DTypeMismatchError, arrays)
                    assert error.culprit.name == culprit_of_dtype(form, sample, given, flipped, arrays, error), error
                assert len(shown) == 1, shown


def culprit_of_dtype(form: Form, sample: Sample, given: Given, flipped: str, arrays: dict[str, Any], error: Any) -> str:
    held = {name: name_of(x.dtype) for name, x in flat(form, arrays).items()}
    if str(error).startswith("Expected out tensor"):
        return "out"
    if str(error).startswith("result type"):  # in place: the left side is what cannot stay
        return "input"
    refused = re.match(r'"\w+" not implemented for \'(\w+)\'', str(error))
    if refused is not None:
        refused_ones = [name for name in entries(form, given) if held[name] == refused.group(1)]
        return flipped if flipped in refused_ones else refused_ones[0]
    if error.code == "dtype-of-index":
        return flipped
    kinds = {n: name_of(x.dtype) if n in sample.decides else "float32" for n, x in flat(form, arrays).items()}
    floats = [n for n in entries(form, given) if n != "out" and given[n.partition("[")[0]].dtype == "float32"]
    together = floats + [n for n in sample.decides if kinds.get(n, "").startswith("float")]
    return odd_one(together, held, ("int64", "uint8", "bool", "float64"))


@ONCE
def test_shapes(form: Form, sample: Sample) -> None:
    for given in variants(form, sample):
        for flipped in entries(form, given):
            for shape in other_shapes(given[flipped.partition("[")[0]].shape):
                shown = set()
                for device in ("cpu", GPU):
                    arrays = built(given, device, flipped, lambda x, shape=shape: x.new_zeros(shape))
                    error = error_of(form, arrays, sample.others)
                    shown.add(told(error))
                    if error is None:
                        continue
                    check(form, given, error, dt.ShapeMismatchError, arrays)
                    assert error.culprit.name == culprit_of_shape(form, sample, given, flipped, arrays, error), error
                assert len(shown) == 1, shown


def other_shapes(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Each size another one, one dimension more, one less."""
    for d in range(len(shape)):
        yield (*shape[:d], shape[d] + 97, *shape[d + 1 :])
    yield (2, *shape)
    if shape:
        yield shape[1:]


def culprit_of_shape(form: Form, sample: Sample, given: Given, flipped: str, arrays: dict[str, Any], error: Any) -> str:
    """Who alone breaks its own rule; else who disagrees with all; of two the data rather than the parameter, else the
    later one."""
    names = [name for name in entries(form, given) if name != "out"]
    text = str(error)
    if text.startswith("Expected out tensor"):
        return "out"
    if text.startswith("output with shape"):  # in place
        return [name for name in names if not fits(arrays[name].shape, arrays["input"].shape)][-1]
    if "non-singleton" in text and form.op != "expand_as":
        return odd_shape(names, flipped, arrays)
    named = re.search(r"[Ee]xpected (\w+) to |^(\w+) of shape", text)
    named_one = (named[1] or named[2]) if named is not None else ""
    if named_one in sample.own and form.op != "batch_norm":
        return str(named_one)
    if error.code == "rank-mismatch" or flipped in sample.own:
        return flipped
    disagree = [name for name in names if name not in sample.own]
    if len(disagree) > 2:
        return flipped
    return ([name for name in disagree if name not in PARAMETERS] or disagree)[-1]


def odd_shape(names: list[str], flipped: str, arrays: dict[str, Any]) -> str:
    """Of shapes that do not broadcast: the only one without which the others do; else the condition or mask, the later
    one."""
    wide = [name for name in names if arrays[name].ndim]
    if len(wide) > 2:
        return flipped
    return ([name for name in wide if name in ("condition", "mask")] or wide)[-1]


def fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether shape broadcasts to target."""
    lead = len(target) - len(shape)
    return lead >= 0 and all(n in (1, m) for n, m in zip(shape, target[lead:], strict=True))


# ---------------------------------------------------------------- lists longer than an error


LONG = [(0, 9), (1, 8), (7, 11), (8, 9), (9, 30), (12, 13)]


@pytest.mark.parametrize(("model", "odd"), LONG)
def test_a_long_list_shows_what_was_compared(model: int, odd: int, device: str) -> None:
    """Of cat, the first entry that is more than an empty vector, which decides the shape, and the one that differs."""
    arrays = [dt.zeros(0, device=device)] * model + [dt.zeros(2, 3, device=device)] * 31
    arrays[odd] = dt.zeros(2, 4, device=device)
    with pytest.raises(dt.ShapeMismatchError) as caught:
        dt.cat(arrays)
    shown = [operand.name for operand in caught.value.operands]
    assert {f"tensors[{model}]", f"tensors[{odd}]"} <= set(shown)
    assert len(shown) == 8 and shown == sorted(shown, key=lambda name: int(name[8:-1]))
    assert caught.value.culprit.name == f"tensors[{odd}]"


@pytest.mark.parametrize("odd", [1, 7, 8, 30])
def test_a_long_list_shows_what_was_compared_in_stack_and_by_device(odd: int) -> None:
    for join in (dt.cat, dt.stack):
        for one in (dt.zeros(2, 3, device=GPU), dt.zeros(2, 3, 4)):
            arrays = [dt.zeros(2, 3)] * 31
            arrays[odd] = one
            with pytest.raises((dt.ShapeMismatchError, dt.DeviceMismatchError)) as caught:
                join(arrays)
            shown = [operand.name for operand in caught.value.operands]
            assert shown[0] == "tensors[0]" and f"tensors[{odd}]" in shown
            assert caught.value.culprit.name == f"tensors[{odd}]"


@pytest.mark.parametrize("model", [0, 7, 8, 30])
def test_a_scalar_in_a_long_list_is_shown(model: int, device: str) -> None:
    arrays = [dt.zeros(0, device=device)] * model + [dt.zeros((), device=device)] + [dt.zeros(2, device=device)] * 9
    with pytest.raises(dt.ShapeMismatchError, match=rf"at position {model}\)") as caught:
        dt.cat(arrays)
    assert caught.value.culprit.name == f"tensors[{model}]"


# ---------------------------------------------------------------- the test itself


def test_an_op_without_a_sample_is_found() -> None:
    planted = Form("blend", "function", lambda input, other: input, ("input", "other"))
    with pytest.raises(AssertionError, match="no sample for op blend"):
        check_sample(planted)


def test_a_parameter_without_a_sample_is_found() -> None:
    planted = replace_arrays(next(form for form in FORMS if form.name == "linear"), "scale")
    with pytest.raises(AssertionError, match="no sample for op linear"):
        check_sample(planted)


def replace_arrays(form: Form, more: str) -> Form:
    return form._replace(arrays=(*form.arrays, more))


def test_an_op_that_speaks_of_another_is_found() -> None:
    """mse_loss made of sub, without a check of its own."""
    planted = Form("mse_loss", "function", lambda input, target: (input - target).square(), ("input", "target"))
    sample = replace(SAMPLES["mse_loss"], arrays={"input": Array((2, 3)), "target": Array((2, 3))})
    for test in (test_devices, test_shapes):
        with pytest.raises(AssertionError):
            test(planted, sample)


# ---------------------------------------------------------------- the order of checks


def test_limits_are_looked_at_after_the_operands() -> None:
    x = dt.zeros(2, 3)
    for out, kind in (
        (dt.zeros(2, 3, device=GPU), dt.DeviceMismatchError),
        (dt.zeros(2, 3, dtype=dt.int64), dt.DTypeMismatchError),
        (dt.zeros(4), dt.ShapeMismatchError),
        (dt.zeros(2, 3), ValueError),
    ):
        with pytest.raises(kind):
            dt.hardtanh(x, 1, 0, out=out)
    with pytest.raises(dt.DTypeMismatchError):
        dt.hardtanh(x.bool(), 1, 0)
    for call in (lambda: dt.hardtanh(x, 1, 0), lambda: x.hardtanh_(2.5, 1), lambda: dt.hardtanh(x.long(), 3, 1)):
        with pytest.raises(
            ValueError, match=r"min_val cannot be greater than max_val, but got .* \(hardtanh\)"
        ) as caught:
            call()
        assert [operand.name for operand in caught.value.operands] == ["input"]
