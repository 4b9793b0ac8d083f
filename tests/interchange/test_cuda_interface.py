"""The CUDA array interface both ways. On simulated devices the other library is one of these tests."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from formats import STORAGE
from support import CUDA_DEVICES, REAL, bits_of, counted, lay_out, name_of

import devtensor as dt

TYPES = {
    "bool": "|b1",
    "uint8": "|u1",
    "int8": "|i1",
    "int16": "<i2",
    "int32": "<i4",
    "int64": "<i8",
    "float16": "<f2",
    "float32": "<f4",
    "float64": "<f8",
}
LAYOUTS = ("contiguous", "transposed", "sliced", "expanded")


@pytest.fixture
def lent() -> Iterator[None]:
    dt._C._test.lend_simulated(True)
    yield
    dt._C._test.lend_simulated(False)


class Other:
    """An array of another library."""

    def __init__(self, **interface: Any) -> None:
        self.__cuda_array_interface__ = interface

    @staticmethod
    def over(x: dt.DeviceArray, **changes: Any) -> Other:
        """x's memory, which has to outlive it."""
        interface = {
            "shape": x.shape,
            "typestr": TYPES[name_of(x.dtype)],
            "data": (x.data_ptr(), False),
            "strides": x.strides,
            "version": 3,
        }
        return Other(**(interface | changes))


def stored(dtype: str, *shape: int) -> np.ndarray:
    count = int(np.prod(shape))
    return (np.arange(count) % 2 if dtype == "bool" else np.arange(count)).astype(STORAGE[dtype]).reshape(shape)


# ---------------------------------------------------------------- ours, to others


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", list(TYPES))
def test_what_it_says(dtype: str, layout: str, cuda: str, lent: None) -> None:
    x = lay_out(stored(dtype, 2, 3), dtype, cuda, layout)
    assert x.__cuda_array_interface__ == {
        "shape": (2, 3),
        "typestr": TYPES[dtype],
        "data": (x.data_ptr(), layout == "expanded"),
        "version": 3,
        "strides": None if layout == "contiguous" else x.strides,
        "stream": dt.cuda.current_stream(cuda).cuda_stream,
    }


@pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
def test_numbers_and_empty_arrays(shape: tuple[int, ...], cuda: str, lent: None) -> None:
    x = dt.ones(shape, device=cuda)
    interface = x.__cuda_array_interface__
    assert (interface["shape"], interface["data"]) == (shape, (x.data_ptr(), False))
    assert dt.asarray(Other(**interface), device=cuda).shape == shape


def test_who_has_none(cuda: str) -> None:
    """Nobody has the attribute by mistake: libraries ask with hasattr."""
    assert not hasattr(dt.ones(2), "__cuda_array_interface__")
    with pytest.raises(AttributeError, match="an array on the cpu has no __cuda_array_interface__"):
        _ = dt.ones(2).__cuda_array_interface__
    x = dt.ones(2, device=cuda)
    assert hasattr(x, "__cuda_array_interface__") is REAL
    if not REAL:
        with pytest.raises(AttributeError, match=r"simulated GPU has no __cuda_array_interface__.*\.cpu\(\)"):
            _ = x.__cuda_array_interface__


def test_bfloat16_has_no_name(cuda: str, lent: None) -> None:
    with pytest.raises(AttributeError, match="no name for bfloat16; __dlpack__ has one"):
        _ = dt.ones(2, dtype=dt.bfloat16, device=cuda).__cuda_array_interface__


def test_the_stream_is_the_one_that_has_the_values(cuda: str, lent: None, streams: list[dt.cuda.Stream]) -> None:
    with dt.cuda.stream(streams[0]):
        x = dt.ones(1000, device=cuda) * 3
    before = counted("cuStreamWaitEvent")
    with dt.cuda.stream(streams[1]):
        assert x.__cuda_array_interface__["stream"] == streams[1].cuda_stream
    assert counted("cuStreamWaitEvent") == before + 1  # it waits for the other one


