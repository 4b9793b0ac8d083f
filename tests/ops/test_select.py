"""Selection by arrays of indices and by masks: what x[key] and x[key] = v mean, on every device, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from formats import DTYPES, STORAGE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import CUDA_DEVICES, DEVICES, bits_of, from_bits, lay_out, no_transfers, synchronize

import devtensor as dt

LAYOUTS = ("contiguous", "transposed", "sliced")


def some_bits(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    """Elements that differ from their neighbours, whatever dtype means by them."""
    rng = np.random.default_rng(seed)
    storage = np.dtype(STORAGE[dtype])
    top = 2 if dtype == "bool" else 2 ** min(8 * storage.itemsize - 1, 62)
    return rng.integers(0, top, shape).astype(storage)


def put(values: Any, device: str, dtype: str = "int64") -> dt.DeviceArray:
    return dt.array(np.asarray(values), device=device).to(getattr(dt, dtype))


def given_to(key: Any, device: str) -> Any:
    """The key with arrays of the device in place of NumPy's."""
    if isinstance(key, tuple):
        return tuple(given_to(part, device) for part in key)
    return dt.array(key, device=device) if isinstance(key, np.ndarray) else key


I2, I3, J3 = np.array([1, 0]), np.array([2, 0, -1]), np.array([[1], [0]])
M3, M34 = np.array([True, False, True]), np.arange(12).reshape(3, 4) % 3 == 0
NO, YES = slice(None), slice(1, None)
KEYS: list[Any] = [
    I2,
    J3,
    np.array(1),
    np.array([], dtype=np.int64),
    np.array([-1], dtype=np.int32),
    (NO, I3),
    (..., I3),
    (I2, NO, I3[:2]),
    (I2, I3[:2]),
    (NO, I3, J3),
    (NO, I3, NO, I3),
    (J3, I3, NO, J3),
    (I2, None, I3[:2]),
    (None, I2),
    (I2, ..., None),
    (YES, I3, slice(0, 4, 2)),
    (NO, 1, I3),
    (I2, 1),
    (I2, I2, I2, I2),
    (NO, M3),
    (NO, M34),
    (NO, NO, np.array([True, False, False, True])),
    (np.array([True, False]), NO, NO, I2[:1]),
    (J3, M3),
    (NO, np.zeros(3, dtype=bool)),
    np.arange(120).reshape(2, 3, 4, 5) % 7 == 0,
    np.arange(24).reshape(2, 3, 4) % 5 == 0,
    True,
    False,
    (True, I2),
    (NO, True),
    np.array(True),
]


@pytest.mark.parametrize("key", KEYS, ids=lambda k: " ".join(repr(k).split()))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_keys(key: Any, layout: str, device: str) -> None:
    bits = some_bits((2, 3, 4, 5), "int32")
    x, want = lay_out(bits, "int32", device, layout), bits[key]
    got = x[given_to(key, device)]
    assert got.shape == want.shape and str(got.device) == device and got.dtype is dt.int32
    assert np.array_equal(bits_of(got), want)
    assert not np.shares_memory(bits, want) and (got.numel() == 0 or got.data_ptr() != x.data_ptr())
    new = some_bits(want.shape, "int32", 1)
    for value in (new, new[..., :1] if new.ndim else new, np.int32(7)):
        y, expected = x.clone(), bits.copy()
        y[given_to(key, device)] = from_bits(value, "int32", device) if isinstance(value, np.ndarray) else 7
        expected[key] = value
        assert np.array_equal(bits_of(y), expected)
    assert np.array_equal(bits_of(x), bits)


@pytest.mark.parametrize(
    "key", [([0, 1], [2, 0]), [1, 0, 1], (slice(None), [True, False, True]), [[0], [1]], []], ids=repr
)
def test_lists_are_arrays(key: Any, device: str) -> None:
    values = np.arange(24.0).reshape(2, 3, 4)
    x = dt.array(values, device=device)
    assert x[key].tolist() == values[key if key != [] else np.array([], dtype=int)].tolist()


