"""Writes in place under gradients: to arrays, to views, to what shares memory with them; beside PyTorch."""

from __future__ import annotations

import copy
import gc
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
from support import DEVICES

import devtensor as dt

# The program has x, float64 [4, 3], with 1/7, 2/7, ... and a gradient wanted; it gives loss.
PROGRAMS = {
    "rows of zeros": "out = T.zeros(4, 3, **kw)\nfor i in range(4): out[i] += x[i] * x[i]\nloss = (out * out).sum()",
    "rows assigned, a view alive": (
        "out = T.zeros(4, 3, **kw)\nv = out[1]\nfor i in range(4): out[i] = x[i].exp()\nloss = (out * v).sum()"
    ),
    "a view times another array": "y = x * 2\nv = y[1:3]\nv.mul_(x[:2])\nloss = (y**2).sum() + v.sum()",
    "through a transpose": "y = x * 2\nt = y.T\nt.add_(x.T)\nt[0].exp_()\nloss = (y * t.T).sum()",
    "through reshapes": "y = x * 1\nr = y.view(2, 6)\nr[:, 0].zero_()\nr[0].pow_(3)\nloss = (y * x).sum()",
    "the view came first": (
        "base = T.zeros(4, 3, **kw)\nv = base[1:]\nv.copy_(x[1:] ** 2)\nbase.mul_(3)\nloss = (v * x[:3]).sum()"
    ),
    "two views in turns": "y = x * 1\na, b = y[:2], y[2:]\na += b * 2\nb += 1\na += 3\nloss = (y * y).sum()",
    "a view of a view": "y = x * 1\nv = y[1:][1]\nv *= 3\nw = y[2]\nw += v * 1\nloss = (y.sin()).sum()",
    "a scalar": "y = x * 1\ny[1, 2] = 5.0\nv = y[1]\ny[0, 0] = 2.0\nloss = (v * v).sum() + y.sum()",
    "arrays of indices": "y = x * 1\nv = y[0]\ny[[0, 2]] = x[:2] * 4\nloss = (y * y).sum() + v.sum()",
    "a detached array": "y = x * 2\nd = y.detach()\nd[0] = 5\nloss = y.sum() + d.sum()",
    "detached first": (
        "y = T.zeros(4, 3, **kw)\nd = y.detach()\ny[0] = x[0]\nloss = (y * x).sum()\nassert not d.requires_grad"
    ),
    "data": "y = T.zeros(4, 3, **kw)\nd = y.data\nv = y[0]\nv += x[0]\nloss = (v * d[0]).sum()",
    "expanded": "y = x[:1] * 1\ne = y.expand(4, 3)\ny.exp_()\nloss = (e * x).sum()",
    "a result kept by its op": "y = x * 1\nv = y[0]\nv.exp_()\nloss = (v * 2).sum() + y.sum()",
    "filled": "y = x * 1\nv = y[0]\nv.fill_(2)\nloss = (y * x).sum()",
    "a graph of the gradient": (
        "y = x * 1\n"
        "v = y[1]\n"
        "v *= x[0]\n"
        "(g,) = T.autograd.grad((y**3).sum(), x, create_graph=True)\n"
        "loss = (g * g).sum()"
    ),
    "float32 between": "y = x.float()\nv = y[1]\nv *= 2\nloss = (y.double() * x).sum()",
}


