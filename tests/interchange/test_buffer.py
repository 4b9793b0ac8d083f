"""The buffer protocol both ways, against NumPy's answers to the same requests; frombuffer."""

from __future__ import annotations

import array
import ctypes
import mmap
import pathlib
from typing import Any

import numpy as np
import pytest
from formats import STORAGE
from support import bits_of, lay_out

import devtensor as dt

FORMATS = {"bool": "?", "uint8": "B", "int8": "b", "int16": "h", "int32": "i", "float16": "e", "float32": "f"}
FORMATS |= {"int64": "q", "float64": "d"}
LAYOUTS = ("contiguous", "transposed", "sliced", "expanded")

REQUESTS = {
    "SIMPLE": 0,
    "WRITABLE": 0x1,
    "FORMAT": 0x4,
    "ND": 0x8,
    "STRIDES": 0x18,
    "C_CONTIGUOUS": 0x38,
    "F_CONTIGUOUS": 0x58,
    "ANY_CONTIGUOUS": 0x98,
    "CONTIG": 0x9,
    "RECORDS_RO": 0x1C,
    "RECORDS": 0x1D,
    "FULL_RO": 0x11C,
    "FULL": 0x11D,
}


class Buffer(ctypes.Structure):
    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    )


def request(exporter: Any, flags: int) -> dict[str, Any] | str:
    """What PyObject_GetBuffer gives for these flags."""
    view = Buffer()
    get = ctypes.pythonapi.PyObject_GetBuffer
    get.argtypes, get.restype = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int], ctypes.c_int
    try:
        get(exporter, ctypes.addressof(view), flags)
    except (BufferError, ValueError):
        return "refused"
    answer = {
        "buf": view.buf,
        "len": view.len,
        "itemsize": view.itemsize,
        "readonly": view.readonly,
        "ndim": view.ndim if view.shape else None,
        "format": view.format,
        "shape": view.shape[: view.ndim] if view.shape else None,
        "strides": view.strides[: view.ndim] if view.strides else None,
        "suboffsets": bool(view.suboffsets),
    }
    release = ctypes.pythonapi.PyBuffer_Release
    release.argtypes, release.restype = [ctypes.c_void_p], None
    release(ctypes.addressof(view))
    return answer


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("flags", list(REQUESTS))
@pytest.mark.parametrize("dtype", list(FORMATS))
def test_requests(dtype: str, flags: str, layout: str, readonly: bool) -> None:
    """NumPy's array over the same memory answers the same."""
    x = lay_out(np.ones((2, 3), STORAGE[dtype]), dtype, "cpu", layout)
    like = x.numpy()
    if readonly:
        like.setflags(write=False)
        x = dt.from_numpy(like)
    got, want = request(x, REQUESTS[flags]), request(like, REQUESTS[flags])
    if isinstance(want, dict) and want["format"] is not None:
        want["format"] = FORMATS[dtype].encode()  # NumPy writes "l" for int64
    assert got == want


@pytest.mark.parametrize("flags", list(REQUESTS))
@pytest.mark.parametrize("shape", [(), (0,), (1, 3), (3, 1), (0, 2), (2, 1, 2)])
def test_shapes(shape: tuple[int, ...], flags: str) -> None:
    x = dt.ones(shape)
    got, want = request(x, REQUESTS[flags]), request(x.numpy(), REQUESTS[flags])
    if isinstance(got, dict) and isinstance(want, dict) and (0 in shape or 1 in shape):
        got.pop("strides"), want.pop("strides")  # nobody goes that way
    assert got == want


def test_formats_are_understood() -> None:
    for dtype, letter in FORMATS.items():
        view = memoryview(dt.ones((2, 2), dtype=getattr(dt, dtype)))
        assert (view.format, view.itemsize, view.shape) == (letter, np.dtype(dtype).itemsize, (2, 2))
    with pytest.raises(BufferError, match=r"bfloat16 has no buffer format; \.float\(\) converts exactly"):
        memoryview(dt.ones(2, dtype=dt.bfloat16))


def test_device_arrays_have_no_buffer(cuda: str) -> None:
    x = dt.ones(2, device=cuda)
    for read in (memoryview, bytes, bytearray, np.asarray, np.array, lambda x: np.add(1, x)):
        with pytest.raises((dt.HostAccessError, BufferError, TypeError), match=r"\.cpu\(\)|ufunc"):
            read(x)
    with pytest.raises(dt.HostAccessError, match=r"Use \.cpu\(\)"):
        x.__array__()
    with pytest.raises(dt.HostAccessError, match=r"use devtensor.add\(x, y\)|devtensor.add"):
        np.add(x, 1)


# ---------------------------------------------------------------- frombuffer


@pytest.mark.parametrize("dtype", list(STORAGE))
def test_frombuffer(dtype: str) -> None:
    stored = (np.arange(6) % 2).astype(STORAGE[dtype])
    raw = bytearray(stored.tobytes())
    x = dt.frombuffer(raw, dtype=getattr(dt, dtype))
    assert np.array_equal(bits_of(x), stored)
    part = dt.frombuffer(raw, dtype=getattr(dt, dtype), count=2, offset=stored.itemsize)
    assert np.array_equal(bits_of(part), stored[1:3])
    part.zero_()
    assert not any(raw[stored.itemsize : 3 * stored.itemsize])


def test_frombuffer_of_everything(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "numbers"
    file.write_bytes(np.arange(4, dtype=np.int32).tobytes())
    with open(file, "r+b") as handle, mmap.mmap(handle.fileno(), 0) as mapped:
        x = dt.frombuffer(mapped, dtype=dt.int32)
        x[0] = 7
        del x
    with open(file, "rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as fixed:
        y = dt.frombuffer(fixed, dtype=dt.int32)
        assert y.tolist() == [7, 1, 2, 3]
        with pytest.raises(RuntimeError, match="read-only"):
            y.zero_()
        del y
    sources = [array.array("i", [1, 2]), np.array([1, 2], np.int32), (ctypes.c_int32 * 2)(1, 2)]
    for source in [*sources, dt.array([1, 2], dtype=dt.int32), memoryview(sources[0])]:
        z = dt.frombuffer(source, dtype=dt.int32)
        z += 1
        assert list(memoryview(source).cast("B").cast("i")) == [2, 3] or z.tolist() == [3, 4]


WRONG: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    (bytes(7), {}, ValueError, "must be a multiple of element size"),
    (bytes(8), {"count": 3}, ValueError, "do not fit"),
    (bytes(8), {"offset": 9}, ValueError, "no greater than buffer length"),
    (bytes(8), {"offset": -1}, ValueError, "non-negative"),
    (bytes(9), {"offset": 1}, ValueError, "not aligned"),
    (memoryview(bytes(16))[::2], {}, ValueError, "not contiguous"),
    (7, {}, TypeError, "bytes-like"),
]


@pytest.mark.parametrize(("source", "keywords", "error", "text"), WRONG, ids=[row[3] for row in WRONG])
def test_frombuffer_refuses(source: Any, keywords: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        dt.frombuffer(source, dtype=dt.float32, **keywords)


def test_frombuffer_makes_a_leaf() -> None:
    x = dt.frombuffer(bytearray(8), dtype=dt.float32, requires_grad=True)
    assert x.requires_grad and x.is_leaf
