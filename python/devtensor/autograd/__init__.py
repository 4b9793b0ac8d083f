"""Gradients: backward, grad, and the modes in which ops are recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from devtensor import _C
from devtensor._diagnosis import watching
from devtensor._names import refusals as _refusals
from devtensor._names.old_names import Variable
from devtensor.autograd import function, functional, graph
from devtensor.autograd._explain import explain
from devtensor.autograd.anomaly import detect_anomaly, set_detect_anomaly
from devtensor.autograd.function import Function
from devtensor.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from devtensor.autograd.gradcheck import gradcheck, gradgradcheck

Node = _C.Node

__all__ = [
    "Function",
    "Node",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "explain",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]

_Arrays = _C.DeviceArray | Sequence[_C.DeviceArray]
_Gradients = _C.DeviceArray | Sequence[_C.DeviceArray | None] | None


def _tuple(arrays: Any) -> tuple[Any, ...]:
    return (arrays,) if isinstance(arrays, _C.DeviceArray) else tuple(arrays)


def _gradients(name: str, given: Any, n: int) -> tuple[Any, ...]:
    """One gradient, or None, for each of n arrays."""
    if given is None:
        return (None,) * n
    gradients = _tuple(given)
    if len(gradients) != n:
        raise RuntimeError(f"got {n} tensors and {len(gradients)} gradients ({name})")
    return gradients


def backward(
    tensors: _Arrays,
    grad_tensors: _Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: _Gradients = None,
    inputs: _Arrays | None = None,
) -> None:
    """Add the gradients of tensors to the .grad of the leaves that they were made from.

    Parameters
    ----------
    tensors : DeviceArray or sequence of DeviceArray
        Results of recorded ops; float.
    grad_tensors : DeviceArray, sequence or None
        The gradient of each, of its shape, dtype and device. None stands for 1, which only scalars may have.
    retain_graph : bool, optional
        Keeps what the graph needs for another call; create_graph decides where it is not given.
    create_graph : bool
        Records the computation of the gradients, so that they can be differentiated.
    grad_variables : DeviceArray, sequence or None
        The older name of grad_tensors.
    inputs : DeviceArray, sequence or None
        The only arrays whose .grad is added to; None: all leaves.

    Raises
    ------
    GradientError
        Where nothing was recorded, a result is no scalar, or the graph has been used up.

    Examples
    --------
    >>> x = dt.array([1.0, 2.0], requires_grad=True)
    >>> dt.autograd.backward((x * x).sum())
    >>> x.grad
    DeviceArray([2., 4.], device='cpu', dtype=float32)
    """
    if grad_variables is not None:
        grad_tensors = grad_variables
    roots = _tuple(tensors)
    if inputs is not None:
        inputs = _tuple(inputs)
        if not inputs:
            raise RuntimeError("'inputs' argument to backward() cannot be empty.")
    retain = create_graph if retain_graph is None else retain_graph
    if watching.report is not None:
        watching.report.ran()
    _C._backward(roots, _gradients("grad_tensors", grad_tensors, len(roots)), retain, create_graph, inputs)


def grad(
    outputs: _Arrays,
    inputs: _Arrays,
    grad_outputs: _Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """Return the gradients of outputs with respect to inputs; no .grad changes.

    Parameters
    ----------
    outputs, inputs : DeviceArray or sequence of DeviceArray
        Results of recorded ops, and what they were made from.
    grad_outputs : DeviceArray, sequence or None
        The gradient of each output, as grad_tensors of backward.
    retain_graph, create_graph : bool
        As those of backward.
    only_inputs : bool
        Only True: backward() is for all leaves.
    allow_unused : bool, optional
        Gives None for an input that outputs do not depend on, instead of raising GradientError.
    is_grads_batched : bool
        Only False.
    materialize_grads : bool
        Gives zeros for such an input.

    Returns
    -------
    tuple of DeviceArray
        One for each input, of its shape.

    Raises
    ------
    GradientError
        As backward, and for an input that is not used.

    Examples
    --------
    >>> x = dt.array([1.0, 2.0], requires_grad=True)
    >>> dt.autograd.grad((x * x).sum(), x)
    (DeviceArray([2., 4.], device='cpu', dtype=float32),)
    """
    if not only_inputs:
        raise NotImplementedError(
            "grad(): only_inputs=False is not supported: call backward(), which is for all leaves"
        )
    if is_grads_batched:
        raise NotImplementedError("grad(): is_grads_batched=True is not supported: call grad once for each row")
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True")
    roots, wanted = _tuple(outputs), _tuple(inputs)
    retain = create_graph if retain_graph is None else retain_graph
    found = _C._grad(roots, _gradients("grad_outputs", grad_outputs, len(roots)), retain, create_graph, wanted)
    if not allow_unused and not materialize_grads:
        for index, gradient in enumerate(found):
            if gradient is None:
                _C._refuse_unused(wanted[index], index)
    if materialize_grads:
        return tuple(_C.zeros_like(x) if g is None else g for x, g in zip(wanted, found, strict=True))
    return found


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """What devtensor does not have on purpose says so when it is used."""
        if f"autograd.{name}" in _refusals.modules():
            return _refusals.find(f"autograd.{name}")
        raise AttributeError(f"module 'devtensor.autograd' has no attribute {name!r}")