def test_lists_without_items_are_integers(device: str) -> None:
    """And so they are an index, on every device the same."""
    x = dt.ones(3, 2, dtype=dt.bfloat16, device=device)
    for key in ([[]], [[], []], [[[]]], (0, [[]]), ([[]], 0)):
        assert tuple(x[key].shape) == np.ones((3, 2))[key].shape
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="8 dimensions"):
        x[loop]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_only_bytes_move(dtype: str, layout: str, device: str) -> None:
    """Every size of element, rows of every alignment, NaN and all."""
    for width in (1, 2, 3, 4, 8, 13, 64):
        bits = some_bits((9, width), dtype)
        x = lay_out(bits, dtype, device, layout)
        index = np.array([[3, 8, 0], [3, -1, 2]])
        assert np.array_equal(bits_of(x[put(index, device)]), bits[index])
        assert np.array_equal(bits_of(x[1:][put(index[:, 2], device)]), bits[1:][index[:, 2]])
        mask = np.arange(9) % 3 != 1
        assert np.array_equal(bits_of(x[put(mask, device, "bool")]), bits[mask])
        new = some_bits((2, 3, width), dtype, 1)
        y, want = x.clone(), bits.copy()
        y[put(index, device, "int32")] = lay_out(new, dtype, device, layout)
        want[index] = new
        assert np.array_equal(bits_of(y), want)


@pytest.mark.parametrize("n", [1, 2, 255, 4095, 4096, 4097, 70_001])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_masks_of_every_length(n: int, share: float, device: str) -> None:
    rng = np.random.default_rng(n)
    mask = rng.random(n + 3) < share
    x = np.arange(n + 3)
    a, m = dt.array(x, device=device), dt.array(mask, device=device)
    for start in (0, 1, 3):  # an address that is not aligned
        part = slice(start, start + n)
        assert np.array_equal(bits_of(a[part][m[part]]), x[part][mask[part]])
        assert np.array_equal(bits_of(m[part].nonzero()), np.argwhere(mask[part]))
    assert np.array_equal(bits_of(a.masked_select(m)), x[mask])
    (places,) = dt.where(m)
    assert np.array_equal(bits_of(places), np.flatnonzero(mask))


def test_masks_of_many_chunks(device: str) -> None:
    """More chunks than one round of the sums over them takes."""
    n = 4096 * 4096 + 5000
    m = dt.arange(n, device=device, dtype=dt.int32) % 1_000_003 == 17
    assert m.nonzero().flatten().tolist() == list(range(17, n, 1_000_003))


@pytest.mark.parametrize("dtype", DTYPES)
def test_nonzero(dtype: str, device: str) -> None:
    values = np.array([[0, 1, 0], [1, 1, 0]])
    x = put(values, device, dtype)
    assert x.nonzero().dtype is dt.int64
    assert x.nonzero().tolist() == np.argwhere(values).tolist()
    assert [i.tolist() for i in x.nonzero(as_tuple=True)] == [i.tolist() for i in np.nonzero(values)]
    assert [i.tolist() for i in dt.where(x)] == [i.tolist() for i in np.nonzero(values)]
    assert np.array_equal(bits_of(x.T.nonzero()), np.argwhere(values.T))
    assert dt.nonzero(x[0, 0]).shape == (0, 0) and dt.nonzero(x[0, 1]).shape == (1, 0)
    assert [i.tolist() for i in dt.where(x[0, 1])] == [[0]]
    assert dt.zeros(0, 3, device=device).nonzero().shape == (0, 2)


def test_nan_is_not_zero(device: str) -> None:
    x = dt.array([0.0, -0.0, float("nan"), 1e-45], device=device)
    assert x.nonzero().tolist() == [[2], [3]]


def test_masked_select_broadcasts(device: str) -> None:
    x, mask = np.arange(12).reshape(3, 4), np.array([[True], [False], [True]])
    got = dt.masked_select(dt.array(x, device=device), dt.array(mask, device=device))
    assert got.tolist() == x[np.broadcast_to(mask, x.shape)].tolist()
    got = dt.masked_select(dt.array(x[0], device=device), dt.array(mask, device=device))
    assert got.tolist() == [*x[0], *x[0]]
    assert dt.masked_select(dt.array(5, device=device), dt.array(True, device=device)).tolist() == [5]


# ---------------------------------------------------------------- places that are meant twice


@pytest.mark.parametrize("width", [1, 3, 64])
@pytest.mark.parametrize("n", [2, 100, 30_000])
def test_the_last_one_stays(n: int, width: int, device: str) -> None:
    rng = np.random.default_rng(n)
    index, values = rng.integers(-7, 7, n), rng.integers(0, 1 << 30, (n, width)).astype(np.int32)
    want = np.zeros((7, width), dtype=np.int32)
    want[index] = values
    for _ in range(2):
        x = dt.zeros(7, width, dtype=dt.int32, device=device)
        x[dt.array(index, device=device)] = dt.array(values, device=device)
        assert np.array_equal(bits_of(x), want)
    columns = dt.zeros(width, 7, dtype=dt.int32, device=device)
    columns[:, dt.array(index, device=device)] = dt.array(values.T, device=device)
    assert np.array_equal(bits_of(columns), want.T)


