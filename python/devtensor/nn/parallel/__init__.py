"""Modules on several devices, and in several processes: torch.nn.parallel."""

from __future__ import annotations

from devtensor.nn.parallel.data_parallel import DataParallel, data_parallel
from devtensor.nn.parallel.distributed import DistributedDataParallel
from devtensor.nn.parallel.parallel_apply import parallel_apply
from devtensor.nn.parallel.replicate import replicate
from devtensor.nn.parallel.scatter_gather import gather, scatter

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]


def __dir__() -> list[str]:
    return __all__
