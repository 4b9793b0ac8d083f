"""How CUDA's libraries are found, checked and reported: with libraries made here by a C compiler."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support import REAL, ROOT, needs_compiler

import devtensor as dt

API = ROOT / "csrc" / "cuda" / "api.def"
pytestmark = [
    needs_compiler,
    pytest.mark.skipif(not API.exists(), reason="reads the source tree"),
    pytest.mark.skipif(REAL, reason="the real libraries are there"),
]

SONAMES = {
    "CUDA": "libcuda.so.1",
    "CUBLASLT": "libcublasLt.so.13",
    "CUDNN": "libcudnn.so.9",
    "NVRTC": "libnvrtc.so.13",
}
GRAPH = "libcudnn_graph.so.9"
# What a stand-in says; -D changes it.
ANSWERS = {
    "cuInit": "return INIT;",
    "cuDriverGetVersion": "*version = DRIVER; return 0;",
    "cuDeviceGetCount": "*count = 1; return 0;",
    "cuDeviceGetAttribute": "*value = attribute == 75 ? CAPABILITY : 1; return 0;",
    "cuDeviceTotalMem_v2": "*nbytes = 1 << 30; return 0;",
    "cublasLtGetVersion": "return CUBLAS;",
    "cudnnGetVersion": "return DNN;",
    "nvrtcVersion": "*major = COMPILER / 1000; *minor = COMPILER % 1000 / 10; return 0;",
    "cuGetErrorName": '*text = "name"; return 0;',
    "cuGetErrorString": '*text = "text"; return 0;',
}
NUMBERS = {"INIT": 0, "DRIVER": 13000, "CAPABILITY": 9, "CUBLAS": 130200, "DNN": 91900, "COMPILER": 13000}
FUNCTIONS = re.findall(r"^DT_API\((\w+), (\w+), ([^(]+), (\([^()]*\))", API.read_text(), re.M) if API.exists() else []


def source(library: str) -> str:
    lines = ['#include "api.h"']
    for owner, symbol, result, parameters in FUNCTIONS:
        if owner == library:
            body = ANSWERS.get(symbol, "" if result == "void" else 'return "text";' if "*" in result else "return 0;")
            lines += [f"#ifndef NO_{symbol}", f"{result} {symbol}{parameters} {{ {body} }}", "#endif"]
    return "\n".join(lines)


def build(folder: Path, *libraries: str, omit: str = "", **numbers: int) -> Path:
    """Stand-ins for libraries in folder."""
    folder.mkdir(parents=True, exist_ok=True)
    defines = [f"-D{name}={value}" for name, value in (NUMBERS | numbers).items()]
    defines += [f"-DNO_{omit}"] if omit else []
    for library in libraries or tuple(SONAMES):
        name = SONAMES[library]
        command = ["cc", "-w", "-shared", "-fPIC", f"-I{API.parent}", *defines, f"-Wl,-soname,{name}", "-x", "c", "-"]
        subprocess.run([*command, "-o", folder / name], input=source(library), text=True, check=True)
    if "CUDNN" in (libraries or SONAMES):
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", folder / GRAPH], input="", text=True, check=True
        )
    return folder


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("good"))


def environment(**more: str | None) -> dict[str, str]:
    dropped = ("DEVTENSOR_CUDA", "DEVTENSOR_CUDA_LIB_DIR", "CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX", "LD_LIBRARY_PATH")
    kept = {k: v for k, v in os.environ.items() if k not in dropped}
    return kept | {k: v for k, v in more.items() if v is not None}


def python(code: str, **more: str | None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env=environment(**more), capture_output=True, text=True, timeout=120
    )


def report(**more: str | None) -> list[str]:
    """The lines of python -m devtensor --verbose, which must go well and be silent."""
    command = [sys.executable, "-m", "devtensor", "--verbose"]
    child = subprocess.run(command, env=environment(**more), capture_output=True, text=True, timeout=120)
    assert (child.returncode, child.stderr) == (0, "")
    lines = child.stdout.splitlines()
    assert lines[0].startswith("for CUDA ")
    return lines


def libraries_of(lines: list[str]) -> dict[str, str]:
    first = next(i for i, line in enumerate(lines) if line.startswith("libraries"))
    rows = [line[16:].split(maxsplit=1) for line in lines[first : first + 4]]
    return {row[0]: row[1] for row in rows}


def place_of(library: str, **more: str | None) -> str:
    """The line of the report that names the copy in use."""
    wanted = [line[16:] for line in report(**more) if line[16:].startswith(f"{SONAMES[library]}: /")]
    return wanted[-1].partition(": ")[2] if wanted else ""


# ---------------------------------------------------------------- the search


def test_a_conda_environment_that_is_not_activated(tmp_path: Path) -> None:
    """Its folder of libraries is searched, which another Python's own folder is not."""
    (tmp_path / "lib").mkdir()
    code = f"import sys\nsys.prefix = {str(tmp_path)!r}\nimport devtensor as dt\nprint(dt.cuda._wheel_directories())"
    assert str(tmp_path / "lib") not in python(code).stdout
    (tmp_path / "conda-meta").mkdir()
    assert str(tmp_path / "lib") in python(code).stdout


