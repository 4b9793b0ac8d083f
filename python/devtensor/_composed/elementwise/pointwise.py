"""Functions of each element that are formulas of others."""

from __future__ import annotations

import math
from collections.abc import Callable

from devtensor import _C
from devtensor._C import DeviceArray, _need_int, _need_number
from devtensor._composed.arguments import broadcast_shape, in_place, need_array, widened
from devtensor._composed.elementwise.domains import log_gamma, log_gamma_slope, log_odds
from devtensor._composed.written import need_out, numbers_first, takes_out
from devtensor._dtypes.autocast import autocasts
from devtensor._dtypes.info import finfo
from devtensor._dtypes.rules import common_dtype, result_type


def floating(x: DeviceArray) -> DeviceArray:
    """x in the dtype that functions of floats compute in: the default one of integers and bools, float32 of halves."""
    return widened(x) if x.dtype.is_floating_point else x.to(_C.get_default_dtype())


def back(result: DeviceArray, x: DeviceArray) -> DeviceArray:
    """result in the dtype of x where that holds floats."""
    return result.to(x.dtype) if x.dtype.is_floating_point else result


def together(op: str, names: tuple[str, ...], arrays: tuple[DeviceArray, ...]) -> tuple[int, ...]:
    """Checks arrays of any dtype that broadcast; the shape that they have together."""
    for name, array in zip(names, arrays, strict=True):
        need_array(op, name, array)
    _C._check_devices(op, names, arrays)
    _C._check_broadcast(op, names, arrays)
    return broadcast_shape(*arrays)


# ---------------------------------------------------------------- products and quotients added

_ADDED = ("input", "tensor1", "tensor2")


def _added(op: str, arrays: tuple[DeviceArray, DeviceArray, DeviceArray], value: float) -> DeviceArray:
    value = _need_number(op, "value", value)
    together(op, _ADDED, arrays)
    dtype = common_dtype(*arrays)
    if op == "addcdiv" and not (arrays[1].dtype.is_floating_point or arrays[2].dtype.is_floating_point):
        text = "Integer division with addcdiv is no longer supported: use input + value * tensor1 / tensor2"
        raise _C._explained(op, _ADDED, arrays, "dtype-mismatch", RuntimeError(text))
    if isinstance(value, float) and not dtype.is_floating_point:
        raise RuntimeError("For integral input tensors, argument value must not be a floating point number.")
    if dtype == _C.bool:
        _C._fail_dtype(op, _ADDED, arrays, 0, "numbers")
    x, a, b = (widened(array.to(dtype)) for array in arrays)
    scaled = a if value == 1 else a * value
    if op == "addcmul" and x.dtype.is_floating_point and a.shape == b.shape == x.shape:
        return _C._affine(scaled, b, x).to(dtype)
    part = scaled / b if op == "addcdiv" else scaled * b
    if part.shape == x.shape and part.dtype == x.dtype and not (part.requires_grad or x.requires_grad):
        part += x  # part is new
        return part.to(dtype)
    return (x + part).to(dtype)


@takes_out
@autocasts
@numbers_first
def addcmul(
    input: DeviceArray, tensor1: DeviceArray, tensor2: DeviceArray, *, value: float = 1, out: DeviceArray | None = None
) -> DeviceArray:
    """input + value * tensor1 * tensor2.

    The shapes broadcast, the dtypes promote; the half types are computed in float32. Raises DeviceMismatchError,
    DTypeMismatchError for bools, ShapeMismatchError, RuntimeError for a float value among integers.

    >>> dt.addcmul(dt.ones(2), dt.tensor([1.0, 2.0]), dt.tensor([3.0, 4.0]), value=0.5)
    DeviceArray([2.5000, 5.0000], device='cpu', dtype=float32)
    """
    return _added("addcmul", (input, tensor1, tensor2), value)


@takes_out
@autocasts
@numbers_first
def addcdiv(
    input: DeviceArray, tensor1: DeviceArray, tensor2: DeviceArray, *, value: float = 1, out: DeviceArray | None = None
) -> DeviceArray:
    """input + value * tensor1 / tensor2.

    The shapes broadcast, the dtypes promote; the half types are computed in float32. Raises DeviceMismatchError,
    ShapeMismatchError, RuntimeError for two arrays of integers.

    >>> dt.addcdiv(dt.ones(2), dt.tensor([1.0, 2.0]), dt.tensor([2.0, 4.0]))
    DeviceArray([1.5000, 1.5000], device='cpu', dtype=float32)
    """
    return _added("addcdiv", (input, tensor1, tensor2), value)


