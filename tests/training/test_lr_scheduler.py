"""Schedules of the learning rate: PyTorch's numbers to the bit, its state, its errors."""

from __future__ import annotations

import copy
import functools
import inspect
import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import devtensor as dt
from devtensor.optim import lr_scheduler

EPOCHS = 200


class Idle(dt.optim.Optimizer):
    """Changes nothing; its options are those that schedules look for."""

    def __init__(self, groups: list[dict[str, Any]], **defaults: Any) -> None:
        super().__init__(groups, {"lr": 0.1, **defaults})

    def step(self, closure: Any = None) -> None:
        return None


def ours(options: dict[str, Any]) -> Idle:
    return Idle([{"params": [dt.ones(2)]}, {"params": [dt.ones(3)], "lr": 0.3}], **options)


class Scaled:
    """A callable object, whose attributes are state."""

    def __init__(self, by: float) -> None:
        self.by = by

    def __call__(self, epoch: int) -> float:
        return 1 / (1 + self.by * epoch)


Make = Callable[[Any, Any], Any]  # of a library's schedulers and an optimizer
SCHEDULES: dict[str, Make] = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, lambda epoch: 0.95**epoch),
    "LambdaLR of a list": lambda s, o: s.LambdaLR(o, [lambda epoch: epoch // 30, Scaled(0.1)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda epoch: 0.9 if epoch % 3 else 1.1),
    "StepLR": lambda s, o: s.StepLR(o, 30, gamma=0.3),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [80, 30, 30], gamma=0.3),
    "ConstantLR": lambda s, o: s.ConstantLR(o, factor=0.3, total_iters=7),
    "ConstantLR of 0 epochs": lambda s, o: s.ConstantLR(o, total_iters=0),
    "LinearLR": lambda s, o: s.LinearLR(o, start_factor=0.2, end_factor=0.9, total_iters=60),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, total_iters=150, power=1.7),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, gamma=0.97),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, T_max=37, eta_min=0.01),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, T_0=10),
    "CosineAnnealingWarmRestarts that grow": lambda s, o: s.CosineAnnealingWarmRestarts(o, 7, 2, eta_min=0.02),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, [0.5, 0.7], step_size_up=13, step_size_down=20),
    "CyclicLR triangular2": lambda s, o: s.CyclicLR(o, [0.01, 0.02], 0.5, step_size_up=13, mode="triangular2"),
    "CyclicLR exp_range": lambda s, o: s.CyclicLR(o, 0.01, 0.5, step_size_up=13, mode="exp_range", gamma=0.99),
    "CyclicLR of a function": lambda s, o: s.CyclicLR(
        o, 0.01, 0.5, step_size_up=13, scale_fn=Scaled(0.5), scale_mode="iterations", cycle_momentum=False
    ),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, max_lr=0.7, total_steps=EPOCHS),
    "OneCycleLR linear": lambda s, o: s.OneCycleLR(
        o, [0.7, 0.9], epochs=20, steps_per_epoch=10, anneal_strategy="linear", cycle_momentum=False
    ),
    "OneCycleLR in three phases": lambda s, o: s.OneCycleLR(
        o, 0.7, total_steps=EPOCHS, pct_start=0.25, three_phase=True, div_factor=10.0, final_div_factor=100.0
    ),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, factor=0.1, total_iters=2), s.ExponentialLR(o, gamma=0.9), s.StepLR(o, 9)], [20, 60]
    ),
    "SequentialLR after a warm-up": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, total_iters=10), s.CosineAnnealingLR(o, T_max=190)], milestones=[10]
    ),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler(
        [s.ConstantLR(o, factor=0.1, total_iters=20), s.ExponentialLR(o, gamma=0.95)], optimizer=o
    ),
    "SequentialLR of ChainedScheduler": lambda s, o: s.SequentialLR(
        o,
        [s.ChainedScheduler([s.LinearLR(o, total_iters=9), s.StepLR(o, 5)]), s.ExponentialLR(o, gamma=0.95)],
        [20],
    ),
}
OPTIONS: list[dict[str, Any]] = [{"momentum": 0.9}, {"betas": (0.9, 0.999)}]


