"""torch.torch_version: the version that programs compare when devtensor is in the place of PyTorch."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from devtensor import _version

FOLLOWED = "2.13.0"  # the PyTorch whose names, signatures and results devtensor has


Key = tuple[tuple[int, ...], str]


def _key(version: Any) -> Key | None:
    """Its numbers, three at least, and what stands behind a plus; None for what is no version."""
    if isinstance(version, str):
        public, _, local = version.partition("+")
        release = re.match(r"v?(\d+(?:\.\d+)*)", public)
        numbers = None if release is None else tuple(int(part) for part in release[1].split("."))
    elif isinstance(version, (tuple, list)) and all(isinstance(part, int) for part in version):
        numbers, local = tuple(version), ""
    else:
        return None
    return None if numbers is None else ((*numbers, *(0,) * (3 - len(numbers))), local)


class TorchVersion(str):
    """A text that compares as a version with texts and tuples: TorchVersion("1.10.0") > "1.9", >= (1, 8)."""

    __slots__ = ()
    __hash__ = str.__hash__

    def _compared(self, other: Any, decide: Callable[[Key, Key], bool]) -> bool:
        ours, theirs = _key(str(self)), _key(other)
        return NotImplemented if ours is None or theirs is None else decide(ours, theirs)

    def __lt__(self, other: Any) -> bool:
        return self._compared(other, operator.lt)

    def __le__(self, other: Any) -> bool:
        return self._compared(other, operator.le)

    def __gt__(self, other: Any) -> bool:
        return self._compared(other, operator.gt)

    def __ge__(self, other: Any) -> bool:
        return self._compared(other, operator.ge)

    def __eq__(self, other: object) -> bool:
        return self._compared(other, operator.eq)

    def __ne__(self, other: object) -> bool:
        return self._compared(other, operator.ne)


__version__ = TorchVersion(f"{FOLLOWED}+devtensor.{_version.__version__}")
