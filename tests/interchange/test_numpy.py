"""NumPy and other host memory: shared when asked, refused when it would be silent or unsafe."""

from __future__ import annotations

import gc
import operator
import os
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pytest
from formats import STORAGE
from support import python_path

import devtensor as dt

NAMES = [name for name in STORAGE if name != "bfloat16"]


@pytest.mark.parametrize("name", NAMES)
def test_from_numpy_shares(name: str) -> None:
    values = np.array([[0, 1, 2], [1, 0, 1]]).astype(name)
    x = dt.from_numpy(values)
    assert str(x.dtype) == f"devtensor.{name}"
    assert x.shape == (2, 3)
    assert x.data_ptr() == values.ctypes.data
    values[0, 0] = 1
    assert x[0, 0].item() == 1
    x[1, 1] = 1
    assert values[1, 1] == 1
    back = x.numpy()
    assert back.dtype == values.dtype
    assert np.shares_memory(back, values)


def test_from_numpy_keeps_the_memory_alive() -> None:
    class Owner(np.ndarray):
        pass

    values = np.arange(1000.0).view(Owner)
    watch = weakref.ref(values)
    x = dt.from_numpy(values)
    view = x[10:20]
    del values, x
    gc.collect()
    assert watch() is not None
    assert view.tolist() == list(range(10, 20))
    del view
    gc.collect()
    assert watch() is None


def test_numpy_keeps_the_array_alive() -> None:
    x = dt.arange(1000, dtype=dt.float64)
    values = x.numpy()
    raw = memoryview(x)
    other = np.asarray(x)
    del x
    gc.collect()
    junk = [dt.full((1000,), 7.0, dtype=dt.float64) for _ in range(5)]
    assert values.tolist() == other.tolist() == list(range(1000))
    assert raw[3] == 3.0
    assert len(junk) == 5


def test_references_are_given_back() -> None:
    values = np.zeros(3)
    before = sys.getrefcount(values)
    x = dt.from_numpy(values)
    assert sys.getrefcount(values) == before + 1
    del x
    assert sys.getrefcount(values) == before


def test_read_only_stays_read_only() -> None:
    values = np.arange(4.0)
    values.flags.writeable = False
    x = dt.from_numpy(values)
    for write in (
        lambda: x.fill_(1),
        lambda: x.zero_(),
        lambda: x.copy_(dt.ones(4, dtype=dt.float64)),
        lambda: x.__setitem__(0, 1),
        lambda: x[1:].fill_(1),
        lambda: operator.iadd(x, 1),
        lambda: x.add_(1),
        lambda: x.exp_(),
        lambda: dt.add(x, 1, out=x),
        lambda: dt.exp(dt.zeros(4, dtype=dt.float64), out=x),
        lambda: x.reshape(2, 2).mul_(2),
    ):
        with pytest.raises(RuntimeError, match="read-only"):
            write()
    assert values.tolist() == [0, 1, 2, 3]
    assert not x.numpy().flags.writeable
    assert memoryview(x).readonly
    assert (x + 1).tolist() == [1, 2, 3, 4]
    assert x.clone().fill_(1).tolist() == [1, 1, 1, 1]
    assert x.to("cuda:0").fill_(2).tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize(
    "values",
    [
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1),
        np.arange(20.0)[3::4],
        np.broadcast_to(np.arange(3.0), (4, 3)),
        np.array(2.5),
        np.zeros((0, 3)),
        np.zeros((1,) * 8),
    ],
    ids=["fortran", "permuted", "sliced", "broadcast", "0-d", "empty", "8-d"],
)
def test_layouts_are_kept(values: np.ndarray) -> None:
    x = dt.from_numpy(values)
    assert x.shape == values.shape
    assert x.tolist() == values.tolist()
    if values.size > 1:
        assert x.strides == values.strides
        assert x.data_ptr() == values.ctypes.data
    assert (x + 1).tolist() == (values + 1).tolist()
    assert x.to("cuda:0").tolist() == values.tolist()
    assert x.numpy().tolist() == values.tolist()