def of_pytorch(torch: Any, options: dict[str, Any]) -> Any:
    kind = torch.optim.SGD if "momentum" in options else torch.optim.Adam
    return kind([{"params": [torch.ones(2)]}, {"params": [torch.ones(3)], "lr": 0.3}], lr=0.1, **options)


def course(optimizer: Any, scheduler: Any, steps: int = EPOCHS - 1, start: int = 0) -> list[Any]:
    """What the groups hold after each step."""
    seen = []
    for epoch in range(start, start + steps):
        optimizer.step()
        if type(scheduler).__name__ == "ReduceLROnPlateau":
            scheduler.step(measure(epoch))
        else:
            scheduler.step()
        assert scheduler.get_last_lr() == [group["lr"] for group in optimizer.param_groups]
        seen.append([{k: g[k] for k in ("lr", "momentum", "betas") if k in g} for g in optimizer.param_groups])
    return seen


def measure(epoch: int) -> float:
    """Falls, with plateaus."""
    return 2.0 - math.floor(epoch / 25) * 0.2 + 0.01 * math.sin(epoch)


PLATEAUS: dict[str, Make] = {
    "plateau": lambda s, o: s.ReduceLROnPlateau(o, patience=3),
    "plateau, max": lambda s, o: s.ReduceLROnPlateau(o, "max", factor=0.5, patience=5, cooldown=4, min_lr=[0.01, 0.02]),
    "plateau, abs": lambda s, o: s.ReduceLROnPlateau(o, patience=2, threshold=0.1, threshold_mode="abs", min_lr=1e-3),
    "plateau, max, abs": lambda s, o: s.ReduceLROnPlateau(o, "max", patience=2, threshold=0.1, threshold_mode="abs"),
}
ALL = SCHEDULES | PLATEAUS


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("options", OPTIONS, ids=["momentum", "betas"])
@pytest.mark.parametrize("name", ALL)
def test_the_numbers_are_pytorchs(name: str, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    theirs = of_pytorch(torch, options)
    wanted = course(theirs, ALL[name](torch.optim.lr_scheduler, theirs))
    optimizer = ours(options)
    assert course(optimizer, ALL[name](lr_scheduler, optimizer)) == wanted


class Late:
    """The schedulers of a library, each to begin after epoch 5."""

    def __init__(self, library: Any) -> None:
        self.library = library

    def __getattr__(self, name: str) -> Any:
        kind = getattr(self.library, name)
        takes_it = "last_epoch" in inspect.signature(kind).parameters
        return functools.partial(kind, last_epoch=5) if takes_it else kind


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [name for name in SCHEDULES if "Sequential" not in name and "Chained" not in name])
def test_one_that_begins_later_is_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    both = []
    theirs = of_pytorch(torch, OPTIONS[0])
    for optimizer, library in ((ours(OPTIONS[0]), lr_scheduler), (theirs, torch.optim.lr_scheduler)):
        for group in optimizer.param_groups:
            group |= {"initial_lr": group["lr"], "max_lr": 0.7, "min_lr": 0.001}
            group |= {"base_momentum": 0.8, "max_momentum": 0.95}
        scheduler = SCHEDULES[name](Late(library), optimizer)
        seen = course(optimizer, scheduler, 20)
        scheduler._step_count = 0  # as a program that goes on may do
        both.append([*seen, *course(optimizer, scheduler, 20)])
    assert both[0] == both[1]


