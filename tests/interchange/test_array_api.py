"""devtensor.array_api: every function of the standard with its signature; its values beside NumPy's."""

from __future__ import annotations

import doctest
import inspect
import itertools
import math
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import array_api_signatures as standard
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as of_numpy
from support import no_transfers

import devtensor as dt
import devtensor.array_api as xp
from devtensor.array_api import _linear

INTS = ("int8", "int16", "int32", "int64", "uint8")
FLOATS = ("float32", "float64")
FEW = settings(
    max_examples=25,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


# ---------------------------------------------------------------- the names


def plain(function: Callable[..., Any]) -> str:
    """The signature as the standard's stubs have it, without annotations."""
    signature = inspect.signature(function)
    parameters = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    return re.sub(
        r"\binf\b", "inf", str(signature.replace(parameters=parameters, return_annotation=inspect.Parameter.empty))
    )


def test_every_function_is_there_with_its_signature() -> None:
    for name, signature in standard.FUNCTIONS.items():
        assert plain(getattr(xp, name)) == signature, name
    for name, signature in standard.LINALG.items():
        assert plain(getattr(xp.linalg, name)) == signature, name
    info = xp.__array_namespace_info__()
    for name, signature in standard.INFO.items():
        assert plain(getattr(info, name)) == signature, name
    assert set(xp.__all__) == {*standard.FUNCTIONS, *standard.CONSTANTS, *THERE, "linalg", "__array_api_version__"}
    assert set(xp.linalg.__all__) == {*standard.LINALG}


THERE = [name for name in standard.DTYPES if name not in ("uint16", "uint32", "uint64", "complex64", "complex128")]


def test_constants_dtypes_and_methods() -> None:
    assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (math.e, math.pi, math.inf, None) and math.isnan(xp.nan)
    for name in THERE:
        assert getattr(xp, name) is getattr(dt, name)
    for name in ("uint16", "uint32", "uint64", "complex64", "complex128", "fft"):
        assert not hasattr(xp, name)
        with pytest.raises(AttributeError, match=rf"no {name}: (of unsigned|there are no)"):
            getattr(xp, name)
    x = xp.ones((2, 2))
    for name in (*standard.METHODS, *standard.ATTRIBUTES):
        assert hasattr(x, name), name
    assert [name for name in dir(xp) if not name.startswith("_")] == sorted(xp.__dir__())


def test_the_namespace_of_an_array(device: str) -> None:
    x = dt.ones(2, device=device)
    for version in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        assert x.__array_namespace__(api_version=version) is xp
    with pytest.raises(ValueError, match="2031"):
        x.__array_namespace__(api_version="2031.12")
    assert dt.array_api is xp and xp.__array_api_version__ == "2024.12"
    assert x.to_device(device) is x and x.to_device("cpu").device == "cpu"
    assert complex(dt.tensor(1.5, device=device)) == 1.5
    with pytest.raises(ValueError, match="stream"):
        x.to_device(device, stream=1)


def test_examples() -> None:
    """Those of all docstrings."""
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    found = doctest.DocTestParser()
    objects = [*((f"xp.{n}", getattr(xp, n)) for n in standard.FUNCTIONS),
               *((f"xp.linalg.{n}", getattr(xp.linalg, n)) for n in standard.LINALG),
               *((f"Info.{n}", getattr(xp.__array_namespace_info__(), n)) for n in standard.INFO)]  # fmt: skip
    for name, function in objects:
        assert ">>> " in (function.__doc__ or ""), name
        runner.run(found.get_doctest(inspect.getdoc(function) or "", {"xp": xp, "dt": dt, "np": np}, name, None, 0))
    assert runner.summarize(verbose=False).failed == 0


# ---------------------------------------------------------------- the rules


def test_promotion_is_the_standards(device: str) -> None:
    """Within a kind by the table, whatever the rank; a number takes the dtype of the array."""
    for group in (INTS, FLOATS):
        for first in group:
            for second in group:
                wanted = np.result_type(first, second)
                for shape in ((2,), ()):
                    x = xp.ones(2, dtype=getattr(xp, first), device=device)
                    y = xp.ones(shape, dtype=getattr(xp, second), device=device)
                    for function in (xp.add, xp.maximum, xp.multiply):
                        assert np.dtype(function(x, y).dtype) == wanted and np.dtype(function(y, x).dtype) == wanted
                    assert np.dtype(xp.result_type(x, y)) == wanted
                    assert xp.equal(x, y).dtype is xp.bool
                assert np.dtype(xp.concat([x, xp.ones(2, dtype=getattr(xp, second), device=device)]).dtype) == wanted
    for name in (*INTS, *FLOATS):
        x = xp.ones(2, dtype=getattr(xp, name), device=device)
        assert xp.add(x, 1).dtype is x.dtype and xp.subtract(1, x).dtype is x.dtype
        assert xp.result_type(x, True, 1) is x.dtype
    assert xp.matmul(xp.eye(2, dtype=xp.float32), xp.eye(2, dtype=xp.float64)).dtype is xp.float64
    assert (
        xp.can_cast(xp.int8, xp.int16) and not xp.can_cast(xp.int64, xp.int32) and not xp.can_cast(xp.int8, xp.float64)
    )


def test_what_is_refused(device: str) -> None:
    x = xp.ones((2, 3), device=device)
    with pytest.raises(dt.ShapeMismatchError, match=r"\(add: x1 \(2, 3\), x2 \(2,\)\)"):
        xp.add(x, xp.ones(2, device=device))
    with pytest.raises(TypeError, match=r"abs\(\): argument 'x'"):
        xp.abs([1.0])  # type: ignore[arg-type]
    for wrong in (lambda: xp.squeeze(x, 0), lambda: xp.nonzero(xp.ones((), device=device)),
                  lambda: xp.take(x, x.long()),
                  lambda: xp.reshape(x.mT, (6,), copy=False), lambda: xp.cumulative_sum(x), lambda: xp.zeros(-1),
                  lambda: xp.isdtype(xp.int8, "number"), lambda: xp.unstack(xp.ones((), device=device)),
                  lambda: xp.asarray([1], copy=False), lambda: xp.matrix_transpose(xp.ones(2))):  # fmt: skip
        with pytest.raises(ValueError):
            wrong()
    for outside in (lambda: xp.sum(x, axis=2), lambda: xp.expand_dims(x, 3), lambda: xp.flip(x, axis=-3)):
        with pytest.raises(IndexError):
            outside()
    if device != "cpu":
        with pytest.raises(dt.DeviceMismatchError, match=f"x1 on {device}, x2 on cpu"):
            xp.add(x, xp.ones(3, dtype=xp.float64))
        with pytest.raises(NotImplementedError):
            xp.linalg.inv(xp.eye(2, device=device))


def test_nothing_is_moved() -> None:
    x = xp.ones((2, 3), device="cuda:0")
    with no_transfers():
        xp.add(x, 1), xp.clip(x, 0, 1), xp.where(x > 0, x, 2.0), xp.eye(2, 3, k=1, device="cuda:0")
        xp.sum(x, axis=(0, 1)), xp.take(x, xp.zeros(2, dtype=xp.uint8, device="cuda:0"), axis=1), xp.sort(x)
        xp.matmul(xp.ones((2, 2), dtype=xp.int32, device="cuda:0"), xp.ones((2, 2), dtype=xp.int32, device="cuda:0"))
        xp.cumulative_sum(x, axis=0, include_initial=True), xp.linspace(0, 1, 3, device="cuda:0", endpoint=False)


# ---------------------------------------------------------------- values beside NumPy's


def numbers(dtype: str) -> st.SearchStrategy[Any]:
    if dtype == "bool":
        return st.booleans()
    if dtype in FLOATS:
        edges = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan]
        return st.sampled_from(edges) | st.floats(-100, 100, width=int(dtype[5:]), allow_subnormal=False)
    info = np.iinfo(dtype)
    return st.integers(max(-20, info.min), 20)


