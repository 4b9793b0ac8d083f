"""Which call to a CUDA library fails, how, and which of all these points a sweep takes."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import devtensor as dt

CODES = {
    "cublasLt": (1, 3, 7, 8, 13, 14, 15),
    "cudnn": (1001, 2000, 2002, 3000, 4000, 4003, 4004, 5000),
    "nvrtc": (1, 6, 11),
    "cu": (1, 2, 4, 101, 201, 209, 214, 400, 700, 701, 719, 999),
}
OUT_OF_MEMORY = {"cublasLt": (3,), "cudnn": (4003, 4004), "nvrtc": (1,), "cu": (2,)}
LOST = (214, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721)  # after these a context is of no more use
QUEUES = ("cuLaunchKernel", "cuMemcpy", "cuMemset", "cublasLtMatmul", "cudnnBackendExecute")  # what can go wrong later
FREES = ("Free", "Destroy", "Unload", "Release", "Trim", "cuCtxSetCurrent")  # without these nothing can be given back
NO_DEVICE = ("cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuGetErrorName", "cuGetErrorString")
NO_STATUS = ("GetVersion", "GetErrorString", "GetErrorName", "GetLastErrorString", "nvrtcVersion")


def library(symbol: str) -> str:
    return next(prefix for prefix in CODES if symbol.startswith(prefix))


@dataclass(frozen=True)
class Fault:
    symbol: str
    index: int
    code: int
    mode: str  # once, sticky, late

    def arm(self) -> None:
        dt._C._test.api_fail(self.symbol, self.index, self.code, self.mode == "sticky", self.mode == "late")

    def __str__(self) -> str:
        return f"{self.symbol}[{self.index}]={self.code} {self.mode}"


def disarm() -> None:
    dt._C._test.api_fail(None, -1, 0)


def faults(counts: dict[str, int]) -> Iterator[Fault]:
    for symbol, count in counts.items():
        for index in range(count):
            for code in CODES[library(symbol)]:
                yield Fault(symbol, index, code, "once")
                yield Fault(symbol, index, code, "sticky")
            if symbol.startswith(QUEUES) and "Get" not in symbol and "Desc" not in symbol and "Pref" not in symbol:
                for code in LOST:
                    yield Fault(symbol, index, code, "late")


def first_of_each_site(calls: list[tuple[str, int]]) -> list[tuple[str, int, int]]:
    """By symbol and place in the code, which call of the symbol came from there first."""
    found: dict[tuple[str, int], int] = {}
    counts: Counter[str] = Counter()
    for symbol, site in calls:
        found.setdefault((symbol, site), counts[symbol])
        counts[symbol] += 1
    return [(symbol, site, index) for (symbol, site), index in found.items()]


SITES: set[tuple[str, int]] = set()  # where a call has failed in this process


def chosen_points(name: str, clean: dict[str, Any], share: int) -> Iterator[Fault]:
    """1 in `share` of the points, always the same, and one of each place in the code from which a call is made."""
    new = {(symbol, index): (symbol, site) for symbol, site, index in clean["sites"] if (symbol, site) not in SITES}
    for fault in faults(clean["counts"]):
        if library(fault.symbol) and not fault.symbol.endswith(NO_STATUS):
            site = new.get((fault.symbol, fault.index))
            if site is not None and site not in SITES and fault.mode == "once":
                codes = CODES[library(fault.symbol)]
                if fault.code == codes[zlib.crc32(f"{name}{site[0]}".encode()) % len(codes)]:
                    SITES.add(site)
                    yield fault
                    continue
            if zlib.crc32(f"{name}{fault}".encode()) % share == 0:
                yield fault
