"""The exceptions of devtensor. Each inherits also what other frameworks raise there."""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple


class Origin(NamedTuple):
    """Where an array was made: by which action, in which file, on which line."""

    action: str
    filename: str
    lineno: int


class Operand(NamedTuple):
    """One array of a call that was refused."""

    name: str
    expression: str | None
    shape: tuple[int, ...]
    dtype: Any
    device: Any
    origin: Origin | None


class _Explained(RuntimeError):
    """An error that knows its op and the arrays that met there."""

    op: str | None = None
    code: str | None = None
    operands: tuple[Operand, ...] = ()
    culprit: Operand | None = None
    fix: str | None = None
    modules: tuple[Any, ...] = ()  # the Modules in whose call this happened, the outermost last
    module_path: str | None = None  # such as "Net.layer3.conv1"

    def __reduce__(self) -> Any:
        """Modules are not pickled with an error; their names are."""
        state = {name: value for name, value in self.__dict__.items() if name != "modules"}
        return type(self), self.args, state


class DeviceMismatchError(_Explained):
    """Arrays on different devices met in one op."""


class DTypeMismatchError(_Explained, TypeError):
    """Arrays of dtypes that do not go together met in one op, or an op does not exist for a dtype."""


class ShapeMismatchError(_Explained, ValueError):
    """Shapes do not go together."""


class DeviceNotAvailableError(_Explained):
    """There is no such device here."""


class HostAccessError(_Explained, TypeError):
    """NumPy, or another reader of host memory, was given a device array."""


class OutOfMemoryError(_Explained, MemoryError):
    """A device has no room for an allocation."""

    symbol: str | None = None
    status: int | None = None
    device: Any = None
    requested: int | None = None


class CudaError(_Explained):
    """A call of a CUDA library failed; symbol, status and device say which, how and where."""

    symbol: str | None = None
    status: int | None = None
    device: Any = None


class KernelArgumentError(_Explained, TypeError):
    """An argument does not fit the declaration of a kernel."""


class TransferForbiddenError(_Explained):
    """A copy between devices was asked for where none may happen."""


for _error in _Explained.__subclasses__():
    _error.__module__ = "devtensor"  # where users see and pickles find them


def _build(
    class_name: str,
    message: str,
    op: str | None,
    code: str | None,
    operands: tuple[tuple[Any, ...], ...],
    culprit: int,
    symbol: str | None,
    status: int,
    requested: int,
) -> Exception:
    """The exception that the compiled part raises."""
    cls = globals().get(class_name) or getattr(builtins, class_name)
    error: Any = cls(message)
    error.op = op
    error.code = code
    error.operands = tuple(Operand(name, None, *rest) for name, *rest in operands)
    error.culprit = error.operands[culprit] if culprit >= 0 else None
    error.fix = None
    if isinstance(error, CudaError | OutOfMemoryError):
        error.symbol = symbol
        error.status = status
    if isinstance(error, OutOfMemoryError):
        error.requested = requested
    result: Exception = error
    return result
