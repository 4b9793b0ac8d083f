"""Other arrays in the memory of one: as_strided."""

from __future__ import annotations

from collections.abc import Sequence

from devtensor import _C
from devtensor._C import DeviceArray, _need_int, _need_ints
from devtensor._composed.arguments import misshapen, need_array
from devtensor._composed.shapes.exchanged import check_free, exchanged


def _view(
    op: str, input: DeviceArray, size: Sequence[int], stride: Sequence[int], storage_offset: int | None
) -> DeviceArray:
    """The view, after all checks."""
    need_array(op, "input", input)
    sizes, steps = _need_ints(op, "size", size), _need_ints(op, "stride", stride)
    begin = input.storage_offset() if storage_offset is None else _need_int(op, "storage_offset", storage_offset)
    if len(sizes) != len(steps):
        raise RuntimeError(f"{op}(): mismatch in length of strides and shape: got {len(steps)} for {len(sizes)} sizes")
    for name, numbers in (("size", sizes), ("stride", steps), ("storage_offset", (begin,))):
        if any(n < 0 for n in numbers):
            raise RuntimeError(f"{op}(): {name} must hold numbers from 0, but got {_C._shown(numbers)}")
    if len(sizes) > 8:
        raise RuntimeError(f"{op}(): size must hold at most 8 sizes, but got {len(sizes)}")
    try:
        found = _C._strided(input, input.dtype, sizes, steps, begin * input.dtype.itemsize)
    except (OverflowError, ValueError):
        held = _C._storage(input)[1] // input.dtype.itemsize
        text = (
            f"{op}(): size {sizes}, stride {steps} and storage_offset {begin} are out of bounds for the memory of "
            f"input, which holds {held} elements"
        )
        raise misshapen(op, ("input",), (input,), text, 0) from None
    return found


def as_strided(
    input: DeviceArray, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> DeviceArray:
    """A view of the memory of input: element (i, j, ...) lies storage_offset + i * stride[0] + j * stride[1] ... in it.

    storage_offset, by default that of input, counts elements from the begin of the memory. Elements may share memory.
    The gradient of an element of input is the sum of those of the elements that lie on it. Raises ShapeMismatchError
    for what does not lie in the memory, RuntimeError for negative numbers, and for another count of strides than sizes.

    >>> dt.as_strided(dt.arange(4), (3, 2), (1, 1))
    DeviceArray([[0, 1],
                 [1, 2],
                 [2, 3]], device='cpu', dtype=int64)
    """
    return _view("as_strided", input, size, stride, storage_offset)


def as_strided_(
    input: DeviceArray, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> DeviceArray:
    """Gives input itself other sizes and strides in its memory, see as_strided, and returns input.

    Raises GradientError where gradients flow to input, and what as_strided raises.

    >>> dt.arange(4).as_strided_((2,), (2,))
    DeviceArray([0, 2], device='cpu', dtype=int64)
    """
    check_free("as_strided_", input)
    return exchanged(input, _view("as_strided_", input, size, stride, storage_offset))


__all__ = [
    "as_strided",
]
METHODS = (
    as_strided,
    as_strided_,
)
