"""What training does to gradients and parameters as a whole: torch.nn.utils."""

from __future__ import annotations

import inspect
import math
import types
import warnings
from collections.abc import Iterable
from typing import Any, TypeVar

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_number
from devtensor._composed.arguments import need_array, widened
from devtensor._composed.reductions.moments import norm
from devtensor._diagnosis import training
from devtensor.autograd.grad_mode import no_grad
from devtensor.nn.module import Module

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]


def __dir__() -> list[str]:
    return __all__


from devtensor.nn.utils import parametrizations, parametrize, prune, rnn  # noqa: E402
from devtensor.nn.utils.weights import (  # noqa: E402
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
    remove_spectral_norm,
    remove_weight_norm,
    spectral_norm,
    weight_norm,
)

M = TypeVar("M", bound=Module)
Arrays = DeviceArray | Iterable[DeviceArray]


def _listed(op: str, name: str, arrays: Arrays) -> list[DeviceArray]:
    found = [arrays] if isinstance(arrays, DeviceArray) else list(arrays)
    for i, array in enumerate(found):
        need_array(op, f"{name}[{i}]", array)
    return found


def _gradients(parameters: Iterable[DeviceArray]) -> list[DeviceArray]:
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def get_total_norm(
    tensors: Arrays, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> DeviceArray:
    """The norm of all arrays together, as if they were one vector: 0-dimensional, on the device of the first.

    Nothing waits for a device but error_if_nonfinite, which raises RuntimeError for a norm that is infinite or NaN. A
    norm on another device than the first is moved to it. foreach is accepted and changes nothing.

    >>> nn.utils.get_total_norm([dt.tensor([3.0]), dt.tensor([4.0])])
    DeviceArray(5., device='cpu', dtype=float32)
    """
    arrays = _listed("get_total_norm", "tensors", tensors)
    order = _need_number("get_total_norm", "norm_type", norm_type)
    must_be_finite = _need_bool("get_total_norm", "error_if_nonfinite", error_if_nonfinite)
    with no_grad():
        total = _total_norm(arrays, order)
    if must_be_finite and not total.isfinite():
        raise RuntimeError(
            f"The total norm of order {order} for gradients from `parameters` is non-finite, so it cannot be clipped. "
            "With error_if_nonfinite=False they are scaled by it anyway"
        )
    return total


def _total_norm(arrays: list[DeviceArray], order: float) -> DeviceArray:
    if not arrays:
        return _C.zeros((), device="cpu")
    first = arrays[0].device
    if order == 2:
        norms = [_C._root_squares(widened(x)).to(first) for x in arrays]
        return _C._root_squares(_C.stack(norms)).to(arrays[0].dtype)
    return norm(_C.stack([norm(x, order).to(first) for x in arrays]), order)


def clip_grads_with_norm_(
    parameters: Arrays, max_norm: float, total_norm: DeviceArray, foreach: bool | None = None
) -> None:
    """Scale the gradients of the parameters by max_norm / total_norm where that is below 1, in place, without a wait.

    total_norm is what get_total_norm gave.

    >>> weight = nn.Parameter(dt.ones(2))
    >>> nn.utils.clip_grads_with_norm_([weight], 1.0, dt.tensor(2.0))
    """
    grads = _gradients(_listed("clip_grads_with_norm_", "parameters", parameters))
    largest = _need_number("clip_grads_with_norm_", "max_norm", max_norm)
    need_array("clip_grads_with_norm_", "total_norm", total_norm)
    with no_grad():
        factor = (largest / (total_norm + 1e-6)).clamp(max=1.0)
        factors = {grad.device: factor.to(grad.device) for grad in grads}
        for grad in grads:
            grad.mul_(factors[grad.device])


def clip_grad_norm_(
    parameters: Arrays,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> DeviceArray:
    """Scale the gradients of the parameters so that their norm together is at most max_norm, in place. Returns the
    norm that they had.

    Nothing waits for a device but error_if_nonfinite, which raises RuntimeError for a norm that is infinite or NaN and
    changes nothing. foreach is accepted and changes nothing. Warns of a generator that has nothing, such as one that is
    used up, of parameters without a gradient, and of gradients that a step has used.

    >>> weight = nn.Parameter(dt.ones(2))
    >>> (weight * 3).sum().backward()
    >>> nn.utils.clip_grad_norm_([weight], max_norm=1.0)
    DeviceArray(4.2426, device='cpu', dtype=float32)
    """
    used = _listed("clip_grad_norm_", "parameters", parameters)
    if not used and isinstance(parameters, types.GeneratorType):
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    largest = _need_number("clip_grad_norm_", "max_norm", max_norm)
    gradients = _gradients(used)
    if used and not gradients:
        training.warn_no_gradient_to_clip("clip_grad_norm_", used)
    elif math.isfinite(largest) and 0 < len(gradients) == _C._gradients_as_used(used):
        training.warn_of_clipping_too_late("clip_grad_norm_", used)
    total = get_total_norm(gradients, norm_type, error_if_nonfinite)
    clip_grads_with_norm_(used, largest, total)
    return total


def clip_grad_norm(
    parameters: Arrays,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> DeviceArray:
    """clip_grad_norm_, by its old name.

    >>> weight = nn.Parameter(dt.ones(2))
    >>> (weight * 3).sum().backward()
    >>> nn.utils.clip_grad_norm([weight], max_norm=1.0)
    DeviceArray(4.2426, device='cpu', dtype=float32)
    """
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Arrays, clip_value: float, foreach: bool | None = None) -> None:
    """Limit each element of the gradients of the parameters to [-clip_value, clip_value], in place.

    foreach is accepted and changes nothing.

    >>> weight = nn.Parameter(dt.ones(2))
    >>> nn.utils.clip_grad_value_([weight], 0.5)
    """
    limit = _need_number("clip_grad_value_", "clip_value", clip_value)
    with no_grad():
        for grad in _gradients(_listed("clip_grad_value_", "parameters", parameters)):
            grad.clamp_(-limit, limit)


def parameters_to_vector(parameters: Iterable[DeviceArray]) -> DeviceArray:
    """All parameters as one vector, one after the other. Raises DeviceMismatchError for parameters on several devices.

    >>> nn.utils.parameters_to_vector([dt.ones(1, 2), dt.zeros(1)])
    DeviceArray([1., 1., 0.], device='cpu', dtype=float32)
    """
    arrays = _listed("parameters_to_vector", "parameters", parameters)
    return _C.cat([array.reshape(-1) for array in arrays])


def vector_to_parameters(vec: DeviceArray, parameters: Iterable[DeviceArray]) -> None:
    """Write a vector to the parameters, one after the other; what is left of it at the end is not used.

    Raises DeviceMismatchError and DTypeMismatchError for a parameter that is not as the vector, ShapeMismatchError for
    a vector that is too short; no parameter is changed then.

    >>> weight = nn.Parameter(dt.ones(2))
    >>> nn.utils.vector_to_parameters(dt.tensor([3.0, 4.0]), [weight])
    >>> weight.tolist()
    [3.0, 4.0]
    """
    op = "vector_to_parameters"
    arrays = _listed(op, "parameters", parameters)
    need_array(op, "vec", vec)
    for i, array in enumerate(arrays):
        _C._check(op, ("vec", f"parameters[{i}]"), (vec, array))
    with no_grad():
        start, parts = 0, []
        for array in arrays:
            parts.append(vec.narrow(0, start, array.numel()).view(array.shape))
            start += array.numel()
        for array, part in zip(arrays, parts, strict=True):
            array.copy_(part)


def skip_init(module_cls: type[M], *args: Any, **kwargs: Any) -> M:
    """module_cls(*args, **kwargs), on the cpu without device=. What its parameters hold is not defined: they are drawn.

    Raises RuntimeError for what is no class of modules, or takes no device.

    >>> nn.utils.skip_init(nn.Linear, 2, 1).weight.shape
    (1, 2)
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    kwargs.setdefault("device", "cpu")
    return module_cls(*args, **kwargs)
