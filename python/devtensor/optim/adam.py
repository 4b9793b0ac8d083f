"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from devtensor._C import DeviceArray, zeros_like
from devtensor.optim._update import LearningRate, Rule, UpdateOptimizer, check_betas, number, step_counter
from devtensor.optim.optimizer import Params

__all__ = ["Adam", "AdamW"]


class Adam(UpdateOptimizer):
    """Adam (Kingma and Ba 2014): steps by the mean of the gradients over the root of the mean of their squares.

    Both means forget by betas and are corrected for their beginning at 0. weight_decay adds weight_decay * p to the
    gradient, or with decoupled_weight_decay shrinks p itself; amsgrad divides by the largest mean so far; maximize
    climbs. foreach, fused and capturable are accepted and change nothing.
    Raises ValueError and TypeError for options that cannot be.

    >>> weight = nn.Parameter(dt.ones(2))
    >>> optimizer = dt.optim.Adam([weight], lr=1e-3)
    """

    _LIMITS = (("lr", "learning rate"), ("eps", "epsilon value"), ("weight_decay", "weight_decay value"))

    def __init__(
        self,
        params: Params,
        lr: LearningRate = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:  # of older checkpoints
            for key in ("amsgrad", "maximize", "capturable", "differentiable", "decoupled_weight_decay"):
                group.setdefault(key, False)
            for key in ("foreach", "fused"):
                group.setdefault(key, None)

    def _check_options(self, options: dict[str, Any]) -> None:
        super()._check_options(options)
        options["betas"] = check_betas(type(self).__name__, options["betas"])

    def _new_state(self, group: Mapping[str, Any], param: DeviceArray) -> dict[str, Any]:
        state = {"step": step_counter(), "exp_avg": zeros_like(param), "exp_avg_sq": zeros_like(param)}
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(param)
        return state

    def _rule(self, group: Mapping[str, Any], age: float) -> Rule:
        lr = number(type(self).__name__, "lr", group["lr"])
        beta1, beta2 = group["betas"]
        decoupled = group["decoupled_weight_decay"]
        numbers = {
            "lr": lr / (1 - beta1**age),
            "weight_decay": 0 if decoupled else group["weight_decay"],
            "shrink": 1 - lr * group["weight_decay"] if decoupled else 1,
            "maximize": group["maximize"],
            "fresh": 1 - beta1,
            "square_kept": beta2,
            "square_fresh": 1 - beta2,
            "root": (1 - beta2**age) ** 0.5,
            "eps": group["eps"],
        }
        if group["amsgrad"]:
            return Rule("adam_amsgrad", ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"), numbers)
        return Rule("adam", ("exp_avg", "exp_avg_sq"), numbers)


class AdamW(Adam):
    """Adam whose weight_decay shrinks the parameters themselves (Loshchilov and Hutter 2017), by lr * weight_decay.

    >>> weight = nn.Parameter(dt.ones(2))
    >>> optimizer = dt.optim.AdamW([weight], lr=1e-3, weight_decay=0.05)
    """

    def __init__(
        self,
        params: Params,
        lr: LearningRate = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
