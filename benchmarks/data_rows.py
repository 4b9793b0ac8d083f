"""Epochs of a DataLoader: the digits, and images that each sample makes of bytes, here and in two worker processes."""

import importlib

import numpy as np

from .rows import Row, everywhere

BOTH = ("devtensor", "torch")


class Images:
    """Sample i: its bytes as float32 between 0 and 1, and i."""

    def __init__(self, library, pixels):
        self.library, self.pixels = library, pixels

    def __len__(self):
        return len(self.pixels)

    def __getitem__(self, i):
        lib = importlib.import_module(self.library)
        return lib.from_numpy(self.pixels[i]).to(lib.float32) / 255, i


def digits(lib, workers):
    """As many samples as the UCI digits have, of their shape."""
    utils = importlib.import_module(f"{lib.__name__}.utils.data")
    count = 1797
    data = utils.TensorDataset(lib.zeros(count, 1, 8, 8), lib.arange(count))
    return utils.DataLoader(data, batch_size=64, num_workers=workers, persistent_workers=workers > 0)


def images(lib, workers, count, size):
    utils = importlib.import_module(f"{lib.__name__}.utils.data")
    pixels = np.random.default_rng(0).integers(0, 256, (count, 3, size, size), dtype=np.uint8)
    return utils.DataLoader(
        Images(lib.__name__, pixels), batch_size=32, num_workers=workers, persistent_workers=workers > 0
    )


def epoch(loader):
    """The labels of the last batch."""
    last = None
    for _, labels in loader:
        last = labels
    return last


def row(name, workers, make, count, batch, sample_bytes):
    here = "__import__('benchmarks.data_rows', fromlist=['data_rows'])"
    names = {"epoch": f"{here}.epoch", "loader": f"{here}.{make}"}
    last = np.arange(count - (count % batch or batch), count, dtype="float64")
    title = f"{name}, {workers} workers" if workers else f"{name}, no workers"
    expressions = everywhere("epoch(loader)", BOTH)
    nbytes = float(count * (sample_bytes + 8))
    return Row("data", title, lambda rng: {}, expressions, lambda x: (last, 0.0), names, nbytes, "GB/s")


ROWS = [
    made
    for workers in (0, 2)
    for made in (
        row("digits, 1797 of 8 x 8 by 64", workers, f"digits(lib, {workers})", 1797, 64, 4 * 64),
        row("images, 512 of 3 x 32 x 32 by 32", workers, f"images(lib, {workers}, 512, 32)", 512, 32, 4 * 3 * 32**2),
        row("images, 64 of 3 x 224 x 224 by 32", workers, f"images(lib, {workers}, 64, 224)", 64, 32, 4 * 3 * 224**2),
    )
]
