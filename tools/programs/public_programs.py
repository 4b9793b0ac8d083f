"""Runs public PyTorch programs as they are, with PyTorch and with devtensor, and compares what they print.

    python tools/programs/public_programs.py [--git PATTERN] [--only WORD ...] [--write] [--keep FOLDER]

tests/programs/public.toml lists repositories, commits and programs. Each repository is fetched from PATTERN, by default
https://github.com/{owner}/{name}; a folder of git repositories does as well. Nothing of them is kept. Each program runs
three times: with PyTorch, where it is installed; by `python -m devtensor run --as-torch`; and so on one simulated GPU.
tests/programs/stand_ins is on the path of all three: seeds, the same random numbers for both, drawn data sets in the
place of those that programs download. --write writes the table of tests/programs/README.md.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "tests" / "programs" / "public.toml"
PAGE = ROOT / "tests" / "programs" / "README.md"
STAND_INS = ROOT / "tests" / "programs" / "stand_ins"
LIMIT = 240  # seconds
LARGEST = 2_000_000  # bytes of a file that a program may read
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\bnan\b|\binf\b")
# How the two show an array, beside its numbers.
SHOWN = re.compile(
    r"tensor\(|DeviceArray\(|Parameter containing:|, requires_grad=True"
    r"|,\s+(?:device|dtype|grad_fn)=(?:'[\w:]*'|<\w+>|[\w.]+)"
)
MODEL = """
import torch
{imports}
torch.manual_seed(0)
model = {make}
x = {input}
print(sum(p.numel() for p in model.parameters()))
y = {call}
parts = [part for part in (y if isinstance(y, (tuple, list)) else [y]) if torch.is_tensor(part) and part.requires_grad]
for part in parts:
    print(tuple(part.shape), float(part.double().mean()), float(part.double().abs().mean()))
sum(part.square().mean() for part in parts).backward()
print(float(sum(p.grad.double().abs().sum() for p in model.parameters() if p.grad is not None)))
"""


@dataclass
class Program:
    """A script, or (with make) a model whose results and gradients are printed."""

    repository: str
    commit: str
    path: str  # the script; of a model the folder that its imports begin at
    name: str
    arguments: list[str] = field(default_factory=list)
    replace: dict[str, str] = field(default_factory=dict)  # so that it ends soon: for both frameworks
    ignore: str = ""  # lines that may differ, such as times
    tolerance: float = 2e-3
    imports: str = ""
    make: str = ""
    input: str = "torch.randn(2, 3, 32, 32)"
    call: str = "model(x)"
    needs: str = ""  # a package that is not there for devtensor


@dataclass
class Outcome:
    """How one run ended."""

    text: str
    error: str  # "" where it ran to its end


def programs(words: list[str]) -> list[Program]:
    found = []
    for entry in tomllib.loads(LIST.read_text())["repository"]:
        for row in entry["program"]:
            row = {"path": ".", **row}
            name = row.pop("name", row.get("make") or row["path"])
            found.append(Program(entry["name"], entry["commit"], name=name, **row))
    return [p for p in found if not words or any(word in f"{p.repository} {p.name}" for word in words)]


def fetch(repository: str, commit: str, pattern: str, folder: Path) -> Path:
    """The files of a repository that a program may read."""
    owner, name = repository.split("/")
    source = pattern.format(owner=owner, name=name)
    if Path(source).is_dir():
        git = ["git", f"--git-dir={source if not Path(source, '.git').exists() else Path(source, '.git')}"]
    else:
        git = ["git", "-C", str(folder / "git" / name)]
        subprocess.run(["git", "init", "-q", str(folder / "git" / name)], check=True)
        subprocess.run([*git, "fetch", "-q", "--depth", "1", source, commit], check=True)
    target = folder / "files" / f"{owner}-{name}"
    listing = subprocess.run([*git, "ls-tree", "-r", "-l", "-z", commit], capture_output=True, text=True, check=True)
    for line in listing.stdout.split("\0"):
        about, _, path = line.partition("\t")
        size = about.split()[-1] if about else "-"
        if size.isdigit() and int(size) <= LARGEST and fnmatch.fnmatch(path, "*.*"):
            blob = subprocess.run([*git, "cat-file", "blob", about.split()[2]], capture_output=True)
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_bytes(blob.stdout)
    return target


def prepare(program: Program, checkout: Path) -> tuple[Path, str]:
    """The folder to run in and the script's name there."""
    if program.make:
        script = checkout / program.path / f"_model_{abs(hash(program.name))}.py"
        parts = {"imports": program.imports, "make": program.make, "input": program.input, "call": program.call}
        script.write_text(MODEL.format(**parts))
        return script.parent, script.name
    script = checkout / program.path
    text = script.read_text()
    for old, new in program.replace.items():
        if old not in text:
            raise ValueError(f"{program.name}: nothing to replace: {old!r}")
        text = text.replace(old, new)
    script.write_text(text)
    return script.parent, script.name


