"""Collectives through which gradients flow: torch.distributed.nn."""

from devtensor.distributed.nn import functional as functional
from devtensor.distributed.nn.functional import all_gather, all_reduce

__all__ = ["all_gather", "all_reduce"]
