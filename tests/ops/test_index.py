"""Basic indexing and assignment; what is not basic says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import no_transfers

import devtensor as dt


@pytest.fixture
def x(device: str) -> dt.DeviceArray:
    return dt.arange(24, dtype=dt.float32, device=device).reshape(2, 3, 4)


VALUES = np.arange(24.0).reshape(2, 3, 4)
INDICES: list[Any] = [
    0,
    -1,
    (1, 2),
    (1, 2, 3),
    slice(None),
    slice(1, None),
    slice(-1, None),
    slice(5, 9),
    slice(2, 1),
    slice(None, None, 2),
    (slice(None), 1),
    (..., 0),
    (0, ...),
    (slice(None), slice(1, 3), slice(None, None, 3)),
    None,
    (None, 0, None),
    (..., None),
    (0, None, ..., slice(1, 2)),
    (),
    ...,
    np.int64(1),
    (np.int32(-1), slice(None)),
]


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_get(x: dt.DeviceArray, index: Any) -> None:
    with no_transfers():
        got = x[index]
    assert got.tolist() == VALUES[index].tolist()


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_set(x: dt.DeviceArray, index: Any) -> None:
    values = VALUES.copy()
    with no_transfers():
        x[index] = 50
    values[index] = 50
    assert x.tolist() == values.tolist()


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_set_from_an_array(x: dt.DeviceArray, device: str, index: Any) -> None:
    values = VALUES.copy()
    shape = values[index].shape
    new = np.arange(np.prod(shape, dtype=int)).reshape(shape) * 10
    with no_transfers():
        x[index] = dt.arange(new.size, device=device, dtype=dt.float32).reshape(shape) * 10
    values[index] = new
    assert x.tolist() == values.tolist()


def test_set_broadcasts_and_casts(x: dt.DeviceArray, device: str) -> None:
    x[0] = dt.array([1, 2, 3, 4], device=device)
    assert x[0].tolist() == [[1, 2, 3, 4]] * 3
    x[1, :, :1] = dt.full((3, 1), 2.5, dtype=dt.float64, device=device)
    assert x[1, :, 0].tolist() == [2.5] * 3
    n = dt.zeros(3, dtype=dt.int8, device=device)
    n[1] = 2.9
    n[2] = True
    assert n.tolist() == [0, 2, 1]
    with pytest.raises(dt.ShapeMismatchError):
        x[0] = dt.zeros(5, device=device)


# Each writes what torch writes: leading sizes of 1 of a value count for nothing. x (2, 4) of zeros, v(*sizes) of ones.
LEADING = """x[0] = v(1, 4); x[m] = v(1, 1, 4); x[i] = v(1, 2, 4); x[m] = v(1, 1); x[...] = v(1, 2, 4); x[0, 0] = v(1)
x[0, 0] = v(1, 1); x[m, :] = v(1, 1, 4); x[i, i] = v(1, 2); x[:] = v(1, 1, 1, 1); x[0][1] = v(1, 1); x[0:1] = v(1, 4)
x[:, 0] = v(1, 1, 2); x[x > 9] = v(1, 0)""".replace("\n", ";").split(";")


@pytest.mark.parametrize("text", LEADING)
@pytest.mark.parametrize("wants", [False, True])
def test_leading_sizes_of_one_count_for_nothing(text: str, wants: bool, device: str) -> None:
    values: list[dt.DeviceArray] = []

    def v(*sizes: int) -> dt.DeviceArray:
        values.append(dt.ones(*sizes, device=device, requires_grad=wants))
        return values[-1]

    x, m, i = dt.zeros(2, 4, device=device), dt.tensor([True, False], device=device), dt.tensor([0, 1], device=device)
    exec(text.strip(), {"x": x, "v": v, "m": m, "i": i})
    count = int(x.detach().sum())
    assert count == int((x.detach() == 1).sum()) and (count > 0 or values[0].numel() == 0)
    if wants:
        x.sum().backward()
        assert values[0].grad is not None and values[0].grad.shape == values[0].shape
        assert int(values[0].grad.sum()) == count


@pytest.mark.parametrize("text", ["x[0] = v(1, 3)", "x[0] = v(2, 4)", "x[m] = v(1, 3, 4)", "x[0, 0] = v(1, 2)"])
def test_other_sizes_do(text: str, device: str) -> None:
    x, m = dt.zeros(2, 4, device=device), dt.tensor([True, False], device=device)
    with pytest.raises(dt.ShapeMismatchError):
        exec(text, {"x": x, "v": lambda *sizes: dt.ones(*sizes, device=device), "m": m})
    assert not x.any()


def test_augmented_assignment(x: dt.DeviceArray) -> None:
    address = x.data_ptr()
    x[0, 1:] += 100
    x[..., 0] *= 0
    values = VALUES.copy()
    values[0, 1:] += 100
    values[..., 0] *= 0
    assert x.tolist() == values.tolist()
    assert x.data_ptr() == address


def test_overlapping_assignment(device: str) -> None:
    x = dt.arange(6, device=device)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("index", "error"),
    [
        (2, IndexError),
        (-3, IndexError),
        ((0, 3), IndexError),
        ((0, 0, 0, 0), IndexError),
        ((..., ...), IndexError),
        (slice(None, None, -1), ValueError),
        (slice(None, None, 0), ValueError),
        (slice("a", None), TypeError),
        ("a", (TypeError, IndexError)),
        (1.0, (TypeError, IndexError)),
        (2**70, IndexError),
    ],
    ids=repr,
)
def test_bad_indices(x: dt.DeviceArray, index: Any, error: Any) -> None:
    with pytest.raises(error):
        x[index]
    with pytest.raises(error):
        x[index] = 0
    assert x.tolist() == VALUES.tolist()


def test_indexing_a_0d_array(device: str) -> None:
    x = dt.array(5.0, device=device)
    assert x[()].item() == 5
    assert x[...].item() == 5
    assert x[None].tolist() == [5]
    with pytest.raises(IndexError):
        x[0]
    x[...] = 6
    assert x.item() == 6


def test_deleting_is_refused(x: dt.DeviceArray) -> None:
    with pytest.raises((TypeError, RuntimeError)):
        del x[0]


def test_assignment_across_devices_is_refused(cuda: str) -> None:
    x = dt.zeros((2, 3), device=cuda)
    with pytest.raises(dt.DeviceMismatchError, match="setitem: input on cuda:., value on cpu"):
        x[0] = dt.ones(3)
    y = dt.zeros((2, 3))
    with pytest.raises(dt.DeviceMismatchError, match="setitem: input on cpu, value on cuda"):
        y[0] = dt.array(1.0, device=cuda)
    with pytest.raises(dt.HostAccessError):
        y[0] = np.ones(3)
    assert x.sum().item() == y.sum().item() == 0
