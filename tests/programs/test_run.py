"""python -m devtensor run: scripts as they are, and scripts written for PyTorch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import devtensor as dt

pytestmark = pytest.mark.skipif(os.environ.get("DEVTENSOR_TEST_DEVICES") == "real", reason="starts simulated devices")

TORCH = """
import torch
import torch.nn.functional as F
from torch import float32
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.randn(2, 3)
weight = torch.randn(4, 3, device=device, dtype=float32)
y = F.linear(x, weight)
"""


def run(path: Path, text: str, *flags: str) -> subprocess.CompletedProcess[str]:
    (path / "script.py").write_text(text)
    env = {k: v for k, v in os.environ.items() if k != "DEVTENSOR_CUDA"}
    env["PYTHONPATH"] = str(Path(dt.__file__).parent.parent)
    command = [sys.executable, "-m", "devtensor", "run", *flags]
    return subprocess.run(command, cwd=path, env=env, capture_output=True, text=True, timeout=120)


def test_the_error_of_a_script_for_pytorch(tmp_path: Path) -> None:
    done = run(tmp_path, TORCH, "--simulate", "1", "--as-torch", "script.py")
    assert done.returncode == 1
    assert "DeviceMismatchError: Expected all tensors to be on the same device" in done.stderr
    assert "created by randn at script.py:6" in done.stderr
    assert 'Fix: x = x.to("cuda:0")' in done.stderr
    fixed = TORCH.replace("y = ", 'x = x.to("cuda:0")\ny = ')
    assert run(tmp_path, fixed, "--simulate", "1", "--as-torch", "script.py").returncode == 0


TRAINING = """
import torch
import torch.nn as nn
import torch.optim as optim
from torch.nn.utils import clip_grad_norm_
from torch.optim.lr_scheduler import CosineAnnealingLR

torch.manual_seed(0)
x = torch.linspace(-2, 2, 64).reshape(-1, 1)
y = x.square()
model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = optim.AdamW(model.parameters(), lr=0.05, weight_decay=1e-3)
scheduler = CosineAnnealingLR(optimizer, T_max=200)
for epoch in range(200):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
print(loss.item() < 0.01, f"{scheduler.get_last_lr()[0]:.6f}")
"""


def test_a_training_script_for_pytorch(tmp_path: Path) -> None:
    done = run(tmp_path, TRAINING, "--as-torch", "script.py")
    assert (done.returncode, done.stdout) == (0, "True 0.000000\n"), done.stderr


MODULES = """
import torch.nn as nn
import torch.nn.modules.conv
import torch.nn.parameter as parameter
from torch.nn.modules import Linear
from torch.nn.modules.activation import ReLU
from torch.nn.modules.batchnorm import BatchNorm2d
from torch.nn.modules.container import Sequential
from torch.nn.modules.linear import Linear as Same
from torch.nn.modules.loss import MSELoss
from torch.nn.modules.module import Module
from torch.nn.modules.normalization import LayerNorm
from torch.optim.optimizer import Optimizer
from torch.utils.data.dataloader import DataLoader
from torch.utils.data.dataset import TensorDataset
from torch.utils.data.sampler import RandomSampler

assert Linear is Same is nn.Linear is torch.nn.modules.Linear
assert Module is nn.Module and BatchNorm2d is nn.BatchNorm2d and LayerNorm is nn.LayerNorm
assert torch.nn.modules.conv.Conv2d is nn.Conv2d and nn.modules.Conv2d is nn.Conv2d
assert parameter.Parameter is nn.parameter.Parameter is nn.Parameter
assert issubclass(torch.optim.SGD, Optimizer) and DataLoader is torch.utils.data.DataLoader
"""


def test_the_modules_that_older_programs_import_from(tmp_path: Path) -> None:
    done = run(tmp_path, MODULES, "--as-torch", "script.py")
    assert done.returncode == 0, done.stderr
    assert "devtensor has no" not in done.stderr


def test_missing_names_are_listed_together(tmp_path: Path) -> None:
    text = "import torch\nfrom torch import fft\nx = torch.zeros(2)\ntorch.lobpcg(x)\ntorch.svd_lowrank(x)\n"
    done = run(tmp_path, text.replace("from torch import fft\n", ""), "--as-torch", "script.py")
    assert done.returncode == 1
    assert "devtensor has no torch.lobpcg (line 3), torch.svd_lowrank (line 4)" in done.stderr
    done = run(tmp_path, text, "--as-torch", "script.py")
    assert "devtensor has no torch.fft (line 2), torch.lobpcg (line 4)" in done.stderr


def test_arguments_exit_code_and_plain_run(tmp_path: Path) -> None:
    text = "import sys\nprint(sys.argv, __name__)\nsys.exit(int(sys.argv[1]))\n"
    done = run(tmp_path, text, "script.py", "7", "--simulate")
    assert done.returncode == 7
    assert done.stdout == "['script.py', '7', '--simulate'] __main__\n"
    done = run(tmp_path, text, "--as-torch", "script.py", "3")
    assert done.returncode == 3


LOOP = """
import sys
import devtensor as dt
x = dt.ones(3, 4).to("cuda")
for i in range(5):
    total = (x * i).sum().item()
