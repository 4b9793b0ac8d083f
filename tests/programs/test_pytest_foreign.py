"""The pytest plugin beside suites that never heard of devtensor: their outcome is the same with it and without it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import devtensor as dt

PYTHON = str(Path(dt.__file__).parent.parent)


def installed(folder: Path, name: str, plugin: str) -> str:
    """A folder for PYTHONPATH with a distribution whose plugin pytest finds by itself."""
    info = folder / "site" / f"{name.replace('-', '_')}-1.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[pytest11]\n{name} = {plugin}\n")
    return str(info.parent)


def run(folder: Path, *options: str, found: bool = True) -> tuple[int, dict[str, int], str]:
    """pytest in a folder, which may find what is installed, without CUDA: exit code, what it counted, output."""
    dropped = ("CUDA_VISIBLE_DEVICES", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST", "PYTEST_PLUGINS")
    env = {name: value for name, value in os.environ.items() if name not in dropped}
    suite = folder / "suite"
    paths = [installed(folder, "devtensor", "devtensor_pytest"), str(suite), PYTHON]
    env |= {"PYTHONPATH": os.pathsep.join(paths), "DEVTENSOR_CUDA": "off"}
    if not found:
        env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-v", *options, "--rootdir", str(suite)]
    done = subprocess.run(command, cwd=suite, env=env, capture_output=True, text=True, timeout=120)
    said = done.stdout + done.stderr
    last = said.strip().splitlines()[-1]
    return (
        done.returncode,
        {kind: int(count) for count, kind in re.findall(r"(\d+) (\w+)", last.split(" in ")[0])},
        said,
    )


def outcomes(folder: Path, *options: str) -> tuple[int, dict[str, int], list[str]]:
    code, counts, said = run(folder, *options, found=False)
    return code, counts, sorted(re.findall(r"^test_\w+\.py::\S+ [A-Z]+", said, re.MULTILINE))


def write(folder: Path, files: dict[str, str]) -> None:
    (folder / "suite").mkdir()
    for name, text in files.items():
        (folder / "suite" / name).write_text(text)


STRICT = "[pytest]\naddopts = --strict-markers --strict-config\n"
OWN_MARKERS = "markers =\n    cuda: theirs\n    cuda_real: theirs\n    no_transfers: theirs\n"
MARKED = """
import pytest

@pytest.mark.cuda
def test_marked(): pass

@pytest.mark.cuda_real
class TestMore:
    @pytest.mark.no_transfers
    def test_inside(self): pass
