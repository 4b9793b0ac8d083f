"""L-BFGS: the path that PyTorch's takes, with and without a line search, and over several steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import devtensor as dt

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def losses(lib: Any, options: dict[str, Any], steps: int, device: Any) -> tuple[list[float], Any, Any]:
    """Rosenbrock's valley in two arrays."""
    x = lib.tensor([-1.5, 2.0, 0.5], dtype=lib.float64, device=device, requires_grad=True)
    y = lib.tensor([[0.3], [0.7]], dtype=lib.float64, device=device, requires_grad=True)
    optimizer = lib.optim.LBFGS([x, y], **options)

    def closure() -> Any:
        optimizer.zero_grad()
        v = lib.cat([x, y.reshape(2)])
        loss = (100 * (v[1:] - v[:-1] ** 2) ** 2 + (1 - v[:-1]) ** 2).sum()
        loss.backward()
        return loss

    return [float(optimizer.step(closure).detach()) for _ in range(steps)], x, optimizer


def test_the_path_is_pytorchs(device: str) -> None:
    for options in (
        {"line_search_fn": "strong_wolfe"},
        {"line_search_fn": "strong_wolfe", "history_size": 3, "max_iter": 7},
        {"lr": 0.001, "max_iter": 5},
        {"lr": 0.5, "max_iter": 4, "max_eval": 6, "line_search_fn": "strong_wolfe"},
        {"lr": 0.001, "tolerance_grad": 1e3},
    ):
        ours, x, optimizer = losses(dt, options, 4, device)
        theirs, y, other = losses(torch, options, 4, "cpu")
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
        np.testing.assert_allclose(x.detach().cpu().numpy(), y.detach().numpy(), rtol=1e-4)
        state, wanted = (next(iter(o.state_dict()["state"].values())) for o in (optimizer, other))
        assert (state["func_evals"], state["n_iter"]) == (wanted["func_evals"], wanted["n_iter"])
        assert set(wanted) - {"al"} <= set(state)


def test_what_is_refused() -> None:
    x = dt.nn.Parameter(dt.ones(2))
    with pytest.raises(ValueError, match="parameter groups"):
        dt.optim.LBFGS([{"params": [x]}, {"params": [dt.nn.Parameter(dt.ones(1))]}])
    with pytest.raises(ValueError, match="learning rate"):
        dt.optim.LBFGS([x], lr=-1)
    with pytest.raises(TypeError, match="closure"):
        dt.optim.LBFGS([x]).step()

    def closure() -> Any:
        loss = x.square().sum()
        loss.backward()
        return loss

    with pytest.raises(RuntimeError, match="only 'strong_wolfe'"):
        dt.optim.LBFGS([x], line_search_fn="armijo").step(closure)


def test_a_line_search_along_a_straight_loss_ends() -> None:
    p = dt.nn.Parameter(dt.tensor([3.0, -2.0]))
    optimizer = dt.optim.LBFGS([p], line_search_fn="strong_wolfe")

    def closure() -> dt.DeviceArray:
        optimizer.zero_grad()
        loss = p.abs().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert p.abs().sum().item() < 5.0
