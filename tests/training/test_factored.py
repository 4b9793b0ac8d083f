"""Adafactor and Muon beside PyTorch's: steps, states, options, and parameters without elements."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import devtensor as dt
from devtensor import nn, optim

SHAPES = {"Adafactor": [(4, 3), (7,), (), (2, 3, 5)], "Muon": [(4, 3), (3, 9), (5, 5)]}
CASES: list[tuple[str, dict[str, Any]]] = [
    ("Adafactor", {}),
    (
        "Adafactor",
        {"lr": 0.1, "beta2_decay": -0.5, "eps": (1e-8, 1e-2), "d": 2.0, "weight_decay": 0.1, "maximize": True},
    ),
    ("Muon", {}),
    ("Muon", {"lr": 0.1, "weight_decay": 0.0, "momentum": 0.5, "nesterov": False, "adjust_lr_fn": "match_rms_adamw"}),
    ("Muon", {"ns_steps": 3, "ns_coefficients": (2.0, -1.5, 0.5), "adjust_lr_fn": "original", "eps": 1e-3}),
]


def steps(lib: Any, name: str, options: dict[str, Any], count: int, device: str, dtype: str) -> tuple[Any, list[Any]]:
    rng = np.random.default_rng(4)
    params = [lib.tensor(rng.normal(size=shape).tolist()).to(device, getattr(lib, dtype)) for shape in SHAPES[name]]
    params = [param.requires_grad_() for param in params]
    optimizer = getattr(lib.optim, name)(params, **options)
    for k in range(count):
        optimizer.zero_grad()
        sum(((param * 1.5 - 0.3) ** 2).sum() * (i + 1 + k) for i, param in enumerate(params)).backward()
        optimizer.step()
    return optimizer, params


@pytest.mark.parametrize(("name", "options"), CASES)
def test_steps_are_pytorchs(name: str, options: dict[str, Any], device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for dtype, near in (("float64", 1e-12), ("float32", 2e-6)):
        near = 0.01 if name == "Muon" else near  # its matrices are made orthogonal in bfloat16
        theirs, wanted = steps(torch, name, options, 6, "cpu", dtype)
        ours, found = steps(dt, name, options, 6, device, dtype)
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(got.detach().cpu().numpy(), want.detach().numpy(), near, near)
        a, b = ours.state_dict(), theirs.state_dict()
        assert {k: v for k, v in a["param_groups"][0].items() if k != "params"} == {
            k: v for k, v in b["param_groups"][0].items() if k != "params"
        }
        for i, state in b["state"].items():
            assert set(state) == set(a["state"][i])
            for key, value in state.items():
                assert a["state"][i][key].shape == tuple(value.shape), key
                np.testing.assert_allclose(a["state"][i][key].cpu().numpy(), value.numpy(), near, near, err_msg=key)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_a_checkpoint_goes_on(name: str, options: dict[str, Any], device: str) -> None:
    _, whole = steps(dt, name, options, 4, device, "float32")
    first, params = steps(dt, name, options, 2, device, "float32")
    file = io.BytesIO()
    dt.save(first.state_dict(), file)
    file.seek(0)
    again = getattr(optim, name)(params, **options)
    again.load_state_dict(dt.load(file))
    for k in range(2, 4):
        again.zero_grad()
        sum(((p * 1.5 - 0.3) ** 2).sum() * (i + 1 + k) for i, p in enumerate(params)).backward()
        again.step()
    for a, b in zip(whole, params, strict=True):
        assert a.tolist() == b.tolist()


def test_halves_and_no_elements(device: str) -> None:
    for param in (
        dt.ones(3, 2, dtype=dt.bfloat16, device=device),
        dt.ones(0, 2, device=device),
        dt.ones(0, device=device),
    ):
        weight = nn.Parameter(param)
        optimizer = optim.Adafactor([weight], lr=0.1)
        weight.grad = dt.ones_like(weight)
        optimizer.step()
        assert weight.dtype == param.dtype and bool(weight.isfinite().all()) and bool((weight < 1).all())


def test_no_step_waits_for_the_device(device: str) -> None:
    if device == "cpu":
        pytest.skip("there is nothing to wait for")
    with dt.record_transfers() as log:
        for name in SHAPES:
            weight = nn.Parameter(dt.ones(3, 2, device=device))
            weight.grad = dt.ones_like(weight)
            getattr(optim, name)([weight]).step()
    assert len(log) == 0


ONE = nn.Parameter(dt.ones(2, 2))
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "lr": (lambda: optim.Adafactor([ONE], lr=-1), ValueError, "Invalid learning rate: -1"),
    "decay": (lambda: optim.Adafactor([ONE], beta2_decay=0.5), ValueError, "beta2_decay should be <= 0 but is: 0.5"),
    "d": (lambda: optim.Adafactor([ONE], d=0.5), ValueError, "Clipping threshold d should be >= 1 but is: 0.5"),
    "eps1": (lambda: optim.Adafactor([ONE], eps=(-1.0, 1e-3)), ValueError, "epsilon1 should be >= 0"),
    "eps2": (lambda: optim.Adafactor([ONE], eps=(None, -1.0)), ValueError, "epsilon2 should be >= 0"),
    "eps": (lambda: optim.Adafactor([ONE], eps=1e-3), TypeError, "'eps' must be two numbers"),  # type: ignore[arg-type]
    "rank": (lambda: optim.Muon([nn.Parameter(dt.ones(2))]), ValueError, "Muon only supports 2D parameters"),
    "steps": (lambda: optim.Muon([ONE], ns_steps=100), ValueError, "must be less than 100"),
    "adjust": (lambda: optim.Muon([ONE], adjust_lr_fn="x"), ValueError, "learning rate function x is not supported"),
    "three": (lambda: optim.Muon([ONE], ns_coefficients=(1.0, 2.0)), ValueError, "exactly 3 values"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", REFUSED)
def test_options_that_cannot_be(name: str) -> None:
    call, kind, text = REFUSED[name]
    with pytest.raises(kind, match=text):
        call()
