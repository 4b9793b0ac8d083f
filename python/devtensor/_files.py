"""save and load: arrays in safetensors files, which PyTorch and others read and write."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any, BinaryIO

from devtensor import _C, _safetensors, _whole
from devtensor._C import DeviceArray
from devtensor._errors import ShapeMismatchError
from devtensor._safetensors import Entry
from devtensor._types import Device, Path

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


def save(
    obj: DeviceArray | Mapping[str, DeviceArray],
    f: Path | IO[bytes],
    *,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write a dictionary of arrays, such as a state_dict(), or one array, to a safetensors file.

    f is a path, or a file open for writing bytes. Arrays on a device are copied to the host; the file holds no devices.
    metadata, a dictionary of strings, is kept in the file. A file that was there is replaced only by a whole new one,
    which has its mode. A symbolic link is followed; other hard links keep the old file.

    Raises TypeError for what is not an array, and for keys and metadata that are not strings, ValueError for strings
    that UTF-8 does not have, OSError.

    >>> import io
    >>> file = io.BytesIO()
    >>> dt.save({"weight": dt.ones(2)}, file)
    >>> position = file.seek(0)
    >>> dt.load(file)
    {'weight': DeviceArray([1., 1.], device='cpu', dtype=float32)}
    """
    arrays, notes = _arrays(obj), _notes(metadata)
    if isinstance(obj, DeviceArray):
        notes[_MARK] = _ALONE
    entries = _entries(arrays)
    try:
        header = _safetensors.pack(entries, notes)
    except ValueError as error:
        raise ValueError(f"save(): {error}") from None
    parts = sorted(arrays, key=lambda key: entries[key].first)
    if hasattr(f, "write"):
        _write(f, header, [arrays[key] for key in parts])  # type: ignore[arg-type]
    else:
        path = _path(f, "save(): argument 'f' must be a path or a file open for writing bytes")
        _check_name(path)
        _whole.write(path, lambda file: _write(file, header, [arrays[key] for key in parts]))


def _path(f: Any, wanted: str) -> str:
    try:
        return os.fsdecode(f)
    except TypeError:
        raise TypeError(f"{wanted}, not {type(f).__name__}") from None


def _check_name(path: str) -> None:
    if not path:
        raise FileNotFoundError(errno.ENOENT, "the name is empty", path)
    if os.path.basename(path) in ("", ".", ".."):
        what = "a folder; save() needs a file's name behind it, such as 'x.safetensors'"
        raise IsADirectoryError(errno.EISDIR, what, path)


def _notes(metadata: Any) -> dict[str, str]:
    wanted = "save(): metadata must be a dictionary of strings"
    if metadata is not None and not isinstance(metadata, Mapping):
        raise TypeError(f"{wanted}, not {type(metadata).__name__}")
    notes = dict(metadata or {})
    for key, value in notes.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"{wanted}, not {_C._shown(key)}: {_C._shown(value)}")
    return notes


def _arrays(obj: Any) -> dict[str, DeviceArray]:
    if isinstance(obj, DeviceArray):
        return {_ALONE: obj}
    if not isinstance(obj, Mapping):
        hint = ": its state_dict() can be saved" if hasattr(obj, "state_dict") else ""
        wanted = "an array or a dictionary of arrays"
        raise TypeError(f"save(): argument 'obj' must be {wanted}, not {type(obj).__name__}{hint}")
    found = dict(obj)
    for key, value in found.items():
        if not isinstance(key, str) or key == "__metadata__":
            raise TypeError(f"save(): keys must be strings, and not '__metadata__'; got {_C._shown(key)}")
        if not isinstance(value, DeviceArray):
            raise TypeError(
                f"save(): '{key}' is {type(value).__name__}, and a safetensors file holds arrays only; "
                "metadata= takes strings"
            )
    return found


def _entries(arrays: Mapping[str, DeviceArray]) -> dict[str, Entry]:
    """Where each array goes: wide elements first, so that all are aligned."""
    places, end = {}, 0
    for key in sorted(arrays, key=lambda key: -arrays[key].itemsize):
        places[key] = end, end + arrays[key].nbytes
        end += arrays[key].nbytes
    return {key: Entry(_CODES[x.dtype], tuple(x.shape), *places[key]) for key, x in arrays.items()}


def _write(file: BinaryIO, header: bytes, arrays: Iterable[DeviceArray]) -> None:
    _put(file, header)
    for array in arrays:
        _put(file, _bytes(array))


