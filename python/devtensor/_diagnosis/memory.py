"""What fills a device that has no room left: live arrays by the line that made them.

Nobody counts arrays while all is well. When memory runs out they are looked for in what the interpreter knows: the
variables of running functions and whatever objects the garbage collector tracks.
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

from devtensor import _C
from devtensor._diagnosis import origins
from devtensor._diagnosis.sources import file_name
from devtensor._diagnosis.variables import fast_names

_ARRAYS = (_C.DeviceArray, _C._Parameter, _C._Buffer)
_MOST = 1_000_000  # objects that are looked at
_SHOWN = 5
_GRAPHS = 3  # of one line that are worth a note


def held() -> Iterator[Any]:
    """The arrays that running functions and tracked objects hold, one after the other; often several times."""
    frame: FrameType | None = None
    holder = values = value = None
    try:
        for frame in sys._current_frames().values():
            for _ in range(1000):
                if frame is None:
                    break
                yield from _arrays([_C._frame_variable(frame, name, None) for name in fast_names(frame.f_code)])
                frame = frame.f_back
        for holder in gc.get_objects()[:_MOST]:
            values = gc.get_referents(holder)
            yield from _arrays(values)
            for value in values:
                if type(value) in (dict, tuple) and not gc.is_tracked(value):  # holds what is not either
                    yield from _arrays(value.values() if type(value) is dict else value)
    finally:
        # This very frame is among them. One that refers to itself outlives its end, from Python 3.12 on with the frames
        # that called it, and so would every array of theirs.
        del frame, holder, values, value


def _arrays(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if type(value) in _ARRAYS]


def live_arrays(device: str) -> list[tuple[int, Any]]:
    """(bytes, array) for the arrays on a device that can be found; views of what another one holds are left out."""
    seen: dict[int, Any] = {}
    for found in held():
        if found.numel() and str(found.device) == device:
            seen[id(found)] = found
    spans = []
    for array in seen.values():
        reach = sum((size - 1) * stride for size, stride in zip(array.shape, array.stride(), strict=True)) + 1
        origin = array.origin
        made = origin is not None and origins.is_making(origin.action)  # and no view of what is made
        spans.append((array.data_ptr(), -reach * array.itemsize, not made, id(array)))
    end, result = 0, []
    for start, nbytes, _, key in sorted(spans):
        if start >= end:
            end = start - nbytes
            result.append((-nbytes, seen[key]))
    return result


def memory_notes(error: Any) -> list[str]:
    """The lines whose arrays hold most of the device that is full."""
    from devtensor._transfers import size_text

    index = re.search(r"cuda:\d+", str(error))
    lines: dict[str, list[int]] = {}
    for nbytes, array in live_arrays(index.group()) if index is not None else []:
        origin = array.origin
        place = "somewhere" if origin is None else f"{origin.action} at {file_name(origin.filename)}:{origin.lineno}"
        sums = lines.setdefault(place, [0, 0])
        sums[0] += nbytes
        sums[1] += 1
    largest = sorted(lines.items(), key=lambda entry: -entry[1][0])[:_SHOWN]
    if not largest or index is None:
        return []
    rows = [f"  {size_text(held):>10}  {count:>4} x  {place}" for place, (held, count) in largest]
    return ["\n".join([f"live arrays on {index.group()}, by the line that made them:", *rows]), *_graph_notes()]


def _graph_notes() -> list[str]:
    """The lines whose results keep graphs that no backward has used, which is forgotten no_grad more often than not."""
    from devtensor._diagnosis.graphs import held_graphs
    from devtensor._transfers import size_text

    many = [one for one in held_graphs(unused=True) if one.arrays >= _GRAPHS][:_SHOWN]
    rows = [f"  {size_text(one.nbytes):>10}  {one.arrays:>4} x  made at {one.where}" for one in many]
    return ["\n".join(["kept by graphs that no backward() has used (no_grad keeps none):", *rows])] if rows else []
