"""Runs a program on the cpu and on the simulated GPU and says what is wrong with how it went."""

from __future__ import annotations

import array
import contextlib
import ctypes
import functools
import gc
import linecache
import math
import mmap
import pickle
import re
import signal
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import CodeType
from typing import Any

import numpy as np
from support import bits_of

import devtensor as dt
from fuzz import evil, hostile, reference
from fuzz.evil import Mischief
from fuzz.programs import EVERYTHING, Program

ALLOWED = (RuntimeError, TypeError, ValueError, IndexError, OverflowError, MemoryError, BufferError, Mischief)

# Other classes, by the call that documents them.
DOCUMENTED: dict[str, tuple[type[BaseException], ...]] = {
    **dict.fromkeys(
        ("__array_interface__", "__cuda_array_interface__"), (AttributeError,)
    ),  # so that hasattr() tells other libraries
    "from_cuda_array_interface": (AttributeError,),  # as every protocol that an object does not have
    "pickles": (pickle.UnpicklingError, EOFError, KeyError, AttributeError, ImportError, struct.error),  # pickle's own
    "loaders": (KeyError,),  # of the dataset that was given
    "default_collate": (KeyError,),
}

NAMES: dict[str, Any] = {
    **{name: value for room in (hostile, evil) for name, value in vars(room).items() if not name.startswith("_")},
    "Decimal": Decimal, "Fraction": Fraction, "dt": dt, "gc": gc, "array": array, "ctypes": ctypes,
    "inf": math.inf, "math": math, "mmap": mmap, "nan": math.nan, "np": np, "pickle": pickle,
}  # fmt: skip


@dataclass
class Outcome:
    """What came of one run: a value as it was read, or an error."""

    value: Any = None
    error: BaseException | None = None
    called: bool = False  # the arguments were made

    @property
    def kind(self) -> str:
        return "MemoryError" if isinstance(self.error, MemoryError) else type(self.error).__name__


def read(value: Any, depth: int = 0) -> Any:
    """A value as something to compare: arrays as dtype, shape and stored elements."""
    if type(value) in (dt.DeviceArray, dt.nn.Parameter, dt.nn.Buffer):
        return Stored(str(value.dtype), tuple(value.shape), bits_of(value.detach()))
    if isinstance(value, tuple | list) and depth < 3:
        return [read(v, depth + 1) for v in value]
    if isinstance(value, float | int | bool | str | bytes | type(None)):
        return value
    return type(value).__name__


@dataclass
class Stored:
    dtype: str
    shape: tuple[int, ...]
    bits: np.ndarray


@functools.lru_cache(8)  # each program is run on every device, and again where it may leak
def compiled(source: str) -> CodeType:
    return compile(source, "fuzz.py", "exec")


def run(program: Program, device: str) -> tuple[Outcome, dict[str, Any], dict[str, Any]]:
    """The outcome, what the names stood for before the call, and the arrays as they were then."""
    names = dict(NAMES, D=device)
    outcome = Outcome()
    before: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    source = program.source
    lines = len(program.lines)
    linecache.cache["fuzz.py"] = (len(source), None, source.splitlines(True), "fuzz.py")
    try:
        exec(compiled("\n".join(program.lines)), names)
        arrays = {name: names[name] for name in map("x{}".format, range(len(program.lines))) if name in names}
        before = {name: read(value) for name, value in arrays.items()}
        outcome.called = True
        exec(compiled("\n" * lines + f"result = {program.call}"), names)
        outcome.value = read(names.get("result"))
        dt.cuda.synchronize()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        outcome.error = error
        with contextlib.suppress(IndexError):  # of an earlier part of the call, which nobody waited for
            dt.cuda.synchronize()
    names.clear()
    return outcome, arrays, before


# ---------------------------------------------------------------- what may be wrong


def wrong_error(program: Program, outcome: Outcome) -> str:
    """An exception of a class that no caller expects, or one that cannot be shown or sent."""
    error = outcome.error
    if error is None:
        return ""
    if type(error).__module__ == "fuzz.evil":
        return ""
    if not isinstance(error, (*ALLOWED, *DOCUMENTED.get(program.path.rpartition(".")[2], ()))):
        if isinstance(error, NameError | KeyError) and "globals().clear" in program.source:
            return ""
        if isinstance(error, AttributeError) and str(error).startswith("'Masked' object"):
            return ""  # it says that it is an array and is none
        return f"{type(error).__name__}: {error}"
    try:
        text = str(error)
        if isinstance(error, dt.DeviceMismatchError | dt.DTypeMismatchError | dt.ShapeMismatchError):
            repr((error.operands, error.culprit, error.fix))
            pickle.loads(pickle.dumps(error))
    except Exception as inner:
        return f"{type(error).__name__} that cannot be shown: {type(inner).__name__}: {inner}"
    return "" if text or not isinstance(error, RuntimeError) else "an error without text"


