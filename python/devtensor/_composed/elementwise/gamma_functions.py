"""Derivatives of digamma, and the incomplete gamma functions; computed in float64."""

from __future__ import annotations

import functools
import math
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray, _need_int
from devtensor._composed.arguments import in_place, need_array
from devtensor._composed.elementwise.domains import log_gamma_slope
from devtensor._composed.elementwise.error_functions import mvlgamma
from devtensor._composed.elementwise.pointwise import floating, together
from devtensor._composed.written import takes_out
from devtensor._dtypes.rules import common_dtype
from devtensor.autograd.function import Function, FunctionCtx

# ---------------------------------------------------------------- derivatives of digamma

_MOST = 170  # beyond it the factorial is no float64
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def _right(n: int, x: DeviceArray) -> DeviceArray:
    """The sum of (x + k) ** -(n + 1) over all k from 0, times n!, of x from 0.5: by Euler and Maclaurin."""
    shifts = 9 + n  # from where the series is exact to a float64
    total = _C.zeros_like(x)
    for k in range(shifts):
        total = total + (x + k) ** -(n + 1)
    z = x + shifts
    square = z.square().reciprocal()
    series, factor = _C.zeros_like(z), 1.0
    terms = []
    for k, number in enumerate(_BERNOULLI, 1):
        factor *= (n + 2 * k - 1) * (n + 2 * k - 2 if k > 1 else 1) / (2 * k * (2 * k - 1))
        terms.append(number * factor)
    for term in reversed(terms):
        series = (series + term) * square
    tail = z**-n * (1 / n + 0.5 / z + series)
    return (total + tail) * math.gamma(n + 1)


@functools.cache
def _cotangent(n: int) -> tuple[int, ...]:
    """The n-th derivative of cot(x) as a polynomial in cot(x): its coefficients, from that of the 0th power on."""
    found = [0, 1]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(found)][1:]
        found = [-a for a in slope] + [0, 0]
        for k, c in enumerate(slope):
            found[k + 2] -= c
    return tuple(found)


def _polygamma(n: int, x: DeviceArray) -> DeviceArray:
    """The n-th derivative of digamma, of float64; from x to 1 - x by that of the cotangent."""
    sign = -1.0 if n % 2 == 0 else 1.0
    if n > _MOST:
        return _C.where(x.isnan(), x, sign * math.inf)
    reflected = x < 0.5
    right = sign * _right(n, _C.where(reflected, 1 - x, x))
    fraction = _C.where(reflected, x - x.floor(), 0.5)
    poles = fraction == 0
    cotangent = (_C.where(poles, 0.5, fraction) * math.pi).tan().reciprocal()
    slope = _C.zeros_like(x)
    for c in reversed(_cotangent(n)):
        slope = slope * cotangent + (float(c) if abs(c) < 2**1023 else math.inf if c > 0 else -math.inf)
    left = -sign * right - math.pi ** (n + 1) * slope
    return _C.where(reflected, _C.where(poles, sign * math.inf, left), right)