def test_augmented_assignment_is_read_add_write(device: str) -> None:
    x, index = np.zeros(5), np.array([1, 1, 3, -1])
    a = dt.array(x, device=device)
    x[index] += 2
    a[dt.array(index, device=device)] += 2
    assert a.tolist() == x.tolist() == [0, 2, 0, 2, 2]
    a[a > 1] *= 3
    x[x > 1] *= 3
    assert a.tolist() == x.tolist()


def test_what_is_written_may_be_what_is_read(device: str) -> None:
    x = np.array([3, 1, 0, 2])
    a = dt.array(x, device=device)
    a[a] = a
    want = x.copy()
    want[x] = x
    assert a.tolist() == want.tolist()
    a = dt.array(x, device=device)
    a[dt.array([0, 1, 2], device=device)] = a[1:]
    assert a.tolist() == [1, 0, 2, 2]
    m = dt.array([True, False], device=device)
    m[m] = False
    assert m.tolist() == [False, False]


def test_values_are_cast(device: str) -> None:
    x = dt.zeros(4, dtype=dt.float32, device=device)
    x[[0, 1]] = dt.array([1, 2], device=device)
    x[x == 0] = dt.array(0.5, dtype=dt.float64, device=device)
    assert x.tolist() == [1, 2, 0.5, 0.5]
    n = dt.zeros(4, dtype=dt.int8, device=device)
    with pytest.raises(
        dt.DTypeMismatchError, match="result type float32 can't be cast to the desired output type int8"
    ):
        n[[0, 1]] = dt.ones(2, device=device)
    with pytest.raises(RuntimeError, match="without overflow: 300"):
        n[[0, 1]] = 300
    assert n.tolist() == [0] * 4


def test_masked_fill_in_place(device: str) -> None:
    x = dt.zeros(2, 3, device=device)
    assert x.masked_fill_(dt.array([True, False, True], device=device), 4) is x
    assert x.tolist() == [[4, 0, 4]] * 2


# ---------------------------------------------------------------- any key, as NumPy does it


@st.composite
def keys(draw: Any, shape: tuple[int, ...]) -> Any:
    """A key of arrays that broadcast, slices, ints beside arrays only where NumPy and PyTorch agree, None and ...."""
    common = draw(st.sampled_from([(), (1,), (2,), (3,), (2, 3), (0,)]))
    parts: list[Any] = []
    dim = 0
    while dim < len(shape):
        size = shape[dim]
        kind = draw(st.sampled_from(["array", "array", "slice", "none", "ellipsis", "mask", "stop"]))
        if kind == "array" and size > 0:
            cut = draw(st.integers(0, len(common)))
            own = tuple(draw(st.sampled_from([1, n])) if n else n for n in common[cut:])
            places = draw(
                st.lists(st.integers(-size, size - 1), min_size=int(np.prod(own)), max_size=int(np.prod(own)))
            )
            parts.append(np.array(places, dtype=draw(st.sampled_from(["int32", "int64"]))).reshape(own))
            dim += 1
        elif kind == "slice":
            bound = st.none() | st.integers(-size - 1, size + 1)
            parts.append(slice(draw(bound), draw(bound), draw(st.none() | st.integers(1, 3))))
            dim += 1
        elif kind == "none" and sum(part is None for part in parts) < 3:  # of at most 8 dimensions
            parts.append(None)
        elif kind == "ellipsis":
            rest = draw(st.integers(0, len(shape) - dim))
            parts += [..., *[slice(None)] * rest]
            break
        elif kind == "mask" and not any(isinstance(p, np.ndarray) for p in parts) and common in ((), (1,)):
            rank = draw(st.integers(1, len(shape) - dim))
            flags = draw(st.lists(st.booleans(), min_size=int(np.prod(shape[dim : dim + rank])),
                                  max_size=int(np.prod(shape[dim : dim + rank]))))  # fmt: skip
            parts.append(np.array(flags, dtype=bool).reshape(shape[dim : dim + rank]))
            dim += rank
        elif kind == "stop":
            break
    return tuple(parts)