def test_who_asks_costs_no_wait(cuda: str, lent: None) -> None:
    """Nobody can tell whether the address was kept: the memory comes back behind an event of the whole device."""
    x = dt.zeros(1000, device=cuda)
    waits = counted("cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize")
    events = counted("cuCtxRecordEvent")
    assert hasattr(x, "__cuda_array_interface__") and hasattr(x[1:], "__cuda_array_interface__")
    del x
    assert counted("cuCtxRecordEvent") == events + 1
    assert counted("cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize") == waits


# ---------------------------------------------------------------- others', to us


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", list(TYPES))
def test_what_is_understood(dtype: str, layout: str, cuda: str) -> None:
    x = lay_out(stored(dtype, 2, 3), dtype, cuda, layout)
    y = dt.from_cuda_array_interface(Other.over(x))
    assert (str(y.device), name_of(y.dtype), y.shape, y.strides) == (cuda, dtype, x.shape, x.strides)
    assert y.data_ptr() == x.data_ptr()
    assert np.array_equal(bits_of(y), bits_of(x))
    assert y.origin is not None and y.origin.action == "from_cuda_array_interface"
    if layout != "expanded":
        y.zero_()
        assert not bits_of(x).any()


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize(
    "shape, strides", [((3,), (2,)), ((2, 3), (1, 2)), ((2, 3), (5, 1)), ((4, 2), (0, 3)), ((1,), (7,))]
)
def test_it_ends_with_its_last_element(shape: tuple[int, ...], strides: tuple[int, ...], dtype: str, cuda: str) -> None:
    """What the other library has behind that is not reached through the array."""
    x = dt.zeros(100, dtype=getattr(dt, dtype), device=cuda)
    steps = tuple(stride * x.element_size() for stride in strides)
    y = dt.from_cuda_array_interface(Other.over(x, shape=shape, strides=steps))
    extent = 1 + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True) if n > 1)
    assert y.as_strided((extent,), (1,)).shape == (extent,)
    with pytest.raises(ValueError, match="memory"):
        y.as_strided((extent + 1,), (1,))


def test_who_takes_it(cuda: str) -> None:
    """It stays on its device; a copy is a copy; a dtype or a device that is named is a cast or a move."""
    x = dt.arange(3, dtype=dt.float32, device=cuda)
    other = Other.over(x, version=2, descr=[("", "<f4")])
    for make in (dt.asarray, dt.as_tensor, dt.from_cuda_array_interface):
        assert make(other).data_ptr() == x.data_ptr()
    for copy in (dt.array, dt.tensor):
        made = copy(other)
        assert (str(made.device), made.tolist()) == (cuda, [0, 1, 2]) and made.data_ptr() != x.data_ptr()
    assert dt.asarray(other, dtype=dt.int64).tolist() == [0, 1, 2]
    with dt.record_transfers() as log:
        assert str(dt.asarray(other, device="cpu").device) == "cpu"
        dt.asarray(other)
    assert log.nbytes == 12
    assert dt.from_cuda_array_interface(x).data_ptr() == x.data_ptr()


@pytest.mark.parametrize("current", [0, 1])
def test_the_device_is_that_of_the_address(current: int) -> None:
    if dt.cuda.device_count() <= current:
        pytest.skip("one device")
    with dt.cuda.device(current):
        for name in CUDA_DEVICES:
            x = dt.arange(3, device=name)
            assert str(dt.asarray(Other.over(x)).device) == name


def test_read_only(cuda: str) -> None:
    x = dt.ones(3, device=cuda)
    y = dt.asarray(Other.over(x, data=(x.data_ptr(), True)))
    with pytest.raises(RuntimeError, match="read-only"):
        y.zero_()
    assert (y + 1).tolist() == [2, 2, 2]


def test_streams_of_the_producer(cuda: str, streams: list[dt.cuda.Stream]) -> None:
    """Ours follows the one that is named, 1 and 2 included; none where there is nothing to wait for."""
    x = dt.ones(3, device=cuda)
    own = dt.cuda.default_stream(cuda).cuda_stream
    for stream, waits in ((None, 0), (own, 0), (1, 1), (2, 1), (streams[0].cuda_stream, 1)):
        before = counted("cuStreamWaitEvent")
        y = dt.asarray(Other.over(x, stream=stream))
        assert counted("cuStreamWaitEvent") - before == waits
        del y


