"""Functions of the standard that go over elements."""

from __future__ import annotations

import builtins

import devtensor as dt
from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import need_array
from devtensor.array_api._operands import Binary, Number, Unary, binary, one_dtype, pair, unary

_X = "xp.asarray([-1.5, 0.5])"
_Y = "xp.asarray([2.0, -1.0])"
_K = "xp.asarray([1, 2])"
_M = "xp.asarray([True, False])"


def _show(call: str, result: str) -> str:
    return f"{call}.tolist()\n    {result}"


def _sign(x: DeviceArray) -> DeviceArray:
    """dt.sign, which gives 0 for NaN as PyTorch does, and the standard wants NaN."""
    return _C.where(x != x, x, _C.sign(x)) if x.dtype.is_floating_point else _C.sign(x)


abs: Unary = unary("abs", _C.abs, "The absolute value of each element.", _show(f"xp.abs({_X})", "[1.5, 0.5]"))
acos: Unary = unary("acos", _C.acos, "The inverse cosine, in radians.", _show("xp.acos(xp.ones(2))", "[0.0, 0.0]"))
acosh: Unary = unary("acosh", _C.acosh, "The inverse hyperbolic cosine.", _show("xp.acosh(xp.ones(2))", "[0.0, 0.0]"))
asin: Unary = unary("asin", _C.asin, "The inverse sine, in radians.", _show("xp.asin(xp.zeros(2))", "[0.0, 0.0]"))
asinh: Unary = unary("asinh", _C.asinh, "The inverse hyperbolic sine.", _show("xp.asinh(xp.zeros(2))", "[0.0, 0.0]"))
atan: Unary = unary("atan", _C.atan, "The inverse tangent, in radians.", _show("xp.atan(xp.zeros(2))", "[0.0, 0.0]"))
atanh: Unary = unary("atanh", _C.atanh, "The inverse hyperbolic tangent.", _show("xp.atanh(xp.zeros(2))", "[0.0, 0.0]"))
bitwise_invert: Unary = unary(
    "bitwise_invert", _C.bitwise_not, "Each bit turned over.", _show(f"xp.bitwise_invert({_K})", "[-2, -3]")
)
ceil: Unary = unary(
    "ceil", _C.ceil, "The smallest integer not below each element.", _show(f"xp.ceil({_X})", "[-1.0, 1.0]")
)
conj: Unary = unary(
    "conj", dt.conj, "Each element, as there are no complex numbers.", _show(f"xp.conj({_K})", "[1, 2]")
)
cos: Unary = unary("cos", _C.cos, "The cosine of radians.", _show("xp.cos(xp.zeros(2))", "[1.0, 1.0]"))
cosh: Unary = unary("cosh", _C.cosh, "The hyperbolic cosine.", _show("xp.cosh(xp.zeros(2))", "[1.0, 1.0]"))
exp: Unary = unary("exp", _C.exp, "e to the power of each element.", _show("xp.exp(xp.zeros(2))", "[1.0, 1.0]"))
expm1: Unary = unary("expm1", _C.expm1, "exp(x) - 1, exact near 0.", _show("xp.expm1(xp.zeros(2))", "[0.0, 0.0]"))
floor: Unary = unary(
    "floor", _C.floor, "The largest integer not above each element.", _show(f"xp.floor({_X})", "[-2.0, 0.0]")
)
isfinite: Unary = unary(
    "isfinite", _C.isfinite, "Whether elements are finite.", _show(f"xp.isfinite({_X})", "[True, True]")
)
isinf: Unary = unary("isinf", _C.isinf, "Whether elements are infinite.", _show(f"xp.isinf({_X})", "[False, False]"))
isnan: Unary = unary("isnan", _C.isnan, "Whether elements are NaN.", _show(f"xp.isnan({_X})", "[False, False]"))
log: Unary = unary("log", _C.log, "The natural logarithm.", _show("xp.log(xp.ones(2))", "[0.0, 0.0]"))
log1p: Unary = unary("log1p", _C.log1p, "log(1 + x), exact near 0.", _show("xp.log1p(xp.zeros(2))", "[0.0, 0.0]"))
log2: Unary = unary("log2", _C.log2, "The logarithm to base 2.", _show("xp.log2(xp.ones(2))", "[0.0, 0.0]"))
log10: Unary = unary("log10", _C.log10, "The logarithm to base 10.", _show("xp.log10(xp.ones(2))", "[0.0, 0.0]"))
logical_not: Unary = unary(
    "logical_not", _C.logical_not, "Whether elements are false.", _show(f"xp.logical_not({_M})", "[False, True]")
)
negative: Unary = unary(
    "negative", _C.neg, "Each element with the other sign.", _show(f"xp.negative({_K})", "[-1, -2]")
)
positive: Unary = unary("positive", dt.positive, "Each element.", _show(f"xp.positive({_K})", "[1, 2]"))
real: Unary = unary(
    "real", dt.real, "Each element, as there are no complex numbers.", _show(f"xp.real({_K})", "[1, 2]")
)
reciprocal: Unary = unary("reciprocal", _C.reciprocal, "1 / x.", _show(f"xp.reciprocal({_Y})", "[0.5, -1.0]"))
round: Unary = unary(
    "round", dt.round, "The nearest integer, of two the even one.", _show(f"xp.round({_X})", "[-2.0, 0.0]")
)
sign: Unary = unary("sign", _sign, "-1, 0 or 1, by the sign; NaN of NaN.", _show(f"xp.sign({_X})", "[-1.0, 1.0]"))
signbit: Unary = unary(
    "signbit", dt.signbit, "Whether the bit of the sign is set.", _show(f"xp.signbit({_X})", "[True, False]")
)
sin: Unary = unary("sin", _C.sin, "The sine of radians.", _show("xp.sin(xp.zeros(2))", "[0.0, 0.0]"))
sinh: Unary = unary("sinh", _C.sinh, "The hyperbolic sine.", _show("xp.sinh(xp.zeros(2))", "[0.0, 0.0]"))
sqrt: Unary = unary("sqrt", _C.sqrt, "The square root.", _show("xp.sqrt(xp.ones(2))", "[1.0, 1.0]"))
square: Unary = unary("square", _C.square, "x * x.", _show(f"xp.square({_K})", "[1, 4]"))
tan: Unary = unary("tan", _C.tan, "The tangent of radians.", _show("xp.tan(xp.zeros(2))", "[0.0, 0.0]"))
tanh: Unary = unary("tanh", _C.tanh, "The hyperbolic tangent.", _show("xp.tanh(xp.zeros(2))", "[0.0, 0.0]"))
trunc: Unary = unary(
    "trunc", _C.trunc, "The integer next to each element, towards 0.", _show(f"xp.trunc({_X})", "[-1.0, 0.0]")
)

