"""Selection by arrays of indices.

On the cpu NumPy selects. A CUDA device compares each index with every position, some positions at a time, so that
nothing has to leave the device: exact, but its work grows with the size of the dimension.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed import _dims

if TYPE_CHECKING:
    import numpy.typing as npt

_INDEX_DTYPES = (_C.int32, _C.int64)
_AT_ONCE = 1 << 22  # elements of an intermediate result on a device


def _check(op: str, names: tuple[str, str], arrays: tuple[DeviceArray, DeviceArray], which: int) -> None:
    """One device; arrays[which] holds indices."""
    _C._check(op, names, arrays, same_dtype=False, floating=False)
    if arrays[which].dtype not in _INDEX_DTYPES:
        _C._fail_dtype(op, (names[which], names[1 - which]), (arrays[which], arrays[1 - which]), "int32 and int64")


def _fail_range(index: npt.NDArray[Any], size: int, dim: int) -> None:
    """Negative indices are refused, as PyTorch does here."""
    wrong = index[(index < 0) | (index >= size)]
    if wrong.size:
        raise IndexError(f"index {int(wrong.flat[0])} is out of bounds for dimension {dim} with size {size}")


def _gather_last(x: DeviceArray, index: DeviceArray, dim: int) -> DeviceArray:
    """x (..., n) at index (..., k) or (k): (..., k). dim is for the message."""
    n = x.shape[-1]
    shape = (*(x.shape[:-1] if x.ndim > 1 else index.shape[:-1]), index.shape[-1])
    if 0 in shape:
        return _C.empty(shape, dtype=x.dtype, device=x.device)
    if not x.is_cuda:
        return _gather_host(x, index, dim)
    narrow = x.to(_C.uint8) if x.dtype is _C.bool else x
    wanted, values = index.unsqueeze(-1), narrow.unsqueeze(-2)
    step = max(1, _AT_ONCE // math.prod(shape))
    positions = _C.arange(n, dtype=index.dtype, device=x.device)
    parts = []
    for start in range(0, n, step):
        length = min(step, n - start)
        here = wanted == positions.narrow(0, start, length)
        parts.append(_C.where(here, values.narrow(-1, start, length), 0).sum(-1))
    if not parts:
        parts = [_C.zeros(shape, dtype=narrow.dtype, device=x.device)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    if x.dtype.is_floating_point:  # a device cannot raise without waiting
        total = _C.where((index >= 0) & (index < n), total, float("nan"))
    return total.to(x.dtype)


def _gather_host(x: DeviceArray, index: DeviceArray, dim: int) -> DeviceArray:
    import numpy as np  # not before it is needed: it takes longer to import than all of devtensor

    source = x.to(_C.float32) if x.dtype is _C.bfloat16 else x
    values, places = source.numpy(), index.numpy()
    _fail_range(places, values.shape[-1], dim)
    places = np.broadcast_to(places, (*values.shape[:-1], places.shape[-1])).astype(np.int64)
    return _C.from_numpy(np.take_along_axis(values, places, axis=-1)).to(x.dtype)


def _rows(x: DeviceArray, index: DeviceArray, dim: int) -> DeviceArray:
    """x at the places of a 1-dimensional index along its first dimension."""
    if not x.is_cuda:
        source = x.to(_C.float32) if x.dtype is _C.bfloat16 else x
        values, places = source.numpy(), index.numpy()
        _fail_range(places, values.shape[0], dim)
        return _C.from_numpy(values[places]).to(x.dtype)
    shape = x.shape[1:]
    flat = x.reshape(x.shape[0], -1) if x.numel() else x.new_empty(x.shape[0], 0)
    if index.numel() == 0 or flat.shape[1] == 0:
        return x.new_empty(index.shape[0], *shape)
    rows = _gather_last(flat.t(), index, dim).t()
    return rows.reshape(index.shape[0], *shape)


def index_select(input: DeviceArray, dim: int, index: DeviceArray) -> DeviceArray:
    """The entries of dimension dim at the places of index, a vector of int32 or int64: a copy.

    Raises DeviceMismatchError, DTypeMismatchError for other indices, ShapeMismatchError where index is no vector,
    IndexError for an index out of range; on a CUDA device such a place becomes NaN (0 in an integer array).
    """
    _check("index_select", ("input", "index"), (input, index), 1)
    _C._check_rank("index_select", ("input", "index"), (input, index), 1, 0, 1)
    (d,) = _dims("index_select", int(dim), input.ndim)
    index = index.reshape(-1)
    if input.ndim == 0:
        return _rows(input.reshape(1), index, 0).reshape(())
    return _rows(input.movedim(d, 0), index, d).movedim(0, d).contiguous()


def gather(input: DeviceArray, dim: int, index: DeviceArray) -> DeviceArray:
    """result[i][j][k] = input[i][index[i][j][k]][k] for dim 1; the result has the shape of index.

    index, int64 or int32, has as many dimensions as input, and is nowhere larger but in dim. Raises
    DeviceMismatchError, DTypeMismatchError for other indices, ShapeMismatchError, IndexError for an index out of range;
    on a CUDA device such a place becomes NaN (0 in an integer array).
    """
    _check("gather", ("input", "index"), (input, index), 1)
    names, arrays = ("input", "index"), (input, index)
    (d,) = _dims("gather", int(dim), input.ndim)
    _C._check_rank("gather", names, arrays, 1, input.ndim, input.ndim)
    _C._check_shape(
        "gather",
        names,
        arrays,
        1,
        [-1 if k == d or i <= n else n for k, (i, n) in enumerate(zip(index.shape, input.shape, strict=True))],
    )
    if input.ndim == 0:
        return _gather_last(input.reshape(1), index.reshape(1), 0).reshape(())
    x = input
    for k, size in enumerate(index.shape):
        if k != d:
            x = x.narrow(k, 0, size)
    return _gather_last(x.movedim(d, -1), index.movedim(d, -1), d).movedim(-1, d).contiguous()


def take(input: DeviceArray, index: DeviceArray) -> DeviceArray:
    """The elements at the places of index in input as one row, negative ones from its end; the shape of index.

    Raises DeviceMismatchError, DTypeMismatchError where index is not int64 or int32, IndexError for an index out of
    range; on a CUDA device such a place becomes NaN (0 in an integer array).
    """
    _check("take", ("input", "index"), (input, index), 1)
    flat = index.reshape(-1)
    return _gather_last(input.reshape(-1), _C.where(flat < 0, flat + input.numel(), flat), 0).reshape(index.shape)


def embedding(
    input: DeviceArray,
    weight: DeviceArray,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> DeviceArray:
    """The rows of weight (n, d) at the indices in input, of any shape: (*, d). Floats, indices int64 or int32.

    padding_idx, scale_grad_by_freq and sparse concern gradients and change nothing. Raises DeviceMismatchError,
    DTypeMismatchError for other indices, ShapeMismatchError where weight is no matrix, IndexError for an index out of
    range (NaN on a CUDA device), NotImplementedError for max_norm.
    """
    if max_norm is not None:
        raise NotImplementedError("embedding(): max_norm, which changes the weight, is not there")
    _check("embedding", ("input", "weight"), (input, weight), 0)
    names, arrays = ("input", "weight"), (input, weight)
    _C._check_rank("embedding", names, arrays, 1, 2, 2)
    return _rows(weight, input.reshape(-1), 0).reshape(*input.shape, weight.shape[1])
