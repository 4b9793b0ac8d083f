"""Everyday ops of sizes that fill a GPU, for `python -m benchmarks.survey`."""

from . import attention_rows
from .rows import Row, everywhere

BOTH = ("devtensor", "torch")


def row(name, expression, **inputs):
    """inputs: a shape, for standard normal float32; or how to make one from a generator of NumPy."""

    def made(rng):
        return {key: make(rng) if callable(make) else rng.random(make, "float32") - 0.5 for key, make in inputs.items()}

    return Row("large", name, made, everywhere(expression, BOTH), None)


def typed(name, expression, dtype, **inputs):
    """The same for arrays that are cast to a dtype before."""
    names = {key: f"{key}.to(lib.{dtype})" for key in inputs}
    found = row(name, expression, **inputs)
    return Row(found.group, name, found.inputs, found.expressions, None, names)


def whole(shape, below):
    return lambda rng: rng.integers(0, below, shape)


def gradients(name, causal, **inputs):
    """Of attention, forward and backward."""
    title = f"{name}{', causal' if causal else ''}, gradients"
    found = typed(title, f"trained(lib, q, k, v, {causal})", "float16", **inputs)
    names = {**found.names, "trained": f"{attention_rows.HERE}.trained"}
    return Row(found.group, title, found.inputs, found.expressions, None, names)


MATRIX, LINE, IMAGES = (8192, 4096), (1 << 25,), (32, 256, 56, 56)
F = "lib.nn.functional"
HEADS = dict.fromkeys("qkv", (8, 16, 1024, 64))
FEWER = dict.fromkeys("qkv", (8, 16, 512, 64))
LONGER = dict.fromkeys("qkv", (4, 16, 2048, 128))
ATTENTION = f"{F}.scaled_dot_product_attention(q, k, v)"
CAUSAL = f"{F}.scaled_dot_product_attention(q, k, v, is_causal=True)"

