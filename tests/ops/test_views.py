"""Views share memory as in PyTorch and show what NumPy shows, for shapes and steps of any kind."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import DEVICES, wide_of

import devtensor as dt

SETTINGS = settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
SHAPES = st.lists(st.integers(0, 4), min_size=0, max_size=5).map(tuple)


def pair(shape: tuple[int, ...], device: str) -> tuple[np.ndarray, dt.DeviceArray]:
    values = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
    return values, dt.array(values, device=device)


def same(x: dt.DeviceArray, values: np.ndarray) -> None:
    assert tuple(x.shape) == values.shape
    np.testing.assert_array_equal(wide_of(x).astype(np.int64), values)
    if values.size:
        np.testing.assert_array_equal(wide_of(x * 1).astype(np.int64), values)
        assert int(x.sum().item()) == int(values.sum())


@st.composite
def indices(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """A basic index with steps above 0: ints, slices, None and at most one ellipsis."""
    items: list[Any] = []
    for size in shape[: draw(st.integers(0, len(shape)))]:
        if size and draw(st.booleans()):
            items.append(draw(st.integers(-size, size - 1)))
        else:
            bound = st.none() | st.integers(-size - 2, size + 2)
            items.append(slice(draw(bound), draw(bound), draw(st.none() | st.integers(1, 3))))
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), None)
    if draw(st.booleans()) and len(items) == len(shape):
        items.append(...)
    return items[0] if len(items) == 1 and draw(st.booleans()) else tuple(items)


@SETTINGS
@given(data=st.data(), shape=SHAPES, device=st.sampled_from(DEVICES))
def test_indexing(data: st.DataObject, shape: tuple[int, ...], device: str) -> None:
    values, x = pair(shape, device)
    index = data.draw(indices(shape))
    same(x[index], values[index])


@SETTINGS
@given(data=st.data(), shape=SHAPES, device=st.sampled_from(DEVICES))
def test_permute_then_index(data: st.DataObject, shape: tuple[int, ...], device: str) -> None:
    values, x = pair(shape, device)
    dims = tuple(data.draw(st.permutations(range(len(shape)))))
    values, x = values.transpose(dims), x.permute(dims)
    same(x, values)
    index = data.draw(indices(values.shape))
    same(x[index], values[index])


@SETTINGS
@given(data=st.data(), shape=SHAPES, device=st.sampled_from(DEVICES))
def test_writing_through_a_view(data: st.DataObject, shape: tuple[int, ...], device: str) -> None:
    values, x = pair(shape, device)
    index = data.draw(indices(shape))
    x[index] = -1
    values[index] = -1
    same(x, values)
    view = x[index]
    view += 5
    values[index] += 5
    same(x, values)


@SETTINGS
@given(data=st.data(), shape=SHAPES, device=st.sampled_from(DEVICES))
def test_reshape(data: st.DataObject, shape: tuple[int, ...], device: str) -> None:
    """Of any view: the same values as NumPy's, shared where NumPy shares."""
    values, x = pair(shape, device)
    dims = tuple(data.draw(st.permutations(range(len(shape)))))
    values, x = values.transpose(dims), x.permute(dims)
    factors = list(data.draw(st.permutations([*values.shape, 1])))
    if len(factors) > 1 and data.draw(st.booleans()):
        factors = [factors[0] * factors[1], *factors[2:]]
    want = values.reshape(factors)
    got = x.reshape(tuple(factors))
    same(got, want)
    if values.size > 1:
        assert (got.data_ptr() == x.data_ptr()) == np.shares_memory(want, values)


@SETTINGS
@given(data=st.data(), shape=SHAPES, device=st.sampled_from(DEVICES))
def test_expand(data: st.DataObject, shape: tuple[int, ...], device: str) -> None:
    values, x = pair(shape, device)
    lead = data.draw(st.lists(st.integers(0, 3), max_size=2))
    target = (*lead, *(data.draw(st.integers(0, 3)) if n == 1 else n for n in shape))
    same(x.expand(target), np.broadcast_to(values, target))
    same(dt.broadcast_to(x, target), np.broadcast_to(values, target))


@SETTINGS
@given(
    data=st.data(),
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple),
    device=st.sampled_from(DEVICES),
)
def test_broadcasting(data: st.DataObject, shape: tuple[int, ...], device: str) -> None:
    def part() -> tuple[np.ndarray, dt.DeviceArray]:
        start = data.draw(st.integers(0, len(shape) - 1))
        return pair(tuple(1 if data.draw(st.booleans()) else n for n in shape[start:]), device)

    (a, x), (b, y), (c, z) = part(), part(), part()
    same(x + y, a + b)
    same(x * y - z, a * b - c)
    same(dt.where(x > y, x, z), np.where(a > b, a, c))
    assert (x < y).tolist() == (a < b).tolist()


# ---------------------------------------------------------------- sharing


