"""Each of the 42 mistakes has an answer that a test holds, and docs/autograd.md lists them."""

from __future__ import annotations

import re

import gradient_mistakes
import training_mistakes
from forty_two import MISTAKES, table
from support import ROOT
from test_training_report import HABITS


def test_each_has_its_proofs() -> None:
    programs = {row.name for row in (*gradient_mistakes.MISTAKES, *training_mistakes.MISTAKES)}
    programs |= {f"report: {name}" for name in HABITS}
    files = {path.name: path.read_text() for path in (ROOT / "tests").glob("*/test_*.py")}
    missing = []
    for one in MISTAKES:
        for proof in one.proofs:
            file, _, test = proof.partition("::")
            there = re.search(rf"^def {test}\b", files.get(file, ""), re.MULTILINE) if test else proof in programs
            missing += [] if there else [proof]
    assert not missing
    assert len(MISTAKES) == 42 and [one.mistake for one in MISTAKES if not one.proofs] == [MISTAKES[41].mistake]


def test_the_page_lists_them() -> None:
    assert "\n".join(table()) in (ROOT / "docs" / "autograd.md").read_text()
