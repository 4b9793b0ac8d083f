"""finfo and iinfo: what numbers of a dtype can be."""

from __future__ import annotations

import math

from devtensor import _C

_FLOATS = {_C.float16: (16, 10, 15), _C.bfloat16: (16, 7, 127), _C.float32: (32, 23, 127), _C.float64: (64, 52, 1023)}
# Floats of 8 bits, of which there are no arrays: (largest, eps, smallest normal).
_EIGHT_BITS = {
    "float8_e4m3fn": (448.0, 2.0**-3, 2.0**-6),
    "float8_e4m3fnuz": (240.0, 2.0**-3, 2.0**-7),
    "float8_e5m2": (57344.0, 2.0**-2, 2.0**-14),
    "float8_e5m2fnuz": (57344.0, 2.0**-3, 2.0**-15),
}
_INTS = {_C.uint8: (8, 0), _C.int8: (8, 1), _C.int16: (16, 1), _C.int32: (32, 1), _C.int64: (64, 1)}


class finfo:
    """The limits of a float dtype: bits eps max min tiny smallest_normal resolution dtype.

    dtype: a dtype, by default float32. Raises TypeError for one that is no float.

    >>> dt.finfo(dt.float32).eps
    1.1920928955078125e-07
    """

    def __init__(self, type: _C.dtype | None = None) -> None:
        dtype = _C.get_default_dtype() if type is None else type
        name = str(getattr(dtype, "__name__", "")).rpartition(".")[2]
        if name in _EIGHT_BITS:
            self._state(8, 1.0, *_EIGHT_BITS[name], name)
            return
        if dtype not in _FLOATS:
            raise TypeError(f"finfo(): a float dtype is needed, not {_C._shown(dtype)}; iinfo is for integers")
        bits, fraction, largest = _FLOATS[dtype]
        eps, digits = 2.0**-fraction, math.floor(fraction * math.log10(2.0))
        most, name = (2.0 - eps) * 2.0**largest, str(dtype).rpartition(".")[2]
        self._state(bits, 10.0**-digits, most, eps, 2.0 ** (1 - largest), name)

    def _state(self, bits: int, resolution: float, most: float, eps: float, tiny: float, dtype: str) -> None:
        self.bits: int = bits
        self.eps: float = eps
        self.max: float = most
        self.min: float = -most
        self.tiny: float = tiny
        self.smallest_normal: float = tiny
        self.resolution: float = resolution
        self.dtype: str = dtype

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """The limits of an integer dtype: bits max min dtype. Raises TypeError for another.

    >>> dt.iinfo(dt.uint8).max
    255
    """

    def __init__(self, type: _C.dtype) -> None:
        if type not in _INTS:
            raise TypeError(f"iinfo(): an integer dtype is needed, not {_C._shown(type)}; finfo is for floats")
        bits, signed = _INTS[type]
        self.bits: int = bits
        self.max: int = 2 ** (self.bits - signed) - 1
        self.min: int = -(2 ** (self.bits - 1)) if signed else 0
        self.dtype: str = str(type).rpartition(".")[2]

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
