"""Running sums, sorted elements and what is read off them, on every device, dtype and layout, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from formats import FLOATS

import devtensor as dt

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
SHAPES: tuple[tuple[tuple[int, ...], int], ...] = (
    ((), 0),
    ((0,), 0),
    ((3, 0), 1),
    ((0, 3), 1),
    ((5,), 0),
    ((17, 33), 1),
    ((17, 33), 0),
    ((4, 9, 5), 1),
    ((70, 600), -1),
    ((300, 7), 0),
)
LONG: tuple[tuple[tuple[int, ...], int], ...] = (((70_000,), 0), ((2, 3_000), 1), ((3_000, 3), 0))


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    """Small numbers with many equal ones; floats have both zeros, infinity and NaN."""
    rng = np.random.default_rng(len(dtype) + sum(shape))
    x = np.asarray(rng.integers(0 if dtype in ("bool", "uint8") else -5, 6 if dtype != "bool" else 2, shape) / 2)
    if dtype.startswith("float") and x.size > 8:
        flat = x.reshape(-1)
        flat[rng.integers(0, x.size, 2)], flat[rng.integers(0, x.size, 2)], flat[3] = np.inf, -0.0, np.nan
    return x.astype(dtype) if dtype.startswith("float") else (x * 2).astype(dtype)


def operands(shapes: Any, device: str) -> Any:
    for shape, dim in shapes:
        for dtype in DTYPES if shapes is not LONG else ("uint8", "int64", "float32"):
            x = numbers(shape, dtype)
            yield x, dt.array(x, device=device), dim, f"{dtype} {shape} {dim}"
            if x.ndim == 2:
                yield x.T, dt.array(x, device=device).T, (dim + 1) % 2, f"{dtype} {shape}.T {dim}"


ORDERS: dict[tuple[str, bool], np.ndarray[Any, Any]] = {}  # of every operand, which are the same on each device


def order_of(x: np.ndarray[Any, Any], dim: int, descending: bool, what: str) -> np.ndarray[Any, Any]:
    """A stable sort with NaN as the largest; what names the operand."""
    if x.ndim == 0:
        return np.zeros((), "int64")
    if (what, descending) not in ORDERS:
        wide = x.astype("float64")
        rank = np.where(np.isnan(wide), np.inf, wide)
        keys = np.stack([np.isnan(wide).astype("float64"), rank]) * (-1 if descending else 1)
        ORDERS[what, descending] = np.lexsort((keys[1], keys[0]), axis=dim)
    return ORDERS[what, descending]


def same(got: dt.DeviceArray, want: Any, what: str) -> None:
    assert got.shape == want.shape and np.array_equal(got.cpu().numpy(), want, equal_nan=want.dtype.kind == "f"), what


@pytest.mark.parametrize("shapes", [SHAPES, LONG], ids=["short", "long"])
def test_sorts(shapes: Any, device: str) -> None:
    for x, a, dim, what in operands(shapes, device):
        for descending in (False, True):
            places = order_of(x, dim, descending, what)
            values = np.take_along_axis(x, places, dim) if x.ndim else x
            got = a.sort(dim, descending)
            same(got.values, values, what)
            same(got.indices, places, what)
            size = x.shape[dim] if x.ndim else 1
            for k in {min(1, size), size // 20, size // 3, size} if x.ndim else {1}:
                some = a.topk(k, dim, largest=descending)
                first = tuple(slice(k) if d == dim % x.ndim else slice(None) for d in range(x.ndim))
                same(some.values, values[first], what)
                same(some.indices, places[first], what)


@pytest.mark.parametrize("dtype", ["int64", "float64", "float32", "int16", "float16"])
def test_rows_whose_keys_differ_in_other_digits(dtype: str, device: str) -> None:
    """Long rows are sorted byte by byte on a GPU, without the bytes that all of a row have alike; few are selected."""
    rng = np.random.default_rng(7)
    rows = rng.integers(0, 200, 70_000), rng.integers(-3, 3, 70_000) * 1000, np.full(70_000, 5), np.arange(70_000) % 300
    x = np.stack(rows).astype(dtype)
    a = dt.array(x, device=device)
    for descending in (False, True):
        places = order_of(x, 1, descending, f"digits {dtype}")
        got = a.sort(1, descending)
        same(got.indices, places, dtype)
        same(got.values, np.take_along_axis(x, places, 1), dtype)
        for k in (1, 9, 300, 2048):
            same(a.topk(k, 1, largest=descending).indices, places[:, :k], f"{dtype} {k}")
    same(a.kthvalue(30_000, 1).indices, order_of(x, 1, False, f"digits {dtype}")[:, 29_999], dtype)


@pytest.mark.parametrize("shapes", [SHAPES, LONG], ids=["short", "long"])
def test_one_of_the_order(shapes: Any, device: str) -> None:
    """kthvalue and median are found without sorting: at the ends, in the middle, and one after the other."""
    for x, a, dim, what in operands(shapes, device):
        size = x.shape[dim] if x.ndim else 1
        if not size:
            continue
        places = order_of(x, dim, False, what)
        for k in {1, 2, size // 3, (size + 1) // 2, size - 1, size} & set(range(1, size + 1)):
            wanted = np.take(places, [k - 1], dim) if x.ndim else places
            got = a.kthvalue(k, dim, keepdim=True)
            same(got.indices, wanted, f"{what}, {k} of {size}")
            same(got.values, np.take_along_axis(x, wanted, dim) if x.ndim else x, f"{what}, {k} of {size}")
        middle = np.take(places, [(size - 1) // 2], dim) if x.ndim else places
        if x.dtype.kind == "f" and x.ndim:
            middle = np.where(np.isnan(x).any(dim, keepdims=True), np.isnan(x).argmax(dim, keepdims=True), middle)
        same(a.median(dim, keepdim=True).indices, middle, what)


@pytest.mark.parametrize("shapes", [SHAPES, LONG], ids=["short", "long"])
def test_running_sums(shapes: Any, device: str) -> None:
    for x, a, dim, what in operands(shapes, device):
        dtype = x.dtype if x.dtype.kind == "f" else np.dtype("int64")
        with np.errstate(invalid="ignore", over="ignore"):
            want = np.cumsum(x.astype("float64" if x.dtype.kind == "f" else "int64"), dim) if x.ndim else x
        near = {2: 1e-3, 4: 1e-6, 8: 1e-12}[dtype.itemsize]
        got = a.cumsum(dim).cpu().numpy()
        assert got.dtype == dtype and got.shape == x.shape, what
        np.testing.assert_allclose(got, want.astype(dtype), near, near, err_msg=what)
        if x.dtype.kind == "f" and x.size < 1000:
            with np.errstate(invalid="ignore"):
                logs = np.logaddexp.accumulate(x.astype("float64"), dim) if x.ndim else x
            np.testing.assert_allclose(a.logcumsumexp(dim).cpu().numpy(), logs.astype(dtype), near, near, err_msg=what)


@pytest.mark.parametrize("op", ["cummax", "cummin"])
def test_running_extrema(op: str, device: str) -> None:
    """The last of equals; NaN wins and stays."""
    for x, a, dim, what in operands((*SHAPES, *LONG), device):
        got = getattr(a, op)(dim)
        values = (np.maximum if op == "cummax" else np.minimum).accumulate(x, dim) if x.ndim else x
        same(got.values, values, what)
        if x.ndim:
            mine = (values == x) | (x != x)
            shape = [1] * x.ndim
            shape[dim] = -1
            places = np.where(mine, np.arange(x.shape[dim]).reshape(shape), -1)
            same(got.indices, np.maximum.accumulate(places, dim), what)


def in_turns(n: int, *values: float) -> list[float]:
    return (list(values) * (n // len(values) + 1))[:n]


def far(n: int) -> dict[str, list[float]]:
    """Rows whose products leave the range of double, or do so only if part of a row is multiplied on its own."""
    ones = [1.0] * (n // 2)
    return {
        "a zero first": [0.0] + [1e5] * (n - 1),
        "up and down": in_turns(n, *[4.0] * 20, *[0.25] * 20),
        "over, then down": in_turns(n, *[4.0] * 130, *[-0.25] * 130, *[1e100] * 4, *[1e-100] * 8),
        "at the edge": in_turns(n, *[4.0] * 511, *[0.25] * 1040),
        "under, then up": in_turns(n, *[0.25] * 20, *[1e-100] * 4, *[1e100] * 5),
        "under at the edge": in_turns(n, *[0.25] * 530, *[4.0] * 600),
        "0 after inf": [1e30] * (n // 2) + [0.0] + ones,
        "inf after 0": [1e-30] * (n // 2) + [float("inf")] + ones,
        "nan": [1e30, float("nan"), *ones],
        "large and small": in_turns(n, 1e30, -1e-30, -1e-20, 1e20),
        "any": (np.random.default_rng(n).uniform(0.5, 1.7, n) * in_turns(n, 1, -1, -1)).tolist(),
    }


def far_sums(n: int) -> dict[str, list[float]]:
    up = 1.7e308 / 7
    return {
        "up and down": in_turns(n, 1e308, -1e308),
        "from the other end": in_turns(n, -1e308, 1e308, 1e308, -1e308),
        "through the range": in_turns(n, -1.7e308, *[up] * 14, *[-up] * 14, 1.7e308),
        "over": [1e308] * (n // 3) + [-1e308] * (n - n // 3),
        "over, then inf": [-1e308] * (n // 3) + [float("inf")] * 9,
        "infs": [-1e308, float("inf"), *[1.0] * n, -float("inf"), 1.0],
        "nan": [-1e308, float("nan"), *[1e308] * n],
        "subnormal": [5e-324] * n,
        "small around large": [5e-324] * n + [1e308, -1e308] + [1e-300] * n,
    }


@pytest.mark.parametrize("n", [300, 2100, 40000])
def test_running_results_leave_the_range_where_the_row_does(n: int, device: str) -> None:
    """inf, 0 and NaN where one element after another gives them, whatever parts of the row give on their own."""
    for op, samples in (("cumprod", far(n)), ("cumsum", far_sums(n))):
        accumulate = getattr(np, {"cumprod": "multiply", "cumsum": "add"}[op]).accumulate
        for what, row in samples.items():
            for rows, dtype in ((1, "float64"), (16, "float64"), (1, "float32")):
                with np.errstate(all="ignore"):
                    one = np.array(row).astype(dtype)
                    want = np.broadcast_to(accumulate(one.astype("float64")).astype(dtype), (rows, len(one)))
                a = dt.from_numpy(np.tile(one, (rows, 1))).to(device)
                error = 0.0 if op == "cumprod" else 1e-13 * np.nanmax(np.abs(want[np.isfinite(want)]), initial=0)
                near = {"float32": 1e-6, "float64": 1e-12}[dtype]
                for layout in ("rows", "columns", "apart") if n < 40000 else ("rows",):
                    if layout == "columns":
                        found = getattr(a.T.contiguous(), op)(0).cpu().numpy().T
                    else:
                        found = (
                            getattr(a if layout == "rows" else a.repeat_interleave(3, 1)[:, ::3], op)(1).cpu().numpy()
                        )
                    text = f"{op} of {rows} {layout} of {dtype}: {what}"
                    if not np.array_equal(found, want, equal_nan=True):
                        assert device != "cpu" or dtype != "float64", text
                        np.testing.assert_allclose(found, want, near, error + 1e-320, err_msg=text)


def test_sums_of_what_is_not_negative_do_not_fall(device: str) -> None:
    rng = np.random.default_rng(5)
    for n in (700, 3000, 100_000):
        for row in (rng.random(n), rng.exponential(size=n) * 10 ** rng.uniform(-30, 3, n), rng.random(n) ** 9):
            row[rng.random(n) < 0.9] = 0
            for x in (row[None], np.tile(row, (16, 1))):
                sums = dt.from_numpy(x).to(device).cumsum(1).cpu().numpy()
                assert (sums[:, 1:] >= sums[:, :-1]).all(), n


def test_numbers_of_threads_change_nothing() -> None:
    x = dt.randn(3, 200_000, generator=dt.Generator().manual_seed(1))
    threads = dt.get_num_threads()
    found = []
    try:
        for n in (1, 2, 3):
            dt.set_num_threads(n)
            found.append([x.cumsum(1), x.logcumsumexp(1), x.sort(1).indices, x.topk(5, 1).indices, x.cummax(1).values])
    finally:
        dt.set_num_threads(threads)
    for others in found[1:]:
        assert all(a.tolist() == b.tolist() for a, b in zip(found[0], others, strict=True))


def test_products_of_rows_with_zeros_have_gradients(device: str) -> None:
    for zeros in ([], [2], [0], [4], [1, 3]):
        data = [0.5, -2.0, 3.0, 1.5, -1.0]
        for i in zeros:
            data[i] = 0.0
        x = dt.tensor(data, dtype=dt.float64, device=device, requires_grad=True)
        assert dt.autograd.gradcheck(lambda v: v.cumprod(0), (x,))
        assert dt.autograd.gradgradcheck(lambda v: v.cumprod(0), (x,))
        many = x.detach().reshape(1, 1, 5, 1, 1, 1, 1, 1).requires_grad_()
        assert dt.autograd.gradgradcheck(lambda v: v.cumprod(2), (many,))


REFUSED: dict[str, tuple[Callable[[dt.DeviceArray], object], type[Exception], str]] = {
    "topk": (lambda x: x.topk(9), dt.ShapeMismatchError, "selected index k out of range: k=9 of 3 elements"),
    "kthvalue": (lambda x: x.kthvalue(0), RuntimeError, "selected number k out of range"),
    "cumsum": (lambda x: x.cumsum(2), IndexError, "Dimension out of range"),
    "logcumsumexp": (lambda x: x.long().logcumsumexp(0), dt.DTypeMismatchError, "not implemented for 'int64'"),
    "median": (lambda x: x[:0].median(0), IndexError, "Expected reduction dim 0 to have non-zero size"),
    "quantile": (lambda x: x.quantile(2.0), ValueError, r"must be in the range \[0, 1\]"),
    "quantile of halves": (lambda x: x.half().quantile(0.5), dt.DTypeMismatchError, "float32 and float64"),
    "bincount": (lambda x: dt.bincount(x[0].long() - 2), RuntimeError, "only non-negative integers"),
    "histc": (lambda x: x.histc(0), RuntimeError, "bins must be > 0"),
    "searchsorted": (lambda x: dt.searchsorted(x, x[:1]), dt.ShapeMismatchError, "Expected input to have shape"),
    "side": (lambda x: dt.searchsorted(x, x, side="left", right=True), RuntimeError, "can't be set to opposites"),
    "unique": (lambda x: x[:, :0].unique(dim=0), RuntimeError, "There are 0 sized dimensions"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, device: str) -> None:
    call, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        call(dt.ones(2, 3, device=device))


def test_formulas_over_sorted_elements(device: str) -> None:
    x = dt.tensor([[3.0, 1.0, 1.0, 2.0], [4.0, float("nan"), 4.0, 0.0]], device=device)
    assert x.mode(1).values.tolist() == [1, 4] and x.mode(1).indices.tolist() == [2, 2]
    assert str(x.median(1).values.tolist()) == "[1.0, nan]" and x.median(1).indices.tolist() == [2, 1]
    assert x.nanmedian(1).values.tolist() == [1, 4] and x.nanmedian().item() == 2
    assert x[:1].quantile(dt.tensor([0.5, 1.5], device=device)).isnan().tolist() == [False, True]
    assert x.nanquantile(0.5, 1, interpolation="lower").tolist() == [1, 4]
    y = dt.tensor([[1, 2, 2], [0, 5, 5], [1, 2, 2]], device=device)
    rows, inverse, counts = y.unique(return_inverse=True, return_counts=True, dim=0)
    assert rows.tolist() == [[0, 5, 5], [1, 2, 2]] and inverse.tolist() == [1, 0, 1] and counts.tolist() == [1, 2]
    assert y.unique_consecutive(dim=1).tolist() == [[1, 2], [0, 5], [1, 2]]
    assert dt.bincount(y.flatten(), minlength=8).tolist() == [1, 2, 4, 0, 0, 2, 0, 0]
    assert dt.isin(y, dt.arange(2, 40, device=device)).tolist() == (y >= 2).tolist()
    assert dt.bucketize(y, dt.tensor([1, 3], device=device), right=True).tolist() == [[1, 1, 1], [0, 2, 2], [1, 1, 1]]
    assert y.float().histc(2, 0, 5).tolist() == [7, 2]


def test_gradients_go_to_the_elements_that_were_taken(device: str) -> None:
    for call in (lambda v: v.sort().values[1], lambda v: v.topk(2).values[0], lambda v: v.kthvalue(3).values):
        x = dt.tensor([2.0, 3.0, 1.0], device=device, requires_grad=True)
        call(x).backward()
        assert x.grad is not None
        assert x.grad.tolist() == ([1, 0, 0] if call(x).item() == 2 else [0, 1, 0])


def test_the_first_few_of_long_rows_are_those_of_a_stable_sort() -> None:
    """Many are left out without a key: among equals, NaN and both zeros, in rows and columns, rising and falling."""
    rng = np.random.default_rng(11)
    for dtype in (*FLOATS, "int8", "uint8", "int16", "int32", "int64"):
        for values in (rng.standard_normal((9, 1037)) * 60, rng.integers(0, 3, (9, 1037)), np.arange(9333) // 75 % 90):
            x = dt.tensor(values.reshape(9, 1037).astype("float64").clip(0 if dtype == "uint8" else -100, 100))
            if dtype in FLOATS:
                x[2, ::5], x[3, 40:45], x[4], x[5, ::3] = float("nan"), float("nan"), float("nan"), -0.0
                x[6, ::300], x[7, ::300] = float("inf"), -float("inf")
            x = x.to(getattr(dt, dtype))
            for largest in (False, True):
                order = dt.sort(x, descending=largest, stable=True)
                for k in (1, 7, 60):
                    for rows in (x, x.T.contiguous().T):
                        got = dt.topk(rows, k, largest=largest)
                        assert got.indices.tolist() == order.indices[:, :k].tolist(), (dtype, largest, k)
                        assert str(got.values.tolist()) == str(order.values[:, :k].tolist()), (dtype, largest, k)
