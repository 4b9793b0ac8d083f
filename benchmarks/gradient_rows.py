"""Gradients of convolutions and pools, each of one operand: what an op's step of backward takes."""

import numpy as np

from .rows import EPS, MOBILENETV2, RESNET50, Row, everywhere

BOTH = ("devtensor", "torch")
BATCH = 8
POOLS = [("max_pool2d", 2, 2, 0), ("max_pool2d", 3, 2, 1), ("avg_pool2d", 2, 2, 0)]


def recorded(lib, op, leaf, *args):
    """op's result, with a history that leads to leaf alone."""
    with lib.enable_grad():
        leaf.requires_grad_(True)
        return op(*args)


def taps(kernel, stride, results):
    """Of each tap: its place, and the part of the padded image that it meets."""
    for r in range(kernel):
        for s in range(kernel):
            yield r, s, (..., slice(r, r + stride * results, stride), slice(s, s + stride * results, stride))


def conv_gradient(wanted, x, w, g, stride, padding):
    """In float64; groups are as many as x has channels for each of w's."""
    n, channels, height, _ = x.shape
    filters, inside, kernel, _ = w.shape
    groups, results = channels // inside, g.shape[2]
    image = np.zeros((n, channels, height + 2 * padding + stride, height + 2 * padding + stride))
    here = (..., slice(padding, padding + height), slice(padding, padding + height))
    image[here] = x if wanted == "weight" else 0
    g = g.reshape(n, groups, filters // groups, results * results)
    found = np.zeros(w.shape)
    for r, s, part in taps(kernel, stride, results):
        if wanted == "weight":
            seen = image[part].reshape(n, groups, inside, results * results)
            found[:, :, r, s] = np.matmul(g, seen.swapaxes(2, 3)).sum(0).reshape(filters, inside)
        else:
            one = w[:, :, r, s].reshape(groups, filters // groups, inside)
            image[part] += np.matmul(one.swapaxes(1, 2), g).reshape(n, channels, results, results)
    return found if wanted == "weight" else image[here]


def layered(array, layout):
    return array.transpose(0, 2, 3, 1).copy() if layout == "NHWC" else array


def conv2d(wanted, channels, height, filters, kernel, stride, layout, groups=1):
    padding, inside = kernel // 2, channels // groups
    results = (height + 2 * padding - kernel) // stride + 1
    shapes = {
        "x0": (BATCH, channels, height, height),
        "w": (filters, inside, kernel, kernel),
        "g0": (BATCH, filters, results, results),
    }

    def inputs(rng):
        found = {name: rng.standard_normal(shape, "float32") for name, shape in shapes.items()}
        return found | {name: layered(found[name], layout) for name in ("x0", "g0")}

    def reference(arrays):
        x, g = arrays["x0"].astype("float64"), arrays["g0"].astype("float64")
        if layout == "NHWC":
            x, g = x.transpose(0, 3, 1, 2), g.transpose(0, 3, 1, 2)
        w = arrays["w"].astype("float64")
        terms = BATCH * results**2 if wanted == "weight" else filters // groups * kernel**2
        exact, size = (conv_gradient(wanted, *map(f, (x, w, g)), stride, padding) for f in (np.asarray, np.abs))
        return exact, 2 * terms * EPS["float32"] * size

    view = "{}.permute(0, 3, 1, 2)" if layout == "NHWC" else "{}"
    leaf = "w" if wanted == "weight" else "x"
    names = {
        "x": view.format("x0"),
        "g": view.format("g0"),
        "recorded": "__import__('benchmarks.gradient_rows', fromlist=['gradient_rows']).recorded",
        "y": f"recorded(lib, lib.conv2d, {leaf}, x, w, None, {stride}, {padding}, 1, {groups})",
        "grad": "lib.autograd.grad",
    }
    kind = "conv2d" if groups == 1 else "depthwise"
    between = f"{channels} to {filters}" if groups == 1 else f"{channels}"
    name = f"{wanted} of {kind} {kernel}x{kernel} {between} at {height}, stride {stride}, {layout}"
    work = 2.0 * BATCH * results**2 * filters * inside * kernel**2
    expressions = everywhere(f"grad(y, {leaf}, g, True)[0]", BOTH)
    return Row(f"training, {wanted} of {kind} {layout}", name, inputs, expressions, reference, names, work, "GFLOP/s")


def pool_gradient(op, x, g, kernel, stride, padding):
    results, height = g.shape[2], x.shape[2]
    fill = -np.inf if op == "max_pool2d" else 0.0
    image = np.full((*x.shape[:2], height + 2 * padding + stride, height + 2 * padding + stride), fill)
    here = (..., slice(padding, padding + height), slice(padding, padding + height))
    image[here] = x
    found, parts = np.zeros(image.shape), [part for _, _, part in taps(kernel, stride, results)]
    best = np.argmax([image[part] for part in parts], 0)
    for i, part in enumerate(parts):
        found[part] += np.where(best == i, g, 0) if op == "max_pool2d" else g / kernel**2
    return found[here]


def pool(op, kernel, stride, padding, layout, channels=64, height=56):
    results = (height + 2 * padding - kernel) // stride + 1

    def inputs(rng):
        x = rng.standard_normal((BATCH, channels, height, height), "float32")
        g = rng.standard_normal((BATCH, channels, results, results), "float32")
        return {"x0": layered(x, layout), "g0": layered(g, layout)}

    def reference(arrays):
        x, g = arrays["x0"].astype("float64"), arrays["g0"].astype("float64")
        if layout == "NHWC":
            x, g = x.transpose(0, 3, 1, 2), g.transpose(0, 3, 1, 2)
        exact, size = (pool_gradient(op, x, f(g), kernel, stride, padding) for f in (np.asarray, np.abs))
        return exact, 2 * kernel**2 * EPS["float32"] * size

    view = "{}.permute(0, 3, 1, 2)" if layout == "NHWC" else "{}"
    names = {
        "x": view.format("x0"),
        "g": view.format("g0"),
        "recorded": "__import__('benchmarks.gradient_rows', fromlist=['gradient_rows']).recorded",
        "y": f"recorded(lib, lib.nn.functional.{op}, x, x, {kernel}, {stride}, {padding})",
        "grad": "lib.autograd.grad",
    }
    name = f"input of {op} {kernel}x{kernel} {channels} at {height}, stride {stride}, {layout}"
    expressions = everywhere("grad(y, x, g, True)[0]", BOTH)
    return Row("training, pools", name, inputs, expressions, reference, names)


ROWS = [
    *(
        conv2d(wanted, *layer, layout)
        for layout in ("NCHW", "NHWC")
        for layer in RESNET50
        for wanted in ("input", "weight")
    ),
    *(
        conv2d(wanted, c, h, c, 3, stride, layout, c)
        for layout in ("NCHW", "NHWC")
        for c, h, stride in MOBILENETV2
        for wanted in ("input", "weight")
    ),
    *(pool(*p, layout) for layout in ("NCHW", "NHWC") for p in POOLS),
]
