"""What is measured, as data. A row gives the inputs, the expression that each library is asked to evaluate, and a
reference in float64 with the error that rounding allows.

In an expression the inputs stand under their names, `lib` is the library, and the names of `names` what they evaluate
to in that library.
"""

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field, replace

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
    target: dict = field(default_factory=dict)  # peer -> (pass, aim): the peer's time over ours
    ladder: str = ""  # the row is a point of this ladder
    at: int = 0  # where on it
    floor: str = ""  # what the interpreter's own types need for such a call, an expression of FLOOR_NAMES


# An addition that makes a new array of one number, and a method of one argument that makes a new object.
FLOOR_NAMES = {"x": array("f", [1]), "y": array("f", [2]), "view": memoryview(bytes(8)), "kind": "b"}


def everywhere(expression, libraries=("devtensor", "numpy", "torch")):
    return dict.fromkeys(libraries, expression)


def size(n):
    power = n.bit_length() - 1
    return f"2^{power}" if n == 1 << power and n >= 1024 else str(n)


def add(n, unit="", target=None, ladder=""):
    def inputs(rng):
        return {"a": rng.standard_normal(n, "float32"), "b": rng.standard_normal(n, "float32")}

    def reference(x):
        exact = x["a"].astype("float64") + x["b"]
        return exact, EPS["float32"] * np.abs(exact)

    name = f"a + b float32 n={size(n)}"
    expressions, floor = everywhere("a + b"), "x + y" if n == 1 else ""
    return Row("elementwise", name, inputs, expressions, reference, {}, 12.0 * n, unit, target or {}, ladder, n, floor)


def cast(n, source, to, unit="", target=None, ladder=""):
    def inputs(rng):
        return {"a": (200 * rng.random(n)).astype(source)}  # in the range of every dtype

    def reference(x):
        return x["a"].astype(to).astype("float64"), 0.0

    expressions = {"devtensor": "a.to(dtype)", "numpy": "a.astype(dtype)", "torch": "a.to(dtype)"}
    nbytes = float(n * (np.dtype(source).itemsize + np.dtype(to).itemsize))
    name, names = f"{source} to {to} n={size(n)}", {"dtype": f"lib.{to}"}
    floor = "view.cast(kind)" if n == 1 else ""
    return Row("cast", name, inputs, expressions, reference, names, nbytes, unit, target or {}, ladder, n, floor)


def same_device():
    def inputs(rng):
        return {"a": rng.standard_normal(1000, "float32")}

    expressions = {"devtensor": 'a.to("cpu")', "torch": 'a.to("cpu")'}
    name, target = 'a.to("cpu"), already there', {"torch": (10, 25)}
    return Row("cast", name, inputs, expressions, lambda x: (x["a"].astype("float64"), 0.0), target=target)


def matmul(n, dtype="float32", unit="GFLOP/s", target=None, ladder=""):
    def inputs(rng):
        return {"a": rng.standard_normal((n, n), dtype), "b": rng.standard_normal((n, n), dtype)}

    def reference(x):
        a, b = x["a"].astype("longdouble" if n <= 64 else "float64"), x["b"].astype("float64")
        return (a @ b).astype("float64"), 2 * n * EPS[dtype] * (np.abs(a) @ np.abs(b)).astype("float64")

    name, work = f"a @ b {dtype} n={n}", 2.0 * n**3
    return Row("matmul", name, inputs, everywhere("a @ b"), reference, {}, work, unit, target or {}, ladder, n)


def dot(n, target):
    def inputs(rng):
        return {"a": rng.standard_normal(n, "float32"), "b": rng.standard_normal(n, "float32")}

    def reference(x):
        a, b = x["a"].astype("float64"), x["b"].astype("float64")
        return a @ b, 2 * n * EPS["float32"] * (np.abs(a) @ np.abs(b))

    return Row("matmul", f"a @ b float32, vectors of {n}", inputs, everywhere("a @ b"), reference, target=target)


def linear(batch, features):
    """A layer of a network that answers one or a few at a time: it reads its weight and little else."""

    def inputs(rng):
        weight = rng.standard_normal((features, features), "float32") / np.float32(features) ** 0.5
        return {"x": rng.standard_normal((batch, features), "float32"), "w": weight}

    def reference(x):
        a, b = x["x"].astype("float64"), x["w"].astype("float64")
        return a @ b.T, 2 * features * EPS["float32"] * (np.abs(a) @ np.abs(b.T))

    expressions = {"devtensor": "linear(x, w)", "numpy": "x @ w.T", "torch": "linear(x, w)"}
    names = {"linear": "lib.nn.functional.linear if hasattr(lib, 'nn') else None"}
    name, nbytes = f"linear m={batch} of {features}x{features}", 4.0 * features * features
    return Row("matmul", name, inputs, expressions, reference, names, nbytes, "GB/s")


