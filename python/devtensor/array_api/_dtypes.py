"""Dtypes of the standard: which there are, what they promote to, and their limits."""

from __future__ import annotations

import dataclasses

import devtensor as dt
from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import need_array
from devtensor._dtypes.rules import promote_types
from devtensor._types import Device
from devtensor.array_api._operands import kind_of

SIGNED = (_C.int8, _C.int16, _C.int32, _C.int64)
FLOATS = (_C.float32, _C.float64)
KINDS: dict[str, tuple[_C.dtype, ...]] = {
    "bool": (_C.bool,),
    "signed integer": SIGNED,
    "unsigned integer": (_C.uint8,),
    "integral": (*SIGNED, _C.uint8),
    "real floating": FLOATS,
    "complex floating": (),
    "numeric": (*SIGNED, _C.uint8, *FLOATS),
}
_HALVES = (_C.float16, _C.bfloat16)  # floats that the standard does not have


@dataclasses.dataclass(frozen=True)
class finfo_object:
    """The limits of a float dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: _C.dtype


@dataclasses.dataclass(frozen=True)
class iinfo_object:
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: _C.dtype


def _dtype_of(op: str, name: str, value: _C.dtype | DeviceArray) -> _C.dtype:
    return value.dtype if isinstance(value, DeviceArray) else _C._need_dtype(op, name, value)


def astype(x: DeviceArray, dtype: _C.dtype, /, *, copy: bool = True, device: Device | None = None) -> DeviceArray:
    """x in another dtype; with device= also on another device. With copy=False x itself where nothing changes.

    Floats become integers towards 0; what is not 0 becomes True.

    >>> xp.astype(xp.asarray([1.5, -2.0]), xp.int32).tolist()
    [1, -2]
    """
    need_array("astype", "x", x)
    copy = _C._need_bool("astype", "copy", copy)
    target = x.device if device is None else _C._need_device("astype", "device", device)
    return x.to(target, _C._need_dtype("astype", "dtype", dtype), copy=copy)


def can_cast(from_: _C.dtype | DeviceArray, to: _C.dtype, /) -> bool:
    """Whether promotion leads from one dtype, or that of an array, to another: it is of the same kind and no smaller.

    >>> xp.can_cast(xp.int8, xp.int16), xp.can_cast(xp.float64, xp.float32)
    (True, False)
    """
    source, target = _dtype_of("can_cast", "from_", from_), _C._need_dtype("can_cast", "to", to)
    return kind_of(source) == kind_of(target) and promote_types(source, target) is target


def finfo(type: _C.dtype | DeviceArray, /) -> finfo_object:
    """The limits of a float dtype, or of that of an array: bits eps max min smallest_normal dtype. Others: TypeError.

    >>> xp.finfo(xp.float32).bits
    32
    """
    dtype = _dtype_of("finfo", "type", type)
    found = dt.finfo(dtype)
    return finfo_object(found.bits, found.eps, found.max, found.min, found.smallest_normal, dtype)


def iinfo(type: _C.dtype | DeviceArray, /) -> iinfo_object:
    """The limits of an integer dtype, or of that of an array: bits max min dtype. TypeError for others.

    >>> xp.iinfo(xp.int8).max
    127
    """
    dtype = _dtype_of("iinfo", "type", type)
    found = dt.iinfo(dtype)
    return iinfo_object(found.bits, found.max, found.min, dtype)


def isdtype(dtype: _C.dtype, kind: _C.dtype | str | tuple[_C.dtype | str, ...]) -> bool:
    """Whether a dtype is another, or is of a kind, or of one of several.

    Kinds are "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating" and
    "numeric". float16 and bfloat16 are real floating. Raises ValueError for other words.

    >>> xp.isdtype(xp.float32, "real floating"), xp.isdtype(xp.uint8, ("bool", xp.int8))
    (True, False)
    """
    mine = _C._need_dtype("isdtype", "dtype", dtype)
    if isinstance(kind, tuple):
        return any(isdtype(mine, one) for one in kind)
    if not isinstance(kind, str):
        return mine == _C._need_dtype("isdtype", "kind", kind)
    if kind not in KINDS:
        raise ValueError(f"isdtype(): {_C._shown(kind)} is no kind; there are {', '.join(KINDS)}")
    return mine in KINDS[kind] or (mine in _HALVES and kind in ("real floating", "numeric"))


def result_type(*arrays_and_dtypes: DeviceArray | _C.dtype | float) -> _C.dtype:
    """The dtype that arrays, dtypes and numbers have together. A number takes the dtype of the others.

    The standard defines it within a kind (bool, integers, floats); beyond that it is PyTorch's: the higher kind.
    Raises ValueError without an array or a dtype.

    >>> xp.result_type(xp.uint8, xp.int8, 1)
    devtensor.int16
    """
    found: _C.dtype | None = None
    highest = 0
    for one in arrays_and_dtypes:
        if isinstance(one, (DeviceArray, _C.dtype)):
            dtype = _dtype_of("result_type", "arrays_and_dtypes", one)
            found = dtype if found is None else promote_types(found, dtype)
        else:
            number = _C._need_number("result_type", "arrays_and_dtypes", one)
            highest = max(highest, 0 if isinstance(number, bool) else 1 if isinstance(number, int) else 2)
    if found is None:
        raise ValueError("result_type(): at least one array or dtype is needed")
    if highest > kind_of(found):
        return _C.int64 if highest == 1 else _C.get_default_dtype()
    return found