@st.composite
def arrays_and_keys(draw: Any) -> tuple[tuple[int, ...], Any]:
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=4)))
    return shape, draw(keys(shape))


@given(drawn=arrays_and_keys(), where=st.sampled_from(DEVICES), layout=st.sampled_from(LAYOUTS))
@settings(
    max_examples=400,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.large_base_example, HealthCheck.too_slow],
)
def test_any_key(drawn: tuple[tuple[int, ...], Any], where: str, layout: str) -> None:
    shape, key = drawn
    bits = some_bits(shape, "int16")
    want = bits[key]
    x = lay_out(bits, "int16", where, layout)
    got = x[given_to(key, where)]
    assert got.shape == want.shape
    assert np.array_equal(bits_of(got), want)
    new = some_bits(want.shape, "int16", 1)
    target, expected = lay_out(bits, "int16", where, layout), bits.copy()
    target[given_to(key, where)] = from_bits(new, "int16", where)
    expected[key] = new
    assert np.array_equal(bits_of(target), expected)
    target[given_to(key, where)] = 3
    expected[key] = 3
    assert np.array_equal(bits_of(target), expected)


def test_ints_are_no_arrays() -> None:
    """Where NumPy and PyTorch differ we are with PyTorch: an int drops its dimension and keeps no place for arrays."""
    x = dt.zeros(2, 3, 4)
    assert x[0, :, dt.array([0, 1, 2, 3, 0])].shape == (3, 5)
    assert np.zeros((2, 3, 4))[0, :, [0, 1, 2, 3, 0]].shape == (5, 3)


# ---------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x, i: x[i.to(dt.float32)], dt.DTypeMismatchError,
         "tensors used as indices must be int32, int64 or bool tensors (getitem: input float32, index float32)"),
        (lambda x, i: x[:, i.to(dt.uint8)], dt.DTypeMismatchError,
         "tensors used as indices must be int32, int64 or bool tensors (getitem: input float32, index[1] uint8)"),
        (lambda x, i: x.take(i.to(dt.int16)), dt.DTypeMismatchError,
         "tensors used as indices must be int32 or int64 tensors (take: input float32, index int16)"),
        (lambda x, i: x.masked_select(i), dt.DTypeMismatchError,
         "masked_select: expected a bool tensor for mask (masked_select: input float32, mask int64)"),
        (lambda x, i: x[i == 1], dt.ShapeMismatchError,
         "The size of the mask (2) at dimension 0 does not match the size of the indexed tensor (3) at dimension 0 "
         "(getitem: input (3, 4), index (2,))"),
        (lambda x, i: x[1, i == 1], dt.ShapeMismatchError,
         "The size of the mask (2) at dimension 0 does not match the size of the indexed tensor (4) at dimension 1 "
         "(getitem: input (3, 4), index[1] (2,))"),
        (lambda x, i: x[..., i == 1], dt.ShapeMismatchError,
         "The size of the mask (2) at dimension 0 does not match the size of the indexed tensor (4) at dimension 1 "
         "(getitem: input (3, 4), index[1] (2,))"),
        (lambda x, i: x[i, [0, 1, 2]], dt.ShapeMismatchError,
         "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0 "
         "(getitem: index[0] (2,), index[1] (3,))"),
        (lambda x, i: x.__setitem__(i, dt.zeros(5, device=x.device)), dt.ShapeMismatchError,
         "shape mismatch: value tensor of shape (5,) cannot be broadcast to indexing result of shape (2, 4) "
         "(setitem: input (3, 4), index (2,), value (5,))"),
        (lambda x, i: x[i, i, i], IndexError, "too many indices for array of dimension 2"),
        (lambda x, i: x["a"], IndexError, "only ints, slices (`:`), ellipsis"),
        (lambda x, i: x.index_select(0, -i).cpu(), IndexError, "index -1 is out of bounds for dimension 0 with size 3"),
    ],
)  # fmt: skip
def test_mistakes(call: Callable[..., Any], error: type[Exception], text: str, device: str) -> None:
    x, i = dt.ones(3, 4, device=device), dt.array([0, 1], device=device)
    with pytest.raises(error) as caught:
        call(x, i)
    assert str(caught.value).startswith(text)
    assert x.sum().item() == 12


