"""torch.nn.modules.utils: what programs import from there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int) -> Callable[[Any], tuple[Any, ...]]:
    """What makes n of one thing, and a tuple of several."""
    return lambda x: tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))


_single, _pair, _triple, _quadruple = (_ntuple(n) for n in range(1, 5))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take prefix, such as "module." of a DataParallel, off the keys of a state dictionary, in place.

    Keys of its _metadata lose it too. The order of the keys stays.
    """
    held = list(state_dict.items())
    state_dict.clear()
    state_dict.update((key.removeprefix(prefix), value) for key, value in held)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is not None:
        for key in list(metadata):
            if key and (key == prefix.replace(".", "") or key.startswith(prefix)):
                metadata[key[len(prefix) :]] = metadata.pop(key)