def arrays(dtype: str, shape: Any = None, finite: bool = False) -> st.SearchStrategy[Any]:
    shape = of_numpy.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4) if shape is None else shape
    elements = numbers(dtype)
    if finite:
        elements = elements.filter(lambda value: math.isfinite(value))
    return of_numpy.arrays(dtype, shape, elements=elements)


def there(x: Any, device: str) -> Any:
    return xp.asarray(x, device=device) if isinstance(x, np.ndarray) else x


def same(got: Any, want: Any, name: str, close: bool = True) -> None:
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want), name
        for one, other in zip(got, want, strict=True):
            same(one, other, name, close)
        return
    want = np.asarray(want)
    assert got.shape == want.shape, (name, got, want)
    assert np.dtype(got.dtype) == want.dtype, (name, got, want)
    ours = got.to("cpu").numpy()
    if close and want.dtype.kind == "f":
        bound = 2e-5 if want.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(ours, want, rtol=bound, atol=bound, err_msg=name)
    else:
        np.testing.assert_array_equal(ours, want, err_msg=name)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """NumPy warns where it divides by zero."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


OF_FLOATS = """acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 reciprocal sin sinh sqrt tan
tanh signbit""".split()
OF_NUMBERS = "abs ceil conj floor isfinite isinf isnan negative positive real round sign square trunc".split()
OF_TWO = {
    "floats": "atan2 copysign divide hypot logaddexp nextafter".split(),
    "numbers": """add equal greater greater_equal less less_equal maximum minimum multiply not_equal
    subtract""".split(),
    "ints": "bitwise_and bitwise_or bitwise_xor".split(),
    "bools": "equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor not_equal".split(),
}


@FEW
@given(data=st.data())
def test_unary_values(device: str, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([*FLOATS, *INTS, "bool"]))
    x = data.draw(arrays(dtype))
    names = [*OF_FLOATS, *OF_NUMBERS] if dtype in FLOATS else [*OF_NUMBERS, "bitwise_invert"]
    if dtype == "bool":
        names = ["logical_not", "bitwise_invert"]
    for name in names:
        want = getattr(np, name)(x)
        if name in ("ceil", "floor", "trunc", "round", "real", "conj"):
            want = want.astype(x.dtype)
        same(getattr(xp, name)(there(x, device)), want, name)


@FEW
@given(data=st.data())
def test_binary_values(device: str, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([*OF_TWO]))
    dtypes = {"floats": FLOATS, "numbers": (*FLOATS, *INTS), "ints": INTS, "bools": ("bool",)}[kind]
    first = data.draw(st.sampled_from(dtypes))
    second = data.draw(st.sampled_from([one for one in dtypes if (one in FLOATS) == (first in FLOATS)]))
    shapes = data.draw(of_numpy.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3)).input_shapes
    x, y = data.draw(arrays(first, shapes[0])), data.draw(arrays(second, shapes[1]))
    for name in OF_TWO[kind]:
        same(getattr(xp, name)(there(x, device), there(y, device)), getattr(np, name)(x, y), name)
    number = {"floats": 1.5, "numbers": 2, "ints": 3, "bools": True}[kind]
    for name in OF_TWO[kind]:
        want = getattr(np, name)(x, np.asarray(number, dtype=x.dtype))
        same(getattr(xp, name)(there(x, device), number), want, name)
        want = getattr(np, name)(np.asarray(number, dtype=x.dtype), x)
        same(getattr(xp, name)(number, there(x, device)), want, name)


@FEW
@given(data=st.data())
def test_division_power_and_shifts(device: str, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([*FLOATS, *INTS]))
    x = data.draw(arrays(dtype, (3, 4), finite=True))
    y = data.draw(arrays(dtype, (4,), finite=True).map(lambda a: np.where(a == 0, 1, a).astype(a.dtype)))
    for name in ("floor_divide", "remainder"):
        same(
            getattr(xp, name)(there(x, device), there(y, device)), getattr(np, name)(x, y), name, close=dtype in FLOATS
        )
    y = np.abs(y) % 4
    if dtype in FLOATS:
        x = np.abs(x)
    same(xp.pow(there(x, device), there(y, device)), np.pow(x, y), "pow")
    if dtype in INTS:
        for name in ("bitwise_left_shift", "bitwise_right_shift"):
            same(getattr(xp, name)(there(x, device), there(y, device)), getattr(np, name)(x, y), name)
        same(there(x, device) << there(y, device), x << y, "<<")
        same(there(x, device) >> 1, x >> np.asarray(1, dtype=dtype), ">>")


@FEW
@given(data=st.data())
def test_reductions(device: str, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([*FLOATS, *INTS, "bool"]))
    x = data.draw(arrays(dtype, finite=dtype in FLOATS))
    axes = data.draw(
        st.none() | of_numpy.valid_tuple_axes(x.ndim) | (st.integers(-x.ndim, x.ndim - 1) if x.ndim else st.none())
    )
    keepdims = data.draw(st.booleans())
    options: dict[str, Any] = {"axis": axes, "keepdims": keepdims}
    y = there(x, device)
    for name in ("all", "any"):
        same(getattr(xp, name)(y, **options), getattr(np, name)(x, **options), name)
    same(xp.count_nonzero(y, **options), np.asarray(np.count_nonzero(x, **options), dtype=np.int64), "count_nonzero")
    if dtype == "bool":
        return
    wide = np.float64 if dtype in FLOATS else np.int64
    result = x.dtype if dtype in FLOATS else np.int64
    same(xp.sum(y, **options), np.sum(x, dtype=wide, **options).astype(result), "sum")
    same(xp.prod(y % 3, **options), np.prod(x % 3, dtype=wide, **options).astype(result), "prod")
    if x.size:
        for name in ("max", "min"):
            same(getattr(xp, name)(y, **options), getattr(np, name)(x, **options), name)
        if dtype in FLOATS:
            same(xp.mean(y, **options), np.mean(x, dtype=wide, **options).astype(result), "mean")
            for mine, theirs in ((xp.std, np.std), (xp.var, np.var)):
                got, want = mine(y, **options), theirs(x, dtype=wide, **options)  # type: ignore[operator]
                assert got.shape == np.shape(want) and np.dtype(got.dtype) == x.dtype
                np.testing.assert_allclose(got.to("cpu").numpy(), want, rtol=1e-4, atol=1e-3)
        if not isinstance(axes, tuple):
            for name in ("argmax", "argmin"):
                same(getattr(xp, name)(y, **options), np.asarray(getattr(np, name)(x, **options)), name)


@FEW
@given(data=st.data())
def test_arrangement(device: str, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([*FLOATS, *INTS, "bool"]))
    x = data.draw(arrays(dtype, of_numpy.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)))
    y, axis = there(x, device), data.draw(st.integers(-x.ndim, x.ndim - 1))
    order = data.draw(st.permutations(range(x.ndim)))
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("permute_dims", (tuple(order),), {}), ("expand_dims", (axis,), {}), ("flip", (), {"axis": axis}),
        ("flip", (), {}),
        ("roll", (2,), {"axis": axis}), ("roll", (-1,), {}), ("repeat", (2,), {"axis": axis}), ("repeat", (3,), {}),
        ("tile", ((2, 1),), {}), ("moveaxis", (axis, 0), {}), ("reshape", ((-1,),), {}),
        ("unstack", (), {"axis": axis}),
        ("broadcast_to", ((2, *x.shape),), {}),
    ]  # fmt: skip
    for name, given_, options in calls:
        same(getattr(xp, name)(y, *given_, **options), getattr(np, name)(x, *given_, **options), name)
    same(xp.concat([y, y], axis=axis), np.concat([x, x], axis=axis), "concat")
    same(xp.concat([y, y], axis=None), np.concat([x, x], axis=None), "concat")
    same(xp.stack([y, y], axis=axis), np.stack([x, x], axis=axis), "stack")
    same(xp.squeeze(xp.expand_dims(y, axis), axis), x, "squeeze")
    same(xp.tril(y) if x.ndim > 1 else y, np.tril(x) if x.ndim > 1 else x, "tril")
    counts = np.arange(x.shape[axis]) % 3
    same(xp.repeat(y, there(counts, device), axis=axis), np.repeat(x, counts, axis=axis), "repeat")
    places = data.draw(of_numpy.arrays("int64", (3,), elements=st.integers(0, x.shape[axis] - 1)))
    same(xp.take(y, there(places, device), axis=axis), np.take(x, places, axis=axis), "take")
    along = np.zeros([1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)], dtype=np.int64)
    same(
        xp.take_along_axis(y, there(along, device), axis=axis),
        np.take_along_axis(x, along, axis=axis),
        "take_along_axis",
    )
    same(list(xp.nonzero(y)), list(np.nonzero(x)), "nonzero")
    if dtype != "bool":
        same(xp.diff(y, axis=axis, append=y), np.diff(x, axis=axis, append=x), "diff")
        clean = np.nan_to_num(x, posinf=3, neginf=-3)
        for mine, theirs in (("cumulative_sum", np.cumulative_sum), ("cumulative_prod", np.cumulative_prod)):
            want = theirs(
                clean % 2, axis=axis, dtype=clean.dtype if dtype in FLOATS else np.int64, include_initial=True
            )
            same(getattr(xp, mine)(there(clean % 2, device), axis=axis, include_initial=True), want, mine)
        low, high = there(np.asarray(1, dtype=dtype), device), 3
        same(xp.clip(y, low, high), np.clip(x, np.asarray(1, dtype=dtype), np.asarray(3, dtype=dtype)), "clip")


@FEW
@given(data=st.data())
def test_order_and_sets(device: str, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([*FLOATS, *INTS, "bool"]))
    x = data.draw(arrays(dtype, of_numpy.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=6)))
    y = there(x, device)
    same(xp.sort(y), np.sort(x, stable=True), "sort")
    same(xp.argsort(y, axis=0), np.argsort(x, axis=0, stable=True), "argsort")
    same(xp.sort(y, descending=True), np.flip(np.sort(x), axis=-1), "sort")
    descending = xp.argsort(y, axis=-1, descending=True).to("cpu").numpy()
    if x.size:
        np.testing.assert_array_equal(np.take_along_axis(x, descending, -1), np.flip(np.sort(x), axis=-1))
    ours, theirs = xp.unique_all(y), np.unique_all(x)
    for got, want, name in zip(ours, theirs, ours._fields, strict=True):
        same(got, want, name)
    same(list(xp.unique_counts(y)), list(np.unique_counts(x)), "unique_counts")
    same(list(xp.unique_inverse(y)), list(np.unique_inverse(x)), "unique_inverse")
    same(xp.unique_values(y), np.sort(np.unique_values(x)), "unique_values")
    if dtype != "bool" and not np.isnan(x.astype(np.float64)).any():
        flat = np.sort(x.reshape(-1))
        for side in ("left", "right"):
            got = xp.searchsorted(there(flat, device), y, side=side)
            same(got, np.searchsorted(flat, x, side=side), "searchsorted")
        order = np.argsort(x.reshape(-1), stable=True)
        got = xp.searchsorted(there(x.reshape(-1), device), y, sorter=there(order, device))
        same(got, np.searchsorted(x.reshape(-1), x, sorter=order), "searchsorted")


@FEW
@given(data=st.data())
def test_products(device: str, data: st.DataObject) -> None:
    """Also of integers, which wrap as NumPy's do, whole or in parts."""
    dtype = data.draw(st.sampled_from([*FLOATS, *INTS]))
    n, k, m = (data.draw(st.integers(0, 4)) for _ in range(3))
    batch = data.draw(st.sampled_from([(), (2,), (1, 3)]))
    x, y = data.draw(arrays(dtype, (*batch, n, k), finite=True)), data.draw(arrays(dtype, (k, m), finite=True))
    a, b = there(x, device), there(y, device)
    with mock.patch.object(_linear, "_MOST", data.draw(st.sampled_from([1 << 22, 7, 1]))):
        same(xp.matmul(a, b), x @ y, "matmul")
    if k and n:
        same(xp.matmul(a, b[:, 0]) if m else a, x @ y[:, 0] if m else x, "matmul")
        same(xp.matmul(there(y[:, 0], device), b) if m else a, y[:, 0] @ y if m else x, "matmul")
    same(xp.tensordot(a, b, axes=1), np.tensordot(x, y, axes=1), "tensordot")
    same(xp.tensordot(a, b, axes=([-1], [0])), np.tensordot(x, y, axes=([-1], [0])), "tensordot")
    same(xp.tensordot(a, b, axes=0), np.tensordot(x, y, axes=0), "tensordot")
    same(
        xp.vecdot(a, there(np.ascontiguousarray(y[:, :1].T), device)) if m else a,
        np.vecdot(x, y[:, :1].T) if m else x,
        "vecdot",
    )
    same(xp.matrix_transpose(a), np.matrix_transpose(x), "matrix_transpose")
    same(xp.linalg.outer(a.reshape(-1), b.reshape(-1)), np.outer(x, y), "outer")
    same(xp.linalg.diagonal(a, offset=1), np.linalg.diagonal(x, offset=1), "diagonal")
    wide = {"dtype": np.int64} if dtype in INTS else {}
    same(xp.linalg.trace(a), np.linalg.trace(x, **wide), "trace")  # type: ignore[call-overload]


