"""What an operand is: an array of devtensor, or a tensor of a library whose errors are explained here as well.

The diagnosis asks a Library and knows no type of array. Ours is the first; devtensor._torch_errors registers PyTorch.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable
from types import CodeType
from typing import Any, NamedTuple

from devtensor import _C
from devtensor._errors import Step

_BUILTIN = types.BuiltinFunctionType
_METHOD = types.MethodDescriptorType


class Recorded(NamedTuple):
    """A step in the making of an array, its code and instruction, and whether recording of gradients was off."""

    step: Step
    place: tuple[CodeType, int] | None
    off: bool


class Library:
    """What the diagnosis asks of the library that an array belongs to: here of devtensor."""

    name = "devtensor"

    def is_array(self, value: Any) -> bool:
        """Whether it is an array, of any subclass."""
        return issubclass(type(value), _C.DeviceArray)

    def is_registered(self, value: Any) -> bool:
        """Whether it is a parameter or buffer, which is moved with its Module."""
        return type(value) in (_C._Parameter, _C._Buffer)

    def is_told(self, value: Any) -> bool:
        """Whether it is a dtype or a device."""
        return type(value) in (_C.dtype, _C.device)

    def requires_grad(self, array: Any) -> bool:
        return bool(_C.DeviceArray.requires_grad.__get__(array))

    def steps(self, array: Any) -> list[Recorded]:
        """How it was made, the latest first."""
        return [Recorded(Step(*step), place, off) for step, place, off in _C._steps(array)]

    def signature(self, callee: Any) -> tuple[tuple[str, ...], bool] | None:
        """The parameters of an op, and whether it writes in place; None of what is none."""
        if type(callee) is _BUILTIN and callee.__self__ is _C:
            return parameters(callee.__name__, False), False
        composed = type(callee) is types.FunctionType and vars(_C.DeviceArray).get(callee.__name__) is callee
        if composed or (type(callee) is _METHOD and callee.__objclass__ is _C.DeviceArray):
            return parameters(callee.__name__, True), callee.__name__.endswith("_")
        return None

    def method(self, name: str) -> tuple[str, ...] | None:
        """The parameters of a method of arrays, the array itself first; None where there is none."""
        return parameters(name, True) if hasattr(_C.DeviceArray, name) else None

    def is_module(self, value: Any) -> bool:
        """Whether it is a Module that holds its parameters, buffers and Modules in tables."""
        return False

    def forward(self, kind: Any) -> CodeType | None:
        """The code of forward of a class of Modules."""
        if type(kind) is type(_C._Layer) and issubclass(kind, _C._Layer):
            code = getattr(kind.forward, "__code__", None)  # type: ignore[attr-defined]
            return code if type(code) is CodeType else None
        return None

    def makes(self, callee: Any, action: str) -> bool:
        """Whether a function is the op that a step names."""
        return callee is getattr(_C, action, self)

    def is_of(self, value: Any) -> bool:
        """Whether a function or a class is one of the library's own."""
        return (getattr(value, "__module__", None) or "").partition(".")[0] == self.name

    def is_own(self, filename: str) -> bool:
        """Whether a file is one of the library's, beside those of the package itself."""
        return False


OURS = Library()
_libraries: list[Library] = [OURS]


def register(library: Library) -> None:
    """Explains the errors of another library, too."""
    if library not in _libraries:
        _libraries.append(library)


def _of(value: Any) -> Library | None:
    return next((one for one in _libraries if one.is_array(value)), None)


def is_array(value: Any) -> bool:
    return _of(value) is not None


def is_plain_array(value: Any) -> bool:
    """An array that is no parameter, buffer or subclass of a user's."""
    return is_array(value) and (type(value) is _C.DeviceArray or type(value).__name__ == "Tensor")


def is_registered(value: Any) -> bool:
    return any(one.is_registered(value) for one in _libraries)


def is_told(value: Any) -> bool:
    return any(one.is_told(value) for one in _libraries)


def requires_grad(array: Any) -> bool:
    library = _of(array)
    return library is not None and library.requires_grad(array)


def steps(array: Any) -> list[Recorded]:
    library = _of(array)
    return library.steps(array) if library is not None else []


def signature(callee: Any) -> tuple[tuple[str, ...], bool] | None:
    found: tuple[tuple[str, ...], bool] | None = _first(one.signature(callee) for one in _libraries)
    return found


def method(base: Any, name: str, missing: Any) -> tuple[str, ...] | None:
    """The parameters of a method that is called on base; where that is not known, of arrays."""
    if base is missing:
        found: tuple[str, ...] | None = _first(one.method(name) for one in _libraries)
        return found
    library = _of(base)
    return library.method(name) if library is not None else None


def is_module(value: Any) -> bool:
    return any(one.is_module(value) for one in _libraries)


def forward(kind: Any) -> CodeType | None:
    found: CodeType | None = _first(one.forward(kind) for one in _libraries)
    return found


def makes(callee: Any, action: str) -> bool:
    return any(one.makes(callee, action) for one in _libraries)


def is_of_library(value: Any) -> bool:
    return any(one.is_of(value) for one in _libraries)


def is_own(filename: str) -> bool:
    return any(one.is_own(filename) for one in _libraries)


def _first(found: Iterable[Any]) -> Any:
    return next((one for one in found if one is not None), None)


@functools.cache
def parameters(name: str, method: bool) -> tuple[str, ...]:
    """The positional names of an op, the keyword ones after them; of a method, the array itself is the first."""
    function = getattr(_C.DeviceArray if method else _C, name, None)
    if isinstance(function, types.FunctionType):  # composed of others
        code = function.__code__
        names = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    else:
        text = getattr(function, "__text_signature__", None) or ""
        names = [part.split("=")[0].strip() for part in text.strip("()").split(",")]
        names = [part for part in names if part.isidentifier() or part.startswith("$")]
    return ("input", *names[1:]) if method else tuple(names)
