"""A schedule that waits for a measure to stop getting better."""

from __future__ import annotations

import math
import warnings
from typing import Any, Literal, SupportsFloat

from devtensor.optim.lr_scheduler.base import EPOCH_WARNING, LRScheduler, need_optimizer, set_value, values
from devtensor.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """Times factor when the measure given to step() has not got better for more than patience epochs.

    mode says whether smaller ("min") or larger ("max") is better, threshold by how much: as a part ("rel") or as it is
    ("abs"). After a reduction cooldown epochs do not count; no learning rate falls below min_lr, and changes of eps or
    less are not made.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: Literal["min", "max"] = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: Literal["rel", "abs"] = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        need_optimizer(optimizer)
        count = len(optimizer.param_groups)
        several = isinstance(min_lr, list | tuple)
        if several and len(min_lr) != count:  # type: ignore[arg-type]
            raise ValueError(f"expected {count} min_lrs, got {len(min_lr)}")  # type: ignore[arg-type]
        self.factor = factor
        self.optimizer = optimizer
        self.default_min_lr: float | None = None if several else min_lr  # type: ignore[assignment]
        self.min_lrs: list[Any] = list(min_lr) if several else [min_lr] * count  # type: ignore[arg-type]
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch: int = 0
        self._last_lr = values(optimizer, "lr")
        self._check_mode(mode, threshold_mode)
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.mode_worse: float = math.inf if mode == "min" else -math.inf
        self.best: float = self.mode_worse
        self.cooldown_counter: int = 0
        self.num_bad_epochs: int = 0

    @staticmethod
    def _check_mode(mode: str, threshold_mode: str) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")

    def step(self, metrics: SupportsFloat, epoch: int | None = None) -> None:  # type: ignore[override]
        """Look at the measure of an epoch. An array on a device is waited for."""
        current = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = values(self.optimizer, "lr")

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}). Give `min_lrs` a value for each group."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, lowest in zip(groups, self.min_lrs, strict=True):
            before = float(group["lr"])
            after = max(before * self.factor, lowest)
            if before - after > self.eps:
                set_value(group, "lr", after)

    @property
    def in_cooldown(self) -> bool:
        """bool: whether epochs do not count, as the learning rate was just reduced."""
        return self.cooldown_counter > 0

    def _is_better(self, a: float, best: float) -> bool:
        if self.threshold_mode == "rel":
            return a < best * (1.0 - self.threshold) if self.mode == "min" else a > best * (self.threshold + 1.0)
        return a < best - self.threshold if self.mode == "min" else a > best + self.threshold
