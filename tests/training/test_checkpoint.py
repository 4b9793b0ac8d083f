"""checkpoint, detect_anomaly, and backward hooks of modules."""

from __future__ import annotations

from typing import Any

import pytest
from support import CUDA_DEVICES

import devtensor as dt
from devtensor import nn
from devtensor.utils.checkpoint import checkpoint, checkpoint_sequential

# ---------------------------------------------------------------- checkpoint


def model(device: str) -> nn.Sequential:
    dt.manual_seed(7)
    layers = [
        nn.Linear(6, 6),
        nn.Tanh(),
        nn.Dropout(0.5),
        nn.Linear(6, 6),
        nn.GELU(),
        nn.BatchNorm1d(6),
        nn.Linear(6, 1),
    ]
    return nn.Sequential(*layers).to(device)


def gradients(net: nn.Module, loss: dt.DeviceArray) -> list[Any]:
    net.zero_grad()
    loss.backward()
    return [p.grad.tolist() for p in net.parameters() if p.grad is not None]


def test_same_bits_as_without(device: str) -> None:
    net, x = model(device), dt.randn(5, 6, device=device)

    def losses(call: Any) -> list[Any]:
        dt.manual_seed(3)
        loss = call().square().sum()
        drawn = dt.rand(2).tolist()  # backward draws nothing that others see
        return [loss.item(), drawn, gradients(net, loss), dt.rand(2).tolist()]

    plain = losses(lambda: net(x))
    assert len(plain[2]) == len(list(net.parameters()))
    assert losses(lambda: checkpoint(net, x, use_reentrant=False)) == plain
    assert losses(lambda: checkpoint_sequential(net, 3, x)) == plain
    other = losses(lambda: checkpoint(net, x, preserve_rng_state=False))
    assert other[0] == plain[0] and other[2] != plain[2]


def test_one_draw_of_dropout_is_meant_where_the_second_call_draws_others(device: str) -> None:
    x = dt.ones(200, device=device, requires_grad=True)
    checkpoint(lambda x: dt.nn.functional.dropout(x).exp(), x, preserve_rng_state=False).sum().backward()
    kept = x.grad != 0
    assert 0 < int(kept.sum()) < 200
    assert dt.equal(x.grad[kept], (dt.full_like(x, 2.0).exp() * 2)[kept].detach())


@pytest.mark.parametrize("written", ["the argument", "its view", "its base"])
def test_arguments_that_were_written_to(written: str, device: str) -> None:
    """Their nodes are made anew when they are next used: that is no op of the function."""
    found = []
    for call in (lambda f, *args: f(*args), checkpoint):
        w = dt.tensor([[1.0, 2.0, 3.0]], device=device, requires_grad=True)
        x = w * 2
        y, view = x.sum(0), x[0]
        if written == "its view":
            view[1:] *= 3
        else:
            x[..., ::2] += 1
        call(lambda a, b: (a * b).tanh() + b, y * 0.1, view if written == "its base" else x).sum().backward()
        found.append(w.grad.tolist())
    assert found[0] == found[1]


def test_nothing_is_kept(cuda: str) -> None:
    x = dt.randn(1000, 100, device=cuda, requires_grad=True)

    def part(x: dt.DeviceArray) -> dt.DeviceArray:
        for _ in range(8):
            x = x.sin().exp().tanh()
        return x

    def kept(call: Any) -> tuple[int, dt.DeviceArray]:
        before = dt.cuda.memory_allocated(cuda)
        y = call(x)
        return (dt.cuda.memory_allocated(cuda) - before) // y.nbytes, y

    (light, y), (heavy, z) = kept(lambda x: checkpoint(part, x)), kept(part)
    assert light == 1 and heavy > 16  # the result; all of them
    assert dt.equal(*(dt.autograd.grad(a.sum(), x)[0] for a in (y, z)))
    del y, z
    assert dt.cuda.memory_allocated(cuda) <= 2 * x.nbytes


