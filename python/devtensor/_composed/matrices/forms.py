"""Bilinear forms."""

from __future__ import annotations

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import need_array, widened
from devtensor._dtypes.autocast import autocasts


@autocasts
def bilinear(
    input1: DeviceArray, input2: DeviceArray, weight: DeviceArray, bias: DeviceArray | None = None
) -> DeviceArray:
    """input1 @ weight[k] @ input2 + bias[k] for each k: (*, I) and (*, J) with weight (K, I, J), bias (K) give (*, K).

    Floats of one dtype on one device, computed in float32 for the half types. Raises DeviceMismatchError,
    DTypeMismatchError, ShapeMismatchError.

    >>> F.bilinear(dt.tensor([[1.0, 2.0]]), dt.tensor([[3.0]]), dt.ones(1, 2, 1))
    DeviceArray([[9.]], device='cpu', dtype=float32)
    """
    names, arrays = ("input1", "input2", "weight", "bias"), (input1, input2, weight, bias)
    for name, array in zip(names[1:3], arrays[1:3], strict=True):
        need_array("bilinear", name, array)
    _C._check("bilinear", names, arrays)
    _C._check_rank("bilinear", names, arrays, 2, 3, 3)
    _C._check_rank("bilinear", names, arrays, 0, 1, 64)
    outputs, first, second = weight.shape
    _C._check_shape("bilinear", names, arrays, 0, [-1] * (input1.ndim - 1) + [first])
    _C._check_shape("bilinear", names, arrays, 1, [*input1.shape[:-1], second])
    if bias is not None:
        _C._check_shape("bilinear", names, arrays, 3, [outputs])
    lead = input1.shape[:-1]
    rows = input1.numel() // max(first, 1) if first else input2.numel() // max(second, 1)
    table = widened(weight).permute(1, 0, 2).reshape(first, outputs * second)
    products = (widened(input1).reshape(rows, first) @ table).reshape(rows, outputs, second)
    result = (products * widened(input2).reshape(rows, 1, second)).sum(-1)
    result = result if bias is None else result + bias
    return result.reshape(*lead, outputs).to(input1.dtype)


__all__ = ["bilinear"]
