"""Hooks and metadata of grad_fn: the same programs in devtensor and in PyTorch."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import devtensor as dt


def made(T: Any, device: str) -> tuple[Any, Any]:
    x = T.tensor([1.0, 2.0], requires_grad=True, device=device)
    return x, (x * x).sum()


def sees_both(T: Any, device: str) -> Any:
    _, y = made(T, device)
    log: list[Any] = []
    y.grad_fn.next_functions[0][0].register_hook(lambda given, grads: log.append((seen(given), seen(grads))))
    y.backward()
    return log


def replaces(T: Any, device: str) -> Any:
    x, y = made(T, device)
    y.grad_fn.register_hook(lambda given, grads: tuple(g * 2 for g in given))
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 3,))
    y.grad_fn.next_functions[0][0].register_hook(lambda given, grads: (given[0], given[1] * 10))
    y.backward()
    return x.grad.tolist()


def removed(T: Any, device: str) -> Any:
    x, y = made(T, device)
    for register in (y.grad_fn.register_hook, y.grad_fn.register_prehook):
        register(lambda *grads: 1 / 0).remove()
    y.backward()
    return x.grad.tolist()


def of_a_leaf(T: Any, device: str) -> Any:
    x, y = made(T, device)
    node = x.expand_as(x).grad_fn.next_functions[0][0]
    log: list[Any] = []
    node.register_prehook(lambda grads: (grads[0] * 5,))
    node.register_hook(lambda given, grads: log.append((given, seen(grads), x.grad.tolist())))
    y.backward(retain_graph=True)
    y.backward()
    return log, x.grad.tolist(), T.autograd.grad((x * x).sum(), x)[0].tolist(), len(log)


def in_order(T: Any, device: str) -> Any:
    _, y = made(T, device)
    log: list[Any] = []
    y.grad_fn.register_hook(lambda *_: log.append("first"))
    y.grad_fn.register_prehook(lambda *_: log.append("before"))
    y.grad_fn.register_hook(lambda *_: log.append("second"))
    y.register_hook(lambda *_: log.append("array"))
    y.backward()
    return log


def of_a_function(T: Any, device: str) -> Any:
    class Both(T.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return a * 2, a * 3

        @staticmethod
        def backward(ctx: Any, one: Any, two: Any) -> Any:
            return one * 2 + two * 3

    x, _ = made(T, device)
    one, two = Both.apply(x)
    log: list[Any] = []
    one.grad_fn.register_hook(lambda given, grads: log.append((seen(given), seen(grads))))
    one.grad_fn.register_prehook(lambda grads: (grads[0] * 10, grads[1]))
    (one + two).sum().backward()
    return log, x.grad.tolist()


def second_derivative(T: Any, device: str) -> Any:
    x = T.tensor([1.0, 2.0], requires_grad=True, device=device)
    y = x.square().sum()
    y.grad_fn.next_functions[0][0].register_hook(lambda given, grads: (given[0] * x,))
    (slope,) = T.autograd.grad(y, x, create_graph=True)
    slope.sum().backward()
    return slope.tolist(), x.grad.tolist()


def of_views_and_writes(T: Any, device: str) -> Any:
    """Formulas that hand on parts of a gradient."""
    x = T.ones(4, requires_grad=True, device=device)
    y = x * 1
    y[1:3] = x[:2] * 5
    log: list[Any] = []
    y.grad_fn.register_hook(lambda given, grads: log.append(len(given)))
    y[2:].grad_fn.register_hook(lambda given, grads: (given[0] * 2,))
    part = y[2:]
    part.grad_fn.register_hook(lambda given, grads: (given[0] * 2,))
    (part.sum() + y.sum()).backward()
    return x.grad.tolist()


def metadata(T: Any, device: str) -> Any:
    _, y = made(T, device)
    y.grad_fn.metadata["place"] = 1
    return y.grad_fn.metadata, y.grad_fn.next_functions[0][0].metadata


def seen(grads: tuple[Any, ...]) -> list[Any]:
    return [None if g is None else g.tolist() for g in grads]


PROGRAMS: list[Callable[[Any, str], Any]] = [
    sees_both, replaces, removed, of_a_leaf, in_order, of_a_function, second_derivative, of_views_and_writes, metadata,
]  # fmt: skip
WRONG: dict[str, tuple[Callable[..., Any], type[Exception], str]] = {
    "no tuple": (lambda given, grads: given[0], TypeError, "expected tuple, but hook returned"),
    "two": (lambda given, grads: given * 2, RuntimeError, r"incorrect number of values \(got 2, but expected 1\)"),
    "nothing": (lambda given, grads: (None,), RuntimeError, "has replaced an array with None"),
    "a number": (lambda given, grads: (1.0,), TypeError, "must return DeviceArrays, not float"),
    "a shape": (lambda given, grads: (given[0].sum(),), dt.ShapeMismatchError, "must have the shape of its array"),
    "its own": (lambda given, grads: 1 / 0, ZeroDivisionError, "division"),
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_hooks_are_those_of_pytorch(program: Callable[[Any, str], Any], device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    assert program(dt, device) == program(torch, "cpu")


def test_what_a_hook_may_not_return(device: str) -> None:
    for name, (hook, error, text) in WRONG.items():
        x, y = made(dt, device)
        y.grad_fn.register_hook(hook)
        with pytest.raises(error, match=text):
            y.backward()
        assert x.grad is None, name
    with pytest.raises(TypeError, match="'fn' must be callable, not int"):
        made(dt, device)[1].grad_fn.register_hook(3)


def test_hooks_and_metadata_end_with_their_node(device: str) -> None:
    class Kept:
        pass

    x, y = made(dt, device)
    kept = Kept()
    ended = weakref.ref(kept)
    y.grad_fn.metadata["kept"] = kept
    y.grad_fn.register_hook(lambda given, grads, kept=kept: None)
    del x, y, kept
    gc.collect()
    assert ended() is None
