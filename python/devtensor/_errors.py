"""The exceptions of devtensor. Each inherits also what other frameworks raise there."""

from __future__ import annotations

import builtins
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from devtensor import _C


class Origin(NamedTuple):
    """Where an array was made: by which action, in which file, on which line."""

    action: str
    filename: str
    lineno: int

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, as JSON takes them."""
        return self._asdict()


def _action(op: str, called: str) -> str:
    """What a user knows of a step: the public function that was called, else the op."""
    if op == "detach":  # of state_dict, say: what cuts a gradient is looked for by its name
        return op
    loaded = (sys.modules.get(f"devtensor{name}") for name in ("", ".nn.functional", ".nn.init", ".linalg", ".special"))
    if any(called in getattr(module, "__all__", ()) for module in loaded):
        return called
    classes = ((".nn", "Module"), (".optim", "Optimizer"), ("._C", "DeviceArray"))
    known = (getattr(sys.modules.get(f"devtensor{module}"), name, None) for module, name in classes)
    return called if any(hasattr(found, called) for found in known) else op


class Step(NamedTuple):
    """One step in the making of an array: the action and its place, and what the array was after it."""

    action: str
    filename: str | None
    lineno: int
    device: _C.device
    dtype: _C.dtype
    elided: bool = False  # steps before this one are left out
    decides: str = ""  # "device" or "dtype": what this step decided, where steps left out do not show it

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, as JSON takes them."""
        return {**self._asdict(), "device": str(self.device), "dtype": self.dtype.name}


class Operand(NamedTuple):
    """One array of a call that was refused.

    name is the public parameter, expression the caller's text or None. origin is where the disputed device or dtype was
    decided, or the shape made; history all steps, the latest first.
    """

    name: str
    expression: str | None
    shape: tuple[int, ...]
    dtype: _C.dtype
    device: _C.device
    origin: Origin | None
    history: tuple[Step, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, as JSON takes them."""
        return {
            "name": self.name,
            "expression": self.expression,
            "shape": list(self.shape),
            "dtype": getattr(self.dtype, "name", None),
            "device": str(self.device),
            "origin": self.origin.to_dict() if self.origin is not None else None,
            "history": [step.to_dict() for step in self.history],
        }


Given = tuple[tuple[Any, ...], ...]  # (name, shape, dtype, device, steps, object) for each operand


class _Facts:
    """What errors and warnings know: the op, the arrays that met there, and what to type."""

    op: str | None = None
    code: str | None = None
    operands: tuple[Operand, ...] = ()
    culprit: Operand | None = None
    fix: str | None = None
    fix_at: Origin | None = None  # the line that the fix belongs to; None: the failing one
    fix_how: str = "before"  # or "instead", of fix_of, a text on that line
    fix_of: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """All that the error knows, in types of JSON: class, message, op, code, operands, culprit (a name), fix, notes.

        What str(error) leaves out is here, so a log can keep it.
        """
        found: dict[str, Any] = {
            "type": type(self).__name__,
            "message": str(self),
            "op": self.op,
            "code": self.code,
            "operands": [operand.to_dict() for operand in self.operands],
            "culprit": self.culprit.name if self.culprit is not None else None,
            "fix": self.fix,
            "fix_at": self.fix_at.to_dict() if self.fix_at is not None else None,
            "fix_how": self.fix_how,
            "fix_of": self.fix_of,
            "notes": list(getattr(self, "__notes__", [])),
        }
        for name in ("module_path", "symbol", "status", "device", "requested", "log", "lineno"):
            if hasattr(self, name):
                value = getattr(self, name)
                found[name] = value if value is None or isinstance(value, (int, str)) else str(value)
        return found


class _Explained(_Facts, RuntimeError):
    """An error that knows its op and the arrays that met there."""

    modules: tuple[Any, ...] = ()  # the Modules in whose call this happened, the outermost last
    module_path: str | None = None  # such as "Net.layer3.conv1"

    def __reduce__(self) -> Any:
        """Modules are not pickled with an error; their names are."""
        state = {name: value for name, value in self.__dict__.items() if name != "modules"}
        return type(self), self.args, state

    def explain(self) -> str:
        """The long form: the message, its notes, the cause and the usual correction."""
        from devtensor._diagnosis.notes import explanation

        return explanation(self)


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
    device: _C.device | None = None
    requested: int | None = None


class CudaError(_Explained):
    """A call of a CUDA library failed; symbol, status and device say which, how and where."""

    symbol: str | None = None
    status: int | None = None
    device: _C.device | None = None


class KernelCompileError(CudaError):
    """The source of a kernel does not compile. log is all that the compiler said, lineno the first wrong line."""

    log: str = ""
    lineno: int | None = None


class KernelArgumentError(_Explained, TypeError):
    """An argument does not fit the declaration of a kernel."""


class GradientError(_Explained):
    """A gradient cannot be computed: the graph is cut or used up, or an array that it needs was written to."""


class GradientWarning(_Facts, UserWarning):
    """A training program does what a correct one does not: a fact, with the attributes of an error."""


class TransferForbiddenError(_Explained):
    """A copy between devices was asked for where none may happen."""


for _error in (*_Explained.__subclasses__(), KernelCompileError, GradientWarning):
    _error.__module__ = "devtensor"  # where users see and pickles find them


def _build(
    class_name: str,
    message: str,
    op: str | None,
    code: str | None,
    operands: Given,
    culprit: int,
    symbol: str | None,
    status: int,
    requested: int,
    foreign: Any,
) -> Exception:
    """The exception that the compiled part raises."""
    cls = globals().get(class_name) or getattr(builtins, class_name)
    error: Any = cls(message)
    error.op = op
    error.code = code
    error.operands, error.culprit, error.fix = (), None, None
    if isinstance(error, CudaError | OutOfMemoryError):
        error.symbol = symbol
        error.status = status
    if isinstance(error, OutOfMemoryError):
        error.requested = requested
    if operands or isinstance(error, _Explained):
        from devtensor import _diagnosis

        error.operands = _diagnosis.operands_of(operands)
        error.culprit = error.operands[culprit] if culprit >= 0 else None
        _diagnosis.explain(error, operands, culprit, foreign)
    result: Exception = error
    return result


def _annotate(error: Any, op: str, code: str, operands: Given, culprit: int) -> None:
    """Gives an exception of another class what _build gives: attributes and notes."""
    if getattr(error, "operands", ()) or getattr(error, "__notes__", ()):
        return
    from devtensor import _diagnosis

    error.op, error.code = getattr(error, "op", None) or op, getattr(error, "code", None) or code
    error.operands, error.fix = _diagnosis.operands_of(operands), None
    error.culprit = error.operands[culprit] if culprit >= 0 else None
    _diagnosis.explain(error, operands, culprit)
