"""The report of `python -m devtensor run`: what a training program did that a correct one may do too."""

from __future__ import annotations

import gc
import linecache
import re
from typing import Any

import pytest
from support import CUDA_DEVICES, DEVICES
from training_mistakes import CORRECT, START

import devtensor as dt
from devtensor._diagnosis import report

LOOP = """
for epoch in range(3):
    opt.zero_grad()
    F.cross_entropy(net(x), labels).backward()
    opt.step()
"""

# what is reported (all of it must stand in one line; line N is the line marked `# here`), program
HABITS: dict[str, tuple[tuple[str, ...], str]] = {
    "step forgotten": (
        ("backward() ran 3 times, and no optimizer stepped",),
        "for epoch in range(3):\n    opt.zero_grad()\n    F.cross_entropy(net(x), labels).backward()\n",
    ),
    "layers made in forward": (
        ("parameters were made at", "LINE", "anew for each of 3 backward passes"),
        """
def forward(x):
    return nn.Linear(3, 3).to(dev)(x)  # here
for epoch in range(3):
    forward(x).sum().backward()
""",
    ),
    "parameters that nothing uses": (
        ("2 parameters of SGD never had a gradient in its 3 steps: model.unused.weight, model.unused.bias",),
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(3, 3), nn.Linear(3, 3)
    def forward(self, x):
        return self.used(x)
model = Net().to(dev)
opt = dt.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    opt.zero_grad()
    F.cross_entropy(model(x), labels).backward()
    opt.step()
""",
    ),
    "parameters before a cut": (
        ("2 parameters of Adam never had a gradient in its 1 step: net.0.weight, net.0.bias",),
        """
adam = dt.optim.Adam(net.parameters())
F.cross_entropy(net[2](net[1](net[0](x)).detach()), labels).backward()
adam.step()
""",
    ),
    "evaluation mode left on": (
        ("net.1 (Dropout)", "in evaluation mode in 3 of 3 steps of SGD, since eval() at", "LINE"),
        """
net = nn.Sequential(nn.Linear(3, 3), nn.Dropout()).to(dev)
opt = dt.optim.SGD(net.parameters(), lr=0.1)
net.eval()  # here
"""
        + LOOP,
    ),
    "validation without eval": (
        ("dropout was in training mode under no_grad at", "LINE", "(2 times)"),
        """
net = nn.Sequential(nn.Linear(3, 3), nn.Dropout()).to(dev)
with dt.no_grad():
    for batch in range(2):
        net(x)  # here
""",
    ),
    "validation without no_grad": (
        ("5 arrays made at", "LINE", "keep 20 recorded ops", "alive"),
        """
scores = []
for batch in range(5):
    scores.append(net(x).softmax(1))  # here
""",
    ),
    "a loss that is NaN": (
        ("item() of loss gave nan first at", "LINE", "after 1 backward pass;"),
        """
net(x).sum().backward()
for epoch in range(2):
    loss = (net(x) - 1e9).sqrt().sum()
    loss.item()  # here
""",
    ),
}


def told(text: str, device: str) -> tuple[list[str], str]:
    """What is reported of a program, and where its line marked `# here` stands."""
    gc.collect()  # what an earlier program has left
    filename = f"<report {len(text)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    space: dict[str, Any] = {"dev": device, "__name__": "__main__"}
    made = report.start()
    try:
        exec(compile(text, filename, "exec"), space)
        lines = made.lines()
    finally:
        report.stop()
        linecache.cache.pop(filename, None)
    marked = [n for n, line in enumerate(text.splitlines(), 1) if "# here" in line]
    return lines, f"{filename}:{marked[0]}" if marked else ""


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.filterwarnings("ignore::devtensor.GradientWarning")
@pytest.mark.parametrize("name", HABITS)
def test_habit(name: str, device: str) -> None:
    says, text = HABITS[name]
    lines, place = told(START + text, device)
    assert any(all(part.replace("LINE", place) in line for part in says) for line in lines), lines


@pytest.mark.parametrize("device", DEVICES)
def test_the_usual_loop_is_not_mentioned(device: str) -> None:
    for name in ("the usual loop", "accumulation over four batches", "validation between", "a GAN", "a closure"):
        assert told(START + CORRECT[name], device)[0] == [], name


BESIDE = {
    "a teacher in evaluation mode beside its student": """
class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.teacher = nn.Sequential(nn.Linear(3, 3), nn.Dropout(), nn.BatchNorm1d(3))
        self.student = nn.Sequential(nn.Linear(3, 3), nn.Dropout())
both = Both().to(dev)
both.teacher.eval().requires_grad_(False)
opt = dt.optim.SGD(both.student.parameters(), lr=0.1)
for epoch in range(3):
    opt.zero_grad()
    F.mse_loss(both.student(x), both.teacher(x)).backward()
    opt.step()
""",
    "a BatchNorm that is kept as it is": """
net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).to(dev)
opt = dt.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    net.train()
    net[1].eval()
    opt.zero_grad()
    F.cross_entropy(net(x), labels).backward()
    opt.step()
""",
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", BESIDE)
def test_what_is_meant_is_not_mentioned(name: str, device: str) -> None:
    assert told(START + BESIDE[name], device)[0] == []


def test_nothing_is_watched_afterwards() -> None:
    from devtensor._diagnosis import watching

    assert watching.report is None


def test_a_device_that_is_full_names_the_lines_of_graphs() -> None:
    gpu = CUDA_DEVICES[0]
    model = dt.nn.Linear(3, 3).to(gpu)

    def fill() -> None:
        scores = [model(dt.ones(2, 3, device=gpu)) for _ in range(4)]
        assert scores
        dt.zeros(1 << 44, device=gpu)

    with pytest.raises(dt.OutOfMemoryError) as caught:
        fill()
    line = fill.__code__.co_firstlineno + 1
    assert re.search(rf" 4 x  made at .*test_training_report\.py:{line}$", caught.value.__notes__[1], re.MULTILINE)
