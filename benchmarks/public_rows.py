"""Public ops that no other file has, in groups: of elements, of rows, of places, of images, and random ones; and what a
program does before its first batch: building a model and loading one."""

import math

import numpy as np

from .rows import Row, everywhere

BOTH = ("devtensor", "torch")
HERE = "__import__('benchmarks.public_rows', fromlist=['public_rows'])"
F = {"F": "lib.nn.functional", "lib": "lib"}
SIDE = 1000


def matrices(rng):
    a, b = (rng.standard_normal((SIDE, SIDE), "float32") for _ in range(2))
    return {"a": a, "b": b, "u": np.clip(a / 3, -1, 1), "p": np.abs(a) + np.float32(0.01), "m": a > 0}


def vectors(rng):
    i = rng.integers(0, SIDE, (SIDE, 8))
    return {"a": rng.standard_normal((SIDE, SIDE), "float32"), "i": i, "y": rng.integers(0, SIDE, SIDE)}


def images(rng):
    return {"x": rng.standard_normal((16, 32, 56, 56), "float32"), "c": rng.standard_normal(32, "float32")}


def row(group, name, expression, inputs, of, tolerance=1e-5):
    """of: the result in float64, from the inputs; tolerance: of numbers from 1 on, relative, and else absolute."""

    def reference(x):
        wide = {n: v.astype("float64") if v.dtype.kind == "f" else v for n, v in x.items()}
        with np.errstate(all="ignore"):
            exact = np.asarray(of(wide), "float64")
        return exact, tolerance * np.maximum(np.abs(exact), 1) * (math.sqrt(SIDE) if exact.ndim == 0 else 1)

    return Row(group, name, inputs, everywhere(expression, BOTH), reference, F)


def elements(name, expression, of, tolerance=1e-5):
    return row("elements", f"{name} float32 1000 x 1000", expression, matrices, of, tolerance)


def rows_of(name, expression, of, tolerance=1e-4):
    return row("rows", f"{name} float32 1000 x 1000", expression, matrices, of, tolerance)


def places(name, expression, of):
    return row("places", name, expression, vectors, of, 0.0)


def pictures(name, expression, of, tolerance=1e-4):
    return row("images", f"{name} of (16, 32, 56, 56)", expression, images, of, tolerance)


# ---------------------------------------------------------------- what is computed, in NumPy


def softmax_cross_entropy(x):
    a = x["a"] - x["a"].max(1, keepdims=True)
    return -(a - np.log(np.exp(a).sum(1, keepdims=True)))[np.arange(SIDE), x["y"]].mean()


