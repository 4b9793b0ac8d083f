"""What PyTorch's programs ask of arrays, and methods that have nothing to do here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from devtensor import _C
from devtensor._C import DeviceArray, _need_device, _need_dtype
from devtensor._composed.arguments import in_place, need_array
from devtensor._composed.creating.creation import strided_of
from devtensor._composed.elementwise.bessel import i0
from devtensor._composed.elementwise.bits import bitwise_left_shift, bitwise_right_shift
from devtensor._composed.matrices.products import addbmm, addmv, addr
from devtensor._composed.written import made_as_asked
from devtensor._memory_formats import layout
from devtensor._types import Device, DType


def is_same_size(input: DeviceArray, other: DeviceArray) -> bool:
    """Whether input and other have the same shape.

    >>> dt.is_same_size(dt.ones(2), dt.ones(2, 1))
    False
    """
    need_array("is_same_size", "input", input)
    need_array("is_same_size", "other", other)
    return input.shape == other.shape


def is_set_to(input: DeviceArray, tensor: DeviceArray) -> bool:
    """Whether both are the same elements in memory: of one dtype, shape and strides.

    >>> x = dt.ones(2, 3)
    >>> x.is_set_to(x[:]), x.is_set_to(x.T)
    (True, False)
    """
    need_array("is_set_to", "tensor", tensor)
    seen = [(x.data_ptr(), x.device, x.dtype, x.shape, x.stride()) for x in (input, tensor)]
    return seen[0] == seen[1]


def _no(name: str, text: str) -> Callable[[DeviceArray], bool]:
    def ask(input: DeviceArray) -> bool:
        need_array(name, "input", input)
        return False

    ask.__name__ = ask.__qualname__ = name
    ask.__doc__ = f"False: {text}.\n\n    >>> dt.{name}(dt.ones(2))\n    False\n    "
    return ask


is_conj: Callable[[DeviceArray], bool] = _no("is_conj", "there are no complex numbers")
is_neg: Callable[[DeviceArray], bool] = _no("is_neg", "no array is a lazily negated one")
is_distributed: Callable[[DeviceArray], bool] = _no("is_distributed", "an array lies on one device")


def is_inference(input: DeviceArray) -> bool:
    """False: arrays that are made in inference_mode() are as any others.

    >>> dt.is_inference(dt.ones(2))
    False
    """
    need_array("is_inference", "input", input)
    return False


def is_shared(input: DeviceArray) -> bool:
    """False: no memory is shared with other processes.

    >>> dt.ones(2).is_shared()
    False
    """
    return False


def resolve_neg(input: DeviceArray) -> DeviceArray:
    """input itself, as no array is a lazily negated one.

    >>> dt.resolve_neg(dt.tensor([-1.0]))
    DeviceArray([-1.], device='cpu', dtype=float32)
    """
    need_array("resolve_neg", "input", input)
    return input


@made_as_asked
def new_empty_strided(
    input: DeviceArray,
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
    layout: layout | None = None,
) -> DeviceArray:
    """empty_strided of the dtype and on the device of input, where others are not given.

    >>> dt.ones(1, dtype=dt.int8).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    op = "new_empty_strided"
    kind = input.dtype if dtype is None else _need_dtype(op, "dtype", dtype)
    place = input.device if device is None else _need_device(op, "device", device)
    return strided_of(op, size, stride, kind, place, requires_grad)


def record_stream(input: DeviceArray, stream: _C.Stream) -> None:
    """Does nothing: memory that a stream uses is not given away before the stream is done with it.

    Raises TypeError for what is no stream.

    >>> dt.ones(2).record_stream(dt.cuda.current_stream()) if dt.cuda.is_available() else None
    """
    if not isinstance(stream, _C.Stream):
        raise TypeError(f"record_stream(): argument 'stream' must be Stream, not {type(stream).__name__}")


def dim_order(input: DeviceArray) -> tuple[int, ...]:
    """The dimensions in the order of memory, that of the largest stride first.

    >>> dt.ones(2, 3).T.dim_order()
    (1, 0)
    """
    strides = input.stride()
    return tuple(sorted(range(input.ndim), key=lambda d: (-strides[d], d)))


__all__ = [
    "is_conj",
    "is_distributed",
    "is_inference",
    "is_neg",
    "is_same_size",
    "resolve_neg",
]
METHODS = (
    *(is_same_size, is_set_to, is_conj, is_neg, is_distributed, is_inference, is_shared, resolve_neg),
    *(new_empty_strided, record_stream, dim_order),
    *(in_place(op) for op in (i0, bitwise_left_shift, bitwise_right_shift, addbmm, addmv, addr)),
    *(in_place(op) for op in (_C.addmm, _C.baddbmm)),
)