def test_all_there(good: Path) -> None:
    lines = report(DEVTENSOR_CUDA_LIB_DIR=str(good))
    assert libraries_of(lines) == {"driver": "13000", "cublasLt": "130200", "cudnn": "91900", "nvrtc": "13000"}
    assert any("1 real device" in line for line in lines)
    assert "nothing, all is there" in lines[0]
    for soname in SONAMES.values():
        (found,) = (line[16:] for line in lines if line[16:].startswith("/") and f"/{soname}: " in line)
        assert found.endswith(": loaded")


@pytest.mark.parametrize(
    ("variable", "below"),
    [
        ("CONDA_PREFIX", "lib"),
        ("CONDA_PREFIX", "targets/x86_64-linux/lib"),
        ("CUDA_PATH", "lib64"),
        ("CUDA_HOME", "lib64"),
    ],
)
def test_places_named_by_variables(good: Path, tmp_path: Path, variable: str, below: str) -> None:
    folder = tmp_path / below
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.symlink_to(good)
    assert place_of("CUBLASLT", **{variable: str(tmp_path)}).startswith(str(tmp_path))


@pytest.mark.parametrize("wheel", ["nvidia/cu13/lib", "nvidia/cublas/lib", "nvidia/cudnn/lib", "nvidia/cuda_nvrtc/lib"])
def test_wheels(good: Path, tmp_path: Path, wheel: str) -> None:
    folder = tmp_path / wheel
    folder.parent.mkdir(parents=True)
    folder.symlink_to(good)
    path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(tmp_path)])
    assert place_of("CUDNN", PYTHONPATH=path).startswith(str(folder))


def test_the_order(good: Path, tmp_path: Path) -> None:
    """The override before conda, conda before the system's loader, that before the toolkit's variable."""
    folders = {name: tmp_path / name for name in ("override", "conda/lib", "system", "toolkit/lib64")}
    for folder in folders.values():
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(good, folder)
    variables: dict[str, str | None] = {
        "DEVTENSOR_CUDA_LIB_DIR": str(folders["override"]),
        "CONDA_PREFIX": str(tmp_path / "conda"),
        "LD_LIBRARY_PATH": str(folders["system"]),
        "CUDA_PATH": str(tmp_path / "toolkit"),
    }
    for variable, folder in zip(list(variables), folders.values(), strict=True):
        assert place_of("NVRTC", **variables).startswith(str(folder))
        variables[variable] = None
    assert place_of("NVRTC", **variables) == ""


def test_a_copy_in_the_process_is_shared(good: Path, tmp_path: Path) -> None:
    other = shutil.copytree(good, tmp_path / "other")
    code = (
        f"import ctypes\nfor name in {list(SONAMES.values())!r}: ctypes.CDLL({str(good)!r} + '/' + name)\n"
        "import devtensor as dt\nprint(dt._C._cuda_probe())\nprint(dt._C._cuda_report())"
    )
    child = python(code, CONDA_PREFIX=str(other.parent), CUDA_PATH=str(other.parent))
    assert child.stderr == "" and child.stdout.startswith("[None, None, None, None]")
    assert child.stdout.count("loaded already") == 4
    assert child.stdout.count(f"{good}/") == 4


@pytest.mark.parametrize(("number", "library"), [("DNN", "CUDNN"), ("CUBLAS", "CUBLASLT")])
@pytest.mark.parametrize("loaded", [False, True])
def test_a_copy_that_is_too_old_is_passed_over(
    good: Path, tmp_path: Path, number: str, library: str, loaded: bool
) -> None:
    """Where it stands first, and where another package has loaded it; the report says so."""
    old = build(tmp_path / "old", library, **{number: 91100 if number == "DNN" else 120900})
    (tmp_path / "lib").symlink_to(good)
    path = old / SONAMES[library]
    code = (f"import ctypes\nctypes.CDLL({str(path)!r})\n" if loaded else "") + (
        "import devtensor as dt\nprint(dt._C._cuda_probe())\nprint(dt._C._cuda_report())"
    )
    first = {} if loaded else {"LD_LIBRARY_PATH": str(old)}
    (tmp_path / "lib64").symlink_to(good)
    child = python(code, CUDA_PATH=str(tmp_path), CONDA_PREFIX=str(tmp_path) if loaded else None, **first)
    assert child.stderr == "" and child.stdout.startswith("[None, None, None, None]"), child.stdout
    assert "too old (version" in child.stdout
    assert f"{SONAMES[library]}: {good}" in child.stdout or f"{tmp_path}/lib" in child.stdout


