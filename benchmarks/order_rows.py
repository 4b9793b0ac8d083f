"""Elements in order and running sums: of one long row, of many rows, of columns."""

import numpy as np

from .rows import Row, everywhere, size

BOTH = ("devtensor", "torch")


def row(name, expression, shape, of):
    """of: the result in float64, from the input."""

    def inputs(rng):
        return {"x": rng.standard_normal(shape, "float32")}

    def reference(x):
        exact = of(x["x"].astype("float64"))
        return exact, 1e-6 * (1 + np.abs(exact)) if "cumsum" in expression else np.zeros_like(exact)

    label = " x ".join(size(n) for n in shape)
    return Row("order", f"{name} float32 {label}", inputs, everywhere(expression, BOTH), reference)


def largest(k):
    return lambda x: -np.sort(-x, axis=-1)[..., :k]


LONG, SHORT, WIDE = (1 << 20,), (4096, 256), (256, 4096)

ROWS = [
    *(row("sort", "x.sort(stable=True)[0]", shape, lambda x: np.sort(x, -1)) for shape in (LONG, SHORT, WIDE)),
    *(row("topk 10", "x.topk(10)[0]", shape, largest(10)) for shape in (LONG, SHORT, WIDE)),
    *(row("cumsum", "x.cumsum(-1)", shape, lambda x: np.cumsum(x, -1)) for shape in (LONG, SHORT, WIDE)),
    row("cumsum of columns", "x.cumsum(0)", SHORT, lambda x: np.cumsum(x, 0)),
    row("median", "x.median(-1)[0]", SHORT, lambda x: np.sort(x, -1)[:, 127]),
    row("unique", "x.unique()", LONG, np.unique),
]
