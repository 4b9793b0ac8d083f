"""Pages of docs/ that a tool writes: the file, or with --check whether it is as it would be written."""

import sys
from pathlib import Path


def main(target: Path, text: str, *copies: Path) -> int:
    """Copies of the page, such as one in the package, are written and compared as the page itself."""
    name = f"docs/{target.name}"
    if sys.argv[1:] != ["--check"]:
        for path in (target, *copies):
            path.write_text(text)
    elif all(path.read_text() == text for path in (target, *copies)):
        print(f"{name} is up to date")
    else:
        print(f"{name} is out of date: run tools/{Path(sys.argv[0]).name}", file=sys.stderr)
        return 1
    return 0
