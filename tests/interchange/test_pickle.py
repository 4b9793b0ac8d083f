"""Copies and pickles: every protocol, in the pickle and beside it, on every device; and in other processes."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import pickle
from collections.abc import Callable
from multiprocessing import shared_memory
from typing import Any

import numpy as np
import pytest
from formats import STORAGE
from support import bits_of, lay_out, name_of

import devtensor as dt

LAYOUTS = ("contiguous", "transposed", "sliced", "expanded", "channels_last")
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def stored(dtype: str, *shape: int) -> np.ndarray:
    count = int(np.prod(shape))
    return (np.arange(count) % 2 if dtype == "bool" else np.arange(count)).astype(STORAGE[dtype]).reshape(shape)


def dumps(value: Any) -> tuple[bytes, list[Any]]:
    """The pickle, and the buffers beside it."""
    buffers: list[Any] = []
    return pickle.dumps(value, 5, buffer_callback=buffers.append), buffers


# ---------------------------------------------------------------- pickle


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", list(STORAGE))
def test_every_protocol(dtype: str, layout: str, device: str) -> None:
    """Values, dtype, device and, for dense arrays, strides."""
    x = lay_out(stored(dtype, 2, 3, 2, 2), dtype, device, layout)
    dense = layout in ("contiguous", "transposed", "channels_last")
    made = [pickle.loads(pickle.dumps(x, protocol)) for protocol in PROTOCOLS]
    data, buffers = dumps(x)
    made.append(pickle.loads(data, buffers=buffers))
    for y in made:
        assert (name_of(y.dtype), str(y.device), y.shape) == (dtype, device, x.shape)
        assert np.array_equal(bits_of(y), bits_of(x))
        assert y.stride() == (x.stride() if dense else dt.empty(x.shape).stride())
    for y in made[:-1]:
        y.zero_()
    assert np.array_equal(bits_of(x), stored(dtype, 2, 3, 2, 2) if layout != "expanded" else bits_of(x))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1, 1)])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_numbers_and_empty_arrays(protocol: int, shape: tuple[int, ...], device: str) -> None:
    x = dt.ones(shape, device=device)
    y = pickle.loads(pickle.dumps(x, protocol))
    assert (y.shape, y.tolist(), str(y.device)) == (shape, x.tolist(), device)


def test_beside_the_pickle_nothing_is_copied() -> None:
    x = dt.arange(100_000)
    data, (buffer,) = dumps(x)
    assert len(data) < 300
    assert memoryview(buffer).nbytes == x.nbytes
    y = pickle.loads(data, buffers=[buffer])
    assert y.data_ptr() == x.data_ptr()
    y[0] = 7
    assert x[0].item() == 7
    part = pickle.loads(*[dumps(x[10:20].reshape(2, 5).T)[0]], buffers=dumps(x[10:20].reshape(2, 5).T)[1])
    assert (part.data_ptr(), part.stride()) == (x[10:].data_ptr(), (1, 5))


def test_who_gives_the_buffers_decides_whose_memory_it_is() -> None:
    data, buffers = dumps(dt.arange(4, dtype=dt.float32))
    raw = bytearray(memoryview(buffers[0]))
    y = pickle.loads(data, buffers=[raw])
    raw[:4] = b"\0\0\x80?"
    assert y.tolist() == [1, 1, 2, 3]
    fixed = pickle.loads(data, buffers=[bytes(raw)])
    with pytest.raises(RuntimeError, match="read-only"):
        fixed.zero_()
    shifted = bytearray(b"x") + raw
    assert pickle.loads(data, buffers=[memoryview(shifted)[1:]]).tolist() == [1, 1, 2, 3]  # not aligned: a copy


def test_read_only_arrays() -> None:
    """A pickle of protocol 5 keeps that, as NumPy's does; one of an older protocol gives memory of its own."""
    fixed = dt.frombuffer(b"\1\2\3\4", dtype=dt.uint8)
    for again in (pickle.loads(pickle.dumps(fixed, 5)), pickle.loads(dumps(fixed)[0], buffers=dumps(fixed)[1])):
        with pytest.raises(RuntimeError, match="read-only"):
            again.zero_()
        assert again.tolist() == [1, 2, 3, 4]
    assert pickle.loads(pickle.dumps(fixed, 4)).zero_().tolist() == [0] * 4


