"""Graphs and their ends: leaves, modes, hooks, what is kept and freed, errors, threads, transfers."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import threading

import numpy as np
import pytest
from support import DEVICES, no_transfers

import devtensor as dt


def leaf(*shape: int, device: str = "cpu") -> dt.DeviceArray:
    return dt.ones(*shape, device=device, requires_grad=True)


# ---------------------------------------------------------------- leaves and modes


def test_a_wanted_result_keeps_what_its_own_gradient_needs() -> None:
    x = leaf(2)
    y = x.sin()
    (found,) = dt.autograd.grad(y.exp().sum(), y)
    assert found.tolist() == y.exp().tolist()
    y.sum().backward()  # the node of sin has not run yet
    assert x.grad is not None and x.grad.tolist() == x.cos().tolist()


def test_flags() -> None:
    x = dt.ones(2)
    assert x.is_leaf and not x.requires_grad and x.grad is None and x.grad_fn is None
    assert x.requires_grad_() is x and x.requires_grad and x.is_leaf
    y = x * 2
    assert y.requires_grad and not y.is_leaf and y.grad_fn.name() == "MulBackward0"
    assert y.grad_fn.next_functions[0][0].name() == "AccumulateGrad"
    assert "test_autograd.py" in repr(y.grad_fn) and y.grad_fn == y.grad_fn
    assert not y.detach().requires_grad and not y.data.requires_grad and not (y > 1).requires_grad
    assert not y.long().requires_grad and not y.argmax().requires_grad
    assert y.requires_grad_() is y and not y.is_leaf
    for wants in (True, False):
        with pytest.raises(dt.GradientError, match="you can only change requires_grad flags of leaf variables"):
            y.requires_grad = wants
    x.requires_grad = False
    assert not (x * 2).requires_grad


CREATORS = {
    "ones": lambda **o: dt.ones(2, **o),
    "zeros": lambda **o: dt.zeros(2, **o),
    "empty": lambda **o: dt.empty(2, **o),
    "full": lambda **o: dt.full((2,), 1.0, **o),
    "rand": lambda **o: dt.rand(2, **o),
    "randn": lambda **o: dt.randn(2, **o),
    "eye": lambda **o: dt.eye(2, **o),
    "linspace": lambda **o: dt.linspace(0, 1, 3, **o),
    "arange": lambda **o: dt.arange(3.0, **o),
    "array": lambda **o: dt.array([1.0], **o),
    "tensor": lambda **o: dt.tensor([1.0], **o),
    "ones_like": lambda **o: dt.ones_like(dt.zeros(2), **o),
    "randn_like": lambda **o: dt.randn_like(dt.zeros(2), **o),
    "full_like": lambda **o: dt.full_like(dt.zeros(2), 1.0, **o),
    "new_full": lambda **o: dt.zeros(1).new_full((2,), 1.0, **o),
    "new_zeros": lambda **o: dt.zeros(1).new_zeros(2, **o),
}


@pytest.mark.parametrize("name", CREATORS)
def test_creators_make_leaves(name: str) -> None:
    x = CREATORS[name](requires_grad=True)
    assert x.requires_grad and x.is_leaf and not CREATORS[name]().requires_grad


def test_modes() -> None:
    x = leaf(2)
    with dt.no_grad():
        assert not dt.is_grad_enabled() and not (x * 2).requires_grad
        with dt.enable_grad():
            assert (x * 2).requires_grad
        with dt.set_grad_enabled(True):
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
    assert dt.is_grad_enabled()

    @dt.no_grad()
    def plain():
        return x * 2

    @dt.inference_mode
    def bare():
        return x * 2

    @dt.no_grad()
    def steps():
        for _ in range(2):
            yield (x * 2).requires_grad, dt.is_grad_enabled()

    @dt.no_grad()
    async def later():
        return x * 2

    assert not plain().requires_grad and not bare().requires_grad
    assert [(a, b, dt.is_grad_enabled()) for a, b in steps()] == [(False, False, True)] * 2
    assert not asyncio.run(later()).requires_grad and dt.is_grad_enabled()
    with dt.inference_mode(False):
        assert (x * 2).requires_grad
    with pytest.raises(ValueError, match="out"), dt.no_grad():
        raise ValueError("out")
    assert dt.is_grad_enabled()


def test_a_mode_belongs_to_its_thread() -> None:
    found = []
    with dt.no_grad():
        thread = threading.Thread(target=lambda: found.append(dt.is_grad_enabled()))
        thread.start()
        thread.join()
    assert found == [True]


# ---------------------------------------------------------------- the way back


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_add_up(device: str) -> None:
    x = leaf(3, device=device)
    for _ in range(3):
        (x * x).sum().backward()
    assert x.grad.tolist() == [6, 6, 6] and x.grad is x.grad and str(x.grad.device) == device
    x.grad = None
    (x * 2).backward(dt.tensor([1.0, 2.0, 3.0], device=device))
    assert x.grad.tolist() == [2, 4, 6]


def test_a_graph_is_kept_on_demand() -> None:
    x = leaf(2)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4, 4]
    with pytest.raises(dt.GradientError, match="a second time") as failed:
        y.backward()
    assert failed.value.code == "grad-freed"
    z = x + 1  # keeps nothing
    z.sum().backward()
    z.sum().backward()


def test_an_array_times_itself_in_place() -> None:
    """PyTorch refuses the way back; what was there is kept here."""
    x = dt.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    y.mul_(y)
    y.sum().backward()
    assert x.grad.tolist() == [2, 4, 6]


@pytest.mark.parametrize("device", DEVICES[1:])
def test_what_no_wanted_gradient_needs_is_not_computed(device: str) -> None:
    x, w = leaf(4, 4, device=device), leaf(4, 4, device=device)
    y = x @ w

    def products(*wanted: dt.DeviceArray) -> int:
        before = dt._C.counters()["launches"]
        dt.autograd.grad(y, wanted, dt.ones_like(y), retain_graph=True)
        return dt._C.counters()["launches"] - before

    assert products(x) < products(x, w) and products(w) < products(x, w)


def test_only_what_is_wanted() -> None:
    x, y = leaf(2), leaf(2)
    z = x * y
    z.sum().backward(inputs=[x])
    assert x.grad.tolist() == [1, 1] and y.grad is None
    product = x * y
    inner, outer = dt.autograd.grad((product * 3).sum(), [product, y])
    assert inner.tolist() == [3, 3] and outer.tolist() == [3, 3] and y.grad is None
    with pytest.raises(dt.GradientError, match="not have been used") as failed:
        dt.autograd.grad(x.sum(), [x, y])
    assert failed.value.code == "grad-unused"
    assert dt.autograd.grad(x.sum(), [x, y], allow_unused=True, only_inputs=True)[1] is None
    with pytest.raises(NotImplementedError, match="only_inputs=False"):
        dt.autograd.grad(x.sum(), [x], only_inputs=False)
    assert dt.autograd.grad(x.sum(), [x, y], materialize_grads=True)[1].tolist() == [0, 0]


def test_inputs_may_be_results() -> None:
    x = leaf(2)
    y = x * 3
    (y * y).sum().backward(inputs=[y, x], retain_graph=True)
    assert y.grad.tolist() == [6, 6] and x.grad.tolist() == [18, 18]
    (y * 2).sum().backward()
    assert y.grad.tolist() == [8, 8]  # as after retain_grad
    first, second = dt.autograd.grad((x * 5).sum(), [x, x])
    assert first.tolist() == second.tolist() == [5, 5]


def test_what_is_asked_for_is_not_used_up() -> None:
    x = leaf(2)
    y = x.exp()
    dt.autograd.grad(y.sum(), y)
    y.sum().backward()
    assert x.grad.equal(y.detach())


def test_a_leaf_that_wants_none_any_more() -> None:
    x, seen = leaf(2), []
    y = x * 3
    y.retain_grad()
    x.register_hook(lambda gradient: seen.append(gradient.tolist()))
    z = y.sum()
    x.requires_grad_(False)
    z.backward()
    assert x.grad is None and y.grad.tolist() == [1, 1] and seen == [[3, 3]]


def test_retained_gradients_add_up() -> None:
    x = leaf(2)
    y = x * 2
    y.retain_grad()
    assert not x.retains_grad and y.retains_grad and not (y * 2).retains_grad and not dt.ones(1).retains_grad
    for _ in range(3):
        y.sum().backward(retain_graph=True)
    assert y.grad.tolist() == [3, 3]


def test_gradients_are_on_no_record() -> None:
    x = leaf(2)
    y = x * 2
    y.retain_grad()

    def recorded(gradient):
        with dt.enable_grad():
            return x * 3

    x.register_hook(recorded)
    y.backward(x * 1)
    assert not y.grad.requires_grad and not x.grad.requires_grad and x.grad.tolist() == [3, 3]


def test_an_array_is_not_its_own_gradient() -> None:
    x = leaf(2)
    with pytest.raises(RuntimeError, match="own grad"):
        x.grad = x
    x.grad = x.detach()
    assert x.grad.tolist() == [1, 1]


def test_fill_is_recorded() -> None:
    x = leaf(2)
    y = x * 2
    y.fill_(3.0)
    assert y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [0, 0]


def test_a_write_to_the_result_of_relu6() -> None:
    x = dt.tensor([-1.0, 1.0, 7.0], requires_grad=True)
    y = dt.nn.functional.relu6(x)
    y.mul_(2)
    y.sum().backward()
    assert x.grad.tolist() == [0, 2, 0]


@pytest.mark.parametrize("op", [dt.cat, dt.stack])
def test_more_arrays_than_fit_16_bits(op) -> None:
    x = leaf(1)
    op([x] * 70_000).sum().backward()
    assert x.grad.item() == 70_000


def test_cat_with_nothing() -> None:
    x, nothing = leaf(2, 3), leaf(0)
    dt.cat([nothing, x, nothing], 1).sum().backward()
    assert x.grad.shape == (2, 3) and nothing.grad.shape == (0,)


def test_copies_of_leaves() -> None:
    x = leaf(2)
    x.grad = dt.full((2,), 5.0)
    shallow, deep, pickled = copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))
    assert (
        shallow.requires_grad
        and deep.requires_grad
        and pickled.requires_grad
        and pickle.loads(pickle.dumps(x, 5)).requires_grad
    )
    assert deep.grad.tolist() == [5, 5] and shallow.grad is None and pickled.grad is None
    deep.grad.zero_()
    assert x.grad.tolist() == [5, 5]
    with pytest.raises(dt.GradientError, match="created explicitly") as failed:
        copy.deepcopy(x * 2)
    assert failed.value.code == "grad-deepcopy"
    assert not copy.deepcopy((x * 2).detach()).requires_grad


def test_gradients_of_gradients() -> None:
    x = dt.tensor(3.0, requires_grad=True)
    (first,) = dt.autograd.grad(x**4, x, create_graph=True)
    (second,) = dt.autograd.grad(first, x, create_graph=True)
    second.backward()
    assert (first.item(), second.item(), x.grad.item()) == (108, 108, 72)


def test_a_long_chain_needs_no_stack() -> None:
    """A million ops, run and given back by a thread that has 64 KiB."""
    x = leaf(1)

    def work() -> None:
        y = x
        for _ in range(1_000_000):
            y = y + 1
        y.backward()

    before = threading.stack_size(64 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert x.grad is not None and x.grad.tolist() == [1]


def test_rows_are_added_in_one_buffer(device: str) -> None:
    x = dt.zeros(50, 3, device=device, requires_grad=True)
    total = sum((row * i).sum() for i, row in enumerate(x))
    total.backward()
    assert x.grad[:, 0].tolist() == list(range(50))


# ---------------------------------------------------------------- devices


@pytest.mark.parametrize("device", DEVICES[1:])
def test_a_transfer_goes_back(device: str) -> None:
    x = leaf(3)
    y = (x.to(device) * 2).sum()
    with dt.record_transfers() as log:
        y.backward()
    assert [(str(t.source), str(t.target)) for t in log] == [(device, "cpu")]
    assert x.grad.tolist() == [2, 2, 2] and str(x.grad.device) == "cpu"
    w = leaf(3, device=device)
    with no_transfers():
        (w * w).sum().backward()


@pytest.mark.parametrize("device", DEVICES)
def test_a_module_moves_with_its_gradients(device: str) -> None:
    net = dt.nn.Linear(3, 2)
    weight = net.weight
    net(dt.ones(1, 3)).sum().backward()
    assert net.to(device) is net and net.weight is weight and weight.requires_grad and weight.is_leaf
    assert str(weight.device) == device and str(weight.grad.device) == device
    net.double()
    assert net.weight is weight and weight.grad.dtype == weight.dtype == dt.float64
    net(dt.ones(1, 3, device=device, dtype=dt.float64)).sum().backward()
    assert weight.grad.tolist() == [[2, 2, 2]] * 2


def test_a_move_between_forward_and_backward_is_told() -> None:
    net = dt.nn.Linear(3, 2)
    loss = net(dt.ones(1, 3)).sum()
    net.to(DEVICES[-1])
    with pytest.raises(dt.DeviceMismatchError, match="moved between forward and backward"):
        loss.backward()


def test_data_waits_for_ops_of_other_threads() -> None:
    net, x = dt.nn.Linear(300, 300), dt.rand(500, 300)
    stop, failures = threading.Event(), []

    def use():
        while not stop.is_set():
            try:
                with dt.no_grad():
                    net(x.to(net.weight.dtype))
            except dt.DTypeMismatchError:
                pass  # weight and bias are moved one after the other
            except BaseException as error:
                failures.append(error)
                return

    thread = threading.Thread(target=use)
    thread.start()
    for _ in range(30):
        net.double()
        net.float()
    stop.set()
    thread.join()
    assert not failures


# ---------------------------------------------------------------- memory and threads


def blocks() -> int:
    gc.collect()
    return dt._C._test.live_blocks()


@pytest.mark.parametrize("ending", ["backward", "forgotten", "retained"])
def test_nothing_is_left_of_a_graph(ending: str) -> None:
    x = leaf(100, 10)
    x.grad = dt.zeros(100, 10)

    def step() -> None:
        y = (x.exp() @ x.t()).softmax(1)[:, 3:].sum()
        if ending != "forgotten":
            y.backward(retain_graph=ending == "retained")

    step()
    before = blocks()
    for _ in range(20):
        step()
    assert blocks() <= before + 2


def test_ten_thousand_steps_leave_nothing() -> None:
    w = dt.rand(8, 8, requires_grad=True)
    w.register_hook(lambda gradient: gradient * 1)

    def step(k: int) -> None:
        w.grad = None
        y = (w @ w).tanh()
        y.retain_grad()
        if k % 7 == 0:
            y.register_hook(lambda gradient: 1 / 0)
        try:
            (y[1:] * 2).sum().backward()
        except ZeroDivisionError:
            pass

    for k in range(100):
        step(k)
    before = blocks()
    for k in range(10_000):
        step(k)
    assert blocks() <= before


def test_each_thread_its_graph() -> None:
    shared = leaf(50, 50)
    errors = []

    def work(k: int) -> None:
        try:
            for _ in range(20):
                own = dt.full((50, 50), float(k), requires_grad=True)
                (own * shared).sum().backward()
                assert own.grad.tolist()[0][0] == 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    np.testing.assert_array_equal(shared.grad.numpy(), np.full((50, 50), 20.0 * (0 + 1 + 2 + 3)))


def test_two_threads_on_two_streams_add_to_one_leaf() -> None:
    """At the same moments: one backward runs at a time, and each waits for what the other's stream has to do."""
    device, errors = DEVICES[1], []
    shared = dt.zeros(4, device=device, requires_grad=True)
    start = threading.Barrier(2)

    def work(k: int) -> None:
        try:
            with dt.cuda.stream(dt.cuda.Stream(device)):
                for i in range(100):
                    own = dt.full((4,), float(k), device=device, requires_grad=True)
                    start.wait(60)
                    (own * shared + shared * i).sum().backward()
                    assert own.grad.tolist() == [0.0] * 4
        except BaseException as error:
            errors.append(error)
            start.abort()

    threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert shared.grad is not None and shared.grad.tolist() == [100 * (1 + 2) + 2 * sum(range(100))] * 4


def test_a_failing_allocation_leaves_leaves_whole() -> None:
    """Whatever allocation fails: MemoryError, and a leaf has the whole gradient or none."""
    w = dt.rand(8, 8, requires_grad=True)

    def step() -> None:
        ((w @ w).tanh() * w).sum().backward()

    step()
    whole = w.grad.clone()
    n, failed = 0, 0
    while True:
        w.grad = None
        dt._C._test.fail_allocations(n, False)
        try:
            step()
        except MemoryError:
            failed += 1
        else:
            break
        finally:
            dt._C._test.fail_allocations(-1, False)
        assert w.grad is None or w.grad.equal(whole)
        n += 1
    assert failed > 20 and w.grad.equal(whole)
