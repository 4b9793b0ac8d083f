"""Runs the rows of a GPU: devtensor against PyTorch and CuPy, side by side in one process, as `harness` does on a CPU.

Time on the device is that between two events around the calls of a turn; time of the host is what submitting them
takes, with nothing waited for; wall time is to the end of the last one. On simulated devices only the way through the
code is real: the times mean nothing, and the record says so.
"""

import contextlib
import gc
import importlib
import itertools
import json
import subprocess
import sys
import time
import warnings

import numpy as np

from . import cuda_layers, cuda_rows, harness, machine, report

SIMULATED = "simulated: times mean nothing"
QUEUE = 500  # calls in flight: fewer than a stream takes before it makes the host wait
WARM_UP = 0.1  # of the timed calls of a turn


class Devtensor:
    name = "devtensor"

    def __init__(self):
        self.lib = importlib.import_module("devtensor")

    def cuda(self, array, dtype):
        return self.lib.array(array).to("cuda", dtype)

    def host(self, array):
        return self.lib.array(array)

    def pinned(self, x):
        return x.pin_memory()

    def channels_last(self, x):
        return x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)

    def to_numpy(self, x):
        return x.to("cpu", self.lib.float64).numpy()

    def synchronize(self):
        self.lib.cuda.synchronize()

    def event(self):
        return self.lib.cuda.Event(enable_timing=True) if hasattr(self.lib.cuda, "Event") else None

    def elapsed_ns(self, start, end):
        return start.elapsed_time(end) * 1e6

    def context(self, precision, hook):
        self.lib.set_float32_precision(precision)
        return contextlib.nullcontext()


class Torch:
    name = "torch"

    def __init__(self):
        self.lib = importlib.import_module("torch")
        if not self.lib.cuda.is_available():
            raise ModuleNotFoundError("PyTorch has no CUDA device", name="torch")

    def cuda(self, array, dtype):
        return self.lib.tensor(array).to("cuda", dtype)

    def host(self, array):
        return self.lib.tensor(array)

    def pinned(self, x):
        return x.pin_memory()

    def channels_last(self, x):
        return x.contiguous(memory_format=self.lib.channels_last)

    def to_numpy(self, x):
        return x.to("cpu", self.lib.float64).numpy()

    def synchronize(self):
        self.lib.cuda.synchronize()

    def event(self):
        return self.lib.cuda.Event(enable_timing=True)

    def elapsed_ns(self, start, end):
        return start.elapsed_time(end) * 1e6

    @contextlib.contextmanager
    def context(self, precision, hook):
        backends = self.lib.backends
        backends.cuda.matmul.allow_tf32 = backends.cudnn.allow_tf32 = precision == "tf32"
        backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        backends.cudnn.benchmark = hook == "tuned"
        with self.lib.inference_mode():
            yield


class Cupy:
    name = "cupy"

    def __init__(self):
        self.lib = importlib.import_module("cupy")
        self.lib.cuda.runtime.getDevice()

    def cuda(self, array, dtype):
        return self.lib.asarray(array).astype(dtype)

    def host(self, array):
        return array

    def pinned(self, x):
        raise NotImplementedError

    def channels_last(self, x):
        raise NotImplementedError

    def to_numpy(self, x):
        return (x if isinstance(x, np.ndarray) else self.lib.asnumpy(x)).astype("float64")

    def synchronize(self):
        self.lib.cuda.get_current_stream().synchronize()

    def event(self):
        return self.lib.cuda.Event()

    def elapsed_ns(self, start, end):
        return self.lib.cuda.get_elapsed_time(start, end) * 1e6

    def context(self, precision, hook):
        return contextlib.nullcontext()


def libraries(simulated):
    """{name: library} of those that are here and have a device."""
    found = {}
    for make in (Devtensor,) if simulated else (Devtensor, Torch, Cupy):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[make.name] = make()
        except ModuleNotFoundError:
            if make is Devtensor:
                raise
        except Exception as error:
            print(f"{make.name} cannot be used: {error}", file=sys.stderr)
    return found


def compile_loop(expression, names):
    """loop(turns): evaluates; value(): one result."""
    arguments = ", ".join(f"{name}={name}" for name in names)
    source = (
        f"def loop(turns, {arguments}):\n    for _ in turns:\n        {expression}\n"
        f"def value({arguments}):\n    return {expression}\n"
    )
    space = dict(names)
    exec(source, space)
    return space["loop"], space["value"]


