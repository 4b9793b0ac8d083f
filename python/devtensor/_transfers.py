"""Copies between devices, seen and forbidden: record_transfers, forbid_transfers, allow_transfers.

The compiled part calls here before and after each copy, while somebody watches, and at no other time.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple, overload

from devtensor import _C
from devtensor._diagnosis import is_own, warn_at, written
from devtensor._diagnosis.sources import file_name


class Transfer(NamedTuple):
    """One copy between devices: the bytes on the bus, where from and to, and the line of the user's that asked for it.

    action is the name of what was called, such as "to" or "item"; expression the array as the caller wrote it, where
    that is known. synchronous: the call returned when the bytes were copied. pinned: the host's side is page-locked.
    """

    nbytes: int
    source: _C.device
    target: _C.device
    filename: str | None
    lineno: int
    action: str
    synchronous: bool
    pinned: bool
    expression: str | None = None

    @property
    def place(self) -> str:
        """ "train.py:12"."""
        return "?" if self.filename is None else f"{file_name(self.filename)}:{self.lineno}"

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, as JSON takes them."""
        return {**self._asdict(), "source": str(self.source), "target": str(self.target)}


class Repeated(NamedTuple):
    """Copies of one kind at one line."""

    times: int
    nbytes: int
    first: Transfer
    array: str  # what was copied, as the caller wrote it; "model.*" for several of a Module

    @property
    def waits(self) -> bool:
        """Whether the host waited for a device each time."""
        return self.first.synchronous and self.first.source.type != "cpu"


def _common(a: str, b: str) -> str:
    """ "model.*" for model.0.weight and model.0.bias."""
    if a == b:
        return a
    first = a.removesuffix("*").split(".")
    same = list(itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, b.split("."), strict=False)))
    return ".".join([part for part, _ in same] + ["*"]) if same else ""


