"""Writes docs/errors.md: every kind of error with real examples, what they print, the cause and the correction.

The examples are those of the tests (tests/helpers/typical_mistakes.py), run here on two simulated devices.
--check compares instead.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

os.environ["DEVTENSOR_CUDA"] = "sim:2"
os.environ.pop("CUDA_VISIBLE_DEVICES", None)
ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

import source_files  # noqa: E402
import written_page  # noqa: E402
from typical_mistakes import EXAMPLES  # noqa: E402

from devtensor._diagnosis.causes import CAUSES  # noqa: E402

TARGET = ROOT / "docs" / "errors.md"
HEAD = """# Errors

Every mismatch is a `RuntimeError` whose first line is the sentence that a search finds. The notes below it (shown by
Python, IPython and pytest) list the operands as you wrote them, where each one's device, dtype or shape was decided,
and, where one correction is sure to work, a `Fix:` line: a statement to put before the failing one, or an expression in
parentheses to put in the place of the odd one.

The same in a program: `error.op`, `error.code`, `error.operands` (each with `name expression shape dtype device origin
history`), `error.culprit`, `error.fix`; `error.explain()` adds the cause; `dt.set_error_detail("short")` leaves only
the first line, for logs. A fix may belong to another line than the failing one, such as the caller's who handed the
array to a layer, or the one that made it: `error.fix_at`, `error.fix_how` (before or instead) and `error.fix_of`, the
text that it replaces. It is there only where nothing between that line and the failing one needs the array as it was.

What you read here is written by `tools/error_gallery.py` from programs that the tests run.
"""


def shown(text: str) -> str:
    """What a program prints when its marked line fails."""
    error = source_files.run(text.lstrip("\n"), {"__name__": "__main__"}, filename="<train.py>")
    lines = [f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])]
    text = "\n".join(lines).replace("<train.py>", "train.py")
    return re.sub(r"\b0x[0-9a-f]+", "0x5200000000000004", text)  # handles of streams


def page() -> str:
    parts = [HEAD]
    for code, examples in EXAMPLES.items():
        parts.append(f"## {code}\n\n{CAUSES[code]}\n")
        for title, text in examples:
            program = text.strip().replace("  # here", "")
            parts.append(f"{title}:\n\n```python\n{program}\n```\n```text\n{shown(text)}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(written_page.main(TARGET, page()))