def gradient(lib: Any, program: str, device: str = "cpu") -> list[list[float]]:
    kw = {"dtype": lib.float64, "device": device}
    x = (lib.arange(1, 13, **kw) / 7).reshape(4, 3).clone().requires_grad_()
    names = {"T": lib, "kw": kw, "x": x}
    exec(textwrap.dedent(program), names)
    names["loss"].backward()
    return x.grad.tolist()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_pytorchs_gradient(name: str, device: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = gradient(dt, PROGRAMS[name], device), gradient(torch, PROGRAMS[name])
    for a, b in zip(ours, theirs, strict=True):
        assert a == pytest.approx(b, rel=1e-6 if "float32" in name else 1e-12)


@pytest.mark.parametrize("device", DEVICES)
def test_rows_written_in_a_loop(device: str) -> None:
    x = dt.arange(1, 5, dtype=dt.float64, device=device).requires_grad_()
    out = dt.zeros(4, dtype=dt.float64, device=device)
    first = out[:2]
    for i in range(4):
        out[i] += x[i] * x[i]
    first *= 10
    assert out.tolist() == [10, 40, 9, 16] and first.requires_grad and not first.is_leaf
    out.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [20, 40, 6, 8]


def test_pieces_of_a_chunk_may_be_written() -> None:
    x = dt.arange(1, 7, dtype=dt.float64).requires_grad_()
    y = x * 1
    a, b = y.chunk(2)
    a *= 2
    b += a * 3
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [8, 8, 8, 1, 1, 1]


def doubled(x: dt.DeviceArray) -> dt.DeviceArray:
    y = x * 1
    v = y[1:]
    v *= x[:-1]
    y[0] += v.sum()
    return y.sin()


def test_gradients_of_any_order() -> None:
    x = dt.rand(4, dtype=dt.float64, requires_grad=True)
    assert dt.autograd.gradcheck(doubled, (x,)) and dt.autograd.gradgradcheck(doubled, (x,))


def refusal(program: str) -> str:
    x = dt.ones(4, requires_grad=True)
    with pytest.raises((dt.GradientError, NotImplementedError)) as error:
        exec(textwrap.dedent(program), {"x": x, "dt": dt, "y": x * 2})
    return getattr(error.value, "code", "")


REFUSED = {
    "x[1:].mul_(2)": "grad-leaf-view-in-place",
    "x.view(2, 2)[0] += 1": "grad-leaf-view-in-place",
    "with dt.no_grad(): v = y[1:]\nv.mul_(x[1:])": "grad-view-in-place",
    "v = y.detach()[1:]\nv.mul_(x[1:])": "grad-view-in-place",
    "d = y.detach()\nv = d[1:]\nd.mul_(x)": "grad-shared",
    "d = y.detach()\nd.mul_(x)\nd[1:].mul_(x[1:])": "grad-shared",
    "v = y[1:]\nz = y * y\nv += 1\nz.sum().backward()": "grad-modified",
    "v = y[1:]\nz = v * v\ny += 1\nz.sum().backward()": "grad-modified",
    "v = y[1:]\nv.mul_(y[:-1])": "grad-shared",
}


@pytest.mark.parametrize("program", REFUSED)
def test_what_is_refused(program: str) -> None:
    assert refusal(program) == REFUSED[program]


def test_a_reshape_that_copied_is_no_view_of_the_leaf() -> None:
    x = dt.ones(2, 3, requires_grad=True)
    y = x.T.reshape(6)
    y *= 2
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[2] * 3] * 2


def test_a_copy_onto_itself_is_nothing() -> None:
    x = dt.ones(3, requires_grad=True)
    y = x * 1
    z = y * y
    y[1:] = y[1:]
    y.copy_(y)
    z.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 2, 2]


def test_hooks_and_retained_gradients_see_the_write() -> None:
    x = dt.ones(3, requires_grad=True)
    y = x * 1
    v = y[:2]
    y *= 3
    seen: list[Any] = []
    v.register_hook(lambda g: seen.append(g.tolist()))
    v.retain_grad()
    (v * 2).sum().backward()
    assert seen == [[2, 2]] and v.grad is not None and v.grad.tolist() == [2, 2]
    assert x.grad is not None and x.grad.tolist() == [6, 6, 0]


USES: dict[str, Callable[[dt.DeviceArray, dt.DeviceArray], dt.DeviceArray]] = {  # ones: of the shape of a
    "an operator": lambda a, ones: a + 1,
    "maximum": lambda a, ones: dt.maximum(a, a),
    "a function of arrays": lambda a, ones: dt.atan2(ones, a),
    "a number to a power": lambda a, ones: dt.pow(2, a),
    "limits": lambda a, ones: ones.clamp(max=a),
    "elements": lambda a, ones: a[dt.tensor([0, 1], device=a.device)],
    "elements by a list": lambda a, ones: a[[0, 1], 1:],
    "elements by a mask": lambda a, ones: a[ones > 0],
    "elements by a range": lambda a, ones: a[:, range(2)],
    "another dtype": lambda a, ones: a.to(dt.float64),
    "another layout": lambda a, ones: a.t().contiguous(),
    "a value to write": lambda a, ones: ones.copy_(a),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("device", DEVICES)
def test_a_hook_that_comes_after_the_use(use: str, device: str) -> None:
    """An operand that was written by way of a view takes its new node before the op does."""
    x, seen = dt.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True), []
    a = dt.zeros(3, 3, device=device)
    a.diagonal().copy_(x)
    y = USES[use](a, dt.ones(3, 3, device=device))
    a.register_hook(lambda gradient: seen.append(gradient.clone()))
    y.sum().backward()
    assert len(seen) == 1 and (seen[0].diagonal() == x.grad).all()


