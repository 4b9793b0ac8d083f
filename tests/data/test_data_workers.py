"""DataLoader with worker processes: order, errors, ways to start and to end them, Ctrl-C."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import data_samples as samples
import pytest
from support import REAL, python_path

import devtensor as dt
from devtensor import data


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
    assert children() <= before
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
    paths = [python_path(), os.environ.get("PYTHONPATH", "")]
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
    assert children() <= before


def test_dropped_iterations_end_their_workers() -> None:
    before = children()
    loader = data.DataLoader(samples.Squares(100), 1, num_workers=2)
    batches = iter(loader)
    next(batches)
    assert len(children() - before) == 2
    del batches
    assert children() <= before
    iter(loader)
    assert children() <= before


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_end_by_themselves(persistent: bool, tmp_path: Path) -> None:
    init = functools.partial(samples.leave_word, str(tmp_path))
    loader = data.DataLoader(samples.Squares(4), 1, num_workers=2, worker_init_fn=init, persistent_workers=persistent)
    assert len(list(loader)) == 4
    del loader
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1"]


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
    assert children() <= before


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
    assert children() <= before


def test_a_worker_that_hangs() -> None:
    before = children()
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="DataLoader timed out after 1.5 seconds"):
        list(data.DataLoader(samples.Mistakes("hang"), num_workers=1, timeout=1.5))
    assert time.monotonic() - start < 30
    assert children() <= before


UNGUARDED = """
import devtensor as dt
from devtensor import data
class Rows(data.Dataset):
    def __init__(self):
        self.rows = dt.ones(1000, 75)  # 300 kB, more than a pipe holds
    def __getitem__(self, i):
        return self.rows[i]
    def __len__(self):
        return 1000
def main():
    print(len(list(data.DataLoader(Rows(), 100, num_workers=2))))
"""


def told(folder: Path, text: str, *before: str) -> tuple[int, str, str, float]:
    """Exit code, output, errors and seconds of a script; before stands between it and the interpreter."""
    script = folder / "script.py"
    script.write_text(text)
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, *before, str(script)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr, time.monotonic() - begin


def test_a_script_without_a_guard_is_told(tmp_path: Path) -> None:
    """At once, and without a process."""
    code, output, said, seconds = told(tmp_path, UNGUARDED + "main()\n")
    assert (code, output) == (1, "") and seconds < 60
    assert "RuntimeError: DataLoader at script.py:13: the worker processes of a DataLoader import the program" in said
    assert 'below `if __name__ == "__main__":`, or use num_workers=0' in said
    text = "import threading\nthread = threading.Thread(target=main)\nthread.start()\nthread.join()\n"
    code, output, said, _ = told(tmp_path, UNGUARDED + text)
    assert output == "10\n" and "put what it runs below" in said  # of the threads of the workers
    for guard in (
        'if __name__ == "__main__":\n    main()\n',
        'if __name__ != "__main__":\n    raise OSError\nmain()\n',
    ):
        code, output, said, _ = told(tmp_path, UNGUARDED + guard)
        assert output == "10\n" if "==" in guard else "OSError" in said, said


def test_a_script_that_goes_into_another_folder(tmp_path: Path) -> None:
    """Workers find the script, which was named by a path of the folder where it began."""
    (tmp_path / "script.py").write_text(
        "import os\n" + UNGUARDED + 'if __name__ == "__main__":\n    os.chdir("/")\n    main()\n'
    )
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout) == (0, "10\n"), done.stderr


def test_a_script_without_a_guard_may_fork(tmp_path: Path) -> None:
    text = UNGUARDED.replace("num_workers=2", "num_workers=2, multiprocessing_context='fork'") + "main()\n"
    assert told(tmp_path, text)[:3] == (0, "10\n", "")


@pytest.mark.skipif(multiprocessing.get_start_method() != "fork", reason="Python starts processes in another way")
def test_without_a_guard_in_the_place_of_torch(tmp_path: Path) -> None:
    """As in PyTorch: also where the program has used CUDA, which a worker then cannot."""
    text = UNGUARDED.replace(
        "import devtensor as dt\nfrom devtensor import data", "import torch as dt\nfrom torch.utils import data"
    )
    run = ("-m", "devtensor", "run", "--as-torch", "--no-report", "--simulate", "1")
    assert told(tmp_path, text + "main()\n", *run)[:3] == (0, "10\n", "")
    assert told(tmp_path, text + "model = dt.nn.Linear(2, 2).cuda()\nmain()\n", *run)[:3] == (0, "10\n", "")
    moved = text.replace("self.rows[i]", "self.rows[i].cuda()")
    code, output, said, _ = told(tmp_path, moved + "dt.ones(1).cuda()\nmain()\n", *run)
    assert (code, output) == (1, "") and "before this process was forked, and cannot be used in the child" in said


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


def begin(script: str) -> subprocess.Popen[str]:
    """A program in a group of processes of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left_behind(how: signal.Signals) -> None:
    """By Ctrl-C, which reaches the whole group of processes; or where the loader is killed."""
    process = begin(BUSY)
    assert process.stdout is not None
    workers = {int(process.stdout.readline()) for _ in range(4)}
    assert len(workers) == 2 and all(map(alive, workers))
    if how is signal.SIGINT:
        os.killpg(process.pid, how)
    else:
        process.kill()
    _, errors = process.communicate(timeout=300)
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
    process = begin(BUSY.replace("        for batch", "        print('begin', flush=True)\n        for batch"))
    assert process.stdout is not None
    assert process.stdout.readline() == "begin\n"
    for _ in range(batches):
        process.stdout.readline()
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert errors.count("Traceback") == 1 and errors.endswith("\nKeyboardInterrupt\n"), errors
    assert process.returncode == -signal.SIGINT
    end = time.monotonic() + 30
    while group(process.pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert group(process.pid) == []


def test_workers_of_a_server_leave_ctrl_c_to_what_it_starts_later() -> None:
    """A fork server hands the signals that are blocked when it starts on to all its processes."""
    script = """
        import multiprocessing
        import data_samples as samples
        from devtensor import data
        if __name__ == "__main__":
            list(data.DataLoader(samples.Squares(3), num_workers=1, multiprocessing_context="forkserver"))
            process = multiprocessing.get_context("forkserver").Process(target=samples.tell_whether_ctrl_c_is_blocked)
            process.start()
            process.join()
    """
    assert run(script) == "False\n"
