"""What the composed ops check and convert before they begin."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_ints
from devtensor._composed.written import method_of
from devtensor._errors import ShapeMismatchError

_HALVES = (_C.float16, _C.bfloat16)


def need_array(op: str, name: str, value: DeviceArray) -> None:
    """Raises TypeError, as a compiled op does, for a value that is not an array."""
    _C._check_rank(op, (name,), (value,), 0, 0, 8)


def widened(x: DeviceArray) -> DeviceArray:
    """The dtype that sums are formed in: float32 for the half types."""
    return x.to(_C.float32) if x.dtype in _HALVES else x


def for_kernel(x: DeviceArray, *others: DeviceArray | None) -> tuple[DeviceArray, list[DeviceArray | None]]:
    """x and others as a kernel of many steps takes them: widened, or where no gradient is recorded on a GPU, whose
    kernels widen what they read, as they are."""
    recorded = _C.is_grad_enabled() and any(a is not None and a.requires_grad for a in (x, *others))
    if x.is_cuda and not recorded:
        return x, list(others)
    return widened(x), [None if a is None else widened(a) for a in others]


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
    groups = [(names[:8], arrays[:8])]  # an error holds no more of them
    groups += [((names[0], names[k]), (arrays[0], arrays[k])) for k in range(8, len(arrays))]
    for named, given in groups:
        _C._check_devices(op, named, given)
        if dtypes:
            _C._check_dtypes(op, named, given)


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


def broadcast_shape(*arrays: DeviceArray) -> tuple[int, ...]:
    """The shape that arrays broadcast to, which has been checked."""
    shape = arrays[0].shape
    if all(x.shape == shape for x in arrays):
        return tuple(shape)
    ndim = max(x.ndim for x in arrays)
    shapes = [(1,) * (ndim - x.ndim) + tuple(x.shape) for x in arrays]
    return tuple(next((n for n in sizes if n != 1), 1) for sizes in zip(*shapes, strict=True))


def in_place(function: Callable[..., DeviceArray]) -> Callable[..., DeviceArray]:
    """The op that writes what function gives into its first array, whose method it will be."""
    function = method_of(function)
    op = function.__name__
    signature = inspect.signature(function)
    parameters = [name for name in signature.parameters if name != "out"]

    @functools.wraps(function)
    def _write(input: DeviceArray, *args: Any, **options: Any) -> DeviceArray:
        need_array(op, "input", input)
        if "out" in options:
            raise TypeError(f"{op}_() got an unexpected keyword argument 'out'")
        result = function(input, *args, **options)
        given = dict(zip(parameters, (input, *args), strict=False)) | options
        arrays = {name: value for name, value in given.items() if isinstance(value, DeviceArray)}
        _C._check_in_place(op, tuple(arrays), tuple(arrays.values()), result.dtype, result.shape)
        return input.copy_(result)

    _write.__name__ = _write.__qualname__ = f"{op}_"
    if "out" in signature.parameters:
        kept = [signature.parameters[name] for name in parameters]
        _write.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    _write.__doc__ = f"{op}, written into input."
    return _write
