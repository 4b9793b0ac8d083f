"""What other libraries and files may hand over: capsules, interfaces, buffers and pickles with wrong contents."""

from __future__ import annotations

import copy
import ctypes
import io
import itertools
import math
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from dlpack_capsules import DELETER, NAMES, Old, Versioned, _new

import devtensor as dt
from fuzz.evil import Mischief, watch

MEMORY = (ctypes.c_char * 4096)()
SIZES = ctypes.c_int64 * 16
KEPT: list[Any] = []  # what a capsule points to outlives it


class Wrong(AssertionError):
    """A promise that was not kept."""


class Dlpack:
    """Hands out one capsule over 4096 bytes, with the contents that it was given."""

    def __init__(
        self,
        shape: Sequence[int] | None,
        strides: Sequence[int] | None = None,
        *,
        ndim: int | None = None,
        null: bool = False,
        dtype: tuple[int, int, int] = (2, 32, 1),
        device: tuple[int, int] = (1, 0),
        byte_offset: int = 0,
        flags: int | None = None,
        version: tuple[int, int] = (1, 0),
        name: bytes = b"",
        deleter: str = "counts",
        says: Any = None,
    ) -> None:
        self.deleted, self.device, self.says = 0, device, says
        self.raises = deleter == "raises"
        self.managed = Old() if flags is None else Versioned(*version, None, None, flags)
        self.name = NAMES[name or (b"dltensor" if flags is None else b"dltensor_versioned")]
        self.kept = (SIZES(*(shape or ())), SIZES(*(strides or ())), DELETER(self.delete))
        self.managed.deleter = None if deleter == "null" else ctypes.cast(self.kept[2], ctypes.c_void_p).value
        t = self.managed.tensor
        t.data = None if null else ctypes.addressof(MEMORY)
        (t.device_type, t.device_id), t.ndim = device, len(shape or ()) if ndim is None else ndim
        (t.code, t.bits, t.lanes), t.byte_offset = dtype, byte_offset
        if shape is not None:
            t.shape = self.kept[0]
        if strides is not None:
            t.strides = self.kept[1]
        KEPT.append(self)

    def delete(self, managed: int) -> None:
        self.deleted += 1
        if self.raises:
            raise Mischief("deleter")

    def __dlpack_device__(self) -> Any:
        return self.device if self.says is None else self.says

    def __dlpack__(self, **keywords: Any) -> Any:
        return _new(ctypes.addressof(self.managed), self.name, None)

    def fits(self) -> bool:
        """Whether everything that it speaks of is in the memory, so that it may be copied."""
        t = self.managed.tensor
        shape = [t.shape[d] for d in range(t.ndim)] if t.shape and 0 <= t.ndim <= 16 else [len(MEMORY)]
        strides = [t.strides[d] for d in range(t.ndim)] if t.strides and len(shape) == t.ndim else None
        if strides is None:
            reach = abs(math.prod(shape))
        elif min(strides, default=0) < 0:
            return False
        else:
            reach = 1 + sum(abs(n * s) for n, s in zip(shape, strides, strict=True))
        return bool(t.data) and t.byte_offset + reach * 16 <= len(MEMORY)

    def within(self, x: dt.DeviceArray) -> bool:
        """Whether all elements of x are in the memory."""
        first = self.managed.tensor.byte_offset
        reach = [(size - 1) * stride * x.itemsize for size, stride in zip(x.shape, x.stride(), strict=True)]
        low, high = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
        return x.numel() == 0 or (first + low >= 0 and first + high + x.itemsize <= len(MEMORY))


def taken(producer: Dlpack, **keywords: Any) -> Any:
    """What from_dlpack makes of it, read where it may be read. The producer is told once that it is no longer used."""
    try:
        x = dt.from_dlpack(producer, **(keywords if producer.fits() else {}))
    finally:
        producer.says = None  # which is not to be kept
    found = x.tolist() if producer.managed.tensor.data and producer.within(x) else (tuple(x.shape), str(x.dtype))
    if producer.managed.deleter and producer.deleted > 1:
        raise Wrong("deleted while it was used")
    del x
    if producer.managed.deleter and producer.deleted != 1:
        raise Wrong(f"deleted {producer.deleted} times")
    return found


