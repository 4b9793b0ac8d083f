"""Functions of numbers with an edge, where their derivatives are those of PyTorch outside of it too."""

from __future__ import annotations

import math
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor.autograd.function import Function, FunctionCtx

# ---------------------------------------------------------------- the gamma function, of float64

# (-1) ** (k + 1) B(2k) / (2k (2k - 1)): the terms of Stirling's series.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
_SHIFT = 9  # from where the series is exact to a float64


def _stirling(x: DeviceArray) -> DeviceArray:
    """log(gamma(x)) of float64 above 0."""
    low = x < _SHIFT
    product = _C.ones_like(x)
    for k in range(_SHIFT):
        product = product * _C.where(low, x + k, 1.0)
    z = _C.where(low, x + _SHIFT, x)
    inverse = z.square().reciprocal()
    series = _C.zeros_like(z)
    for term in reversed(_STIRLING):
        series = series * inverse + term
    return (z - 0.5) * z.log() - z + 0.5 * math.log(2 * math.pi) + series / z - product.log()


class _LogGamma(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: DeviceArray) -> DeviceArray:
        ctx.save_for_backward(x)
        poles, roots = (x <= 0) & (x == x.floor()), (x == 1) | (x == 2)
        reflected = (x < 0.5) & ~poles
        infinite = x.isinf()
        x = _C.where(poles | infinite, 1.0, x)
        right = _stirling(_C.where(reflected, 1 - x, x))
        # gamma(x) gamma(1 - x) = pi / sin(pi x), of which the fraction of x decides
        fraction = _C.where(reflected, x - x.detach().round(), 0.5)  # exact, also just below an integer
        left = math.log(math.pi) - (fraction * math.pi).sin().abs().log() - right
        result = _C.where(poles | infinite, math.inf, _C.where(reflected, left, right))
        result = result - _C.where(roots, result.detach(), 0.0)  # which is what rounding left
        return result

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * log_gamma_slope(x)


def log_gamma(x: DeviceArray) -> DeviceArray:
    """log(abs(gamma(x)))"""
    result: DeviceArray = _LogGamma.apply(x)
    return result


# B(2k) / 2k: the terms of the series of digamma.
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)


class _Slope(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, given: DeviceArray) -> DeviceArray:
        ctx.save_for_backward(given)
        zero, poles = given == 0, (given < 0) & (given == given.floor())
        reflected = (given < 0.5) & ~(poles | zero)
        x = _C.where(poles | zero, 1.0, given)
        z = _C.where(reflected, 1 - x, x)
        low = z < _SHIFT
        sums = _C.zeros_like(z)
        for k in range(_SHIFT):
            sums = sums + _C.where(low, _C.where(low, z + k, 1.0).reciprocal(), 0.0)
        z = _C.where(low, z + _SHIFT, z)
        inverse = z.square().reciprocal()
        series = _C.zeros_like(z)
        for term in reversed(_DIGAMMA):
            series = (series + term) * inverse
        right = z.log() - 0.5 / z - series - sums
        fraction = _C.where(reflected, x - x.detach().round(), 0.5)
        cotangent = math.pi / (fraction * math.pi).tan()
        result = _C.where(reflected, right - cotangent, right)
        result = _C.where(zero, -given.reciprocal(), _C.where(poles, math.nan, result))
        return result

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * _bend(x)


def log_gamma_slope(x: DeviceArray) -> DeviceArray:
    """The derivative of log_gamma: digamma."""
    result: DeviceArray = _Slope.apply(x)
    return result


def _bend(x: DeviceArray) -> DeviceArray:
    """The derivative of digamma: at the poles what the sine of pi times them gives, as in PyTorch."""
    reflected = x < 0.5
    z = _C.where(reflected, 1 - x, x)
    low = z < _SHIFT
    result = _C.zeros_like(z)
    for k in range(_SHIFT):
        result = result + _C.where(low, _C.where(low, z + k, 1.0).square().reciprocal(), 0.0)
    z = _C.where(low, z + _SHIFT, z).reciprocal()
    series = _C.zeros_like(z)
    for k, term in reversed(list(enumerate(_DIGAMMA, 1))):
        series = (series + 2 * k * term) * z.square()
    result = result + z + 0.5 * z.square() + series * z
    sine = (_C.where(reflected, x, 0.5) * math.pi).sin()
    return _C.where(reflected, math.pi**2 / sine.square() - result, result)


# ---------------------------------------------------------------- probabilities


class _LogOdds(Function):
    @staticmethod
    def forward(ctx: Any, x: DeviceArray, eps: float | None) -> DeviceArray:
        ctx.save_for_backward(x)
        ctx.eps = eps
        x = x if eps is None else x.clamp(eps, 1 - eps)
        return x.log() - (-x).log1p()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        eps: float | None = ctx.eps
        low, outside = (0.0, math.nan) if eps is None else (eps, 0.0)
        inside = grad / _C.where((x == 0) | (x == 1), 0.0, x * (1 - x))  # 0.0: of -0.0 too it is +infinity
        return _C.where((x < low) | (x > 1 - low), outside, inside), None


def log_odds(x: DeviceArray, eps: float | None) -> DeviceArray:
    """log(x / (1 - x)), of x limited to [eps, 1 - eps]."""
    result: DeviceArray = _LogOdds.apply(x, eps)
    return result


class _Entropy(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: DeviceArray) -> DeviceArray:
        ctx.save_for_backward(x)
        inside = x > 0
        outside = _C.where(x.isnan(), math.nan, _C.where(x < 0, -math.inf, 0.0).to(x.dtype))
        return _C.where(inside, -x * _C.where(inside, x, 1.0).log(), outside)

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * (-x.log() - 1)


def entropy(x: DeviceArray) -> DeviceArray:
    """-x * log(x), 0 at 0, minus infinity below."""
    result: DeviceArray = _Entropy.apply(x)
    return result


class _CrossEntropy(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: DeviceArray, y: DeviceArray) -> DeviceArray:
        ctx.save_for_backward(x, y)
        return (y - 1) * (-x).log1p().clamp(min=-100.0) - y * x.log().clamp(min=-100.0)

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Any) -> Any:
        x, y = ctx.saved_tensors
        of_x, of_y = ctx.needs_input_grad
        return (
            grad * (x - y) / ((1 - x) * x).clamp(min=1e-12) if of_x else None,
            grad * ((-x).log1p() - x.log()) if of_y else None,
        )


def cross_entropies(x: DeviceArray, y: DeviceArray) -> DeviceArray:
    """-(y * log(x) + (1 - y) * log(1 - x)) with logarithms of at least -100. The slope is bounded as in PyTorch."""
    result: DeviceArray = _CrossEntropy.apply(x, y)
    return result
