"""The rules of the house that a reader of the source would check by eye."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import cases
import pytest
from support import (
    ROOT,
    call,  # noqa: F401  (starts the suite's devices before devtensor is used)
)

import devtensor as dt

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


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def functions(*rooms: str) -> str:
    return "\n".join(p.read_text() for p in SOURCES if room(p) in rooms)


# ---------------------------------------------------------------- layers


def allowed_includes() -> dict[str, set[str]]:
    """By room, the last column of the table of rooms: whole rooms ("core/") and single files."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| `csrc/(\w+)/` \|.*\| ([^|]*) \|$", page, re.MULTILINE)
    return {name: set(re.findall(r"`([^`]*)`", column)) for name, column in rows}


ALLOWED = allowed_includes()


def included_files(path: Path) -> set[str]:
    """What path includes of other rooms."""
    targets = [(path.parent / name).resolve() for kind, name in includes(path) if kind == '"']
    found = {target.relative_to(CSRC).as_posix() for target in targets if target.is_relative_to(CSRC)}
    return {name for name in found if name.split("/")[0] != room(path)}


def test_every_header_has_a_guard_of_its_own() -> None:
    """Of two with one guard the second to be included is nothing."""
    guards = [re.findall(r"^#ifndef (\w+)$", path.read_text(), re.MULTILINE)[:1] for path in CSRC.rglob("*.h")]
    assert all(guards)
    names = [guard[0] for guard in guards]
    assert sorted(names) == sorted(set(names))


def test_the_page_names_every_lock_and_state_of_a_thread() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    listed = page[page.index("## What belongs to the process") :]
    state = re.compile(r"^static (?:pthread_\w+_t|_Thread_local)\b", re.MULTILINE)
    found = [path.relative_to(CSRC).as_posix() for path in SOURCES if state.search(path.read_text())]
    assert len(found) > 14
    assert [name for name in found if f"`{name}`" not in listed] == []
    assert [name for name in re.findall(r"`(\w+/[\w/]+\.c)`", listed) if not (CSRC / name).exists()] == []


def test_the_page_names_every_room() -> None:
    assert sorted(ALLOWED) == sorted(ROOMS)
    assert {room(path) for path in SOURCES} == set(ROOMS)


def test_the_page_names_every_private_folder_of_the_package() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    there = {path.parent.name for path in (ROOT / "python" / "devtensor").glob("_*/__init__.py")}
    assert set(re.findall(r"`(_\w+)/`", page)) == there


def forbidden(path: Path) -> set[str]:
    """What a file includes that its room may not."""
    here = room(path)
    wrong = {name for name in included_files(path) if not {name, name.split("/")[0] + "/"} & ALLOWED[here]}
    for kind, name in includes(path):
        if kind == "<" or not (path.parent / name).exists():
            if re.match(r"(Python|structmember|numpy/.*)(\.h|$)", name) and here != "py":
                wrong.add(name)
            if re.match(r"(cuda|cublas|cudnn|nvrtc|cu)\w*\.h", name):
                wrong.add(name)
    return wrong


def test_layers() -> None:
    wrong = {str(path.relative_to(CSRC)): forbidden(path) for path in SOURCES}
    assert {name: names for name, names in wrong.items() if names} == {}


def test_the_page_allows_no_more_than_is_used() -> None:
    for here in ROOMS:
        used = {name for path in SOURCES if room(path) == here for name in included_files(path)}
        used |= {name.split("/")[0] + "/" for name in used}
        assert ALLOWED[here] <= used, here


def test_rooms_include_no_room_that_includes_them() -> None:
    reached = {here: {name.split("/")[0] for name in ALLOWED[here]} for here in ROOMS}
    for _ in ROOMS:
        reached = {here: names.union(*(reached[name] for name in names)) for here, names in reached.items()}
    assert [here for here in ROOMS if here in reached[here]] == []


def test_only_the_door_leads_to_the_simulator() -> None:
    """cuda/api.h declares sim_open, cuda/simulated.h what else the simulator answers."""
    for path in SOURCES:
        if room(path) in ("core", "cpu"):
            assert not re.search(r"\bsim_\w+\(", without_comments(path.read_text())), path
        if room(path) == "cuda" and path.name not in ("api.h", "api.c", "load.c", "races.c", "simulated.h"):
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


def test_nothing_depends_on_the_name_of_an_op() -> None:
    """A name is for messages; what differs from op to op is an argument or a field."""
    for path in SOURCES:
        if room(path) in ("core", "cpu", "cuda"):
            assert not re.search(r"\bstrn?cmp\((\w+(->|\.))?op\b", without_comments(path.read_text())), path


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
    ours = [p for p in (ROOT / "python").rglob("*.py") if p.name != "families.py"]  # which knows PyTorch's
    places = [p for p in [*SOURCES, *ours] if sentence in p.read_text()]
    assert places
    assert len(places) == 1
    assert str(places[0].relative_to(CSRC)) in ("core/check/check.c", "core/check/check_shape.c")


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
        if str(path.relative_to(CSRC)) not in ("core/memory/memory.c", "core/memory/large.c"):
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


def test_hidden_functions_are_what_the_package_needs() -> None:
    """What only tests, tools and benchmarks use stands in _C._test."""
    package = "\n".join(path.read_text() for path in (ROOT / "python").rglob("*.py"))
    words = set(re.findall(r"\w+", package))
    hidden = [name for name, value in vars(dt._C).items() if name.startswith("_") and callable(value)]
    hooks = [name for name, value in vars(dt._C._test).items() if callable(value)]
    assert len(hidden) > 40
    assert len(hooks) > 10
    assert [name for name in hidden if name not in words] == []
    assert "_test." not in package
    assert not set(hooks) & set(vars(dt._C))


# ---------------------------------------------------------------- form


def test_files_are_rooms_not_halls() -> None:
    lines = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in [*SOURCES, *PYTHON]}
    del lines["csrc/py/signatures.h"]  # which nobody reads: tools/package/signatures.py writes it
    assert {name: number for name, number in lines.items() if number >= 600} == {}


def tracked() -> list[Path]:
    if shutil.which("git") is None:
        return [*SOURCES, *PYTHON]
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


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """What a function runs itself."""
    for node in ast.iter_child_nodes(function):
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield from own_nodes(node)


def test_nothing_keeps_itself() -> None:
    """A function that raises what a variable of its holds, or that is nested and calls itself, is part of a cycle: its
    arguments, with an exception also its callers, and every array of theirs stay until the collector comes."""
    found = []
    for path in sorted((ROOT / "python").rglob("*.py")):
        functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
        for function in functions:
            nodes = list(own_nodes(function))
            errors = {node.targets[0].id for node in nodes if isinstance(node, ast.Assign) and makes_an_error(node)}
            raised = [node.exc for node in nodes if isinstance(node, ast.Raise) and node.exc is not None]
            named = {name.id for exc in raised for name in ast.walk(exc) if isinstance(name, ast.Name)}
            found += [f"{path.relative_to(ROOT)}: {function.name} raises {name}" for name in errors & named]
            for inner in (node for node in nodes if isinstance(node, ast.FunctionDef)):
                calls = [node.func for node in ast.walk(inner) if isinstance(node, ast.Call)]
                if any(isinstance(func, ast.Name) and func.id == inner.name for func in calls):
                    found.append(f"{path.relative_to(ROOT)}: {inner.name} calls itself")
    assert found == []


def makes_an_error(node: ast.Assign) -> bool:
    called = node.value.func if isinstance(node.value, ast.Call) else None
    return isinstance(node.targets[0], ast.Name) and isinstance(called, ast.Name) and called.id.endswith("Error")
