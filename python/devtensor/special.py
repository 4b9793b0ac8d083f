"""Special functions: the names of torch.special."""

from __future__ import annotations

import math

from devtensor._C import DeviceArray, erf, erfc, erfinv, expm1, log1p, log_softmax, softmax
from devtensor._C import sigmoid as expit
from devtensor._composed.arguments import need_array
from devtensor._composed.elementwise.bessel import i0, i0e, i1, i1e
from devtensor._composed.elementwise.domains import entropy
from devtensor._composed.elementwise.error_functions import erfcx, log_ndtr, multigammaln, xlog1py
from devtensor._composed.elementwise.gamma_functions import igamma as gammainc
from devtensor._composed.elementwise.gamma_functions import igammac as gammaincc
from devtensor._composed.elementwise.gamma_functions import polygamma
from devtensor._composed.elementwise.pointwise import back, digamma, exp2, floating, logit, round, sinc, xlogy
from devtensor._composed.elementwise.pointwise import lgamma as gammaln
from devtensor._composed.reductions.moments import logsumexp
from devtensor._composed.written import takes_out

__all__ = [
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "sinc",
    "softmax",
    "xlog1py",
    "xlogy",
]

psi = digamma


def __dir__() -> list[str]:
    return __all__


@takes_out
def entr(input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """-x * log(x), 0 at 0, minus infinity below 0. Integers and bools give the default dtype.

    >>> dt.special.entr(dt.tensor([0.0, 0.5, -1.0]))
    DeviceArray([0.0000, 0.3466,   -inf], device='cpu', dtype=float32)
    """
    need_array("entr", "input", input)
    return back(entropy(floating(input)), input)


@takes_out
def ndtr(input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """The normal distribution function: erfc(-x / sqrt(2)) / 2. Integers and bools give the default dtype.

    >>> dt.special.ndtr(dt.tensor([0.0, 1.0]))
    DeviceArray([0.5000, 0.8413], device='cpu', dtype=float32)
    """
    need_array("ndtr", "input", input)
    return back((floating(input) * -math.sqrt(0.5)).erfc() / 2, input)


@takes_out
def ndtri(input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """The inverse of ndtr: sqrt(2) * erfinv(2 * x - 1). Integers and bools give the default dtype.

    >>> dt.special.ndtri(dt.tensor([0.5, 0.8413447]))
    DeviceArray([0.0000, 1.0000], device='cpu', dtype=float32)
    """
    need_array("ndtri", "input", input)
    return back((2 * floating(input) - 1).erfinv() * math.sqrt(2), input)
