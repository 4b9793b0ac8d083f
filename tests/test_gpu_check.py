"""tools/gpu_check.sh on simulated devices: whatever fails, hangs or stops it, what was found out comes back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from support import REAL

import devtensor as dt

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "tools" / "gpu_check.sh"
pytestmark = pytest.mark.skipif(REAL, reason="it would run inside of itself")

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
    assert "::test_poisons[cuda:0]" in report and "::test_finds_the_device_lost[cuda:0]" in report
    assert "| suite/test_to | passed |" in report
    assert report.startswith("# Dry run on a simulated GPU")


def test_a_probe_that_fails_gates_nothing_and_is_repeated_when_asked(start, tmp_path: Path) -> None:
    probe = tmp_path / "planted.py"
    probe.write_text("raise SystemExit('the planted probe fails')")
    # In the place of the conformance list, which takes a compiler half a minute.
    (tmp_path / "work" / "state" / "probe").mkdir(parents=True)
    (tmp_path / "work" / "state" / "probe" / "conformance.json").write_text('{"status": "passed", "seconds": 0}')
    child = start("--also", str(probe), "probe")
    output, _ = child.communicate(timeout=300)
    assert child.returncode == 1
    steps = results(tmp_path)
    assert [name for name, step in steps.items() if step["status"] != "passed"] == ["probe/planted"], output
    assert len(steps) == 13, output
    assert "the planted probe fails" in (tmp_path / "out" / "report.md").read_text()

    probe.write_text("")
    output, _ = start("--also", str(probe), "probe").communicate(timeout=60)
    assert "failed: probe/planted" in output and "passed" not in output, "finished steps are not done again"
    child = start("--also", str(probe), "--again", "failed", "probe")
    output, _ = child.communicate(timeout=60)
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
    output, _ = child.communicate(timeout=60)
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
    (tmp_path / "out").mkdir()
    with tarfile.open(tmp_path / "out" / "results.tgz", "w:gz") as archive:
        archive.add(tmp_path / "state", "state")
    child = start("suite")
    output, _ = child.communicate(timeout=60)
    assert child.returncode == 0 and "passed" not in output, output


def test_a_log_without_end_fits_into_the_archive(tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import gpu_report
    finally:
        sys.path.remove(str(ROOT / "tools"))
    state = tmp_path / "state" / "suite"
    state.mkdir(parents=True)
    (state / "long.log").write_bytes(b"first\n" + os.urandom(40 << 20) + b"\nlast")
    gpu_report.pack(tmp_path, tmp_path / "results.tgz")
    assert (tmp_path / "results.tgz").stat().st_size < 16 << 20
    with tarfile.open(tmp_path / "results.tgz") as archive:
        content = archive.extractfile("state/suite/long.log").read()
    assert content.startswith(b"first\n") and content.endswith(b"\nlast")


def test_the_files_that_are_named_exist() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import gpu_check
    finally:
        sys.path.remove(str(ROOT / "tools"))
    for name in (*gpu_check.ALONE, *gpu_check.LEFT_OUT):
        assert (ROOT / "tests" / f"test_{name}.py").exists(), name