def test_linear_algebra() -> None:
    generator = np.random.default_rng(3)
    for dtype in FLOATS:
        x = generator.standard_normal((2, 3, 3)).astype(dtype)
        symmetric = x @ np.swapaxes(x, -1, -2) + np.eye(3, dtype=dtype)
        a, s = xp.asarray(x), xp.asarray(symmetric)
        bound = 1e-3 if dtype == "float32" else 1e-9
        pairs: list[tuple[Any, Any]] = [
            (xp.linalg.det(a), np.linalg.det(x)), (xp.linalg.inv(a), np.linalg.inv(x)),
            (xp.linalg.cholesky(s), np.linalg.cholesky(symmetric)),
            (xp.linalg.cholesky(s, upper=True), np.linalg.cholesky(symmetric, upper=True)),
            (xp.linalg.eigvalsh(s), np.linalg.eigvalsh(symmetric)),
            (xp.linalg.eigh(s).eigenvalues, np.linalg.eigvalsh(symmetric)),
            (xp.linalg.svdvals(a), np.linalg.svdvals(x)), (xp.linalg.svd(a).S, np.linalg.svdvals(x)),
            (xp.linalg.pinv(a), np.linalg.pinv(x)),
            (xp.linalg.pinv(a, rtol=xp.asarray([0.1, 1e-9], dtype=a.dtype)),
             np.stack([np.linalg.pinv(x[0], rtol=0.1), np.linalg.pinv(x[1])])),
            (xp.linalg.matrix_power(a, 3), np.linalg.matrix_power(x, 3)),
            (xp.linalg.solve(a, xp.asarray(x[0, 0])), np.linalg.solve(x, x[0, 0][:, None])[..., 0]),
            (xp.linalg.solve(a, a), np.broadcast_to(np.eye(3), x.shape)),
            (xp.linalg.slogdet(a).logabsdet, np.linalg.slogdet(x).logabsdet),
            (xp.linalg.matrix_norm(a), np.linalg.matrix_norm(x)),
            (xp.linalg.matrix_norm(a, ord="nuc"), np.linalg.matrix_norm(x, ord="nuc")),
            (xp.linalg.vector_norm(a, axis=(0, 1)), np.linalg.vector_norm(x, axis=(0, 1))),
            (xp.linalg.vector_norm(a, ord=1, keepdims=True), np.linalg.vector_norm(x, ord=1, keepdims=True)),
            (xp.linalg.vector_norm(a, axis=()), np.abs(x)), (xp.linalg.cross(a, a[0]), np.linalg.cross(x, x[0])),
        ]  # fmt: skip
        for got, want in pairs:
            assert got.shape == want.shape
            np.testing.assert_allclose(got.numpy(), want, rtol=bound, atol=bound)
        q, r = xp.linalg.qr(a, mode="complete")
        np.testing.assert_allclose((q @ r).numpy(), x, rtol=bound, atol=bound)
        ones = xp.ones((2, 2, 2), dtype=a.dtype)
        assert xp.linalg.matrix_rank(ones).tolist() == [1, 1]
        assert xp.linalg.matrix_rank(ones, rtol=xp.asarray([0.5, 2.0], dtype=a.dtype)).tolist() == [1, 0]


