"""Two GPUs: nothing is mixed unless it was moved; current device, streams, memory and libraries are each one's own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from cases import CASES, Case
from support import CUDA_DEVICES, REAL, ROOT, Built, bits_of, call, counted, no_transfers, python_path

import devtensor as dt

pytestmark = pytest.mark.skipif(len(CUDA_DEVICES) < 2, reason="needs two CUDA devices")
FIRST, SECOND = "cuda:0", "cuda:1"
EXAMPLE = ROOT / "examples" / "several_gpus.py"

# ---------------------------------------------------------------- refused unless moved

SEVERAL = list({case.op: case for case in CASES if len(case.arrays) > 1}.values())


@pytest.mark.parametrize("case", SEVERAL, ids=str)
def test_every_op_refuses_a_mixture(case: Case) -> None:
    """Whichever operand is elsewhere, on whichever side; then it is moved, and the op is right."""
    dtype = "float32" if "float32" in case.dtypes else case.dtypes[0]
    for home, away in ((FIRST, SECOND), (SECOND, FIRST)):
        built = Built(case, dtype, home)
        for i, operand in enumerate(built.operands):
            if not isinstance(operand, dt.DeviceArray):
                continue
            mixed = [*built.operands]
            mixed[i] = operand.to(away)
            with no_transfers(), pytest.raises(dt.DeviceMismatchError) as caught:
                call(case.op, mixed, **built.parameters)
            assert FIRST in str(caught.value) and SECOND in str(caught.value)
            mixed[i] = mixed[i].to(home)
            built.check(call(case.op, mixed, **built.parameters))


IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "add_": lambda x, y: x.add_(y),
    "+=": lambda x, y: x.__iadd__(y),
    "out=": lambda x, y: dt.neg(y, out=x),
    "setitem": lambda x, y: x.__setitem__(0, y[0]),
    "fill_": lambda x, y: x.fill_(y[0, 0]),
    "masked_fill": lambda x, y: x.masked_fill(y > 0, 0.0),
    "scatter_add_": lambda x, y: x.scatter_add_(0, y.long(), y),
    "index": lambda x, y: dt.index_select(x, 0, y[0].long()),
}


@pytest.mark.parametrize("name", list(IN_PLACE))
def test_nothing_is_written_from_the_other_device(name: str) -> None:
    x, y = dt.full((2, 2), 3.0, device=FIRST), dt.ones(2, 2, device=SECOND)
    with no_transfers(), pytest.raises(dt.DeviceMismatchError, match=f"{FIRST}.*{SECOND}|{SECOND}.*{FIRST}"):
        IN_PLACE[name](x, y)
    assert x.tolist() == [[3, 3], [3, 3]]


def test_copy_crosses() -> None:
    x, y = dt.zeros(2, 3, device=FIRST), dt.arange(6, device=SECOND).reshape(2, 3)
    with dt.record_transfers() as log:
        x.copy_(y)
        x[:, 1:].copy_(y[:, :2])
    assert x.tolist() == [[0, 0, 1], [3, 3, 4]]
    assert [(t.nbytes, str(t.source), str(t.target)) for t in log] == [(24, SECOND, FIRST), (16, SECOND, FIRST)]


NO_ACCESS = """
import sys, devtensor as dt
symbol, status = sys.argv[1], int(sys.argv[2])
x = dt.arange(5000, device="cuda:0")
dt._C._test.api_fail(symbol, 0, status, sticky=True)
y = x.to("cuda:1") + 1
dt._C._test.api_fail(None, -1, 0)
assert y.to("cuda:0").tolist() == list(range(1, 5001))
print("right")
"""


@pytest.mark.skipif(REAL, reason="faults are planted in the simulated driver")
@pytest.mark.parametrize("symbol", ["cuDeviceCanAccessPeer", "cuCtxEnablePeerAccess", "cuMemPoolSetAccess"])
def test_without_a_link_copies_go_through_the_host(symbol: str) -> None:
    """The driver stages them, whichever way it was that access was refused."""
    child = subprocess.run(
        [sys.executable, "-c", NO_ACCESS, symbol, "217"], capture_output=True, text=True, check=False, env=os.environ
    )
    assert (child.returncode, child.stdout, child.stderr) == (0, "right\n", "")


# ---------------------------------------------------------------- the current device


def test_the_current_device_is_the_threads() -> None:
    with dt.cuda.device(1):
        assert str(dt.device("cuda")) == str(dt.ones(1, device="cuda").device) == SECOND
        with dt.cuda.device(FIRST):
            assert str(dt.ones(1).cuda().device) == FIRST
        with pytest.raises(ZeroDivisionError), dt.cuda.device(0):
            _ = 1 // 0
        assert dt.cuda.current_device() == 1
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(dt.cuda.current_device).result() == 0
    assert dt.cuda.current_device() == 0
    with pytest.raises(dt.DeviceNotAvailableError), dt.cuda.device(99):
        pass
    assert dt.cuda.current_device() == 0


def test_ops_follow_their_operands_and_not_the_current_device() -> None:
    x = dt.rand(4, 4, device=SECOND)
    image = dt.rand(1, 2, 5, 5, device=SECOND)
    for current in (0, 1):
        with dt.cuda.device(current), no_transfers():
            for y in (x + 1, x @ x, x.sum(), x.T.contiguous(), x[0], dt.conv2d(image, image[:, :, :3, :3]), x.clone()):
                assert str(y.device) == SECOND
            assert dt.cuda.current_device() == current


# ---------------------------------------------------------------- each one's own


def test_memory_is_counted_and_kept_for_each() -> None:
    dt.cuda.empty_cache()
    before = [dt.cuda.memory_allocated(name) for name in CUDA_DEVICES[:2]]
    x = dt.zeros(1 << 18, device=SECOND)
    assert dt.cuda.memory_allocated(FIRST) == before[0]
    assert dt.cuda.memory_allocated(SECOND) == before[1] + (1 << 20)
    address = x.data_ptr()
    del x
    dt.cuda.synchronize(SECOND)
    other = dt.zeros(1 << 18, device=FIRST)
    again = dt.zeros(1 << 18, device=SECOND)
    assert other.data_ptr() != address == again.data_ptr()  # a block goes to its own device
    dt.cuda.reset_peak_memory_stats(FIRST)
    assert dt.cuda.max_memory_allocated(FIRST) == dt.cuda.memory_allocated(FIRST)
    del other, again
    dt.cuda.empty_cache()
    assert [dt.cuda.memory_reserved(name) for name in CUDA_DEVICES[:2]] == [
        dt.cuda.memory_allocated(name) for name in CUDA_DEVICES[:2]
    ]


@pytest.mark.skipif(REAL, reason="fills a device")
def test_one_full_device_leaves_the_other_alone() -> None:
    dt.cuda.set_per_process_memory_fraction(0.0001, SECOND)
    try:
        with pytest.raises(dt.OutOfMemoryError, match=SECOND):
            dt.zeros(1 << 24, device=SECOND)
        assert dt.zeros(1 << 24, device=FIRST).shape == (1 << 24,)
    finally:
        dt.cuda.set_per_process_memory_fraction(1.0, SECOND)


def test_streams_belong_to_a_device() -> None:
    streams = [dt.cuda.Stream(FIRST), dt.cuda.Stream(SECOND)]
    assert [str(s.device) for s in streams] == [FIRST, SECOND]
    with dt.cuda.stream(streams[1]):
        assert dt.cuda.current_device() == 1
        assert dt.cuda.current_stream() == dt.cuda.current_stream(SECOND) == streams[1]
        assert dt.cuda.current_stream(FIRST) == dt.cuda.default_stream(FIRST) != streams[1]
        x = dt.full((1000,), 2.0, device="cuda") * 3
        with dt.cuda.stream(streams[0]):
            assert dt.cuda.current_stream(SECOND) == streams[1]
            y = x.to(FIRST) + 1
    assert (str(x.device), y.sum().item()) == (SECOND, 7000)
    event = streams[0].record_event()
    with pytest.raises(RuntimeError, match="does not match recording stream's device"):
        event.record(streams[1])
    streams[1].wait_event(event)
    streams[1].wait_stream(streams[0])
    streams[1].synchronize()


def test_a_peer_copy_is_in_order_with_both_devices_streams() -> None:
    """The target's stream waits for the source's last write, and the source is not written before it has been read."""
    streams = [dt.cuda.Stream(FIRST), dt.cuda.Stream(SECOND)]
    for _ in range(20):
        with dt.cuda.stream(streams[0]):
            x = dt.zeros(5000, device=FIRST)
            x += 1
        with dt.cuda.stream(streams[1]):
            y = x.to(SECOND)
        with dt.cuda.stream(streams[0]):
            x += 5
        assert y.sum().item() == 5000
        y2 = y + x.to(SECOND)
        assert y2.sum().item() == 7 * 5000


HANDLES = """
import devtensor as dt
x = {d: dt.ones(4, 4, device=d) for d in ("cuda:0", "cuda:1")}
image = {d: dt.ones(1, 2, 5, 5, device=d) for d in x}
for _ in range(3):
    for d in x:
        assert (x[d] @ x[d]).tolist() == [[4.0] * 4] * 4
        assert dt.conv2d(image[d], image[d][:, :, :3, :3]).tolist() == [[[[18.0] * 3] * 3]]
