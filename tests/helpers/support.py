"""Arrays made from and read back to their bytes, with no conversion by anyone in between."""

from __future__ import annotations

import ctypes
import functools
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cases
import formats
import numpy as np
import pytest
import reference
from cases import Case, Operand
from formats import FORMATS, STORAGE

import devtensor as dt

HELPERS = Path(__file__).resolve().parent
ROOT = HELPERS.parents[1]
REAL = os.environ.get("DEVTENSOR_TEST_DEVICES") == "real"
ONE = REAL or os.environ.get("DEVTENSOR_TEST_DEVICES") == "one"
DEVICES = ("cpu", "cuda:0") if ONE else ("cpu", "cuda:0", "cuda:1")
CUDA_DEVICES = DEVICES[1:]
COMPILER = shutil.which("cc")
NO_COMPILER = "no C++ compiler on the path"
needs_compiler = pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)
RUNS_KERNELS = REAL or COMPILER is not None  # of users: a simulated GPU compiles them with the host's
needs_kernels = pytest.mark.skipif(not RUNS_KERNELS, reason=NO_COMPILER)


def skip_kernels(text: str) -> None:
    """Skips a test of this text if it has kernels that cannot be compiled."""
    if re.search("RawKernel|__global__", text) and not RUNS_KERNELS:
        pytest.skip(NO_COMPILER)


def name_of(dtype: Any) -> str:
    """ "float32" for dt.float32."""
    return str(dtype).rpartition(".")[2]


def from_bits(bits: np.ndarray, dtype: str, device: str = "cpu") -> dt.DeviceArray:
    """A contiguous array of these stored elements."""
    host = dt.empty(bits.shape, dtype=getattr(dt, dtype))
    stored = np.ascontiguousarray(bits, dtype=STORAGE[dtype])
    if stored.nbytes:
        ctypes.memmove(host.data_ptr(), stored.ctypes.data, stored.nbytes)
    return host.to(device)


def bits_of(x: dt.DeviceArray) -> np.ndarray:
    """The stored elements of an array on any device."""
    host = x.cpu().contiguous()
    raw = ctypes.string_at(host.data_ptr(), host.nbytes) if host.nbytes else b""
    return np.frombuffer(raw, dtype=STORAGE[name_of(x.dtype)]).reshape(tuple(x.shape))


def wide_of(x: dt.DeviceArray) -> np.ndarray:
    return formats.bits_to_wide(bits_of(x), name_of(x.dtype))


def lay_out(bits: np.ndarray, dtype: str, device: str, layout: str) -> dt.DeviceArray:
    """The same values in another arrangement of memory; what lies between them is poison."""
    if bits.ndim == 0 or layout == "contiguous":
        return from_bits(bits, dtype, device)
    if layout == "transposed":
        return from_bits(bits.T, dtype, device).permute(tuple(reversed(range(bits.ndim))))
    if layout == "sliced":
        raw = np.full((*bits.shape[:-1], 2 * bits.shape[-1] + 1), 0xFF, dtype=np.uint8)
        wide = np.repeat(raw[..., None], bits.itemsize, axis=-1).view(bits.dtype)[..., 0]
        wide = np.where(wide, wide, wide) if dtype != "bool" else np.ones_like(wide)
        wide[..., 1::2] = bits
        return from_bits(wide, dtype, device)[..., 1::2]
    if layout == "channels_last":
        if bits.ndim != 4:
            return from_bits(bits, dtype, device)
        return from_bits(np.moveaxis(bits, 1, -1), dtype, device).permute((0, 3, 1, 2))
    assert layout == "expanded"
    return from_bits(bits[:1], dtype, device).expand(bits.shape)


@dataclass(frozen=True)
class Answer:
    """A result of the reference, and the largest error allowed for each element."""

    values: np.ndarray
    dtype: str
    bound: np.ndarray | float


class Question:
    """A case at one dtype: wide operands, their dtypes ("" for numbers), stored elements and the right answers."""

    def __init__(self, case: Case, dtype: str, layout: str) -> None:
        self.case = case
        self.dtypes = [o.dtype or dtype if isinstance(o, Operand) else "" for o in case.operands]
        self.wide: list[Any] = [
            cases.make_values(o, dtype, f"{case.op}{i}", layout) if isinstance(o, Operand) else o
            for i, o in enumerate(case.operands)
        ]
        self.bits = [formats.wide_to_bits(w, d) if d else w for w, d in zip(self.wide, self.dtypes, strict=True)]

    @functools.cached_property
    def answers(self) -> list[Answer]:
        case = self.case
        dtypes = self.dtypes[1:] if case.op == "where" else self.dtypes
        if case.op in cases.VALUES:
            dtypes = [self.dtypes[cases.VALUES[case.op]]]
        args = [self.wide] if case.listed else self.wide
        found = reference.expected(case.op, args, dtypes, **case.parameters)
        many = found if isinstance(found, list) else [found]
        return [Answer(values, dtype, self.bound(values, dtype)) for values, dtype in many]

    def bound(self, want: np.ndarray, dtype: str) -> np.ndarray | float:
        if dtype not in FORMATS or not self.case.ulps:
            return 0.0
        case, form = self.case, FORMATS[dtype]
        magnitude = np.abs(np.where(np.isfinite(want), want, 0.0))
        allowed = case.ulps * form.eps * (magnitude + case.slack) + form.smallest
        entry = reference.OPS[case.op]
        if entry.sums:
            # a sum of products in any order, in float32 or float64 (gamma of Higham's analysis)
            accumulated = FORMATS["float64" if dtype == "float64" else "float32"].eps
            args = [np.abs(w.astype(np.float64)) if isinstance(w, np.ndarray) else abs(w) for w in self.wide]
            parameters = {k: v for k, v in case.parameters.items() if k != "dtype"}
            with np.errstate(all="ignore"):
                total = entry.function(*args, **parameters)
                terms = np.max(entry.function(*[np.ones_like(a) for a in args], **parameters), initial=16)
            allowed = allowed + float(terms) * accumulated * total
        return allowed


