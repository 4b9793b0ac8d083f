"""Schedules that go in cycles, some together with the momentum."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from devtensor.optim.lr_scheduler.base import LRScheduler, for_each_group, need_optimizer, set_value
from devtensor.optim.lr_scheduler.lambdas import function_state
from devtensor.optim.optimizer import Optimizer


class CosineAnnealingWarmRestarts(LRScheduler):
    """Down to eta_min in half a wave of T_0 epochs, then from the top again; each wave is T_mult times as long."""

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, float | int):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i: int = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The learning rate of each group at last_epoch."""
        wave = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * wave / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Set the learning rates of the next epoch. epoch may have a fraction: epoch + i / iters after each batch."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            self._go_on()
            epoch = self.last_epoch + 1
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        else:
            self._jump(epoch)
        self.last_epoch: int = math.floor(epoch)
        self._set_lr(self.get_lr())

    def _go_on(self) -> None:
        self.T_cur += 1
        if self.T_cur >= self.T_i:
            self.T_cur %= self.T_i
            self.T_i *= self.T_mult

    def _jump(self, epoch: float) -> None:
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            waves = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**waves - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**waves


class _WithMomentum(LRScheduler):
    """A schedule that may move the momentum, or the first of betas, against the learning rate."""

    cycle_momentum: bool
    use_beta1: bool

    def _begin_momentum(self, lowest: list[Any], highest: list[Any], last_epoch: int) -> None:
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in defaults
        if last_epoch == -1:
            for low, high, group in zip(lowest, highest, self.optimizer.param_groups, strict=True):
                self._set_momentum(group, high)
                group["max_momentum"] = high
                group["base_momentum"] = low

    def _set_momentum(self, group: dict[str, Any], momentum: float) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(_WithMomentum):
    """Up from base_lr to max_lr in step_size_up steps and down in step_size_down (Smith 2015), once a batch.

    mode "triangular" keeps the height, "triangular2" halves it each cycle, "exp_range" multiplies it by
    gamma ** step; scale_fn takes their place, called with the cycle or the step (scale_mode). cycle_momentum moves the
    momentum the other way.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        need_optimizer(optimizer)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.optimizer = optimizer
        base_lrs = for_each_group("base_lr", optimizer, base_lr)
        self.max_lrs: list[Any] = for_each_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size: float = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio: float = up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums: list[Any] = for_each_group("base_momentum", optimizer, base_momentum)
            self.max_momentums: list[Any] = for_each_group("max_momentum", optimizer, max_momentum)
            self._begin_momentum(self.base_momentums, self.max_momentums, last_epoch)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_value(group, "lr", lr)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The height of a cycle, as a part of the first."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return float(1 / 2.0 ** (x - 1))
        return float(self.gamma**x) if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[Any]:
        """The learning rate of each group at last_epoch; sets the momentum."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        part = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            groups = self.optimizer.param_groups
            for low, high, group in zip(self.base_momentums, self.max_momentums, groups, strict=True):
                self._set_momentum(group, high - (high - low) * part * scale)
        return [low + (high - low) * part * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; of scale_fn its attributes, where it is a callable object."""
        function = self._scale_fn_custom
        return {**super().state_dict(), "_scale_fn_custom": None if function is None else function_state(function)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where state_dict() was taken; a callable object takes its attributes back."""
        state = dict(state_dict)
        function = state.pop("_scale_fn_custom")
        super().load_state_dict(state)
        if function is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(function)


class OneCycleLR(_WithMomentum):
    """Up from max_lr / div_factor to max_lr in pct_start of the steps, then down to the first / final_div_factor.

    Once a batch (Smith and Topin 2017): total_steps, or epochs times steps_per_epoch. three_phase goes down to the
    first learning rate in as many steps as up, then to the last. cycle_momentum moves the momentum the other way.
    Raises ValueError for parameters that do not go together, and for more steps than total_steps.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        need_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps: int = _total(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        max_lrs = for_each_group("max_lr", optimizer, max_lr)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            highest = for_each_group("max_momentum", optimizer, max_momentum)
            self._begin_momentum(for_each_group("base_momentum", optimizer, base_momentum), highest, last_epoch)
        if last_epoch == -1:
            for group, highest_lr in zip(optimizer.param_groups, max_lrs, strict=True):
                group["initial_lr"] = highest_lr / div_factor
                group["max_lr"] = highest_lr
                group["min_lr"] = group["initial_lr"] / final_div_factor
        super().__init__(optimizer, last_epoch)

    def _between(self, start: Any, end: Any, part: float) -> Any:
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def _phase(self) -> tuple[dict[str, Any], float]:
        """The phase of last_epoch, and which part of it has passed."""
        start = 0.0
        for phase in self._schedule_phases:
            end = phase["end_step"]
            if self.last_epoch <= end or phase is self._schedule_phases[-1]:
                break
            start = end
        return phase, (self.last_epoch - start) / (end - start)

    def get_lr(self) -> list[Any]:
        """The learning rate of each group at last_epoch; sets the momentum."""
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"Tried to step {self.last_epoch} times. The specified number of total steps is {self.total_steps}"
            )
        phase, part = self._phase()
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            for group in groups:
                start, end = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._between(start, end, part))
        return [self._between(group[phase["start_lr"]], group[phase["end_lr"]], part) for group in groups]


def _total(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total_steps is not None:
        return _positive("total_steps", total_steps)
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    return _positive("epochs", epochs) * _positive("steps_per_epoch", steps_per_epoch)


def _positive(name: str, value: int) -> int:
    if not isinstance(value, int) or value <= 0:
        raise ValueError(f"Expected positive integer {name}, but got {value}")
    return value


def _phases(steps: int, pct_start: float, three: bool) -> list[dict[str, Any]]:
    """The last step of each phase, and the keys of a group between whose values it goes."""
    up = ("initial_lr", "max_lr", "max_momentum", "base_momentum")
    down = ("max_lr", "initial_lr" if three else "min_lr", "base_momentum", "max_momentum")
    ends = [(float(pct_start * steps) - 1, up)]
    if three:
        ends += [(float(2 * pct_start * steps) - 2, down)]
    ends += [(steps - 1, ("initial_lr", "min_lr", "max_momentum", "max_momentum") if three else down)]
    keys = ("start_lr", "end_lr", "start_momentum", "end_momentum")
    return [{"end_step": end, **dict(zip(keys, names, strict=True))} for end, names in ends]