ROWS = [
    row("transpose 8192 x 8192", "a.t().contiguous()", a=(8192, 8192)),
    typed("gelu float16 2^25", f"{F}.gelu(a)", "float16", a=LINE),
    row("exp 2^25", "a.exp()", a=LINE),
    row("a * 2 + 1 of 2^25", "a * 2 + 1", a=LINE),
    row("where 2^25", "lib.where(a > b, a, b)", a=LINE, b=LINE),
    row("sum of columns", "a.sum(0)", a=MATRIX),
    row("sum of rows", "a.sum(1)", a=MATRIX),
    typed("sum of rows, float16", "a.sum(1)", "float16", a=MATRIX),
    row("mean of images", "a.mean((2, 3))", a=IMAGES),
    row("sum of channels", "a.sum((0, 2, 3))", a=IMAGES),
    row("argmax of rows", "a.argmax(1)", a=MATRIX),
    row("std of rows", "a.std(1)", a=MATRIX),
    row("var of columns", "a.var(0)", a=MATRIX),
    row("norm 2^25", "a.norm()", a=LINE),
    row("cumsum of rows", "a.cumsum(1)", a=MATRIX),
    row("cumsum of columns", "a.cumsum(0)", a=MATRIX),
    row("cumsum 2^25", "a.cumsum(0)", a=LINE),
    row("softmax of rows", "a.softmax(1)", a=MATRIX),
    typed("softmax of rows, float16", "a.softmax(1)", "float16", a=MATRIX),
    typed("log_softmax float16 2048 x 50257", "a.log_softmax(1)", "float16", a=(2048, 50257)),
    typed("layer_norm float16 16384 x 1024", f"{F}.layer_norm(a, (1024,))", "float16", a=(16384, 1024)),
    row("layer_norm 16384 x 1024", f"{F}.layer_norm(a, (1024,))", a=(16384, 1024)),
    row("rms_norm 16384 x 1024", f"{F}.rms_norm(a, (1024,))", a=(16384, 1024)),
    row("group_norm of images", f"{F}.group_norm(a, 32)", a=IMAGES),
    row(
        "batch_norm of images, in use", f"{F}.batch_norm(a, m, v)", a=IMAGES, m=(256,), v=lambda r: r.random(256, "f4")
    ),
    row("batch_norm of images, in training", f"{F}.batch_norm(a, None, None, training=True)", a=IMAGES),
    typed("attention float16 (8, 16, 1024, 64)", ATTENTION, "float16", **HEADS),
    typed("attention float16 (8, 16, 1024, 64), causal", CAUSAL, "float16", **HEADS),
    typed("attention bfloat16 (4, 16, 2048, 128)", ATTENTION, "bfloat16", **LONGER),
    typed("attention bfloat16 (4, 16, 2048, 128), causal", CAUSAL, "bfloat16", **LONGER),
    row("attention (8, 16, 512, 64)", ATTENTION, **FEWER),
    *(gradients("attention float16 (8, 16, 1024, 64)", causal, **HEADS) for causal in (False, True)),
    *(gradients("attention float16 (4, 16, 2048, 128)", causal, **LONGER) for causal in (False, True)),
    typed("max_pool2d float16", f"{F}.max_pool2d(a, 3, 2, 1)", "float16", a=(32, 64, 112, 112)),
    row("max_pool2d", f"{F}.max_pool2d(a, 3, 2, 1)", a=(32, 64, 112, 112)),
    row("avg_pool2d", f"{F}.avg_pool2d(a, 3, 2, 1)", a=(32, 64, 112, 112)),
    row("interpolate, bilinear", f"{F}.interpolate(a, scale_factor=2, mode='bilinear')", a=(32, 64, 56, 56)),
    row("interpolate, nearest", f"{F}.interpolate(a, scale_factor=2)", a=(32, 64, 56, 56)),
    row("embedding 50257 x 1024, 16384", f"{F}.embedding(i, w)", i=whole(16384, 50257), w=(50257, 1024)),
    row("gather of rows", "a.gather(1, i)", a=MATRIX, i=whole(MATRIX, 4096)),
    row("index_select of columns", "a.index_select(1, i)", a=MATRIX, i=whole(4096, 4096)),
    row(
        "scatter_add of columns",
        "a.scatter_add(0, i, b)",
        a=(4096, 1024),
        i=whole((16384, 1024), 4096),
        b=(16384, 1024),
    ),
    row("index_add of rows", "a.index_add(0, i, b)", a=(4096, 1024), i=whole(16384, 4096), b=(16384, 1024)),
    row("a[mask] of 2^24", "a[a > 0]", a=(1 << 24,)),
    row("nonzero of 2^22", "(a > 0).nonzero()", a=(1 << 22,)),
    row("sort 2^22", "a.sort(stable=True)[0]", a=(1 << 22,)),
    row("sort 4096 x 1024", "a.sort(stable=True)[0]", a=(4096, 1024)),
    row("topk 10 of 1024 x 32000", "a.topk(10)[0]", a=(1024, 32000)),
    row("unique of 2^20", "i.unique()", i=whole(1 << 20, 1 << 16)),
    row("cat of four", "lib.cat([a, b, a, b])", a=(1 << 22,), b=(1 << 22,)),
    row("stack of eight", "lib.stack([a, b, a, b, a, b, a, b])", a=(1 << 18,), b=(1 << 18,)),
    row("stack of eight, last", "lib.stack([a, b, a, b, a, b, a, b], -1)", a=(1 << 18,), b=(1 << 18,)),
    row("rand 2^25", "lib.rand(1 << 25)"),
    row("randn 2^25", "lib.randn(1 << 25)"),
    row("dropout 2^25", f"{F}.dropout(a, 0.1, True)", a=LINE),
    row("cross_entropy 4096 x 32000", f"{F}.cross_entropy(a, i)", a=(4096, 32000), i=whole(4096, 32000)),
    row("one_hot", f"{F}.one_hot(i, 1000)", i=whole(8192, 1000)),
    typed("one row by a matrix, float16", "a @ b", "float16", a=(1, 8192), b=(8192, 8192)),
    row("matrix by a column", "a @ b", a=(8192, 8192), b=(8192,)),
    row("sum, then item", "a.sum().item()", a=(1 << 20,)),
]
