"""Static analysis of the C code: what clang-tidy reports must be on a list, with its reason.

    python tools/checks/analyse.py                    all of csrc, some minutes
    python tools/checks/analyse.py FILE ...           these files, with the notes of reports that are not on the list
    python tools/checks/analyse.py --nodes 75000      a third of the paths through each function, in half the time

The list is analyse_known.txt. An entry has three lines: file, check and function, the reported line of the source, the
reason why it is no fault. Entries have no line numbers, so that a change elsewhere in the file leaves them alone. Exit
status 1: there is a report without an entry, an entry that nothing reports any more, or an error of clang-tidy, such as
a header that is not found. First it analyses a program that dereferences a null pointer, which it must report.

Reports change with the version of clang-tidy, so the extra `dev` names one. Its wheel has the compiler's own headers,
such as stddef.h; those of the C library are the system's.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy
from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[2]
KNOWN = ROOT / "tools" / "checks" / "analyse_known.txt"
LOOPS = "isa"  # folders whose macros repeat the same loops for each instruction set
# Checks that only make noise here: of bounds that the caller has checked, of macros and of style.
WITHOUT = """
clang-analyzer-optin.performance.Padding clang-analyzer-security.ArrayBound
clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling bugprone-assignment-in-if-condition
bugprone-branch-clone bugprone-easily-swappable-parameters bugprone-macro-parentheses
bugprone-multi-level-implicit-pointer-conversion bugprone-narrowing-conversions bugprone-reserved-identifier
bugprone-signed-bitwise
"""
CHECKS = ",".join(["-*", "clang-analyzer-*", "bugprone-*", *(f"-{name}" for name in WITHOUT.split())])
OPTIONS = {  # a product of constants that is too large is a warning of the compilers
    "bugprone-implicit-widening-of-multiplication-result.IgnoreConstantIntExpr": "true",
}
CONFIG = json.dumps({"Checks": CHECKS, "CheckOptions": OPTIONS})
REPORT = re.compile(
    r"(?P<file>[^\s:][^:]*):(?P<line>\d+):(?P<column>\d+): warning: (?P<text>.*) \[(?P<check>[\w.,-]+)\]"
)
ERROR = re.compile(r"^(?:\S.*: )?(?:fatal )?error: ")
NODES = 225000  # the analyzer's own limit
PLANTED = "int planted(int *p) { p = 0; return *p; }\n"
PLANTED_CHECK = "clang-analyzer-core.NullDereference"


@dataclass(frozen=True, order=True)
class Key:
    """What an entry of the list and a report have in common."""

    file: str
    check: str
    function: str
    code: str

    def __str__(self) -> str:
        return f"{self.file}: {self.check} in {self.function}\n    {self.code}"


@dataclass(frozen=True)
class Report:
    key: Key
    place: str
    text: str
    notes: str


def known(text: str) -> dict[Key, str]:
    """The reason of each entry of a list."""
    entries: dict[Key, str] = {}
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    for head, code, reason in zip(*[iter(lines)] * 3, strict=False):
        file, _, rest = head.partition(": ")
        check, _, function = rest.partition(" in ")
        key = Key(file, check, function, code.strip())
        if head[0] == " " or not function or code[0] != " " or reason[0] != " ":
            raise SystemExit(f"{KNOWN.name}: no entry of three lines: {head}")
        if key in entries:
            raise SystemExit(f"{KNOWN.name}: twice: {key}")
        entries[key] = reason.strip()
    if len(lines) % 3:
        raise SystemExit(f"{KNOWN.name}: an entry has three lines; the last has fewer")
    return entries


def function_of(lines: list[str], number: int) -> str:
    """The function, or the macro, that the line stands in: its name begins a line."""
    names = (re.match(r"(?:#define )?(\w+)\(", line) for line in reversed(lines[:number]))
    return next((name[1] for name in names if name is not None), "no function")


def reports(output: str, root: Path = ROOT) -> Iterator[Report]:
    """What clang-tidy printed, one report for each check that it names."""
    parts = re.split(r"^(?=[^\s:][^:\n]*:\d+:\d+: warning: )", output, flags=re.MULTILINE)
    for part in parts:
        found = REPORT.match(part)
        if found is None:
            continue
        path = Path(os.path.normpath(root / found["file"]))
        file = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
        lines, number = path.read_text(encoding="utf-8").splitlines(), int(found["line"])
        for check in found["check"].split(","):
            place = f"{file}:{found['line']}:{found['column']}"
            key = Key(file, check, function_of(lines, number), lines[number - 1].strip())
            yield Report(key, place, found["text"], part[found.end() :].strip("\n"))


def errors(output: str) -> list[str]:
    return [line for line in output.splitlines() if ERROR.match(line)]


def judged(found: Iterable[Report], entries: dict[Key, str], files: set[str] | None = None) -> list[str]:
    """What is wrong: reports without an entry, and entries without a report; of `files` alone if only these ran."""
    unknown: dict[tuple[Key, str], Report] = {}
    seen: set[Key] = set()
    for report in found:
        seen.add(report.key)
        if report.key not in entries:
            unknown.setdefault((report.key, report.place), report)
    wrong = []
    for report in unknown.values():
        wrong.append(f"not on the list: {report.place}: {report.text}\n{report.key}\n{report.notes}")
    for key in sorted(entries.keys() - seen):
        if files is None or key.file in files:
            wrong.append(f"on the list, but nothing reports it: {key}")
    return wrong


def flags() -> list[str]:
    """Those that setup.py compiles with, read from it, and Python's and NumPy's headers."""
    words = [f"-isystem{folder}" for folder in (sysconfig.get_path("include"), numpy.get_include())]
    for node in ast.walk(ast.parse((ROOT / "setup.py").read_text(encoding="utf-8"))):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, ast.Assign | ast.AugAssign) and any(getattr(t, "id", None) == "CFLAGS" for t in targets):
            words += ast.literal_eval(node.value)
        if isinstance(node, ast.keyword) and node.arg == "define_macros" and isinstance(node.value, ast.List):
            words += [f"-D{name}={value}" for name, value in ast.literal_eval(node.value)]
    return words


def program() -> str | None:
    """clang-tidy, first the one beside this Python."""
    beside = Path(sys.executable).with_name("clang-tidy")
    return str(beside) if beside.exists() else shutil.which("clang-tidy")


def analyse(tidy: str, file: Path, words: list[str]) -> str:
    """What clang-tidy prints of a file, and a line with `error: ` if it failed without saying so."""
    command = [tidy, "--quiet", f"--config={CONFIG}", "--header-filter=.*", str(file), "--", *words]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode and not errors(done.stdout + done.stderr):
        return f"{done.stdout}\nerror: {shlex.join(command)}: exit status {done.returncode}\n{done.stderr}"
    return done.stdout + "\n" + done.stderr


def sources() -> list[Path]:
    return sorted(path for path in (ROOT / "csrc").rglob("*.c") if LOOPS not in path.relative_to(ROOT).parts)


def sees(tidy: str, words: list[str]) -> bool:
    """Whether it reports a planted null pointer."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "planted.c")
        file.write_text(PLANTED, encoding="utf-8")
        return any(report.key.check == PLANTED_CHECK for report in reports(analyse(tidy, file, words)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="these alone")
    parser.add_argument(
        "--nodes", type=int, default=NODES, metavar="N", help="how far paths are followed (%(default)s)"
    )
    options = parser.parse_args()
    chosen = [path.resolve() for path in options.files]
    tidy, words, entries = program(), flags(), known(KNOWN.read_text(encoding="utf-8"))
    words += ["-Xclang", "-analyzer-config", "-Xclang", f"max-nodes={options.nodes}"]
    if tidy is None:
        print("clang-tidy is not installed: pip install '.[dev]'")
        return 1
    if not sees(tidy, words):
        print(f"{tidy} did not report a planted null pointer: this check is blind")
        return 1
    files = chosen or sources()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        outputs = pool.map(lambda file: analyse(tidy, file, words), files)
        printed = list(tqdm(outputs, total=len(files), desc="analysing", unit="file", disable=None))
    found = [report for output in printed for report in reports(output)]
    # What a header is reported for depends on who includes it: entries of headers are judged by a run of all files.
    # Where not all paths are followed, an entry without a report says nothing.
    whole = not chosen and options.nodes >= NODES
    wrong = judged(found, entries, None if whole else {path.relative_to(ROOT).as_posix() for path in chosen})
    wrong += [line for output in printed for line in errors(output)]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    keys = {report.key for report in found}
    print(f"{len(files)} files: {len(keys)} reports, {len(keys & entries.keys())} on the list; {len(wrong)} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
