"""Weights laid out once for convolutions on CUDA: whatever writes to their memory, the next convolution sees it; and
what is kept goes when its weight goes, and when memory is short."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import failing_allocations as sweep
import numpy as np
import pytest
import test_kept_weights as on_the_host
from formats import FLOATS
from support import CUDA_DEVICES, REAL, RUNS_KERNELS, needs_kernels, python_path
from test_cuda_matmul import watch

import devtensor as dt

SHAPE = on_the_host.SHAPE
NBYTES = 4 * on_the_host.NUMBERS


def kept(device: str) -> int:
    return dt.cuda.memory_stats(device)["kept_weights_bytes"]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    gc.collect()
    dt.cuda.empty_cache()
    assert [kept(device) for device in CUDA_DEVICES] == [0 for _ in CUDA_DEVICES]
    yield


def array(*shape: int, device: str, seed: int = 0) -> dt.DeviceArray:
    return dt.tensor(on_the_host.numbers(*shape, seed=seed), device=device)


def image(device: str, dtype: dt.dtype = dt.float32) -> dt.DeviceArray:
    """With the channels last, which the weights have not."""
    return array(1, 9, 9, 16, device=device, seed=1).to(dtype).permute(0, 3, 1, 2)


def conv(w: dt.DeviceArray, x: dt.DeviceArray | None = None) -> bytes:
    """The bits of the result."""
    result = dt.conv2d(image(str(w.device), w.dtype) if x is None else x, w, padding=1)
    return result.to("cpu", dt.float64).numpy().tobytes()


def launches(x: dt.DeviceArray, w: dt.DeviceArray, **parameters: Any) -> int:
    with watch() as change:
        dt.conv2d(x, w, **parameters)
    return change.launches


# ---------------------------------------------------------------- copies


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_weight_is_copied_twice_and_then_no_more(dtype: str, cuda: str) -> None:
    x, w = image(cuda, getattr(dt, dtype)), array(*SHAPE, device=cuda).to(getattr(dt, dtype))
    dt.conv2d(x, w.clone(), padding=1)
    assert [launches(x, w, padding=1) for _ in range(5)] == [2, 2, 1, 1, 1]
    assert kept(cuda) == w.nbytes
    del w
    assert kept(cuda) == 0


def test_the_filters_of_a_product_too(cuda: str) -> None:
    """Windows that do not overlap, and a weight whose elements have no order of its rows."""
    x, w = array(2, 16, 9, 9, device=cuda), array(*SHAPE, device=cuda).permute(0, 1, 3, 2)
    want = conv_of_patches(x, w.clone())
    counts = []
    for _ in range(5):
        counts.append(launches(x, w, stride=3))
        assert conv_of_patches(x, w) == want
    assert counts[0] == counts[-1] + 1 == counts[-2] + 1
    assert kept(cuda) == NBYTES


def conv_of_patches(x: dt.DeviceArray, w: dt.DeviceArray) -> bytes:
    return dt.conv2d(x, w, stride=3).cpu().numpy().tobytes()


def test_what_lies_as_it_should_is_not_kept(cuda: str) -> None:
    w = array(32, 3, 3, 16, device=cuda).permute(0, 3, 1, 2)
    for _ in range(4):
        conv(w)
    assert kept(cuda) == 0


def test_views_and_layouts_are_told_apart(cuda: str) -> None:
    whole = array(2, *SHAPE, device=cuda)
    views = [whole[0], whole[1], whole[0].permute(0, 1, 3, 2), whole[1, 1:], whole.view(64, 16, 3, 3)[16:48]]
    first = image(cuda).contiguous()
    for _ in range(4):
        for w in views:
            for x in (image(cuda), first, image(cuda)[:, :, :5]):
                assert conv(w, x) == conv(w.clone(), x)
    assert kept(cuda) > 3 * NBYTES
    del whole, views, w
    assert kept(cuda) == 0


def test_memory_is_counted(cuda: str) -> None:
    w, x = array(*SHAPE, device=cuda), image(cuda)
    before = dt.cuda.memory_allocated(cuda)
    for _ in range(3):
        dt.conv2d(x, w, padding=1)
    assert dt.cuda.memory_allocated(cuda) - before >= NBYTES == kept(cuda)
    dt.cuda.empty_cache()
    assert dt.cuda.memory_allocated(cuda) == before
    assert kept(cuda) == 0


# ---------------------------------------------------------------- writes


@pytest.fixture
def writes(cuda: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[dt.DeviceArray], Any]]:
    """Those of the host that need no address, with their operands on the device; and the device's own."""
    other, mask = on_the_host.OTHER.to(cuda), on_the_host.MASK.to(cuda)

    def there(values: tuple[Any, ...]) -> tuple[Any, ...]:
        found = (there(v) if isinstance(v, tuple) else v for v in values)
        return tuple(v.to(cuda) if isinstance(v, dt.DeviceArray) else v for v in found)

    monkeypatch.setattr(on_the_host, "OTHER", other)
    monkeypatch.setattr(on_the_host, "MASK", mask)
    monkeypatch.setattr(on_the_host, "array", lambda *shape, seed=0: array(*shape, device=cuda, seed=seed))
    for table in (on_the_host.ARGUMENTS, on_the_host.TERNARY):
        for name, values in table.items():
            monkeypatch.setitem(table, name, there(values))
    found = {name: f for name, f in on_the_host.WRITES.items() if not name.startswith(("through_", "from_"))}
    for name in ("apply_", "map_"):  # call Python for each element, on the cpu alone
        found.pop(name)
    found["by_index"] = lambda w: w.__setitem__(dt.tensor([1, 5], device=cuda), 4)
    found["from the host"] = lambda w: w.copy_(other.cpu())
    found["from page-locked memory"] = lambda w: w.copy_(other.cpu().pin_memory(), non_blocking=True)
    if RUNS_KERNELS:
        found["a kernel"] = lambda w: dt.cuda.RawKernel(sweep.KERNEL, "twice")[1, 1](other, w)
    for device in CUDA_DEVICES:
        found[f"from {device}"] = lambda w, device=device: w.copy_(other.to(device))
    return found


