"""Recurrent layers: the products with the input of all steps as one, then step by step, or all steps in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from devtensor import _C
from devtensor._C import DeviceArray

State: TypeAlias = tuple[DeviceArray, ...]  # (h,), or (h, c) of an LSTM


class Weights(NamedTuple):
    """Those of one layer in one direction."""

    ih: DeviceArray
    hh: DeviceArray
    bias_ih: DeviceArray | None = None
    bias_hh: DeviceArray | None = None
    hr: DeviceArray | None = None


# A step takes what input_product gives for it.
Step: TypeAlias = Callable[[DeviceArray, State, Weights], State]


def _has_cell(x: DeviceArray, state: State) -> bool:
    """Whether a step after its products is one call; in an autocast block a state may have another dtype."""
    return all(a.dtype is x.dtype for a in state) and (x.is_cuda or x.dtype in (_C.float32, _C.float64))


def _linear(x: DeviceArray, weight: DeviceArray, bias: DeviceArray | None = None) -> DeviceArray:
    """linear in the dtype of the weight, which in an autocast block another one than that of a state may be."""
    return _C.linear(x if x.dtype is weight.dtype else x.to(weight.dtype), weight, bias)


def _in_one_call(product: DeviceArray, state: State, weights: Weights) -> bool:
    """Whether all steps can be."""
    return _has_cell(product, (*state, weights.hh)) and weights.hr is None


def all_steps(
    mode: str, product: DeviceArray, d: int, state: State, weights: Weights, reverse: bool
) -> tuple[DeviceArray, State]:
    """The outputs and the last state; product has its steps along d."""
    rows = product if d == 0 else product.transpose(0, d)
    operands = (rows, weights.hh, *(() if mode == "LSTM" else (weights.bias_hh,)), *state)
    ends: Sequence[DeviceArray] = ()
    if _C.is_grad_enabled() and any(a is not None and a.requires_grad for a in operands):
        from devtensor._composed.layers.recurrent_gradient import GRU, LSTM  # with the functions that are loaded late

        if mode == "LSTM":
            outputs, *ends = LSTM.apply(*operands, reverse)
        else:
            outputs = GRU.apply(*operands, reverse)
    elif mode == "LSTM":
        outputs, *ends = _C._lstm_steps(rows, weights.hh, state[0], state[1], reverse)
    else:
        outputs = _C._gru_steps(rows, weights.hh, state[0], weights.bias_hh, reverse)
    state = (outputs[-1], *ends)
    outputs = outputs.flip(0) if reverse else outputs
    return (outputs if d == 0 else outputs.transpose(0, d).contiguous()), state


def lstm_step(x: DeviceArray, state: State, weights: Weights) -> State:
    h, c = state
    if _has_cell(x, state):
        h, c = _C._lstm_cell(_C.linear(h, weights.hh), x, c).unbind(0)
        return h if weights.hr is None else _C.linear(h, weights.hr), c
    i, f, g, o = (_linear(h, weights.hh) + x).chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return h if weights.hr is None else _C.linear(h, weights.hr), c


def gru_step(x: DeviceArray, state: State, weights: Weights) -> State:
    (h,) = state
    size = h.shape[1]
    own = _linear(h, weights.hh, weights.bias_hh)
    if _has_cell(x, state):
        return (_C._gru_cell(own, x, h),)
    r, z = (x[:, : 2 * size] + own[:, : 2 * size]).sigmoid().chunk(2, 1)
    new = (x[:, 2 * size :] + r * own[:, 2 * size :]).tanh()
    return (_C.lerp(new.to(h.dtype), h, z.to(h.dtype)),)


def tanh_step(x: DeviceArray, state: State, weights: Weights) -> State:
    return ((_C.linear(state[0], weights.hh) + x).tanh(),)


def relu_step(x: DeviceArray, state: State, weights: Weights) -> State:
    return ((_C.linear(state[0], weights.hh) + x).relu(),)


STEPS: dict[str, Step] = {"LSTM": lstm_step, "GRU": gru_step, "RNN_TANH": tanh_step, "RNN_RELU": relu_step}


def input_product(mode: str, x: DeviceArray, weights: Weights) -> DeviceArray:
    """The product with the input, with both biases but for GRU, whose second one belongs to the product with h."""
    bias = weights.bias_ih
    if bias is not None and weights.bias_hh is not None and mode != "GRU":
        bias = bias + weights.bias_hh
    return _linear(x, weights.ih, bias)


def run(
    mode: str, x: DeviceArray, sizes: Sequence[int] | None, d: int, state: State, weights: Weights, reverse: bool
) -> tuple[DeviceArray, State]:
    """The outputs of one layer in one direction, laid out as x, and the last state of each sequence.

    x has its steps along d; or sizes says how many sequences, the longest first, have an entry at each step, and their
    rows follow each other.
    """
    product = input_product(mode, x, weights)
    if sizes is None and mode in ("LSTM", "GRU") and _in_one_call(product, state, weights):
        return all_steps(mode, product, d, state, weights, reverse)
    return step_by_step(mode, product, sizes, d, state, weights, reverse)


def step_by_step(
    mode: str, product: DeviceArray, sizes: Sequence[int] | None, d: int, state: State, weights: Weights, reverse: bool
) -> tuple[DeviceArray, State]:
    """The same from the product with the input."""
    step = STEPS[mode]
    rows = product.unbind(d) if sizes is None else product.split(list(sizes))
    outputs = []
    ended: list[State] = []  # of sequences that are shorter
    begin = state
    if sizes is not None and reverse:
        state = tuple(a[: sizes[-1]] for a in begin)
    for row in reversed(rows) if reverse else rows:
        n, now = row.shape[0], state[0].shape[0]
        if n < now:
            ended.append(tuple(a[n:] for a in state))
            state = tuple(a[:n] for a in state)
        elif n > now:
            state = tuple(_C.cat([a, b[now:n]]) for a, b in zip(state, begin, strict=True))
        state = step(row, state, weights)
        outputs.append(state[0])
    if ended:
        state = tuple(_C.cat([*parts]) for parts in zip(state, *reversed(ended), strict=True))
    if reverse:
        outputs.reverse()
    return (_C.stack(outputs, d) if sizes is None else _C.cat(outputs)), state