# ---------------------------------------------------------------- parts, signs, limits


@takes_out
def frac(input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """x - trunc(x): the fraction, with the sign of x. Floats. Raises DTypeMismatchError for others.

    >>> dt.frac(dt.tensor([1.5, -2.25]))
    DeviceArray([ 0.5000, -0.2500], device='cpu', dtype=float32)
    """
    _C._check("frac", ("input",), (input,))
    return input - input.trunc()


@takes_out
def nan_to_num(
    input: DeviceArray,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
    *,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """NaN replaced by nan (0), infinity by posinf, minus infinity by neginf (the largest and the least of the dtype).

    Any dtype: integers and bools stay as they are.

    >>> dt.nan_to_num(dt.tensor([dt.nan, dt.inf, 1.0]), posinf=9.0)
    DeviceArray([0., 9., 1.], device='cpu', dtype=float32)
    """
    need_array("nan_to_num", "input", input)
    given = {"nan": nan, "posinf": posinf, "neginf": neginf}
    numbers = {k: None if v is None else float(_need_number("nan_to_num", k, v)) for k, v in given.items()}
    if not input.dtype.is_floating_point:
        return input.clone()
    limits = finfo(input.dtype)
    x, result = input.detach(), input
    for places, name, default in (
        (x.isnan(), "nan", 0.0),
        (x == math.inf, "posinf", limits.max),
        (x == -math.inf, "neginf", limits.min),
    ):
        value = numbers[name]
        value = default if value is None else value
        result = result.masked_fill(places, value if abs(value) <= limits.max else math.copysign(math.inf, value))
    return result


@takes_out
def signbit(input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """Whether x has a minus sign, as -0.0 has too; False of NaN.

    >>> dt.signbit(dt.tensor([-1.0, 0.0, -0.0]))
    DeviceArray([ True, False,  True], device='cpu', dtype=bool)
    """
    need_array("signbit", "input", input)
    x = input.detach()
    if not x.dtype.is_floating_point:
        return x < 0
    return (x < 0) | ((x == 0) & (x.reciprocal() < 0))


@takes_out
def copysign(input: DeviceArray, other: DeviceArray | float, *, out: DeviceArray | None = None) -> DeviceArray:
    """abs(input) with the sign of other, an array or a number, of which -0.0 has a minus too.

    The shapes broadcast; dtypes promote, integers and bools become the default dtype. Raises DeviceMismatchError,
    ShapeMismatchError.

    >>> dt.copysign(dt.tensor([1.0, -2.0]), -0.0)
    DeviceArray([-1., -2.], device='cpu', dtype=float32)
    """
    if not isinstance(other, DeviceArray):
        need_array("copysign", "input", input)
        negative = math.copysign(1.0, _need_number("copysign", "other", other)) < 0
        size = floating(input).abs()
        return back(-size if negative else size, input)
    shape = together("copysign", ("input", "other"), (input, other))
    dtype = result_type(input, other)
    size = input.to(dtype if dtype.is_floating_point else _C.get_default_dtype()).abs().expand(shape)
    result = _C.where(signbit(other), -size, size)
    if other.requires_grad and _C.is_grad_enabled():  # zeros, as of other steps
        result = _C.where(_C.zeros((), dtype=_C.bool, device=other.device), other.to(result.dtype), result)
    return result


@takes_out
def heaviside(input: DeviceArray, values: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """0 where x < 0, values where x is 0, 1 where x > 0. Of one dtype; the shapes broadcast; no gradients.

    Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError.

    >>> dt.heaviside(dt.tensor([-1.5, 0.0, 2.0]), dt.tensor(0.5))
    DeviceArray([0.0000, 0.5000, 1.0000], device='cpu', dtype=float32)
    """
    names, arrays = ("input", "values"), (input, values)
    shape = together("heaviside", names, arrays)
    _C._check_dtypes("heaviside", names, arrays)
    x = input.detach()
    return _C.where(x == 0, values.detach().expand(shape), (x > 0).to(input.dtype))


def round(input: DeviceArray, *, decimals: int = 0, out: DeviceArray | None = None) -> DeviceArray:
    """The nearest number with so many decimals, halves to even: negative ones are places before the point.

    Any dtype but bool; integers are their own result. Raises DTypeMismatchError for decimals of integers.

    >>> dt.round(dt.tensor([1.25, 2.345]), decimals=2)
    DeviceArray([1.2500, 2.3400], device='cpu', dtype=float32)
    """
    decimals = _need_int("round", "decimals", decimals)
    if decimals == 0:
        return _C.round(input, out=out)
    if out is not None:
        need_out("round", out)
    _C._check("round", ("input",), (input,))
    x, scale = widened(input), 10.0 ** abs(decimals)
    rounded = (x * scale).round() / scale if decimals > 0 else (x / scale).round() * scale
    result = rounded.to(input.dtype)
    return result if out is None else _C._write_out("round", result, out)


@takes_out
def isposinf(input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """Whether x is infinity. Any dtype.

    >>> dt.isposinf(dt.tensor([dt.inf, -dt.inf, 1.0]))
    DeviceArray([ True, False, False], device='cpu', dtype=bool)
    """
    need_array("isposinf", "input", input)
    return input == math.inf


@takes_out
def isneginf(input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """Whether x is minus infinity. Any dtype.

    >>> dt.isneginf(dt.tensor([dt.inf, -dt.inf, 1.0]))
    DeviceArray([False,  True, False], device='cpu', dtype=bool)
    """
    need_array("isneginf", "input", input)
    return input == -math.inf


def isreal(input: DeviceArray) -> DeviceArray:
    """True for each element, as no array holds complex numbers.

    >>> dt.isreal(dt.ones(2))
    DeviceArray([True, True], device='cpu', dtype=bool)
    """
    need_array("isreal", "input", input)
    return _C.ones_like(input, dtype=_C.bool)


def _limited(op: str, name: str, input: DeviceArray, bound: DeviceArray | float) -> DeviceArray | float:
    """Checks a clamp with one bound; the bound."""
    need_array(op, "input", input)
    names: tuple[str, ...] = ("input",)
    arrays: tuple[DeviceArray, ...] = (input,)
    if isinstance(bound, DeviceArray):
        names, arrays = ("input", name), (input, bound)
        together(op, names, arrays)
    else:
        bound = _need_number(op, name, bound)
    if result_type(input, bound) == _C.bool:
        _C._fail_dtype(op, names, arrays, 0, "numbers; for bool use logical_and or logical_or")
    return bound


@takes_out
def clamp_min(input: DeviceArray, min: DeviceArray | float, *, out: DeviceArray | None = None) -> DeviceArray:
    """The larger of x and min, a number or an array that broadcasts; NaN stays.

    The dtypes promote. Raises DeviceMismatchError, DTypeMismatchError for bools, ShapeMismatchError.

    >>> dt.clamp_min(dt.tensor([-1.0, 2.0]), 0)
    DeviceArray([0., 2.], device='cpu', dtype=float32)
    """
    return _C.clamp(input, _limited("clamp_min", "min", input, min))


@takes_out
def clamp_max(input: DeviceArray, max: DeviceArray | float, *, out: DeviceArray | None = None) -> DeviceArray:
    """The smaller of x and max, a number or an array that broadcasts; NaN stays.

    The dtypes promote. Raises DeviceMismatchError, DTypeMismatchError for bools, ShapeMismatchError.

    >>> dt.clamp_max(dt.tensor([-1.0, 2.0]), 1)
    DeviceArray([-1.,  1.], device='cpu', dtype=float32)
    """
    return _C.clamp(input, None, _limited("clamp_max", "max", input, max))


# ---------------------------------------------------------------- powers, logarithms, angles


@takes_out
def exp2(input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """2 ** x. Any dtype; integers and bools give the default dtype.

    >>> dt.exp2(dt.tensor([0.0, 3.0]))
    DeviceArray([1., 8.], device='cpu', dtype=float32)
    """
    need_array("exp2", "input", input)
    return back(2.0 ** floating(input), input)


@takes_out
def ldexp(input: DeviceArray, other: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """input * 2 ** other. The shapes broadcast, the dtypes promote to a float.

    Raises DeviceMismatchError, ShapeMismatchError.

    >>> dt.ldexp(dt.tensor([3.0]), dt.tensor([2]))
    DeviceArray([12.], device='cpu', dtype=float32)
    """
    together("ldexp", ("input", "other"), (input, other))
    return input * exp2(other)


@takes_out
def float_power(
    input: DeviceArray | float, exponent: DeviceArray | float, *, out: DeviceArray | None = None
) -> DeviceArray:
    """input ** exponent in float64; one of them may be a number.

    Raises DeviceMismatchError, ShapeMismatchError, TypeError for two numbers.

    >>> dt.float_power(dt.tensor([2, 4]), 0.5)
    DeviceArray([1.4142, 2.0000], device='cpu', dtype=float64)
    """
    op = "float_power"
    if isinstance(input, DeviceArray) and isinstance(exponent, DeviceArray):
        together(op, ("input", "exponent"), (input, exponent))
        return _C.pow(input.double(), exponent.double())
    if isinstance(input, DeviceArray):
        return _C.pow(input.double(), float(_need_number(op, "exponent", exponent)))
    base = float(_need_number(op, "input", input))
    need_array(op, "exponent", exponent)  # type: ignore[arg-type]
    power: DeviceArray = base ** exponent.double()  # type: ignore[union-attr]
    return power


def float_power_(input: DeviceArray, exponent: DeviceArray | float) -> DeviceArray:
    """float_power, written into input, which must be float64. Raises DTypeMismatchError for another dtype.

    >>> dt.tensor([3.0], dtype=dt.float64).float_power_(2)
    DeviceArray([9.], device='cpu', dtype=float64)
    """
    need_array("float_power", "input", input)
    result = float_power(input, exponent)
    arrays = (input, exponent) if isinstance(exponent, DeviceArray) else (input,)
    names = ("input", "exponent")[: len(arrays)]
    if input.dtype != _C.float64:
        _C._fail_dtype("float_power", names, arrays, 0, "float64")
    _C._check_in_place("float_power", names, arrays, _C.float64, result.shape)
    return input.copy_(result)


@takes_out
def sinc(input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """sin(pi * x) / (pi * x), and 1 at 0. Any dtype; integers and bools give the default dtype.

    >>> dt.sinc(dt.tensor([0.0, 0.5]))
    DeviceArray([1.0000, 0.6366], device='cpu', dtype=float32)
    """
    need_array("sinc", "input", input)
    x = floating(input)
    zero = x.detach() == 0
    angle = _C.where(zero, 1.0, x) * math.pi
    return back(_C.where(zero, 1.0, angle.sin() / angle), input)


@takes_out
def logit(input: DeviceArray, eps: float | None = None, *, out: DeviceArray | None = None) -> DeviceArray:
    """log(x / (1 - x)), of x limited to [eps, 1 - eps] where eps is given. Integers and bools give the default dtype.

    >>> dt.logit(dt.tensor([0.5, 0.75]))
    DeviceArray([0.0000, 1.0986], device='cpu', dtype=float32)
    """
    need_array("logit", "input", input)
    eps = None if eps is None else _need_number("logit", "eps", eps)
    return back(log_odds(floating(input), eps), input)


@takes_out
def xlogy(input: DeviceArray | float, other: DeviceArray | float, *, out: DeviceArray | None = None) -> DeviceArray:
    """input * log(other), and 0 where input is 0 and other is not NaN. One of them may be a number.

    The shapes broadcast; dtypes promote, integers and bools give the default dtype. Raises DeviceMismatchError,
    ShapeMismatchError, TypeError for two numbers.

    >>> dt.xlogy(dt.tensor([0.0, 2.0]), dt.tensor([0.0, 1.0]))
    DeviceArray([0., 0.], device='cpu', dtype=float32)
    """
    op = "xlogy"
    if isinstance(input, DeviceArray) and isinstance(other, DeviceArray):
        together(op, ("input", "other"), (input, other))
    elif not isinstance(input, DeviceArray):
        need_array(op, "other", other)  # type: ignore[arg-type]
        input = _need_number(op, "input", input)
    else:
        other = _need_number(op, "other", other)
    dtype = result_type(input, other)
    dtype = dtype if dtype.is_floating_point else _C.get_default_dtype()
    if not isinstance(other, DeviceArray):
        return _number_log(widened(_array(input).to(dtype)), float(other)).to(dtype)
    y = widened(other.to(dtype))
    zero = (y <= 0) | (y == math.inf)
    if isinstance(input, DeviceArray):
        x: DeviceArray | float = widened(input.to(dtype))
        zero = zero & (input == 0)
    else:
        x, zero = float(input), zero & (input == 0)
    return _C.where(zero, 0.0, x * _C.where(zero, 1.0, y).log()).to(dtype)


def _array(x: DeviceArray | float) -> DeviceArray:
    assert isinstance(x, DeviceArray)
    return x


def _number_log(x: DeviceArray, y: float) -> DeviceArray:
    """x * log(y), and 0 where x is 0."""
    if y > 0 and y != math.inf:
        return x * math.log(y)
    if math.isnan(y):
        return x * y
    return _C.where(x == 0, 0.0, x * (math.inf if y > 0 else -math.inf if y == 0 else math.nan))


@takes_out
def deg2rad(input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """Degrees in radians: x * pi / 180. Any dtype; integers and bools give the default dtype.

    >>> dt.deg2rad(dt.tensor([180.0]))
    DeviceArray([3.1416], device='cpu', dtype=float32)
    """
    return _scaled("deg2rad", input, math.pi / 180)


@takes_out
def rad2deg(input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """Radians in degrees: x * 180 / pi. Any dtype; integers and bools give the default dtype.

    >>> dt.rad2deg(dt.tensor([dt.pi]))
    DeviceArray([180.], device='cpu', dtype=float32)
    """
    return _scaled("rad2deg", input, 180 / math.pi)


def _scaled(op: str, input: DeviceArray, factor: float) -> DeviceArray:
    need_array(op, "input", input)
    return back(floating(input) * factor, input)


# ---------------------------------------------------------------- the gamma function


@takes_out
def lgamma(input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """log(abs(gamma(x))), infinity at 0, -1, -2, ... Computed in float64; integers and bools give the default dtype.

    >>> dt.lgamma(dt.tensor([0.5, 1.0, 5.0]))
    DeviceArray([0.5724, 0.0000, 3.1781], device='cpu', dtype=float32)
    """
    need_array("lgamma", "input", input)
    return _gamma(log_gamma, input)


@takes_out
def digamma(input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """The derivative of lgamma: NaN at -1, -2, ..., minus infinity at 0.0. Computed in float64.

    Integers and bools give the default dtype.

    >>> dt.digamma(dt.tensor([1.0, 0.5]))
    DeviceArray([-0.5772, -1.9635], device='cpu', dtype=float32)
    """
    need_array("digamma", "input", input)
    return _gamma(log_gamma_slope, input)


def _gamma(function: Callable[[DeviceArray], DeviceArray], input: DeviceArray) -> DeviceArray:
    result = function(floating(input).double())
    return result.to(input.dtype if input.dtype.is_floating_point else _C.get_default_dtype())


# ---------------------------------------------------------------- in place


_COPIED: tuple[Callable[..., DeviceArray], ...] = (
    *(addcdiv, addcmul, clamp_max, clamp_min, copysign, deg2rad, digamma, exp2, frac, heaviside, ldexp),
    *(lgamma, logit, nan_to_num, rad2deg, round, sinc, xlogy),
)
WRITING: list[Callable[..., DeviceArray]] = [float_power_, *(in_place(function) for function in _COPIED)]


__all__ = [
    "addcdiv",
    "addcmul",
    "clamp_max",
    "clamp_min",
    "copysign",
    "deg2rad",
    "digamma",
    "exp2",
    "float_power",
    "frac",
    "heaviside",
    "isneginf",
    "isposinf",
    "isreal",
    "ldexp",
    "lgamma",
    "logit",
    "nan_to_num",
    "rad2deg",
    "signbit",
    "sinc",
    "xlogy",
]
METHODS = (
    addcdiv,
    addcmul,
    clamp_max,
    clamp_min,
    copysign,
    deg2rad,
    digamma,
    exp2,
    float_power,
    frac,
    heaviside,
    isneginf,
    isposinf,
    isreal,
    ldexp,
    lgamma,
    logit,
    nan_to_num,
    rad2deg,
    round,
    signbit,
    sinc,
    xlogy,
    *WRITING,
)
