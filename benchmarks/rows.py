"""What is measured, as data. A row gives the inputs, the expression that each library is asked to evaluate, and a
reference in float64 with the error that rounding allows.

In an expression the inputs stand under their names, `lib` is the library, and the names of `names` what they evaluate
to in that library.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

EPS = {"float32": 2.0**-24, "float64": 2.0**-53}


@dataclass(frozen=True)
class Row:
    group: str
    name: str
    inputs: Callable  # random generator -> {name: NumPy array}
    expressions: dict  # library -> expression
    reference: Callable  # {name: NumPy array} -> (float64 result, allowed error)
    names: dict = field(default_factory=dict)  # name -> expression, evaluated once for each library
    work: float = 0.0  # operations, or bytes read and written, of one call
    unit: str = ""  # "GFLOP/s" or "GB/s"


def everywhere(expression, libraries=("devtensor", "numpy", "torch")):
    return dict.fromkeys(libraries, expression)


def size(n):
    power = n.bit_length() - 1
    return f"2^{power}" if n == 1 << power and n >= 1024 else str(n)


def add(n, unit=""):
    def inputs(rng):
        return {"a": rng.standard_normal(n, "float32"), "b": rng.standard_normal(n, "float32")}

    def reference(x):
        exact = x["a"].astype("float64") + x["b"]
        return exact, EPS["float32"] * np.abs(exact)

    return Row("elementwise", f"a + b float32 n={size(n)}", inputs, everywhere("a + b"), reference, {}, 12.0 * n, unit)


def cast(n, source, target, unit=""):
    def inputs(rng):
        return {"a": rng.standard_normal(n).astype(source)}

    def reference(x):
        return x["a"].astype("float64"), EPS[target] * np.abs(x["a"].astype("float64"))

    expressions = {"devtensor": "a.to(target)", "numpy": "a.astype(target)", "torch": "a.to(target)"}
    nbytes = n * (np.dtype(source).itemsize + np.dtype(target).itemsize)
    name = f"{source} to {target} n={size(n)}"
    return Row("cast", name, inputs, expressions, reference, {"target": f"lib.{target}"}, float(nbytes), unit)


def same_device():
    def inputs(rng):
        return {"a": rng.standard_normal(1000, "float32")}

    expressions = {"devtensor": 'a.to("cpu")', "torch": 'a.to("cpu")'}
    return Row("cast", 'a.to("cpu"), already there', inputs, expressions, lambda x: (x["a"].astype("float64"), 0.0))


def matmul(n, dtype="float32", unit="GFLOP/s"):
    def inputs(rng):
        return {"a": rng.standard_normal((n, n), dtype), "b": rng.standard_normal((n, n), dtype)}

    def reference(x):
        a, b = x["a"].astype("longdouble" if n <= 64 else "float64"), x["b"].astype("float64")
        return (a @ b).astype("float64"), 2 * n * EPS[dtype] * (np.abs(a) @ np.abs(b)).astype("float64")

    return Row("matmul", f"a @ b {dtype} n={n}", inputs, everywhere("a @ b"), reference, {}, 2.0 * n**3, unit)


def conv2d(channels, height, filters, kernel, stride, layout):
    padding = kernel // 2

    def inputs(rng):
        x = rng.standard_normal((1, channels, height, height), "float32")
        w = (
            rng.standard_normal((filters, channels, kernel, kernel), "float32")
            / np.float32(channels * kernel**2) ** 0.5
        )
        if layout == "NHWC":
            x, w = x.transpose(0, 2, 3, 1).copy(), w.transpose(0, 2, 3, 1).copy()
        return {"x0": x, "w0": w}

    def reference(x):
        image, weight = x["x0"].astype("float64"), x["w0"].astype("float64")
        if layout == "NHWC":
            image, weight = image.transpose(0, 3, 1, 2), weight.transpose(0, 3, 1, 2)
        image = np.pad(image, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
        windows = np.lib.stride_tricks.sliding_window_view(image, (kernel, kernel), axis=(2, 3))[
            0, :, ::stride, ::stride
        ]
        columns = windows.transpose(1, 2, 0, 3, 4).reshape(-1, channels * kernel**2)
        flat = weight.reshape(filters, -1).T
        shape = (1, *windows.shape[1:3], filters)
        bound = 2 * flat.shape[0] * EPS["float32"] * (np.abs(columns) @ np.abs(flat))
        return [r.reshape(shape).transpose(0, 3, 1, 2) for r in (columns @ flat, bound)]

    view = "{}.permute(0, 3, 1, 2)" if layout == "NHWC" else "{}"
    expressions = {
        "devtensor": f"conv2d(x, w, None, {stride}, {padding})",
        "torch": f"conv2d(x, w, None, {stride}, {padding})",
    }
    names = {"x": view.format("x0"), "w": view.format("w0"), "conv2d": "lib.conv2d"}
    out = (height + 2 * padding - kernel) // stride + 1
    work = 2.0 * out * out * filters * channels * kernel * kernel
    name = f"conv2d {kernel}x{kernel} {channels} to {filters} at {height}, stride {stride}, {layout}"
    return Row("conv2d", name, inputs, expressions, reference, names, work, "GFLOP/s")


def attempt(function, *args):
    """From the mistake to the exception that was raised, with all it says; the first argument comes back."""
    try:
        function(*args)
    except RuntimeError:
        return args[0]
    raise AssertionError("this should have been refused")


def attempt_cold(function, *args):
    """The same at a place of the source that was not looked at before."""
    import linecache

    from devtensor._diagnosis import sources

    for cache in (sources._sites, sources._trees, sources._checked, linecache.cache):
        cache.clear()
    return attempt(function, *args)


def attempt_unexplained(function, *args):
    """The same without the explanation: what the compiled part takes."""
    from devtensor import _diagnosis

    _diagnosis._busy.now = True
    try:
        return attempt(function, *args)
    finally:
        _diagnosis._busy.now = False


def mistake(name, how, libraries):
    def inputs(rng):
        return {"x": rng.standard_normal((2, 3)), "w": rng.standard_normal((4, 3), "float32")}

    names = {
        "linear": "lib.nn.functional.linear",
        "attempt": f"__import__('benchmarks.rows', fromlist=['rows']).{how}",
    }
    expressions = everywhere("attempt(linear, x, w)", libraries)
    return Row("errors", name, inputs, expressions, lambda x: (x["x"], 0.0), names)


# Channels, height, filters, kernel, stride: one of each kind in ResNet-50.
RESNET50 = [
    (3, 224, 64, 7, 2),
    (64, 56, 64, 1, 1),
    (64, 56, 64, 3, 1),
    (64, 56, 256, 1, 1),
    (128, 56, 128, 3, 2),
    (256, 14, 1024, 1, 1),
    (256, 14, 256, 3, 1),
    (512, 7, 512, 3, 1),
    (1024, 14, 2048, 1, 2),
]

ROWS = [
    add(1),
    add(1000),
    cast(1, "float32", "float64"),
    same_device(),
    matmul(1, unit=""),
    matmul(32),
    cast(1 << 20, "float64", "float32", "GB/s"),
    cast(1 << 24, "float64", "float32", "GB/s"),
    add(1 << 24, "GB/s"),
    matmul(256),
    matmul(512),
    matmul(1024),
    matmul(512, "float64"),
    mistake("float64 meets float32: raised and explained", "attempt", ("devtensor", "torch")),
    mistake("float64 meets float32: explained at a new place", "attempt_cold", ("devtensor",)),
    mistake("float64 meets float32: raised only", "attempt_unexplained", ("devtensor",)),
    *(conv2d(*layer, layout) for layer in RESNET50 for layout in ("NCHW", "NHWC")),
]
IMPORTS = ("devtensor", "numpy", "torch")
