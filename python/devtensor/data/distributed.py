"""DistributedSampler: each process takes its part of a dataset."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized

from devtensor import _C
from devtensor._C import _need_bool, _need_int
from devtensor.data.sampler import Sampler

__all__ = ["DistributedSampler"]


def __dir__() -> list[str]:
    return __all__


class DistributedSampler(Sampler[int]):
    """Every num_replicas-th index of a dataset, from rank on, so that the processes together take all.

    num_replicas and rank are those of dt.distributed by default. shuffle: in an order that seed and set_epoch decide,
    the same in every process. Each takes as many: the first indices come again at the end, or with drop_last the last
    ones are left out.

    Raises ValueError before init_process_group where num_replicas or rank is not given, and for a rank that is none.

    >>> sampler = dt.data.distributed.DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False)
    >>> list(sampler)
    [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        op = "DistributedSampler"
        if num_replicas is None or rank is None:
            from devtensor import distributed

            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        self.num_replicas: int = _need_int(op, "num_replicas", num_replicas)
        self.rank: int = _need_int(op, "rank", rank)
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(f"Invalid rank {self.rank}, rank should be in the interval [0, {self.num_replicas - 1}]")
        self.dataset = dataset
        self.epoch: int = 0
        self.shuffle: bool = _need_bool(op, "shuffle", shuffle)
        self.drop_last: bool = _need_bool(op, "drop_last", drop_last)
        self.seed: int = _need_int(op, "seed", seed)
        count = len(dataset) // self.num_replicas if self.drop_last else math.ceil(len(dataset) / self.num_replicas)
        self.num_samples: int = count
        self.total_size: int = count * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        if self.shuffle:
            generator = _C.Generator(device="cpu").manual_seed(self.seed + self.epoch)
            indices: list[int] = _C.randperm(count, generator=generator, device="cpu").tolist()
        else:
            indices = list(range(count))
        if not self.drop_last and indices:
            indices = (indices * math.ceil(self.total_size / count))[: self.total_size]
        return iter(indices[: self.total_size][self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Another order in each epoch: call it before each."""
        self.epoch = _need_int("DistributedSampler.set_epoch", "epoch", epoch)
