"""LRScheduler: when a schedule steps, and how it sets the learning rates."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from devtensor._C import DeviceArray
from devtensor.optim.optimizer import Optimizer

EPOCH_WARNING = "step(epoch) is deprecated: call step() without it, once an epoch"
_ORDER_WARNING = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call `optimizer.step()` first: else the first "
    "value of the learning rate schedule is skipped."
)


def need_optimizer(optimizer: object) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def values(optimizer: Optimizer, key: str) -> list[Any]:
    """What each group has there; arrays are copied, as a schedule writes into the group's own."""
    return [_copied(group[key]) for group in optimizer.param_groups]


def set_value(group: dict[str, Any], key: str, value: Any) -> None:
    """An array stays the array that it is."""
    if isinstance(group[key], DeviceArray):
        group[key].fill_(value.item() if isinstance(value, DeviceArray) else value)
    else:
        group[key] = value


def for_each_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """A list for the groups, or one value for all of them."""
    count = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        return [_copied(value) for _ in range(count)]
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
            f"param_groups has {count}."
        )
    return [_copied(item) for item in value]


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, DeviceArray) else value


class LRScheduler:
    """The base of the schedules. A subclass defines get_lr, the learning rate of each group at self.last_epoch.

    last_epoch: -1 begins anew; another one goes on where a checkpoint stopped, and the groups must have "initial_lr".
    Raises TypeError for what is no optimizer, KeyError for groups without "initial_lr".

    >>> optimizer = dt.optim.SGD([nn.Parameter(dt.ones(2))], lr=1.0)
    >>> scheduler = dt.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    >>> scheduler.get_last_lr()
    [1.0]
    """

    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        need_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    "last_epoch >= 0: load the state of the optimizer first, or begin with last_epoch=-1"
                )
        self.base_lrs: list[Any] = values(optimizer, "initial_lr")
        self.last_epoch: int = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, for load_state_dict."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where state_dict() was taken. The learning rates are the optimizer's to load."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The learning rate of each group, as the last step set it."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The learning rate of each group at last_epoch, which step() sets."""
        raise NotImplementedError(f"{type(self).__name__} has no get_lr")

    def step(self, epoch: int | None = None) -> None:
        """Set the learning rates of the next epoch; call it after optimizer.step().

        Warns when that was not called before the first. epoch sets last_epoch instead of counting, and is deprecated.
        """
        begun = self.last_epoch >= 0  # SequentialLR takes the first steps of its schedules back, and makes one itself
        if self._step_count == 1 and begun and not self.optimizer._opt_called:
            warnings.warn(_ORDER_WARNING, UserWarning, stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
        self._set_lr(self.get_lr() if closed is None else closed())

    def _set_lr(self, rates: Iterable[Any]) -> None:
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            set_value(group, "lr", lr)
        self._last_lr = values(self.optimizer, "lr")

    def _now(self) -> list[Any]:
        return values(self.optimizer, "lr")

    def _times(self, factor: float) -> list[Any]:
        return [group["lr"] * factor for group in self.optimizer.param_groups]