calls = dt._C._test.api_calls()
print(*(calls[name] for name in ("cublasLtCreate", "cudnnCreate", "cuDevicePrimaryCtxRetain")))
"""


@pytest.mark.skipif(REAL, reason="small products go to kernels of our own")
def test_handles_are_made_once_for_each_device() -> None:
    child = subprocess.run([sys.executable, "-c", HANDLES], capture_output=True, text=True, check=False, env=os.environ)
    assert (child.returncode, child.stdout, child.stderr) == (0, "2 2 2\n", "")


def test_threads_with_a_device_each() -> None:
    """Products, convolutions, reductions and moves from two threads a device; every result is right."""
    barrier = threading.Barrier(4)
    host = dt.arange(12, dtype=dt.float32).reshape(3, 4)
    image = dt.arange(50, dtype=dt.float32).reshape(1, 2, 5, 5)
    want = [bits_of(host @ host.T), bits_of(dt.conv2d(image, image[:, :, 1:4, 1:4])), bits_of(host.sum(0))]

    def work(i: int) -> None:
        device = CUDA_DEVICES[i % 2]
        barrier.wait(60)
        with dt.cuda.device(device):
            for _ in range(50):
                x, y = host.cuda(), image.cuda()
                got = [x @ x.T, dt.conv2d(y, y[:, :, 1:4, 1:4]), x.sum(0)]
                assert all(str(one.device) == device for one in got)
                assert all((bits_of(one) == right).all() for one, right in zip(got, want, strict=True))
                there = CUDA_DEVICES[(i + 1) % 2]
                assert x.to(there).to(device).equal(x)

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(work, i) for i in range(4)]:
            future.result(300)


def test_waiting_for_one_device_leaves_the_other_running() -> None:
    x = dt.ones(1000, device=SECOND) * 2
    before = counted("cuCtxSynchronize")
    dt.cuda.synchronize(FIRST)
    assert counted("cuCtxSynchronize") == before + 1
    assert x.sum().item() == 2000


# ---------------------------------------------------------------- the example


@pytest.mark.skipif(not EXAMPLE.exists(), reason="reads the source tree")
@pytest.mark.parametrize(
    ("cuda", "count", "lines"),
    [
        ("off", 10, ["cpu: 10 of 10 images"]),
        ("sim:1", 10, ["cuda:0: 10 of 10 images"]),
        ("sim:2", 10, ["cuda:0: 5 of 10 images", "cuda:1: 5 of 10 images"]),
        ("sim:3", 7, ["cuda:0: 3 of 7 images", "cuda:1: 3 of 7 images", "cuda:2: 1 of 7 images"]),
        ("sim:3", 2, ["cuda:0: 1 of 2 images", "cuda:1: 1 of 2 images"]),
    ],
)
def test_the_example(cuda: str, count: int, lines: list[str]) -> None:
    environment = os.environ | {"DEVTENSOR_CUDA": cuda, "PYTHONPATH": python_path()}
    command = [sys.executable, "-W", "error", str(EXAMPLE), str(count)]
    child = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    last = f"gathered ({count}, 10) on cpu; as on one device: True"
    assert (child.returncode, child.stdout.splitlines(), child.stderr) == (0, [*lines, last], "")