# Values differ between layouts only where elements have to be equal.
@functools.cache
def question(case: Case, dtype: str, expanded: bool) -> Question:
    return Question(case, dtype, "expanded" if expanded else "contiguous")


class Built:
    """A case at one dtype, device and layout: its operands, and a check of what the op makes of them."""

    def __init__(self, case: Case, dtype: str, device: str, layout: str = "contiguous") -> None:
        self.case, self.dtype, self.device, self.layout = case, dtype, device, layout
        self.question = question(case, dtype, layout == "expanded")
        self.operands: list[Any] = [
            lay_out(bits, own, device, layout) if own else bits
            for bits, own in zip(self.question.bits, self.question.dtypes, strict=True)
        ]

    @property
    def arrays(self) -> list[dt.DeviceArray]:
        return [x for x in self.operands if isinstance(x, dt.DeviceArray)]

    @property
    def parameters(self) -> dict[str, Any]:
        parameters = dict(self.case.parameters)
        if "dtype" in parameters:
            parameters["dtype"] = getattr(dt, parameters["dtype"])
        return parameters

    def call(self, **more: Any) -> Any:
        """The op as a function."""
        return call(self.case.op, self.operands, **self.parameters, **more)

    @property
    def answer(self) -> Answer:
        (one,) = self.question.answers
        return one

    def check(self, got: Any) -> None:
        """got has the dtype, the device and the values that the reference gives."""
        many = list(got) if isinstance(got, tuple | list) else [got]
        assert len(many) == len(self.question.answers)
        for one, want in zip(many, self.question.answers, strict=True):
            assert isinstance(one, dt.DeviceArray)
            assert name_of(one.dtype) == want.dtype
            assert str(one.device) == self.device
            assert tuple(one.shape) == want.values.shape
            assert_close(wide_of(one), want.values, want.bound)


def for_each(
    case: Case,
    device: str,
    body: Callable[[Built], None],
    layouts: Sequence[str] = (),
    only: Callable[[Case, str], bool] = lambda case, dtype: True,
) -> None:
    """Runs body at every dtype and layout of a case; says at which it failed."""
    wrong = []
    for dtype in case.dtypes:
        for layout in layouts or case.layouts:
            if layout in case.layouts and only(case, dtype):
                try:
                    body(Built(case, dtype, device, layout))
                except Exception as error:
                    wrong.append(f"{dtype}, {layout}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)


def call(op: str, operands: Sequence[Any], **parameters: Any) -> Any:
    function = getattr(dt, op, None)
    if function is None:  # shape ops that are only methods
        return getattr(operands[0], op)(*operands[1:], **parameters)
    if op in ("cat", "stack"):
        return function(list(operands), **parameters)
    return function(*operands, **parameters)


def assert_close(got: np.ndarray, want: np.ndarray, bound: np.ndarray | float = 0.0) -> None:
    """Equal within bound; NaN and infinities in the same places."""
    assert got.shape == want.shape
    if want.dtype == object:
        wrong = got != want
    else:
        got = got.astype(np.float64)
        with np.errstate(all="ignore"):
            same = (got == want) | (np.isnan(got) & np.isnan(want))
            wrong = ~same & ~(np.abs(got - want) <= bound)
    if np.any(wrong):
        places = np.argwhere(np.atleast_1d(wrong))
        first = tuple(places[0]) if got.ndim else ()
        limit = np.broadcast_to(bound, got.shape)[first]
        raise AssertionError(
            f"{len(places)} of {got.size} wrong, first at {[int(i) for i in first]}: got "
            f"{got[first]!r}, want {want[first]!r}, allowed {limit!r}"
        )


COUNTED = ("transfers", "bytes_to_device", "bytes_to_host", "bytes_between_devices")


@contextmanager
def no_transfers() -> Iterator[None]:
    """Nothing moves between devices inside."""
    before = dt._C.counters()
    yield
    after = dt._C.counters()
    moved = {name: after[name] - before[name] for name in COUNTED if after[name] != before[name]}
    assert not moved


@contextmanager
def calls(*symbols: str, synchronizations: int | None = None) -> Iterator[None]:
    """None of these outside functions is called inside, and the host waits so many times."""
    before, waits = dt._C._test.api_calls(), dt._C.counters()["synchronizations"]
    yield
    after = dt._C._test.api_calls()
    more = {s: after[s] - before[s] for s in symbols if after[s] != before[s]}
    assert more == {}, more
    if synchronizations is not None:
        assert dt._C.counters()["synchronizations"] - waits == synchronizations


def synchronize() -> None:
    """Waits for every device, so that errors and frees have happened."""
    for device in CUDA_DEVICES:
        dt.cuda.synchronize(device)


def stepped(x: dt.DeviceArray, grad: dt.DeviceArray, **options: Any) -> dt.DeviceArray:
    """x, to which an optimizer has added grad in place."""
    x.grad = grad
    dt.optim.SGD([x], lr=1.0, maximize=True, **options).step()
    x.grad = None
    return x


def counted(*symbols: str) -> int:
    """How often these outside functions were called so far."""
    calls = dt._C._test.api_calls()
    return sum(calls[symbol] for symbol in symbols)


def python_path() -> str:
    """For a child process that imports this package, helpers and tests."""
    own = [path for path in sys.path if Path(path).is_relative_to(HELPERS.parent)]
    return os.pathsep.join([*own, os.path.dirname(dt.__path__[0])])