add: Binary = binary("add", _C.add, "x1 + x2.", _show(f"xp.add({_K}, 1)", "[2, 3]"))
atan2: Binary = binary(
    "atan2", _C.atan2, "The angle of (x2, x1), in radians.", _show("xp.atan2(xp.zeros(1), 1.0)", "[0.0]")
)
bitwise_and: Binary = binary("bitwise_and", _C.bitwise_and, "x1 & x2.", _show(f"xp.bitwise_and({_K}, 3)", "[1, 2]"))
bitwise_left_shift: Binary = binary(
    "bitwise_left_shift", dt.bitwise_left_shift, "x1 * 2**x2.", _show(f"xp.bitwise_left_shift({_K}, 1)", "[2, 4]")
)
bitwise_or: Binary = binary("bitwise_or", _C.bitwise_or, "x1 | x2.", _show(f"xp.bitwise_or({_K}, 1)", "[1, 3]"))
bitwise_right_shift: Binary = binary(
    "bitwise_right_shift",
    dt.bitwise_right_shift,
    "x1 / 2**x2, rounded down.",
    _show(f"xp.bitwise_right_shift({_K}, 1)", "[0, 1]"),
)
bitwise_xor: Binary = binary("bitwise_xor", _C.bitwise_xor, "x1 ^ x2.", _show(f"xp.bitwise_xor({_K}, 3)", "[2, 1]"))
copysign: Binary = binary(
    "copysign", dt.copysign, "x1 with the sign of x2.", _show(f"xp.copysign({_X}, 1.0)", "[1.5, 0.5]")
)
divide: Binary = binary("divide", _C.div, "x1 / x2.", _show(f"xp.divide({_X}, 0.5)", "[-3.0, 1.0]"))
equal: Binary = binary(
    "equal", _C.eq, "Whether x1 == x2, for each element.", _show(f"xp.equal({_K}, 1)", "[True, False]")
)
floor_divide: Binary = binary(
    "floor_divide", _C.floor_divide, "x1 / x2, rounded down.", _show(f"xp.floor_divide({_K}, 2)", "[0, 1]")
)
greater: Binary = binary(
    "greater", _C.gt, "Whether x1 > x2, for each element.", _show(f"xp.greater({_K}, 1)", "[False, True]")
)
greater_equal: Binary = binary(
    "greater_equal", _C.ge, "Whether x1 >= x2, for each element.", _show(f"xp.greater_equal({_K}, 1)", "[True, True]")
)
hypot: Binary = binary("hypot", _C.hypot, "sqrt(x1**2 + x2**2).", _show("xp.hypot(xp.asarray([3.0]), 4.0)", "[5.0]"))
less: Binary = binary("less", _C.lt, "Whether x1 < x2, for each element.", _show(f"xp.less({_K}, 2)", "[True, False]"))
less_equal: Binary = binary(
    "less_equal", _C.le, "Whether x1 <= x2, for each element.", _show(f"xp.less_equal({_K}, 2)", "[True, True]")
)
logaddexp: Binary = binary(
    "logaddexp", _C.logaddexp, "log(exp(x1) + exp(x2)).", _show("xp.logaddexp(xp.asarray([0.0]), -xp.inf)", "[0.0]")
)
logical_and: Binary = binary(
    "logical_and", _C.logical_and, "Whether both are true.", _show(f"xp.logical_and({_M}, True)", "[True, False]")
)
logical_or: Binary = binary(
    "logical_or", _C.logical_or, "Whether one is true.", _show(f"xp.logical_or({_M}, True)", "[True, True]")
)
logical_xor: Binary = binary(
    "logical_xor", _C.logical_xor, "Whether just one is true.", _show(f"xp.logical_xor({_M}, True)", "[False, True]")
)
maximum: Binary = binary(
    "maximum", _C.maximum, "The larger of both; NaN of NaN.", _show(f"xp.maximum({_K}, 2)", "[2, 2]")
)
minimum: Binary = binary(
    "minimum", _C.minimum, "The smaller of both; NaN of NaN.", _show(f"xp.minimum({_K}, 1)", "[1, 1]")
)
multiply: Binary = binary("multiply", _C.mul, "x1 * x2.", _show(f"xp.multiply({_K}, 2)", "[2, 4]"))
nextafter: Binary = binary(
    "nextafter", dt.nextafter, "The number after x1 towards x2.", _show("xp.nextafter(xp.ones(1), 1.0)", "[1.0]")
)
not_equal: Binary = binary(
    "not_equal", _C.ne, "Whether x1 != x2, for each element.", _show(f"xp.not_equal({_K}, 1)", "[False, True]")
)
pow: Binary = binary("pow", _C.pow, "x1 to the power of x2.", _show(f"xp.pow({_K}, 2)", "[1, 4]"))
remainder: Binary = binary(
    "remainder", _C.remainder, "x1 - floor(x1 / x2) * x2, of the sign of x2.", _show(f"xp.remainder({_K}, 2)", "[1, 0]")
)
subtract: Binary = binary("subtract", _C.sub, "x1 - x2.", _show(f"xp.subtract({_K}, 1)", "[0, 1]"))


