"""Everyday ops and layers on a GPU, as data: one expression for both libraries, on arrays that fill the device.

References are the same expressions in float64 on the cpu by our own ops, which the tests hold to other libraries.
Bytes are those that a single pass would read and write.
"""

import math
from dataclasses import dataclass

import numpy as np

from .cuda_rows import DEVICE, EPS, WALL, CudaRow, sixteenths

F = "lib.nn.functional."


@dataclass(frozen=True)
class Whole:
    """An input of whole numbers below end."""

    end: int
    shape: tuple


def everyday(group, name, expression, dtype, passes, roundings=16, timed=DEVICE, unit="GB/s", **shapes):
    """passes: times that the first input goes through memory, or operations of a call where unit is TFLOP/s."""

    def inputs(rng):
        return {
            f"{key}0": rng.integers(0, s.end, s.shape) if isinstance(s, Whole) else sixteenths(rng, *s)
            for key, s in shapes.items()
        }

    def reference(x):
        import devtensor as dt

        wide = {key: dt.from_numpy(x[f"{key}0"]) for key in shapes}
        wide = {key: a.double() if a.dtype.is_floating_point else a for key, a in wide.items()}
        exact = eval(expression, {"lib": dt}, wide).double().numpy()
        return exact, np.full(exact.shape, roundings * EPS[dtype] * max(np.abs(exact).max(initial=0), 1))

    def kind(s):
        return "int64" if isinstance(s, Whole) else dtype

    first = next(iter(shapes.values()))
    nbytes = math.prod(first) * np.dtype(dtype).itemsize if not isinstance(first, Whole) else 0
    return CudaRow(
        group,
        f"{name}, {dtype}",
        timed,
        inputs,
        {key: f"cuda({key}0, lib.{kind(s)})" for key, s in shapes.items()},
        dict.fromkeys(("devtensor", "torch"), expression),
        reference,
        work=float(passes * nbytes if unit == "GB/s" else passes),
        unit=unit if timed == DEVICE else "",
    )


def attention(heads, tokens, depth, dtype, causal=False):
    shape = (*heads, tokens, depth)
    name = f"attention of {heads} heads, {tokens} tokens of {depth}{', causal' if causal else ''}"
    expression = f"{F}scaled_dot_product_attention(q, k, v, is_causal={causal})"
    operations = 4.0 * math.prod(heads) * tokens**2 * depth * (0.5 if causal else 1)
    return everyday("attention", name, expression, dtype, operations, 64, unit="TFLOP/s", **dict.fromkeys("qkv", shape))


def lstm(steps, batch, size):
    """The layer's own way through its steps, without a layer."""
    rows = {"x": (steps, batch, size), "w": (4 * size, size), "u": (4 * size, size)}
    expression = "__import__('benchmarks.cuda_layers', fromlist=['steps']).steps(lib, x, w / 16, u / 16)"
    name = f"LSTM({size}, {size}), {steps} steps of {batch} rows"
    return everyday("recurrent", name, expression, "float32", 0, 4096, WALL, **rows)


def steps(lib, x, w, u):
    layer = lib.nn.LSTM(x.shape[2], x.shape[2], bias=False, device=x.device, dtype=x.dtype)
    with lib.no_grad():
        layer.weight_ih_l0.copy_(w)
        layer.weight_hh_l0.copy_(u)
        return layer(x)[0]