class Lent:
    """The memory of an array of a device, as another library shows it; entries are replaced or left out."""

    def __init__(self, x: dt.DeviceArray, typestr: str, change: Callable[[dict[str, Any]], Any]) -> None:
        self.x = x
        interface: dict[str, Any] = {
            "shape": tuple(x.shape),
            "typestr": typestr,
            "data": (x.data_ptr(), False),
            "strides": tuple(x.strides),
            "version": 3,
        }
        changed = change(interface)
        self.__cuda_array_interface__ = interface if changed is None else changed
        watch(self)


def borrowed(owner: Any) -> Any:
    """What from_cuda_array_interface makes of it."""
    x = dt.from_cuda_array_interface(owner)
    return tuple(x.shape), str(x.dtype), x.tolist() if x.numel() < 64 else None


# ---------------------------------------------------------------- buffers


class View(ctypes.Structure):
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
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


def exported(x: Any, flags: int) -> Any:
    """What a consumer that asks for a buffer with these flags is given."""
    view = View()
    get = ctypes.pythonapi.PyObject_GetBuffer
    get.argtypes, get.restype = [ctypes.py_object, ctypes.POINTER(View), ctypes.c_int], ctypes.c_int
    get(x, ctypes.byref(view), flags)
    try:
        if view.len != x.numel() * x.itemsize or view.itemsize != x.itemsize:
            raise Wrong(f"{view.len} bytes of {view.itemsize}")
        if flags & 1 and view.readonly:
            raise Wrong("read-only, where one to write was asked for")
        if bool(view.format) != bool(flags & 4) or bool(view.shape) != bool(flags & 8 and view.ndim):
            raise Wrong("entries that were not asked for, or too few")
        if not view.shape:
            return ctypes.string_at(view.buf, view.len) if view.len else b""
        return view.shape[: view.ndim], view.strides[: view.ndim] if view.strides else None
    finally:
        release = ctypes.pythonapi.PyBuffer_Release
        release.argtypes, release.restype = [ctypes.POINTER(View)], None
        release(ctypes.byref(view))


# ---------------------------------------------------------------- pickles


class Loader(pickle.Unpickler):
    """Finds what belongs to arrays, and nothing that could do harm when it is called with anything."""

    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] not in ("devtensor", "numpy", "collections", "copyreg"):
            raise pickle.UnpicklingError(module)
        return super().find_class(module, name)


def mutated(data: bytes, changes: Sequence[tuple[str, int, int]]) -> bytes:
    found = bytearray(data)
    for what, at, value in changes:
        i = at % max(len(found), 1)
        if what == "set":
            found[i : i + 1] = bytes([value % 256])
        elif what == "cut":
            del found[i : i + value % 9]
        elif what == "put":
            found[i:i] = bytes([value % 256])
        else:
            found[i:i] = found[i : i + value % 40]
    return bytes(found)


def loaded(data: bytes) -> Any:
    return used(Loader(io.BytesIO(data)).load())


def used(x: Any) -> Any:
    """An object that came from somewhere: all of it is read."""
    if isinstance(x, dt.DeviceArray):
        return x.tolist() if x.numel() < 10_000 else tuple(x.shape)
    return repr(x)[:100]


def rebuilt(x: Any, protocol: int, at: int, value: Any) -> Any:
    """Called with one of the arguments that __reduce_ex__ gives replaced."""
    function, arguments, *state = x.__reduce_ex__(protocol)
    changed = list(arguments)
    changed[at % len(changed)] = value
    made = function(*changed)
    if state and hasattr(made, "__setstate__"):
        made.__setstate__(value)
    return used(made)


def copied_again(x: Any, value: Any) -> Any:
    """A deep copy with a memo in which another one left its entries, all replaced."""
    memo: dict[Any, Any] = {}
    copy.deepcopy(x, memo)
    for key in list(memo):
        memo[key] = value
    return used(x.__deepcopy__(memo))


# ---------------------------------------------------------------- data, kernels


def items(x: Any) -> Any:
    """The first items of something from devtensor.data."""
    return list(itertools.islice(iter(x), 8)), len(x)


SOURCE = """extern "C" __global__ void nothing(const float *x, double *y, int n, unsigned char c, float f, long l,
                                   bool b, const long long *i) {}"""


def kernel() -> dt.cuda.RawKernel:
    """One that touches no memory, whatever it is given."""
    if not hasattr(kernel, "made"):
        kernel.made = dt.cuda.RawKernel(SOURCE, "nothing")  # type: ignore[attr-defined]
    return kernel.made  # type: ignore[attr-defined]


def numpys(dtype: str, *shape: int) -> np.ndarray:
    return np.zeros(shape, dtype=dtype)
