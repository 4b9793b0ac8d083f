"""Every op of the case table, on every device, dtype and layout, against the reference."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

import cases
import formats
import images
import numpy as np
import pytest
import reference
from cases import CASES, Case, Operand
from formats import DTYPES, FLOATS, INTS
from support import ROOT, Built, bits_of, call, for_each, from_bits, lay_out, name_of, no_transfers, question, wide_of

import devtensor as dt

CORE = ROOT / "csrc" / "core"


def rows(ops: Any = None, only: Callable[[Case], bool] = lambda case: True) -> list[Any]:
    """The cases of these ops, as parameters."""
    return [pytest.param(c, id=str(c)) for c in CASES if (ops is None or c.op in ops) and only(c)]


def can_replace(case: Case, dtype: str) -> bool:
    """Whether the answer has the shape and the dtype of the first operand."""
    if not isinstance(case.operands[0], Operand):
        return False
    (want,) = question(case, dtype, False).answers
    return want.values.shape == case.operands[0].shape and want.dtype == (case.operands[0].dtype or dtype)


# ---------------------------------------------------------------- the table is complete


@pytest.mark.parametrize("table", ["elementwise", "reductions"])
def test_table_covers_every_op(table: str) -> None:
    text = (CORE / f"{table}.def").read_text()
    found = re.findall(r"^DT_(?:UNARY|BINARY|REDUCE)\((\w+),.*\"(.*)\"\)$", text, re.MULTILINE)
    assert len(found) >= 9
    public = {name for name, doc in found if doc}
    covered = {case.op for case in CASES}
    assert public <= covered
    assert public <= set(reference.OPS)


def test_ids_are_unique() -> None:
    names = [str(case) for case in CASES]
    assert len(names) == len(set(names))


# ---------------------------------------------------------------- forms of a call


@pytest.mark.parametrize("case", rows())
def test_function(case: Case, device: str) -> None:
    def body(built: Built) -> None:
        before = [bits_of(x).tobytes() for x in built.arrays]
        with no_transfers():
            got = built.call()
        built.check(got)
        assert [bits_of(x).tobytes() for x in built.arrays] == before

    for_each(case, device, body)


@pytest.mark.parametrize("case", rows(cases.METHODS, lambda c: isinstance(c.operands[0], Operand)))
def test_method(case: Case, device: str) -> None:
    def body(built: Built) -> None:
        target, *others = built.operands
        built.check(getattr(target, case.op)(*others, **built.parameters))

    for_each(case, device, body, ["contiguous"])


@pytest.mark.parametrize("case", rows(cases.OPERATORS, lambda c: not c.parameters))
def test_operator(case: Case, device: str) -> None:
    function = getattr(operator, cases.OPERATORS[case.op])
    for_each(case, device, lambda built: built.check(function(*built.operands)), ["contiguous"])


def in_place(built: Built, write: Callable[..., Any], **parameters: Any) -> None:
    """write changes its first operand, in its own memory, to the right answer."""
    target, *others = built.operands
    before = (target.data_ptr(), target.strides, target.dtype)
    with no_transfers():
        assert write(target, *others, **parameters) is target
    assert (target.data_ptr(), target.strides, target.dtype) == before
    built.check(target)


@pytest.mark.parametrize("case", rows(cases.IN_PLACE))
def test_in_place(case: Case, device: str) -> None:
    def body(built: Built) -> None:
        in_place(built, getattr(dt.DeviceArray, case.op + "_"), **built.parameters)

    for_each(case, device, body, ["contiguous", "transposed", "sliced"], can_replace)


@pytest.mark.parametrize("case", rows(cases.IN_PLACE_OPERATORS, lambda c: not c.parameters))
def test_in_place_operator(case: Case, device: str) -> None:
    write = getattr(operator, cases.IN_PLACE_OPERATORS[case.op])
    for_each(case, device, lambda built: in_place(built, write), ["contiguous"], can_replace)


@pytest.mark.parametrize("case", rows(cases.OUT))
def test_out(case: Case, device: str) -> None:
    def body(built: Built) -> None:
        want = built.answer
        filled = np.full(want.values.shape, 1, dtype=formats.STORAGE[want.dtype])
        out = lay_out(filled, want.dtype, device, built.layout)
        with no_transfers():
            assert built.call(out=out) is out
        built.check(out)

    for_each(case, device, body, ["contiguous", "transposed"])


# ---------------------------------------------------------------- promotion

SCALARS: dict[str, Any] = {"bool": True, "int": 3, "float": 1.5}


@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize("b", DTYPES)
def test_promotion(a: str, b: str, device: str) -> None:
    x = dt.ones((2, 3), dtype=getattr(dt, a), device=device)
    y = dt.ones((3,), dtype=getattr(dt, b), device=device)
    both = formats.promote(a, b)
    if both != "bool":
        assert name_of((x * y).dtype) == both
    assert name_of((x / y).dtype) == (both if both in FLOATS else "float32")
    assert name_of((x == y).dtype) == "bool"
    assert name_of(dt.where(x == y, x, y).dtype) == both


@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize("b", DTYPES)
def test_dimensions_decide_before_0d(a: str, b: str, device: str) -> None:
    """A 0-dim array changes the dtype only if it is of a higher category."""
    x = dt.ones((2,), dtype=getattr(dt, a), device=device)
    y = dt.ones((), dtype=getattr(dt, b), device=device)
    want = b if formats.category(b) > formats.category(a) else a
    if want != "bool":
        assert name_of((x + y).dtype) == want
        assert name_of((y + x).dtype) == want


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", SCALARS)
def test_scalar_promotion(dtype: str, kind: str, device: str) -> None:
    x = dt.ones((3,), dtype=getattr(dt, dtype), device=device)
    scalar = SCALARS[kind]
    want = formats.promote_scalar(dtype, scalar)
    if want != "bool":
        assert name_of((x + scalar).dtype) == want
        assert name_of((scalar * x).dtype) == want
    assert name_of((x < scalar).dtype) == "bool"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("other", DTYPES)
def test_in_place_keeps_the_dtype(dtype: str, other: str, device: str) -> None:
    """Narrowing within a category is allowed; a lower category is refused and nothing changes."""
    x = dt.ones((3,), dtype=getattr(dt, dtype), device=device)
    y = dt.ones((3,), dtype=getattr(dt, other), device=device)
    both = formats.promote(dtype, other)
    if both == "bool":
        return
    if formats.category(both) > formats.category(dtype):
        with pytest.raises(dt.DTypeMismatchError, match="can't be cast to the desired output type"):
            x += y
        assert wide_of(x).tolist() == [1, 1, 1]
    else:
        x += y
        assert wide_of(x).tolist() == [2, 2, 2]
    assert name_of(x.dtype) == dtype


@pytest.mark.parametrize("dtype", INTS)
def test_in_place_division_of_integers_is_refused(dtype: str, device: str) -> None:
    x = from_bits(np.array([4, 6]), dtype, device)
    with pytest.raises(dt.DTypeMismatchError):
        x /= 2
    assert wide_of(x).tolist() == [4, 6]


@pytest.mark.parametrize("mode", ["trunc", "floor"])
def test_div_rounding_mode(mode: str, device: str) -> None:
    a, b = [7, -7, 7, -7, 6, -9], [2, 2, -2, -2, 3, 4]
    exact = [x / y for x, y in zip(a, b, strict=True)]
    want = [getattr(math, mode)(q) for q in exact]
    for dtype in ("int32", "float32", "float16"):
        x, y = (dt.array(v, dtype=getattr(dt, dtype), device=device) for v in (a, b))
        got = dt.div(x, y, rounding_mode=mode)
        assert name_of(got.dtype) == dtype
        assert got.tolist() == want


def test_parameters_have_numpys_names_too(device: str) -> None:
    x = dt.arange(6, device=device, dtype=dt.float32).reshape(2, 3)
    assert x.sum(axis=0).tolist() == x.sum(dim=0).tolist() == [3, 5, 7]
    assert x.sum(axis=1, keepdims=True).tolist() == [[3], [12]]
    assert dt.softmax(x, axis=1).tolist() == dt.softmax(x, dim=1).tolist()


# ---------------------------------------------------------------- more than one result, extremes


def test_max_pool2d_indices(device: str) -> None:
    x = dt.array([[[1.0, 5, 2, 0], [3, 4, 9, 9]]], device=device)
    values, indices = dt.max_pool2d(x, 2, return_indices=True)
    assert values.tolist() == [[[5, 9]]]
    assert indices.tolist() == [[[1, 6]]]
    assert name_of(indices.dtype) == "int64"
    assert str(indices.device) == device


@pytest.mark.parametrize("op", ["amax", "amin", "argmax", "argmin"])
def test_reducing_nothing_is_refused(op: str, device: str) -> None:
    x = dt.zeros((0, 3), device=device)
    with pytest.raises(dt.ShapeMismatchError, match="reduction dim"):
        call(op, [x])
    with pytest.raises(dt.ShapeMismatchError, match="non-zero size"):
        call(op, [x], dim=0)
    assert tuple(call(op, [x], dim=1).shape) == (0,)


@pytest.mark.parametrize("dtype", FLOATS)
def test_matmul_with_beta_zero_ignores_nan(dtype: str, device: str) -> None:
    """beta = 0 means that input is not read: NaN in it does not reach the result."""
    kind = getattr(dt, dtype)
    poison = dt.full((2, 2), math.nan, dtype=kind, device=device)
    eye = dt.eye(2, dtype=kind, device=device)
    assert dt.addmm(poison, eye, eye, beta=0).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_and_infinity_pass_through_products(dtype: str, device: str) -> None:
    kind = getattr(dt, dtype)
    a = dt.array([[1.0, math.inf, 0.0], [math.nan, 1.0, 1.0]], dtype=kind, device=device)
    b = dt.array([[1.0, 0.0], [1.0, 0.0], [2.0, 1.0]], dtype=kind, device=device)
    got = wide_of(a @ b)
    assert got[0, 0] == math.inf
    assert np.isnan(got[0, 1])
    assert np.isnan(got[1]).all()


# ---------------------------------------------------------------- exact on integers

EXACT = {"float16": 3, "bfloat16": 2, "float32": 40, "float64": 4000}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [(1, 1, 1), (3, 5, 7), (17, 31, 33), (64, 64, 64), (65, 129, 5), (1, 300, 40)])
def test_matmul_is_exact_on_integers(dtype: str, size: tuple[int, int, int], device: str) -> None:
    """No order of summing loses a bit, so there is one right answer."""
    m, k, n = size
    limit = EXACT[dtype] if k < 200 else 2
    rng = np.random.default_rng(k)
    a, b = rng.integers(-limit, limit + 1, (m, k)), rng.integers(-limit, limit + 1, (k, n))
    want = formats.round_to((a @ b).astype(object), dtype)
    for layout in ("contiguous", "transposed", "sliced"):
        x, y = (lay_out(formats.wide_to_bits(v.astype(float), dtype), dtype, device, layout) for v in (a, b))
        np.testing.assert_array_equal(wide_of(x @ y), want)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("layout", cases.IMAGES)
def test_conv2d_is_exact_on_integers(dtype: str, groups: int, layout: str, device: str) -> None:
    rng = np.random.default_rng(groups)
    limit = EXACT[dtype]
    x = rng.integers(-limit, limit + 1, (2, 4, 9, 11)).astype(float)
    w = rng.integers(-limit, limit + 1, (8, 4 // groups, 3, 3)).astype(float)
    b = rng.integers(-limit, limit + 1, (8,)).astype(float)
    arrays = [lay_out(formats.wide_to_bits(v, dtype), dtype, device, layout) for v in (x, w, b)]
    got = dt.conv2d(*arrays, stride=2, padding=1, groups=groups)
    want = images.conv2d(x, w, b, stride=2, padding=1, groups=groups)
    np.testing.assert_array_equal(wide_of(got), formats.round_float(want, dtype))


def test_products_use_all_24_bits(device: str) -> None:
    """2**12 + 1 times 2**11 + 1 needs 24 bits: a tensor core that rounds to 11 bits is found out."""
    a, b = float(2**12 + 1), float(2**11 - 1)
    x = dt.full((16, 1), a, device=device)
    y = dt.full((1, 16), b, device=device)
    assert set(np.unique(wide_of(x @ y))) == {a * b}
    image = dt.full((1, 1, 6, 6), a, device=device)
    weight = dt.full((8, 1, 1, 1), b, device=device)
    assert set(np.unique(wide_of(dt.conv2d(image, weight)))) == {a * b}
    row = dt.array([[float(2**24 - 1), 1.0]] * 8, device=device)
    column = dt.array([[1.0], [-(2.0**24 - 2)]], device=device)
    assert set(np.unique(wide_of(row @ column))) == {1.0}


@pytest.mark.parametrize("op", ["matmul", "conv2d", "sum", "softmax", "exp"])
def test_same_input_same_bits(op: str, device: str) -> None:
    case = max((c for c in CASES if c.op == op), key=lambda c: math.prod(c.arrays[0].shape))
    built = Built(case, "float32", device)
    first = bits_of(built.call()).tobytes()
    for _ in range(5):
        assert bits_of(built.call()).tobytes() == first


# ---------------------------------------------------------------- integers have no sums of products


@pytest.mark.parametrize("dtype", [*INTS, "bool"])
@pytest.mark.parametrize("op", [*cases.SUMS_OF_PRODUCTS, "conv2d"])
def test_integers_are_refused_alike(op: str, dtype: str, device: str) -> None:
    case = next(c for c in CASES if c.op == op)
    built = Built(case, dtype, device)
    computed = device == "cpu" and op in ("matmul", "mm", "bmm", "mv", "dot")  # test_cpu_products compares them
    if computed and dtype != "bool":
        assert built.call().dtype.name == dtype
        return
    taken = "all dtypes but bool" if computed else "float16, bfloat16, float32 and float64"
    with pytest.raises(dt.DTypeMismatchError, match=taken):
        built.call()


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("op", [*cases.POOLS, "softmax", "log_softmax", "mean"])
def test_integers_have_no_mean(op: str, dtype: str, device: str) -> None:
    case = next(c for c in CASES if c.op == op)
    with pytest.raises(dt.DTypeMismatchError):
        Built(case, dtype, device).call()
