"""SGD, with momentum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from devtensor._C import DeviceArray, zeros_like
from devtensor.optim._update import LearningRate, Rule, UpdateOptimizer, number
from devtensor.optim.optimizer import Params

__all__ = ["SGD"]


class SGD(UpdateOptimizer):
    """Stochastic gradient descent: p -= lr * g, or with momentum p -= lr * b where b = momentum * b + g.

    weight_decay adds weight_decay * p to the gradient; dampening takes its part from all but the first gradient;
    nesterov steps by g + momentum * b; maximize climbs. foreach and fused are accepted and change nothing.
    Raises ValueError and TypeError for options that cannot be.

    >>> weight = nn.Parameter(dt.ones(2))
    >>> optimizer = dt.optim.SGD([weight], lr=0.1, momentum=0.9)
    """

    _scalars = frozenset()
    _LIMITS = (("lr", "learning rate"), ("momentum", "momentum value"), ("weight_decay", "weight_decay value"))

    def __init__(
        self,
        params: Params,
        lr: LearningRate = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:  # of older checkpoints
            for key in ("nesterov", "maximize", "differentiable", "fused"):
                group.setdefault(key, False)
            group.setdefault("foreach", None)

    def _check_options(self, options: dict[str, Any]) -> None:
        super()._check_options(options)
        number("SGD", "dampening", options["dampening"])
        if options["nesterov"] and (options["momentum"] <= 0 or options["dampening"] != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")

    def _states_of(
        self, group: Mapping[str, Any], params: list[DeviceArray]
    ) -> tuple[list[dict[str, Any]], list[float]]:
        if group["momentum"] == 0:
            return [{}] * len(params), [0.0] * len(params)
        states: list[dict[str, Any]] = []
        ages = []
        for param in params:
            state = self.state.get(param, {})
            new = state.get("momentum_buffer") is None
            states.append({**state, "momentum_buffer": zeros_like(param)} if new else state)
            ages.append(1.0 if new else 2.0)
        return states, ages

    def _keep(self, params: Iterable[DeviceArray], states: Iterable[dict[str, Any]], age: float) -> None:
        if age == 1:
            self.state.update(zip(params, states, strict=True))

    def _rule(self, group: Mapping[str, Any], age: float) -> Rule:
        numbers = {
            "lr": number("SGD", "lr", group["lr"]),
            "weight_decay": group["weight_decay"],
            "maximize": group["maximize"],
        }
        if age == 0:
            return Rule("sgd", (), numbers)
        momentum = group["momentum"]
        numbers["momentum"] = momentum
        numbers["nesterov"] = group["nesterov"]
        numbers["kept"] = 0 if age == 1 else momentum
        numbers["fresh"] = 1 if age == 1 else 1 - group["dampening"]
        return Rule("sgd_momentum", ("momentum_buffer",), numbers)