def test_creation(device: str) -> None:
    for dtype in (*FLOATS, *INTS):
        kind = getattr(xp, dtype)
        for k in (-1, 0, 2):
            same(xp.eye(3, 4, k=k, dtype=kind, device=device), np.eye(3, 4, k=k, dtype=dtype), "eye")
        same(xp.full((2,), 3, dtype=kind, device=device), np.full((2,), 3, dtype=dtype), "full")
        same(xp.arange(2, 9, 3, dtype=kind, device=device), np.arange(2, 9, 3, dtype=dtype), "arange")
        same(xp.zeros_like(xp.ones((2, 1), dtype=kind, device=device)), np.zeros((2, 1), dtype=dtype), "zeros_like")
    same(xp.arange(5, 1, device=device), np.arange(5, 1), "arange")
    same(xp.arange(1, 5, -1.0, device=device).double(), np.arange(1, 5, -1.0), "arange")
    same(xp.linspace(0, 1, 5, device=device, dtype=xp.float64), np.linspace(0, 1, 5), "linspace")
    same(
        xp.linspace(0, 1, 5, device=device, dtype=xp.float64, endpoint=False),
        np.linspace(0, 1, 5, endpoint=False),
        "linspace",
    )
    x, y = np.arange(3), np.arange(2)
    for indexing in ("xy", "ij"):
        want = np.meshgrid(x, y, indexing=indexing)  # type: ignore[call-overload]
        same(xp.meshgrid(there(x, device), there(y, device), indexing=indexing), list(want), "meshgrid")
    one = xp.ones(3, device=device)
    assert xp.asarray(one) is one and xp.asarray(one, copy=True) is not one and xp.asarray(one, copy=False) is one
    assert xp.astype(one, xp.float32, copy=False) is one and xp.astype(one, xp.float32) is not one
    assert xp.astype(one, xp.int8, device="cpu").device == "cpu"
    assert xp.empty((2, 3), device=device).shape == (2, 3) and xp.empty_like(one).device == device
    info = xp.__array_namespace_info__()
    assert dt.device(device) in info.devices() and info.default_device() == "cpu"
    assert info.dtypes(kind=("bool", "unsigned integer")) == {"bool": xp.bool, "uint8": xp.uint8}
    assert info.default_dtypes(device=device)["real floating"] is xp.float32
    with pytest.raises(ValueError, match="kind"):
        info.dtypes(kind="numbers")


