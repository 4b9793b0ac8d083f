"""save and load: data with arrays in files of PyTorch, and arrays in safetensors files."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Any, BinaryIO

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._errors import ShapeMismatchError
from devtensor._files import safetensors, whole
from devtensor._files.safetensors import Entry
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
    obj: Any,
    f: Path | IO[bytes],
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    *,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write data with arrays in it to a file that torch.load reads, or to x.safetensors as a safetensors file.

    obj: arrays, numbers, texts, None, dtypes and devices, in dictionaries, lists, tuples and sets; into a safetensors
    file goes a dictionary of arrays, or one array. Other objects, whole modules and optimizers too, are written as
    pickle writes them: the name of their class and what they hold. load refuses those unless weights_only=False, and no
    other program reads those of classes of devtensor: a state_dict() goes everywhere. f is a path, or a file open for
    writing bytes. Arrays on a device are copied to the host. A checkpoint holds their devices, and arrays that share
    memory share it there. metadata, a dictionary of strings, makes a safetensors file and is kept in it. The pickle in
    a checkpoint has protocol 2, which everybody reads, whatever pickle_protocol asks for. A file that was there is
    replaced only by a whole new one, which has its mode. A symbolic link is followed; other hard links keep the old
    file.

    Raises TypeError for what a file cannot hold, such as a lambda or an open file, ValueError for strings that UTF-8
    does not have, RuntimeError for arrays of two dtypes over the same memory, OSError.

    >>> import io
    >>> file = io.BytesIO()
    >>> dt.save({"epoch": 3, "model": {"weight": dt.ones(2)}}, file)
    >>> position = file.seek(0)
    >>> dt.load(file)
    {'epoch': 3, 'model': {'weight': DeviceArray([1., 1.], device='cpu', dtype=float32)}}
    """
    _check_pickle("save", pickle_module)
    _C._need_int("save", "pickle_protocol", pickle_protocol)
    if not _C._need_bool("save", "_use_new_zipfile_serialization", _use_new_zipfile_serialization):
        raise NotImplementedError(
            "save(_use_new_zipfile_serialization=False) is not implemented: without it PyTorch from 1.6 reads the file"
        )
    named = _named_safetensors(f)
    fill = _safetensors_of(obj, metadata) if named or metadata is not None else _checkpoint_of(obj)
    if hasattr(f, "write"):
        fill(f)  # type: ignore[arg-type]
    else:
        path = _path(f, "save(): argument 'f' must be a path or a file open for writing bytes")
        _check_name(path)
        whole.write(path, fill)


def _check_pickle(op: str, module: Any) -> None:
    name = getattr(module, "__name__", None)
    if module is not None and name not in ("pickle", "_pickle", "torch.serialization"):
        raise TypeError(f"{op}(): argument 'pickle_module' must be pickle or None, not {_C._shown(name or module)}")


def _named_safetensors(f: Any) -> bool:
    """Whether the name of a file asks for the format."""
    if hasattr(f, "write") or hasattr(f, "read"):
        f = getattr(f, "name", None)
    try:
        return os.fsdecode(f).lower().endswith(".safetensors")
    except TypeError:
        return False


def _safetensors_of(obj: Any, metadata: Any) -> Callable[[BinaryIO], None]:
    """What writes a safetensors file."""
    arrays, notes = _arrays(obj), _notes(metadata)
    if isinstance(obj, DeviceArray):
        notes[_MARK] = _ALONE
    entries = _entries(arrays)
    try:
        header = safetensors.pack(entries, notes)
    except ValueError as error:
        raise ValueError(f"save(): {error}") from None
    parts = sorted(arrays, key=lambda key: entries[key].first)
    return lambda file: _write(file, header, [arrays[key] for key in parts])


def _checkpoint_of(obj: Any) -> Callable[[BinaryIO], None]:
    """What writes a file for torch.load."""
    from devtensor._checkpoints.pickle_writer import Refused
    from devtensor._checkpoints.writing import Checkpoint

    try:
        checkpoint = Checkpoint(obj)
    except Refused as error:
        raise TypeError(f"save(): {error}") from None
    return lambda file: checkpoint.write(lambda data: _put(file, data))


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
                "metadata= takes strings, and a file of another name, such as x.pt, holds any data"
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


def _put(file: BinaryIO, data: bytes | memoryview) -> None:
    """All of data, also where a file without a buffer takes a part at a time."""
    written = file.write(data)
    if isinstance(file, io.RawIOBase):
        rest = memoryview(data)
        while written and written < len(rest):
            rest = rest[written:]
            written = file.write(rest)
        if not written and len(rest):
            raise BlockingIOError(errno.EAGAIN, "the file takes no more now, and save() does not wait")


def _bytes(x: DeviceArray) -> memoryview:
    """The bytes on the host, row-major, as the format wants them; of an array on the cpu those that it has."""
    return memoryview(x.data.contiguous().__reduce_ex__(5)[1][2])


# ---------------------------------------------------------------- load


