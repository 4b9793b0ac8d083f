"""Arrays and numbers of NumPy in a checkpoint: rebuilt from their bytes, with dtypes of numbers alone."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from devtensor._checkpoints.pickle_reader import Unfinished, shown

_FORM = re.compile(r"[<>|=]?[biufc?][0-9]{0,2}")
_ORDERS = ("<", ">", "|", "=")


class DtypeState(Unfinished):
    """A dtype of NumPy before the state that a pickle gives it."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form

    def finished(self, state: Any) -> np.dtype[Any]:
        if type(state) is not tuple or len(state) < 5 or not _is_order(state[1]) or state[2:5] != (None, None, None):
            raise ValueError("its pickle has a dtype of NumPy that is none of numbers")
        return np.dtype(self.form).newbyteorder(state[1])


def _is_order(value: Any) -> bool:
    return type(value) is str and value in _ORDERS


class ArrayState(Unfinished):
    """An array of NumPy before the state that a pickle gives it."""

    def finished(self, state: Any) -> np.ndarray[Any, Any]:
        if type(state) is not tuple or len(state) != 5 or not isinstance(state[2], np.dtype):
            raise ValueError("its pickle has an array of NumPy whose state is none")
        _, shape, dtype, fortran, data = state
        if type(data) is not bytes:
            raise ValueError("its pickle has an array of NumPy without bytes")
        return _array(shape, dtype, data, "F" if fortran is True else "C")


def _array(shape: Any, dtype: Any, data: Any, order: Any) -> np.ndarray[Any, Any]:
    right = type(shape) is tuple and len(shape) <= 32 and all(type(n) is int and 0 <= n < 2**62 for n in shape)
    if not right or math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError("its pickle has an array of NumPy whose bytes do not make its shape")
    return np.frombuffer(bytearray(data), dtype).reshape(shape, order=order)


def _dtype(form: Any, *how: Any) -> DtypeState:
    if type(form) is not str or not _FORM.fullmatch(form):
        raise ValueError(f"its pickle has a dtype of NumPy that is none of numbers: {shown(form)}")
    try:
        np.dtype(form)
    except TypeError as error:
        raise ValueError(str(error)) from None
    return DtypeState(form)


def _reconstruct(kind: Any, shape: Any, code: Any) -> ArrayState:
    return ArrayState()


def _scalar(dtype: Any, data: Any) -> Any:
    if not isinstance(dtype, np.dtype) or type(data) is not bytes or len(data) != dtype.itemsize:
        raise ValueError("its pickle has a number of NumPy whose bytes do not make it")
    return np.frombuffer(data, dtype)[0]


def _frombuffer(data: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray[Any, Any]:
    if type(data) not in (bytes, bytearray) or not isinstance(dtype, np.dtype) or order not in ("C", "F"):
        raise ValueError("its pickle has an array of NumPy in a way that load() does not know")
    return _array(shape, dtype, data, order)


def _no_array(*given: Any) -> Any:
    raise ValueError("its pickle makes an array of NumPy without bytes")


CALLED = {"numpy.dtype": _dtype, "numpy.ndarray": _no_array}
for _core in ("numpy.core", "numpy._core"):
    CALLED |= {
        f"{_core}.multiarray._reconstruct": _reconstruct,
        f"{_core}.multiarray.scalar": _scalar,
        f"{_core}.numeric._frombuffer": _frombuffer,
    }
