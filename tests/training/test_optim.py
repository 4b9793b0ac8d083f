"""Optimizers: PyTorch's numbers to the rounding of each step, the same bits on every device, and any layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from optimizer_cases import CASES, from_torch, gradients, in_devtensor, in_pytorch, numbers, parameters, run, to_torch
from support import CUDA_DEVICES, DEVICES, bits_of, calls, name_of

import devtensor as dt


def same(got: Any, want: Any, size: Any) -> None:
    """Within three roundings of numbers of that size: PyTorch fuses some products with sums."""
    assert got.shape == tuple(want.shape) and name_of(got.dtype) == name_of(want.dtype)
    eps = {"float32": 2.0**-23, "float64": 2.0**-52}[name_of(got.dtype)]
    assert (np.abs(numbers(got) - numbers(want)) <= 3 * eps * size).all()


@pytest.mark.parametrize("device", DEVICES[:2])
@pytest.mark.parametrize("name", CASES)
def test_each_step_is_pytorchs(name: str, device: str) -> None:
    """100 steps, each from PyTorch's parameters and state."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    params = parameters("float32", device)
    optimizer = in_devtensor(name, params)
    there, theirs = in_pytorch(torch, name, params)
    for step in range(100):
        gradients(params, step)
        held = [{key: np.abs(numbers(x)) for key, x in optimizer.state[p].items()} for p in params]
        before = [np.abs(numbers(p)) + np.abs(numbers(p.grad)) for p in params]
        for p, q in zip(params, theirs, strict=True):
            q.grad = to_torch(torch, p.grad)
        optimizer.step()
        there.step()
        for p, q, size, states in zip(params, theirs, before, held, strict=True):
            same(p, q, size + np.abs(numbers(q)))
            assert [*optimizer.state[p]] == [*there.state[q]]
            for key, value in there.state[q].items():
                same(optimizer.state[p][key], value, states.get(key, 0) + np.abs(numbers(value)) + size + size**2)
                optimizer.state[p][key].copy_(from_torch(value))
            with dt.no_grad():
                p.copy_(from_torch(q))