def _put(file: BinaryIO, data: bytes) -> None:
    """All of data, also where a file without a buffer takes a part at a time."""
    written = file.write(data)
    if isinstance(file, io.RawIOBase):
        rest = memoryview(data)
        while written and written < len(rest):
            rest = rest[written:]
            written = file.write(rest)
        if not written and len(rest):
            raise BlockingIOError(errno.EAGAIN, "the file takes no more now, and save() does not wait")


def _bytes(x: DeviceArray) -> bytes:
    data: bytes = x.data.contiguous().__reduce__()[1][2]  # row-major, as the format wants it
    return data


# ---------------------------------------------------------------- load


def load(
    f: Path | IO[bytes],
    map_location: Device | None = None,
    *,
    device: Device | None = None,
    weights_only: bool = True,
) -> Any:
    """Read what save or another writer of safetensors files wrote: a dictionary of arrays, or the one array.

    f is a path, or a file open for reading bytes. The arrays are on the cpu, or on device (map_location is PyTorch's
    name for it). weights_only is accepted, since such a file holds nothing else.

    Raises RuntimeError for a file that is damaged or another format, TypeError for a dtype that devtensor does not
    have, OSError.

    >>> import io
    >>> file = io.BytesIO()
    >>> dt.save(dt.arange(3), file)
    >>> position = file.seek(0)
    >>> dt.load(file)
    DeviceArray([0, 1, 2], device='cpu', dtype=int64)
    """
    if device is not None and map_location is not None:
        raise TypeError("load() takes device or map_location, not both")
    _C._need_bool("load", "weights_only", weights_only)
    name, target = ("map_location", map_location) if device is None else ("device", device)
    if isinstance(target, Mapping) or callable(target):
        raise TypeError("load(): map_location must be a device, as a safetensors file holds none")
    where = _C._need_device("load", name, "cpu" if target is None else target)
    with _opened(f) as (file, path, nbytes):
        entries, notes, start = _header(file, path, nbytes)
        found = {key: _read(file, start, key, entry, path) for key, entry in entries.items()}
    moved = {key: array.to(where) for key, array in found.items()}
    return moved[_ALONE] if notes.get(_MARK) == _ALONE and list(moved) == [_ALONE] else moved


@contextlib.contextmanager
def _opened(f: Any) -> Iterator[tuple[BinaryIO, str, int]]:
    """The file, its name and its size. A path is looked up once: what is checked is what is read."""
    if hasattr(f, "read"):
        data = f.read()
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"load(): the file must give bytes, and it gave {type(data).__name__}; open it with 'rb'")
        yield io.BytesIO(data), str(getattr(f, "name", "the file")), memoryview(data).nbytes
        return
    path = _path(f, "load(): argument 'f' must be a path or a file open for reading bytes")
    with open(path, "rb", opener=_open_at_once) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise RuntimeError(f"{path} is not a regular file: open it, and give load() the open file")
        yield file, path, status.st_size


def _open_at_once(path: str, flags: int) -> int:
    """Without waiting for somebody who writes to a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _header(file: BinaryIO, name: str, nbytes: int) -> tuple[dict[str, Entry], dict[str, str], int]:
    try:
        return _safetensors.unpack(file, nbytes)
    except ValueError as error:
        file.seek(0)
        begin = file.read(4)
        if begin == b"PK\x03\x04" or (begin[:1] == b"\x80" and begin[1:2] in (b"\2", b"\3", b"\4", b"\5")):
            raise RuntimeError(
                f"{name} is a pickled file of PyTorch, and loading one can run any code. Convert it with PyTorch, "
                "where you trust it: safetensors.torch.save_file("
                f"torch.load({name!r}, weights_only=True), 'model.safetensors')"
            ) from None
        raise RuntimeError(f"{name} is not a safetensors file, or is damaged: {error}") from None


def _read(file: BinaryIO, start: int, key: str, entry: Entry, name: str) -> DeviceArray:
    dtype = _NAMES.get(entry.dtype)
    if dtype is None:
        raise TypeError(f"{name}: '{key}' has dtype {entry.dtype}, which devtensor does not have")
    data = bytearray(entry.last - entry.first)
    file.seek(start + entry.first)
    if file.readinto(data) != len(data):  # type: ignore[attr-defined]
        raise RuntimeError(f"{name} is damaged: it ends before the bytes of '{key}'")
    try:
        if not data:
            return _C._loaded(_C.empty(entry.shape, dtype=dtype, device="cpu"))
        if dtype is _C.bool:  # any byte but 0 is true
            return _C._loaded(_C.frombuffer(data, dtype=_C.uint8).reshape(entry.shape) != 0)
        return _C._loaded(_C.frombuffer(data, dtype=dtype).reshape(entry.shape))
    except ShapeMismatchError as error:
        raise RuntimeError(f"{name}: '{key}': {error}") from None
