"""What torch.save writes, to arrays and data: zip files, and the files of PyTorch before 1.6."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._checkpoints import archive, locations, names, pickle_reader, unrestricted
from devtensor._checkpoints.archive import Record, Source
from devtensor._checkpoints.names import Kind, Memory
from devtensor._checkpoints.pickle_reader import shown

Mover = Callable[[DeviceArray, str], DeviceArray]
Bytes = bytearray | memoryview

_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001
_LARGEST = 8  # bytes of an element: those of a storage without a dtype may be of any


def load(source: Source, name: str, map_location: Any, encoding: str, trusted: bool = False) -> Any:
    """What a file holds; where it is trusted, its classes are imported and their code is run.

    Raises RuntimeError where it is damaged, UnpicklingError for classes, TypeError for dtypes.
    """
    move = locations.mover(map_location)
    begin = bytes(source.read(0, min(4, source.nbytes)))
    read = _Zipped if begin == archive.LOCAL else _Old
    try:
        return read(source, move, _Reader(encoding, trusted)).load()
    except (pickle.UnpicklingError, ValueError, TypeError) as error:
        if trusted and not unrestricted.is_ours(error):  # of the program's code
            raise
        if isinstance(error, ValueError):
            raise RuntimeError(f"{name} is not a file of torch.save, or is damaged: {error}") from None
        if isinstance(error, pickle.UnpicklingError) or str(error).startswith("it has"):
            raise type(error)(f"{name}: {error}") from None
        raise


class _Reader(NamedTuple):
    """How pickles are read."""

    encoding: str
    trusted: bool

    def load(self, data: bytes, at: int, storage: pickle_reader.Storage) -> tuple[Any, int]:
        if not self.trusted:
            return pickle_reader.load(data, at, names.find, storage, self.encoding)
        value, end = unrestricted.load(data, at, storage, self.encoding)
        if type(value) in pickle_reader.INNER:
            raise pickle.UnpicklingError(f"it holds a {type(value).__name__} by itself, which is no data for load()")
        return value, end

    def end(self, data: bytes, at: int, storage: pickle_reader.Storage) -> int:
        """Where a pickle ends whose storages are noted only; no code of a program is run for it."""
        if self.trusted:
            return unrestricted.scan(data, at, storage, self.encoding)
        return self.load(data, at, storage)[1]


def _named(identity: Any, count: int) -> tuple[Kind, str, str, int]:
    """The parts of a persistent id: class, key, location and number of elements."""
    if type(identity) is not tuple or len(identity) != count or identity[0] not in ("storage", b"storage"):
        raise ValueError("its pickle refers to something that is no storage")
    _, kind, key, location, numel = identity[:5]
    if isinstance(key, bytes):
        key = key.decode()
    if isinstance(location, bytes):
        location = location.decode()
    right = isinstance(kind, Kind) and type(key) is str and type(location) is str
    if not right or type(numel) is not int or not 0 <= numel < 2**62:
        raise ValueError("its pickle describes a storage with wrong parts")
    return kind, key, location, numel


def _itemsize(kind: Kind) -> int:
    return 1 if kind.dtype is None else kind.dtype.itemsize


def _memory(data: Bytes, kind: Kind) -> DeviceArray:
    """Bytes as an array of bytes that shares them; any byte of a bool but 0 is 1."""
    if len(data) == 0:
        return _C.empty(0, dtype=_C.uint8, device="cpu")
    array = _C.frombuffer(data, dtype=_C.uint8)
    if kind.dtype == _C.bool:
        array = _C._strided(array != 0, _C.uint8, (len(data),), (1,), 0)
    if array.data_ptr() % (_LARGEST if kind.dtype is None else kind.dtype.itemsize):
        array = array.clone()
    return _C._loaded(array)


class _Storages:
    """The storages of a file by key, each read and moved once."""

    def __init__(self, read: Callable[[str, int], Bytes], move: Mover) -> None:
        self.read, self.move = read, move
        self.found: dict[str, tuple[Kind, Memory, int]] = {}

    def get(self, kind: Kind, key: str, location: str, numel: int) -> Memory:
        if key not in self.found:
            memory = _memory(self.read(key, numel * _itemsize(kind)), kind)
            self.found[key] = kind, Memory(self.move(memory, location), kind.dtype), numel
        known, memory_, count = self.found[key]
        if (known, count) != (kind, numel):
            raise ValueError(f"its storage {key!r} is described in two ways")
        return memory_


# ---------------------------------------------------------------- zip files


class _Zipped:
    def __init__(self, source: Source, move: Mover, reader: _Reader) -> None:
        self.source, self.move, self.reader = source, move, reader
        self.records = archive.directory(source)
        self.folder = _folder(self.records)

    def load(self) -> Any:
        order = f"{self.folder}/byteorder"
        if order in self.records and bytes(archive.read(self.source, order, self.records[order])) != b"little":
            raise ValueError("its numbers are in the byte order of another machine")
        name = f"{self.folder}/data.pkl"
        data = bytes(archive.read(self.source, name, self.records[name]))
        storages = _Storages(self._bytes_of, self.move)

        def storage(identity: Any) -> Memory:
            return storages.get(*_named(identity, 5))

        return self.reader.load(data, 0, storage)[0]

    def _bytes_of(self, key: str, nbytes: int) -> Bytes:
        name = f"{self.folder}/data/{key}"
        record = self.records.get(name)
        if record is None:
            raise ValueError(f"it has no record {name!r}")
        if record.nbytes != nbytes:
            raise ValueError(f"its storage {key!r} should have {nbytes} bytes and has {record.nbytes}")
        return archive.read(self.source, name, record)


def _folder(records: dict[str, Record]) -> str:
    """The folder of the archive, in which all records are."""
    folder = next(iter(records), "").partition("/")[0]
    if f"{folder}/constants.pkl" in records:
        raise pickle.UnpicklingError(
            "it holds a program of TorchScript, which runs in PyTorch alone; save model.state_dict() there instead"
        )
    if records and all(name.endswith(".npy") for name in records):
        raise ValueError("it is an archive of NumPy: numpy.load reads it")
    if f"{folder}/data.pkl" not in records:
        raise ValueError("it is a zip file without a record data.pkl")
    return folder


# ---------------------------------------------------------------- before PyTorch 1.6


class _Old:
    """Five pickles, of which the fourth holds the data and the fifth the keys, and the bytes of the storages."""

    def __init__(self, source: Source, move: Mover, reader: _Reader) -> None:
        self.data = bytes(source.read(0, source.nbytes))
        self.move, self.reader = move, reader
        self.places: dict[str, tuple[int, int]] = {}
        self.blank = _C.empty(len(self.data), dtype=_C.uint8, device="cpu")

    def load(self) -> Any:
        at, magic = self._plain(0)
        if magic != _MAGIC:
            raise ValueError("it is a pickle, and not one of torch.save")
        at, version = self._plain(at)
        if version != _VERSION:
            raise ValueError(f"it has version {shown(version)}")
        at, machine = self._plain(at)
        if not isinstance(machine, dict) or machine.get("little_endian") is not True:
            raise ValueError("its numbers are in the byte order of another machine")
        sizes: dict[str, int] = {}
        end = self.reader.end(self.data, at, lambda identity: self._note(identity, sizes))
        self._place(end, sizes)
        storages = _Storages(self._bytes_of, self.move)
        return self.reader.load(self.data, at, lambda identity: self._storage(identity, storages))[0]

    def _plain(self, at: int) -> tuple[int, Any]:
        def refuse(identity: Any) -> Any:
            raise ValueError("its head refers to a storage")

        value, end = pickle_reader.load(self.data, at, names.find, refuse, self.reader.encoding)
        return end, value

    def _note(self, identity: Any, sizes: dict[str, int]) -> Memory:
        """At the first reading nobody knows yet where the bytes are: other bytes stand for them."""
        kind, key, _, numel = self._parts(identity)
        nbytes = numel * _itemsize(kind)
        if sizes.setdefault(key, _itemsize(kind)) != _itemsize(kind) or nbytes > len(self.data):
            raise ValueError(f"its storage {key!r} has {nbytes} bytes, and the file {len(self.data)}")
        return Memory(self.blank, kind.dtype)

    def _parts(self, identity: Any) -> tuple[Kind, str, str, int]:
        if type(identity) is tuple and len(identity) == 6 and identity[5] is not None:
            raise ValueError("it has a part of a storage, as PyTorch before 0.4 wrote them")
        return _named(identity, 6)

    def _place(self, at: int, sizes: dict[str, int]) -> None:
        at, keys = self._plain(at)
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            raise ValueError("its keys are no list of texts")
        for key in keys:
            if len(self.data) < at + 8 or key not in sizes:
                raise ValueError(f"it ends before the bytes of its storage {key!r}")
            (numel,) = struct.unpack_from("<q", self.data, at)
            nbytes = numel * sizes[key]
            if numel < 0 or at + 8 + nbytes > len(self.data):
                raise ValueError(f"it ends before the bytes of its storage {key!r}")
            self.places[key] = at + 8, nbytes
            at += 8 + nbytes

    def _storage(self, identity: Any, storages: _Storages) -> Memory:
        return storages.get(*self._parts(identity))

    def _bytes_of(self, key: str, nbytes: int) -> Bytes:
        start, there = self.places.get(key, (0, -1))
        if there != nbytes:
            raise ValueError(f"its storage {key!r} should have {nbytes} bytes and has {max(there, 0)}")
        return bytearray(self.data[start : start + nbytes])
