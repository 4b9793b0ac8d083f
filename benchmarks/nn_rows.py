"""Calls of layers on inputs so small that the call is what is measured; the same op as a function beside it."""

import numpy as np

from .rows import EPS, Row, everywhere

BOTH = ("devtensor", "torch")


def linear(lib, weight, bias):
    """A layer with these weights, for inference."""
    layer = lib.nn.Linear(weight.shape[1], weight.shape[0])
    layer.load_state_dict({"weight": weight, "bias": bias})
    return layer.requires_grad_(False)


def inputs(rng):
    shapes = {"x": (1, 4), "w": (4, 4), "b": (4,)}
    return {name: rng.standard_normal(shape, "float32") for name, shape in shapes.items()}


def product(x):
    x, w, b = (x[name].astype("float64") for name in ("x", "w", "b"))
    return x @ w.T + b, 8 * EPS["float32"] * (np.abs(x) @ np.abs(w).T + np.abs(b))


def same(x):
    return x["x"].astype("float64"), 0.0


def call(name, expression, layer, reference):
    names = {"linear": "__import__('benchmarks.nn_rows', fromlist=['nn_rows']).linear"}
    return Row("layers", name, inputs, everywhere(expression, BOTH), reference, names | {"layer": layer})


def images(rng):
    return {
        "x": rng.standard_normal((8, 64, 56, 56), "float32") + 3,
        "w": rng.random(64, "float32"),
        "b": rng.random(64, "float32"),
    }


def group_normed(x):
    groups = x["x"].astype("float64").reshape(8, 32, -1)
    scaled = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + 1e-5)
    w, b = (x[name].astype("float64").reshape(64, 1, 1) for name in ("w", "b"))
    return scaled.reshape(x["x"].shape) * w + b, 64 * EPS["float32"]


def sound(rng):
    return {"x": rng.standard_normal((1, 1, 400_000), "float32")}


def twice_as_long(x):
    found = x["x"].astype("float64")[0, 0]
    before, after = np.append(found[0], found[:-1]), np.append(found[1:], found[-1])
    pairs = np.stack([before * 0.25 + found * 0.75, found * 0.75 + after * 0.25], 1)
    return pairs.reshape(1, 1, -1), 4 * EPS["float32"] * np.abs(pairs).max()


def twice_as_large(x):
    """Bilinear, by the shares of two neighbours: 3 / 4 and 1 / 4."""
    found = x["x"].astype("float64")
    for axis in (2, 3):
        padded = np.concatenate([found.take([0], axis), found, found.take([-1], axis)], axis)
        left, here, right = (np.moveaxis(padded, axis, 0)[i : i + found.shape[axis]] for i in range(3))
        pairs = np.stack([left * 0.25 + here * 0.75, here * 0.75 + right * 0.25], 1)
        found = np.moveaxis(pairs.reshape(-1, *pairs.shape[2:]), 0, axis)
    return found, 16 * EPS["float32"] * 8


def maps(rng):
    return {
        "x": rng.standard_normal((8, 64, 28, 28), "float32"),
        "w": rng.standard_normal((64, 32, 4, 4), "float32"),
        "b": rng.standard_normal(32, "float32"),
    }


def transposed(x):
    """conv_transpose2d of stride 2 and padding 1, and the size of its terms."""
    results = []
    for part in (np.asarray, np.abs):
        image, w, b = (part(x[name].astype("float64")) for name in ("x", "w", "b"))
        whole = np.zeros((8, 32, 58, 58))
        for r in range(4):
            for s in range(4):
                product = np.einsum("nchw,ck->nkhw", image, w[:, :, r, s], optimize=True)
                whole[:, :, r : r + 56 : 2, s : s + 56 : 2] += product
        results.append(whole[:, :, 1:-1, 1:-1] + b.reshape(-1, 1, 1))
    return results[0], 16 * EPS["float32"] * results[1]


ROWS = [
    Row(
        "layers",
        "interpolate of (8, 64, 56, 56), bilinear, twice as large",
        images,
        everywhere('layer(x, scale_factor=2, mode="bilinear")', BOTH),
        twice_as_large,
        {"layer": "lib.nn.functional.interpolate"},
    ),
    Row(
        "layers",
        "interpolate of (1, 1, 400000), linear, twice as long",
        sound,
        everywhere('layer(x, scale_factor=2, mode="linear")', BOTH),
        twice_as_long,
        {"layer": "lib.nn.functional.interpolate"},
    ),
    Row(
        "layers",
        "conv_transpose2d of (8, 64, 28, 28), 4 x 4, stride 2",
        maps,
        everywhere("layer(x, w, b, 2, 1)", BOTH),
        transposed,
        {"layer": "lib.nn.functional.conv_transpose2d"},
    ),
    Row(
        "layers",
        "group_norm of (8, 64, 56, 56), 32 groups",
        images,
        everywhere("layer(x, 32, w, b)", BOTH),
        group_normed,
        {"layer": "lib.nn.functional.group_norm"},
    ),
    call("Identity()(x): the call alone", "layer(x)", "lib.nn.Identity()", same),
    call("linear(x, w, b) as a function, 4 to 4", "layer(x, w, b)", "lib.nn.functional.linear", product),
    call("Linear(4, 4)(x)", "layer(x)", "linear(lib, w, b)", product),
    call(
        "Sequential of Linear and three Identity",
        "layer(x)",
        "lib.nn.Sequential(linear(lib, w, b), lib.nn.Identity(), lib.nn.Identity(), lib.nn.Identity())",
        product,
    ),
]