def test_an_index_on_another_device(cuda: str) -> None:
    """PyTorch moves a cpu index to the device without a word; nothing moves here."""
    x, i = dt.ones(3, 4, device=cuda), dt.array([0, 1])
    with no_transfers():
        with pytest.raises(dt.DeviceMismatchError) as caught:
            x[:, i]
        assert "(getitem: input on cuda:0, index[1] on cpu)" in str(caught.value).replace(cuda, "cuda:0")
        assert caught.value.culprit is not None and caught.value.culprit.expression == "i"
        assert caught.value.fix == f'i = i.to("{cuda}")'
        with pytest.raises(dt.DeviceMismatchError, match=r"setitem: input on cuda:., index on cpu, value on cuda:."):
            x[i] = x[:2]
        with pytest.raises(dt.DeviceMismatchError, match=r"getitem: input on cpu, index on cuda:."):
            i[x[0] > 0]
    with pytest.raises(dt.HostAccessError):
        x[np.array([0, 1])]


# ---------------------------------------------------------------- what a device finds out of range


WRONG: list[Callable[[dt.DeviceArray, dt.DeviceArray], Any]] = [
    lambda x, i: x[i],
    lambda x, i: x[:, i],
    lambda x, i: x[i, i],
    lambda x, i: x.take(i * 9),
    lambda x, i: x.__setitem__(i, 7),
    lambda x, i: x.__setitem__(i, dt.ones(3, 4, device=x.device)),
    lambda x, i: dt.embedding(i, x),
    lambda x, i: x.index_add_(0, i, dt.ones(3, 4, device=x.device)),
    lambda x, i: x.scatter_add_(0, i[:, None], dt.ones(3, 4, device=x.device)),
]


@pytest.mark.parametrize("call", WRONG, ids=range(len(WRONG)))
@pytest.mark.parametrize("index", [[0, 9, 1], [-9, 0, 0], [2**40, 0, 0]])
def test_out_of_range(call: Callable[..., Any], index: list[int], device: str) -> None:
    x, i = dt.zeros(4, 4, device=device), dt.array(index, device=device)
    with no_transfers():
        if device == "cpu":
            with pytest.raises(IndexError, match="is out of bounds for dimension . with size"):
                call(x, i)
            assert x.tolist() == [[0] * 4] * 4
            return
        result = call(x, i)  # no wait
    with pytest.raises(IndexError) as caught:
        synchronize()
    wrong = index[1] if index[1] > 3 else index[0]
    assert f"index {wrong * (9 if call is WRONG[3] else 1)} is out of bounds for dimension" in str(caught.value)
    assert f"on {device}" in str(caught.value)
    assert f"test_select.py:{call.__code__.co_firstlineno}" in str(caught.value)
    synchronize()  # said once, and the device works on
    assert dt.ones(3, device=device).sum().item() == 3
    if result is not None:
        assert 0 in result.flatten().tolist()


@pytest.mark.parametrize(
    "wait",
    [
        lambda x: x.cpu(),
        lambda x: x.sum().item(),
        lambda x: dt.cuda.synchronize(x.device),
        lambda x: dt.cuda.current_stream(x.device).synchronize(),
        lambda x: x.to("cpu", non_blocking=True).tolist(),
        lambda x: repr(x),
        lambda x: x.nonzero(),
    ],
    ids=range(7),
)
def test_every_wait_tells(wait: Callable[[dt.DeviceArray], Any], cuda: str) -> None:
    with dt.cuda.device(cuda):
        y = dt.ones(3, device=cuda)[dt.array([5], device=cuda)]
        with pytest.raises(
            IndexError, match=r"index 5 is out of bounds for dimension 0 with size 3 \(getitem on cuda:"
        ):
            wait(y)
        wait(dt.ones(3, device=cuda))


def test_the_first_of_many_is_told(cuda: str) -> None:
    x = dt.ones(3, device=cuda)
    good = x[dt.array([0], device=cuda)]
    for wrong in range(10, 600):
        x[dt.full((1,), wrong, dtype=dt.int64, device=cuda)]
    with pytest.raises(IndexError, match="out of bounds|was out of bounds in an earlier operation"):
        good.cpu()
    assert good.tolist() == [1]


def test_a_bad_index_behind_good_ones_writes_the_good_ones(cuda: str) -> None:
    x = dt.zeros(4, device=cuda)
    x[dt.array([0, 7, 2, 2], device=cuda)] = dt.array([1.0, 2.0, 3.0, 4.0], device=cuda)
    with pytest.raises(IndexError):
        synchronize()
    assert x.tolist() == [1, 0, 4, 0]


