"""out=: the one way in which composed ops write their results into the caller's arrays."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._memory_formats import strided

_F = TypeVar("_F", bound=Callable[..., Any])


def need_out(op: str, out: DeviceArray) -> None:
    """Raises TypeError for what is no array, and what a write to it would raise."""
    _C._check_rank(op, ("out",), (out,), 0, 0, 8)
    _C._check_in_place(op, ("out",), (out,), out.dtype, out.shape)


def takes_out(function: _F) -> _F:
    """function with its parameter out: an array, or a tuple of as many as it has results, which it returns.

    out must be on the device of the result and have its shape; its dtype may be any that the result can be cast to
    (can_cast). Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, GradientError where a gradient would
    be recorded. What is refused changes no element of out.
    """
    op = function.__name__

    @functools.wraps(function)
    def _call(*args: Any, out: Any = None, **options: Any) -> Any:
        if out is None:
            return function(*args, **options)
        several = isinstance(out, (tuple, list))
        for one in out if several else (out,):
            need_out(op, one)
        result = function(*args, **options)
        if isinstance(result, DeviceArray):
            return _C._write_out(op, result, out)
        if not several or len(out) != len(result):
            raise TypeError(f"{op}(): argument 'out' must be a tuple of {len(result)} DeviceArrays")
        for made, one in zip(result, out, strict=True):  # all can be written, or none is
            _C._check_devices(op, ("out", "result"), (one, made))
            _C._check_in_place(op, ("out", "result"), (one, made), made.dtype, made.shape)
        written = [_C._write_out(op, made, one) for made, one in zip(result, out, strict=True)]
        make = getattr(type(result), "_make", type(result))
        return make(written)

    _call._formula = function  # type: ignore[attr-defined]
    return cast(_F, _call)


def made_in_out(function: _F) -> _F:
    """takes_out for what is made of no array: out decides dtype and device where they are not given."""
    written: Any = takes_out(function)

    @functools.wraps(function)
    def _call(*args: Any, out: Any = None, **options: Any) -> Any:
        if isinstance(out, DeviceArray):
            for name in ("dtype", "device"):
                options[name] = getattr(out, name) if options.get(name) is None else options[name]
            named = _C.empty(0, dtype=options["dtype"], device=options["device"])
            _C._check_devices(function.__name__, ("out", "result"), (out, named))
            _C._check_dtypes(function.__name__, ("out", "result"), (out, named), -1)
        return written(*args, out=out, **options)

    return cast(_F, _call)


def made_as_asked(function: _F) -> _F:
    """function with its parameters pin_memory, for page-locked memory, and layout, of which there is one: strided."""
    op = function.__name__

    @functools.wraps(function)
    def _call(*args: Any, pin_memory: bool | None = False, layout: Any = None, **options: Any) -> Any:
        if layout is not None and layout != strided:
            raise TypeError(
                f"{op}(): argument 'layout' must be devtensor.strided, the only layout, not {_C._shown(layout)}"
            )
        pinned = pin_memory is not None and _C._need_bool(op, "pin_memory", pin_memory)
        if not pinned or options.get("out") is not None:
            return function(*args, **options)
        recorded = _C._need_bool(op, "requires_grad", options.pop("requires_grad", False))
        return function(*args, **options).pin_memory().requires_grad_(recorded)

    return cast(_F, _call)


def method_of(function: _F) -> _F:
    """function as arrays have it: without out."""
    formula: Callable[..., Any] | None = getattr(function, "_formula", None)
    if formula is None:
        return function
    op = function.__name__

    @functools.wraps(formula)
    def _method(*args: Any, **options: Any) -> Any:
        if "out" in options:
            raise TypeError(f"{op}() got an unexpected keyword argument 'out'")
        return formula(*args, **options)

    own = inspect.signature(formula)
    without = [p for name, p in own.parameters.items() if name != "out"]
    _method.__signature__ = own.replace(parameters=without)  # type: ignore[attr-defined]
    return cast(_F, _method)


def numbers_first(function: _F) -> _F:
    """function, which also takes its numbers before its arrays: addcmul(x, 2, a, b), PyTorch's deprecated form.

    They are beta and alpha, or value; old optimizers write so.
    """
    parameters = inspect.signature(function).parameters.values()
    count = sum(parameter.kind is not parameter.KEYWORD_ONLY for parameter in parameters)
    names = [parameter.name for parameter in parameters if parameter.name in ("beta", "alpha", "value")]

    @functools.wraps(function)
    def _call(*args: Any, **options: Any) -> Any:
        if len(args) > count and isinstance(args[-1], DeviceArray):
            # between arrays one without dimensions is a number too
            places = [i for i, x in enumerate(args) if not isinstance(x, DeviceArray)]
            places += [i for i in range(1, len(args) - 1) if isinstance(args[i], DeviceArray) and args[i].ndim == 0]
            taken = sorted(places[: len(args) - count])
            numbers = [args[i] for i in taken]
            if len(args) - len(numbers) == count and len(numbers) <= len(names) and not options.keys() & set(names):
                from devtensor import _diagnosis

                text = f"{function.__name__}(): numbers before arrays are PyTorch's deprecated form: give them as "
                _diagnosis.warn_at(
                    _diagnosis._caller(sys._getframe()), UserWarning(text + " and ".join(f"{name}=" for name in names))
                )
                args = tuple(value for i, value in enumerate(args) if i not in taken)
                options.update(zip(names, numbers, strict=False))
        return function(*args, **options)

    return cast(_F, _call)
