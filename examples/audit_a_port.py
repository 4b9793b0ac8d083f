"""A NumPy program comes to the GPU: its first port moves data all the time, the log says where, the second does not.

    python examples/audit_a_port.py                      # on the GPU where there is one
    python -m devtensor run --simulate 1 examples/audit_a_port.py --colours 6 --out palette.png

The program is k-means: it finds the colours by which a photograph is best painted. `first_port` has what such ports
have: float64 because NumPy had it, one step that "only NumPy can do" in the middle of the loop, and .item() to
see whether it is done. On a GPU each of those waits for the device, and nothing says so but the clock.
record_transfers() says it, by line. `second_port` moves the bytes of the photograph, and then
forbid_transfers() holds it to that: a slip raises an error there, on a laptop with a simulated GPU too.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np

import devtensor as dt
from devtensor.nn.functional import one_hot


def with_numpy(pixels: np.ndarray, colours: int, steps: int) -> np.ndarray:
    """The program as it was: bytes (N, 3) to the colours (K, 3) in 0..1, in float64."""
    x = pixels / 255
    centres = x[:: len(x) // colours][:colours]
    for _ in range(steps):
        nearest = ((centres**2).sum(1) - 2 * x @ centres.T).argmin(1)
        sums = np.stack([np.bincount(nearest, x[:, c], colours) for c in range(3)], 1)
        centres = sums / np.maximum(np.bincount(nearest, minlength=colours), 1)[:, None]
    return centres


def first_port(pixels: np.ndarray, colours: int, steps: int, device: dt.device) -> dt.Tensor:
    """Line by line, and what has no namesake stays with NumPy."""
    host = pixels / 255
    x = dt.from_numpy(host).to(device)
    centres = x[:: len(x) // colours][:colours]
    for _ in range(steps):
        nearest = ((centres**2).sum(1) - 2 * x @ centres.T).argmin(1).cpu().numpy()
        sums = np.stack([np.bincount(nearest, host[:, c], colours) for c in range(3)], 1)
        means = sums / np.maximum(np.bincount(nearest, minlength=colours), 1)[:, None]
        moved = dt.from_numpy(means).to(device) - centres
        centres = centres + moved
        if moved.abs().max().item() == 0:
            break
    return centres


def second_port(pixels: np.ndarray, colours: int, steps: int, device: dt.device) -> dt.Tensor:
    """Bytes cross the bus and become float32 there; members are summed by a matrix product; nobody looks on the way."""
    x = dt.from_numpy(pixels).to(device).float() / 255
    with dt.forbid_transfers():
        centres = x[:: len(x) // colours][:colours]
        for _ in range(steps):
            nearest = ((centres**2).sum(1) - 2 * x @ centres.T).argmin(1)
            members = one_hot(nearest, colours).float()
            centres = (members.T @ x) / members.sum(0).clamp(min=1).unsqueeze(1)
    return centres


def draw(photo: np.ndarray, centres: np.ndarray, file: str) -> None:
    from matplotlib.figure import Figure

    nearest = ((photo[..., None, :] / 255 - centres) ** 2).sum(-1).argmin(-1)
    figure = Figure(figsize=(9, 5.5), layout="constrained")
    for panel, picture in zip(figure.subplots(1, 2), (photo, centres[nearest]), strict=True):
        panel.imshow(picture)
        panel.axis("off")
    figure.suptitle(f"{len(np.unique(photo.reshape(-1, 3), axis=0))} colours, and {len(centres)}")
    figure.savefig(file)


def main(arguments: Sequence[str] | None = None) -> None:
    from matplotlib import cbook, image

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photo", nargs="?", help="a file; otherwise the photograph that comes with matplotlib")
    parser.add_argument("--device", default="auto", help="cpu, cuda, or auto: the GPU where there is one")
    parser.add_argument("--colours", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--out", default="palette.png")
    options = parser.parse_args(arguments)
    auto = "cuda" if dt.cuda.is_available() else "cpu"
    device = dt.device(auto if options.device == "auto" else options.device)
    photo = image.imread(options.photo or cbook.get_sample_data("grace_hopper.jpg", asfileobj=False))[::2, ::2]
    pixels = photo.reshape(-1, 3)

    place = f"{device} ({dt.cuda.get_device_name(device)})" if device.type == "cuda" else "the cpu"
    reference = with_numpy(pixels, options.colours, options.steps)
    for port in (first_port, second_port):
        with dt.record_transfers() as log:
            start = time.perf_counter()
            centres = port(pixels, options.colours, options.steps, device).cpu().numpy()
            seconds = time.perf_counter() - start
        print(f"{port.__name__} on {place}: {seconds:.3f} s, within {abs(centres - reference).max():.1e} of NumPy's")
        print(f"{log}\n")
    draw(photo, centres, options.out)
    print(f"{options.out} written")


if __name__ == "__main__":
    main()