@pytest.mark.parametrize("folder", ["relative", "./relative", "", "."])
def test_nothing_is_loaded_from_a_relative_path(good: Path, tmp_path: Path, folder: str) -> None:
    shutil.copytree(good, tmp_path / "relative")
    for name in SONAMES.values():
        shutil.copy(good / name, tmp_path / name)
    code = "import devtensor as dt\nprint(dt.cuda.is_available(), dt._C._cuda_report())"
    child = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(DEVTENSOR_CUDA_LIB_DIR=folder, CUDA_PATH=folder, CONDA_PREFIX=folder),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert child.stdout.startswith("False ")
    told = [line for line in child.stderr.splitlines() if not line.startswith("  ")]  # without the source line
    assert len(told) == (1 if folder else 0), told  # an empty variable is none
    assert all(f"DEVTENSOR_CUDA_LIB_DIR={folder} is not understood" in line for line in told)
    assert folder == "" or "ignored, not an absolute path" in child.stdout


# ---------------------------------------------------------------- what is wrong


@pytest.mark.parametrize("missing", list(SONAMES))
def test_a_missing_library(good: Path, tmp_path: Path, missing: str) -> None:
    folder = shutil.copytree(good, tmp_path / "some")
    (folder / SONAMES[missing]).unlink()
    lines = report(DEVTENSOR_CUDA_LIB_DIR=str(folder))
    wrong = [text for text in libraries_of(lines).values() if not text.isdigit()]
    assert len(wrong) == 1 and SONAMES[missing] in wrong[0] and "could not be loaded" in wrong[0]
    advice = lines[0]
    assert ("devtensor[cuda13]" in advice) == (missing != "CUDA")


