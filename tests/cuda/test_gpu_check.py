"""tools/gpu/gpu_check.sh on simulated devices: whatever fails, hangs or stops it, what was found out comes back."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from argparse import Namespace
from pathlib import Path

import pytest
from support import REAL, ROOT

import devtensor as dt

sys.path.insert(0, str(ROOT / "tools" / "gpu"))
import gpu_check
import gpu_report

sys.path.pop(0)
SCRIPT = ROOT / "tools" / "gpu" / "gpu_check.sh"
pytestmark = [
    pytest.mark.skipif(REAL, reason="it would run inside of itself"),
    pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not on the path"),
]

POISON = """
import devtensor as dt

BAD = 'extern "C" __global__ void bad(float *x) { x[1 << 20] = 1; }'


def test_poisons(cuda):
    dt.cuda.RawKernel(BAD, "bad")[1, 1](dt.zeros(1, device=cuda))
    dt.cuda.synchronize()


def test_finds_the_device_lost(cuda):
    assert dt.zeros(1, device=cuda).item() == 0
"""


@pytest.fixture
def start(tmp_path):
    """start(*arguments): the script with the extension of this process, its results in tmp_path/out."""
    lib = tmp_path / "build" / "lib"
    lib.mkdir(parents=True)
    (lib / "devtensor").symlink_to(Path(dt.__file__).parent, target_is_directory=True)
    children = []

    def run(*arguments: str) -> subprocess.Popen[str]:
        env = {**os.environ, "BUILD": str(tmp_path / "build"), "PYTHON": sys.executable, "OUT": str(tmp_path / "out")}
        command = [str(SCRIPT), "--dry-run", "--work", str(tmp_path / "work"), *arguments]
        child = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        children.append(child)
        return child

    yield run
    for child in children:
        child.kill()


def results(tmp_path: Path) -> dict[str, dict]:
    """The record of each step by "command/step", from the archive that came back."""
    found = {}
    with tarfile.open(tmp_path / "out" / "results.tgz") as archive:
        for entry in archive:
            command, _, name = entry.name.removeprefix("state/").rpartition("/")
            if name.endswith(".json") and command in ("probe", "suite", "sanitizer", "build"):
                found[f"{command}/{name.removesuffix('.json')}"] = json.load(archive.extractfile(entry))
    return found


def test_a_file_that_poisons_the_device_ends_alone(start, tmp_path: Path) -> None:
    poison = tmp_path / "test_poison.py"
    poison.write_text(POISON)
    child = start("--also", str(poison), "suite")
    output, _ = child.communicate(timeout=300)
    assert child.returncode == 1, output
    steps = results(tmp_path)
    assert {name: step["status"] for name, step in steps.items()} == {
        "suite/test_poison": "failed",
        "suite/test_to": "passed",
        "suite/test_random": "passed",
    }, output
    report = (tmp_path / "out" / "report.md").read_text()
    assert "::test_poisons[cuda:" in report and "::test_finds_the_device_lost[cuda:" in report
    assert "| suite/test_to | passed |" in report
    assert report.startswith("# Dry run on a simulated GPU")


def test_a_probe_that_fails_gates_nothing_and_is_repeated_when_asked(start, tmp_path: Path) -> None:
    probe = tmp_path / "planted.py"
    probe.write_text("raise SystemExit('the planted probe fails')")
    # In the place of the conformance list, which takes a compiler half a minute.
    (tmp_path / "work" / "state" / "probe").mkdir(parents=True)
    gpu_report.write(tmp_path / "work" / "state" / "source.json", gpu_report.source(ROOT))
    (tmp_path / "work" / "state" / "probe" / "conformance.json").write_text('{"status": "passed", "seconds": 0}')
    child = start("--also", str(probe), "probe")
    output, _ = child.communicate(timeout=300)
    assert child.returncode == 1
    steps = results(tmp_path)
    assert [name for name, step in steps.items() if step["status"] != "passed"] == ["probe/planted"], output
    assert len(steps) == 13, output
    assert "the planted probe fails" in (tmp_path / "out" / "report.md").read_text()

    probe.write_text("")
    output, _ = start("--also", str(probe), "probe").communicate(timeout=300)
    assert "failed: probe/planted" in output and "passed" not in output, "finished steps are not done again"
    child = start("--also", str(probe), "--again", "failed", "probe")
    output, _ = child.communicate(timeout=300)
    assert child.returncode == 0 and output.count("passed") == 1, output


def test_stopped_in_the_middle_it_leaves_what_it_has_and_goes_on_later(start, tmp_path: Path) -> None:
    hanging = tmp_path / "test_hangs.py"
    mark = tmp_path / "hangs"
    hanging.write_text(
        f"import pathlib, time\n\n\ndef test_hangs():\n    pathlib.Path({str(mark)!r}).touch()\n    time.sleep(600)\n"
    )
    child = start("--also", str(hanging), "suite")
    late = time.monotonic() + 120
    while not mark.exists():
        assert time.monotonic() < late and child.poll() is None
        time.sleep(0.05)
    child.send_signal(signal.SIGTERM)
    output, _ = child.communicate(timeout=300)
    assert child.returncode == 143, output
    assert results(tmp_path)["suite/test_hangs"]["status"] == "stopped"
    assert (tmp_path / "out" / "report.md").exists()

    hanging.write_text("def test_hangs_no_more():\n    pass\n")
    child = start("--also", str(hanging), "suite")
    output, _ = child.communicate(timeout=300)
    assert child.returncode == 0, output
    assert {step["status"] for step in results(tmp_path).values()} == {"passed"}


def test_an_archive_alone_is_enough_to_go_on(start, tmp_path: Path) -> None:
    state = tmp_path / "state" / "suite"
    state.mkdir(parents=True)
    for name in ("test_to", "test_random"):
        (state / f"{name}.json").write_text('{"status": "passed", "seconds": 1}')
    gpu_report.write(tmp_path / "state" / "source.json", gpu_report.source(ROOT))
    (tmp_path / "out").mkdir()
    with tarfile.open(tmp_path / "out" / "results.tgz", "w:gz") as archive:
        archive.add(tmp_path / "state", "state")
    child = start("suite")
    output, _ = child.communicate(timeout=300)
    assert child.returncode == 0 and "passed" not in output, output


# ---------------------------------------------------------------- what an earlier run left


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A small checkout, whose path needs quotes, with a setup.py that leaves what it was asked for."""
    root = tmp_path / "it's a checkout"
    for room in ("csrc", "tools", "python/devtensor", "tests"):
        (root / room).mkdir(parents=True)
    (root / "README.md").touch()
    (root / "setup.py").write_text(
        "import pathlib, sys\n"
        "lib = pathlib.Path(sys.argv[-1], 'devtensor')\n"
        "lib.mkdir(parents=True)\n"
        "(lib / '_C.made.so').write_text(open('csrc/one.c').read())\n"
    )
    (root / "csrc" / "one.c").write_text("first")
    monkeypatch.setattr(gpu_check, "ROOT", root)
    monkeypatch.delenv("BUILD", raising=False)
    return root


