"""Datasets, samplers, collating, DataLoader."""

from __future__ import annotations

import collections
from typing import Any

import data_samples as samples
import numpy as np
import pytest
from test_data_workers import run

import devtensor as dt
from devtensor import data

# ---------------------------------------------------------------- datasets


def test_tensor_dataset(device: str) -> None:
    x, y = dt.arange(6, device=device).reshape(3, 2), dt.arange(3, device=device)
    pairs = data.TensorDataset(x, y)
    assert len(pairs) == 3 and [v.tolist() for v in pairs[1]] == [[2, 3], 1]
    assert pairs.tensors == (x, y)
    with pytest.raises(ValueError, match=r"Expected tensors\[1\] to have shape \(3,\), but got \(2,\)"):
        data.TensorDataset(x, dt.zeros(2))
    with pytest.raises(dt.ShapeMismatchError, match="at least 1D"):
        data.TensorDataset(dt.array(1.0))


def test_parts_and_sums() -> None:
    numbers = samples.Squares(10)
    part = data.Subset(numbers, [3, 1])
    assert len(part) == 2 and part[0] == 9
    both = numbers + part
    assert len(both) == 12 and both[10] == 9 and both[-1] == 1 and both[9] == 81
    with pytest.raises(IndexError):
        both[12]
    with pytest.raises(ValueError):
        data.ConcatDataset([])
    with pytest.raises(TypeError):
        data.ConcatDataset([samples.Counting(3)])


def test_chains_and_stacks() -> None:
    chain = samples.Counting(3) + samples.Counting(2)
    assert type(chain) is data.ChainDataset
    alone = list(samples.Counting(3)) + list(samples.Counting(2))
    assert list(chain) == alone
    got = [n for batch in data.DataLoader(chain, 2) for n in batch.tolist()]
    assert got == alone
    with pytest.raises(TypeError, match="ChainDataset only supports IterableDataset, not Squares"):
        list(data.ChainDataset([samples.Squares(3)]))
    stack = data.StackDataset(samples.Squares(3), "abc")
    assert len(stack) == 3 and stack[2] == (4, "c")
    batch = next(iter(data.DataLoader(data.StackDataset(x=samples.Squares(3), y="abc"), 3)))
    assert batch["x"].tolist() == [0, 1, 4] and batch["y"] == ["a", "b", "c"]
    for given, named in (((), {}), (("ab", "abc"), {}), (("ab",), {"y": "ab"})):
        with pytest.raises(ValueError):
            data.StackDataset(*given, **named)


def test_weighted_draws() -> None:
    sampler = data.WeightedRandomSampler([0.0, 1.0, 3.0], 4000, generator=dt.Generator().manual_seed(0))
    drawn = list(sampler)
    assert len(sampler) == len(drawn) == 4000 and 0 not in drawn
    assert 0.7 < drawn.count(2) / 4000 < 0.8
    assert sorted(data.WeightedRandomSampler(dt.tensor([0.2, 0.1, 0.5]), 3, replacement=False)) == [0, 1, 2]
    with pytest.raises(RuntimeError):
        list(data.WeightedRandomSampler([1.0, 1.0], 3, replacement=False))
    for given in (([1.0], 0), ([1.0], 2.0), ([[1.0]], 1), ([1.0], 1, None), (3.0, 1), ("ab", 1)):
        with pytest.raises((ValueError, TypeError)):
            data.WeightedRandomSampler(*given)  # type: ignore[arg-type]


def test_batches_as_pytorch_collates_them() -> None:
    """A float among ints makes floats of all; mappings keep their type, and strings of tuples are tuples."""
    assert data.default_collate([1, 2.5]).tolist() == [1.0, 2.5]
    assert data.default_collate([2.5, 1]).dtype == dt.float64
    assert data.default_collate([True, False]).dtype == dt.bool
    kept = data.default_collate([collections.defaultdict(list, a=1)])
    assert type(kept) is collections.defaultdict and kept["b"] == []
    assert data.default_collate([(dt.ones(1), "a"), (dt.ones(1), "b")])[1] == ("a", "b")


def test_random_split() -> None:
    numbers = samples.Squares(10)
    first, second = data.random_split(numbers, [7, 3], generator=dt.Generator().manual_seed(1))
    assert len(first) == 7 and len(second) == 3
    assert sorted([*first.indices, *second.indices]) == list(range(10))
    again, _ = data.random_split(numbers, [7, 3], generator=dt.Generator().manual_seed(1))
    assert again.indices == first.indices
    assert [len(p) for p in data.random_split(numbers, [0.5, 0.25, 0.25])] == [6, 2, 2]
    assert [len(p) for p in data.random_split(samples.Squares(1), [1])] == [1]
    for wrong in ([7, 4], [0.5, 0.6], [1.5, -0.5], [-1, 11], [3.7, 7.0, 100], [3.7, 7.2], [10.9], [3.5, 6.5],
                  [float("inf")], [float("nan")], range(2**62), [10**5000], [0.5, 10**400]):  # fmt: skip
        with pytest.raises(ValueError):
            data.random_split(numbers, wrong)


