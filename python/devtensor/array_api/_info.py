"""What the namespace can do: __array_namespace_info__()."""

from __future__ import annotations

from typing import Any

from devtensor import _C, cuda
from devtensor._types import Device
from devtensor.array_api._dtypes import KINDS

_NAMES = ("bool", "int8", "int16", "int32", "int64", "uint8", "float32", "float64")


class Info:
    """What the standard asks a namespace about itself."""

    def capabilities(self) -> dict[str, Any]:
        """Masks index arrays, shapes may follow from data, and arrays have up to 8 dimensions.

        >>> xp.__array_namespace_info__().capabilities()["max dimensions"]
        8
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}

    def default_device(self) -> _C.device:
        """Where arrays are made: dt.set_default_device.

        >>> xp.__array_namespace_info__().default_device()
        device(type='cpu')
        """
        return _C.get_default_device()

    def default_dtypes(self, *, device: Device | None = None) -> dict[str, _C.dtype]:
        """The dtypes of floats, integers and indices where none is given; the same on every device.

        >>> xp.__array_namespace_info__().default_dtypes()["integral"]
        devtensor.int64
        """
        if device is not None:
            _C._need_device("default_dtypes", "device", device)
        return {"real floating": _C.get_default_dtype(), "integral": _C.int64, "indexing": _C.int64}

    def devices(self) -> list[_C.device]:
        """The devices that there are.

        >>> xp.__array_namespace_info__().devices()[0]
        device(type='cpu')
        """
        return [_C.device("cpu"), *(_C.device(f"cuda:{i}") for i in range(cuda.device_count()))]

    def dtypes(self, *, device: Device | None = None, kind: str | tuple[str, ...] | None = None) -> dict[str, _C.dtype]:
        """The dtypes of the standard that there are, by name; of a kind of isdtype() alone, or of several.

        >>> xp.__array_namespace_info__().dtypes(kind="real floating")
        {'float32': devtensor.float32, 'float64': devtensor.float64}
        """
        if device is not None:
            _C._need_device("dtypes", "device", device)
        kinds = tuple(KINDS) if kind is None else kind if isinstance(kind, tuple) else (kind,)
        for one in kinds:
            if one not in KINDS:
                raise ValueError(f"dtypes(): {_C._shown(one)} is no kind; there are {', '.join(KINDS)}")
        wanted = {dtype for one in kinds for dtype in KINDS[one]}
        return {name: getattr(_C, name) for name in _NAMES if getattr(_C, name) in wanted}


def __array_namespace_info__() -> Info:
    """What the namespace can do: its capabilities, devices, dtypes and defaults.

    >>> sorted(xp.__array_namespace_info__().default_dtypes())
    ['indexing', 'integral', 'real floating']
    """
    return Info()
