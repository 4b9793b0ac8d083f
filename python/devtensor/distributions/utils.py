"""What the distributions share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from devtensor._C import DeviceArray
from devtensor._composed.joining import broadcast_shapes
from devtensor._dtype_info import finfo
from devtensor.autograd.grad_mode import enable_grad

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


def clamped(probs: DeviceArray) -> DeviceArray:
    """probs, so far from 0 and 1 that logarithms are finite."""
    least = finfo(probs.dtype).eps
    return probs.clamp(min=least, max=1 - least)


def sum_rightmost(value: DeviceArray, dims: int) -> DeviceArray:
    """The sum over the last dimensions."""
    return value.sum(tuple(range(-dims, 0))) if dims else value


def broadcast_sizes(shape: tuple[int, ...], *values: Any) -> tuple[int, ...]:
    """The shape to which shape and those of values, of which some are numbers, broadcast."""
    return broadcast_shapes(shape, *(value.shape for value in values if isinstance(value, DeviceArray)))
