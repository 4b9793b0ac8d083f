"""The main job: a small network reads handwritten digits, on every device, and shows it."""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

import devtensor as dt
from devtensor import testing
from devtensor.digits import _training

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Result",
    "accuracy",
    "draw",
    "evaluate",
    "held_out",
    "load",
    "load_weights",
    "main",
    "plot",
    "predict",
]


def __dir__() -> list[str]:
    return __all__


Images = NDArray[np.float64]
Labels = NDArray[np.int64]

BATCH = 256
TIMED_RUNS = 5
LOWEST_ACCURACY = 0.98
SHADES = " .:-=+*#%@"


@dataclass(frozen=True)
class Result:
    """What one device answered for all images, and what it took."""

    label: str
    probabilities: NDArray[np.float32]
    predictions: Labels
    images_per_second: float
    bytes_to_device: int
    bytes_to_host: int
    mistake: str | None

    def to_json(self) -> str:
        """One line; float32 values survive the trip exactly."""
        lists = {
            "probabilities": self.probabilities.tolist(),
            "predictions": self.predictions.tolist(),
        }
        return json.dumps(asdict(self) | lists)

    @classmethod
    def from_json(cls, line: str) -> Result:
        """The inverse of to_json."""
        fields = json.loads(line)
        fields["probabilities"] = np.array(fields["probabilities"], dtype=np.float32)
        fields["predictions"] = np.array(fields["predictions"], dtype=np.int64)
        return cls(**fields)


def load() -> tuple[Images, Labels]:
    """All images, (1797, 1, 8, 8) in 0..1, and their labels."""
    packed = resources.files("devtensor.digits").joinpath("assets/digits.csv.gz").read_bytes()
    lines = gzip.decompress(packed).decode("ascii").splitlines()
    table = np.loadtxt(lines, delimiter=",", dtype=np.int64)
    return table[:, :64].reshape(-1, 1, 8, 8) / 16.0, table[:, 64].copy()


def load_weights() -> dict[str, NDArray[np.float32]]:
    """The trained weights by their PyTorch names."""
    return _read_weights()[0]


def held_out(count: int) -> NDArray[np.bool_]:
    """Which of `count` images the training never saw; the rule is stored with the weights."""
    rule = _read_weights()[1]["held_out"]
    chosen: NDArray[np.bool_] = np.arange(count) % rule["modulus"] == rule["remainder"]
    return chosen


def _read_weights() -> tuple[dict[str, NDArray[np.float32]], dict[str, Any]]:
    asset = resources.files("devtensor.digits").joinpath("assets/digits.safetensors")
    with resources.as_file(asset) as path, safe_open(path, framework="numpy") as file:
        names = file.keys()
        weights = {name: file.get_tensor(name) for name in names}
        return weights, json.loads(file.metadata()["digits"])


def predict(weights: Mapping[str, dt.DeviceArray], x: dt.DeviceArray) -> tuple[dt.DeviceArray, dt.DeviceArray]:
    """Probabilities (N, 10) and the most likely digits (N,) for images (N, 1, 8, 8)."""
    x = dt.relu(dt.conv2d(x, weights["conv1.weight"], weights["conv1.bias"], padding=1))
    x = dt.max_pool2d(x, 2)
    x = dt.relu(dt.conv2d(x, weights["conv2.weight"], weights["conv2.bias"], padding=1))
    x = dt.linear(x.flatten(1), weights["fc.weight"], weights["fc.bias"])
    probabilities = dt.softmax(x, dim=1)
    return probabilities, probabilities.argmax(dim=1)


def evaluate(device: str, weights: Mapping[str, NDArray[np.float32]], images: Images) -> Result:
    """Run the network over all images on `device`, then time it."""
    before = dt._C.counters()
    on_device = {name: dt.from_numpy(value).to(device) for name, value in weights.items()}
    batches = [
        dt.from_numpy(images[start : start + BATCH]).to(dt.float32).to(device) for start in range(0, len(images), BATCH)
    ]
    probabilities, predictions = _predict_all(on_device, batches)
    after = dt._C.counters()

    seconds = []
    for _ in range(TIMED_RUNS):  # the pass above was the warm-up
        start_time = time.perf_counter()
        _predict_all(on_device, batches)
        seconds.append(time.perf_counter() - start_time)

    is_cuda = device.startswith("cuda")
    return Result(
        label=_label(device),
        probabilities=probabilities,
        predictions=predictions,
        images_per_second=len(images) / float(np.median(seconds)),
        bytes_to_device=after["bytes_to_device"] - before["bytes_to_device"],
        bytes_to_host=after["bytes_to_host"] - before["bytes_to_host"],
        mistake=classic_mistake(on_device, images[:1]) if is_cuda else None,
    )


