"""python -m devtensor: a report of what is here; `digits`, the main job; `run`, a script; `explain`, an error code."""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
from collections.abc import Callable

from devtensor._diagnosis import advice
from devtensor._version import __version__

# The module of each command, which has add_arguments(parser) and run(options), and what the command does.
COMMANDS = {
    "digits": ("devtensor.digits", "classify handwritten digits on every device"),
    "explain": ("devtensor._commands.explain", "print the page of an error code: cause, correction, examples"),
    "run": ("devtensor._commands.run", "run a script on simulated GPUs, as PyTorch, or with PyTorch explained"),
}


def _safely(work: Callable[[], str]) -> str:
    try:
        return work()
    except Exception as error:  # the report is for machines where things are broken
        return f"{type(error).__name__}: {error}"


def _numpy() -> str:
    import numpy

    return f"{numpy.__version__} ({os.path.dirname(numpy.__file__)})"


def _threads() -> str:
    import devtensor

    return str(devtensor.get_num_threads())


def _cuda() -> str:
    import devtensor as dt

    try:
        count = dt._C._cuda_device_count()
    except Exception as error:
        return str(error).splitlines()[0]
    kind = "simulated" if dt.cuda.is_simulated() else "real"
    lines = [f"{count} {kind} device{'s' if count != 1 else ''}"]
    for i in range(count):
        lines.append(_safely(lambda i=i: _device(i)))  # type: ignore[misc]
    return "\n".join(lines)


def _device(index: int) -> str:
    import devtensor as dt

    p = dt.cuda.get_device_properties(index)
    return f"cuda:{index}  {p.name}, capability {p.major}.{p.minor}, {p.total_memory / 2**30:.1f} GiB"


def _libraries() -> str:
    """The version of each library, or why there is none."""
    import devtensor as dt

    wrong = dt._C._cuda_probe()
    lines = []
    for (name, version), problem in zip(dt._C._cuda_versions().items(), wrong, strict=True):
        lines.append(f"{name:<9} {version if problem is None else problem.splitlines()[0]}")
    return "\n".join(lines)


def _hazards() -> str:
    import devtensor as dt

    devices = range(dt.cuda.device_count())
    if any(dt._C._cuda_hazard(dt.cuda.get_device_capability(i)[0]) for i in devices):
        return "this cuBLAS can corrupt data on this GPU: pip install --upgrade 'nvidia-cublas>=13.2'"
    return "none known"


def _kernels() -> str:
    """What keeps a RawKernel of a simulated device from the rest of the machine: docs/raw-kernel.md."""
    import devtensor as dt

    if not dt.cuda.is_available():
        return "no device for them"
    if not dt.cuda.is_simulated():
        return "run on the GPU"
    means = "limits, no files" + (", no system calls" if dt._C._sim_confines() else "; this system has no seccomp")
    return f"run in a process of their own: {means}"


def _attempts(verbose: bool) -> str:
    import devtensor

    lines = devtensor._C._cuda_report().strip().splitlines() or ["nothing was looked for"]
    vain = [] if verbose else [line for line in lines if ": not loaded (" in line]
    shown = [line for line in lines if line not in vain]
    if vain:
        shown.append(f"{len(vain)} place{'s' if len(vain) != 1 else ''} in vain: python -m devtensor --verbose")
    return "\n".join(shown)


def _version() -> str:
    import devtensor

    return f"{devtensor.__version__} ({os.path.dirname(devtensor.__file__)})"


def report(verbose: bool = False) -> str:
    """What is here, as text, and first what would make CUDA work. Never raises."""
    rows = [
        ("for CUDA", advice.command),
        ("devtensor", _version),
        ("Python", lambda: f"{platform.python_version()} ({sys.executable})"),
        ("platform", platform.platform),
        ("NumPy", _numpy),
        ("cpu threads", _threads),
        ("DEVTENSOR_CUDA", lambda: os.environ.get("DEVTENSOR_CUDA", "not set (auto)")),
        ("CUDA", _cuda),
        ("libraries", _libraries),
        ("hazards", _hazards),
        ("raw kernels", _kernels),
        ("looked for", lambda: _attempts(verbose)),
    ]
    lines = []
    for name, work in rows:
        first, *more = _safely(work).splitlines() or [""]
        lines.append(f"{name:<15} {first}")
        lines += [f"{'':<15} {line}" for line in more]
    return "\n".join(lines).encode(errors="backslashreplace").decode()  # names of files may be no text


def _parser(command: str | None) -> argparse.ArgumentParser:
    """Only this command gets its options, so that the modules of the others are not imported."""
    parser = argparse.ArgumentParser(
        prog="python -m devtensor",
        description="Without a command: a report of this machine, which begins with what would make CUDA work.",
        allow_abbrev=False,  # of a script's own options
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="report every place where libraries were sought")
    parser.add_argument("-V", "--version", action="version", version=f"devtensor {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, (module, what) in COMMANDS.items():
        added = commands.add_parser(name, help=what)
        if name == command:
            work = importlib.import_module(module)
            work.add_arguments(added)
            added.set_defaults(run=work.run)
    return parser


def main(argv: list[str]) -> int:
    """The exit code."""
    command = next((word for word in argv if not word.startswith("-")), None)
    try:
        options = _parser(command).parse_args(argv)
    except SystemExit as end:  # after --help and --version, or an error that was printed
        return int(end.code or 0)
    if "run" in options:
        return int(options.run(options))
    print(report(options.verbose))
    return 0


def console() -> int:
    """The command `devtensor`."""
    if sys.argv[1:2] == ["run"]:
        return main(sys.argv[1:])  # the errors of a script are its own
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # of head, which has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


if __name__ == "__main__":
    sys.exit(console())
