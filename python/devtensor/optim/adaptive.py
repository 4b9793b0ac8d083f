"""Adadelta, Adamax, NAdam and RAdam."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from devtensor._C import DeviceArray, zeros_like
from devtensor.optim._update import LearningRate, Rule, UpdateOptimizer, check_betas, number, step_counter
from devtensor.optim.optimizer import Params

__all__ = ["Adadelta", "Adamax", "NAdam", "RAdam"]


class Adadelta(UpdateOptimizer):
    """Adadelta (Zeiler 2012): the gradient times the root of the mean square of steps over that of gradients.

    Both means forget by rho. weight_decay adds weight_decay * p to the gradient; maximize climbs. foreach and
    capturable are accepted and change nothing. Raises ValueError and TypeError for options that cannot be.

    >>> weight = nn.Parameter(dt.ones(2))
    >>> optimizer = dt.optim.Adadelta([weight], lr=1.0)
    """

    _LIMITS = (
        ("lr", "learning rate"),
        ("rho", "rho value"),
        ("eps", "epsilon value"),
        ("weight_decay", "weight_decay value"),
    )

    def __init__(
        self,
        params: Params,
        lr: LearningRate = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _check_options(self, options: dict[str, Any]) -> None:
        super()._check_options(options)
        if options["rho"] > 1:
            raise ValueError(f"Invalid rho value: {options['rho']}")

    def _new_state(self, group: Mapping[str, Any], param: DeviceArray) -> dict[str, Any]:
        return {"step": step_counter(), "square_avg": zeros_like(param), "acc_delta": zeros_like(param)}

    def _rule(self, group: Mapping[str, Any], age: float) -> Rule:
        numbers = {
            "lr": number("Adadelta", "lr", group["lr"]),
            "weight_decay": group["weight_decay"],
            "maximize": group["maximize"],
            "square_kept": group["rho"],
            "square_fresh": 1 - group["rho"],
            "eps": group["eps"],
        }
        return Rule("adadelta", ("square_avg", "acc_delta"), numbers)


class _OfTwoMeans(UpdateOptimizer):
    """What has two betas."""

    _LIMITS: tuple[tuple[str, str], ...] = (
        ("lr", "learning rate"),
        ("eps", "epsilon value"),
        ("weight_decay", "weight_decay value"),
    )

    def _check_options(self, options: dict[str, Any]) -> None:
        super()._check_options(options)
        options["betas"] = check_betas(type(self).__name__, options["betas"])

    def _means(self, group: Mapping[str, Any]) -> dict[str, float]:
        """The numbers of all of them."""
        beta1, beta2 = group["betas"]
        decoupled = group.get("decoupled_weight_decay", False)
        lr = number(type(self).__name__, "lr", group["lr"])
        return {
            "weight_decay": 0 if decoupled else group["weight_decay"],
            "shrink": 1 - lr * group["weight_decay"] if decoupled else 1,
            "maximize": group["maximize"],
            "fresh": 1 - beta1,
            "square_kept": beta2,
            "square_fresh": 1 - beta2,
            "eps": group["eps"],
        }


class Adamax(_OfTwoMeans):
    """Adamax (Kingma and Ba 2014): Adam with the largest gradient, which is forgotten slowly, for the mean of squares.

    weight_decay adds weight_decay * p to the gradient; maximize climbs. foreach and capturable are accepted and change
    nothing. Raises ValueError and TypeError for options that cannot be.

    >>> weight = nn.Parameter(dt.ones(2))
    >>> optimizer = dt.optim.Adamax([weight], lr=2e-3)
    """

    def __init__(
        self,
        params: Params,
        lr: LearningRate = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _new_state(self, group: Mapping[str, Any], param: DeviceArray) -> dict[str, Any]:
        return {"step": step_counter(), "exp_avg": zeros_like(param), "exp_inf": zeros_like(param)}

    def _rule(self, group: Mapping[str, Any], age: float) -> Rule:
        lr = number("Adamax", "lr", group["lr"]) / (1 - group["betas"][0] ** age)
        return Rule("adamax", ("exp_avg", "exp_inf"), self._means(group) | {"lr": lr})


class NAdam(_OfTwoMeans):
    """NAdam (Dozat 2016): Adam with Nesterov's momentum, which grows by momentum_decay.

    weight_decay adds weight_decay * p to the gradient, or with decoupled_weight_decay shrinks p itself; maximize
    climbs. foreach and capturable are accepted and change nothing. Raises ValueError and TypeError for options that
    cannot be.

    >>> weight = nn.Parameter(dt.ones(2))
    >>> optimizer = dt.optim.NAdam([weight], lr=2e-3)
    """

    _LIMITS = (*_OfTwoMeans._LIMITS, ("momentum_decay", "momentum_decay value"))
    _scalars = frozenset({"step", "mu_product"})

    def __init__(
        self,
        params: Params,
        lr: LearningRate = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, group: Mapping[str, Any], param: DeviceArray) -> dict[str, Any]:
        counter, product = step_counter(), step_counter()
        product.fill_(1)
        means = {"exp_avg": zeros_like(param), "exp_avg_sq": zeros_like(param)}
        return {"step": counter, "mu_product": product, **means}

    @staticmethod
    def _momentum(group: Mapping[str, Any], step: float) -> float:
        momentum: float = group["betas"][0] * (1.0 - 0.5 * 0.96 ** (step * group["momentum_decay"]))
        return momentum

    def _states_of(self, group: Mapping[str, Any], params: list[DeviceArray]) -> tuple[list[dict[str, Any]], list[Any]]:
        """An age is the number of the step, and the product of the momenta up to it."""
        states, steps = super()._states_of(group, params)
        ages = zip(states, steps, strict=True)
        return states, [(step, (state["mu_product"] * self._momentum(group, step)).item()) for state, step in ages]

    def _rule(self, group: Mapping[str, Any], age: Any) -> Rule:
        step, product = age
        lr, following = number("NAdam", "lr", group["lr"]), self._momentum(group, step + 1)
        numbers = {
            "lr": lr * (1 - self._momentum(group, step)) / (1 - product),
            "momentum": lr * following / (1 - product * following),
            "root": 1 - group["betas"][1] ** step,
        }
        return Rule("nadam", ("exp_avg", "exp_avg_sq"), self._means(group) | numbers)

    def _keep(self, params: Iterable[DeviceArray], states: Iterable[dict[str, Any]], age: Any) -> None:
        step, product = age
        states = list(states)
        for state in states:
            state["mu_product"].fill_(product)
        super()._keep(params, states, step)


class RAdam(_OfTwoMeans):
    """RAdam (Liu et al. 2019): Adam that steps by the mean alone until the variance of the root is tractable.

    weight_decay adds weight_decay * p to the gradient, or with decoupled_weight_decay shrinks p itself; maximize
    climbs. foreach and capturable are accepted and change nothing. Raises ValueError and TypeError for options that
    cannot be.

    >>> weight = nn.Parameter(dt.ones(2))
    >>> optimizer = dt.optim.RAdam([weight], lr=1e-3)
    """

    def __init__(
        self,
        params: Params,
        lr: LearningRate = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, group: Mapping[str, Any], param: DeviceArray) -> dict[str, Any]:
        return {"step": step_counter(), "exp_avg": zeros_like(param), "exp_avg_sq": zeros_like(param)}

    def _rule(self, group: Mapping[str, Any], age: float) -> Rule:
        beta1, beta2 = group["betas"]
        lr = number("RAdam", "lr", group["lr"]) / (1 - beta1**age)
        correction = 1 - beta2**age
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * age * beta2**age / correction  # of the mean of squares
        states = ("exp_avg", "exp_avg_sq")
        if not length > 5.0:
            return Rule("radam_first", states, self._means(group) | {"lr": lr})
        rectified = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        return Rule("radam", states, self._means(group) | {"lr": lr * (rectified * correction) ** 0.5})
