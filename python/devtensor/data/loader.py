"""DataLoader: batches of a dataset, made here or in worker processes."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypedDict, TypeVar, overload

from devtensor import _C, cuda
from devtensor._C import DeviceArray, _need_bool, _need_device, _need_generator, _need_int, _need_number, _need_str
from devtensor._types import Device
from devtensor.data import collate as collating
from devtensor.data.collate import default_collate as default_collate  # where older programs import it from
from devtensor.data.collate import default_convert as default_convert
from devtensor.data.dataset import Dataset, IterableDataset
from devtensor.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, check_batch_size

if TYPE_CHECKING:
    from typing import Unpack

    import numpy.typing as npt

    # What default_collate makes an array of.
    _Number: TypeAlias = DeviceArray | npt.NDArray[Any] | float

S = TypeVar("S")
B = TypeVar("B")
T = TypeVar("T", covariant=True)
_Order: TypeAlias = "Sampler[Any] | Iterable[Any] | None"


class _Options(TypedDict, total=False):
    pin_memory: bool
    drop_last: bool
    timeout: float
    worker_init_fn: Callable[[int], None] | None
    multiprocessing_context: Any
    generator: _C.Generator | None
    prefetch_factor: int | None
    persistent_workers: bool
    pin_memory_device: str
    in_order: bool


class _BaseDataLoaderIter:
    """PyTorch's class of iterators over a loader, for libraries that ask; those of this one are generators."""


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """The same without workers."""


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """The same with workers."""


