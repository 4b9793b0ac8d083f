"""What dt.cuda.tune has found, in files: one for each kind of GPU and version of cuDNN."""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path

from devtensor import _C, _whole


def cache_directory() -> Path:
    """Where files are kept between processes; it need not exist."""
    chosen = os.environ.get("DEVTENSOR_CACHE_DIR")
    if chosen and os.path.isabs(chosen):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME", "")
    return Path(base if os.path.isabs(base) else Path.home() / ".cache", "devtensor")


def _file(device: int) -> Path | None:
    version = _C._cuda_library_versions()["cudnn"]
    if version is None:
        return None
    info = _C._cuda_info(device)
    name = re.sub(r"[^A-Za-z0-9]+", "-", info["name"]).strip("-").lower()
    return cache_directory() / f"conv2d-{name}-sm{info['major']}{info['minor']}-cudnn{version}.json"


def load(device: int) -> None:
    """Reads what is known about a device. A file that cannot be read is nothing known."""
    path = _file(device)
    if path is None:
        return
    try:
        rows = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, list):
            _C._cuda_tuned_import(device, row)


def save(device: int) -> None:
    """Writes what is known about a device. Where nothing can be written, nothing is kept."""
    rows, path = _C._cuda_tuned_export(device), _file(device)
    if rows and path is not None:
        text = json.dumps(sorted(rows)).encode()
        with contextlib.suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _whole.write(str(path), lambda file: file.write(text), 0o600)
