"""Instructions of small calls, which no other work on a machine changes: python -m benchmarks.instructions [NAME ...].

Each call is made in a loop of a function under valgrind's callgrind, 3000 and 1000 times; the difference over 2000 is
a turn. All of it counts the interpreter too; "own" is the part inside devtensor's extension. PYTHONPATH says which
build is measured, so two of them can be compared. valgrind knows AVX2 at most, so loops for that are counted.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TURNS = (1000, 3000)
SETUP = "import devtensor as dt; a, b, m = dt.ones(1), dt.ones(1), dt.ones(8, 8); d = dt.ones(1, dtype=dt.float64)"
CALLS = {
    "a + b": "a + b",
    "a + 1": "a + 1.0",
    "float64 to float32": "d.float()",
    "float32 to float64": "a.double()",
    "a.to('cpu'), already there": "a.to('cpu')",
    "a @ b, one number": "a @ b",
    "m @ m, 8 x 8": "m @ m",
    "m.sum()": "m.sum()",
    "m[0]": "m[0]",
    "m.reshape(64)": "m.reshape(64)",
    "m.T": "m.T",
    "dt.add(a, b)": "dt.add(a, b)",
    "dt.relu(m)": "dt.relu(m)",
}
PROGRAM = """
import sys
from itertools import repeat
{setup}
def loop(n):
    for _ in repeat(None, n):
        {call}
loop(50)
loop(int(sys.argv[1]))
"""


def by_object(text):
    """Instructions of each object file, of the lines of callgrind's output."""
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    here, skip = "", False
    for line in text.splitlines():
        if found := re.match(r"(c?ob)=\((\d+)\)(?: (.*))?", line):
            kind, number, name = found.groups()
            if name is not None:
                names[number] = name
            if kind == "ob":
                here = number
        elif line.startswith("calls="):
            skip = True  # the next line has the cost of the called function, which is counted where it stands
        elif re.match(r"[+*\d-]", line):
            if not skip:
                counts[here] = counts.get(here, 0) + int(line.split()[1])
            skip = False
    return {names[number]: count for number, count in counts.items()}


def counted(call, turns, folder):
    """All instructions of a process that makes the call so often, and devtensor's own."""
    program = Path(folder, "program.py")
    program.write_text(PROGRAM.format(setup=SETUP, call=call))
    out = Path(folder, "out")
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", sys.executable, str(program), str(turns)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONHASHSEED": "0"})
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    counts = by_object(out.read_text())
    return sum(counts.values()), sum(count for name, count in counts.items() if "_C." in Path(name).name)


def of_a_turn(call, folder):
    """Instructions of one turn: of all, and devtensor's own."""
    few, many = (counted(call, turns, folder) for turns in TURNS)
    return tuple(round((m - f) / (TURNS[1] - TURNS[0])) for f, m in zip(few, many, strict=True))


def main(names):
    if not shutil.which("valgrind"):
        raise SystemExit("valgrind is not installed")
    unknown = [name for name in names if name not in CALLS]
    if unknown:
        raise SystemExit(f"no call {unknown[0]!r}; there are: {', '.join(map(repr, CALLS))}")
    print("| call | instructions | own |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in names or CALLS:
            print(f"| `{name}` | {' | '.join(map(str, of_a_turn(CALLS[name], folder)))} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