def size_text(nbytes: int) -> str:
    """ "8 bytes", "1.5 MiB"."""
    if nbytes < 1024:
        return f"{nbytes} byte{'s' if nbytes != 1 else ''}"
    power = min((nbytes.bit_length() - 1) // 10, 4)
    return f"{nbytes / 1024**power:.1f} {' KMGT'[power]}iB"


# ---------------------------------------------------------------- what is known of many


class Totals:
    """Copies added up by line and kind; of bounded size for a program of any length."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a collection inside of it may move arrays again
        self._lines: dict[tuple[Any, ...], Repeated] = {}

    def add(self, one: Transfer) -> None:
        key = (one.filename, one.lineno, one.action, str(one.source), str(one.target), one.synchronous, one.pinned)
        with self._lock:
            known = self._lines.get(key)
            self._lines[key] = (
                Repeated(1, one.nbytes, one, one.expression or "")
                if known is None
                else Repeated(
                    known.times + 1, known.nbytes + one.nbytes, known.first, _common(known.array, one.expression or "")
                )
            )

    def lines(self) -> list[Repeated]:
        """One entry for each line and kind of copy, those of most bytes first."""
        with self._lock:
            found = list(self._lines.values())
        return sorted(found, key=lambda line: -line.nbytes)

    def round_trips(self, least: int = 3) -> list[Repeated]:
        """The lines at which the host waited for a device at least so many times, the most frequent first."""
        found = [line for line in self.lines() if line.waits and line.times >= least]
        return sorted(found, key=lambda line: -line.times)


_HEADER = ["times", "total bytes", "from", "to", "call", "array", "line", "host memory", "host waits"]
_COLOURS = {"yes": "\x1b[33m"}  # what costs time


def _cells(line: Repeated) -> list[str]:
    one = line.first
    hosts = "" if "cpu" not in (one.source.type, one.target.type) else "pinned" if one.pinned else "pageable"
    action = f".{one.action}()" if hasattr(_C.DeviceArray, one.action) else one.action
    waits = "yes" if one.synchronous else "no"
    return [str(line.times), size_text(line.nbytes), str(one.source), str(one.target), action, line.array,
            one.place, hosts, waits]  # fmt: skip


def _headline(lines: Iterable[Repeated]) -> str:
    ways: dict[str, list[int]] = {}
    for line in lines:
        source, target = line.first.source.type, line.first.target.type
        way = "to devices" if source == "cpu" else "to the host" if target == "cpu" else "between devices"
        known = ways.setdefault(way, [0, 0])
        known[0] += line.times
        known[1] += line.nbytes
    count = sum(n for n, _ in ways.values())
    parts = [f"{n} {way} ({size_text(nbytes)})" for way, (n, nbytes) in ways.items()]
    return f"{count} transfer{'s' if count != 1 else ''}" + (": " + ", ".join(parts) if parts else "")


def _trip_text(line: Repeated) -> str:
    one = line.first
    what = f".{one.action}()" if hasattr(_C.DeviceArray, one.action) else one.action
    return f"round trips: {one.place} waited for {one.source} {line.times} times ({what} of {line.array or 'an array'})"


def _fitted(rows: list[list[str]], width: int | None) -> list[list[str]]:
    """The rows with the names of arrays, then of files, cut until a line fits the width; never below 12 characters."""
    if width is None or not rows:
        return rows
    for column, last in ((5, False), (6, True)):  # of an array its beginning counts, of a place its end
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        room = max(12, widths[column] - max(0, sum(widths) + 2 * len(widths) - width))
        rows = [[_cut(c, room, last) if i == column else c for i, c in enumerate(row)] for row in rows]
    return rows


def _cut(text: str, room: int, last: bool) -> str:
    if len(text) <= room:
        return text
    return f"...{text[3 - room :]}" if last else f"{text[: room - 3]}..."


def of_stream(stream: Any) -> tuple[int | None, bool]:
    """The width of a terminal, None where it is none, and whether it shows colours (NO_COLOR, TERM=dumb: no)."""
    try:
        terminal = stream.isatty()
    except Exception:  # whatever a program has put there
        terminal = False
    if not terminal:
        return None, False
    import shutil  # two milliseconds of the import of devtensor otherwise

    colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return shutil.get_terminal_size().columns, colour


def report(totals: Totals, most: int = 40, width: int | None = None, colour: bool = False) -> str:
    """The table that print shows: one line for each line of source and kind of copy, cut to width if there is one."""
    lines = totals.lines()
    rows = [_HEADER, *map(_cells, lines[:most])] if lines else []
    rows = _fitted(rows, width)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    text = [_headline(lines)]
    for row in rows:
        cells = [c.rjust(w) if i < 2 else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        line = "  " + "  ".join(cells).rstrip()
        text.append(f"{_COLOURS[row[-1]]}{line}\x1b[0m" if colour and row[-1] in _COLOURS else line)
    if len(lines) > most:
        text.append(f"  ... and {len(lines) - most} more lines")
    return "\n".join(text + [_trip_text(line) for line in totals.round_trips()])


class TransferLog(Sequence[Transfer]):
    """What record_transfers saw: a sequence of Transfer, printed as a table by line."""

    def __init__(self) -> None:
        self._records: list[Transfer] = []

    def _add(self, one: Transfer) -> None:
        self._records.append(one)

    @overload
    def __getitem__(self, index: int) -> Transfer: ...
    @overload
    def __getitem__(self, index: slice) -> list[Transfer]: ...
    def __getitem__(self, index: int | slice) -> Transfer | list[Transfer]:
        return self._records[index]

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Transfer]:
        return iter(list(self._records))

    @property
    def nbytes(self) -> int:
        """The bytes of all copies together."""
        return sum(one.nbytes for one in self)

    def to_dict(self) -> dict[str, Any]:
        """The count, the bytes and every Transfer, as JSON takes them."""
        return {"count": len(self), "nbytes": self.nbytes, "transfers": [one.to_dict() for one in self]}

    def _totals(self) -> Totals:
        totals = Totals()
        for one in self:
            totals.add(one)
        return totals

    def lines(self) -> list[Repeated]:
        """One entry (times, nbytes, first, array) for each line and kind of copy, those of most bytes first."""
        return self._totals().lines()

    def round_trips(self, least: int = 3) -> list[Repeated]:
        """The lines at which the host waited for a device at least so many times, the most frequent first."""
        return self._totals().round_trips(least)

    def __repr__(self) -> str:
        width, _ = of_stream(sys.stdout)
        return report(self._totals(), width=width)

    def _repr_html_(self) -> str:
        from html import escape  # for notebooks alone

        totals = self._totals()
        rows = [_HEADER, *map(_cells, totals.lines()[:200])]
        cells = ["".join(f"<{tag}>{escape(c)}</{tag}>" for c in row) for tag, row in
                 zip(["th"] + ["td"] * len(rows), rows, strict=False)]  # fmt: skip
        trips = "".join(f"<p>{escape(_trip_text(line))}</p>" for line in totals.round_trips())
        table = "".join(f"<tr>{row}</tr>" for row in cells)
        return f"<p>{escape(_headline(totals.lines()))}</p><table>{table}</table>{trips}"


# ---------------------------------------------------------------- who watches


class _OfThread(threading.local):
    """The logs and guards of this thread, the innermost last."""

    def __init__(self) -> None:
        self.logs: list[Any] = []
        self.guards: list[Any] = []
        self.refused: Any = None


_thread = _OfThread()
_everywhere: list[Any] = []


def watch(add: Callable[[Transfer], None], all_threads: bool = True) -> Callable[[], None]:
    """Has add called after each copy; returns what ends that."""
    entry = [add]  # its identity counts
    logs = _everywhere if all_threads else _thread.logs
    logs.append(entry)
    _C._watch_transfers(1)

    def end() -> None:
        for i, held in enumerate(logs):
            if held is entry:
                del logs[i]
                _C._watch_transfers(-1)
                return

    return end


class record_transfers:
    """Context manager: `with dt.record_transfers() as log:` sees every copy between devices that this thread makes.

    With all_threads=True also those of other threads. The log is a sequence of records (nbytes, source, target,
    filename, lineno, action, synchronous, pinned, expression) with nbytes, lines() and round_trips(); print(log) shows
    a table. Copies on one device, pinning, and moves of empty arrays are not transfers. Nothing is kept outside of
    blocks.

    >>> x = dt.zeros(2, 3, device="cuda")
    >>> with dt.record_transfers() as log:
    ...     y = x.cpu()
    >>> log.nbytes, log[0].action
    (24, 'cpu')
    """

    def __init__(self, all_threads: bool = False) -> None:
        self._all_threads = all_threads
        self._ends: list[Callable[[], None]] = []

    def __enter__(self) -> TransferLog:
        log = TransferLog()
        self._ends.append(watch(log._add, self._all_threads))
        return log

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.pop()()


class _Guarding(contextlib.ContextDecorator):
    """What stands on the thread's list of guards for the length of a block."""

    place: str = "?"

    def __enter__(self) -> None:
        frame = _user_frame(sys._getframe(1))
        if frame is not None:
            self.place = f"{file_name(frame.f_code.co_filename)}:{frame.f_lineno}"
        _thread.guards.append(self)
        _C._watch_transfers(1)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for i in range(len(_thread.guards) - 1, -1, -1):
            if _thread.guards[i] is self:
                del _thread.guards[i]
                _C._watch_transfers(-1)
                break


Place = str | Callable[..., Any]


class forbid_transfers(_Guarding):
    """Context manager and decorator: a copy between devices raises TransferForbiddenError, before anything moves.

    allow: places from which copies are allowed all the same, also when they call others that copy: a file
    ("metrics.py"), a line ("train.py:12"), the name of a function ("evaluate", "Net.log"), or the function. Or mark the
    place with `with dt.allow_transfers():`. Blocks nest, and each has its say. It holds for the thread that entered it:
    a loader that fetches batches in another one goes on. repr, as in print(x), is not stopped.

    >>> x = dt.zeros(1, device="cuda")
    >>> with dt.forbid_transfers():
    ...     x.item()
    Traceback (most recent call last):
        ...
    devtensor.TransferForbiddenError: a transfer of 4 bytes from cuda:0 to cpu is forbidden here, and nothing was moved
    ...
    """

    def __init__(self, allow: Place | Iterable[Place] = ()) -> None:
        places = [allow] if isinstance(allow, str) or callable(allow) else list(allow)
        self._names: list[str] = []
        self._lines: list[tuple[str, int]] = []
        self._codes: list[CodeType] = []
        for place in places:
            code = getattr(getattr(place, "__func__", place), "__code__", None)
            if isinstance(place, str) and place:
                file, _, line = place.rpartition(":")
                if file and line.isdigit():
                    self._lines.append((file, int(line)))
                elif place.endswith(".py"):
                    self._lines.append((place, 0))
                else:
                    self._names.append(place)
            elif isinstance(code, CodeType):
                self._codes.append(code)
            else:
                raise TypeError(
                    f'forbid_transfers(): a place is "file.py", "file.py:12", the name of a function, or a function, '
                    f"not {_C._shown(place)}"
                )

    def allows(self, frame: FrameType | None) -> bool:
        """Whether a frame, or one that called it, is in one of the places."""
        if not (self._names or self._lines or self._codes):
            return False
        while frame is not None:
            code = frame.f_code
            if any(code is one for one in self._codes) or any(_ends(code.co_qualname, n, ".") for n in self._names):
                return True
            for file, line in self._lines:
                if line in (0, frame.f_lineno) and _ends(code.co_filename, file, os.sep):
                    return True
            frame = frame.f_back
        return False


class allow_transfers(_Guarding):
    """Context manager and decorator: marks a place where copies are allowed inside of `with forbid_transfers():`.

    >>> x = dt.zeros(1, device="cuda")
    >>> with dt.forbid_transfers(), dt.allow_transfers():
    ...     x.item()
    0.0
    """


def _ends(text: str, end: str, separator: str) -> bool:
    return text == end or text.endswith(separator + end)


def refused_by() -> str | None:
    """Where the block began that refused the latest copy of this thread."""
    guard = _thread.refused
    return None if guard is None else str(guard.place)


# ---------------------------------------------------------------- called by the compiled part


def _user_frame(frame: FrameType | None) -> FrameType | None:
    while frame is not None and (is_own(frame.f_code.co_filename) or frame.f_code.co_filename == contextlib.__file__):
        frame = frame.f_back
    return frame


def _allows(nbytes: int, source: str, target: str, synchronous: bool, pinned: bool, action: str, array: Any) -> bool:
    if not _thread.guards or action == "repr":
        return True
    frame = _user_frame(sys._getframe(1))
    for guard in reversed(_thread.guards):
        if isinstance(guard, allow_transfers):
            return True
        if not guard.allows(frame):
            _thread.refused = guard
            return False
    return True


def _done(nbytes: int, source: str, target: str, synchronous: bool, pinned: bool, action: str, array: Any) -> None:
    listeners = [*_thread.logs, *_everywhere]
    if not listeners:
        return
    frame = _user_frame(sys._getframe(1))
    filename, lineno = (None, 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
    text = None if frame is None or array is None else _expression(frame, array)
    one = Transfer(nbytes, _C.device(source), _C.device(target), filename, lineno, action, synchronous, pinned, text)
    for (add,) in listeners:
        add(one)


_texts: dict[tuple[int, int], tuple[Any, str | None]] = {}


def _expression(frame: FrameType, array: Any) -> str | None:
    """How the caller wrote the array; looked up once for each instruction, but for what belongs to a Module."""
    key = (id(frame.f_code), frame.f_lasti)
    known = _texts.get(key)
    if known is not None and known[0]() is frame.f_code:
        return known[1]
    text, path = written(frame, array)
    if path is not None:
        return f"{text}.{path}"
    if type(array) in (_C._Parameter, _C._Buffer):
        return text
    if len(_texts) >= 1000:
        _texts.clear()
    _texts[key] = (weakref.ref(frame.f_code), text)
    return text


def _warn_synchronous(action: str, reason: str) -> None:
    frame = _user_frame(sys._getframe(1))
    text = (
        f"{action}(): non_blocking=True cannot be asynchronous here, since {reason}: the call returns when the host "
        "has copied the bytes."
    )
    warn_at(frame, UserWarning(text))