REFUSED: dict[str, tuple[Any, type[BaseException], str]] = {
    "negative strides": (np.arange(4.0)[::-1], ValueError, "negative"),
    "byte-swapped": (np.arange(4.0).astype(">f8"), (ValueError), "byte order"),
    "object": (np.array([1, "a", None], dtype=object), TypeError, "object"),
    "string": (np.array(["a"]), TypeError, "str"),
    "complex": (np.zeros(2, dtype=complex), TypeError, "complex"),
    "structured": (np.zeros(2, dtype=[("a", "f4"), ("b", "f4")]), TypeError, "void"),
    "uint16": (np.zeros(2, dtype=np.uint16), TypeError, "uint16"),
    "datetime": (np.zeros(2, dtype="M8[s]"), TypeError, "datetime"),
    "misaligned": (
        np.frombuffer(bytearray(33), dtype=np.uint8)[1:].view(np.float64),
        ValueError,
        "align",
    ),
    "odd strides": (
        np.zeros(4, dtype=[("a", "f8"), ("b", "u1")])["a"],
        ValueError,
        "stride",
    ),
    "9-d": (np.zeros((1,) * 9), ValueError, "8 dimensions"),
    "list": ([1.0], TypeError, "ndarray"),
    "none": (None, TypeError, "ndarray"),
}


@pytest.mark.parametrize(("values", "error", "message"), list(REFUSED.values()), ids=list(REFUSED))
def test_from_numpy_refuses(values: Any, error: type[BaseException], message: str) -> None:
    with pytest.raises(error, match=message):
        dt.from_numpy(values)


@pytest.mark.parametrize("name", ["negative strides", "byte-swapped", "misaligned", "odd strides"])
def test_array_copies_what_from_numpy_refuses(name: str, device: str) -> None:
    values = REFUSED[name][0]
    assert dt.array(values, device=device).tolist() == values.tolist()


def test_subclasses(device: str) -> None:
    matrix = np.arange(4.0).reshape(2, 2).view(type("Sub", (np.ndarray,), {}))
    assert dt.from_numpy(matrix).tolist() == [[0, 1], [2, 3]]
    masked = np.ma.array([1.0, 2.0], mask=[True, False])
    with pytest.raises(TypeError, match="mask"):
        dt.from_numpy(masked)


def test_memory_mapped(tmp_path: Any) -> None:
    path = tmp_path / "x.bin"
    np.arange(8, dtype=np.float32).tofile(path)
    x = dt.from_numpy(np.memmap(path, dtype=np.float32, mode="r"))
    assert x.tolist() == list(range(8))
    with pytest.raises(RuntimeError, match="read-only"):
        x.zero_()


# ---------------------------------------------------------------- the way back


def test_numpy_of_views() -> None:
    x = dt.arange(12, dtype=dt.float32).reshape(3, 4)
    assert x.T.numpy().tolist() == np.arange(12).reshape(3, 4).T.tolist()
    assert x[1:, ::2].numpy().strides == (16, 8)
    assert np.asarray(x[:, 1]).tolist() == [1, 5, 9]
    x.numpy()[0, 0] = 50
    assert x[0, 0].item() == 50


def test_array_protocol() -> None:
    x = dt.arange(3, dtype=dt.float32)
    assert np.shares_memory(np.asarray(x), x.numpy())
    assert not np.shares_memory(np.array(x), x.numpy())
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    assert np.array(x, copy=True).tolist() == [0, 1, 2]


@pytest.fixture
def no_ml_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    """import ml_dtypes fails, whether or not it is installed."""
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)


@pytest.mark.usefixtures("no_ml_dtypes")
@pytest.mark.parametrize("access", [lambda x: x.numpy(), np.asarray, np.array, lambda x: x.__array__()])
def test_bfloat16_without_ml_dtypes(access: Any) -> None:
    with pytest.raises(TypeError, match=r"NumPy has no bfloat16: install ml_dtypes, or convert first with \.float\(\)"):
        access(dt.ones(3, dtype=dt.bfloat16))
    assert access(dt.ones(3, dtype=dt.bfloat16).float()).tolist() == [1, 1, 1]


