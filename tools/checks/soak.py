"""A long run of all that an experiment does, whose memory must stay flat: python tools/checks/soak.py --minutes 60

Each round trains a small network, evaluates it, moves and casts arrays, works on a second stream, saves and loads a
checkpoint, draws batches and makes mistakes that are explained. Each minute it notes resident memory, Python objects,
blocks of the library and memory of the device. Memory that grows after the first quarter of the rounds ends it with
status 1. With --leak a round keeps one array: that must be found.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "helpers"))

from census import census

import devtensor as dt
from devtensor import nn
from devtensor.nn import functional
from devtensor.utils.data import DataLoader, TensorDataset

MOST = {"resident": 2 << 20, "objects": 200, "blocks": 0, "device": 0}


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.cell = nn.LSTM(8, 8, batch_first=True)
        self.last = nn.Linear(8, 4)

    def forward(self, x: dt.DeviceArray) -> dt.DeviceArray:
        x = functional.max_pool2d(functional.relu(self.norm(self.conv(x))), 2)
        states, _ = self.cell(x.flatten(2).transpose(1, 2))
        return self.last(functional.dropout(states[:, -1], 0.2, self.training))


class Experiment:
    def __init__(self, device: str) -> None:
        dt.manual_seed(0)
        self.device = device
        self.network = Network().to(device)
        self.optimizer = dt.optim.Adam(self.network.parameters(), lr=1e-3)
        images, labels = dt.randn(64, 1, 8, 8), dt.randint(0, 4, (64,))
        self.batches = DataLoader(TensorDataset(images, labels), batch_size=16, shuffle=True)

    def train(self) -> None:
        self.network.train()
        for images, labels in self.batches:
            self.optimizer.zero_grad()
            loss = functional.cross_entropy(self.network(images.to(self.device)), labels.to(self.device))
            loss.backward()
            nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
            self.optimizer.step()

    def evaluate(self) -> None:
        self.network.eval()
        with dt.no_grad():
            for images, _ in self.batches:
                self.network(images.to(self.device)).argmax(1).tolist()

    def move(self) -> None:
        x = dt.arange(5000, dtype=dt.float64).to(dt.float32).to(self.device)
        if self.device != "cpu":
            with dt.cuda.stream(dt.cuda.Stream(self.device)):
                x = x * 2
        x[::3].half().cpu().numpy()

    def save(self) -> None:
        file = io.BytesIO()
        dt.save(self.network.state_dict(), file)
        file.seek(0)
        self.network.load_state_dict(dt.load(file, map_location=self.device))

    def mistakes(self) -> None:
        x = dt.ones(3, 4, device=self.device)
        for wrong in (dt.ones(5, 2, device=self.device), dt.ones(4, 2, dtype=dt.float64, device=self.device)):
            try:
                x @ wrong
            except RuntimeError as error:
                str(error)

    def round(self) -> None:
        for part in (self.train, self.evaluate, self.move, self.save, self.mistakes):
            part()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--leak", action="store_true", help="keep an array of each round: must be found")
    given = parser.parse_args()
    experiment, kept, rounds = Experiment(given.device), [], 0
    notes: list[tuple[int, dict[str, int]]] = []
    begun = time.monotonic()
    while time.monotonic() - begun < given.minutes * 60:
        until = time.monotonic() + min(60, given.minutes * 60 / 12)
        while time.monotonic() < until:
            experiment.round()
            rounds += 1
            if given.leak:
                kept.append(dt.ones(3))
        notes.append((rounds, census(given.device)))
        line = "  ".join(f"{name} {count:,}" for name, count in notes[-1][1].items())
        print(f"{(time.monotonic() - begun) / 60:6.1f} min  {rounds:,} rounds  {line}", flush=True)
    first, last = next(found for at, found in notes if at >= rounds / 4), notes[-1][1]
    grown = {name: last[name] - first[name] for name in first}
    bad = [name for name, most in MOST.items() if grown[name] > most]
    print(f"{rounds:,} rounds in {given.minutes:g} minutes on {given.device}; grown since the first quarter: {grown}")
    print("grows: " + ", ".join(bad) if bad else "flat")
    return min(len(bad), 1)


if __name__ == "__main__":
    sys.exit(main())