# ---------------------------------------------------------------- what is waited for


def test_masks_wait_for_their_count_and_say_so(cuda: str) -> None:
    x = dt.arange(10, device=cuda)
    m = x > 4
    for call in (lambda: x[m], lambda: x.masked_select(m), lambda: m.nonzero(), lambda: dt.where(m)):
        with dt.record_transfers() as log:
            call()
        assert [(t.nbytes, str(t.source), str(t.target), t.synchronous) for t in log] == [(8, cuda, "cpu", True)]
    assert log[0].action == "where"
    with dt.forbid_transfers(), pytest.raises(dt.TransferForbiddenError):
        x[m]


def test_one_value_for_a_mask_waits_for_nothing(cuda: str) -> None:
    x = dt.arange(12, device=cuda).reshape(3, 4)
    m, column = x > 4, dt.array([True, False, True, True], device=cuda)
    one = dt.array(5, device=cuda)
    before = dt._C.counters()["synchronizations"]
    with no_transfers():
        x[m] = 7
        x[1:, column] = one
    assert dt._C.counters()["synchronizations"] == before
    want = np.arange(12).reshape(3, 4)
    want[want > 4] = 7
    want[1:, [True, False, True, True]] = 5
    assert x.tolist() == want.tolist()


def test_lists_are_transfers(cuda: str) -> None:
    x = dt.arange(10, device=cuda)
    with dt.record_transfers() as log:
        x[[1, 2, 3]]
    assert [(t.nbytes, t.action) for t in log] == [(24, "getitem")]


# ---------------------------------------------------------------- large, and on streams


def test_large_on_all_threads(device: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 1 << 30, (5000, 64))
    index = rng.integers(0, 5000, 20_000)
    a, i = dt.array(x, device=device), dt.array(index, device=device)
    assert np.array_equal(bits_of(a[i]), x[index])
    assert np.array_equal(bits_of(a.T[:, i]), x.T[:, index])
    assert np.array_equal(bits_of(dt.embedding(i, a.to(dt.float32))), bits_of(a.to(dt.float32))[index])
    flat = rng.integers(0, x.size, 300_000)
    assert np.array_equal(bits_of(a.take(dt.array(flat, device=device))), x.reshape(-1)[flat])
    order = rng.permutation(5000)
    a[dt.array(order, device=device)] = dt.array(x, device=device)
    x[order] = x.copy()
    assert np.array_equal(bits_of(a), x)


def test_the_first_bad_index_whatever_the_threads() -> None:
    i = dt.zeros(400_000, dtype=dt.int64)
    i[123_456] = 77
    i[300_000] = 99
    for n in (1, 2, 5):
        before = dt.get_num_threads()
        dt.set_num_threads(n)
        try:
            with pytest.raises(IndexError, match="index 77 is out of bounds"):
                dt.zeros(5)[i]
        finally:
            dt.set_num_threads(before)


@pytest.mark.parametrize("limit", [2**31 - 1, 100, 5])
def test_64_bit_positions(limit: int, cuda: str) -> None:
    dt._C._test.kernel_settings(index_limit=limit)
    try:
        for key in KEYS:
            bits = some_bits((2, 3, 4, 5), "float32")
            x = from_bits(bits, "float32", cuda)
            assert np.array_equal(bits_of(x[given_to(key, cuda)]), bits[key])
            new = some_bits(bits[key].shape, "float32", 1)
            x[given_to(key, cuda)] = from_bits(new, "float32", cuda)
            bits[key] = new
            assert np.array_equal(bits_of(x), bits)
        assert np.array_equal(bits_of(x.nonzero()), np.argwhere(bits_of(x)))
    finally:
        dt._C._test.kernel_settings()


def test_indices_of_another_stream_are_waited_for(cuda: str) -> None:
    with dt.cuda.device(cuda):
        x, side = dt.arange(1000, device=cuda), dt.cuda.Stream()
        with dt.cuda.stream(side):
            i = (dt.arange(1000, device=cuda) * 7) % 1000
        got = x[i]
        with dt.cuda.stream(side):
            i.zero_()
        assert got.tolist() == [7 * k % 1000 for k in range(1000)]


def test_a_pending_index_is_waited_for() -> None:
    if not CUDA_DEVICES:
        pytest.skip("no CUDA device")
    i = dt.array([2, 0], device=CUDA_DEVICES[0]).to("cpu", non_blocking=True)
    assert dt.arange(3)[i].tolist() == [2, 0]