class DataLoader(Generic[T]):
    """Batches of a dataset, in order or shuffled; an epoch is one iteration over it.

    batch_size=None gives single samples. shuffle uses generator, or else the one that manual_seed sets. collate_fn
    makes a batch of a list of samples (default_collate). pin_memory puts batches into page-locked memory, and is
    ignored where there is no CUDA. With num_workers processes ("spawn" unless multiprocessing_context says otherwise)
    prefetch_factor batches per worker are made ahead, and come in the same order; dataset and functions are pickled to
    them, those of a notebook or prompt by cloudpickle where that is installed, and a script that starts workers needs
    `if __name__ == "__main__":`.

    Raises ValueError for options that do not go together, PicklingError for what workers cannot be sent, RuntimeError
    where a worker dies or needs longer than timeout seconds; an exception in a worker is raised here with its traceback
    in the text.

    >>> data = dt.data.TensorDataset(dt.arange(5))
    >>> loader = dt.data.DataLoader(data, batch_size=2)
    >>> [len(batch) for (batch,) in loader]
    [2, 2, 1]
    """

    dataset: Dataset[Any]

    # T is what an iteration gives: by the collate_fn, else by what default_collate makes of the samples.
    @overload
    def __init__(
        self: DataLoader[B], dataset: Dataset[S], batch_size: int = 1, shuffle: bool | None = None,
        sampler: _Order = None, batch_sampler: _Order = None, num_workers: int = 0, *,
        collate_fn: Callable[[list[S]], B], **options: Unpack[_Options],
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self: DataLoader[DeviceArray], dataset: Dataset[_Number], batch_size: int = 1, shuffle: bool | None = None,
        sampler: _Order = None, batch_sampler: _Order = None, num_workers: int = 0, **options: Unpack[_Options],
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self: DataLoader[list[DeviceArray]], dataset: Dataset[tuple[_Number, ...]], batch_size: int = 1,
        shuffle: bool | None = None, sampler: _Order = None, batch_sampler: _Order = None, num_workers: int = 0,
        **options: Unpack[_Options],
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self: DataLoader[dict[str, DeviceArray]], dataset: Dataset[dict[str, DeviceArray]], batch_size: int = 1,
        shuffle: bool | None = None, sampler: _Order = None, batch_sampler: _Order = None, num_workers: int = 0,
        **options: Unpack[_Options],
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self: DataLoader[Any], dataset: Dataset[Any], batch_size: int | None = 1, shuffle: bool | None = None,
        sampler: _Order = None, batch_sampler: _Order = None, num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None, pin_memory: bool = False, drop_last: bool = False,
        timeout: float = 0, worker_init_fn: Callable[[int], None] | None = None, multiprocessing_context: Any = None,
        generator: _C.Generator | None = None, *, prefetch_factor: int | None = None,
        persistent_workers: bool = False, pin_memory_device: str = "", in_order: bool = True,
    ) -> None: ...  # fmt: skip
    def __init__(
        self,
        dataset: Dataset[Any],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[Any] | Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: _C.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        num_workers = _need_int("DataLoader", "num_workers", num_workers)
        timeout = _need_number("DataLoader", "timeout", timeout)
        pin_memory = _need_bool("DataLoader", "pin_memory", pin_memory)
        drop_last = _need_bool("DataLoader", "drop_last", drop_last)
        persistent_workers = _need_bool("DataLoader", "persistent_workers", persistent_workers)
        shuffle = None if shuffle is None else _need_bool("DataLoader", "shuffle", shuffle)
        _need_bool("DataLoader", "in_order", in_order)
        _need_str("DataLoader", "pin_memory_device", pin_memory_device)
        _need_generator("DataLoader", "generator", generator)
        if batch_size is not None:
            _need_int("DataLoader", "batch_size", batch_size)
        if prefetch_factor is not None:
            prefetch_factor = _need_int("DataLoader", "prefetch_factor", prefetch_factor)
        for name, function in (("collate_fn", collate_fn), ("worker_init_fn", worker_init_fn)):
            if function is not None and not callable(function):
                raise TypeError(f"DataLoader(): argument '{name}' must be callable, not {type(function).__name__}")
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError("prefetch_factor option could only be specified in multiprocessing: num_workers > 0")
        if prefetch_factor is not None and prefetch_factor <= 0:
            raise ValueError("prefetch_factor option should be positive")
        if num_workers == 0 and persistent_workers:
            raise ValueError("persistent_workers option needs num_workers > 0")
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError("DataLoader with IterableDataset: expected no shuffle, sampler and batch_sampler option")
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
        if batch_sampler is None and batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        self.dataset = dataset
        self.num_workers = num_workers
        self.pin_memory = pin_memory
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.prefetch_factor: int | None = 2 if prefetch_factor is None and num_workers else prefetch_factor
        self.persistent_workers = persistent_workers
        self.batch_size: int | None = None if batch_sampler is not None else batch_size
        self.drop_last = drop_last
        source: Any = dataset
        if sampler is None and not self._iterable and batch_sampler is None:
            sampler = RandomSampler(source, generator=generator) if shuffle else SequentialSampler(source)
        self.sampler = sampler
        if batch_sampler is None and batch_size is not None:
            endless = itertools.repeat(0) if self._iterable else sampler
            assert endless is not None
            check_batch_size("DataLoader", batch_size)
            batch_sampler = BatchSampler(endless, batch_size, drop_last)
        self.batch_sampler = batch_sampler
        automatic = collating.default_convert if batch_sampler is None else collating.default_collate
        self.collate_fn: Callable[[Any], Any] = automatic if collate_fn is None else collate_fn
        self._workers: Any = None

    def _indices(self) -> Iterator[Any]:
        """What to fetch, one entry for each batch; endless for an IterableDataset."""
        if self.batch_sampler is not None:
            return iter(self.batch_sampler)
        return itertools.repeat(None) if self._iterable else iter(self.sampler or ())

    def _task(self, worker: int) -> Any:
        from devtensor.data._worker import Task

        return Task(
            self.dataset,
            self.collate_fn,
            self.batch_sampler is not None,
            self._iterable,
            self.drop_last,
            self.worker_init_fn,
            worker,
            self.num_workers,
        )

    def __iter__(self) -> Iterator[T]:
        batches = self._here() if self.num_workers == 0 else self._elsewhere()
        return _pinned(batches) if self.pin_memory else batches

    def _here(self) -> Iterator[Any]:
        from devtensor.data._worker import Fetcher

        fetcher = Fetcher(self._task(0))
        for indices in self._indices():
            try:
                batch = fetcher.fetch(indices)
            except StopIteration:
                return
            yield batch

    def _elsewhere(self) -> Iterator[Any]:
        from devtensor.data._pool import Pool

        pool = self._workers
        if pool is None or pool.closed:
            pool = Pool([self._task(i) for i in range(self.num_workers)], self.multiprocessing_context, self.timeout)
            self._workers = pool if self.persistent_workers else None
        seed = int(_C.randint(0, 2**62, (1,), generator=self.generator, device="cpu"))
        assert self.prefetch_factor is not None
        return pool.batches(self._indices(), seed, self.prefetch_factor, keep=self.persistent_workers)  # type: ignore[no-any-return]

    def __len__(self) -> int:
        """The number of batches. Raises TypeError where the dataset has no len()."""
        if not self._iterable:
            counted: Any = self.sampler if self.batch_sampler is None else self.batch_sampler
            return len(counted)
        source: Any = self.dataset
        count = len(source)
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


def _pinned(batches: Iterator[Any]) -> Iterator[Any]:
    usable = cuda.is_available()
    for batch in batches:
        yield collating.pin(batch) if usable else batch


class prefetch(Generic[T]):
    """The batches of a loader on a device, moved ahead of their use.

    Up to depth batches are copied ahead. On a CUDA device the copies run on a stream of their own, beside other work,
    best from page-locked memory (DataLoader(pin_memory=True)). len() is that of the loader. Several threads may take
    batches from one iterator: each batch goes to one of them.

    Raises DeviceNotAvailableError, OutOfMemoryError, and whatever the loader raises, after the batches before that.

    >>> data = dt.data.TensorDataset(dt.arange(4))
    >>> loader = dt.data.DataLoader(data, batch_size=2)
    >>> [batch.device for (batch,) in dt.data.prefetch(loader, "cuda")]
    [device(type='cuda', index=0), device(type='cuda', index=0)]
    """

    def __init__(self, loader: Iterable[T], device: Device, depth: int = 2) -> None:
        depth = _need_int("prefetch", "depth", depth)
        if depth < 1:
            raise ValueError(f"depth must be at least 1, but got {depth}")
        self.loader = loader
        self.device: _C.device = _need_device("prefetch", "device", device)
        self.depth = depth

    def __len__(self) -> int:
        loader: Any = self.loader
        return len(loader)

    def __iter__(self) -> Iterator[T]:
        return _Ahead(self.loader, self.device, self.depth)


class _Ahead:
    """One iteration of prefetch."""

    def __init__(self, loader: Iterable[Any], device: Any, depth: int) -> None:
        self._batches: Iterator[Any] | None = None
        self._loader = loader
        self._device = device
        self._depth = depth
        self._stream = cuda.Stream(device) if device.type == "cuda" else None
        self._ready: deque[tuple[Any, Any]] = deque()  # with what is copied from, as a copy under way reads it
        self._ended = False
        self._error: Exception | None = None
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        with self._lock:
            while not self._ended and len(self._ready) <= self._depth:
                self._fetch()
            if self._ready:
                return self._ready.popleft()[0]
            if self._error is None:
                raise StopIteration
            try:
                raise self._error
            finally:
                self._error = None  # it refers to this frame now

    def _fetch(self) -> None:
        """One more batch, or the end; what the loader raises is kept until its turn comes."""
        try:
            if self._batches is None:
                self._batches = iter(self._loader)
            batch = next(self._batches)
            with cuda.stream(self._stream):
                self._ready.append((collating.move(batch, self._device), batch))
        except StopIteration:
            self._ended, self._batches = True, None
        except Exception as error:
            self._ended, self._batches, self._error = True, None, error
