"""Data and arrays to a file that torch.load reads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._checkpoints import archive
from devtensor._checkpoints.pickle_writer import Writer

_FOLDER = "archive"


class Checkpoint:
    """What a file will hold: the pickle of the data, and the storages of the arrays, each once."""

    def __init__(self, obj: Any) -> None:
        self.storages: dict[int, tuple[str, DeviceArray]] = {}
        self.pickle = Writer(self._keep).whole(obj)

    def _keep(self, x: DeviceArray) -> tuple[str, int]:
        identity, nbytes, _ = _C._storage(x)
        key, first = self.storages.setdefault(identity, (str(len(self.storages)), x))
        if first.dtype != x.dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types: "
                f"{first.dtype} and {x.dtype}; clone() one of them"
            )
        return key, nbytes // x.itemsize

    def write(self, put: Callable[[bytes | memoryview], None]) -> None:
        """The file goes to put, piece by piece."""
        archive.write(put, self._records())

    def _records(self) -> Iterator[tuple[str, bytes | memoryview]]:
        yield f"{_FOLDER}/data.pkl", self.pickle
        yield f"{_FOLDER}/.format_version", b"1"
        yield f"{_FOLDER}/.storage_alignment", b"64"
        yield f"{_FOLDER}/byteorder", b"little"
        for key, array in self.storages.values():
            yield f"{_FOLDER}/data/{key}", _bytes(array)
        yield f"{_FOLDER}/version", b"3\n"
        name = str(int(hashlib.sha256(self.pickle).hexdigest(), 16)).zfill(40)[:40]
        yield f"{_FOLDER}/.data/serialization_id", name.encode()


def _bytes(array: DeviceArray) -> memoryview:
    """All bytes of the storage behind array, on the host."""
    _, nbytes, _ = _C._storage(array)
    whole = _C._strided(array, _C.uint8, (nbytes,), (1,), 0)
    return memoryview(whole.__reduce_ex__(5)[1][2])
