"""Mutation testing: small changes of the sources, each of which a test should notice. What survives is printed.

    python tools/checks/plant.py csrc/cuda/streams/order.c          20 changes of a file
    python tools/checks/plant.py --each-room 6 --seed 1             6 of every folder of csrc and of python/devtensor
    python tools/checks/plant.py FILE --tests "cuda_order pending"  only tests/*/test_cuda_order.py and test_pending.py
    python tools/checks/plant.py FILE --kind dropped --work FOLDER  one kind; where the copy and its build are kept
    python tools/checks/plant.py FILE --count 20 --seed 3 --list    what would be planted
    python tools/checks/plant.py --work FOLDER --again [--whole]    what an earlier run has left, by more tests

A change is one of: another relation (< for <=, == for !=), && for ||, a constant that is one off, + for -, a `!` or
`not` that is gone, a call that is left out (dropped: of release, wait, order, note, written and their kin), two
arguments exchanged. All of them are built into one copy of the checkout (guarded.py), where each acts only in the
process that asks for it, and each runs the quick rows of the tests that come by it (reach.py), until one fails. A
change that does not compile is none. Those that survive and change nothing are for the reader to see.
FOLDER keeps the changes and what became of each, so that a later run takes those that no test has killed yet.
"""

from __future__ import annotations

import argparse
import functools
import io
import json
import os
import random
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy

sys.path.insert(0, str(Path(__file__).parent))
import guarded
from planted import ROOT, Copy

MOST_USERS = 12  # files that include a header; beyond that most of the extension would be compiled again
# Not run: tests of the sources' text, and of programs that are run in processes of their own.
LEFT_OUT = ("project", "programs")
DROPPED = re.compile(r"release|wait|order|note|written|settle|join|clear|mark|follow")
RELATIONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
OTHERS = {"&&": "||", "||": "&&", "+": "-", "-": "+", "and": "or", "or": "and", "True": "False", "False": "True"}


@dataclass(frozen=True)
class Change:
    kind: str
    begin: int
    end: int
    new: str

    def applied(self, text: str) -> str:
        return text[: self.begin] + self.new + text[self.end :]

    def shown(self, text: str) -> str:
        """The line, before and after."""
        start, stop = text.rfind("\n", 0, self.begin) + 1, text.find("\n", self.end)
        line = text.count("\n", 0, self.begin) + 1
        after = text[start : self.begin] + self.new + text[self.end : stop]
        return f"{line}: {' '.join(text[start:stop].split())}  ->  {' '.join(after.split())}"


def code_of_c(text: str) -> str:
    """The text with comments, strings, characters and lines of the preprocessor blanked."""
    pattern = r"/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|^[ \t]*#(?:\\\n|[^\n])*"
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.DOTALL | re.MULTILINE)


