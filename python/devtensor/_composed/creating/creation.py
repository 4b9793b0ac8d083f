"""New arrays that others make: randint_like, scalar_tensor, empty_strided."""

from __future__ import annotations

from collections.abc import Sequence

from devtensor import _C, _memory_formats
from devtensor._C import DeviceArray, Generator, _need_bool, _need_int, _need_ints, _need_number
from devtensor._composed.arguments import need_array
from devtensor._composed.written import made_as_asked
from devtensor._memory_formats import layout
from devtensor._types import Device, DType

_MOST = 2**63 - 1


@made_as_asked
def randint_like(
    input: DeviceArray,
    low: int = 0,
    high: int | None = None,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
    layout: layout | None = None,
    memory_format: _memory_formats.memory_format | None = None,
) -> DeviceArray:
    """Integers from low to high - 1 in the shape of input, each as probable; with one bound, which is high, from 0.

    dtype, device and the strides of dense arrays are those of input where no others are named. The numbers of a seed
    are the same on every device. Raises RuntimeError unless low < high, for bounds that dtype does not hold, and for a
    memory_format of another number of dimensions.

    >>> dt.randint_like(dt.ones(2, 3), 5).shape
    (2, 3)
    """
    op = "randint_like"
    need_array(op, "input", input)
    first = _need_int(op, "low", low)
    last = None if high is None else _need_int(op, "high", high)
    first, last = (0, first) if last is None else (first, last)
    wanted = input.dtype if dtype is None else _C._need_dtype(op, "dtype", dtype)
    place = input.device if device is None else _C._need_device(op, "device", device)
    recorded = _need_bool(op, "requires_grad", requires_grad)
    drawn = _C._need_generator(op, "generator", generator)
    if memory_format is not None and not isinstance(memory_format, _memory_formats.memory_format):
        text = f"argument 'memory_format' must be a memory_format, not {_C._shown(memory_format)}"
        raise TypeError(f"{op}(): {text}")
    if first >= last:
        raise RuntimeError(f"{op} expects 'from' to be less than 'to', but got from={first} >= to={last}")
    laid = None
    if memory_format is not None or not input.is_contiguous():
        laid = _C.empty_like(input, dtype=wanted, device=place, memory_format=memory_format)
    result = _C.randint(first, last, tuple(input.shape), generator=drawn, dtype=wanted, device=place)
    result = result if laid is None else laid.copy_(result)
    return result.requires_grad_() if recorded else result


@made_as_asked
def scalar_tensor(
    s: float,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
    layout: layout | None = None,
) -> DeviceArray:
    """A 0-dimensional array of the number s, of the default dtype where none is given.

    >>> dt.scalar_tensor(3)
    DeviceArray(3., device='cpu', dtype=float32)
    """
    op = "scalar_tensor"
    wanted = _C.get_default_dtype() if dtype is None else _C._need_dtype(op, "dtype", dtype)
    place = None if device is None else _C._need_device(op, "device", device)
    recorded = _need_bool(op, "requires_grad", requires_grad)
    return _C.full((), _need_number(op, "s", s), dtype=wanted, device=place, requires_grad=recorded)


@made_as_asked
def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
    layout: layout | None = None,
) -> DeviceArray:
    """An array of these strides, in elements, whose contents are undefined. Elements may share memory.

    Raises RuntimeError for negative numbers, for another count of strides than sizes, and for more memory than can be
    named; MemoryError or OutOfMemoryError.

    >>> dt.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    return strided_of("empty_strided", size, stride, dtype, device, requires_grad)


def strided_of(
    op: str,
    size: Sequence[int],
    stride: Sequence[int],
    dtype: DType | None,
    device: Device | None,
    requires_grad: bool,
) -> DeviceArray:
    """empty_strided of an op of that name."""
    sizes, steps = _need_ints(op, "size", size), _need_ints(op, "stride", stride)
    wanted = _C.get_default_dtype() if dtype is None else _C._need_dtype(op, "dtype", dtype)
    place = None if device is None else _C._need_device(op, "device", device)
    recorded = _need_bool(op, "requires_grad", requires_grad)
    if len(sizes) != len(steps):
        raise RuntimeError(
            f"{op}: dimensionality of sizes ({len(sizes)}) must match dimensionality of strides ({len(steps)})"
        )
    for name, numbers in (("size", sizes), ("stride", steps)):
        if any(n < 0 for n in numbers):
            raise RuntimeError(f"{op}: {name} must hold numbers from 0, but got {_C._shown(numbers)}")
    if len(sizes) > 8:
        raise RuntimeError(f"{op}: size must hold at most 8 sizes, but got {len(sizes)}")
    reach = 0 if 0 in sizes else 1 + sum((n - 1) * step for n, step in zip(sizes, steps, strict=True))
    if reach > _MOST // wanted.itemsize:
        raise RuntimeError(f"{op}: storage size calculation overflowed with size={sizes} and stride={steps}")
    memory = _C.empty(reach, dtype=wanted, device=place)
    result = _C._strided(memory, wanted, sizes, steps, 0)
    return result.requires_grad_() if recorded else result


__all__ = [
    "empty_strided",
    "randint_like",
    "scalar_tensor",
]
