"""The way to LAPACK, which NumPy brings: matrices of the cpu, float32 or float64, one or a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import misshapen, need_array


class LinAlgError(RuntimeError):
    """A matrix has no such factorization or inverse."""


LinAlgError.__module__ = "devtensor.linalg"

Names = tuple[str, ...]
Arrays = tuple[DeviceArray, ...]


def check(op: str, names: Names, arrays: Arrays, least: int = 2) -> None:
    """Raises what is wrong about devices, dtypes or the rank of the first array."""
    for name, x in zip(names, arrays, strict=True):
        need_array(op, name, x)
    _C._check_devices(op, names, arrays)
    _C._check_dtypes(op, names, arrays)
    if arrays[0].dtype not in (_C.float32, _C.float64):
        _C._fail_dtype(op, names, arrays, 0, "float32 and float64")
    _C._check_rank(op, names, arrays, 0, least, 8)


def check_square(op: str, names: Names, arrays: Arrays) -> None:
    rows, columns = arrays[0].shape[-2:]
    if rows != columns:
        text = f"linalg.{op}: {names[0]} must be batches of square matrices, but they are {rows} by {columns} matrices"
        raise misshapen(op, names, arrays, text, 0)


def on_cpu(op: str, names: Names, arrays: Arrays) -> None:
    """Raises NotImplementedError for arrays of a CUDA device: the last check.

    A program that runs --as-torch gets copies on the cpu and back, which are reported like every other.
    """
    if arrays[0].is_cuda and not _C._as_torch():
        text = f"linalg.{op}: LAPACK computes it on the cpu alone: give it {names[0]}.cpu(), and move the result back"
        raise _C._explained(op, names, arrays, "not-implemented", NotImplementedError(text), 0)


def numbers_of(x: DeviceArray) -> Any:
    """x as an array of NumPy with memory of its own."""
    return x.detach().to("cpu", copy=True).numpy()


def array_of(x: Any, device: _C.device) -> DeviceArray:
    import numpy as np

    return _C.from_numpy(np.asarray(x, order="C")).to(device, copy=True)


def computed(op: str, arrays: Arrays, function: Callable[..., Any], failure: str, names: Names = ("A",)) -> Any:
    """What function makes of NumPy's arrays. Raises LinAlgError where LAPACK finds nothing."""
    import numpy as np

    try:
        with np.errstate(all="ignore"):
            found = function(np, *(numbers_of(x) for x in arrays))
    except np.linalg.LinAlgError:
        text = f"linalg.{op}: {failure}"
        raise _C._explained(op, names[: len(arrays)], arrays, "invalid-argument", LinAlgError(text), 0) from None
    device = arrays[0].device
    return tuple(array_of(x, device) for x in found) if isinstance(found, tuple) else array_of(found, device)


def finite(np: Any, a: Any) -> Any:
    """a, if LAPACK's loops end with it."""
    if not np.isfinite(a).all():
        raise np.linalg.LinAlgError
    return a
