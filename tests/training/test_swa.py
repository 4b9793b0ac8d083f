"""optim.swa_utils beside PyTorch's: averages, learning rates, states, statistics of batch norms."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import devtensor as dt

SEEDS = range(4)


def net(library: Any, device: str) -> Any:
    nn = library.nn
    layers = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.BatchNorm1d(4, momentum=None))
    return layers.to(device)


def fill(library: Any, module: Any, seed: int) -> None:
    """The same numbers in each library; the counters of the batch norms differ from model to model."""
    random = np.random.default_rng(seed)
    state = {}
    for name, value in module.state_dict().items():
        numbers = random.normal(size=tuple(value.shape)) if value.ndim else random.integers(9)
        state[name] = library.from_numpy(np.asarray(numbers)).to(value.dtype).to(value.device)
    module.load_state_dict(state)


def numbers(module: Any) -> dict[str, np.ndarray]:
    return {name: value.cpu().numpy() for name, value in module.state_dict().items()}


def same(ours: Any, theirs: Any) -> None:
    wanted = numbers(theirs)
    found = numbers(ours)
    assert list(found) == list(wanted)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-6, atol=1e-6, err_msg=name)


OPTIONS: dict[str, Any] = {
    "mean": lambda swa: {},
    "mean of buffers": lambda swa: {"use_buffers": True},
    "average": lambda swa: {"avg_fn": swa.get_ema_avg_fn(0.9)},
    "averages": lambda swa: {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.8), "use_buffers": True},
    "mean by function": lambda swa: {"avg_fn": swa.get_swa_avg_fn()},
    "means by function": lambda swa: {"multi_avg_fn": swa.get_swa_multi_avg_fn()},
}


def test_averages_are_pytorchs(device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for options in OPTIONS.values():
        pairs = []
        for library, where in ((dt, device), (torch, "cpu")):
            swa = library.optim.swa_utils
            model = net(library, where)
            averaged = swa.AveragedModel(model, device=where, **options(swa))
            for seed in SEEDS:
                fill(library, model, seed)
                averaged.update_parameters(model)
            assert int(averaged.n_averaged) == len(SEEDS)
            pairs.append(averaged)
        same(*pairs)
        restored = dt.optim.swa_utils.AveragedModel(net(dt, device))
        restored.load_state_dict(pairs[0].state_dict())
        same(restored, pairs[1])


def test_batch_norms_are_pytorchs(device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    data = np.random.default_rng(3).normal(size=(3, 5, 3)).astype(np.float32)
    for wrap in (lambda x: x, lambda x: (x, None), lambda x: [x]):
        pairs = []
        for library, where in ((dt, device), (torch, "cpu")):
            model = net(library, where).eval()
            fill(library, model, 1)
            batches = [wrap(library.from_numpy(batch)) for batch in data]
            library.optim.swa_utils.update_bn(batches, model, device=where)
            assert not model.training and model[1].momentum == 0.1 and model[3].momentum is None
            pairs.append(model)
        same(*pairs)
    dt.optim.swa_utils.update_bn(iter(()), dt.nn.Linear(2, 2))


def rates(library: Any, **options: Any) -> tuple[list[Any], dict[str, Any]]:
    weights = [{"params": [library.nn.Parameter(library.ones(2))]}]
    weights += [{"params": [library.nn.Parameter(library.ones(2))], "lr": 0.7}]
    optimizer = library.optim.SGD(weights, lr=1.0)
    schedule = library.optim.swa_utils.SWALR(optimizer, **options)
    found = [schedule.get_last_lr()]
    for _ in range(7):
        optimizer.step()
        schedule.step()
        found.append(schedule.get_last_lr())
    return found, schedule.state_dict()


def test_rates_are_pytorchs() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for options in (
        {"swa_lr": 0.1},
        {"swa_lr": [0.1, 0.2], "anneal_epochs": 3},
        {"swa_lr": 0.05, "anneal_epochs": 4, "anneal_strategy": "linear"},
        {"swa_lr": 0.05, "anneal_epochs": 0},
    ):
        (ours, state), (theirs, reference) = rates(dt, **options), rates(torch, **options)
        assert ours == theirs
        assert {key: reference[key] for key in state} == state
        assert not {"optimizer", "anneal_func"} & state.keys()


def test_a_schedule_goes_on() -> None:
    optimizer = dt.optim.SGD([dt.nn.Parameter(dt.ones(2))], lr=1.0)
    first = dt.optim.swa_utils.SWALR(optimizer, 0.5, 4, "linear")
    for _ in range(2):
        optimizer.step()
        first.step()
    second = dt.optim.swa_utils.SWALR(copy.deepcopy(optimizer), 0.5)
    second.load_state_dict(first.state_dict())
    second.optimizer.load_state_dict(optimizer.state_dict())
    for schedule in (first, second):
        schedule.optimizer.step()
        schedule.step()
    assert first.get_last_lr() == second.get_last_lr()


def test_mistakes() -> None:
    swa = dt.optim.swa_utils
    optimizer = dt.optim.SGD([dt.nn.Parameter(dt.ones(2))], lr=1.0)
    for make in (swa.get_ema_avg_fn, swa.get_ema_multi_avg_fn):
        with pytest.raises(ValueError, match=r"Invalid decay value 1.5"):
            make(1.5)
    with pytest.raises(AssertionError, match="Only one of"):
        swa.AveragedModel(dt.nn.Linear(2, 2), None, swa.get_ema_avg_fn(), swa.get_ema_multi_avg_fn())
    with pytest.raises(ValueError, match="anneal_strategy"):
        swa.SWALR(optimizer, 0.1, anneal_strategy="exp")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="anneal_epochs"):
        swa.SWALR(optimizer, 0.1, anneal_epochs=-1)
    with pytest.raises(ValueError, match="swa_lr"):
        swa.SWALR(optimizer, [0.1, 0.2])
    with pytest.raises(TypeError):
        swa.SWALR(object(), 0.1)  # type: ignore[arg-type]
    assert "swa_lr" not in optimizer.param_groups[0]