def test_what_was_detached_takes_a_copy_of_what_it_was() -> None:
    w = dt.ones(2, requires_grad=True)
    y = w * 2
    for source, wanted in ((w, [1, 1]), (y, [2, 2])):
        detached, w.grad = source.detach(), None
        detached.copy_(source)
        detached.sum().backward(retain_graph=True)
        assert w.grad.tolist() == wanted


INDICES: dict[str, Any] = {
    "all": slice(None),
    "...": ...,
    "nothing": (),
    "a part": slice(0, 2),
    "new": None,
    "list": [0, 2],
}


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("device", DEVICES)
def test_what_was_detached_takes_a_write_to_its_elements(index: str, device: str) -> None:
    """It is recorded as copy_ is, and the array that it came from has the values but not the gradient."""
    w = dt.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    value = dt.tensor([4.0, 5.0, 6.0], device=device, requires_grad=True)
    y = w * 2
    detached = y.detach()
    place = INDICES[index]
    detached[place] = value[place]
    wanted = dt.zeros(3, device=device)
    wanted[place] = value.detach()[place]
    (detached * detached).sum().backward(retain_graph=True)
    assert value.grad is not None and value.grad.tolist() == (2 * wanted).tolist()
    assert w.grad is None and y.tolist() == detached.tolist()
    detached[:] = y  # once more, what it is
    (detached * 3).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [6, 6, 6]


@pytest.mark.parametrize("where", ["shared", "alone"])
def test_a_part_of_windows_that_overlap_is_not_written_on_record(where: str, device: str) -> None:
    """Its place in a gradient of that shape is not to be found: the gradient read and cleared beyond its array."""
    v = dt.tensor([1.0, 2.0, 3.0], requires_grad=True, device=device)
    x = dt.arange(4.0, device=device)
    d = x.unfold(0, 2, 1).detach()
    if where == "alone":
        del x
    for index in (slice(None), 1), ([0, 1, 2], 1):
        with pytest.raises(NotImplementedError, match="setitem"):
            d[index] = v
    nested = dt.arange(8.0, device=device).as_strided((3, 2), (2, 3)).detach()
    with pytest.raises(NotImplementedError, match="setitem"):
        nested[2] = v[:2]


@pytest.mark.parametrize("index", [slice(None), ..., 0, [0]])
def test_an_error_of_an_assignment_names_it(index: Any) -> None:
    w = dt.ones(3, requires_grad=True)
    for value in (0.0, dt.tensor(2.0)):
        with pytest.raises(RuntimeError, match=r"\(setitem: input \(") as caught:
            w[index] = value
        assert caught.value.op == "setitem"


@pytest.mark.parametrize("index", [slice(None), slice(0, None), ..., (..., slice(None)), (slice(None), ...)])
def test_all_that_is_overwritten_is_in_no_gradient(index: Any) -> None:
    """x[:] = y is x.copy_(y): of the old content not even a zero times infinity is left."""
    x = dt.tensor([0.0, 2.0], requires_grad=True)
    y = x * 1
    y[index] = x.detach()
    (first,) = dt.autograd.grad((x * y.reciprocal()).sum(), x, create_graph=True)
    (second,) = dt.autograd.grad(first.sum(), x)
    assert first.tolist() == [float("inf"), 0.5] and second.tolist() == [0, 0]


def test_detach_in_place_ends_it() -> None:
    x = dt.ones(3, requires_grad=True)
    out = dt.zeros(3)
    v = out[:2]
    v += x[:2]
    out.detach_()
    assert not out.requires_grad and out.is_leaf and v.requires_grad
    v.mul_(2)
    assert out.requires_grad


def test_a_write_to_nothing_that_is_expanded(device: str) -> None:
    """Its strides are 0, which once was divided by."""
    x = dt.zeros(0, 3, requires_grad=True, device=device)
    y = (x * 1).expand(2, -1, 3)
    y[dt.tensor([0, 0], device=device)] = 0.5
    y.sum().backward()
    assert x.grad is not None and x.grad.shape == (0, 3)