def imag(x: DeviceArray, /) -> DeviceArray:
    """Raises TypeError: there are no complex numbers, of which alone the standard asks for it.

    >>> xp.imag(xp.ones(2))
    Traceback (most recent call last):
        ...
    TypeError: imag(): there are no complex numbers, and x has dtype float32
    """
    need_array("imag", "x", x)
    raise TypeError(f"imag(): there are no complex numbers, and x has dtype {x.dtype.name}")


def clip(x: DeviceArray, /, min: Number | None = None, max: Number | None = None) -> DeviceArray:
    """min(max(x, min), max), in the dtype of x. NaN stays, and a bound that is NaN makes NaN.

    The bounds are numbers or arrays that broadcast with x.

    >>> xp.clip(xp.asarray([1, 5, 9]), 2, 6).tolist()
    [2, 5, 6]
    """
    need_array("clip", "x", x)
    result = x if min is not None or max is not None else _C.clone(x)
    for name, bound, op in (("min", min, _C.maximum), ("max", max, _C.minimum)):
        if bound is None:
            continue
        first, second = pair("clip", result, _within(bound, x.dtype), ("x", name))
        result = op(first, second)
    return result.astype(x.dtype)


def _within(bound: Number, dtype: _C.dtype) -> Number:
    """A bound that is a number, as near to it as the dtype has one."""
    if isinstance(bound, DeviceArray) or dtype is _C.bool or dtype.is_floating_point:
        return bound
    limits = dt.iinfo(dtype)
    return builtins.min(builtins.max(bound, limits.min), limits.max)


def where(condition: DeviceArray, x1: Number, x2: Number, /) -> DeviceArray:
    """x1 where condition is true, x2 elsewhere; the three broadcast.

    >>> xp.where(xp.asarray([True, False]), 1.0, xp.zeros(2)).tolist()
    [1.0, 0.0]
    """
    need_array("where", "condition", condition)
    if not isinstance(x1, DeviceArray) and not isinstance(x2, DeviceArray):
        x2 = _C.full((), x2, device=condition.device)
    first, second = pair("where", x1, x2)
    one_dtype("where", ("condition", "x1", "x2"), (condition, first, second))
    return _C.where(condition, first, second)
