"""The gradient of a weight that many products share is one product of their rows."""

from __future__ import annotations

import numpy as np
import pytest
from support import DEVICES, REAL

import devtensor as dt
from devtensor.nn import functional as F

TOLERANCE = {"float64": 1e-12, "float32": 1e-4, "bfloat16": 0.1}


def linear(h: dt.DeviceArray, weight: dt.DeviceArray) -> dt.DeviceArray:
    return F.linear(h, weight)


def matmul(h: dt.DeviceArray, weight: dt.DeviceArray) -> dt.DeviceArray:
    return h @ weight.t().contiguous()


def matrices(h: dt.DeviceArray, weight: dt.DeviceArray) -> dt.DeviceArray:
    """A product of three dimensions."""
    return (h.unsqueeze(0) @ weight.t()).squeeze(0)


def addmm(h: dt.DeviceArray, weight: dt.DeviceArray) -> dt.DeviceArray:
    return dt.addmm(dt.zeros_like(h), h, weight.t())


STEPS = {step.__name__: step for step in (linear, matmul, matrices, addmm)}


def through(step: str, x: dt.DeviceArray, weight: dt.DeviceArray, steps: int) -> dt.DeviceArray:
    for _ in range(steps):
        x = STEPS[step](x, weight).tanh()
    return x


def expected(x: np.ndarray, weight: np.ndarray, steps: int) -> np.ndarray:
    """The gradient of the sum, by the book."""
    states = [x]
    for _ in range(steps):
        states.append(np.tanh(states[-1] @ weight.T))
    found, below = np.zeros_like(weight), np.ones_like(x)
    for k in range(steps, 0, -1):
        inner = below * (1 - states[k] ** 2)
        found += inner.T @ states[k - 1]
        below = inner @ weight
    return found


# 512 rows make a product; a weight of 3 x 3 has room for more rows than one of 400 x 400 has beside its size.
@pytest.mark.parametrize("steps", [1, 2, 9])
@pytest.mark.parametrize(("rows", "size"), [(1, 3), (5, 3), (100, 5), (257, 3), (512, 3), (3, 400), (0, 3)])
@pytest.mark.parametrize("dtype", sorted(TOLERANCE))
@pytest.mark.parametrize("step", sorted(STEPS))
@pytest.mark.parametrize("device", DEVICES)
def test_gradient(device: str, step: str, dtype: str, rows: int, size: int, steps: int) -> None:
    rng = np.random.default_rng(size)
    x, w = rng.standard_normal((rows, size)), rng.standard_normal((size, size)) / size**0.5
    weight = dt.array(w, dtype=dtype, device=device, requires_grad=True)
    through(step, dt.array(x, dtype=dtype, device=device), weight, steps).sum().backward()
    assert weight.grad is not None
    wanted = expected(x, w, steps)
    found = weight.grad.to("cpu").to(dt.float64).numpy()
    assert np.abs(found - wanted).max() <= TOLERANCE[dtype] * max(1.0, np.abs(wanted).max())


@pytest.mark.parametrize("device", DEVICES)
def test_other_gradients_of_the_weight_are_added(device: str) -> None:
    """Some come before the rows are full, some after, some by another op, some to a view of it."""
    weight = dt.randn(6, 6, dtype=dt.float64, device=device, requires_grad=True)
    x = dt.randn(200, 6, dtype=dt.float64, device=device)

    def loss(w: dt.DeviceArray) -> dt.DeviceArray:
        first = through("linear", x, w, 2) + w.sum(0)
        return (through("addmm", first, w, 2) * through("matmul", x[:1], w, 1)).sum() + w[0].square().sum()

    assert dt.autograd.gradcheck(loss, (weight,))
    (alone,) = dt.autograd.grad(loss(weight), weight)
    (with_graph,) = dt.autograd.grad(loss(weight), weight, create_graph=True)
    assert dt.allclose(alone, with_graph, 1e-10)


@pytest.mark.parametrize("device", DEVICES)
def test_a_hook_sees_the_whole_gradient_once(device: str) -> None:
    weight = dt.randn(4, 4, device=device, requires_grad=True)
    seen: list[dt.DeviceArray] = []
    scaled = weight * 2
    scaled.register_hook(seen.append)
    through("linear", dt.ones(3, 4, device=device), scaled, 5).sum().backward()
    assert len(seen) == 1
    assert weight.grad is not None
    assert dt.allclose(seen[0] * 2, weight.grad)


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_written_later_is_not_seen(device: str) -> None:
    """A hook may write over a state that was read already: its rows are copies."""
    weight = dt.randn(4, 4, dtype=dt.float64, device=device, requires_grad=True)
    x = dt.randn(3, 4, dtype=dt.float64, device=device)

    def gradient(writes: bool) -> dt.DeviceArray:
        first = F.linear(x, weight)
        mine = first.detach().clone().requires_grad_()  # the input of the second product
        second = F.linear(mine, weight)
        if writes:
            mine.register_hook(lambda _: mine.detach().fill_(7))
        return dt.autograd.grad(second.sum() + first.sum(), (weight, mine))[0]

    assert dt.equal(gradient(writes=False), gradient(writes=True))


@pytest.mark.skipif(REAL, reason="counts what is sent to the device")
def test_launches() -> None:
    """A step of backward copies two blocks of rows, in place of a product and an addition; one product ends it."""

    def sent(steps: int, rows: int) -> int:
        weight = dt.ones(3, 3, device="cuda:0", requires_grad=True)
        result = x = dt.ones(rows, 3, device="cuda:0")
        for _ in range(steps):
            result = result + F.linear(x, weight)
        total = result.sum()
        before = dt._C.counters()["launches"]
        total.backward()
        return dt._C.counters()["launches"] - before

    assert sent(6, 2) - sent(5, 2) == 2
