"""Runs data-apis/array-api-tests, the public suite of the array API standard, against devtensor.array_api.

    python tools/checks/array_api_suite.py --suite DIR [--device cuda:0] [--examples N] [-- more options of pytest]
    python tools/checks/array_api_suite.py --git https://github.com/data-apis/array-api-tests

The suite is not on PyPI. DIR is a checkout of it, whose folder array-api is one of data-apis/array-api (its submodule);
--git clones both. It needs `pip install ndindex pytest-json-report hypothesis`. Cases of complex numbers are left out,
and what else is skipped stands in tests/helpers/interchange/array_api_skips.txt, a reason for each. The figures are in
docs/array-api.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
SKIPS = ROOT / "tests" / "helpers" / "interchange" / "array_api_skips.txt"
LACKING = "uint16,uint32,uint64,complex64,complex128"

# The suite takes for granted that there are complex dtypes: file, what stands there, what must stand there.
PATCHES = [
    (
        "array_api_tests/dtype_helpers.py",
        "[(dt, dtype_nbits[dt]) for dt in complex_dtypes], key",
        "[(dt, dtype_nbits[dt]) for dt in complex_dtypes] or [(None, 0)], key",
    ),
    (
        "array_api_tests/test_signatures.py",
        "dh.dtype_to_name[dh.widest_complex_dtype]",
        "dh.dtype_to_name[dh.widest_complex_dtype or dh.widest_real_dtype]",
    ),
]
COMPLEX = ("imag(", "real(", "cis(", " j", "complex")


def clone(url: str, target: Path) -> Path:
    subprocess.run(["git", "clone", "--depth", "1", "--recurse-submodules", url, str(target)], check=True)
    return target


def prepared(suite: Path, target: Path) -> Path:
    """A copy of the suite, with what PATCHES change."""
    shutil.copytree(suite, target, symlinks=False, ignore=shutil.ignore_patterns(".git"))
    for name, before, after in PATCHES:
        path = target / name
        text = path.read_text()
        if before not in text:
            raise SystemExit(f"{name} has no {before!r} any more: look at PATCHES")
        path.write_text(text.replace(before, after))
    # Cases that are parsed from the specification of complex numbers, and the default device.
    with (target / "conftest.py").open("a") as file:
        file.write(f"""

import os
import devtensor as _dt
if os.environ["SUITE_DEVICE"] != "cpu":
    _dt.set_default_device(os.environ["SUITE_DEVICE"])
_collected = pytest_collection_modifyitems


def pytest_collection_modifyitems(config, items):
    _collected(config, items)
    complexes = [item for item in items if any(word in item.name for word in {COMPLEX!r}) and "special" in item.nodeid]
    config.hook.pytest_deselected(items=complexes)
    items[:] = [item for item in items if item not in set(complexes)]
""")
    return target


def skips(target: Path, device: str) -> Path:
    """The tests of SKIPS as the suite reads them: without the reasons; those of devices where there is one."""
    lines = [line for line in SKIPS.read_text().splitlines() if line and not line.startswith("#")]
    lines = [line.removeprefix("cuda: ") for line in lines if device != "cpu" or not line.startswith("cuda: ")]
    target.write_text("\n".join(lines) + "\n")
    return target


def figures(report: Path) -> Counter[tuple[str, str]]:
    """How many tests of each file passed, failed or were skipped."""
    found: Counter[tuple[str, str]] = Counter()
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        file = next(part for part in case.get("classname", "test_").split(".") if part.startswith("test_"))
        area = file.removeprefix("test_").replace("_", " ")
        failed = case.find("failure") is not None or case.find("error") is not None
        found[area, "failed" if failed else "skipped" if case.find("skipped") is not None else "passed"] += 1
    return found


def table(found: Counter[tuple[str, str]]) -> str:
    outcomes = ("passed", "failed", "skipped")
    rows = [f"| area | {' | '.join(outcomes)} |", "|---|---|---|---|"]
    areas = sorted({area for area, _ in found})
    rows += [f"| {area} | {' | '.join(str(found[area, one]) for one in outcomes)} |" for area in areas]
    sums = [str(sum(found[area, one] for area in areas)) for one in outcomes]
    return "\n".join([*rows, f"| all | {' | '.join(sums)} |"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--suite", type=Path, metavar="DIR", help="a checkout of the suite")
    where.add_argument("--git", metavar="URL", help="where to clone it from")
    parser.add_argument(
        "--device", default="cpu", help="where arrays are made; a simulated GPU with DEVTENSOR_CUDA=sim:1"
    )
    parser.add_argument("--examples", type=int, default=100, help="of each test (%(default)s)")
    parser.add_argument("more", nargs="*", help="options and tests for pytest")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        suite = options.suite or clone(options.git, Path(folder) / "clone")
        copy = prepared(suite, Path(folder) / "suite")
        report = Path(folder) / "report.xml"
        paths = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {
            "ARRAY_API_TESTS_MODULE": "devtensor.array_api",
            "ARRAY_API_TESTS_SKIP_DTYPES": LACKING,
            "ARRAY_API_TESTS_VERSION": "2024.12",
            "SUITE_DEVICE": options.device,
            "PYTHONPATH": paths,
        }
        command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", f"--junitxml={report}"]
        command += ["--disable-deadline", f"--max-examples={options.examples}", "--disable-extension", "fft"]
        command += [
            f"--skips-file={skips(Path(folder) / 'skips.txt', options.device)}",
            *(options.more or ["array_api_tests"]),
        ]
        done = subprocess.run(command, cwd=copy, env=environment, check=False)
        if report.exists():
            print(f"\n{options.device}, {options.examples} examples of each test\n{table(figures(report))}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
