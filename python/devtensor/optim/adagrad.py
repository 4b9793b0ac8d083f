"""Adagrad."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from devtensor._C import DeviceArray, full_like
from devtensor.autograd.grad_mode import no_grad
from devtensor.optim._update import LearningRate, Rule, UpdateOptimizer, number, step_counter
from devtensor.optim.optimizer import Params

__all__ = ["Adagrad"]


class Adagrad(UpdateOptimizer):
    """Adagrad (Duchi, Hazan and Singer 2011): divides the gradient by the root of the sum of its squares so far.

    The sum begins with initial_accumulator_value; lr is divided by 1 + (step - 1) * lr_decay; weight_decay adds
    weight_decay * p to the gradient; maximize climbs. foreach and fused are accepted and change nothing.
    Raises ValueError and TypeError for options that cannot be.

    >>> weight = nn.Parameter(dt.ones(2))
    >>> optimizer = dt.optim.Adagrad([weight], lr=1e-2)
    """

    _LIMITS = (
        ("lr", "learning rate"),
        ("lr_decay", "lr_decay value"),
        ("weight_decay", "weight_decay value"),
        ("initial_accumulator_value", "initial_accumulator_value value"),
        ("eps", "epsilon value"),
    )

    def __init__(
        self,
        params: Params,
        lr: LearningRate = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        with no_grad():
            for group in self.param_groups:  # as PyTorch: a state dictionary has it before the first step
                for param in group["params"]:
                    self.state[param] = self._new_state(group, param)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:  # of older checkpoints
            for key in ("maximize", "differentiable"):
                group.setdefault(key, False)
            for key in ("foreach", "fused"):
                group.setdefault(key, None)

    def _new_state(self, group: Mapping[str, Any], param: DeviceArray) -> dict[str, Any]:
        return {"step": step_counter(), "sum": full_like(param, self.defaults["initial_accumulator_value"])}

    def _rule(self, group: Mapping[str, Any], age: float) -> Rule:
        lr = number("Adagrad", "lr", group["lr"])
        numbers = {
            "lr": lr / (1 + (age - 1) * group["lr_decay"]),
            "weight_decay": group["weight_decay"],
            "maximize": group["maximize"],
            "eps": group["eps"],
        }
        return Rule("adagrad", ("sum",), numbers)
