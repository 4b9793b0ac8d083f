"""Products by names: einsum beside the product that it is."""

import numpy as np

from .rows import Row, everywhere


def scores(rng):
    """Queries and keys of 8 sequences, 128 places and 8 heads, as a layer has them before they are permuted."""
    return {name: rng.standard_normal((8, 128, 8, 64), "float32") for name in ("q", "k")}


def reference(x):
    found = np.einsum("bqhd,bkhd->bhqk", *(x[name].astype("float64") for name in ("q", "k")), optimize=True)
    return found, 1e-4


EINSUM = "lib.einsum('bqhd,bkhd->bhqk', q, k)"
MATMUL = "lib.matmul(q.transpose(1, 2), k.permute(0, 2, 3, 1))"
BOTH = ("devtensor", "torch")
ROWS = [
    Row("products", "einsum bqhd,bkhd->bhqk", scores, everywhere(EINSUM, BOTH), reference, {"lib": "lib"},
        target={"torch": (1.0, 1.5)}),
    Row("products", "the same by matmul", scores, everywhere(MATMUL, BOTH), reference, {"lib": "lib"},
        target={"torch": (1.0, 1.5)}),
]  # fmt: skip