def after_another_pool(n):
    """Straight after NumPy's product, whose threads still spin."""

    def inputs(rng):
        return {"a": rng.standard_normal((n, n), "float32"), "b": rng.standard_normal((n, n), "float32")}

    def reference(x):
        a, b = x["a"].astype("float64"), x["b"].astype("float64")
        return a @ b, 2 * n * EPS["float32"] * (np.abs(a) @ np.abs(b))

    names = {"other": "__import__('numpy').ones((512, 512), 'float32')", "after": "lambda _, result: result"}
    expressions = everywhere("after(other @ other, a @ b)", ("devtensor", "torch"))
    name = f"NumPy's product of 512, then a @ b float32 n={n}"
    return Row("matmul", name, inputs, expressions, reference, names, target={"torch": (2, 5)})


def windows(image, kernel, stride, padding):
    """(1, C, H, W) padded: (C, P, Q, R, S)."""
    image = np.pad(image, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    seen = np.lib.stride_tricks.sliding_window_view(image, (kernel, kernel), axis=(2, 3))
    return seen[0, :, ::stride, ::stride]


def dense(image, weight, stride, padding):
    filters, _, kernel, _ = weight.shape
    seen = windows(image, kernel, stride, padding)
    columns, flat = seen.transpose(1, 2, 0, 3, 4).reshape(-1, weight[0].size), weight.reshape(filters, -1).T
    bound = 2 * len(flat) * EPS["float32"] * (np.abs(columns) @ np.abs(flat))
    return [r.reshape(1, *seen.shape[1:3], filters).transpose(0, 3, 1, 2) for r in (columns @ flat, bound)]


def depthwise(image, weight, stride, padding):
    seen, one = windows(image, weight.shape[2], stride, padding), weight[:, 0]
    bound = 2 * one[0].size * EPS["float32"] * np.einsum("cpqrs,crs->cpq", np.abs(seen), np.abs(one))
    return [np.einsum("cpqrs,crs->cpq", seen, one)[None], bound[None]]


def conv2d(channels, height, filters, kernel, stride, layout, groups=1):
    padding, inside = kernel // 2, channels // groups

    def inputs(rng):
        x = rng.standard_normal((1, channels, height, height), "float32")
        scale = np.float32(inside * kernel**2) ** 0.5
        w = rng.standard_normal((filters, inside, kernel, kernel), "float32") / scale
        if layout == "NHWC":
            x, w = x.transpose(0, 2, 3, 1).copy(), w.transpose(0, 2, 3, 1).copy()
        return {"x0": x, "w0": w}

    def reference(x):
        image, weight = x["x0"].astype("float64"), x["w0"].astype("float64")
        if layout == "NHWC":
            image, weight = image.transpose(0, 3, 1, 2), weight.transpose(0, 3, 1, 2)
        return (dense if groups == 1 else depthwise)(image, weight, stride, padding)

    view = "{}.permute(0, 3, 1, 2)" if layout == "NHWC" else "{}"
    tail = "" if groups == 1 else f", 1, {groups}"
    expressions = everywhere(f"conv2d(x, w, None, {stride}, {padding}{tail})", ("devtensor", "torch"))
    names = {"x": view.format("x0"), "w": view.format("w0"), "conv2d": "lib.conv2d"}
    out = (height + 2 * padding - kernel) // stride + 1
    work = 2.0 * out * out * filters * inside * kernel * kernel
    kind = "conv2d" if groups == 1 else "depthwise"
    between = f"{channels} to {filters}" if groups == 1 else f"{channels}"
    name = f"{kind} {kernel}x{kernel} {between} at {height}, stride {stride}, {layout}"
    return Row(f"{kind} {layout}", name, inputs, expressions, reference, names, work, "GFLOP/s")


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


# Channels, height, filters, kernel, stride: the layers of ResNet-50 that differ.
RESNET50 = [
    (3, 224, 64, 7, 2),
    (64, 56, 64, 1, 1),
    (64, 56, 64, 3, 1),
    (64, 56, 256, 1, 1),
    (256, 56, 64, 1, 1),
    (256, 56, 128, 1, 1),
    (128, 56, 128, 3, 2),
    (128, 28, 512, 1, 1),
    (256, 56, 512, 1, 2),
    (512, 28, 128, 1, 1),
    (128, 28, 128, 3, 1),
    (512, 28, 256, 1, 1),
    (256, 28, 256, 3, 2),
    (256, 14, 1024, 1, 1),
    (512, 28, 1024, 1, 2),
    (1024, 14, 256, 1, 1),
    (256, 14, 256, 3, 1),
    (1024, 14, 512, 1, 1),
    (512, 14, 512, 3, 2),
    (512, 7, 2048, 1, 1),
    (1024, 14, 2048, 1, 2),
    (2048, 7, 512, 1, 1),
    (512, 7, 512, 3, 1),
]
# Channels, height, stride: the 3x3 depthwise layers of MobileNetV2.
MOBILENETV2 = [
    (32, 112, 1),
    (96, 112, 2),
    (144, 56, 1),
    (144, 56, 2),
    (192, 28, 1),
    (192, 28, 2),
    (384, 14, 1),
    (576, 14, 1),
    (576, 14, 2),
    (960, 7, 1),
]
# Of the geometric mean of a group.
GROUP_TARGETS = {
    "conv2d NCHW": {"torch": (1.3, 1.8)},
    "conv2d NHWC": {"torch": (1.05, 1.2)},
    "depthwise NCHW": {"torch": (2, 4)},
    "depthwise NHWC": {"torch": (2, 4)},
    "training, input of conv2d NCHW": {"torch": (1.1, 1.5)},
    "training, input of conv2d NHWC": {"torch": (1.0, 1.2)},
    "training, weight of conv2d NCHW": {"torch": (1.0, 1.3)},
    "training, weight of conv2d NHWC": {"torch": (1.0, 1.3)},
    **{
        f"training, {wanted} of depthwise {layout}": {"torch": (1.5, 3)}
        for wanted in ("input", "weight")
        for layout in ("NCHW", "NHWC")
    },
}
CASTS = (("float32", "float64"), ("float64", "float32"))
ONE = {"numpy": (4, 10), "torch": (10, 25)}
THOUSAND = {"numpy": (3, 4.5), "torch": (10, 25)}
BIG_CAST = {"numpy": (1.8, 2.2), "torch": (2.5, 6)}
BIG_ADD = {"numpy": (1.7, 2.2), "torch": (1.7, 4)}
SMALL_PRODUCT = {"numpy": (2, 4), "torch": (3, 6)}
BIG_PRODUCT = {"numpy": (0.97, 1.05), "torch": (1.0, 1.1)}

ROWS = [
    add(1, target=ONE),
    add(1000, target=THOUSAND),
    *(cast(1, *dtypes, target=ONE) for dtypes in CASTS),
    *(cast(1000, *dtypes, target=THOUSAND) for dtypes in CASTS),
    same_device(),
    matmul(1, unit="", target=ONE),
    dot(1000, THOUSAND),
    *(matmul(n, target=SMALL_PRODUCT) for n in (8, 16, 24, 32)),
    cast(1 << 20, "float64", "float32", "GB/s"),
    *(cast(1 << n, "float64", "float32", "GB/s", BIG_CAST) for n in (24, 26)),
    *(add(1 << n, "GB/s", BIG_ADD) for n in (24, 26)),
    *(matmul(n, target=None if n < 512 else BIG_PRODUCT) for n in (128, 256, 512, 1024, 2048)),
    *(matmul(n, "float64", target=None if n < 512 else BIG_PRODUCT) for n in (256, 512, 1024)),
    after_another_pool(512),
    *(linear(batch, 4096) for batch in (1, 4)),
    mistake("float64 meets float32: raised and explained", "attempt", ("devtensor", "torch")),
    mistake("float64 meets float32: explained at a new place", "attempt_cold", ("devtensor",)),
    mistake("float64 meets float32: raised only", "attempt_unexplained", ("devtensor",)),
    *(conv2d(*layer, layout) for layout in ("NCHW", "NHWC") for layer in RESNET50),
    *(conv2d(c, h, c, 3, stride, layout, c) for layout in ("NCHW", "NHWC") for c, h, stride in MOBILENETV2),
]


def on_simulated(row):
    """The same row on a simulated GPU beside the cpu: what the bookkeeping of launches and scalar kernels cost."""
    expression = row.expressions["devtensor"]
    names = {**row.names, "wait": "lambda result: lib.cuda.synchronize() or result"}
    expressions = {"devtensor": expression, "simulated": f"wait({expression})"}
    return replace(row, group="simulated GPU", expressions=expressions, names=names, target={})


SIMULATED = [
    on_simulated(row)
    for row in (
        add(1),
        add(1000),
        add(1 << 20),
        cast(1 << 20, "float64", "float32"),
        matmul(32),
        matmul(256),
        matmul(1024),
        conv2d(64, 56, 64, 3, 1, "NCHW"),
        conv2d(64, 56, 256, 1, 1, "NHWC"),
        conv2d(144, 56, 144, 3, 1, "NCHW", 144),
    )
]
LADDERS = [
    *(add(1 << n, ladder="a + b, float32") for n in range(0, 27, 2)),
    *(cast(1 << n, "float64", "float32", ladder="float64 to float32") for n in range(0, 27, 2)),
    *(
        matmul(n, ladder="a @ b, float32")
        for n in (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
    ),
]
IMPORTS = ("devtensor", "numpy", "torch")
