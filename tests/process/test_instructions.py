"""What `a + b` costs a program that wants no gradient, in instructions: callgrind counts them, whatever else runs."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from devtensor import _C

BEFORE, ALLOWED = 748, 45  # without gradients in devtensor (docs/decisions/22-gradients.md); what they may add
BUILT = Path(str(_C.__file__)).read_bytes()
pytestmark = [
    pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed"),
    pytest.mark.skipif(b"GCC: (" not in BUILT or b"__asan_init" in BUILT, reason="748 is of gcc's code"),
]
PROGRAM = """
import sys
from itertools import repeat
import devtensor as dt

def add(n, wanted):
    a, b = dt.ones(1, requires_grad=wanted), dt.ones(1)
    for _ in repeat(None, n):
        a + b

add(int(sys.argv[1]), False)
add(int(sys.argv[2]), True)
"""


def own_instructions(record: Path) -> int:
    """Those of the extension in a record of callgrind; lines after `calls=` tell what a call took in all."""
    objects: dict[str, str] = {}
    own = called = False
    total = 0
    for line in record.read_text().splitlines():
        if match := re.match(r"(c?ob)=(\(\d+\))(?: (.*))?", line):
            kind, number, name = match.groups()
            objects.setdefault(number, name)
            own = os.path.basename(objects[number]).startswith("_C.") if kind == "ob" else own
        elif line.startswith("calls="):
            called = True
        elif re.match(r"[\d+*-]", line):
            total += int(line.split()[1]) if own and not called else 0
            called = False
    return total


@functools.cache
def counted(plain: int, recorded: int, folder: Path) -> int:
    record = folder / f"{plain}-{recorded}"
    valgrind = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={record}"]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    subprocess.run([*valgrind, sys.executable, "-c", PROGRAM, str(plain), str(recorded)], check=True, env=environment)
    return own_instructions(record)


def test_an_addition_without_gradients(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("callgrind")
    calls = 2000
    without = counted(10, 10, folder)
    plain, recorded = ((counted(*n, folder) - without) / calls for n in ((10 + calls, 10), (10, 10 + calls)))
    print(f"a + b: {plain} instructions, recorded {recorded}")
    assert BEFORE / 2 < plain <= BEFORE + ALLOWED
    assert recorded > BEFORE + ALLOWED  # so a slip that records everything is found
