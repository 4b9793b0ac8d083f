"""Hooks: what they see and change, who runs when, threads and forks inside of them."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import pytest
from support import CUDA_DEVICES

import devtensor as dt


def leaf(*shape: int) -> dt.DeviceArray:
    return dt.ones(*shape, requires_grad=True)


def test_hooks() -> None:
    x, seen = leaf(2), []
    first = x.register_hook(lambda g: seen.append(g.tolist()))
    second = x.register_hook(lambda g: g * 10)
    third = x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g + 1)
    y.sum().backward()
    assert seen == [[4, 4], [40, 40]] and y.grad.tolist() == [2, 2]
    for handle in (first, second, third):
        handle.remove()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [42, 42] and len(seen) == 2

    def broken(gradient):
        raise KeyError("mine")

    x.register_hook(broken)
    with pytest.raises(KeyError, match="mine"):
        (x * 2).sum().backward()
    assert x.grad.tolist() == [42, 42]


def narrows(g: Any) -> None:
    g.data = g.long()


def shrinks(g: Any) -> None:
    g.data = dt.ones(1)


def turns(g: Any) -> Any:
    return g.swapaxes_(0, 1)


def moves(g: Any) -> None:
    g.data = g.to(CUDA_DEVICES[0])


WRONG = {
    "a number": lambda g: 3, "a row": lambda g: g[:1], "a dtype": lambda g: g.double(), "narrows": narrows,
    "shrinks": shrinks, "turns": turns, "resizes": lambda g: g.resize_(1), "moves": moves,
}  # fmt: skip


@pytest.mark.parametrize("way", WRONG)
@pytest.mark.parametrize("of", ["a leaf", "a result"])
def test_a_wrong_answer_reaches_nobody(way: str, of: str) -> None:
    """Whether a hook answers it, or makes it of its argument."""
    x, seen = dt.ones(2, 3, requires_grad=True), []
    y = x * 2
    hooked = x if of == "a leaf" else y
    hooked.register_hook(WRONG[way])
    hooked.register_hook(lambda g: seen.append(g.shape))
    with pytest.raises((TypeError, RuntimeError), match="hook"):
        (y * 1).sum().backward()
    assert not seen and x.grad is None


def test_backward_in_a_hook() -> None:
    x, w = leaf(2), leaf(2)

    def again(gradient):
        with dt.enable_grad():
            (w * 3).sum().backward()

    x.register_hook(again)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 2] and w.grad.tolist() == [3, 3]


def test_a_hook_may_wait_for_another_thread() -> None:
    x, w = leaf(2), leaf(2)

    def elsewhere(gradient):
        thread = threading.Thread(target=lambda: (w * w).sum().backward(), daemon=True)
        thread.start()
        thread.join(20)
        assert not thread.is_alive()

    x.register_hook(elsewhere)
    x.register_post_accumulate_grad_hook(elsewhere)
    (x * 3).sum().backward()
    assert w.grad.tolist() == [4, 4] and x.grad.tolist() == [3, 3]


def test_hooks_of_many_threads_over_one_graph() -> None:
    x, failures = leaf(2), []
    y = x * x
    y.register_hook(lambda gradient: time.sleep(0.0005))
    z = y.sum()

    def work() -> None:
        try:
            for _ in range(10):
                z.backward(retain_graph=True)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and x.grad.tolist() == [160, 160]


def child_succeeds(work) -> bool:
    """In a child that a fork makes here."""
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            os._exit(0 if work() else 1)
        except BaseException:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


def test_a_fork_in_a_hook_and_beside_one() -> None:
    x, inside, end, results = leaf(2), threading.Event(), threading.Event(), []

    def works_in_the_child() -> bool:
        with dt.enable_grad():
            (x * 5).sum().backward()
        return x.grad.tolist() == [5, 5]

    def forks(gradient):
        results.append(child_succeeds(works_in_the_child))

    def waits(gradient):
        inside.set()
        end.wait(20)

    y = x * 2
    handle = y.register_hook(forks)
    y.sum().backward(retain_graph=True)
    assert results == [True]
    handle.remove()
    x.grad = None
    y.register_hook(waits)
    thread = threading.Thread(target=lambda: y.sum().backward())
    thread.start()
    assert inside.wait(20)
    beside = child_succeeds(works_in_the_child)
    end.set()
    thread.join()
    assert beside and x.grad.tolist() == [2, 2]


def in_order(lib):
    """Who runs when: hooks of results, leaves and modules, of grad and of many."""
    log = []

    def note(name):
        return lambda *gradients: log.append(name)

    w = lib.ones(2, requires_grad=True)
    y = w * 2
    z = y * 3
    w.register_hook(note("w"))
    w.register_post_accumulate_grad_hook(lambda p: log.append(("after", p.grad.tolist())))
    w.register_hook(note("w again"))
    y.register_hook(lambda gradient: gradient * 2)
    y.retain_grad()
    y.register_hook(note("y"))
    z.register_hook(note("z"))
    z.sum().backward()
    log.append(y.grad.tolist())
    net = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.ReLU())
    net.register_full_backward_hook(note("net"))
    net.register_full_backward_pre_hook(note("before net"))
    net[0].register_full_backward_hook(note("linear"))
    net[1].register_full_backward_hook(note("relu"))
    net[0].weight.register_hook(note("weight"))
    net[0].bias.register_hook(note("bias"))
    net(lib.ones(1, 2, requires_grad=True)).sum().backward()
    h = lib.ones(2, requires_grad=True)
    h.register_hook(lambda gradient: gradient * 2)
    h.register_hook(lambda gradient: log.append(gradient.tolist()))
    h.register_hook(lambda gradient: gradient + 1)
    log.append(lib.autograd.grad((h * 1).sum(), h)[0].tolist())
    lib.autograd.graph.register_multi_grad_hook((h, w), lambda found: log.append([x.tolist() for x in found]))
    (h * w).sum().backward()
    log.append((h.grad.tolist(), w.grad.tolist()))
    return log


def test_hooks_run_in_pytorchs_order() -> None:
    torch = pytest.importorskip("torch")
    assert in_order(dt) == in_order(torch)
