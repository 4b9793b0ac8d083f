"""What is known about one operand while an error is explained."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, NamedTuple

from devtensor._diagnosis.expressions import Call, Owner
from devtensor._diagnosis.sources import Site, file_name
from devtensor._errors import Origin, Step


def is_ndarray(value: Any) -> bool:
    """Whether this is NumPy's own array, and no subclass."""
    return (type(value).__module__, type(value).__name__) == ("numpy", "ndarray")


@dataclass
class Fact:
    """One operand: what the error says of it, the object, and how the caller wrote it."""

    name: str
    shape: tuple[int, ...]
    dtype: Any
    device: Any
    history: tuple[Step, ...]
    object: Any
    node: ast.expr | None = None
    expression: str | None = None
    owner: Owner | None = None

    @property
    def is_array(self) -> bool:
        """False for what stands where an array should."""
        return self.dtype is not None

    @property
    def dtype_name(self) -> str:
        return str(self.dtype).rpartition(".")[2]


class Fix(NamedTuple):
    """What to type, and where: before the line at, or instead of the text there."""

    text: str
    at: Origin | None = None
    how: str = "before"
    of: str | None = None

    def __str__(self) -> str:
        """'h = h.detach()   (before fit.py:13)', or '...   (instead of h.detach() at model.py:18)'."""
        place = f"{file_name(self.at.filename)}:{self.at.lineno}" if self.at is not None else ""
        if self.how == "instead":
            return f"{self.text}   (instead of {self.of}" + (f" at {place})" if place else ")")
        return f"{self.text}   ({self.how} {place})" if place else self.text


@dataclass
class Failure:
    """One refusal: the op, its operands, and the place in the caller's code."""

    op: str
    code: str
    message: str
    facts: list[Fact]
    culprit: int
    frame: FrameType | None = None
    site: Site | None = None
    call: Call | None = None
    stays: Fact | None = None  # what is written and must remain the array that it is
    odd: Sequence[Fact] = ()  # what the fix converts
    held: Any = None  # where the outermost caller had the culprit
    about: Any = None  # the node of a gradient that failed
    library: str = "devtensor"  # whose error it is
    innermost: FrameType | None = None  # where it was raised; None: here
    proposed: list[tuple[Fact, str]] | None = None  # what to convert, where the error itself says so
    accounts: Any = None  # what tells of gradients: code -> function; None: ours
    late: str | None = None  # the call that failed, where another one that waits for the device tells it
    passes: Any = None  # whether the call passes after conversions; None: by our own rules

    def named(self, name: str) -> Fact | None:
        return next((fact for fact in self.facts if fact.name == name), None)
