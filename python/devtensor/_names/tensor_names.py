"""Methods and attributes of old programs: x.new(2, 3), x.nelement(), x.layout."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import need_array
from devtensor._memory_formats import layout, strided


def nelement(input: DeviceArray) -> int:
    """numel().

    >>> dt.ones(2, 3).nelement()
    6
    """
    return input.numel()


def ndimension(input: DeviceArray) -> int:
    """dim().

    >>> dt.ones(2, 3).ndimension()
    2
    """
    return input.dim()


def new(input: DeviceArray, *args: Any, device: Any = None) -> DeviceArray:
    """An array of the dtype and on the device of input: of sizes (contents undefined), or of numbers in a sequence.

    >>> dt.ones(2, dtype=dt.float64).new([1, 2])
    DeviceArray([1., 2.], device='cpu', dtype=float64)
    """
    place = input.device if device is None else _C._need_device("new", "device", device)
    if len(args) == 1 and isinstance(args[0], DeviceArray):
        return args[0].to(place, input.dtype).detach()
    if len(args) == 1 and not isinstance(args[0], (int, _C.Size)):
        return _C.tensor(args[0], dtype=input.dtype, device=place)
    return _C.empty(*(args or (0,)), dtype=input.dtype, device=place)


def new_tensor(
    input: DeviceArray,
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
) -> DeviceArray:
    """tensor(data) of the dtype and on the device of input, where others are not given: a copy.

    >>> dt.ones(2, dtype=dt.float64).new_tensor([1, 2])
    DeviceArray([1., 2.], device='cpu', dtype=float64)
    """
    op = "new_tensor"
    dtype = input.dtype if dtype is None else _C._need_dtype(op, "dtype", dtype)
    device = input.device if device is None else _C._need_device(op, "device", device)
    requires_grad = _C._need_bool(op, "requires_grad", requires_grad)
    pinned = pin_memory is not None and _C._need_bool(op, "pin_memory", pin_memory)
    return _C.tensor(data, dtype=dtype, device=device, requires_grad=requires_grad, pin_memory=pinned)


def is_complex(input: DeviceArray) -> bool:
    """False: there are no complex numbers.

    >>> dt.is_complex(dt.ones(2))
    False
    """
    need_array("is_complex", "input", input)
    return False


def is_signed(input: DeviceArray) -> bool:
    """Whether the dtype of input has negative numbers.

    >>> dt.ones(2, dtype=dt.uint8).is_signed()
    False
    """
    need_array("is_signed", "input", input)
    return input.dtype not in (_C.uint8, _C.bool)


def get_device(input: DeviceArray) -> int:
    """The index of the CUDA device of input; -1 on the cpu.

    >>> dt.get_device(dt.ones(2))
    -1
    """
    need_array("get_device", "input", input)
    index = input.device.index
    return -1 if index is None or not input.is_cuda else index


def positive(input: DeviceArray) -> DeviceArray:
    """input itself. Raises DTypeMismatchError for bools.

    >>> dt.positive(dt.tensor([-1.0]))
    DeviceArray([-1.], device='cpu', dtype=float32)
    """
    need_array("positive", "input", input)
    if input.dtype == _C.bool:
        _C._fail_dtype("positive", ("input",), (input,), 0, "numbers")
    return input


def _of_host(op: str, arrays: Iterable[DeviceArray], function: object) -> None:
    for array in arrays:
        if array.device.type != "cpu":
            text = f"{op}(): a Python function sees elements on the cpu only: use ops, or x.cpu().{op}(...)"
            raise _C._explained(op, ("input",), (array,), "host-access", RuntimeError(text))
    if not callable(function):
        raise TypeError(f"{op}(): argument 'callable' must be a function, not {type(function).__name__}")


def apply_(input: DeviceArray, callable: Callable[[Any], float]) -> DeviceArray:
    """callable(x) in place of each element x, one after the other: slow, on the cpu only. RuntimeError elsewhere.

    >>> dt.tensor([1.0, 2.0]).apply_(lambda x: x * 10)
    DeviceArray([10., 20.], device='cpu', dtype=float32)
    """
    _of_host("apply_", (input,), callable)
    values = [callable(x) for x in input.detach().flatten().tolist()]
    return input.copy_(_C.tensor(values, dtype=input.dtype, device="cpu").reshape(input.shape))


def map_(input: DeviceArray, tensor: DeviceArray, callable: Callable[[Any, Any], float]) -> DeviceArray:
    """callable(x, y) in place of each x, with y of tensor beside it: slow, on the cpu only. RuntimeError elsewhere.

    >>> dt.tensor([1.0, 2.0]).map_(dt.tensor([3.0, 4.0]), lambda x, y: x + y)
    DeviceArray([4., 6.], device='cpu', dtype=float32)
    """
    need_array("map_", "tensor", tensor)
    _of_host("map_", (input, tensor), callable)
    beside = tensor.detach().expand(input.shape).flatten().tolist()
    values = [callable(x, y) for x, y in zip(input.detach().flatten().tolist(), beside, strict=True)]
    return input.copy_(_C.tensor(values, dtype=input.dtype, device="cpu").reshape(input.shape))


def _layout(self: DeviceArray) -> layout:
    """dt.strided: how every array lies in memory."""
    return strided


def _is_cpu(self: DeviceArray) -> bool:
    """Whether the array is on the cpu."""
    return self.device.type == "cpu"


def _false(self: DeviceArray) -> bool:
    """False: there are none of this kind."""
    return False


def _real(self: DeviceArray) -> DeviceArray:
    """The array itself, as there are no complex numbers."""
    return self


_NEVER = """is_ipu is_maia is_meta is_mkldnn is_mps is_mtia is_nested is_quantized is_sparse is_sparse_csr is_vulkan
is_xla is_xpu""".split()
METHODS: tuple[Callable[..., Any], ...] = (
    *(nelement, ndimension, new, new_tensor, is_complex, is_signed, get_device, positive, apply_, map_),
)
ATTRIBUTES = {
    "layout": property(_layout),
    "is_cpu": property(_is_cpu),
    "real": property(_real),
    **{name: property(_false) for name in _NEVER},
}
__all__ = [
    "get_device",
    "is_complex",
    "is_signed",
    "positive",
]
