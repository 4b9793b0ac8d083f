"""Distances as modules."""

from __future__ import annotations

from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number
from devtensor.nn import functional as F
from devtensor.nn.module import Module


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along dim: see functional.cosine_similarity.

    >>> nn.CosineSimilarity()(dt.tensor([[1.0, 0.0]]), dt.tensor([[3.0, 4.0]]))
    DeviceArray([0.6000], device='cpu', dtype=float32)
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim: int = _need_int("CosineSimilarity", "dim", dim)
        self.eps: float = _need_number("CosineSimilarity", "eps", eps)

    def forward(self, x1: DeviceArray, x2: DeviceArray) -> DeviceArray:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps over the last dimension: see functional.pairwise_distance.

    >>> nn.PairwiseDistance()(dt.tensor([[1.0, 1.0]]), dt.tensor([[4.0, 5.0]]))
    DeviceArray([5.0000], device='cpu', dtype=float32)
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm: float = _need_number("PairwiseDistance", "p", p)
        self.eps: float = _need_number("PairwiseDistance", "eps", eps)
        self.keepdim: bool = _need_bool("PairwiseDistance", "keepdim", keepdim)

    def forward(self, x1: DeviceArray, x2: DeviceArray) -> DeviceArray:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
