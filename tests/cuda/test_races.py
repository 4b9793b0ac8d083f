"""Races of streams: planted ones are found with the two lines that race, programs in order raise nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import CUDA_DEVICES, REAL, ROOT, counted, python_path, skip_kernels, synchronize

import devtensor as dt

pytestmark = pytest.mark.skipif(REAL, reason="the simulated device looks for races")

EXAMPLE = ROOT / "examples" / "races.py"
FILE = "<races>"
SAXPY = """
extern "C" __global__ void saxpy(const float *x, float *y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""
ORDERS = ("cuStreamWaitEvent", "cuEventRecord", "cuEventSynchronize", "cuStreamSynchronize", "cuCtxSynchronize")

# Each has s and t, streams, x and y of 1000 elements made and waited for, and saxpy; # 1 and # 2 mark what races where
# the line marked # order is left out, and nothing races where it stands.
PROGRAMS = {
    "read after write": """
        x.fill_(2)  # 1
        s.wait_stream(default)  # order
        with dt.cuda.stream(s):
            z = x + 1  # 2
        """,
    "write after read": """
        with dt.cuda.stream(s):
            z = x + 1  # 1
        default.wait_stream(s)  # order
        x.fill_(2)  # 2
        """,
    "write after write": """
        with dt.cuda.stream(s):
            x.fill_(2)  # 1
        default.wait_stream(s)  # order
        x.zero_()  # 2
        """,
    "a kernel that reads": """
        x.fill_(2)  # 1
        s.wait_event(default.record_event())  # order
        saxpy[4, 256, 0, s](x, y, 2.0, 1000)  # 2
        """,
    "a kernel that writes": """
        saxpy[4, 256, 0, s](x, y, 2.0, 1000)  # 1
        s.synchronize()  # order
        z = y.sum()  # 2
        """,
    "two kernels": """
        saxpy[4, 256, 0, s](x, y, 2.0, 1000)  # 1
        t.wait_stream(s)  # order
        saxpy[4, 256, 0, t](y, x, 2.0, 1000)  # 2
        """,
    "an event that is too early": """
        e = default.record_event()
        x.fill_(2)  # 1
        e.record()  # order
        s.wait_event(e)
        with dt.cuda.stream(s):
            z = x.exp()  # 2
        """,
    "a chain": """
        with dt.cuda.stream(s):
            x.fill_(2)  # 1
        t.wait_stream(s)  # order
        default.wait_stream(t)
        z = x + 1  # 2
        """,
    "a product": """
        x.fill_(2)  # 1
        dt.cuda.synchronize()  # order
        with dt.cuda.stream(s):
            z = x @ y  # 2
        """,
    "a convolution": """
        w = dt.zeros(1, 1, 3, 3, device=device)
        dt.cuda.synchronize()
        w.fill_(1)  # 1
        s.wait_stream(default)  # order
        with dt.cuda.stream(s):
            z = dt.conv2d(x.view(1, 1, 10, 100), w)  # 2
        """,
    "places that are chosen": """
        i = dt.zeros(10, dtype=dt.int64, device=device)
        dt.cuda.synchronize()
        i.fill_(3)  # 1
        s.wait_stream(default)  # order
        with dt.cuda.stream(s):
            z = x[i]  # 2
        """,
    "a sort": """
        x.fill_(2)  # 1
        s.wait_stream(default)  # order
        with dt.cuda.stream(s):
            z = x.sort()  # 2
        """,
    "a copy to the host": """
        with dt.cuda.stream(s):
            x.fill_(2)  # 1
        s.synchronize()  # order
        z = x.tolist()  # 2
        """,
    "a copy to the device": """
        h = dt.ones(1000).pin_memory()
        with dt.cuda.stream(s):
            z = h.to(device, non_blocking=True)  # 1
        default.wait_stream(s)  # order
        z += 1  # 2
        """,
    "parts that overlap": """
        with dt.cuda.stream(s):
            x[:510].fill_(1)  # 1
        default.wait_stream(s)  # order
        x[500:].fill_(2)  # 2
        """,
    "the host reads": """
        h = dt.zeros(1000).pin_memory()
        h.copy_(x, non_blocking=True)  # 1
        default.synchronize()  # order
        z = h + 1  # 2
        """,
    "the host writes": """
        h = dt.zeros(1000).pin_memory()
        z = h.to(device, non_blocking=True)  # 1
        default.record_event().synchronize()  # order
        h += 1  # 2
        """,
    "an optimizer": """
        p = dt.nn.Parameter(x)
        p.grad = y
        with dt.cuda.stream(s):
            y.fill_(2)  # 1
        default.wait_stream(s)  # order
        dt.optim.SGD([p], lr=0.1).step()  # 2
        """,
    "another device": """
        x.fill_(2)  # 1
        s.wait_stream(default)  # order
        with dt.cuda.stream(s):
            z = x.to(dt.testing.devices()[-1] if device != dt.testing.devices()[-1] else dt.testing.devices()[1])  # 2
        """,
    "a reader is not the last": """
        for stream in (s, t):
            with dt.cuda.stream(stream):
                z = x + 1  # 1
        default.wait_stream(t)
        default.wait_stream(s)  # order
        x.zero_()  # 2
        """,
    "one of many readers": """
        streams = [dt.cuda.Stream(device) for _ in range(6)]
        for stream in streams:
            with dt.cuda.stream(stream):
                z = x + 1  # 1
        for stream in streams[1:]:
            default.wait_stream(stream)
        default.wait_stream(streams[0])  # order
        x.zero_()  # 2
        """,
    "one of many readers of a part": """
        streams = [dt.cuda.Stream(device) for _ in range(6)]
        for i, stream in enumerate(streams):
            with dt.cuda.stream(stream):
                z = x[100 * i :] + 1  # 1
        for stream in streams[1:]:
            default.wait_stream(stream)
        default.wait_stream(streams[0])  # order
        x[700:800].zero_()  # 2
        """,
    "a query is no wait": """
        with dt.cuda.stream(s):
            x.fill_(2)  # 1
            e = s.record_event()
        e.query()
        e.wait(t)  # order
        with dt.cuda.stream(t):
            z = x + 1  # 2
        """,
    "a stream that waits for the wrong one": """
        x.fill_(2)  # 1
        t.wait_stream(default)
        s.wait_stream(default)  # order
        with dt.cuda.stream(s):
            z = x * y  # 2
        """,
}

NAMES = [name for name in PROGRAMS if name != "another device" or len(CUDA_DEVICES) > 1]

# In order without a word, also by the strict rule.
FINE = {
    "parts that do not overlap": """
        with dt.cuda.stream(s):
            x[:500].fill_(1)
        x[500:].fill_(2)
        """,
    "two readers": """
        with dt.cuda.stream(s):
            z = x + 1
        z = x + 2
        """,
    "memory that is used again": """
        for _ in range(20):
            with dt.cuda.stream(s):
                z = x + 1
                w = z * z
                del z
            z = x + 1
            w = z * z
            del z, w
        """,
    "pageable memory": """
        with dt.cuda.stream(s):
            z = dt.ones(1000).to(device)
            assert z.sum().item() == 1000
            h = z.to("cpu")
        h += 1
        """,
    "a chain of streams": """
        x.fill_(2)
        s.wait_stream(default)
        t.wait_stream(s)
        with dt.cuda.stream(t):
            z = x + 1
        """,
}


@pytest.fixture
def strict() -> Iterator[None]:
    before = dt._C._test.sim_races(2)
    yield
    dt._C._test.sim_races(before)


@pytest.fixture
def looked_for() -> Iterator[None]:
    before = dt._C._test.sim_races(1)
    yield
    dt._C._test.sim_races(before)


@pytest.fixture(scope="module")
def saxpy() -> dt.cuda.RawKernel:
    skip_kernels(SAXPY)
    return dt.cuda.RawKernel(SAXPY, "saxpy")


def run(text: str, device: str, saxpy: Any) -> None:
    names = {
        "dt": dt,
        "np": np,
        "device": device,
        "saxpy": saxpy,
        "default": dt.cuda.default_stream(device),
        "s": dt.cuda.Stream(device),
        "t": dt.cuda.Stream(device),
        "x": dt.ones(1000, device=device),
        "y": dt.ones(1000, device=device),
    }
    dt.cuda.synchronize(device)
    with dt.cuda.device(device):
        exec(compile(text, FILE, "exec"), names)
        dt.cuda.synchronize(device)


def marked(text: str, mark: str) -> int:
    (line,) = (i for i, line in enumerate(text.splitlines(), 1) if line.endswith(f"  # {mark}"))
    return line


def lines_of(message: str) -> list[int]:
    return [int(line) for line in re.findall(rf"{FILE}:(\d+)", message)]


@pytest.mark.parametrize("name", NAMES)
def test_an_order_that_the_program_does_not_say(name: str, cuda: str, saxpy: Any, strict: None) -> None:
    """The strict rule: what only devtensor orders is told, as PyTorch and CuPy would not."""
    text = textwrap.dedent(PROGRAMS[name])
    run(text, cuda, saxpy)
    with pytest.raises(dt.CudaError, match=r"^A race: .* nothing puts the two in order") as caught:
        run(re.sub(r"\S.*# order$", "pass", text, flags=re.MULTILINE), cuda, saxpy)
    assert caught.value.code == "stream-race"
    assert lines_of(str(caught.value)) == [marked(text, "2"), marked(text, "1")]
    assert "devtensor waits by itself" in str(caught.value)
    run(text, cuda, saxpy)  # and the device is as good as before


@pytest.mark.parametrize("name", FINE)
def test_programs_in_order(name: str, cuda: str, saxpy: Any, strict: None) -> None:
    run(textwrap.dedent(FINE[name]), cuda, saxpy)


@pytest.mark.parametrize("name", NAMES)
def test_a_call_that_the_backend_forgets(name: str, cuda: str, saxpy: Any, looked_for: None) -> None:
    """Without the line, devtensor orders the two itself; each of its calls that does so is left out in turn. Where
    nothing is in its place the race is found, with the same lines."""
    text = re.sub(r"\S.*# order$", "pass", textwrap.dedent(PROGRAMS[name]), flags=re.MULTILINE)
    want, found = [marked(text, "2"), marked(text, "1")], []
    run(text, cuda, saxpy)
    for symbol in ORDERS[:3]:
        before = counted(symbol)
        run(text, cuda, saxpy)
        for n in range(counted(symbol) - before):
            dt._C._test.api_fail(symbol, n, 0, dropped=True)
            try:
                run(text, cuda, saxpy)
            except dt.CudaError as error:
                found.append(lines_of(str(error)))
                assert error.code == "stream-race"
            finally:
                dt._C._test.api_fail(None, -1, 0)
                for device in dt.testing.devices()[1:]:  # the books believe the call: from here on they are right again
                    dt.cuda.synchronize(device)
    assert want in found


def test_the_host_writes_where_nobody_sees_it(cuda: str, looked_for: None) -> None:
    """A view of NumPy's over page-locked memory from which a copy has not run yet."""
    host = dt.ones(1000).pin_memory()
    view = host.numpy()
    x = host.to(cuda, non_blocking=True)
    view[:] = 2
    with pytest.raises(dt.CudaError, match="A race: the host writes 4000 bytes of page-locked memory that copy to the"):
        dt.cuda.synchronize(cuda)
    del x
    dt.cuda.synchronize(cuda)


def test_a_race_is_an_error_of_its_call_alone(cuda: str, strict: None) -> None:
    stream = dt.cuda.Stream(cuda)
    x = dt.ones(1000, device=cuda)
    with dt.cuda.stream(stream):
        with pytest.raises(dt.CudaError):
            x.add_(1)
        stream.wait_stream(dt.cuda.default_stream(cuda))
        x.add_(1)
    stream.synchronize()
    assert x.sum().item() == 2000


def test_a_mode_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="races must be True, False or 'strict'"):
        dt.testing.simulate_cuda(1, races="loud")


@pytest.mark.skipif(not EXAMPLE.exists(), reason="runs the example")
def test_the_example() -> None:
    skip_kernels(EXAMPLE.read_text())
    run = subprocess.run(
        [sys.executable, str(EXAMPLE)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": python_path()},
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    lines = EXAMPLE.read_text().splitlines()
    first, second = (i for i, line in enumerate(lines, 1) if re.search(r"(brighten|add_up)\[4", line))
    assert re.search(
        rf"stream-race:\nA race: add_up .*races\.py:{second}\) reads .* brighten .*races\.py:{first}\)", run.stdout
    )
    assert run.stdout.endswith("with the wait: 1.5\n")


def test_a_line_is_kept_once(cuda: str) -> None:
    """However often it is run, a line of the program takes memory once."""
    x = dt.zeros(10, device=cuda)
    tracemalloc.start()
    try:
        for i in range(2200):
            if i == 200:
                before = tracemalloc.get_traced_memory()[0]
            x.add_(1)
        synchronize()
        assert tracemalloc.get_traced_memory()[0] - before < 100_000
    finally:
        tracemalloc.stop()
