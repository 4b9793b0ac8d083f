"""Kernels compiled at run time, and the directory in which they are kept between processes.

Every test starts processes of its own: what is kept is read once in a process.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from support import REAL

import devtensor as dt

pytestmark = pytest.mark.skipif(REAL, reason="the stand-in of NVRTC is what is asked here")

HEADER = 80  # magic 8, key 32, digest 32, length 8
LIMIT = 64 << 20

# Runs three kernels: of a fill, of exp and of sum. Images that the build may have embedded are refused.
SCRIPT = """
import sys
import devtensor as dt
images = dt._C._test.kernel_images()["images"]
{before}
if images:
    dt._C._test.api_fail("cuModuleLoadData", 0, 209)
x = dt.full((4,), 2.0, device="cuda:0", dtype=dt.float64)
dt._C._test.api_fail(None, -1, 0)
y = x.exp().sum().item()
{after}
k = dt._C._test.kernel_images()
print(y == dt.full((4,), 2.0, dtype=dt.float64).exp().sum().item(), k["compiled"], k["read"], k["not_kept"])
"""


def start(environment: dict[str, str | None], before: str = "", after: str = "") -> subprocess.Popen[str]:
    names = ("DEVTENSOR_CACHE", "DEVTENSOR_CACHE_DIR", "XDG_CACHE_HOME", "HOME")
    full = {name: value for name, value in os.environ.items() if name not in names}
    full |= {"DEVTENSOR_CUDA": "sim:2", **{k: v for k, v in environment.items() if v is not None}}
    script = SCRIPT.format(before=before, after=after)
    return subprocess.Popen(
        [sys.executable, "-c", script], env=full, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def finish(child: subprocess.Popen[str]) -> tuple[int, int, str]:
    """Kernels compiled, kernels taken from the directory, and why nothing is kept; the results were right."""
    out, err = child.communicate(timeout=120)
    assert child.returncode == 0, err
    right, compiled, read, why = out.strip().split(" ", 3)
    assert right == "True"
    return int(compiled), int(read), why


def run(folder: Path | str, before: str = "", after: str = "") -> tuple[int, int]:
    compiled, read, _ = finish(start({"DEVTENSOR_CACHE_DIR": str(folder)}, before, after))
    return compiled, read


def why_not(folder: Path | str) -> str:
    compiled, read, why = finish(start({"DEVTENSOR_CACHE_DIR": str(folder)}))
    assert (compiled, read) == (3, 0)
    return why


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("filled") / "a"
    assert run(made / "kept") == (3, 0)
    return made


@pytest.fixture
def folder(filled: Path, tmp_path: Path) -> Path:
    """A directory that holds the three kernels."""
    return Path(shutil.copytree(filled, tmp_path / "a")) / "kept"


def kept(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


# ---------------------------------------------------------------- what is kept


def test_the_second_process_compiles_nothing(folder: Path) -> None:
    assert len(kept(folder)) == 3
    assert run(folder) == (0, 3)


def test_files_are_ours_alone_and_carry_their_hash(folder: Path) -> None:
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    for path in kept(folder):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        data = path.read_bytes()
        assert path.name == data[8:40].hex() + ".bin"
        assert data[40:72] == hashlib.sha256(data[HEADER:]).digest()
        assert int.from_bytes(data[72:80], sys.byteorder) == len(data) - HEADER > 0


def test_another_architecture_is_compiled_apart(folder: Path) -> None:
    assert run(folder, before="dt._C._test.set_compute_capability(8, 0)") == (3, 0)
    assert len(kept(folder)) == 6
    assert run(folder) == (0, 3)


def test_both_devices_share_what_is_kept(folder: Path) -> None:
    second = "z = dt.full((4,), 2.0, device='cuda:1', dtype=dt.float64).exp().sum().item()\nassert z == y"
    # cuda:1 takes an image that the build embedded, as only the first load is refused
    read = 3 if dt._C._test.kernel_images()["images"] else 6
    assert run(folder, after=second) == (0, read)


# ---------------------------------------------------------------- what is not believed

ALTERED = {
    "empty": lambda data: b"",
    "half a header": lambda data: data[:40],
    "a header alone": lambda data: data[:HEADER],
    "one byte short": lambda data: data[:-1],
    "one byte long": lambda data: data + b"\0",
    "another magic": lambda data: b"x" + data[1:],
    "another key": lambda data: data[:8] + bytes([data[8] ^ 1]) + data[9:],
    "another digest": lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:],
    "another length": lambda data: data[:72] + (2**63).to_bytes(8, sys.byteorder) + data[HEADER:],
    "another first byte": lambda data: data[:HEADER] + bytes([data[HEADER] ^ 1]) + data[HEADER + 1 :],
    "another last byte": lambda data: data[:-1] + bytes([data[-1] ^ 128]),
}


@pytest.mark.parametrize("how", ALTERED)
def test_an_altered_file_is_made_again(folder: Path, how: str) -> None:
    before = {path: path.read_bytes() for path in kept(folder)}
    for path, data in before.items():
        path.write_bytes(ALTERED[how](data))
    assert run(folder) == (3, 0)
    assert {path: path.read_bytes() for path in kept(folder)} == before
    assert run(folder) == (0, 3)


def test_a_file_under_the_name_of_another_is_made_again(folder: Path) -> None:
    first, second, _ = kept(folder)
    first.write_bytes(second.read_bytes())
    assert run(folder) == (1, 2)


def test_a_file_that_others_may_write_is_made_again(folder: Path) -> None:
    path = kept(folder)[0]
    path.chmod(0o622)
    assert run(folder) == (1, 2)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_in_place_of_a_file_is_replaced(folder: Path, tmp_path: Path) -> None:
    path, target = kept(folder)[0], tmp_path / "elsewhere"
    path.rename(target)
    path.symlink_to(target)
    before = target.read_bytes()
    assert run(folder) == (1, 2)
    assert not path.is_symlink()
    assert target.read_bytes() == before


def test_a_directory_in_place_of_a_file_does_no_harm(folder: Path) -> None:
    path = kept(folder)[0]
    path.unlink()
    path.mkdir()
    assert run(folder) == (1, 2)
    assert path.is_dir()
    assert len(kept(folder)) == 3


def give_away(path: Path) -> None:
    """To another user, which not even every root may."""
    try:
        os.chown(path, 65534, 65534)
    except PermissionError:
        pytest.skip("this user may not give a file away")


def test_a_file_of_another_user_is_made_again(folder: Path) -> None:
    path = kept(folder)[0]
    give_away(path)
    assert run(folder) == (1, 2)
    assert path.stat().st_uid == os.geteuid()


def test_machine_code_that_the_driver_refuses_is_made_again(folder: Path) -> None:
    # with no image embedded the first load is that of the fill
    refuse = 'dt._C._test.api_fail("cuModuleLoadData", 0, 200)'
    script = {"before": refuse} if not dt._C._test.kernel_images()["images"] else {"before": f"images = 0\n{refuse}"}
    compiled, read = run(folder, **script)
    assert (compiled, read) == ((1, 2) if not dt._C._test.kernel_images()["images"] else (0, 3))


# ---------------------------------------------------------------- where nothing is kept


@pytest.mark.parametrize("mode", [0o777, 0o720, 0o702])
def test_a_directory_where_others_write_is_not_used(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    before = {path: path.stat().st_mtime_ns for path in kept(folder)}
    assert why_not(folder) == "others may write there"
    assert {path: path.stat().st_mtime_ns for path in kept(folder)} == before


def test_a_directory_of_another_user_is_not_used(folder: Path) -> None:
    give_away(folder)
    assert why_not(folder) == "it belongs to another user"


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_link_is_not_followed(folder: Path, tmp_path: Path, slash: str) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert why_not(f"{link}{slash}") == "it is a link or no directory"
    assert run(f"{folder}{slash}") == (0, 3)


def test_a_file_in_place_of_the_directory(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("mine")
    assert why_not(path) == "it is a link or no directory"
    assert why_not(path / "below") == "it is a link or no directory"
    assert path.read_text() == "mine"


def test_a_place_where_nothing_can_be_made() -> None:
    assert why_not("/proc/self/kept") == "it does not exist yet"


def test_asking_where_makes_nothing(tmp_path: Path) -> None:
    ask = "import devtensor as dt; k = dt._C._test.kernel_images(); print(k['kept_in'], k['not_kept'], sep='\\n')"
    child = subprocess.run(
        [sys.executable, "-c", ask],
        env=os.environ | {"DEVTENSOR_CACHE": "1", "DEVTENSOR_CACHE_DIR": str(tmp_path / "kept")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert child.stdout.splitlines() == [str(tmp_path / "kept"), "it does not exist yet"]
    assert not (tmp_path / "kept").exists()


def test_a_directory_that_cannot_be_written(folder: Path) -> None:
    for path in kept(folder)[:2]:
        path.unlink()
    folder.chmod(0o500)
    if os.access(folder, os.W_OK):
        pytest.skip("this user may write everywhere")
    compiled, read, why = finish(start({"DEVTENSOR_CACHE_DIR": str(folder)}))
    assert (compiled, read, why) == (2, 1, "it cannot be written")
    folder.chmod(0o700)
    assert len(kept(folder)) == 1


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    full = "dt.cuda.synchronize('cuda:0'); import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))"
    assert run(tmp_path / "kept", before=full) == (3, 0)
    assert kept(tmp_path / "kept") == []


@pytest.mark.parametrize("size", [0, 1, HEADER - 1, HEADER, HEADER + 1])
def test_kill_while_a_file_is_written_leaves_nothing_that_is_read(tmp_path: Path, size: int) -> None:
    """The kernel sends a signal at the first byte too many, which ends the process as kill -9 would."""
    kill = "dt.cuda.synchronize('cuda:0'); import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL)"
    child = start(
        {"DEVTENSOR_CACHE_DIR": str(tmp_path / "kept")},
        f"{kill}; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))",
    )
    child.communicate(timeout=120)
    assert child.returncode == -signal.SIGXFSZ
    assert not [path for path in kept(tmp_path / "kept") if path.suffix == ".bin"]
    assert run(tmp_path / "kept") == (3, 0)
    assert run(tmp_path / "kept") == (0, 3)


def test_a_relative_path_is_not_used(tmp_path: Path) -> None:
    assert why_not("kept") == "HOME is not set"
    assert finish(start({"DEVTENSOR_CACHE_DIR": "kept", "HOME": str(tmp_path)})) == (3, 0, "None")
    assert len(kept(tmp_path / ".cache" / "devtensor")) == 3


def test_a_path_that_is_too_long_is_not_used() -> None:
    assert why_not("/" + "a" * 5000) == "the path is too long"


def test_no_home() -> None:
    assert finish(start({})) == (3, 0, "HOME is not set")
    assert finish(start({"HOME": "", "XDG_CACHE_HOME": "relative"})) == (3, 0, "HOME is not set")


def test_the_order_of_the_places(tmp_path: Path) -> None:
    home, caches, own = tmp_path / "home", tmp_path / "caches", tmp_path / "own"
    places: dict[str, str | None] = {"HOME": str(home)}
    assert finish(start(places)) == (3, 0, "None")
    assert len(kept(home / ".cache" / "devtensor")) == 3
    places["XDG_CACHE_HOME"] = str(caches)
    assert finish(start(places)) == (3, 0, "None")
    assert len(kept(caches / "devtensor")) == 3
    places["DEVTENSOR_CACHE_DIR"] = str(own)
    assert finish(start(places)) == (3, 0, "None")
    assert len(kept(own)) == 3


def test_switched_off(folder: Path) -> None:
    off: dict[str, str | None] = {"DEVTENSOR_CACHE_DIR": str(folder), "DEVTENSOR_CACHE": "0"}
    assert finish(start(off)) == (3, 0, "switched off by DEVTENSOR_CACHE=0")
    assert len(kept(folder)) == 3


# ---------------------------------------------------------------- many at once, and too many


def test_processes_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    children = [start({"DEVTENSOR_CACHE_DIR": str(folder)}) for _ in range(4)]
    for compiled, read, why in map(finish, children):
        assert (compiled + read, why) == (3, "None")
    assert [path.suffix for path in kept(folder)] == [".bin"] * 3
    assert run(folder) == (0, 3)


def test_what_was_not_used_for_longest_makes_room(folder: Path) -> None:
    used = kept(folder)
    foreign = folder / "notes.txt"
    foreign.write_text("mine")
    planted = [folder / f"{i:064x}.bin" for i in range(3)] + [folder / f"{3:064x}.bin.1.2"]
    for age, path in enumerate(planted):
        path.touch(0o600)
        os.truncate(path, 20 << 20)
        os.utime(path, (1000 + age, 1000 + age))
    for path in used:
        os.utime(path, (2000, 2000))
    used[0].unlink()
    assert run(folder) == (1, 2)
    assert [path.exists() for path in planted] == [False, True, True, True]
    assert foreign.exists()
    assert all(path.stat().st_mtime > 1e9 for path in used)  # reading counts as use
    assert sum(path.stat().st_size for path in kept(folder)) <= LIMIT


# ---------------------------------------------------------------- what is said when there is no kernel

FAIL = """
import devtensor as dt
{before}
try:
    dt.full((4,), 2.0, device="cuda:0")