def _predict_all(
    weights: Mapping[str, dt.DeviceArray], batches: Sequence[dt.DeviceArray]
) -> tuple[NDArray[np.float32], Labels]:
    """From images on the device to answers on the host; copying back waits for the device."""
    answers = [predict(weights, batch) for batch in batches]
    probabilities = np.concatenate([p.to("cpu").numpy() for p, _ in answers])
    return probabilities, np.concatenate([digits.to("cpu").numpy() for _, digits in answers])


def classic_mistake(weights: Mapping[str, dt.DeviceArray], images: Images) -> str:
    """Leave the images on the CPU while the weights are on the device; return what is shown."""
    return _shown_error(lambda: predict(weights, dt.from_numpy(images).to(dt.float32)))


def _shown_error(call: Callable[[], object]) -> str:
    """What Python prints of the mistake that call makes, with the last of our lines; "" where it made none."""
    try:
        call()
    except (dt.DeviceMismatchError, dt.GradientError) as error:
        shown = traceback.TracebackException.from_exception(error)
        own = [frame for frame in shown.stack if Path(frame.filename).parent == Path(__file__).parent][-1]
        name = Path(own.filename).name
        frame = traceback.FrameSummary(name, own.lineno, own.name, line=own.line)
        shown.stack = traceback.StackSummary.from_list([frame])
        return "".join(shown.format(chain=False)).rstrip()
    return ""


def _label(device: str) -> str:
    if not device.startswith("cuda"):
        return device
    index = dt.device(device).index or 0
    simulated = dt.cuda.is_simulated()
    return f"{device} ({'simulated' if simulated else dt.cuda.get_device_name(index)})"


def accuracy(predictions: Labels, labels: Labels) -> float:
    """Share of right answers."""
    return float((predictions == labels).mean())


def draw(images: Images) -> str:
    """Images side by side in characters; two a pixel, as characters are tall."""
    shades = np.array(list(SHADES))
    levels = np.rint(images[:, 0] * (len(SHADES) - 1)).astype(np.int64)
    rows = shades[levels].repeat(2, axis=2).transpose(1, 0, 2)
    return "\n".join("".join(row.ravel()).rstrip() for row in rows)


