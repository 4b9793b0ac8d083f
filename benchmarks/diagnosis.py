"""What origins and errors cost: python -m benchmarks.diagnosis. Times are the least of many rounds.

The share of origins in `a + b` is what origin_cost measures, in C and alone: a step made, linked to that of the
operand, and released, which is all that a build without origins would not do.
"""

import linecache
import os
import sys
import tempfile
import time

import devtensor as dt
from devtensor import _C, _errors

ROUNDS = 30


def least(run, count, rounds=ROUNDS):
    """Seconds for one of count repetitions that run(count) makes."""
    return min(run(count) for _ in range(rounds)) / count


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def behind_own_frames(depth):
    """origin_cost called through functions that stand in devtensor's own folder."""
    own = os.path.join(os.path.dirname(dt.__file__), "nn", "measured.py")
    code = "".join(f"def f{i + 1}(n): return f{i}(n)\n" for i in range(depth))
    space = {"f0": _C._test.origin_cost}
    exec(compile(code, own, "exec"), space)
    return space[f"f{depth}"]


def additions(count):
    a, b = dt.ones(1), dt.ones(1)

    def run():
        for _ in range(count):
            a + b

    return timed(run)


PROGRAM = """
def work(x, w, n):
    for i in range(n):
        try:
            dt.linear(x, w)
        except RuntimeError:
            pass
"""


def mistakes(lines):
    """A function that makes n mistakes in a file of that many lines, and its name."""
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(
            "import devtensor as dt\n" + "".join(f"def f{i}(a):\n    return a + {i}\n" for i in range(lines // 2))
        )
        file.write(PROGRAM)
    space = {}
    with open(file.name) as source:
        exec(compile(source.read(), file.name, "exec"), space)
    return space["work"], file.name


def first_mistake(lines, x, w):
    work, name = mistakes(lines)
    try:
        return timed(lambda: work(x, w, 1))
    finally:
        linecache.cache.pop(name, None)
        os.unlink(name)


def in_c(x, w):
    """Checks, the operands with their steps, raising and catching, without devtensor._diagnosis."""
    work, name = mistakes(0)
    os.unlink(name)
    build, _errors._build = _errors._build, lambda *args: RuntimeError(args[1])
    try:
        return least(lambda n: timed(lambda: work(x, w, n)), 1000)
    finally:
        _errors._build = build


def rows():
    x, w = dt.ones(4, 3, dtype=dt.float64), dt.ones(2, 3)
    y = x * 2 + 1
    yield "origin of an array, frame known", least(_C._test.origin_cost, 100_000)
    yield "the same, behind one frame of devtensor's", least(behind_own_frames(1), 100_000)
    yield "the same, behind three", least(behind_own_frames(3), 100_000)
    origin = least(lambda n: _C._test.origin_cost(n, x), 100_000)
    yield "origin of a result, linked to its operand's", origin
    total = least(additions, 20_000)
    yield "a + b, n=1", total
    yield "a + b, n=1, without what origins cost", total - origin
    work, name = mistakes(0)
    yield "from a mistake to its exception, in C", in_c(y, w)
    yield "the same with its explanation, at a known place", least(lambda n: timed(lambda: work(y, w, n)), 50)
    os.unlink(name)
    first_mistake(0, y, w)
    yield "the same at a new place, short file", min(first_mistake(0, y, w) for _ in range(ROUNDS))
    yield "the same at a new place, file of 2000 lines", min(first_mistake(2000, y, w) for _ in range(ROUNDS))


def main():
    print("| what | time |\n|---|---|")
    for name, seconds in rows():
        unit, scale = ("ns", 1e9) if seconds < 1e-6 else ("us", 1e6)
        print(f"| {name} | {seconds * scale:.1f} {unit} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
