"""Shapes that do not go together: whether a set of shapes would pass, and the one reading that makes them pass."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Shape = tuple[int, ...]
Reading = tuple[str, str]  # (operand, what to append to it)

PRODUCTS = {"matmul", "mm", "bmm", "mv", "dot", "linear", "addmm", "baddbmm"}
# any shapes, the rank aside
_FREE = {"embedding", "gather", "index_add", "index_select", "scatter_add", "take", "take_along_dim"}
ELEMENTWISE = {
    "add", "addcdiv", "addcmul", "allclose", "atan2", "bitwise_and", "bitwise_or", "bitwise_xor", "clamp", "clamp_max",
    "clamp_min", "copysign", "div", "eq", "float_power", "floor_divide", "fmax", "fmin", "fmod", "ge", "gt",
    "huber_loss", "hypot", "isclose", "kl_div", "l1_loss", "ldexp", "le", "lerp", "logaddexp", "logical_and",
    "logical_or", "logical_xor", "lt", "masked_fill", "masked_select", "maximum", "minimum", "mse_loss", "mul", "ne",
    "pairwise_distance", "poisson_nll_loss", "pow", "remainder", "smooth_l1_loss", "soft_margin_loss", "sub", "where",
    "xlog1py", "xlogy",
}  # fmt: skip
BITS = {"bitwise_and", "bitwise_or", "bitwise_xor"}
PROBABILITIES = {"binary_cross_entropy", "binary_cross_entropy_with_logits"}
CONVOLUTIONS = {f"{kind}{n}d" for kind in ("conv", "conv_transpose") for n in (1, 2, 3)}
RECURRENT = {"RNN": 1, "LSTM": 1, "GRU": 1, "RNNCell": 0, "LSTMCell": 0, "GRUCell": 0}  # dimensions without a batch - 1
CLASSES = {"cross_entropy", "nll_loss"}
_CHANNELS = {"batch_norm", "group_norm"}
_LAST = {"layer_norm", "rms_norm"}
_LAPACK = {"cholesky_solve", "ldl_solve", "lstsq", "lu_solve", "solve", "solve_ex", "solve_triangular", "tensorsolve"}
_OTHERS = {"outer", "MultiheadAttention", "scaled_dot_product_attention", "cat", "stack", "grad", "expand_as", *_LAST}


def broadcast(a: Shape, b: Shape) -> Shape | None:
    result = []
    for i in range(1, max(len(a), len(b)) + 1):
        x = a[-i] if i <= len(a) else 1
        y = b[-i] if i <= len(b) else 1
        if x != y and 1 not in (x, y):
            return None
        result.append(y if x == 1 else x)
    return tuple(reversed(result))


def product(a: Shape, b: Shape) -> Shape | None:
    """The shape of a @ b."""
    if not a or not b:
        return None
    k = b[-2] if len(b) > 1 else b[-1]
    if a[-1] != k:
        return None
    batch = broadcast(a[:-2], b[:-2])
    return None if batch is None else batch + (a[-2:-1] if len(a) > 1 else ()) + (b[-1:] if len(b) > 1 else ())


_RANKS = {"mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "dot": (1, 1), "addmm": (2, 2), "baddbmm": (3, 3)}


def has_rule(op: str) -> bool:
    """Whether passes() knows the op, or that it takes no array of a GPU."""
    known = (PRODUCTS, _FREE, ELEMENTWISE, PROBABILITIES, CONVOLUTIONS, RECURRENT, CLASSES, _CHANNELS, _OTHERS, _LAPACK)
    return any(op in ops for ops in known)


def passes(op: str, shapes: dict[str, Shape], options: Mapping[str, Any] | None = None) -> bool | None:
    """Whether the shapes go together; None where that is not known, or depends on more than the shapes.

    options: what else the op was given, such as groups or dim, as far as it is known.
    """
    inputs, options = {name: shape for name, shape in shapes.items() if name != "out"}, options or {}
    if len(inputs) < 2:
        return True
    if op in PRODUCTS:
        return _product_passes(op, inputs)
    if op in CONVOLUTIONS:
        return _conv_passes(op, inputs, options)
    if op in _LAST:
        given = inputs["input"]
        return all(shape == given[-len(shape) :] for name, shape in inputs.items() if name != "input")
    if op == "outer":
        return all(len(shape) == 1 for shape in inputs.values())
    if op in _FREE:
        return op != "embedding" or len(inputs["weight"]) == 2
    if op in CLASSES or op in _CHANNELS:
        return _rows_pass(op, inputs)
    if op in PROBABILITIES:
        given = inputs["input"]
        others = (shape for name, shape in inputs.items() if name != "target")
        return inputs.get("target", given) == given and all(broadcast(given, one) == given for one in others)
    if op in RECURRENT:
        return _recurrent_passes(op, inputs, options)
    if op == "MultiheadAttention":
        return _attention_passes(inputs, options)
    if op == "scaled_dot_product_attention":
        return _weighted_passes(inputs)
    if op in ("cat", "stack"):
        return _joins(op, list(inputs.values()), options)
    if op == "grad":
        return inputs["input"] == inputs["grad"]
    if op == "expand_as":
        return broadcast(inputs["input"], inputs["other"]) == inputs["other"]
    if op not in ELEMENTWISE:
        return None
    total: Shape | None = ()
    for shape in inputs.values():
        total = broadcast(total, shape) if total is not None else None
    return total is not None


def _recurrent_passes(op: str, shapes: dict[str, Shape], options: Mapping[str, Any]) -> bool | None:
    """Whether a layer, or its cell, takes an input; of a state, whether it has a batch as the input has."""
    given, rank = shapes["input"], len(shapes["input"]) - RECURRENT[op]
    weight = next(shape for name, shape in shapes.items() if name.startswith("weight"))
    if rank not in (1, 2) or given[-1] != weight[1]:
        return False
    states = [shape for name, shape in shapes.items() if name.startswith("hx")]
    if any(len(state) != len(given) for state in states):
        return False
    gates = 3 if "GRU" in op else 4 if "LSTM" in op else 1
    layers, both = options.get("num_layers"), options.get("bidirectional", False)
    if any(state[-1] * gates != weight[0] for state in states):
        return False
    if RECURRENT[op] and type(layers) is int and any(state[0] != layers * (2 if both else 1) for state in states):
        return False
    first = options.get("batch_first") and RECURRENT[op]
    return all(rank == 1 or state[-2] == given[0 if first else -2] for state in states)


def _attention_passes(shapes: dict[str, Shape], options: Mapping[str, Any]) -> bool | None:
    """Masks that hide keys, of one query or of a batch; of a mask for each head more than the shapes decides."""
    query = shapes["query"]
    key = shapes.get("key", query)
    if len(query) not in (2, 3) or len(key) != len(query):
        return False
    batched = len(query) == 3
    if batched and "batch_first" not in options:
        return None
    along = 1 if batched and options["batch_first"] else 0
    mask, padding = shapes.get("attn_mask"), shapes.get("key_padding_mask")
    if mask is not None and len(mask) != 2:
        return None
    if padding is not None and padding != ((query[1 - along],) if batched else ()) + (key[along],):
        return False
    known = shapes.keys() <= {"query", "key", "attn_mask", "key_padding_mask"}
    return (mask is None or mask == (query[along], key[along])) if known else None


def _weighted_passes(shapes: dict[str, Shape]) -> bool | None:
    if shapes.keys() != {"query", "key", "value"}:
        return None
    query, key, value = shapes.values()
    alike = len(query) > 1 and query[:-2] == key[:-2] == value[:-2] and len(query) == len(key) == len(value)
    return alike and query[-1] == key[-1] and key[-2] == value[-2]


def _joins(op: str, shapes: Sequence[Shape], options: Mapping[str, Any]) -> bool | None:
    if len(set(shapes)) == 1:
        return True
    dim = options.get("dim")
    if op == "stack" or len({len(shape) for shape in shapes}) > 1:
        return False
    if type(dim) is not int or not -len(shapes[0]) <= dim < len(shapes[0]):
        return None
    return len({(*shape[: dim % len(shape)], *shape[dim % len(shape) + 1 :]) for shape in shapes}) == 1


def _rows_pass(op: str, shapes: dict[str, Shape]) -> bool:
    """A loss over classes: one target a row, a weight for each class. A norm: one entry of the others a channel."""
    rows = shapes["input"]
    count = rows[:1] if op in CLASSES and len(rows) == 1 else rows[1:2]
    others = {name: shape for name, shape in shapes.items() if name != "input"}
    target = others.pop("target", None)
    fits = target is None or target == (rows[:-1] if len(rows) == 1 else rows[:1] + rows[2:])
    fits = fits or (op == "cross_entropy" and target == rows)  # which are probabilities
    return fits and len(count) == 1 and all(shape == count for shape in others.values())


def _product_passes(op: str, shapes: dict[str, Shape]) -> bool | None:
    factors = [shape for name, shape in shapes.items() if name not in ("bias",)]
    if op in ("addmm", "baddbmm"):
        factors = factors[1:]
    if len(factors) != 2:
        return None
    a, b = factors
    if op in _RANKS and (len(a), len(b)) != _RANKS[op]:
        return False
    if op in ("bmm", "baddbmm") and a[0] != b[0]:
        return False
    if op == "linear":
        if len(b) != 2 or not a or a[-1] != b[-1]:
            return False
        bias = shapes.get("bias")
        return bias is None or bias == b[:-1]
    result = product(a, b)
    if result is None:
        return False
    if op in ("addmm", "baddbmm"):
        return broadcast(shapes["input"], result) == result
    return True


def _conv_passes(op: str, shapes: dict[str, Shape], options: Mapping[str, Any]) -> bool | None:
    x, w, bias, rank = shapes["input"], shapes["weight"], shapes.get("bias"), int(op[-2])
    if len(x) not in (rank + 1, rank + 2) or len(w) != rank + 2 or not w[1]:
        return False
    groups, turned, channels = options.get("groups"), "transpose" in op, x[-rank - 1]
    if turned:
        if groups is None or options.get("padding", 0) not in (0, (0,) * rank):
            return None if channels == w[0] else False
        return channels == w[0] and (bias is None or bias == (w[1] * groups,))
    if (bias is not None and bias != w[:1]) or channels % w[1] or (groups is not None and channels != groups * w[1]):
        return False
    if groups is None:
        return None
    pads, steps = options.get("padding", 0), options.get("dilation", 1)
    pads = (pads,) * rank if type(pads) is int else (0,) * rank if type(pads) is str else pads
    steps = (steps,) * rank if type(steps) is int else steps
    if type(pads) is not tuple or type(steps) is not tuple or any(type(n) is not int for n in (*pads, *steps)):
        return None
    sizes = zip(x[-rank:], pads, steps, w[2:], strict=False)
    return True if all(size + 2 * pad > step * (kernel - 1) for size, pad, step, kernel in sizes) else None


# ---------------------------------------------------------------- readings


def permuted(shape: Shape, order: Sequence[int]) -> Shape:
    return tuple(shape[i] for i in order)


def _after(shape: Shape, text: str) -> Shape:
    """The shape after one of the conversions that are proposed here."""
    if text in (".T", ".mT"):
        return (*shape[:-2], shape[-1], shape[-2])
    if text.startswith(".permute("):
        return permuted(shape, [int(part) for part in text[9:-1].split(",")])
    if text.startswith(".transpose("):
        return (shape[1], shape[0], *shape[2:])
    if text.startswith(".unsqueeze("):
        at = int(text[11:-1])
        return (*shape[:at], 1, *shape[at:])
    if text.startswith(".squeeze("):
        at = int(text[9:-1])
        return (*shape[:at], *shape[at + 1 :]) if 0 <= at and shape[at] == 1 else shape
    size = 1
    for n in shape:
        size *= n
    if text == ".reshape(-1)":
        return (size,)
    ones = text.count("1") - 1  # .reshape(-1, 1, 1)
    return (size, *([1] * ones))


def _only(op: str, shapes: dict[str, Shape], candidates: list[Reading], groups: int = 1) -> Reading | None:
    """The one candidate with which everything passes; None where there are several, or none."""
    known = {"groups": groups}
    good = [c for c in candidates if passes(op, {**shapes, c[0]: _after(shapes[c[0]], c[1])}, known) is True]
    return good[0] if len(good) == 1 else None


def reading(op: str, code: str, message: str, shapes: dict[str, Shape]) -> Reading | None:
    """The one sure reading of shapes that were refused: an operand, and what makes it pass."""
    if code in ("read-only", "overlapping-write") or "out" in shapes:
        return None
    find: Callable[[str, dict[str, Shape], str], Reading | None]
    find = _read_product if op in PRODUCTS else _read_conv if op == "conv2d" else _read_broadcast
    return (_read_column if op in PROBABILITIES else find)(op, shapes, message)


def _read_column(op: str, shapes: dict[str, Shape], message: str = "") -> Reading | None:
    """Targets without the last dimension of size 1 that the scores of a model have, or the other way round."""
    last = len(shapes["target"])
    return _only(op, shapes, [("target", f".unsqueeze({last})"), ("target", f".squeeze({last - 1})")])


def column(op: str, shapes: dict[str, Shape]) -> Reading | None:
    """What makes targets of probabilities fit, where they do not."""
    return _read_column(op, shapes) if op in PROBABILITIES and passes(op, shapes) is not True else None


def _transposes(name: str, shape: Shape) -> list[Reading]:
    return [(name, ".T" if len(shape) == 2 else ".mT")] if len(shape) > 1 else []


def _read_product(op: str, shapes: dict[str, Shape], message: str) -> Reading | None:
    bias = shapes.get("bias")
    if op == "linear":
        candidates = _transposes("weight", shapes["weight"]) if len(shapes["weight"]) == 2 else []
        if bias is not None and len(bias) > 1:
            candidates.append(("bias", ".reshape(-1)"))
        return _only(op, shapes, candidates)
    candidates = []
    names = [name for name in shapes if not (name == "input" and op in ("addmm", "baddbmm"))]
    for name in names:
        candidates += _transposes(name, shapes[name])
        if op in ("bmm", "baddbmm") and len(shapes[name]) == 2:
            candidates.append((name, ".unsqueeze(0)"))
    return _only(op, shapes, candidates)


def _read_conv(op: str, shapes: dict[str, Shape], message: str) -> Reading | None:
    x, w, bias = shapes["input"], shapes["weight"], shapes.get("bias")
    said = re.search(r"groups=(\d+)", message)
    groups = int(said.group(1)) if said else None
    if "Kernel size can't be greater" in message:
        return None
    candidates: list[Reading] = []
    if bias is not None and len(bias) > 1:
        candidates.append(("bias", ".reshape(-1)"))
    if len(x) == 4:
        candidates.append(("input", ".permute(0, 3, 1, 2)"))
    elif len(x) == 3:
        candidates += [("input", ".permute(2, 0, 1)"), ("input", ".unsqueeze(1)")]
    elif len(x) == 2:
        candidates.append(("input", ".unsqueeze(0)"))
    channels = x[-3] if len(x) > 2 else 0
    grouped = len(w) == 4 and w[1] > 0 and channels % w[1] == 0 and channels and w[0] % (channels // w[1]) == 0
    if len(w) == 4 and w[2] == w[3] and not grouped:
        candidates.append(("weight", ".transpose(0, 1)"))
    if len(w) == 4 and w[0] == w[1] != w[3]:
        candidates.append(("weight", ".permute(3, 2, 0, 1)"))
    return _only(op, shapes, candidates, groups or 1)


def _read_broadcast(op: str, shapes: dict[str, Shape], message: str) -> Reading | None:
    """A vector that belongs to another dimension than the last, as one scale per channel does."""
    if "non-singleton dimension" not in message or len(shapes) != 2:
        return None
    (first, a), (second, b) = shapes.items()
    candidates: list[Reading] = []
    for name, vector, other in ((second, b, a), (first, a, b)):
        if len(vector) != 1 or len(other) < 2:
            continue
        places = [d for d, size in enumerate(other[:-1]) if size == vector[0]]
        if len(places) == 1:
            ones = ", 1" * (len(other) - 1 - places[0])
            candidates.append((name, f".reshape(-1{ones})"))
    return _only(op, shapes, candidates)


# ---------------------------------------------------------------- in words


def explanation(op: str, code: str, message: str, shapes: dict[str, Shape], layer: bool) -> str | None:
    """The sizes that disagree, dimension by dimension, where that helps. layer: the weight is that of a Module, which
    has another one for other groups."""
    if code != "shape-mismatch":
        return None
    if op == "conv2d" and "channels instead" in message:
        x, w = shapes["input"], shapes["weight"]
        said = re.search(r"groups=(\d+)", message)
        groups = int(said.group(1)) if said else 1
        text = f"input has {x[-3]} channels (dim {len(x) - 3}); weight takes {w[1]} x groups={groups} = {w[1] * groups}"
        if not layer and w[1] and x[-3] % w[1] == 0 and w[0] % (x[-3] // w[1]) == 0:
            text += f"; groups={x[-3] // w[1]} would fit"
        return text
    if op in PRODUCTS and "cannot be multiplied" in message:
        ways = []
        for name, shape in shapes.items():
            for reading_ in _transposes(name, shape):
                if passes(op, {**shapes, name: _after(shape, reading_[1])}) is True:
                    ways.append(f"{name}{reading_[1]}")
        return f"{' and '.join(ways)} would each fit, with different results" if len(ways) > 1 else None
    if "non-singleton dimension" in message:
        rank = max(map(len, shapes.values()))
        width = max(8, *map(len, shapes))
        lines = [
            f"  {name:<{width}} {' '.join(f'{n:>5}' for n in ('',) * (rank - len(s)) + s)}"
            for name, s in shapes.items()
        ]
        return "sizes, aligned at the last dimension (equal, or one of them 1):\n" + "\n".join(lines)
    return None
