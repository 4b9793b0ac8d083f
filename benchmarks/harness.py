"""Runs the rows: checks each result, then times the libraries in turns, A B C A, A B C A, ...

The second A is the control: the same code against itself shows what the machine's noise does to a ratio. Other
libraries' threads spin for up to a tenth of a second after a call, so every turn waits until they all sleep, warms up,
and only then is timed.
"""

import csv
import gc
import importlib
import itertools
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from . import (
    attention_rows,
    data_rows,
    gradient_rows,
    loop_rows,
    machine,
    memory,
    networks,
    nn_rows,
    order_rows,
    product_rows,
    public_rows,
    recurrent_rows,
    report,
    rows,
    training_rows,
)

OURS = "devtensor"
CONTROL = "control"
PEERS_SHARE = 2  # of the bound that ours are held to: the gelu of PyTorch with AVX-512 is out by 9 units
SIMULATED = "simulated"  # our own arrays on a simulated GPU
INTERPRETER = "interpreter"  # its own arrays


class Effort:
    """How long is measured. Threads that slept may share one processor for tens of milliseconds: they are warmed up
    until the system has spread them."""

    def __init__(self, quick, threads):
        self.rounds = 5 if quick else 15
        self.turn_ns = 5e6 if quick else 20e6
        self.warm_up_ns = 40e6 if threads > 1 else self.turn_ns / 10


def libraries():
    found = {}
    for name in (OURS, "numpy", "torch"):
        try:
            found[name] = importlib.import_module(name)
        except ModuleNotFoundError as e:
            if name != "torch" or e.name != "torch":
                raise
    if "torch" in found:
        found["torch"].set_grad_enabled(False)
    found[OURS].set_grad_enabled(False)  # as PyTorch: what is measured is the ops
    if found[OURS].cuda.is_available() and found[OURS].cuda.get_device_properties(0).is_simulated:
        found[SIMULATED] = found[OURS]
    return found


def set_threads(libs, n):
    for name in (OURS, "torch"):
        if name in libs:
            libs[name].set_num_threads(n)