def test_bfloat16_with_ml_dtypes(device: str) -> None:
    bfloat16 = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed").bfloat16
    x = dt.arange(6, dtype=dt.bfloat16).reshape(2, 3)
    values = x.numpy()
    assert (values.dtype, values.strides, values.tolist()) == (np.dtype(bfloat16), (6, 2), [[0, 1, 2], [3, 4, 5]])
    values[0, 0] = 7
    assert x[0, 0].item() == 7
    assert x.T.numpy().strides == (2, 6)
    assert np.asarray(x).dtype == np.array(x).dtype == np.dtype(bfloat16)
    back = dt.from_numpy(values)
    assert (back.dtype, back.data_ptr()) == (dt.bfloat16, x.data_ptr())
    for made in (dt.array(values, device=device), dt.asarray(values, device=device), dt.tensor(values, device=device)):
        assert (made.dtype, made.tolist()) == (dt.bfloat16, [[7, 1, 2], [3, 4, 5]])
    assert dt.frombuffer(bytearray(values.tobytes()), dtype=bfloat16).tolist() == [7, 1, 2, 3, 4, 5]
    for dtype in (bfloat16, np.dtype(bfloat16), "bfloat16"):
        assert dt.ones(2, dtype=dtype, device=device).dtype is dt.bfloat16
    assert (dt.ones(1, dtype=dt.float32, device=device) + bfloat16(1.5)).tolist() == [2.5]
    assert dt.ones(3, dtype=dt.bfloat16, device=device).cpu().numpy().dtype == np.dtype(bfloat16)


def test_other_dtypes_of_ml_dtypes_are_refused() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    for name in ("float8_e4m3fn", "int4"):
        with pytest.raises(TypeError, match=name):
            dt.from_numpy(np.zeros(2, dtype=getattr(ml_dtypes, name)))


def test_buffer() -> None:
    x = dt.arange(6, dtype=dt.int16).reshape(2, 3)
    view = memoryview(x)
    assert (view.shape, view.strides, view.format, view.readonly) == ((2, 3), (6, 2), "h", False)
    assert view.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert bytes(x) == np.arange(6, dtype=np.int16).tobytes()
    assert memoryview(x.T).tolist() == [[0, 3], [1, 4], [2, 5]]
    formats = {"bool": "?", "uint8": "B", "int8": "b", "float16": "e", "float32": "f"}
    for name, code in formats.items():
        assert memoryview(dt.zeros(1, dtype=name)).format == code


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize(
    "access",
    [
        np.asarray,
        np.array,
        lambda x: x.numpy(),
        lambda x: x.__array__(),
        memoryview,
        bytes,
        lambda x: np.frombuffer(x, dtype=np.float32),
        lambda x: np.zeros(3, dtype=np.float32) + x,
        lambda x: x + np.zeros(3, dtype=np.float32),
        lambda x: np.concatenate([x, x]),
    ],
    ids=["asarray", "array", "numpy", "__array__", "memoryview", "bytes", "frombuffer",
         "ndarray + x", "x + ndarray", "concatenate"],
)  # fmt: skip
def test_device_memory_is_not_host_memory(access: Any, cuda: str) -> None:
    x = dt.ones(3, device=cuda)
    before = dt._C.counters()["transfers"]
    with pytest.raises(dt.HostAccessError) as caught:
        access(x)
    assert isinstance(caught.value, RuntimeError)
    assert isinstance(caught.value, TypeError)
    assert cuda in str(caught.value) or "numpy" in str(caught.value)
    assert dt._C.counters()["transfers"] == before