# ---------------------------------------------------------------- hostile arguments


class Odd:
    """Nothing that anyone could want."""


ODD: list[Any] = [None, "x", Odd(), [1, "a"], (), {}, 2**70, 1.5, -3, np.ones(2)]
REFUSALS = (TypeError, ValueError, IndexError, RuntimeError, OverflowError)


def told(function: Callable[..., Any], *given_: Any, **options: Any) -> str:
    """What a call says when it refuses; "" when it goes well."""
    try:
        function(*given_, **options)
    except REFUSALS as error:
        return f"{type(error).__name__}: {error}"
    return ""


def test_hostile_arguments_are_told() -> None:
    """In each place of each function; what is no array is told by the name that the standard gives the place."""
    functions = [*((n, getattr(xp, n)) for n in standard.FUNCTIONS)]
    functions += [*((n, getattr(xp.linalg, n)) for n in standard.LINALG)]
    x = xp.ones((2, 2))
    for name, function in functions:
        parameters = inspect.signature(function).parameters.values()
        needed = [one for one in parameters if one.default is one.empty and one.kind is not one.VAR_POSITIONAL]
        for place, parameter in enumerate(needed):
            for odd in ODD:
                arguments = [odd if i == place else x for i in range(len(needed))]
                text = told(function, *arguments)
                if parameter.name in ("x", "x1", "x2") and isinstance(odd, (Odd, dict)) and name != "from_dlpack":
                    assert f"'{parameter.name}'" in text or "'arrays_and_dtypes'" in text, (name, odd, text)
        for parameter in parameters:
            if parameter.kind is parameter.KEYWORD_ONLY:
                for odd in ODD:
                    told(function, *[x] * len(needed), **{parameter.name: odd})


def test_every_skip_of_the_public_suite_has_a_reason() -> None:
    """A comment stands before each group, and no test is named twice. tools/checks/array_api_suite.py reads it."""
    lines = (Path(__file__).parent.parent / "helpers" / "interchange" / "array_api_skips.txt").read_text().splitlines()
    named = [line for line in lines if line and not line.startswith("#")]
    assert len(set(named)) == len(named)
    for before, line in itertools.pairwise(lines):
        if line and not line.startswith("#"):
            assert before, f"no reason before {line}"
            assert re.match(r"(cuda: )?array_api_tests/test_\w+\.py", line)
