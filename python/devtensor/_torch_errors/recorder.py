"""origins=True: which line made, moved or cast each tensor, and which wrote to it. Off unless asked for.

A weak table has an entry for each tensor that lives: the op, the code object and instruction of the user's line, and
the entry of the tensor that it was made of. No tensor, frame or source text is kept.
"""

from __future__ import annotations

import collections
import functools
import importlib
import itertools
import sys
import threading
import weakref
from types import CodeType, FrameType
from typing import Any

from devtensor._diagnosis import sources
from devtensor._diagnosis.arrays import Recorded
from devtensor._errors import Step

_DEEPEST = 24  # steps of a chain before those that decided nothing are left out
_LATEST = 4
_VIEWS = {"T", "mT", "H", "mH", "data", "real", "imag"}
_IN_PLACE = {"__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__ipow__"}
_KEY = "devtensor"  # in the metadata of a node of autograd: code, instruction and when
_NO_WRITES = {"requires_grad_", "retain_grad", "share_memory_", "rename_", "swapaxes_"}


class Entry:
    """One step: what was called, where, and what came out; before: that of the tensor it was made of."""

    __slots__ = ("action", "before", "code", "depth", "device", "dtype", "elided", "instruction", "off")

    def __init__(
        self, action: str, code: CodeType | None, instruction: int, tensor: Any, off: bool, before: Any
    ) -> None:
        self.action, self.code, self.instruction, self.off = action, code, instruction, off
        self.device, self.dtype = tensor.device, tensor.dtype
        self.elided = False
        self.before: Entry | None = before
        self.depth: int = before.depth + 1 if before is not None else 0
        if self.depth > _DEEPEST:
            self._shorten()

    def _shorten(self) -> None:
        """Leaves out the steps in the middle that decided neither device nor dtype."""
        chain: list[Entry] = []
        one: Entry | None = self
        while one is not None:
            chain.append(one)
            one = one.before
        kept = [e for i, e in enumerate(chain) if i < _LATEST or e.before is None or e.differs()]
        below: Entry | None = None
        for entry in reversed(kept[:_DEEPEST] if len(kept) > 1 else kept):
            copy = entry if entry is self else object.__new__(Entry)
            for name in Entry.__slots__:
                setattr(copy, name, getattr(entry, name))
            copy.elided = entry.elided or (entry.before is not None and entry.before not in kept)
            copy.before, copy.depth = below, below.depth + 1 if below is not None else 0
            below = copy

    def differs(self) -> bool:
        before = self.before
        return before is None or (before.device, before.dtype) != (self.device, self.dtype)


class _Ref(weakref.ref[Any]):
    __slots__ = ("entry", "key", "version", "write")

    key: int
    entry: Entry
    write: tuple[CodeType, int] | None


_table: dict[int, _Ref] = {}
_backwards: collections.deque[tuple[CodeType, int, int, Any]] = collections.deque(maxlen=64)
_clock = itertools.count(1)
_own: dict[str, bool] = {}


def _gone(ref: Any) -> None:
    known: Any = _table.get(ref.key)
    if known is ref:
        del _table[ref.key]


def entry_of(tensor: Any) -> Entry | None:
    ref = _table.get(id(tensor))
    return ref.entry if ref is not None and ref() is tensor else None


def write_of(tensor: Any) -> tuple[CodeType, int] | None:
    """The line that wrote to a tensor last."""
    ref = _table.get(id(tensor))
    return ref.write if ref is not None and ref() is tensor else None


def backwards() -> list[tuple[CodeType, int, int, Any]]:
    """The latest calls of backward() that used a graph up: code, instruction, when, a weak reference to the loss."""
    return list(_backwards)


def steps(tensor: Any) -> list[Recorded]:
    """The steps of a tensor, the latest first."""
    found: list[Recorded] = []
    entry = entry_of(tensor)
    while entry is not None:
        where = sources.position(entry.code, entry.instruction) if entry.code is not None else None
        file = entry.code.co_filename if entry.code is not None else None
        line = where[0] if where is not None else 0
        place = (entry.code, entry.instruction) if entry.code is not None else None
        step = Step(entry.action, file, line, entry.device, entry.dtype, entry.elided, "")
        found.append(Recorded(step, place, entry.off))
        entry = entry.before
    return found


def made(node: Any) -> tuple[tuple[CodeType, int] | None, int]:
    """The line that an op of autograd stands on, and when it was recorded; (None, 0) where that is not known."""
    found = node.metadata.get(_KEY) if node is not None else None
    return ((found[0], found[1]), found[2]) if found is not None else (None, 0)


def size() -> int:
    return len(_table)


def _user_place(frame: FrameType | None) -> tuple[CodeType | None, int]:
    """Code and instruction of the nearest frame that is neither PyTorch's nor ours."""
    from devtensor import _diagnosis

    while frame is not None:
        name = frame.f_code.co_filename
        own = _own.get(name)
        if own is None:
            own = _own[name] = _diagnosis.is_own(name)
        if not own:
            return frame.f_code, frame.f_lasti
        frame = frame.f_back
    return None, 0


def _keep(tensor: Any, entry: Entry, write: tuple[CodeType, int] | None = None) -> None:
    ref = _Ref(tensor, _gone)
    ref.key, ref.entry, ref.write = id(tensor), entry, write
    _table[ref.key] = ref


def _first_tensor(given: Any, kind: type, result: Any) -> Any:
    """The operand that a result has its device and dtype from, as far as one can tell: the first that has them."""
    first = None
    for one in given:
        inner = one[:8] if type(one) in (list, tuple) else (one,)
        for value in inner:
            if issubclass(type(value), kind):
                first = value if first is None else first
                if value.device == result.device and value.dtype == result.dtype:
                    return value
    return first


