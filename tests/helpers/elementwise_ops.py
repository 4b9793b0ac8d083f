"""Every op that goes element by element, once: what it computes, in NumPy, and with which values it is tried.

A line in a table, or a function that is decorated here, gives the op its rows in `cases`, its answers in `reference`
and its right call in `operand_samples`. The kinds are those of csrc/core/elementwise.def.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from formats import DTYPES, FLOATS, INTS, Array, elementwise
from op_table import OPS, Op, op

NUMBERS = INTS + FLOATS
BITS = ("bool", *INTS)


@dataclass(frozen=True)
class Kind:
    rule: str  # of the result's dtype, see op_table
    dtypes: tuple[str, ...]


KINDS = {
    "ARITH": Kind("same", NUMBERS),
    "FLOAT": Kind("float", DTYPES),
    "ROUND": Kind("same", NUMBERS),
    "BITS": Kind("same", BITS),
    "TEST": Kind("bool", DTYPES),
    "FTEST": Kind("bool", DTYPES),
    "COMPARE": Kind("bool", DTYPES),
}


@dataclass(frozen=True)
class Tried:
    """How an op is tried. values: see `case_values`; ulps and slack: see `cases.Case`."""

    kind: str
    values: str = "signed"
    ulps: float = 0
    slack: float = 0
    numbers: bool = True  # an operand may be a Python number

    @property
    def dtypes(self) -> tuple[str, ...]:
        return KINDS[self.kind].dtypes


UNARY: dict[str, Tried] = {}
BINARY: dict[str, Tried] = {}


def enter(table: dict[str, Tried], kind: str, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        table[function.__name__.rstrip("_")] = Tried(kind, **options)
        return op(KINDS[kind].rule)(function)

    return decorate


def unary(kind: str, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return enter(UNARY, kind, **options)


def binary(kind: str, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return enter(BINARY, kind, **options)


# ---------------------------------------------------------------- one operand


def erfinv(x: float) -> float:
    """The place where math.erf crosses x, found by halving."""
    if not -1 < x < 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    low, high = 0.0, 6.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if math.erf(middle) < abs(x) else (low, middle)
    return math.copysign(high if x else 0.0, x)


FUNCTIONS: dict[str, tuple[Callable[..., Any], Tried]] = {
    "exp": (np.exp, Tried("FLOAT", ulps=4)),
    "expm1": (np.expm1, Tried("FLOAT", ulps=4)),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), Tried("FLOAT", ulps=4)),
    "tanh": (np.tanh, Tried("FLOAT", ulps=4)),
    "erf": (np.vectorize(math.erf, otypes=[np.float64]), Tried("FLOAT", ulps=4)),
    "erfc": (np.vectorize(math.erfc, otypes=[np.float64]), Tried("FLOAT", ulps=8)),
    "sin": (np.sin, Tried("FLOAT", ulps=4)),
    "cos": (np.cos, Tried("FLOAT", ulps=4)),
    "tan": (np.tan, Tried("FLOAT", ulps=4)),
    "asin": (np.arcsin, Tried("FLOAT", "unit", 4)),
    "acos": (np.arccos, Tried("FLOAT", "unit", 4)),
    "atan": (np.arctan, Tried("FLOAT", ulps=4)),
    "sinh": (np.sinh, Tried("FLOAT", ulps=4)),
    "cosh": (np.cosh, Tried("FLOAT", ulps=4)),
    "asinh": (np.arcsinh, Tried("FLOAT", ulps=4)),
    "acosh": (np.arccosh, Tried("FLOAT", "positive", 4)),
    "atanh": (np.arctanh, Tried("FLOAT", "unit", 4)),
    "erfinv": (np.vectorize(erfinv, otypes=[np.float64]), Tried("FLOAT", "unit", 8)),
    "silu": (lambda x: x / (1 + np.exp(-x)), Tried("FLOAT", ulps=4)),
    "hardswish": (lambda x: np.where(x > 3, x, x * np.clip(x + 3, 0, 6) / 6), Tried("FLOAT", ulps=4)),
    "log": (np.log, Tried("FLOAT", "positive", 4)),
    "log1p": (np.log1p, Tried("FLOAT", "unit", 4)),
    "log2": (np.log2, Tried("FLOAT", "positive", 4)),
    "log10": (np.log10, Tried("FLOAT", "positive", 4)),
    "sqrt": (np.sqrt, Tried("FLOAT", "positive")),
    "rsqrt": (lambda x: 1 / np.sqrt(x), Tried("FLOAT", "positive", 4)),
    "reciprocal": (lambda x: 1 / x, Tried("FLOAT", "positive")),
    "floor": (np.floor, Tried("ROUND")),
    "ceil": (np.ceil, Tried("ROUND")),
    "round": (np.rint, Tried("ROUND")),
    "trunc": (np.trunc, Tried("ROUND")),
    "isnan": (np.isnan, Tried("FTEST")),
    "isinf": (np.isinf, Tried("FTEST")),
    "isfinite": (np.isfinite, Tried("FTEST")),
    "logical_not": (lambda x: x == 0, Tried("TEST")),
    "bitwise_not": (lambda x: elementwise(lambda v: ~v, x), Tried("BITS")),
    "neg": (lambda x: -x, Tried("ARITH")),
    "abs": (np.abs, Tried("ARITH")),
    "sign": (lambda x: (x > 0).astype(int) - (x < 0).astype(int), Tried("ARITH")),
    "square": (lambda x: x * x, Tried("ARITH")),
    "relu": (lambda x: np.where(x <= 0, 0, x), Tried("ARITH")),
    "relu6": (lambda x: np.where(x <= 0, 0, np.where(x >= 6, 6, x)), Tried("ARITH")),
}


def answer(function: Callable[..., Any], kind: str) -> Callable[[Array], Any]:
    """function for the wide arrays that hold ints as Python's."""
    if kind == "ROUND":
        return lambda x: x if x.dtype == object else function(x)
    return (lambda x: function(x.astype(np.float64))) if kind == "FTEST" else function


