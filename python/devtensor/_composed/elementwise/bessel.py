"""Modified Bessel functions of the first kind, of float64, by Chebyshev series (Clenshaw 1962, as Cephes has them)."""

from __future__ import annotations

from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import need_array
from devtensor._composed.elementwise.pointwise import floating
from devtensor._composed.written import takes_out
from devtensor.autograd.function import Function, FunctionCtx

# By order: coefficients of exp(-x) I(x) / x ** order within [0, 8], and of exp(-x) sqrt(x) I(x) beyond.
_NEAR = (
    (
        -4.4153416464793395e-18,
        3.3307945188222384e-17,
        -2.431279846547955e-16,
        1.715391285555133e-15,
        -1.1685332877993451e-14,
        7.676185498604936e-14,
        -4.856446783111929e-13,
        2.95505266312964e-12,
        -1.726826291441556e-11,
        9.675809035373237e-11,
        -5.189795601635263e-10,
        2.6598237246823866e-09,
        -1.300025009986248e-08,
        6.046995022541919e-08,
        -2.670793853940612e-07,
        1.1173875391201037e-06,
        -4.4167383584587505e-06,
        1.6448448070728896e-05,
        -5.754195010082104e-05,
        0.00018850288509584165,
        -0.0005763755745385824,
        0.0016394756169413357,
        -0.004324309995050576,
        0.010546460394594998,
        -0.02373741480589947,
        0.04930528423967071,
        -0.09490109704804764,
        0.17162090152220877,
        -0.3046826723431984,
        0.6767952744094761,
    ),
    (
        2.7779141127610464e-18,
        -2.111421214358166e-17,
        1.5536319577362005e-16,
        -1.1055969477353862e-15,
        7.600684294735408e-15,
        -5.042185504727912e-14,
        3.223793365945575e-13,
        -1.9839743977649436e-12,
        1.1736186298890901e-11,
        -6.663489723502027e-11,
        3.625590281552117e-10,
        -1.8872497517228294e-09,
        9.381537386495773e-09,
        -4.445059128796328e-08,
        2.0032947535521353e-07,
        -8.568720264695455e-07,
        3.4702513081376785e-06,
        -1.3273163656039436e-05,
        4.781565107550054e-05,
        -0.00016176081582589674,
        0.0005122859561685758,
        -0.0015135724506312532,
        0.004156422944312888,
        -0.010564084894626197,
        0.024726449030626516,
        -0.05294598120809499,
        0.1026436586898471,
        -0.17641651835783406,
        0.25258718644363365,
    ),
)
_FAR = (
    (
        -7.233180487874754e-18,
        -4.830504485944182e-18,
        4.46562142029676e-17,
        3.461222867697461e-17,
        -2.8276239805165836e-16,
        -3.425485619677219e-16,
        1.7725601330565263e-15,
        3.8116806693526224e-15,
        -9.554846698828307e-15,
        -4.150569347287222e-14,
        1.54008621752141e-14,
        3.8527783827421426e-13,
        7.180124451383666e-13,
        -1.7941785315068062e-12,
        -1.3215811840447713e-11,
        -3.1499165279632416e-11,
        1.1889147107846439e-11,
        4.94060238822497e-10,
        3.3962320257083865e-09,
        2.266668990498178e-08,
        2.0489185894690638e-07,
        2.8913705208347567e-06,
        6.889758346916825e-05,
        0.0033691164782556943,
        0.8044904110141088,
    ),
    (
        7.517296310842105e-18,
        4.414348323071708e-18,
        -4.6503053684893586e-17,
        -3.209525921993424e-17,
        2.96262899764595e-16,
        3.3082023109209285e-16,
        -1.8803547755107825e-15,
        -3.8144030724370075e-15,
        1.0420276984128802e-14,
        4.272440016711951e-14,
        -2.1015418427726643e-14,
        -4.0835511110921974e-13,
        -7.198551776245908e-13,
        2.0356285441470896e-12,
        1.4125807436613782e-11,
        3.2526035830154884e-11,
        -1.8974958123505413e-11,
        -5.589743462196584e-10,
        -3.835380385964237e-09,
        -2.6314688468895196e-08,
        -2.512236237870209e-07,
        -3.882564808877691e-06,
        -0.00011058893876262371,
        -0.009761097491361469,
        0.7785762350182801,
    ),
)


