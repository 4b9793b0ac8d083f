"""Any call to a CUDA library may fail, with any code: the right error, nothing changed or leaked, the next call right.

DEVTENSOR_FAULT_SHARE=1 runs every point (45 minutes on two cores); the default takes one in some hundreds, always the
same ones, and one of each place in the code from which a call is made.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest
from support import HELPERS, REAL, ROOT, python_path

import devtensor as dt

pytestmark = pytest.mark.skipif(REAL, reason="each point is a process with devices of its own: simulated ones")

CUDA = ROOT / "csrc" / "cuda"
SHARE = os.environ.get("DEVTENSOR_FAULT_SHARE", "400")
WORKERS = len(os.sched_getaffinity(0))

# Calls that the backend makes only after a failure, or when a cache of plans is full.
RARE = {
    "cuModuleUnload",  # after a module without its function
    *("cuGetErrorName", "cuGetErrorString", "cudnnGetErrorString", "cudnnGetLastErrorString", "nvrtcGetErrorString"),
    *("nvrtcGetProgramLogSize", "nvrtcGetProgramLog", "cuDevicePrimaryCtxRelease_v2", "cudnnDestroy"),
    *("cublasLtMatmulDescDestroy", "cublasLtMatrixLayoutDestroy", "cublasLtDestroy"),
}


def start(*arguments: str) -> subprocess.Popen[str]:
    environment = os.environ | {"DEVTENSOR_CUDA": "sim:2", "DEVTENSOR_SIM_MEMORY": str(64 << 20)}
    environment["PYTHONPATH"] = python_path()
    command = [sys.executable, "-X", "faulthandler", str(HELPERS / "sweeps" / "failing_cuda_calls.py"), *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    out, errors = process.communicate(timeout=24 * 3600)
    assert process.returncode == 0, f"after {out[-500:]}\n{errors[-3000:]}"
    return [json.loads(line) for line in out.splitlines()]


def test_every_call_of_every_program(capsys: pytest.CaptureFixture[str]) -> None:
    processes = [start(str(i), str(WORKERS), SHARE) for i in range(WORKERS)]
    answers = [answer for process in processes for answer in finish(process)]
    done = [answer for answer in answers if "points" in answer]
    points = sum(answer["points"] for answer in done)
    wrong = {answer["name"]: answer["found"] for answer in done if answer["found"]}
    sites = {tuple(site) for answer in answers for site in answer.get("sites", ())}
    with capsys.disabled():
        print(f"\n{points} failing calls in {len(done)} programs (one point in {SHARE}, and {len(sites)} places)")
    assert not wrong, json.dumps(wrong, indent=1)
    assert [answer["stderr"] for answer in answers if "stderr" in answer] == [""] * WORKERS
    assert points > len(sites) > 120  # places in the code from which a call is made


@pytest.mark.skipif(not CUDA.is_dir(), reason="reads the source tree")
def test_the_programs_reach_every_call() -> None:
    text = "".join(path.read_text() for path in CUDA.glob("*.c"))
    called = {name for name in dt._C._test.api_calls() if re.search(rf"\b{name}\b", text)}
    called -= {"cudnnGetVersion", "cublasLtGetVersion", "cuDriverGetVersion", "nvrtcVersion"}  # the loader's
    if dt._C._test.kernel_images()["images"]:  # kernels are embedded: none is compiled
        called = {name for name in called if not name.startswith("nvrtc")}
    reached: set[str] = set()
    for answer in finish(start("COVER")):
        assert "crash" not in answer and answer["first"]["kind"] == "ok", answer
        reached |= set(answer["counts"])
    assert len(reached) > 50
    assert called - reached - RARE == set()


SAYS = {
    "add": lambda x: x + 1,
    "mul": lambda x: x.mul_(2),
    "relu": dt.relu,
    "matmul": lambda x: x @ x,
    "sum": lambda x: x.sum(),
    "cpu": lambda x: x.cpu(),
    "conv2d": lambda x: dt.conv2d(x[None, None], x[None, None]),
    "synchronize": lambda x: dt.cuda.synchronize(0),
}


@pytest.mark.parametrize("op", list(SAYS))
def test_an_error_says_what_failed(op: str) -> None:
    """The op, the function of the library, its answer by number and by name, and the device."""
    x = dt.ones(3, 3, device="cuda:0")
    SAYS[op](x)  # what happens once has happened
    counts = dt._C._test.api_calls()
    SAYS[op](x)
    made = {name: count - counts[name] for name, count in dt._C._test.api_calls().items() if count > counts[name]}
    symbol = [name for name in made if name not in ("cuCtxGetCurrent", "cuMemFreeAsync")][-1]
    code = 400 if symbol.startswith("cu") and symbol[2].isupper() else 7 if symbol.startswith("cublas") else 2000
    dt._C._test.api_fail(symbol, 0, code)
    try:
        with pytest.raises(dt.CudaError) as info:
            SAYS[op](x)
    finally:
        dt._C._test.api_fail(None, -1, 0)
    error = info.value
    assert (error.symbol, error.status, str(error.device)) == (symbol, code, "cuda:0")
    assert error.op is not None and error.op.strip("_") == op
    for part in (f"{symbol} failed on cuda:0", f"({code})", "CUDA_ERROR_INVALID_HANDLE" if code == 400 else "STATUS"):
        assert part in str(error)


LATE = """
import devtensor as dt
x = dt.ones(3, device="cuda")
dt._C._test.api_fail("cuLaunchKernel", 0, 719, late=True)
y = x * 2
try:
    y.tolist()
