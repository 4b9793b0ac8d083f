"""Collections of samples."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from devtensor import _C
from devtensor._C import DeviceArray, _need_generator, _need_number

S = TypeVar("S", covariant=True)
T = TypeVar("T")


class Dataset(Generic[S]):
    """Samples by index. A subclass has __getitem__(index) and, for most uses, __len__.

    >>> class Squares(dt.data.Dataset):
    ...     def __getitem__(self, index):
    ...         return index**2
    ...     def __len__(self):
    ...         return 4
    >>> Squares()[3]
    9
    """

    def __getitem__(self, index: Any) -> S:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__")

    def __add__(self, other: Dataset[T]) -> ConcatDataset[S | T]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[S]):
    """Samples in the order in which they come. A subclass has __iter__.

    In worker processes each has a copy; get_worker_info() tells it which part is its own.

    >>> class Lines(dt.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter([1, 2, 3])
    >>> list(dt.data.DataLoader(Lines(), batch_size=2))
    [DeviceArray([1, 2], device='cpu', dtype=int64), DeviceArray([3], device='cpu', dtype=int64)]
    """

    def __iter__(self) -> Iterator[S]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")

    def __add__(self, other: Dataset[T]) -> ChainDataset[S | T]:  # type: ignore[override]
        return ChainDataset([self, other])


class ChainDataset(IterableDataset[S]):
    """The samples of several IterableDatasets, one after another.

    Raises TypeError, when it is gone through, for what is no IterableDataset.

    >>> class Lines(dt.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter("ab")
    >>> list(dt.data.ChainDataset([Lines(), Lines()]))
    ['a', 'b', 'a', 'b']
    """

    datasets: Iterable[Dataset[S]]

    def __init__(self, datasets: Iterable[Dataset[S]]) -> None:
        self.datasets = datasets

    def _parts(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise TypeError(f"ChainDataset only supports IterableDataset, not {type(dataset).__name__}")
            yield dataset

    def __iter__(self) -> Iterator[S]:
        for part in self._parts():
            yield from part

    def __len__(self) -> int:
        """The samples of all. Raises TypeError where one has no len()."""
        return sum(len(part) for part in self._parts())


class TensorDataset(Dataset[tuple[DeviceArray, ...]]):
    """Sample i is the tuple of the i-th entries of some arrays, which have the same first size.

    Raises ShapeMismatchError (a ValueError, as all of them) for arrays of other sizes.

    >>> dt.data.TensorDataset(dt.zeros(4, 2), dt.arange(4))[1]
    (DeviceArray([0., 0.], device='cpu', dtype=float32), DeviceArray(1, device='cpu', dtype=int64))
    """

    tensors: tuple[DeviceArray, ...]

    def __init__(self, *tensors: DeviceArray) -> None:
        for i, tensor in enumerate(tensors):
            names, arrays = ("tensors[0]", f"tensors[{i}]"), (tensors[0], tensor)
            _C._check_rank("TensorDataset", names, arrays, 1, 1, 64)
            _C._check_shape("TensorDataset", names, arrays, 1, [tensors[0].shape[0]] + [-1] * (tensor.ndim - 1))
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[DeviceArray, ...]:
        return tuple([tensor[index] for tensor in self.tensors])

    def __len__(self) -> int:
        return self.tensors[0].shape[0] if self.tensors else 0


class Subset(Dataset[S]):
    """The samples of a dataset at some indices.

    >>> len(dt.data.Subset(dt.data.TensorDataset(dt.arange(10)), [0, 5]))
    2
    """

    dataset: Dataset[S]
    indices: Sequence[int]

    def __init__(self, dataset: Dataset[S], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> S:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset[S]):
    """Several datasets one after another.

    >>> len(dt.data.ConcatDataset([dt.data.TensorDataset(dt.zeros(3)), dt.data.TensorDataset(dt.ones(2))]))
    5
    """

    datasets: list[Dataset[S]]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Dataset[S]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise TypeError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(itertools.accumulate(_size(dataset) for dataset in self.datasets))

    def __getitem__(self, index: Any) -> S:
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(f"index {index} is out of range for {len(self)} samples")
        which = bisect.bisect_right(self.cumulative_sizes, place)
        return self.datasets[which][place - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class StackDataset(Dataset[Any]):
    """Sample i has the i-th sample of each dataset: a tuple of them, or a dictionary where they are given by name.

    Raises ValueError for datasets of different sizes, for none, and for some of both kinds.

    >>> dt.data.StackDataset(x=[1, 2], y="ab")[1]
    {'x': 2, 'y': 'b'}
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "StackDataset takes datasets as arguments, for tuples, or by name, for dictionaries, but not both"
            )
        self.datasets = args or kwargs
        parts = list(args) or list(kwargs.values())
        if not parts:
            raise ValueError("At least one dataset should be passed")
        sizes = list(map(_size, parts))
        if len(set(sizes)) > 1:
            raise ValueError(f"Size mismatch between datasets: {', '.join(map(str, sizes))}")
        self._length = sizes[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple([dataset[index] for dataset in self.datasets])

    def __len__(self) -> int:
        return self._length


def _size(dataset: Any) -> int:
    return len(dataset)


def _part_sizes(lengths: Iterable[float], count: int) -> list[int]:
    """Numbers of samples that make count; lengths may be fractions that make 1, and are read no further than needed."""
    parts: list[float] = []
    total = 0.0
    for length in lengths:
        part = _need_number("random_split", "lengths", length)
        if not part >= 0:
            raise ValueError(f"lengths must be numbers from 0, but got {part}")
        parts.append(part)
        if part > count + 1 or (total := total + part) > count + 1:  # an int may be more than a float can hold
            raise ValueError(
                f"Sum of input lengths does not equal the length of the input dataset: over {count + 1} and {count}"
            )
    if math.isclose(sum(parts), 1) and sum(parts) <= 1 and not all(isinstance(n, int) for n in parts):
        sizes = [math.floor(count * part) for part in parts]
        for i in range(count - sum(sizes)):
            sizes[i % len(sizes)] += 1
    else:
        sizes = [int(n) for n in parts]
        if sizes != parts:
            raise ValueError(f"lengths must be whole numbers, or fractions that make 1, but got {parts}")
    if sum(sizes) != count:
        raise ValueError(
            f"Sum of input lengths does not equal the length of the input dataset: {sum(sizes)} and {count}"
        )
    return sizes


def random_split(
    dataset: Dataset[T], lengths: Sequence[float], generator: _C.Generator | None = None
) -> list[Subset[T]]:
    """Parts of a dataset with random samples: lengths are numbers of samples, or fractions that make 1.

    What fractions leave over goes to the first parts, one each. Raises ValueError for lengths that do not fit.

    >>> [len(part) for part in dt.data.random_split(dt.data.TensorDataset(dt.arange(10)), [0.8, 0.2])]
    [8, 2]
    """
    if not isinstance(lengths, Iterable):
        raise TypeError(
            f"random_split(): argument 'lengths' must be a sequence of numbers, not {type(lengths).__name__}"
        )
    _need_generator("random_split", "generator", generator)
    count = _size(dataset)
    sizes = _part_sizes(lengths, count)
    order: list[int] = _C.randperm(count, generator=generator, device="cpu").tolist()
    ends = list(itertools.accumulate(sizes))
    return [Subset(dataset, order[end - size : end]) for size, end in zip(sizes, ends, strict=True)]