def test_more_ways_to_differentiate() -> None:
    x = dt.rand(4, dtype=dt.float64, requires_grad=True)
    w = dt.rand(4, dtype=dt.float64, requires_grad=True)

    def part(x: dt.DeviceArray, *, power: float) -> dt.DeviceArray:
        return checkpoint(lambda y: (y * w).exp(), x**power)  # one inside of another, and w is no argument

    def whole(x: dt.DeviceArray, w: dt.DeviceArray) -> dt.DeviceArray:
        return checkpoint(part, x, power=3.0) * w

    assert dt.autograd.gradcheck(lambda x: whole(x, w), (x,))
    assert dt.autograd.gradgradcheck(lambda x: whole(x, w), (x,))
    loss = whole(x, w).sum()
    loss.backward(retain_graph=True)
    first = w.grad
    assert first is not None
    first = first.tolist()
    loss.backward()
    assert w.grad is not None and w.grad.tolist() == [2 * v for v in first]
    with pytest.raises(dt.GradientError, match="a second time"):
        loss.backward()
    with dt.no_grad():
        assert not checkpoint(part, x, power=3.0).requires_grad


def test_gradients_inside(device: str) -> None:
    w = dt.tensor([0.5, -1.0], dtype=dt.float64, device=device, requires_grad=True)

    def part(x: dt.DeviceArray, create_graph: bool) -> dt.DeviceArray:
        x = x.sin()
        y = (x.exp() * w).sum()
        (slope,) = dt.autograd.grad(y, x, create_graph=create_graph)
        return (slope.square() + x * w).sum()

    for create_graph in (True, False):
        found = []
        for call in (part, lambda *args: checkpoint(part, *args)):
            x = dt.tensor([0.3, 2.0], dtype=dt.float64, device=device, requires_grad=True)
            found.append([g.tolist() for g in dt.autograd.grad(call(x, create_graph), (x, w))])
        assert found[0] == found[1]


def test_calls_that_differ() -> None:
    calls: list[int] = []

    def changing(x: dt.DeviceArray) -> dt.DeviceArray:
        calls.append(1)
        return x.exp().sin() if len(calls) == 1 else x.exp()

    x = dt.ones(2, requires_grad=True)
    y = checkpoint(changing, x)
    with pytest.raises(dt.GradientError, match="2 ops were recorded, then 1") as caught:
        y.sum().backward()
    assert caught.value.code == "grad-checkpoint" and x.grad is None

    def failing(x: dt.DeviceArray) -> dt.DeviceArray:
        calls.append(1)
        if len(calls) > 4:
            raise KeyError("mine")
        return x.exp()

    calls[:] = [1, 1, 1]
    y = checkpoint(failing, x)
    with pytest.raises(KeyError, match="mine"):
        y.sum().backward()
    calls.clear()
    y.sum().backward()
    assert x.grad is not None
    with pytest.raises(TypeError, match="argument 'function' must be callable"):
        checkpoint(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="segments must be from 1 to 2"):
        checkpoint_sequential([dt.exp, dt.sin], 3, x)


def test_contexts_and_functions_of_users() -> None:
    entered: list[str] = []

    class Note:
        def __init__(self, name: str) -> None:
            self.name = name

        def __enter__(self) -> None:
            entered.append(self.name)

        def __exit__(self, *details: object) -> None:
            pass

    class Double(dt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: dt.DeviceArray) -> Any:
            y = x * x
            ctx.save_for_backward(x, y)
            return y, x + 0

        @staticmethod
        def backward(ctx: Any, a: dt.DeviceArray, b: dt.DeviceArray) -> Any:
            x, y = ctx.saved_tensors
            assert y.tolist() == (x * x).tolist()
            return 2 * a * x + b

    def part(x: dt.DeviceArray) -> dt.DeviceArray:
        a, b = Double.apply(x.exp())
        return a * b

    x = dt.tensor([0.5], requires_grad=True)
    y = checkpoint(part, x, context_fn=lambda: (Note("first"), Note("second")))
    assert entered == ["first"]
    y.backward()
    assert entered == ["first", "second"]
    assert x.grad is not None and x.grad.item() == pytest.approx(3 * 2.718281828**1.5, rel=1e-6)


