"""docs/first-day.md: each command prints what its row says."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support import python_path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "first-day.md"
ROWS = [
    row.strip("|").split(" | ") for row in PAGE.read_text().splitlines() if row.startswith("| ") and "`python " in row
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip())
def test_friction(row: list[str], tmp_path: Path) -> None:
    _, _, now, command = row
    words = shlex.split(command.strip().strip("`"))
    for library in ("einops", "PIL", "sklearn"):
        if library in command and importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    (tmp_path / "first_day.py").write_text("import torch\ntorch.optim.LBFGSS\n")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DEVTENSOR_", "CUDA_VISIBLE"))}
    env |= {"PYTHONPATH": python_path(), "SCIPY_ARRAY_API": "0"}
    done = subprocess.run(
        [sys.executable, *words[1:]], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=100
    )
    said = re.findall(r'"(.*?)"', now)
    printed = done.stdout + done.stderr
    assert words[0] == "python" and len(said) == 1 and said[0] in printed, printed
    assert "\x1b[" not in printed
    if now.startswith("the remedy"):
        assert printed.startswith(said[0])
