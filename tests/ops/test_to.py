"""Moving and casting: every form of `.to`, what it keeps, and what stays the same object."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from formats import DTYPES, STORAGE
from support import DEVICES, bits_of, from_bits, name_of, no_transfers

import devtensor as dt


@pytest.fixture
def x(device: str) -> dt.DeviceArray:
    return dt.arange(12, dtype=dt.float32, device=device).reshape(3, 4)


FORMS: list[tuple[str, Callable[[Any], Any], str | None, str | None]] = [
    ("to(device)", lambda x: x.to("cpu"), "cpu", None),
    ("to(device object)", lambda x: x.to(dt.device("cuda:0")), "cuda:0", None),
    ("to(index)", lambda x: x.to(0), "cuda:0", None),
    ("to(device=)", lambda x: x.to(device="cpu"), "cpu", None),
    ("to(dtype)", lambda x: x.to(dt.float64), None, "float64"),
    ("to(dtype name)", lambda x: x.to(dtype="int16"), None, "int16"),
    ("to(numpy dtype)", lambda x: x.to(dtype=np.dtype("int8")), None, "int8"),
    ("to(numpy type)", lambda x: x.to(dtype=np.float16), None, "float16"),
    ("to(device, dtype)", lambda x: x.to("cpu", dt.int32), "cpu", "int32"),
    ("to(device, dtype=)", lambda x: x.to("cpu", dtype=dt.int32), "cpu", "int32"),
    ("to(device=, dtype=)", lambda x: x.to(device="cpu", dtype=dt.int32), "cpu", "int32"),
    ("to(other)", lambda x: x.to(dt.zeros(1, dtype=dt.int8)), "cpu", "int8"),
    ("to(copy=)", lambda x: x.to("cpu", copy=True), "cpu", None),
    ("to(non_blocking=False)", lambda x: x.to("cpu", non_blocking=False), "cpu", None),
    ("cpu", lambda x: x.cpu(), "cpu", None),
    ("cuda", lambda x: x.cuda(), "cuda:0", None),
    ("cuda(0)", lambda x: x.cuda(0), "cuda:0", None),
    ("float", lambda x: x.float(), None, "float32"),
    ("double", lambda x: x.double(), None, "float64"),
    ("half", lambda x: x.half(), None, "float16"),
    ("bfloat16", lambda x: x.bfloat16(), None, "bfloat16"),
    ("int", lambda x: x.int(), None, "int32"),
    ("long", lambda x: x.long(), None, "int64"),
    ("bool", lambda x: x.bool(), None, "bool"),
    ("byte", lambda x: x.byte(), None, "uint8"),
    ("astype", lambda x: x.astype(dt.int64), None, "int64"),
    ("astype(numpy)", lambda x: x.astype(np.int64), None, "int64"),
    ("type", lambda x: x.type(dt.int16), None, "int16"),
]


@pytest.mark.parametrize(("convert", "to_device", "to_dtype"), [form[1:] for form in FORMS], ids=[f[0] for f in FORMS])
def test_forms(x: dt.DeviceArray, device: str, convert: Any, to_device: str | None, to_dtype: str | None) -> None:
    y = convert(x)
    assert str(y.device) == (to_device or device)
    assert name_of(y.dtype) == (to_dtype or "float32")
    want = np.arange(12).reshape(3, 4)
    assert y.tolist() == (want != 0 if to_dtype == "bool" else want).tolist()
    assert x.tolist() == want.tolist()


@pytest.mark.parametrize("target", DEVICES)
def test_same_object_iff_nothing_changes(x: dt.DeviceArray, device: str, target: str) -> None:
    assert (x.to(target) is x) == (target == device)
    assert (x.to(target, dt.float32) is x) == (target == device)
    assert x.to(target, dt.float64) is not x
    assert (x.to(dt.zeros(1, device=target)) is x) == (target == device)
    assert (x.cpu() is x) == (device == "cpu")
    assert x.to(dt.float32) is x
    assert x.to(dtype=dt.float32) is x
    assert x.float() is x
    assert x.astype(dt.float32) is x
    assert x.to(target, copy=True) is not x
    assert x.to(dt.float32, copy=True) is not x


def test_a_bare_cuda_is_the_current_device(cuda: str) -> None:
    x = dt.zeros(2, device=cuda)
    with dt.cuda.device(dt.device(cuda).index):
        assert dt.device("cuda") == dt.device(cuda)
        assert x.to("cuda") is x
        assert x.cuda() is x
        assert str(dt.zeros(2, device="cuda").device) == cuda


def test_a_copy_is_independent(x: dt.DeviceArray, device: str) -> None:
    for y in (x.to(device, copy=True), x.clone(), x.to(dt.float64).to(dt.float32)):
        y.fill_(9)
        assert x.tolist() == np.arange(12).reshape(3, 4).tolist()


@pytest.mark.parametrize("source", DEVICES)
@pytest.mark.parametrize("target", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_round_trip(source: str, target: str, dtype: str) -> None:
    raw = np.arange(240, dtype=np.uint8)
    bits = raw & 1 if dtype == "bool" else raw.view(STORAGE[dtype])
    x = from_bits(bits, dtype, source)
    y = x.to(target)
    assert str(y.device) == target
    assert bits_of(y).tobytes() == bits.tobytes()
    assert bits_of(y.to(source)).tobytes() == bits.tobytes()


# ---------------------------------------------------------------- strides


@pytest.mark.parametrize("target", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_dense_strides_are_kept(device: str, target: str, dtype: str) -> None:
    """Channels-last stays channels-last; what has gaps or overlaps becomes contiguous."""
    image = dt.zeros((2, 5, 4, 3), device=device).permute(0, 3, 1, 2)
    y = image.to(target, getattr(dt, dtype))
    assert y.stride() == image.stride() == (60, 1, 12, 3)
    base = dt.arange(24, dtype=dt.float32, device=device).reshape(4, 6)
    assert base.T.to(target, getattr(dt, dtype)).stride() == (1, 6)
    assert base[:, ::2].to(target, dt.int32).stride() == (3, 1)
    assert base[:1].expand(5, 6).to(target, dt.int32).stride() == (6, 1)
    assert base.T.to(target, dt.int32).tolist() == np.arange(24).reshape(4, 6).T.tolist()
    assert base[1:, ::2].to(target, dt.int32).tolist() == [[6, 8, 10], [12, 14, 16], [18, 20, 22]]


def test_contiguous_and_clone(device: str) -> None:
    x = dt.arange(6, device=device).reshape(2, 3)
    assert x.contiguous() is x
    t = x.T
    assert not t.is_contiguous()
    assert t.contiguous().stride() == (2, 1)
    assert t.clone().stride() == (1, 3)
    assert t.contiguous().tolist() == t.clone().tolist() == [[0, 3], [1, 4], [2, 5]]


# ---------------------------------------------------------------- counters


@pytest.mark.parametrize(
    ("source", "target", "nbytes"),
    [("float32", "float32", 4), ("float64", "float32", 4), ("float32", "float64", 4),
     ("float64", "float64", 8), ("uint8", "float32", 1), ("float32", "bfloat16", 2)],
)  # fmt: skip
def test_bytes_on_the_bus(source: str, target: str, nbytes: int, cuda: str) -> None:
    """A cast happens on the side where it makes the bus carry less."""
    x = dt.zeros(1000, dtype=getattr(dt, source))
    before = dt._C.counters()
    y = x.to(cuda, getattr(dt, target))
    after = dt._C.counters()
    assert after["bytes_to_device"] - before["bytes_to_device"] == 1000 * nbytes
    assert after["transfers"] - before["transfers"] == 1
    y.cpu()
    last = dt._C.counters()
    assert last["bytes_to_host"] - after["bytes_to_host"] == y.nbytes
    assert last["bytes_to_device"] == after["bytes_to_device"]


def test_what_is_no_transfer(device: str) -> None:
    x = dt.zeros((3, 4), device=device)
    with no_transfers():
        x.to(device)
        x.to(device, dt.float64)
        x.clone()
        x.T.contiguous()
        dt.zeros((0, 3)).to(device)
        dt.ones(5, device=device).fill_(2)
        dt.rand(5, device=device)
        dt.eye(3, device=device)
        dt.arange(5, device=device)


@pytest.mark.skipif(len(DEVICES) < 3, reason="needs two CUDA devices")
def test_between_devices() -> None:
    x = dt.arange(10, device="cuda:0")
    before = dt._C.counters()
    y = x.to("cuda:1")
    after = dt._C.counters()
    assert str(y.device) == "cuda:1"
    assert after["bytes_between_devices"] - before["bytes_between_devices"] == 80
    assert after["bytes_to_host"] == before["bytes_to_host"]
    assert y.tolist() == list(range(10))
    assert y.to("cuda:0", dt.float16).tolist() == list(range(10))


# ---------------------------------------------------------------- copy_


@pytest.mark.parametrize("target", DEVICES)
def test_copy_crosses_devices_and_casts(device: str, target: str) -> None:
    x = dt.arange(6, device=device).reshape(2, 3)
    y = dt.zeros((2, 3), dtype=dt.float16, device=target)
    assert y.copy_(x) is y
    assert y.tolist() == x.tolist()
    y[:, ::2].copy_(dt.full((2, 1), 7, device=device))
    assert y.tolist() == [[7, 1, 7], [7, 4, 7]]
    y.copy_(dt.tensor([1.0, 2, 3], device=device))
    assert y.tolist() == [[1, 2, 3], [1, 2, 3]]
    with pytest.raises(dt.ShapeMismatchError):
        y.copy_(dt.zeros(4, device=device))
    assert y.tolist() == [[1, 2, 3], [1, 2, 3]]


def test_overlapping_copy_is_as_if_buffered(device: str) -> None:
    x = dt.arange(10, device=device)
    x[1:].copy_(x[:-1])
    assert x.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    x = dt.arange(10, device=device)
    x[:-1].copy_(x[1:])
    assert x.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 9]
    square = dt.arange(9, device=device).reshape(3, 3)
    square.copy_(square.T)
    assert square.tolist() == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]


def test_zero_and_fill(x: dt.DeviceArray) -> None:
    assert x[1].fill_(5).tolist() == [5, 5, 5, 5]
    assert x.tolist() == [[0, 1, 2, 3], [5, 5, 5, 5], [8, 9, 10, 11]]
    assert x.zero_() is x
    assert x.sum().item() == 0


# ---------------------------------------------------------------- pinned memory


def test_pin_memory(cuda: str) -> None:
    x = dt.arange(10, dtype=dt.float32)
    assert not x.is_pinned()
    with no_transfers():
        p = x.pin_memory()
    assert p.is_pinned()
    assert p is not x
    assert p.pin_memory() is p
    assert str(p.device) == "cpu"
    assert p.tolist() == x.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = p.to(cuda, non_blocking=True)
    assert not y.is_pinned()
    assert y.tolist() == x.tolist()
    assert dt.arange(6).reshape(2, 3).T.pin_memory().tolist() == [[0, 3], [1, 4], [2, 5]]


def test_pinning_device_memory_is_refused(cuda: str) -> None:
    with pytest.raises(RuntimeError, match="pin"):
        dt.zeros(3, device=cuda).pin_memory()


def test_a_pending_result_is_never_garbage(cuda: str) -> None:
    """Each way to read a result that is still on its way waits for it."""
    x = dt.arange(1000, dtype=dt.float32, device=cuda)
    want = list(range(1000))
    assert (x * 1).to("cpu", non_blocking=True).tolist() == want
    assert (x * 1).to("cpu", non_blocking=True).numpy().tolist() == want
    assert np.asarray((x * 1).to("cpu", non_blocking=True)).tolist() == want
    assert (x * 1).to("cpu", non_blocking=True).sum().item() == sum(want)
    assert (x * 1).to("cpu", non_blocking=True)[5].item() == 5
    host = dt.zeros(1000).pin_memory()
    host.copy_(x * 2, non_blocking=True)
    assert host[999].item() == 1998
