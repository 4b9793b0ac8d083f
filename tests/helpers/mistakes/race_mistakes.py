"""Races of streams, in the form of typical_mistakes."""

from __future__ import annotations

RACES = [
    (
        "A stream that does not wait for what another one writes, where only the program's own order counts",
        """
import devtensor as dt

dt.testing.simulate_cuda(2, races="strict")
frame = dt.zeros(1000, device="cuda")
side = dt.cuda.Stream()
frame.fill_(0.5)
with dt.cuda.stream(side):
    brighter = frame * 2  # here
""",
    )
]
