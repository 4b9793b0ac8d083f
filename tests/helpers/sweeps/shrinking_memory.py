"""Ops in a process that may use less and less memory: run by test_alloc_failures.

MALLOC_MMAP_THRESHOLD_=65536 python shrinking_memory.py DEVICE

Prints a JSON object: calls, those without memory, and what went wrong. By the variable the C library gives back what
is freed. The limit (RLIMIT_AS) leaves some MiB above what the process has: many at first, none at last. Each op
succeeds with the result that it has without a limit, or raises MemoryError (OutOfMemoryError of a device).
"""

from __future__ import annotations

import gc
import json
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import devtensor as dt

MIB = 1 << 20
ROOM = [*range(128, 16, -8), *range(16, -1, -1)]

Op = Callable[[dt.DeviceArray], dt.DeviceArray]


def learned(x: dt.DeviceArray, op: Op) -> dt.DeviceArray:
    x = x.detach().requires_grad_()
    op(x).sum().backward()
    assert x.grad is not None
    return x.grad


OPS: dict[str, Op] = {
    "add": lambda x: x + x,
    "to float64": lambda x: x.double(),
    "transposed": lambda x: x.T.contiguous(),
    "matmul": lambda x: x @ x,
    "sum": lambda x: x.sum(0),
    "sort": lambda x: x.sort(0).values,
    "cumsum": lambda x: x.cumsum(1),
    "cat": lambda x: dt.cat([x, x, x]),
    "mask": lambda x: x[x > 0],
    "indices": lambda x: x[[3, 1, 2] * 400],
    "softmax": lambda x: x.softmax(1),
    "conv2d": lambda x: dt.conv2d(x[None, None], dt.ones(4, 1, 3, 3, device=x.device)),
    "to the cpu": lambda x: x.cpu(),
    "through a device": lambda x: x.to("cuda:0").cpu(),
    "pickle of rows": lambda x: dt.tensor(x[:40].tolist(), device=x.device),
    "gradient of matmul": lambda x: learned(x, lambda y: y @ y),
    "gradient of softmax": lambda x: learned(x, lambda y: y.softmax(1).square()),
}


@contextmanager
def room(mib: int) -> Iterator[None]:
    """Only so much more of the address space than is in use now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as pages:
        used = int(pages.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + mib * MIB, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def main(device: str) -> None:
    x = dt.randn(1200, 1200, generator=dt.Generator("cpu").manual_seed(0)).to(device)
    want = {name: op(x).cpu() for name, op in OPS.items()}
    kept, calls, refused, found = x.cpu(), 0, 0, []
    for mib in ROOM:
        for name, op in OPS.items():
            result, calls = None, calls + 1
            gc.collect()
            dt._C._cpu_trim_cache(0)  # blocks that are kept need nothing of the system
            try:
                with room(mib):
                    result = op(x)
            except MemoryError:
                refused += 1
            except Exception as error:
                found.append(f"{name}, {mib} MiB: {type(error).__name__}: {error}"[:300])
            if result is not None and not dt.equal(result.cpu(), want[name]):
                found.append(f"{name}, {mib} MiB: another result")
    if not dt.equal(kept, x.cpu()):
        found.append("the operand has changed")
    print(json.dumps({"calls": calls, "refused": refused, "found": found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