def test_each_missing_symbol(good: Path, tmp_path: Path) -> None:
    """Each is named by the report, whichever it is; in a forked child each, as none has used CUDA before."""
    cases = [(owner, symbol) for owner, symbol, *_ in FUNCTIONS]

    def make(case: tuple[str, str]) -> Path:
        owner, symbol = case
        return build(tmp_path / symbol, owner, omit=symbol)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        folders = list(pool.map(make, cases))
    code = f"""
import os, sys
import devtensor as dt
from devtensor.__main__ import report
sys.path.clear()
for folder in {[str(f) for f in folders]!r}:
    sys.stdout.flush()
    if os.fork() == 0:
        os.environ["DEVTENSOR_CUDA_LIB_DIR"] = folder
        os.environ["CUDA_PATH"] = {str(tmp_path)!r}
        text = report()
        print(folder.rpartition("/")[2], [line for line in text.splitlines() if "no symbol" in line], flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""
    (tmp_path / "lib64").symlink_to(good)
    child = python(code)
    assert (child.returncode, child.stderr) == (0, "")
    lines = child.stdout.splitlines()
    assert len(lines) == len(cases) == len(dt._C._test.api_calls())
    for line, (_, symbol) in zip(lines, cases, strict=True):
        assert line.startswith(symbol) and f"no symbol {symbol}." in line, line


@pytest.mark.parametrize(
    ("number", "value", "name", "least"),
    [
        ("DRIVER", 12080, "driver", "580"),
        ("CUBLAS", 120900, "cublasLt", "13.0"),
        ("DNN", 91100, "cudnn", "9.12"),
        ("COMPILER", 12090, "nvrtc", "13.0"),
    ],
)
def test_an_old_version(tmp_path: Path, number: str, value: int, name: str, least: str) -> None:
    lines = report(DEVTENSOR_CUDA_LIB_DIR=str(build(tmp_path / "old", **{number: value})))
    text = libraries_of(lines)[name]
    assert str(value) in text and least in text and str(tmp_path) in text
    assert ("devtensor[cuda13]" in lines[0]) == (name != "driver")


@pytest.mark.parametrize(
    ("status", "part"), [(34, "stub for linking"), (35, "too old"), (100, "finds no CUDA device"), (999, "name")]
)
def test_a_driver_that_does_not_start(tmp_path: Path, status: int, part: str) -> None:
    folder = build(tmp_path / "driver", "CUDA", INIT=status, DRIVER=0 if status == 34 else 13000)
    lines = report(DEVTENSOR_CUDA_LIB_DIR=str(folder))
    assert any(line.startswith("CUDA ") and part in line for line in lines)
    code = (
        "import devtensor as dt\nprint(dt.cuda.is_available())\n"
        "try: dt.ones(2, device='cuda')\nexcept RuntimeError as e: print(e)"
    )
    child = python(code, DEVTENSOR_CUDA_LIB_DIR=str(folder))
    assert child.stderr == "" and child.stdout.startswith("False\n") and part in child.stdout


@pytest.mark.parametrize("content", [b"", b"this is no library", b"\x7fELF" + bytes(100)])
@pytest.mark.parametrize("library", list(SONAMES))
def test_garbage(good: Path, tmp_path: Path, library: str, content: bytes) -> None:
    folder = shutil.copytree(good, tmp_path / "garbage")
    (folder / SONAMES[library]).write_bytes(content)
    lines = report(DEVTENSOR_CUDA_LIB_DIR=str(folder))
    assert any(f"{folder / SONAMES[library]}: not loaded" in line for line in lines)


def test_a_folder_that_cannot_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0)
    report(DEVTENSOR_CUDA_LIB_DIR=str(folder), CONDA_PREFIX=str(folder), CUDA_PATH=str(tmp_path / "nowhere"))
    report(DEVTENSOR_CUDA_LIB_DIR="/" + "x" * 5000, CONDA_PREFIX=str(API), CUDA_PATH="\udcff\udcfe/")


def test_nvrtc_gets_its_second_library(good: Path, tmp_path: Path) -> None:
    """NVRTC 13.0 does not find it beside itself."""
    folder = shutil.copytree(good, tmp_path / "nvrtc")
    shutil.copy(good / GRAPH, folder / "libnvrtc-builtins.so.13.0")
    code = "import devtensor as dt; dt._C._cuda_probe(); print('builtins.so.13.0' in open('/proc/self/maps').read())"
    child = python(code, DEVTENSOR_CUDA_LIB_DIR=str(folder))
    assert (child.stdout, child.stderr) == ("True\n", "")


def test_cudnn_without_its_second_library(good: Path, tmp_path: Path) -> None:
    """cuDNN would end the process at its first call."""
    folder = shutil.copytree(good, tmp_path / "cudnn")
    (folder / GRAPH).unlink()
    lines = report(DEVTENSOR_CUDA_LIB_DIR=str(folder))
    assert "could not be loaded" in libraries_of(lines)["cudnn"]
    assert any(GRAPH in line for line in lines)


@pytest.mark.parametrize(
    ("cublas", "capability", "warned"),
    [(130100, 10, True), (130200, 10, False), (130100, 9, False), (130100, 11, True), (130100, 12, False)],
)
def test_the_hazard_of_cublas(tmp_path: Path, cublas: int, capability: int, warned: bool) -> None:
    """Said once at the first product, and by the report."""
    folder = str(build(tmp_path / "hazard", CUBLAS=cublas, CAPABILITY=capability))
    hazards = next(line for line in report(DEVTENSOR_CUDA_LIB_DIR=folder) if line.startswith("hazards"))
    assert ("corrupt data" in hazards) == warned
    code = (
        "import warnings, devtensor as dt\nwith warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    for _ in range(3):\n"
        "        try: dt.empty(4, 4, device='cuda') @ dt.empty(4, 4, device='cuda')\n"
        "        except RuntimeError: pass\n"
        "    for _ in range(1000): pass\n"
        "print([str(w.message) for w in seen])\n"
    )
    child = python(code, DEVTENSOR_CUDA_LIB_DIR=folder)
    assert child.stderr == ""
    assert child.stdout.count("can corrupt data") == warned


@pytest.mark.parametrize(
    ("cuda", "advice"),
    [("off", "unset DEVTENSOR_CUDA"), ("what", "unset DEVTENSOR_CUDA"), ("sim:2", "nothing, all is there")],
)
def test_the_advice_follows_the_setting(cuda: str, advice: str) -> None:
    assert advice in report(DEVTENSOR_CUDA=cuda)[0]


def test_the_short_report_counts_what_was_not_there(tmp_path: Path) -> None:
    """And an error says what helps before it says where it was looked for."""
    command = [sys.executable, "-m", "devtensor"]
    short = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120).stdout
    assert "not loaded (" not in short and "in vain: python -m devtensor --verbose" in short
    assert short.splitlines()[0].startswith("for CUDA ")
    child = python("import devtensor as dt\ndt.zeros(3, device='cuda')")
    lines = child.stderr.splitlines()
    first = next(i for i, line in enumerate(lines) if "DeviceNotAvailableError" in line)
    assert lines[first].endswith("libcuda.so.1 could not be loaded.") and lines[first + 1].startswith("to use CUDA: ")
    assert lines.index("looked for:") > first + 1