class Runner:
    """One library's way to do a row."""

    def __init__(self, row, label, library, inputs):
        self.row, self.label, self.library, self.hook = row, label, library, row.hooks.get(label)
        names = dict(inputs)
        tools = {"lib": library.lib}
        tools |= {name: getattr(library, name) for name in ("cuda", "host", "pinned", "channels_last")}
        for name, setup in row.names.items():
            names[name] = eval(setup, {**tools, **names})
        self.names = {"lib": library.lib} | {name: value for name, value in names.items() if name not in inputs}
        written = row.expressions[label]
        self.expression = self.first_that_works([written] if isinstance(written, str) else list(written))
        self.loop, self.value = compile_loop(self.expression, self.names)

    def first_that_works(self, expressions):
        for expression in expressions[:-1]:
            with self.context(), contextlib.suppress(TypeError):
                compile_loop(expression, self.names)[1]()
                return expression
        return expressions[-1]

    def context(self):
        return self.library.context(self.row.precision, self.hook)

    def checked(self, result):
        """What the reference gives of a result, on the host."""
        if self.row.every > 1:
            result = result[:: self.row.every]
        return self.row.part(self.library.to_numpy(result))

    def check(self, expected, bound):
        with self.context():
            start = time.perf_counter_ns()
            result = self.value()
            self.library.synchronize()
            self.first_ns = time.perf_counter_ns() - start
            got, again = self.checked(result), self.checked(self.value())
        if got.tobytes() != again.tobytes() and self.library.name == "devtensor":
            raise AssertionError(f"{self.row.name}, {self.label}: two calls gave different bits")
        return harness.check(f"{self.row.name}, {self.label}", again, np.asarray(expected), bound)

    def time(self, calls):
        """Nanoseconds of `calls` calls, by the row's way of timing."""
        row, library, turns = self.row, self.library, itertools.repeat(None, calls)
        start, end = (library.event(), library.event()) if row.timed == cuda_rows.DEVICE else (None, None)
        with self.context():
            library.synchronize()
            began = time.perf_counter_ns()
            if start is not None:
                start.record()
            self.loop(turns)
            if end is not None:
                end.record()
            submitted = time.perf_counter_ns()
            library.synchronize()
            ended = time.perf_counter_ns()
        if start is not None:
            return library.elapsed_ns(start, end)
        return (submitted if row.timed == cuda_rows.HOST else ended) - began

    def calls(self, turn_ns):
        """How many calls fill a turn."""
        n = 1
        while True:
            spent = max(self.time(n), 1)
            if spent >= turn_ns / 10 or n >= QUEUE:
                return int(min(QUEUE, max(1, n * turn_ns // spent)))
            n *= 4


def prepare(row, libs):
    """Runners whose results are right, and how far they are off; what is wrong with a peer is only printed."""
    inputs = row.inputs(np.random.default_rng(0))
    expected, bound = row.reference(inputs)
    runners, errors = {}, {}
    for label in row.expressions:
        library = libs.get(label.partition(",")[0])
        if library is None:
            continue
        try:
            runner = Runner(row, label, library, inputs)
            errors[label] = runner.check(expected, bound)
            runners[label] = runner
        except Exception as error:
            print(f"{row.name}, {label}: {type(error).__name__}: {str(error).splitlines()[0]}", file=sys.stderr)
            if label == "devtensor" and not isinstance(error, NotImplementedError):
                raise
    return runners, errors


def time_row(row, libs, effort, tick):
    runners, errors = prepare(row, libs)
    if "devtensor" not in runners:
        return None
    first = {label: runner.first_ns for label, runner in runners.items()}
    counts = {label: runner.calls(effort.turn_ns) for label, runner in runners.items()}
    turns = [(label, label) for label in runners] + [(harness.CONTROL, "devtensor")]
    times = {label: [] for label, _ in turns}
    gc.collect()
    gc.disable()
    try:
        for _ in range(effort.rounds):
            for label, name in turns:
                runners[name].time(max(1, int(counts[name] * WARM_UP)))
                times[label].append(runners[name].time(counts[name]) / counts[name])
            tick()
    finally:
        gc.enable()
    out = harness.summary(row.group, row.name, times, row.work, row.unit, first, errors)
    if row.unit == "TFLOP/s":
        out["rate"] = {label: rate / 1e3 for label, rate in out["rate"].items()}
    return {**out, "timed": row.timed, "expressions": {label: r.expression for label, r in runners.items()}}


def query(fields):
    """What nvidia-smi says, or None."""
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


CLOCKS = "clocks.sm,clocks.mem,clocks.max.sm,power.draw,temperature.gpu"


def describe(libs, options, simulated):
    dt = libs["devtensor"].lib
    properties = dt.cuda.get_device_properties(0)
    cpu, flags = machine.cpu()
    out = {
        "date": machine.datetime.date.today().isoformat(),
        "device": "cuda",
        "gpu": properties.name,
        "simulated": SIMULATED if simulated else False,
        "capability": f"{properties.major}.{properties.minor}",
        "memory_gib": round(properties.total_memory / 2**30, 1),
        "driver": query("driver_version"),
        "libraries": dt.cuda.library_versions(),
        "clocks_before": query(CLOCKS),
        "cpu": cpu,
        "instruction_set": machine.instruction_set(flags),
        "cores": len(machine.os.sched_getaffinity(0)),
        "python": machine.platform.python_version(),
        "effort": "quick" if options.quick else "full",
        "events": libs["devtensor"].event() is not None,
    }
    return out | {name: library.lib.__version__ for name, library in libs.items()}


def file_stem(meta):
    words = "simulated" if meta["simulated"] else meta["gpu"]
    text = "".join(c if c.isalnum() else "-" for c in words.lower()).strip("-")
    return f"{meta['date']}-{text}{'-quick' if meta['effort'] == 'quick' else ''}"


def write(record, stem):
    stem.with_name(stem.name + ".json").write_text(json.dumps(record, indent=1) + "\n")


class Effort:
    def __init__(self, quick, simulated):
        self.rounds = 2 if simulated else 5 if quick else 15
        self.turn_ns = 1e5 if simulated else 5e6 if quick else 30e6


def run(options):
    import devtensor as dt

    if not dt.cuda.is_available():
        print("there is no CUDA device; python -m devtensor says why", file=sys.stderr)
        return 2
    simulated = dt.cuda.is_simulated()
    libs = libraries(simulated)
    wanted = options.only.lower()
    every = [*cuda_rows.rows(simulated), *cuda_layers.rows(simulated)]
    chosen = [row for row in every if wanted in f"{row.group} {row.name}".lower()]
    if options.list:
        print("\n".join(f"{row.group}: {row.name}" for row in chosen))
        return 0
    if not chosen:
        print(f"no row contains {options.only!r}; --list shows them", file=sys.stderr)
        return 2
    meta = describe(libs, options, simulated)
    effort, late = Effort(options.quick, simulated), time.monotonic() + options.limit
    done, missing, failed = [], [], []
    meta |= {"missing": missing, "failed": failed}
    record = {"machine": meta, "rows": done}
    options.out.mkdir(parents=True, exist_ok=True)
    stem = options.out / file_stem(meta)
    with report.progress(len(chosen) * effort.rounds) as tick:
        for row in chosen:
            if time.monotonic() > late:
                reached = len(done) + len(missing) + len(failed)
                meta["cut_off"] = f"{len(chosen) - reached} rows were not reached in {options.limit:.0f} s"
                break
            try:
                one = time_row(row, libs, effort, tick)
            except Exception as error:  # the rest is still worth having
                failed.append(f"{row.name}: {type(error).__name__}: {error}")
                continue
            (missing if one is None else done).append(row.name if one is None else one)
            write(record, stem)  # whatever ends the run, these rows are there
    meta["clocks_after"] = query(CLOCKS)
    for key, value in meta.items():
        print(f"{key}: {value}")
    print(report.table(record))
    write(record, stem)
    stem.with_name(stem.name + ".md").write_text(report.markdown(record))
    report.plot(record, stem)
    print(f"written: {stem}.json, .md")
    for text in failed:
        print(f"FAILED: {text}", file=sys.stderr)
    return 1 if failed else 0
