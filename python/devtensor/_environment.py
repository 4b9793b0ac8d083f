"""Warns whoever imports devtensor of each variable of the environment that is not understood."""

from __future__ import annotations

import warnings

from devtensor import _C

_IMPORTER = 3  # the importer of the package that imports this module

for _name, _text, _valid in _C._misread_environment():
    _told = f"{_name}={_text} is not understood and changes nothing: valid is {_valid}"
    warnings.warn(_told, RuntimeWarning, _IMPORTER)
