"""The bugs that tools/checks/planted.py plants: each is of one place, and the tests that it names are there."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from support import ROOT

sys.path.insert(0, str(ROOT / "tools" / "checks"))
import planted

sys.path.pop(0)


@pytest.mark.parametrize("bug", planted.BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_has_its_place_and_its_tests(bug: Any) -> None:
    assert len(planted.holders(bug.old, ROOT)) == 1 and bug.old != bug.new
    assert [name for name in bug.files.split() if not list(ROOT.glob(f"tests/*/test_{name}.py"))] == []
