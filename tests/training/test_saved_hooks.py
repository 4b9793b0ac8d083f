"""autograd.graph: saved_tensors_hooks and what is made of them, hooks of several arrays, versions; autograd.explain."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest
from support import CUDA_DEVICES

import devtensor as dt
from devtensor import nn
from devtensor.autograd import graph

F = nn.functional


def gradients(packs: Any, device: str) -> list[Any]:
    """Those of a small network, of whose ops packs (a block) takes what they keep."""
    dt.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)).to(device)
    x = dt.randn(2, 1, 8, 8).to(device).requires_grad_()
    with packs:
        loss = F.cross_entropy(net(x).tanh() * 3, dt.tensor([0, 2], device=device))
    loss.backward()
    return [x.grad.tolist(), *(p.grad.tolist() for p in net.parameters())]


def test_what_is_packed_gives_the_same_gradients(device: str) -> None:
    class Plain:
        def __enter__(self) -> None: ...
        def __exit__(self, *details: object) -> None: ...

    wanted = gradients(Plain(), device)
    packed: list[Any] = []

    def pack(x: Any) -> tuple[int, Any]:
        assert not x.requires_grad
        packed.append(x.clone())
        return len(packed) - 1, x.device

    assert gradients(graph.saved_tensors_hooks(pack, lambda key: packed[key[0]]), device) == wanted
    assert len(packed) > 8
    assert gradients(graph.save_on_cpu(), device) == wanted
    assert gradients(graph.save_on_cpu(pin_memory=True), device) == wanted


def test_the_host_holds_it(device: str) -> None:
    """What a graph keeps lies on the cpu, and each way is a transfer."""
    w = dt.ones(1000, device=device, requires_grad=True)
    with dt.record_transfers() as log, graph.save_on_cpu():
        y = (w * 2).exp()
    assert [one.nbytes for one in log] == ([4000] if w.is_cuda else [])
    with dt.record_transfers() as log:
        y.sum().backward()
    assert [one.nbytes for one in log] == ([4000] if w.is_cuda else [])


def test_hooks_as_pytorch_has_them() -> None:
    """The same calls of hooks with the same shapes, in nested blocks, for custom functions, with create_graph."""
    torch = pytest.importorskip("torch")

    def run(lib: Any) -> list[Any]:
        said: list[Any] = []
        hooks = lib.autograd.graph.saved_tensors_hooks

        class Square(lib.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx: Any, gradient: Any) -> Any:
                (x,) = ctx.saved_tensors
                return 2 * x * gradient

        def note(name: str) -> Any:
            return hooks(
                lambda x: said.append((name, tuple(x.shape))) or x.clone(),  # type: ignore[func-returns-value]
                lambda x: said.append(("back " + name, tuple(x.shape))) or x,  # type: ignore[func-returns-value]
            )

        w = lib.tensor([1.0, 2.0], requires_grad=True)
        with note("outer"):
            y = w.exp()
            with note("inner"):
                y = Square.apply(y)
            y = y.sin()
        (first,) = lib.autograd.grad(y.sum(), w, create_graph=True)
        first.sum().backward()
        return [*said, [round(x, 4) for x in first.tolist()], [round(x, 4) for x in w.grad.tolist()]]

    assert run(dt) == run(torch)


def test_packed_values_count() -> None:
    """What comes back is what the gradient is made of."""
    w = dt.tensor([1.0, 2.0], requires_grad=True)
    with graph.saved_tensors_hooks(lambda x: x * 2, lambda x: x):
        y = w * w
    y.sum().backward()
    assert w.grad.tolist() == [4.0, 8.0]


def test_errors() -> None:
    def fails(x: Any) -> Any:
        raise KeyError("mine")

    w = dt.ones(3, requires_grad=True)
    with pytest.raises(KeyError, match="mine"), graph.saved_tensors_hooks(fails, lambda x: x):
        w * w
    with pytest.raises(KeyError, match="mine"), graph.saved_tensors_hooks(fails, lambda x: x):
        F.linear(dt.ones(300, 300, requires_grad=True), dt.ones(300, 300))  # which runs without the GIL
    for unpack, kind, text in (
        (fails, KeyError, "mine"),
        (
            lambda x: 3,
            TypeError,
            "Output of saved tensor unpack_hook expected to be a Tensor but got result of type int",
        ),
        (lambda x: x[:2], RuntimeError, r"unpack_hook gave float32 \(2,\) in the place of float32 \(3,\)"),
        (lambda x: x.double(), RuntimeError, r"unpack_hook gave float64 \(3,\) in the place of float32 \(3,\)"),
    ):
        with graph.saved_tensors_hooks(lambda x: x, unpack):
            y = w * w
        with pytest.raises(kind, match=text):
            y.sum().backward()
    assert w.grad is None
    with (
        pytest.raises(RuntimeError, match="not now"),
        graph.disable_saved_tensors_hooks("not now"),
        graph.save_on_cpu(),
    ):
        pass
    with (
        pytest.raises(RuntimeError, match="not now"),
        graph.save_on_cpu(),
        graph.disable_saved_tensors_hooks("not now"),
    ):
        pass
    with graph.save_on_cpu():
        (w * w).sum().backward()
    assert w.grad.tolist() == [2.0] * 3


def test_what_is_packed_ends_with_the_graph() -> None:
    class Held:
        count = 0

        def __init__(self, x: Any) -> None:
            self.x = x
            Held.count += 1

        def __del__(self) -> None:
            Held.count -= 1

    w = dt.ones(3, requires_grad=True)
    with graph.saved_tensors_hooks(Held, lambda held: held.x):
        y, z = (w * w).sum(), w.exp().sum()
    assert Held.count == 3
    y.backward(retain_graph=True)
    assert Held.count == 3
    y.backward()
    assert Held.count == 1
    with pytest.raises(dt.GradientError, match="a second time"):
        y.backward()
    del z
    gc.collect()
    assert Held.count == 0


def test_hooks_belong_to_a_thread() -> None:
    packed: list[Any] = []
    w = dt.ones(3, requires_grad=True)

    def other() -> None:
        (w * w).sum().backward()

    with graph.saved_tensors_hooks(lambda x: packed.append(x) or x, lambda x: x):  # type: ignore[func-returns-value]
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert packed == [] and w.grad.tolist() == [2.0] * 3


def test_a_checkpoint_packs_nothing() -> None:
    packed: list[Any] = []
    w = dt.ones(3, requires_grad=True)
    with graph.saved_tensors_hooks(lambda x: packed.append(x) or x, lambda x: x):  # type: ignore[func-returns-value]
        y = dt.utils.checkpoint.checkpoint(lambda x: x.exp() * x, w, use_reentrant=False)
    y.sum().backward()
    assert packed == []
    assert w.grad.tolist() == pytest.approx([2 * 2.718281828] * 3)


def test_hooks_of_several_arrays() -> None:
    torch = pytest.importorskip("torch")

    def run(lib: Any) -> list[Any]:
        said: list[Any] = []
        a, b, c = (lib.tensor([float(i)], requires_grad=True) for i in (1, 2, 3))
        middle = a * b
        hook = lib.autograd.graph.register_multi_grad_hook
        every = hook((a, b, c, middle), lambda grads: said.append([g if g is None else g.item() for g in grads]))
        first = hook((a, c), lambda g: said.append(g.item()), mode="any")
        (middle * 3 + c).sum().backward(retain_graph=True)
        (middle * 5).sum().backward(retain_graph=True)
        first.remove()
        middle.sum().backward(inputs=[b], retain_graph=True)
        every.remove()
        middle.sum().backward()
        return said

    got, wanted = run(dt), run(torch)
    assert [one for one in got if isinstance(one, list)] == [one for one in wanted if isinstance(one, list)]
    assert len(got) == len(wanted)
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        graph.register_multi_grad_hook((), lambda g: None, mode="some")  # type: ignore[arg-type]


def test_versions() -> None:
    w, x = dt.ones(2, requires_grad=True), dt.ones(2)
    y = w * x
    graph.increment_version([x])
    with pytest.raises(dt.GradientError, match="modified by an inplace operation"):
        y.sum().backward()


def test_edges() -> None:
    w = dt.ones(2, requires_grad=True)
    assert graph.get_gradient_edge(w).node.name() == "AccumulateGrad"
    assert graph.get_gradient_edge(w * 2).node.name() == "MulBackward0"
    with pytest.raises(RuntimeError, match="does not require gradients"):
        graph.get_gradient_edge(dt.ones(2))


def test_explain() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    loss = net(dt.ones(2, 3)).sum()
    lines = dt.autograd.explain(loss).splitlines()
    assert [line.split()[0] for line in lines[:4]] == [
        "SumBackward0",
        "LinearBackward0",
        "TanhBackward0",
        "LinearBackward0",
    ]
    assert {line.split()[2] for line in lines[4:-1]} == {
        f"net.{i}.{name}" for i in (0, 2) for name in ("weight", "bias")
    }
    assert "test_saved_hooks.py" in lines[0] and "keeps 48 bytes" in lines[1]
    loss.backward()
    assert "used up by a backward()" in dt.autograd.explain(loss)
    cut = net(dt.ones(2, 3)).detach()
    assert "no gradient flows through .detach()" in dt.autograd.explain(cut.sum())
    assert dt.autograd.explain(CUDA_DEVICES and dt.ones(2, requires_grad=True)).startswith("leaf")


def test_leaves_are_complete_before_backward_goes_on(device: str) -> None:
    """A step in a hook of a parameter gives its gradient back before the next layer's is made, as in PyTorch."""
    order: list[str] = []
    w = [dt.ones(2, device=device, requires_grad=True) for _ in range(3)]
    y = w[0] * 1
    for i in (1, 2):
        y = y * w[i]
        y.register_hook(lambda g, i=i: order.append(f"y{i}"))  # type: ignore[misc]
    for i, one in enumerate(w):
        one.register_post_accumulate_grad_hook(lambda p, i=i: order.append(f"w{i}"))  # type: ignore[misc]
    y.sum().backward()
    assert order == ["y2", "w2", "y1", "w1", "w0"]
