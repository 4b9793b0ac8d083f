"""Import, start and end of processes: never fails for a CUDA reason, never prints, never crashes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import pytest
from support import REAL, ROOT

import devtensor as dt


def python(code: str, cuda: str | None = "sim:2", *flags: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "DEVTENSOR_CUDA"}
    if cuda is not None:
        environment["DEVTENSOR_CUDA"] = cuda
    return subprocess.run(
        [sys.executable, *flags, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def quiet(code: str, cuda: str | None = "sim:2", *flags: str) -> str:
    """What the script prints; it must end well and say nothing on stderr."""
    child = python(code, cuda, *flags)
    assert (child.returncode, child.stderr) == (0, "")
    return child.stdout


# ---------------------------------------------------------------- import


WRONG = ["nonsense", "sim:0", "sim:x", "sim:-1"]


@pytest.mark.parametrize("cuda", [None, "auto", "off", "sim", "sim:1", "sim:8", "", *WRONG])
def test_import_never_fails(cuda: str | None) -> None:
    out = quiet("import devtensor as dt; print(dt.ones(3).sum().item(), dt.device('cuda:0'))", cuda)
    assert out == "3.0 cuda:0\n"


def test_without_cuda_there_is_nothing_to_tune() -> None:
    out = quiet(
        "import devtensor as dt\ndt.cuda.tune()\ndt.cuda.tune(False)\n"
        "with dt.cuda.tune():\n    print(dt.ones(1).item())\n",
        "off",
    )
    assert out == "1.0\n"


def test_without_cuda() -> None:
    out = quiet(
        "import devtensor as dt\n"
        "there = dt.cuda.is_available()\n"
        "print(there, dt.cuda.device_count(), dt.device('cuda' if there else 'cpu'))\n"
        "try:\n    dt.zeros(2, device='cuda')\n"
        "except dt.DeviceNotAvailableError as error:\n    print(error)\n"
        "try:\n    dt.zeros(2).pin_memory()\n"
        "except dt.DeviceNotAvailableError as error:\n    print(error)\n",
        "off",
    )
    first, *rest = out.splitlines()
    assert first == "False 0 cpu"
    assert all("DEVTENSOR_CUDA=off" in line for line in rest)


@pytest.mark.parametrize("cuda", WRONG)
def test_a_wrong_setting_says_what_is_valid(cuda: str) -> None:
    out = quiet(
        "import devtensor as dt\nprint(dt.cuda.is_available())\n"
        "try:\n    dt.zeros(2, device='cuda')\nexcept dt.DeviceNotAvailableError as error:\n    print(error)\n",
        cuda,
    )
    assert out.startswith("False\n")
    for part in (cuda, "auto", "off", "sim"):
        assert part in out


def test_simulated_devices_are_never_automatic() -> None:
    assert quiet("import devtensor as dt; print(dt.cuda.is_available() and dt.cuda.is_simulated())", None) == "False\n"


def test_simulating_by_call() -> None:
    out = quiet(
        "import devtensor as dt, devtensor.testing\ndevtensor.testing.simulate_cuda(3)\n"
        "print(dt.cuda.device_count(), dt.cuda.is_simulated(), dt.ones(2, device='cuda:2').sum().item())\n",
        None,
    )
    assert out == "3 True 2.0\n"


def test_import_is_light() -> None:
    out = quiet(
        "import sys, devtensor\n"
        "print([m for m in ('numpy', 'torch', 'subprocess', 'ctypes', 'unittest') if m in sys.modules])"
    )
    assert out == "[]\n"


LATER = "data distributed distributions func hub multiprocessing optim utils".split()


def test_rarely_used_modules_are_loaded_when_they_are_asked_for() -> None:
    first = f"import sys, devtensor as dt\nLATER = {LATER}\n"
    loaded = "print([name for name in LATER if f'devtensor.{name}' in sys.modules])\n"
    rest = "print(all(name in dir(dt) and name in dt.__all__ for name in LATER))\n"
    rest += "print(all(getattr(dt, name) is sys.modules[f'devtensor.{name}'] for name in LATER))\n"
    out = quiet(f"{first}{loaded}dt.ones(2) + 1\ndt.nn.Linear(2, 1)(dt.ones(1, 2))\n{loaded}{rest}")
    assert out == "[]\n[]\nTrue\nTrue\n"
    imports = "".join(f"import devtensor.{name} as it\nprint(it.__name__)\n" for name in LATER)
    assert quiet(imports) == "".join(f"devtensor.{name}\n" for name in LATER)
    out = quiet(
        "import devtensor.utils.data as d, devtensor.optim.lr_scheduler as l\nfrom devtensor import *\n"
        "print(d.__name__, optim.SGD.__name__, hub.__name__, utils.data.__name__)"
    )
    assert out == "devtensor.data SGD devtensor.hub devtensor.data\n"


def test_modules_are_loaded_once_by_many_threads() -> None:
    code = (
        "import threading, devtensor as dt\n"
        f"names = {LATER} * 4\n"
        "start, found, failed = threading.Barrier(len(names)), [], []\n"
        "def ask(name):\n"
        "    start.wait()\n"
        "    try:\n        found.append((name, id(getattr(dt, name)), dir(getattr(dt, name))))\n"
        "    except BaseException as error:\n        failed.append(error)\n"
        "threads = [threading.Thread(target=ask, args=(name,)) for name in names]\n"
        "for one in threads:\n    one.start()\n"
        "for one in threads:\n    one.join()\n"
        "print(failed, len(found), len({(name, key) for name, key, _ in found}), all(each for _, _, each in found))\n"
    )
    assert quiet(code) == f"[] {len(LATER) * 4} {len(LATER)} True\n"


def test_import_has_no_side_effects() -> None:
    quiet(
        "import os, signal, sys, threading, locale\n"
        "def state():\n"
        "    return (os.getcwd(), dict(os.environ), [signal.getsignal(s) for s in range(1, 65)],\n"
        "            threading.active_count(), locale.setlocale(locale.LC_ALL),\n"
        "            len(os.listdir('/proc/self/task')), os.listdir('/proc/self/fd'))\n"
        "before = state()\nimport devtensor\nassert state() == before\n"
    )


def test_import_twice() -> None:
    quiet(
        "import sys, devtensor\nfirst = devtensor.zeros(3)\n"
        "for name in [m for m in sys.modules if m.startswith('devtensor')]: del sys.modules[name]\n"
        "import devtensor\nassert devtensor.zeros(3).tolist() == first.tolist()\n"
    )


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm is not installed")
def test_nothing_is_linked_against_cuda() -> None:
    listed = subprocess.run(["nm", "-D", "-u", dt._C.__file__], capture_output=True, text=True, check=True).stdout
    names = [line.split()[-1] for line in listed.splitlines()]
    assert names
    assert [n for n in names if n.startswith(("cu", "nvrtc", "cublas", "cudnn"))] == []


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm is not installed")
def test_only_the_init_function_is_exported() -> None:
    listed = subprocess.run(["nm", "-D", "--defined-only", dt._C.__file__], capture_output=True, text=True, check=True)
    names = {line.split()[-1] for line in listed.stdout.splitlines()}
    assert names - {"__start_dt_kernels", "__stop_dt_kernels"} == {"PyInit__C"}


@pytest.mark.parametrize("cuda", ["off", "sim:2", "auto", "nonsense"])
def test_the_report_never_fails(cuda: str) -> None:
    child = subprocess.run(
        [sys.executable, "-m", "devtensor"],
        env=os.environ | {"DEVTENSOR_CUDA": cuda},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (child.returncode, child.stderr) == (0, "")
    assert dt.__version__ in child.stdout
    assert ("simulated" in child.stdout.lower()) or cuda != "sim:2"


# ---------------------------------------------------------------- fork


FORK = """
import os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, from Python 3.12 on
import devtensor as dt
x = dt.ones(4, device="cuda:0")
y = dt.ones(300, 300)
y @ y
pid = os.fork()
if pid == 0:
    code = 1
    try:
        assert (y @ y).sum().item() == 300 ** 3
        assert dt.device("cuda:0") == x.device
        for call in (lambda: x + 1, lambda: x.cpu(), lambda: dt.zeros(2, device="cuda"), lambda: x.tolist()):
            try:
                call()
            except RuntimeError as error:
                text = str(error)
            else:
                raise AssertionError("no error")
        print(type(error).__name__ if False else text, flush=True)
        code = 0
    finally:
        os._exit(code)
