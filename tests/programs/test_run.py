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
    assert "does not provide" not in done.stderr


def test_missing_names_are_listed_together(tmp_path: Path) -> None:
    text = "import torch\nfrom torch import xpu\nx = torch.zeros(2)\ntorch.lobpcg(x)\ntorch.cudnn_grid_sampler(x)\n"
    done = run(tmp_path, text.replace("from torch import xpu\n", ""), "--as-torch", "--no-report", "script.py")
    assert done.returncode == 1
    assert done.stderr == (
        "Traceback (most recent call last):\n"
        '  File "script.py", line 3, in <module>\n'
        "    torch.lobpcg(x)\n"
        "    ^^^^^^^^^^^^\n"
        "AttributeError: torch.lobpcg: devtensor does not provide it\n\n"
        "script.py:3: torch.lobpcg: devtensor does not provide it\n"
        "script.py:4: torch.cudnn_grid_sampler: devtensor does not provide it\n"
    )
    done = run(tmp_path, text, "--as-torch", "script.py")
    assert "ImportError: cannot import name 'xpu'" in done.stderr
    assert "\nscript.py:2: torch.xpu: devtensor does not provide it" in done.stderr
    assert "\nscript.py:4: torch.lobpcg: devtensor does not provide it" in done.stderr


ASKING = """
import torch
import torch.nn as nn
from torch.optim import SparseAdam
from helpers.blocks import Block
try:
    import torch.fft
except ImportError:
    pass
if hasattr(torch, "lobpcg"):
    torch.lobpcg
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2, bais=False)
        self.words = {}
    def forward(self, x):
        y = torch.zeros(3) * 2
        y.cudnn_grid_sampler()
        self.words.values()
        return x.to_mkldnn().sum(dim=0, foo=1), torch.sum(y, axis=0)
y = torch.ones(2)
y.mean(keepdim=True, dmi=0)
torch.nn.functional.Linear, torch.nn.init.xavier_unifrom_
"""
MISSING = """\
script.py:4: torch.optim.SparseAdam: devtensor does not provide it
script.py:15: torch.nn.Linear(bais=): devtensor does not provide this argument; the nearest that it has is bias=
script.py:19: Tensor.cudnn_grid_sampler: devtensor does not provide it
script.py:21: Tensor.to_mkldnn: devtensor does not provide it
script.py:23: Tensor.mean(dmi=): devtensor does not provide this argument
script.py:24: torch.nn.functional.Linear: devtensor does not provide it; it has torch.nn.Linear
script.py:24: torch.nn.init.xavier_unifrom_: devtensor does not provide it; the nearest name that it has is \
torch.nn.init.xavier_uniform_
helpers/blocks.py:2: torch.lobpcg: devtensor does not provide it
helpers/deep.py:1: torch.cudnn_grid_sampler: devtensor does not provide it
"""


def test_check_lists_what_is_missing_and_runs_nothing(tmp_path: Path) -> None:
    helpers = tmp_path / "helpers"
    helpers.mkdir()
    (helpers / "__init__.py").write_text("")
    (helpers / "blocks.py").write_text("import torch\nBlock = torch.lobpcg\nfrom .deep import deep\n")
    (helpers / "deep.py").write_text("from torch import cudnn_grid_sampler as deep\n")
    done = run(tmp_path, ASKING + "print('runs')\n", "--check", "script.py")
    told = done.stdout.splitlines()
    assert done.returncode == 1
    for line in MISSING.splitlines():
        assert any(one.startswith(line) for one in told), (line, done.stdout)
    assert len(told) == len(MISSING.splitlines()), done.stdout
    assert run(tmp_path, TORCH, "--check", "script.py").returncode == 0
    assert run(tmp_path, TRAINING, "--check", "script.py").stdout.startswith("nothing is missing")
    assert run(tmp_path, MODULES, "--check", "script.py").returncode == 0


