"""Optimizers by PyTorch's names, options and state: what changes parameters by their gradients."""

from __future__ import annotations

from devtensor.optim import lr_scheduler, swa_utils
from devtensor.optim.adagrad import Adagrad
from devtensor.optim.adam import Adam, AdamW
from devtensor.optim.adaptive import Adadelta, Adamax, NAdam, RAdam
from devtensor.optim.averaging import ASGD, Rprop
from devtensor.optim.factored import Adafactor, Muon
from devtensor.optim.lbfgs import LBFGS
from devtensor.optim.optimizer import Optimizer
from devtensor.optim.rmsprop import RMSprop
from devtensor.optim.sgd import SGD

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
    "swa_utils",
]


def __dir__() -> list[str]:
    return __all__
