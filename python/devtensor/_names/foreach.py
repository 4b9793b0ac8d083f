"""`torch._foreach_add_(params, grads, alpha=2)`: an op on each array of a list, which optimizers are written with."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from devtensor._C import DeviceArray

_UNARY = """abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal
round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc""".split()
_BINARY = "add sub mul div pow lerp addcmul addcdiv maximum minimum clamp_max clamp_min".split()
_IN_PLACE = {f"{name}_" for name in (*_UNARY, *_BINARY)} | {"copy_", "zero_"}
_NAMES = {*_UNARY, *_BINARY, *_IN_PLACE, "clone", "max", "norm", "mm"}
_OPERANDS = "tensors1 tensor1 tensor2 other exponent src scalar scalars weight weights".split()  # names, in their order
# What maximum and minimum are of a number.
_OF_NUMBERS = {"maximum": "clamp_min", "minimum": "clamp_max"}


def names() -> list[str]:
    return sorted(f"_foreach_{name}" for name in _NAMES)


def find(name: str) -> Callable[..., Any] | None:
    """The function of this name; None where there is none."""
    op = name.removeprefix("_foreach_")
    return functools.partial(_each, op) if name.startswith("_foreach_") and op in _NAMES else None


def _each(op: str, self: Sequence[DeviceArray], *args: Any, **options: Any) -> Any:
    """The op of each array with its own argument of each list, or with the one argument of all.

    The results as a list; self where the op is in place. Raises RuntimeError for lists of other lengths, and what the
    op raises.
    """
    args = (*args, *(options.pop(name) for name in _OPERANDS if name in options))
    if op == "pow" and isinstance(self, (int, float)) and len(args) == 1:  # _foreach_pow(2, exponents)
        return [self**x for x in args[0]]
    if not isinstance(self, (list, tuple)):
        raise TypeError(f"_foreach_{op}(): argument 'self' must be a list of arrays, not {type(self).__name__}")
    arrays = list(self)
    if op in ("addcmul", "addcmul_", "addcdiv", "addcdiv_") and len(args) == 3:
        options["value"], args = args[2], args[:2]
        if isinstance(options["value"], DeviceArray):
            options["value"] = options["value"].tolist()
    listed = (*args, *options.values())
    if any(isinstance(value, (list, tuple)) and len(value) != len(arrays) for value in listed):
        lengths = ", ".join(str(len(value)) for value in listed if isinstance(value, (list, tuple)))
        raise RuntimeError(f"_foreach_{op}(): lists must have the same length, but got {len(arrays)} and {lengths}")
    results = [
        _one(op, x, [_of(value, i) for value in args], {name: _of(value, i) for name, value in options.items()})
        for i, x in enumerate(arrays)
    ]
    return self if op.endswith("_") else results


def _of(value: Any, i: int) -> Any:
    return value[i] if isinstance(value, (list, tuple)) else value


def _one(op: str, x: DeviceArray, args: list[Any], options: dict[str, Any]) -> DeviceArray:
    stem = op.removesuffix("_")
    if stem in _OF_NUMBERS and args and not isinstance(args[0], DeviceArray):
        op = op.replace(stem, _OF_NUMBERS[stem])
    elif op in ("maximum_", "minimum_"):
        return x.copy_(getattr(x, stem)(*args, **options))
    elif op == "norm":
        import devtensor

        return devtensor.linalg.vector_norm(x, *args, **options)
    found: DeviceArray = getattr(x, op)(*args, **options)
    return found
