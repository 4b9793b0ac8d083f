"""Training of the network that reads digits: the same program on every device, and a mistake of such programs."""

from __future__ import annotations

import hashlib
import importlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import devtensor as dt
from devtensor import nn, optim
from devtensor.nn import functional as F

Images = NDArray[np.float64]
Labels = NDArray[np.int64]

EPOCHS = 30
BATCH = 64
HIGHEST_RATE = 0.02
CHART_ROWS, CHART_COLUMNS = 10, 64


class Net(nn.Module):
    """Two convolutions and a linear layer: the network whose weights devtensor ships, with dropout while it learns."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.dropout = nn.Dropout(0.5)
        self.fc = nn.Linear(32 * 4 * 4, 10)

    def forward(self, x: dt.DeviceArray) -> dt.DeviceArray:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.relu(self.conv2(x))
        return self.fc(self.dropout(x.flatten(1)))


@dataclass(frozen=True)
class Trained:
    """What training on one device gave."""

    label: str
    losses: list[float]  # of each step
    accuracies: list[float]  # of each epoch, on images that training never saw
    seconds: float
    bytes_to_device: int
    bytes_to_host: int
    digest: str  # of the weights: the same seed gives the same
    mistake: str


def _batches(images: dt.DeviceArray, labels: dt.DeviceArray) -> Iterator[tuple[dt.DeviceArray, dt.DeviceArray]]:
    """All images once, in an order of their own, where they lie."""
    order = dt.randperm(len(images), device=images.device)
    for start in range(0, len(images), BATCH):
        chosen = order[start : start + BATCH]
        yield images[chosen], labels[chosen]


def _learn_an_epoch(
    net: Net,
    optimizer: optim.Optimizer,
    scheduler: optim.lr_scheduler.LRScheduler,
    images: dt.DeviceArray,
    labels: dt.DeviceArray,
) -> list[float]:
    """The loss of each step. They are read at the end, all at once, so that no step waits for the device."""
    net.train()
    losses = []
    for x, y in _batches(images, labels):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.detach())
    values: list[float] = dt.stack(losses).tolist()
    return values


def _right(net: Net, images: dt.DeviceArray, labels: dt.DeviceArray) -> float:
    """Share of right answers."""
    net.eval()
    with dt.no_grad():
        return (net(images).argmax(1) == labels).float().mean().item()


def _digest(net: Net) -> str:
    weights = b"".join(p.detach().cpu().numpy().tobytes() for p in net.parameters())
    return hashlib.sha256(weights).hexdigest()[:8]


def train(
    device: str,
    label: str,
    images: Images,
    labels: Labels,
    hidden: NDArray[np.bool_],
    *,
    seed: int,
    epochs: int,
    explain: Callable[[Callable[[], object]], str],
) -> Trained:
    """Train from the same weights on any device; hidden: the images to judge by. explain: shows the error of a call."""
    dt.manual_seed(seed)
    net = Net().to(device)  # made on the cpu, so that it starts alike everywhere
    pixels, digits = dt.from_numpy(images).to(dt.float32), dt.from_numpy(labels)
    seen, unseen = np.flatnonzero(~hidden), np.flatnonzero(hidden)
    steps = -(-len(seen) // BATCH)
    optimizer = optim.Adam(net.parameters(), lr=HIGHEST_RATE)
    scheduler = optim.lr_scheduler.OneCycleLR(optimizer, HIGHEST_RATE, total_steps=epochs * steps)

    before, start = dt._C.counters(), time.perf_counter()
    lessons = [part[dt.from_numpy(seen)].to(device) for part in (pixels, digits)]
    test = [part[dt.from_numpy(unseen)].to(device) for part in (pixels, digits)]
    losses: list[float] = []
    accuracies = []
    with _progress(label, epochs) as bar:
        for _ in range(epochs):
            losses += _learn_an_epoch(net, optimizer, scheduler, *lessons)
            accuracies.append(_right(net, *test))
            bar(losses[-1], accuracies[-1])
    seconds, after = time.perf_counter() - start, dt._C.counters()

    def batch_left_behind() -> None:
        x, y = pixels[:BATCH], digits[:BATCH]  # nobody wrote .to(device)
        F.cross_entropy(net(x), y).backward()

    def loss_without_a_graph() -> None:
        scores = net(pixels[:BATCH]).detach()  # meant to save memory
        loss = F.cross_entropy(scores, digits[:BATCH])
        loss.backward()

    on_host = dt.device(device).type == "cpu"
    return Trained(
        label=label,
        losses=losses,
        accuracies=accuracies,
        seconds=seconds,
        bytes_to_device=after["bytes_to_device"] - before["bytes_to_device"],
        bytes_to_host=after["bytes_to_host"] - before["bytes_to_host"],
        digest=_digest(net),
        mistake=explain(loss_without_a_graph if on_host else batch_left_behind),
    )


class _progress:
    """Shows how far training is: tqdm's bar, or one line at the end where tqdm is not installed."""

    def __init__(self, label: str, epochs: int) -> None:
        self._label, self._last = label, ""
        try:
            tqdm = importlib.import_module("tqdm").tqdm
        except ImportError:
            self._bar = None
        else:
            self._bar = tqdm(total=epochs, desc=label, unit="epoch", ncols=100, file=sys.stderr)

    def __enter__(self) -> Callable[[float, float], None]:
        return self._step

    def _step(self, loss: float, right: float) -> None:
        self._last = f"loss {loss:.3f}, held out {right:.1%}"
        if self._bar is not None:
            self._bar.set_postfix_str(self._last, refresh=False)
            self._bar.update()

    def __exit__(self, *details: object) -> None:
        if self._bar is not None:
            self._bar.close()
        else:
            print(f"{self._label}: {self._last}", file=sys.stderr)