def plot(file: Path, images: Images, labels: Labels, predictions: Labels) -> None:
    """A PNG: digits with prediction and truth, wrong ones first and red; the confusion matrix."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 7.5), layout="constrained")
    left, right = figure.subfigures(1, 2, squeeze=False)[0]

    rows, columns = 6, 8
    order = np.argsort(predictions == labels, kind="stable")[: rows * columns]
    wrong = int((predictions != labels).sum())
    left.suptitle(f"predicted / true: {wrong} of {len(labels)} held-out digits wrong (red)")
    panels: list[Axes] = left.subplots(rows, columns, squeeze=False).ravel().tolist()
    for panel in panels:
        panel.axis("off")
    for panel, i in zip(panels, order, strict=False):
        panel.imshow(images[i, 0], cmap="gray_r", vmin=0, vmax=1)
        colour = "black" if predictions[i] == labels[i] else "red"
        panel.set_title(f"{predictions[i]} / {labels[i]}", color=colour)

    counts = np.zeros((10, 10), dtype=np.int64)
    np.add.at(counts, (labels, predictions), 1)
    right.suptitle(f"confusion matrix, accuracy {accuracy(predictions, labels):.1%}")
    axes = right.subplots()
    axes.imshow(counts, cmap="Blues")
    axes.set(xlabel="predicted", ylabel="true", xticks=range(10), yticks=range(10))
    for (true, predicted), n in np.ndenumerate(counts):
        if n:
            dark = n > counts.max() / 2
            colour = "red" if true != predicted else "white" if dark else "black"
            axes.text(predicted, true, str(n), ha="center", va="center", color=colour)
    figure.savefig(file, format="png")


def _simulate_in_child() -> Result:
    """The simulated device; this process has opened the real one and cannot have both."""
    command = [sys.executable, "-m", "devtensor", "digits", "--device", "cuda:0", "--json"]
    environment = os.environ | {"DEVTENSOR_CUDA": "sim:1"}
    child = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if child.returncode:
        raise SystemExit("FAILED the simulated run, see above")
    return Result.from_json(child.stdout)


def _all_devices(weights: Mapping[str, NDArray[np.float32]], images: Images) -> list[Result]:
    """The CPU, the CUDA device when there is one, and the simulated device."""
    results = [evaluate("cpu", weights, images)]
    if dt.cuda.is_available():
        results.append(evaluate("cuda:0", weights, images))
        if not dt.cuda.is_simulated():
            results.append(_simulate_in_child())
    elif os.environ.get("DEVTENSOR_CUDA") == "off":
        print("DEVTENSOR_CUDA=off: CUDA is left out, cpu only\n")
    else:
        print("no CUDA device here: devtensor simulates one\n")
        testing.simulate_cuda(1)
        results.append(evaluate("cuda:0", weights, images))
    return results


def _places() -> list[str]:
    """The cpu, and a CUDA device, which is simulated if there is none."""
    if not dt.cuda.is_available():
        if os.environ.get("DEVTENSOR_CUDA") == "off":
            print("DEVTENSOR_CUDA=off: CUDA is left out, cpu only\n")
            return ["cpu"]
        print("no CUDA device here: devtensor simulates one\n")
        testing.simulate_cuda(1)
    return ["cpu", "cuda:0"]


def _train_everywhere(options: argparse.Namespace) -> int:
    """Train on each device and print everything; 1 when a device is wrong."""
    images, labels = load()
    hidden = held_out(len(labels))
    print(f"devtensor learns to read: {len(labels) - hidden.sum()} digits to learn from, {hidden.sum()} held out\n")
    runs = []
    for device in [options.device] if options.device else _places():
        runs.append(
            _training.train(
                device,
                _label(device),
                images,
                labels,
                hidden,
                seed=options.seed,
                epochs=options.epochs,
                explain=_shown_error,
            )
        )
    print(f"\n{_training.chart(runs)}\n")
    table = [("device", "accuracy", "seconds", "to device", "to host", "weights")]
    for run in runs:
        moved = _size(run.bytes_to_device), _size(run.bytes_to_host)
        table.append((run.label, _percent(run.accuracies[-1]), f"{run.seconds:.1f}", *moved, run.digest))
    _print_cells(table)
    print()
    failures = []
    for run in runs:
        print(f"{run.label}: accuracy {_percent(run.accuracies[-1])} on {hidden.sum()} held-out images")
        if run.accuracies[-1] < LOWEST_ACCURACY:
            failures.append(f"{run.label}: too many wrong answers")
        if not run.mistake:
            failures.append(f"{run.label}: the mistake raised no error")
    what = "a batch left on the cpu" if "DeviceMismatchError" in runs[-1].mistake else "a loss without a graph"
    print(f"\nThe classic mistake of training, {what}:\n\n{runs[-1].mistake}")
    code = _fail(failures)
    return (_write_plot(options.plot, lambda file: _training.plot(file, runs)) if options.plot else 0) or code


def _fail(failures: Sequence[str]) -> int:
    for failure in failures:
        print(f"FAILED {failure}", file=sys.stderr)
    return 1 if failures else 0


def _write_plot(file: Path, draw_to: Callable[[Path], None]) -> int:
    try:
        draw_to(file)
    except OSError as error:
        print(f"cannot write {file}: {error.strerror}", file=sys.stderr)
        return 2
    print(f"\nwrote {file}")
    return 0


def _print_cells(table: Sequence[Sequence[str]]) -> None:
    """Rows of a table: the first and the last column to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for first, *numbers, last in table:
        cells = [f"{cell:>{width}}" for cell, width in zip(numbers, widths[1:-1], strict=True)]
        print("  ".join([f"{first:<{widths[0]}}", *cells, last]))


def _size(count: int) -> str:
    if not count:
        return "none"
    return f"{count / 1e6:.2f} MB" if count >= 1e4 else f"{count / 1e3:.1f} kB"


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def _print_table(results: Sequence[Result], reference: Result, scores: Sequence[float]) -> None:
    table = [("device", "accuracy", "images/s", "to device", "to host", "same as cpu")]
    for result, score in zip(results, scores, strict=True):
        same = int((result.predictions == reference.predictions).sum())
        apart = np.abs(result.probabilities - reference.probabilities).max()
        agreement = f"{same}/{len(result.predictions)}, probabilities within {apart:.1e}"
        table.append(
            (
                result.label,
                _percent(score),
                f"{result.images_per_second:,.0f}",
                _size(result.bytes_to_device),
                _size(result.bytes_to_host),
                "(reference)" if result is reference else agreement,
            )
        )
    _print_cells(table)