def test_every_write_is_seen(writes: dict[str, Callable[[dt.DeviceArray], Any]], cuda: str) -> None:
    for name, write in writes.items():
        w = array(*SHAPE, device=cuda)
        before = [conv(w), conv(w), conv(w)]
        assert before[0] == before[1] == before[2]
        assert kept(cuda) == NBYTES, name
        old = w.clone()
        write(w)
        assert kept(cuda) == 0, name
        assert not bool((w == old).all()), f"{name} wrote nothing"
        assert conv(w) == conv(w.clone()), name
        assert [conv(w), conv(w)] == 2 * [conv(w.clone())], name


@needs_kernels
def test_what_a_kernel_only_reads_stays(cuda: str) -> None:
    w, y = array(*SHAPE, device=cuda), dt.zeros(4, device=cuda)
    for _ in range(3):
        conv(w)
    dt.cuda.RawKernel(sweep.KERNEL, "twice")[1, 4](w, y)
    assert kept(cuda) == NBYTES


@pytest.mark.skipif(REAL, reason="a real device lends without being told")
@pytest.mark.parametrize("protocol", ["__dlpack__", "__cuda_array_interface__"])
def test_memory_that_others_can_write_is_never_used_from_the_copy(protocol: str, cuda: str) -> None:
    w = array(*SHAPE, device=cuda)
    for _ in range(3):
        conv(w)
    taken = sweep.lend(w, protocol)
    alias = dt.from_dlpack(taken) if protocol == "__dlpack__" else dt.asarray(taken)
    for value in range(4):
        alias.fill_(float(value))
        assert conv(w) == conv(w.clone())
        assert conv(alias) == conv(w.clone())
    assert launches(image(cuda), w, padding=1) == 2
    assert launches(image(cuda), alias, padding=1) == 2


def test_a_weight_that_changes_each_time_is_not_kept(cuda: str) -> None:
    w = array(*SHAPE, device=cuda)
    for _ in range(4):
        conv(w)
        w.mul_(0.5)
    assert kept(cuda) == 0


def test_the_address_of_a_weight_that_is_gone(cuda: str) -> None:
    """The next weight gets the memory, and the header, of the one before."""
    for seed in range(6):
        w = array(*SHAPE, device=cuda, seed=seed)
        want = dt.conv2d(image("cpu"), w.cpu(), padding=1).numpy()
        for _ in range(3):
            np.testing.assert_allclose(dt.conv2d(image(cuda), w, padding=1).cpu().numpy(), want, atol=1e-3)
        assert kept(cuda) == NBYTES
        del w
        assert kept(cuda) == 0


# ---------------------------------------------------------------- streams and threads


