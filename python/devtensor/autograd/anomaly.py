"""Find the op whose gradient is NaN first."""

from __future__ import annotations

import linecache
from types import TracebackType
from typing import Any

from devtensor import _C
from devtensor._errors import GradientError

_check_nan = True


def _look(node: _C.Node, index: int, gradient: _C.DeviceArray | None) -> None:
    """Raise where the gradient that node's formula gave to an operand holds a NaN; the engine calls it."""
    if gradient is None or not _check_nan:
        return
    recording = _C._set_grad_enabled(False)
    try:
        if not gradient.isnan().any().item():
            return
    finally:
        _C._set_grad_enabled(recording)
    text = f"Function '{node.name()}' returned nan values in its {index}th output."
    origin = node.origin
    if origin is not None:
        text += f" (recorded at {origin.filename}:{origin.lineno}: {_line(origin)})"
    raise _C._explained(node.name(), ("gradient",), (gradient,), "grad-nan", GradientError(text), 0)


def _line(origin: Any) -> str:
    return linecache.getline(origin.filename, origin.lineno).strip()


class set_detect_anomaly:
    """Look for NaN in every gradient from now on, or no longer; as a context manager, until its end.

    Each gradient of this thread is read on the host, so that a backward waits for the device at each op.

    >>> with dt.autograd.set_detect_anomaly(True):
    ...     dt.ones(2, requires_grad=True).sum().backward()
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        global _check_nan
        self._outer = _C._watch_gradients(mode), _check_nan
        _check_nan = check_nan

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        global _check_nan
        mode, _check_nan = self._outer
        _C._watch_gradients(mode)


class detect_anomaly:
    """Within the block, a gradient that holds a NaN is a GradientError, which names the op and its line.

    Each gradient of this thread is read on the host, so that a backward waits for the device at each op.

    >>> x = dt.tensor([0.0, 1.0], requires_grad=True)
    >>> with dt.autograd.detect_anomaly():
    ...     (x.sqrt() * 0).sum().backward()
    Traceback (most recent call last):
        ...
    devtensor.GradientError: Function 'SqrtBackward0' returned nan values in its 0th output...
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan

    def __enter__(self) -> None:
        self._block = set_detect_anomaly(True, self._check_nan)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._block.__exit__(kind, error, trace)
