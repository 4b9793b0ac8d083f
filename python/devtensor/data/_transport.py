"""How an answer travels from a worker to the loader: pickled through the pipe, its large arrays in shared memory.

The memory is a file without a name, whose descriptor follows the message. Where the system has no such files everything
goes through the pipe.
"""

from __future__ import annotations

import ctypes
import io
import mmap
import os
import pickle
import socket
import struct
import weakref
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray

_LARGE = 1 << 16  # bytes from which a buffer goes into shared memory
_ALIGN = 64
_FOLLOWS = b"F"  # a descriptor travels with a byte


class _Pickler(ForkingPickler):
    """Hands out the memory of arrays of the cpu instead of copying it."""

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is not DeviceArray or obj.is_cuda or obj.nbytes < _LARGE or obj.dtype is _C.bfloat16:
            return NotImplemented  # bfloat16 has no buffer format
        memory: Any = obj.contiguous()
        return _shared, (pickle.PickleBuffer(memory), obj.dtype, obj.shape)


def _shared(buffer: Any, dtype: Any, shape: tuple[int, ...]) -> DeviceArray:
    return _C.frombuffer(buffer, dtype=dtype).reshape(shape)


def _places(sizes: Sequence[int]) -> list[int]:
    """Where each buffer begins, and at last the size of all."""
    places = [0]
    for size in sizes:
        places.append(places[-1] + -(-size // _ALIGN) * _ALIGN)
    return places


class Packed:
    """An answer ready to be sent. Raises whatever pickling raises, OSError if there is no memory."""

    def __init__(self, answer: Any) -> None:
        buffers: list[memoryview] = []

        def take(buffer: pickle.PickleBuffer) -> bool:
            memory = buffer.raw()
            if memory.nbytes < _LARGE:
                return True  # stays in the pickle
            buffers.append(memory)
            return False

        stream = io.BytesIO()
        _Pickler(stream, 5, True, take if hasattr(os, "memfd_create") else None).dump(answer)
        sizes = [buffer.nbytes for buffer in buffers]
        self._message = struct.pack(f"<{1 + len(sizes)}Q", len(sizes), *sizes) + stream.getbuffer()
        self._file: int | None = None
        if buffers:
            self._file = os.memfd_create("devtensor batch")
            try:
                for buffer, place in zip(buffers, _places(sizes), strict=False):
                    _write(self._file, buffer, place)
                os.ftruncate(self._file, _places(sizes)[-1])
            except BaseException:
                os.close(self._file)
                raise

    def send(self, pipe: Connection) -> None:
        """Once. Raises OSError where the other side has gone."""
        try:
            pipe.send_bytes(self._message)
            if self._file is not None:
                with _socket(pipe) as line:
                    socket.send_fds(line, [_FOLLOWS], [self._file])
        finally:
            if self._file is not None:
                os.close(self._file)


def _write(file: int, buffer: memoryview, place: int) -> None:
    while buffer:
        written = os.pwrite(file, buffer, place)
        buffer, place = buffer[written:], place + written


# mmap.mmap keeps a descriptor for each mapping, so that a thousand batches in a list would be too many files.
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)


def _map(file: int, nbytes: int) -> memoryview:
    """The memory of a file, until nothing refers to it."""
    address = _libc.mmap(None, nbytes, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, file, 0)
    if address == ctypes.c_void_p(-1).value:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    memory = (ctypes.c_char * nbytes).from_address(address)
    weakref.finalize(memory, _libc.munmap, address, nbytes).atexit = False  # arrays may be alive then
    return memoryview(memory)


def _socket(pipe: Connection) -> socket.socket:
    return socket.fromfd(pipe.fileno(), socket.AF_UNIX, socket.SOCK_STREAM)


def _receive_file(pipe: Connection) -> int:
    """Not by multiprocessing.reduction, which from Python 3.14 answers, and the worker reads orders from this pipe."""
    with _socket(pipe) as line:
        message, files, _, _ = socket.recv_fds(line, len(_FOLLOWS), 1)
    if not message:
        raise EOFError
    if not files:
        raise RuntimeError("a batch came without its memory: this process has too many open files (see ulimit -n)")
    return files[0]


def receive(pipe: Connection) -> Any:
    """The next answer. Raises EOFError or OSError where the worker has gone."""
    message = memoryview(pipe.recv_bytes())
    (count,) = struct.unpack_from("<Q", message)
    sizes = struct.unpack_from(f"<{count}Q", message, 8)
    buffers: list[memoryview] = []
    if count:
        file = _receive_file(pipe)
        try:
            places = _places(sizes)
            memory = _map(file, places[-1])
        finally:
            os.close(file)
        buffers = [memory[place : place + size] for place, size in zip(places, sizes, strict=False)]
    return pickle.loads(message[8 * (1 + count) :], buffers=buffers)
