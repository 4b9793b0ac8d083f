"""Data: datasets, the order of their samples, and batches of them. Also devtensor.utils.data, as in PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devtensor.data import distributed
from devtensor.data.collate import default_collate, default_convert
from devtensor.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from devtensor.data.distributed import DistributedSampler
from devtensor.data.loader import DataLoader, prefetch
from devtensor.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

if TYPE_CHECKING:
    from devtensor.data._worker import get_worker_info
else:

    def get_worker_info() -> Any:
        """In a worker process of a DataLoader its WorkerInfo (id, num_workers, seed, dataset), elsewhere None.

        >>> dt.data.get_worker_info() is None
        True
        """
        from devtensor.data import _worker  # which needs multiprocessing

        return _worker.get_worker_info()


__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "distributed",
    "get_worker_info",
    "prefetch",
    "random_split",
]


def __dir__() -> list[str]:
    return __all__
