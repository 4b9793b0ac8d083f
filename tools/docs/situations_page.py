"""Writes docs/situations.md: a table of examples/situations, and what each script prints on two simulated GPUs.

--check compares instead.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "helpers" / "mistakes"))

import situation_outputs  # noqa: E402
import written_page  # noqa: E402

TARGET = ROOT / "docs" / "situations.md"

if __name__ == "__main__":
    sys.exit(written_page.main(TARGET, situation_outputs.page()))
