"""A kernel of a simulated GPU can do what a GPU can, and no more; what it tries is told, and its parent is unharmed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile_kernels import CALLS, ENDLESS, LIMITS, STARTS, UNDEFINED, Hostile, source
from support import REAL, needs_kernels, python_path

import devtensor as dt

pytestmark = [
    pytest.mark.skipif(REAL, reason="kernels of the simulated GPU"),
    needs_kernels,
    pytest.mark.skipif(not dt._C._sim_confines(), reason="this system cannot refuse system calls"),
]
HOSTILE = [*CALLS, *STARTS, *LIMITS, *UNDEFINED]


def has(compiler: str) -> bool:
    return any(os.access(os.path.join(folder, compiler), os.X_OK) for folder in os.environ["PATH"].split(":"))


# Each on a device of its own, which it loses. The parent has files open that a child would inherit.
ALL = """
import json, os, sys, devtensor as dt
told = {}
os.dup2(os.open(sys.argv[2], os.O_RDWR | os.O_CREAT), 9)
work = json.load(open(sys.argv[1]))
for i, (name, source) in enumerate(work):
    x = dt.ones(4, device=f"cuda:{i}")
    try:
        dt.cuda.RawKernel(source, "k", params="float *x, int n")[1, 1](x, 0)
        dt.cuda.synchronize(i)
        told[name] = ["", "fine"]
    except dt.CudaError as error:
        told[name] = [f"{type(error).__name__}: {error}"]
        try:
            (x + 1).tolist()
            told[name].append("fine")
        except dt.CudaError as later:
            told[name].append(str(later))
last = f"cuda:{len(work)}"
x = dt.ones(4, device=last)
dt.cuda.RawKernel('extern "C" __global__ void add(float *x) { x[threadIdx.x] += 1; }', "add")[1, 4](x)
told["at last"] = x.tolist()
print(json.dumps(told))
"""


def start(script: str, *arguments: str, **more: Any) -> subprocess.Popen[str]:
    environment = os.environ | {
        "PYTHONPATH": python_path(),
        "DEVTENSOR_CUDA": "sim:64",
        "DEVTENSOR_SIM_MEMORY": str(8 << 20),
    }
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment | more.pop("env", {}), stdin=subprocess.DEVNULL, **more,
    )  # fmt: skip


@contextlib.contextmanager
def running(script: str, **more: Any) -> Iterator[subprocess.Popen[str]]:
    """A program without end."""
    with start(script, **more) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> str:
    """What it printed: it ended well and complained of nothing."""
    with process:
        out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, ""), out + err
    return out


def run_all(folder: Path, group: list[Hostile], **environment: str) -> dict[str, Any]:
    path = folder / "made by a kernel"
    work = [(hostile.name, source(hostile.head, hostile.body, str(path))) for hostile in group]
    (folder / "work").write_text(json.dumps(work))
    told = json.loads(ended(start(ALL, str(folder / "work"), str(folder / "open"), env=environment)))
    assert not path.exists()
    assert (folder / "open").read_text() == ""
    return dict(told)


@pytest.fixture(scope="module")
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What was said to each whose row runs, by name."""
    rows = [getattr(item, "callspec", None) for item in request.session.items]
    wanted = {row.params["hostile"].name for row in rows if row and "hostile" in row.params}
    chosen = [hostile for hostile in HOSTILE if hostile.name in wanted] or HOSTILE[:1]
    said: dict[str, Any] = {}
    for first in range(0, len(chosen), 30):  # each leaves a device that cannot be used, and there are 64
        said |= run_all(tmp_path_factory.mktemp("hostile"), chosen[first : first + 30])
    return said


def check(hostile: Hostile, first: str, later: str) -> None:
    assert all(words in first for words in hostile.words), first
    assert bool(first) == bool(hostile.words), first
    if not first or first.startswith("KernelCompileError"):
        assert later == "fine"  # nothing was launched
    else:
        assert "cannot be used any more in this process" in later


@pytest.mark.parametrize("hostile", HOSTILE, ids=str)
def test_what_is_told(hostile: Hostile, told: dict[str, Any]) -> None:
    check(hostile, *told[hostile.name])


def test_the_process_is_unharmed(told: dict[str, Any]) -> None:
    assert told["at last"] == [2.0] * 4


@pytest.mark.skipif(not has("clang++"), reason="clang++ is not here")
def test_no_compiler_drops_what_is_undefined(tmp_path: Path) -> None:
    told = run_all(tmp_path, UNDEFINED, CXX="clang++", DEVTENSOR_CACHE="0")
    for hostile in UNDEFINED:
        check(hostile, *told[hostile.name])


# ---------------------------------------------------------------- without what makes it easy

LINKER = """#!/bin/sh
for word; do [ "$word" = -static-pie ] && { echo no such libraries; exit 1; }; done
exec c++ "$@"
"""