def _report(results: Sequence[Result], reference: Result, images: Images, labels: Labels) -> int:
    """Print everything; 1 when a device is wrong."""
    hidden = held_out(len(labels))
    scores = [accuracy(result.predictions[hidden], labels[hidden]) for result in results]
    _print_table(results, reference, scores)
    print()
    failures = []
    for result, score in zip(results, scores, strict=True):
        print(f"{result.label}: accuracy {_percent(score)} on {hidden.sum()} held-out images")
        if score < LOWEST_ACCURACY:
            failures.append(f"{result.label}: too many wrong answers")
        if not np.array_equal(result.predictions, reference.predictions):
            failures.append(f"{result.label}: answers differ from those of the cpu")
        if result.mistake == "":
            failures.append(f"{result.label}: mixing devices raised no error")

    shown = next((result for result in results if result.mistake), None)
    if shown:
        print(f"\nThe classic mistake, weights on {shown.label}, images left on the CPU:\n")
        print(shown.mistake)

    last = results[-1]
    _, first_of_class = np.unique(labels[hidden], return_index=True)
    chosen = np.flatnonzero(hidden)[np.sort(first_of_class)[:5]]
    print(f"\nHeld-out digits as read by {last.label}:\n")
    print(draw(images[chosen]))
    captions = [f"read {last.predictions[i]}, is {labels[i]}" for i in chosen]
    print("".join(f"{caption:^16}" for caption in captions).rstrip())

    return _fail(failures)


def _device_problem(device: str) -> str | None:
    """Why `device` cannot be used, in one line; the library's own words."""
    try:
        dt.from_numpy(np.zeros(1, dtype=np.float32)).to(device)
    except dt.DeviceNotAvailableError as error:
        text = f"{type(error).__name__}: {error}"
        if dt.cuda.is_available() or "DEVTENSOR_CUDA=sim" in text:
            return text
        return f"{text} (hint: DEVTENSOR_CUDA=sim:1 simulates a device)"
    except (RuntimeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def _count(text: str) -> int:
    """A number from 1, as argparse wants it."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, but got {number}")
    return number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = __doc__
    parser.add_argument("--device", metavar="D", help="only this device, such as cpu or cuda:0")
    parser.add_argument("--plot", metavar="FILE", type=Path, help="also write a PNG")
    parser.add_argument("--train", action="store_true", help="learn the weights, on every device, from the same start")
    parser.add_argument("--epochs", metavar="N", type=_count, default=_training.EPOCHS, help="of --train (%(default)s)")
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="of --train (%(default)s)")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)


def main(argv: list[str]) -> int:
    """`python -m devtensor digits`; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m devtensor digits")
    add_arguments(parser)
    return run(parser.parse_args(argv))


def run(options: argparse.Namespace) -> int:
    """What main() does, with its arguments parsed."""
    problem = _device_problem(options.device) if options.device else None
    if options.plot and importlib.util.find_spec("matplotlib") is None:
        problem = "--plot needs matplotlib: pip install 'devtensor[plot]'"
    if problem:
        print(" ".join(problem.splitlines()), file=sys.stderr)
        return 2

    if options.train:
        return _train_everywhere(options)
    images, labels = load()
    weights = load_weights()
    if options.json:
        print(evaluate(options.device or "cpu", weights, images).to_json())
        return 0

    print(f"devtensor reads {len(images)} handwritten digits (NumPy float64, run as float32)\n")
    if options.device:
        results = [evaluate(options.device, weights, images)]
        is_cpu = dt.device(options.device).type == "cpu"
        reference = results[0] if is_cpu else evaluate("cpu", weights, images)
    else:
        results = _all_devices(weights, images)
        reference = results[0]
    code = _report(results, reference, images, labels)

    if options.plot:
        hidden = held_out(len(labels))
        answers = results[-1].predictions[hidden]
        code = _write_plot(options.plot, lambda file: plot(file, images[hidden], labels[hidden], answers)) or code
    return code
