"""DLPack capsules taken apart and put together with ctypes: a consumer and a producer that share no code with ours.
And what the tests of DLPack share."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from formats import STORAGE

import devtensor as dt

READONLY, COPIED = 1, 2
CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "complex": 5, "bool": 6}


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Old(ctypes.Structure):
    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


def function(name: str, result: Any, *arguments: Any) -> Any:
    found = getattr(ctypes.pythonapi, name)
    found.restype, found.argtypes = result, list(arguments)
    return found


_get_name = function("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)
_get_pointer = function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_set_name = function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_new = function("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)

# A capsule keeps the address of its name.
NAMES = {name: ctypes.c_char_p(name) for name in (b"dltensor", b"dltensor_versioned", b"something else")}
USED = {name: ctypes.c_char_p(b"used_" + name) for name in NAMES}


class Capsule:
    """What another library sees in a capsule."""

    def __init__(self, capsule: Any) -> None:
        self.capsule, self.name = capsule, _get_name(capsule)
        kind = Versioned if self.name == b"dltensor_versioned" else Old
        self.managed = kind.from_address(_get_pointer(capsule, self.name))
        self.tensor = self.managed.tensor

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape[: self.tensor.ndim])

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(self.tensor.strides[: self.tensor.ndim])

    def consume(self) -> None:
        """Takes the contents over: from now on release has to be called."""
        assert _set_name(self.capsule, USED[self.name]) == 0
        del self.capsule

    def release(self) -> None:
        DELETER(self.managed.deleter)(ctypes.addressof(self.managed))


KEPT: list[Any] = []


class Producer:
    """An array of another library over memory that outlives it; counts how often it was deleted. Lives for ever, as
    what it hands out does not keep it alive."""

    def __init__(
        self,
        address: int,
        shape: Sequence[int],
        strides: Sequence[int] | None = None,
        dtype: tuple[str, int] = ("float", 32),
        device: tuple[int, int] = (1, 0),
        flags: int | None = None,
        version: tuple[int, int] = (1, 0),
        lanes: int = 1,
        byte_offset: int = 0,
        name: bytes = b"",
        deleter: bool = True,
    ) -> None:
        self.device, self.deleted, self.asked = device, 0, dict[str, Any]()
        sizes = ctypes.c_int64 * max(len(shape), 1)
        self._kept = (sizes(*shape), None if strides is None else sizes(*strides), DELETER(self._delete))
        self._managed = Old() if flags is None else Versioned(*version, None, None, flags)
        self._managed.deleter = ctypes.cast(self._kept[2], ctypes.c_void_p) if deleter else None
        self._name = name or (b"dltensor" if flags is None else b"dltensor_versioned")
        t = self._managed.tensor
        t.data, (t.device_type, t.device_id), t.ndim = address, device, len(shape)
        (t.code, t.bits), t.lanes, t.byte_offset = (CODES[dtype[0]], dtype[1]), lanes, byte_offset
        t.shape = self._kept[0]
        if strides is not None:
            t.strides = self._kept[1]
        KEPT.append(self)

    def _delete(self, managed: int) -> None:
        assert managed == ctypes.addressof(self._managed)
        self.deleted += 1

    def capsule(self) -> Any:
        """Without a destructor: the contents stay this object's until somebody takes them over."""
        return _new(ctypes.addressof(self._managed), NAMES[self._name], None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **keywords: Any) -> Any:
        if isinstance(self._managed, Old) and not set(keywords) <= {"stream"}:
            raise TypeError("__dlpack__() got an unexpected keyword argument")
        self.asked = keywords
        return self.capsule()


# ---------------------------------------------------------------- arrays, consumers, producers

LAYOUTS = ("contiguous", "transposed", "sliced", "expanded")
LATEST = (1, 0)
DTYPES = {
    "bool": ("bool", 8),
    "uint8": ("uint", 8),
    "int8": ("int", 8),
    "int16": ("int", 16),
    "int32": ("int", 32),
    "int64": ("int", 64),
    "float16": ("float", 16),
    "bfloat16": ("bfloat", 16),
    "float32": ("float", 32),
    "float64": ("float", 64),
}


def patterns(dtype: str, *shape: int) -> np.ndarray:
    """Stored elements: bit patterns of finite numbers, all different where the dtype has as many."""
    count = int(np.prod(shape))
    stored = np.arange(count) % 2 if dtype == "bool" else np.arange(1, count + 1)
    return stored.astype(STORAGE[dtype]).reshape(shape)


def live() -> int:
    gc.collect()
    return dt._C._test.live_blocks()


def numpys(x: dt.DeviceArray) -> Any:
    return np.from_dlpack(x)


def torchs(x: dt.DeviceArray) -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed").from_dlpack(x)


def own(x: dt.DeviceArray) -> Any:
    return dt.from_dlpack(x)


def from_capsules(stored: np.ndarray, dtype: str, flags: int | None = 0) -> Any:
    strides = [s // stored.itemsize for s in stored.strides]
    return Producer(stored.ctypes.data, stored.shape, strides, DTYPES[dtype], flags=flags)
