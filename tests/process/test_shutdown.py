"""More ways for a process to fork or to end: whatever is alive then, nothing is said and the exit code is right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_import import python, quiet

FORKED = """
import os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, from Python 3.12 on
def child(work):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            sys.stdout.flush()
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
def refused(call):
    try:
        call()
    except dt.DeviceNotAvailableError as error:
        assert "forked" in str(error) and "first at" in str(error), error
    else:
        raise AssertionError("no error")
import devtensor as dt
x = dt.ones(4, 4, device="cuda")
"""

FORKS = {
    "every way in": (
        "child(lambda: [refused(f) for f in (lambda: x + 1, lambda: x @ x, lambda: x.cpu(), lambda: x.tolist(),\n"
        "    lambda: dt.zeros(2, device='cuda'), lambda: dt.cuda.synchronize(), lambda: dt.zeros(2).pin_memory())])"
    ),
    "availability": "child(lambda: print(dt.cuda.is_available(), dt.cuda.device_count()))",
    "the report": "import devtensor.__main__ as m\nchild(lambda: m.report())",
    "a grandchild": "child(lambda: child(lambda: refused(lambda: x + 1)))",
    "arrays die in the child": "def work():\n    global x\n    del x\nchild(work)\nassert x.sum().item() == 16",
    "pinned memory dies in the child": (
        "p = dt.ones(9).pin_memory()\ndef work():\n    global p\n    del p\nchild(work)\np + 1"
    ),
    "work is pending": "y = [x @ x for _ in range(50)]\nchild(lambda: refused(lambda: y[0].cpu()))\ny[0].cpu()",
    "from a thread": (
        "import threading\nt = threading.Thread(target=lambda: child(lambda: refused(lambda: x + 1)))\n"
        "t.start(); t.join()"
    ),
    "while a thread computes": (
        "import threading\nstop = []\ndef busy():\n    while not stop: x @ x\n"
        "t = threading.Thread(target=busy); t.start()\n"
        "for _ in range(5): child(lambda: (dt.ones(300, 300) @ dt.ones(300, 300)).sum())\nstop.append(1); t.join()"
    ),
    "the device is lost": (
        "dt._C._test.api_fail('cuLaunchKernel', 0, 700)\ntry: x + 1\nexcept dt.CudaError: pass\n"
        "child(lambda: refused(lambda: x + 1))"
    ),
    "multiprocessing": (
        "import multiprocessing as mp\nctx = mp.get_context('fork')\n"
        "p = ctx.Process(target=lambda: refused(lambda: x + 1)); p.start(); p.join(); assert p.exitcode == 0"
    ),
}

EXITS = {
    "sys.exit in a thread": (
        "import sys, threading\nt = threading.Thread(target=lambda: (x @ x, sys.exit(0))); t.start(); t.join()"
    ),
    "atexit, last in first out": (
        "import atexit\natexit.register(lambda: print((x + 2).sum().item()))\n"
        "atexit.register(lambda: print((x @ x).sum().item()))"
    ),
    "atexit drops the last array": "import atexit\nkeep = [x]\natexit.register(keep.clear)",
    "a thread at the end": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.1), x @ x)).start()",
    "daemon threads of two devices": (
        "import threading, time\nz = dt.ones(9, 9, device='cuda:1')\n"
        "for a in (x, z): threading.Thread(target=lambda a=a: [a @ a for _ in iter(int, 1)], daemon=True).start()\n"
        "time.sleep(0.1)"
    ),
    "a daemon thread that transfers": (
        "import threading, time\nh = dt.ones(1000, 1000)\n"
        "threading.Thread(target=lambda: [h.to('cuda') for _ in iter(int, 1)], daemon=True).start()\ntime.sleep(0.1)"
    ),
    "pinned memory that is being sent": "p = dt.ones(100000).pin_memory()\ny = p.to('cuda', non_blocking=True)",
    "views and transposes": "v = [x[1:], x.T, x.reshape(16), x[..., None]]",
    "an iterator": "it = iter(x); next(it)",
    "a closure": "f = lambda: x + 1\nf()",
    "a weak reference": "import weakref\nw = weakref.ref(x, lambda _: None)",
    "a lost device": "dt._C._test.api_fail('cuLaunchKernel', 0, 700)\ntry: x + 1\nexcept dt.CudaError: pass",
    "every free fails": "y = x + 1\ndt._C._test.api_fail('cuMemFreeAsync', 0, 4, True)",
    "the driver is gone": "y = x + 1\ndt._C._test.api_fail(None, 0, 4, True)",
    "plans in the caches": (
        "y = dt.conv2d(dt.ones(1, 1, 5, 5, device='cuda'), dt.ones(1, 1, 3, 3, device='cuda'))\nz = x @ x"
    ),
    "an error with its arrays": (
        "import sys\ntry: x + dt.ones(5, 5, device='cuda')\nexcept RuntimeError as e: sys.last = e"
    ),
    "a generator in use": "g = (x + i for i in range(9)); next(g)",
    "a stream": (
        "s = dt.cuda.Stream() if hasattr(dt.cuda, 'Stream') else None\n"
        "if s is not None:\n    with dt.cuda.stream(s): y = x @ x"
    ),
}


@pytest.mark.parametrize("script", list(FORKS.values()), ids=list(FORKS))
def test_forks(script: str) -> None:
    child = python(FORKED + script)
    assert (child.returncode, child.stderr) == (0, "")


@pytest.mark.parametrize("script", list(EXITS.values()), ids=list(EXITS))
def test_exits(script: str) -> None:
    child = python("import devtensor as dt\nx = dt.ones(4, 4, device='cuda')\n" + script)
    assert (child.returncode, child.stderr) == (0, "")


def test_the_exit_code_is_the_programs() -> None:
    child = python("import sys, devtensor as dt\nx = dt.ones(3, device='cuda')\nx + 1\nsys.exit(7)")
    assert (child.returncode, child.stderr) == (7, "")


def test_the_place_of_first_use_is_the_users(tmp_path: Path) -> None:
    """Not a line of this package, also when one of its functions came first."""
    script = tmp_path / "train.py"
    script.write_text(
        "import os\nimport devtensor as dt\n\ndef prepare():\n    return dt.cuda.device_count()\n\nprepare()\n"
        "if os.fork() == 0:\n    try:\n        dt.ones(2, device='cuda')\n"
        "    except RuntimeError as error:\n        print(error, flush=True)\n    os._exit(0)\nos.wait()\n"
    )
    environment = os.environ | {"DEVTENSOR_CUDA": "sim:1"}
    child = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=300)
    assert (child.returncode, child.stderr) == (0, "")
    assert f"first at {script}:5 before this process was forked" in child.stdout


def test_two_threads_use_cuda_first() -> None:
    """The place is asked for with no lock held: nobody waits for another's GIL."""
    quiet(
        "import threading, devtensor as dt\nbarrier = threading.Barrier(8)\ndef work():\n    barrier.wait()\n"
        "    dt.ones(3, device='cuda') + 1\n    dt.cuda.device_count()\n"
        "ts = [threading.Thread(target=work) for _ in range(8)]\n[t.start() for t in ts]\n[t.join(30) for t in ts]\n"
        "assert not any(t.is_alive() for t in ts)\n"
    )
