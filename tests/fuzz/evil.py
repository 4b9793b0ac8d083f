"""Objects that no caller means well with. Programs of the fuzzer name them; they behave the same in every run."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import devtensor as dt


class Mischief(Exception):
    """What evil objects raise: a call may let it through."""


ALIVE: dict[int, weakref.ref[Any]] = {}  # a call that is over keeps none of these


def watch(x: Any) -> None:
    key = id(x)
    ALIVE[key] = weakref.ref(x, lambda _: ALIVE.pop(key, None))


class Acts:
    """Does something whenever it is asked for a value, and then gives one."""

    def __init__(self, act: Callable[[], Any], value: Any = 1) -> None:
        self.act, self.value = act, value
        watch(self)

    def answer(self, *_: Any) -> Any:
        self.act()
        return self.value

    __index__ = __int__ = __float__ = __bool__ = __len__ = __complex__ = __iter__ = __hash__ = answer
    __eq__ = answer

    def __getitem__(self, key: Any) -> Any:
        return self.answer()

    def __repr__(self) -> str:
        return "Acts()"


def raise_mischief() -> None:
    raise Mischief("evil")


def raises() -> Acts:
    """Raises whatever it is asked."""
    return Acts(raise_mischief)


def says(value: Any) -> Acts:
    """Says this, whether it fits the question or not."""
    return Acts(lambda: None, value)


class Secretive:
    """Has no attribute and raises something else than AttributeError."""

    def __getattr__(self, name: str) -> Any:
        raise Mischief(name)


class Masked:
    """Says that it is an array."""

    @property
    def __class__(self) -> Any:
        return dt.DeviceArray


class Unprintable:
    def __repr__(self) -> str:
        raise Mischief("repr")


class OddInt(int):
    def __index__(self) -> int:
        raise Mischief("index")


class OddStr(str):
    def __eq__(self, other: object) -> bool:
        raise Mischief("eq")

    def __hash__(self) -> int:
        raise Mischief("hash")


class Lies(list[Any]):
    """A list with another length than it has items."""

    def __init__(self, items: list[Any], length: int) -> None:
        super().__init__(items)
        self.length = length

    def __len__(self) -> int:
        return self.length


class Shrinking(list[Any]):
    """Loses an item whenever it gives one."""

    def __iter__(self) -> Iterator[Any]:
        while len(self) > 0:
            yield self[0]
            del self[0]

    def __getitem__(self, i: Any) -> Any:
        item = super().__getitem__(i)
        super().pop()
        return item


def trap(items: list[Any], at: int, act: str) -> list[Any]:
    """A list that changes while its items are read: one of them does that when it is asked for its value."""
    trapped = [int(str(item)) if isinstance(item, int) else item for item in items]  # which nobody else holds
    acts: dict[str, Callable[[], Any]] = {
        "clear": trapped.clear,
        "append": lambda: trapped.append(1),
        "grow": lambda: trapped.extend([1] * 1000),
        "shrink": lambda: trapped.__delitem__(slice(1, None)),
        "replace": lambda: trapped.__setitem__(slice(None), [None] * len(trapped)),
    }
    trapped[at] = Acts(acts[act], items[at])
    return trapped


def trap_dict(items: dict[str, Any], key: str, act: str) -> dict[str, Any]:
    """A dict that changes when one of its values is asked for its value: at the top, or as the first of a tuple."""
    trapped = dict(items)
    acts: dict[str, Callable[[], Any]] = {
        "clear": trapped.clear,
        "grow": lambda: trapped.update({str(i): i for i in range(100)}),
        "replace": lambda: trapped.update(dict.fromkeys(trapped)),
    }
    value = items[key]
    if isinstance(value, tuple) and value:
        trapped[key] = (Acts(acts[act], value[0]), *value[1:])
    else:
        trapped[key] = Acts(acts[act], value)
    return trapped


def giver(items: list[Any], stop: int) -> Iterator[Any]:
    """Gives some items, then raises."""
    for i, item in enumerate(items):
        if i == stop:
            raise Mischief("generator")
        yield item


def deep(levels: int) -> list[Any]:
    found: list[Any] = [1.0]
    for _ in range(levels):
        found = [found]
    return found


def loop() -> list[Any]:
    found: list[Any] = [1.0]
    found.append(found)
    return found


class Exports:
    """An object of another library: each protocol attribute gives what it was told to, or raises it."""

    def __init__(self, **attributes: Any) -> None:
        self._attributes = attributes
        watch(self)

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("_attributes", {}):
            return self._attributes[name]
        raise AttributeError(name)


class Arrays:
    """__array__ of any answer."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


# ---------------------------------------------------------------- arrays

STORED = {"bfloat16": "float32"}


def values(dtype: str, count: int, kind: str) -> np.ndarray:
    """So many numbers that each dtype can hold, the same everywhere."""
    at = np.arange(count, dtype=np.int64)
    if kind == "zeros":
        found: np.ndarray = np.zeros(count)
    elif kind == "index":
        found = at * 7 % 5 - 2.0
    elif kind == "special":
        wide = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 6e4, -128.0, 127.0, 255.0, 2.0**31, -(2.0**62)]
        found = np.resize(np.array(wide), count)
    else:
        found = (at * 7 % 11 - 5) / (1.0 if dtype.startswith(("int", "uint")) else 2.0)
        if kind == "positive":
            found = np.abs(found) + 0.5
    with np.errstate(all="ignore"):
        if dtype.startswith(("int", "uint")):
            return (
                np.nan_to_num(found, posinf=127, neginf=-128).clip(-(2.0**62), 2.0**62).astype(np.int64).astype(dtype)
            )
        return found.astype(STORED.get(dtype, dtype))


def arr(dtype: str, shape: tuple[int, ...], layout: str, kind: str, device: str) -> dt.DeviceArray:
    """An array of these values, laid out in memory in one of several ways."""
    count = int(np.prod(shape, dtype=np.int64))
    host = values(dtype, count, kind).reshape(shape)
    if layout == "read-only" and dtype not in STORED:
        host.flags.writeable = False
        return dt.from_numpy(host).to(device)
    if layout == "negative":
        host = host[::-1] if host.ndim else host
    if layout == "expanded" and shape:
        host = host[:1]
    if layout == "sliced" and shape:
        host = np.repeat(host, 2, axis=-1)
    if layout == "transposed":
        host = host.T
    x = dt.array(host.copy(), dtype=dtype, device=device)
    if layout == "expanded" and shape:
        return x.expand(shape)
    if layout == "sliced" and shape:
        return x[..., ::2]
    if layout == "transposed":
        return x.permute(tuple(reversed(range(x.ndim))))
    if layout == "pinned" and device == "cpu":
        return x.pin_memory()
    return x