@pytest.mark.parametrize("op", ["add", "sub", "mul", "truediv", "matmul", "pow", "mod", "lt", "eq"])
def test_mixing_with_numpy_is_refused_in_both_orders(op: str, device: str) -> None:
    x = dt.ones((2, 2), device=device)
    values = np.ones((2, 2), dtype=np.float32)
    function = getattr(operator, op)
    with pytest.raises(dt.HostAccessError):
        function(x, values)
    with pytest.raises(dt.HostAccessError):
        function(values, x)


def test_functions_refuse_numpy_too(device: str) -> None:
    x = dt.ones((2, 2), device=device)
    values = np.ones((2, 2), dtype=np.float32)
    for call in (
        lambda: dt.add(x, values),
        lambda: dt.matmul(x, values),
        lambda: dt.matmul(values, x),
        lambda: dt.conv2d(x, values),
        lambda: dt.relu(values),
        lambda: dt.cat([x, values]),
        lambda: x.add_(values),
        lambda: operator.iadd(x, values),
        lambda: x.copy_(values),
    ):
        with pytest.raises(TypeError):
            call()
    assert x.tolist() == [[1, 1], [1, 1]]


def test_numpy_scalars_are_numbers(device: str) -> None:
    """A NumPy scalar is no array: it counts as the Python number that it is."""
    x = dt.ones(2, device=device)
    assert (x + np.float32(1)).tolist() == [2, 2]
    assert (x * np.float64(2)).dtype == dt.float32
    assert (x + np.int64(1)).tolist() == [2, 2]
    assert (x + np.bool_(True)).tolist() == [2, 2]


class OneElement:
    """An array of another library, which would be an int if asked."""

    def __dlpack__(self) -> None:
        raise AssertionError("asked for its memory")

    def __index__(self) -> int:
        raise AssertionError("asked for its value")


def test_arrays_of_other_libraries_are_no_numbers(device: str) -> None:
    x = dt.ones(2, device=device)
    for call in (lambda: x + OneElement(), lambda: OneElement() * x, lambda: dt.add(x, OneElement()),
                 lambda: x.fill_(OneElement()), lambda: dt.full((2,), OneElement())):  # fmt: skip
        with pytest.raises(TypeError):
            call()
    with pytest.raises(IndexError, match="got OneElement"):
        x[OneElement()]
    assert x.tolist() == [1, 1]


# ---------------------------------------------------------------- what programs written for NumPy do with an array


def test_array_interface_both_ways() -> None:
    x = dt.arange(12, dtype=dt.uint8).reshape(3, 4)
    for y in (x, x.t(), x[:, 1:3]):
        interface = y.__array_interface__
        assert interface["shape"] == y.shape and interface["typestr"] == "|u1"
        assert interface["data"][0] == y.data_ptr()
        assert (interface["strides"] is None) == y.is_contiguous()

    class Lends:
        """As PIL's images do it: this protocol alone."""

        @property
        def __array_interface__(self) -> dict[str, Any]:
            return {"shape": (2, 2), "typestr": "|u1", "data": bytes(range(4)), "version": 3}

    assert dt.asarray(Lends()).tolist() == dt.tensor(Lends()).tolist() == [[0, 1], [2, 3]]


def test_array_interface_is_not_there_where_memory_cannot_be_read(device: str) -> None:
    for x in (dt.ones(2, dtype=dt.bfloat16, device=device), dt.ones(2, device=device, requires_grad=True)):
        assert not hasattr(x, "__array_interface__")
    assert hasattr(dt.ones(2, device=device), "__array_interface__") == (device == "cpu")


def test_images_of_pil() -> None:
    pillow = pytest.importorskip("PIL.Image")
    x = dt.arange(24, dtype=dt.uint8).reshape(2, 4, 3)
    image = pillow.fromarray(x)
    assert image.size == (4, 2) and dt.asarray(image).tolist() == x.tolist()
    assert np.asarray(pillow.fromarray(x.transpose(0, 1))).tolist() == x.transpose(0, 1).tolist()


