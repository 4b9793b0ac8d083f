"""What save leaves in the file system, and what load opens: modes, links, pipes, folders, full disks, any end."""

from __future__ import annotations

import gc
import io
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from support import python_path

import devtensor as dt
from devtensor._files import whole

OLD, NEW = {"a": dt.zeros(3)}, {"a": dt.ones(3), "b": dt.ones(2, 2, dtype=dt.int8)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    assert os.umask(before) == 0o027


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def script(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": python_path(), "DEVTENSOR_CUDA": "off"}
    command = [sys.executable, "-c", text, *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)


# ---------------------------------------------------------------- modes and owners


def test_the_mode_of_a_new_file(path: Path, umask: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of open(): the umask of the process is neither read by setting it nor set."""
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask was set"))
    dt.save(NEW, path)
    monkeypatch.undo()
    assert mode(path) == 0o640


@pytest.mark.parametrize("bits", [0o600, 0o640, 0o666, 0o755])
def test_a_file_that_is_replaced_keeps_its_mode(path: Path, bits: int, umask: None) -> None:
    dt.save(OLD, path)
    path.chmod(bits)
    dt.save(NEW, path)
    assert mode(path) == bits and list(dt.load(path)) == ["a", "b"]


def test_nobody_else_reads_what_is_being_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.touch(0o600)
    seen = []
    write = dt._files.save_load._write

    def watched(file: Any, *rest: Any) -> None:
        seen.append(stat.S_IMODE(os.fstat(file.fileno()).st_mode))
        write(file, *rest)

    monkeypatch.setattr("devtensor._files.save_load._write", watched)
    dt.save(NEW, path)
    assert seen == [0o600]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_that_is_replaced_keeps_its_owner(path: Path) -> None:
    dt.save(OLD, path)
    os.chown(path, 12345, 54321)
    dt.save(NEW, path)
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 54321)


AS_NOBODY = """
import os, sys
from devtensor._files import whole
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    whole.write(sys.argv[1], lambda file: file.write(b"new"))
except OSError as error:
    print(type(error).__name__, error.filename)
"""


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that another user reaches: pytest's own are closed to them."""
    with tempfile.TemporaryDirectory() as folder:
        if not all(parent.stat().st_mode & 0o001 for parent in Path(folder).resolve().parents):
            pytest.skip("the folder for temporary files is closed to other users")
        Path(folder).chmod(0o777)
        yield Path(folder)


def test_a_file_that_may_not_be_written_is_not_replaced(shared: Path) -> None:
    file = shared / "file"
    file.write_text("old")
    file.chmod(0o444)
    assert script(AS_NOBODY, str(file)).stdout == f"PermissionError {file}\n"
    assert file.read_text() == "old" and names(shared) == ["file"]


def test_a_folder_that_may_not_be_written_is_named(shared: Path) -> None:
    folder = shared / "folder"
    folder.mkdir()
    file = folder / "file"
    file.write_text("old")
    file.chmod(0o666)
    folder.chmod(0o555)
    assert script(AS_NOBODY, str(file)).stdout == f"PermissionError {folder}\n"
    folder.chmod(0o755)
    assert file.read_text() == "old" and names(folder) == ["file"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs files of two users")
def test_a_group_that_cannot_be_kept_gains_nothing(shared: Path) -> None:
    file = shared / "file"
    file.write_text("old")
    file.chmod(0o662)
    os.chown(file, 12345, 54321)
    assert script(AS_NOBODY, str(file)).stdout == ""
    assert (file.read_text(), mode(file)) == ("new", 0o602)


# ---------------------------------------------------------------- links and other names


def test_a_link_is_followed(path: Path, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    target = tmp_path / "far" / "target"
    for there in (False, True):
        if there:
            dt.save(OLD, target)
        path.unlink(missing_ok=True)
        path.symlink_to(os.path.join("far", "middle"))
        (tmp_path / "far" / "middle").unlink(missing_ok=True)
        (tmp_path / "far" / "middle").symlink_to("target")
        dt.save(NEW, path)
        assert path.is_symlink() and not target.is_symlink() and list(dt.load(target)) == ["a", "b"]
        assert names(tmp_path / "far") == ["middle", "target"] and names(tmp_path) == ["far", path.name]
        target.unlink()


def test_links_in_a_ring(path: Path) -> None:
    path.symlink_to(path.name)
    for work in (lambda: dt.save(NEW, path), lambda: dt.load(path)):
        with pytest.raises(OSError, match="symbolic links"):
            work()
    assert path.is_symlink()


@pytest.mark.parametrize("kind", [str, os.fsencode, Path], ids=["str", "bytes", "Path"])
@pytest.mark.parametrize("name", ["a", "a" * 250, "ä b\n", "\udcff", ".part"])
def test_names(tmp_path: Path, name: str, kind: Any) -> None:
    file = kind(str(tmp_path / name))
    for arrays in (OLD, NEW):
        dt.save(arrays, file)
        assert list(dt.load(file)) == list(arrays)
    assert names(tmp_path) == [name]


def test_relative_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name in ("a", "folder/b", "./folder/../c"):
        dt.save(NEW, name)
        assert list(dt.load(name)) == ["a", "b"]
    assert names(tmp_path) == ["a", "c", "folder"] and names(tmp_path / "folder") == ["b"]


@pytest.mark.parametrize("name", ["", "folder", "folder/", "new/", "new/.", "no/file", "file/file", "a" * 300])
def test_names_where_nothing_can_be(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    dt.save(OLD, "file")
    for work in (lambda: dt.save(NEW, name), lambda: dt.load(name)):
        with pytest.raises(OSError) as caught:
            work()
        assert ".part" not in str(caught.value)
    assert names(tmp_path) == ["file", "folder"] and names(tmp_path / "folder") == []


@pytest.mark.parametrize("name", ["", "folder/", "new/", "new/.", "folder/..", "."])
def test_names_that_name_no_file(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    kind = FileNotFoundError if name == "" else IsADirectoryError
    what = "a folder; save() needs a file's name behind it, such as 'x.safetensors'" if name else "the name is empty"
    with pytest.raises(kind, match=re.escape(f"{what}: {name!r}")):
        dt.save(NEW, name)


def test_a_hard_link_keeps_the_old_file(tmp_path: Path) -> None:
    dt.save(OLD, tmp_path / "file")
    os.link(tmp_path / "file", tmp_path / "other")
    dt.save(NEW, tmp_path / "file")
    assert list(dt.load(tmp_path / "file")) == list(NEW) and list(dt.load(tmp_path / "other")) == list(OLD)
    assert "other hard links keep" in " ".join(dt.save.__doc__.split())


@pytest.mark.parametrize("wrong", [0, True, None, 1.5, ["a"], object()])
def test_what_is_no_path(wrong: Any) -> None:
    text = rf"\(\): argument 'f' must be a path or a file open for .*, not {type(wrong).__name__}$"
    with pytest.raises(TypeError, match="save" + text):
        dt.save(NEW, wrong)
    with pytest.raises(TypeError, match="load" + text):
        dt.load(wrong)


# ---------------------------------------------------------------- what is not a regular file


def test_load_of_a_pipe_does_not_wait(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(RuntimeError, match=r"model.safetensors is not a regular file: open it, and give load\(\)"):
        dt.load(path)
    with pytest.raises(RuntimeError, match="is not a regular file"):
        dt.load("/dev/zero")


def test_a_path_is_looked_up_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody puts another file there as soon as the first one is open."""
    dt.save(NEW, path)
    unpack = dt._files.safetensors.unpack

    def late(*arguments: Any) -> Any:
        dt.save(OLD, path)
        return unpack(*arguments)

    monkeypatch.setattr("devtensor._files.safetensors.unpack", late)
    assert list(dt.load(path)) == ["a", "b"]
    monkeypatch.undo()
    assert list(dt.load(path)) == ["a"]


def test_a_file_that_shrinks_while_it_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack = dt._files.safetensors.unpack

    def cut(*arguments: Any) -> Any:
        found = unpack(*arguments)
        os.truncate(path, found[2] + 8192)
        return found

    dt.save({"a": dt.ones(200000)}, path)  # more than Python reads ahead
    monkeypatch.setattr("devtensor._files.safetensors.unpack", cut)
    with pytest.raises(RuntimeError, match="is damaged: it ends before the bytes of 'a'"):
        dt.load(path)


def test_pipes_and_devices_are_written_to(path: Path) -> None:
    os.mkfifo(path)
    got: list[Any] = []

    def read() -> None:
        with open(path, "rb") as file:
            got.append(dt.load(file))

    reader = threading.Thread(target=read)
    reader.start()
    dt.save(NEW, path)
    reader.join()
    assert list(got[0]) == ["a", "b"] and stat.S_ISFIFO(path.stat().st_mode)
    dt.save(NEW, os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    with pytest.raises(OSError, match="No space left"):
        dt.save(NEW, "/dev/full")


class Slow(io.RawIOBase):
    """Takes a few bytes at a time, and at last none: None as the io module has it, or 0 as others do."""

    def __init__(self, room: int, none: int | None = None) -> None:
        self.data, self.room, self.none = bytearray(), room, none

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int | None:
        taken = bytes(data)[: min(7, self.room - len(self.data))]
        self.data += taken
        return len(taken) or self.none


def test_files_without_a_buffer() -> None:
    slow = Slow(10000)
    dt.save(NEW, slow)
    assert list(dt.load(io.BytesIO(slow.data))) == ["a", "b"]
    for none in (None, 0):
        with pytest.raises(BlockingIOError, match="takes no more now"):
            dt.save(NEW, Slow(50, none))


def test_what_is_left_to_write_is_not_copied_again_and_again() -> None:
    class Sizes(Slow):
        def write(self, data: Any) -> int | None:
            sizes.append(len(data) if isinstance(data, bytes) else 0)  # a copy of what was left
            return super().write(data)

    sizes: list[int] = []
    dt.save({"a": dt.zeros(1000)}, Sizes(10000))
    assert len(sizes) > 500 and sum(sizes) < 10000


def test_files_of_text(path: Path) -> None:
    with pytest.raises(TypeError, match="the file must give bytes, and it gave str; open it with 'rb'"):
        dt.load(io.StringIO("text"))
    with pytest.raises(TypeError):
        dt.save(NEW, io.StringIO())


# ---------------------------------------------------------------- failures and interrupts


FULL = """
import resource, signal, sys
import devtensor as dt
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    dt.save({"a": dt.ones(100_000)}, sys.argv[1])
except OSError as error:
    print(error.strerror)
"""


def test_a_file_that_grows_too_large(path: Path) -> None:
    dt.save(OLD, path)
    done = script(FULL, str(path))
    assert done.stdout == "File too large\n", done.stderr
    assert list(dt.load(path)) == ["a"] and names(path.parent) == [path.name]


@pytest.mark.parametrize("call", ["fchmod", "fsync", "replace"])
def test_each_call_that_fails_leaves_the_old_file(path: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> None:
        raise OSError(5, "Input/output error")

    dt.save(OLD, path)
    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="Input/output error"):
        dt.save(NEW, path)
    monkeypatch.undo()
    assert list(dt.load(path)) == ["a"] and names(path.parent) == [path.name]


class Interrupts:
    """A profile function that raises KeyboardInterrupt at the n-th call or return."""

    def __init__(self, n: int) -> None:
        self.left = n

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        self.left -= frame.f_code is not interrupted.__code__
        if self.left == 0:
            raise KeyboardInterrupt


def interrupted(work: Any, n: int) -> bool:
    """Whether work was interrupted at its n-th call or return."""
    interrupts = Interrupts(n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # a file that was opened and never bound to a name
        gc.disable()  # an interrupt in a finalizer of others would be lost
        sys.setprofile(interrupts)
        try:
            work()
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)
            gc.enable()
    return interrupts.left <= 0


@pytest.mark.parametrize("before", ["a file", "a link", "nothing"])
def test_ctrl_c_anywhere_leaves_the_old_file_or_the_new_one(tmp_path: Path, before: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    file, n, kept, made = folder / "file", 0, 0, 0
    stopped = True
    while stopped:
        n += 1
        file.unlink(missing_ok=True)
        if before != "nothing":
            dt.save(OLD, file)
        path = tmp_path / "link" if before == "a link" else file
        if before == "a link" and not path.is_symlink():
            path.symlink_to(file)
        stopped = interrupted(lambda path=path: dt.save(NEW, path), n)
        found = names(folder)
        assert found in ([["file"]] if before != "nothing" else [[], ["file"]]), n
        if found:
            there = list(dt.load(file))
            assert there in (["a"], ["a", "b"]), n
            made += there == ["a", "b"]
            kept += there == ["a"]
    assert n > 50 and made > 1 and (kept > 20 or before == "nothing")


KILLED = """
import json, os, signal, sys
import devtensor as dt

folder, before = sys.argv[1:]
old, new = {"a": dt.zeros(3)}, {"a": dt.ones(3), "b": dt.ones(2, 2, dtype=dt.int8)}


def save(path):
    def count(frame, event, arg):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)
    dt.save(new, path)
    os._exit(0)


found, left, n, stopped = [], 0, 0, True
while stopped:
    n += 1
    place = os.path.join(folder, str(n))
    path = os.path.join(place, "file")
    os.mkdir(place)
    if before == "a file":
        dt.save(old, path)
    child = os.fork()
    if child == 0:
        left = n
        save(path)
    stopped = os.WIFSIGNALED(os.waitpid(child, 0)[1])
    names = [name for name in os.listdir(place) if not name.endswith(".part")]
    there = [list(dt.load(os.path.join(place, name))) for name in names]
    dt.save(new, path)
    found.append([names, there, list(dt.load(path))])
print(json.dumps(found))
"""


@pytest.mark.parametrize("before", ["a file", "nothing"])
def test_kill_anywhere_leaves_the_old_file_or_the_new_one(tmp_path: Path, before: str) -> None:
    """A child of a small process is killed at each call and return on the way, as by kill -9."""
    done = script(KILLED, str(tmp_path), before)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    old = [["file"], [["a"]]] if before == "a file" else [[], []]
    new = [["file"], [["a", "b"]]]
    assert len(found) > 50 and found[0][:2] == old and found[-1][:2] == new
    assert all(there in (old, new) and again == ["a", "b"] for *there, again in found)


def test_ctrl_c_while_loading_leaves_no_file_open(path: Path) -> None:
    """But for the one call in which the file is opened, where Python has no name for it yet."""
    dt.save(NEW, path)
    n, leaks, stopped = 0, 0, True
    while stopped:
        n += 1
        before = len(os.listdir("/proc/self/fd"))
        stopped = interrupted(lambda: dt.load(path), n)
        leaks += len(os.listdir("/proc/self/fd")) - before
    assert n > 30 and leaks <= 2


def test_a_name_that_is_taken_is_not_removed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", bytes)
    (path.parent / f".{bytes(8).hex()}.part").write_text("another's")
    with pytest.raises(FileExistsError):
        whole.write(str(path), lambda file: file.write(b"new"))
    assert names(path.parent) == [f".{bytes(8).hex()}.part"]
