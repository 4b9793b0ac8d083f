"""The main job gives right answers on every device, and wrong ones when something is wrong."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

import devtensor as dt
from devtensor import digits
from devtensor.digits import _training

# The external reader of the output: every percentage named accuracy has to be a real one.
ACCURACY = re.compile(r"(?i)accura\w*[^0-9\n]{0,60}?(\d+(?:\.\d+)?)\s*(%?)")


def run_job(*arguments: str, cuda: str) -> subprocess.CompletedProcess[str]:
    """The job in a process of its own, as the choice of CUDA is made once a process."""
    return subprocess.run(
        [sys.executable, "-m", "devtensor", "digits", *arguments],
        env=os.environ | {"DEVTENSOR_CUDA": cuda},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def held_out_accuracy(result: digits.Result, labels: digits.Labels) -> float:
    hidden = digits.held_out(len(labels))
    return digits.accuracy(result.predictions[hidden], labels[hidden])


@pytest.fixture(scope="module")
def data() -> tuple[digits.Images, digits.Labels]:
    return digits.load()


@pytest.fixture(scope="module")
def cpu(data: tuple[digits.Images, digits.Labels]) -> digits.Result:
    return digits.evaluate("cpu", digits.load_weights(), data[0])


def test_load(data: tuple[digits.Images, digits.Labels]) -> None:
    images, labels = data
    assert images.shape == (1797, 1, 8, 8)
    assert images.dtype == np.float64
    assert (images.min(), images.max()) == (0.0, 1.0)
    assert labels.dtype == np.int64
    assert np.array_equal(np.unique(labels), np.arange(10))
    packed = resources.files("devtensor.digits").joinpath("assets/digits.csv.gz").read_bytes()
    first = gzip.decompress(packed).decode("ascii").splitlines()[0].split(",")
    assert np.array_equal(images[0].ravel() * 16, np.array(first[:64], dtype=np.float64))
    assert labels[0] == int(first[64])


def test_held_out_is_a_fifth_with_every_class(data: tuple[digits.Images, digits.Labels]) -> None:
    hidden = digits.held_out(len(data[1]))
    assert hidden.sum() == 359
    assert np.bincount(data[1][hidden], minlength=10).min() > 0


def test_cpu_accuracy(cpu: digits.Result, data: tuple[digits.Images, digits.Labels]) -> None:
    assert held_out_accuracy(cpu, data[1]) >= 0.98
    assert (cpu.bytes_to_device, cpu.bytes_to_host) == (0, 0)
    np.testing.assert_allclose(cpu.probabilities.sum(axis=1), 1, rtol=1e-5)


def test_cpu_agrees_with_numpy(cpu: digits.Result, data: tuple[digits.Images, digits.Labels]) -> None:
    weights = {name: value.astype(np.float64) for name, value in digits.load_weights().items()}

    def convolve(x: np.ndarray, name: str) -> np.ndarray:
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        y = np.einsum("nchwij,ocij->nohw", windows, weights[f"{name}.weight"], optimize=True)
        return np.maximum(y + weights[f"{name}.bias"].reshape(1, -1, 1, 1), 0)

    x = convolve(data[0], "conv1").reshape(-1, 16, 4, 2, 4, 2).max(axis=(3, 5))
    x = convolve(x, "conv2").reshape(len(x), -1) @ weights["fc.weight"].T + weights["fc.bias"]
    expected = np.exp(x - x.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(cpu.probabilities, expected, atol=1e-5)
    assert np.array_equal(cpu.predictions, expected.argmax(axis=1))


def test_simulated_device_agrees_with_cpu(cpu: digits.Result, data: tuple[digits.Images, digits.Labels]) -> None:
    child = run_job("--device", "cuda:0", "--json", cuda="sim:1")
    assert child.returncode == 0, child.stderr
    simulated = digits.Result.from_json(child.stdout)
    assert simulated.label == "cuda:0 (simulated)"
    assert np.array_equal(simulated.predictions, cpu.predictions)
    np.testing.assert_allclose(simulated.probabilities, cpu.probabilities, atol=1e-5)
    assert held_out_accuracy(simulated, data[1]) == held_out_accuracy(cpu, data[1])

    weight_bytes = sum(value.nbytes for value in digits.load_weights().values())
    assert simulated.bytes_to_device == weight_bytes + data[0].size * 4
    assert simulated.bytes_to_host == simulated.probabilities.nbytes + len(data[1]) * 8
    assert simulated.mistake is not None
    assert "DeviceMismatchError" in simulated.mistake
    assert "predict" in simulated.mistake


def test_result_survives_json(cpu: digits.Result) -> None:
    copy = digits.Result.from_json(cpu.to_json())
    assert copy.probabilities.dtype == np.float32
    assert np.array_equal(copy.probabilities, cpu.probabilities)
    assert np.array_equal(copy.predictions, cpu.predictions)
    assert json.loads(cpu.to_json())["label"] == "cpu"


def test_output_with_simulated_device() -> None:
    job = run_job(cuda="sim:1")
    assert job.returncode == 0, job.stdout + job.stderr
    found = ACCURACY.findall(job.stdout)
    assert len(found) == 2
    assert all(float(number) >= 98 and sign == "%" for number, sign in found)
    assert "1797/1797" in job.stdout
    assert "DeviceMismatchError" in job.stdout


def test_output_without_cuda() -> None:
    job = run_job(cuda="off")
    assert job.returncode == 0, job.stdout + job.stderr
    assert "cpu only" in job.stdout
    assert "cuda:0" not in job.stdout


def test_a_short_training() -> None:
    first, second = (run_job("--train", "--epochs", "1", "--seed", "3", cuda="sim:1") for _ in range(2))
    for job in (first, second):  # one epoch is too few to pass
        assert job.returncode == 1 and "too many wrong answers" in job.stderr
    digests = [re.findall(r"(?m)(?<=  )[0-9a-f]{8}$", job.stdout) for job in (first, second)]
    assert len(digests[0]) == 2 and digests[0] == digests[1]
    assert "23 steps" in first.stdout
    assert "DeviceMismatchError" in first.stdout and "In module: Net.conv1" in first.stdout
    assert "Fix: x = x.to(" in first.stdout


def test_each_epoch_drops_what_the_net_says(data: tuple[digits.Images, digits.Labels]) -> None:
    """Also after the held out images were judged, which drops nothing."""
    dt.manual_seed(0)
    net = _training.Net()
    optimizer = dt.optim.SGD(net.parameters(), lr=0.0)
    scheduler = dt.optim.lr_scheduler.ConstantLR(optimizer)
    images, labels = (dt.from_numpy(part[:64]) for part in data)
    images, labels = images.to(dt.float32), labels.to(dt.int64)
    _training._right(net, images, labels)
    first, second = (_training._learn_an_epoch(net, optimizer, scheduler, images, labels) for _ in range(2))
    assert first != second  # nothing was learned, and other elements were dropped


def test_training_on_the_cpu_alone(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib, which draws the plot, is not installed")
    target = tmp_path / "curve.png"
    job = run_job("--train", "--epochs", "2", "--plot", str(target), cuda="off")
    assert "cuda:0" not in job.stdout
    assert "GradientError" in job.stdout and "loss.backward()" in job.stdout
    assert target.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_training_without_tqdm(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    digits.main(["--train", "--epochs", "1", "--device", "cpu"])
    assert re.search(r"(?m)^cpu: loss 0\.\d{3}, held out \d\d\.\d%$", capsys.readouterr().err)


def test_training_wants_epochs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        digits.main(["--train", "--epochs", "0"])
    assert "expected at least 1, but got 0" in capsys.readouterr().err


def test_training_reads_the_digits() -> None:
    job = run_job("--train", cuda="sim:1")
    assert job.returncode == 0, job.stdout + job.stderr
    found = ACCURACY.findall(job.stdout)
    assert len(found) == 2
    assert all(float(number) >= 98 and sign == "%" for number, sign in found)


def test_shuffled_labels_are_not_met(cpu: digits.Result, data: tuple[digits.Images, digits.Labels]) -> None:
    shuffled = np.random.default_rng(0).permutation(data[1])
    assert held_out_accuracy(cpu, shuffled) < 0.3


def test_perturbed_weight_lowers_accuracy(cpu: digits.Result, data: tuple[digits.Images, digits.Labels]) -> None:
    weights = digits.load_weights()
    weights["conv2.weight"] = -weights["conv2.weight"]
    result = digits.evaluate("cpu", weights, data[0])
    assert held_out_accuracy(result, data[1]) < held_out_accuracy(cpu, data[1]) - 0.3


def test_wrong_weights_fail_the_job(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    weights = digits.load_weights()
    weights["fc.bias"] = weights["fc.bias"] + np.arange(10, dtype=np.float32) * 10
    monkeypatch.setattr(digits, "load_weights", lambda: weights)
    assert digits.main(["--device", "cpu"]) == 1
    assert "FAILED cpu: too many wrong answers" in capsys.readouterr().err


def test_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib, which draws the plot, is not installed")
    target = tmp_path / "digits.png"
    assert digits.main(["--device", "cpu", "--plot", str(target)]) == 0
    assert target.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_plot_without_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find_spec(name))
    target = tmp_path / "digits.png"
    assert digits.main(["--device", "cpu", "--plot", str(target)]) == 2
    assert "devtensor[plot]" in capsys.readouterr().err
    assert not target.exists()


def test_plot_to_a_missing_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib, which draws the plot, is not installed")
    target = tmp_path / "missing" / "digits.png"
    assert digits.main(["--device", "cpu", "--plot", str(target)]) == 2
    assert str(target) in capsys.readouterr().err


def test_unknown_device(capsys: pytest.CaptureFixture[str]) -> None:
    assert digits.main(["--device", "tpu:0"]) == 2
    error = capsys.readouterr().err
    assert "tpu" in error
    assert error.count("\n") == 1


def test_missing_cuda_names_the_way_out() -> None:
    job = run_job("--device", "cuda:0", cuda="off")
    assert job.returncode == 2
    assert job.stderr.startswith("DeviceNotAvailableError: ")
    assert "DEVTENSOR_CUDA=sim:1" in job.stderr
    assert job.stderr.count("\n") == 1
