"""Prepares the environment, then runs the harness. Nothing here imports NumPy: BLAS reads its settings at import."""

import argparse
import os
import sys
from pathlib import Path

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def parse():
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds: for a look, not for a table")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose group or name contains TEXT")
    parser.add_argument("--behind", type=Path, metavar="CSV", help="cpu: rows in which that record has us behind")
    parser.add_argument("--threads", type=int, metavar="N", help="threads for every library (default: all cores)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results", help="folder for the record")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="what is measured (default: cpu)")
    parser.add_argument("--limit", type=float, default=3600, metavar="S", help="cuda: start no row after S seconds")
    parser.add_argument("--list", action="store_true", help="print the rows and stop")
    return parser.parse_args()


def clean_environment(threads):
    """A process whose libraries choose their own kernels, use the same number of threads and keep what they compile."""
    unwanted = ("OPENBLAS_CORETYPE", "PYTHONDONTWRITEBYTECODE")
    wanted = {k: v for k, v in os.environ.items() if k not in unwanted}
    wanted.update(dict.fromkeys(THREADS, str(threads)))
    wanted.setdefault("DEVTENSOR_CUDA", "sim:1")  # opened by the rows that use it alone
    if wanted != dict(os.environ):
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks", *sys.argv[1:]], wanted)


def main():
    options = parse()
    if options.device == "cuda":
        from . import cuda

        return cuda.run(options)
    threads = options.threads or len(os.sched_getaffinity(0))
    clean_environment(threads)
    from . import harness

    return harness.run(options, threads)


if __name__ == "__main__":
    sys.exit(main())
