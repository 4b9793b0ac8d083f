"""The bytes of a file: read when they are wanted, or mapped into memory."""

from __future__ import annotations

import mmap
from typing import BinaryIO

from devtensor import _C


class Read:
    """Copies, each made once, in the memory of an array: it is not filled with zeros first."""

    mapped = False

    def __init__(self, file: BinaryIO, nbytes: int) -> None:
        self.file, self.nbytes = file, nbytes

    def read(self, start: int, count: int) -> memoryview:
        """Raises ValueError where the file has fewer bytes."""
        _check(start, count, self.nbytes)
        data = memoryview(_C.empty(count, dtype=_C.uint8, device="cpu"))
        self.file.seek(start)
        if self.file.readinto(data) != count:  # type: ignore[attr-defined]
            raise ValueError("it became shorter while it was read")
        return data


class Mapped:
    """Parts of the memory that the file is mapped into. What is written there is this process's alone."""

    mapped = True

    def __init__(self, file: BinaryIO, nbytes: int) -> None:
        self.nbytes = nbytes
        self.memory = memoryview(mmap.mmap(file.fileno(), nbytes, access=mmap.ACCESS_COPY) if nbytes else b"")

    def read(self, start: int, count: int) -> memoryview:
        """Raises ValueError where the file has fewer bytes."""
        _check(start, count, self.nbytes)
        return self.memory[start : start + count]


def _check(start: int, count: int, nbytes: int) -> None:
    if start < 0 or count < 0 or start + count > nbytes:
        raise ValueError("it ends before its bytes do")