def load(
    f: Path | IO[bytes],
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    device: Device | None = None,
    weights_only: bool | None = True,
    mmap: bool | None = None,
    encoding: str = "utf-8",
) -> Any:
    """Read what save, torch.save or a writer of safetensors files wrote.

    f is a path, or a file open for reading bytes; what is in it says which format it has. The arrays of a checkpoint
    go to the devices that it names, those of a safetensors file to the cpu; all go to device where one is given.
    map_location is PyTorch's: a device, a dictionary of devices, or a function of the bytes of a storage and its
    location. weights_only=False, for files whose writer you trust: the classes and functions that the file names are
    imported and run, as pickle does, which objects of classes of yours and whole modules need; else nothing is run.
    mmap=True, for a path: memory is read from the file when it is used, and changes of it stay in this process.
    encoding is that of texts of Python 2.

    Raises RuntimeError for a file that is damaged or another format and for devices that are not there,
    pickle.UnpicklingError for objects of other classes unless weights_only=False, AttributeError and ImportError where
    the program does not have them, TypeError for a dtype that devtensor does not have, OSError.

    >>> import io
    >>> file = io.BytesIO()
    >>> dt.save(dt.arange(3), file)
    >>> position = file.seek(0)
    >>> dt.load(file)
    DeviceArray([0, 1, 2], device='cpu', dtype=int64)
    """
    if device is not None and map_location is not None:
        raise TypeError("load() takes device or map_location, not both")
    _check_pickle("load", pickle_module)
    for name, value in (("weights_only", weights_only), ("mmap", mmap)):
        if value is not None:
            _C._need_bool("load", name, value)
    _C._need_str("load", "encoding", encoding)
    if device is not None:
        map_location = _C._need_device("load", "device", device)
    if mmap and hasattr(f, "read"):
        raise ValueError("f must be a file name in order to use the mmap argument")
    with _opened(f) as (file, path, nbytes):
        begin = file.read(4)
        file.seek(0)
        if begin == _ZIP or (_is_pickle(begin) and not _is_safetensors(file, nbytes)):
            from devtensor._checkpoints import reading, sources

            source = sources.Mapped(file, nbytes) if mmap else sources.Read(file, nbytes)
            return reading.load(source, path, map_location, encoding, trusted=weights_only is False)
        return _load_safetensors(file, path, nbytes, map_location)


_ZIP = b"PK\3\4"


def _is_pickle(begin: bytes) -> bool:
    return begin[:1] == b"\x80" and begin[1:2] in (b"\2", b"\3", b"\4", b"\5")


def _is_safetensors(file: BinaryIO, nbytes: int) -> bool:
    """Whether what could begin a pickle is the length of a header."""
    try:
        safetensors.unpack(file, nbytes)
    except ValueError:
        return False
    finally:
        file.seek(0)
    return True


def _load_safetensors(file: BinaryIO, path: str, nbytes: int, target: Any) -> Any:
    if isinstance(target, Mapping) or (callable(target) and not isinstance(target, str)):
        raise TypeError("load(): map_location must be a device, as a safetensors file holds none")
    where = _C._need_device("load", "map_location", "cpu" if target is None else target)
    entries, notes, start = _header(file, path, nbytes)
    found = {key: _read(file, start, key, entry, path) for key, entry in entries.items()}
    moved = {key: array.to(where) for key, array in found.items()}
    return moved[_ALONE] if notes.get(_MARK) == _ALONE and list(moved) == [_ALONE] else moved


@contextlib.contextmanager
def _opened(f: Any) -> Iterator[tuple[BinaryIO, str, int]]:
    """The file, its name and its size. A path is looked up once: what is checked is what is read."""
    if hasattr(f, "read"):
        if _is_plain(f):  # what is wanted is read, and nothing twice
            start = f.tell()
            try:
                yield f, str(f.name), os.fstat(f.fileno()).st_size
            finally:
                f.seek(start)
            return
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


def _is_plain(f: Any) -> bool:
    """Whether f is a file on the disk, open from its beginning, that can be read part by part."""
    if not isinstance(f, (io.BufferedReader, io.BufferedRandom)) or not isinstance(f.raw, io.FileIO):
        return False
    return stat.S_ISREG(os.fstat(f.fileno()).st_mode) and f.tell() == 0


def _open_at_once(path: str, flags: int) -> int:
    """Without waiting for somebody who writes to a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _header(file: BinaryIO, name: str, nbytes: int) -> tuple[dict[str, Entry], dict[str, str], int]:
    try:
        return safetensors.unpack(file, nbytes)
    except ValueError as error:
        file.seek(0)
        text = f"{name} is not a safetensors file, or is damaged: {error}"
        raise RuntimeError(f"{text}{_other_format(file.read(512))}") from None


def _other_format(begin: bytes) -> str:
    """What else a file can be that stands where a checkpoint should."""
    if begin.startswith(b"version https://git-lfs"):
        return ". It is a pointer of Git LFS: `git lfs pull` fetches the file"
    if begin.lstrip()[:5].lower() in (b"<!doc", b"<html"):
        return ". It is an HTML page: what was downloaded is not the file"
    if begin.startswith(b"\x93NUMPY"):
        return ". It is a file of NumPy: from_numpy(numpy.load(path))"
    if begin.startswith(b"\x89HDF\r\n"):
        return ". It is an HDF5 file, which h5py reads"
    if begin[257:262] == b"ustar":
        return ". It is a tar file, as PyTorch before 0.2 wrote them"
    return ""


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