except dt.CudaError as e:
    print(e)
dt._C._test.api_fail(None, -1, 0)
dt._C._test.set_compute_capability(9, 0)
print(dt.full((4,), 2.0, device="cuda:1").sum().item())
"""


@pytest.mark.parametrize(
    ("before", "says"),
    [
        (
            "dt._C._test.set_compute_capability(5, 2)",
            "nvrtcCompileProgram failed on cuda:0: NVRTC_ERROR_INVALID_OPTION",
        ),
        ('dt._C._test.api_fail("cuModuleLoadData", 0, 209, True)', "CUDA_ERROR_NO_BINARY_FOR_GPU"),
        ('dt._C._test.api_fail("cuModuleLoadData", 0, 222, True)', "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
    ],
)
def test_an_error_says_what_is_embedded_and_why_it_was_not_compiled(before: str, says: str) -> None:
    child = subprocess.run(
        [sys.executable, "-c", FAIL.format(before=before)],
        env=os.environ | {"DEVTENSOR_CACHE": "0", "DEVTENSOR_CUDA": "sim:2"},
        capture_output=True,
        text=True,
        check=True,
    )
    text, after = child.stdout.strip().rsplit("\n", 1)
    archs = dt._C._test.kernel_images()["archs"]
    if archs:
        assert text.startswith(f"The machine code in this build of devtensor ({archs}) does not run on cuda:0 (")
    else:
        assert text.startswith("This build of devtensor has no machine code for GPUs, and compiling it at run time ")
    assert "and compiling it at run time failed: " in text
    assert says in text
    assert after == "8.0"


# Each kernel here is used for the first time under one fault, and then without it.
FAULTS = """
import devtensor as dt
import sys
ops = "exp expm1 log log1p log2 sqrt rsqrt reciprocal sin cos tan tanh sigmoid erf floor ceil trunc silu".split()
if dt._C._test.kernel_images()["images"]:
    dt._C._test.api_fail("cuModuleLoadData", 0, 209)