class _Polygamma(Function):
    @staticmethod
    def forward(ctx: Any, n: int, x: DeviceArray) -> DeviceArray:
        ctx.save_for_backward(x)
        ctx.n = n
        return _polygamma(n, x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return None, grad * _Polygamma.apply(ctx.n + 1, x)


@takes_out
def polygamma(n: int, input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """The n-th derivative of digamma, computed in float64; infinity at 0, -1, -2, ..., minus infinity for an even n.

    n is 0 (digamma) or more. Integers and bools give the default dtype. By the series of Euler and Maclaurin, below 0.5
    by reflection. Raises RuntimeError for a negative n.

    >>> dt.polygamma(1, dt.tensor([1.0, 0.5]))
    DeviceArray([1.6449, 4.9348], device='cpu', dtype=float32)
    """
    need_array("polygamma", "input", input)
    n = _need_int("polygamma", "n", n)
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    x = floating(input).double()
    found: DeviceArray = log_gamma_slope(x) if n == 0 else _Polygamma.apply(n, x)
    return found.to(input.dtype if input.dtype.is_floating_point else _C.get_default_dtype())


def _polygamma_method(input: DeviceArray, n: int) -> DeviceArray:
    """polygamma(n, input).

    >>> dt.tensor([1.0]).polygamma(1)
    DeviceArray([1.6449], device='cpu', dtype=float32)
    """
    return polygamma(n, input)


def _polygamma_in_place(input: DeviceArray, n: int) -> DeviceArray:
    """polygamma(n, input), written into input.

    >>> dt.tensor([1.0]).polygamma_(1)
    DeviceArray([1.6449], device='cpu', dtype=float32)
    """
    result = polygamma(n, input)
    _C._check_in_place("polygamma", ("input",), (input,), result.dtype, result.shape)
    return input.copy_(result)


_polygamma_method.__name__ = _polygamma_method.__qualname__ = "polygamma"
_polygamma_in_place.__name__ = _polygamma_in_place.__qualname__ = "polygamma_"

# ---------------------------------------------------------------- incomplete gamma functions

_TERMS = 130  # of the series and of the fraction: both have converged, for a of up to _LARGE
_LARGE = 100.0
_NODES = 40


@functools.cache
def _legendre() -> tuple[tuple[float, float], ...]:
    """Nodes and weights of Gauss and Legendre on [0, 1]: roots of the polynomial by Newton."""
    n, found = _NODES, []
    for i in range(n):
        z = math.cos(math.pi * (i + 0.75) / (n + 0.5))
        for _ in range(8):
            before, value = 0.0, 1.0
            for j in range(n):
                before, value = value, ((2 * j + 1) * z * value - j * before) / (j + 1)
            slope = n * (z * value - before) / (z * z - 1)
            z -= value / slope
        found.append(((1 - z) / 2, 1 / ((1 - z * z) * slope * slope)))
    return tuple(found)


def _series(a: DeviceArray, x: DeviceArray) -> DeviceArray:
    """sum of x**k / (a (a + 1) ... (a + k)): the lower function over x**a exp(-x)."""
    term = total = a.reciprocal()
    for k in range(1, _TERMS):
        term = term * (x / (a + k))
        total = total + term
    return total


def _fraction(a: DeviceArray, x: DeviceArray) -> DeviceArray:
    """Legendre's continued fraction: the upper function over x**a exp(-x). From the end, which needs no test."""
    total = x + (2 * _TERMS + 1) - a
    for k in range(_TERMS, 0, -1):
        total = x + (2 * k - 1) - a - k * (k - a) / total
    return total.reciprocal()


def _area(a: DeviceArray, x: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """The smaller of both functions of a large a, and whether it is the upper one: by quadrature of its tail.

    Press et al., Numerical Recipes (2007), 6.2. t ** (a - 1) exp(-t) is taken relative to its top, at a - 1.
    """
    top = a - 1
    root = top.sqrt()
    upper = x > top
    far = _C.maximum(top + 14 * root, x + 9 * root)
    near = _C.minimum(top - 12 * root, x - 9 * root).clamp(min=0.0)
    end = _C.where(upper, far, near)
    total = _C.zeros_like(x)
    for node, weight in _legendre():
        u = (x + (end - x) * node - top) / top
        total = total + weight * (top * (u.log1p() - u)).exp()
    over = top.reciprocal()  # Stirling: the logarithm of gamma(a) over top**top exp(-top)
    series = over * (1 / 12 - over.square() * (1 / 360 - over.square() * (1 / 1260 - over.square() / 1680)))
    return total * (end - x).abs() / ((2 * math.pi * top).sqrt() * series.exp()), upper


@functools.cache
def _slopes() -> tuple[float, ...]:
    """Of the logarithm of gamma(1 + a) as a power series of a: the coefficients, from that of a on."""

    def zeta(k: int, n: int = 200) -> float:
        """The sum of 1 / i ** k: n terms, and the rest by Euler and Maclaurin."""
        rest = [
            n ** (1 - k) / (k - 1),
            -(n**-k) / 2,
            k * n ** (-k - 1) / 12,
            -k * (k + 1) * (k + 2) * n ** (-k - 3) / 720,
        ]
        return math.fsum([*(i**-k for i in range(1, n + 1)), *rest])

    return (-0.5772156649015329, *((-1) ** k * zeta(k) / k for k in range(2, 28)))


def _log_gamma_after_one(a: DeviceArray) -> DeviceArray:
    """The logarithm of gamma(1 + a), with all digits for a of nearly 0."""
    near, series = a.clamp(max=0.25), _C.zeros_like(a)
    for slope in reversed(_slopes()):
        series = (series + slope) * near
    return _C.where(a > 0.25, (1 + a).lgamma(), series)


def _upper_of_little(a: DeviceArray, x: DeviceArray) -> DeviceArray:
    """The upper function of a little a and x by a series of its own: as 1 less the lower one it would lose digits."""
    term, total = _C.ones_like(x), _C.zeros_like(x)
    for k in range(1, 25):
        term = term * (-x / k)
        total = total + term / (a + k)
    log_power = a * x.log() - _log_gamma_after_one(a)
    return -log_power.expm1() - a * log_power.exp() * total


def _incomplete(a: DeviceArray, x: DeviceArray, upper: bool) -> DeviceArray:
    """The regularized function, of float64: the lower one or the upper one."""
    usual = (a > 0) & (x > 0) & a.isfinite() & x.isfinite()
    b, y = _C.where(usual, a, 1.0), _C.where(usual, x, 1.0)
    large = b > _LARGE
    small, big = b.clamp(max=_LARGE), b.clamp(min=_LARGE)
    from_above = y >= small + 1
    front = (small * y.log() - y - small.lgamma()).exp()
    low = front * _series(small, _C.where(from_above | large, small.clamp(max=1.0), y))
    high = front * _fraction(small, _C.where(from_above & ~large, y, small + 1))
    part, is_upper = _C.where(from_above, high, low), from_above
    little = (y <= 1.1) & (b <= _C.where(y > 0.5, 1.1 * y, -0.4 / y.clamp(max=0.5).log()))
    part = _C.where(little, _upper_of_little(b.clamp(max=1.21), y.clamp(max=1.1)), part)
    is_upper = is_upper | little
    tail, tail_is_upper = _area(big, _C.where(large, y, big))
    part, is_upper = _C.where(large, tail, part), _C.where(large, tail_is_upper, is_upper)
    part = part.clamp(0.0, 1.0)
    found = _C.where(is_upper == upper, part, 1 - part)
    # At the ends: nothing is below 0, everything below infinity; a of 0 has all at 0, one of infinity nothing anywhere.
    below = _C.where((a == 0) | (x == math.inf), 1.0, 0.0)
    ends = _C.where(
        ((a == 0) & (x == 0)) | ((a == math.inf) & (x == math.inf)), math.nan, 1 - below if upper else below
    )
    ends = _C.where((a < 0) | (x < 0) | a.isnan() | x.isnan(), math.nan, ends)
    return _C.where(usual, found, ends)


class _Incomplete(Function):
    @staticmethod
    def forward(ctx: Any, a: DeviceArray, x: DeviceArray, upper: bool) -> DeviceArray:
        ctx.save_for_backward(a, x)
        ctx.upper = upper
        return _incomplete(a, x, upper)

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Any) -> Any:
        a, x = ctx.saved_tensors
        if ctx.needs_input_grad[0]:
            op = "igammac" if ctx.upper else "igamma"  # type: ignore[attr-defined]
            raise NotImplementedError(f"{op}: there is no gradient for input, only for other: use input.detach()")
        density = ((a - 1) * x.log() - x - a.lgamma()).exp()
        return None, grad * (-density if ctx.upper else density), None  # type: ignore[attr-defined]


def _both(op: str, input: DeviceArray, other: DeviceArray, upper: bool) -> DeviceArray:
    names, arrays = ("input", "other"), (input, other)
    shape = together(op, names, arrays)
    dtype = common_dtype(*arrays)
    if not dtype.is_floating_point:
        _C._fail_dtype(op, names, arrays, 0, "floats")
    found: DeviceArray = _Incomplete.apply(input.double().expand(shape), other.double().expand(shape), upper)
    return found.to(dtype)


@takes_out
def igamma(input: DeviceArray, other: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """The regularized lower incomplete gamma function P(a, x) of a in input and x in other.

    The integral of t ** (a - 1) * exp(-t) from 0 to x, over gamma(a); NaN below 0. Floats, which promote; the shapes
    broadcast. Computed in float64, by its series, a continued fraction or quadrature. The gradient goes to other alone:
    NotImplementedError where input wants one. Raises DeviceMismatchError, DTypeMismatchError for integers and bools,
    ShapeMismatchError.

    >>> dt.igamma(dt.tensor([1.0, 2.0]), dt.tensor([1.0, 1.0]))
    DeviceArray([0.6321, 0.2642], device='cpu', dtype=float32)
    """
    return _both("igamma", input, other, False)


@takes_out
def igammac(input: DeviceArray, other: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """The regularized upper incomplete gamma function: 1 - igamma(input, other), also where that is near 0.

    Operands and errors are those of igamma.

    >>> dt.igammac(dt.tensor([1.0, 2.0]), dt.tensor([1.0, 1.0]))
    DeviceArray([0.3679, 0.7358], device='cpu', dtype=float32)
    """
    return _both("igammac", input, other, True)


igamma_, igammac_ = in_place(igamma), in_place(igammac)

__all__ = [
    "igamma",
    "igammac",
    "mvlgamma",
    "polygamma",
]
METHODS = (
    igamma,
    igamma_,
    igammac,
    igammac_,
    mvlgamma,
    in_place(mvlgamma),
    _polygamma_method,
    _polygamma_in_place,
)