def shares(x: dt.DeviceArray, y: dt.DeviceArray) -> bool:
    """Whether a write to y is seen in x."""
    before = x.tolist()
    y.fill_(77)
    return x.tolist() != before


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[1],
        lambda x: x[..., 1:],
        lambda x: x[:, None],
        lambda x: x.T,
        lambda x: x.mT,
        lambda x: x.reshape(3, 2),
        lambda x: x.view(6),
        lambda x: x.view(-1, 2),
        lambda x: x.flatten(),
        lambda x: x.transpose(0, 1),
        lambda x: x.permute(1, 0),
        lambda x: x.unsqueeze(0).squeeze(),
        lambda x: x.unflatten(1, (3, 1)),
        lambda x: x.narrow(0, 0, 1),
        lambda x: x.select(1, 0),
        lambda x: x.split(1)[1],
        lambda x: x.chunk(2, dim=1)[0],
        lambda x: x.unbind()[0],
        lambda x: next(iter(x)),
        lambda x: x.movedim(0, 1),
    ],
)
def test_views_share(view: Any, device: str) -> None:
    x = dt.arange(6, dtype=dt.float32, device=device).reshape(2, 3)
    assert shares(x, view(x))


@pytest.mark.parametrize(
    "copy",
    [
        lambda x: x.clone(),
        lambda x: x.T.reshape(6),
        lambda x: x.T.flatten(),
        lambda x: x.T.contiguous(),
        lambda x: dt.cat([x]),
        lambda x: dt.stack([x, x]),
        lambda x: dt.array(x),
        lambda x: x.to(dt.float64),
    ],
)
def test_copies_do_not(copy: Any, device: str) -> None:
    x = dt.arange(6, dtype=dt.float32, device=device).reshape(2, 3)
    assert not shares(x, copy(x))


def test_strides_and_sizes(device: str) -> None:
    x = dt.zeros((2, 3, 4), device=device)
    assert x.shape == (2, 3, 4)
    assert x.size() == (2, 3, 4)
    assert x.size(-1) == 4
    assert x.ndim == x.dim() == 3
    assert x.numel() == 24
    assert x.itemsize == x.element_size() == 4
    assert x.nbytes == 96
    assert x.stride() == (12, 4, 1)
    assert x.stride(1) == 4
    assert x.strides == (48, 16, 4)
    assert x.permute(2, 0, 1).stride() == (1, 12, 4)
    assert x[:, ::2].stride() == (12, 8, 1)
    assert x.expand(5, 2, 3, 4).stride() == (0, 12, 4, 1)
    assert x[:1].expand(7, 3, 4).is_contiguous() is False
    assert x.is_contiguous()
    assert not x.mT.is_contiguous()
    assert x.mT.shape == (2, 4, 3)
    assert x[1, 1:].data_ptr() == x.data_ptr() + 64


def test_a_view_that_needs_a_copy_is_refused(device: str) -> None:
    x = dt.arange(6, device=device).reshape(2, 3)
    with pytest.raises(dt.ShapeMismatchError, match=r"Use \.reshape\(\.\.\.\) instead"):
        x.T.view(6)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((4, 2), r"shape '\(4, 2\)' is invalid for input of size 6"),
        ((-1, 4), "is invalid for input of size 6"),
        ((-1, -1), "only one dimension can be inferred"),
        ((-2, 3), "invalid shape dimension"),
    ],
)
def test_impossible_shapes(shape: tuple[int, ...], message: str, device: str) -> None:
    x = dt.arange(6, device=device)
    with pytest.raises(RuntimeError, match=message):
        x.reshape(shape)


def test_an_ambiguous_dimension_is_refused(device: str) -> None:
    with pytest.raises(RuntimeError, match="can be any value"):
        dt.zeros((0, 3), device=device).reshape(0, -1)


def test_dimensions_are_checked(device: str) -> None:
    x = dt.zeros((2, 3), device=device)
    for call in (
        lambda: x.transpose(0, 2),
        lambda: x.sum(dim=2),
        lambda: x.sum(dim=-3),
        lambda: x.unsqueeze(3),
        lambda: x.squeeze(2),
        lambda: x.select(2, 0),
        lambda: x.narrow(5, 0, 1),
        lambda: dt.cat([x, x], dim=2),
        lambda: dt.softmax(x, dim=2),
    ):
        with pytest.raises(IndexError, match="Dimension out of range"):
            call()
    for call in (lambda: x.select(0, 2), lambda: x.select(0, -3), lambda: x[2], lambda: x[0, 3]):
        with pytest.raises(IndexError, match="out of bounds"):
            call()
    with pytest.raises(RuntimeError, match="multiple times"):
        x.sum(dim=(0, -2))
    with pytest.raises(RuntimeError):
        x.permute(0, 0)
    with pytest.raises(RuntimeError):
        x.permute(0)
    with pytest.raises(RuntimeError):
        x.narrow(0, 1, 2)


