"""Reads and writes what tools/gpu/gpu_check.py keeps: facts about the machine, the state of each step, report, archive.

python tools/gpu/gpu_report.py facts FILE     writes what is known about GPU, driver and libraries
"""

import contextlib
import datetime
import hashlib
import io
import json
import os
import platform
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIELDS = (
    "name,driver_version,memory.total,compute_cap,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit,"
    "persistence_mode,pcie.link.gen.max,pcie.link.width.max,ecc.mode.current,mig.mode.current"
)
LOG = 128 << 10  # bytes of the beginning and of the end of a log that go into the archive
ARCHIVE = 15 << 20


def output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def read(path):
    """What a JSON file holds; None where there is none or half of one."""
    with contextlib.suppress(OSError, ValueError):
        return json.loads(path.read_text())


def write(path, value):
    aside = path.with_suffix(".new")
    aside.write_text(json.dumps(value, indent=1) + "\n")
    aside.replace(path)


def source(root):
    """What steps and builds are made from: a hash of the files, and the commit."""
    rooms = ("csrc", "python", "tests", "tools")
    found = [*root.glob("*.py"), *root.glob("benchmarks/*.py")] + [
        p for room in rooms for p in (root / room).rglob("*")
    ]
    files = sorted(p for p in found if p.is_file() and p.suffix not in (".so", ".pyc") and "egg-info" not in str(p))
    whole = hashlib.sha256()
    for path in files:
        content = path.read_bytes()
        whole.update(f"{path.relative_to(root)}\0{len(content)}\0".encode())
        whole.update(content)
    return {"files": whole.hexdigest(), "commit": output("git", "-C", str(root), "rev-parse", "HEAD")}


def facts(path):
    import devtensor as dt

    smi = output("nvidia-smi", f"--query-gpu={FIELDS}", "--format=csv,noheader")
    found = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "simulated": None,
        "nvidia_smi": dict(zip(FIELDS.split(","), smi.splitlines()[0].split(", "), strict=False)) if smi else None,
        "devtensor": dt.__version__,
        "commit": output("git", "-C", str(ROOT), "rev-parse", "HEAD"),
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": len(os.sched_getaffinity(0)),
        "nvcc": (output("nvcc", "--version") or "none").splitlines()[-1],
    }
    write(path, found)  # also where the device cannot be used
    found |= {"simulated": dt.cuda.is_simulated(), "device": dt.cuda.get_device_properties(0)._asdict()}
    write(path, found)
    found |= {"libraries": dt.cuda.library_versions(), "loaded": dt._C._cuda_report().splitlines()}
    write(path, found)
    print(json.dumps(found, indent=1))


# ---------------------------------------------------------------- steps


def steps(state):
    """(command, step, record) of all that was run, by command."""
    order = ("build", "probe", "suite", "sanitizer", "bench")
    for command in order:
        for path in sorted((state / command).glob("*.json")):
            record = read(path)
            if record and "status" in record:
                yield command, path.stem, record


def bad(state):
    return [
        f"{record['status']}: {command}/{name}"
        for command, name, record in steps(state)
        if record["status"] != "passed"
    ]


def forget_failed(state):
    for command, name, record in list(steps(state)):
        if record["status"] != "passed":
            (state / command / f"{name}.json").unlink()


def tests(path):
    """Counts of a junit file, and the tests that failed."""
    total = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    names = []
    with contextlib.suppress(OSError, ElementTree.ParseError):
        for one in ElementTree.parse(path).getroot().iter("testsuite"):
            total = {key: value + int(one.get(key, 0)) for key, value in total.items()}
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                names.append(f"{case.get('classname')}::{case.get('name')}")
    return total, names


def end_of(log, lines=12):
    with contextlib.suppress(OSError):
        return log.read_text(errors="replace").splitlines()[-lines:]
    return []


def title(known, dry):
    if dry:
        return "Dry run on a simulated GPU: says nothing about a real one"
    return f"devtensor on {known.get('device', {}).get('name') or (known.get('nvidia_smi') or {}).get('name', 'a GPU')}"


def report(state, out, dry):
    """Writes report.md: what each step came to, and the end of the log of those that failed."""
    known = read(state / "facts.json") or {}
    lines = [f"# {title(known, dry)}", ""]
    lines += [f"- {key}: {value}" for key, value in known.items() if key != "loaded"] or ["- facts: none were found"]
    total = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    lines += ["", "| step | status | seconds | tests | failed | skipped |", "| --- | --- | --- | --- | --- | --- |"]
    failed = []
    for command, name, record in steps(state):
        counts, names = tests(state / command / f"{name}.xml")
        total = {key: value + counts[key] for key, value in total.items()}
        cells = (
            [counts["tests"], counts["failures"] + counts["errors"], counts["skipped"]] if counts["tests"] else [""] * 3
        )
        lines.append(f"| {command}/{name} | {record['status']} | {record['seconds']} | {' | '.join(map(str, cells))} |")
        if record["status"] != "passed":
            failed += ["", f"## {command}/{name}: {record['status']}", *(f"- {one}" for one in names[:20]), "", "```"]
            failed += [*end_of(state / command / f"{name}.log"), "```"]
    lines += ["", f"Suite: {total['tests']} tests, {total['failures']} failed, {total['errors']} errors, "]
    lines[-1] += f"{total['skipped']} skipped."
    listed = [line.split("\t") for line in end_of(state / "probe" / "conformance.log", 10**6)]
    wrong = [line for line in listed if line[0] == "FAIL"]
    lines += ["", f"Conformance: {sum(line[0] == 'ok' for line in listed)} assertions hold, {len(wrong)} do not."]
    lines += [f"- {' '.join(line[1:])}" for line in wrong]
    lines += [f"- {' '.join(line[1:])}, which devtensor does not use" for line in listed if line[0] == "differs"]
    for path in sorted((state / "bench").glob("*.md")):
        lines += ["", *path.read_text().splitlines()]
    (out / "report.md").write_text("\n".join([*lines, *failed, ""]))


# ---------------------------------------------------------------- the archive


def pack(work, target):
    """results.tgz of the state: whole files, logs without their middle, the largest left out where it would not fit."""
    files = sorted(
        (path for path in (work / "state").rglob("*") if path.is_file()), key=lambda path: path.stat().st_size
    )
    size = 0
    aside = target.with_suffix(".new")
    with tarfile.open(aside, "w:gz") as archive:
        for path in files:
            content = path.read_bytes()
            if path.suffix == ".log" and len(content) > 2 * LOG:
                content = content[:LOG] + b"\n[...]\n" + content[-LOG:]
            if size + len(content) > 4 * ARCHIVE or aside.stat().st_size + len(content) > ARCHIVE:
                continue
            size += len(content)
            entry = tarfile.TarInfo(str(path.relative_to(work)))
            entry.size, entry.mtime = len(content), int(path.stat().st_mtime)
            archive.addfile(entry, io.BytesIO(content))
    aside.replace(target)


def unpack(source, work):
    """What an earlier run left."""
    if source.exists():
        work.mkdir(parents=True, exist_ok=True)
        with tarfile.open(source) as archive:  # no extractall: its filters are younger than Python 3.11.0
            for entry in filter(tarfile.TarInfo.isfile, archive):
                target = (work / entry.name).resolve()
                if target.is_relative_to(work.resolve()):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(archive.extractfile(entry).read())


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "facts":
        sys.exit(__doc__)
    facts(Path(sys.argv[2]))
