"""What the process holds, for tests of memory that must stay flat; tools/checks/soak.py uses it, too."""

from __future__ import annotations

import gc
import os
import sys

import devtensor as dt

PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE


def device_memory(device: str) -> int:
    if device == "cpu":
        return 0
    dt.cuda.synchronize(device)
    return dt.cuda.memory_allocated(device)


def clear_caches() -> None:
    """The cache of type attributes keeps the names that pickle makes anew with each call, up to 4,096."""
    newest = getattr(sys, "_clear_internal_caches", None)  # Python 3.13
    (newest or sys._clear_type_cache)()


def census(device: str = "cuda:0") -> dict[str, int]:
    clear_caches()
    gc.collect()
    return {
        "device": device_memory(device),  # first, as it waits for what is queued
        "blocks": dt._C._test.live_blocks(),
        "objects": sys.getallocatedblocks(),
        "resident": resident(),
    }