for _name, (_function, _tried) in FUNCTIONS.items():
    UNARY[_name] = _tried
    OPS[_name] = Op(answer(_function, _tried.kind), KINDS[_tried.kind].rule)


@unary("FLOAT", ulps=4)
def leaky_relu(x: Array, negative_slope: float = 0.01) -> Array:
    return np.where(x > 0, x, x * negative_slope)


@unary("FLOAT", ulps=4, slack=1.0)
def elu(x: Array, alpha: float = 1.0) -> Array:
    return np.where(x > 0, x, alpha * np.expm1(x))


@unary("FLOAT", ulps=4, slack=8.0)
def gelu(x: Array, approximate: str = "none") -> Array:
    if approximate == "tanh":
        return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x / 2 * (1 + OPS["erf"].function(x * math.sqrt(0.5)))


@unary("FLOAT", ulps=4)
def softplus(x: Array, beta: float = 1.0, threshold: float = 20.0) -> Array:
    return np.where(x * beta > threshold, x, np.log1p(np.exp(x * beta)) / beta)


@unary("ARITH")
def hardtanh(x: Array, min_val: float = -1, max_val: float = 1) -> Array:
    return np.where(x < min_val, min_val, np.where(x > max_val, max_val, x))


# ---------------------------------------------------------------- two operands


@binary("ARITH")
def add(a: Array, b: Array, alpha: float = 1) -> Array:
    return a + b * alpha


@binary("ARITH")
def sub(a: Array, b: Array, alpha: float = 1) -> Array:
    return a - b * alpha


@binary("ARITH")
def mul(a: Array, b: Array) -> Array:
    return a * b


def is_int(*values: Any) -> bool:
    return all(np.asarray(v).dtype.kind in "Obi" for v in values)


@binary("ARITH", ulps=1)
def floor_divide(a: Array, b: Array) -> Array:
    if is_int(a, b):
        return elementwise(lambda v, w: v // w if w else 0, a, b)
    return np.floor_divide(a, b)


@binary("ARITH", ulps=1)
def remainder(a: Array, b: Array) -> Array:
    if is_int(a, b):
        return elementwise(lambda v, w: v % w if w else 0, a, b)
    return np.remainder(a, b)


@binary("ARITH")
def fmod(a: Array, b: Array) -> Array:
    if is_int(a, b):
        return elementwise(lambda v, w: (abs(v) % abs(w) * (1 if v > 0 else -1)) if w else 0, a, b)
    return np.fmod(a, b)


@binary("FLOAT", ulps=4, numbers=False)
def atan2(a: Array, b: Array) -> Array:
    return np.arctan2(a, b)


@binary("FLOAT", ulps=4, numbers=False)
def hypot(a: Array, b: Array) -> Array:
    return np.hypot(a, b)


@binary("FLOAT", ulps=4, slack=4.0, numbers=False)
def logaddexp(a: Array, b: Array) -> Array:
    return np.logaddexp(a, b)


@binary("ARITH", numbers=False)
def maximum(a: Array, b: Array) -> Array:
    return np.maximum(a, b)


@binary("ARITH", numbers=False)
def minimum(a: Array, b: Array) -> Array:
    return np.minimum(a, b)


@binary("FLOAT")
def div(a: Array, b: Array, rounding_mode: str | None = None) -> Array:
    return np.true_divide(a, b)


for _name, _function in {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "logical_and": lambda a, b: (a != 0) & (b != 0),
    "logical_or": lambda a, b: (a != 0) | (b != 0),
    "logical_xor": lambda a, b: (a != 0) ^ (b != 0),
}.items():
    BINARY[_name] = Tried("COMPARE")
    OPS[_name] = Op(lambda a, b, f=_function: f(np.asarray(a), np.asarray(b)), "bool")

for _name, _function in {
    "bitwise_and": lambda v, w: v & w,
    "bitwise_or": lambda v, w: v | w,
    "bitwise_xor": lambda v, w: v ^ w,
}.items():
    BINARY[_name] = Tried("BITS")
    OPS[_name] = Op(lambda a, b, f=_function: elementwise(f, a, b), "same")

# ---------------------------------------------------------------- those with rows of their own in `cases`


@op("same")
def pow_(a: Array, b: Array) -> Array:
    if is_int(a, b):
        return elementwise(lambda v, w: v**w if w >= 0 else math.trunc(v**w) if v else 0, a, b)
    return np.power(a, b)


@op("same")
def clamp(x: Array, min: float | None = None, max: float | None = None) -> Array:
    if min is not None:
        x = np.where(x < min, min, x)
    return x if max is None else np.where(x > max, max, x)


@op("same")
def where(condition: Array, a: Array, b: Array) -> Array:
    return np.where(condition.astype(bool), a, b)


@op("float")
def lerp(a: Array, b: Array, weight: Array | float) -> Array:
    return a + weight * (b - a)
