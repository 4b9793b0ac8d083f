"""Numbers for the operands of the table, which a dtype holds exactly."""

from __future__ import annotations

import formats
import numpy as np
from formats import FLOATS

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 3.0, -7.0, np.inf, -np.inf, np.nan]


def special_values(dtype: str) -> np.ndarray:
    """Sixteen values at which ops go wrong."""
    if dtype in FLOATS:
        form = formats.FORMATS[dtype]
        return np.array([*SPECIAL, form.largest, -form.largest, form.smallest])
    low, high = formats.RANGE[dtype]
    wanted = [0, 1, -1, 2, 3, 7, -5, high, low, high - 1, low + 1, high // 2, 4, 100, 10, 5]
    return np.array([min(max(n, low), high) for n in wanted], dtype=object)


def fill(kind: str, shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> np.ndarray:
    if kind == "special":
        return np.resize(special_values(dtype), shape)
    if kind == "distinct":
        return formats.round_to(rng.permutation(int(np.prod(shape))).reshape(shape), dtype)
    if kind.startswith(("index", "wrapped")):  # index5: 0 to 4; wrapped5: -5 to 4
        size = int(kind.lstrip("abcdefghijklmnopqrstuvwxyz"))
        return rng.integers(-size if kind.startswith("wrapped") else 0, size, shape).astype(object)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(object)
    if dtype in FLOATS:
        low, high = {"signed": (-4, 4), "positive": (0.25, 4), "unit": (-0.95, 0.95)}[kind]
        return formats.round_float(rng.uniform(low, high, shape), dtype)
    low = {"signed": max(-9, formats.RANGE[dtype][0]), "positive": 1, "unit": 0}[kind]
    return rng.integers(low, 10, shape).astype(object)
