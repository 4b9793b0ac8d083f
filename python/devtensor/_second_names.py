"""PyTorch's and NumPy's second names of ops: the one place where they stand. Methods, also in place, follow."""

from __future__ import annotations

from typing import Any

from devtensor import _C

absolute = _C.abs
arccos = _C.acos
arccosh = _C.acosh
arcsin = _C.asin
arcsinh = _C.asinh
arctan = _C.atan
arctan2 = _C.atan2
arctanh = _C.atanh
clip = _C.clamp
concat = _C.cat
concatenate = _C.cat
divide = _C.div
fix = _C.trunc
greater = _C.gt
greater_equal = _C.ge
less = _C.lt
less_equal = _C.le
moveaxis = _C.movedim
multiply = _C.mul
negative = _C.neg
not_equal = _C.ne
sgn = _C.sign
subtract = _C.sub
swapaxes = _C.transpose
swapdims = _C.transpose
true_divide = _C.div


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
