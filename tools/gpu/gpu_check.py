"""Everything that is worth knowing from a machine with a GPU, in four commands. No network is needed.

tools/gpu/gpu_check.sh [--dry-run] [--out DIR] [--also FILE] [COMMAND ...]

  probe      one process for each thing that must work at all, then the conformance list     3 minutes
  suite      one process for each test file, of which the rows of a GPU are run              9 minutes
  sanitizer  every op and product under compute-sanitizer, four tools side by side           6 minutes
  bench      the benchmarks of a GPU, quick                                                  9 minutes

Without a command all four run. A step that fails, hangs or loses the device ends alone. After each step, and when the
script is stopped, DIR (--out, the variable OUT, or benchmarks/results/gpu-<date>-<name>) has report.md and results.tgz.
What is finished is not done again: neither in the same temporary folder, nor with the results.tgz of an earlier run in
DIR; --again failed or --again all does it again, and so does any change of the sources. A build in $BUILD/lib is taken
as it is; without one it is made first.
"""

import argparse
import contextlib
import datetime
import os
import queue
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gpu_report

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
LIMITS = {"probe": 180, "suite": 540, "sanitizer": 360, "bench": 540}
PROBES = "driver copy kernel reduction rawkernel matmul conv2d streams memory exit".split()
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
# They ask about the memory of the whole device, or about time: nothing may run beside them.
ALONE = "cuda_memory cuda_steady_state leaks threads threads_many".split()
# They never touch a device.
LEFT_OUT = """conformance cpu_loops cpu_memory cpu_products cuda_faults cuda_loader data_cells data_transport
diagnosis_expressions docs docstrings gpu_check kernel_cache kernel_image kernel_source kernels mpi nn_torch notebook
public_api pytest_foreign pytest_plugin reference source_rules torch_samples torch_signatures typing""".split()
GRACE = 10  # seconds between an interrupt and the end
HANGS = 40  # seconds after which a test shows where its threads stand


