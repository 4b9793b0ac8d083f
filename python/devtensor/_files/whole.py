"""Files that are there as a whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import stat
from collections.abc import Callable
from typing import BinaryIO


def write(path: str, fill: Callable[[BinaryIO], object], mode: int = 0o666) -> None:
    """Make the file, or put a new one in its place, with what fill writes.

    Where that fails, by Ctrl-C too, what was there before is there still, and nothing else. mode is that of a new file,
    less the umask; another keeps its mode, and owner and group where the system allows. A symbolic link is followed,
    other hard links keep the old file. A pipe or a device is written to. Raises OSError.
    """
    old = _status(path)
    if old is not None and not stat.S_ISREG(old.st_mode):
        with open(path, "wb") as file:
            fill(file)
        return
    target = os.path.realpath(path) if os.path.islink(path) else os.path.join(os.getcwd(), path)
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f".{os.urandom(8).hex()}.part")
    opener = functools.partial(os.open, mode=mode if old is None else 0o600)
    try:
        with open(temporary, "xb", opener=opener) as file:
            if old is not None:
                _take_after(file.fileno(), old, target)
            fill(file)
            file.flush()
            os.fsync(file.fileno())  # some file systems say only now that they are full
        os.replace(temporary, target)
    except BaseException as error:
        unknown = error if isinstance(error, OSError) and error.filename == temporary else None
        if not isinstance(unknown, FileExistsError):  # then the file is another's
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        if unknown is not None:  # its name is one that the caller has never seen
            raise OSError(unknown.errno, unknown.strerror, path if unknown.filename2 else folder) from None
        raise


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _take_after(file: int, old: os.stat_result, path: str) -> None:
    """Let nobody read the new file who could not read the old one. Raises PermissionError where that is read-only."""
    if not os.access(path, os.W_OK, effective_ids=True):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    new, mode = os.fstat(file), old.st_mode & 0o777
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(file, old.st_uid, old.st_gid)
        except OSError:
            mode = _keep_group(file, old, mode)
    os.fchmod(file, mode)


def _keep_group(file: int, old: os.stat_result, mode: int) -> int:
    """The mode for a file whose owner cannot be kept: without the group's part where that is another group."""
    try:
        os.fchown(file, -1, old.st_gid)
    except OSError:
        return mode & ~stat.S_IRWXG
    return mode
