"""Schedules that the user's functions compute."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

from devtensor.optim.lr_scheduler.base import LRScheduler, need_optimizer
from devtensor.optim.optimizer import Optimizer

Factor = Callable[[int], float]


def function_state(function: Any) -> dict[str, Any] | None:
    """Of a callable object its attributes; nothing of functions and types."""
    if isinstance(function, types.FunctionType | type) or not hasattr(function, "__dict__"):
        return None
    return dict(function.__dict__)


class _Lambdas(LRScheduler):
    def __init__(self, optimizer: Optimizer, lr_lambda: Factor | Sequence[Factor], last_epoch: int = -1) -> None:
        need_optimizer(optimizer)
        several = isinstance(lr_lambda, list | tuple)
        self.lr_lambdas: list[Any] = list(lr_lambda) if several else [lr_lambda] * len(optimizer.param_groups)  # type: ignore[arg-type]
        if len(self.lr_lambdas) != len(optimizer.param_groups):
            raise ValueError(f"Expected {len(optimizer.param_groups)} lr_lambdas, but got {len(self.lr_lambdas)}")
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; of functions nothing, of callable objects their attributes."""
        return {**super().state_dict(), "lr_lambdas": [function_state(f) for f in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where state_dict() was taken; callable objects take their attributes back."""
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
        for function, state in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if state is not None:
                function.__dict__.update(state)


class LambdaLR(_Lambdas):
    """The first learning rate times lr_lambda(epoch); a list has a function for each group."""

    def get_lr(self) -> list[Any]:
        """The learning rate of each group at last_epoch."""
        return [base * function(self.last_epoch) for function, base in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(_Lambdas):
    """The learning rate of the epoch before times lr_lambda(epoch); a list has a function for each group."""

    def get_lr(self) -> list[Any]:
        """The learning rate of each group at last_epoch."""
        if self._is_initial:
            return self._now()
        groups = self.optimizer.param_groups
        return [
            group["lr"] * function(self.last_epoch) for function, group in zip(self.lr_lambdas, groups, strict=True)
        ]
