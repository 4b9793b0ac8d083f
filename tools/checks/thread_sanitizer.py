"""The tests of threads and streams under ThreadSanitizer.

    python tools/checks/thread_sanitizer.py [--folder F] [TEST ...]

Builds the extension with DEVTENSOR_SANITIZE=thread (gcc and its libtsan) and runs each file in a process of its own.
The interpreter is not instrumented, but its locks are seen, so that the GIL gives an order. First comes a program whose
threads write to one array at once: what it does is a race of its own, and must be reported, or nothing else counts.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RACES = [  # of the tests themselves; the first is seen in each run, the other in some
    "tests/cpu/test_threads.py::test_in_place_on_one_array_of_the_cpu",
    "tests/cpu/test_kept_weights.py::test_threads_that_ask_and_one_that_writes",
]
FILES = [  # none that forks: the sanitizer does not survive it
    "tests/cpu/test_threads.py",
    "tests/cpu/test_threads_many.py",
    "tests/cpu/test_kept_weights.py",
    "tests/cpu/test_cpu_memory.py",
    "tests/cuda/test_cuda_streams.py",
    "tests/cuda/test_prefetch.py",
    "tests/cuda/test_pending.py",
    "tests/cuda/test_transfer.py",
    "tests/cuda/test_transfer_log.py",
    "tests/cuda/test_several_gpus.py",
    "tests/cuda/test_late_indices.py",
    "tests/cuda/test_cuda_matmul.py",
    "tests/cuda/test_cuda_memory.py",
    "tests/training/test_autograd.py",
    "tests/training/test_hooks.py",
    "tests/training/test_saved_hooks.py",
    "tests/training/test_autocast.py",
    "tests/training/test_gradients.py",
]
# A deferred copy settles its source under the lock of its target. No block is both at a time, but one given back and
# asked for again changes its part, and the sanitizer takes that for two orders of two locks. PyTorch, beside which some
# tests compute, waits by means of OpenMP, which the sanitizer does not see.
SUPPRESSED = "deadlock:cuda_settle\nrace:libtorch_cpu.so\n"


def runtime() -> str:
    found = subprocess.run(["gcc", "-print-file-name=libtsan.so"], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def build(folder: Path) -> Path:
    env = os.environ | {"DEVTENSOR_SANITIZE": "thread", "DEVTENSOR_BUILD_CUDA": "0"}
    command = [sys.executable, "setup.py", "-q", "build_ext"]
    command += ["--build-temp", str(folder / "temp"), "--build-lib", str(folder / "lib")]
    subprocess.run(command, cwd=ROOT, env=env, check=True)
    without = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "python", folder / "lib", dirs_exist_ok=True, ignore=without)
    return folder / "lib"


def reports(folder: Path, library: Path, *tests: str) -> tuple[str, list[str]]:
    """What pytest says at last, and the summary of each report."""
    for old in folder.glob("report.*"):
        old.unlink()
    suppressions = folder / "suppressions"
    suppressions.write_text(SUPPRESSED)
    options = f"exitcode=0:history_size=4:log_path={folder / 'report'}:suppressions={suppressions}"
    env = os.environ | {"LD_PRELOAD": runtime(), "PYTHONPATH": str(library), "TSAN_OPTIONS": options}
    # its shadow memory wants addresses that are not drawn at random
    command = ["setarch", "-R", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "", *tests]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    texts = "".join(path.read_text() for path in folder.glob("report.*"))
    said = done.stdout.strip().splitlines()[-1:]
    if not said or " in " not in said[0]:  # it did not end by itself
        said = [f"{done.returncode}: {done.stderr.strip()[-2000:]}"]
    return said[0], re.findall(r"^SUMMARY: ThreadSanitizer: (.*)", texts, re.MULTILINE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="*", default=FILES)
    parser.add_argument("--folder", type=Path, help="keeps the build and the last reports here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (given.folder or Path(temporary)).resolve()
        library = build(folder)
        if not reports(folder, library, RACES[0])[1]:
            print(f"{RACES[0]} has a race, which was not reported: this run is blind")
            return 1
        print("the race that was planted is reported", flush=True)
        bad, others = 0, [f"--deselect={race}" for race in RACES]
        for test in given.tests:
            said, found = reports(folder, library, *others, test)
            print(f"{test}: {len(found)} reports; {said}", *sorted(set(found)), sep="\n  ", flush=True)
            bad += bool(found) or " passed" not in said  # whether each test passes here is no matter: it is slow
        return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