def changed(program: Program, outcome: Outcome, arrays: dict[str, Any], before: dict[str, Any]) -> str:
    """An array that the call does not write and that is not what it was."""
    if program.writes == EVERYTHING or "Acts(" in program.source:
        return ""
    for name, was in before.items():
        if name in program.writes and (outcome.error is None or "cuda" in str(arrays[name].device)):
            continue
        if not same(was, read(arrays[name]), 0.0):
            return f"{name} was changed" + (" by a call that failed" if name in program.writes else "")
    return ""


def same(one: Any, other: Any, tolerance: float) -> bool:
    """Two results: floats within tolerance of the largest finite number among them, NaN and infinities in place."""
    if isinstance(one, Stored) and isinstance(other, Stored):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return False
        if one.bits.tobytes() == other.bits.tobytes():
            return True
        if "float" not in one.dtype:
            return False
        return near(floats(one), floats(other), min(tolerance, ULPS.get(one.dtype, 256)) * EPSILON[one.dtype])
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(a, b, tolerance) for a, b in zip(one, other, strict=True))
    if isinstance(one, str) and isinstance(other, str):
        return without_devices(one) == without_devices(other)
    if isinstance(one, float) and isinstance(other, float):
        return near(np.array([one]), np.array([other]), tolerance * 2.0**-10)
    return type(one) is type(other) and one == other


EPSILON = {"devtensor.float16": 2.0**-10, "devtensor.bfloat16": 2.0**-7, "devtensor.float32": 2.0**-23}
EPSILON["devtensor.float64"] = 2.0**-52
ULPS = {"devtensor.float16": 8, "devtensor.bfloat16": 8}


