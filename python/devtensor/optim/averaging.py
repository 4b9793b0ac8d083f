"""ASGD and Rprop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from devtensor._C import DeviceArray, full_like, zeros_like
from devtensor.optim._update import LearningRate, Rule, UpdateOptimizer, number, step_counter
from devtensor.optim.optimizer import Params

__all__ = ["ASGD", "Rprop"]


class ASGD(UpdateOptimizer):
    """Averaged SGD (Polyak and Juditsky 1992): SGD whose state "ax" is the mean of the parameters since step t0.

    lambd shrinks the parameters, alpha is the power by which the learning rate falls. weight_decay adds
    weight_decay * p to the gradient; maximize climbs. foreach and capturable are accepted and change nothing.
    Raises ValueError and TypeError for options that cannot be.

    >>> weight = nn.Parameter(dt.ones(2))
    >>> optimizer = dt.optim.ASGD([weight], lr=1e-2)
    """

    _LIMITS = (("lr", "learning rate"), ("weight_decay", "weight_decay value"))
    _scalars = frozenset({"step", "eta", "mu"})

    def __init__(
        self,
        params: Params,
        lr: LearningRate = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _check_options(self, options: dict[str, Any]) -> None:
        super()._check_options(options)
        for key in ("lambd", "alpha", "t0"):
            number("ASGD", key, options[key])

    def _new_state(self, group: Mapping[str, Any], param: DeviceArray) -> dict[str, Any]:
        step, eta, mu = step_counter(), step_counter(), step_counter()
        eta.fill_(number("ASGD", "lr", group["lr"]))
        mu.fill_(1)
        return {"step": step, "eta": eta, "mu": mu, "ax": zeros_like(param)}

    def _states_of(self, group: Mapping[str, Any], params: list[DeviceArray]) -> tuple[list[dict[str, Any]], list[Any]]:
        """An age is the number of the step, its learning rate, and the share of the new parameters in the mean; then
        those two of the step to come."""
        states, steps = super()._states_of(group, params)
        lr, ages = number("ASGD", "lr", group["lr"]), []
        for state, step in zip(states, steps, strict=True):
            eta = lr / (1 + group["lambd"] * lr * step) ** group["alpha"]
            mu = 1 / max(1, step - group["t0"])
            ages.append((step, state["eta"].item(), state["mu"].item(), eta, mu))
        return states, ages

    def _rule(self, group: Mapping[str, Any], age: Any) -> Rule:
        _, eta, mu, _, _ = age
        numbers = {
            "lr": eta,
            "weight_decay": group["weight_decay"],
            "maximize": group["maximize"],
            "shrink": 1 - group["lambd"] * eta,
            "fresh": mu,
        }
        return Rule("asgd", ("ax",), numbers)

    def _keep(self, params: Iterable[DeviceArray], states: Iterable[dict[str, Any]], age: Any) -> None:
        step, _, _, eta, mu = age
        states = list(states)
        for state in states:
            state["eta"].fill_(eta)
            state["mu"].fill_(mu)
        super()._keep(params, states, step)


class Rprop(UpdateOptimizer):
    """Rprop (Riedmiller and Braun 1993): steps that know the sign of the gradient alone.

    The step of an element begins at lr; it is multiplied by etas[1] while the sign stays, and by etas[0] where it
    changes, within step_sizes. maximize climbs. foreach and capturable are accepted and change nothing. Raises
    ValueError and TypeError for options that cannot be.

    >>> weight = nn.Parameter(dt.ones(2))
    >>> optimizer = dt.optim.Rprop([weight], lr=1e-2)
    """

    _LIMITS = (("lr", "learning rate"),)

    def __init__(
        self,
        params: Params,
        lr: LearningRate = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _check_options(self, options: dict[str, Any]) -> None:
        super()._check_options(options)
        for key in ("etas", "step_sizes"):
            pair = options[key]
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise TypeError(f"Rprop(): argument '{key}' must be two numbers, not {pair!r}")
            options[key] = tuple(number("Rprop", key, value) for value in pair)
        if not 0 < options["etas"][0] < 1 < options["etas"][1]:
            raise ValueError(f"Invalid eta values: {options['etas'][0]}, {options['etas'][1]}")

    def _new_state(self, group: Mapping[str, Any], param: DeviceArray) -> dict[str, Any]:
        size = full_like(param, number("Rprop", "lr", group["lr"]))
        return {"step": step_counter(), "prev": zeros_like(param), "step_size": size}

    def _rule(self, group: Mapping[str, Any], age: float) -> Rule:
        (cut, grown), (least, most) = group["etas"], group["step_sizes"]
        numbers = {"maximize": group["maximize"], "cut": cut, "grown": grown, "least": least, "most": most}
        return Rule("rprop", ("prev", "step_size"), numbers)
