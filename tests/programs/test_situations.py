"""examples/situations: each script says what it should on the cpu alone, with one GPU and with two."""

from __future__ import annotations

import pytest
import situation_outputs
from situation_outputs import SITUATIONS, Situation
from support import ONE, REAL, needs_kernels, skip_kernels

import devtensor as dt

KINDS = {"cpu": "off", "gpu": "auto"} if REAL else {"cpu": "off", "gpu": "sim:1", "two": "sim:2"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda s: s.name[:-3])
def test_situation(situation: Situation, kind: str) -> None:
    if kind != "cpu":
        skip_kernels((situation_outputs.FOLDER / situation.name).read_text())
    said = situation_outputs.output(situation, KINDS[kind])
    wanted = situation.cpu if kind == "cpu" else situation.gpu
    if kind == "two" or (REAL and dt.cuda.device_count() > 1):
        wanted = situation.two or wanted
    place = 0
    for text in wanted:
        found = said.find(text, place)
        assert found >= 0, f"{text!r} is not said, or not in this order:\n{said}"
        place = found + len(text)
    assert "Traceback" not in said


@pytest.mark.skipif(REAL or ONE, reason="the page shows two simulated GPUs")
@needs_kernels
def test_page() -> None:
    """Each message of the table is what the script says, and the page is up to date."""
    for situation in SITUATIONS:
        text = situation.message
        assert text in situation_outputs.output(situation, "sim:2"), situation.name
    assert (situation_outputs.FOLDER.parents[1] / "docs" / "situations.md").read_text() == situation_outputs.page()


def test_all_scripts_are_listed() -> None:
    assert [s.name for s in SITUATIONS] == sorted(path.name for path in situation_outputs.FOLDER.glob("*.py"))
    for number, situation in enumerate(SITUATIONS, 1):
        assert situation.path.read_text().startswith(f'"""{number}. {situation.title}.\n')
