"""Functions of each element, reductions, softmax, casts and a transposed copy, in and out of the caches."""

import math

import numpy as np

from .rows import EPS, Row, cast, everywhere, size

BOTH = ("devtensor", "torch")
ULPS = 8  # allowed of a function, so that the bound asks for the right function, not for the best one


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x * 0.5**0.5))


# Name: the function in float64, whether NumPy has it.
FUNCTIONS = {
    "exp": (np.exp, True),
    "log": (np.log, True),
    "sin": (np.sin, True),
    "tanh": (np.tanh, True),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), False),
    "erf": (np.vectorize(math.erf), False),
    "gelu": (gelu, False),
}


def function(name, n):
    exact, in_numpy = FUNCTIONS[name]
    libraries = ("devtensor", "numpy", "torch") if in_numpy else BOTH

    def inputs(rng):
        a = rng.standard_normal(n, "float32")
        return {"a": np.abs(a) + np.float32(2**-20) if name == "log" else a}

    def reference(x):
        value = exact(x["a"].astype("float64"))
        return value, ULPS * EPS["float32"] * np.maximum(np.abs(value), 1)

    where = "getattr(lib, '{0}', None) or lib.nn.functional.{0}"
    names = {"function": where.format(name)}
    title = f"{name} float32 n={size(n)}"
    return Row("functions", title, inputs, everywhere("function(a)", libraries), reference, names, 8.0 * n, "GB/s")


# Name: the reduction of a float64 array along its last dimension, and how many roundings it is allowed.
REDUCTIONS = {
    "sum": (lambda x: x.sum(-1), 64),
    "amax": (lambda x: x.max(-1), 0),
    "argmax": (lambda x: x.argmax(-1), 0),
}


def reduction(name, shape, dtype="float32"):
    exact, roundings = REDUCTIONS[name]
    eps = 2.0**-11 if dtype == "float16" else EPS[dtype]

    def inputs(rng):
        return {"a": rng.standard_normal(shape).astype(dtype)}

    def reference(x):
        a = x["a"].astype("float64")
        return exact(a), roundings * eps * np.abs(a).sum(-1)

    expressions = {
        "devtensor": f"a.{name}(-1)",
        "numpy": f"a.{'max' if name == 'amax' else name}(-1)",
        "torch": f"a.{name}(-1)",
    }
    nbytes = float(math.prod(shape) * np.dtype(dtype).itemsize)
    what = size(shape[0]) if len(shape) == 1 else f"{shape[0]} rows of {shape[1]}"
    return Row("reductions", f"{name} of {what}, {dtype}", inputs, expressions, reference, {}, nbytes, "GB/s")


def softmax(rows, columns):
    def inputs(rng):
        return {"a": rng.standard_normal((rows, columns), "float32")}

    def reference(x):
        raised = np.exp(x["a"].astype("float64"))
        value = raised / raised.sum(-1, keepdims=True)
        return value, 16 * EPS["float32"] * value

    expressions = everywhere("lib.softmax(a, -1)", BOTH)
    title, names = f"softmax of {rows} rows of {columns}", {"lib": "lib"}
    return Row("reductions", title, inputs, expressions, reference, names, 8.0 * rows * columns, "GB/s")


def transposed_copy(n):
    def inputs(rng):
        return {"a": rng.standard_normal((n, n), "float32")}

    def reference(x):
        return x["a"].T.astype("float64"), 0.0

    expressions = {"devtensor": "a.T.contiguous()", "numpy": "contiguous(a.T)", "torch": "a.T.contiguous()"}
    names = {"contiguous": "getattr(lib, 'ascontiguousarray', None)"}
    title = f"transposed copy of {n} x {n}, float32"
    return Row("elementwise", title, inputs, expressions, reference, names, 8.0 * n * n, "GB/s")


ROWS = [
    *(function(name, n) for name in FUNCTIONS for n in (1000, 1 << 17)),
    *(reduction(name, shape) for name in REDUCTIONS for shape in ((1 << 20,), (1000, 1000), (16384, 64))),
    reduction("sum", (1 << 20,), "float16"),
    *(softmax(*shape) for shape in ((1000, 1000), (16384, 64))),
    *(cast(1 << 20, "float32", to, "GB/s") for to in ("float64", "float16", "int32", "uint8")),
    cast(1 << 20, "float16", "float32", "GB/s"),
    *(transposed_copy(n) for n in (64, 1024, 4096)),
]
