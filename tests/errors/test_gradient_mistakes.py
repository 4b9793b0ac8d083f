"""Errors of gradients name the line that kept, changed, freed or cut, and their fix works at the line they give."""

from __future__ import annotations

import re
from typing import Any

import pytest
from gradient_ends import ENDS
from gradient_mistakes import MISTAKES, Mistake
from source_files import repaired, run
from support import DEVICES

import devtensor as dt

ROLES = ("kept", "changed", "made", "freed", "used", "cut", "off", "moved")


def marked(text: str, role: str) -> list[int]:
    lines = text.splitlines()
    return [n for n, line in enumerate(lines, 1) if re.search(rf"# .*\b{role}\b", line)]


def run_on(device: str, text: str, filename: str = "program.py") -> Any:
    other = next(one for one in DEVICES if one != device)
    return run(text, {"dt": dt, "dev": device, "other": other, "__name__": "__main__"}, filename)


@pytest.mark.filterwarnings("ignore:tensor.*no gradient flows back")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("mistake", [*MISTAKES, *ENDS], ids=lambda m: m.name)
def test_lines_and_fix(mistake: Mistake, device: str) -> None:
    error = run_on(device, mistake.text)
    assert isinstance(error, RuntimeError)
    assert error.code == mistake.code
    shown = "\n".join([str(error), *error.__notes__])
    for role in ROLES:
        for number in marked(mistake.text, role):
            assert re.search(rf"^  {role} .*program\.py:{number}\b", shown, re.MULTILINE), (role, number, shown)
    for sentence in mistake.says:
        assert sentence in shown
    fix = mistake.fix and mistake.fix.format(gpu=device if device != "cpu" else DEVICES[1])
    assert (error.fix, error.fix_of) == (fix, mistake.fix_of)
    if mistake.fix is not None:
        at = error.fix_at.lineno if error.fix_at is not None else marked(mistake.text, "here")[0]
        assert marked(mistake.text, "fix") == [at]
        assert run_on(device, repaired(mistake.text, error, "here"), "repaired.py") is None


def test_what_detaches_inside_is_no_array_without_a_gradient() -> None:
    error = run_on("cpu", "model = dt.nn.Linear(2, 2)\nw = model.state_dict()['weight']\nw.sum().backward()\n")
    shown = "\n".join([str(error), *error.__notes__])
    assert "Its history ends" not in shown
    assert re.search(r"^  cut .*program\.py:2\b.*no gradient flows through", shown, re.MULTILINE), shown


def test_share_with_a_fix() -> None:
    assert sum(mistake.fix is not None for mistake in MISTAKES) / len(MISTAKES) > 0.75
