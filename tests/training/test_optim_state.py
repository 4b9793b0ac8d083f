"""What an optimizer does around its steps: closures, hooks, gradients, checkpoints that go to PyTorch and back."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from optimizer_cases import (
    CASES,
    Options,
    arrays_by,
    from_torch,
    gradients,
    in_devtensor,
    in_pytorch,
    numbers,
    parameters,
    run,
    to_torch,
)
from support import CUDA_DEVICES, DEVICES, bits_of, name_of

import devtensor as dt


def test_closure() -> None:
    p = dt.nn.Parameter(dt.ones(1))
    optimizer = dt.optim.SGD([p], lr=1.0)
    states = []

    def closure() -> float:
        states.append(dt.is_grad_enabled())
        p.grad = dt.ones(1)
        return 7.0

    with dt.no_grad():
        assert optimizer.step(closure) == 7.0
    assert states == [True] and p.item() == 0
    assert optimizer.step() is None


@pytest.mark.parametrize("device", DEVICES[:2])
def test_a_step_between_forward_and_backward_is_found(device: str) -> None:
    """The parameter that backward would need is no longer there."""
    p = dt.nn.Parameter(dt.ones(3, device=device))
    optimizer = dt.optim.SGD([p], lr=0.1)
    loss = (p * p).sum()
    p.grad = dt.ones(3, device=device)
    optimizer.step()
    with pytest.raises(dt.GradientError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("device", DEVICES[:2])
def test_a_line_is_fitted(device: str) -> None:
    x = dt.linspace(-1, 1, 50, device=device).reshape(-1, 1)
    model = dt.nn.Linear(1, 1, device=device)
    optimizer = dt.optim.SGD(model.parameters(), lr=0.3, momentum=0.5)
    for _ in range(100):
        optimizer.zero_grad()
        (model(x) - (3 * x - 2)).square().mean().backward()
        optimizer.step()
    assert model.weight.item() == pytest.approx(3, abs=1e-3) and model.bias.item() == pytest.approx(-2, abs=1e-3)


def test_zero_grad() -> None:
    p = dt.nn.Parameter(dt.ones(2))
    optimizer = dt.optim.SGD([p])
    optimizer.zero_grad()
    p.grad = given = dt.ones(2)
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is given and given.tolist() == [0, 0]
    optimizer.zero_grad()
    assert p.grad is None


def test_hooks() -> None:
    p = dt.nn.Parameter(dt.ones(1))
    p.grad = dt.ones(1)
    optimizer = dt.optim.SGD([p], lr=1.0)
    seen: list[Any] = []
    before = optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append(("before", p.item(), args, kwargs)))
    after = optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(("after", p.item(), args, kwargs)))
    optimizer.step()
    assert seen == [("before", 1.0, (), {}), ("after", 0.0, (), {})]
    before.remove()
    with after:
        optimizer.step(closure=None)
    assert seen[2:] == [("after", -1.0, (), {"closure": None})]
    optimizer.step()
    assert len(seen) == 3
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((lambda: 5,), {}))
    assert optimizer.step() == 5
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="must return None or"):
        optimizer.step()


def test_hooks_of_state_dicts() -> None:
    seen: list[str] = []
    optimizer = dt.optim.SGD([dt.nn.Parameter(dt.ones(1))], lr=1.0)
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("before"))
    optimizer.register_state_dict_post_hook(lambda o, d: {**d, "more": 1})
    optimizer.register_state_dict_post_hook(lambda o, d: seen.append("first"), prepend=True)
    saved = optimizer.state_dict()
    assert seen == ["before", "first"] and saved["more"] == 1
    optimizer.register_load_state_dict_pre_hook(lambda o, d: {**d, "param_groups": [{"lr": 3.0, "params": [0]}]})
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["lr"] == 3.0 and seen[-1] == "loaded"


# ---------------------------------------------------------------- checkpoints


@pytest.mark.parametrize("name", CASES)
def test_state_goes_to_pytorch_and_back(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    params = parameters("float64", "cpu")
    there, theirs = in_pytorch(torch, name, params)
    optimizer = run(name, params, range(3))
    saved = optimizer.state_dict()
    with torch.no_grad():
        for p, q in zip(params, theirs, strict=True):
            q.copy_(to_torch(torch, p))
    there.load_state_dict(arrays_by(lambda x: to_torch(torch, x), saved))
    for state in there.state.values():
        for key in {"mu_product", "eta", "mu"} & {*state}:  # PyTorch makes them float32, and float64 when it loads them
            state[key] = state[key].float()
    assert [*there.state_dict()["param_groups"][0]] == [*saved["param_groups"][0]]
    again = parameters("float64", "cpu", seed=5)
    with dt.no_grad():
        for p, q in zip(again, params, strict=True):
            p.copy_(q)
    back = in_devtensor(name, again)
    back.load_state_dict(arrays_by(from_torch, there.state_dict()))
    for step in range(3, 6):
        gradients(params, step)
        gradients(again, step)
        for p, q in zip(params, theirs, strict=True):
            q.grad = to_torch(torch, p.grad)
        for each in (optimizer, there, back):
            each.step()
    for p, q, r in zip(params, theirs, again, strict=True):
        assert bits_of(p).tolist() == bits_of(r).tolist()
        np.testing.assert_allclose(numbers(p), numbers(q), rtol=1e-12, atol=1e-13)


def test_numbers_of_a_state_keep_their_dtype() -> None:
    """mu_product, eta and mu stay float32 on the cpu whatever the parameters are: nothing changes by loading."""
    for name in (case for case in CASES if case.startswith(("NAdam", "ASGD"))):
        for dtype, device in (("float64", CUDA_DEVICES[0]), ("bfloat16", CUDA_DEVICES[0]), ("float16", "cpu")):
            params, again = parameters(dtype, device), parameters(dtype, device)
            optimizer, other = run(name, params, range(3)), in_devtensor(name, again)
            saved = optimizer.state_dict()
            for change in (lambda x: x, lambda x, d=device: x.to(d), lambda x: x.double(), lambda x: x.item()):
                with dt.no_grad():
                    for p, q in zip(again, params, strict=True):
                        p.copy_(q)
                scalars = {"mu_product", "eta", "mu"}
                state = {i: {k: change(x) if k in scalars else x for k, x in one.items()}
                         for i, one in saved["state"].items()}  # fmt: skip
                other.load_state_dict(saved | {"state": state})
                for one in other.state.values():
                    kept = {(str(one[k].device), name_of(one[k].dtype)) for k in scalars & {*one}}
                    assert kept == {("cpu", "float32")}, (name, dtype)
            for step in range(3, 6):
                for given, each in ((params, optimizer), (again, other)):
                    gradients(given, step)
                    each.step()
            for p, q in zip(params, again, strict=True):
                assert bits_of(p).tolist() == bits_of(q).tolist(), (name, dtype)


def test_loading_copies_and_casts() -> None:
    params = parameters("float32", "cpu")
    saved = run("Adam, amsgrad", params, range(2)).state_dict()
    half = [dt.nn.Parameter(p.detach().to(CUDA_DEVICES[0], dt.bfloat16)) for p in params]
    other = in_devtensor("Adam, amsgrad", half)
    other.load_state_dict(saved)
    for i, p in enumerate(half):
        state = other.state[p]
        assert {(str(x.device), name_of(x.dtype)) for x in state.values()} == {
            ("cpu", "float32"),
            (CUDA_DEVICES[0], "bfloat16"),
        }
        assert state["step"].item() == 2.0 and state["step"] is not saved["state"][i]["step"]
    same_device = in_devtensor("Adam, amsgrad", params)
    same_device.load_state_dict(saved)
    assert same_device.state[params[0]]["exp_avg"].data_ptr() != saved["state"][0]["exp_avg"].data_ptr()


def test_steps_of_older_checkpoints_are_numbers() -> None:
    p = dt.nn.Parameter(dt.ones(2))
    optimizer = dt.optim.Adam([p])
    zeros = {"exp_avg": dt.zeros(2), "exp_avg_sq": dt.zeros(2)}
    optimizer.load_state_dict({"state": {0: {"step": 4, **zeros}}, "param_groups": [{"lr": 1.0, "params": [0]} | REST]})
    p.grad = dt.ones(2)
    optimizer.step()
    assert optimizer.state[p]["step"].item() == 5.0


@pytest.mark.parametrize("device", DEVICES)
def test_numbers_of_an_own_optimizer_stay_numbers(device: str) -> None:
    torch = pytest.importorskip("torch")

    def own(lib: Any, base: Any) -> Any:
        class Own(base):
            def __init__(self, params: Any) -> None:
                super().__init__(params, {"lr": 0.5})

        return Own([lib.nn.Parameter(lib.ones(2, device=device if lib is dt else "cpu"))])

    def loaded(lib: Any) -> list[Any]:
        first, second = own(lib, lib.optim.Optimizer), own(lib, lib.optim.Optimizer)
        state = {"step": 3, "inner": {"step": 2.5}, "count": 7, "mean": lib.ones(2, dtype=lib.float64)}
        first.state[first.param_groups[0]["params"][0]] = {**state, "steps": lib.tensor(3)}
        second.load_state_dict(first.state_dict())
        (found,) = second.state.values()
        assert str(found["mean"].device) == (device if lib is dt else "cpu")
        found["step"] += 1
        return [
            (key, repr(value) if not hasattr(value, "dtype") else name_of(value.dtype)) for key, value in found.items()
        ]

    assert loaded(dt) == loaded(torch)
    sgd = dt.optim.SGD([dt.nn.Parameter(dt.ones(2))])
    sgd.load_state_dict({"state": {0: {"step": 3}}, "param_groups": [{"params": [0]}]})
    assert [type(state["step"]) for state in sgd.state.values()] == [int]


REST: Options = {"betas": (0.9, 0.99), "eps": 1e-8, "weight_decay": 0.0}


def test_names_travel() -> None:
    model = dt.nn.Linear(2, 1)
    optimizer = dt.optim.SGD(model.named_parameters(), lr=0.1)
    saved = optimizer.state_dict()
    assert saved["param_groups"][0]["param_names"] == ["weight", "bias"]
    assert saved["param_groups"][0]["params"] == [0, 1]
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["params"][0] is model.weight


@pytest.mark.parametrize("way", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["deepcopy", "pickle"])
def test_copies(way: Callable[[Any], Any]) -> None:
    params = [dt.nn.Parameter(dt.ones(3))]
    optimizer = dt.optim.Adam(params)
    params[0].grad = dt.ones(3)
    optimizer.step()
    other = way(optimizer)
    (p,) = other.param_groups[0]["params"]
    assert p is not params[0] and p.tolist() == params[0].tolist()
    assert other.state[p]["step"].item() == 1.0
    p.grad = params[0].grad = dt.ones(3)
    other.step()
    assert p.tolist() != params[0].tolist()
    optimizer.step()
    assert p.tolist() == params[0].tolist()


def test_what_an_optimizer_shows() -> None:
    assert repr(dt.optim.SGD([dt.nn.Parameter(dt.ones(1))], lr=0.5)).splitlines() == [
        "SGD (",
        "Parameter Group 0",
        "    dampening: 0",
        "    differentiable: False",
        "    foreach: None",
        "    fused: None",
        "    lr: 0.5",
        "    maximize: False",
        "    momentum: 0",
        "    nesterov: False",
        "    weight_decay: 0",
        ")",
    ]