"""
OWN_FIXTURE = "import pytest\n@pytest.fixture{}\ndef device(request): return {}\n"
USES = "import pytest\n@pytest.mark.cuda\ndef test_it(device): assert device in ('theirs', 'one', 'two')\n"

# Files, the options of a run, and what pytest alone says.
FOREIGN = {
    "markers of their own": ({"pytest.ini": STRICT + OWN_MARKERS, "test_a.py": MARKED}, (), {"passed": 2}),
    "markers that nobody registered": ({"pytest.ini": STRICT, "test_a.py": MARKED}, (), {"error": 1}),
    "skips of their own": (
        {
            "pytest.ini": STRICT + OWN_MARKERS,
            "conftest.py": "import pytest\ndef pytest_runtest_setup(item):\n"
            "    if item.get_closest_marker('cuda_real'): pytest.skip('theirs')\n",
            "test_a.py": MARKED,
        },
        (),
        {"passed": 1, "skipped": 1},
    ),
    "chosen by marker": (
        {"pytest.ini": STRICT + OWN_MARKERS, "test_a.py": MARKED},
        ("-m", "cuda"),
        {"passed": 1, "deselected": 1},
    ),
    "a fixture of conftest.py": (
        {"pytest.ini": STRICT + OWN_MARKERS, "conftest.py": OWN_FIXTURE.format("", "'theirs'"), "test_a.py": USES},
        (),
        {"passed": 1},
    ),
    "a fixture with parameters": (
        {
            "pytest.ini": STRICT + OWN_MARKERS,
            "conftest.py": OWN_FIXTURE.format("(params=['one', 'two'])", "request.param"),
            "test_a.py": USES,
        },
        (),
        {"passed": 2},
    ),
    "a fixture of the module": (
        {"pytest.ini": STRICT + OWN_MARKERS, "test_a.py": OWN_FIXTURE.format("", "'theirs'") + USES},
        (),
        {"passed": 1},
    ),
    "a fixture of a plugin that is loaded first": (
        {"pytest.ini": STRICT + OWN_MARKERS, "theirs.py": OWN_FIXTURE.format("", "'theirs'"), "test_a.py": USES},
        ("-p", "theirs"),
        {"passed": 1},
    ),
    "a fixture of a plugin that is loaded later": (
        {
            "pytest.ini": STRICT + OWN_MARKERS,
            "theirs.py": OWN_FIXTURE.format("(params=['one', 'two'])", "request.param"),
            "conftest.py": "pytest_plugins = ['theirs']\n",
            "test_a.py": USES,
        },
        (),
        {"passed": 2},
    ),
    "parametrized by name": (
        {
            "pytest.ini": STRICT + OWN_MARKERS,
            "test_a.py": "import pytest\npytestmark = pytest.mark.cuda\n"
            "@pytest.mark.parametrize(argnames='device', argvalues=['one', 'two'])\n"
            "def test_it(device): assert device in ('one', 'two')\n",
        },
        (),
        {"passed": 2},
    ),
    "parametrized by a hook": (
        {
            "pytest.ini": STRICT + OWN_MARKERS,
            "conftest.py": "def pytest_generate_tests(metafunc):\n"
            "    if 'device' in metafunc.fixturenames: metafunc.parametrize('device', ['one', 'two'])\n",
            "test_a.py": USES,
        },
        (),
        {"passed": 2},
    ),
    "the name of an option": (
        {
            "pytest.ini": STRICT,
            "conftest.py": "def pytest_addoption(parser):\n"
            "    parser.addoption('--sim', dest='simulate_cuda', type=int, default=-1)\n",
            "test_a.py": "def test_it(request): assert request.config.getoption('simulate_cuda') == -1\n",
        },
        (),
        {"passed": 1},
    ),
    "nothing of devtensor": (
        {"pytest.ini": STRICT, "test_a.py": "import sys\ndef test_it(): assert 'devtensor' not in sys.modules\n"},
        (),
        {"passed": 1},
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_suites_run_as_without_it(name: str, tmp_path: Path) -> None:
    files, options, expected = FOREIGN[name]
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    write(tmp_path / "with", files)
    write(tmp_path / "without", files)
    without = outcomes(tmp_path / "without", *options)
    assert without[1] == expected
    assert outcomes(tmp_path / "with", *options, "-p", "devtensor_pytest") == without


def test_it_is_found_as_installed(tmp_path: Path) -> None:
    write(tmp_path, {"pytest.ini": STRICT, "test_a.py": "def test_it(device): assert device == 'cpu'\n"})
    code, counts, said = run(tmp_path)
    assert (code, counts) == (0, {"passed": 1}), said
    assert "test_it[cpu] PASSED" in said


# ---------------------------------------------------------------- suites that ask for it

ASKING = {
    "devtensor_short_markers": "[pytest]\naddopts = --strict-markers\ndevtensor_short_markers = true\n",
    "required_plugins": "[pytest]\naddopts = --strict-markers\nrequired_plugins = pytest-none>=0 devtensor>=0\n",
    "--simulate-cuda": "[pytest]\naddopts = --strict-markers --simulate-cuda=1\n",
    "another plugin": "[pytest]\naddopts = --strict-markers\nrequired_plugins = devtensor-other\n",
    "nothing": "[pytest]\naddopts = --strict-markers\n",
}
SHORT = """
import pytest

@pytest.mark.cuda
def test_cuda(device): assert device == "cuda:0"

@pytest.mark.cuda_real
def test_real(): pass
"""


@pytest.mark.parametrize("asked", ASKING)
def test_short_names_are_for_suites_that_ask(asked: str, tmp_path: Path) -> None:
    write(tmp_path, {"pytest.ini": ASKING[asked], "test_a.py": SHORT})
    for name in ("pytest-none", "devtensor-other"):
        module = name.replace("-", "_")
        installed(tmp_path, name, module)
        (tmp_path / "suite" / f"{module}.py").write_text("")
    code, counts, said = run(tmp_path)
    if asked in ("another plugin", "nothing"):
        assert code == 2 and "'cuda' not found in `markers` configuration option" in said
    else:
        assert (code, counts) == (0, {"skipped": 2} if asked != "--simulate-cuda" else {"passed": 1, "skipped": 1}), (
            said
        )
