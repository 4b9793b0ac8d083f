"""Optimizers with their options, here and in PyTorch, and parameters with gradients for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from support import name_of

import devtensor as dt

SHAPES = [(3, 4), (7,), (), (2, 3, 5), (0, 2), (3000,)]
Options = dict[str, Any]
CASES: dict[str, tuple[str, Options]] = {
    "SGD": ("SGD", {}),
    "SGD, decay, maximize": ("SGD", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    "SGD, momentum": ("SGD", {"lr": 0.1, "momentum": 0.9}),
    "SGD, dampening": ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01, "maximize": True}),
    "SGD, nesterov": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    "Adam": ("Adam", {}),
    "Adam, forgetful": ("Adam", {"lr": 0.01, "betas": (0.3, 0.5), "eps": 1e-3}),
    "Adam without memory": ("Adam", {"lr": 0.01, "betas": (0.0, 0.5)}),
    "Adam, decay, maximize": ("Adam", {"lr": 0.01, "weight_decay": 0.1, "maximize": True}),
    "Adam, decoupled": ("Adam", {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "Adam, amsgrad": ("Adam", {"lr": 0.01, "amsgrad": True}),
    "AdamW": ("AdamW", {"lr": 0.01}),
    "AdamW, amsgrad, maximize": ("AdamW", {"lr": 0.01, "weight_decay": 0.2, "amsgrad": True, "maximize": True}),
    "RMSprop": ("RMSprop", {}),
    "RMSprop, decay, maximize": ("RMSprop", {"alpha": 0.7, "weight_decay": 0.1, "maximize": True}),
    "RMSprop, momentum": ("RMSprop", {"momentum": 0.9}),
    "RMSprop, centered": ("RMSprop", {"centered": True, "eps": 1e-3}),
    "RMSprop, centered, momentum": ("RMSprop", {"centered": True, "momentum": 0.5, "eps": 1e-3}),
    "Adagrad": ("Adagrad", {}),
    "Adadelta": ("Adadelta", {}),
    "Adadelta, all": ("Adadelta", {"lr": 0.5, "rho": 0.7, "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    "Adamax": ("Adamax", {}),
    "Adamax, all": ("Adamax", {"lr": 0.1, "betas": (0.5, 0.7), "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    "NAdam": ("NAdam", {}),
    "NAdam, all": (
        "NAdam",
        {"lr": 0.1, "betas": (0.5, 0.7), "eps": 1e-3, "weight_decay": 0.1, "momentum_decay": 0.1, "maximize": True},
    ),
    "NAdam, decoupled": ("NAdam", {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "RAdam": ("RAdam", {}),
    "RAdam, all": ("RAdam", {"lr": 0.1, "betas": (0.5, 0.9), "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    "RAdam, decoupled": ("RAdam", {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "ASGD": ("ASGD", {}),
    "ASGD, all": (
        "ASGD",
        {"lr": 0.1, "lambd": 0.1, "alpha": 0.5, "t0": 3, "weight_decay": 0.1, "maximize": True},
    ),
    "Rprop": ("Rprop", {}),
    "Rprop, all": ("Rprop", {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (1e-2, 0.3), "maximize": True}),
    "Adagrad, all": (
        "Adagrad",
        {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5, "maximize": True},
    ),
}


def parameters(dtype: str, device: str, seed: int = 0) -> list[dt.nn.Parameter]:
    random = np.random.default_rng(seed)
    wanted = getattr(dt, dtype)
    return [dt.nn.Parameter(dt.tensor(random.standard_normal(s)).to(device, wanted)) for s in SHAPES]


def gradients(params: list[dt.nn.Parameter], step: int) -> None:
    """Gives each parameter one that depends on the step alone."""
    random = np.random.default_rng(100 + step)
    for p in params:
        p.grad = dt.tensor(random.standard_normal(p.shape)).to(p.device, p.dtype)


def numbers(x: Any) -> np.ndarray:
    if isinstance(x, dt.DeviceArray):
        return np.asarray(x.detach().cpu().double().numpy())
    return np.asarray(x.detach().double().numpy())


def to_torch(torch: Any, x: dt.DeviceArray) -> Any:
    return torch.tensor(numbers(x)).to(getattr(torch, name_of(x.dtype)))


def from_torch(x: Any) -> dt.DeviceArray:
    return dt.tensor(numbers(x)).to(getattr(dt, name_of(x.dtype)))


def arrays_by(convert: Callable[[Any], Any], state: Any) -> Any:
    """A state dictionary with other arrays."""
    if isinstance(state, dict):
        return {key: arrays_by(convert, value) for key, value in state.items()}
    if isinstance(state, list):
        return [arrays_by(convert, value) for value in state]
    return convert(state) if hasattr(state, "numel") else state


def in_pytorch(torch: Any, name: str, params: list[dt.nn.Parameter]) -> tuple[Any, list[Any]]:
    kind, options = CASES[name]
    theirs = [to_torch(torch, p).requires_grad_() for p in params]
    return getattr(torch.optim, kind)(theirs, foreach=False, **options), theirs


def in_devtensor(name: str, params: list[dt.nn.Parameter]) -> dt.optim.Optimizer:
    kind, options = CASES[name]
    optimizer: dt.optim.Optimizer = getattr(dt.optim, kind)(params, **options)
    return optimizer


def run(name: str, params: list[dt.nn.Parameter], steps: range) -> dt.optim.Optimizer:
    optimizer = in_devtensor(name, params)
    for step in steps:
        gradients(params, step)
        optimizer.step()
    return optimizer
