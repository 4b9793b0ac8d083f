"""What is known of an exception: the same for an error of devtensor's and for one of PyTorch's that was explained."""

from __future__ import annotations

from typing import Any

from devtensor._errors import Operand, Origin, _Facts

_NAME = "__devtensor__"


class Explanation:
    """What an error says beyond its sentence: the operands, the odd one, and what to type.

    Attributes are those of devtensor's own errors: op, code, operands (each with name, expression, shape, dtype,
    device, origin and history), culprit, fix, fix_at (the line it belongs to, None for the failing one), fix_how
    ("before" or "instead") and fix_of (the text that it replaces). notes are the lines below the message.

    >>> try:
    ...     dt.ones(2, 3) @ dt.ones(3, 2).double()
    ... except dt.DTypeMismatchError as error:
    ...     found = dt.explanation(error)
    >>> found.culprit.name, found.code
    ('other', 'dtype-mismatch')
    """

    def __init__(self, op: str | None, code: str | None) -> None:
        self.op: str | None = op
        self.code: str | None = code
        self.operands: tuple[Operand, ...] = ()
        self.culprit: Operand | None = None
        self.fix: str | None = None
        self.fix_at: Origin | None = None
        self.fix_how = "before"
        self.fix_of: str | None = None
        self.notes: list[str] = []
        self.shown = False
        self.args: tuple[Any, ...] = ()

    def add_note(self, note: str) -> None:
        self.notes.append(note)

    def to_dict(self) -> dict[str, Any]:
        """All of it as text, numbers, lists and dictionaries, as json.dumps takes them.

        >>> try:
        ...     dt.ones(3) + dt.ones(4)
        ... except dt.ShapeMismatchError as error:
        ...     dt.explanation(error).to_dict()["operands"][0]["shape"]
        [3]
        """
        return {
            "op": self.op,
            "code": self.code,
            "operands": [_operand(one) for one in self.operands],
            "culprit": _operand(self.culprit) if self.culprit is not None else None,
            "fix": self.fix,
            "fix_at": _origin(self.fix_at),
            "fix_how": self.fix_how,
            "fix_of": self.fix_of,
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        return f"Explanation(code={self.code!r}, op={self.op!r}, fix={self.fix!r})"


def _origin(origin: Origin | None) -> dict[str, Any] | None:
    return {"action": origin.action, "file": origin.filename, "line": origin.lineno} if origin is not None else None


def _operand(one: Operand) -> dict[str, Any]:
    return {
        "name": one.name,
        "expression": one.expression,
        "shape": list(one.shape),
        "dtype": str(one.dtype).rpartition(".")[2],
        "device": str(one.device),
        "origin": _origin(one.origin),
    }


def attached(error: BaseException) -> Explanation | None:
    """What was found before: it stays with the exception."""
    found = error.__dict__.get(_NAME)
    return found if type(found) is Explanation else None


def attach(error: BaseException, found: Explanation) -> None:
    error.__dict__[_NAME] = found


def of_ours(error: BaseException) -> Explanation | None:
    """That of an error of devtensor's, which has it already."""
    if not isinstance(error, _Facts) and not getattr(error, "operands", ()):
        return None
    found = Explanation(getattr(error, "op", None), getattr(error, "code", None))
    for name in ("operands", "culprit", "fix", "fix_at", "fix_how", "fix_of"):
        setattr(found, name, getattr(error, name, getattr(found, name)))
    found.notes = list(getattr(error, "__notes__", ()))
    found.shown = True
    return found
