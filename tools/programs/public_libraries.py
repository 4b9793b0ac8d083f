"""Runs libraries that are written for PyTorch as they are, with it and with devtensor, and compares what is printed.

    python tools/programs/public_libraries.py [--only WORD ...] [--write]

Each program of tests/programs/libraries runs where what its first line needs is installed: with PyTorch, where that is;
by `python -m devtensor run --as-torch`; and so beside a simulated GPU. --write writes the table of the README there.
"""

from __future__ import annotations

import argparse
import ast
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

from public_programs import Program, difference

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "programs" / "libraries"
LIMIT = 900  # seconds
# Compiled ops of torchvision belong to one build of PyTorch; where that is another one, it is imported without them.
WITH_TORCH = """
import runpy, sys, types
try:
    import torchvision
except ImportError:
    pass
except RuntimeError:
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    for name in ("torchvision._autograd_registrations", "torchvision._meta_registrations"):
        sys.modules[name] = types.ModuleType(name)
sys.path.insert(0, ".")
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def needs(script: Path) -> list[str]:
    """The packages that the first line of its docstring names."""
    text = ast.get_docstring(ast.parse(script.read_text())) or ""
    listed = text.partition(".")[0].removeprefix("Needs: ")
    return [name.strip() for name in listed.split(",")] if text.startswith("Needs: ") else []


def version(package: str) -> str:
    names = importlib.metadata.packages_distributions().get(package, [package])
    return importlib.metadata.version(names[0])


def run(script: Path, how: str) -> tuple[str, str]:
    """What it prints, and the end of what it says where it fails."""
    ours = [sys.executable, "-m", "devtensor", "run", "--no-report", "--as-torch"]
    command = [sys.executable, "-c", WITH_TORCH] if how == "torch" else ours
    if how == "simulated":
        command = [*ours, "--simulate", "1"]
    paths = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, script.name], cwd=FOLDER, env=env, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    lines = done.stderr.strip().splitlines()
    said = [line for line in lines if re.match(r"\w[\w.]*(Error|Exception|Exit)\b", line)] or lines or ["no word"]
    return done.stdout, said[-1][:300] if done.returncode else ""


def judge(script: Path) -> tuple[int, dict[str, str]]:
    """How many lines PyTorch prints, and whether devtensor prints the same."""
    program = Program("", "", "", script.name, tolerance=1e-5)
    theirs, failed = run(script, "torch") if importlib.util.find_spec("torch") else ("", "PyTorch is not installed")
    found = {}
    for how in ("cpu", "simulated"):
        text, error = run(script, how)
        found[how] = error or (f"ran; PyTorch: {failed}" if failed else difference(program, text, theirs) or "same")
    return len(theirs.splitlines()), found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    page = FOLDER / "README.md"
    head, _, before = page.read_text().partition("<!-- table -->")
    rows = {line.split("`")[1]: line for line in before.splitlines() if line.startswith("| `")}
    for script in sorted(FOLDER.glob("*.py")):
        wanted = needs(script)
        if not wanted or (options.only and not any(word in script.name for word in options.only)):
            continue
        missing = [name for name in wanted if importlib.util.find_spec(name) is None]
        if missing:
            print(f"{script.name}: {', '.join(missing)} not installed")
            continue
        lines, found = judge(script)
        print(f"{script.name}: {lines} lines; cpu: {found['cpu']}; simulated: {found['simulated']}", flush=True)
        packages = ", ".join(f"{name} {version(name)}" for name in wanted)
        rows[script.name] = f"| `{script.name}` | {packages} | {lines} | {found['cpu']} | {found['simulated']} |"
    if options.write:
        table = ["| program | needs | lines printed | cpu | simulated GPU |", "|---|---|---|---|---|"]
        table += [row for name, row in sorted(rows.items()) if (FOLDER / name).exists()]
        page.write_text(f"{head}<!-- table -->\n\n" + "\n".join(table) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
