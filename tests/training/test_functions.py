"""Functions with gradients of users: PyTorch's results, what they keep, errors, ends."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from support import needs_kernels, no_transfers

import devtensor as dt
from devtensor.autograd.function import once_differentiable
from devtensor.utils.checkpoint import checkpoint


class Exp(dt.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: dt.DeviceArray) -> dt.DeviceArray:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: dt.DeviceArray) -> dt.DeviceArray:
        return gradient * ctx.saved_tensors[0]


class Pair(dt.autograd.Function):
    """x * y and x + k y, between what has no gradient."""

    @staticmethod
    def forward(ctx: Any, x: dt.DeviceArray, y: dt.DeviceArray, k: float) -> Any:
        ctx.k = k
        ctx.save_for_backward(x, None, y)
        return x * y, "text", x + k * y, x > 0

    @staticmethod
    def backward(ctx: Any, p: dt.DeviceArray, _: None, q: dt.DeviceArray, __: None) -> Any:
        x, nothing, y = ctx.saved_tensors
        assert nothing is None and _ is None
        return p * y + q, p * x + ctx.k * q, None


class Scaled(dt.autograd.Function):
    """With setup_context and vjp."""

    @staticmethod
    def forward(x: dt.DeviceArray, factor: float = 2.0) -> dt.DeviceArray:
        return x * factor

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.factor = inputs[1]

    @staticmethod
    def vjp(ctx: Any, gradient: dt.DeviceArray) -> Any:
        return gradient * ctx.factor, None


def leaf(values: Any, device: str = "cpu") -> dt.DeviceArray:
    return dt.tensor(values, dtype=dt.float64, device=device, requires_grad=True)


def test_one_output(device: str) -> None:
    x = leaf([0.5, 1.5], device)
    with no_transfers():
        y = Exp.apply(x)
        assert y.grad_fn is not None and y.grad_fn.name() == "ExpBackward" and not y.is_leaf
        assert "test_functions.py" in repr(y.grad_fn)
        y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == y.tolist()
    assert not Exp.apply(x.detach()).requires_grad
    with dt.no_grad():
        assert not Exp.apply(x).requires_grad


def test_gradients_of_gradients(device: str) -> None:
    x, y = leaf([0.5, 1.5], device), leaf([2.0, -3.0], device)

    def product(x: dt.DeviceArray, y: dt.DeviceArray) -> dt.DeviceArray:
        p, _, q, _ = Pair.apply(x, y, 3.0)
        return p * q * Exp.apply(p)

    assert dt.autograd.gradcheck(product, (x, y))
    assert dt.autograd.gradgradcheck(product, (x, y))


def test_several_outputs() -> None:
    x, y = leaf([0.5, 1.5]), leaf([2.0, -3.0])
    p, text, q, test = Pair.apply(x, y, 3.0)
    assert text == "text" and test.tolist() == [True, True] and not test.requires_grad
    assert p.grad_fn == q.grad_fn and p.grad_fn.name() == "PairBackward"
    assert len(p.grad_fn.next_functions) == 2
    q.sum().backward()  # p's gradient is zeros
    assert x.grad is not None and x.grad.tolist() == [1.0, 1.0]
    assert y.grad is not None and y.grad.tolist() == [3.0, 3.0]


def test_setup_context_and_names() -> None:
    x = leaf([1.0])
    Scaled.apply(x, factor=5.0).sum().backward()
    Scaled.apply(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [7.0]
    with pytest.raises(TypeError, match=r"Exp.apply\(\) takes no keyword arguments"):
        Exp.apply(x=x)
    with pytest.raises(TypeError, match="should not be instantiated"):
        Exp()


class Marked(dt.autograd.Function):
    seen: Any = None

    @staticmethod
    def forward(ctx: Any, x: dt.DeviceArray) -> Any:
        constant = x * 2
        ctx.mark_non_differentiable(constant)
        ctx.set_materialize_grads(False)
        ctx.save_for_forward(x)
        return x, x, constant  # the input itself, twice

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        Marked.seen = [g is None for g in gradients], ctx.needs_input_grad
        return gradients[0], None, None  # what is too much is None


def test_marks_and_inputs_as_outputs() -> None:
    x = leaf([1.0, 2.0])
    a, b, constant = Marked.apply(x)
    assert a is not x and b is not a and a.data_ptr() == x.data_ptr() and x.is_leaf
    assert a.requires_grad and not constant.requires_grad
    a.sum().backward()
    assert Marked.seen == ([False, True, True], (True,))
    assert x.grad is not None and x.grad.tolist() == [1.0, 1.0]


def test_hooks_and_wanted_gradients_of_outputs() -> None:
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    p, _, q, _ = Pair.apply(x, y, 1.0)
    seen: list[Any] = []
    p.register_hook(lambda g: seen.append(g.tolist()))
    q.retain_grad()
    found = dt.autograd.grad((p * q).sum(), (p, q, x), retain_graph=True)
    assert [g.tolist() for g in found[:2]] == [q.tolist(), p.tolist()] and seen == [q.tolist()]
    (p * q).sum().backward()
    assert q.grad is not None and q.grad.tolist() == (p * 2).tolist()  # both are added up


def test_what_was_kept_is_checked_and_freed() -> None:
    x = leaf([1.0, 2.0])
    y = Exp.apply(x)
    y.detach().mul_(2)
    with pytest.raises(dt.GradientError, match="modified by an inplace operation"):
        y.sum().backward()
    y = Exp.apply(x)
    y.sum().backward()
    with pytest.raises(dt.GradientError, match="a second time"):
        y.sum().backward()


def test_a_context_without_its_graph() -> None:
    kept: list[Any] = []

    class Keep(Exp):
        @staticmethod
        def backward(ctx: Any, gradient: dt.DeviceArray) -> dt.DeviceArray:
            kept.append(ctx)
            return Exp.backward(ctx, gradient)

    Keep.apply(leaf([1.0])).sum().backward()
    with pytest.raises(RuntimeError, match="the graph of this function is gone"):
        _ = kept[0].saved_tensors


def returning(answer: Any, takes: int = 1) -> type[dt.autograd.Function]:
    class Answer(dt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *arrays: Any) -> Any:
            return arrays[0] * 2

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:  # this line
            return answer

    return Answer


WRONG: list[tuple[Any, type[Exception], str]] = [
    ((), dt.GradientError, "function AnswerBackward returned an incorrect number of gradients (expected 1, got 0)"),
    ((None, 1), dt.GradientError, "returned an incorrect number of gradients (expected 1, got 2)"),
    (dt.ones(3, dtype=dt.float64), dt.GradientError, "index 0 - got (3,) but expected shape compatible with (2,)"),
    (dt.ones((), dtype=dt.float64), dt.GradientError, "index 0 - got () but expected shape compatible with (2,)"),
    (dt.ones(2), dt.GradientError, "index 0 - expected type float64 but got float32"),
    (3, TypeError, "expected DeviceArray or None, but got int"),
    (np.ones(2), TypeError, "expected DeviceArray or None, but got ndarray"),
]


@pytest.mark.parametrize(("answer", "kind", "text"), WRONG, ids=range(len(WRONG)))
def test_wrong_answers(answer: Any, kind: type[Exception], text: str) -> None:
    x, other = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    y = returning(answer).apply(x)
    with pytest.raises(kind) as caught:
        (y.sum() + other.sum()).backward()
    assert text in str(caught.value)
    assert f"(Answer.backward at {__file__}:" in str(caught.value)
    assert any("In the gradient of Answer, applied at" in note for note in caught.value.__notes__)
    if kind is dt.GradientError:
        assert caught.value.code == "grad-function"  # type: ignore[attr-defined]
    assert x.grad is None


def test_a_gradient_on_another_device(cuda: str) -> None:
    x = leaf([1.0, 2.0], cuda)
    with pytest.raises(dt.GradientError, match=f"expected device {cuda} but got cpu"):
        returning(dt.ones(2, dtype=dt.float64)).apply(x).sum().backward()


def test_a_gradient_for_a_number() -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(dt.GradientError, match="different from None at position 1"):
        returning((None, dt.ones(1))).apply(x, 3).sum().backward()


def test_gradients_that_broadcast_are_summed() -> None:
    x = leaf([1.0, 2.0])
    returning(dt.ones(4, 2, dtype=dt.float64)).apply(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [4.0, 4.0]


def test_an_exception_leaves_leaves_whole() -> None:
    class Fails(Exp):
        @staticmethod
        def backward(ctx: Any, gradient: dt.DeviceArray) -> dt.DeviceArray:
            raise KeyError("mine")

    x, y = leaf([1.0]), leaf([1.0])
    failing = Fails.apply(x)
    loss = (failing + y * 2).sum()
    with pytest.raises(KeyError, match="mine") as caught:
        loss.backward()
    assert any("applied at" in note for note in caught.value.__notes__)
    assert x.grad is None and (y.grad is None or y.grad.tolist() == [2.0])
    dt.autograd.grad((y * 3).sum(), y)  # the engine goes on


def test_what_cannot_be_done() -> None:
    with pytest.raises(NotImplementedError, match="You must implement the forward"):
        dt.autograd.Function.apply(leaf([1.0]))

    class Half(dt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: dt.DeviceArray) -> dt.DeviceArray:
            ctx.save_for_backward(1)
            return x

    with pytest.raises(TypeError, match="can only save variables, but argument 0 is of type int"):
        Half.apply(leaf([1.0]))
    with pytest.raises(NotImplementedError, match="either the backward or vjp"):
        returning(None).__bases__[0].backward(None)


class Doubled(dt.autograd.Function):
    """x.exp_(), and y."""

    @staticmethod
    def forward(ctx: Any, x: dt.DeviceArray, y: dt.DeviceArray) -> Any:
        ctx.mark_dirty(x.exp_())
        ctx.save_for_backward(x)
        return (x, y * 2) if y.numel() > 1 else y

    @staticmethod
    def backward(ctx: Any, a: dt.DeviceArray, b: dt.DeviceArray) -> Any:
        return a * ctx.saved_tensors[0], b * 2


def test_writes_in_place() -> None:
    x, y = leaf([0.5, 1.0]), leaf([1.0, 2.0])
    z = x * 3
    before = z.data_ptr()
    a, b = Doubled.apply(z, y)
    assert a is z and z.data_ptr() == before and z.grad_fn.name() == "DoubledBackward" and b is not y
    (z * b).sum().backward()
    assert x.grad is not None and y.grad is not None
    assert x.grad.tolist() == (z * 3 * b).tolist() and y.grad.tolist() == (2 * z).tolist()
    with pytest.raises(dt.GradientError, match="a leaf Variable that requires grad"):
        Doubled.apply(leaf([1.0, 2.0]), y)
    z = x * 3
    row = z[0]
    with pytest.raises(NotImplementedError, match="memory that another array shares"):
        Doubled.apply(z, y)
    assert row.requires_grad
    with pytest.raises(RuntimeError, match="marked as dirty"):
        Doubled.apply(x * 3, leaf([1.0]))


def test_once_differentiable() -> None:
    class Once(Exp):
        @staticmethod
        @once_differentiable
        def backward(ctx: Any, gradient: dt.DeviceArray) -> dt.DeviceArray:
            return Exp.backward(ctx, gradient)

    x = leaf([1.0])
    Once.apply(x).sum().backward()
    assert x.grad is not None
    (first,) = dt.autograd.grad(Once.apply(x).square().sum(), x, create_graph=True)
    with pytest.raises(dt.GradientError, match="once_differentiable"):
        first.sum().backward()


def test_no_cycles() -> None:
    """What a function saves ends with its graph, without the collector."""
    gc.collect()
    gc.disable()
    try:
        contexts = []

        class Watched(Pair):
            @staticmethod
            def forward(ctx: Any, x: dt.DeviceArray, y: dt.DeviceArray, k: float) -> Any:
                contexts.append(weakref.ref(ctx))
                result = Pair.forward(ctx, x, y, k)
                ctx.save_for_backward(x, None, y)
                return result

        x = leaf(np.ones(1000))
        for _ in range(3):
            p, _, q, _ = Watched.apply(x, x, 2.0)
            (p * q).sum().backward()
            del p, q
        Watched.apply(x, x, 2.0)  # without backward
        assert [ref() for ref in contexts] == [None] * 4
    finally:
        gc.enable()


def test_many_threads() -> None:
    def work(seed: int, found: dict[int, list[Any]]) -> None:
        values = np.random.default_rng(seed).normal(size=(20, 3))
        for row in values:
            x = leaf(row)
            y = checkpoint(lambda v: Exp.apply(v.sin()) * v, x)
            p, _, q, _ = Pair.apply(x, y, 2.0)
            (p * q).sum().backward()
            found.setdefault(seed, []).append(x.grad.tolist())  # type: ignore[union-attr]

    alone: dict[int, list[Any]] = {}
    together: dict[int, list[Any]] = {}
    for seed in range(4):
        work(seed, alone)
    threads = [threading.Thread(target=work, args=(seed, together)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


@needs_kernels
def test_around_a_kernel(cuda: str) -> None:
    source = """
    extern "C" __global__ void cube(const double *x, double *y, int n)
    { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i] * x[i] * x[i]; }
    extern "C" __global__ void slope(const double *x, const double *g, double *y, int n)
    { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 3 * x[i] * x[i] * g[i]; }
    """
    cube, slope = dt.cuda.RawKernel(source, "cube"), dt.cuda.RawKernel(source, "slope")

    class Cube(dt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: dt.DeviceArray) -> dt.DeviceArray:
            ctx.save_for_backward(x)
            y = dt.empty_like(x)
            cube[1, 32](x, y, x.numel())
            return y

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, gradient: dt.DeviceArray) -> dt.DeviceArray:
            (x,) = ctx.saved_tensors
            result = dt.empty_like(x)
            slope[1, 32](x, gradient.contiguous(), result, x.numel())
            return result

    x = leaf([0.5, -2.0, 3.0], cuda)
    assert dt.autograd.gradcheck(Cube.apply, (x,))


class Elsewhere(dt.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: dt.DeviceArray, other: dt.DeviceArray) -> dt.DeviceArray:
        ctx.other = other
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: dt.DeviceArray) -> Any:
        thread = threading.Thread(target=lambda: (ctx.other * ctx.other).sum().backward(), daemon=True)
        thread.start()
        thread.join(20)
        assert not thread.is_alive()
        return gradient * 2, None


def test_a_function_may_wait_for_another_thread() -> None:
    x, other = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    Elsewhere.apply(x, other.detach().requires_grad_()).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 2]
