"""Writes docs/situations.md: a table of examples/situations, and what each script prints on two simulated GPUs.

--check compares instead.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import situations  # noqa: E402

TARGET = ROOT / "docs" / "situations.md"


def main() -> int:
    text = situations.page()
    if sys.argv[1:] == ["--check"]:
        if TARGET.read_text() == text:
            print("docs/situations.md is up to date")
            return 0
        print("docs/situations.md is out of date: run tools/situations_page.py", file=sys.stderr)
        return 1
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