# ---------------------------------------------------------------- apart


@pytest.mark.parametrize(
    ("shape", "chunks", "dim", "want"),
    [
        ((0, 3), 4, 0, [(0, 3)] * 4),
        ((0, 3), 1, 0, [(0, 3)]),
        ((0, 3), 4, 1, [(0, 1)] * 3),
        ((0,), 4, 0, [(0,)] * 4),
        ((2, 0), 4, 0, [(1, 0)] * 2),
        ((2, 0), 3, -1, [(2, 0)] * 3),
        ((5,), 4, 0, [(2,), (2,), (1,)]),
    ],
)
def test_chunks_of_nothing(shape: tuple[int, ...], chunks: int, dim: int, want: list[Any], device: str) -> None:
    """As many as asked for, as in PyTorch, where the dimension is empty."""
    assert [x.shape for x in dt.zeros(shape, device=device).chunk(chunks, dim)] == want


@pytest.mark.parametrize(
    ("sections", "want"),
    [(0, [(0, 3)]), (1, [(0, 3)]), (4, [(0, 3)]), ([0], [(0, 3)]), ([0, 0], [(0, 3)] * 2), ([], [])],
)
def test_splits_of_nothing(sections: Any, want: list[Any], device: str) -> None:
    assert [x.shape for x in dt.zeros(0, 3, device=device).split(sections)] == want
    assert dt.zeros(0, 3, device=device).unbind() == ()


# ---------------------------------------------------------------- the shape of another array


@pytest.mark.parametrize("op", ["expand_as", "view_as"])
def test_only_the_shape_of_another_array_counts(op: str) -> None:
    """It may be of another device and dtype, as in PyTorch: nothing of it is read, and the view stays where x is."""
    for device, other in itertools.product(DEVICES, DEVICES):
        x = dt.arange(6, device=device).reshape(2, 3)
        with dt.forbid_transfers():
            y = getattr(x, op)(dt.zeros(2, 3, dtype=dt.float16, device=other))
        assert (y.device, y.dtype, y.shape) == (x.device, x.dtype, (2, 3))
        assert y.data_ptr() == x.data_ptr()


# ---------------------------------------------------------------- the same bytes as another dtype

BIT_DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]
PARTS: list[Any] = [
    lambda x: x, lambda x: x[1:, 1:], lambda x: x[:, ::2], lambda x: x[:, 2:], lambda x: x[:1].T, lambda x: x.T,
    lambda x: x[0], lambda x: x[::2, :4], lambda x: x[:0], lambda x: x[:, :0], lambda x: x[0, 0],
]  # fmt: skip


def expected_view(values: np.ndarray, dtype: np.dtype[Any]) -> tuple[np.ndarray | None, str]:
    """What `values.view(dtype)` shows, byte by byte, or what stands against it, by PyTorch's rules."""
    size, wanted = values.itemsize, dtype.itemsize
    if size == wanted:
        return values.view(dtype), ""
    if values.ndim == 0:
        return None, "dim"
    steps = [stride // size for stride in values.strides]
    if steps[-1] != 1:
        return None, "stride"
    offset = values.__array_interface__["data"][0]
    if wanted > size:
        factor = wanted // size
        if values.shape[-1] % factor:
            return None, "size"
        if any(step % factor for step in steps[:-1]):
            return None, "stride"
        if offset % wanted:
            return None, "storage_offset"
    shape = (*values.shape[:-1], values.shape[-1] * size // wanted)
    return np.frombuffer(np.ascontiguousarray(values).tobytes(), dtype).reshape(shape), ""


# Bytes other than 0 and 1 have no meaning as bool.
@pytest.mark.parametrize(
    ("source", "target"),
    [pair for pair in itertools.product(BIT_DTYPES, BIT_DTYPES) if not (pair[0][:5] == "float" and pair[1] == "bool")],
)
def test_view_of_another_dtype(device: str, source: str, target: str) -> None:
    """The bytes of every part of an array, read as every other dtype, and shared with it."""
    numbers = np.random.default_rng(0).integers(0, 2 if target == "bool" else 120, (6, 8), np.uint8)
    whole = numbers.astype(source)
    for part in PARTS:
        x = dt.array(whole, device=device)
        values, complaint = expected_view(part(whole), np.dtype(target))
        if values is None:
            with pytest.raises(dt.ShapeMismatchError, match=rf"self\.{complaint}"):
                part(x).view(getattr(dt, target))
            continue
        seen = part(x).view(getattr(dt, target))
        assert (tuple(seen.shape), seen.dtype, str(seen.device)) == (values.shape, getattr(dt, target), x.device)
        assert seen.cpu().numpy().tobytes() == values.tobytes()
        assert not seen.requires_grad
        if seen.numel():
            seen.fill_(1)
            assert bool((part(x).view(getattr(dt, target)) == 1).all())