def test_datasets_say_what_is_missing() -> None:
    with pytest.raises(NotImplementedError, match="Dataset has no __getitem__"):
        data.Dataset()[0]
    with pytest.raises(NotImplementedError, match="IterableDataset has no __iter__"):
        iter(data.IterableDataset())
    with pytest.raises(NotImplementedError):
        iter(data.Sampler())


# ---------------------------------------------------------------- samplers


def test_samplers() -> None:
    numbers = samples.Squares(10)
    assert list(data.SequentialSampler(numbers)) == list(range(10))
    drawn = list(data.RandomSampler(numbers))
    assert sorted(drawn) == list(range(10)) and drawn != list(range(10))
    dt.manual_seed(3)
    first = list(data.RandomSampler(numbers))
    dt.manual_seed(3)
    assert list(data.RandomSampler(numbers)) == first
    many = data.RandomSampler(numbers, num_samples=23)
    assert len(list(many)) == len(many) == 23
    repeated = list(data.RandomSampler(numbers, replacement=True, num_samples=50))
    assert len(repeated) == 50 and set(repeated) <= set(range(10))
    assert sorted(data.SubsetRandomSampler([5, 7])) == [5, 7]
    batches = data.BatchSampler(data.SequentialSampler(numbers), 4, False)
    assert list(batches) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]] and len(batches) == 3
    assert len(data.BatchSampler(range(10), 4, True)) == len(list(data.BatchSampler(range(10), 4, True))) == 2  # type: ignore[arg-type]
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="batch_size should be a positive integer"):
            data.BatchSampler([1], wrong, False)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="num_samples should be"):
        data.RandomSampler(numbers, num_samples=0)


# ---------------------------------------------------------------- collating

Pair = collections.namedtuple("Pair", "x y")


def test_collating(device: str) -> None:
    x = dt.ones(2, device=device)
    got = data.default_collate([(x, {"a": 1.5, "b": "t"}, Pair(1, True)), (x, {"a": 2.0, "b": "u"}, Pair(2, False))])
    assert got[0].shape == (2, 2) and str(got[0].device) == device
    assert got[1]["a"].dtype == dt.float64 and got[1]["a"].tolist() == [1.5, 2.0]
    assert got[1]["b"] == ["t", "u"]
    assert type(got[2]) is Pair and got[2].x.dtype == dt.int64 and got[2].y.dtype == dt.bool


def test_collating_numpy() -> None:
    got = data.default_collate([np.ones(3, np.float32), np.zeros(3, np.float32)])
    assert got.dtype == dt.float32 and got.tolist() == [[1, 1, 1], [0, 0, 0]]
    assert data.default_collate([np.float32(1), np.float32(2)]).dtype == dt.float32
    assert data.default_collate([np.array(1), np.array(2)]).tolist() == [1, 2]
    kept = data.default_convert({"a": (np.ones(2), 3), "b": "text", "c": [np.str_("t")]})
    assert kept["a"][0].tolist() == [1, 1] and kept["a"][1] == 3 and kept["b"] == "text"


def test_collating_mistakes() -> None:
    with pytest.raises(dt.ShapeMismatchError, match="stack expects each tensor to be equal size"):
        data.default_collate([dt.ones(2), dt.ones(3)])
    with pytest.raises(dt.DeviceMismatchError):
        data.default_collate([dt.ones(2), dt.ones(2, device="cuda")])
    with pytest.raises(RuntimeError, match="equal size"):
        data.default_collate([[1, 2], [1]])
    with pytest.raises(TypeError, match="found <class 'object'>"):
        data.default_collate([object()])
    with pytest.raises(TypeError, match="must contain arrays of numbers"):
        data.default_collate([np.array("a")])


# ---------------------------------------------------------------- DataLoader

WORKERS = pytest.mark.parametrize("workers", [0, 2])


def flat(loader: Any) -> list[Any]:
    return [value for batch in loader for value in batch.tolist()]


@WORKERS
def test_batches_in_order(workers: int) -> None:
    loader = data.DataLoader(samples.Squares(10), batch_size=4, num_workers=workers)
    assert [batch.tolist() for batch in loader] == [[0, 1, 4, 9], [16, 25, 36, 49], [64, 81]]
    assert len(loader) == 3 and loader.dataset[3] == 9
    assert len(data.DataLoader(samples.Squares(10), 4, drop_last=True)) == 2
    assert len(data.DataLoader(samples.Counting(10), 4, drop_last=True)) == 2


