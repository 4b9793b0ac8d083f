"""Runs calls in child processes, so that a crash, a hang or a corrupted heap names its call."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

import fuzz

HERE = Path(fuzz.__file__).parent
BATCH = 4000
WARM = 30
MEMORY = 512 << 20  # bytes that a call may ask for
CPU_SECONDS = 20  # of a call, until it counts as one that does not end
WALL_SECONDS = 200  # without a sign, for a machine under load


@dataclass(frozen=True)
class Options:
    kind: str
    seed: str
    first: str = ""  # a Python file that children run before anything
    seconds: int = CPU_SECONDS


@dataclass(frozen=True)
class Finding:
    """What a call did wrong, its source, and the line that does it again."""

    number: int
    what: str
    source: str
    replay: str

    def __str__(self) -> str:
        return f"{self.replay}\n{self.source}{self.what}\n"


@dataclass
class Report:
    calls: int = 0
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0
    show: Callable[[Finding], object] = lambda finding: None


def replay(options: Options, number: int) -> str:
    first = f" --first {options.first}" if options.first else ""
    return f"python tests/fuzz {options.kind} --seed {options.seed} --call {number}{first}"


# ---------------------------------------------------------------- the child


def limit_memory() -> None:
    """Against requests of many gigabytes; the sanitizer has an option for that, and maps terabytes itself."""
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + 2 * MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def child(options: Options, start: int, stop: int) -> None:
    """Judges calls; writes a line of JSON for each number begun and for each finding."""
    import faulthandler
    import gc
    import warnings

    faulthandler.enable()
    faulthandler.register(signal.SIGPROF, chain=True)
    if options.first:
        code = Path(options.first).read_text()
        exec(compile(code, options.first, "exec"), {"__name__": "first"})
    from fuzz import judge, programs

    out = os.dup(1)
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)  # calls may print

    def say(**line: object) -> None:
        os.write(out, json.dumps(line).encode() + b"\n")

    warnings.simplefilter("ignore")
    state = judge.State()
    for number in range(WARM):  # so that caches are as large as they get
        judge.run(programs.program("api", "warm", number), "cuda:0")
        state.restore()
    if options.kind == "api":  # some calls import it, and a collection walks all that is not frozen
        with contextlib.suppress(ImportError):
            import torch  # noqa: F401
    gc.collect()
    gc.freeze()
    limit_memory()
    for number in range(start, stop):
        signal.setitimer(signal.ITIMER_PROF, options.seconds)
        say(begin=number)
        program = programs.program(options.kind, options.seed, number)
        try:
            found = judge.judged(program, state)
        except Exception as error:  # what is the same for every call to come
            say(finding=f"the process is of no use any more: {type(error).__name__}: {error}", number=number)
            return
        if found:
            say(finding=found, number=number)
        if number % 100 == 0:
            gc.collect()
    signal.setitimer(signal.ITIMER_PROF, 0)
    say(end=stop)


# ---------------------------------------------------------------- the parent


def environment() -> dict[str, str]:
    asan = os.environ.get("ASAN_OPTIONS", "")
    return {
        **os.environ,
        "DEVTENSOR_CUDA": "sim:1",
        "DEVTENSOR_SIM_MEMORY": str(MEMORY),
        "DEVTENSOR_CACHE": "0",
        "DEVTENSOR_NUM_THREADS": "2",
        "PYTHONHASHSEED": "0",
        "ASAN_OPTIONS": f"{asan}:max_allocation_size_mb={MEMORY >> 20}:allocator_may_return_null=1".lstrip(":"),
    }


def lines_of(process: subprocess.Popen[bytes]) -> Iterator[dict[str, object]]:
    """What a child says, until it ends or is silent for too long."""
    assert process.stdout is not None
    rest, said = b"", time.monotonic()
    while True:
        ready, _, _ = select.select([process.stdout], [], [], 5.0)
        if ready:
            data = os.read(process.stdout.fileno(), 1 << 16)
            if not data:
                return
            said = time.monotonic()
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                with contextlib.suppress(ValueError):
                    yield json.loads(line)
        elif time.monotonic() - said > WALL_SECONDS:
            process.send_signal(signal.SIGABRT)  # its threads are shown
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            return


def batch(options: Options, start: int, stop: int, report: Report, most: int) -> int:
    """Runs calls from start in one child; the number of the first that has not been run."""
    from fuzz import programs

    def found(number: int, what: str) -> None:
        source = programs.program(options.kind, options.seed, number).source
        report.findings.append(Finding(number, what, source, replay(options, number)))
        report.show(report.findings[-1])

    command = [sys.executable, str(HERE), options.kind, "--seed", options.seed, "--seconds", str(options.seconds)]
    command += ["--child", str(start), str(stop), *(["--first", options.first] if options.first else [])]
    begun, ended = start - 1, False
    with tempfile.TemporaryFile() as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment()) as process:
            for line in lines_of(process):
                begun = int(str(line.get("begin", begun)))
                ended = "end" in line
                if "finding" in line:
                    ended = True
                    found(int(str(line["number"])), str(line["finding"]))
                    if len(report.findings) >= most:
                        process.kill()
                        break
            process.wait()
        if not ended:
            errors.seek(0)
            text = errors.read().decode(errors="replace")
            if begun < start:
                raise RuntimeError(f"the child did not start:\n{text[-4000:]}")
            found(begun, f"{death(process.returncode)}\n{text[:6000]}")
    return begun + 1


def death(code: int) -> str:
    if code == -signal.SIGPROF:
        return "a hang: the call took too much time of the processor"
    return f"a crash: {signal.Signals(-code).name}" if code < 0 else f"a crash: the process ended with {code}"


def fuzz_calls(
    options: Options,
    start: int,
    calls: int,
    show: Callable[[Finding], object] = lambda _: None,
    most: int = sys.maxsize,
) -> Report:
    """Judges this many calls, shows each finding at once; ends early with so many of them."""
    report, begun, at = Report(show=show), time.monotonic(), start
    with tqdm(total=calls, unit="call", mininterval=5, disable=calls < BATCH) as progress:
        while at < start + calls and len(report.findings) < most:
            at = batch(options, at, min(at + BATCH, start + calls), report, most)
            progress.update(at - start - progress.n)
    report.calls, report.seconds = at - start, time.monotonic() - begun
    return report
