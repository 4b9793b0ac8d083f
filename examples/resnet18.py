"""ResNet-18: a network written as for PyTorch, weights from a file, what each layer costs, how fast it is.

    python examples/resnet18.py                          # random weights; on the GPU where there is one
    python examples/resnet18.py --device cpu --half --batch 1 8
    python examples/resnet18.py --save resnet18.safetensors
    python examples/resnet18.py --weights resnet18.safetensors

Only the two imports of devtensor differ from the same network in PyTorch, and the keys are torchvision's: its weights
fit as they are. This writes them to such a file:

    model = torchvision.models.resnet18(weights="DEFAULT")
    safetensors.torch.save_file(model.state_dict(), "resnet18.safetensors")
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence

from tqdm import tqdm

import devtensor as dt
from devtensor import nn


class BasicBlock(nn.Module):
    """Two convolutions, and what went in added to what comes out."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.downsample = None
        if stride != 1 or before != after:
            self.downsample = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x: dt.Tensor) -> dt.Tensor:
        short = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(x)) + short)


class ResNet18(nn.Module):
    """He et al. 2015, table 1: images (N, 3, H, W) to scores (N, classes)."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = nn.Sequential(BasicBlock(64, 64, 1), BasicBlock(64, 64, 1))
        self.layer2 = nn.Sequential(BasicBlock(64, 128, 2), BasicBlock(128, 128, 1))
        self.layer3 = nn.Sequential(BasicBlock(128, 256, 2), BasicBlock(256, 256, 1))
        self.layer4 = nn.Sequential(BasicBlock(256, 512, 2), BasicBlock(512, 512, 1))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512, classes)

    def forward(self, x: dt.Tensor) -> dt.Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


# ---------------------------------------------------------------- what any network can be asked


def wait(device: dt.device) -> None:
    """A call on a GPU returns before the GPU is done; a clock must not."""
    if device.type == "cuda":
        dt.cuda.synchronize(device)


def print_layers(model: nn.Module, x: dt.Tensor) -> None:
    """One line for each block: its last output, its parameters, its multiply-adds, its time. Forward hooks see them."""
    rows: dict[str, list] = {}
    clock = [0.0]

    def seen(name: str):
        def hook(layer: nn.Module, inputs: tuple, output: dt.Tensor) -> None:
            wait(output.device)
            now = time.perf_counter()
            row = rows.setdefault(".".join(name.split(".")[:2]), [None, 0, 0, 0.0])
            row[0] = tuple(output.shape)
            row[1] += sum(p.numel() for p in layer.parameters())
            if isinstance(layer, nn.Conv2d | nn.Linear):
                row[2] += output.numel() * layer.weight[0].numel()
            row[3] += now - clock[0]
            clock[0] = now

        return hook

    leaves = [(name, layer) for name, layer in model.named_modules() if not list(layer.children())]
    handles = [layer.register_forward_hook(seen(name)) for name, layer in leaves]
    clock[0] = time.perf_counter()
    model(x)
    for handle in handles:
        handle.remove()
    total = ("all", "", *(sum(row[i] for row in rows.values()) for i in (1, 2, 3)))
    print(f"{'block':<14}{'output':<20}{'parameters':>12}{'million mult-adds':>19}{'ms':>9}")
    for name, shape, parameters, products, seconds in [*((name, *row) for name, row in rows.items()), total]:
        print(f"{name:<14}{shape!s:<20}{parameters:>12,}{products / 1e6:>19,.1f}{seconds * 1e3:>9.2f}")


def seconds_of(model: nn.Module, x: dt.Tensor, repeats: int) -> float:
    """The median time of a call."""
    times = []
    for _ in tqdm(range(repeats), f"batch {len(x)}", leave=False, disable=None):
        start = time.perf_counter()
        model(x)
        wait(x.device)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main(network: type[nn.Module], text: str | None, arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", help="cpu, cuda, or auto: the GPU where there is one")
    parser.add_argument("--half", action="store_true", help="weights and images in float16")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 32], help="how many images at a time")
    parser.add_argument("--repeats", type=int, default=5, help="calls to be timed; the median counts")
    parser.add_argument("--size", type=int, default=224, help="height and width of the images")
    parser.add_argument("--weights", metavar="FILE", help="a safetensors file; random weights without one")
    parser.add_argument("--save", metavar="FILE", help="where to write the weights")
    options = parser.parse_args(arguments)

    auto = "cuda" if dt.cuda.is_available() else "cpu"
    device = dt.device(auto if options.device == "auto" else options.device)
    dt.manual_seed(0)
    model = network().eval()
    if options.weights:
        model.load_state_dict(dt.load(options.weights))  # names every key that does not fit, and changes nothing then
    if options.save:
        dt.save(model.state_dict(), options.save)
        print(f"{options.save} written")
    model.to(device, dt.float16 if options.half else dt.float32)
    images = dt.randn(max(options.batch), 3, options.size, options.size).to(next(model.parameters()))

    scores = model(images[:1])  # the first call also chooses algorithms, and compiles for a GPU
    place = f"{device} ({dt.cuda.get_device_name(device)})" if device.type == "cuda" else "the cpu"
    print(f"{network.__name__} on {place}, {scores.dtype}, images {tuple(images.shape[1:])}\n")
    print_layers(model, images[:1])
    print(f"\nmost likely class of the first image: {scores.argmax(1).item()} of {scores.shape[1]}")
    for batch in options.batch:
        spent = seconds_of(model, images[:batch], options.repeats)
        print(f"batch {batch:>3}: {spent * 1e3:8.2f} ms, {batch / spent:8.1f} images/s")


if __name__ == "__main__":
    main(ResNet18, __doc__)
