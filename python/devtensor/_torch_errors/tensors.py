"""What the diagnosis asks about PyTorch's tensors, functions and modules. Nothing of torch is imported: it is there."""

from __future__ import annotations

import functools
import inspect
import re
import sys
import types
from types import CodeType
from typing import Any

from devtensor._diagnosis import arrays
from devtensor._torch_errors import frames, recorder

_DOC = re.compile(r"\s*(?:torch\.)?[\w.]*?(\w+)\((.*?)\)\s*->", re.DOTALL)


def torch() -> Any:
    return sys.modules["torch"]


class Torch(arrays.Library):
    """PyTorch, as it was imported by the program."""

    name = "torch"

    def is_array(self, value: Any) -> bool:
        kind = getattr(sys.modules.get("torch"), "Tensor", None)
        return kind is not None and issubclass(type(value), kind)

    def is_registered(self, value: Any) -> bool:
        return self.is_array(value) and type(value).__name__ in ("Parameter", "Buffer")

    def is_told(self, value: Any) -> bool:
        module = sys.modules.get("torch")
        return module is not None and type(value) in (module.dtype, module.device)

    def steps(self, array: Any) -> list[arrays.Recorded]:
        return recorder.steps(array)

    def signature(self, callee: Any) -> tuple[tuple[str, ...], bool] | None:
        if "torch" not in sys.modules or not is_op(callee):
            return None
        names = _parameters(callee, is_method(callee))
        return (names, callee.__name__.endswith("_")) if names is not None else None

    def method(self, name: str) -> tuple[str, ...] | None:
        module = sys.modules.get("torch")
        found = inspect.getattr_static(module.Tensor, name, None) if module is not None else None
        if type(found) is not types.MethodDescriptorType:
            return None
        return _parameters(found, True)

    def is_module(self, value: Any) -> bool:
        nn = sys.modules.get("torch.nn")
        return nn is not None and issubclass(type(value), nn.Module)

    def forward(self, kind: Any) -> CodeType | None:
        nn = sys.modules.get("torch.nn")
        if nn is None or not isinstance(kind, type) or not issubclass(kind, nn.Module):
            return None
        code = getattr(inspect.getattr_static(kind, "forward", None), "__code__", None)
        return code if type(code) is CodeType else None

    def makes(self, callee: Any, action: str) -> bool:
        module = sys.modules.get("torch")
        return module is not None and callee is vars(module).get(action, self)

    def is_own(self, filename: str) -> bool:
        return frames.is_torch(filename)


TORCH = Torch()
arrays.register(TORCH)


def is_method(callee: Any) -> bool:
    return type(callee) is types.MethodDescriptorType or type(callee) is types.WrapperDescriptorType


def is_op(callee: Any) -> bool:
    """Whether a function is one of PyTorch's compiled ones."""
    if type(callee) is types.BuiltinFunctionType:
        own = callee.__self__
        module = callee.__module__ or getattr(own, "__name__", "") or getattr(type(own), "__module__", "")
        return str(module).partition(".")[0] == "torch" or own in (getattr(torch()._C, "_VariableFunctions", 0),)
    return is_method(callee) and issubclass(torch().Tensor, callee.__objclass__) and callee.__objclass__ is not object


def _parameters(callee: Any, method: bool) -> tuple[str, ...] | None:
    """The parameters of an op; those of a method whose documentation refers to the function are the function's."""
    name = callee.__name__
    names = _documented(name, method, (getattr(callee, "__doc__", None) or "")[:600])
    if method and names == ("input",):
        function = _documented(name, False, (getattr(vars(torch()).get(name), "__doc__", None) or "")[:600])
        return function if function and function[0] == "input" else names
    return names


@functools.cache
def _documented(name: str, method: bool, text: str) -> tuple[str, ...] | None:
    """The parameters of an op: devtensor's, which has PyTorch's names, else as the documentation begins with them."""
    ours = arrays.OURS.method(name) if method else arrays.parameters(name, False)
    if ours:
        return ours
    found = _DOC.match(text)
    if found is not None and found[1] == name:
        names = [part.partition("=")[0].strip(" *") for part in found[2].split(",")]
        kept = tuple(part for part in names if part.isidentifier())
        if "*" not in found[2].partition(", *, ")[0].replace(" *,", ""):
            return ("input", *kept) if method and kept[:1] != ("input",) else kept
    return ("input",) if method else None