def floats(stored: Stored) -> np.ndarray:
    if stored.dtype.endswith("bfloat16"):
        return (stored.bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return stored.bits.view(stored.dtype.rpartition(".")[2]).astype(np.float64)


def near(one: np.ndarray, other: np.ndarray, allowed: float) -> bool:
    with np.errstate(all="ignore"):
        finite = np.abs(np.where(np.isfinite(one), one, 0.0))
        bound = allowed * max(float(finite.max(initial=0.0)), 1.0)
        close = (one == other) | (np.isnan(one) & np.isnan(other)) | (np.abs(one - other) <= bound)
    return bool(np.all(close))


def without_devices(text: str) -> str:
    text = re.sub(r"\s+", " ", text).replace("torch.cuda.", "torch.")  # x.type()
    text = re.sub(r"cuda(:\d+)?|cpu", "DEVICE", text)
    text = text.replace('.to("DEVICE")', "")
    text = re.sub(r",? ?device(=|\()(type=|)('|&#x27;)DEVICE('|&#x27;)(, index=0|)", "", text)
    return re.sub(r" +", " ", re.sub(r"0x[0-9a-f]+", "0x", text))


AFTER_NUMPYS_INDEX = {"NoneType", "DTypeMismatchError", "ShapeMismatchError", "IndexError"}


# Products of integers, and memory that can be page-locked: what is checked next differs too.
OF_THE_CPU_ALONE = re.compile(
    r"\"(matmul|mm|bmm|mv|dot)\" not implemented for '(u?int\d+|bool)'|only dense CPU tensors can be pinned"
)


def different(program: Program, cpu: Outcome, cuda: Outcome) -> str:
    """A result, or an error, that is another on the other device."""
    if program.differs or cpu.kind == "MemoryError" or cuda.kind == "MemoryError":
        return ""
    if "out of bounds for" in str(cpu.error) and cuda.error is not None:
        return ""  # a device reads an index after all else has been checked
    if OF_THE_CPU_ALONE.search(str(cuda.error)):
        return ""
    if cpu.kind in AFTER_NUMPYS_INDEX and "etitem: NumPy's" in str(cuda.error):
        return ""  # it is memory of the host: what else is wrong is not looked at
    if cpu.kind != cuda.kind:
        return f"cpu: {shown(cpu)}\ncuda: {shown(cuda)}"
    if "which tells it now" in str(cuda.error):  # late: whichever thread was first
        return ""
    if cpu.error is not None:
        texts = [without_devices(text_of(o.error)) for o in (cpu, cuda)]
        return "" if texts[0] == texts[1] else f"cpu: {text_of(cpu.error)}\ncuda: {text_of(cuda.error)}"
    return "" if same(cpu.value, cuda.value, 256.0) else f"cpu: {shown(cpu)}\ncuda: {shown(cuda)}"


def text_of(error: BaseException | None) -> str:
    try:
        return "\n".join([str(error), *getattr(error, "__notes__", ())])
    except Exception:
        return ""


def shown(outcome: Outcome) -> str:
    if outcome.error is not None:
        return f"{outcome.kind}: {str(outcome.error)[:300]}"
    if isinstance(outcome.value, Stored):
        stored = outcome.value
        values = floats(stored) if "float" in stored.dtype else stored.bits
        return f"{stored.dtype} {stored.shape} {values.reshape(-1)[:12].tolist()}"
    return repr(outcome.value)[:300]


# ---------------------------------------------------------------- state of the process


class State:
    """What calls change for the whole process; put back after each."""

    def __init__(self) -> None:
        self.threads = dt.get_num_threads()
        self.limit = dt.cuda.workspace_limit()
        dt._C._test.lend_simulated(True)  # arrays to the fuzzer of interfaces
        self.restore()

    def restore(self) -> None:
        dt.set_default_device("cpu")
        dt.set_default_dtype(dt.float32)
        dt.set_num_threads(self.threads)
        dt.set_float32_precision("highest")
        dt.set_error_detail("full")
        dt.cuda.set_stream(dt.cuda.default_stream(0))
        dt.cuda.set_per_process_memory_fraction(1.0, 0)
        dt.cuda.set_workspace_limit(self.limit)
        dt.cuda.tune(False)
        dt.manual_seed(0)

    def healthy(self) -> str:
        """Whether devices work and nothing was written beside a buffer."""
        try:
            dt.cuda.synchronize(0)
            x = dt.ones(3, device="cuda:0")
            if (x + x).tolist() != [2, 2, 2] or (x.cpu() * 3).tolist() != [3, 3, 3]:
                return "wrong results after the call"
        except Exception as error:
            return f"a device was lost: {type(error).__name__}: {error}"
        return "" if dt._C._test.guard_violations() == 0 else "written next to a buffer"


def held() -> tuple[int, int]:
    return dt._C._test.live_blocks(), len(evil.ALIVE)


REPETITIONS = 24  # blocks are kept for later, but not so many of a kind


def leaked(program: Program, state: State, base: tuple[int, int], seconds: float) -> str:
    """What a call that is over still holds. Caches grow when a call is new: only what each repetition adds counts.

    Each repetition has as many seconds of the processor as the call had; 0: any number.
    """
    dt.cuda.synchronize()
    if held()[1] > base[1]:
        gc.collect()
    if held()[1] > base[1]:
        return f"{held()[1] - base[1]} arguments are never freed"
    grown = held()[0] > base[0]
    for collecting in [*[False] * (REPETITIONS - 1), True]:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        before = held()[0]
        for device in ("cpu", "cuda:0") if grown else ():
            run(program, device)
            state.restore()
        if grown:
            dt.cuda.synchronize()
        if collecting and held()[0] > before:
            gc.collect()
        grown = grown and held()[0] > before
    return "each call leaves more blocks" if grown else ""


def judge(program: Program, state: State) -> str:
    """What is wrong with a program; "" for nothing."""
    found: list[str] = []
    outcomes = []

    def note(what: Callable[[], str], device: str) -> None:
        text = what()
        if text:
            found.append(f"[{device}] {text}")

    for device in ("cpu", "cuda:0"):
        outcome, arrays, before = run(program, device)
        state.restore()
        note(lambda o=outcome: wrong_error(program, o), device)  # type: ignore[misc]
        note(state.healthy, device)
        if outcome.called and not found:
            note(lambda o=outcome, a=arrays, b=before: changed(program, o, a, b), device)  # type: ignore[misc]
        outcomes.append(outcome)
        arrays.clear()
    if not found:
        note(lambda: different(program, *outcomes), "cpu, cuda:0")
        note(lambda: reference.differs(program, outcomes[0]), "NumPy")
    return "\n".join(found)


def judged(program: Program, state: State) -> str:
    base, (seconds, _) = held(), signal.getitimer(signal.ITIMER_PROF)
    try:
        found = judge(program, state)
    except MemoryError:  # there was no room to read a large result once more
        state.restore()
        return state.healthy()
    return found or leaked(program, state, base, seconds)