def test_what_is_alive(cuda: str) -> None:
    gc.collect()
    before = dt._C._test.live_blocks()
    x = dt.arange(100_000)
    data, buffers = dumps(x)
    del x
    y = pickle.loads(data, buffers=buffers)
    buffers.clear()
    gc.collect()
    assert y[-1].item() == 99_999
    del y
    gc.collect()
    assert dt._C._test.live_blocks() == before


def test_a_device_array_is_moved_and_that_is_said(cuda: str) -> None:
    x = dt.arange(3, dtype=dt.float32, device=cuda)
    for protocol in (2, 5):
        with dt.record_transfers() as log:
            y = pickle.loads(pickle.dumps(x, protocol))
        assert [(t.action, t.nbytes, str(t.source), str(t.target)) for t in log] == [
            ("pickle", 12, cuda, "cpu"),
            ("unpickle", 12, "cpu", cuda),
        ]
        assert str(y.device) == cuda
        with dt.forbid_transfers(), pytest.raises(dt.TransferForbiddenError):
            pickle.dumps(x, protocol)


def test_a_device_that_is_not_there(cuda: str) -> None:
    data = pickle.dumps(dt.ones(2, device=cuda)).replace(cuda.encode(), b"cuda:9")
    with pytest.raises(dt.DeviceNotAvailableError, match="cuda:9"):
        pickle.loads(data)


def rebuild(*changes: tuple[int, Any]) -> Any:
    arguments: list[Any] = [(2,), dt.float32, bytes(8), "cpu", (1,), False]
    for i, value in changes:
        arguments[i] = value
    return dt._C._rebuild(*arguments)


HOSTILE: list[tuple[tuple[tuple[int, Any], ...], type[Exception]]] = [
    (((2, bytes(7)),), ValueError),
    (((2, bytes(2**10)),), ValueError),
    (((0, (2**62, 2**62)),), RuntimeError),
    (((0, (-2,)),), RuntimeError),
    (((0, 2),), TypeError),
    (((0, ("x",)),), TypeError),
    (((1, "nonsense"),), TypeError),
    (((2, "text"),), TypeError),
    (((2, None),), TypeError),
    (((2, memoryview(bytes(16))[::2]),), ValueError),
    (((3, "gpu"),), RuntimeError),
    (((4, (2,)),), ValueError),
    (((4, (-1,)),), ValueError),
    (((4, (2**63 - 1,)),), ValueError),
    (((4, (1, 1)),), ValueError),
    (((4, ("x",)),), TypeError),
    (((4, (0,)),), ValueError),
    (((1, dt.bool), (2, b"\1\2")), ValueError),
    (((5, "x"),), TypeError),
]


@pytest.mark.parametrize(("changes", "error"), HOSTILE, ids=[str(row[0]).partition(" at 0x")[0] for row in HOSTILE])
@pytest.mark.parametrize("share", [False, True])
def test_nothing_in_a_pickle_is_trusted(changes: Any, error: type[Exception], share: bool) -> None:
    with pytest.raises(error):
        rebuild((5, share), *changes)
    assert rebuild((5, share)).tolist() == [0, 0]
    with pytest.raises(TypeError):
        dt._C._rebuild((2,), dt.float32)