NAMES = """
import torch
from torch import nn
try:
    from torch import xpu
    torch.lobpcg
except (ImportError, AttributeError):
    xpu = None
if xpu is not None:
    xpu.device_count()
if hasattr(torch, "cudnn_grid_sampler"):
    torch.cudnn_grid_sampler(torch.ones(3))
import contextlib
with contextlib.suppress(ImportError):
    import torch.nothing
def reads(torch, nn=nn.Linear):
    return torch.reads(nn.nothing)
def stores():
    nn = {}
    return nn.items(), [torch.own for torch in nn], lambda torch: torch.own
def walrus(values):
    return [(torch := value) for value in values], torch.own
def rest(value):
    match value:
        case {"kind": 1, **torch}:
            return torch.own
"""
CAUGHT = """
import torch
try:
    torch.lobpcg
except Exception:
    pass
try:
    torch.cudnn_grid_sampler
except ImportError:
    raise
class Net(torch.nn.Module):
    import torch as inside
    torch = None
    places = [one for one in inside.orgqr]
    def forward(self, x=torch.ormqr):
        return torch.segment_reduce
"""


def test_check_knows_what_a_name_stands_for_and_what_may_fail(tmp_path: Path) -> None:
    done = run(tmp_path, NAMES, "--check", "script.py")
    assert (done.returncode, done.stdout) == (0, "nothing is missing that can be seen without running it\n")
    done = run(tmp_path, CAUGHT, "--check", "script.py")
    assert done.stdout.splitlines() == [
        "script.py:4: torch.lobpcg: devtensor does not provide it; the program catches errors there",
        "script.py:8: torch.cudnn_grid_sampler: devtensor does not provide it",
        "script.py:14: torch.orgqr: devtensor does not provide it",
        "script.py:15: torch.ormqr: devtensor does not provide it",
        "script.py:16: torch.segment_reduce: devtensor does not provide it",
    ]


def test_check_tells_what_is_no_python_as_python_does(tmp_path: Path) -> None:
    for text in ("import torch\nif torch\n    pass\n", "import torch\nreturn 3\n", "x = '\\ud800"):
        done = run(tmp_path, text, "--check", "script.py")
        as_python = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.splitlines()[1:] == as_python.stderr.splitlines()[1:], text
        assert done.stderr.startswith('  File "script.py", line ')
    (tmp_path / "beside.py").write_text("def")
    done = run(tmp_path, "import beside\n", "--check", "script.py")
    assert done.returncode == 1 and f'File "{tmp_path}/beside.py", line 1' in done.stderr


def test_nothing_of_a_package_is_imported_before_torch_is_replaced(tmp_path: Path) -> None:
    """torch/ here stands for a real one that is installed."""
    package, deep = tmp_path / "package", tmp_path / "package" / "spaces" / "deep"
    deep.mkdir(parents=True)
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("print('the real one')\n")
    (package / "__init__.py").write_text("import torch\nprint('package', torch.__name__)\n")
    (package / "__main__.py").write_text("import torch\nprint(torch.__name__, __name__)\n")
    (deep / "__init__.py").write_text("")
    (deep / "train.py").write_text("import package.parts\n")
    (package / "parts.py").write_text("import torch\ntorch.lobpcg\n")
    done = run(tmp_path, "", "--as-torch", "--no-report", "-m", "package")
    assert (done.stdout, done.returncode) == ("package devtensor\ndevtensor __main__\n", 0), done.stderr
    done = run(tmp_path, "", "--check", "-m", "package.spaces.deep.train")
    assert done.stdout.endswith("package/parts.py:2: torch.lobpcg: devtensor does not provide it\n")
    assert done.stdout.count("\n") == 1
    assert run(tmp_path, "", "--check", "-m", "package").stdout.startswith("nothing is missing")

    (tmp_path / "script.py").write_text("import torch\nprint(torch.__name__)\n")
    command = "import sys; sys.argv[1:] = ['run', '--as-torch', '--no-report', 'script.py']\n"
    command += "import torch, devtensor.__main__ as main\nsys.exit(main.main(sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", command], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "the real one\ndevtensor\n", done.stderr

    (package / "__init__.py").write_text("import there_is_no_such_module\n")
    done = run(tmp_path, "", "--as-torch", "--no-report", "-m", "package.parts")
    assert done.returncode == 1 and "No module named 'there_is_no_such_module'" in done.stderr
    assert "Traceback (most recent call last):\n" + f'  File "{package}/__init__.py", line 1' in done.stderr