def test_streams_share_a_copy_in_order(cuda: str, streams: list[dt.cuda.Stream]) -> None:
    """It is made on one stream, read on others, and its memory is written again behind the last reader."""
    for seed in range(4):
        w, x = array(*SHAPE, device=cuda, seed=seed), image(cuda)
        want = conv(w.clone(), x)
        results = []
        for turn in range(8):
            with dt.cuda.stream(streams[turn % 2]):
                results.append(dt.conv2d(x, w, padding=1))
        assert kept(cuda) == NBYTES
        with dt.cuda.stream(streams[seed % 2]):
            w.zero_()
            again = dt.full(SHAPE, 9.0, device=cuda)  # may take the copy's memory
        assert kept(cuda) == 0
        assert [r.to("cpu", dt.float64).numpy().tobytes() for r in results] == 8 * [want]
        assert conv(w, x) == conv(again * 0, x)


def test_a_stream_that_comes_later(cuda: str) -> None:
    w, x = array(*SHAPE, device=cuda), image(cuda)
    want = [conv(w, x), conv(w, x)][0]
    with dt.cuda.stream(dt.cuda.Stream(cuda)):
        got = dt.conv2d(x, w, padding=1)
    assert got.to("cpu", dt.float64).numpy().tobytes() == want


def test_threads_that_ask_and_one_that_writes(cuda: str, races_unseen: None) -> None:
    w, x = array(*SHAPE, device=cuda), image(cuda)
    stop = threading.Event()

    def ask() -> None:
        with dt.cuda.stream(dt.cuda.Stream(cuda)):
            while not stop.is_set():
                conv(w, x)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for value in range(30):
            w.fill_(float(value))
            assert conv(w, x) == conv(w.clone(), x)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert conv(w, x) == conv(w.clone(), x)


# ---------------------------------------------------------------- bounds


def test_copies_go_first_when_memory_is_short(cuda: str) -> None:
    weights = [array(256, 64, 3, 3, device=cuda, seed=s) for s in range(4)]
    x = array(1, 9, 9, 64, device=cuda).permute(0, 3, 1, 2)
    want = [conv(w, x) for w in weights]
    for w in 2 * weights:
        conv(w, x)
    held, kept_before = dt.cuda.memory_reserved(cuda), kept(cuda)
    assert kept_before == sum(w.nbytes for w in weights)
    total = dt.cuda.get_device_properties(cuda).total_memory
    dt.cuda.set_per_process_memory_fraction(held / total, cuda)
    try:
        large = dt.zeros(kept_before // 8, device=cuda)  # half of what the copies have
        assert kept(cuda) == 0
        for _ in range(4):
            assert [conv(w, x) for w in weights] == want
        assert kept(cuda) <= kept_before // 2
        assert not large.any()
    finally:
        dt.cuda.set_per_process_memory_fraction(1.0, cuda)
    del large
    dt.cuda.empty_cache()  # begins anew
    for w in 2 * weights:
        conv(w, x)
    assert kept(cuda) == kept_before


BOUND = """
import devtensor as dt

dt.testing.simulate_cuda(1, memory=64 << 20)
weights = [dt.rand(256, 64, 3, 3, device="cuda") for _ in range(12)]  # 576 KiB each
x = dt.rand(1, 3, 3, 64, device="cuda").permute(0, 3, 1, 2)
most = 0
for w in 3 * weights:
    dt.conv2d(x, w, padding=1)
    most = max(most, dt.cuda.memory_stats()["kept_weights_bytes"])
print(most)
"""


@pytest.mark.skipif(REAL, reason="a device of 64 MiB")
def test_a_part_of_the_memory_is_kept_at_most() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "DEVTENSOR_CUDA"}
    environment["PYTHONPATH"] = python_path()
    command = [sys.executable, "-c", BOUND]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    assert int(ran.stdout) == 7 * (576 << 10)  # of 4 MiB


def test_without_memory_of_the_host_the_weight_is_copied_for_the_call(cuda: str) -> None:
    w, x = array(*SHAPE, device=cuda), image(cuda)
    want = conv(w.clone(), x)
    for n in range(12):
        dt._C._test.fail_allocations(n)
        try:
            dt.conv2d(x, w, padding=1)
            dt.conv2d(x, w, padding=1)
        except MemoryError:
            pass
        finally:
            dt._C._test.fail_allocations(-1)
        assert conv(w, x) == want
        dt.cuda.empty_cache()
        assert kept(cuda) == 0
