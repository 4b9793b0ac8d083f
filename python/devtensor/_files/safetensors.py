"""The header of a safetensors file: name, dtype, shape and place of each array.

A file is the length of the header in 8 bytes, the header in JSON, and the bytes of the arrays one after the other
without a hole. What is read here comes from strangers: every number is checked before it is used.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple, NoReturn

_METADATA = "__metadata__"
_MOST = 100_000_000  # bytes of a header, as other readers have it
_LIMIT = 2**63  # of sizes and places

# Of every dtype of the format.
_BITS = (
    dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8)
    | dict.fromkeys(("I16", "U16", "F16", "BF16"), 16)
    | dict.fromkeys(("I32", "U32", "F32"), 32)
    | dict.fromkeys(("I64", "U64", "F64", "C64"), 64)
    | {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}
)


class Entry(NamedTuple):
    """An array in the file; first and last count from the end of the header."""

    dtype: str
    shape: tuple[int, ...]
    first: int
    last: int


def pack(entries: Mapping[str, Entry], notes: Mapping[str, str]) -> bytes:
    """The beginning of a file. Raises ValueError for strings that UTF-8 does not have and for too many of them."""
    header: dict[str, Any] = {_METADATA: dict(notes)} if notes else {}
    for name, (dtype, shape, first, last) in entries.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": (first, last)}
    import json

    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _MOST:
        raise ValueError(f"names and metadata have {len(text)} bytes, and a safetensors file has room for {_MOST}")
    return struct.pack("<Q", len(text)) + text


def unpack(file: BinaryIO, nbytes: int) -> tuple[dict[str, Entry], dict[str, str], int]:
    """Entries and metadata of a file of nbytes, and where the bytes of the arrays begin.

    Raises ValueError with the reason for anything but a whole file of the format.
    """
    if nbytes < 8:
        raise ValueError(f"it has {nbytes} bytes")
    (length,) = struct.unpack("<Q", _exactly(file, 8))
    if length > min(_MOST, nbytes - 8):
        raise ValueError(f"its header would have {length} bytes")
    header = _parse(_exactly(file, length))
    notes = header.pop(_METADATA, None)
    entries = {name: _entry(name, fields) for name, fields in header.items()}
    _check_places(entries, nbytes - 8 - length)
    return entries, _texts(notes), 8 + length


def _exactly(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) != count:
        raise ValueError("it ends before its header")
    return data


def _parse(text: bytes) -> dict[str, Any]:
    import json  # when there is such a file

    if text[:1] != b"{":
        raise ValueError("its header does not begin with {")
    try:
        found: dict[str, Any] = json.loads(text.decode(), object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("its header is nested too deep") from None
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    for text in (*found, *found.values()):
        if isinstance(text, str):
            text.encode()  # JSON can write halves of surrogate pairs
    if len(found) < len(pairs):
        ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"its header has {name!r} twice")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"its header has {text}")


def _texts(notes: Any) -> dict[str, str]:
    if notes is None:
        return {}
    if not isinstance(notes, dict) or not all(isinstance(value, str) for value in notes.values()):
        raise ValueError(f"{_METADATA} holds more than strings")
    return notes


def _entry(name: str, fields: Any) -> Entry:
    """An array as the header describes it, whose numbers fit together."""
    known = fields if isinstance(fields, dict) else {}
    dtype, shape, places = known.get("dtype"), _sizes(known.get("shape")), _sizes(known.get("data_offsets"))
    if not isinstance(dtype, str) or shape is None or places is None or len(places) != 2:
        raise ValueError(f"{name!r} lacks a dtype, a shape or data_offsets")
    if dtype not in _BITS:
        raise ValueError(f"{name!r} has dtype {dtype!r}, which the format does not have")
    if math.prod(size or 1 for size in shape) * _BITS[dtype] >= 8 * _LIMIT:
        raise ValueError(f"{name!r} has shape {shape}, which no memory has room for")
    first, last = places
    if math.prod(shape) * _BITS[dtype] != 8 * (last - first):
        raise ValueError(f"{name!r} has shape {shape} of {dtype} in {last - first} bytes")
    return Entry(dtype, shape, first, last)


def _sizes(found: Any) -> tuple[int, ...] | None:
    right = isinstance(found, list) and all(type(size) is int and 0 <= size < _LIMIT for size in found)
    return tuple(found) if right else None


def _check_places(entries: Mapping[str, Entry], nbytes: int) -> None:
    """One after the other from the first byte to the last."""
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1][2:]):
        if entry.first != end:
            raise ValueError(f"{name!r} begins at {entry.first}, where {end} bytes are before it")
        end = entry.last
    if end != nbytes:
        raise ValueError(f"its arrays have {end} bytes, and {nbytes} are there")
