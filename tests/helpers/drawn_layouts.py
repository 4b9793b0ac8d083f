"""Arrangements of memory that nobody thought of: dimensions in any order, with gaps, inside a larger block."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from formats import STORAGE
from support import bits_of, from_bits

import devtensor as dt


@dataclass(frozen=True)
class Layout:
    """Where the elements of an array of some shape lie: strides and offset in a block of so many elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    size: int

    def places(self) -> np.ndarray:
        """The place of each element in the block."""
        places = np.full(self.shape, self.offset)
        for d, (n, stride) in enumerate(zip(self.shape, self.strides, strict=True)):
            places += (np.arange(n) * stride).reshape(-1, *(1,) * (len(self.shape) - d - 1))
        return places


def draw(shape: Sequence[int], rng: random.Random, repeats: Sequence[int] = ()) -> Layout:
    """repeats: dimensions along which elements are equal, and may be one element."""
    strides, extent = [0] * len(shape), 1
    order = list(range(len(shape)))
    if rng.random() < 0.6:
        rng.shuffle(order)
    for d in order:
        if d in repeats and rng.random() < 0.7:
            continue
        step = rng.choice((1, 1, 1, 2, 3))
        strides[d] = extent * step
        lines = max(shape[d] - 1, 0) * step + 1
        extent *= lines + rng.choice((0, 0, 0, 1, 2))
    before, after = rng.choice((0, 0, 1, 3, 16)), rng.choice((0, 1, 5))
    return Layout(tuple(shape), tuple(strides), before, before + extent + after)


@dataclass
class Laid:
    """An array in such an arrangement; what lies around its elements is poison."""

    bits: np.ndarray
    dtype: str
    device: str
    layout: Layout
    block: dt.DeviceArray = field(init=False)
    array: dt.DeviceArray = field(init=False)

    def __post_init__(self) -> None:
        stored = STORAGE[self.dtype]
        poison = np.array(1, stored) if self.dtype == "bool" else np.frombuffer(b"\xff" * stored.itemsize, stored)[0]
        flat = np.full(self.layout.size, poison, stored)
        flat[self.layout.places()] = self.bits
        self.block = from_bits(flat, self.dtype, self.device)
        self.array = self.block.as_strided(self.layout.shape, self.layout.strides, self.layout.offset)
        self.before = flat

    def around(self) -> tuple[bytes, bytes]:
        """What lies around the elements, as it was and as it is."""
        outside = np.ones(self.layout.size, bool)
        outside[self.layout.places()] = False
        return self.before[outside].tobytes(), bits_of(self.block)[outside].tobytes()


def windows(shape: tuple[int, ...], rng: random.Random) -> tuple[Layout, Layout]:
    """Two arrangements in one block, which may have elements in common: shifted, or with two dimensions exchanged."""
    one = draw(shape, rng)
    shift, strides = rng.choice((0, 1, 2, *one.strides)), list(one.strides)
    alike = [(a, b) for a in range(len(shape)) for b in range(a) if shape[a] == shape[b]]
    if alike and rng.random() < 0.5:
        a, b = rng.choice(alike)
        strides[a], strides[b] = strides[b], strides[a]
    size = one.size + shift
    first = Layout(shape, one.strides, one.offset, size)
    return first, Layout(shape, tuple(strides), one.offset + shift, size)
