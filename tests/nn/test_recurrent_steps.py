"""All steps of an LSTM or GRU as one node: beside the steps one after another, whose gradients come op by op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import devtensor as dt
from devtensor import nn
from devtensor._composed.layers import recurrent
from devtensor._composed.layers.recurrent import Weights

CASES = [  # steps, rows, numbers of a state
    (1, 1, 4),  # alone
    (5, 4, 8),
    (6, 3, 12),
    (4, 1, 20),
    (7, 5, 6),  # no vectors of four
    (5, 40, 16),  # rows of several blocks, and of several threads
    (4, 18, 6),
    (4, 2, 324),  # a weight of more than half a megabyte: step by step on a GPU
]
KINDS = {"LSTM": (4, 2), "GRU": (3, 1)}  # gates and states


def operands(kind: str, case: tuple[int, int, int], dtype: dt.dtype, device: str) -> dict[str, Any]:
    steps, n, size = case
    gates, states = KINDS[kind]
    dt.manual_seed(sum(case))
    shapes = {"product": (steps, n, gates * size), "hh": (gates * size, size), "bias": (gates * size,)}
    shapes |= {f"state{k}": (n, size) for k in range(states)}
    made = {name: (0.5 * dt.randn(shape, dtype=dt.float64)).to(dtype).to(device) for name, shape in shapes.items()}
    made["hh"] *= 2 / size**0.5
    if kind == "LSTM":
        del made["bias"]  # is in the product
    return made


def weighted_sum(*arrays: dt.DeviceArray) -> dt.DeviceArray:
    """With the same weights for any dtype and device."""
    dt.manual_seed(1)
    return dt.stack([(x * dt.randn(x.shape, dtype=dt.float64).to(x.dtype).to(x.device)).sum() for x in arrays]).sum()


def outcome(kind: str, given: dict[str, Any], reverse: bool, at_once: bool, layout: str = "") -> list[dt.DeviceArray]:
    """The outputs, the last state and all gradients of a sum of them with weights."""
    leaves = {name: x.detach().clone().requires_grad_() for name, x in given.items()}
    product = leaves["product"]
    if layout == "batch":
        product = product.transpose(0, 1).contiguous().transpose(0, 1)
    elif layout == "apart":
        product = dt.cat((product, product), -1)[..., : product.shape[-1]]
    weights = Weights(leaves["hh"], leaves["hh"], None, leaves.get("bias"))
    state = tuple(leaves[f"state{k}"] for k in range(KINDS[kind][1]))
    if at_once:
        outputs, ends = recurrent.all_steps(kind, product, 0, state, weights, reverse)
    else:
        outputs, ends = recurrent.step_by_step(kind, product, None, 0, state, weights, reverse)
    weighted_sum(outputs, *ends).backward()
    return [outputs.detach(), *(x.detach() for x in ends), *(x.grad for x in leaves.values())]


TOLERANCES = {dt.float64: 1e-12, dt.float32: 3e-5, dt.float16: 2e-2, dt.bfloat16: 1e-1}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", list(TOLERANCES), ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_all_steps(
    kind: str, case: tuple[int, int, int], dtype: dt.dtype, reverse: bool, device: str
) -> None:
    if device == "cpu" and dtype in (dt.float16, dt.bfloat16):
        pytest.skip("the cpu takes half types step by step")
    given = operands(kind, case, dtype, device)
    wide = {name: x.to(dt.float64) for name, x in given.items()}
    for layout in ("", "batch", "apart"):
        want, got = outcome(kind, wide, reverse, False, layout), outcome(kind, given, reverse, True, layout)
        for a, b in zip(got, want, strict=True):
            assert a.dtype is dtype
            dt.testing.assert_close(a.to(dt.float64), b, rtol=TOLERANCES[dtype], atol=TOLERANCES[dtype])


@pytest.mark.parametrize("kind", KINDS)
def test_each_operand_alone_gets_its_gradient(kind: str, device: str) -> None:
    given = operands(kind, (5, 4, 8), dt.float64, device)
    whole = dict(zip(given, outcome(kind, given, False, True)[-len(given) :], strict=True))
    for name in given:
        leaves = {other: x.detach().requires_grad_(other == name) for other, x in given.items()}
        state = tuple(leaves[f"state{k}"] for k in range(KINDS[kind][1]))
        weights = Weights(leaves["hh"], leaves["hh"], None, leaves.get("bias"))
        outputs, ends = recurrent.all_steps(kind, leaves["product"], 0, state, weights, False)
        weighted_sum(outputs, *ends).backward()
        for other, x in leaves.items():
            assert (x.grad is not None) == (other == name)
        dt.testing.assert_close(leaves[name].grad, whole[name])


@pytest.mark.parametrize("options", [{}, {"bidirectional": True, "num_layers": 2}, {"batch_first": True}])
@pytest.mark.parametrize("kind", KINDS)
def test_second_gradients(kind: str, options: dict[str, Any], device: str) -> None:
    module = getattr(nn, kind)(3, 4, dtype=dt.float64, **options).to(device)
    x = dt.randn(4, 2, 3, dtype=dt.float64, device=device, requires_grad=True)
    weight = module.weight_hh_l0.detach().clone().requires_grad_()

    def outputs(x: dt.DeviceArray, weight: dt.DeviceArray) -> dt.DeviceArray:
        return dt.func.functional_call(module, {"weight_hh_l0": weight}, (x,))[0]

    assert dt.autograd.gradcheck(outputs, (x, weight))
    assert dt.autograd.gradgradcheck(outputs, (x, weight))


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_that_have_some_themselves_are_the_same(kind: str, device: str) -> None:
    """Also where an operand comes from another one, and of a weight with a hook or that was frozen since."""
    module = getattr(nn, kind)(4, 4, dtype=dt.float64).to(device)
    x, calls = dt.randn(3, 2, 4, dtype=dt.float64, device=device), []

    def carried() -> dt.DeviceArray:
        state = None
        for _ in range(3):
            outputs, state = module(x, state)
        return outputs.square().sum()

    def tied() -> dt.DeviceArray:
        module.weight_ih_l0 = module.weight_hh_l0
        return module(x)[0].square().sum()

    def shared_state() -> dt.DeviceArray:
        h = x[:1] * module.bias_hh_l0[:4]
        return module(x, (h, h) if kind == "LSTM" else h)[0].square().sum()

    def check(loss: Callable[[], dt.DeviceArray]) -> None:
        found = [dt.autograd.grad(loss(), list(module.parameters()), create_graph=create) for create in (False, True)]
        for a, b in zip(*found, strict=True):
            dt.testing.assert_close(a, b)

    check(carried)
    check(shared_state)
    check(tied)
    module.weight_hh_l0.register_hook(lambda gradient: calls.append(1) or gradient * 2)
    check(carried)
    assert len(calls) == 2
    module.zero_grad()
    outputs, _ = module(x)
    module.weight_hh_l0.requires_grad_(False)
    outputs.sum().backward(create_graph=True)


@pytest.mark.parametrize("kind", KINDS)
def test_many_calls_one_after_another_have_gradients_that_have_some(kind: str) -> None:
    """In time that grows with their number, not twofold with each."""
    module, state = getattr(nn, kind)(3, 4), None
    x, steps = dt.randn(1, 2, 3), []
    module.weight_hh_l0.register_hook(lambda gradient: steps.append(1))
    for _ in range(40):
        outputs, state = module(x, state)
    outputs.sum().backward(create_graph=True)
    assert len(steps) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_gradient_of_a_last_state_alone(kind: str, device: str) -> None:
    """Of c of an LSTM, from which nothing goes to the outputs of the last step."""
    given = operands(kind, (4, 3, 8), dt.float64, device)
    found = []
    for run in (recurrent.all_steps, recurrent.step_by_step):
        leaves = {name: x.detach().clone().requires_grad_() for name, x in given.items()}
        state = tuple(leaves[f"state{k}"] for k in range(KINDS[kind][1]))
        weights = Weights(leaves["hh"], leaves["hh"], None, leaves.get("bias"))
        given_sizes = () if run is recurrent.all_steps else (None,)
        _, ends = run(kind, leaves["product"], *given_sizes, 0, state, weights, False)
        ends[-1].square().sum().backward()
        found.append([x.grad for x in leaves.values()])
    for a, b in zip(*found, strict=True):
        dt.testing.assert_close(a, b)


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_may_be_written_to(kind: str, device: str) -> None:
    module = getattr(nn, kind)(3, 8).to(device)
    x = dt.randn(5, 4, 3, device=device)
    found = []
    for in_place in (False, True):
        module.zero_grad()
        outputs, state = module(x)
        if in_place:
            outputs.relu_()
            (state if kind == "GRU" else state[1]).mul_(2)
        else:
            outputs = outputs.relu()
        outputs.sum().backward()
        found.append([p.grad.clone() for p in module.parameters()])
    for a, b in zip(*found, strict=True):
        assert dt.equal(a, b)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_layer_keeps_must_stay(kind: str, device: str) -> None:
    module = getattr(nn, kind)(3, 8).to(device)
    outputs, _ = module(dt.randn(5, 4, 3, device=device))
    with dt.no_grad():
        module.weight_hh_l0.mul_(2)
    with pytest.raises(dt.GradientError, match=f"module.weight_hh_l0 float32 .* kept by {kind} at .*changed at"):
        outputs.sum().backward()


@pytest.mark.parametrize("kind", KINDS)
def test_hooks_may_keep_other_layouts(kind: str, device: str) -> None:
    module = getattr(nn, kind)(3, 8).to(device)
    x = dt.randn(5, 4, 3, device=device)
    module(x)[0].square().sum().backward()
    want = [p.grad.clone() for p in module.parameters()]
    module.zero_grad()

    def turned(x: dt.DeviceArray) -> dt.DeviceArray:
        return x.detach().transpose(0, -1).contiguous().transpose(0, -1)

    with dt.autograd.graph.saved_tensors_hooks(turned, lambda x: x):
        outputs, _ = module(x)
    outputs.square().sum().backward()
    for a, p in zip(want, module.parameters(), strict=True):
        dt.testing.assert_close(p.grad, a)


def test_gradients_have_the_same_bits_for_any_threads() -> None:
    before = dt.get_num_threads()
    try:
        for kind in KINDS:
            given = operands(kind, (6, 50, 24), dt.float32, "cpu")
            found = []
            for threads in (1, 2, 3):
                dt.set_num_threads(threads)
                found.append(outcome(kind, given, False, True))
            for other in found[1:]:
                assert all(dt.equal(a, b) for a, b in zip(found[0], other, strict=True))
    finally:
        dt.set_num_threads(before)


def test_shapes_that_do_not_fit() -> None:
    product, weight, h = dt.zeros(5, 4, 32), dt.zeros(32, 8), dt.zeros(4, 8)
    own, states = dt._C._lstm_steps_kept(product, weight, h, h)
    assert own.shape == (5, 4, 32) and states.shape == (6, 2, 4, 8)
    good = {"own": own, "product": product, "weight": weight, "states": states, "grad": dt.zeros(5, 4, 8), "last": h}
    gates, begin = dt._C._steps_grad(*good.values())
    assert gates.shape == (5, 4, 32) and begin.shape == (2, 4, 8)
    for name, x in good.items():
        for bad in (x[:-1], x.to(dt.float64), x.unsqueeze(0)):
            with pytest.raises(RuntimeError):
                dt._C._steps_grad(**(good | {name: bad}))
    with pytest.raises(RuntimeError):
        dt._C._steps_grad(*list(good.values())[:5])  # of a GRU, whose gates are three


@pytest.mark.parametrize("kind", KINDS)
def test_steps_are_few_launches(kind: str, cuda: str) -> None:
    """As many for 40 steps as for 10, forwards and backwards."""
    module = getattr(nn, kind)(8, 16).to(cuda)
    found = []
    for steps in (10, 40):
        x = dt.randn(steps, 6, 8, device=cuda)
        module(x)[0].sum().backward()  # plans and kernels are made once
        before = dt._C.counters()["launches"]
        module(x)[0].sum().backward()
        found.append(dt._C.counters()["launches"] - before)
    assert found[0] == found[1] < 40