def normal(x, axes, eps=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def huber(d):
    return np.where(np.abs(d) <= 1, d * d / 2, np.abs(d) - 0.5).mean()


def padded(x, mode):
    return np.pad(x["x"], ((0, 0), (0, 0), (1, 1), (1, 1)), mode)


ELEMENTS = [
    elements("asin", "u.asin()", lambda x: np.arcsin(x["u"])),
    elements("atan", "a.atan()", lambda x: np.arctan(x["a"])),
    elements("atan2", "lib.atan2(a, b)", lambda x: np.arctan2(x["a"], x["b"])),
    elements("sinh", "a.sinh()", lambda x: np.sinh(x["a"])),
    elements("asinh", "a.asinh()", lambda x: np.arcsinh(x["a"])),
    elements("hypot", "lib.hypot(a, b)", lambda x: np.hypot(x["a"], x["b"])),
    elements("fmod", "lib.fmod(a, p)", lambda x: np.fmod(x["a"], x["p"])),
    elements("a ** 3", "a**3", lambda x: x["a"] ** 3),
    elements("p ** 0.5", "p**0.5", lambda x: x["p"] ** 0.5),
    elements("p ** 1.7", "p**1.7", lambda x: x["p"] ** 1.7),
    elements("rsqrt", "p.rsqrt()", lambda x: x["p"] ** -0.5),
    elements("a / b", "a / p", lambda x: x["a"] / x["p"]),
    elements("floor", "a.floor()", lambda x: np.floor(x["a"])),
    elements("clamp", "a.clamp(-1, 1)", lambda x: np.clip(x["a"], -1, 1)),
    elements("where", "lib.where(m, a, b)", lambda x: np.where(x["m"], x["a"], x["b"])),
    elements("masked_fill", "a.masked_fill(m, 0.0)", lambda x: np.where(x["m"], 0, x["a"])),
    elements("addcmul", "lib.addcmul(a, a, b)", lambda x: x["a"] + x["a"] * x["b"]),
    elements("lerp", "lib.lerp(a, b, 0.3)", lambda x: x["a"] + 0.3 * (x["b"] - x["a"])),
    elements("silu", "F.silu(a)", lambda x: x["a"] / (1 + np.exp(-x["a"]))),
    elements("hardswish", "F.hardswish(a)", lambda x: x["a"] * np.clip(x["a"] + 3, 0, 6) / 6),
    elements("a < b", "a < b", lambda x: x["a"] < x["b"]),
]
ROWS_OF = [
    rows_of("mse_loss", "F.mse_loss(a, b)", lambda x: ((x["a"] - x["b"]) ** 2).mean()),
    rows_of("smooth_l1_loss", "F.smooth_l1_loss(a, b)", lambda x: huber(x["a"] - x["b"])),
    row("rows", "cross_entropy float32 1000 x 1000", "F.cross_entropy(a, y)", vectors, softmax_cross_entropy),
    rows_of("layer_norm", "F.layer_norm(a, (1000,))", lambda x: normal(x["a"], 1)),
    rows_of(
        "rms_norm", "F.rms_norm(a, (1000,))", lambda x: x["a"] / np.sqrt((x["a"] ** 2).mean(1, keepdims=True) + 2**-23)
    ),
    rows_of("logsumexp", "lib.logsumexp(a, -1)", lambda x: np.log(np.exp(x["a"]).sum(1))),
    rows_of("std of all", "a.std()", lambda x: x["a"].std(ddof=1)),
    rows_of("var of rows", "a.var(-1)", lambda x: x["a"].var(1, ddof=1)),
    rows_of("norm of all", "a.norm()", lambda x: np.sqrt((x["a"] ** 2).sum())),
    rows_of("norm of rows", "lib.linalg.vector_norm(a, dim=-1)", lambda x: np.sqrt((x["a"] ** 2).sum(1))),
    rows_of("normalize", "F.normalize(a)", lambda x: x["a"] / np.sqrt((x["a"] ** 2).sum(1, keepdims=True))),
    rows_of("sum of columns", "a.sum(0)", lambda x: x["a"].sum(0)),
    rows_of("mean of rows", "a.mean(-1)", lambda x: x["a"].mean(1)),
    rows_of("softmax of columns", "F.softmax(a, 0)", lambda x: np.exp(x["a"]) / np.exp(x["a"]).sum(0)),
]
PLACES = [
    places("flip of both dimensions, 1000 x 1000", "a.flip(0, 1)", lambda x: x["a"][::-1, ::-1]),
    places("roll of rows, 1000 x 1000", "a.roll(3, 1)", lambda x: np.roll(x["a"], 3, 1)),
    places("gather of 8 a row of 1000", "a.gather(1, i)", lambda x: np.take_along_axis(x["a"], x["i"], 1)),
    places("index_select of 1000 rows", "a.index_select(0, y)", lambda x: x["a"][x["y"]]),
    places("index_select of 1000 columns", "a.index_select(1, y)", lambda x: x["a"][:, x["y"]]),
    places("stack along a new last dimension", "lib.stack([a, a], -1)", lambda x: np.stack([x["a"]] * 2, -1)),
    places("cat of rows", "lib.cat([a, a], 1)", lambda x: np.concatenate([x["a"]] * 2, 1)),
    places("repeat of a matrix", "a.repeat(2, 2)", lambda x: np.tile(x["a"], (2, 2))),
    places("tril, 1000 x 1000", "a.tril()", lambda x: np.tril(x["a"])),
]
IMAGES = [
    pictures("pad reflect", 'F.pad(x, (1, 1, 1, 1), mode="reflect")', lambda x: padded(x, "reflect")),
    pictures("pad constant", "F.pad(x, (1, 1, 1, 1))", lambda x: padded(x, "constant")),
    pictures(
        "batch_norm in training",
        "F.batch_norm(x, None, None, c, c, True)",
        lambda x: normal(x["x"], (0, 2, 3)) * x["c"].reshape(-1, 1, 1) + x["c"].reshape(-1, 1, 1),
    ),
    pictures("instance_norm", "F.instance_norm(x)", lambda x: normal(x["x"], (2, 3))),
    pictures("mean of pixels", "x.mean((2, 3))", lambda x: x["x"].mean((2, 3))),
    pictures("adaptive_avg_pool2d to 1", "F.adaptive_avg_pool2d(x, 1)", lambda x: x["x"].mean((2, 3), keepdims=True)),
    pictures(
        "channels last, a copy", "x.permute(0, 2, 3, 1).contiguous()", lambda x: x["x"].transpose(0, 2, 3, 1), 0.0
    ),
]


# ---------------------------------------------------------------- what cannot be compared number by number


def resnet50(lib):
    """The layers of a ResNet-50 with their initial weights, one after the other."""
    nn = lib.nn
    layers = [nn.Conv2d(3, 64, 7, bias=False), nn.BatchNorm2d(64)]
    width = 64
    for inner, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            sizes = [(width, inner, 1), (inner, inner, 3), (inner, 4 * inner, 1)]
            for before, after, kernel in [*sizes, (width, 4 * inner, 1)] if block == 0 else sizes:
                layers += [nn.Conv2d(before, after, kernel, bias=False), nn.BatchNorm2d(after)]
            width = 4 * inner
    return nn.Sequential(*layers, nn.Linear(width, 1000))


def saved(lib):
    """The bytes of a checkpoint of that model."""
    import io

    file = io.BytesIO()
    lib.save(resnet50(lib).state_dict(), file)
    return file.getvalue()


def loaded(lib, file):
    import io

    return lib.load(io.BytesIO(file))


def timed(group, name, expression, names=None):
    """An expression with another result each time; it is the shape of x that is checked."""

    def inputs(rng):
        return {"x": rng.standard_normal(4, "float32")}

    after = {"after": "lambda _, result: result", "lib": "lib"}
    expressions = everywhere(f"after({expression}, x)", BOTH)
    return Row(group, name, inputs, expressions, lambda x: (x["x"].astype("float64"), 0.0), after | (names or {}))


RANDOM = [
    timed("random", "rand of 2^20", "lib.rand(1 << 20)"),
    timed("random", "randn of 2^20", "lib.randn(1 << 20)"),
    timed("random", "randint of 2^20", "lib.randint(0, 100, (1 << 20,))"),
    timed("random", "randperm of 2^20", "lib.randperm(1 << 20)"),
    timed("random", "bernoulli of 2^20", "lib.bernoulli(p)", {"p": "lib.full((1 << 20,), 0.5)"}),
    timed(
        "random",
        "dropout of 1000 x 1000",
        "F.dropout(a, 0.5, True)",
        {"F": "lib.nn.functional", "a": "lib.ones(1000, 1000)"},
    ),
    timed(
        "random",
        "kaiming_normal_ of (512, 512, 3, 3)",
        "lib.nn.init.kaiming_normal_(w)",
        {"w": "lib.zeros(512, 512, 3, 3)"},
    ),
    timed(
        "random",
        "xavier_uniform_ of (512, 512, 3, 3)",
        "lib.nn.init.xavier_uniform_(w)",
        {"w": "lib.zeros(512, 512, 3, 3)"},
    ),
]
MODELS = [
    timed("models", "building a ResNet-50", "build(lib)", {"build": f"{HERE}.resnet50"}),
    timed(
        "models",
        "loading the state of a ResNet-50 from memory",
        "load(lib, file)",
        {"load": f"{HERE}.loaded", "file": f"{HERE}.saved(lib)"},
    ),
]
ROWS = [*ELEMENTS, *ROWS_OF, *PLACES, *IMAGES, *RANDOM, *MODELS]
