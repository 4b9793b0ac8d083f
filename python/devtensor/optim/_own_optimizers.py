"""What optimizers of the users' own, which began as a copy of one of PyTorch's, import beside Optimizer."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor.autograd.grad_mode import set_grad_enabled

_F = TypeVar("_F", bound=Callable[..., Any])

ParamsT: TypeAlias = Iterable[DeviceArray] | Iterable[dict[str, Any]] | Iterable[tuple[str, DeviceArray]]
DeviceDict: TypeAlias = dict[_C.device | None, DeviceArray]
StateDict: TypeAlias = dict[str, Any]

# Paragraphs of docstrings.
_params_doc = "params: the parameters, or dictionaries of groups of them, or pairs of a name and a parameter."
_foreach_doc = "foreach: whether the steps of all parameters are written as one call for each op."
_fused_doc = "fused: whether one kernel does the whole step."
_capturable_doc = "capturable: whether the step may be captured in a CUDA graph."
_differentiable_doc = "differentiable: whether the step is recorded, so that gradients flow through it."
_maximize_doc = "maximize: whether the objective is to grow."


def _use_grad_for_differentiable(func: _F) -> _F:
    """step without recording, unless the optimizer is differentiable."""

    @functools.wraps(func)
    def _use_grad(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(self.defaults["differentiable"]):
            return func(self, *args, **kwargs)

    return _use_grad  # type: ignore[return-value]


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[[_F], _F]:
    """Nothing is compiled: the function as it is."""
    return lambda func: func


def _get_value(x: Any) -> Any:
    return x.item() if isinstance(x, DeviceArray) else x


def _to_scalar(x: Any) -> Any:
    return x.squeeze() if isinstance(x, DeviceArray) and x.ndim else x


def _stack_if_compiling(x: Any) -> Any:
    return x


def _view_as_real(params: Sequence[DeviceArray], *state_and_grads: Sequence[DeviceArray]) -> None:
    """Nothing to do: there are no complex numbers."""


def _get_scalar_dtype(is_fused: bool | None = None) -> _C.dtype:
    return _C.float64 if not is_fused and _C.get_default_dtype() == _C.float64 else _C.float32


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    return ["cuda"]


def _default_to_fused_or_foreach(
    params: Sequence[DeviceArray], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Neither: foreach functions are loops here, so that the loop over the parameters is as fast."""
    return False, False


def _device_dtype_check_for_fused(p: DeviceArray, cuda_unsupported: bool = False) -> None:
    if not p.dtype.is_floating_point:
        raise RuntimeError(f"`fused=True` requires all the params to be floating point Tensors, but got {p.dtype}")


def group_by_device_and_dtype(lists: Sequence[Sequence[Any]], with_indices: bool = False) -> dict[Any, Any]:
    """Lists of arrays, cut by the device and dtype of the first's: {(device, dtype): (lists, indices)}."""
    groups: dict[Any, list[int]] = {}
    for i, x in enumerate(lists[0]):
        groups.setdefault((x.device, x.dtype), []).append(i)
    return {key: ([[one[i] for i in places] if one else [] for one in lists], places) for key, places in groups.items()}