def held() -> int:
    gc.collect()
    return dt._C._test.live_blocks()


def test_thousands_of_writes_leave_nothing() -> None:
    w = dt.rand(4, requires_grad=True)

    def step() -> None:
        w.grad = None
        y = dt.zeros(3, 4)
        v = y[1]
        y[0] += w * w
        v.copy_(w)
        v.exp_()  # keeps its own result
        copy.copy(y)
        y.sum().backward()
        (w * 2).detach_()

    for _ in range(50):
        step()
    before = held()
    for _ in range(2_000):
        step()
    assert held() <= before


def test_a_loop_of_writes_is_linear_in_memory() -> None:
    x = dt.rand(200, 8, requires_grad=True)
    out = dt.zeros(200, 8)
    keep = out[0]
    for i in range(200):
        out[i] = x[i] * 2
    out.sum().backward()
    assert x.grad is not None and float(x.grad.sum()) == 3200 and keep.requires_grad


def test_a_gradient_of_a_view_that_was_written_elsewhere() -> None:
    x = dt.ones(4, requires_grad=True)
    y = x * 2
    v = y[1:]
    y[2] = 0.0
    total = (v * 3).sum() + (v @ v)
    found = dt.autograd.grad(total, [v, x])
    assert found[0].tolist() == [7, 3, 7] and found[1].tolist() == [0, 14, 0, 14]
    assert v.grad_fn is not None and v.grad_fn is not y.grad_fn


def test_what_is_written_to_a_detached_array_stays_there() -> None:
    x, w = dt.ones(4, requires_grad=True), dt.full((4,), 3.0, requires_grad=True)
    y = x * 2
    apart = y.detach()
    apart *= w
    assert apart.requires_grad and apart.grad_fn is not None and apart.grad_fn.origin is not None
    assert apart[1:].requires_grad
    (y * 1).sum().backward()
    assert w.grad is None and x.grad is not None and x.grad.tolist() == [2, 2, 2, 2]


def test_an_array_detached_without_gradients_stays_detached() -> None:
    out = dt.zeros(3)
    with dt.no_grad():
        apart = out.detach()
    out[0] = dt.ones(1, requires_grad=True)[0]
    assert out.requires_grad and not apart.requires_grad


class Square(dt.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: dt.DeviceArray) -> dt.DeviceArray:
        ctx.save_for_backward(a)
        return a * a

    @staticmethod
    def backward(ctx: Any, gradient: dt.DeviceArray) -> dt.DeviceArray:
        (a,) = ctx.saved_tensors
        return gradient * 2 * a


def test_a_function_sees_the_write() -> None:
    x = dt.ones(3, requires_grad=True)
    out = dt.zeros(3)
    v = out[:2]
    out[0] = x[0] * 3
    Square.apply(v).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [18, 0, 0]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("key", ["mask", "indices", "number", "slice"])
@pytest.mark.parametrize("device", DEVICES)
def test_where_a_number_was_written_no_infinite_gradient_returns(device: str, key: Any, create_graph: bool) -> None:
    x = dt.tensor([-0.5, 2.0], dtype=dt.float64, device=device, requires_grad=True)
    keys = {"mask": x > 0, "indices": dt.tensor([1], device=device), "number": 1, "slice": slice(1, None)}
    y = x * 1
    y[keys[key]] = 0.0
    (gradient,) = dt.autograd.grad(y.reciprocal().square().sum(), [x], create_graph=create_graph)
    assert gradient.tolist() == [16, 0]


@pytest.mark.parametrize("device", DEVICES)
def test_views_of_an_array_that_was_detached_after_a_write(device: str) -> None:
    x = dt.tensor([2.0, 1.0], device=device, requires_grad=True)
    y = x.clone()
    y[:1].mul_(x[1:])
    y.detach_()
    view = y[None]
    assert not view.requires_grad and not y.reshape(2, 1)[0].requires_grad


@pytest.mark.parametrize("device", DEVICES)
def test_what_was_written_before_detach_gets_no_gradient_from_later_writes(device: str) -> None:
    x = dt.tensor([2.0, 1.0, 3.0, -1.0], device=device, requires_grad=True)
    y = x.clone()
    y[2:] *= 3
    y.detach_()
    y[:2].mul_(x[2:])
    assert dt.autograd.grad(y.square().sum(), x)[0].tolist() == [0, 0, 24, -2]