def test_with_shared_libraries(tmp_path: Path) -> None:
    """Where the host has no static libraries a program opens its own to begin with, and nothing after."""
    (tmp_path / "c++shared").write_text(LINKER)
    (tmp_path / "c++shared").chmod(0o755)
    names = ["kill the parent", "open to read", "fork", "exit", "a constructor", "an initializer", "the loader"]
    group = [hostile for hostile in HOSTILE if hostile.name in [*names, "little memory", "write to null"]]
    told = run_all(tmp_path, group, CXX=str(tmp_path / "c++shared"), DEVTENSOR_CACHE="0")
    for hostile in group:
        check(hostile, *told[hostile.name])
    assert len(group) == 9


# ---------------------------------------------------------------- time

TIMED = """
import sys, devtensor as dt
for i, body in enumerate(sys.argv[1:]):
    x = dt.zeros(4, device=f"cuda:{i}")
    source = '__device__ void f() { for (;;) { } }\\nextern "C" __global__ void k(float *x, int n) { ' + body + "}"
    try:
        dt.cuda.RawKernel(source, "k")[1, 1](x, 0)
        print(x.tolist())
    except dt.CudaError as error:
        print(error.status, error)
"""


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_a_kernel_without_end(compiler: str) -> None:
    if not has(compiler):
        pytest.skip(f"{compiler} is not here")
    out = ended(start(TIMED, *ENDLESS, env={"DEVTENSOR_SIM_SECONDS": "1", "CXX": compiler, "DEVTENSOR_CACHE": "0"}))
    for line in out.splitlines():
        assert line.startswith("702 ")
        assert "kernel k ran for longer than 1 seconds; DEVTENSOR_SIM_SECONDS in the environment allows more" in line
    assert len(out.splitlines()) == len(ENDLESS)


def test_a_constructor_without_end() -> None:
    script = """
import devtensor as dt
source = '''__attribute__((constructor)) static void f() { for (;;) { } }
extern "C" __global__ void k(float *x) { x[0] = 1; }'''
try:
    dt.cuda.RawKernel(source, "k").compile()
except dt.KernelCompileError as error:
    print(error)
"""
    assert "kernel k ran for longer than 1 seconds" in ended(start(script, env={"DEVTENSOR_SIM_SECONDS": "1"}))


# ---------------------------------------------------------------- seen from outside

LOOP = """
import sys, threading, devtensor as dt
x = dt.zeros(4, device="cuda")
kernel = dt.cuda.RawKernel('extern "C" __global__ void k(float *x) { for (;;) { } }', "k")
kernel.compile()
kernel[1, 1](x)
try:
    dt.cuda.synchronize()
except dt.CudaError as error:
    print("error")
except KeyboardInterrupt:
    print("interrupted")
"""


def wait_for(look: Callable[[], Any]) -> Any:
    """The first answer of look that is true; files of /proc come and go."""
    for _ in range(6000):
        with contextlib.suppress(OSError):
            answer = look()
            if answer:
                return answer
        time.sleep(0.01)
    raise AssertionError("it does not come")


def look_for_child(pid: int) -> int:
    """The process of its kernel, if it runs with its three files."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        if sorted(os.listdir(f"/proc/{child}/fd")) == ["0", "1", "2"] and "Seccomp:\t2" in status(int(child)):
            return int(child)
    return 0


def status(pid: int) -> str:
    return Path(f"/proc/{pid}/status").read_text()


def is_over(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists() or "Z (zombie)" in status(pid)


def test_seen_from_outside() -> None:
    """No files but the null device and where it prints, no privileges to gain, limits, and it ends with its parent."""
    with running(LOOP) as process:
        child = wait_for(lambda: look_for_child(process.pid))
        assert os.readlink(f"/proc/{child}/fd/0") == "/dev/null"
        assert "NoNewPrivs:\t1\n" in status(child)
        lines = Path(f"/proc/{child}/limits").read_text().splitlines()
        limits = {line[:26].strip(): line[26:].split()[:2] for line in lines}
        assert limits["Max core file size"] == limits["Max processes"] == ["0", "0"]
        assert limits["Max open files"] in (["5", "5"], ["6", "6"])
        assert "unlimited" not in limits["Max address space"]
        process.kill()
        process.communicate()
    assert wait_for(lambda: is_over(child))


def test_ctrl_c() -> None:
    """In a terminal it reaches every process of the program."""
    ready = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)"
    with running(ready + LOOP, start_new_session=True) as process:
        child = wait_for(lambda: look_for_child(process.pid))
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=100)
    assert "interrupted\n" in out or "KeyboardInterrupt" in err, out + err
    assert is_over(child)


def test_what_it_prints() -> None:
    script = """