def prepared(tmp_path: Path) -> gpu_check.Check:
    """What a new process begins with."""
    options = Namespace(dry_run=True, also=[], out=tmp_path / "out", work=tmp_path / "a 'work'", again=None)
    return gpu_check.Check(options)


DONE = {"status": "passed", "seconds": 1}


def test_another_source_begins_anew(checkout: Path, tmp_path: Path) -> None:
    """A build and finished steps count only for the files that they were made from, wherever they lie."""
    for text in ("first", "second"):
        (checkout / "csrc" / "one.c").write_text(text)
        for finished in (False, True):
            check = prepared(tmp_path)
            assert gpu_report.read(check.state / "probe" / "copy.json") == (DONE if finished else None)
            assert check.make()
            assert (check.build / "lib" / "devtensor" / "_C.made.so").read_text() == text
            (check.state / "probe").mkdir(exist_ok=True)
            gpu_report.write(check.state / "probe" / "copy.json", DONE)
            check.leave()
    shutil.rmtree(check.work)
    assert gpu_report.read(prepared(tmp_path).state / "probe" / "copy.json")  # from the archive
    shutil.rmtree(check.work)
    (checkout / "tests" / "test_new.py").touch()
    assert gpu_report.read(prepared(tmp_path).state / "probe" / "copy.json") is None


def test_a_brought_build_is_never_removed(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = tmp_path / "a 'work'" / "build"
    (built / "lib").mkdir(parents=True)
    monkeypatch.setenv("BUILD", str(built))
    prepared(tmp_path)
    assert (built / "lib").exists()


def test_an_archive_is_read_with_any_python_and_only_into_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tarfile has filters since 3.11.4."""
    monkeypatch.setattr(tarfile.TarFile, "extractall", lambda self, path: None)
    with tarfile.open(tmp_path / "results.tgz", "w:gz") as archive:
        for name in ("state/suite/a.json", "../outside", str(tmp_path / "absolute")):
            archive.addfile(tarfile.TarInfo(name))
        link = tarfile.TarInfo("state/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        archive.addfile(link)
    gpu_report.unpack(tmp_path / "results.tgz", tmp_path / "work")
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if not path.is_dir())
    assert found == ["results.tgz", "work/state/suite/a.json"]


def test_a_log_without_end_fits_into_the_archive(tmp_path: Path) -> None:
    state = tmp_path / "state" / "suite"
    state.mkdir(parents=True)
    (state / "long.log").write_bytes(b"first\n" + os.urandom(40 << 20) + b"\nlast")
    gpu_report.pack(tmp_path, tmp_path / "results.tgz")
    assert (tmp_path / "results.tgz").stat().st_size < 16 << 20
    with tarfile.open(tmp_path / "results.tgz") as archive:
        content = archive.extractfile("state/suite/long.log").read()
    assert content.startswith(b"first\n") and content.endswith(b"\nlast")


def test_the_files_that_are_named_exist() -> None:
    for name in (*gpu_check.ALONE, *gpu_check.LEFT_OUT):
        assert list((ROOT / "tests").glob(f"*/test_{name}.py")), name
