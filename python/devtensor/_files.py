"""save and load: arrays in safetensors files, which PyTorch and others read and write."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import struct
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from devtensor import _C
from devtensor._C import DeviceArray

_NAMES = {
    "F64": _C.float64,
    "F32": _C.float32,
    "F16": _C.float16,
    "BF16": _C.bfloat16,
    "I64": _C.int64,
    "I32": _C.int32,
    "I16": _C.int16,
    "I8": _C.int8,
    "U8": _C.uint8,
    "BOOL": _C.bool,
}
_CODES = {dtype: name for name, dtype in _NAMES.items()}
_ALONE = "array"  # the key of an array that was saved by itself; the file says so
_MARK = "devtensor"

# ---------------------------------------------------------------- save


def save(obj: Any, f: Any, *, metadata: Mapping[str, str] | None = None) -> None:
    """Write a dictionary of arrays, such as a state_dict(), or one array, to a safetensors file.

    f is a path, or a file open for writing bytes. Arrays on a device are copied to the host; the file holds no devices.
    metadata, a dictionary of texts, is kept in the file. A file that was there is replaced only by a whole new one.

    Raises TypeError for what is no array and for keys and metadata that are no texts, OSError.
    """
    arrays, notes = _arrays(obj), dict(metadata or {})
    for key, value in notes.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"save(): metadata must be a dictionary of texts, not {key!r}: {value!r}")
    if isinstance(obj, DeviceArray):
        notes[_MARK] = _ALONE
    header, order = _header(arrays, notes)
    if hasattr(f, "write"):
        _write(f, header, order, arrays)
        return
    path = os.fspath(f)
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(prefix=os.path.basename(path), suffix=".part", dir=folder)
    try:
        with open(handle, "wb") as file:
            _write(file, header, order, arrays)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _arrays(obj: Any) -> dict[str, DeviceArray]:
    if isinstance(obj, DeviceArray):
        return {_ALONE: obj}
    if not isinstance(obj, Mapping):
        hint = ": its state_dict() can be saved" if hasattr(obj, "state_dict") else ""
        raise TypeError(f"save() takes an array or a dictionary of arrays, not {type(obj).__name__}{hint}")
    for key, value in obj.items():
        if not isinstance(key, str) or key == "__metadata__":
            raise TypeError(f"save(): keys must be texts, and not '__metadata__'; got {key!r}")
        if not isinstance(value, DeviceArray):
            raise TypeError(
                f"save(): '{key}' is {type(value).__name__}, and a safetensors file holds arrays only; "
                "metadata= takes texts"
            )
    return dict(obj)


def _header(arrays: Mapping[str, DeviceArray], notes: Mapping[str, str]) -> tuple[bytes, list[str]]:
    """The header, and the keys in the order of their bytes: wide elements first, so that all are aligned."""
    order = sorted(arrays, key=lambda key: -arrays[key].itemsize)
    places, end = {}, 0
    for key in order:
        places[key] = [end, end + arrays[key].nbytes]
        end += arrays[key].nbytes
    entries: dict[str, Any] = {"__metadata__": dict(notes)} if notes else {}
    for key, array in arrays.items():
        entries[key] = {"dtype": _CODES[array.dtype], "shape": list(array.shape), "data_offsets": places[key]}
    text = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, order


def _write(file: BinaryIO, header: bytes, order: list[str], arrays: Mapping[str, DeviceArray]) -> None:
    file.write(header)
    for key in order:
        file.write(_bytes(arrays[key]))


def _bytes(x: DeviceArray) -> bytes:
    data: bytes = x.data.contiguous().__reduce__()[1][2]  # row-major, as the format wants it
    return data


# ---------------------------------------------------------------- load


def load(
    f: Any, map_location: Any = None, *, device: Any = None, weights_only: bool = True
) -> dict[str, DeviceArray] | DeviceArray | Any:
    """Read what save or another writer of safetensors files wrote: a dictionary of arrays, or the one array.

    f is a path, or a file open for reading bytes. The arrays are on the cpu, or on device (map_location is PyTorch's
    name for it). weights_only is accepted, since such a file holds nothing else.

    Raises RuntimeError for a file that is damaged or another format, TypeError for a dtype that devtensor does not
    have, OSError.
    """
    if device is not None and map_location is not None:
        raise TypeError("load() takes device or map_location, not both")
    target = map_location if device is None else device
    if isinstance(target, Mapping) or callable(target):
        raise TypeError("load(): map_location must be a device, as a safetensors file holds none")
    where = _C.device("cuda", target) if type(target) is int else _C.device(target or "cpu")
    with _opened(f) as (file, name):
        entries, start = _checked(file, name)
        notes = entries.pop("__metadata__", None) or {}
        found = {key: _read(file, start, key, entry, name) for key, entry in entries.items()}
    moved = {key: array.to(where) for key, array in found.items()}
    return moved[_ALONE] if notes.get(_MARK) == _ALONE and list(moved) == [_ALONE] else moved


@contextlib.contextmanager
def _opened(f: Any) -> Iterator[tuple[BinaryIO, str]]:
    if hasattr(f, "read"):
        yield io.BytesIO(f.read()), getattr(f, "name", "the file")
    else:
        with open(f, "rb") as file:
            yield file, os.fspath(f)


def _checked(file: BinaryIO, name: str) -> tuple[dict[str, Any], int]:
    """The entries of the header, which the safetensors library has found to be right, and where the bytes begin."""
    from safetensors import SafetensorError, deserialize, safe_open

    begin = file.read(8)
    try:
        if isinstance(file, io.BytesIO):
            deserialize(file.getvalue())  # type: ignore[no-untyped-call, unused-ignore]
        else:
            with safe_open(name, framework="numpy"):
                pass
        (length,) = struct.unpack("<Q", begin)
        entries = json.loads(file.read(length))
    except (SafetensorError, ValueError, struct.error) as error:
        if begin[:4] == b"PK\x03\x04" or (begin[:1] == b"\x80" and begin[1:2] in b"\2\3\4\5"):
            raise RuntimeError(
                f"{name} is a pickled file of PyTorch, and loading one can run any code. Convert it with PyTorch, "
                "where you trust it: safetensors.torch.save_file("
                f"torch.load({name!r}, weights_only=True), 'model.safetensors')"
            ) from None
        raise RuntimeError(f"{name} is not a safetensors file, or is damaged: {error}") from None
    return entries, 8 + length


def _read(file: BinaryIO, start: int, key: str, entry: Any, name: str) -> DeviceArray:
    dtype, shape = _NAMES.get(entry["dtype"]), entry["shape"]
    if dtype is None:
        raise TypeError(f"{name}: '{key}' has dtype {entry['dtype']}, which devtensor does not have")
    first, last = entry["data_offsets"]
    data = bytearray(last - first)
    file.seek(start + first)
    if file.readinto(data) != len(data):  # type: ignore[attr-defined]
        raise RuntimeError(f"{name} is damaged: it ends before the bytes of '{key}'")
    if math.prod(shape) == 0:
        return _C._loaded(_C.empty(shape, dtype=dtype, device="cpu"))
    if dtype is _C.bool:  # any byte but 0 is true
        return _C._loaded(_C.frombuffer(data, dtype=_C.uint8).reshape(shape) != 0)
    return _C._loaded(_C.frombuffer(data, dtype=dtype).reshape(shape))
