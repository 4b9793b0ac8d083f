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
        found = _by_the_device(arrays, gradients[0], scale, causal)
        if found is not None:
            return (*found, None, None, None)
        parts = _parts(tuple(arrays), scale, causal)
        query, key, value = parts.gradients(widened(gradients[0]), widened(result))
        whole = (query * scale, key, value)
        shaped = (x.reshape(array.shape).to(array.dtype) for x, array in zip(whole, arrays, strict=False))
        return (*shaped, None, None, None)


def _by_the_device(
    arrays: list[DeviceArray | None], gradient: DeviceArray, scale: float, causal: bool
) -> list[DeviceArray] | None:
    """The gradients by the device's own op, where it has one and is not to be differentiated."""
    query, key, value, mask = arrays
    if mask is not None or query is None or key is None or value is None or not query.is_cuda or _C.is_grad_enabled():
        return None
    flat = _C._attention_grad(query, key, value, gradient.contiguous(), scale, causal)
    if flat is None:
        return None
    ends = (0, query.numel(), query.numel() + key.numel(), flat.numel())
    return [flat[ends[i] : ends[i + 1]].reshape(x.shape) for i, x in enumerate((query, key, value))]
