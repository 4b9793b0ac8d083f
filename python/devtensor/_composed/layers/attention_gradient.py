"""The gradient of attention that was computed in one pass: the weights are made again, part by part."""

from __future__ import annotations

from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import widened
from devtensor._composed.layers.attention import _parts
from devtensor.autograd.function import Function


class OnePass(Function):
    """forward gives None where the device has no op for it; the mask wants no gradient."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> DeviceArray | None:
        query, key, value, mask, *ctx.options = args
        result = _C._attention(query, key, value, mask, *ctx.options)
        ctx.save_for_backward(query, key, value, mask, result)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[DeviceArray | None, ...]:
        *arrays, result = ctx.saved_tensors
        scale, causal = ctx.options
        parts = _parts(tuple(arrays), scale, causal)
        query, key, value = parts.gradients(widened(gradients[0]), widened(result))
        found = (query * scale, key, value)
        shaped = (x.reshape(array.shape).to(array.dtype) for x, array in zip(found, arrays, strict=False))
        return (*shaped, None, None, None)
