"""x += y and its kin: the numbers of x + y, in the array that was there."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest

import devtensor as dt

ROWS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any], str, list[Any], list[Any]]] = {
    "+=": (operator.iadd, operator.add, "float32", [1.5, -2.0, 4.0], [2.0, 0.5, 3.0]),
    "-=": (operator.isub, operator.sub, "float32", [1.5, -2.0, 4.0], [2.0, 0.5, 3.0]),
    "*=": (operator.imul, operator.mul, "float64", [1.5, -2.0, 4.0], [2.0, 0.5, 3.0]),
    "/=": (operator.itruediv, operator.truediv, "float16", [1.5, -2.0, 4.0], [2.0, 0.5, 3.0]),
    "//=": (operator.ifloordiv, operator.floordiv, "int32", [7, -7, 5], [2, 2, -3]),
    "%=": (operator.imod, operator.mod, "int32", [7, -7, 5], [2, 2, -3]),
    "**=": (operator.ipow, operator.pow, "float32", [1.5, 2.0, 4.0], [2.0, 0.5, 3.0]),
    "&=": (operator.iand, operator.and_, "int16", [12, 10, -1], [10, 3, 7]),
    "|=": (operator.ior, operator.or_, "uint8", [12, 10, 1], [10, 3, 7]),
    "^=": (operator.ixor, operator.xor, "bool", [True, True, False], [True, False, False]),
    "<<=": (operator.ilshift, operator.lshift, "int32", [1, -3, 5], [4, 1, 0]),
    ">>=": (operator.irshift, operator.rshift, "int64", [256, -3, 5], [4, 1, 0]),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("by_number", [False, True], ids=["array", "number"])
def test_an_operator_writes_into_its_left_operand(row: Any, by_number: bool, device: str) -> None:
    write, compute, dtype, left, right = row
    x = dt.tensor(left, dtype=getattr(dt, dtype), device=device)
    y = right[0] if by_number else dt.tensor(right, dtype=getattr(dt, dtype), device=device)
    before, kept, want = x, x.data_ptr(), compute(x, y)
    x = write(x, y)
    assert x is before
    assert x.data_ptr() == kept
    assert x.dtype == getattr(dt, dtype)
    assert x.tolist() == want.tolist()


@pytest.mark.parametrize("write", [operator.ilshift, operator.irshift])
def test_a_shift_by_what_is_no_number(write: Callable[[Any, Any], Any], device: str) -> None:
    x = dt.tensor([1, 2, 3], device=device)
    with pytest.raises(TypeError, match="unsupported operand"):
        write(x, "one")
    assert x.tolist() == [1, 2, 3]


def test_plus_is_the_array_itself(device: str) -> None:
    x = dt.tensor([1.0, -2.0], device=device)
    assert +x is x
