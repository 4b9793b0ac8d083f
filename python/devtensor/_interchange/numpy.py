"""What NumPy, and programs written for it, ask of an array: np.exp(x), np.sum(x), x.__array_interface__, round(x)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._errors import HostAccessError

# The methods that stand for a ufunc where a NumPy array or number is on the left.
_OPERATORS = {
    "add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "divide": "__rtruediv__",
    "floor_divide": "__rfloordiv__", "remainder": "__rmod__", "power": "__rpow__", "matmul": "__rmatmul__",
    "bitwise_and": "__rand__", "bitwise_or": "__ror__", "bitwise_xor": "__rxor__", "left_shift": "__rlshift__",
    "right_shift": "__rrshift__", "equal": "__eq__", "not_equal": "__ne__", "less": "__gt__", "less_equal": "__ge__",
    "greater": "__lt__", "greater_equal": "__le__",
}  # fmt: skip
_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def __array_ufunc__(self: DeviceArray, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """What NumPy calls for np.exp(x) and for array + x: the first is refused, the second is our operator's."""
    _need_function("__array_ufunc__", "ufunc", ufunc, ("numpy",))
    import numpy as np

    if method == "__call__" and not options and len(inputs) == 2 and type(inputs[0]).__module__ == "numpy":
        operator = getattr(inputs[1], _OPERATORS.get(ufunc.__name__, ""), None)
        left = inputs[0]
        if ufunc.__name__ in _COMPARISONS and left.ndim == 0:
            left = left[()]  # a number, of which NumPy makes an array before it compares
        if operator is not None and not (_C._as_torch() and isinstance(left, np.ndarray)):
            return operator(left)
    if _C._as_torch():
        return _by_numpy(ufunc, method, inputs, options)
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    raise _refusal(name, f"numpy.{name}", self, "" if ufunc.nin == 1 else ", ...")


def _by_numpy(ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What NumPy makes of arrays of the cpu, as arrays: PyTorch lets it, so a program that runs --as-torch gets it."""
    import numpy as np

    if any(isinstance(x, DeviceArray) for x in (*options.get("out", ()), *inputs[: method == "at"])):
        raise TypeError("return arrays must be of ArrayType: NumPy writes into its own arrays alone")
    given = [x.__array__() if isinstance(x, DeviceArray) else x for x in inputs]
    if isinstance(options.get("where"), DeviceArray):
        options["where"] = options["where"].__array__()
    found = getattr(ufunc, method)(*given, **options)
    if "out" in options or found is None:
        return found
    made = [_C.from_numpy(np.array(x)) for x in (found if isinstance(found, tuple) else (found,))]
    return tuple(made) if isinstance(found, tuple) else made[0]


def __array_function__(self: DeviceArray, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """What NumPy calls for np.sum(x). Functions that read x as any buffer of the host work; of the others it is told
    what to call instead."""
    _need_function("__array_function__", "func", func, ("numpy", "builtins"))
    try:
        return func._implementation(*args, **kwargs)
    except HostAccessError:
        raise
    except (AttributeError, TypeError, NotImplementedError) as error:
        name = func.__name__
        home = getattr(func, "__module__", "numpy")
        raise _refusal(name, f"{home}.{name}", self) from error


def _need_function(op: str, name: str, function: Any, homes: tuple[str, ...]) -> None:
    """homes: the packages that its type may come from."""
    if not callable(function) or type(function).__module__.partition(".")[0] not in homes:
        raise TypeError(f"{op}(): argument {name!r} must be a function of NumPy, not {type(function).__name__}")


def _refusal(name: str, full: str, array: DeviceArray, more: str = "") -> Exception:
    """The error that says what to write in place of a function of NumPy."""
    import devtensor

    ours = f"devtensor.{name}(x{more}), or " if name in devtensor.__all__ else ""
    instead = f"{ours}{full}(x.cpu().numpy(){more})"
    text = f"{name}(): NumPy's functions take NumPy arrays, and this is a DeviceArray: use {instead}"
    error: Exception = _C._explained(name, ("input",), (array,), "numpy-function", HostAccessError(text))
    return error


def _array_interface(self: DeviceArray) -> dict[str, Any]:
    """What NumPy's array interface, version 3, says of an array on the cpu: shape, typestr, strides, address.

    The address holds as long as the array has this memory. Raises AttributeError for other devices, for an array that
    requires a gradient, and for bfloat16, which NumPy has not.
    """
    if self.device.type != "cpu":
        raise AttributeError(f"an array on {self.device} has no __array_interface__: copy it with .cpu() first")
    if self.dtype is _C.bfloat16:
        raise AttributeError("__array_interface__ has no name for bfloat16: convert with .float() first")
    if self.requires_grad:
        raise AttributeError("an array that requires a gradient has no __array_interface__: use .detach() first")
    interface: dict[str, Any] = self.numpy().__array_interface__
    return interface


def __round__(self: DeviceArray, ndigits: int | None = None) -> DeviceArray:
    """round(x) and round(x, ndigits): dt.round, an array of the same dtype. Halves go to the even neighbour."""
    from devtensor import round as rounded

    return rounded(self) if ndigits is None else rounded(self, decimals=ndigits)


def __complex__(self: DeviceArray) -> complex:
    """The one element as a complex number of Python, which is read from its device."""
    return complex(self.item())


def __array_namespace__(self: DeviceArray, /, *, api_version: str | None = None) -> Any:
    """devtensor.array_api, the namespace of the array API standard. Raises ValueError for a version that it is not."""
    from devtensor import array_api

    if api_version is not None and api_version not in array_api.VERSIONS:
        known = ", ".join(array_api.VERSIONS)
        raise ValueError(f"__array_namespace__(): api_version must be one of {known}, not {_C._shown(api_version)}")
    return array_api


def to_device(self: DeviceArray, device: Any, *, stream: None = None) -> DeviceArray:
    """The array on a device: to(device), by the name of the array API standard. stream must be None.

    >>> dt.ones(2).to_device("cpu").device
    device(type='cpu')
    """
    if stream is not None:
        raise ValueError(
            "to_device(): a stream is chosen with `with devtensor.cuda.stream(s):`, so stream must be None"
        )
    return self.to(_C._need_device("to_device", "device", device))


def tobytes(self: DeviceArray) -> bytes:
    """The bytes of the elements in row-major order, a copy. Raises HostAccessError for an array on a device.

    >>> dt.tensor([1, 2], dtype=dt.uint8).tobytes()
    b'\\x01\\x02'
    """
    if self.device.type != "cpu":
        text = (
            f"can't read the bytes of an array on {self.device}. Use .cpu() to copy it to host memory first. (tobytes)"
        )
        raise _C._explained("tobytes", ("input",), (self,), "host-access", HostAccessError(text))
    data: bytes = self.data.contiguous().__reduce__()[1][2]  # as arrays are pickled
    return data


METHODS: tuple[Callable[..., Any], ...] = (
    __array_ufunc__,
    __array_function__,
    __array_namespace__,
    __complex__,
    __round__,
    to_device,
    tobytes,
)
ATTRIBUTES = {"__array_interface__": property(_array_interface)}
