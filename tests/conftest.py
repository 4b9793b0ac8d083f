"""Every test runs on the CPU and on one of two simulated GPUs, or on the real one.

DEVTENSOR_TEST_DEVICES: real takes the real GPU, one simulates a single device, every runs all on both of two; without
it the two take turns, row by row.

`pytest` runs the quick rows (helpers/quick_rows.py), `pytest -m ""` all, `pytest -m whole` the others, and files, tests
and -k that are named run whole.

DEVTENSOR_TEST_HALF=0 runs one half of the rows of each test that has more than three of those, 1 the other half.
"""

from __future__ import annotations

import gc
import os
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
HELPERS = TESTS / "helpers"
ROOMS = sorted({path.parent for path in (*TESTS.glob("*/test_*.py"), *HELPERS.glob("*/*.py"))})
sys.path[:0] = map(str, (TESTS, HELPERS, *ROOMS))
if os.environ.get("DEVTENSOR_TEST_DEVICES") == "real":
    os.environ.pop("DEVTENSOR_CUDA", None)
else:
    os.environ["DEVTENSOR_CUDA"] = "sim:1" if os.environ.get("DEVTENSOR_TEST_DEVICES") == "one" else "sim:2"
    os.environ.setdefault("DEVTENSOR_SIM_RACES", "1")
    os.environ["DEVTENSOR_CACHE"] = "0"  # the stand-in of NVRTC is faster than a disk

caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
os.environ.setdefault("MPLCONFIGDIR", os.path.join(caches, "matplotlib"))  # which makes ~/.config/matplotlib otherwise

gc.disable()  # until all tests are collected: they are thousands, and none of them is garbage
import quick_rows  # noqa: E402
from support import CUDA_DEVICES, DEVICES, REAL  # noqa: E402

import devtensor as dt  # noqa: E402
from devtensor import _diagnosis  # noqa: E402


def pytest_configure(config: pytest.Config) -> None:
    given = config.invocation_params.args
    named = config.option.keyword or any(arg.partition("::")[0].endswith(".py") for arg in config.args)
    if named and not any(arg.startswith("-m") for arg in given):
        config.option.markexpr = ""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file runs in one process: what one compiled or started once serves all its tests. The longest begin."""
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False
    return LoadFileScheduling(config, log) if config.getoption("dist") == "load" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:  # the same from run to run, also in several processes
        if re.search(r"\b0x[0-9a-f]{8}", item.nodeid):
            raise pytest.UsageError(f"the id of a test has an address in it: {item.nodeid}")
    if os.environ.get("DEVTENSOR_TEST_DEVICES") != "every":
        take_turns(config, items)
    if hasattr(config, "workerinput"):  # one of several processes, of which none should be left with a long file
        items.sort(key=lambda item: quick_rows.LONGEST.get(item.path.name, len(quick_rows.LONGEST)))
    kept = quick_rows.rows_to_keep(items)
    for item in items:
        if item not in kept:
            item.add_marker("whole")
    half = os.environ.get("DEVTENSOR_TEST_HALF")
    if half:
        for rows in (kept, set(items) - kept):
            leave_a_half(config, items, rows, int(half))


def leave_a_half(config: pytest.Config, items: list[pytest.Item], among: set[pytest.Item], half: int) -> None:
    """Of the rows of a test that are among these, where they are more than three."""
    counts = Counter(item.nodeid.partition("[")[0] for item in among)
    dropped = {item for item in among if counts[item.nodeid.partition("[")[0]] > 3
               and zlib.crc32(item.nodeid.encode()) // 2 % 2 != half}  # fmt: skip
    config.hook.pytest_deselected(items=[item for item in items if item in dropped])
    items[:] = [item for item in items if item not in dropped]


def take_turns(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of two rows that have cuda:0 and cuda:1 exchanged one is taken, always the same."""
    ids = {item.nodeid for item in items if on_a_gpu(item)}
    dropped = {item for item in items if item.nodeid in ids and (other := mirrored(item.nodeid)) in ids
               and item.nodeid != chosen(item.nodeid, other)}  # fmt: skip
    config.hook.pytest_deselected(items=[item for item in items if item in dropped])
    items[:] = [item for item in items if item not in dropped]


def on_a_gpu(item: pytest.Item) -> bool:
    params: dict[str, object] = getattr(getattr(item, "callspec", None), "params", {})
    return params.get("device", params.get("cuda")) in ("cuda:0", "cuda:1")


def mirrored(nodeid: str) -> str:
    return re.sub(r"cuda:([01])", lambda found: f"cuda:{1 - int(found[1])}", nodeid)


def chosen(one: str, other: str) -> str:
    """One of two rows, by both alike."""
    rows = sorted((one, other))
    return rows[zlib.crc32(rows[0].encode()) % 2]


def pytest_collection_finish() -> None:
    """Tests that look for leaks collect often, and need not look at the thousands of collected tests."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=CUDA_DEVICES)
def cuda(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def streams(cuda: str) -> Iterator[list[dt.cuda.Stream]]:
    yield [dt.cuda.Stream(cuda), dt.cuda.Stream(cuda)]
    dt.cuda.synchronize(cuda)


@pytest.fixture
def unexplained() -> Iterator[None]:
    """For a test of what is refused, not of what is told about it: errors have their text alone, which is quick."""
    _diagnosis._busy.now = True
    yield
    _diagnosis._busy.now = False


@pytest.fixture
def races_unseen() -> Iterator[None]:
    """For a test whose threads write and read one array with no order between them."""
    before = dt._C._test.sim_races(0)
    yield
    dt._C._test.sim_races(before)


@pytest.fixture(scope="session", autouse=True)
def plain_output() -> None:
    """What the tests read of other processes has no colours, whatever the one who runs them has set."""
    for name in ("FORCE_COLOR", "PY_COLORS", "PYTHON_COLORS"):
        os.environ.pop(name, None)


@pytest.fixture(scope="session", autouse=True)
def expected_devices() -> None:
    assert dt.cuda.is_available()
    assert dt.cuda.is_simulated() is not REAL
    assert dt.cuda.device_count() >= len(CUDA_DEVICES)


@pytest.fixture(scope="module", autouse=True)
def earlier_files_are_no_garbage() -> None:
    """What pytest keeps of each test that ran is long by the end: a test that collects need not look at it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def guards_untouched() -> Iterator[None]:
    """No op writes next to a buffer of a simulated device, and no test leaves another device or switch to the next."""
    current = dt.cuda.current_device()
    yield
    if not REAL:
        for name in CUDA_DEVICES:
            dt.cuda.synchronize(name)
        assert dt._C._test.guard_violations() == 0
    assert dt.cuda.current_device() == current
    assert not dt._C._cuda_tuning()


@pytest.fixture(autouse=True)
def fresh_seed() -> None:
    dt.manual_seed(0)
