"""The random numbers of devtensor, from their published definition."""

from __future__ import annotations

import math

import numpy as np
from formats import Array, round_float


def philox(seed: int, counter: int) -> tuple[int, int, int, int]:
    """Philox4x32-10 (Salmon, Moraes, Dror and Shaw, 2011)."""
    mask = 0xFFFFFFFF
    c = [counter & mask, counter >> 32 & mask, 0, 0]
    k = [seed & mask, seed >> 32 & mask]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & mask, (p0 >> 32) ^ c[3] ^ k[1], p0 & mask]
        k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
    return c[0], c[1], c[2], c[3]


def words(seed: int, offset: int, n: int) -> list[int]:
    """Of neighbouring elements, four of a block."""
    return [philox(seed, offset + i // 4)[i % 4] for i in range(n)]


def halves(seed: int, offset: int, n: int) -> list[int]:
    """The same of 64 bits, two of a block."""
    blocks = [philox(seed, offset + i // 2) for i in range(n)]
    return [b[2 * (i % 2) + 1] << 32 | b[2 * (i % 2)] for i, b in enumerate(blocks)]


def rand(seed: int, offset: int, n: int, dtype: str) -> Array:
    """Uniform numbers in [0, 1) with as many bits as the significand of the dtype has."""
    width = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtype]
    bits, given = (halves(seed, offset, n), 64) if dtype == "float64" else (words(seed, offset, n), 32)
    return round_float(np.array([b >> (given - width) for b in bits], dtype=np.float64) * 2.0**-width, dtype)


def randint(seed: int, offset: int, n: int, low: int, high: int) -> list[int]:
    return [low + (bits * (high - low) >> 64) for bits in halves(seed, offset, n)]


def box_muller(u: float, turn: float) -> list[float]:
    radius = math.sqrt(-2 * math.log(u))
    return [radius * math.cos(2 * math.pi * turn), radius * math.sin(2 * math.pi * turn)]


def randn(seed: int, offset: int, n: int, dtype: str) -> Array:
    """Box and Muller: of each two uniform numbers come two, of float64 one pair a block, else two."""
    values = []
    if dtype == "float64":
        bits = [b >> 11 for b in halves(seed, offset, n + 1)]
        for first, second in zip(bits[::2], bits[1::2], strict=False):
            values += box_muller((first + 1) * 2.0**-53, second * 2.0**-53)
    else:
        bits = words(seed, offset, n + 3)
        for first, second in zip(bits[::2], bits[1::2], strict=False):
            step = np.float32(np.float32(first >> 1) + np.float32(1))  # what float32 makes of the 31 bits
            values += box_muller(float(step) * 2.0**-31, second * 2.0**-32)
    return np.array(values[:n])