def sleeping():
    """Whether every other thread of this process is asleep."""
    me = str(threading.get_native_id())
    for task in os.listdir("/proc/self/task"):
        if task != me:
            try:
                state = Path(f"/proc/self/task/{task}/stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue  # it has ended
            if state != "S":
                return False
    return True


def wait_until_quiet(limit_s=1.0):
    """Returns once three looks in a row, a millisecond apart, find all other threads asleep."""
    end, quiet = time.perf_counter() + limit_s, 0
    while quiet < 3 and time.perf_counter() < end:
        quiet = quiet + 1 if sleeping() else 0
        time.sleep(0.001)


def compile_loop(expression, names):
    """loop(n): nanoseconds of n evaluations; value(): one result. The inputs are local variables, as in a program."""
    arguments = ", ".join(f"{name}={name}" for name in names)
    comma = ", " if arguments else ""
    source = (
        f"def loop(n{comma}{arguments}):\n"
        "    turns = repeat(None, n)\n"
        "    start = clock()\n"
        "    for _ in turns:\n"
        f"        {expression}\n"
        "    return clock() - start\n"
        f"def value({arguments}):\n"
        f"    return {expression}\n"
    )
    space = {**names, "clock": time.perf_counter_ns, "repeat": itertools.repeat}
    exec(source, space)
    return space["loop"], space["value"]


def convert(name, lib, array):
    """The library's own copy of a NumPy array."""
    if name == "numpy":
        return array
    if name == SIMULATED:
        return lib.array(array).to("cuda:0")
    return lib.array(array) if name == OURS else lib.tensor(array)


def to_numpy(result):
    return np.asarray(result if isinstance(result, np.ndarray | np.generic) else result.to("cpu").numpy())


def check(name, got, expected, bound):
    """Largest error of a NumPy array as a fraction of what rounding allows."""
    got = got.astype("float64")
    if got.shape != expected.shape:
        raise AssertionError(f"{name}: shape {got.shape}, expected {expected.shape}")
    error = np.abs(got - expected)
    if not np.all(error <= bound):  # NaN fails too
        raise AssertionError(f"{name}: wrong by {np.nanmax(error)} (allowed {np.max(bound)})")
    return float(np.max(error / np.maximum(bound, np.finfo("float64").tiny), initial=0.0))


def poison(lib, result):
    """Leaves NaN, or 85 of integers, where the next result of this size is likely to be put."""
    value = float("nan") if "float" in str(result.dtype) else 85
    trash = [lib.full(tuple(result.shape), value, dtype=result.dtype) for _ in range(2)]
    del trash


def prepare(row, libs):
    """{library: loop} of those that have the row, after a check of each against the reference."""
    inputs = row.inputs(np.random.default_rng(0))
    expected, bound = row.reference(inputs)
    loops, first, errors = {}, {}, {}
    for name, expression in row.expressions.items():
        if name not in libs:
            continue
        lib = libs[name]
        names = {key: convert(name, lib, array) for key, array in inputs.items()}
        for key, setup in row.names.items():
            names[key] = setup(lib) if callable(setup) else eval(setup, {"lib": lib, **names})
        loop, value = compile_loop(expression, names)
        start = time.perf_counter_ns()
        result = value()
        first[name] = time.perf_counter_ns() - start
        if name == OURS:
            poison(lib, result)
        del result
        allowed = bound if name in (OURS, SIMULATED) else PEERS_SHARE * bound
        errors[name] = check(f"{row.name}, {name}", to_numpy(value()), expected, allowed)
        loops[name] = loop
    if row.floor:
        loops[INTERPRETER], _ = compile_loop(row.floor, rows.FLOOR_NAMES)
    return loops, first, errors


def calls_per_turn(loop, turn_ns):
    n = 1
    while True:
        wait_until_quiet()
        spent = loop(n)
        if spent >= turn_ns / 10 or n >= 10_000_000:
            return max(1, round(n * turn_ns / max(spent, 1)))
        n *= 4


def time_row(row, libs, effort, tick):
    loops, first, errors = prepare(row, libs)
    counts = {name: calls_per_turn(loop, effort.turn_ns) for name, loop in loops.items()}
    turns = [(name, name) for name in loops] + [(CONTROL, OURS)]
    times = {label: [] for label, _ in turns}
    gc.collect()
    gc.disable()
    try:
        for _ in range(effort.rounds):
            for label, name in turns:
                wait_until_quiet()
                loops[name](max(1, int(counts[name] * effort.warm_up_ns / effort.turn_ns)))
                times[label].append(loops[name](counts[name]) / counts[name])
                tick()
    finally:
        gc.enable()
    out = summary(row.group, row.name, times, row.work, row.unit, first, errors)
    out["target"], out["ladder"], out["at"] = row.target, row.ladder, row.at
    return out


def summary(group, name, times, work=0.0, unit="", first=None, errors=None):
    """A row of the record. Ratios are taken within a round: peer time over our time."""
    ratios = {}
    for label, values in times.items():
        if label != OURS:
            per_round = [theirs / ours for theirs, ours in zip(values, times[OURS], strict=True)]
            ratios[label] = statistics.quantiles(per_round, n=4, method="inclusive")
    medians = {label: statistics.median(values) for label, values in times.items()}
    rate = {label: work / t for label, t in medians.items()} if unit else {}
    return {
        "group": group,
        "name": name,
        "ns": times,
        "median_ns": medians,
        "ratio_quartiles": ratios,
        "rate": rate,
        "unit": unit,
        "first_call_ns": first or {},
        "error_of_allowed": errors or {},
    }


def time_imports(libs, effort, tick):
    """Seconds in `import x`, each in a process of its own."""
    names = [name for name in rows.IMPORTS if name in libs]
    times = {label: [] for label in [*names, CONTROL]}
    for _ in range(effort.rounds):
        for label in times:
            module = OURS if label == CONTROL else label
            code = f"import time; t = time.perf_counter_ns(); import {module}; print(time.perf_counter_ns() - t)"
            out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
            times[label].append(float(out.stdout))
            tick()
    return summary("import", "import", times)


ROWS = [
    *rows.ROWS,
    *loop_rows.ROWS,
    *nn_rows.ROWS,
    *attention_rows.ROWS,
    *gradient_rows.ROWS,
    *training_rows.ROWS,
    *recurrent_rows.ROWS,
    *product_rows.ROWS,
    *order_rows.ROWS,
    *public_rows.ROWS,
    *data_rows.ROWS,
    *networks.ROWS,
]


def run(options, threads):
    libs = libraries()
    set_threads(libs, threads)
    effort = Effort(options.quick, threads)
    wanted = options.only.lower()
    everything = [*ROWS, *rows.SIMULATED, *([] if options.quick else rows.LADDERS)]
    chosen = [row for row in everything if wanted in f"{row.group} {row.name} {row.ladder}".lower()]
    imports = wanted in "import"
    peaks = [case for case in memory.CASES if wanted in f"memory {case.name}".lower()]
    if options.behind:
        names = report.behind(options.behind)
        chosen = [row for row in chosen if (row.group, row.name) in names]
        imports, peaks = imports and ("import", "import") in names, []
    if options.list:
        for row in chosen:
            print(f"{'ladder' if row.ladder else row.group}: {row.name}")
        for case in peaks:
            print(f"memory: {case.name}")
        return 0
    if not chosen and not imports and not peaks:
        print(f"no row contains {options.only!r}; --list shows them", file=sys.stderr)
        return 2

    meta = machine.describe(libs, threads, options)
    for key, value in meta.items():
        print(f"{key}: {value}")
    if meta["load_before"] > 0.5:
        print("WARNING: other programs are running on this machine; these figures are not for a table", file=sys.stderr)
    per_round = [1 + sum(name in libs for name in row.expressions) + bool(row.floor) for row in chosen]
    if imports:
        per_round.append(1 + len(libs))
    done, held = [], []
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with report.progress(sum(per_round) * effort.rounds) as tick, machine.round_trips(threads) as round_trip:
            before = round_trip()
            for row in chosen:
                done.append(time_row(row, libs, effort, tick))
                after = round_trip()
                done[-1]["round_trip_ns"] = max(before, after) if before and after else None
                before = after
            if imports:
                done.append(time_imports(libs, effort, tick))
        held = memory.measure(peaks, libs)
    except KeyboardInterrupt:
        meta["stopped"] = f"after {len(done)} of {len(chosen) + imports} rows"
    record = {"machine": meta, "rows": done, "memory": held}
    print(report.tables(record))
    stem = report.file_stem(meta)
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / f"{stem}.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(report.csv_lines(record))
    (options.out / f"{stem}.md").write_text(report.markdown(record))
    plots = report.plot(record, options.out / stem)
    print(f"written: {options.out / stem}.csv, .md{''.join(', ' + p.name for p in plots)}")
    return 0
