"""Devices that are not there: what is, and what would make it so."""

from __future__ import annotations

import os
import re
from typing import Any

from devtensor import _C
from devtensor._advice import command


def device_notes(error: Any) -> list[str]:
    """Which devices are visible, the variables that choose them, what was tried, and the command that helps."""
    try:
        count = _C._cuda_device_count()
    except Exception:
        return [*_settings(), f"to use CUDA: {command()}", "See docs/errors.md#device-not-available"]
    names = ", ".join(["cpu", *(f"cuda:{i}" for i in range(count))])
    kind = " (simulated)" if count and _C._cuda_is_simulated() else ""
    return [f"visible: {names}{kind}", *_settings(), "See docs/errors.md#device-not-available"]


def fault_notes(error: Any) -> list[str]:
    """What may have gone wrong on a device that is lost: what was sent to it last."""
    index = re.search(r"cuda:(\d+)", str(error))
    sent = _C._cuda_last_sent(int(index.group(1))) if index is not None else ""
    return [f"sent to cuda:{index.group(1)} last, the latest first: {sent}"] if index is not None and sent else []


def _settings() -> list[str]:
    names = ("CUDA_VISIBLE_DEVICES", "DEVTENSOR_CUDA")
    text = ", ".join(f"{name}={os.environ[name]!r}" for name in names if name in os.environ)
    return [f"environment: {text}"] if text else []