def note(torch: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, frame: Any) -> None:
    """Writes down what an op has made."""
    kind = torch.Tensor
    action = getattr(func, "__name__", "")
    if action == "__get__":
        action = getattr(getattr(func, "__self__", None), "__name__", "")
        if action not in _VIEWS:
            return
    if action == "__set__":
        _note_set(func, args, frame)
        return
    if action == "backward":
        code, instruction = _user_place(frame)
        if code is not None and not kwargs.get("retain_graph") and not (len(args) > 2 and args[2]):
            _backwards.append((code, instruction, next(_clock), weakref.ref(args[0])))
        return
    if "out" in kwargs and issubclass(type(kwargs["out"]), kind):
        _note_write(kwargs["out"], action, frame)
        return
    if (action in _IN_PLACE or (action[-1:] == "_" and action[-2:] != "__")) and action not in _NO_WRITES:
        written: Any = args[0] if args else kwargs.get("tensor")  # of nn.init
        for one in written if type(written) in (list, tuple) else (written,):  # _foreach_add_
            if issubclass(type(one), kind):
                _note_write(one, action, frame)
        return
    if kwargs.get("inplace") is True and args and result is args[0]:
        _note_write(result, action, frame)
        return
    if issubclass(type(result), kind):
        if result is not (args[0] if args else None) or entry_of(result) is None:
            _note_result(torch, action, args, kwargs, result, frame)
    elif issubclass(type(result), (tuple, list)):
        for one in result[:64]:
            if issubclass(type(one), kind):
                _note_result(torch, action, args, kwargs, one, frame)


def _note_result(torch: Any, action: str, args: Any, kwargs: Any, result: Any, frame: Any) -> None:
    code, instruction = _user_place(frame)
    made_of = _first_tensor((*args, *kwargs.values()), torch.Tensor, result)
    before = entry_of(made_of) if made_of is not None else None
    if made_of is not None and before is None:
        before = Entry("", None, 0, made_of, False, None)  # it was there before anything was recorded
    entry = Entry(action.strip("_") or action, code, instruction, result, not torch.is_grad_enabled(), before)
    _keep(result, entry)
    node = result.grad_fn
    if node is not None and code is not None:
        node.metadata.setdefault(_KEY, (code, instruction, next(_clock)))


def _note_write(tensor: Any, action: str, frame: Any) -> None:
    code, instruction = _user_place(frame)
    if code is None:
        return
    ref = _table.get(id(tensor))
    if ref is not None and ref() is tensor:
        ref.write = (code, instruction)
    else:  # such as the parameters of a Module, which are filled when they are made
        _keep(tensor, Entry("Parameter", code, instruction, tensor, False, None), (code, instruction))
    base = tensor._base
    if base is not None and base is not tensor and (entry_of(base) is not None):
        _table[id(base)].write = (code, instruction)
    node = tensor.grad_fn
    if node is not None:
        node.metadata.setdefault(_KEY, (code, instruction, next(_clock)))


def _note_set(func: Any, args: tuple[Any, ...], frame: Any) -> None:
    """param.data = param.to(device): what Module.to does."""
    if getattr(getattr(func, "__self__", None), "__name__", "") != "data" or len(args) != 2:
        return
    entry = entry_of(args[1])
    if entry is not None:
        _keep(args[0], entry)


def mode() -> Any:
    """A TorchFunctionMode that notes every op of its thread. PyTorch must be there."""
    torch: Any = importlib.import_module("torch")
    base: Any = importlib.import_module("torch.overrides").TorchFunctionMode

    class Recorder(base):  # type: ignore[misc]
        def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **kwargs) if kwargs else func(*args)
            if result is not None or getattr(func, "__name__", "") in ("__set__", "backward", "__setitem__"):
                try:
                    note(torch, func, args, kwargs or {}, result, sys._getframe(1))
                except Exception:  # what is not written down is not told
                    pass
            return result

    return Recorder()


class Numpy:
    """from_numpy, which no mode sees: while origins are recorded it stands in the place of torch.from_numpy."""

    _count = 0
    _before: Any = None

    @classmethod
    def begin(cls) -> None:
        torch: Any = importlib.import_module("torch")
        cls._count += 1
        if cls._count > 1:
            return
        cls._before = before = torch.from_numpy

        @functools.wraps(before)
        def from_numpy(array: Any) -> Any:
            result = before(array)
            if _modes.get(threading.get_ident()):
                try:
                    _note_result(torch, "from_numpy", (), {}, result, sys._getframe(1))
                except Exception:  # what is not written down is not told
                    pass
            return result

        torch.from_numpy = from_numpy

    @classmethod
    def end(cls) -> None:
        cls._count -= 1
        torch: Any = sys.modules["torch"]
        if cls._count == 0 and getattr(torch.from_numpy, "__wrapped__", None) is cls._before:
            torch.from_numpy = cls._before


_modes: dict[int, int] = {}  # how many modes a thread has


def begin() -> Any:
    """Records in this thread from now on; what end() takes."""
    found = mode()
    Numpy.begin()
    thread = threading.get_ident()
    _modes[thread] = _modes.get(thread, 0) + 1
    found.__enter__()
    return found


def end(found: Any) -> None:
    found.__exit__(None, None, None)
    thread = threading.get_ident()
    _modes[thread] = max(0, _modes.get(thread, 0) - 1)
    Numpy.end()


def is_mode(code: CodeType) -> bool:
    """Whether a frame is that of the mode: its variables are then the very call."""
    return code.co_name == "__torch_function__" and code.co_filename == __file__
