"""Devices that are not there: what is, and what would make it so."""

from __future__ import annotations

import itertools
import os
import re
from typing import Any

from devtensor import _C
from devtensor._diagnosis.advice import command
from devtensor._diagnosis.causes import see
from devtensor._diagnosis.sources import file_name


def device_notes(error: Any) -> list[str]:
    """The command that helps, which devices are visible, the variables that choose them, and what was tried."""
    tried = _tried(str(error))
    try:
        count = _C._cuda_device_count()
    except Exception:
        return [f"to use CUDA: {command()}", *_settings(), *tried, *see("device-not-available")]
    names = ", ".join(["cpu", *(f"cuda:{i}" for i in range(count))])
    kind = " (simulated)" if count and _C._cuda_is_simulated() else ""
    help = [f"to use it: {command()}"] if tried else []
    return [*help, f"visible: {names}{kind}", *_settings(), *tried, *see("device-not-available")]


def _tried(text: str) -> list[str]:
    """Where a library was looked for that could not be loaded."""
    library = re.search(r"(\S+) could not be loaded", text)
    if library is None:
        return []
    found = [line for line in _C._cuda_report().splitlines() if library.group(1) in line.partition(": ")[0]]
    return ["\n".join(["looked for:", *(f"  {line}" for line in found)])] if found else []


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
