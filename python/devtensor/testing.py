"""Help for tests: simulated devices, comparison, arrays to test with."""

from __future__ import annotations

from devtensor import _C, _transfers, cuda
from devtensor._composed.arguments import need_sizes
from devtensor._types import ArrayLike, Device, DType

__all__ = [
    "assert_close",
    "devices",
    "make_array",
    "reset_simulated",
    "simulate_cuda",
]


def __dir__() -> list[str]:
    return __all__


# Relative and absolute tolerance by dtype, PyTorch's; everything else is compared exactly.
_TOLERANCES = {
    _C.float16: (1e-3, 1e-5),
    _C.bfloat16: (1.6e-2, 1e-5),
    _C.float32: (1.3e-6, 1e-5),
    _C.float64: (1e-7, 1e-7),
}

_SHOWN = 5  # elements that assert_close shows


def simulate_cuda(devices: int = 1, memory: int | None = None, *, races: bool | str | None = None) -> None:
    """Make "cuda" mean simulated devices of `memory` bytes each, before the first use of CUDA.

    races=True looks for work of several streams, and of the host, that uses the same memory in no order: a call that
    does so raises CudaError, code "stream-race". races="strict" also counts what only devtensor put in order, without a
    word of the program, which PyTorch, CuPy and CUDA would not. None is as DEVTENSOR_SIM_RACES says (0, 1 or strict).
    It may be switched on and off later by a call for the same devices. See docs/races.md.

    Raises RuntimeError when other devices are in use already.

    >>> dt.testing.simulate_cuda(2)  # doctest: +SKIP
    """
    if memory is not None and memory <= 0:
        raise ValueError(f"memory must be positive, not {memory}")
    if races not in (None, False, True, "strict"):
        raise ValueError(f"races must be True, False or 'strict', not {races!r}")
    mode = -1 if races is None else 2 if races == "strict" else int(bool(races))
    _C._simulate_cuda(devices, memory or 0, mode)


def reset_simulated() -> None:
    """Make simulated devices usable again after a kernel of yours went out of bounds there, or ran too long.

    Arrays keep the bytes that they have; work that was queued behind the fault is dropped. Memory of arrays that ended
    while the device was lost stays taken. Raises DeviceNotAvailableError where the devices are not simulated: a real
    GPU that is lost stays so until the process ends.

    >>> dt.testing.reset_simulated()
    """
    _C._reset_simulated()


def devices() -> list[str]:
    """The devices there are: "cpu", and "cuda:0" and so on.

    >>> dt.testing.devices()
    ['cpu', 'cuda:0', 'cuda:1']
    """
    return ["cpu", *(f"cuda:{i}" for i in range(cuda.device_count()))]


def make_array(
    *shape: int,
    dtype: DType | None = None,
    device: Device | None = None,
    low: float | None = None,
    high: float | None = None,
    seed: int = 0,
) -> _C.DeviceArray:
    """Random numbers of any dtype in [low, high); the same for the same seed, on every device.

    Floats are in [-9, 9) by default, ints in [-9, 10), uint8 in [0, 10).

    >>> dt.testing.make_array(2, 3, dtype=dt.int8).shape
    (2, 3)
    """
    op = "make_array"
    size = need_sizes(op, "shape", shape)
    low = None if low is None else _C._need_number(op, "low", low)
    high = None if high is None else _C._need_number(op, "high", high)
    kind = _C.get_default_dtype() if dtype is None else _C._need_dtype(op, "dtype", dtype)
    device = None if device is None else _C._need_device(op, "device", device)
    generator = _C.Generator().manual_seed(_C._need_int(op, "seed", seed))
    if kind is _C.bool:
        return _C.randint(0, 2, size, generator=generator, dtype=_C.uint8, device=device).bool()
    if not kind.is_floating_point:
        first = (0 if kind is _C.uint8 else -9) if low is None else int(low)
        last = 10 if high is None else int(high)
        return _C.randint(first, last, size, generator=generator, dtype=kind, device=device)
    first_float, last_float = -9.0 if low is None else low, 9.0 if high is None else high
    uniform = _C.rand(size, generator=generator, dtype=_C.float64, device=device)
    return (uniform * (last_float - first_float) + first_float).to(kind)


