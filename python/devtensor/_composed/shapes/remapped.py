"""Results that show places of an array along its dimensions: one pass on a GPU, and of padding on the cpu
(csrc/core/ops/remap.h)."""

from __future__ import annotations

from typing import NamedTuple

from devtensor import _C
from devtensor._C import DeviceArray

SAME, FLIP, REFLECT, REPLICATE, CIRCULAR, NEAREST, LINEAR = range(7)


class Along(NamedTuple):
    """What a dimension shows, its new size, and what else the kind asks for."""

    kind: int
    size: int
    before: int = 0
    step: float = 1.0
    shift: float = 0.0


def has_pass(x: DeviceArray, pads: bool = False) -> bool:
    """Whether there is one for x, of which nothing would be recorded; the cpu has one that pads."""
    recorded = x.requires_grad and _C.is_grad_enabled()
    return (x.is_cuda or pads) and x.is_contiguous() and x.numel() > 0 and not recorded


def remapped(x: DeviceArray, places: dict[int, Along], columns_first: bool = True) -> DeviceArray:
    """x along these dimensions, neighbours by two."""
    if x.ndim == 1:
        return remapped(x.unsqueeze(0), {1: places[0]}).squeeze(0)
    rest = dict(places)
    while rest:
        first = max(max(rest) - 1, 0)
        pair = [rest.pop(d, Along(SAME, x.shape[d])) for d in (first, first + 1)]
        x = _pass(x, first, pair, columns_first)
    return x


def _pass(x: DeviceArray, dim: int, pair: list[Along], columns_first: bool) -> DeviceArray:
    kinds, sizes, before, steps, shifts = zip(*pair, strict=True)
    return _C._remap(x, dim, kinds, sizes, before, steps, shifts, columns_first)
