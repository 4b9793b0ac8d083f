"""Environment variables that are not understood."""

from __future__ import annotations

import contextlib
import warnings

from devtensor import _C


def tell() -> None:
    """Warns whoever imports devtensor of each variable of the cpu that changes nothing."""
    for name, text, valid in _C._misread_environment():
        with contextlib.suppress(RuntimeWarning):  # an import never fails, not where warnings are errors either
            warnings.warn(f"{name}={text} is not understood and changes nothing: valid is {valid}", RuntimeWarning, 3)