@WORKERS
def test_shuffling(workers: int) -> None:
    def order(seed: int) -> list[int]:
        generator = dt.Generator().manual_seed(seed)
        loader = data.DataLoader(samples.Squares(20), 3, shuffle=True, generator=generator, num_workers=workers)
        return flat(loader)

    assert sorted(order(1)) == [i * i for i in range(20)]
    assert order(1) == order(1) != order(2)
    dt.manual_seed(5)
    loader = data.DataLoader(samples.Squares(20), 3, shuffle=True)
    first, second = flat(loader), flat(loader)
    assert first != second


@WORKERS
def test_other_ways_to_sample(workers: int) -> None:
    numbers = samples.Squares(6)
    more = {"num_workers": workers}
    assert flat(data.DataLoader(numbers, 2, sampler=[5, 0], **more)) == [25, 0]
    assert [b.tolist() for b in data.DataLoader(numbers, batch_sampler=[[1], [2, 3]], **more)] == [[1], [4, 9]]
    assert list(data.DataLoader(numbers, batch_size=None, **more)) == [0, 1, 4, 9, 16, 25]
    assert list(data.DataLoader(numbers, 4, collate_fn=sum, **more)) == [14, 41]
    assert list(data.DataLoader(samples.Squares(0), 4, **more)) == []


@WORKERS
def test_streams_of_samples(workers: int) -> None:
    loader = data.DataLoader(samples.Counting(10), batch_size=3, num_workers=workers)
    got = [batch.tolist() for batch in loader]
    if workers:  # each goes through its own half: worker 0 the even numbers
        assert got == [[0, 2, 4], [1, 3, 5], [6, 8], [7, 9]]
    else:
        assert got == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    assert len(loader) == 4
    whole = data.DataLoader(samples.Counting(10), 3, drop_last=True, num_workers=workers)
    assert len(list(whole)) == (2 if workers else 3)
    assert sorted(data.DataLoader(samples.Counting(5), batch_size=None, num_workers=workers)) == [0, 1, 2, 3, 4]


@WORKERS
def test_batches_of_arrays(workers: int, cuda: str) -> None:
    x = dt.arange(20, dtype=dt.float32).reshape(10, 2)
    half = dt.arange(10, dtype=dt.bfloat16)
    loader = data.DataLoader(data.TensorDataset(x, half), 4, num_workers=workers, pin_memory=True)
    batches = list(loader)
    assert [b[0].shape for b in batches] == [(4, 2), (4, 2), (2, 2)]
    assert dt.equal(dt.cat([b[0] for b in batches]), x)
    assert batches[0][1].dtype == dt.bfloat16 and dt.equal(dt.cat([b[1] for b in batches]), half)
    assert all(part.is_pinned() for batch in batches for part in batch)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"num_workers": -1}, "non-negative"),
        ({"timeout": -1}, "non-negative"),
        ({"batch_size": 0}, "positive integer"),
        ({"prefetch_factor": 2}, "num_workers > 0"),
        ({"prefetch_factor": 0, "num_workers": 1}, "positive"),
        ({"persistent_workers": True}, "num_workers > 0"),
        ({"shuffle": True, "sampler": [1]}, "mutually exclusive"),
        ({"batch_sampler": [[1]], "batch_size": 2}, "mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, "mutually exclusive"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        data.DataLoader(samples.Squares(3), **options)
    with pytest.raises(ValueError, match="IterableDataset"):
        data.DataLoader(samples.Counting(3), shuffle=True)


def test_a_stream_without_a_length() -> None:
    with pytest.raises(TypeError):
        len(data.DataLoader(samples.Endless(), 2))
    loader = iter(data.DataLoader(samples.Endless(), 2))
    assert next(loader).tolist() == [0, 1] and next(loader).tolist() == [2, 3]


# ---------------------------------------------------------------- without CUDA, as PyTorch


def test_without_cuda_batches_go_on_unpinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVTENSOR_CUDA", "off")
    script = """
        import devtensor as dt
        from devtensor import data
        loader = data.DataLoader(data.TensorDataset(dt.ones(3)), 2, pin_memory=True)
        print([batch[0].is_pinned() for batch in data.prefetch(loader, "cpu")])
    """
    assert run(script) == "[False, False]\n"


def test_names_of_pytorch() -> None:
    script = """
        import devtensor as torch
        from devtensor.utils.data import DataLoader, TensorDataset
        import devtensor.utils.data as data
        assert torch.utils.data is torch.data is data and DataLoader is data.DataLoader
        import sys
        assert "multiprocessing" not in sys.modules
    """
    run(script)


def test_an_endless_sampler_draws_a_part_at_a_time() -> None:
    endless = dt.data.RandomSampler(range(5), replacement=True, num_samples=10**10)
    assert {i for i, _ in zip(endless, range(3000), strict=False)} == set(range(5))
    assert len(list(dt.data.RandomSampler(range(5), replacement=True, num_samples=1500))) == 1500
