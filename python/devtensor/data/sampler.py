"""The order in which a DataLoader takes samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set, Sized
from typing import Any, Generic, TypeVar

from devtensor import _C
from devtensor._C import _need_bool, _need_generator, _need_int

T = TypeVar("T", covariant=True)


class Sampler(Generic[T]):
    """Indices of samples. A subclass has __iter__ and __len__.

    >>> class Reversed(dt.data.Sampler):
    ...     def __iter__(self):
    ...         return iter([2, 1, 0])
    >>> list(Reversed())
    [2, 1, 0]
    """

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ...

    >>> list(dt.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """All samples in random order; with replacement, each draw is from all of them.

    num_samples draws instead of as many as there are. Without a generator, manual_seed decides.

    >>> sorted(dt.data.RandomSampler(range(3)))
    [0, 1, 2]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: _C.Generator | None = None,
    ) -> None:
        replacement = _need_bool("RandomSampler", "replacement", replacement)
        _need_generator("RandomSampler", "generator", generator)
        num_samples = None if num_samples is None else _need_int("RandomSampler", "num_samples", num_samples)
        if num_samples is not None and num_samples <= 0:
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={_C._shown(num_samples)}"
            )
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator

    @property
    def num_samples(self) -> int:
        """How many are drawn."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        count, wanted = len(self.data_source), self.num_samples
        while self.replacement and wanted > 0:  # a part at a time: endless samplers ask for 10 ** 10
            part = min(wanted, 1024)
            yield from _C.randint(0, count, (part,), generator=self.generator, device="cpu").tolist()
            wanted -= part
        while wanted > 0:
            order: list[int] = _C.randperm(count, generator=self.generator, device="cpu").tolist()
            yield from order[:wanted]
            wanted -= count

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Some indices in random order.

    >>> sorted(dt.data.SubsetRandomSampler([1, 3]))
    [1, 3]
    """

    def __init__(self, indices: Sequence[int], generator: _C.Generator | None = None) -> None:
        self.indices = indices
        self.generator: _C.Generator | None = _need_generator("SubsetRandomSampler", "generator", generator)

    def __iter__(self) -> Iterator[int]:
        for i in _C.randperm(len(self.indices), generator=self.generator, device="cpu").tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """num_samples places of weights, each drawn in proportion to its weight, with or without replacement.

    Raises ValueError for weights of other than one dimension and for num_samples below 1, and RuntimeError, when it is
    gone through, for more samples than weights without replacement.

    >>> list(dt.data.WeightedRandomSampler([0.0, 2.5, 0.0], 3))
    [1, 1, 1]
    """

    weights: _C.DeviceArray

    def __init__(
        self,
        weights: Sequence[float] | _C.DeviceArray,
        num_samples: int,
        replacement: bool = True,
        generator: _C.Generator | None = None,
    ) -> None:
        op = "WeightedRandomSampler"
        num_samples, replacement = _need_int(op, "num_samples", num_samples), _need_bool(op, "replacement", replacement)
        if num_samples <= 0:
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={_C._shown(num_samples)}"
            )
        if not hasattr(weights, "__len__") or isinstance(weights, str | bytes | Mapping | Set):
            raise TypeError(f"{op}(): argument 'weights' must be a sequence of numbers, not {type(weights).__name__}")
        device = weights.device if isinstance(weights, _C.DeviceArray) else "cpu"
        self.weights = _C.as_tensor(weights, dtype=_C.float64, device=device)
        if self.weights.ndim != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator: _C.Generator | None = _need_generator(op, "generator", generator)

    def __iter__(self) -> Iterator[int]:
        drawn = self.weights.multinomial(self.num_samples, self.replacement, generator=self.generator)
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


def check_batch_size(op: str, batch_size: object) -> None:
    """Raises ValueError for what is no number of samples above 0."""
    if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
        shown = _C._shown(batch_size)
        raise ValueError(f"{op}(): batch_size should be a positive integer value, but got batch_size={shown}")


class BatchSampler(Sampler[list[int]]):
    """Lists of batch_size indices from another sampler; the last may be shorter, unless drop_last.

    >>> list(dt.data.BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        check_batch_size("BatchSampler", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(
                f"BatchSampler(): drop_last should be a boolean value, but got drop_last={_C._shown(drop_last)}"
            )
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        sampler: Any = self.sampler
        count = len(sampler)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
