"""What a comparison with PyTorch sees, and the rows of torch_differences.py that explain it."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Seen:
    """One sample on which the two differ."""

    op: str
    variant: str
    dtype: str
    kind: str
    text: str
    sample: str

    def __str__(self) -> str:
        return f"{self.op} ({self.variant}, {self.dtype}): {self.kind}: {self.text}\n    {self.sample}"


@dataclass(frozen=True)
class Difference:
    """A row. kind: refused (PyTorch answers), accepted (PyTorch raises), dtype, shape or values.

    ops are PyTorch's names, dtypes those of the sample ("": all), seen a pattern of what the comparison
    says. A rare one is seen in the whole comparison only.
    """

    ops: str
    kind: str
    seen: str
    ours: str
    theirs: str
    why: str
    dtypes: str = ""
    rare: bool = False


@dataclass(frozen=True)
class Lacking:
    """A row of what is not there: a keyword, a type of argument."""

    ops: str
    seen: str
    what: str
    rare: bool = False
    kind: str = "not there"
    dtypes: str = ""


def explains(row: Difference | Lacking, found: Seen) -> bool:
    return (
        found.kind == row.kind
        and found.op in row.ops.split()
        and (not row.dtypes or found.dtype in row.dtypes.split())
        and re.search(row.seen, found.text) is not None
    )
