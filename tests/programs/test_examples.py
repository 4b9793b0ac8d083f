"""The programs of examples/: right on the cpu and on a GPU, what they say, and the table of them."""

from __future__ import annotations

import importlib.util
import itertools
import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import CUDA_DEVICES, ROOT

import devtensor as dt

FOLDER = ROOT / "examples"
DEVICES = ("cpu", CUDA_DEVICES[0])

if not FOLDER.exists():
    pytest.skip("these tests run the examples", allow_module_level=True)

sys.path.insert(0, str(FOLDER))
if importlib.util.find_spec("tqdm") is None:  # a bar that nobody sees here
    sys.modules["tqdm"] = types.SimpleNamespace(tqdm=lambda steps, *args, **options: steps)  # type: ignore[assignment]

import audit_a_port  # noqa: E402
import game_of_life  # noqa: E402
import image_filters  # noqa: E402
import knn_softmax_digits  # noqa: E402
import mobilenet_v2  # noqa: E402
import resnet18  # noqa: E402

sys.path.remove(str(FOLDER))

NETWORKS = {"resnet18": resnet18.ResNet18, "mobilenet_v2": mobilenet_v2.MobileNetV2}


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape, dtype=np.float32)


# ---------------------------------------------------------------- what they compute


def windows(images: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    reach = len(kernel) // 2
    padded = np.pad(images.astype(np.float64), ((0, 0), (0, 0), (reach, reach), (reach, reach)), "edge")
    return (np.lib.stride_tricks.sliding_window_view(padded, kernel.shape, (2, 3)) * kernel).sum((-2, -1))


@pytest.mark.parametrize("device", DEVICES)
def test_filters(device: str, capsys: pytest.CaptureFixture[str]) -> None:
    photo = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    images = image_filters.on_device(photo, device)
    wide = np.moveaxis(photo, 2, 0)[None] / 255
    want = {name: windows(wide, kernel.numpy()) for name, kernel in image_filters.KERNELS.items()}
    want["unsharp mask"] = wide + 1.5 * (wide - want["blur"])
    grey = np.einsum("nchw,c->nhw", wide, image_filters.LUMINANCE.numpy())[:, None]
    slopes = [windows(grey, kernel) for kernel in (image_filters.SOBEL.numpy(), image_filters.SOBEL.numpy().T)]
    want["edges"] = np.broadcast_to(1 - np.hypot(*slopes), wide.shape)
    found = image_filters.filtered(images)
    for name, result in want.items():
        np.testing.assert_allclose(found[name].cpu().numpy(), result.clip(0, 1), atol=1e-5, err_msg=name)
    image_filters.the_mistake(photo, device)
    assert "Fix: picture = picture.permute(0, 3, 1, 2)\n" in capsys.readouterr().out


@pytest.mark.parametrize("device", DEVICES)
def test_life(device: str) -> None:
    glider = game_of_life.pattern(".O.\n..O\nOOO", 8).to(device)
    with dt.forbid_transfers():
        worlds = game_of_life.play(glider, 32)
    assert worlds.dtype is dt.bool and tuple(worlds.shape) == (33, 8, 8)
    found = worlds.cpu().numpy()
    for before, after in itertools.pairwise(found):
        count = sum(np.roll(before, (i, j), (0, 1)).astype(int) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        assert np.array_equal(after, (count == 3) | (before & (count == 2)))
    assert np.array_equal(found[4], np.roll(found[0], (1, 1), (0, 1)))
    assert np.array_equal(found[32], found[0])  # around the world


@pytest.mark.parametrize("device", DEVICES)
def test_classifiers(device: str) -> None:
    x, unknown = random(60, 5), random(20, 5, seed=1)
    labels = np.random.default_rng(2).integers(0, 10, 60)
    on = [dt.from_numpy(values).to(device) for values in (x, labels, unknown)]
    order = ((unknown[:, None] - x.astype(np.float64)) ** 2).sum(2).argsort(1)[:, :3]
    votes = (labels[order][:, :, None] == np.arange(10)).sum(1)
    with dt.forbid_transfers():
        read = knn_softmax_digits.nearest_neighbours(*on, 3)
        weight, bias, losses, accuracies = knn_softmax_digits.softmax_regression(on[0], on[1], 4, rate=0.5)
        table = knn_softmax_digits.confusion(on[1], on[1])
    assert np.array_equal(read.cpu().numpy(), votes.argmax(1))
    assert np.array_equal(table.cpu().numpy(), np.diag(np.bincount(labels, minlength=10)))

    w, b, target = np.zeros((5, 10)), np.zeros(10), np.eye(10)[labels]
    for loss, accuracy in zip(losses.cpu().tolist(), accuracies.cpu().tolist(), strict=True):
        scores = np.exp(x @ w + b)
        shares = scores / scores.sum(1, keepdims=True)
        assert loss == pytest.approx(-np.log(shares[target == 1]).mean(), abs=1e-5)
        assert accuracy == pytest.approx((shares.argmax(1) == labels).mean())
        w, b = w - 0.5 * x.T @ (shares - target) / 60, b - 0.5 * (shares - target).mean(0)
    np.testing.assert_allclose(weight.cpu().numpy(), w, atol=1e-5)
    np.testing.assert_allclose(bias.cpu().numpy(), b, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_ports(device: str) -> None:
    rng = np.random.default_rng(0)
    pixels = (rng.integers(0, 4, (400, 1)) * 60 + rng.integers(0, 20, (400, 3))).astype(np.uint8)
    want = audit_a_port.with_numpy(pixels, 4, 5)
    logs = []
    for port, bound in ((audit_a_port.first_port, 1e-12), (audit_a_port.second_port, 1e-5)):
        with dt.record_transfers() as log:
            centres = port(pixels, 4, 5, dt.device(device))
        np.testing.assert_allclose(centres.cpu().numpy(), want, atol=bound)
        logs.append(log)
    if device != "cpu":
        assert len(logs[0]) >= 4 and len(logs[0].round_trips(2)) == 2
        assert [one.nbytes for one in logs[1]] == [pixels.nbytes]


# ---------------------------------------------------------------- networks


@pytest.mark.parametrize(
    ("name", "parameters", "keys", "some"),
    [
        ("resnet18", 11_689_512, 122, ["layer2.0.downsample.1.running_mean", "layer4.1.bn2.weight", "fc.bias"]),
        ("mobilenet_v2", 3_504_872, 314, ["features.1.conv.1.weight", "features.2.conv.1.0.weight",
                                          "features.18.1.running_var", "classifier.1.weight"]),
    ],
)  # fmt: skip
def test_networks(
    name: str, parameters: int, keys: int, some: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What torchvision's have; and the same results from the file of weights on both devices and in half precision."""
    network, file = NETWORKS[name], str(tmp_path / "weights.safetensors")
    options = ["--size=32", "--batch=2", "--repeats=1"]
    resnet18.main(network, "", [*options, "--device=cpu", f"--save={file}"])
    model = network().eval()
    state = model.state_dict()
    assert sum(p.numel() for p in model.parameters()) == parameters and len(state) == keys
    assert set(some) <= set(state)
    said = [capsys.readouterr().out]
    resnet18.main(network, "", [*options, f"--device={DEVICES[1]}", f"--weights={file}", "--half"])
    said.append(capsys.readouterr().out)
    assert len({re.search("most likely class .*", text)[0] for text in said}) == 1  # type: ignore[index]
    assert f"{parameters:,}" in said[0] and "batch   2:" in said[0] and "float16" in said[1]

    model.load_state_dict(dt.load(file))
    images = dt.from_numpy(random(2, 3, 32, 32))
    want = model(images)
    scores = model.to(DEVICES[1])(images.to(DEVICES[1]))
    dt.testing.assert_close(scores.cpu(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_weights_of_pytorch(name: str, tmp_path: Path) -> None:
    """The same text as a program for PyTorch: same keys, files that both read, same results."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from safetensors.torch import load_file, save_file

    source = (FOLDER / f"{name}.py").read_text()
    imports = "import devtensor as dt\nfrom devtensor import nn\n"
    assert imports in source
    namespace: dict[str, Any] = {"__name__": name}
    exec(source.replace(imports, "import torch as dt\nfrom torch import nn\n"), namespace)
    network = NETWORKS[name]
    theirs, again, ours = namespace[network.__name__]().eval(), namespace[network.__name__]().eval(), network().eval()
    assert list(ours.state_dict()) == list(theirs.state_dict())
    save_file(theirs.state_dict(), tmp_path / "theirs.safetensors")
    ours.load_state_dict(dt.load(tmp_path / "theirs.safetensors"))
    dt.save(ours.state_dict(), tmp_path / "ours.safetensors")
    again.load_state_dict(load_file(tmp_path / "ours.safetensors"))
    images = random(2, 3, 64, 64)
    with torch.no_grad():
        want = theirs(torch.from_numpy(images)).numpy()
        assert np.array_equal(again(torch.from_numpy(images)).numpy(), want)
    np.testing.assert_allclose(ours(dt.from_numpy(images)).detach().numpy(), want, rtol=1e-4, atol=1e-5)


# ---------------------------------------------------------------- as programs

PROGRAMS: list[tuple[types.ModuleType, list[str], tuple[str, str], list[str]]] = [
    (image_filters, ["PHOTO"], ("png", "png"), ["channels last, as the file had them", "unsharp mask"]),
    (knn_softmax_digits, ["--steps=20"], ("png", "png"), ["neighbours       98.6% right", "loss 2.3026 at first"]),
    (game_of_life, ["--steps=9", "--size=40"], ("gif", "png"), ["alive: 36 at first"]),
    (audit_a_port, ["PHOTO", "--steps=3"], ("png", "png"), ["first_port on ", "second_port on "]),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("program", "options", "endings", "wanted"), PROGRAMS, ids=[p[0].__name__ for p in PROGRAMS])
def test_programs(
    program: Any,
    options: list[str],
    endings: tuple[str, str],
    wanted: list[str],
    device: str,
    tmp_path: Path,
    capsys: Any,
) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib, which draws the pictures, is not installed")
    from matplotlib import image

    photo, file = tmp_path / "photo.jpg", tmp_path / f"out.{endings[DEVICES.index(device)]}"
    image.imsave(photo, random(48, 40, 3))
    arguments = [str(photo) if option == "PHOTO" else option for option in options]
    program.main([*arguments, f"--device={device}", f"--out={file}"])
    said = capsys.readouterr().out
    assert all(text in said for text in [*wanted, f"{file} written"]), said
    assert file.read_bytes()[:4] == {".png": b"\x89PNG", ".gif": b"GIF8"}[file.suffix]


def test_table() -> None:
    """Every program is in the table, with a command that its own text has."""
    rows = re.findall(
        r"^\| \[(.*?)\]\(\1\) \| .*? \| (?:`(.*)`|.*?) \| .*? \|$", (FOLDER / "README.md").read_text(), re.M
    )
    assert sorted(name for name, _ in rows) == sorted(
        path.name for path in FOLDER.iterdir() if path.name not in ("README.md", "__pycache__", ".ipynb_checkpoints")
    )
    for name, command in rows:
        if name.endswith(".py"):
            assert f"\n    {command}" in (FOLDER / name).read_text(), name
