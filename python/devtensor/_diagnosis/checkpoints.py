"""What to do about a dictionary that load_state_dict refuses."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

_Error = TypeVar("_Error", bound=Exception)
_PREFIX = "module."


def unread(state: Any, error: _Error) -> _Error:
    """The name of a file in the place of what is in it."""
    if isinstance(state, str | os.PathLike):
        name = repr(os.fspath(state))
        name = name if '"' in name else f'"{name[1:-1]}"' if name[0] == "'" else name
        _add(error, f"It takes what is in a file: load_state_dict(load({name}))")
    return error


def prefixed(own: Collection[str], state: Mapping[str, Any], error: _Error) -> _Error:
    """Keys that differ from those of the Module by what DataParallel, whose Module it is, puts before each."""
    theirs, cut = set(state), len(_PREFIX)
    if theirs and all(key.startswith(_PREFIX) for key in theirs) and {key[cut:] for key in theirs} == set(own):
        stripped = f'{{key.removeprefix("{_PREFIX}"): value for key, value in state.items()}}'
        _add(error, f'The keys begin with "{_PREFIX}", as those of a DataParallel do: load_state_dict({stripped})')
    elif theirs and all(key.startswith(_PREFIX) for key in own) and {key[cut:] for key in own} == theirs:
        _add(error, "It is of the Module that this DataParallel holds: model.module.load_state_dict(state)")
    return error


def _add(error: Exception, note: str) -> None:
    from devtensor import _diagnosis

    if _diagnosis.get_error_detail() == "full":
        error.add_note(note)