def run(program: Program, folder: Path, script: str, how: str) -> Outcome:
    command = [sys.executable, script] if how == "torch" else [sys.executable, "-m", "devtensor", "run", "--no-report"]
    if how != "torch":
        command += [*(["--simulate", "1"] if how == "simulated" else []), "--as-torch", script]
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = [str(STAND_INS), *(os.path.abspath(folder) for folder in before if folder)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "PUBLIC_PROGRAMS": "torch" if how == "torch" else "ours"}
    env |= {"MPLBACKEND": "Agg", "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    try:
        done = subprocess.run(
            [*command, *program.arguments], cwd=folder, env=env, capture_output=True, text=True, errors="replace",
            timeout=LIMIT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired as end:
        return Outcome(str(end.stdout or ""), f"ran longer than {LIMIT} s")
    lines = [line for line in done.stderr.splitlines() if re.match(r"\w[\w.]*(Error|Exception|Exit)\b", line)]
    said = (lines or done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return Outcome(done.stdout, said[:300] if done.returncode else "")


def plain(text: str) -> str:
    """What is printed, without what only tells how a framework shows arrays and shapes."""
    text = re.sub(r"torch\.Size\(\[(.*?)\]\)", r"(\1)", text)
    return SHOWN.sub("", text).replace(",)", ")").replace(")", "")


def difference(program: Program, ours: str, theirs: str) -> str:
    """The first line that differs, "" for none."""
    mine, wanted = (
        [line for line in text.splitlines() if not (program.ignore and re.search(program.ignore, line))]
        for text in (ours, theirs)
    )
    texts = [plain("\n".join(lines)) for lines in (mine, wanted)]
    words = [["".join(part.split()) for part in NUMBER.split(text)] for text in texts]
    numbers = [NUMBER.findall(text) for text in texts]
    for i, (a, b) in enumerate(zip(*numbers, strict=False)):
        x, y = float(a), float(b)
        if abs(x - y) > program.tolerance * max(1.0, abs(y)) and not (x != x and y != y):
            return f"prints {a} where PyTorch prints {b} (number {i})"
    if words[0] != words[1]:
        first = next((f"{a!r} for {b!r}" for a, b in zip(*words, strict=False) if a != b), "more or less text")
        return f"prints {first[:120]}"
    return ""


def judge(program: Program, checkout: Path, with_torch: bool) -> dict[str, str]:
    """How the program ends with devtensor: "same", "ran", or what went wrong."""
    folder, script = prepare(program, checkout)
    theirs = run(program, folder, script, "torch") if with_torch else None
    found = {}
    for how in ("cpu", "simulated"):
        ours = run(program, folder, script, how)
        if ours.error:
            found[how] = ours.error + (f" (PyTorch: {theirs.error})" if theirs is not None and theirs.error else "")
        elif theirs is None:
            found[how] = "ran"
        elif theirs.error:
            found[how] = f"ran; PyTorch: {theirs.error}"
        else:
            text = ours.text.replace("cuda:0", "cpu").replace("cuda", "cpu") if how == "simulated" else ours.text
            found[how] = difference(program, text, theirs.text) or "same"
    return found


HOWS = ("cpu", "simulated")


def table(rows: list[tuple[Program, dict[str, str]]]) -> str:
    text = "| repository | commit | program | cpu | simulated GPU |\n|---|---|---|---|---|\n"
    for p, found in rows:
        cells = (p.repository, p.commit[:10], f"`{p.name}`", *(found.get(how, "not run") for how in HOWS))
        text += "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
    return text


def written(page: str) -> dict[tuple[str, str], dict[str, str]]:
    """What the page says of each program, so that a run of some of them keeps the others."""
    rows = re.findall(r"^\| (\S+/\S+) \| \w+ \| `(.*?)` \| (.*?) \| (.*?) \|$", page, re.MULTILINE)
    return {(row[0], row[1]): dict(zip(HOWS, row[2:], strict=True)) for row in rows}


def summary(rows: list[tuple[Program, dict[str, str]]]) -> str:
    rows = [(p, found) for p, found in rows if found.get("cpu", "not run") != "not run"]
    total = len(rows)
    ended = {how: sum(f[how].startswith(("same", "ran", "prints")) for _, f in rows) for how in HOWS}
    same = {how: sum(f[how] == "same" for _, f in rows) for how in HOWS}
    repositories = len({p.repository for p, _ in rows})
    return (
        f"{total} programs of {repositories} repositories. On the cpu {ended['cpu']} run to their end, {same['cpu']} "
        f"of them with what PyTorch prints; on a simulated GPU {ended['simulated']} and {same['simulated']}."
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--git", default="https://github.com/{owner}/{name}", metavar="PATTERN")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    chosen = programs(options.only)
    try:
        import torch  # noqa: F401

        with_torch = True
    except ImportError:
        with_torch = False
    rows: list[tuple[Program, dict[str, str]]] = []
    with tempfile.TemporaryDirectory() as name:
        checkouts: dict[str, Any] = {}
        for p in chosen:
            if p.repository not in checkouts:
                checkouts[p.repository] = fetch(p.repository, p.commit, options.git, Path(name))
        with ThreadPoolExecutor(options.jobs) as pool:
            futures = [pool.submit(judge, p, checkouts[p.repository], with_torch) for p in chosen]
            for p, future in zip(chosen, futures, strict=True):
                rows.append((p, future.result()))
                print(
                    f"{p.repository} {p.name}: cpu: {rows[-1][1]['cpu']}; simulated: {rows[-1][1]['simulated']}",
                    flush=True,
                )
    print(summary(rows))
    if options.write:
        page = PAGE.read_text()
        known = written(page) | {(p.repository, p.name): found for p, found in rows}
        rows = [(p, known.get((p.repository, p.name), {})) for p in programs([])]
        head = page.partition("<!-- table -->")[0]
        PAGE.write_text(f"{head}<!-- table -->\n\n{summary(rows)}\n\n{table(rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
