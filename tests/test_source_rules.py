"""The rules of the house that a reader of the source would check by eye."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import cases
import pytest
from support import call  # noqa: F401  (starts the suite's devices before devtensor is used)

import devtensor as dt

ROOT = Path(__file__).parent.parent
CSRC = ROOT / "csrc"
ROOMS = ("core", "cpu", "cuda", "kernels", "sim", "py")
SOURCES = sorted(path for path in CSRC.rglob("*") if path.suffix in (".c", ".h", ".cu", ".def", ".inc", ".hpp"))
PYTHON = sorted(
    path for folder in ("python", "tests", "tools", "benchmarks", "examples") for path in (ROOT / folder).rglob("*.py")
)

if not SOURCES:
    pytest.skip("these tests read the source tree", allow_module_level=True)


def includes(path: Path) -> list[tuple[str, str]]:
    """(kind, name) of each include: kind " or <."""
    return re.findall(r'^\s*#\s*include\s*(["<])([^">]+)[">]', path.read_text(), re.MULTILINE)


def room(path: Path) -> str:
    return path.relative_to(CSRC).parts[0]


def room_of_include(path: Path, name: str) -> str:
    target = (path.parent / name).resolve()
    return target.relative_to(CSRC).parts[0] if target.is_relative_to(CSRC) else ""


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def functions(*rooms: str) -> str:
    return "\n".join(p.read_text() for p in SOURCES if room(p) in rooms)


# ---------------------------------------------------------------- layers

# Pageable memory is cast and gathered by the CPU's threads on its way to the device.
BETWEEN_BACKENDS = {("staging.c", "../cpu/cpu.h"), ("uses.c", "../cpu/cpu.h")}


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(CSRC)))
def test_layers(path: Path) -> None:
    here = room(path)
    assert here in ROOMS
    allowed = {
        "core": {"core"},
        "cpu": {"core", "cpu"},
        "kernels": {"core", "kernels"},
        "cuda": {"core", "cuda", "kernels"},
        "sim": {"core", "cpu", "cuda", "kernels", "sim"},
        "py": {"core", "py", "cpu", "cuda", "sim"},
    }[here]
    for kind, name in includes(path):
        if kind == "<":
            assert name not in ("Python.h", "structmember.h") or here == "py"
            assert not re.match(r"(cuda|cublas|cudnn|nvrtc|cu)\w*\.h", name)
            assert not name.startswith("numpy/") or here == "py"
            continue
        found = room_of_include(path, name)
        if name in ("Python.h",) or name.startswith("numpy/"):
            assert here == "py"
        elif found and (path.name, name) not in BETWEEN_BACKENDS:
            assert found in allowed, f"{here} includes {name}"


def test_only_the_door_leads_to_the_simulator() -> None:
    """cuda/api.h declares sim_open; what tests ask of the simulator goes through a header of its own."""
    for path in SOURCES:
        if room(path) in ("core", "cpu"):
            assert not re.search(r"\bsim_\w+\(", without_comments(path.read_text())), path
        if room(path) == "cuda" and path.name not in ("api.h", "api.c", "load.c"):
            assert not re.search(r"\bsim_\w+\(|simulated\)", without_comments(path.read_text())), path


def test_the_core_knows_no_backend() -> None:
    for path in SOURCES:
        if room(path) == "core":
            assert not re.search(r"\b(cpu|cuda|sim|py)_[a-z]\w*\(", without_comments(path.read_text())), path


def test_the_core_names_devices_in_one_place() -> None:
    for path in SOURCES:
        if room(path) == "core" and path.name not in ("devtensor.h", "device.c"):
            assert "DT_CUDA" not in without_comments(path.read_text()), path


def test_ops_reach_their_slots_by_one_way() -> None:
    """call.h; but a copy between devices (copy.c) is the work of either side, and memory (storage.c) is no op."""
    for path in SOURCES:
        if room(path) == "core" and path.name not in ("call.h", "copy.c", "storage.c", "registry.c"):
            assert not re.search(r"backend->\w+\(", without_comments(path.read_text())), path


def test_an_error_borrows_nothing() -> None:
    """It is read after the call that made it has ended, and its arrays with it: it holds numbers and constant text."""
    header = (CSRC / "core/devtensor.h").read_text()
    kept = {"dt_error": "", "dt_error_operand": ""}
    for body, name in re.findall(r"typedef struct \{([^}]*)\} (\w+);", header):
        if name in kept:
            kept[name] = body
    for name, body in kept.items():
        pointers = re.findall(r"^\s*(.*)\*", without_comments(body), re.MULTILINE)
        assert body and {pointer.strip() for pointer in pointers} == {"const char"}, name
        assert "dt_operand " not in body, name