class Check:
    """One run: its folders, its children, and what it leaves."""

    def __init__(self, options):
        self.dry, self.also = options.dry_run, options.also
        self.name = "dry-run" if self.dry else self.gpu()
        self.out = Path(options.out or os.environ.get("OUT") or self.default_out()).resolve()
        base = Path(tempfile.gettempdir(), f"devtensor-gpu-check-{os.getuid()}-{self.name}")
        self.work = Path(options.work).resolve() if options.work else base
        self.build = Path(os.environ.get("BUILD") or self.work / "build").resolve()
        self.state = self.work / "state"
        self.children = set()
        self.lock = threading.RLock()  # a signal may come while it is held
        self.stopped = False
        self.written = 0.0
        self.out.mkdir(parents=True, exist_ok=True)
        if not self.state.exists():
            gpu_report.unpack(self.out / "results.tgz", self.work)
        self.begin()
        if options.again == "all":
            shutil.rmtree(self.state)
            self.begin()
        if options.again == "failed":
            gpu_report.forget_failed(self.state)

    def begin(self):
        """Takes on what an earlier run left, where that was made from the same files."""
        stamp, source = self.state / "source.json", gpu_report.source(ROOT)
        if (gpu_report.read(stamp) or {}).get("files") != source["files"]:
            shutil.rmtree(self.state, ignore_errors=True)
            if not os.environ.get("BUILD"):
                shutil.rmtree(self.build, ignore_errors=True)
        self.state.mkdir(parents=True, exist_ok=True)
        gpu_report.write(stamp, source)

    @staticmethod
    def ask(field):
        """What nvidia-smi says of the first GPU."""
        answer = gpu_report.output("nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader")
        return answer.splitlines()[0].strip() if answer else ""

    def gpu(self):
        named = self.ask("name")
        if not named:
            sys.exit("nvidia-smi names no GPU here; --dry-run works without one")
        return re.sub(r"[^a-z0-9]+", "-", named.lower()).strip("-")

    def default_out(self):
        return ROOT / "benchmarks" / "results" / f"gpu-{datetime.date.today()}-{self.name}"

    def environment(self, **more):
        unwanted = ("DEVTENSOR_CUDA", "DEVTENSOR_TEST_DEVICES", "OUT", "PYTHONDONTWRITEBYTECODE")
        env = {k: v for k, v in os.environ.items() if k not in unwanted}
        env |= {"PYTHONPATH": str(self.build / "lib"), "PYTHONUNBUFFERED": "1"}
        env["PYTHONPYCACHEPREFIX"] = str(self.work / "bytecode")  # a process for each file would compile all it imports
        env |= {"DEVTENSOR_CUDA": "sim:1"} if self.dry else {"DEVTENSOR_TEST_DEVICES": "real"}
        return env | more

    def step(self, command, name, argv, limit, nothing=0, **more):
        """Runs one process with its log and its limit, unless it is finished already; its status, or "stopped".

        nothing: the exit status of a process that found nothing to do."""
        record = self.state / command / f"{name}.json"
        done = gpu_report.read(record)
        if done and done["status"] != "stopped":
            return done["status"]
        if self.stopped:
            return "stopped"
        record.parent.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        with open(record.with_suffix(".log"), "wb") as log:
            try:
                child = subprocess.Popen(
                    argv,
                    cwd=ROOT,
                    env=self.environment(**more),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                log.write(f"{error}\n".encode())
                return self.finish(record, "failed", start)
            with self.lock:
                self.children.add(child)
            try:
                status = "passed" if child.wait(limit) in (0, nothing) else "failed"
            except subprocess.TimeoutExpired:
                status = "timeout"
            finally:
                self.end(child)
        return self.finish(record, "stopped" if self.stopped else status, start, code=child.returncode)

    def finish(self, record, status, start, **more):
        seconds = round(time.monotonic() - start, 1)
        gpu_report.write(record, {"status": status, "seconds": seconds, **more})
        print(f"{status:8} {seconds:6.1f} s  {record.parent.name}/{record.stem}", flush=True)
        if time.monotonic() - self.written > 5:
            self.leave()
        return status

    def end(self, child):
        """The process and all that it started: interrupted, then killed."""
        for number in (signal.SIGINT, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(GRACE)
                if number == signal.SIGINT:
                    continue
                break
        with self.lock:
            self.children.discard(child)

    def stop(self, number, frame):
        self.stopped = True
        with self.lock:
            for child in self.children:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGINT)

    def leave(self):
        """Writes the report and the archive."""
        with self.lock:
            gpu_report.report(self.state, self.out, self.dry)
            gpu_report.pack(self.work, self.out / "results.tgz")
            self.written = time.monotonic()

    # ---------------------------------------------------------------- commands

    def make(self):
        """The build, if none was brought along. Without pyproject.toml setuptools older than 77 builds it, too."""
        if any((self.build / "lib" / "devtensor").glob("_C.*.so")):
            return True
        tree = self.work / "tree"
        tree.mkdir(parents=True, exist_ok=True)
        for name in ("setup.py", "README.md", "csrc", "tools", "python"):
            link = tree / name
            if not link.exists():
                link.symlink_to(ROOT / name)
        capability = None if self.dry else self.ask("compute_cap")
        arch = {"DEVTENSOR_CUDA_ARCH": capability.replace(".", "")} if capability else {}
        lib = self.build / "lib"
        build = [sys.executable, "setup.py", "-q", "build_ext"]
        build += ["--build-temp", f"{self.build}/temp", "--build-lib", f"{lib}"]
        steps = (["cd", str(tree)], build, ["cp", "-rL", f"{ROOT}/python/.", f"{lib}/"])
        script = " && ".join(map(shlex.join, steps))
        return self.step("build", "build", ["bash", "-c", script], 600, **arch) == "passed"

    def probe(self):
        report = str(ROOT / "tools" / "gpu" / "gpu_report.py")
        probe = str(ROOT / "tools" / "gpu" / "gpu_probe.py")
        wanted = [("facts", [sys.executable, report, "facts", str(self.state / "facts.json")])]
        wanted += [(name, [sys.executable, probe, name]) for name in PROBES]
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            list(pool.map(lambda one: self.step("probe", *one, 60), wanted))
        for path in self.also:
            if not path.stem.startswith("test_"):
                self.step("probe", path.stem, [sys.executable, str(path)], 60)
        argv = [sys.executable, str(ROOT / "tools" / "gpu" / "conformance.py"), *(["--simulated"] if self.dry else [])]
        argv += ["--objects", str(self.build / "conform")]
        self.step("probe", "conformance", argv, LIMITS["probe"] * (10 if self.dry else 1))

    def files(self):
        """Test files that may run side by side, largest first, and those that run alone."""
        if self.dry:
            return [TESTS / "ops" / "test_to.py"], [TESTS / "ops" / "test_random.py"]
        found = sorted(TESTS.glob("*/test_*.py"), key=lambda path: -path.stat().st_size)
        wanted = [path for path in found if path.stem.removeprefix("test_") not in LEFT_OUT]
        alone = [path for path in wanted if path.stem.removeprefix("test_") in ALONE]
        return [path for path in wanted if path not in alone], alone

    def test(self, path, cores=None):
        junit = self.state / "suite" / f"{path.stem}.xml"
        argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--maxfail=50", f"--junitxml={junit}"]
        argv += ["-m", "", "-o", f"faulthandler_timeout={HANGS}", *(["-k", "cuda"] if path not in self.also else [])]
        if TESTS not in path.parents:  # one of --also: with the suite's fixtures
            argv += [
                "--rootdir",
                str(ROOT),
                "--confcutdir",
                str(ROOT),
                "-c",
                str(ROOT / "pyproject.toml"),
                "-p",
                "conftest",
            ]
        pinned = ["taskset", "-c", cores] if cores and shutil.which("taskset") else []
        paths = os.pathsep.join((str(self.build / "lib"), str(TESTS)))
        more = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": paths}
        self.step("suite", path.stem, [*pinned, *argv, str(path)], 150 * (10 if self.dry else 1), nothing=5, **more)

    def suite(self):
        together, alone = self.files()
        waiting = queue.SimpleQueue()
        for path in [*(path for path in self.also if path.stem.startswith("test_")), *together]:
            waiting.put(path)
        cores = sorted(os.sched_getaffinity(0))

        def work(core):
            with contextlib.suppress(queue.Empty):
                while not self.stopped:
                    self.test(waiting.get_nowait(), str(core))

        workers = [threading.Thread(target=work, args=(core,)) for core in cores]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for path in alone:
            self.test(path)

    def sanitizer(self):
        probe = [sys.executable, str(ROOT / "tools" / "gpu" / "gpu_probe.py")]
        if self.dry:
            self.step("sanitizer", "none", [*probe, "ops"], 10 * LIMITS["sanitizer"], DEVTENSOR_CUDA_CACHE="0")
            return
        if not shutil.which("compute-sanitizer"):
            print("compute-sanitizer is not installed")
            return

        def run(tool):
            argv = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", *probe]
            argv.append("own" if tool == "initcheck" else "ops")
            self.step("sanitizer", tool, argv, LIMITS["sanitizer"] - 2 * GRACE, DEVTENSOR_CUDA_CACHE="0")

        workers = [threading.Thread(target=run, args=(tool,)) for tool in TOOLS]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def bench(self):
        limit = 20 if self.dry else LIMITS["bench"] - 30
        argv = [sys.executable, "-m", "benchmarks", "--device", "cuda", "--quick", "--limit", str(limit)]
        argv += ["--out", str(self.state / "bench")]
        self.step("bench", "bench", argv, LIMITS["bench"] * (10 if self.dry else 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*", metavar="COMMAND", help=" ".join(LIMITS))
    parser.add_argument("--dry-run", action="store_true", help="simulated devices and a part of the suite")
    parser.add_argument("--out", help="the folder for report.md and results.tgz")
    parser.add_argument("--work", help="the temporary folder; what it has is not done again")
    parser.add_argument(
        "--also", type=Path, action="append", default=[], metavar="FILE", help="one more test file or probe"
    )
    parser.add_argument("--again", choices=("failed", "all"), help="do these again, though they are finished")
    options = parser.parse_args()
    if unknown := [name for name in options.commands if name not in LIMITS]:
        parser.error(f"no command {unknown[0]!r}; there are: {' '.join(LIMITS)}")
    check = Check(options)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, check.stop)
    try:
        if check.make():
            for command in options.commands or LIMITS:
                getattr(check, command)()
    finally:
        check.leave()
    print(f"results: {check.out}")
    bad = gpu_report.bad(check.state)
    print("\n".join(bad))
    return 143 if check.stopped else 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
