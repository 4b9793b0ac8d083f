"""erfcx and the logarithm of the normal distribution, which stay in range where exponentials would not; and others that
torch.special has beside them."""

from __future__ import annotations

import math

from devtensor import _C
from devtensor._C import DeviceArray, _need_int, _need_number
from devtensor._composed.arguments import need_array, widened
from devtensor._composed.elementwise.pointwise import back, floating, together
from devtensor._composed.written import takes_out
from devtensor._dtypes.rules import result_type

_FAR = 4.0  # from here on the continued fraction of erfcx has converged
_TERMS = 60
_LOW = 10.0  # below the negative of this erfc is 2


def _wide(input: DeviceArray) -> DeviceArray:
    """input in float64, in which these are computed."""
    return floating(input).to(_C.float64)


def _result(result: DeviceArray, input: DeviceArray) -> DeviceArray:
    """result in the dtype that an op on input gives."""
    return result.to(input.dtype if input.dtype.is_floating_point else _C.get_default_dtype())


def scaled_erfc(x: DeviceArray) -> DeviceArray:
    """exp(x ** 2) * erfc(x) of float64."""
    far, low = x > _FAR, x < -_LOW
    near = _C.where(far | low, 0.0, x)
    big = _C.where(far, x, _FAR)
    fraction = big
    for k in range(_TERMS, 0, -1):
        fraction = big + (k / 2) / fraction
    found = _C.where(far, 1 / (math.sqrt(math.pi) * fraction), (near * near).exp() * near.erfc())
    below = _C.where(low, x, 0.0)
    return _C.where(low, 2 * (below * below).exp(), found)


@takes_out
def erfcx(input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """exp(x ** 2) * erfc(x), also where both factors leave the range. Integers and bools give the default dtype.

    >>> dt.special.erfcx(dt.tensor([0.0, 1.0, 50.0]))
    DeviceArray([1.0000, 0.4276, 0.0113], device='cpu', dtype=float32)
    """
    need_array("erfcx", "input", input)
    return _result(scaled_erfc(_wide(input)), input)


@takes_out
def log_ndtr(input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """The logarithm of the normal distribution function, also far below 0. Integers and bools give the default dtype.

    >>> dt.special.log_ndtr(dt.tensor([-30.0, 0.0]))
    DeviceArray([-454.3213,   -0.6931], device='cpu', dtype=float32)
    """
    need_array("log_ndtr", "input", input)
    x = _wide(input)
    low = x < -1
    below, above = _C.where(low, x, -1.0), _C.where(low, 0.0, x)
    half = math.sqrt(0.5)
    found = _C.where(
        low,
        (scaled_erfc(below * -half) / 2).log() - below * below / 2,
        (-(above * half).erfc() / 2).log1p(),
    )
    return _result(found, input)


@takes_out
def xlog1py(input: DeviceArray | float, other: DeviceArray | float, *, out: DeviceArray | None = None) -> DeviceArray:
    """input * log(1 + other), and 0 where input is 0 and other is not NaN. One of them may be a number.

    The shapes broadcast; dtypes promote, integers and bools give the default dtype. Raises DeviceMismatchError,
    ShapeMismatchError, TypeError for two numbers.

    >>> dt.special.xlog1py(dt.tensor([0.0, 2.0]), dt.tensor([-1.0, 1.0]))
    DeviceArray([0.0000, 1.3863], device='cpu', dtype=float32)
    """
    op = "xlog1py"
    if isinstance(input, DeviceArray) and isinstance(other, DeviceArray):
        together(op, ("input", "other"), (input, other))
    elif not isinstance(input, DeviceArray):
        need_array(op, "other", other)  # type: ignore[arg-type]
        input = _need_number(op, "input", input)
    else:
        other = _need_number(op, "other", other)
    dtype = result_type(input, other)
    dtype = dtype if dtype.is_floating_point else _C.get_default_dtype()
    device = next(one.device for one in (input, other) if isinstance(one, DeviceArray))
    x, y = (
        widened(one.to(dtype) if isinstance(one, DeviceArray) else _C.full((), one, dtype=dtype, device=device))
        for one in (input, other)
    )
    zero = (x == 0) & ((y <= -1) | (y == math.inf))
    return _C.where(zero, 0.0, x * _C.where(zero, 0.0, y).log1p()).to(dtype)


@takes_out
def multigammaln(input: DeviceArray, p: int, *, out: DeviceArray | None = None) -> DeviceArray:
    """The logarithm of the gamma function of p dimensions: p (p - 1) / 4 * log(pi) and lgamma(x - j / 2) for j below p.

    Integers give the default dtype. Raises DTypeMismatchError for bools, RuntimeError where p is less than 1.

    >>> dt.special.multigammaln(dt.tensor([2.0, 3.0]), 2)
    DeviceArray([0.4516, 1.5502], device='cpu', dtype=float32)
    """
    return _multigammaln("multigammaln", input, p)


@takes_out
def mvlgamma(input: DeviceArray, p: int, *, out: DeviceArray | None = None) -> DeviceArray:
    """special.multigammaln, with its errors.

    >>> dt.mvlgamma(dt.tensor([2.0, 3.0]), 2)
    DeviceArray([0.4516, 1.5502], device='cpu', dtype=float32)
    """
    return _multigammaln("mvlgamma", input, p)


def _multigammaln(op: str, input: DeviceArray, p: int) -> DeviceArray:
    need_array(op, "input", input)
    if input.dtype == _C.bool:
        _C._fail_dtype(op, ("input",), (input,), 0, "numbers")
    p = _need_int(op, "p", p)
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    x = floating(input)
    below = _C.arange(p, dtype=x.dtype, device=x.device) / 2
    total = (x.unsqueeze(-1) - below).lgamma().sum(-1) + p * (p - 1) / 4 * math.log(math.pi)
    return back(total, input)


__all__ = ["erfcx", "log_ndtr", "multigammaln", "xlog1py"]
