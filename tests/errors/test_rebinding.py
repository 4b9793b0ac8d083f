"""What a frame may have stored since an exception came out of it, on every Python; PyTorch is not needed."""

from __future__ import annotations

import contextlib
from types import CodeType

import pytest
from rebound_programs import PROGRAMS

from devtensor._torch_errors import frames, rebinding


class Refuses:
    def __matmul__(self, other: object) -> object:
        raise RuntimeError("refused")


def doubts(text: str) -> list[bool]:
    """Whether the value of w is in doubt in the frame of `x @ w`, for each time that the error is shown or raised."""
    found: list[bool] = []

    def look(error: BaseException) -> None:
        stack = frames.stack(error)
        failing = [one for one in stack if one.f_code.co_filename == "<rebound>"][-1]
        asked = [failing.doubts(name) for name in ("w", ".w", "[]")]
        found.append(any(asked))
        assert failing.doubted == found[-1]
        stack.clear()

    space = {"X": Refuses(), "W": 1, "OTHER": 2, "show": look, "block": contextlib.nullcontext}
    try:
        exec(compile(text, "<rebound>", "exec"), space)
    except RuntimeError as error:
        look(error)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_in_doubt(name: str) -> None:
    text, told = PROGRAMS[name]
    assert doubts(text) == [not told]


def test_what_is_not_in_doubt_was_not_stored() -> None:
    """Every path that a handler can take, taken: what it stored is in doubt."""
    text = """
def work(x, w, a, b, c):
    try:
        try:
            x @ w
        except ValueError:
            first = 1
        finally:
            second = 1
    except RuntimeError as error:
        if a:
            third = 1
        for i in range(b):
            fourth = 1
            if c:
                break
        else:
            fifth = 1
        try:
            [][a]
        except IndexError:
            sixth = 1
        show(error, {name for name in locals() if name not in ("x", "w", "a", "b", "c")})
        seventh = 1
"""
    seen: set[str] = set()

    def look(error: BaseException, stored: set[str]) -> None:
        at = frames.stack(error)[-2]
        assert at.f_code.co_name == "work" and stored <= at.changed, (stored, at.changed)
        seen.update(stored)
        assert not at.changed & {"x", "w", "a", "b", "c", "seventh"}

    space = {"show": look}
    exec(compile(text, "<rebound>", "exec"), space)
    for a in (0, 1):
        for b in (0, 1):
            for c in (0, 1):
                space["work"](Refuses(), 1, a, b, c)  # type: ignore[operator]
    assert seen == {"error", "second", "third", "i", "fourth", "fifth", "sixth"}


def test_every_name_is_in_doubt_where_no_way_is_known() -> None:
    def function(a: int) -> int:
        b = a
        return b

    code: CodeType = function.__code__
    assert rebinding.stored_since(code, 0, 10**6, True) == {"b"}
    assert rebinding.stored_since(code, 4, 4, True) == frozenset()