assert os.waitpid(pid, 0)[1] == 0
print((x + 1).tolist())
"""


def test_fork_after_using_cuda() -> None:
    """The child's CPU works, its CUDA says why it does not, and the parent goes on."""
    text, last = quiet(FORK).splitlines()
    assert "fork" in text
    assert "spawn" in text
    assert "first at <string>:5 " in text
    assert last == "[2.0, 2.0, 2.0, 2.0]"


def test_fork_before_using_cuda() -> None:
    out = quiet(
        "import os, devtensor as dt\ndt.ones(3)\npid = os.fork()\n"
        "if pid == 0:\n    print(dt.ones(3, device='cuda').sum().item(), flush=True)\n    os._exit(0)\n"
        "assert os.waitpid(pid, 0)[1] == 0\nprint(dt.ones(2, device='cuda').sum().item())\n"
    )
    assert out == "3.0\n2.0\n"


def test_a_forked_child_ends_quietly() -> None:
    quiet(
        "import os, sys, devtensor as dt\nx = dt.ones(3, device='cuda')\npid = os.fork()\n"
        "if pid == 0:\n    del x\n    sys.exit(0)\n"
        "assert os.waitpid(pid, 0)[1] == 0\nassert x.sum().item() == 3\n"
    )


def test_spawned_workers(tmp_path: object) -> None:
    script = f"{tmp_path}/work.py"
    with open(script, "w") as file:
        file.write(
            "import multiprocessing as mp\nimport devtensor as dt\n"
            "def work(x):\n    return x + 1\n"
            "if __name__ == '__main__':\n"
            "    x = dt.ones(3, device='cuda:1')\n"
            "    with mp.get_context('spawn').Pool(1) as pool:\n"
            "        y = pool.apply(work, (x,))\n"
            "    print(y.device, y.tolist())\n"
        )
    child = subprocess.run(
        [sys.executable, script],
        env=os.environ | {"DEVTENSOR_CUDA": "sim:2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (child.returncode, child.stderr) == (0, "")
    assert child.stdout == "cuda:1 [2.0, 2.0, 2.0]\n"


# ---------------------------------------------------------------- the end of a process

EXITS = {
    "global": "x = dt.ones(3, device='cuda')",
    "global on cpu": "x = dt.ones(3)",
    "work still queued": "x = dt.ones(100, 100, device='cuda')\nfor _ in range(50): y = x @ x",
    "pending copy": "x = dt.ones(1000, device='cuda').to('cpu', non_blocking=True)",
    "cycle": "class N: pass\nn = N(); n.n = n; n.x = dt.ones(3, device='cuda')",
    "attribute of a module": "import sys; sys.keep = dt.ones(3, device='cuda'); dt.keep = dt.ones(3)",
    "atexit": "import atexit; x = dt.ones(3, device='cuda'); atexit.register(lambda: print((x + 1).tolist()))",
    "atexit first use": "import atexit; atexit.register(lambda: print(dt.ones(3, device='cuda').tolist()))",
    "daemon thread": (
        "import threading, time\ndef work():\n    x = dt.ones(64, 64, device='cuda')\n    while True: x @ x\n"
        "threading.Thread(target=work, daemon=True).start(); time.sleep(0.1)"
    ),
    "thread": "import threading\nthreading.Thread(target=lambda: dt.ones(3, device='cuda') + 1).start()",
    "exception": "import sys\nx = dt.ones(3, device='cuda')\ntry: x + dt.ones(3)\nexcept Exception as e: sys.saved = e",
    "__del__": (
        "class N:\n    def __init__(self): self.x = dt.ones(3, device='cuda')\n"
        "    def __del__(self): self.x + 1\nn = N()"
    ),
    "__del__ on cpu": "class N:\n    x = dt.ones(3)\n    def __del__(self): self.x + self.x\nn = N()",
    "numpy view": "import numpy as np\na = np.asarray(dt.ones(3)); x = dt.from_numpy(a)",
    "memoryview": "m = memoryview(dt.ones(3))",
    "pinned": "x = dt.ones(3).pin_memory() if dt.cuda.is_available() else None",
    "os._exit": "import os; x = dt.ones(3, device='cuda'); os._exit(0)",
    "sys.exit": "import sys; x = dt.ones(3, device='cuda'); sys.exit(0)",
    "threads of the cpu": "x = dt.ones(600, 600); y = x @ x",
    "generator": "def g():\n    x = dt.ones(3, device='cuda')\n    yield x\nit = g(); next(it)",
    "del module": "import sys; x = dt.ones(3, device='cuda'); del sys.modules['devtensor'], dt",
    "two devices": "x = dt.ones(3, device='cuda:0').to('cuda:1')",
    "emptied": "x = dt.ones(3, device='cuda'); del x; dt.cuda.empty_cache()",
    "current device": "dt.cuda.set_device(1); x = dt.ones(2, device='cuda')",
}


@pytest.mark.parametrize("script", list(EXITS.values()), ids=list(EXITS))
def test_exit_is_silent(script: str) -> None:
    child = python("import devtensor as dt\n" + script)
    assert (child.returncode, child.stderr) == (0, "")


def test_exit_with_an_uncaught_error_shows_it_once() -> None:
    child = python("import devtensor as dt\ndt.ones(3, device='cuda') + dt.ones(3)")
    assert child.returncode == 1
    assert child.stderr.count("Expected all tensors to be on the same device") == 1
    assert "Exception ignored" not in child.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_being_killed_leaves_no_core_of_ours(number: int) -> None:
    code = f"import os, devtensor as dt\nx = dt.ones(3, device='cuda')\nos.kill(os.getpid(), {int(number)})"
    assert python(code).returncode == -number


# ---------------------------------------------------------------- device memory is out of reach


@pytest.mark.skipif(REAL, reason="only simulated memory is promised to trap")
@pytest.mark.parametrize("access", ["ctypes.string_at(x.data_ptr(), 4)", "ctypes.memset(x.data_ptr(), 0, 4)"])
def test_a_stray_host_access_of_device_memory_dies(access: str) -> None:
    child = python(
        f"import ctypes, devtensor as dt\nx = dt.ones(3, device='cuda:1')\nprint('here', flush=True)\n{access}"
    )
    assert child.stdout == "here\n"
    assert child.returncode == -signal.SIGSEGV


# ---------------------------------------------------------------- other interpreters

INTERPRETERS = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

def create(kind):
    if sys.version_info >= (3, 13):
        return interpreters.create(kind)
    return interpreters.create(isolated=kind == "isolated")

TRY = "try:\\n import devtensor\\nexcept ImportError as error:\\n print(error, flush=True)\\nelse:\\n print('imported')"
if {first}:
    import devtensor
for kind in ("isolated", "legacy"):
    for turn in range(2):
        inner = create(kind)
        interpreters.run_string(inner, TRY)
        interpreters.destroy(inner)
import devtensor as dt
x = dt.frombuffer(bytearray(400_000), dtype=dt.float32)
print(x.sum().item(), (dt.ones(300, 300) @ dt.ones(300, 300)).sum().item())
del x
"""


@pytest.mark.parametrize("first", [True, False])
def test_a_subinterpreter_is_refused(first: bool) -> None:
    """By those of every kind, with an ImportError; the main interpreter goes on."""
    *refusals, result = quiet(INTERPRETERS.format(first=first)).splitlines()
    assert result == f"0.0 {300.0**3}"
    assert refusals == ["module devtensor._C does not support loading in subinterpreters"] * 4


# ---------------------------------------------------------------- the environment

# variable: what is valid, words that are, words that are not
VARIABLES = {
    "NUM_THREADS": ("a number from 1 to 1024", "1 8 1024", "0 -1 many 1025 99999999 999999999999999999999 1.5"),
    "CPU": ("generic, avx2 or avx512", "generic avx2 avx512", "AVX2 avx none"),
    "PACKED_LIMIT": ("a number of bytes", "0 1000000 999999999999999999999", "64MiB -1 many"),
    "SIM_MEMORY": ("a number of bytes from 1 to 2**44", "1000000 17592186044416", "0 4GB 17592186044417"),
    "SIM_RACES": ("0, 1 or strict", "0 1 strict", "2 yes"),
    "SIM_ORDER": ("a number, 0 for as late as possible", "0 1 99999999999", "late -1"),
    "SIM_FILL": ("nan or turns", "nan turns", "0 zeros"),
    "SIM_SECONDS": ("a number of seconds from 1 to 999999, or 0 for no limit", "0 1 999999", "soon -1 1000000"),
    "CUDA_CACHE": ("0 or 1", "0 1", "off 2 00"),
    "CACHE": ("0 or 1", "0 1", "off 2 00"),
    "CACHE_DIR": ("an absolute path", "/tmp/x", "./x ~/x"),
    "CUDA_LIB_DIR": ("an absolute path", "/tmp/x", "./x ~/x"),
}
WORDS = [
    (f"DEVTENSOR_{name}", word, None if known else valid)
    for name, (valid, good, bad) in VARIABLES.items()
    for known, words in ((True, ["", *good.split()]), (False, [*bad.split(), " 1", "\udcff"]))
    for word in words
]
USE = """
print((dt.ones(4, 4) @ dt.ones(4, 4)).sum().item(), dt.zeros(1, device="cuda").tolist())
"""


def with_variable(name: str, word: str, code: str, *flags: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"DEVTENSOR_CUDA": "sim:1", name: word}
    command = [sys.executable, *flags, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(("name", "word", "valid"), WORDS)
def test_a_variable_that_is_not_understood_changes_nothing_and_is_told_once(
    name: str, word: str, valid: str | None
) -> None:
    child = with_variable(name, word, f"import devtensor as dt; import devtensor.nn{USE}")
    assert (child.returncode, child.stdout) == (0, "64.0 [0.0]\n"), child.stderr
    told = [line for line in child.stderr.splitlines() if "Warning" in line]
    shown = word.encode(errors="surrogateescape").decode(errors="backslashreplace")
    text = f"<string>:1: RuntimeWarning: {name}={shown} is not understood and changes nothing: valid is {valid}"
    assert told == ([] if valid is None else [text])


@pytest.mark.parametrize("name", VARIABLES)
def test_where_warnings_are_errors_it_ends_the_import(name: str) -> None:
    """As a whole: once that is put right, the next import in the same process gives all there is."""
    code = f"""
import sys, warnings
try:
    import devtensor
except RuntimeWarning as error:
    print(error)
assert "devtensor" not in sys.modules
warnings.simplefilter("ignore")
import devtensor as dt
assert dt.nn is sys.modules["devtensor.nn"] and dt._errors.CudaError is dt.CudaError
{USE}"""
    child = with_variable(f"DEVTENSOR_{name}", "what?", code, "-W", "error")
    told = f"DEVTENSOR_{name}=what? is not understood and changes nothing: valid is {VARIABLES[name][0]}"
    assert child.stdout == f"{told}\n64.0 [0.0]\n", child.stderr


def test_the_variables_are_documented() -> None:
    page = (ROOT / "docs" / "cuda.md").read_text()
    rows = {row.split("|")[1].strip(): row.split("|")[3].strip() for row in page.splitlines() if row.count("|") == 4}
    assert {name: rows.get(f"`DEVTENSOR_{name}`") for name in VARIABLES} == {
        name: valid for name, (valid, _, _) in VARIABLES.items()
    }


def test_a_limit_that_is_no_number_limits_nothing() -> None:
    code = "import devtensor as dt; print(dt._C._cpu_cache()['packed_limit'])"
    child = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=os.environ | {"DEVTENSOR_PACKED_LIMIT": "much"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert int(child.stdout) == 64 << 20


@pytest.mark.parametrize("word", ["\udcff", "sim:\udcff", "x" + "\xe9" * 40])
def test_a_choice_of_cuda_that_is_no_text(word: str) -> None:
    """Words that nobody can decode are shown as bytes; what is cut off within a character is an error like others."""
    code = (
        "import devtensor as dt\n"
        "try:\n    dt.zeros(2, device='cuda')\n"
        "except dt.DeviceNotAvailableError as error:\n    print(ascii(str(error)))\n"
    )
    message = quiet(code, word)
    assert "DEVTENSOR_CUDA=" in message and "is not understood" in message
    assert ("\\\\xff" in message) == ("\udcff" in word)
    child = subprocess.run(
        [sys.executable, "-m", "devtensor"],
        env=os.environ | {"DEVTENSOR_CUDA": word},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert child.returncode == 0 and b"Traceback" not in child.stderr
