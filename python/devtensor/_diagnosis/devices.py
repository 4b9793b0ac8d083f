"""Devices that are not there: what is, and what would make it so."""

from __future__ import annotations

import itertools
import os
import re
from typing import Any

from devtensor import _C
from devtensor._advice import command
from devtensor._diagnosis.causes import see
from devtensor._diagnosis.sources import file_name


def device_notes(error: Any) -> list[str]:
    """Which devices are visible, the variables that choose them, what was tried, and the command that helps."""
    try:
        count = _C._cuda_device_count()
    except Exception:
        return [*_settings(), f"to use CUDA: {command()}", *see("device-not-available")]
    names = ", ".join(["cpu", *(f"cuda:{i}" for i in range(count))])
    kind = " (simulated)" if count and _C._cuda_is_simulated() else ""
    return [f"visible: {names}{kind}", *_settings(), *see("device-not-available")]


def fault_notes(error: Any) -> list[str]:
    """What may have gone wrong on a device that is lost: what its streams were sent last, and the lines that did it."""
    device = re.search(r"cuda:(\d+)", str(error))
    if device is None:
        return []
    sent, found = _C._cuda_last_sent(int(device.group(1))), []
    for stream, of_stream in itertools.groupby(sent, key=lambda one: one[0]):
        name = f"the stream {stream}" if stream else "the default stream"
        found.append(f"sent to {name} of {device.group()} last, the latest first:")
        for (_, what, filename, line), same in itertools.groupby(of_stream):
            times = len(list(same))
            place = f"  {file_name(filename)}:{line}" if filename is not None else ""
            found.append(f"  {what}{place}{f'  ({times} times)' if times > 1 else ''}")
    lost = found or "cannot be used any more" in str(error)
    again = ["devtensor.testing.reset_simulated() makes the simulated device usable again"]
    return [*(["\n".join(found)] if found else []), *(again if lost and _C._cuda_is_simulated() else [])]


def _settings() -> list[str]:
    names = ("CUDA_VISIBLE_DEVICES", "DEVTENSOR_CUDA")
    text = ", ".join(f"{name}={os.environ[name]!r}" for name in names if name in os.environ)
    return [f"environment: {text}"] if text else []
