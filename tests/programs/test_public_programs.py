"""tools/programs/public_programs.py: a small repository of its own, fetched, run and compared."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRAIN = """
import torch
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

change = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])
data = datasets.MNIST("data", transform=change)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10), torch.nn.Dropout(0.2))
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model.to(device)
for images, labels in DataLoader(data, batch_size=160, shuffle=True):
    loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
    loss.backward()
    print("loss", loss.item())
"""


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("public_programs", ROOT / "tools" / "programs" / "public_programs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["public_programs"] = module
    spec.loader.exec_module(module)
    return module


def test_the_list(tool: ModuleType) -> None:
    programs = tool.programs([])
    assert len(programs) >= 40 and len({p.repository for p in programs}) >= 15
    assert all(len(p.commit) == 40 and (p.make or p.path.endswith(".py")) for p in programs)
    names = [(p.repository, p.name) for p in programs]
    assert len(set(names)) == len(names)
    page = (ROOT / "tests" / "programs" / "README.md").read_text()
    assert [name for _, name in names if f"`{name}`" not in page] == [], "run tools/programs/public_programs.py --write"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_program_is_fetched_and_runs_on_both_devices(tool: ModuleType, tmp_path: Path) -> None:
    repository = tmp_path / "somebody+something"
    repository.mkdir()
    (repository / "train.py").write_text(TRAIN)
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", "-C", str(repository)]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    checkout = tool.fetch("somebody/something", commit, str(tmp_path / "{owner}+{name}"), tmp_path / "work")
    program = tool.Program("somebody/something", commit, "train.py", "train.py")
    with_torch = importlib.util.find_spec("torch") is not None
    assert tool.judge(program, checkout, with_torch) == dict.fromkeys(
        ("cpu", "simulated"), "same" if with_torch else "ran"
    )


def test_what_differs_is_said(tool: ModuleType) -> None:
    program = tool.Program("o/n", "0" * 40, "p.py", "p.py", ignore="seconds")
    theirs = "loss 1.5\ntensor([1., 2.], grad_fn=<AddBackward0>)\n3 seconds\n"
    ours = "loss 1.5001\nDeviceArray([1., 2.], device='cpu', dtype=float32)\n9 seconds\n"
    assert tool.difference(program, ours, theirs) == ""
    assert (
        tool.difference(program, ours.replace("1.5001", "1.6"), theirs)
        == "prints 1.6 where PyTorch prints 1.5 (number 0)"
    )
    assert tool.difference(program, ours.replace("loss", "cost"), theirs).startswith("prints 'cost'")
    assert tool.difference(program, ours + "more\n", theirs).startswith("prints ")
