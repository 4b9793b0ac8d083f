"""Pages of docs/ that a tool writes: the file, or with --check whether it is as it would be written."""

import sys
from pathlib import Path


def main(target: Path, text: str) -> int:
    name = f"docs/{target.name}"
    if sys.argv[1:] != ["--check"]:
        target.write_text(text)
    elif target.read_text() == text:
        print(f"{name} is up to date")
    else:
        print(f"{name} is out of date: run tools/{Path(sys.argv[0]).name}", file=sys.stderr)
        return 1
    return 0
