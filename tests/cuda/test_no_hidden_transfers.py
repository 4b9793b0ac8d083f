"""Nothing moves between devices unless the user wrote it: counters stay put over every op on CUDA."""

from __future__ import annotations

import operator
from typing import Any

import cases
import pytest
from cases import CASES, Case
from support import COUNTED, Built, for_each, no_transfers, synchronize

import devtensor as dt


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_case_moves_anything(case: Case, cuda: str) -> None:
    def body(built: Built) -> None:
        with no_transfers():
            built.call()
            synchronize()

    for_each(case, cuda, body, case.layouts[-1:])


@pytest.mark.parametrize("op", cases.IN_PLACE_OPERATORS)
def test_in_place_moves_nothing(op: str, cuda: str) -> None:
    kind = dt.int32 if op.startswith("bitwise") else dt.float32
    x, y = dt.ones((3, 4), dtype=kind, device=cuda), dt.ones((4,), dtype=kind, device=cuda)
    write = getattr(operator, cases.IN_PLACE_OPERATORS[op])
    with no_transfers():
        write(x, y)
        write(x, 1)


def test_errors_move_nothing(cuda: str) -> None:
    x, y = dt.ones((2, 3), device=cuda), dt.ones((2, 3))
    with no_transfers():
        for call in (lambda: x + y, lambda: x @ x, lambda: x.numpy(), lambda: x[5], lambda: x.reshape(7)):
            with pytest.raises((RuntimeError, IndexError)):
                call()


@pytest.mark.parametrize(
    ("move", "counter", "nbytes"),
    [
        (lambda x: x.cpu(), "bytes_to_host", 48),
        (lambda x: x.tolist(), "bytes_to_host", 48),
        (lambda x: x[0, 0].item(), "bytes_to_host", 4),
        (lambda x: float(x[0, 0]), "bytes_to_host", 4),
        (lambda x: bool(x[0, 0]), "bytes_to_host", 4),
        (lambda x: dt.zeros((3, 4)).to(x.device), "bytes_to_device", 48),
        (lambda x: dt.array([1.0, 2.0], device=x.device), "bytes_to_device", 8),
        (lambda x: x.copy_(dt.zeros((3, 4))), "bytes_to_device", 48),
        (lambda x: x[:, 1].cpu(), "bytes_to_host", 12),
    ],
)
def test_what_the_user_wrote_is_counted(move: Any, counter: str, nbytes: int, cuda: str) -> None:
    x = dt.ones((3, 4), device=cuda)
    before = dt._C.counters()
    move(x)
    after = dt._C.counters()
    assert after[counter] - before[counter] == nbytes
    assert after["transfers"] - before["transfers"] == 1
    for other in COUNTED[1:]:
        if other != counter:
            assert after[other] == before[other]


def test_ops_run_on_the_device(cuda: str) -> None:
    x = dt.ones((8, 8), device=cuda)
    before = dt._C.counters()["launches"]
    x + x
    x @ x
    assert dt._C.counters()["launches"] - before == 2
    before = dt._C.counters()["launches"]
    y = dt.ones((8, 8))
    y @ y + y
    assert dt._C.counters()["launches"] == before
