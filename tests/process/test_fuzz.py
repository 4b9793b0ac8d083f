"""Random hostile calls of the whole API: a fixed seed has no findings, and bugs that are planted are found.

DEVTENSOR_FUZZ_CALLS says how many calls of the API are judged; of each other kind a twentieth.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from fuzz import children, kinds, programs, signatures  # noqa: F401
from support import REAL, ROOT, python_path

import devtensor as dt

SEED = "1"
CALLS = int(os.environ.get("DEVTENSOR_FUZZ_CALLS", "1000"))
ASAN = "asan" in os.environ.get("LD_PRELOAD", "")

if REAL:
    pytest.skip("hostile calls would take the real device away", allow_module_level=True)


@pytest.mark.parametrize("kind", sorted(programs.KINDS))
def test_no_call_is_a_finding(kind: str) -> None:
    report = children.fuzz_calls(children.Options(kind, SEED), 0, CALLS if kind == "api" else CALLS // 20)
    print(f"{kind}: {report.calls} calls, {len(report.findings)} findings, {report.seconds:.0f} s")
    assert not report.findings, "\n".join(map(str, report.findings))


# ---------------------------------------------------------------- what is drawn


def test_every_public_function_is_called() -> None:
    paths = signatures.targets()
    for module in signatures.MODULES:
        owner = dt
        for part in module.split(".")[1:]:
            owner = getattr(owner, part)
        for name in signatures.public(owner):
            value = getattr(owner, name)
            if not callable(value) or isinstance(value, ModuleType | dt.dtype):
                continue
            if isinstance(value, type) and (issubclass(value, BaseException | dt.DeviceArray) or value is dt.dtype):
                continue
            assert f"{module}.{name}" in paths or f"{module}.{name}" in signatures.APART


def test_every_method_is_called() -> None:
    paths = signatures.targets()
    missing = {n for n in dir(dt.DeviceArray) if not n.startswith("_") and f"DeviceArray.{n}" not in paths}
    assert missing == {"backward"}


def test_the_same_calls_are_drawn_everywhere() -> None:
    """Neither hashes nor the state of the process change what a number stands for."""
    code = """
import hashlib
from fuzz import kinds, programs
for kind in sorted(programs.KINDS):
    sources = [programs.program(kind, "1", number).source for number in range(150)]
    print(kind, hashlib.sha256("".join(sources).encode()).hexdigest())
"""
    answers = set()
    for seed in ("1", "2"):
        env = children.environment() | {"PYTHONPATH": python_path(), "PYTHONHASHSEED": seed}
        answers.add(subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True).stdout)
    assert len(answers) == 1


# ---------------------------------------------------------------- bugs that are planted

WRAPPED = "relu exp add sum neg mul sqrt abs reshape cat mean sub floor amax clone".split()
WRAPPED += "amin ceil cos log log2 maximum minimum prod sin square tan tanh trunc".split()
COMPILED = sorted(name for name, value in vars(dt).items() if type(value) is type(dt._C.relu))

PLANT = """
import ctypes
import devtensor as dt

kept = []


def planted(real):
    def op(*args, **kwargs):
        EARLY
        result = real(*args, **kwargs)
        BUG
        return result

    return op


for name in NAMES:
    setattr(dt, name, planted(getattr(dt, name)))
"""

PLANTED = {
    "another exception": ("raise SystemError('planted')", "SystemError: planted"),
    "an assertion": ("assert not kwargs and False, 'planted'", "AssertionError: planted"),
    "one device": ("result = result + 1 if result.is_cuda else result", "cpu: "),
    "both devices": ("result = result - 3 if result.is_floating_point() else result", "NumPy gives"),
    "an input": ("[x.zero_() for x in args if type(x) is dt.DeviceArray]", "x0 was changed"),
    "a crash": ("ctypes.string_at(0)", "a crash: SIGSEGV"),
    "an exit": ("__import__('os')._exit(0)", "a crash: the process ended with 0"),
    "a hang": ("while True: pass", "a hang"),
    "memory": ("kept.append(dt.ones(3))", "each call leaves more blocks"),
    "an argument": ("early: kept.extend(x for x in args if type(x).__name__ == 'Acts')", "arguments are never freed"),
    "a lost device": (
        "dt._C._test.api_fail('cuLaunchKernel', 1, 719, True); dt.ones(3, device='cuda') + 1",
        "CudaError",
    ),
}


def hunt(tmp_path: Path, bug: str, kind: str = "api") -> children.Report:
    plant = tmp_path / "plant.py"
    early = bug.removeprefix("early: ") if bug.startswith("early: ") else ""  # before the op, and in all of them
    names = COMPILED if early else WRAPPED
    text = PLANT.replace("NAMES", str(names)).replace("EARLY", early or "pass")
    plant.write_text(text.replace("BUG", "pass" if early else bug))
    return children.fuzz_calls(children.Options(kind, SEED, str(plant), seconds=2), 0, 3000, most=1)


@pytest.mark.parametrize(("bug", "wanted"), PLANTED.values(), ids=list(PLANTED))
def test_a_planted_bug_is_found(bug: str, wanted: str, tmp_path: Path) -> None:
    (found,) = hunt(tmp_path, bug).findings
    assert wanted in found.what
    assert any(f"dt.{name}(" in found.source for name in (COMPILED if bug.startswith("early") else WRAPPED))
    command = f"python tests/fuzz api --seed {SEED} --call {found.number} --first {tmp_path / 'plant.py'}"
    assert found.replay == command


def test_a_finding_is_replayed_by_its_line(tmp_path: Path) -> None:
    (found,) = hunt(tmp_path, "raise SystemError('planted')").findings
    command = [sys.executable, *found.replay.split()[1:]]
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert again.returncode == 1
    assert found.source in again.stdout
    assert "SystemError: planted" in again.stdout


@pytest.mark.skipif(not ASAN, reason="needs the address sanitizer")
def test_a_planted_overflow_is_found(tmp_path: Path) -> None:
    (found,) = hunt(tmp_path, "libc = ctypes.CDLL(None); libc.malloc.restype = ctypes.c_void_p; "
                              "ctypes.string_at(libc.malloc(8), 16)").findings  # fmt: skip
    assert "heap-buffer-overflow" in found.what


FOREIGN = {
    "capsules": ("dt.from_dlpack", "x, *a, **k", "x.__dlpack__(); raise SystemError('planted')"),
    "interfaces": ("dt.from_cuda_array_interface", "x", "raise SystemError('planted')"),
    "buffers": ("dt.frombuffer", "x, *a, **k", "raise SystemError('planted')"),
    "pickles": ("dt._C._rebuild", "*a, **k", "raise SystemError('planted')"),
    "kernels": ("dt.cuda.RawKernel.__call__", "*a, **k", "raise SystemError('planted')"),
    "loaders": ("dt.data.DataLoader.__iter__", "self", "raise SystemError('planted')"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_each_kind_finds_a_planted_bug(kind: str, tmp_path: Path) -> None:
    path, parameters, body = FOREIGN[kind]
    plant = tmp_path / "plant.py"
    plant.write_text(f"import devtensor as dt\ndef op({parameters}):\n    {body}\nop.__module__ = 'devtensor._C'\n"
                     f"op.__qualname__ = op.__name__ = {path.rpartition('.')[2]!r}\n{path} = op\n")  # fmt: skip
    report = children.fuzz_calls(children.Options(kind, SEED, str(plant)), 0, 200, most=1)
    (found,) = report.findings
    assert "SystemError: planted" in found.what
    assert found.replay.startswith(f"python tests/fuzz {kind} --seed {SEED} --call {found.number}")
