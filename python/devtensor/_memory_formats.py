"""The orders that elements can have in memory, and the one layout that there is."""

from __future__ import annotations

library = "devtensor"  # as they are shown; of `run --as-torch` torch


class memory_format(str):
    """An order of elements in memory: contiguous_format, preserve_format, channels_last, channels_last_3d.

    >>> dt.ones(1, 2, 2, 2).contiguous(memory_format=dt.channels_last).stride()
    (8, 1, 4, 2)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{library}.{self}"


contiguous_format: memory_format = memory_format("contiguous_format")
preserve_format: memory_format = memory_format("preserve_format")
channels_last: memory_format = memory_format("channels_last")
channels_last_3d: memory_format = memory_format("channels_last_3d")


class layout(str):
    """How an array lies in memory: strided, the only way here.

    >>> dt.ones(2).layout
    devtensor.strided
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{library}.{self}"


strided: layout = layout("strided")

__all__ = [
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "layout",
    "memory_format",
    "preserve_format",
    "strided",
]