@pytest.mark.parametrize("device", CUDA_DEVICES[:1])
def test_parts_give_their_memory_back_one_after_the_other(device: str) -> None:
    """Also where the last op of a part reads nothing, so that its node never asks for what was computed again."""
    size = 1 << 20
    for part in (lambda x: x.exp().log().sum(), lambda x: (-x).exp().mean(), lambda x: -x.exp()):
        inputs = [dt.rand(size // 4, device=device, requires_grad=True) for _ in range(8)]
        dt.cuda.synchronize()
        before = dt.cuda.memory_allocated(device)
        dt.cuda.reset_peak_memory_stats(device)
        total = sum(dt.utils.checkpoint.checkpoint(part, x).sum() for x in inputs)
        dt.cuda.synchronize()
        forward = dt.cuda.max_memory_allocated(device) - before
        total.backward()
        dt.cuda.synchronize()
        assert forward < 4 * size
        assert dt.cuda.max_memory_allocated(device) - before < (8 + 5) * size  # the gradients, and one part


# ---------------------------------------------------------------- anomalies


def test_nan_is_found_where_it_comes_from(device: str) -> None:
    x = dt.tensor([0.0, 1.0], device=device, requires_grad=True)
    with dt.autograd.detect_anomaly():
        root = x.sqrt()  # this line
        with pytest.raises(dt.GradientError) as caught:
            (root * 0).sum().backward()
    message = str(caught.value)
    assert message.startswith("Function 'SqrtBackward0' returned nan values in its 0th output. (recorded at ")
    assert f"{__file__}:" in message and message.endswith("root = x.sqrt()  # this line)")
    assert caught.value.code == "grad-nan" and x.grad is None
    (x.sqrt() * 0).sum().backward()  # the block is over
    assert x.grad is not None and x.grad[0].isnan().item()


def test_modes_of_anomalies() -> None:
    x = dt.zeros(1, requires_grad=True)
    with dt.autograd.detect_anomaly(check_nan=False):
        (x.sqrt() * 0).sum().backward()
    with dt.autograd.set_detect_anomaly(True), pytest.raises(dt.GradientError):
        (x.sqrt() * 0).sum().backward()
    with dt.autograd.detect_anomaly():
        with dt.autograd.set_detect_anomaly(False):
            (x.sqrt() * 0).sum().backward()
        with pytest.raises(dt.GradientError):
            (x.sqrt() * 0).sum().backward()
    (x.sqrt() * 0).sum().backward()


# ---------------------------------------------------------------- hooks of modules


def test_backward_hooks(device: str) -> None:
    layer, x = nn.Linear(3, 2).to(device), dt.randn(4, 3, device=device, requires_grad=True)
    seen: list[Any] = []
    before = layer.register_full_backward_pre_hook(lambda m, out: seen.append(("before", out[0].shape)))
    handle = layer.register_full_backward_hook(lambda m, into, out: seen.append((m, into[0].shape, out[0].shape)))
    layer(x).sum().backward()
    assert seen == [("before", (4, 2)), (layer, (4, 3), (4, 2))]
    plain = x.grad
    before.remove(), handle.remove()
    assert plain is not None
    with (
        layer.register_full_backward_pre_hook(lambda m, out: (out[0] * 2,)),
        layer.register_full_backward_hook(lambda m, into, out: (into[0] * 10,)),
    ):
        x.grad = None
        layer.zero_grad()
        layer(x).sum().backward()
    assert x.grad is not None and dt.allclose(x.grad, plain * 20)
    assert layer.bias is not None and layer.bias.grad is not None and layer.bias.grad.tolist() == [8.0, 8.0]


class Several(nn.Module):
    def forward(self, x: dt.DeviceArray, k: int, y: dt.DeviceArray) -> Any:
        return x * k, "text", y.detach()


def test_backward_hooks_of_several_values() -> None:
    seen: list[Any] = []
    net, x = Several(), dt.ones(2, requires_grad=True)
    net.register_full_backward_hook(lambda m, into, out: seen.append(([g is None for g in into], len(out))))
    first, text, _ = net(x, 3, dt.ones(2))
    assert text == "text"
    first.sum().backward()
    assert seen == [([False, True, True], 3)]
    assert x.grad is not None and x.grad.tolist() == [3.0, 3.0]


def test_backward_hooks_without_gradients_of_inputs() -> None:
    layer, seen = nn.Linear(3, 2), []
    handle = layer.register_full_backward_hook(lambda m, into, out: seen.append((into, len(out))))
    layer(dt.ones(1, 3)).sum().backward()
    assert seen == [((None,), 1)]
    handle.remove()
    layer.register_full_backward_hook(lambda m, into, out: into)
    with pytest.raises(RuntimeError, match="should always return None"):
        layer(dt.ones(1, 3)).sum().backward()


def test_backward_hooks_that_return_too_much() -> None:
    layer, x = nn.Linear(3, 2), dt.ones(1, 3, requires_grad=True)
    layer.register_full_backward_hook(lambda m, into, out: (into[0], into[0]))
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 2, but expected 1"):
        layer(x).sum().backward()
