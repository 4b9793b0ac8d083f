"""All steps of an LSTM or GRU as one node of the graph, which devices take at once, forwards and backwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.layers import recurrent
from devtensor._composed.layers.recurrent import State, Weights
from devtensor.autograd import grad
from devtensor.autograd.function import Function


class GRU(Function):
    """The outputs of each step as they were taken."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> DeviceArray:
        product, weight, bias, h, ctx.reverse = args
        own, states = _C._gru_steps_kept(product, weight, h, bias, ctx.reverse)
        ctx.save_for_backward(product, weight, bias, h, own, states)
        return states[1:].clone()  # may be written to, which what is kept may not

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[DeviceArray | None, ...]:
        product, weight, bias, h, own, states = ctx.saved_tensors
        if _C.is_grad_enabled():
            return (*_recorded(ctx, "GRU", product, (h,), Weights(weight, weight, None, bias), gradients), None)
        gates, begin = _C._steps_grad(own, product, weight, states, gradients[0], None, ctx.reverse)
        of_own, of_product = gates.unbind(0)
        of_bias = of_own.sum((0, 1)) if ctx.needs_input_grad[2] else None
        return of_product, _of_weight(ctx, of_own, states[:-1]), of_bias, begin, None


class LSTM(Function):
    """The outputs of each step as they were taken, and c after the last."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> tuple[DeviceArray, DeviceArray]:
        product, weight, h, c, ctx.reverse = args
        own, states = _C._lstm_steps_kept(product, weight, h, c, ctx.reverse)
        ctx.save_for_backward(product, weight, h, c, own, states)
        return states[1:, 0].clone(), states[-1, 1].clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[DeviceArray | None, ...]:
        product, weight, h, c, own, states = ctx.saved_tensors
        if _C.is_grad_enabled():
            return (*_recorded(ctx, "LSTM", product, (h, c), Weights(weight, weight), gradients), None)
        gates, begin = _C._steps_grad(own, product, weight, states, gradients[0], gradients[1], ctx.reverse)
        return gates, _of_weight(ctx, gates, states[:-1, 0]), *begin.unbind(0), None


def _of_weight(ctx: Any, of_own: DeviceArray, before: DeviceArray) -> DeviceArray | None:
    """The gradient of the weight of h: one product of the rows of all steps. before: h of each as they were taken."""
    if not ctx.needs_input_grad[1]:
        return None
    before = before.flip(0) if ctx.reverse else before
    return of_own.flatten(0, 1).t() @ before.reshape(-1, before.shape[-1])


def _recorded(
    ctx: Any, mode: str, product: DeviceArray, state: State, weights: Weights, gradients: Sequence[DeviceArray]
) -> list[DeviceArray | None]:
    """The same by the steps one after another, which have gradients themselves.

    They take aliases of the operands, at which the way back ends: an operand may come from another, as a state that an
    earlier call with these weights gave.
    """
    given = [product, weights.hh, *([weights.bias_hh] if mode == "GRU" else []), *state]
    wanted = ctx.needs_input_grad[: len(given)]
    aliases: list[Any] = [x if x is None else _alias(x, wants) for x, wants in zip(given, wanted, strict=True)]
    product, hh, *rest = aliases
    bias = rest.pop(0) if mode == "GRU" else None
    outputs, ends = recurrent.step_by_step(
        mode, product, None, 0, tuple(rest), Weights(hh, hh, None, bias), ctx.reverse
    )
    outputs = outputs.flip(0) if ctx.reverse else outputs
    leaves = [x for x, wants in zip(aliases, wanted, strict=True) if wants]
    found = iter(grad((outputs, *ends[1:]), leaves, gradients, create_graph=True))
    return [next(found) if wants else None for wants in wanted]


def _alias(x: DeviceArray, wants: bool) -> DeviceArray:
    """The same values; a leaf where a gradient is wanted of what needs none any more."""
    return x.detach().requires_grad_() if wants and not x.requires_grad else x.view_as(x)
