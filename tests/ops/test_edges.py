"""What PyTorch answers at the edges, written down: values, dtypes and shapes that are easily got wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from formats import DTYPES, FLOATS, INTS

import devtensor as dt


def make(values: Any, dtype: str, device: str) -> dt.DeviceArray:
    return dt.tensor(values, dtype=getattr(dt, dtype), device=device)


CLOSE: list[tuple[str, Any, Any, dict[str, Any], list[bool]]] = [
    ("int8", [-128, 100, 5], [127, -100, 5], {}, [False, False, True]),
    ("int8", [-128, 127], [100, -128], {"atol": 30}, [False, False]),
    ("uint8", [5, 1, 6, 5, 6], [4, 2, 5, 5, 9], {"rtol": 0.5, "atol": 0.01}, [True] * 5),
    ("uint8", [1, 0], [0, 255], {"atol": 1}, [True, False]),
    ("int64", [10, 10, 10], [11, 12, 10], {"rtol": 0.1}, [True, False, True]),
    ("int16", [30000, -30000], [-30000, 30000], {"atol": 6000}, [False, False]),
    ("int32", [1, 2], [2, 2], {"rtol": 0, "atol": 0}, [False, True]),
    ("bool", [True, True, False], [False, True, True], {"atol": 1}, [True, True, True]),
    ("bool", [True, False], [False, True], {}, [False, False]),
    ("float16", [1.0, 2.0], [1.5, 2.0], {"atol": 0.5}, [True, True]),
]


@pytest.mark.parametrize(("dtype", "input", "other", "options", "want"), CLOSE)
def test_isclose(dtype: str, input: Any, other: Any, options: dict[str, Any], want: list[bool], device: str) -> None:
    """Distances of integers neither wrap nor round."""
    a, b = make(input, dtype, device), make(other, dtype, device)
    assert dt.isclose(a, b, **options).tolist() == want
    assert dt.allclose(a, b, **options) is all(want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", ["any", "all"])
@pytest.mark.parametrize("options", [{}, {"dim": 0}, {"dim": 1, "keepdim": True}, {"dim": (0, 1)}], ids=str)
@pytest.mark.parametrize("shape", [(2, 3), (2, 0), (0, 0)])
def test_any_and_all_of_uint8_are_uint8(dtype: str, op: str, options: Any, shape: Any, device: str) -> None:
    x = dt.full(shape, 2, device=device).to(getattr(dt, dtype))
    found = getattr(dt, op)(x, **options)
    assert found.dtype is (dt.uint8 if dtype == "uint8" else dt.bool)
    flat = found.flatten().tolist()
    assert {int(v) for v in flat} <= {0, 1}
    assert flat == getattr(dt, op)(x.to(dt.bool), **options).flatten().tolist()


@pytest.mark.parametrize("op", ["any", "all"])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "float32"])
def test_any_and_all_over_no_dimension(op: str, keepdim: bool, shape: tuple[int, ...], dtype: str, device: str) -> None:
    """Each element by itself, as in NumPy and PyTorch; over the empty list sum and the like take all dimensions."""
    values = (np.arange(np.prod(shape, dtype=int)) % 3).reshape(shape).astype(dtype)
    x = dt.from_numpy(values).to(device)
    got = getattr(dt, op)(x, (), keepdim)
    assert got.shape == shape and got.tolist() == getattr(np, op)(values, axis=()).tolist()
    assert dt.sum(x, (), keepdim).numel() == 1


@pytest.mark.parametrize("device_dtype", ["float32", "bool", "int64"])
def test_gather_of_no_and_one_dimension(device_dtype: str, device: str) -> None:
    x, index = make(1, device_dtype, device), dt.tensor([0, 0, 0], device=device)
    assert dt.gather(x, 0, index).tolist() == [1, 1, 1]
    assert dt.gather(x, -1, index[0]).tolist() == 1
    one = dt.gather(make([0, 1], device_dtype, device), 0, dt.tensor(1, device=device))
    assert (one.shape, one.item()) == ((), 1)
    with pytest.raises(dt.ShapeMismatchError, match="Expected index to be 0D to 1D"):
        dt.gather(x, 0, index.reshape(1, 3))


def test_a_sequence_of_one_is_both(device: str) -> None:
    x, w = dt.ones(1, 2, 7, 7, device=device), dt.ones(3, 2, 3, 3, device=device)
    for options in ({"stride": 2}, {"padding": 1}, {"dilation": 2}):
        ((name, value),) = options.items()
        assert dt.equal(dt.conv2d(x, w, **{name: (value,)}), dt.conv2d(x, w, **{name: (value, value)}))
    assert dt.equal(dt.avg_pool2d(x, [3], (2,), [1]), dt.avg_pool2d(x, 3, 2, 1))
    assert dt.equal(dt.max_pool2d(x, (3,), [2], (1,), [1]), dt.max_pool2d(x, 3, 2, 1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["normal_", "uniform_"])
def test_draws_in_place_are_floats(name: str, dtype: str, device: str) -> None:
    x = dt.ones(4, dtype=getattr(dt, dtype), device=device)
    if dtype in FLOATS:
        assert getattr(x, name)() is x
        return
    with pytest.raises(dt.DTypeMismatchError, match=f"\"{name}\" not implemented for '{dtype}'"):
        getattr(x, name)()
    assert x.tolist() == [1] * 4


def test_draws_in_place_refuse_what_they_cannot_draw(device: str) -> None:
    x = dt.ones(2, device=device)
    with pytest.raises(RuntimeError, match="normal_ expects std >= 0.0, but found std -1"):
        x.normal_(0, -1)
    with pytest.raises(RuntimeError, match="but found from=2 > to=1"):
        x.uniform_(2, 1)
    assert x.tolist() == [1, 1]
    assert x.normal_(3, 0).tolist() == [3, 3]
    assert x.uniform_(2, 2).tolist() == [2, 2]


@pytest.mark.parametrize("dtype", INTS)
def test_the_largest_distance(dtype: str, device: str) -> None:
    low, high = (-(2**7), 2**7 - 1) if dtype == "int8" else (0, 100)
    a, b = make([low, high], dtype, device), make([high, low], dtype, device)
    assert dt.isclose(a, b, rtol=0, atol=float(high - low)).tolist() == [True, True]
    assert dt.isclose(a, b, rtol=0, atol=float(high - low) - 1).tolist() == [False, False]


def test_cat_does_not_blame_what_it_passes_over(device: str) -> None:
    parts = [dt.zeros(shape, device=device) for shape in ((2, 3), (3, 3), (0,))]
    with pytest.raises(dt.ShapeMismatchError) as caught:
        dt.cat(parts, 1)
    assert caught.value.culprit.name == "tensors[1]"


def test_hardtanh_refuses_a_bool_before_its_limits(device: str) -> None:
    with pytest.raises(dt.DTypeMismatchError):
        dt.hardtanh(dt.tensor([True], device=device), 2, 1)


@pytest.mark.parametrize("limits", [(float("nan"), 1.0), (-1.0, float("nan"))])
def test_hardtanh_refuses_limits_that_limit_nothing(limits: tuple[float, float], device: str) -> None:
    with pytest.raises(ValueError, match="min_val and max_val cannot be NaN"):
        dt.hardtanh(dt.ones(2, device=device), *limits)


@pytest.mark.parametrize(("dtype", "value"), [("uint8", 300), ("uint8", -1), ("int8", -129), ("int32", 2**40 + 5)])
def test_where_wraps_no_number(dtype: str, value: int, device: str) -> None:
    x = make([1, 2], dtype, device)
    with pytest.raises(RuntimeError, match=f"cannot be converted to type {dtype} without overflow: {value} "):
        dt.where(x > 1, x, value)
    with pytest.raises(RuntimeError, match=f"cannot be converted to type {dtype} without overflow: {value} "):
        dt.where(x > 1, value, x)


def test_sizes_stand_under_each_other_whatever_the_names(device: str) -> None:
    condition, x, y = (dt.ones(n, device=device) for n in (2, 2, 3))
    with pytest.raises(dt.ShapeMismatchError) as caught:
        dt.where(condition > 0, x, y)
    (note,) = [note for note in caught.value.__notes__ if "aligned" in note]
    rows = [line for line in note[note.index("aligned") :].splitlines()[1:] if line.split()[-1:] in (["2"], ["3"])]
    assert len(rows) == 3 and len({len(row) for row in rows}) == 1


def test_outer_promotes_as_a_multiplication_does(device: str) -> None:
    steps, scale = dt.arange(3, device=device), dt.rand(4, device=device).requires_grad_()
    result = dt.outer(steps, scale)
    assert result.dtype is dt.float32 and result.tolist() == (steps.unsqueeze(1) * scale).tolist()
    result.sum().backward()
    assert scale.grad is not None and scale.grad.tolist() == [3.0] * 4
