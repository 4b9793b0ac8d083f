"""Writes docs/errors.md: every kind of error with real examples, what they print, the cause and the correction.

The examples are those of the tests (tests/helpers/mistakes/typical_mistakes.py), run here on two simulated devices.
--check compares instead.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

os.environ["DEVTENSOR_CUDA"] = "sim:2"
os.environ.pop("CUDA_VISIBLE_DEVICES", None)
ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "tests" / "helpers" / "mistakes")]

import source_files  # noqa: E402
import written_page  # noqa: E402
from typical_mistakes import EXAMPLES  # noqa: E402

from devtensor._diagnosis.causes import CAUSES  # noqa: E402

TARGET = ROOT / "docs" / "errors.md"  # the package has a link to it
HEAD = """# Errors

Every mismatch raises a `RuntimeError`. Its first line is PyTorch's sentence, so a search finds it. Below it Python,
IPython and pytest show notes:

- the operands, as you wrote them, with shape, dtype and device, and the line that made each one so;
- a `Fix:` line, where one correction of this error is sure. It is a statement to put before the failing line, or an
  expression in parentheses to put in the place of the odd operand;
- the command that prints the page of this error, such as `python -m devtensor explain device-mismatch`.

A program can read the same: `error.op`, `error.code`, `error.operands` (each with `name expression shape dtype device
origin history`), `error.culprit` and `error.fix`. `error.explain()` adds the cause. For logs,
`dt.set_error_detail("short")` keeps only the first line.

A fix may belong to another line than the failing one: that of a caller which passed the array to a layer, or the line
that made it. `error.fix_at` is that line, `error.fix_how` says `before` or `instead`, and `error.fix_of` is the text to
replace. devtensor proposes such a fix only if no code between the two lines needs the array as it was.

**In a log**, `str(error)` is the first line alone. `log.exception("...")` writes the notes too. For structured logs
there is `error.to_dict()`, in the types of JSON: class, message, op, code, operands, the name of the culprit, fix,
notes. A `Transfer` and a log of them have `to_dict()` too.

```python
import json
import logging
import sys

import devtensor as dt


class JsonLines(logging.Formatter):
    def format(self, record):
        entry = {"level": record.levelname, "message": record.getMessage()}
        error = record.exc_info[1] if record.exc_info else None
        if hasattr(error, "to_dict"):
            entry["error"] = error.to_dict()
        return json.dumps(entry)


handler = logging.StreamHandler(sys.stdout)
handler.setFormatter(JsonLines())
log = logging.getLogger("training")
log.addHandler(handler)

try:
    dt.ones(2, 3) @ dt.ones(2, 3)
except RuntimeError:
    log.exception("the step failed")
```

`tools/docs/error_gallery.py` writes this page from programs that the tests run.
"""


def shown(text: str) -> str:
    """What a program prints when its marked line fails."""
    error = source_files.run(text.lstrip("\n"), {"__name__": "__main__"}, filename="<train.py>")
    lines = [f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])]
    text = "\n".join(lines).replace("<train.py>", "train.py")
    return re.sub(r"\b0x[0-9a-f]+", "0x5200000000000004", text)  # handles of streams


def page() -> str:
    parts = [HEAD]
    for code in CAUSES:  # what the host's compiler says of a kernel is not the same everywhere: that has no example
        parts.append(f"## {code}\n\n{CAUSES[code]}\n")
        for title, text in EXAMPLES.get(code, []):
            program = text.strip().replace("  # here", "")
            parts.append(f"{title}:\n\n```python\n{program}\n```\n```text\n{shown(text)}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(written_page.main(TARGET, page()))
