"""Schedules of the learning rate by PyTorch's names. Each sets group["lr"] when it is made and at every step().

Numbers are formed in PyTorch's order, so that a schedule has the same bits, and state_dict() has PyTorch's keys.
"""

from __future__ import annotations

from devtensor.optim.lr_scheduler.base import LRScheduler
from devtensor.optim.lr_scheduler.combined import ChainedScheduler, SequentialLR
from devtensor.optim.lr_scheduler.curves import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LinearLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from devtensor.optim.lr_scheduler.cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from devtensor.optim.lr_scheduler.lambdas import LambdaLR, MultiplicativeLR
from devtensor.optim.lr_scheduler.plateau import ReduceLROnPlateau

_LRScheduler = LRScheduler  # its name before PyTorch 2.0, which old schedules derive from

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


def __dir__() -> list[str]:
    return __all__
