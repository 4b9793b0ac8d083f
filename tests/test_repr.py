"""What arrays look like: the frameworks' style, with device and dtype where they are not default."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest

import devtensor as dt

inf, nan = math.inf, math.nan

ROWS: list[tuple[Any, str, str]] = [
    ([1.0, 2.0], "float32", "array([1., 2.]{})"),
    ([1, 2], "int64", "array([1, 2]{})"),
    ([True, False], "bool", "array([ True, False]{})"),
    ([1.5, -2.25], "float32", "array([ 1.5000, -2.2500]{})"),
    ([], "float32", "array([]{})"),
    (2.5, "float32", "array(2.5000{})"),
    (3, "int64", "array(3{})"),
    ([[1, 2], [3, 4]], "int64", "array([[1, 2],\n       [3, 4]]{})"),
    ([nan, inf, -inf], "float32", "array([ nan,  inf, -inf]{})"),
]


@pytest.mark.parametrize(("values", "dtype", "want"), ROWS)
def test_repr(values: Any, dtype: str, want: str, device: str) -> None:
    x = dt.array(values, dtype=getattr(dt, dtype), device=device)
    where = "" if device == "cpu" else f", device='{device}'"
    assert repr(x) == str(x) == want.format(where)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int32", "uint8", "int8"])
def test_dtypes_that_are_not_default_are_shown(dtype: str, device: str) -> None:
    text = repr(dt.ones(2, dtype=getattr(dt, dtype), device=device))
    assert text.endswith(f"dtype=devtensor.{dtype})")
    assert ("device='cuda" in text) == (device != "cpu")


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_default_dtypes_are_not(dtype: str) -> None:
    assert "dtype" not in repr(dt.ones(2, dtype=getattr(dt, dtype)))


def test_large_arrays_are_shortened(device: str) -> None:
    text = repr(dt.zeros((1000, 1000), device=device))
    assert len(text) < 1200
    assert "..." in text
    assert len(repr(dt.zeros(10_001, device=device))) < 200


def test_a_shortened_array_moves_few_bytes(cuda: str) -> None:
    x = dt.zeros((1000, 1000), device=cuda)
    before = dt._C.counters()["bytes_to_host"]
    repr(x)
    assert dt._C.counters()["bytes_to_host"] - before < 2000


def test_empty_shapes_are_shown() -> None:
    assert "size=(0, 3)" in repr(dt.zeros((0, 3)))


def test_views_show_their_own_values(device: str) -> None:
    x = dt.arange(6, device=device).reshape(2, 3)
    assert repr(x.T[1:]).startswith("array([[1, 4],\n       [2, 5]]")
    assert repr(x[:1].expand(2, 3)).startswith("array([[0, 1, 2],\n       [0, 1, 2]]")


def test_extreme_values() -> None:
    assert "1.0000e+10" in repr(dt.array([1e10, 1.0]))
    assert "1.0000e-10" in repr(dt.array([1e-10]))
    assert repr(dt.array([2**62])) == f"array([{2**62}])"
    assert repr(dt.array([-0.0])) == "array([-0.])"


def test_html(device: str) -> None:
    """Values, shape, dtype, device, and the line that made it."""
    x = dt.array([1.0, 2.0], device=device)
    line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
    place = "" if device == "cpu" else f", device=&#x27;{device}&#x27;"
    html = x._repr_html_()
    begin = '<pre style="font-family:var(--jp-code-font-family,monospace)">'
    begin += f"array([1., 2.]{place})</pre><small>(2,) float32 on {device}, created by array at "
    assert html.startswith(begin) and html.endswith(f"test_repr.py:{line}</small>")
    assert "result of mul at " in (x * 2)._repr_html_()
    moved = x.cpu().to(device, copy=True)._repr_html_()
    assert device == "cpu" or f"moved by .to(&quot;{device}&quot;) at " in moved


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "float16"])
def test_values_read_back(dtype: str) -> None:
    values = np.array([1, 0, 1, 1]).astype(dtype)
    text = repr(dt.array(values)).partition("(")[2].rpartition("]")[0] + "]"
    assert eval(text) == values.tolist()
