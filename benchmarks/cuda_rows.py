"""What is measured on a GPU, as data: the rows of `rows` with device arrays, and how each is timed.

Inputs are sixteenths between -1 and 1, which every dtype holds exactly; references are in float64, of a few rows or
images of the result where the whole would take long.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .rows import RESNET50 as CPU_RESNET50

# Of the result; sums run in float32 but for float64.
EPS = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "tf32": 2.0**-11, "float64": 2.0**-53}
HOST, DEVICE, WALL = "host", "device", "wall"  # time to submit a call; time on the device; both, to the end


@dataclass(frozen=True)
class CudaRow:
    group: str
    name: str
    timed: str
    inputs: Callable  # random generator -> {name: NumPy array}
    names: dict  # name -> expression, evaluated once for each library; `lib`, `cuda` and the inputs stand in it
    expressions: dict  # library -> expression, or several of which the first that works is taken
    reference: Callable  # {name: NumPy array} -> (float64 result, allowed error)
    part: Callable = lambda result: result  # the part of a result that the reference gives
    every: int = 1  # of a vector: only every so many elements come to the host and are checked
    precision: str = "highest"  # of float32 products; "tf32" where that is allowed
    work: float = 0.0
    unit: str = ""
    hooks: dict = field(default_factory=dict)  # library -> hook of cuda.HOOKS that its turns need


def sixteenths(rng, *shape):
    return rng.integers(-16, 17, shape).astype("float32") / np.float32(16)


def on_device(names, dtype):
    return {f"{name}": f"cuda({name}0, lib.{dtype})" for name in names}


def checked(n):
    """A step through a vector of n that leaves some 100,000 elements; odd, so that it meets every lane."""
    return n // 100_000 | 1


def everywhere(expression, dtype="float32"):
    return dict.fromkeys(("devtensor", "torch") if dtype == "bfloat16" else ("devtensor", "torch", "cupy"), expression)


def size(n):
    power = n.bit_length() - 1
    return f"2^{power}" if n == 1 << power and n >= 1024 else str(n)


# ---------------------------------------------------------------- elementwise, casts, copies on the device


def add(n, timed, dtype="float32"):
    def inputs(rng):
        return {"a0": sixteenths(rng, n), "b0": sixteenths(rng, n)}

    def reference(x):
        exact = x["a0"][:: checked(n)].astype("float64") + x["b0"][:: checked(n)]
        return exact, EPS[dtype] * np.abs(exact)

    nbytes = 3.0 * n * np.dtype("float16" if dtype == "bfloat16" else dtype).itemsize
    unit = "GB/s" if timed == DEVICE else ""
    group = "elementwise" if timed == DEVICE else "host time of a small op"
    names, expressions = on_device("ab", dtype), everywhere("a + b", dtype)
    name = f"a + b {dtype} n={size(n)}"
    return CudaRow(group, name, timed, inputs, names, expressions, reference, every=checked(n), work=nbytes, unit=unit)


def cast(n, source, target, timed):
    def reference(x):
        exact = x["a0"][:: checked(n)].astype("float64")
        return exact, EPS[target] * np.abs(exact)

    sizes = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}
    expressions = {"devtensor": "a.to(target)", "torch": "a.to(target)", "cupy": "a.astype(target)"}
    if "bfloat16" in (source, target):
        del expressions["cupy"]
    return CudaRow(
        "cast" if timed == DEVICE else "host time of a small op",
        f"{source} to {target} n={size(n)}",
        timed,
        lambda rng: {"a0": sixteenths(rng, n)},
        on_device("a", source) | {"target": f"lib.{target}"},
        expressions,
        reference,
        every=checked(n),
        work=float(n * (sizes[source] + sizes[target])),
        unit="GB/s" if timed == DEVICE else "",
    )


def clone(n):
    return CudaRow(
        "elementwise",
        f"copy of float32 n={size(n)}: the bandwidth to be had",
        DEVICE,
        lambda rng: {"a0": sixteenths(rng, n)},
        on_device("a", "float32"),
        {"devtensor": "a.clone()", "torch": "a.clone()", "cupy": "a.copy()"},
        lambda x: (x["a0"][:: checked(n)].astype("float64"), 0.0),
        every=checked(n),
        work=8.0 * n,
        unit="GB/s",
    )


def total(n):
    def reference(x):
        exact = x["a0"].astype("float64")
        return exact.sum(), n * EPS["float32"] * np.abs(exact).sum()

    names, expressions = on_device("a", "float32"), everywhere("a.sum()")
    inputs = lambda rng: {"a0": sixteenths(rng, n)}  # noqa: E731
    name = f"sum of float32 n={size(n)}"
    return CudaRow("reduction", name, DEVICE, inputs, names, expressions, reference, work=4.0 * n, unit="GB/s")


# ---------------------------------------------------------------- products


def some(n, count=32):
    """Indices of `count` of n rows."""
    return np.unique(np.linspace(0, n - 1, min(n, count)).astype(int))


def product_error(exact, absolute, depth, dtype):
    """Rounding of the inputs (tf32), of the sums and of the result."""
    inner = "float64" if dtype == "float64" else "float32"
    inputs = 2 * EPS["tf32"] if dtype == "tf32" else 0.0
    result = EPS["float32" if dtype == "tf32" else dtype]
    return (2 * depth * EPS[inner] + inputs) * absolute + 2 * result * np.abs(exact)


def matmul(n, dtype, timed):
    rows, stored = some(n), "float32" if dtype == "tf32" else dtype

    def inputs(rng):
        return {"a0": sixteenths(rng, n, n), "b0": sixteenths(rng, n, n)}

    def reference(x):
        a, b = x["a0"][rows].astype("float64"), x["b0"].astype("float64")
        exact = a @ b
        return exact, product_error(exact, np.abs(a) @ np.abs(b), n, dtype)

    small = timed != DEVICE
    return CudaRow(
        "matmul",
        f"a @ b {dtype} n={n}{', per call' if small else ''}",
        timed,
        inputs,
        on_device("ab", stored),
        everywhere("a @ b", "bfloat16" if dtype in ("bfloat16", "tf32") else dtype),
        reference,
        part=lambda result: result[rows],
        precision="tf32" if dtype == "tf32" else "highest",
        work=2.0 * n**3,
        unit="" if small else "TFLOP/s",
    )


def linear(batch, features, dtype, timed):
    rows = some(batch)

    def inputs(rng):
        shapes = {"x0": (batch, features), "w0": (features, features), "b0": (features,)}
        return {name: sixteenths(rng, *shape) for name, shape in shapes.items()}

    def reference(x):
        a, w, b = x["x0"][rows].astype("float64"), x["w0"].astype("float64"), x["b0"].astype("float64")
        exact = a @ w.T + b
        return np.maximum(exact, 0), product_error(exact, np.abs(a) @ np.abs(w).T + np.abs(b), features, dtype)

    return CudaRow(
        "linear",
        f"relu(x @ w.T + b) {dtype} {batch} x {features} x {features}{'' if timed == DEVICE else ', per call'}",
        timed,
        inputs,
        on_device("xwb", dtype) | {"linear": LINEAR, "relu": "lib.relu"},
        {
            "devtensor": ('linear(x, w, b, activation="relu")', "relu(linear(x, w, b))"),
            "torch": "relu(linear(x, w, b))",
        },
        reference,
        part=lambda result: result[rows],
        work=2.0 * batch * features**2,
        unit="TFLOP/s" if timed == DEVICE else "",
    )


LINEAR = "lib.nn.functional.linear if hasattr(lib, 'nn') and hasattr(lib.nn, 'functional') else lib.linear"


# ---------------------------------------------------------------- convolution


def conv2d(layer, batch, dtype, timed, layout="NHWC", relu=True, groups=1):
    channels, height, filters, kernel, stride = layer
    padding, images = kernel // 2, some(batch, 2)
    stored = "float32" if dtype == "tf32" else dtype

    def inputs(rng):
        return {
            "x0": sixteenths(rng, batch, channels, height, height),
            "w0": sixteenths(rng, filters, channels // groups, kernel, kernel),
            "b0": sixteenths(rng, filters),
        }

    def convolve(image, weight):
        image = np.pad(image, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
        view = np.lib.stride_tricks.sliding_window_view(image, (kernel, kernel), axis=(2, 3))[:, :, ::stride, ::stride]
        n, _, out, _ = view.shape[:4]
        parts = []
        for g in range(groups):
            own = view[:, g * channels // groups : (g + 1) * channels // groups]
            columns = own.transpose(0, 2, 3, 1, 4, 5).reshape(n * out * out, -1)
            part = weight[g * filters // groups : (g + 1) * filters // groups].reshape(filters // groups, -1)
            parts.append((columns @ part.T).reshape(n, out, out, -1))
        return np.concatenate(parts, -1).transpose(0, 3, 1, 2)

    def reference(x):
        image, weight = x["x0"][images].astype("float64"), x["w0"].astype("float64")
        bias = x["b0"].astype("float64")[:, None, None]
        exact = convolve(image, weight) + bias
        absolute = convolve(np.abs(image), np.abs(weight)) + np.abs(bias)
        bound = product_error(exact, absolute, channels // groups * kernel**2, dtype)
        return (np.maximum(exact, 0) if relu else exact), bound

    names = on_device("xwb", stored) | {"relu": "lib.relu", "conv2d": "lib.conv2d", "s": str(stride), "p": str(padding)}
    names["g"] = str(groups)
    if layout == "NHWC":
        names |= {name: f"channels_last({value})" for name, value in names.items() if name in "xw"}
    plain = "conv2d(x, w, b, s, p, 1, g)"
    ours = ('conv2d(x, w, b, s, p, 1, g, activation="relu")', f"relu({plain})") if relu else plain
    theirs = f"relu({plain})" if relu else plain
    out = (height + 2 * padding - kernel) // stride + 1
    ending = f"{layout} N={batch}{'' if timed == DEVICE else ', per call'}"
    if groups == channels:
        kind = f"depthwise {kernel}x{kernel} {channels} at {height}, stride {stride}"
    else:
        kind = f"conv {kernel}x{kernel} {channels} to {filters} at {height}, stride {stride}"
    return CudaRow(
        "depthwise" if groups > 1 else "conv2d",
        f"{kind}, bias{' and relu' if relu else ''}, {dtype} {ending}",
        timed,
        inputs,
        names,
        {"devtensor": ours, "torch": theirs, "torch, tuned": theirs},
        reference,
        part=lambda result: result[images],
        precision="tf32" if dtype == "tf32" else "highest",
        work=2.0 * batch * out * out * filters * (channels // groups) * kernel**2,
        unit="TFLOP/s" if timed == DEVICE else "",
        hooks={"torch, tuned": "tuned"},
    )


# ---------------------------------------------------------------- between host and device

GPU = '"cuda"'


def transfer(n, way, pinned):
    """float32 between the host and the device."""
    names = {"a": "pinned(host(a0))" if pinned else "host(a0)"}
    if way == "to the device":
        expressions = {"devtensor": f"a.to({GPU})", "torch": f"a.to({GPU})"}
        if not pinned:
            expressions["cupy"] = "lib.asarray(a)"
    else:
        names["d"] = "cuda(a0, lib.float32)"
        into = "a.copy_(d)" if pinned else "d.cpu()"
        expressions = {"devtensor": into, "torch": into} | ({} if pinned else {"cupy": "lib.asnumpy(d)"})
    return CudaRow(
        "transfer",
        f"{'pinned' if pinned else 'pageable'} float32 {way} n={size(n)}",
        WALL,
        lambda rng: {"a0": sixteenths(rng, n)},
        names,
        expressions,
        lambda x: (x["a0"][:: checked(n)].astype("float64"), 0.0),
        every=checked(n),
        work=4.0 * n,
        unit="GB/s",
    )


def transfer_cast(n, source):
    """One call from host memory of one dtype to float32 on the device; bytes are those of the host array."""

    def inputs(rng):
        return {"a0": rng.integers(0, 17, n).astype(source)}

    one, two = f"a.to({GPU}, f32)", f"a.to(f32).to({GPU})"
    if source == "uint8":
        two = f"a.to({GPU}).to(f32)"
    return CudaRow(
        "transfer",
        f"{source} on the host to float32 on the device n={size(n)}",
        WALL,
        inputs,
        {"a": "host(a0)", "f32": "lib.float32"},
        {"devtensor": one, "torch": one, "torch, two steps": two, "cupy": "lib.asarray(a).astype(f32)"},
        lambda x: (x["a0"][:: checked(n)].astype("float64"), 0.0),
        every=checked(n),
        work=float(n * np.dtype(source).itemsize),
        unit="GB/s",
    )


# One of each kind; the first with a multiple of four channels.
RESNET50 = [(4, 224, 64, 7, 2), *(CPU_RESNET50[i] for i in (1, 2, 3, 6, 13, 16, 22, 20))]
DEPTHWISE = [(32, 112, 32, 3, 1), (144, 56, 144, 3, 2), (384, 14, 384, 3, 1), (960, 7, 960, 3, 1)]


def rows(tiny=False):
    """All rows; the tiny ones have the same shape of code and next to no work."""
    large, image = (1 << 12, 8) if tiny else (1 << 26, 0)
    batch = 2 if tiny else 32

    def layer(shape, channels=8):
        return (channels, image, channels, *shape[3:]) if tiny else shape

    products = (64, 128) if tiny else (4096, 8192)
    one = [layer(shape) for shape in RESNET50[: 4 if tiny else None]]
    few = [layer(shape, 4) for shape in DEPTHWISE[: 1 if tiny else None]]
    return [
        clone(large),
        add(large, DEVICE),
        add(large, DEVICE, "bfloat16"),
        cast(large, "float32", "float16", DEVICE),
        cast(large // 2, "float64", "float32", DEVICE),
        total(large),
        *(transfer(large // 4, way, pinned) for way in ("to the device", "to the host") for pinned in (True, False)),
        transfer(4096, "to the device", False),
        transfer_cast(large // 4, "float64"),
        transfer_cast(large // 4, "uint8"),
        add(1000, HOST),
        cast(1000, "float32", "float16", HOST),
        *(matmul(n, d, WALL) for n in ((16,) if tiny else (64, 128, 256, 512)) for d in ("float32", "float16")),
        *(matmul(n, d, DEVICE) for n in products[:1] for d in ("float64", "float32", "tf32", "float16", "bfloat16")),
        matmul(products[1], "bfloat16", DEVICE),
        linear(32 if tiny else 8192, 64 if tiny else 4096, "float16", DEVICE),
        linear(16 if tiny else 128, 16 if tiny else 256, "float16", WALL),
        *(conv2d(shape, batch, "float16", DEVICE) for shape in one),
        *(conv2d(shape, batch, "float16", DEVICE, relu=False) for shape in one[1:4]),
        *(
            conv2d(shape, batch, d, DEVICE, layout)
            for shape in one[2:4]
            for d in ("tf32", "float32")
            for layout in LAYOUTS
        ),
        *(conv2d(shape, 1, "float16", WALL) for shape in one[1:4]),
        *(
            conv2d(shape, batch, d, DEVICE, layout, groups=shape[0])
            for shape in few
            for d in HALVES
            for layout in LAYOUTS
        ),
    ]


LAYOUTS = ("NHWC", "NCHW")
HALVES = ("float16", "float32")
