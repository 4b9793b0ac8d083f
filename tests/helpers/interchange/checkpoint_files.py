"""Files of save and of torch.save in memory, and archives made opcode by opcode."""

from __future__ import annotations

import io
import pickle
import struct
from typing import Any

import pytest

import devtensor as dt
from devtensor._checkpoints import archive


def saved(obj: Any) -> bytes:
    file = io.BytesIO()
    dt.save(obj, file)
    return file.getvalue()


def loaded(data: bytes, *args: Any, **kwargs: Any) -> Any:
    return dt.load(io.BytesIO(data), *args, **kwargs)


def of_torch(obj: Any, **kwargs: Any) -> bytes:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    file = io.BytesIO()
    torch.save(obj, file, **kwargs)
    return file.getvalue()


def in_torch(data: bytes, **kwargs: Any) -> Any:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    return torch.load(io.BytesIO(data), **{"weights_only": True} | kwargs)


def storage(numel: Any = 2, key: Any = "0", location: Any = "cpu", kind: str = "FloatStorage") -> bytes:
    """A pickle of an array of two elements over a storage."""
    return rebuilt(persistent(numel, key, location, kind))


def whole(value: Any) -> bytes:
    """The opcodes that make a value, without head and end."""
    data = pickle.dumps(value, 2)
    return data[2:-1]


def persistent(numel: Any = 2, key: Any = "0", location: Any = "cpu", kind: str = "FloatStorage") -> bytes:
    parts = whole(key) + whole(location) + whole(numel)
    return b"(" + whole("storage") + f"ctorch\n{kind}\n".encode() + parts + b"tQ"


def rebuilt(
    storage: bytes, offset: Any = 0, size: Any = (2,), stride: Any = (1,), name: str = "_rebuild_tensor_v2"
) -> bytes:
    parts = whole(offset) + whole(size) + whole(stride) + b"\x89)tR."
    return f"ctorch._utils\n{name}\n(".encode() + storage + parts


DATA = struct.pack("<2f", 0, 1)


def plant(pickled: bytes, **records: bytes) -> bytes:
    """An archive with a pickle."""
    held = {"data.pkl": b"\x80\2" + pickled, "data/0": DATA, "version": b"3\n"} | {
        name.replace("_", "/"): data for name, data in records.items()
    }
    out = bytearray()
    archive.write(out.extend, [(f"archive/{name}", data) for name, data in held.items()])
    return bytes(out)


SOUND = plant(storage())
