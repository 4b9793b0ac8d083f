"""The gradient of every op: beside PyTorch's, and beside differences of the op itself."""

from __future__ import annotations

import functools
import importlib.util
import random

import numpy as np
import pytest
from drawn_layouts import Laid, draw
from gradient_rows import NO_DIFFERENCES, NO_SECOND, ROWS
from support import DEVICES
from test_layouts import keeps_nothing
from torch_version import needs_torch

import devtensor as dt

SHAPES = {
    "x": (3, 4),
    "p": (3, 4),
    "w": (3, 4),
    "y": (4,),
    "z": (3, 1),
    "v": (5,),
    "v3": (3,),
    "b3": (3, 2, 4),
    "im": (2, 4, 7, 6),
    "ke": (4, 4, 3, 3),
    "kg": (6, 2, 3, 3),
    "kd": (4, 1, 3, 3),
    "k1": (5, 4, 1, 1),
    "ve": (4,),
    "v2": (2,),
    "vo": (1, 2, 3, 4, 3),
    "k3": (2, 2, 2, 2, 2),
    "si": (2, 2, 7),
    "v4": (4,),
    "v4b": (4,),
    "k": (3, 4),
}
SHAPES["b3"] = (2, 3, 4)


@functools.cache
def numbers():
    random = np.random.default_rng(3)
    values = {name: random.normal(size=shape) for name, shape in SHAPES.items()}
    for name in ("p", "w", "v4b"):
        values[name] = np.abs(values[name]) * 0.4 + 0.1
    values["k"] = np.ones((3, 4))
    values["k"][1, 2] = 0
    return values


def put(array, index, value):
    array[index] = value
    return array


def names_for(lib, functional, make, device=None, dtype=None):
    values = {name: make(value) for name, value in numbers().items()}
    more = {} if device is None else {"device": device}
    constants = {
        "i": lib.tensor([2, 0, 2], **more),
        "g": lib.tensor([[0, 3], [1, 1], [2, 0]], **more),
        "m": lib.tensor([[True, False, True, False], [False] * 4, [True] * 4], **more),
    }
    return values, {"lib": lib, "F": functional, "put": put, **values, **constants}


def ours(device, dtype=dt.float64):
    return names_for(
        dt, dt.nn.functional, lambda v: dt.tensor(v, dtype=dtype, device=device, requires_grad=True), device
    )


def theirs(torch, dtype=None):
    dtype = torch.float64 if dtype is None else dtype
    return names_for(torch, torch.nn.functional, lambda v: torch.tensor(v, dtype=dtype, requires_grad=True))


def gradients(values, names, row):
    """The result, and the gradient of a sum of it with uneven weights, by operand."""
    result = eval(row, names)
    lib = names["lib"]
    weights = lib.arange(result.numel(), dtype=result.dtype, device=result.device).cos().reshape(result.shape)
    (result * weights).sum().backward()
    found = {name: value.grad for name, value in values.items() if value.grad is not None}
    return result, found


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("row", ROWS if importlib.util.find_spec("torch") else ROWS[:1])  # a thousand to be skipped
def test_a_gradient_is_pytorchs(row, device):
    torch = pytest.importorskip("torch")
    if "aminmax" in row or "nextafter" in row:
        needs_torch("2.13")
    result, found = gradients(*ours(device), row)
    expected, wanted = gradients(*theirs(torch), row)
    np.testing.assert_allclose(result.detach().cpu().numpy(), expected.detach().numpy(), rtol=1e-6, atol=1e-9)
    assert found.keys() == wanted.keys()
    for name, gradient in found.items():
        assert gradient.device == dt.device(device)
        tolerance = 1e-5 if "float" in row or "hardsigmoid" in row else 1e-9  # PyTorch has 1 / 6 in float32
        np.testing.assert_allclose(
            gradient.cpu().numpy(), wanted[name].numpy(), rtol=tolerance, atol=tolerance, err_msg=name
        )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("row", ROWS)
def test_each_operand_alone_has_its_gradient(row, device):
    """Where one operand alone wants a gradient it is the one that it has beside the others."""
    values, names = ours(device)
    _, together = gradients(values, names, row)
    for name in together if len(together) > 1 else ():
        alone = {**names, **{other: value.detach() for other, value in values.items()}}
        alone[name] = one = values[name].detach().clone().requires_grad_()
        gradients({}, alone, row)
        dt.testing.assert_close(one.grad, together[name], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("row", [row for row in ROWS if "view(" not in row and "as_strided" not in row])
def test_a_gradient_of_drawn_layouts_leaves_nothing(row, device):
    """Operands and the result's gradient lie anyhow in memory: the numbers stay, and no block is left behind."""
    rng = random.Random(row)

    def laid(array):
        bits = array.detach().cpu().numpy()
        return Laid(bits, str(array.dtype).partition(".")[2], device, draw(bits.shape, rng)).array

    plain, names = ours(device)
    seed = dt.randn_like(eval(row, names).detach())
    eval(row, names).backward(seed)
    values = {name: laid(value).requires_grad_() for name, value in plain.items()}
    names, seed = {**names, **values}, laid(seed)

    def call():
        for value in values.values():
            value.grad = None
        eval(row, names).backward(seed)

    keeps_nothing(call, device)
    for name, value in values.items():
        assert (value.grad is None) == (plain[name].grad is None)
        if value.grad is not None:
            dt.testing.assert_close(value.grad, plain[name].grad, rtol=1e-9, atol=1e-12)


@functools.cache
def uses(row):
    """The operands that a row has a gradient for, in the order of SHAPES."""
    found = gradients(*ours("cpu"), row)[1]
    return [name for name in SHAPES if name in found]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("row", [row for row in ROWS if row not in NO_DIFFERENCES])
def test_a_gradient_is_the_limit_of_differences(row, device):
    values, names = ours(device)
    used = uses(row)

    def function(*arrays):
        return eval(row, {**names, **dict(zip(used, arrays, strict=True))})

    assert dt.autograd.gradcheck(function, tuple(values[name] for name in used))


@pytest.mark.parametrize("row", [row for row in ROWS if row not in NO_DIFFERENCES | NO_SECOND])
def test_a_gradient_has_a_gradient(row):
    values, names = ours("cpu")
    used = uses(row)

    def function(*arrays):
        return eval(row, {**names, **dict(zip(used, arrays, strict=True))})

    assert dt.autograd.gradgradcheck(function, tuple(values[name] for name in used), atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "row", ["x * y", "x @ x.t()", "F.softmax(x, 1)", "x.mean()", "F.conv2d(im, ke, ve, padding=1)"]
)
def test_a_gradient_has_the_dtype_of_its_array(row, dtype, device):
    torch = pytest.importorskip("torch")
    _, found = gradients(*ours(device, getattr(dt, dtype)), row)
    _, wanted = gradients(*theirs(torch, getattr(torch, dtype)), row)
    tolerance = {"float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}[dtype]
    for name, gradient in found.items():
        assert str(gradient.dtype) == f"devtensor.{dtype}"
        np.testing.assert_allclose(
            gradient.float().cpu().numpy(), wanted[name].float().numpy(), rtol=tolerance, atol=tolerance * 4
        )
