"""Writes docs/differences.md from the table that the tests compare with PyTorch. --check compares instead."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "helpers" / "pytorch"))

import written_page  # noqa: E402
from torch_differences import page  # noqa: E402

if __name__ == "__main__":
    sys.exit(written_page.main(ROOT / "docs" / "differences.md", page()))