def test_a_module_that_is_missing_is_no_file_of_devtensor(tmp_path: Path) -> None:
    """devtensor has digits, data and testing; torch has no digits."""
    done = run(tmp_path, "import torch.digits\n", "--as-torch", "script.py")
    assert "ModuleNotFoundError: torch.digits: devtensor does not provide it" in done.stderr
    text = "from importlib.util import find_spec\nassert find_spec('torch') and find_spec('torch.lobpcg') is None\n"
    assert run(tmp_path, text, "--as-torch", "script.py").returncode == 0
    text = "import torch\nassert not hasattr(torch, 'lobpcg') and getattr(torch.optim, 'SparseAdam', 7) == 7\n"
    assert run(tmp_path, text, "--as-torch", "script.py").returncode == 0


def test_names_that_modules_find_themselves(tmp_path: Path) -> None:
    """torch.multiprocessing has what Python's has; torch.optim is loaded when it is asked for."""
    text = "import torch\nprint(torch.multiprocessing.Queue.__name__, torch.optim.SGD.__name__)\n"
    text += "import torch.multiprocessing as mp\nprint(mp.current_process().name, torch.hub.__name__)\n"
    text += "try:\n    torch.multiprocessing.nothing\nexcept AttributeError as error:\n    print(error)\n"
    done = run(tmp_path, text, "--as-torch", "--no-report", "script.py")
    told = "torch.multiprocessing.nothing: devtensor does not provide it"
    assert done.stdout == f"Queue SGD\nMainProcess devtensor.hub\n{told}\n", done.stderr


def test_a_module_by_its_name(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "beside.py").write_text("value = 7")
    (package / "train.py").write_text(
        "import sys, torch\nfrom .beside import value\nprint(__name__, sys.argv, value)\nsys.exit(len(sys.argv))"
    )
    done = run(tmp_path, "", "--as-torch", "-m", "package.train", "--lr", "1")
    assert (done.returncode, done.stdout) == (3, f"__main__ ['{package}/train.py', '--lr', '1'] 7\n"), done.stderr
    (package / "train.py").write_text("import torch\ntorch.lobpcg\n")
    assert run(tmp_path, "", "--check", "-m", "package.train").stdout.startswith("train.py:2: torch.lobpcg: ")
    done = run(tmp_path, "", "-m", "package.none")
    assert done.returncode == 2 and "no module named 'package.none'" in done.stderr
    assert run(tmp_path, "", "-m").returncode == 2


WORKERS = """
import torch
from torch.utils.data import DataLoader, Dataset
import torch.nn.functional as F
class Squares(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        return torch.arange(3) * i, torch.cuda.device_count()
if __name__ == "__main__":
    for context in (None, "fork", "forkserver"):
        loader = DataLoader(Squares(), batch_size=2, num_workers=2, multiprocessing_context=context)
        print([[part.tolist() for part in batch] for batch in loader], torch.__name__)
"""


def test_workers_import_as_the_script_does(tmp_path: Path) -> None:
    done = run(tmp_path, WORKERS, "--as-torch", "--simulate", "2", "--no-report", "script.py")
    line = "[[[[0, 0, 0], [0, 1, 2]], [2, 2]], [[[0, 2, 4], [0, 3, 6]], [2, 2]]] devtensor\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, line * 3, "")
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text(WORKERS)
    done = run(tmp_path, "", "--as-torch", "--simulate", "2", "--no-report", "-m", "package.train")
    assert (done.returncode, done.stdout, done.stderr) == (0, line * 3, "")


LIBRARY = """
import torch
class Rows(torch.nn.Module):
    def forward(self, tensor):
        return tensor.reshape(tensor.shape[0], -1)
def product(x, weight, scale=None):
    if scale is not None:
        x = x * scale
    return torch.matmul(x.flatten(1), weight)
"""
CALLS = """
import torch, parts
net = torch.nn.Sequential(parts.Rows(), torch.nn.Linear(4, 2)).to("cuda")
images, weight = torch.rand(3, 2, 2), torch.ones(4, 2, device="cuda")
try:
    net(images)
except RuntimeError as error:
    print(error.fix, error.fix_at)
try:
    parts.product(images, weight)
except RuntimeError as error:
    print(error.fix, error.fix_at.lineno, "made of `images`" in "".join(error.__notes__))
try:
    parts.product(images, weight, scale=images)
except RuntimeError as error:
    print(error.fix, error.fix_at)
"""


