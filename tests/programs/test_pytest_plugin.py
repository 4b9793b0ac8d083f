"""The pytest plugin, and examples/testing_without_a_gpu, which uses all of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT

import devtensor as dt

EXAMPLE = ROOT / "examples" / "testing_without_a_gpu"


def run(folder: Path, *options: str, cuda: str | None = None) -> tuple[int, str]:
    """pytest in a folder, with this plugin and no other: exit code and output."""
    dropped = ("DEVTENSOR_CUDA", "CUDA_VISIBLE_DEVICES", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST")
    env = {name: value for name, value in os.environ.items() if name not in dropped}
    env |= {"PYTHONPATH": str(Path(dt.__file__).parent.parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    env["DEVTENSOR_CUDA"] = cuda or ("auto" if "--simulate-cuda" in " ".join(options) else "off")
    command = [sys.executable, "-m", "pytest", "-p", "devtensor_pytest", "-p", "no:cacheprovider", "-rs", *options]
    command += ["--rootdir", str(folder), "--strict-markers"]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def write(folder: Path, text: str) -> Path:
    (folder / "test_it.py").write_text("import pytest\n" + text)
    return folder


DEVICES = """
def test_device(device):
    import devtensor as dt
    print("on", dt.ones(2, device=device).device)

@pytest.mark.devtensor_cuda
def test_cuda(device):
    assert device.startswith("cuda:")

@pytest.mark.devtensor_cuda
def test_inside():
    import devtensor as dt
    assert dt.cuda.is_available()

@pytest.mark.devtensor_cuda_real
def test_real(device):
    import devtensor as dt
    assert not dt.cuda.is_simulated()
"""


def test_devices_without_cuda(tmp_path: Path) -> None:
    code, said = run(write(tmp_path, DEVICES), "-v")
    assert code == 0 and "1 passed, 3 skipped" in said
    assert "test_device[cpu] PASSED" in said
    assert "devtensor has no CUDA device here; --simulate-cuda=2 gives simulated ones" in said


@pytest.mark.parametrize("count", [1, 2])
def test_simulated_devices(tmp_path: Path, count: int) -> None:
    code, said = run(write(tmp_path, DEVICES), "-v", f"--simulate-cuda={count}")
    assert code == 0 and f"{2 * count + 2} passed, {count} skipped" in said
    for i in range(count):
        assert f"test_device[cuda:{i}] PASSED" in said and f"test_cuda[cuda:{i}] PASSED" in said
    assert "the CUDA devices here are simulated" in said


def test_a_fixture_of_ones_own_goes_first(tmp_path: Path) -> None:
    text = """
@pytest.fixture
def device():
    return "mine"

def test_own(device):
    assert device == "mine"

class TestChosen:
    @pytest.mark.parametrize("device", ["cuda:1"], indirect=True)
    def test_chosen(self, device):
        assert device == "mine"
"""
    assert run(write(tmp_path, text), "--simulate-cuda=2")[0] == 0
    chosen = '@pytest.mark.parametrize("device", ["a", "b"])\ndef test_own(device):\n    assert device in "ab"\n'
    code, said = run(write(tmp_path, chosen))
    assert code == 0 and "2 passed" in said


MOVES = """
import devtensor as dt

@pytest.fixture
def x():
    y = dt.ones(3).to("cuda")
    yield y
    assert y.tolist() == [2, 2, 2]

@pytest.mark.devtensor_no_transfers
def test_good(x):
    x += 1
    dt.testing.assert_close(x, dt.full((3,), 2.0, device="cuda"))
    print(x)

@pytest.mark.devtensor_no_transfers
def test_bad():
    y = dt.ones(3, device="cuda")
    assert y.sum().item() == 3

def test_free():
    assert dt.ones(3).to("cuda").sum().item() == 3
