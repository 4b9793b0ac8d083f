"""Datasets, samplers, collating, DataLoader with and without workers, prefetch."""

from __future__ import annotations

import collections
import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import data_samples as samples
import numpy as np
import pytest
from support import REAL

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
                  [float("inf")], [float("nan")], range(2**62)):  # fmt: skip
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


# ---------------------------------------------------------------- workers


def children() -> set[int]:
    """Processes that this one has started and that are alive."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            command = stat.with_name("cmdline").read_text()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and fields[0] != "Z" and "resource_tracker" not in command:
            found.add(int(stat.parent.name))
    return found


def test_workers_are_where_they_should_be() -> None:
    before = children()
    loader = data.DataLoader(samples.Who(4), 1, num_workers=2, worker_init_fn=samples.mark, prefetch_factor=1)
    seen = list(loader)
    assert [s["worker"][0] for s in seen] == [0, 1, 0, 1]
    assert [s["workers"][0] for s in seen] == [2] * 4
    assert [s["mark"][0] for s in seen] == ["worker 0", "worker 1"] * 2
    assert os.getpid() not in {int(s["pid"][0]) for s in seen}
    assert seen[0]["random"] != seen[1]["random"]
    assert children() == before
    assert data.get_worker_info() is None


def test_random_numbers_in_workers_follow_the_seed() -> None:
    def draw() -> list[float]:
        generator = dt.Generator().manual_seed(7)
        loader = data.DataLoader(samples.Who(4), 1, num_workers=2, generator=generator)
        return [float(s["random"][0]) for s in loader]

    assert draw() == draw()


@pytest.mark.parametrize("context", ["fork", "forkserver"])
def test_other_ways_to_start(context: str) -> None:
    if context == "fork" and REAL:
        pytest.skip("a process that uses a real GPU cannot be forked")
    script = f"""
        import data_samples as samples
        from devtensor import data
        if __name__ == "__main__":
            loader = data.DataLoader(samples.Squares(10), 4, num_workers=2, multiprocessing_context="{context}")
            print([batch.tolist() for batch in loader])
    """
    assert run(script) == "[[0, 1, 4, 9], [16, 25, 36, 49], [64, 81]]\n"


def run(script: str, expected: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == expected, done.stderr
    return done.stdout if expected == 0 else done.stderr


def environment() -> dict[str, str]:
    paths = [str(Path(__file__).parent), str(Path(dt.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def test_persistent_workers() -> None:
    before = children()
    loader = data.DataLoader(samples.Who(4), 1, num_workers=2, persistent_workers=True)
    first = {int(s["pid"][0]) for s in loader}
    assert {int(s["pid"][0]) for s in loader} == first
    half = iter(loader)
    next(half)
    assert [s["worker"][0] for s in loader] == [0, 1, 0, 1]
    with pytest.raises(RuntimeError, match="another iteration has begun"):
        next(half)
    assert len(children() - before) == 2
    del loader, half
    assert children() == before


def test_dropped_iterations_end_their_workers() -> None:
    before = children()
    loader = data.DataLoader(samples.Squares(100), 1, num_workers=2)
    batches = iter(loader)
    next(batches)
    assert len(children() - before) == 2
    del batches
    assert children() == before
    iter(loader)
    assert children() == before


@pytest.mark.parametrize("at", [0, 5])
def test_an_error_in_a_worker(at: int) -> None:
    before = children()
    loader = data.DataLoader(samples.Failing(10, at), 2, num_workers=2)
    got = []
    with pytest.raises(ZeroDivisionError) as caught:
        for batch in loader:
            got.append(batch.tolist())
    assert len(got) == at // 2
    text = str(caught.value)
    assert f"Caught ZeroDivisionError in DataLoader worker process {at // 2 % 2}." in text
    assert 'data_samples.py", line' in text and "1 / 0" in text
    del caught
    assert children() == before


ERRORS: list[tuple[str, type[Exception], str]] = [
    ("key", RuntimeError, "KeyError: 'missing'"),
    ("odd", RuntimeError, "Odd: ('two', 'arguments')"),
    ("shape", dt.ShapeMismatchError, "at non-singleton dimension"),
    ("unpicklable", Exception, "pickle"),
]


@pytest.mark.parametrize(("kind", "error", "text"), ERRORS)
def test_kinds_of_errors(kind: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match="in DataLoader worker process 0") as caught:
        list(data.DataLoader(samples.Mistakes(kind), num_workers=1, collate_fn=samples.same))
    assert text in str(caught.value)


def test_an_error_in_worker_init() -> None:
    with pytest.raises(ValueError, match="init of 0 failed"):
        list(data.DataLoader(samples.Squares(3), num_workers=1, worker_init_fn=samples.fail))


def test_a_worker_that_dies() -> None:
    before = children()
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid \d+\) exited unexpectedly with signal SIGKILL"):
        list(data.DataLoader(samples.Mistakes("kill"), num_workers=2))
    assert children() == before


def test_a_worker_that_hangs() -> None:
    before = children()
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="DataLoader timed out after 1.5 seconds"):
        list(data.DataLoader(samples.Mistakes("hang"), num_workers=1, timeout=1.5))
    assert time.monotonic() - start < 30
    assert children() == before


def test_a_script_without_a_guard_is_told(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import data_samples as samples\n"
        "from devtensor import data\n"
        "list(data.DataLoader(samples.Squares(3), num_workers=1))\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], env=environment(), capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 1
    assert "exited unexpectedly with exit code 1 (a script that starts workers needs `if __name__" in done.stderr


BUSY = """
    import signal
    import data_samples as samples
    from devtensor import data
    if __name__ == "__main__":
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin without one
        loader = data.DataLoader(samples.Slow(1000), 1, num_workers=2)
        for batch in loader:
            print(int(batch[0]), flush=True)
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left_behind(how: signal.Signals) -> None:
    """By Ctrl-C, which reaches the whole group of processes; or where the loader is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(BUSY)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    workers = {int(process.stdout.readline()) for _ in range(4)}
    assert len(workers) == 2 and all(map(alive, workers))
    if how is signal.SIGINT:
        os.killpg(process.pid, how)
    else:
        process.kill()
    _, errors = process.communicate(timeout=60)
    if how is signal.SIGINT:
        assert "KeyboardInterrupt" in errors
    end = time.monotonic() + 30
    while any(map(alive, workers)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(alive, workers))


def group(number: int) -> list[str]:
    """The programs that still run in a group of processes."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[2]) == number and fields[0] != "Z":
                found.append((path.parent / "cmdline").read_text().replace("\0", " "))
    return found


