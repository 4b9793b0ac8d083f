"""Two classifiers of handwritten digits out of matrix products alone: nearest neighbours, and softmax regression.

    python examples/knn_softmax_digits.py                # on the GPU where there is one
    python examples/knn_softmax_digits.py --device cpu --neighbours 5 --steps 500 --out digits.png

There are no gradients in devtensor, and softmax regression needs none: that of the loss is two lines, written by hand.
Nothing is read back while it trains: the losses stay on the device, and come to the host all at once.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np
from tqdm import tqdm

import devtensor as dt
from devtensor import digits
from devtensor.nn.functional import cross_entropy, one_hot


def distances(a: dt.Tensor, b: dt.Tensor) -> dt.Tensor:
    """Squared distances (M, N) between the rows of a and of b, by one matrix product: |a|^2 - 2 a.b + |b|^2."""
    return a.square().sum(1, keepdim=True) - 2 * (a @ b.T) + b.square().sum(1)


def nearest_neighbours(x: dt.Tensor, labels: dt.Tensor, unknown: dt.Tensor, k: int) -> dt.Tensor:
    """What most of the k nearest rows of x say about each row of `unknown`; among equals the smaller digit."""
    apart = distances(unknown, x)
    columns = dt.arange(len(x), device=x.device)
    votes = dt.zeros(len(unknown), 10, dtype=dt.int64, device=x.device)
    for _ in range(k):
        nearest = apart.argmin(1)
        votes += one_hot(labels[nearest], 10)
        apart = dt.where(columns == nearest.unsqueeze(1), math.inf, apart)  # counted once
    return votes.argmax(1)


def softmax_regression(x: dt.Tensor, labels: dt.Tensor, steps: int, rate: float = 0.5):
    """Weights (D, 10), bias (10,), and by step: mean loss and accuracy, as arrays on the device of x."""
    weight, bias = dt.zeros(x.shape[1], 10, device=x.device), dt.zeros(10, device=x.device)
    target = one_hot(labels, 10).to(x.dtype)
    losses, accuracies = [], []
    for _ in tqdm(range(steps), "softmax regression", leave=False, disable=None):
        scores = x @ weight + bias
        losses.append(cross_entropy(scores, labels))
        accuracies.append((scores.argmax(1) == labels).float().mean())
        slope = (dt.softmax(scores, 1) - target) / len(x)  # of the mean loss by the scores
        weight -= rate * (x.T @ slope)
        bias -= rate * slope.sum(0)
    return weight, bias, dt.stack(losses), dt.stack(accuracies)


def confusion(labels: dt.Tensor, predicted: dt.Tensor) -> dt.Tensor:
    """How often (true, predicted) was seen: (10, 10), by a matrix product once more."""
    return one_hot(labels, 10).float().T @ one_hot(predicted, 10).float()


def draw(losses: np.ndarray, accuracies: np.ndarray, tables: dict[str, np.ndarray], file: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 4.5), layout="constrained")
    curve, *panels = figure.subplots(1, 1 + len(tables))
    curve.plot(losses, color="C3")
    curve.set(xlabel="step", ylabel="loss (red)", title="softmax regression, training images")
    share = curve.twinx()
    share.plot(accuracies, color="C0")
    share.set(ylabel="accuracy (blue)", ylim=(0, 1))
    for panel, (name, table) in zip(panels, tables.items(), strict=True):
        panel.imshow(np.sqrt(table), cmap="Blues")
        panel.set(title=name, xlabel="predicted", ylabel="true", xticks=range(10), yticks=range(10))
        for (true, predicted), count in np.ndenumerate(table):
            if count:
                colour = "black" if true != predicted else "white"
                panel.text(predicted, true, f"{count:.0f}", ha="center", va="center", color=colour)
    figure.savefig(file)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", help="cpu, cuda, or auto: the GPU where there is one")
    parser.add_argument("--neighbours", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--out", default="knn_softmax_digits.png")
    options = parser.parse_args(arguments)
    auto = "cuda" if dt.cuda.is_available() else "cpu"
    device = dt.device(auto if options.device == "auto" else options.device)

    images, truth = digits.load()  # NumPy: float64 (1797, 1, 8, 8) between 0 and 1, and int64
    hidden = digits.held_out(len(truth))
    with dt.record_transfers() as log:
        x, unknown = (dt.from_numpy(images[part]).to(device, dt.float32).flatten(1) for part in (~hidden, hidden))
        y, answers = (dt.from_numpy(truth[part]).to(device) for part in (~hidden, hidden))
        by_neighbours = nearest_neighbours(x, y, unknown, options.neighbours)
        weight, bias, losses, accuracies = softmax_regression(x, y, options.steps)
        by_softmax = (unknown @ weight + bias).argmax(1)
        curves = [values.cpu().numpy() for values in (losses, accuracies)]
        tables = {
            f"{options.neighbours} nearest neighbours": confusion(answers, by_neighbours).cpu().numpy(),
            "softmax regression": confusion(answers, by_softmax).cpu().numpy(),
        }
    print(f"{len(x)} images to learn from, {len(unknown)} to read, on {device}\n")
    for name, table in tables.items():
        print(f"{name:<24}{np.trace(table) / table.sum():8.1%} right")
    print(f"\nloss {curves[0][0]:.4f} at first, {curves[0][-1]:.4f} after {options.steps} steps\n\n{log}")
    draw(*curves, tables, options.out)
    print(f"\n{options.out} written")


if __name__ == "__main__":
    main()