def code_of_python(text: str) -> str:
    """The same for comments, strings, annotations of parameters left as they are."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    kept = list(text)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            begin, end = (starts[row - 1] + column for row, column in (token.start, token.end))
            kept[begin:end] = [c if c == "\n" else " " for c in text[begin:end]]
    return "".join(kept)


def changes(path: Path, text: str) -> Iterator[Change]:
    python = path.suffix == ".py"
    code = code_of_python(text) if python else code_of_c(text)
    for m in re.finditer(r"(?<=[\w)\]] )(<=|>=|==|!=|<|>)(?= [\w(*&!\-])", code):
        yield Change("relation", *m.span(), RELATIONS[m[0]])
    for m in re.finditer(r"(?<=[\w)\]] )(&&|\|\||\+|-|and|or)(?= )|\b(True|False)\b", code):
        yield Change("operator", *m.span(), OTHERS[m[0]])
    for m in re.finditer(r"(?<![\w.])\d+(?![\w.])", code):
        yield Change("constant", *m.span(), "1" if m[0] == "0" else "0" if m[0] == "1" else str(int(m[0]) + 1))
    for m in re.finditer(r"\bnot (?!in\b)|(?<=[(\s])!(?=[\w(])", code):
        yield Change("negation", *m.span(), "")
    call = r"^([ \t]+)((?:DT_TRY\(|CUDA_TRY\(|\(void\)!?)?(?:\w+[.])*\w+\([^;{}\n]*\))" + ("$" if python else ";$")
    for m in re.finditer(call, code, re.MULTILINE):
        if not re.match(r"(if|while|for|switch|return|raise|assert|yield|sizeof|.*unlock|.*\block)\b", m[2]):
            kind = "dropped" if DROPPED.search(m[2]) else "call"
            yield Change(kind, m.start(2), m.end(2), "pass" if python else "(void)0")
    for m in re.finditer(r"(?<=\w\()([a-z]\w*), ([a-z]\w*)(?=[,)])", code):
        if m[1] != m[2]:
            yield Change("exchanged", *m.span(), f"{m[2]}, {m[1]}")


def evenly(found: list[tuple[Path, Change]], rng: random.Random) -> list[tuple[Path, Change]]:
    """All in a drawn order, in which the kinds take turns."""
    kinds: dict[str, list[tuple[Path, Change]]] = {}
    for one in found:
        kinds.setdefault(one[1].kind, []).append(one)
    groups = list(kinds.values())
    rng.shuffle(groups)
    for group in groups:
        rng.shuffle(group)
    return [group[i] for i in range(max(map(len, groups), default=0)) for group in groups if i < len(group)]


def room_of(path: Path) -> str:
    """csrc/core/ops, python/devtensor/nn: the third folder, or what lies beside the folders."""
    return "/".join(path.parent.parts[:3])


def sources() -> dict[str, list[Path]]:
    """The files of each room that can be changed."""
    kinds = {".c", ".h", ".inc", ".cu", ".py"}
    rooms: dict[str, list[Path]] = {}
    for folder in ("csrc", "python/devtensor"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in kinds and path.name not in ("signatures.h", "_torch_names.py", "__main__.py"):
                path = path.relative_to(ROOT)
                if path.suffix == ".py" or len(users_of(path, ROOT)) <= MOST_USERS:
                    rooms.setdefault(room_of(path), []).append(path)
    return rooms


# ---------------------------------------------------------------- all changes in one copy


@dataclass(frozen=True)
class Planted:
    number: int
    path: Path
    kind: str
    shown: str


class Field:
    """A copy of the checkout with many changes in it."""

    def __init__(self, copy: Copy) -> None:
        self.copy = copy
        self.files: dict[Path, guarded.Guarded] = {}
        self.planted: list[Planted] = []
        self.header = copy.root / "csrc" / "guarded.h"
        self.shared = copy.root.parent / "shared"
        self.kept = copy.root.parent / "planted.json"
        self.judged = copy.root.parent / "judged.json"
        self.shared.write_bytes(bytes(4 + guarded.MOST))
        self.header.write_text(guarded.HEADER)
        (copy.root / "csrc" / "guarded.c").write_text(guarded.SOURCE)
        (copy.root / "python" / "guarded_here.py").write_text(guarded.PYTHON)
        # Loops that are compiled for each instruction set are changed in one of them, with which the tests run.
        copy.env |= {"GUARDED_FILE": str(self.shared), "OPENBLAS_NUM_THREADS": "1", "DEVTENSOR_CPU": "generic"}

    def add(self, path: Path, change: Change) -> bool:
        """Whether it can be planted, and compiles."""
        text = (ROOT / path).read_text()
        code = code_of_python(text) if path.suffix == ".py" else code_of_c(text)
        file = self.files.setdefault(path, guarded.Guarded(path, text, code))
        number = len(self.planted) + 1
        if not file.add(change, number):
            return False
        if path.suffix != ".py" and not self.compiles(path, self.text_of(file, [number])):
            del file.pieces[number]
            return False
        self.planted.append(Planted(number, path, change.kind, change.shown(text)))
        return True

    def text_of(self, file: guarded.Guarded, numbers: list[int]) -> str:
        return ("" if file.python else f'#include "{self.header}"\n') + file.guarded(numbers)

    def compiles(self, path: Path, text: str) -> bool:
        target = self.copy.root / path
        before = target.read_text()
        target.write_text(text)
        include = [f"-isystem{folder}" for folder in (sysconfig.get_path("include"), numpy.get_include())]
        command = ["gcc", "-std=c11", "-fsyntax-only", "-Werror", *include, "-x", "c"]
        command += map(str, users_of(path, ROOT)[:2])
        done = subprocess.run(command, cwd=self.copy.root, capture_output=True)
        target.write_text(before)
        os.utime(target, ns=(0, 0))  # nothing is to be built for this
        return done.returncode == 0

    def keep(self) -> None:
        """What is planted, for restore() of a later run, which builds nothing."""
        self.kept.write_text(json.dumps([[str(one.path), one.kind, one.shown] for one in self.planted]))

    def restore(self) -> None:
        rows = json.loads(self.kept.read_text())
        self.planted = [Planted(n, Path(path), kind, shown) for n, (path, kind, shown) in enumerate(rows, 1)]

    def build(self) -> bool:
        for path, file in self.files.items():
            if file.pieces:
                (self.copy.root / path).write_text(self.text_of(file, list(file.pieces)))
        time.sleep(0.01)
        for kept in (self.copy.root / ".objects").rglob("isa/avx*.o"):
            kept.touch()
        return self.copy.build()


@functools.cache
def texts(root: Path) -> dict[Path, str]:
    return {one.relative_to(root): one.read_text() for one in root.glob("csrc/**/*") if one.is_file()}


def users_of(path: Path, root: Path) -> list[Path]:
    """The files to compile that include path, those that do it themselves first, and those of few lines."""
    if path.suffix in (".c", ".cu"):
        return [path]
    files = texts(root)
    found, new, order = {path}, {path}, {path: 0}
    while new:
        names = "|".join(re.escape(one.name) for one in new)
        pattern = re.compile(rf'^#.*"(?:[^"]*/)?(?:{names})"', re.MULTILINE)
        new = {one for one, text in files.items() if one not in found and pattern.search(text)}
        found |= new
        order |= dict.fromkeys(new, max(order.values()) + 1)
    return sorted((one for one in found if one.suffix in (".c", ".cu")), key=lambda one: (order[one], len(files[one])))


def judge(field: Field, tests: list[str], options: argparse.Namespace) -> dict[int, dict[str, object]]:
    """What became of each change, here and in the runs before of the same folder."""
    work = field.copy.root.parent
    before = field.judged.read_text() if options.again and field.judged.exists() else "{}"
    found = {int(n): row for n, row in json.loads(before).items()}
    left = [one.number for one in field.planted if found.get(one.number, {}).get("result") != "killed"]
    numbers = [n for n in left if not options.only or n in options.only]
    plan = work / "plan.json"
    settings = {"seconds": options.seconds, "share": options.share, "numbers": numbers, "most": len(field.planted)}
    for name in ("met", "tried"):
        settings[name] = str(work / f"{name}.jsonl")
        if not options.again:
            (work / f"{name}.jsonl").write_text("")
    plan.write_text(json.dumps(settings | {"file": str(field.shared)}))
    rows = "" if options.whole else "not whole"
    command = [sys.executable, str(ROOT / "tools" / "checks" / "reach.py"), str(plan), *tests, "-m", rows]
    with subprocess.Popen(command, cwd=field.copy.root, env=field.copy.env, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if not line.startswith("{"):
                continue
            answer = json.loads(line)
            one = field.planted[answer["number"] - 1]
            met = answer["meet"] or found.get(one.number, {}).get("result") == "survived"
            result = "killed" if answer["test"] else "survived" if met else "not met"
            found[one.number] = {"room": room_of(one.path), "result": result} | answer
            field.judged.write_text(json.dumps(found))
            some = f"{answer['run']} of {answer['meet']} tests" if not answer["test"] else answer["test"]
            print(f"{one.number:4} {result:8} {one.kind:9} {one.path}:{one.shown}  [{some}]", flush=True)
    return found


def summary(found: dict[int, dict[str, object]]) -> str:
    """By room, and in all."""
    counts: dict[str, Counter[str]] = {}
    for answer in found.values():
        for room in (str(answer["room"]), "all"):
            counts.setdefault(room, Counter())[str(answer["result"])] += 1
    lines = ["| room | killed | survived | met by no test |", "|---|---|---|---|"]
    lines += [f"| {room} | {n['killed']} | {n['survived']} | {n['not met']} |" for room, n in sorted(counts.items())]
    return "\n".join(lines)


def candidates(path: Path, kind: str | None) -> list[Change]:
    text = (ROOT / path).read_text()
    return [c for c in changes(path, text) if kind in (None, c.kind) and c.applied(text) != text]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="*", type=Path)
    parser.add_argument("--each-room", type=int, metavar="N", help="N changes of every room, in place of files")
    parser.add_argument("--tests", help="names of test files, without test_ and .py; else all but those of programs")
    parser.add_argument("--without", default="", help="names of test files that are not run")
    parser.add_argument("--count", type=int, default=20, help="changes of a file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", help="only this kind of change")
    parser.add_argument("--seconds", type=float, default=60, help="of tests for a change, as they take without one")
    parser.add_argument("--share", type=int, default=1, metavar="N", help="only one in N of the tests")
    parser.add_argument("--only", type=int, nargs="*", help="of the changes only these, by the number that is printed")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--again", action="store_true", help="what WORK has of an earlier run and was not killed")
    parser.add_argument("--whole", action="store_true", help="all rows of the tests, not the quick ones alone")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.again:
        field = Field(Copy(options.work, "tests"))
        field.restore()
        print(summary(judge(field, chosen(field.copy, options), options)))
        return
    groups = {
        str(path): [path.resolve().relative_to(ROOT) if path.is_absolute() else path] for path in options.file
    } or sources()
    count = options.each_room or options.count
    wanted: list[list[tuple[Path, Change]]] = []
    for name, paths in groups.items():
        rng = random.Random(f"{options.seed} {name}")
        found = [(path, change) for path in paths for change in candidates(path, options.kind)]
        wanted.append(evenly(found, rng))
    if options.list:
        for path, change in (one for some in wanted for one in some[:count]):
            print(f"{change.kind:9} {path}:{change.shown((ROOT / path).read_text())}")
        return
    with tempfile.TemporaryDirectory() as own:
        copy = Copy(options.work or Path(own))
        if not copy.build():
            raise SystemExit("the checkout does not compile as it is")
        field = Field(copy)
        for some in wanted:
            fit = (field.add(*one) for one in some)
            for _ in range(count):
                next((True for planted in fit if planted), None)
        field.keep()
        print(f"{len(field.planted)} changes, seed {options.seed}", flush=True)
        if not field.build():
            raise SystemExit("the changes do not compile together")
        print(summary(judge(field, chosen(field.copy, options), options)))


def chosen(copy: Copy, options: argparse.Namespace) -> list[str]:
    """The test files: those that are named, of any folder, or all but those of LEFT_OUT."""
    named = {f"test_{name}.py" for name in (options.tests or "").split()}
    without = {f"test_{name}.py" for name in options.without.split()}
    files = sorted((copy.root / "tests").glob("*/test_*.py"))
    taken = (path for path in files if (path.name in named if named else path.parent.name not in LEFT_OUT))
    return [str(path) for path in taken if path.name not in without]


if __name__ == "__main__":
    main()
