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


ROWS = [
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