@pytest.mark.parametrize("name", ALL)
def test_a_loaded_state_goes_on(name: str) -> None:
    whole = ours(OPTIONS[0])
    wanted = course(whole, ALL[name](lr_scheduler, whole))
    first = ours(OPTIONS[0])
    before = ALL[name](lr_scheduler, first)
    course(first, before, 60)
    second = ours(OPTIONS[0])
    after = ALL[name](lr_scheduler, second)
    after.load_state_dict(copy.deepcopy(before.state_dict()))
    second.load_state_dict(first.state_dict())
    assert course(second, after, EPOCHS - 61, 60) == wanted[60:]


@pytest.mark.filterwarnings("ignore:Detected call")  # PyTorch's SequentialLR of ChainedScheduler
@pytest.mark.parametrize("name", ALL)
def test_state_goes_to_pytorch_and_back(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    theirs, mine = of_pytorch(torch, OPTIONS[0]), ours(OPTIONS[0])
    there, here = ALL[name](torch.optim.lr_scheduler, theirs), ALL[name](lr_scheduler, mine)
    course(theirs, there, 20)
    assert {*here.state_dict()} == {*there.state_dict()} - {"_get_lr_called_within_step"}
    here.load_state_dict(there.state_dict())
    for group, loaded in zip(mine.param_groups, theirs.param_groups, strict=True):
        group.update({key: value for key, value in loaded.items() if key != "params"})
    wanted = course(theirs, there, 20, 20)
    assert course(mine, here, 20, 20) == wanted
    there.load_state_dict(here.state_dict())
    assert course(theirs, there, 20, 40) == course(mine, here, 20, 40)


@pytest.mark.filterwarnings("ignore:step.epoch.")
@pytest.mark.parametrize("name", [*SCHEDULES][1:11])
def test_an_epoch_of_ones_own(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    theirs, mine = of_pytorch(torch, OPTIONS[0]), ours(OPTIONS[0])
    there, here = SCHEDULES[name](torch.optim.lr_scheduler, theirs), SCHEDULES[name](lr_scheduler, mine)
    for epoch in (3, 40, 7):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            there.step(epoch)
            here.step(epoch)
        assert here.get_last_lr() == there.get_last_lr()


def test_restarts_take_parts_of_an_epoch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    theirs, mine = of_pytorch(torch, OPTIONS[0]), ours(OPTIONS[0])
    there = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(theirs, 7, 2)
    here = lr_scheduler.CosineAnnealingWarmRestarts(mine, 7, 2)
    for i in range(300):
        there.step(i / 9)
        here.step(i / 9)
        assert here.get_last_lr() == there.get_last_lr()


def test_a_learning_rate_in_an_array_stays_there() -> None:
    lr = dt.tensor(1.0)
    optimizer = Idle([{"params": [dt.ones(1)], "lr": lr}])
    scheduler = lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is lr and lr.item() == 0.5
    assert scheduler.get_last_lr()[0].item() == 0.5 and scheduler.get_last_lr()[0] is not lr


def test_a_step_too_early_warns() -> None:
    optimizer = ours({})
    scheduler = lr_scheduler.StepLR(optimizer, 3)
    with pytest.warns(
        UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before `optimizer.step\(\)`"
    ) as seen:
        scheduler.step()
    assert seen[0].filename == __file__
    optimizer, scheduler = ours({}), lr_scheduler.StepLR(ours({}), 3)
    scheduler.optimizer.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler.step()


def sgd() -> Idle:
    return ours({"momentum": 0.9})


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no optimizer": (lambda: lr_scheduler.StepLR(dt.ones(2), 3), TypeError, "is not an Optimizer"),  # type: ignore[arg-type]
    "nothing to resume": (lambda: lr_scheduler.StepLR(sgd(), 3, last_epoch=4), KeyError, "'initial_lr' is not spec"),
    "lambdas": (lambda: lr_scheduler.LambdaLR(sgd(), [len]), ValueError, "Expected 2 lr_lambdas, but got 1"),  # type: ignore[list-item]
    "no lambda": (lambda: lr_scheduler.MultiplicativeLR(sgd(), 0.1), TypeError, "should be a function, but got float"),  # type: ignore[arg-type]
    "factor": (lambda: lr_scheduler.ConstantLR(sgd(), 2.0), ValueError, "between 0 and 1"),
    "start": (lambda: lr_scheduler.LinearLR(sgd(), 0.0), ValueError, "greater than 0"),
    "end": (lambda: lr_scheduler.LinearLR(sgd(), end_factor=2.0), ValueError, "between 0 and 1"),
    "T_0": (lambda: lr_scheduler.CosineAnnealingWarmRestarts(sgd(), 0), ValueError, "positive integer T_0, but got 0"),
    "T_mult": (lambda: lr_scheduler.CosineAnnealingWarmRestarts(sgd(), 1, 0), ValueError, "T_mult >= 1, but got 0"),
    "base_lr": (
        lambda: lr_scheduler.CyclicLR(sgd(), [0.1], 1.0),
        ValueError,
        "base_lr has 1 values, param_groups has 2",
    ),
    "mode": (lambda: lr_scheduler.CyclicLR(sgd(), 0.1, 1.0, mode="up"), ValueError, "mode is invalid"),  # type: ignore[arg-type]
    "no momentum": (lambda: lr_scheduler.CyclicLR(ours({}), 0.1, 1.0), ValueError, "must support momentum or beta1"),
    "no steps": (lambda: lr_scheduler.OneCycleLR(sgd(), 0.1), ValueError, "total_steps OR"),
    "steps": (lambda: lr_scheduler.OneCycleLR(sgd(), 0.1, 0), ValueError, "positive integer total_steps, but got 0"),
    "pct_start": (lambda: lr_scheduler.OneCycleLR(sgd(), 0.1, 9, pct_start=3.0), ValueError, "but got 3.0"),
    "strategy": (lambda: lr_scheduler.OneCycleLR(sgd(), 0.1, 9, anneal_strategy="up"), ValueError, "instead got up"),  # type: ignore[arg-type]
    "reduction": (lambda: lr_scheduler.ReduceLROnPlateau(sgd(), factor=1.0), ValueError, "should be < 1.0"),
    "min_lrs": (lambda: lr_scheduler.ReduceLROnPlateau(sgd(), min_lr=[0.1]), ValueError, "expected 2 min_lrs, got 1"),
    "better": (lambda: lr_scheduler.ReduceLROnPlateau(sgd(), "least"), ValueError, "mode least is unknown"),  # type: ignore[arg-type]
    "none": (lambda: lr_scheduler.SequentialLR(sgd(), [], []), ValueError, "at least one scheduler"),
    "none chained": (lambda: lr_scheduler.ChainedScheduler([]), ValueError, "at least one scheduler"),
    "milestones": (
        lambda: (o := sgd()) and lr_scheduler.SequentialLR(o, [lr_scheduler.StepLR(o, 2)], [3]),
        ValueError,
        "number of schedulers 1 and the number of milestones to be equal to 1",
    ),
    "other optimizer": (
        lambda: lr_scheduler.ChainedScheduler([lr_scheduler.StepLR(sgd(), 2)], sgd()),
        ValueError,
        "at index 0, StepLR, belongs to another Idle",
    ),
    "plateau inside": (
        lambda: lr_scheduler.ChainedScheduler([lr_scheduler.ReduceLROnPlateau(sgd())]),
        ValueError,
        "does not support `ReduceLROnPlateau`",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_is_refused(name: str) -> None:
    call, kind, text = WRONG[name]
    with pytest.raises(kind, match=text.replace("(", r"\(")):
        call()


def test_one_cycle_ends() -> None:
    optimizer = sgd()
    scheduler = lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=3)
    course(optimizer, scheduler, 3)
    with pytest.raises(ValueError, match=r"Tried to step 4 times. The specified number of total steps is 3"):
        scheduler.step()