def rows(tiny=False):
    """All rows; the tiny ones have the same shape of code and next to no work."""
    n = 8 if tiny else 1
    many, wide, image = 8192 // (256 * n if tiny else 1), 4096 // (64 if tiny else 1), (1 if tiny else 32)
    channels, pixels, vector = (8, 7, 1 << 10) if tiny else (256, 56, 1 << 25)
    plane, batch = (many, wide), (image, channels, pixels, pixels)
    heads, tokens = ((1, 2), 32) if tiny else ((4, 16), 1024)
    words = 500 if tiny else 32000
    norm = {"a": (2 * many, wide // 4), "w": (wide // 4,), "b": (wide // 4,)}
    by_channel = {"a": batch, "w": (channels,), "b": (channels,)}
    long = (many // 4, words)
    return [
        everyday("layout", "transposed copy", "a.T.contiguous()", "float32", 2, a=(many, many)),
        everyday("layout", "channels first to last", "a.permute(0, 2, 3, 1).contiguous()", "float16", 2, a=batch),
        everyday("elementwise", "gelu", f"{F}gelu(a)", "float16", 2, 16, a=(vector,)),
        everyday("elementwise", "a row beside a matrix, a + b", "a + b", "float32", 2, a=plane, b=(wide,)),
        everyday("reduction", "sum of columns", "a.sum(0)", "float32", 1, 4096, a=plane),
        everyday("reduction", "sum of rows", "a.sum(1)", "float32", 1, 4096, a=plane),
        everyday("reduction", "argmax of rows", "a.argmax(1)", "float32", 1, 0, a=plane),
        everyday("reduction", "std of rows", "a.std(1)", "float32", 1, 16, a=plane),
        everyday("reduction", "mean of images", "a.mean((2, 3))", "float32", 1, 64, a=batch),
        everyday("reduction", "cumsum of rows", "a.cumsum(1)", "float32", 2, 4096, a=plane),
        *(everyday("rows", "softmax of rows", "a.softmax(1)", d, 2, 16, a=plane) for d in ("float16", "float32")),
        everyday("rows", f"log_softmax of {words}", "a.log_softmax(1)", "float16", 2, 16, a=long),
        everyday("rows", f"cross_entropy of {words}", f"{F}cross_entropy(a, y)", "float32", 1, 64, a=long,
                 y=Whole(words, (long[0],))),
        *(everyday("rows", "layer_norm", f"{F}layer_norm(a, w.shape, w, b)", d, 2, 64, **norm)
          for d in ("float16", "float32")),
        everyday("rows", "rms_norm", f"{F}rms_norm(a, w.shape, w)", "float32", 2, 64, a=norm["a"], w=norm["w"]),
        everyday("images", "group_norm", f"{F}group_norm(a, 4, w, b)", "float32", 2, 64, **by_channel),
        everyday("images", "batch_norm of a batch", f"{F}batch_norm(a, None, None, w, b, True)", "float32", 2, 64,
                 **by_channel),
        everyday("images", "max_pool2d 3x3, stride 2", f"{F}max_pool2d(a, 3, 2, 1)", "float16", 1.25, 0, a=batch),
        everyday("images", "avg_pool2d 2x2", f"{F}avg_pool2d(a, 2)", "float32", 1.25, 16, a=batch),
        everyday("images", "adaptive_avg_pool2d to 1", f"{F}adaptive_avg_pool2d(a, 1)", "float32", 1, 64, a=batch),
        attention(heads, tokens, 64, "float16"),
        attention(heads, tokens, 64, "float16", causal=True),
        attention(heads, tokens // 2, 64, "float32"),
        everyday("places", "embedding", f"{F}embedding(i, w)", "float32", 0, 0, i=Whole(words, (many,)),
                 w=(words, wide // 4)),
        everyday("places", "gather of columns", "a.gather(1, i)", "float32", 4, 0, a=plane,
                 i=Whole(wide, plane)),
        everyday("places", "a[a > 0]", "a[a > 0]", "float32", 1.5, 0, timed=WALL, a=(vector // 2,)),
        everyday("order", "sort", "a.sort()[0]", "float32", 2, 0, a=(vector // 8,)),
        everyday("order", "sort of rows", "a.sort(1)[0]", "float32", 2, 0, a=(wide, wide // 4)),
        everyday("order", "topk 10 of rows", "a.topk(10)[0]", "float32", 1, 0, a=(wide // 4, words)),
        lstm(4 if tiny else 50, 4 if tiny else 32, 16 if tiny else 128),
    ]  # fmt: skip
