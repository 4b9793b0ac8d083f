"""What the distributions share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.shapes.joining import broadcast_shapes, broadcast_tensors
from devtensor._dtypes.info import finfo
from devtensor.autograd.grad_mode import enable_grad

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "common_shape",
    "euler_constant",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "sum_rightmost",
]

R = TypeVar("R")

euler_constant: float = 0.57721566490153286060


class lazy_property(Generic[R]):
    """An attribute that is computed when it is first read."""

    def __init__(self, wrapped: Callable[[Any], R]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    @overload
    def __get__(self, instance: None, owner: Any = None) -> lazy_property[R]: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> R: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        instance.__dict__[self.wrapped.__name__] = value
        return value


def common_shape(arrays: tuple[DeviceArray, ...]) -> list[int]:
    """The shape to which those of arrays broadcast; they do."""
    shape: list[int] = []
    for array in arrays:
        sizes = list(array.shape)
        shape[:0] = sizes[: max(len(sizes) - len(shape), 0)]
        for d in range(-len(sizes), 0):
            shape[d] = sizes[d] if shape[d] == 1 else shape[d]
    return shape


def clamp_probs(probs: DeviceArray) -> DeviceArray:
    """probs, so far from 0 and 1 that logarithms are finite."""
    least = finfo(probs.dtype).eps
    return probs.clamp(min=least, max=1 - least)


def sum_rightmost(value: DeviceArray, dims: int) -> DeviceArray:
    """The sum over the last dimensions."""
    return value.sum(tuple(range(-dims, 0))) if dims else value


def broadcast_sizes(shape: tuple[int, ...], *values: Any) -> tuple[int, ...]:
    """The shape to which shape and those of values, of which some are numbers, broadcast."""
    return broadcast_shapes(shape, *(value.shape for value in values if isinstance(value, DeviceArray)))


def broadcast_all(*values: DeviceArray | float) -> tuple[DeviceArray, ...]:
    """values in the shape that they have together; numbers take dtype and device of the first array.

    Raises ValueError for what is neither an array nor a number, and the errors of broadcast_tensors.
    """
    if not all(isinstance(value, (DeviceArray, int, float)) for value in values):
        raise ValueError("Input arguments must all be instances of Number or torch.Tensor.")
    first = next((value for value in values if isinstance(value, DeviceArray)), None)
    options: dict[str, Any] = {"dtype": _C.get_default_dtype()}
    if first is not None:
        options = {"dtype": first.dtype, "device": first.device}
    arrays = (value if isinstance(value, DeviceArray) else _C.tensor(value, **options) for value in values)
    return tuple(broadcast_tensors(*arrays))


def logits_to_probs(logits: DeviceArray, is_binary: bool = False) -> DeviceArray:
    """sigmoid(logits) where is_binary, else softmax(logits) along the last dimension."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def probs_to_logits(probs: DeviceArray, is_binary: bool = False) -> DeviceArray:
    """log(probs), less log(1 - probs) where is_binary; finite for probs of 0 and 1 too."""
    kept = clamp_probs(probs)
    return kept.log() - (-kept).log1p() if is_binary else kept.log()
