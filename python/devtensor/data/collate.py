"""How samples become a batch, and how a batch is moved."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, overload

from devtensor import _C
from devtensor._C import DeviceArray


def _is_numpy(value: object) -> bool:
    numpys = type(value).__module__ == "numpy" or hasattr(type(value), "__array_interface__")
    return numpys and not isinstance(value, DeviceArray)


def default_convert(data: Any) -> Any:
    """NumPy arrays in a sample become DeviceArrays; everything else stays.

    >>> dt.data.default_convert({"x": np.arange(2)})
    {'x': DeviceArray([0, 1], device='cpu', dtype=int64)}
    """
    return _map(data, lambda x: _C.as_tensor(x) if _is_numpy(x) and not _is_text(x) else x)


def _is_text(value: Any) -> bool:
    return getattr(getattr(value, "dtype", None), "kind", "") in "USO"


@overload
def default_collate(batch: Sequence[DeviceArray] | Sequence[float]) -> DeviceArray: ...
@overload
def default_collate(batch: Sequence[Any]) -> Any: ...
def default_collate(batch: Sequence[Any]) -> Any:
    """Samples to a batch: arrays of one shape are stacked along a new first dimension, numbers become an array.

    Dictionaries, tuples and lists are collated entry by entry; strings stay. Python floats give float64, ints
    int64, as in PyTorch. Raises ShapeMismatchError for arrays of different shapes, RuntimeError for sequences of
    different lengths, TypeError for what it does not know.

    >>> dt.data.default_collate([(dt.zeros(3), 1), (dt.ones(3), 2)])[1]
    DeviceArray([1, 2], device='cpu', dtype=int64)
    """
    first = batch[0]
    if isinstance(first, DeviceArray):
        return _C.stack(list(batch))
    if _is_numpy(first):
        if _is_text(first):
            raise TypeError(f"default_collate: batch must contain arrays of numbers; found {first.dtype}")
        return _C.stack([_C.as_tensor(sample) for sample in batch]) if first.shape else _C.as_tensor(_row(batch))
    if isinstance(first, float):
        return _C.array(list(batch), dtype=_C.float64)
    if isinstance(first, int):  # a float among them makes floats of all
        return _C.array(list(batch))
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _rebuilt(first, {key: default_collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [default_collate(column) for column in zip(*batch, strict=True)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"found {type(first)} (collate_fn= takes a function for others)"
    )


def _row(batch: Sequence[Any]) -> Any:
    import numpy as np

    return np.array(list(batch))


def _rebuilt(like: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    if type(like) is dict:
        return values
    try:
        if isinstance(like, MutableMapping):  # so that a defaultdict stays one
            made = copy.copy(like)
            made.update(values)
            return made
        return type(like)(values)  # type: ignore[call-arg]
    except TypeError:  # a mapping that is not made of one
        return values


def _map(data: Any, change: Callable[[Any], Any]) -> Any:
    """change(x) for each x in nested dictionaries, tuples and lists."""
    if isinstance(data, Mapping):
        return _rebuilt(data, {key: _map(value, change) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(_map(value, change) for value in data))
    if isinstance(data, tuple):
        return tuple(_map(value, change) for value in data)
    if isinstance(data, list):
        return [_map(value, change) for value in data]
    return change(data)


def pin(data: Any) -> Any:
    """The arrays of a batch in page-locked memory; things that have a pin_memory() of their own are asked."""

    def change(x: Any) -> Any:
        if isinstance(x, DeviceArray):
            return x if x.is_cuda else x.pin_memory()
        return x.pin_memory() if hasattr(x, "pin_memory") else x

    return _map(data, change)


def move(data: Any, device: Any) -> Any:
    """The arrays of a batch on a device; from page-locked memory without waiting."""

    def change(x: Any) -> Any:
        if isinstance(x, DeviceArray):
            return x.to(device, non_blocking=not x.is_cuda and x.is_pinned())
        return x.to(device) if hasattr(x, "to") else x

    return _map(data, change)