def test_the_owner_lives_as_long_as_the_array_and_our_work_on_it(cuda: str) -> None:
    class Watched(Other):
        ended = False

        def __del__(self) -> None:
            Watched.ended = True

    x = dt.zeros(1000, device=cuda)
    for order in itertools.permutations(range(3)):
        Watched.ended = False
        other = Watched(**Other.over(x).__cuda_array_interface__)
        array = dt.asarray(other)
        held: list[Any] = [other, array, array[500:]]
        held[2] += 1
        del other, array
        waits = dt._C.counters()["synchronizations"]
        for i in order:
            gc.collect()
            assert not Watched.ended
            held[i] = None
        gc.collect()
        assert Watched.ended and dt._C.counters()["synchronizations"] > waits
    assert x.sum().item() == 6 * 500


GOOD: dict[str, Any] = {"shape": (2,), "typestr": "<f4", "data": (0, False), "version": 3}
WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"mask": object()}, ValueError, "has a mask"),
    ({"typestr": "<c8"}, TypeError, "elements of type '<c8' are not supported"),
    ({"typestr": ">f4"}, TypeError, "'>f4'"),
    ({"typestr": "<u2"}, TypeError, "'<u2'"),
    ({"typestr": ""}, TypeError, "''"),
    ({"typestr": None}, TypeError, "None"),
    ({"shape": [2]}, ValueError, "needs a shape"),
    ({"shape": None}, ValueError, "needs a shape"),
    ({"shape": (1.5,)}, TypeError, "must be int"),
    ({"shape": (-1,)}, RuntimeError, "negative dimension"),
    ({"shape": (1,) * 65}, ValueError, "at most"),
    ({"strides": (4, 4)}, ValueError, "another number of strides"),
    ({"strides": (-4,)}, ValueError, "stride that is negative"),
    ({"strides": (3,)}, ValueError, "no multiple"),
    ({"strides": (2**62,), "shape": (4,)}, ValueError, "64 bits"),
    ({"strides": 4}, ValueError, "strides that are a tuple"),
    ({"data": None}, ValueError, "needs data"),
    ({"data": (1.0, False)}, ValueError, "needs data"),
    ({"data": (-1, False)}, OverflowError, ""),
    ({"data": (2, False)}, ValueError, "not aligned"),
    ({"stream": 0}, ValueError, "a stream that is none"),
    ({"stream": "x"}, TypeError, "stream"),
    ({"data": (4096, False)}, RuntimeError, "0x1000 is not an address in the memory of cuda:0"),
]


@pytest.mark.parametrize(
    ("changes", "error", "text"), WRONG, ids=[str(row[0]).partition(" at 0x")[0][:40] for row in WRONG]
)
def test_refused(changes: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        dt.from_cuda_array_interface(Other(**(GOOD | changes)))
    assert text in str(caught.value)


def test_objects_that_are_none() -> None:
    with pytest.raises(AttributeError):
        dt.from_cuda_array_interface(object())
    with pytest.raises(ValueError, match="must be a dict"):
        odd = Other()
        odd.__cuda_array_interface__ = 3  # type: ignore[assignment]
        dt.asarray(odd)


def test_memory_of_the_host_is_refused(cuda: str) -> None:
    for x in (dt.ones(3), dt.ones(3).pin_memory()):
        with pytest.raises(RuntimeError, match="is not an address in the memory of"):
            dt.asarray(Other.over(x))


def test_both_ways(cuda: str, lent: None) -> None:
    x = dt.arange(6, dtype=dt.float32, device=cuda).reshape(2, 3)
    y = dt.asarray(Other(**x.T.__cuda_array_interface__))
    assert y.tolist() == x.T.tolist()
    y += 1
    assert x.sum().item() == 21
