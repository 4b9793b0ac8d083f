"""Parts of tools/gpu_check.sh: facts about the machine, a run of every op, the report.

python tools/gpu_report.py facts DIR          writes DIR/facts.json
python tools/gpu_report.py ops [--brief]      runs each op once on cuda:0 against its reference; for a sanitizer
python tools/gpu_report.py report DIR         reads what the sections left in DIR, writes report.json and report.md
"""

import datetime
import json
import os
import platform
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIELDS = (
    "name,driver_version,memory.total,compute_cap,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit,"
    "persistence_mode,pcie.link.gen.max,pcie.link.width.max,ecc.mode.current,mig.mode.current"
)


def output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def facts(folder):
    import devtensor as dt

    x = dt.ones(4, 4, device="cuda")
    dt.conv2d((x @ x).reshape(1, 1, 4, 4), dt.ones(1, 1, 3, 3, device="cuda"))  # loads every library
    dt.cuda.synchronize()
    smi = output("nvidia-smi", f"--query-gpu={FIELDS}", "--format=csv,noheader")
    found = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "simulated": dt.cuda.is_simulated(),
        "device": dt.cuda.get_device_properties(0)._asdict(),
        "nvidia_smi": dict(zip(FIELDS.split(","), smi.splitlines()[0].split(", "), strict=False)) if smi else None,
        "libraries": dt._C._cuda_versions(),
        "loaded": dt._C._cuda_report().splitlines(),
        "devtensor": dt.__version__,
        "commit": output("git", "-C", str(ROOT), "rev-parse", "HEAD"),
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": len(os.sched_getaffinity(0)),
        "nvcc": (output("nvcc", "--version") or "none").splitlines()[-1],
    }
    Path(folder, "facts.json").write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def ops(brief):
    sys.path.insert(0, str(ROOT / "tests"))
    import sweep
    from support import Built

    done = 0
    for case in sweep.chosen():
        for dtype in case.dtypes[-1:] if brief else case.dtypes:
            for layout in case.layouts[-1:] if brief else case.layouts:
                built = Built(case, dtype, "cuda:0", layout)
                built.check(built.call())
                done += 1
    print(f"{done} calls agree with their references")


def suite(folder):
    total = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    seconds, names = 0.0, []
    for path in sorted(folder.glob("junit-*.xml")):
        for one in ElementTree.parse(path).getroot().iter("testsuite"):
            total = {key: value + int(one.get(key, 0)) for key, value in total.items()}
            seconds = max(seconds, float(one.get("time", 0)))
            for case in one.iter("testcase"):
                if case.find("failure") is not None or case.find("error") is not None:
                    names.append(f"{case.get('classname')}::{case.get('name')}")
    return {**total, "seconds": seconds, "failed": names}


def conformance(folder):
    path = folder / "conformance.tsv"
    lines = [line.split("\t") for line in path.read_text().splitlines()] if path.exists() else []
    wrong = [line for line in lines if line[0] == "FAIL"]
    return {"passed": sum(line[0] == "ok" for line in lines), "failed": len(wrong), "wrong": wrong}


def sections(folder):
    found = {}
    for path in folder.glob("*.status"):
        status, seconds = path.read_text().split()
        found[path.stem] = {"status": int(status), "seconds": int(seconds)}
    return found


def report(folder):
    folder = Path(folder)
    path = folder / "facts.json"
    record = {
        "facts": json.loads(path.read_text()) if path.exists() else {},
        "sections": sections(folder),
        "suite": suite(folder),
        "conformance": conformance(folder),
        "sanitizer": {p.stem: p.read_text().splitlines()[-1:] for p in sorted(folder.glob("sanitizer-*.log"))},
        "benchmarks": [p.name for p in sorted(folder.glob("????-??-??-*.json"))],
    }
    (folder / "report.json").write_text(json.dumps(record, indent=1) + "\n")
    gpu = record["facts"].get("device", {}).get("name", "unknown")
    simulated = record["facts"].get("simulated", True)
    title = "Dry run on a simulated GPU: says nothing about a real one" if simulated else f"devtensor on {gpu}"
    tests, listed = record["suite"], record["conformance"]
    lines = [f"# {title}", ""]
    lines += [f"- {key}: {value}" for key, value in record["facts"].items() if key != "loaded"]
    lines += ["", "| section | status | seconds |", "| --- | --- | --- |"]
    lines += [f"| {name} | {s['status']} | {s['seconds']} |" for name, s in record["sections"].items()]
    lines += ["", f"Suite: {tests['tests']} tests, {tests['failures']} failed, {tests['errors']} errors, "]
    lines[-1] += f"{tests['skipped']} skipped."
    lines += [f"- {name}" for name in tests["failed"]]
    lines += ["", f"Conformance: {listed['passed']} assertions hold, {listed['failed']} do not."]
    lines += [f"- {' '.join(one[1:])}" for one in listed["wrong"]]
    lines += ["", *(f"- {name}: {' '.join(text)}" for name, text in record["sanitizer"].items())]
    lines += ["", *(f"Benchmarks: {name}" for name in record["benchmarks"]), ""]
    (folder / "report.md").write_text("\n".join(lines))
    print("\n".join(lines))


def main(arguments):
    match arguments:
        case ["facts", folder]:
            facts(folder)
        case ["ops", *more]:
            ops("--brief" in more)
        case ["report", folder]:
            report(folder)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
