"""python -m devtensor: a report of what is here; `digits`, the main job; `run`, a script as it is."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable

USAGE = """usage: python -m devtensor                                    a report of what is here
       python -m devtensor digits [--help]                    handwritten digits on every device
       python -m devtensor run [--simulate N] [--as-torch] script.py ...
                                                              run a script: CUDA simulated by N devices; `import torch`
                                                              means devtensor"""


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
        return f"{str(error).splitlines()[0]}\n{_advice()}"
    kind = "simulated" if dt.cuda.is_simulated() else "real"
    lines = [f"{count} {kind} device{'s' if count != 1 else ''}"]
    for i in range(count):
        p = dt.cuda.get_device_properties(i)
        lines.append(f"cuda:{i}  {p.name}, capability {p.major}.{p.minor}, {p.total_memory / 2**30:.1f} GiB")
    return "\n".join(lines if count else [*lines, _advice()])


def _advice() -> str:
    """The one command that would make "cuda" work."""
    setting = os.environ.get("DEVTENSOR_CUDA", "auto")
    if setting == "off":
        return "to use CUDA: unset DEVTENSOR_CUDA"
    if os.path.exists("/proc/driver/nvidia/version") or os.path.exists("/dev/nvidiactl"):
        return "to use CUDA: pip install 'devtensor[cuda13]'"
    return "no NVIDIA driver here; to use simulated devices: export DEVTENSOR_CUDA=sim:1"


def _attempts() -> str:
    import devtensor

    return devtensor._C._cuda_report().strip() or "nothing was looked for"


def _version() -> str:
    import devtensor

    return f"{devtensor.__version__} ({os.path.dirname(devtensor.__file__)})"


def report() -> str:
    """What is here, as text. Never raises."""
    rows = [
        ("devtensor", _version),
        ("Python", lambda: f"{platform.python_version()} ({sys.executable})"),
        ("platform", platform.platform),
        ("NumPy", _numpy),
        ("cpu threads", _threads),
        ("DEVTENSOR_CUDA", lambda: os.environ.get("DEVTENSOR_CUDA", "not set (auto)")),
        ("CUDA", _cuda),
        ("libraries", _attempts),
    ]
    lines = []
    for name, work in rows:
        first, *more = _safely(work).splitlines() or [""]
        lines.append(f"{name:<15} {first}")
        lines += [f"{'':<15} {line}" for line in more]
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    """The exit code."""
    if not argv:
        print(report())
        return 0
    if argv[0] == "digits":
        from devtensor import digits

        return digits.main(argv[1:])
    if argv[0] == "run":
        from devtensor._run import run

        return run(argv[1:])
    asked = argv[0] in ("-h", "--help")
    print(USAGE, file=sys.stdout if asked else sys.stderr)
    return 0 if asked else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