print(x)
sys.exit(4)
"""


def test_the_report_at_the_end(tmp_path: Path) -> None:
    done = run(tmp_path, LOOP, "--simulate", "2", "script.py")
    assert done.returncode == 4
    assert "simulated devices used: cuda:0 (at most" in done.stderr
    assert "7 transfers: 1 to devices (48 bytes), 6 to the host (68 bytes)" in done.stderr
    assert "round trips: script.py:6 waited for cuda:0 5 times (.item() of (x * i).sum())" in done.stderr
    done = run(tmp_path, LOOP, "--simulate", "2", "--no-report", "script.py")
    assert (done.returncode, done.stderr) == (4, "")
    done = run(tmp_path, LOOP.replace("sys.exit(4)", "1 / 0"), "--simulate", "2", "script.py")
    assert done.returncode == 1
    assert "7 transfers" in done.stderr
    assert done.stderr.rstrip().endswith("ZeroDivisionError: division by zero")
    done = run(tmp_path, "import devtensor as dt\ndt.ones(3) + 1\n", "script.py")
    assert done.stderr == "\ndevtensor: devices used: cpu\n0 transfers\n"


def given(path: Path, text: str | bytes, *flags: str) -> tuple[int, str, str]:
    """The script on standard input: exit code, output, errors."""
    env = {k: v for k, v in os.environ.items() if k != "DEVTENSOR_CUDA"}
    env["PYTHONPATH"] = str(Path(dt.__file__).parent.parent)
    command = [sys.executable, "-m", "devtensor", "run", *flags]
    source = text.encode() if isinstance(text, str) else text
    done = subprocess.run(command, cwd=path, env=env, input=source, capture_output=True, timeout=120)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_standard_input(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("import torch\ntorch.svd_lowrank\n")
    text = "import sys\nimport __main__\nprint(sys.argv, sys.path[0], __name__, vars(__main__) is vars())\n"
    assert given(tmp_path, text + "sys.exit(3)\n", "--no-report", "-", "a", "-b") == (
        3, "['-', 'a', '-b']  __main__ True\n", "",
    )  # fmt: skip
    code, _, said = given(tmp_path, TORCH, "--simulate", "1", "--as-torch", "-")
    assert code == 1
    assert "created by randn at <stdin>:6" in said and 'Fix: x = x.to("cuda:0")' in said
    assert '  File "<stdin>", line 8, in <module>\n    y = F.linear(x, weight)\n' in said
    code, _, said = given(tmp_path, "import torch\nimport beside\ntorch.lobpcg(1)\n", "--as-torch", "-")
    assert code == 1 and "devtensor has no torch.lobpcg (line 3)" not in said.splitlines()[0]
    assert "torch.svd_lowrank (beside.py:2)" in said
    assert "round trips: <stdin>:6 waited for cuda:0 5 times" in given(tmp_path, LOOP, "--simulate", "1", "-")[2]


def test_standard_input_that_is_no_program(tmp_path: Path) -> None:
    code, _, said = given(tmp_path, "x = 1\nif x\n    pass\n", "--no-report", "-")
    assert code == 1 and '  File "<stdin>", line 2\n    if x\n' in said and "SyntaxError: expected ':'" in said
    for text in (b"x = '\xff'\n", b"# coding: none\n", b"x = 1\0\n"):
        code, _, said = given(tmp_path, text, "--no-report", "-")
        assert code == 1 and said.splitlines()[-1].startswith(("SyntaxError: ", "ValueError: ")), said
    assert given(tmp_path, b"", "--no-report", "-") == (0, "", "")


def test_a_script_that_is_not_there(tmp_path: Path) -> None:
    done = run(tmp_path, "", "none.py")
    expected = "python -m devtensor run: cannot open 'none.py': No such file or directory\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)


def test_a_folder(tmp_path: Path) -> None:
    """As `python FOLDER`: its __main__.py, which finds what lies beside it; one line where there is none."""
    folder = tmp_path / "folder"
    folder.mkdir()
    done = run(tmp_path, "", "folder")
    told = "'folder' is a folder without __main__.py; pass a file, such as 'folder/train.py'"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"python -m devtensor run: {told}\n")

    (folder / "beside.py").write_text("value = 7")
    (folder / "__main__.py").write_text(
        "import sys, torch, beside\nprint(__name__, __file__, sys.argv, beside.value, sys.path)\ntorch.nothing"
    )
    done = run(tmp_path, "", "--as-torch", "folder", "a")
    assert done.stdout.startswith(f"__main__ {folder}/__main__.py ['folder', 'a'] 7 ["), done.stdout
    assert f"'{folder}'" in done.stdout and f"'{tmp_path}'" not in done.stdout  # of sys.path
    assert "devtensor has no torch.nothing (line 3)" in done.stderr


def test_wrong_usage(tmp_path: Path) -> None:
    assert run(tmp_path, "", "--simulate", "0", "script.py").returncode == 2
    assert run(tmp_path, "", "--simulate", "x", "script.py").returncode == 2
    assert run(tmp_path, "").returncode == 2
