"""python tests/fuzz KIND --seed SEED --calls N: judges N random calls. With --call N: that one, and its source."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(TESTS), str(TESTS / "helpers"), str(TESTS / "helpers" / "interchange")]

from fuzz import children, kinds, programs  # noqa: E402, F401


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=sorted(programs.KINDS))
    parser.add_argument("--seed", default="0")
    parser.add_argument("--calls", type=int, default=1000, help="how many to judge")
    parser.add_argument("--start", type=int, default=0, help="the number of the first")
    parser.add_argument("--call", type=int, help="judge only this one, and show it")
    parser.add_argument("--first", default="", help="a Python file that is run before")
    parser.add_argument("--seconds", type=int, default=children.CPU_SECONDS, help="time of the processor for one call")
    parser.add_argument("--child", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    options = children.Options(given.kind, given.seed, given.first, given.seconds)
    if given.child:
        children.child(options, *given.child)
        return 0
    start, calls = given.start, given.calls
    if given.call is not None:
        start, calls = given.call, 1
        print(programs.program(given.kind, given.seed, given.call).source)
    report = children.fuzz_calls(options, start, calls, lambda finding: print(finding, flush=True))
    print(f"{report.calls} calls, {len(report.findings)} findings, {report.seconds:.0f} s")
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
