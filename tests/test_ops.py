"""Every op of the case table, on every device, dtype and layout, against the reference."""

from __future__ import annotations

import math
import operator
import re
from pathlib import Path
from typing import Any

import cases
import formats
import images
import numpy as np
import pytest
import reference
from cases import CASES, Case, Operand
from formats import DTYPES, FLOATS, INTS
from support import Built, bits_of, call, from_bits, lay_out, name_of, no_transfers, wide_of

import devtensor as dt

CORE = Path(__file__).parent.parent / "csrc" / "core"


def rows(*, ops: Any = None, layouts: tuple[str, ...] = (), same: bool = False) -> list[Any]:
    """pytest parameters (case, dtype, layout); same: only where the result can replace operand 0."""
    found = []
    for case in CASES:
        if ops is not None and case.op not in ops:
            continue
        for dtype in case.dtypes:
            for layout in layouts or case.layouts:
                if layout in case.layouts and (not same or can_replace(case, dtype)):
                    found.append(pytest.param(case, dtype, layout, id=f"{case}-{dtype}-{layout}"))
    return found


def can_replace(case: Case, dtype: str) -> bool:
    """Whether the result of the op may be written over its first operand."""
    if not isinstance(case.operands[0], Operand) or "dtype" in case.parameters:
        return False
    shapes = [o.shape for o in case.arrays]
    result = result_dtype(case, dtype)
    return np.broadcast_shapes(*shapes) == shapes[0] and formats.category(result) <= formats.category(
        case.operands[0].dtype or dtype
    )


def result_dtype(case: Case, dtype: str) -> str:
    names = [o.dtype or dtype if isinstance(o, Operand) else "" for o in case.operands]
    small = [np.zeros(1) if isinstance(o, Operand) else o for o in case.operands]
    compute = names[0]
    for name, value in zip(names[1:], small[1:], strict=True):
        if name:
            compute = formats.promote(compute, name)
        else:
            compute = formats.promote_scalar(compute, value)
    return reference.result_dtype(reference.OPS[case.op].rule, compute)


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


@pytest.mark.parametrize(("case", "dtype", "layout"), rows())
def test_function(case: Case, dtype: str, layout: str, device: str) -> None:
    built = Built(case, dtype, device, layout)
    before = [bits_of(x).tobytes() for x in built.arrays]
    with no_transfers():
        got = built.call()
    built.check(got)
    assert [bits_of(x).tobytes() for x in built.arrays] == before


@pytest.mark.parametrize(("case", "dtype", "layout"), rows(layouts=("contiguous",)))
def test_method(case: Case, dtype: str, layout: str, device: str) -> None:
    if case.op not in cases.METHODS or not isinstance(case.operands[0], Operand):
        pytest.skip("the op has no method form")
    built = Built(case, dtype, device, layout)
    method = getattr(built.operands[0], case.op)
    built.check(method(*built.operands[1:], **built.parameters))


@pytest.mark.parametrize(("case", "dtype", "layout"), rows(ops=cases.OPERATORS, layouts=("contiguous",)))
def test_operator(case: Case, dtype: str, layout: str, device: str) -> None:
    if case.parameters:
        pytest.skip("an operator takes no parameters")
    built = Built(case, dtype, device, layout)
    built.check(getattr(operator, cases.OPERATORS[case.op][0])(*built.operands))


@pytest.mark.parametrize(
    ("case", "dtype", "layout"),
    rows(ops=cases.IN_PLACE, layouts=("contiguous", "transposed", "sliced"), same=True),
)
def test_in_place(case: Case, dtype: str, layout: str, device: str) -> None:
    built = Built(case, dtype, device, layout)
    target, *others = built.operands
    address, strides = target.data_ptr(), target.strides
    with no_transfers():
        result = getattr(target, case.op + "_")(*others, **built.parameters)
    assert result is target
    assert (target.data_ptr(), target.strides) == (address, strides)
    check_written(built, target)


@pytest.mark.parametrize(
    ("case", "dtype", "layout"),
    rows(ops=[k for k, v in cases.OPERATORS.items() if v[1] and k != "matmul"], layouts=("contiguous",), same=True),
)
def test_in_place_operator(case: Case, dtype: str, layout: str, device: str) -> None:
    if case.parameters:
        pytest.skip("an operator takes no parameters")
    built = Built(case, dtype, device, layout)
    target, other = built.operands
    address = target.data_ptr()
    result = getattr(operator, cases.OPERATORS[case.op][1] or "")(target, other)
    assert result is target
    assert target.data_ptr() == address
    check_written(built, target)


def check_written(built: Built, target: dt.DeviceArray) -> None:
    """The target kept its dtype and holds the result, cast to it."""
    want, dtype = built.expected()
    assert name_of(target.dtype) == built.dtypes[0]
    assert dtype == built.dtypes[0], "the table has no narrowing rows; test_promotion does"
    built.check_one(target, want, dtype)


@pytest.mark.parametrize(("case", "dtype", "layout"), rows(ops=cases.OUT, layouts=("contiguous", "transposed")))
def test_out(case: Case, dtype: str, layout: str, device: str) -> None:
    built = Built(case, dtype, device, layout)
    want, result = built.expected()
    poison = np.full(want.shape, 1, dtype=formats.STORAGE[result])
    out = lay_out(poison, result, device, layout)
    with no_transfers():
        got = built.call(out=out)
    assert got is out
    built.check_one(out, want, result)


# ---------------------------------------------------------------- promotion

SCALARS: dict[str, Any] = {"bool": True, "int": 3, "float": 1.5}


@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize("b", DTYPES)
def test_promotion(a: str, b: str, device: str) -> None:
    x = from_bits(np.ones((2, 3)), a, device)
    y = from_bits(np.ones((3,)), b, device)
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
    x, y = from_bits(np.ones((2,)), a, device), from_bits(np.ones(()), b, device)
    want = b if formats.category(b) > formats.category(a) else a
    if want != "bool":
        assert name_of((x + y).dtype) == want
        assert name_of((y + x).dtype) == want


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", SCALARS)
def test_scalar_promotion(dtype: str, kind: str, device: str) -> None:
    x = from_bits(np.ones((3,)), dtype, device)
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
    x = from_bits(np.ones((3,)), dtype, device)
    y = from_bits(np.ones((3,)), other, device)
    both = formats.promote(dtype, other)
    if both == "bool":
        return
    if formats.category(both) > formats.category(dtype):
        with pytest.raises(dt.DTypeMismatchError, match="can't be cast to the desired output type"):
            x += y
        assert bits_of(x).tolist() == bits_of(from_bits(np.ones((3,)), dtype)).tolist()
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


# ---------------------------------------------------------------- integers have no product


@pytest.mark.parametrize("dtype", [*INTS, "bool"])
@pytest.mark.parametrize("op", [*cases.MATMULS, "conv2d"])
def test_integers_are_refused_alike(op: str, dtype: str, device: str) -> None:
    case = next(c for c in CASES if c.op == op)
    built = Built(case, dtype, device)
    with pytest.raises(dt.DTypeMismatchError, match="float16, bfloat16, float32 and float64"):
        built.call()


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("op", [*cases.POOLS, "softmax", "log_softmax", "mean"])
def test_integers_have_no_mean(op: str, dtype: str, device: str) -> None:
    case = next(c for c in CASES if c.op == op)
    with pytest.raises(dt.DTypeMismatchError):
        Built(case, dtype, device).call()
