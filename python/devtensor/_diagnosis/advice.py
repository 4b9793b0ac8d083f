"""The one command that would make CUDA work here: for the report and for errors."""

from __future__ import annotations

import contextlib
import glob
import os

from devtensor import _C

DRIVER = "install an NVIDIA driver, 580 or newer"
LIBRARIES = "pip install --upgrade 'devtensor[cuda13]'"
SIMULATE = "export DEVTENSOR_CUDA=sim:1"


def _has_gpu() -> bool:
    """Whether the system shows a device of NVIDIA's, with or without a driver."""
    if os.path.exists("/proc/driver/nvidia/version") or os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/dxg"):
        return True
    for path in glob.glob("/sys/bus/pci/devices/*/vendor"):
        with contextlib.suppress(OSError), open(path) as file:
            if file.read().strip() == "0x10de":
                return True
    return False


def command() -> str:
    """The one command that would make "cuda" work."""
    driver, *libraries = _C._cuda_probe()
    if driver is None and _C._cuda_device_count() > 0:
        return "nothing, all is there" if not any(libraries) else LIBRARIES
    if os.environ.get("DEVTENSOR_CUDA", "auto") not in ("", "auto"):
        return "unset DEVTENSOR_CUDA"
    if not _has_gpu():
        return f"{SIMULATE}  (no NVIDIA GPU was found here; this simulates one)"
    if driver is None or "finds no CUDA device" in driver:
        return "unset CUDA_VISIBLE_DEVICES" if "CUDA_VISIBLE_DEVICES" in os.environ else "nvidia-smi"
    return DRIVER