x = dt.full((4,), 2.0, device="cuda:0")
dt._C._test.api_fail(None, -1, 0)
getattr(x, ops.pop())()
dt.cuda.synchronize()
for n, op in enumerate(ops):
    dt.cuda.synchronize()
    before, blocks = dt._C._test.ledger(), dt._C._test.live_blocks()
    {arm}
    try:
        getattr(x, op)()
        print("done", end=" ")
    except (dt.CudaError, MemoryError) as e:
        print(type(e).__name__ + "(kernel" * ("(kernel " in str(e)), end=" ")
    {disarm}
    dt.cuda.synchronize()
    after = dt._C._test.ledger()
    assert after["descriptors"] == before["descriptors"], op
    assert after["modules"] <= before["modules"] + 1, op
    assert dt._C._test.live_blocks() <= blocks + 2, op
    assert abs(getattr(x, op)()[0].item() - getattr(dt.full((4,), 2.0), op)()[0].item()) < 1e-6, op
"""
CALLS = ["nvrtcVersion", "nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetCUBINSize", "nvrtcGetCUBIN"]
CALLS += ["cuModuleLoadData", "cuModuleGetFunction"]


def faults(folder: Path, arm: str, disarm: str) -> list[str]:
    child = subprocess.run(
        [sys.executable, "-c", FAULTS.format(arm=arm, disarm=disarm)],
        env=os.environ | {"DEVTENSOR_CACHE": "1", "DEVTENSOR_CACHE_DIR": str(folder), "DEVTENSOR_CUDA": "sim"},
        capture_output=True,
        text=True,
    )
    assert child.returncode == 0, child.stderr
    return child.stdout.split()


def test_every_call_on_the_way_to_a_kernel_may_fail(tmp_path: Path) -> None:
    arm = f"dt._C._test.api_fail(({CALLS})[n % {len(CALLS)}], 0, 3)"
    found = faults(tmp_path / "kept", arm, "dt._C._test.api_fail(None, -1, 0)")
    named = ["(kernel" if CALLS[n % len(CALLS)] == "cuModuleGetFunction" else "" for n in range(len(found))]
    assert found == ["CudaError" + name for name in named]
    assert len(found) > 2 * len(CALLS)


@pytest.mark.parametrize("again", [False, True])
def test_every_allocation_on_the_way_to_a_kernel_may_fail(tmp_path: Path, again: bool) -> None:
    """When it is a copy from the disk that has no memory, the kernel is compiled."""
    found = []
    for _ in range(1 + again):
        found = faults(tmp_path / "kept", "dt._C._test.fail_allocations(n)", "dt._C._test.fail_allocations(-1)")
    assert "MemoryError" in found
    assert "done" in found


def test_the_report_of_kernels() -> None:
    found = dt._C._test.kernel_images()
    assert (found["images"] > 0) == (found["kernels"] > 0) == (found["bytes"] > 0) == (found["archs"] != "")
    assert found["not_kept"] == "switched off by DEVTENSOR_CACHE=0"
