"""Sums at the places that indices choose: scatter_add, index_add, and what the gradients of selections call."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import formats
import numpy as np
import pytest
from formats import Array
from support import bits_of, from_bits, lay_out, no_transfers, wide_of

import devtensor as dt
from devtensor import _C


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = dt.get_num_threads()
    yield dt.set_num_threads
    dt.set_num_threads(before)


def made(values: Any, dtype: str, device: str, layout: str = "contiguous") -> dt.DeviceArray:
    return lay_out(formats.wide_to_bits(np.asarray(values), dtype), dtype, device, layout)


def in_order(x: Array, index: Array, source: Array) -> Array:
    """float32 sums in the order of the rows."""
    sums = x.astype(np.float32)
    for i, row in zip(index, source.astype(np.float32), strict=True):
        sums[i] += row
    return sums


# ---------------------------------------------------------------- which sums


def rows(seed: int, places: int, width: int, n: int, dtype: str) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    x, source = (formats.round_float(rng.normal(size=(k, width)), dtype) for k in (places, n))
    index = rng.integers(0, places, n)
    index[: n // 2] = places - 1  # one place gets more than its share
    return x, index, source


@pytest.mark.parametrize(("places", "width", "n"), [(3, 1, 40), (50, 3, 2000), (7, 600, 300), (2, 40_000, 5)])
def test_additions_are_in_order_on_any_number_of_threads(places: int, width: int, n: int, threads: Any) -> None:
    x, index, source = rows(0, places, width, n, "float32")
    want = in_order(x, index, source)
    for count in (1, 2, 3, 4):
        threads(count)
        got = dt.index_add(*(made(x, "float32", "cpu"), 0, made(index, "int64", "cpu"), made(source, "float32", "cpu")))
        np.testing.assert_array_equal(bits_of(got), want)


def test_many_elements_on_any_number_of_threads(threads: Any) -> None:
    rng = np.random.default_rng(1)
    x, index, source = np.zeros(500), rng.integers(0, 500, 200_000), rng.normal(size=200_000).astype(np.float32)
    for count in (1, 3):
        threads(count)
        got = made(x, "float32", "cpu").scatter_add_(0, made(index, "int64", "cpu"), made(source, "float32", "cpu"))
        np.testing.assert_array_equal(bits_of(got), in_order(x, index, source))


@pytest.mark.parametrize("n", [5, 128, 129, 1000])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_rounded_once(dtype: str, n: int, device: str) -> None:
    x, index, source = rows(2, 4, 3, n, dtype)
    size = np.abs(x)
    np.add.at(size, index, np.abs(source))
    for alpha in (1, 0.75):
        exact = x.copy()
        np.add.at(exact, index, alpha * source)
        args = made(x, dtype, device), 0, made(index, "int64", device), made(source, dtype, device)
        got = wide_of(dt.index_add(*args, alpha=alpha))
        bound = formats.FORMATS[dtype].eps / 2 * np.abs(exact) + n * 2.0**-24 * size
        assert (np.abs(got - exact) <= bound).all()


def test_one_place_for_all(device: str) -> None:
    """Counts, which are exact in float32; in a half type sums one by one would end at 2048."""
    for dtype, dtypes in itertools.product(("float16", "float32", "int64"), ("int32", "int64")):
        zeros, ones = dt.zeros(3, dtype=getattr(dt, dtype), device=device), made(np.ones(5000), dtype, device)
        got = zeros.scatter_add(0, made(np.full(5000, 1), dtypes, device), ones)
        assert got.tolist() == [0, 5000, 0]


def test_the_same_bits_each_time(device: str) -> None:
    args = [made(v, d, device) for v, d in zip(rows(3, 9, 5, 3000, "float32"), ("float32", "int64", "float32"),
                                               strict=True)]  # fmt: skip
    first = bits_of(dt.index_add(args[0], 0, args[1], args[2]))
    for _ in range(3):
        np.testing.assert_array_equal(bits_of(dt.index_add(args[0], 0, args[1], args[2])), first)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_expanded_indices_and_values(dim: int, device: str) -> None:
    """An index that is the same along some dimensions, and the gradient of a sum."""
    rng = np.random.default_rng(4)
    x = rng.integers(-9, 9, (6, 200, 5)).astype(np.float64)
    for kept in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2)):
        shape = tuple(n if d in kept else 1 for d, n in enumerate(x.shape))
        index, value = rng.integers(0, x.shape[dim], shape), rng.integers(-9, 9, shape).astype(np.float64)
        wide_index, wide_value = (np.broadcast_to(v, x.shape) for v in (index, value))
        want, places = x.copy(), list(np.indices(x.shape))
        places[dim] = wide_index
        np.add.at(want, tuple(places), wide_value)
        got = made(x, "float32", device).scatter_add(
            dim, made(index, "int64", device).expand(x.shape), made(value, "float32", device).expand(x.shape)
        )
        np.testing.assert_array_equal(bits_of(got), want)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32"])
def test_add_at_several_indices(dtype: str, device: str) -> None:
    """What the gradients of x[i], x[i, j] and embeddings are made of; negative indices count from the end."""
    rng = np.random.default_rng(5)
    for shape, index_shape, n in (
        ((4, 3, 2), (5,), 1),
        ((4, 3, 2), (2, 70), 2),
        ((7, 3), (150, 2), 1),
        ((9,), (300,), 1),
    ):
        x = rng.integers(0, 2 if dtype == "bool" else 9, shape)
        indices = [rng.integers(-shape[k], shape[k], index_shape) for k in range(n)]
        value = rng.integers(0, 2 if dtype == "bool" else 9, (*index_shape, *shape[n:]))
        want = x.astype(object)
        np.add.at(want, tuple(indices), value.astype(object))
        place = made(x, dtype, device, "transposed")
        arrays = tuple(made(i, "int32" if k else "int64", device) for k, i in enumerate(indices))
        added = made(value, dtype, device, "sliced")
        with no_transfers():
            got = _C._test.add_at(place, arrays, added)
        assert got is place
        np.testing.assert_array_equal(bits_of(got), formats.wide_to_bits(formats.round_to(want, dtype), dtype))


@pytest.mark.parametrize(("places", "n", "columns"), [(50, 300, 201), (3, 700, 130), (9000, 1200, 70)])
@pytest.mark.parametrize("dim", [0, 1])
def test_an_index_for_each_value(places: int, n: int, columns: int, dim: int, device: str) -> None:
    """Columns of their own, whose places a block holds: additions are in order, as on the host."""
    rng = np.random.default_rng(6)
    x, source = (rng.normal(size=(k, columns)).astype(np.float32) for k in (places, n))
    index = rng.integers(0, places, (n, columns))
    index[: n // 2, 3] = places - 1
    want = x.copy()
    for row in range(n):
        want[index[row], np.arange(columns)] += source[row]
    if dim:
        x, index, source, want = x.T, index.T, source.T, want.T
    got = made(x, "float32", device).scatter_add(dim, made(index, "int64", device), made(source, "float32", device))
    np.testing.assert_array_equal(bits_of(got), want)


# ---------------------------------------------------------------- memory


def test_in_place_into_a_view(device: str) -> None:
    x = dt.zeros(4, 6, device=device)
    index = dt.tensor([2, 0, 2], device=device)
    x[:, 1::2].index_add_(1, index, dt.ones(4, 3, device=device))
    x.T.scatter_add_(0, index[None], dt.full((1, 3), 5.0, device=device))
    want = np.zeros((4, 6))
    np.add.at(want[:, 1::2].T, [2, 0, 2], np.ones((3, 4)))
    np.add.at(want.T, (np.array([2, 0, 2]), np.arange(3)), 5.0)
    assert x.tolist() == want.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
def test_operands_that_share_memory(dtype: str, device: str) -> None:
    """PyTorch refuses it; here the operands count as they were."""
    x = dt.arange(4, dtype=getattr(dt, dtype), device=device)
    x.index_add_(0, dt.tensor([1, 2, 3, 3], device=device), x)
    assert x.tolist() == [0, 1, 3, 8]
    y = dt.tensor([1, 0, 1], device=device)
    y.scatter_add_(0, y, y)
    assert y.tolist() == [1, 2, 1]


def test_nothing_is_written_where_an_index_is_wrong(device: str) -> None:
    x = dt.zeros(3, 2, device=device)
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size 3"):
        x.index_add_(0, dt.tensor([0, 3], device=device), dt.ones(2, 2, device=device)).cpu()
    assert x[1:].tolist() == [[0, 0], [0, 0]]
    assert x[0].tolist() == ([0, 0] if device == "cpu" else [1, 1])


def test_new_results_leave_their_operands(device: str) -> None:
    x = from_bits(np.zeros((3, 2), np.float32), "float32", device)
    index, source = dt.tensor([1, 1], device=device), dt.ones(2, 2, device=device)
    assert x.index_add(0, index, source).tolist() == [[0, 0], [2, 2], [0, 0]]
    assert x.scatter_add(1, index[None], source).tolist() == [[0, 2], [0, 0], [0, 0]]
    assert x.tolist() == [[0, 0]] * 3


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x, i: x.scatter_add(0, i, x.double()), dt.DTypeMismatchError, "input and src must have the same dtype"),
        (lambda x, i: x.scatter_add(0, i, x), dt.ShapeMismatchError, "Expected index to be 2D, but got 1D instead"),
        (lambda x, i: x.scatter_add(0, i[None], x[0]), dt.ShapeMismatchError, "Expected src to be 2D, but got 1D"),
        (lambda x, i: x.scatter_add(0, i.repeat(1, 3), x), dt.ShapeMismatchError,
         "Expected index to have shape (*, 2), but got (1, 6) instead (scatter_add: input (3, 2), index (1, 6), "
         "src (3, 2))"),
        (lambda x, i: x.scatter_add(0, i[:, None].repeat(2, 2), x), dt.ShapeMismatchError,
         "Expected src to have shape (4, *), but got (3, 2) instead (scatter_add: input (3, 2), index (4, 2), "
         "src (3, 2))"),
        (lambda x, i: x[0].scatter_add(0, i, x[0, 0]), dt.ShapeMismatchError,
         "Expected src to have shape (2,), but got () instead"),
        (lambda x, i: x.scatter_add(2, i, x), IndexError, "Dimension out of range"),
        (lambda x, i: x.scatter_add(0, x, x), dt.DTypeMismatchError,
         "tensors used as indices must be int32 or int64 tensors (scatter_add: input float32, index float32"),
        (lambda x, i: x.index_add(0, i, x), dt.ShapeMismatchError,
         "Expected source to have shape (2, 2), but got (3, 2) instead (index_add: input (3, 2), index (2,), "
         "source (3, 2))"),
        (lambda x, i: x.index_add(0, i[None], x), dt.ShapeMismatchError, "Expected index to be 0D to 1D, but got 2D"),
        (lambda x, i: x.index_add(0, i, x[0]), dt.ShapeMismatchError,
         "Expected source to have shape (2, 2), but got (2,) instead"),
        (lambda x, i: x[0, 0].index_add(0, i, x[0, 0]), dt.ShapeMismatchError,
         "Expected index to have shape (1,), but got (2,) instead"),
        (lambda x, i: i.index_add(0, i, i, alpha=0.5), RuntimeError,
         "For integral input tensors, argument alpha must not be a floating point number. (index_add)"),
        (lambda x, i: x[:1].expand(3, 2).index_add_(0, i, x[:2]), RuntimeError, "unsupported operation: more than one"),
        (lambda x, i: x.index_add(0, -i, x[:2]).cpu(), IndexError, "index -1 is out of bounds for dimension 0 with"),
    ],
)  # fmt: skip
def test_mistakes(call: Callable[..., Any], error: type[Exception], text: str, device: str) -> None:
    x, i = dt.ones(3, 2, device=device), dt.tensor([0, 1], device=device)
    with pytest.raises(error) as caught:
        call(x, i)
    assert str(caught.value).startswith(text)
    assert x.sum().item() == 6


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "int32", "int64"])
@pytest.mark.parametrize(("places", "width", "n"), [(40, 256, 300), (3, 300, 64), (200, 130, 1000)])
def test_many_columns_by_blocks_that_hold_some(places: int, width: int, n: int, dtype: str, device: str) -> None:
    """On a GPU a block keeps the sums of a few columns beside each other."""
    rng = np.random.default_rng(5)
    x, source = rng.integers(-4, 5, (places, width)), rng.integers(-3, 4, (n, width))  # sums are exact
    index = rng.integers(0, places, (n, width))
    want = x.astype(np.float64)
    np.add.at(want, (index, np.arange(width)[None]), source)
    args = made(x, dtype, device), 0, made(index, "int64", device), made(source, dtype, device)
    got = wide_of(dt.scatter_add(*args))
    np.testing.assert_array_equal(got, formats.round_float(want, dtype) if "float" in dtype else want)
