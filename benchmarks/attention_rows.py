"""Attention over whole sequences, also with masks, in other dtypes and with gradients; one token of a GPT that keeps
its keys and values; embeddings."""

import numpy as np

from .rows import EPS, Row, everywhere

BOTH = ("devtensor", "torch")
HERE = "__import__('benchmarks.attention_rows', fromlist=['attention_rows'])"
PASS = {"torch": (1.0, 1.5)}
ATTEND = {"attend": "lib.nn.functional.scaled_dot_product_attention"}
LONG, MIDDLE = (1, 8, 1024, 64), (1, 8, 512, 64)


def heads(*shape):
    return lambda rng: {name: rng.standard_normal(shape, "float32") for name in ("q", "k", "v")}


def weighted(q, k, v, hidden=None):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    scores = scores if hidden is None else np.where(hidden, -np.inf, scores)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True) @ v


def attention(name, shape, causal):
    def reference(x):
        q, k, v = (x[part].astype("float64") for part in ("q", "k", "v"))
        hidden = np.triu(np.ones((shape[2], shape[2]), bool), 1) if causal else None
        return weighted(q, k, v, hidden), 64 * EPS["float32"]

    expression = f"attend(q, k, v, is_causal={causal})"
    return Row("attention", name, heads(*shape), everywhere(expression, BOTH), reference, ATTEND, target=PASS)


def of_dtype(dtype, eps):
    """float32 comes back, so that NumPy can read what it has no dtype for."""
    names = ATTEND | {"lib": "lib"} | {f"{part}2": f"{part}.to(lib.{dtype})" for part in ("q", "k", "v")}
    expression = "attend(q2, k2, v2).to(lib.float32)"
    return Row("attention", f"attention {dtype} {MIDDLE}", heads(*MIDDLE), everywhere(expression, BOTH),
               lambda x: (weighted(*(x[part].astype("float64") for part in ("q", "k", "v"))), 16 * eps), names,
               target=PASS)  # fmt: skip


def masked(rng):
    return heads(*MIDDLE)(rng) | {"m": rng.random((MIDDLE[2], MIDDLE[2])) > 0.3}


def one_query(rng):
    return {n: rng.standard_normal((1, 12, 1 if n == "q" else 1024, 64), "float32") for n in ("q", "k", "v")}


def trained(lib, q, k, v, causal):
    """The gradient of q, after those of all, of the sum of the result."""
    with lib.enable_grad():
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        lib.nn.functional.scaled_dot_product_attention(*leaves, is_causal=causal).sum().backward()
    return leaves[0].grad


def gradient(causal):
    def reference(x):
        import devtensor as dt

        wide = (dt.from_numpy(x[part].astype("float64")) for part in ("q", "k", "v"))
        return trained(dt, *wide, causal).numpy(), 1024 * EPS["float32"]

    name = f"attention {LONG}{', causal' if causal else ''}, gradients of all operands"
    names = {"trained": f"{HERE}.trained", "lib": "lib"}
    expressions = everywhere(f"trained(lib, q, k, v, {causal})", BOTH)
    return Row("attention", name, heads(*LONG), expressions, reference, names, target=PASS)


WIDTH, HEADS, LENGTH = 256, 4, 256


def token(rng):
    sizes = {"x": (1, 1, WIDTH), "k": (1, HEADS, LENGTH, WIDTH // HEADS), "v": (1, HEADS, LENGTH, WIDTH // HEADS)}
    sizes |= {"qkv": (3 * WIDTH, WIDTH), "out": (WIDTH, WIDTH), "up": (4 * WIDTH, WIDTH), "down": (WIDTH, 4 * WIDTH)}
    return {
        n: rng.standard_normal(s, "float32") / (16 if n in ("qkv", "out", "up", "down") else 1)
        for n, s in sizes.items()
    }


def block(lib, x, k, v, qkv, out, up, down):
    """A block of a GPT for one new token: LayerNorm, attention to 256 kept tokens and itself, and the wide layer."""
    F = lib.nn.functional
    q, key, value = F.linear(F.layer_norm(x, (WIDTH,)), qkv).chunk(3, -1)
    q, key, value = (part.view(1, 1, HEADS, WIDTH // HEADS).transpose(1, 2) for part in (q, key, value))
    keys, values = lib.cat([k, key], 2), lib.cat([v, value], 2)
    found = F.scaled_dot_product_attention(q, keys, values).transpose(1, 2).reshape(1, 1, WIDTH)
    x = x + F.linear(found, out)
    return x + F.linear(F.gelu(F.linear(F.layer_norm(x, (WIDTH,)), up), approximate="tanh"), down)


def block_reference(x):
    x = {name: array.astype("float64") for name, array in x.items()}

    def normed(a):
        return (a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + 1e-5)

    parts = np.split(normed(x["x"]) @ x["qkv"].T, 3, -1)
    q, key, value = (part.reshape(1, HEADS, 1, WIDTH // HEADS) for part in parts)
    found = weighted(q, np.concatenate([x["k"], key], 2), np.concatenate([x["v"], value], 2))
    y = x["x"] + found.reshape(1, 1, WIDTH) @ x["out"].T
    wide = normed(y) @ x["up"].T
    wide = 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
    return y + wide @ x["down"].T, 1e-4


def table(rng):
    return {"weight": rng.standard_normal((10000, 256), "float32"), "places": rng.integers(0, 10000, (32, 128))}


ROWS = [
    attention("attention (1, 8, 1024, 64)", (1, 8, 1024, 64), False),
    attention("attention (1, 8, 1024, 64), causal", (1, 8, 1024, 64), True),
    attention("attention (8, 12, 128, 64)", (8, 12, 128, 64), False),
    attention("attention (8, 12, 128, 64), causal", (8, 12, 128, 64), True),
    Row(
        "attention",
        "attention, one query of 12 heads, 1024 keys kept",
        one_query,
        everywhere("attend(q, k, v)", BOTH),
        lambda x: (weighted(*(x[part].astype("float64") for part in ("q", "k", "v"))), 64 * EPS["float32"]),
        ATTEND,
        target=PASS,
    ),
    Row(
        "attention",
        f"attention {MIDDLE}, a mask of bool",
        masked,
        everywhere("attend(q, k, v, m)", BOTH),
        lambda x: (weighted(*(x[part].astype("float64") for part in ("q", "k", "v")), ~x["m"]), 64 * EPS["float32"]),
        ATTEND,
        target=PASS,
    ),
    of_dtype("float64", EPS["float32"]),
    of_dtype("bfloat16", 2.0**-8),
    of_dtype("float16", 2.0**-11),
    gradient(False),
    gradient(True),
    Row(
        "attention",
        "one token of a GPT block, width 256, 256 tokens kept",
        token,
        everywhere("block(lib, x, k, v, qkv, out, up, down)", BOTH),
        block_reference,
        {"block": f"{HERE}.block", "lib": "lib"},
        target=PASS,
    ),
    Row(
        "attention",
        "embedding of 32 x 128 places, 10,000 rows of 256",
        table,
        everywhere("embed(places, weight)", BOTH),
        lambda x: (x["weight"].astype("float64")[x["places"]], 0.0),
        {"embed": "lib.nn.functional.embedding"},
        target=PASS,
    ),
]
