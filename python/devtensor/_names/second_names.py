"""PyTorch's and NumPy's second names of ops: the one place where they stand. Methods, also in place, follow."""

from __future__ import annotations

from typing import Any

from devtensor import _C
from devtensor._C import abs as absolute
from devtensor._C import acos as arccos
from devtensor._C import acosh as arccosh
from devtensor._C import asin as arcsin
from devtensor._C import asinh as arcsinh
from devtensor._C import atan as arctan
from devtensor._C import atan2 as arctan2
from devtensor._C import atanh as arctanh
from devtensor._C import cat as concat
from devtensor._C import cat as concatenate
from devtensor._C import clamp as clip
from devtensor._C import div as divide
from devtensor._C import div as true_divide
from devtensor._C import ge as greater_equal
from devtensor._C import gt as greater
from devtensor._C import le as less_equal
from devtensor._C import lt as less
from devtensor._C import movedim as moveaxis
from devtensor._C import mul as multiply
from devtensor._C import ne as not_equal
from devtensor._C import neg as negative
from devtensor._C import outer as ger
from devtensor._C import sign as sgn
from devtensor._C import sub as subtract
from devtensor._C import transpose as swapaxes
from devtensor._C import transpose as swapdims
from devtensor._C import trunc as fix


def methods() -> dict[str, Any]:
    """The second names of methods, with those in place, which end in an underscore."""
    found = {}
    for name, function in globals().items():
        for tail in ("", "_") if type(function) is type(_C.add) else ():
            method = getattr(_C.DeviceArray, function.__name__ + tail, None)
            if method is not None:
                found[name + tail] = method
    return found


__all__ = [
    "absolute",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "clip",
    "concat",
    "concatenate",
    "divide",
    "fix",
    "ger",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "moveaxis",
    "multiply",
    "negative",
    "not_equal",
    "sgn",
    "subtract",
    "swapaxes",
    "swapdims",
    "true_divide",
]
