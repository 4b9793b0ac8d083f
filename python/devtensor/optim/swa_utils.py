"""Averages of weights: stochastic weight averaging (SWA, Izmailov et al. 2018), exponential moving averages (EMA)."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_number
from devtensor._types import Device
from devtensor.autograd.grad_mode import no_grad
from devtensor.nn.module import Module
from devtensor.nn.norm import _BatchNorm
from devtensor.optim.lr_scheduler.base import LRScheduler, for_each_group, need_optimizer
from devtensor.optim.optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def __dir__() -> list[str]:
    return __all__


_Count = DeviceArray | int
_Arrays = Sequence[DeviceArray]
AverageOne = Callable[[DeviceArray, DeviceArray, _Count], DeviceArray]
AverageMany = Callable[[_Arrays, _Arrays, _Count], None]


def _need_decay(op: str, decay: float) -> float:
    decay = _need_number(op, "decay", decay)
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")
    return decay


def get_ema_multi_avg_fn(decay: float = 0.999) -> AverageMany:
    """The function that moves a list of averages towards the current weights: decay * average + (1 - decay) * current.

    It writes into the averages. Raises ValueError for a decay outside of [0, 1].

    >>> average = dt.tensor([1.0])
    >>> dt.optim.swa_utils.get_ema_multi_avg_fn(0.75)([average], [dt.tensor([5.0])], 1)
    >>> average
    DeviceArray([2.], device='cpu', dtype=float32)
    """
    decay = _need_decay("get_ema_multi_avg_fn", decay)

    @no_grad()
    def ema_update(ema_param_list: _Arrays, current_param_list: _Arrays, _: _Count) -> None:
        for average, current in zip(ema_param_list, current_param_list, strict=True):
            if average.dtype.is_floating_point:
                average.lerp_(current, 1 - decay)
            else:
                average.copy_((average * decay + current * (1 - decay)).to(average.dtype))

    return ema_update


def get_swa_multi_avg_fn() -> AverageMany:
    """The function that takes the current weights into a list of means of num_averaged weights, which it writes.

    >>> average = dt.tensor([1.0])
    >>> dt.optim.swa_utils.get_swa_multi_avg_fn()([average], [dt.tensor([5.0])], 3)
    >>> average
    DeviceArray([2.], device='cpu', dtype=float32)
    """

    @no_grad()
    def swa_update(averaged_param_list: _Arrays, current_param_list: _Arrays, num_averaged: _Count) -> None:
        weight = 1 / (num_averaged + 1)
        for average, current in zip(averaged_param_list, current_param_list, strict=True):
            if not average.dtype.is_floating_point:
                average.copy_((average + (current - average) * weight).to(average.dtype))
            elif isinstance(weight, DeviceArray):
                average.lerp_(current, weight.to(average.dtype))
            else:
                average.lerp_(current, weight)

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> AverageOne:
    """The function decay * average + (1 - decay) * current of one array. Raises ValueError as get_ema_multi_avg_fn.

    >>> dt.optim.swa_utils.get_ema_avg_fn(0.75)(dt.tensor([1.0]), dt.tensor([5.0]), 1)
    DeviceArray([2.], device='cpu', dtype=float32)
    """
    decay = _need_decay("get_ema_avg_fn", decay)

    @no_grad()
    def ema_update(ema_param: DeviceArray, current_param: DeviceArray, num_averaged: _Count) -> DeviceArray:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> AverageOne:
    """The function average + (current - average) / (num_averaged + 1) of one array.

    >>> dt.optim.swa_utils.get_swa_avg_fn()(dt.tensor([1.0]), dt.tensor([5.0]), 3)
    DeviceArray([2.], device='cpu', dtype=float32)
    """

    @no_grad()
    def swa_update(averaged_param: DeviceArray, current_param: DeviceArray, num_averaged: _Count) -> DeviceArray:
        if isinstance(num_averaged, DeviceArray):
            num_averaged = num_averaged.to(_real(averaged_param))
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def _real(x: DeviceArray) -> _C.dtype:
    """The dtype that a quotient of x has."""
    return x.dtype if x.dtype.is_floating_point else _C.get_default_dtype()


class AveragedModel(Module):
    """A copy of model whose parameters are averages of those that update_parameters() was given.

    The mean, or what avg_fn(average, current, n_averaged) of each parameter gives, or what
    multi_avg_fn(averages, currents, n_averaged) writes, which is called for the parameters of each device and dtype.
    use_buffers averages buffers too; without it they are those of the latest model. device moves the copy, and
    update_parameters() moves what it is given to the device of the copy. n_averaged, a buffer, says how many models
    there have been. Raises AssertionError where both functions are given.

    >>> net = nn.Linear(2, 1)
    >>> averaged = dt.optim.swa_utils.AveragedModel(net)
    >>> averaged.update_parameters(net)
    >>> averaged(dt.ones(3, 2)).shape
    (3, 1)
    """

    module: Module
    n_averaged: DeviceArray

    def __init__(
        self,
        model: Module,
        device: Device | None = None,
        avg_fn: AverageOne | None = None,
        multi_avg_fn: AverageMany | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        use_buffers = _need_bool("AveragedModel", "use_buffers", use_buffers)
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", _C.tensor(0, dtype=_C.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers: bool = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model gives."""
        return self.module(*args, **kwargs)

    def _averaged(self, model: Module) -> Iterable[DeviceArray]:
        return itertools.chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters()

    def update_parameters(self, model: Module) -> None:
        """Take the parameters of model into the averages; the first ones are copied. Waits for n_averaged."""
        averages, currents = [], []
        for average, current in zip(self._averaged(self.module), self._averaged(model), strict=False):
            averages.append(average.detach())
            currents.append(current.detach().to(average.device))
        if int(self.n_averaged) == 0:
            for average, current in zip(averages, currents, strict=True):
                average.copy_(current)
        elif self.multi_avg_fn is not None:
            groups: dict[Any, tuple[list[DeviceArray], list[DeviceArray]]] = {}
            for average, current in zip(averages, currents, strict=True):
                pair = groups.setdefault((average.device, average.dtype), ([], []))
                pair[0].append(average)
                pair[1].append(current)
            for (device, _), (some, others) in groups.items():
                self.multi_avg_fn(some, others, self.n_averaged.to(device))
        else:
            function = get_swa_avg_fn() if self.avg_fn is None else self.avg_fn
            for average, current in zip(averages, currents, strict=True):
                result = function(average, current, self.n_averaged.to(average.device))
                average.copy_(result.to(average.dtype))
        if not self.use_buffers:
            for average, current in zip(self.module.buffers(), model.buffers(), strict=True):
                average.detach().copy_(current.detach().to(average.device))
        self.n_averaged += 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Device | None = None) -> None:
    """Set the means and variances of the batch norms of model to those of all batches of loader, by one pass over it.

    A batch is an array, or a list or tuple whose first entry is one; device moves it. model is called in training mode,
    which is put back as it was.

    >>> net = nn.Sequential(nn.BatchNorm1d(2))
    >>> dt.optim.swa_utils.update_bn([dt.ones(4, 2), dt.zeros(4, 2)], net)
    >>> net[0].running_mean
    DeviceArray([0.5000, 0.5000], device='cpu', dtype=float32)
    """
    momenta: dict[_BatchNorm, float | None] = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None  # the mean of all batches
    for batch in loader:
        input = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(input if device is None else input.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the learning rate of each group to swa_lr within anneal_epochs, then constant; a list is for the groups.

    anneal_strategy: "cos" along half a cosine, "linear" along a line. Raises ValueError for another one, for negative
    anneal_epochs, and for a list of another length than the groups.

    >>> optimizer = dt.optim.SGD([nn.Parameter(dt.ones(2))], lr=1.0)
    >>> schedule = dt.optim.swa_utils.SWALR(optimizer, swa_lr=0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | Sequence[float],
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ) -> None:
        need_optimizer(optimizer)
        rates = for_each_group("swa_lr", optimizer, swa_lr)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        self._set_anneal_func(anneal_strategy)
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _linear_anneal(t: float) -> float:
        return t

    @staticmethod
    def _cosine_anneal(t: float) -> float:
        return (1 - math.cos(math.pi * t)) / 2

    def _set_anneal_func(self, anneal_strategy: str) -> None:
        self._anneal_strategy = anneal_strategy
        self.anneal_func: Callable[[float], float] = (
            self._cosine_anneal if anneal_strategy == "cos" else self._linear_anneal
        )

    def get_lr(self) -> list[Any]:
        """The learning rates of the step that is next, from those of now."""
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        epochs = max(1, self.anneal_epochs)
        before = self.anneal_func(max(0, min(1, (step - 1) / epochs)))
        now = self.anneal_func(max(0, min(1, step / epochs)))
        rates = []
        for group in self.optimizer.param_groups:
            lr, end = group["lr"], group["swa_lr"]
            first = end if before == 1 else (lr - before * end) / (1 - before)
            rates.append(end * now + first * (1 - now))
        return rates

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and the function, for load_state_dict."""
        return {key: value for key, value in super().state_dict().items() if key != "anneal_func"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where state_dict() was taken. The learning rates are the optimizer's to load."""
        super().load_state_dict(state_dict)
        self._set_anneal_func(self._anneal_strategy)
