"""The rows of the cpu's benchmarks on a GPU, and larger ones, beside PyTorch: a look at every op, not a record.

    python -m benchmarks.survey [--limit S] [--kernels] [--out FILE.json] [TEXT ...]

Runs the rows whose group or name has one of the texts, all by default. Times are of whole calls, to their end; how far
the two results are apart is told, as a share of the largest number, and not judged.
"""

import argparse
import importlib
import itertools
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from . import harness, large_rows

OURS, PEER = "devtensor", "torch"
ELSEWHERE = ("errors", "data", "simulated GPU", "ladder", "memory", "interchange")  # what is no work of a GPU
TURN_NS, ROUNDS, MOST = 2.5e6, 3, 300  # of a turn; turns; calls of a turn
PROFILED = 3  # calls


class Side:
    """A row in one library, on its device."""

    def __init__(self, name, lib, device, row, inputs):
        self.synchronize = lib.cuda.synchronize if device == "cuda" else lambda: None
        names = {key: lib.from_numpy(np.array(array)).to(device) for key, array in inputs.items()}
        for key, setup in row.names.items():
            names[key] = setup(lib) if callable(setup) else eval(setup, {"lib": lib, **names})
        arguments = ", ".join(f"{key}={key}" for key in {**names, "lib": lib})
        space = {**names, "lib": lib}
        text = f"def loop(turns, {arguments}):\n for _ in turns:\n  {row.expressions[name]}\n"
        exec(f"{text}def value({arguments}):\n return {row.expressions[name]}\n", space)
        self.loop, self.value = space["loop"], space["value"]

    def time(self, calls):
        self.synchronize()
        start = time.perf_counter_ns()
        self.loop(itertools.repeat(None, calls))
        self.synchronize()
        return (time.perf_counter_ns() - start) / calls

    def calls(self):
        self.time(1)
        return int(max(1, min(MOST, TURN_NS // max(self.time(1), 1))))


def numbers(result):
    result = result[0] if isinstance(result, tuple | list) else result
    return np.asarray(result.detach().to("cpu").double().numpy() if hasattr(result, "detach") else result, "float64")


def compare(row, libs, device):
    inputs = row.inputs(np.random.default_rng(0))
    sides = {name: Side(name, lib, device[name], row, inputs) for name, lib in libs.items()}
    ours, theirs = (numbers(side.value()) for side in sides.values())
    apart = np.abs(ours - theirs).max(initial=0) / max(np.abs(theirs).max(initial=0), 1e-30)
    calls = {name: side.calls() for name, side in sides.items()}
    turns = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, side in sides.items():
            turns[name].append(side.time(calls[name]))
    times = {name: statistics.median(found) / 1e3 for name, found in turns.items()}
    return {"group": row.group, "name": row.name, "us": times, "apart": float(apart)}


def show_kernels(row, libs, device):
    """Microseconds of the kernels of a call and their number, by PyTorch's profiler, which sees both; on a GPU."""
    from torch.profiler import ProfilerActivity, profile

    inputs = row.inputs(np.random.default_rng(0))
    for name, lib in libs.items():
        side = Side(name, lib, device[name], row, inputs)
        side.time(2)
        with profile(activities=[ProfilerActivity.CUDA]) as prof:
            side.time(PROFILED)
        print(f"== {row.group}: {row.name} | {name}", flush=True)
        for event in sorted(prof.key_averages(), key=lambda event: -event.device_time_total)[:7]:
            print(f"   {event.device_time_total / PROFILED:9.1f} us  x{event.count / PROFILED:4.1f}  {event.key[:110]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="*", metavar="TEXT")
    parser.add_argument("--limit", type=float, default=3600, metavar="S", help="start no row after S seconds")
    parser.add_argument("--kernels", action="store_true", help="show the kernels of each row in place of its times")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="a record of all rows")
    options = parser.parse_args()
    libs = {name: importlib.import_module(name) for name in (OURS, PEER)}
    if not libs[OURS].cuda.is_available():
        print("there is no CUDA device; python -m devtensor says why", file=sys.stderr)
        return 2
    # Without a GPU, PyTorch computes on the cpu: the way through this file is tried, and times mean nothing.
    device = {OURS: "cuda", PEER: "cuda" if libs[PEER].cuda.is_available() else "cpu"}
    for name, lib in libs.items():
        lib.set_default_device(device[name])
        lib.set_grad_enabled(False)
    libs[PEER].backends.cudnn.allow_tf32 = False  # as devtensor: float32 is float32
    found, failed, start = [], {}, time.monotonic()
    for row in large_rows.ROWS + harness.ROWS:
        title = f"{row.group}: {row.name}"
        wanted = not options.texts or any(text in title for text in options.texts)
        if not wanted or row.group in ELSEWHERE or not {OURS, PEER} <= set(row.expressions):
            continue
        if time.monotonic() - start > options.limit:
            break
        try:
            if options.kernels:
                show_kernels(row, libs, device)
                continue
            found.append(compare(row, libs, device))
        except Exception as error:
            failed[title] = f"{type(error).__name__}: {error}".splitlines()[0]
        if options.out:
            options.out.write_text(json.dumps({"rows": found, "failed": failed}, indent=1) + "\n")
    for one in sorted(found, key=lambda one: one["us"][PEER] / one["us"][OURS]):
        us = one["us"]
        times = f"{us[PEER] / us[OURS]:6.2f}  {us[OURS]:10.1f} {us[PEER]:10.1f} us"
        print(f"{times}  {one['apart']:.0e}  {one['group']}: {one['name']}")
    for title, text in failed.items():
        print(f"FAILED {title}: {text}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