# ---------------------------------------------------------------- the curve


def _columns(losses: Sequence[float], columns: int) -> NDArray[np.float64]:
    """The means of as many parts of the losses, as logarithms."""
    parts = np.array_split(np.array(losses, dtype=np.float64), min(columns, len(losses)))
    means: NDArray[np.float64] = np.log10(np.maximum([part.mean() for part in parts], 1e-9))
    return means


def chart(runs: Sequence[Trained]) -> str:
    """The losses in characters, on a logarithmic scale: each run has a letter, and * stands for several."""
    curves = [_columns(run.losses, CHART_COLUMNS) for run in runs]
    low, high = min(map(np.min, curves)), max(map(np.max, curves))
    cells = [[" "] * CHART_COLUMNS for _ in range(CHART_ROWS)]
    for letter, curve in zip("ox+", curves, strict=False):
        for column, value in enumerate(curve):
            row = round(float((high - value) / max(high - low, 1e-9)) * (CHART_ROWS - 1))
            cells[row][column] = letter if cells[row][column] in (" ", letter) else "*"
    scale = [10 ** (high - (high - low) * row / (CHART_ROWS - 1)) for row in range(CHART_ROWS)]
    lines = [f"{value:>8.3f} |{''.join(row).rstrip()}" for value, row in zip(scale, cells, strict=True)]
    steps = f"{len(runs[0].losses)} steps"
    names = ", ".join(f"{letter} {run.label}" for letter, run in zip("ox+", runs, strict=False))
    return "\n".join(["    loss", *lines, f"{'':>8} +{'-' * CHART_COLUMNS}", f"{names:<{CHART_COLUMNS + 2}}{steps:>8}"])


def plot(file: Path, runs: Sequence[Trained]) -> None:
    """A PNG: losses and accuracies of all runs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2, squeeze=False)[0]
    for run in runs:
        left.plot(run.losses, label=run.label, alpha=0.7)
        right.plot(range(1, len(run.accuracies) + 1), run.accuracies, marker=".", label=run.label)
    left.set(xlabel="step", ylabel="loss", yscale="log")
    right.set(xlabel="epoch", ylabel="accuracy on held-out images")
    left.legend()
    right.legend()
    figure.savefig(file, format="png")
