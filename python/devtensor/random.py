"""The default generator, which all devices share: the names of torch.random."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, initial_seed, manual_seed, seed
from devtensor._composed.arguments import need_array

default_generator: _C.Generator = _C._default_generator()

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


def __dir__() -> list[str]:
    return __all__


def get_rng_state() -> DeviceArray:
    """The state of the default generator: 16 bytes, an uint8 array on the cpu.

    >>> dt.get_rng_state().shape
    (16,)
    """
    return default_generator.get_state()


def set_rng_state(new_state: DeviceArray) -> None:
    """Sets the default generator to what get_rng_state gave.

    Raises RuntimeError for what is no state.

    >>> state = dt.get_rng_state()
    >>> x = dt.rand(2)
    >>> dt.set_rng_state(state)
    >>> bool((dt.rand(2) == x).all())
    True
    """
    need_array("set_rng_state", "new_state", new_state)
    if new_state.dtype != _C.uint8 or new_state.shape != (16,):
        text = f"set_rng_state(): a state is 16 uint8, not {new_state.dtype} {tuple(new_state.shape)}"
        raise _C._explained("set_rng_state", ("new_state",), (new_state,), "invalid-argument", RuntimeError(text))
    default_generator.set_state(new_state.cpu().contiguous())


@contextlib.contextmanager
def fork_rng(devices: Iterable[object] | None = None, enabled: bool = True) -> Iterator[None]:
    """Gives the default generator its state back at the end of a with statement. devices change nothing.

    >>> with dt.random.fork_rng():
    ...     x = dt.rand(2)
    >>> bool((dt.rand(2) == x).all())
    True
    """
    if not _need_bool("fork_rng", "enabled", enabled):
        yield
        return
    before = default_generator.get_state()
    try:
        yield
    finally:
        default_generator.set_state(before)
