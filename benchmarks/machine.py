"""What a table must say about where it was measured."""

import contextlib
import ctypes
import datetime
import os
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path


def cpu():
    model, flags = platform.machine(), set()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            model = value.strip()
        elif key.strip() == "flags":
            flags = set(value.split())
            break
    return model, flags


def family():
    """What tells the cores of one name apart; "" elsewhere than on x86."""
    text = Path("/proc/cpuinfo").read_text()
    numbers = [re.search(rf"^{key}\s*: (\d+)$", text, re.MULTILINE) for key in ("cpu family", "model")]
    return "family {}, model {}".format(*(found[1] for found in numbers)) if all(numbers) else ""


def caches():
    """{level: size} of what one core has or shares, but for instructions; empty where the system does not say."""
    found = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        files = [folder / name for name in ("level", "type", "size")]
        if all(file.exists() for file in files):
            level, kind, size = (file.read_text().strip() for file in files)
            found |= {f"L{level}": size} if kind != "Instruction" else {}
    return found


def instruction_set(flags):
    """The best that there is, or the lesser one that DEVTENSOR_CPU asks for."""
    asked = os.environ.get("DEVTENSOR_CPU")
    if asked == "generic":
        return asked
    for name, needed in (("AVX-512", {"avx512f", "avx512vl"}), ("AVX2", {"avx2", "fma"}), ("SSE4.2", {"sse4_2"})):
        if needed <= flags and (asked, name) != ("avx2", "AVX-512"):
            return name
    return "baseline"


def openblas_core():
    """The kernels that NumPy's OpenBLAS chose, or None."""
    paths = {
        line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "openblas" in line
    }
    for path in sorted(paths):
        library = ctypes.CDLL(path)
        for symbol in ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename", "openblas_get_corename"):
            if hasattr(library, symbol):
                function = getattr(library, symbol)
                function.restype = ctypes.c_char_p
                return function().decode()
    return None


def nanoseconds(cost, n=1_000_000):
    """Of one of n repetitions of what every op does, best of five."""
    return round(min(cost(n) for _ in range(5)) / n * 1e9, 1)


@contextlib.contextmanager
def compiled(name):
    """The program of a C file beside this one; None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program")
        source = Path(__file__).with_name(name)
        subprocess.run([compiler, "-O3", "-march=native", "-o", program, source, "-lpthread"], check=True)
        yield program


def printed(program, *arguments):
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True, timeout=300).stdout


def ceilings(threads):
    """{unit: the most that was measured just now}; empty without a compiler."""
    with compiled("peak.c") as program:
        numbers = map(float, printed(program, str(threads)).split()) if program else ()
    names = ("float32 GFLOP/s", "float64 GFLOP/s", "GB/s") if program else ()
    return dict(zip(names, numbers, strict=True))


@contextlib.contextmanager
def round_trips(threads):
    """A function that says how far two processors are from each other now (apart.c), in ns; None with one thread."""
    if threads < 2 or len(os.sched_getaffinity(0)) < 2:
        yield lambda: None
        return
    with compiled("apart.c") as program:
        yield lambda: round_trip(program)


def round_trip(program):
    """None where it cannot be told."""
    try:
        return float(printed(program)) if program else None
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None


def describe(libs, threads, options):
    model, flags = cpu()
    out = {
        "date": datetime.date.today().isoformat(),
        "cpu": model,
        "family": family(),
        "caches": caches(),
        "cores": len(os.sched_getaffinity(0)),
        "instruction_set": instruction_set(flags),
        "threads": threads,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "openblas_core": openblas_core(),
        "load_before": os.getloadavg()[0],
        "origin_record_ns": nanoseconds(libs["devtensor"]._C._test.origin_cost),
        "device_and_dtype_check_ns": nanoseconds(libs["devtensor"]._C._test.check_cost),
        "ceilings": ceilings(threads),
        "effort": "quick" if options.quick else "full",
        "chosen": "behind" if options.behind else "some" if options.only else "all",
    }
    out.update({name: lib.__version__ for name, lib in libs.items() if name != "simulated"})
    return out
