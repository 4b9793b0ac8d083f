"""What dt.cuda.tune has found, in files: one for each kind of GPU and version of cuDNN."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

from devtensor import _C
from devtensor._files import whole


def _file(device: int) -> Path | None:
    folder, version = _C._cuda_cache_directory(), _C._cuda_library_versions()["cudnn"]
    if folder is None or version is None:
        return None
    info = _C._cuda_info(device)
    name = re.sub(r"[^A-Za-z0-9]+", "-", info["name"]).strip("-").lower()
    return Path(folder) / f"conv2d-{name}-sm{info['major']}{info['minor']}-cudnn{version}.json"


def _read(path: Path) -> list[list[Any]]:
    """The rows of a file. One that cannot be read has none."""
    try:
        rows = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return []
    return [row for row in rows if isinstance(row, list)] if isinstance(rows, list) else []


def load(device: int) -> None:
    """Reads what is known about a device."""
    path = _file(device)
    for row in _read(path) if path is not None else ():
        _C._cuda_tuned_import(device, row)  # which says whether it is one


def save(device: int) -> None:
    """Adds to the file what this process has found about a device, and takes out what no longer holds.

    Where nothing can be written, nothing is kept.
    """
    found, path = _C._cuda_tuned_export(device), _file(device)
    if found and path is not None:
        n, width = _C._cuda_tuned_key(), len(found[0])
        rows = {tuple(row[:n]): row for row in _read(path) if len(row) == width and all(type(i) is int for i in row)}
        rows |= {row[:n]: list(row) for row in found}
        text = json.dumps([rows[key] for key in sorted(rows) if rows[key][n] >= 0]).encode()
        with contextlib.suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            whole.write(str(path), lambda file: file.write(text), 0o600)