except dt.CudaError as error:
    print(error.status, error)
    print(*error.__notes__)
try:
    x + 1
except dt.CudaError as error:
    print(*error.__notes__)
"""


def output_of(program: str) -> str:
    environment = os.environ | {"DEVTENSOR_CUDA": "sim:2"}
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=300
    ).stdout


def test_an_error_of_earlier_work_says_how_to_find_it() -> None:
    shown = output_of(LATE)
    assert shown.startswith("719 ") and "CUDA_LAUNCH_BLOCKING=1" in shown
    last = "sent to the default stream of cuda:0 last, the latest first:\n  k_mul_float32  <string>:5\n"
    assert shown.count(last) == 2


SUSPECTS = """
import threading, devtensor as dt
x = dt.ones(3, device="cuda:0")
big, other = dt.ones(300, 300, device="cuda:0"), dt.ones(3, device="cuda:1")
(x * 3).tolist()
def work(a):
    for _ in range(3):
        a = a + 1
    a[0] = 7  # line 9
    return dt.exp(a)
y = work(x)
other + 1
side = dt.cuda.Stream(0)
with dt.cuda.stream(side):
    z = dt.nn.functional.gelu(big @ big)
thread = threading.Thread(target=lambda: y.neg_())
thread.start(), thread.join()
exec(compile("y.mul_(2)", "cell", "exec"))
dt._C._test.api_fail("cuLaunchKernel", 0, 700, late=True)
x.relu_()
try:
    dt.cuda.synchronize(0)
except dt.CudaError as error:
    print(error.__notes__[0])
    print(hex(side.cuda_stream))
"""


def test_the_lines_of_the_work_that_may_have_gone_wrong() -> None:
    """By stream; not what is known to have ended, nor that of another device; each once though sent without the GIL."""
    lines = output_of(SUSPECTS).splitlines()
    stream = lines.pop()
    assert lines == [
        "sent to the default stream of cuda:0 last, the latest first:",
        "  k_relu_float32  <string>:20",
        "  k_mul_float32  cell:1",
        "  k_neg_float32  <string>:16",
        "  k_exp_float32  <string>:10",
        "  k_cast_float32_float32  <string>:9",
        "  k_add_float32  <string>:8  (3 times)",
        f"sent to the stream {stream} of cuda:0 last, the latest first:",
        "  k_gelu_erf_float32  <string>:15",
        "  cublasLtMatmul  <string>:15",
    ]


KEPT = """
import gc, sys, weakref, devtensor as dt
x = dt.ones(3, device="cuda:0")
codes = []
for i in range(100):
    code = compile(f"x + {i}", f"cell {i}", "exec")
    codes.append(weakref.ref(code))
    exec(code)
    del code
eval("1")  # pending calls are made
print(sum(code() is not None for code in codes))
"""


def test_few_lines_are_kept() -> None:
    assert int(output_of(KEPT)) == 8


def test_planted_mistakes_are_found() -> None:
    """The sweep sees a swallowed error, a leak, a changed input, a wrong class, half a write and a crash."""
    answers = [answer for answer in finish(start("PLANTED", "1", "2", "")) if "points" in answer]
    assert len(answers) == 6
    for answer in answers:
        assert any(answer["name"] in text for text in answer["found"]), answer
