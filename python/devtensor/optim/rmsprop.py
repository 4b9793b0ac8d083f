"""RMSprop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from devtensor._C import DeviceArray, zeros_like
from devtensor.optim._update import LearningRate, Rule, UpdateOptimizer, number, step_counter
from devtensor.optim.optimizer import Params

__all__ = ["RMSprop"]


class RMSprop(UpdateOptimizer):
    """RMSprop (Hinton 2012): divides the gradient by the root of the mean of its squares, which forgets by alpha.

    centered takes the square of the mean off the mean of the squares; momentum gathers the quotients; weight_decay
    adds weight_decay * p to the gradient; maximize climbs. foreach and capturable are accepted and change nothing.
    Raises ValueError and TypeError for options that cannot be.

    >>> weight = nn.Parameter(dt.ones(2))
    >>> optimizer = dt.optim.RMSprop([weight], lr=1e-2, momentum=0.9)
    """

    _LIMITS = (
        ("lr", "learning rate"),
        ("eps", "epsilon value"),
        ("momentum", "momentum value"),
        ("weight_decay", "weight_decay value"),
        ("alpha", "alpha value"),
    )

    def __init__(
        self,
        params: Params,
        lr: LearningRate = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:  # of older checkpoints
            group.setdefault("momentum", 0)
            for key in ("centered", "capturable", "maximize", "differentiable"):
                group.setdefault(key, False)
            group.setdefault("foreach", None)

    def _new_state(self, group: Mapping[str, Any], param: DeviceArray) -> dict[str, Any]:
        keys = ("square_avg", "momentum_buffer", "grad_avg")
        wanted = (True, group["momentum"] > 0, group["centered"])
        return {"step": step_counter(), **{k: zeros_like(param) for k, yes in zip(keys, wanted, strict=True) if yes}}

    def _rule(self, group: Mapping[str, Any], age: float) -> Rule:
        alpha, momentum = group["alpha"], group["momentum"]
        numbers = {
            "lr": number("RMSprop", "lr", group["lr"]),
            "weight_decay": group["weight_decay"],
            "maximize": group["maximize"],
            "momentum": momentum,
            "fresh": 1 - alpha,
            "square_kept": alpha,
            "square_fresh": 1 - alpha,
            "eps": group["eps"],
        }
        name, states = "rmsprop", ["square_avg"]
        if group["centered"]:
            name, states = f"{name}_centered", [*states, "grad_avg"]
        if momentum > 0:
            name, states = f"{name}_momentum", [*states, "momentum_buffer"]
        return Rule(name, tuple(states), numbers)