KINDS: dict[str, Callable[[dt.DeviceArray], Any]] = {
    "Parameter": lambda x: dt.nn.Parameter(x, requires_grad=False),
    "Buffer": lambda x: dt.nn.Buffer(x, persistent=False),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", list(KINDS))
def test_parameters_and_buffers(kind: str, protocol: int, device: str) -> None:
    x = KINDS[kind](dt.arange(4, device=device).reshape(2, 2).T)
    y = pickle.loads(pickle.dumps(x, protocol))
    assert (type(y), y.tolist(), y.stride(), str(y.device)) == (type(x), [[0, 2], [1, 3]], (1, 2), device)
    assert getattr(y, "persistent", False) is False


def test_a_module_beside_its_pickle(device: str) -> None:
    model = dt.nn.Sequential(dt.nn.Linear(100, 100), dt.nn.BatchNorm2d(3)).to(device)
    data, buffers = dumps(model)
    assert len(data) < 8000 and sum(memoryview(b).nbytes for b in buffers) > 40_000
    again = pickle.loads(data, buffers=buffers)
    assert list(again.state_dict()) == list(model.state_dict())
    for name, value in model.state_dict().items():
        assert again.state_dict()[name].equal(value)


# ---------------------------------------------------------------- copy


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies(layout: str, device: str) -> None:
    x = lay_out(stored("float32", 2, 3, 2, 2), "float32", device, layout)
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    assert shallow is not x and shallow.data_ptr() == x.data_ptr() != deep.data_ptr()
    for y in (shallow, deep):
        assert (str(y.device), y.stride()) == (device, x.stride())
        assert np.array_equal(bits_of(y), bits_of(x))


def test_what_shares_memory_shares_it_after_a_deepcopy(device: str) -> None:
    """As in PyTorch: tied weights stay tied, also where they are views."""
    x = dt.arange(12, device=device).reshape(3, 4)
    a, b, c, d = copy.deepcopy((x, x[1], x.T[::2], x))
    assert a is d and c.stride() == x.T[::2].stride()
    a[1, 2] = -1
    assert (b[2].item(), c[1, 1].item(), x[1, 2].item()) == (-1, -1, 6)
    assert b.tolist() == [4, 5, -1, 7]
    first, second = copy.deepcopy(x), copy.deepcopy(x)
    assert first.data_ptr() != second.data_ptr()


def test_tied_parameters() -> None:
    model = dt.nn.Module()
    model.a = dt.nn.Parameter(dt.arange(6, dtype=dt.float32).reshape(2, 3))
    model.b = dt.nn.Parameter(model.a.T)
    model.c = model.a
    again = copy.deepcopy(model)
    assert again.a is again.c and type(again.b) is dt.nn.Parameter
    with dt.no_grad():
        again.a[0, 1] = 9
    assert (again.b[1, 0].item(), model.a[0, 1].item()) == (9, 1)


def test_deepcopy_of_memory_of_others() -> None:
    values = np.arange(10.0)
    fixed = dt.frombuffer(values[::-1].tobytes(), dtype=dt.float64)
    shared, odd = dt.from_numpy(values), dt.from_numpy(values[1::2])
    a, b, c = copy.deepcopy([shared, odd, fixed])
    assert (a.tolist(), b.tolist(), c.tolist()) == (values.tolist(), values[1::2].tolist(), values[::-1].tolist())
    for x in (a, b, c):
        x.zero_()
    assert values.sum() == 45
    assert copy.deepcopy(dt.zeros(0)).shape == (0,)
    assert shared.__deepcopy__(None).equal(shared) and shared.__deepcopy__({}).equal(shared)


# ---------------------------------------------------------------- processes


def double(x: dt.DeviceArray) -> dt.DeviceArray:
    return x * 2


def fill(name: str) -> None:
    block = shared_memory.SharedMemory(name)
    x = dt.frombuffer(block.buf, dtype=dt.float32, count=5)
    x.fill_(3)
    del x
    gc.collect()
    block.close()


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes(method: str, device: str) -> None:
    """Arguments and results go by pickle, to the device of the same name there; memory that is shared is shared."""
    with multiprocessing.get_context(method).Pool(1) as pool:
        for dtype in (dt.bfloat16, dt.float32):
            x = dt.arange(6, dtype=dtype, device=device).reshape(2, 3).T
            y = pool.apply(double, (x,))
            assert (y.tolist(), str(y.device), y.dtype) == ((x * 2).tolist(), device, dtype)
        block = shared_memory.SharedMemory(create=True, size=20)
        try:
            pool.apply(fill, (block.name,))
            x = dt.frombuffer(block.buf, dtype=dt.float32, count=5)
            assert x.tolist() == [3] * 5
            with pytest.raises(BufferError):
                block.close()
            del x
            gc.collect()
        finally:
            block.close()
            block.unlink()