def test_functions_of_a_library_speak_of_what_they_were_given(tmp_path: Path) -> None:
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "parts.py").write_text(LIBRARY)
    text = "import sys\nsys.path.insert(0, 'site-packages')\n" + CALLS
    done = run(tmp_path, text, "--simulate", "1", "--as-torch", "script.py")
    assert done.stdout.splitlines() == [
        'images = images.to("cuda:0") None',
        'images = images.to("cuda:0") 12 True',
        'x.flatten(1).to("cuda:0") None',
    ], done.stdout + done.stderr


def test_the_traceback_begins_with_the_script(tmp_path: Path) -> None:
    text = "def f():\n    return 1 / 0\ntry:\n    f()\nexcept ZeroDivisionError as e:\n    raise KeyError(1) from e\n"
    done = run(tmp_path, text, "--no-report", "script.py")
    (tmp_path / "plain.py").write_text(text)
    plain = subprocess.run([sys.executable, "plain.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    told = plain.stderr.replace(f"{tmp_path}/", "").replace("plain.py", "script.py")
    assert done.stderr.replace(f"{tmp_path}/", "") == told
    done = run(tmp_path, "x = 1\nif x\n    pass\n", "--no-report", "script.py")
    assert done.stderr.startswith('  File "script.py", line 2\n    if x\n'), done.stderr
    hook = "import sys\nsys.excepthook = lambda *given: print('mine', given[0].__name__)\n1 / 0\n"
    done = run(tmp_path, hook, "--no-report", "script.py")
    assert (done.returncode, done.stdout, done.stderr) == (1, "mine ZeroDivisionError\n", "")


def test_arguments_exit_code_and_plain_run(tmp_path: Path) -> None:
    text = "import sys\nprint(sys.argv, __name__)\nsys.exit(int(sys.argv[1]))\n"
    done = run(tmp_path, text, "script.py", "7", "--simulate")
    assert done.returncode == 7
    assert done.stdout == "['script.py', '7', '--simulate'] __main__\n"
    done = run(tmp_path, text, "--as-torch", "script.py", "3")
    assert done.returncode == 3
    for asked in (["script.py"], ["-m", "script"]):
        done = run(tmp_path, text, "--no-report", *asked, "4", "-v", "--version", "--", "--ver", "-h")
        assert done.stdout.endswith("script.py', '4', '-v', '--version', '--', '--ver', '-h'] __main__\n"), done.stderr


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
    (tmp_path / "beside.py").write_text("import torch\ntorch.cudnn_grid_sampler\n")
    text = "import sys\nimport __main__\nprint(sys.argv, sys.path[0], __name__, vars(__main__) is vars())\n"
    assert given(tmp_path, text + "sys.exit(3)\n", "--no-report", "-", "a", "-b") == (
        3, "['-', 'a', '-b']  __main__ True\n", "",
    )  # fmt: skip
    code, _, said = given(tmp_path, TORCH, "--simulate", "1", "--as-torch", "-")
    assert code == 1
    assert "created by randn at <stdin>:6" in said and 'Fix: x = x.to("cuda:0")' in said
    assert '  File "<stdin>", line 8, in <module>\n    y = F.linear(x, weight)\n' in said
    code, _, said = given(tmp_path, "import torch\nimport beside\ntorch.lobpcg(1)\n", "--as-torch", "-")
    assert code == 1 and "torch.lobpcg: devtensor does not provide it" in said
    assert "\nbeside.py:2: torch.cudnn_grid_sampler: devtensor does not provide it\n" in said
    assert "round trips: <stdin>:6 waited for cuda:0 5 times" in given(tmp_path, LOOP, "--simulate", "1", "-")[2]
    assert given(tmp_path, "import torch\nimport beside\ntorch.lobpcg(1)\n", "--as-torch", "--check", "-") == (
        1,
        "<stdin>:3: torch.lobpcg: devtensor does not provide it\n"
        "beside.py:2: torch.cudnn_grid_sampler: devtensor does not provide it\n",
        "",
    )


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
    assert "__main__.py:3: torch.nothing: devtensor does not provide it" in done.stderr


def test_wrong_usage(tmp_path: Path) -> None:
    assert run(tmp_path, "", "--simulate", "0", "script.py").returncode == 2
    assert run(tmp_path, "", "--simulate", "x", "script.py").returncode == 2
    assert run(tmp_path, "").returncode == 2