import devtensor as dt
source = '''#include <stdio.h>
extern "C" __global__ void k(float *x) { printf("out %g\\\\n", x[0]); fprintf(stderr, "err\\\\n"); }'''
dt.cuda.RawKernel(source, "k")[1, 1](dt.ones(1, device="cuda"))
dt.cuda.synchronize()
"""
    with start(script) as process:
        out, err = process.communicate(timeout=100)
    assert (out, err) == ("out 1\n", "err\n")


def test_the_report_says_so() -> None:
    out = ended(start("import devtensor.__main__ as m\nprint(m.report())"))
    assert "raw kernels     run in a process of their own: limits, no files, no system calls\n" in out


# ---------------------------------------------------------------- the compiler


def test_a_source_that_includes_without_end() -> None:
    """The host's compiler runs on what a user wrote: it has limits too."""
    kernel = dt.cuda.RawKernel(
        '#include </dev/zero>\nextern "C" __global__ void k(float *x) { }', "k", params="float *x"
    )
    with pytest.raises(dt.KernelCompileError, match="memory|too large|limit"):
        kernel.compile()


STARTS_WRITING = """
#include <sys/mman.h>
static int f()
{
    char *p = (char *)mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 3, 0);
    if (p != (char *)MAP_FAILED) p[0] = 'W';
    return 1;
}
static int v = f();
extern "C" __global__ void k(float *x) { x[0] = v; }
"""


def test_a_file_of_the_callers_is_not_there_before_the_kernel(tmp_path: Path) -> None:
    """Descriptor 3 is where a launch has the memory of the device."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"." * 8192)
    script = "import devtensor as dt\nx = dt.zeros(4, device='cuda')\n"
    script += f"dt.cuda.RawKernel({STARTS_WRITING!r}, 'k')[1, 1](x)\nprint(x.tolist())"
    command = ["bash", "-c", 'exec "$@" 3<>"$0"', str(victim), sys.executable, "-c", script]
    env = {**os.environ, "PYTHONPATH": python_path(), "DEVTENSOR_CUDA": "sim:1", "DEVTENSOR_CACHE": "0"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert victim.read_bytes() == b"." * 8192


DECLARED = {
    "an instantiation": "template <class T> __global__ void g(T *x) {}\ntemplate __global__ void g<float>(float *);",
    "a constant of another place": "extern __constant__ float c[4];\n__constant__ float c[4] = {1, 2, 3, 4};",
    "a pointer to an array": "__global__ void other(float *x) { __shared__ float (*r)[2]; r = 0; x[0] = r == 0; }",
    "within a macro": "#define ID(...) __VA_ARGS__\n__global__ void other() { ID(__shared__ float r[2];) r[0] = 1; }",
}


@pytest.mark.parametrize("what", DECLARED)
def test_what_a_source_may_declare_beside_its_kernel(what: str) -> None:
    x = dt.zeros(4, device="cuda")
    kernel = 'extern "C" __global__ void k(float *x) { x[threadIdx.x] = 1; }'
    dt.cuda.RawKernel(f"{DECLARED[what]}\n{kernel}", "k")[1, 4](x)
    assert x.tolist() == [1] * 4


AGAIN = """
import devtensor as dt
bad = dt.cuda.RawKernel('extern "C" __global__ void f(float *x, int n) { x[n] = 1; }', "f")
for device in ("cuda:0", "cuda:1", "cuda:0"):
    x, many = dt.zeros(4, device=device), dt.ones(1000, device=device)
    stream = dt.cuda.Stream(device)
    bad(1, 1, (x, 10**6))
    queued = x + 1
    with dt.cuda.stream(stream):
        beside = many * 2
    try:
        dt.cuda.synchronize(device)
        raise SystemExit("no error")
    except dt.CudaError as error:
        assert "reset_simulated()" in error.__notes__[-1], error.__notes__
    try:
        x + 1
        raise SystemExit("no error")
    except dt.CudaError as error:
        assert "cannot be used" in str(error) and "reset_simulated()" in error.__notes__[-1]
    dt.testing.reset_simulated()
    assert x.tolist() == [0] * 4 and many.sum().item() == 1000 and (x + 1).tolist() == [1] * 4
    queued.zero_(), beside.zero_()
    assert queued.tolist() == [0] * 4 and beside.sum().item() == 0
    bad(1, 1, (x, 2))
    assert x.tolist() == [0, 0, 1, 0]
    dt.cuda.synchronize(device)
    dt.cuda.empty_cache()
"""


def test_a_simulated_device_is_reset() -> None:
    """A notebook goes on after a kernel that went out of bounds: the arrays are there, new work runs."""
    environment = os.environ | {"DEVTENSOR_CUDA": "sim:2", "PYTHONPATH": python_path()}
    subprocess.run([sys.executable, "-c", AGAIN], env=environment, check=True, timeout=120)
    off = "import devtensor as dt\ntry: dt.testing.reset_simulated()\nexcept dt.DeviceNotAvailableError: print('told')"
    environment["DEVTENSOR_CUDA"] = "off"
    assert subprocess.check_output([sys.executable, "-c", off], env=environment, text=True) == "told\n"
