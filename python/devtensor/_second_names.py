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
from devtensor._C import sign as sgn
from devtensor._C import sub as subtract
from devtensor._C import transpose as swapaxes
from devtensor._C import trunc as fix

_FUNCTIONS = {
    "absolute": absolute,
    "arccos": arccos,
    "arccosh": arccosh,
    "arcsin": arcsin,
    "arcsinh": arcsinh,
    "arctan": arctan,
    "arctan2": arctan2,
    "arctanh": arctanh,
    "clip": clip,
    "concat": concat,
    "concatenate": concatenate,
    "divide": divide,
    "fix": fix,
    "greater": greater,
    "greater_equal": greater_equal,
    "less": less,
    "less_equal": less_equal,
    "moveaxis": moveaxis,
    "multiply": multiply,
    "negative": negative,
    "not_equal": not_equal,
    "sgn": sgn,
    "subtract": subtract,
    "swapaxes": swapaxes,
    "true_divide": true_divide,
}


def methods() -> dict[str, Any]:
    """The second names of methods, with those in place, which end in an underscore."""
    found = {}
    for name, function in _FUNCTIONS.items():
        for tail in ("", "_"):
            method = getattr(_C.DeviceArray, function.__name__ + tail, None)
            if method is not None:
                found[name + tail] = method
    return found
