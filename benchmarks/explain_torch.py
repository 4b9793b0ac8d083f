"""What explain_torch costs: python -m benchmarks.explain_torch. Needs PyTorch, which computes all of it on the cpu.

An epoch of a small CNN (1,024 images of 1x16x16, batches of 64, Adam) without explain_torch, with it, and with
origins=True: the three take turns, and the least of some rounds of each counts, as time of the processor. Their
losses must be the same bits.
Below that: one op of 4 elements, where the cost of origins is largest, and one error that is caught and shown.
"""

import contextlib
import itertools
import time
import traceback

import torch
from torch import nn

import devtensor as dt

ROUNDS = 7
WAYS = {"off": None, "on": False, "with origins": True}


def way(origins):
    return contextlib.nullcontext() if origins is None else dt.explain_torch(origins=origins)


def epoch(origins):
    """Seconds of an epoch, and its losses."""
    torch.manual_seed(0)
    images, labels = torch.rand(1024, 1, 16, 16), torch.randint(0, 10, (1024,))
    model = nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32 * 4 * 4, 64), nn.ReLU(), nn.Linear(64, 10)),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    with way(origins):
        start = time.process_time()
        for batch, target in zip(images.split(64), labels.split(64), strict=True):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(batch), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return time.process_time() - start, losses


def op(origins, count=2000):
    """Seconds of x + y."""
    x, y = torch.ones(4), torch.ones(4)
    with way(origins):
        start = time.process_time()
        for _ in itertools.repeat(None, count):
            x + y
        return (time.process_time() - start) / count


def error(origins):
    """Seconds of an error that is caught and shown."""
    x, w = torch.ones(2, 3), torch.ones(2, 3)
    with way(origins):
        start = time.process_time()
        try:
            x @ w
        except RuntimeError as caught:
            traceback.format_exception(caught)
        return time.process_time() - start


def least(measure):
    """The least of some rounds of each way, in turns; the first round is not counted."""
    found = {name: [] for name in WAYS}
    for turn in range(ROUNDS + 1):
        for name, origins in WAYS.items():
            seconds = measure(origins)
            if turn:
                found[name].append(seconds)
    return {name: min(seconds) for name, seconds in found.items()}


def main():
    torch.set_num_threads(1)
    losses = [epoch(origins)[1] for origins in WAYS.values()]
    assert losses[0] == losses[1] == losses[2]
    print(f"PyTorch {torch.__version__}, one thread; losses of the three are the same bits")
    for title, measure, unit, scale in (
        ("an epoch of a small CNN", lambda origins: epoch(origins)[0], "ms", 1e3),
        ("x + y of 4 elements", op, "us", 1e6),
        ("an error, caught and shown", error, "ms", 1e3),
    ):
        found = least(measure)
        print(title)
        for name, seconds in found.items():
            print(f"  {name:<14}{seconds * scale:9.2f} {unit}  {seconds / found['off'] - 1:+.1%}")


if __name__ == "__main__":
    main()
