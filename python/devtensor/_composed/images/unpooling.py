"""The way back from maxima to where they were."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import need_array
from devtensor._composed.images.convolutions import _need_positive, sizes_of

_Size: TypeAlias = int | Sequence[int]


def _unpooled(
    op: str,
    dims: int,
    input: DeviceArray,
    indices: DeviceArray,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    output_size: Any,
) -> DeviceArray:
    names, arrays = ("input", "indices"), (input, indices)
    need_array(op, "input", input)
    need_array(op, "indices", indices)
    if input.device != indices.device:
        _C._check(op, names, arrays, 1)
    if not input.dtype.is_floating_point:
        _C._fail_dtype(op, names, arrays, 0, "float16, bfloat16, float32 and float64")
    if indices.dtype is not _C.int64:
        _C._fail_dtype(op, names, arrays, 1, "int64")
    _C._check_rank(op, names, arrays, 0, dims + 1, dims + 2)
    _C._check_shape(op, names, arrays, 1, input.shape)
    kernel = sizes_of(op, "kernel_size", kernel_size, dims)
    step = kernel if stride is None else sizes_of(op, "stride", stride, dims)
    around = sizes_of(op, "padding", padding, dims)
    _need_positive(op, "kernel_size", kernel)
    _need_positive(op, "stride", step)
    own = input.shape[-dims:]
    usual = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(own, step, kernel, around, strict=True)]
    wanted = tuple(usual)
    if output_size is not None:
        given = sizes_of(op, "output_size", output_size, len(output_size) if isinstance(output_size, Sequence) else 1)
        wanted = given[-dims:] if len(given) == dims + 2 else given
        if len(wanted) != dims:
            raise ValueError(f"{op}: output_size should have {dims} or {dims + 2} elements, but it has {len(given)}")
        if any(not n - s < w < n + s for w, n, s in zip(wanted, usual, step, strict=True)):
            raise ValueError(f"{op}: invalid output_size {wanted}: each must be less than a stride from {tuple(usual)}")
    if any(n < 0 for n in wanted):
        raise RuntimeError(f"{op}: the size of the result would be {wanted}")
    rows = 1
    for n in input.shape[:-dims]:
        rows *= n
    size = 1
    for n in wanted:
        size *= n
    result = _C.zeros((rows, size), dtype=input.dtype, device=input.device)
    if input.numel():
        row = _C.arange(rows, device=input.device).unsqueeze(1)
        result[row, indices.reshape(rows, -1)] = input.reshape(rows, -1)
    return result.reshape(*input.shape[:-dims], *wanted)


def max_unpool1d(
    input: DeviceArray,
    indices: DeviceArray,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    output_size: Sequence[int] | None = None,
) -> DeviceArray:
    """The maxima of max_pool1d, (N, C, L) or (C, L), where they were; 0 elsewhere.
    indices has their shape: int64, in L.

    output_size is that of the result, or that and N, C, where several sizes have such a pool. Raises
    DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, ValueError for another output_size, and IndexError for
    an index out of range, which a GPU notes at the next synchronisation.

    >>> values, indices = F.max_pool1d(dt.arange(4.0).reshape(1, 4), 2, return_indices=True)
    >>> F.max_unpool1d(values, indices, 2).shape
    (1, 4)
    """
    return _unpooled("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: DeviceArray,
    indices: DeviceArray,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    output_size: Sequence[int] | None = None,
) -> DeviceArray:
    """The maxima of max_pool2d, (N, C, H, W) or (C, H, W), where they were; 0 elsewhere.
    indices has their shape: int64, in H * W.

    output_size is that of the result, or that and N, C, where several sizes have such a pool. Raises
    DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, ValueError for another output_size, and IndexError for
    an index out of range, which a GPU notes at the next synchronisation.

    >>> values, indices = F.max_pool2d(dt.arange(16.0).reshape(1, 4, 4), 2, return_indices=True)
    >>> F.max_unpool2d(values, indices, 2).shape
    (1, 4, 4)
    """
    return _unpooled("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: DeviceArray,
    indices: DeviceArray,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    output_size: Sequence[int] | None = None,
) -> DeviceArray:
    """The maxima of max_pool3d, (N, C, D, H, W) or (C, D, H, W), where they were; 0 elsewhere.
    indices has their shape: int64, in D * H * W.

    output_size is that of the result, or that and N, C, where several sizes have such a pool. Raises
    DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, ValueError for another output_size, and IndexError for
    an index out of range, which a GPU notes at the next synchronisation.

    >>> values, indices = F.max_pool3d(dt.arange(64.0).reshape(1, 4, 4, 4), 2, return_indices=True)
    >>> F.max_unpool3d(values, indices, 2).shape
    (1, 4, 4, 4)
    """
    return _unpooled("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)
