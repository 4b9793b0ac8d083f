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


def random_bits(seed: int, counter: int) -> int:
    block = philox(seed, counter)
    return block[1] << 32 | block[0]


def rand(seed: int, offset: int, n: int, dtype: str) -> Array:
    """Uniform numbers in [0, 1) with as many bits as the significand of the dtype has."""
    width = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtype]
    bits = [random_bits(seed, offset + i) >> (64 - width) for i in range(n)]
    return round_float(np.array(bits, dtype=np.float64) * 2.0**-width, dtype)


def randint(seed: int, offset: int, n: int, low: int, high: int) -> list[int]:
    return [low + (random_bits(seed, offset + i) * (high - low) >> 64) for i in range(n)]


def randn(seed: int, offset: int, n: int) -> Array:
    """Box and Muller; both uniforms come from one block."""
    values = []
    for i in range(n):
        w = philox(seed, offset + i)
        first, second = (w[1] << 32 | w[0]) >> 11, (w[3] << 32 | w[2]) >> 11
        radius = math.sqrt(-2 * math.log((first + 1) * 2.0**-53))
        values.append(radius * math.cos(2 * math.pi * second * 2.0**-53))
    return np.array(values)
