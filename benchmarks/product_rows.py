"""Products by names: einsum beside the product that it is; a few rows by a wide matrix."""

import numpy as np

from .rows import Row, everywhere


def scores(rng):
    """Queries and keys of 8 sequences, 128 places and 8 heads, as a layer has them before they are permuted."""
    return {name: rng.standard_normal((8, 128, 8, 64), "float32") for name in ("q", "k")}


def reference(x):
    found = np.einsum("bqhd,bkhd->bhqk", *(x[name].astype("float64") for name in ("q", "k")), optimize=True)
    return found, 1e-4


def few(rows, depth, columns):
    """A batch by a matrix as it lies, as the gradient of a layer's input is."""

    def inputs(rng):
        return {
            "a": rng.standard_normal((rows, depth), "float32"),
            "b": rng.standard_normal((depth, columns), "float32"),
        }

    def product(x):
        a, b = x["a"].astype("float64"), x["b"].astype("float64")
        return a @ b, 2 * depth * np.finfo("float32").eps * (np.abs(a) @ np.abs(b))

    name = f"a @ b, {rows} rows by {depth} x {columns}"
    return Row("products", name, inputs, everywhere("a @ b"), product, work=2 * rows * depth * columns, unit="GFLOP/s")


def whole(dtype):
    """Integers, of which no library of linear algebra has products."""

    def inputs(rng):
        return {name: rng.integers(-100, 100, (256, 256), dtype) for name in "ab"}

    def product(x):
        return x["a"] @ x["b"], 0

    name = f"a @ b, 256 x 256 of {dtype}"
    goal = {"torch": (1.0, 1.5)}
    return Row("products", name, inputs, everywhere("a @ b"), product, work=2 * 256**3, unit="GFLOP/s", target=goal)


EINSUM = "lib.einsum('bqhd,bkhd->bhqk', q, k)"
MATMUL = "lib.matmul(q.transpose(1, 2), k.permute(0, 2, 3, 1))"
BOTH = ("devtensor", "torch")
ROWS = [
    Row("products", "einsum bqhd,bkhd->bhqk", scores, everywhere(EINSUM, BOTH), reference, {"lib": "lib"},
        target={"torch": (1.0, 1.5)}),
    Row("products", "the same by matmul", scores, everywhere(MATMUL, BOTH), reference, {"lib": "lib"},
        target={"torch": (1.0, 1.5)}),
    *(few(rows, *matrix) for matrix in ((1024, 1024), (4096, 4096), (768, 3072)) for rows in (8, 32, 48)),
    *(whole(dtype) for dtype in ("int8", "int32", "int64")),
]  # fmt: skip