def assert_close(
    actual: ArrayLike,
    expected: ArrayLike,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    msg: str | None = None,
) -> None:
    """Raise AssertionError unless shape, dtype, device and values agree; the message has the worst elements.

    Each of the two may also be a NumPy array, a number or a list. Tolerances follow the dtype; both or none are given.
    Allowed inside of forbid_transfers, as the values are compared on the cpu.

    >>> dt.testing.assert_close(dt.tensor([1.0]), dt.tensor([1.0 + 1e-7]))
    """
    __tracebackhide__ = True  # pytest and IPython end the traceback at the caller's line
    op = "assert_close"
    rtol = None if rtol is None else _C._need_number(op, "rtol", rtol)
    atol = None if atol is None else _C._need_number(op, "atol", atol)
    equal_nan = _C._need_bool(op, "equal_nan", equal_nan)
    check_device = _C._need_bool(op, "check_device", check_device)
    check_dtype = _C._need_bool(op, "check_dtype", check_dtype)
    if msg is not None:
        _C._need_str(op, "msg", msg)
    if (rtol is None) != (atol is None):
        raise ValueError("rtol and atol are given together or not at all")
    a, b = _C.asarray(actual), _C.asarray(expected)
    with _transfers.allow_transfers():
        problem = _difference(a, b, rtol, atol, equal_nan, check_device, check_dtype)
    if problem:
        raise AssertionError(f"{msg}\n{problem}" if msg else problem)


def _difference(
    a: _C.DeviceArray,
    b: _C.DeviceArray,
    rtol: float | None,
    atol: float | None,
    equal_nan: bool,
    check_device: bool,
    check_dtype: bool,
) -> str | None:
    if a.shape != b.shape:
        return f"The values for attribute 'shape' do not match: {a.shape} != {b.shape}."
    if check_device and a.device != b.device:
        return f"The values for attribute 'device' do not match: {a.device} != {b.device}."
    if check_dtype and a.dtype != b.dtype:
        return f"The values for attribute 'dtype' do not match: {a.dtype} != {b.dtype}."
    if rtol is None or atol is None:
        pairs = [_TOLERANCES.get(x.dtype, (0.0, 0.0)) for x in (a, b)]
        rtol, atol = (max(column) for column in zip(*pairs, strict=True))
    wide = _C.float64 if a.dtype.is_floating_point or b.dtype.is_floating_point else _C.int64
    x, y = a.to("cpu", wide), b.to("cpu", wide)
    close = _C.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if bool(close.all()):
        return None
    wrong = close.numel() - int(close.sum())
    allowed = f"up to {atol} + {rtol} * |expected| allowed" if rtol or atol else "none allowed"
    lines = [f"Mismatched elements: {wrong} / {close.numel()} ({wrong / close.numel():.1%}); {allowed}"]
    return "\n".join(lines + _worst(x, y, close, rtol, atol))


def _worst(x: _C.DeviceArray, y: _C.DeviceArray, close: _C.DeviceArray, rtol: float, atol: float) -> list[str]:
    """A table of the elements that are furthest off what is allowed; NaN and infinities before all others."""
    excess = ((x - y).abs() - y.abs() * rtol - atol).double()
    excess = _C.where(excess.isfinite(), excess, float("inf"))
    excess = _C.where(close, -float("inf"), excess).flatten()
    rows = [("index", "actual", "expected", "difference")]
    while len(rows) <= _SHOWN and excess.max().item() > -float("inf"):
        place = int(excess.argmax())
        excess[place] = -float("inf")
        actual, expected = x.flatten()[place].item(), y.flatten()[place].item()
        a, b = (f"{v:.9g}" if isinstance(v, float) else str(v) for v in (actual, expected))
        rows.append((str(_index(place, x.shape)), a, b, f"{abs(actual - expected):.3g}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(["", *map(str.ljust, row, widths)]).rstrip() for row in rows]


def _index(place: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index of an element by its place in row-major order."""
    index: list[int] = []
    for size in reversed(shape):
        index.insert(0, place % size)
        place //= size
    return tuple(index)