def _series(x: DeviceArray, coefficients: tuple[float, ...]) -> DeviceArray:
    """Half of the sum of Chebyshev polynomials of x / 2, the highest one first."""
    b0, b1, b2 = _C.full_like(x, coefficients[0]), _C.zeros_like(x), _C.zeros_like(x)
    for coefficient in coefficients[1:]:
        b0, b1, b2 = x * b0 - b1 + coefficient, b0, b1
    return (b0 - b2) * 0.5


def _scaled(x: DeviceArray, order: int) -> DeviceArray:
    """exp(-abs(x)) I(x) of an order."""
    size = x.abs()
    near = size <= 8
    low, high = _C.where(near, size, 1.0), _C.where(near, 32.0, size)
    inner, outer = _series(low / 2 - 2, _NEAR[order]), _series(32 / high - 2, _FAR[order]) / high.sqrt()
    result = _C.where(near, inner * low if order else inner, outer)
    result = _C.where(x.isnan(), x, result)
    return _C.where(x < 0, -result, result) if order else result


class _Bessel(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: DeviceArray, order: int, scaled: bool) -> DeviceArray:
        result = _scaled(x, order)
        if not scaled:
            result = x.abs().exp() * result
        ctx.save_for_backward(x, result)
        ctx.order, ctx.scaled = order, scaled  # type: ignore[attr-defined]
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, found = ctx.saved_tensors
        other = _bessel(x, 1 - ctx.order, ctx.scaled)
        slope = other
        if ctx.order:  # I0 - I1 / x, which is 1 / 2 at 0
            zero = x == 0
            slope = _C.where(zero, 0.5, other - found / _C.where(zero, 1.0, x))
        if ctx.scaled:
            slope = slope - x.sign() * found
        return grad * slope, None, None


def _bessel(x: DeviceArray, order: int, scaled: bool) -> DeviceArray:
    result: DeviceArray = _Bessel.apply(x, order, scaled)
    return result


def _function(op: str, order: int, scaled: bool, input: DeviceArray) -> DeviceArray:
    need_array(op, "input", input)
    result = _bessel(floating(input).double(), order, scaled)
    return result.to(input.dtype if input.dtype.is_floating_point else _C.get_default_dtype())


@takes_out
def i0(input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """The modified Bessel function of the first kind of order 0. Computed in float64.

    Integers and bools give the default dtype.

    >>> dt.i0(dt.tensor([0.0, 1.0]))
    DeviceArray([1.0000, 1.2661], device='cpu', dtype=float32)
    """
    return _function("i0", 0, False, input)


@takes_out
def i0e(input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """exp(-abs(x)) * i0(x), without overflow. Integers and bools give the default dtype.

    >>> dt.special.i0e(dt.tensor([0.0, 1.0]))
    DeviceArray([1.0000, 0.4658], device='cpu', dtype=float32)
    """
    return _function("i0e", 0, True, input)


@takes_out
def i1(input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """The modified Bessel function of the first kind of order 1. Computed in float64.

    Integers and bools give the default dtype.

    >>> dt.special.i1(dt.tensor([0.0, 1.0]))
    DeviceArray([0.0000, 0.5652], device='cpu', dtype=float32)
    """
    return _function("i1", 1, False, input)


@takes_out
def i1e(input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """exp(-abs(x)) * i1(x), without overflow. Integers and bools give the default dtype.

    >>> dt.special.i1e(dt.tensor([0.0, 1.0]))
    DeviceArray([0.0000, 0.2079], device='cpu', dtype=float32)
    """
    return _function("i1e", 1, True, input)


__all__ = [
    "i0",
]
METHODS = (i0,)