@pytest.mark.parametrize(("batches", "seconds"), [(0, 0.05), (0, 0.2), (0, 0.4), (0, 0.8), (1, 0), (3, 0.05)])
def test_an_interrupted_epoch_ends_as_any_program(batches: int, seconds: float) -> None:
    """While workers start, and in the middle: one traceback, the exit of a KeyboardInterrupt, no process."""
    code = textwrap.dedent(BUSY).replace("    for batch", "    print('begin', flush=True)\n    for batch")
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begin\n"
    for _ in range(batches):
        process.stdout.readline()
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert errors.count("Traceback") == 1 and errors.endswith("\nKeyboardInterrupt\n"), errors
    assert process.returncode == -signal.SIGINT
    end = time.monotonic() + 30
    while group(process.pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert group(process.pid) == []


# ---------------------------------------------------------------- without CUDA, as PyTorch


def test_without_cuda_batches_go_on_unpinned() -> None:
    script = """
        import devtensor as dt
        from devtensor import data
        loader = data.DataLoader(data.TensorDataset(dt.ones(3)), 2, pin_memory=True)
        print([batch[0].is_pinned() for batch in data.prefetch(loader, "cpu")])
    """
    environment = {**os.environ, "DEVTENSOR_CUDA": "off"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=environment | {"PYTHONPATH": str(Path(dt.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert done.stdout == "[False, False]\n"


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
