"""Compiles the conformance list (tests/c/conform*.c) and runs it: how CUDA's libraries behave, call by call.

python tools/gpu/conformance.py               on the libraries and the GPU of this machine
python tools/gpu/conformance.py --simulated   on the simulated table
python tools/gpu/conformance.py --libraries   what the libraries do with no device

Prints a line for each assertion, tab-separated: ok, FAIL or differs, the section, the name,
what it is and what it should be. Exit status 1 when one fails; one that differs is of what
devtensor does not use.
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def compile_program(folder, own="conform*.c", name="conform"):
    """The program of tests/c/<own> with the rooms it needs; what lies in folder already is taken."""
    sources = [*ROOT.glob(f"tests/c/{own}"), ROOT / "csrc" / "cuda" / "load.c"]
    for room in ("core", "cpu", "sim"):
        sources += ROOT.glob(f"csrc/{room}/**/*.c")
    command = [*shlex.split(os.environ.get("CC", "cc")), "-std=gnu11", "-O0", "-ffp-contract=off"]  # it runs a second
    program = Path(folder, name)

    def compile_one(source):
        target = Path(folder, "-".join(source.relative_to(ROOT).with_suffix(".o").parts))
        if not target.exists():
            subprocess.run([*command, "-c", str(source), "-o", str(target)], check=True)
        return str(target)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        objects = list(pool.map(compile_one, sources))
    subprocess.run([*command, "-o", str(program), *objects, "-lm", "-lpthread", "-ldl"], check=True)
    return program


def directories():
    """Where NVIDIA's wheels keep their libraries."""
    found = [os.path.join(root, "nvidia", part, "lib") for root in sys.path for part in ("cu13", "cudnn")]
    return ":".join(d for d in found if os.path.isabs(d) and os.path.isdir(d))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulated", action="store_const", dest="mode", const="simulated", default="real")
    parser.add_argument("--libraries", action="store_const", dest="mode", const="libraries")
    parser.add_argument("--objects", metavar="DIR", help="a folder for what is compiled; what it has is taken")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as own:
        folder = Path(options.objects or own)
        folder.mkdir(parents=True, exist_ok=True)
        return subprocess.run([compile_program(folder), options.mode, directories()]).returncode


if __name__ == "__main__":
    sys.exit(main())
