"""What a call of Module.to asks for."""

from __future__ import annotations

from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray


class Wish:
    """What a call of to() asks for."""

    device: Any = None
    dtype: _C.dtype | None = None
    non_blocking = False

    def read(self, probe: DeviceArray, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        names: tuple[str, ...] = ("device", "dtype", "non_blocking")
        if args and isinstance(args[0], DeviceArray):
            other, args = args[0], args[1:]
            self.device, self.dtype, names = other.device, other.dtype, ("non_blocking",)
        elif args and _is_dtype(args[0]):
            names = ("dtype", "non_blocking")
        given = dict(zip(names, args, strict=False))
        if (
            len(args) > len(names)
            or given.keys() & kwargs.keys()
            or kwargs.keys() - {"device", "dtype", "non_blocking"}
        ):
            raise TypeError("Module.to() takes a device, a dtype or an array, then non_blocking")
        given |= kwargs
        if given.get("device") is not None:
            device = given["device"]
            self.device = _C.device("cuda", device) if type(device) is int else _C.device(device)
        if given.get("dtype") is not None:
            self.dtype = probe.to(dtype=given["dtype"]).dtype
        self.non_blocking = bool(given.get("non_blocking", False))


def _is_dtype(value: object) -> bool:
    if isinstance(value, str):
        return isinstance(getattr(_C, value, None), _C.dtype)
    return value is not None and not isinstance(value, (_C.device, int))