def test_python_is_only_in_the_front() -> None:
    for path in SOURCES:
        if room(path) != "py":
            assert not re.search(r"\bPy[A-Z_]\w+\(", without_comments(path.read_text())), path


SENTENCES = [
    "Expected all tensors to be on the same device",
    "must have the same dtype, but got",
    "shapes cannot be multiplied",
    "at non-singleton dimension",
    "can't be cast to the desired output type",
    "Given groups=",
    "Expected out tensor",
    "Calculated padded input size",
    "negative dimension",
]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_every_mismatch_sentence_has_one_place(sentence: str) -> None:
    places = [p for p in [*SOURCES, *(ROOT / "python").rglob("*.py")] if sentence in p.read_text()]
    assert places
    assert len(places) == 1
    assert str(places[0].relative_to(CSRC)) in ("core/check.c", "core/check_shape.c")


@pytest.mark.parametrize("word", ["abort", "assert", "exit", "printf", "puts", "perror"])
def test_nothing_prints_or_aborts(word: str) -> None:
    for path in SOURCES:
        text = without_comments(path.read_text())
        text = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
        if path.suffix == ".hpp" and word == "assert":  # that of a user's kernel
            continue
        assert not re.search(rf"(?<![\w.>]){word}\s*\(", text), f"{word} in {path}"


@pytest.mark.parametrize("word", ["malloc", "calloc", "realloc", "free", "aligned_alloc", "posix_memalign", "strdup"])
def test_all_host_allocation_has_one_door(word: str) -> None:
    for path in SOURCES:
        if str(path.relative_to(CSRC)) not in ("core/memory.c", "core/large.c"):
            assert not re.search(rf"(?<![\w.>]){word}\s*\(", without_comments(path.read_text())), f"{word} in {path}"


# ---------------------------------------------------------------- lists


def test_every_slot_is_filled_by_both_backends() -> None:
    text = (CSRC / "core" / "slots.def").read_text()
    slots = re.findall(r"^DT_(?:SLOT\([^,]+, |OP\()(\w+),", text, re.MULTILINE)
    assert len(slots) > 15
    for prefix in ("cpu", "cuda"):
        text = functions(prefix)
        missing = [slot for slot in slots if not re.search(rf"^{prefix}_{slot}\(", text, re.MULTILINE)]
        assert missing == []


def test_every_outside_call_has_a_stand_in() -> None:
    symbols = re.findall(r"^DT_API\(\w+, (\w+),", (CSRC / "cuda" / "api.def").read_text(), re.MULTILINE)
    assert len(symbols) > 70
    text = functions("sim")
    missing = [s for s in symbols if not re.search(rf"\bsim_{s}\b|\b{s}\b", text)]
    assert missing == []


def test_every_listed_op_is_public_and_tested() -> None:
    text = (CSRC / "core" / "elementwise.def").read_text() + (CSRC / "core" / "reductions.def").read_text()
    named = {name for name, doc in re.findall(r"^DT_\w+\((\w+),.*\"(.*)\"\)$", text, re.MULTILINE) if doc}
    assert len(named) > 60
    assert named <= {case.op for case in cases.CASES}
    assert [name for name in sorted(named) if not hasattr(dt, name)] == []
    assert [name for name in sorted(named) if not hasattr(dt.DeviceArray, name)] == []
    stub = ast.parse((ROOT / "python" / "devtensor" / "_C.pyi").read_text())
    functions_ = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
    methods = {
        item.name
        for node in stub.body
        if isinstance(node, ast.ClassDef) and node.name == "DeviceArray"
        for item in node.body
        if isinstance(item, ast.FunctionDef)
    }
    assert named <= functions_
    assert named <= methods


# ---------------------------------------------------------------- form


@pytest.mark.parametrize("path", [*SOURCES, *PYTHON], ids=lambda p: str(p.relative_to(ROOT)))
def test_files_are_rooms_not_halls(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 600


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        return [*SOURCES, *PYTHON]
    return [ROOT / name for name in listed.stdout.splitlines()]


# Put together here, so that this file does not name what it forbids.
ABSOLUTE = re.compile(r"(?<![\w.])/(?:" + "|".join(["work", "root", "farm", "home", "Users"]) + r")/[\w.]")


def test_no_path_of_one_machine() -> None:
    found = []
    for path in tracked():
        if path.is_file() and path.suffix not in (".gz", ".safetensors", ".png"):
            text = path.read_text(errors="replace")
            found += [f"{path.relative_to(ROOT)}: {m.group()}" for m in ABSOLUTE.finditer(text)]
    assert found == []


def test_no_leftovers() -> None:
    mark = re.compile(r"\b(?:" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")
    found = [str(path.relative_to(ROOT)) for path in [*SOURCES, *PYTHON] if mark.search(path.read_text())]
    assert found == []