"""


def test_no_transfers(tmp_path: Path) -> None:
    """The test function alone is watched, not its fixtures; assert_close and print may look."""
    code, said = run(write(tmp_path, MOVES), "--simulate-cuda=1")
    assert code == 1 and "1 failed, 2 passed" in said
    assert "TransferForbiddenError: a transfer of 4 bytes from cuda:0 to cpu is forbidden here" in said
    assert "test_it.py:20: " in said


def test_wrong_options(tmp_path: Path) -> None:
    write(tmp_path, "def test_nothing(): pass\n")
    for option in ("--simulate-cuda=-1", "--simulate-cuda=x"):
        code, said = run(tmp_path, option)
        assert code == 4 and "--simulate-cuda" in said


def test_devtensor_is_not_loaded_for_others(tmp_path: Path) -> None:
    assert run(write(tmp_path, 'def test_it():\n    import sys\n    assert "devtensor" not in sys.modules\n'))[0] == 0


# ---------------------------------------------------------------- the example


def test_the_example_without_cuda() -> None:
    code, said = run(EXAMPLE)
    assert code == 0 and "4 passed, 2 skipped" in said


def test_the_example_with_simulated_devices() -> None:
    code, said = run(EXAMPLE, "--simulate-cuda=2")
    assert code == 0 and "16 passed" in said


# Mistakes in classifier.py that do nothing on the cpu, but for half precision, and what a simulated GPU says.
MISTAKES = {
    "a buffer that is not registered": (
        'self.register_buffer("mean", dt.tensor(mean).reshape(-1, 1, 1))',
        "self.mean = dt.tensor(mean).reshape(-1, 1, 1)",
        "self.mean is a plain attribute, not a parameter or buffer",
    ),
    "a helper on the default device": (
        "dt.randn(images.shape, device=images.device)",
        "dt.randn(images.shape)",
        "Expected all tensors to be on the same device",
    ),
    "a helper that is moved each time": (
        "dt.randn(images.shape, device=images.device)",
        "dt.randn(images.shape).to(images.device)",
        "TransferForbiddenError",
    ),
    "a value read in the middle": (
        "return images + scale",
        "assert images.max().item() < 100\n    return images + scale",
        "a transfer of 4 bytes from cuda:0 to cpu is forbidden here",
    ),
    "a result brought home": (
        ".float().mean()",
        ".float().mean().cpu()",
        "a transfer of 4 bytes from cuda:0 to cpu is forbidden here",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_example_finds_mistakes(name: str, tmp_path: Path) -> None:
    right, wrong, message = MISTAKES[name]
    folder = tmp_path / "suite"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    source = (folder / "classifier.py").read_text()
    assert right in source
    (folder / "classifier.py").write_text(source.replace(right, wrong))
    assert run(folder, "-k", "not half_precision")[0] == 0
    code, said = run(folder, "--simulate-cuda=2")
    assert code == 1 and message in said


# ---------------------------------------------------------------- assert_close


def test_assert_close_shows_the_worst(device: str) -> None:
    x = dt.arange(12, dtype=dt.float32, device=device).reshape(3, 4)
    y = x.clone()
    dt.testing.assert_close(x, y)
    y[1, 2], y[0, 3], y[2, 2] = 7, float("nan"), 10.001
    with pytest.raises(AssertionError) as caught:
        dt.testing.assert_close(x, y, msg="the third layer")
    assert str(caught.value).splitlines() == [
        "the third layer",
        "Mismatched elements: 3 / 12 (25.0%); up to 1e-05 + 1.3e-06 * |expected| allowed",
        "  index   actual  expected    difference",
        "  (0, 3)  3       nan         nan",
        "  (1, 2)  6       7           1",
        "  (2, 2)  10      10.0010004  0.001",
    ]


def test_assert_close_of_integers() -> None:
    x = dt.full((100,), 2**62 + 1, dtype=dt.int64)
    with pytest.raises(AssertionError) as caught:
        dt.testing.assert_close(x, x - dt.arange(100))
    lines = str(caught.value).splitlines()
    assert lines[0] == "Mismatched elements: 99 / 100 (99.0%); none allowed"
    assert lines[2] == "  (99,)  4611686018427387905  4611686018427387806  99"
    assert len(lines) == 7


DIFFERENT = [
    (lambda: (dt.ones(2), dt.ones(3)), "The values for attribute 'shape' do not match: (2,) != (3,)."),
    (lambda: (dt.ones(2, device="cuda"), dt.ones(2)), "attribute 'device' do not match: cuda:0 != cpu."),
    (lambda: (dt.ones(2), dt.ones(2).double()), "'dtype' do not match: devtensor.float32 != devtensor.float64."),
    (lambda: (float("nan"), float("nan")), "()     nan     nan       nan"),
    (lambda: (float("inf"), -float("inf")), "()     inf     -inf      inf"),
]


@pytest.mark.parametrize(("pair", "text"), DIFFERENT, ids=["shape", "device", "dtype", "nan", "inf"])
def test_assert_close_of_what_differs(pair, text: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(AssertionError) as caught:
        dt.testing.assert_close(*pair())
    assert text in str(caught.value)


def test_assert_close_of_what_agrees(device: str) -> None:
    x = dt.ones(3, device=device)
    dt.testing.assert_close(x, x * (1 + 1e-6))
    dt.testing.assert_close(x, [1.0, 1.0, 1.0], check_device=False)
    dt.testing.assert_close(x, x.double(), check_dtype=False)
    dt.testing.assert_close(x.half(), x.half() * 1.001)
    dt.testing.assert_close(dt.full((2,), float("nan")), dt.full((2,), float("nan")), equal_nan=True)
    dt.testing.assert_close(dt.zeros(0, 3, device=device), dt.zeros(0, 3, device=device))
    dt.testing.assert_close(x, x + 0.5, rtol=0, atol=0.5)
    with pytest.raises(ValueError, match="together"):
        dt.testing.assert_close(x, x, rtol=1)
    with dt.forbid_transfers():
        dt.testing.assert_close(x, x)
