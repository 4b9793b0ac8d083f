"""Dtypes, their limits, and the one cast rule, in plain NumPy.

Arrays here are "wide": float64 for floats, objects (Python's unbounded int) for integers and bool. "Bits" are stored
elements: NumPy's own dtype, uint16 for bfloat16, 0 or 1 for bool.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

INTS = ("uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
DTYPES = ("bool", *INTS, *FLOATS)
ITEMSIZE = dict(zip(DTYPES, (1, 1, 1, 2, 4, 8, 2, 2, 4, 8), strict=True))
# NumPy's dtype with the same bytes; bfloat16 has none of its own.
STORAGE = {name: np.dtype(name) for name in DTYPES if name != "bfloat16"} | {"bfloat16": np.dtype("uint16")}
RANGE = {name: (int(np.iinfo(name).min), int(np.iinfo(name).max)) for name in INTS} | {"bool": (0, 1)}


@dataclass(frozen=True)
class Format:
    """A binary floating-point format: bits of precision, least and largest exponent."""

    precision: int
    emin: int
    emax: int

    @property
    def eps(self) -> float:
        return math.ldexp(1.0, 1 - self.precision)

    @property
    def largest(self) -> float:
        return math.ldexp(2.0 - self.eps, self.emax)

    @property
    def smallest(self) -> float:
        return math.ldexp(1.0, self.emin - self.precision + 1)


FORMATS = {
    "float16": Format(11, -14, 15),
    "bfloat16": Format(8, -126, 127),
    "float32": Format(24, -126, 127),
    "float64": Format(53, -1022, 1023),
}

# ---------------------------------------------------------------- dtypes


def category(dtype: str) -> int:
    return 0 if dtype == "bool" else 1 if dtype in INTS else 2


def promote(a: str, b: str) -> str:
    """PyTorch's lattice."""
    if a == b:
        return a
    if category(a) != category(b):
        return max(a, b, key=category)
    if category(a) == 2:
        return "float32" if {a, b} == {"float16", "bfloat16"} else max(a, b, key=FLOATS.index)
    if {a, b} == {"uint8", "int8"}:
        return "int16"
    return max(a, b, key=INTS.index)


def promote_scalar(dtype: str, scalar: complex) -> str:
    """A Python number decides only when it is of a higher category than the array."""
    kind = {bool: "bool", int: "int64", float: "float32"}[type(scalar)]
    return kind if category(kind) > category(dtype) else dtype


# ---------------------------------------------------------------- rounding and casts


def round_float(x: Array, dtype: str) -> Array:
    """float64 to the nearest value of a narrower format, ties to even, still as float64."""
    x = np.asarray(x, dtype=np.float64)
    if dtype == "float64":
        return x
    form = FORMATS[dtype]
    finite = np.where(np.isfinite(x), x, 0.0)
    exponent = np.maximum(np.frexp(finite)[1] - 1, form.emin) - form.precision + 1
    with np.errstate(over="ignore"):
        nearest = np.ldexp(np.rint(np.ldexp(finite, -exponent)), exponent)
    nearest = np.where(np.abs(nearest) > form.largest, np.copysign(np.inf, nearest), nearest)
    return np.where(np.isfinite(x), nearest, x)


def round_int(n: int, precision: int) -> int:
    """An integer to the nearest one of so many significant bits, ties to even."""
    shift = abs(n).bit_length() - precision
    if shift <= 0:
        return n
    low = abs(n) & ((1 << shift) - 1)
    high = abs(n) >> shift
    half = 1 << (shift - 1)
    high += low > half or (low == half and high & 1)
    return (high << shift) * (1 if n > 0 else -1)


def wrap(n: int, dtype: str) -> int:
    low, high = RANGE[dtype]
    return (n - low) % (high - low + 1) + low


def saturate(x: float, dtype: str) -> int:
    low, high = RANGE[dtype]
    if math.isnan(x):
        return 0
    if math.isinf(x):
        return high if x > 0 else low
    return min(max(math.trunc(x), low), high)


def round_to(x: Array, dtype: str) -> Array:
    """A wide array to the values of dtype, still wide: the cast rule."""
    x = np.asarray(x)
    source_is_int = x.dtype == object or x.dtype.kind in "bui"
    if dtype == "bool":
        return elementwise(lambda v: int(v != 0), x)
    if dtype in INTS:
        if source_is_int:
            return elementwise(lambda v: wrap(int(v), dtype), x)
        return elementwise(lambda v: saturate(float(v), dtype), x)
    if source_is_int:
        exact = elementwise(lambda v: round_int(int(v), FORMATS[dtype].precision), x)
        return round_float(exact.astype(np.float64), dtype)
    return round_float(x, dtype)


def elementwise(f: Callable[..., object], *arrays: Array) -> Array:
    """Python's function on every element, giving objects."""
    return np.asarray(np.frompyfunc(f, len(arrays), 1)(*arrays), dtype=object)


def bits_to_wide(bits: Array, dtype: str) -> Array:
    """Stored elements (STORAGE, bool as 0 or 1) to a wide array."""
    if dtype == "bfloat16":
        bits = np.left_shift(bits, 16, dtype=np.uint32)  # NumPy 1 would widen a 0-d array
        bits = np.asarray(bits).view(np.float32)
    if dtype in FLOATS:
        with np.errstate(invalid="ignore"):  # signalling NaNs
            return np.where(np.isnan(bits), np.nan, bits.astype(np.float64))
    return bits.astype(object)


def wide_to_bits(x: Array, dtype: str) -> Array:
    """Values that dtype can hold to stored elements; NaN is the positive quiet one."""
    if dtype not in FLOATS:
        return np.asarray(x).astype(STORAGE[dtype])
    x = np.asarray(x, dtype=np.float64)
    x = np.where(np.isnan(x), np.nan, x)
    if dtype == "bfloat16":
        return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return x.astype(STORAGE[dtype])


def cast(bits: Array, source: str, target: str) -> Array:
    """Stored elements of one dtype to those of another; the same dtype keeps its bits."""
    if source == target:
        return bits.copy()
    return wide_to_bits(round_to(bits_to_wide(bits, source), target), target)
