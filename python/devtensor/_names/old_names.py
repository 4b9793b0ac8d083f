"""PyTorch's first spellings: Tensor(2, 3), FloatTensor([1.0]), x.type("torch.FloatTensor"), autograd.Variable."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from devtensor import _C
from devtensor._C import DeviceArray

_DTYPES = {
    "Float": _C.float32, "Double": _C.float64, "Half": _C.float16, "BFloat16": _C.bfloat16, "Long": _C.int64,
    "Int": _C.int32, "Short": _C.int16, "Char": _C.int8, "Byte": _C.uint8, "Bool": _C.bool,
}  # fmt: skip
_WORDS = {dtype: word for word, dtype in _DTYPES.items()}


def _made(op: str, dtype: _C.dtype, device: str, given: tuple[Any, ...]) -> DeviceArray:
    """An array of sizes, which a Size is too, of a sequence of numbers, or of nothing."""
    if len(given) == 1 and isinstance(given[0], DeviceArray):
        x = given[0]
        if x.dtype != dtype or x.device.type != device:
            raise TypeError(
                f"{op}(): expected an array of {dtype} on {device}, but got {x.dtype} on {x.device}: "
                ".to(device, dtype) makes one"
            )
        return x.view_as(x)
    if len(given) == 1 and isinstance(given[0], _C.Size):
        return _C.empty(given[0], dtype=dtype, device=device)
    if len(given) == 1 and not isinstance(given[0], int):
        return _C.tensor(given[0], dtype=dtype, device=device)
    return _C.empty(given or (0,), dtype=dtype, device=device)


_default_kind = ["cpu"]  # of device: what set_default_tensor_type chose


def new_array(*given: Any) -> DeviceArray:
    """What DeviceArray(...) gives: of the default dtype, of sizes (contents undefined), or of numbers.

    On the cpu, unless set_default_tensor_type chose a class of another kind of device, which is still the default.
    """
    device = _default_kind[0] if _C.get_default_device().type == _default_kind[0] else "cpu"
    return _made("Tensor", _C.get_default_dtype(), device, given)


def choose_kind(device_type: str) -> None:
    """Where new_array makes its arrays."""
    _default_kind[0] = device_type


class _Typed(type):
    """The class of a dtype on a kind of device; its instances are the arrays that have these."""

    dtype: _C.dtype
    device_type: str

    def __instancecheck__(cls, instance: object) -> bool:
        if not isinstance(instance, DeviceArray):
            return False
        return instance.dtype == cls.dtype and instance.device.type == cls.device_type

    def __call__(cls, *given: Any) -> Any:
        return _made(cls.__name__, cls.dtype, cls.device_type, given)


def typed_classes(device: str, module: str) -> dict[str, Any]:
    """FloatTensor and the others, for a kind of device."""
    return {
        f"{word}Tensor": _Typed(
            f"{word}Tensor",
            (),
            {
                "dtype": dtype,
                "device_type": device,
                "__module__": module,
                "__doc__": f"Arrays of {dtype} on {device}: {word}Tensor(2, 3), {word}Tensor([1]).",
            },
        )
        for word, dtype in _DTYPES.items()
    }


def type_of(input: DeviceArray, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The array in another dtype; without one the name of its own, such as "torch.cuda.FloatTensor".

    dtype: a dtype, a class such as dt.FloatTensor, or its name. A class of another kind of device moves the array.
    Raises TypeError for what is none.

    >>> dt.ones(2).type("torch.LongTensor")
    DeviceArray([1, 1], device='cpu', dtype=int64)
    >>> dt.ones(2).type()
    'torch.FloatTensor'
    """
    non_blocking = _C._need_bool("type", "non_blocking", non_blocking)
    if dtype is None:
        return f"torch.{'cuda.' if input.device.type == 'cuda' else ''}{_WORDS[input.dtype]}Tensor"
    kind = input.device.type
    if isinstance(dtype, _Typed):
        kind, dtype = dtype.device_type, dtype.dtype
    elif isinstance(dtype, str) and dtype.startswith("torch.") and dtype.endswith("Tensor"):
        where, _, word = dtype.removeprefix("torch.").removesuffix("Tensor").rpartition(".")
        if word not in _DTYPES or where not in ("", "cuda"):
            raise TypeError(f"type(): invalid type: {_C._shown(dtype)}")
        kind, dtype = where or "cpu", _DTYPES[word]
    if kind != input.device.type:
        return input.to(kind, dtype, non_blocking)
    return input.astype(dtype)


type_of.__name__ = type_of.__qualname__ = "type"


class _AnyArray(type):
    """The class of Variable, of which every array is an instance."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, DeviceArray)

    def __call__(cls, data: DeviceArray, requires_grad: bool = False, volatile: bool | None = None) -> DeviceArray:
        if volatile:
            text = "volatile was removed and now has no effect. Use `with devtensor.no_grad():` instead."
            warnings.warn(text, UserWarning, stacklevel=2)
        return data.detach().requires_grad_(requires_grad)


if TYPE_CHECKING:

    def Variable(data: DeviceArray, requires_grad: bool = False, volatile: bool | None = None) -> DeviceArray: ...
else:

    class Variable(metaclass=_AnyArray):
        """Variable(data, requires_grad=False, volatile=None) is data itself.

        Since PyTorch 0.4 every array can require a gradient, and is a Variable. volatile does nothing but warn.

        >>> dt.autograd.Variable(dt.ones(2), requires_grad=True).requires_grad
        True
        """