def test_ndarrays_index_arrays_of_the_host(device: str) -> None:
    x = dt.arange(6.0, device=device).reshape(3, 2)
    places, mask = np.array([2, 0]), np.array([True, False, True])
    if device != "cpu":
        for index in (places, mask, (slice(None), np.array([1]))):
            with pytest.raises(dt.HostAccessError):
                x[index]
        return
    host = x.numpy().copy()
    for index in (places, places[::-1], places.astype(np.int32), mask, (mask, 0), (Ellipsis, np.array([[1], [0]])),
                  np.array(1), np.array([], dtype=np.int64), (places, np.array([1, 0]))):  # fmt: skip
        assert x[index].tolist() == host[index].tolist()
    x[places] = 9
    assert x.tolist() == [[9, 9], [2, 3], [9, 9]]
    for wrong in (np.array([0.5]), np.array([1], dtype=np.int8), np.array([1], dtype=np.uint8)):
        with pytest.raises(dt.DTypeMismatchError):
            x[wrong]
    with pytest.raises(IndexError):
        x[np.array([3])]


def test_gradients_do_not_see_what_becomes_of_an_index() -> None:
    x = dt.ones(3, requires_grad=True)
    places = np.array([2, 2])
    y = x[places].sum()
    places[:] = 0
    y.backward()
    assert x.grad is not None and x.grad.tolist() == [0, 0, 2]


@pytest.mark.parametrize("name", ["exp", "sqrt", "sum", "mean", "add"])
def test_functions_of_numpy_say_what_to_call(name: str, device: str) -> None:
    x = dt.ones(2, device=device)
    arguments = (x, x) if name == "add" else (x,)
    with pytest.raises(dt.HostAccessError) as raised:
        getattr(np, name)(*arguments)
    assert f"devtensor.{name}(x" in str(raised.value) and f"numpy.{name}(x.cpu().numpy()" in str(raised.value)
    assert raised.value.code == "numpy-function"


def test_functions_of_numpy_that_read_buffers_still_do() -> None:
    x = dt.ones(2)
    assert np.concatenate([x, x]).tolist() == [1, 1, 1, 1]
    assert np.shape(x) == (2,) and np.array_equal(x, [1, 1]) and np.allclose(x, np.ones(2))
    with pytest.raises(dt.HostAccessError, match="multiply.reduce"):
        np.multiply.reduce(x)


def test_dtypes_are_numpys_too() -> None:
    for name in NAMES:
        assert np.dtype(getattr(dt, name)) == np.dtype(name)
    assert np.zeros(2, dtype=dt.float32).dtype == np.float32


def test_round_and_tobytes(device: str) -> None:
    x = dt.tensor([1.25, 2.5, -0.5], device=device)
    assert round(x).tolist() == [1, 2, 0] and round(x).device == x.device
    assert round(x, 1).tolist() == dt.round(x, decimals=1).tolist()
    if device != "cpu":
        with pytest.raises(dt.HostAccessError):
            x.tobytes()
        return
    assert x.tobytes() == x.numpy().tobytes()
    assert dt.arange(6).reshape(2, 3).t().tobytes() == np.arange(6).reshape(2, 3).T.tobytes()
    assert dt.tensor([1.0], dtype=dt.bfloat16).tobytes() == b"\x80\x3f"


@pytest.mark.parametrize("first", ["einops", "devtensor"])
def test_einops_takes_arrays(first: str, device: str) -> None:
    pytest.importorskip("einops")
    program = f"""
import {first}, einops, devtensor as dt
x = dt.arange(24.0, device={device!r}).reshape(2, 3, 4)
assert einops.rearrange(x, "a b c -> b (a c)").tolist() == x.permute(1, 0, 2).reshape(3, 8).tolist()
assert einops.reduce(x, "a b c -> b", "mean").tolist() == x.mean((0, 2)).tolist()
assert einops.repeat(x, "a b c -> a b c k", k=2).shape == (2, 3, 4, 2)
assert einops.einsum(x, x, "a b c, a b c -> a").device == x.device
"""
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "PYTHONPATH": python_path()})
