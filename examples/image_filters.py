"""Blur, sharpen, emboss, edges, unsharp mask: filters as convolutions, on a photograph, into a picture to look at.

    python examples/image_filters.py                     # the photograph that comes with matplotlib
    python examples/image_filters.py holiday.jpg --device cpu --out filters.png

What there is to learn: a photograph comes as bytes (H, W, 3). It crosses the bus as bytes and becomes float32 on the
device, which is a quarter of the traffic; conv2d wants (N, 3, H, W), and permute() gives it a view, with no copy.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import devtensor as dt

BINOMIAL = dt.tensor([1.0, 4.0, 6.0, 4.0, 1.0]) / 16
KERNELS = {
    "blur": dt.outer(BINOMIAL, BINOMIAL),
    "sharpen": dt.tensor([[0.0, -1.0, 0.0], [-1.0, 5.0, -1.0], [0.0, -1.0, 0.0]]),
    "emboss": dt.tensor([[-2.0, -1.0, 0.0], [-1.0, 1.0, 1.0], [0.0, 1.0, 2.0]]),
}
SOBEL = dt.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]]) / 4
LUMINANCE = dt.tensor([0.299, 0.587, 0.114])


def on_device(photo: np.ndarray, device: dt.device | str) -> dt.Tensor:
    """Bytes (H, W, 3) of the host as float32 (1, 3, H, W) between 0 and 1 on the device."""
    return dt.from_numpy(photo).to(device).permute(2, 0, 1).unsqueeze(0).float() / 255


def convolved(images: dt.Tensor, kernel: dt.Tensor) -> dt.Tensor:
    """Each channel by itself; beyond the edge the picture goes on as at the edge."""
    channels, reach = images.shape[1], kernel.shape[0] // 2
    weight = kernel.to(images).expand(channels, 1, *kernel.shape)
    return dt.conv2d(dt.pad(images, [reach] * 4, "replicate"), weight, groups=channels)


def filtered(images: dt.Tensor) -> dict[str, dt.Tensor]:
    """Every filter's result, on the device of the images."""
    results = {"original": images} | {name: convolved(images, kernel) for name, kernel in KERNELS.items()}
    results["unsharp mask"] = images + 1.5 * (images - results["blur"])
    grey = dt.conv2d(images, LUMINANCE.to(images).reshape(1, 3, 1, 1))
    across, down = convolved(grey, SOBEL), convolved(grey, SOBEL.T)
    results["edges"] = 1 - (across.square() + down.square()).sqrt().expand(images.shape)
    return {name: result.clamp(0, 1) for name, result in results.items()}


def the_mistake(photo: np.ndarray, device: dt.device | str) -> None:
    """Everybody's first try, and what the library says."""
    picture = dt.from_numpy(photo).to(device).unsqueeze(0).float()
    kernel = dt.ones(3, 1, 3, 3, device=device)
    try:
        dt.conv2d(picture, kernel, groups=3)
    except dt.ShapeMismatchError as error:
        print(f"{type(error).__name__}: {error}", *error.__notes__, sep="\n")


def draw(results: dict[str, dt.Tensor], file: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 9), layout="constrained")
    for panel, (name, result) in zip(figure.subplots(2, 3).flat, results.items(), strict=True):
        panel.imshow(result[0].permute(1, 2, 0).cpu().numpy())
        panel.set_title(name)
        panel.axis("off")
    figure.savefig(file)


def main(arguments: Sequence[str] | None = None) -> None:
    from matplotlib import cbook, image

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photo", nargs="?", help="a file; otherwise Grace Hopper, who found the first bug")
    parser.add_argument("--device", default="auto", help="cpu, cuda, or auto: the GPU where there is one")
    parser.add_argument("--out", default="filters.png")
    options = parser.parse_args(arguments)
    auto = "cuda" if dt.cuda.is_available() else "cpu"
    device = dt.device(auto if options.device == "auto" else options.device)
    photo = image.imread(options.photo or cbook.get_sample_data("grace_hopper.jpg", asfileobj=False))

    print("The photograph as it is, (H, W, 3), into conv2d:\n")
    the_mistake(photo, device)

    with dt.record_transfers() as log:
        images = on_device(photo, device)
    print(f"\nNow right: {images.shape} with strides {images.stride()}: channels last, as the file had them.")
    print(log)
    results = filtered(images)
    print(f"\n{'filter':<14}{'mean':>8}{'least':>8}{'most':>8}")
    for name, result in results.items():
        print(f"{name:<14}{result.mean().item():8.4f}{result.min().item():8.4f}{result.max().item():8.4f}")
    draw(results, options.out)
    print(f"\n{options.out} written")


if __name__ == "__main__":
    main()
