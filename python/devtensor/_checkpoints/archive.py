"""Zip files of records that are not compressed, as PyTorch writes them: each begins at a multiple of 64 bytes.

What is read here comes from strangers: every number is checked before it is used, and no more bytes are read than the
file has.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

LOCAL, CENTRAL, END = b"PK\3\4", b"PK\1\2", b"PK\5\6"
_END64, _LOCATOR64 = b"PK\6\6", b"PK\6\7"
_ALIGNMENT = 64
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF  # the number stands elsewhere
_DAY = 0x21  # 1980-01-01, so that the same contents make the same file


class Source(Protocol):
    """The bytes of a file."""

    nbytes: int
    mapped: bool  # its bytes are read by whoever looks at them

    def read(self, start: int, count: int) -> memoryview:
        """Raises ValueError where the file has fewer."""


class Record(NamedTuple):
    """A record of an archive: where its local header begins, how many bytes it has, and their checksum."""

    header: int
    nbytes: int
    checksum: int


# ---------------------------------------------------------------- writing


def write(put: Callable[[bytes | memoryview], None], records: Iterable[tuple[str, bytes | memoryview]]) -> None:
    """The archive goes to put, piece by piece; records are taken one at a time."""
    at, directory, count = 0, bytearray(), 0
    for name, data in records:
        view = memoryview(data).cast("B")
        record = Record(at, view.nbytes, zlib.crc32(view) if view.nbytes else 0)
        head = _local(name.encode(), record)
        directory += _central(name.encode(), record)
        count += 1
        put(head)
        if view.nbytes:
            put(view if isinstance(data, memoryview) else data)
        at += len(head) + view.nbytes
    put(bytes(directory) + _end(at, len(directory), count))


def _wide(*numbers: int) -> bytes:
    """The extra field for numbers that 32 bits do not hold."""
    over = [number for number in numbers if number >= _FULL32]
    return struct.pack(f"<HH{len(over)}Q", 1, 8 * len(over), *over) if over else b""


def _local(name: bytes, record: Record) -> bytes:
    extra = _wide(record.nbytes, record.nbytes)
    begins = record.header + 30 + len(name) + len(extra) + 4
    padding = -begins % _ALIGNMENT
    extra += struct.pack("<HH", 0x4246, padding) + b"Z" * padding
    return _fields(LOCAL, record, extra, name, b"") + name + extra


def _central(name: bytes, record: Record) -> bytes:
    extra = _wide(record.nbytes, record.nbytes, record.header)
    rest = struct.pack("<HHHII", 0, 0, 0, 0, min(record.header, _FULL32))
    return _fields(CENTRAL + struct.pack("<H", 45), record, extra, name, rest) + name + extra


def _fields(begin: bytes, record: Record, extra: bytes, name: bytes, rest: bytes) -> bytes:
    size = min(record.nbytes, _FULL32)
    version = 45 if size == _FULL32 else 20
    sizes = struct.pack("<5H3I2H", version, 0, 0, 0, _DAY, record.checksum, size, size, len(name), len(extra))
    return begin + sizes + rest


def _end(at: int, nbytes: int, count: int) -> bytes:
    wide = b""
    if max(at, nbytes) >= _FULL32 or count >= _FULL16:
        wide = _END64 + struct.pack("<Q2H2I4Q", 44, 45, 45, 0, 0, count, count, nbytes, at)
        wide += _LOCATOR64 + struct.pack("<IQI", 0, at + nbytes, 1)
    few = min(count, _FULL16)
    return wide + END + struct.pack("<4H2IH", 0, 0, few, few, min(nbytes, _FULL32), min(at, _FULL32), 0)


# ---------------------------------------------------------------- reading


def directory(source: Source) -> dict[str, Record]:
    """The records of an archive by name, in the order of its directory.

    Raises ValueError with the reason for what is no whole archive, has compressed records or records that share bytes.
    """
    start, nbytes, count = _find(source)
    data = memoryview(source.read(start, nbytes))
    found: dict[str, Record] = {}
    at = 0
    for _ in range(count):
        name, record, at = _entry(data, at)
        if name in found:
            raise ValueError(f"its record {name!r} is there twice")
        found[name] = record
    if sum(record.nbytes for record in found.values()) > start:
        raise ValueError("its records have more bytes than the file")
    return found


def _find(source: Source) -> tuple[int, int, int]:
    """Where the directory begins, its size, and how many records it has."""
    tail = bytes(source.read(max(0, source.nbytes - 22 - _FULL16), min(source.nbytes, 22 + _FULL16)))
    at = tail.rfind(END)
    while at >= 0 and (len(tail) < at + 22 or at + 22 + struct.unpack_from("<H", tail, at + 20)[0] != len(tail)):
        at = tail.rfind(END, 0, at)
    if at < 0:
        raise ValueError("it ends before the directory of its records")
    end = source.nbytes - len(tail) + at
    count, nbytes, start = struct.unpack_from("<H2I", tail, at + 10)
    if end >= 20 and (count == _FULL16 or _FULL32 in (nbytes, start)):
        locator = bytes(source.read(end - 20, 20))
        if locator[:4] == _LOCATOR64:
            (end,) = struct.unpack_from("<Q", locator, 8)
            wide = bytes(source.read(end, 56))
            if wide[:4] != _END64:
                raise ValueError("the directory of its records is not where it should be")
            count, nbytes, start = struct.unpack_from("<3Q", wide, 32)
    if start + nbytes > end or count * 46 > nbytes:
        raise ValueError("the directory of its records does not fit into the file")
    return start, nbytes, count


def _entry(data: memoryview, at: int) -> tuple[str, Record, int]:
    if data[at : at + 4] != CENTRAL or len(data) < at + 46:
        raise ValueError("the directory of its records is damaged")
    flags, method = struct.unpack_from("<2H", data, at + 8)
    checksum, packed, nbytes, name_size, extra_size, comment = struct.unpack_from("<3I3H", data, at + 16)
    (header,) = struct.unpack_from("<I", data, at + 42)
    end = at + 46 + name_size + extra_size
    if end + comment > len(data):
        raise ValueError("the directory of its records is damaged")
    name = bytes(data[at + 46 : at + 46 + name_size]).decode()
    nbytes, packed, header = _widened(bytes(data[end - extra_size : end]), nbytes, packed, header)
    if method != 0 or flags & 1 or packed != nbytes:
        raise ValueError(f"its record {name!r} is compressed or encrypted, and PyTorch writes none like that")
    return name, Record(header, nbytes, checksum), end + comment


def _widened(extra: bytes, *numbers: int) -> list[int]:
    """The numbers, with those that 32 bits do not hold from the extra field."""
    at, wide = 0, iter(())
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<2H", extra, at)
        if kind == 1 and at + 4 + size <= len(extra):
            wide = iter(struct.unpack_from(f"<{size // 8}Q", extra, at + 4))
        at += 4 + size
    return [next(wide, number) if number == _FULL32 else number for number in numbers]


def read(source: Source, name: str, record: Record) -> memoryview:
    """The bytes of a record. Raises ValueError for what does not lie in the file, and for bytes that have changed."""
    head = bytes(source.read(record.header, 30))
    if head[:4] != LOCAL:
        raise ValueError(f"its record {name!r} is not where it should be")
    data = source.read(record.header + 30 + sum(struct.unpack_from("<2H", head, 26)), record.nbytes)
    if not source.mapped and zlib.crc32(data) != record.checksum:
        raise ValueError(f"the bytes of its record {name!r} have changed since they were written")
    return data
