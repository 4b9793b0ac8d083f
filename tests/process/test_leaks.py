"""Nothing grows: blocks, Python objects, device memory and resident memory stay flat over many calls.

DEVTENSOR_LEAK_CALLS=100000 is the long form; the everyday one makes fewer calls of each op.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import failing_allocations
import pytest
from census import census
from support import Built
from test_errors import device_rows, dtype_rows, shape_rows

import devtensor as dt

CALLS = int(os.environ.get("DEVTENSOR_LEAK_CALLS", "400"))


def growth(call: Callable[[], Any], calls: int) -> dict[str, int]:
    """What is left of each kind after so many calls."""
    before = census()
    for _ in range(calls):
        call()
    after = census()
    return {name: after[name] - before[name] for name in after}


def is_flat(found: dict[str, int], calls: int) -> bool:
    settled = found["blocks"] == found["device"] == 0
    return settled and found["objects"] < min(max(calls // 8, 20), 100) and found["resident"] < 1 << 20


def assert_flat(call: Callable[[], Any], calls: int = CALLS) -> None:
    """Flat in one of three rounds: caches fill in the first, a leak grows in each."""
    call()
    rounds: list[dict[str, int]] = []
    while len(rounds) < 3:
        rounds.append(growth(call, calls))
        if is_flat(rounds[-1], calls):
            return
    raise AssertionError(rounds)


def case_names() -> list[str]:
    return [str(case) for case in failing_allocations.chosen()] + list(failing_allocations.MORE)


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, Callable[[], Any]]]:
    return {
        device: {name: call for name, call, _ in failing_allocations.catalogue(device)} for device in ("cpu", "cuda:0")
    }


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize("name", case_names())
def test_ops(name: str, device: str, rows: dict[str, Any]) -> None:
    assert_flat(rows[device][name])


@pytest.mark.parametrize("row", [*device_rows(), *dtype_rows(), *shape_rows()], ids=lambda r: f"{r.error} {r.name}")
def test_error_paths(row: Any) -> None:
    b = "cpu" if row.error == "DeviceMismatchError" else "cuda:0"

    def call() -> None:
        try:
            row.call("cuda:0", b)
        except RuntimeError:
            pass

    assert_flat(call)


def quiet(call: Callable[[], Any]) -> Callable[[], None]:
    def run() -> None:
        try:
            call()
        except (RuntimeError, ValueError, TypeError, IndexError, MemoryError, BufferError, AttributeError):
            pass

    return run


@pytest.mark.parametrize(
    "call",
    [
        lambda: dt.device("gpu"),
        lambda: dt.zeros(1, device="cuda:77"),
        lambda: dt.zeros(-1),
        lambda: dt.array([[1, 2], [3]]),
        lambda: dt.array([[dt.ones(2), 1.0], "x"]),
        lambda: dt.zeros((2, 3))[5],
        lambda: dt.zeros((2, 3), device="cuda:0").numpy(),
        lambda: dt.zeros(3).add_("x"),
        lambda: dt.cat([dt.zeros(2), dt.zeros((2, 2))]),
        lambda: dt.empty(2**60, dtype=dt.uint8),
        lambda: dt.conv2d(dt.zeros((1, 1, 2, 2)), dt.zeros((1, 1, 3, 3))),
        lambda: dt.relu(1, 2, 3),
        lambda: dt.exp(dt.ones(3), out=dt.zeros(4)),
        lambda: dt.zeros(3, dtype="nonsense"),
        lambda: dt.zeros(3, device="cuda:0").__dlpack__(),
        lambda: dt.zeros(3, device="cuda:0").__cuda_array_interface__,
        lambda: dt.from_dlpack(__import__("numpy").zeros(3, complex)),
        lambda: dt.from_dlpack(__import__("numpy").zeros(3), device="cuda:0", copy=False),
        lambda: dt.from_dlpack(3),
    ],
)
def test_other_errors(call: Callable[[], Any]) -> None:
    assert_flat(quiet(call))


@pytest.mark.parametrize(
    "call",
    [
        lambda: dt.zeros((3, 4), device="cuda:0").cpu(),
        lambda: dt.zeros((3, 4)).pin_memory().to("cuda:0", non_blocking=True),
        lambda: dt.from_numpy(__import__("numpy").zeros(10)).to("cuda:0", dt.float32),
        lambda: dt.zeros(5).numpy(),
        lambda: memoryview(dt.zeros(5)).release(),
        lambda: list(dt.zeros((4, 2))),
        lambda: dt.zeros((4, 2)).split(1),
        lambda: __import__("pickle").loads(__import__("pickle").dumps(dt.zeros((4, 2)))),
        lambda: __import__("copy").deepcopy(dt.zeros((4, 2))),
        lambda: dt.zeros((4, 2)).__dlpack__(),
        lambda: dt.from_dlpack(dt.zeros((4, 2)).__dlpack__(max_version=(1, 0), copy=True)),
        lambda: __import__("numpy").from_dlpack(dt.zeros((4, 2))),
        lambda: dt.from_dlpack(__import__("numpy").zeros((4, 2))),
        lambda: dt.frombuffer(bytearray(16), dtype=dt.float32),
        lambda: dt.device("cuda:0") == "cuda:0",
        lambda: dt.Generator().manual_seed(3),
    ],
)
def test_interchange(call: Callable[[], Any]) -> None:
    assert_flat(call)


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_training_steps(device: str, optimizer: str) -> None:
    """A network with all that keeps something for backward: a step leaves nothing."""
    net = dt.nn.Sequential(
        dt.nn.Conv2d(1, 4, 3),
        dt.nn.BatchNorm2d(4),
        dt.nn.ReLU(inplace=True),
        dt.nn.MaxPool2d(2),
        dt.nn.Flatten(),
        dt.nn.Dropout(0.1),
        dt.nn.Linear(36, 5),
    ).to(device)
    optim = getattr(dt.optim, optimizer)(net.parameters(), lr=0.001)
    images, labels = dt.rand(4, 1, 8, 8, device=device), dt.tensor([0, 1, 2, 3], device=device)
    net[6].weight.register_hook(lambda gradient: gradient * 1)

    def step() -> None:
        optim.zero_grad()
        scores = net(images)
        scores[0] = scores[1] * 2
        dt.nn.functional.cross_entropy(scores, labels).backward()
        dt.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optim.step()

    assert_flat(step)


def test_large_blocks_come_back() -> None:
    for device in ("cpu", "cuda:0"):
        assert_flat(lambda device=device: dt.zeros(1 << 18, device=device) + 1, 40)


def test_a_planted_leak_is_found() -> None:
    kept: list[Any] = []
    case = next(c for c in failing_allocations.chosen() if c.op == "add")
    host, device = Built(case, "float32", "cpu"), Built(case, "float32", "cuda:0")
    for planted in (lambda: kept.append(host.call()), lambda: kept.append(device.call()), lambda: kept.append([0])):
        with pytest.raises(AssertionError, match="objects"):
            assert_flat(planted, 50)
    kept.clear()
