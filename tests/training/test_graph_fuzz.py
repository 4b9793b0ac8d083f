"""Random programs beside PyTorch. DEVTENSOR_GRAPHS says how many; helpers/training/graph_programs.py runs one alone."""

from __future__ import annotations

import os
from typing import Any

import pytest

pytest.importorskip("torch")

import graph_judge
import graph_programs
from support import CUDA_DEVICES

import devtensor as dt

pytestmark = pytest.mark.filterwarnings("ignore")
GRAPHS = int(os.environ.get("DEVTENSOR_GRAPHS", "240"))
WAYS = {"cpu": ("cpu", False), "writes to views": ("cpu", True), "a device": (CUDA_DEVICES[0], False)}


@pytest.mark.parametrize("way", WAYS)
def test_programs_give_what_pytorch_gives(way: str) -> None:
    device, views_in_place = WAYS[way]
    found = [graph_programs.check(7, k, views_in_place, device) for k in range(GRAPHS // len(WAYS))]
    assert not any(found), "\n\n".join(text for text in found if text)


@pytest.mark.parametrize("way", ["cpu", "writes to views"])
def test_wrong_numbers_are_noticed(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In nearly every program: no known difference excuses numbers that it is not about."""
    device, views_in_place = WAYS[way]
    numbers = graph_judge.numbers

    def wrong(x: Any) -> Any:
        found = numbers(x)
        return found * 1.5 if isinstance(x, dt.DeviceArray) and found.dtype.kind == "f" else found

    monkeypatch.setattr(graph_judge, "numbers", wrong)
    monkeypatch.setattr(graph_programs, "smaller", lambda program, device: program)
    noticed = [graph_programs.check(7, k, views_in_place, device) is not None for k in range(40)]
    assert sum(noticed) >= 36


PLANTED = {
    "a value": ("v2 = v1 * 2", "v2 = v1 * (2 if lib.__name__ == 'torch' else 2.5)"),
    "a flag": ("v2 = v1 * 2", "v2 = v1 * 2 if lib.__name__ == 'torch' else v1.detach() * 2"),
    "a refusal": ("v2 = v1 * 2", "v2 = v1 * 2 if lib.__name__ == 'torch' else v1[7]"),
    "a gradient": ("v2 = v1 * 2", "v2 = v1 * 2 if lib.__name__ == 'torch' else v1.detach() * 2 + v1 * 0"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_difference_is_found(name: str) -> None:
    texts = ["v1 = lib.tensor([1.0, -2.0], dtype=lib.float64).requires_grad_()", *PLANTED[name], "v2.sum().backward()"]
    good = graph_judge.Program([graph_judge.Statement(texts[k]) for k in (0, 1, 3)])
    bad = graph_judge.Program([graph_judge.Statement(texts[k]) for k in (0, 2, 3)])
    assert graph_judge.judge(good) is None
    assert graph_judge.judge(bad) is not None