@pytest.mark.parametrize("name", CASES)
def test_a_hundred_steps_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    params = parameters("float64", "cpu")
    optimizer = in_devtensor(name, params)
    there, theirs = in_pytorch(torch, name, params)
    for step in range(100):
        gradients(params, step)
        for p, q in zip(params, theirs, strict=True):
            q.grad = to_torch(torch, p.grad)
        optimizer.step()
        there.step()
    for p, q in zip(params, theirs, strict=True):
        np.testing.assert_allclose(numbers(p), numbers(q), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_all_devices_have_the_same_bits(name: str, dtype: str) -> None:
    seen = []
    for device in DEVICES:
        params = parameters(dtype, device)
        optimizer = run(name, params, range(5))
        states = [value for p in params for value in optimizer.state[p].values()]
        seen.append([bits_of(x).tolist() for x in (*params, *states)])
    assert all(bits == seen[0] for bits in seen)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_bits_do_not_depend_on_threads(threads: int) -> None:
    def bits() -> list[Any]:
        params = [dt.nn.Parameter(p) for p in (dt.arange(200_001.0), dt.arange(3.0), dt.arange(70_000.0))]
        run("AdamW, amsgrad, maximize", params, range(2))
        return [bits_of(p).tobytes() for p in params]

    before = dt.get_num_threads()
    try:
        dt.set_num_threads(threads)
        cut = bits()
        dt.set_num_threads(1)
        assert cut == bits()
    finally:
        dt.set_num_threads(before)


@pytest.mark.parametrize("states", ["as the parameter", "float32"])
@pytest.mark.parametrize("device", DEVICES[:2])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", CASES)
def test_half_parameters_are_computed_in_float32(name: str, dtype: str, device: str, states: str) -> None:
    """A step from the same numbers in float32, rounded once."""
    half = parameters(dtype, device)
    optimizer = run(name, half, range(2))
    full = [dt.nn.Parameter(p.detach().float()) for p in half]
    wide = in_devtensor(name, full)
    wide.load_state_dict(optimizer.state_dict())
    if states == "float32":
        for state in optimizer.state.values():
            state.update({key: value.float() for key, value in state.items()})
    gradients(half, 7)
    for p, q in zip(half, full, strict=True):
        q.grad = p.grad.float()
    optimizer.step()
    wide.step()
    for p, q in zip(half, full, strict=True):
        assert bits_of(p).tolist() == bits_of(q.detach().to(p.dtype)).tolist()
        for key, value in optimizer.state[p].items():
            assert bits_of(value).tolist() == bits_of(wide.state[q][key].to(value.dtype)).tolist()


# ---------------------------------------------------------------- how the arrays lie


@pytest.mark.parametrize("device", DEVICES[:2])
@pytest.mark.parametrize("name", ["SGD, nesterov", "Adam, amsgrad"])
def test_layouts(name: str, device: str) -> None:
    """Parameters and gradients of any strides: the same bits as contiguous ones, in their own memory."""
    values = dt.arange(48.0, device=device).reshape(2, 4, 6) / 10
    layouts = {
        "contiguous": lambda x: x.contiguous(),
        "transposed": lambda x: x.transpose(0, 2).contiguous().transpose(0, 2),
        "every second": lambda x: dt.stack([x, x], -1)[..., 0],
    }
    seen: dict[bool, list[Any]] = {}
    for lay in layouts.values():
        for grads, lay_grad in {**layouts, "expanded": lambda x: x[:1, :1, :1].expand(2, 4, 6)}.items():
            p = dt.nn.Parameter(lay(values.clone()))
            address, strides = p.data_ptr(), p.stride()
            optimizer = in_devtensor(name, [p])
            for step in range(3):
                p.grad = lay_grad(values + step)
                optimizer.step()
            assert (p.data_ptr(), p.stride()) == (address, strides)
            seen.setdefault(grads == "expanded", []).append(bits_of(p).tolist())
    assert all(bits == group[0] for group in seen.values() for bits in group)


@pytest.mark.parametrize("device", DEVICES[:2])
def test_more_parameters_than_a_launch_has_room_for(device: str) -> None:
    params = [dt.nn.Parameter(dt.full((n % 5,), 1.0, device=device)) for n in range(200)]
    for p in params:
        p.grad = dt.ones_like(p)
    dt.optim.SGD(params, lr=0.25).step()
    assert [p.tolist() for p in params] == [[0.75] * (n % 5) for n in range(200)]


def test_a_step_is_few_launches() -> None:
    """One for parameters of a device and dtype, and no wait."""
    params = [dt.nn.Parameter(dt.ones(n + 1, device=device)) for device in CUDA_DEVICES for n in range(20)]
    optimizer = dt.optim.Adam(params)
    for p in params:
        p.grad = dt.ones_like(p)
    optimizer.step()
    before = dt.counters()["launches"]
    with calls(synchronizations=0):
        optimizer.step()
    assert dt.counters()["launches"] - before == len(CUDA_DEVICES)


def test_parameters_that_share_memory_go_one_after_the_other() -> None:
    """As in PyTorch: also where one is part of another."""
    both = dt.zeros(100_000)
    whole, part = dt.nn.Parameter(both), dt.nn.Parameter(both[10:20])
    whole.grad, part.grad = dt.ones(100_000), dt.ones(10)
    dt.optim.SGD([whole, part], lr=1.0).step()
    assert (both[:10].tolist(), both[10:20].tolist()) == ([-1.0] * 10, [-2.0] * 10)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        twice = dt.optim.SGD([part, part], lr=1.0)
    twice.step()
    assert both[10:20].tolist() == [-4.0] * 10


def test_parameters_without_gradient_stay() -> None:
    params = [dt.nn.Parameter(dt.ones(2)) for _ in range(3)]
    optimizer = dt.optim.Adam(params)
    params[1].grad = dt.ones(2)
    optimizer.step()
    params[0].grad = params[2].grad = dt.ones(2)
    optimizer.step()  # of two ages
    assert [optimizer.state[p]["step"].item() for p in params] == [1.0, 2.0, 1.0]
    assert params[0].tolist() == params[2].tolist() != params[1].tolist()


def test_groups_have_options_of_their_own() -> None:
    first, second, third = (dt.nn.Parameter(dt.ones(1)) for _ in range(3))
    optimizer = dt.optim.SGD([{"params": first}, {"params": [second], "lr": 0.5}], lr=0.25)
    optimizer.add_param_group({"params": [third], "lr": 0.125})
    for p in (first, second, third):
        p.grad = dt.ones(1)
    optimizer.step()
    assert [p.item() for p in (first, second, third)] == [0.75, 0.5, 0.875]
    optimizer.param_groups[0]["lr"] = dt.tensor(0.5)
    optimizer.step()
    assert first.item() == 0.25


def test_the_default_device_does_not_matter() -> None:
    p = dt.nn.Parameter(dt.ones(2))
    p.grad = dt.ones(2)
    dt.set_default_device(CUDA_DEVICES[0])
    try:
        optimizer = dt.optim.Adam([p])
        optimizer.step()
    finally:
        dt.set_default_device("cpu")
    assert {str(value.device) for value in optimizer.state[p].values()} == {"cpu"}
