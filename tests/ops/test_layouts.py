"""Every op of the case table with operands and results in drawn arrangements of memory.

DEVTENSOR_LAYOUTS=N draws N of them for each row and dtype, in place of one.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import cases
import formats
import numpy as np
import pytest
import reference
from cases import Case, Operand
from drawn_layouts import Laid, draw, windows
from support import Built, bits_of, from_bits, no_transfers, wide_of
from test_ops import can_replace, rows

import devtensor as dt

DRAWS = int(os.environ.get("DEVTENSOR_LAYOUTS", "1"))


def drawn(case: Case, device: str, what: str) -> Iterator[tuple[Built, random.Random]]:
    """The case with each of its dtypes; which arrangements are drawn depends on case, dtype and what alone."""
    for dtype in case.dtypes:
        for i in range(DRAWS):
            layout = "expanded" if "expanded" in case.layouts and i % 2 == 0 else "contiguous"
            yield Built(case, dtype, device, layout), random.Random(f"{what} {case} {dtype} {i}")


def laid_out(built: Built, rng: random.Random, skip: int = 0) -> list[Laid]:
    """Puts the arrays of a case, but for the first ones, into drawn arrangements."""
    found, question = [], built.question
    for i, (bits, dtype) in enumerate(zip(question.bits, question.dtypes, strict=True)):
        if dtype and i >= skip:
            repeats = [0] if built.layout == "expanded" and bits.ndim else []
            found.append(Laid(bits, dtype, built.device, draw(bits.shape, rng, repeats)))
            built.operands[i] = found[-1].array
    return found


def alive(device: str) -> tuple[int, int]:
    """Blocks of the host, and bytes of the device, once all work has ended."""
    if device == "cpu":
        return dt._C._test.live_blocks(), 0
    dt.cuda.synchronize(device)
    return dt._C._test.live_blocks(), dt.cuda.memory_allocated(device)


def keeps_nothing(call: Callable[[], Any], device: str) -> None:
    """One of some calls leaves everything as it was: the first ones may fill a cache."""
    found = []
    for _ in range(4):
        before = alive(device)
        call()
        found.append((before, alive(device)))
        if before == found[-1][1]:
            return
    raise AssertionError(f"each call leaves more: {found}")


def untouched(laid: list[Laid]) -> None:
    """Neither elements nor what lies around them have changed."""
    for one in laid:
        assert bits_of(one.block).tobytes() == one.before.tobytes()


@pytest.mark.parametrize("case", rows())
def test_operands(case: Case, device: str) -> None:
    for built, rng in drawn(case, device, "operands"):
        laid = laid_out(built, rng)
        with no_transfers():
            got = built.call()
        built.check(got)
        untouched(laid)
        del got
        keeps_nothing(built.call, device)


@pytest.mark.parametrize("case", rows(cases.IN_PLACE, lambda c: isinstance(c.operands[0], Operand)))
def test_in_place(case: Case, device: str) -> None:
    """The target is written whole, and nothing around it."""
    for built, rng in drawn(case, device, "in place"):
        if not can_replace(case, built.dtype):
            continue
        others = laid_out(built, rng, 1)
        target = Laid(built.question.bits[0], built.question.dtypes[0], device, draw(case.operands[0].shape, rng))
        with no_transfers():
            getattr(target.array, case.op + "_")(*built.operands[1:], **built.parameters)
        built.check(target.array)
        assert target.around()[1] == target.around()[0]
        untouched(others)


@pytest.mark.parametrize("case", rows(cases.OUT))
def test_out(case: Case, device: str) -> None:
    for built, rng in drawn(case, device, "out"):
        laid = laid_out(built, rng)
        want = built.answer
        ones = np.full(want.values.shape, 1, dtype=formats.STORAGE[want.dtype])
        out = Laid(ones, want.dtype, device, draw(ones.shape, rng))
        with no_transfers():
            assert built.call(out=out.array) is out.array
        built.check(out.array)
        assert out.around()[1] == out.around()[0]
        untouched(laid)
        keeps_nothing(lambda built=built, out=out: built.call(out=out.array), device)


def pairs(case: Case) -> bool:
    """Whether the first two operands could be one array."""
    first = case.operands[:2]
    alike = len(first) == 2 and all(isinstance(o, Operand) for o in first) and first[0] == first[1]
    return alike and case.op not in cases.SELECTIONS


def overlapping(built: Built, rng: random.Random) -> tuple[dt.DeviceArray, list[Any], np.ndarray]:
    """A block with the first two operands in it."""
    one, other = windows(built.case.arrays[0].shape, rng)
    stored = formats.STORAGE[built.question.dtypes[0]]
    flat = np.resize(built.question.bits[1].ravel(), one.size).astype(stored)
    flat[one.places()] = built.question.bits[0]
    block = from_bits(flat, built.question.dtypes[0], built.device)
    views = [block.as_strided(w.shape, w.strides, w.offset) for w in (one, other)]
    return block, [*views, *built.operands[2:]], one.places()


@pytest.mark.parametrize("case", rows(only=pairs))
def test_operands_that_share_memory(case: Case, device: str) -> None:
    for built, rng in drawn(case, device, "overlap"):
        block, operands, _ = overlapping(built, rng)
        before = bits_of(block).tobytes()
        alone = [x.clone().contiguous() if isinstance(x, dt.DeviceArray) else x for x in operands]
        for got, want in zip(call_with(built, operands), call_with(built, alone), strict=True):
            if reference.OPS[case.op].sums:  # which may be added in another order
                np.testing.assert_allclose(wide_of(got), wide_of(want), rtol=0.02, atol=0.02)
            else:
                assert bits_of(got).tobytes() == bits_of(want).tobytes()
        assert bits_of(block).tobytes() == before


@pytest.mark.parametrize("case", rows(cases.IN_PLACE, pairs))
def test_a_target_that_shares_memory_with_an_operand(case: Case, device: str) -> None:
    """As if the operand had been copied first, or an error and nothing written."""
    for built, rng in drawn(case, device, "overlap in place"):
        if not can_replace(case, built.dtype):
            continue
        block, operands, places = overlapping(built, rng)
        before = bits_of(block)
        want = before.copy()
        write: Callable[..., Any] = getattr(dt.DeviceArray, case.op + "_")
        alone = [x.clone() if isinstance(x, dt.DeviceArray) else x for x in operands]
        want[places] = bits_of(write(*alone, **built.parameters))
        try:
            write(*operands, **built.parameters)
        except RuntimeError:
            want = before
        assert bits_of(block).tobytes() == want.tobytes()


def call_with(built: Built, operands: list[Any]) -> list[dt.DeviceArray]:
    before, built.operands = built.operands, operands
    got = built.call()
    built.operands = before
    return list(got) if isinstance(got, tuple | list) else [got]
