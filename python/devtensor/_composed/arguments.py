"""What the composed ops check and convert before they begin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_ints
from devtensor._errors import ShapeMismatchError

_HALVES = (_C.float16, _C.bfloat16)


def need_array(op: str, name: str, value: DeviceArray) -> None:
    """Raises TypeError, as a compiled op does, for a value that is not an array."""
    _C._check_rank(op, (name,), (value,), 0, 0, 8)


def widened(x: DeviceArray) -> DeviceArray:
    """The dtype that sums are formed in: float32 for the half types."""
    return x.to(_C.float32) if x.dtype in _HALVES else x


def need_sizes(op: str, name: str, value: object) -> tuple[int, ...]:
    """value, an int or a sequence of them, as a tuple. Raises RuntimeError for a negative one."""
    sizes = _need_ints(op, name, value)
    if any(size < 0 for size in sizes):
        raise RuntimeError(f"{op}: {name} must hold sizes from 0, but got {sizes}")
    return sizes


def need_entries(op: str, name: str, value: object) -> tuple[tuple[str, ...], tuple[DeviceArray, ...]]:
    """The names of the arrays in a list or tuple, as errors speak of them, and the arrays. Raises TypeError."""
    if isinstance(value, (DeviceArray, str)) or not isinstance(value, Sequence):
        text = f"{op}(): argument '{name}' must be a tuple or list of DeviceArrays, not {type(value).__name__}"
        raise TypeError(text)
    entries = tuple(value)
    for k, entry in enumerate(entries):
        if not isinstance(entry, DeviceArray):
            text = f"{op}(): argument '{name}' must hold DeviceArrays, but entry {k} is {type(entry).__name__}"
            raise TypeError(text)
    return tuple(f"{name}[{k}]" for k in range(len(entries))), entries


def check_entries(op: str, names: tuple[str, ...], arrays: tuple[DeviceArray, ...], dtypes: bool = False) -> None:
    """Raises DeviceMismatchError for entries of several devices, with dtypes DTypeMismatchError too."""
    _C._check_same(op, names[:8], arrays[:8], dtypes)
    for k in range(8, len(arrays)):  # an error holds no more of them
        _C._check_same(op, (names[0], names[k]), (arrays[0], arrays[k]), dtypes)


def misshapen(
    op: str,
    names: Sequence[str],
    arrays: Sequence[DeviceArray],
    text: str,
    culprit: int = -1,
    code: str = "shape-mismatch",
) -> Exception:
    """The ShapeMismatchError with this text and the shapes of all arrays, of which one is to blame."""
    shapes = ", ".join(f"{name} {tuple(x.shape)}" for name, x in zip(names, arrays, strict=False))
    error = ShapeMismatchError(f"{text} ({op}: {shapes})")
    return _C._explained(op, tuple(names[:8]), tuple(arrays[:8]), code, error, culprit)


def dims_of(
    op: str, dim: Any, ndim: int, input: DeviceArray | None = None, name: str = "dim", of: str = "input"
) -> tuple[int, ...]:
    """dim, an int, some of them or None for all, counted from the front. Errors speak of input, by its name `of`."""
    if dim is None:
        return tuple(range(ndim))
    wanted = _need_ints(op, name, dim)
    most = max(ndim, 1)
    for d in wanted:
        if not -most <= d < most:
            text = f"Dimension out of range (expected to be in range of [{-most}, {most - 1}], but got {d})"
            raise _C._explained(op, (of,), (input,), "dimension-out-of-range", IndexError(text))
    found = tuple(d % most for d in wanted)
    for d in found:
        if found.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims of {op}")
    return found or tuple(range(ndim))


def dims_over(op: str, input: DeviceArray, dim: Any, axis: Any) -> tuple[int, ...]:
    """The dimensions that a reduction is over, which NumPy calls axis."""
    if dim is not None and axis is not None:
        raise TypeError(f"{op}() got multiple values for argument 'dim'")
    return dims_of(op, dim, input.ndim, input) if axis is None else dims_of(op, axis, input.ndim, input, "axis")


def kept(op: str, keepdim: bool, keepdims: bool | None) -> bool:
    return _need_bool(op, "keepdim", keepdim) if keepdims is None else _need_bool(op, "keepdims", keepdims)
