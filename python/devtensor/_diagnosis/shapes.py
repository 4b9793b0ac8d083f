"""Shapes that do not go together: whether a set of shapes would pass, and the one reading that makes them pass."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Shape = tuple[int, ...]
Reading = tuple[str, str]  # (operand, what to append to it)

PRODUCTS = {"matmul", "mm", "bmm", "mv", "dot", "linear", "addmm", "baddbmm"}
# any shapes, the rank aside
_FREE = {"outer", "embedding", "gather", "index_add", "index_select", "scatter_add", "take", "take_along_dim"}
CLASSES = {"cross_entropy", "nll_loss"}
_CHANNELS = {"batch_norm", "group_norm"}


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


def passes(op: str, shapes: dict[str, Shape], groups: int | None = None) -> bool | None:
    """Whether the shapes go together; None where that depends on more than the shapes."""
    inputs = {name: shape for name, shape in shapes.items() if name != "out"}
    if op in PRODUCTS:
        return _product_passes(op, inputs)
    if op == "conv2d":
        return _conv_passes(inputs, groups)
    if op == "conv1d":
        return _conv_passes({name: _with_height(name, shape) for name, shape in inputs.items()}, groups)
    if op in _FREE:
        return True
    if op in CLASSES or op in _CHANNELS:
        return _rows_pass(op, inputs)
    if op in ("cat", "stack", "view_as") or any("[" in name for name in inputs):
        return None
    if op == "expand_as":
        return broadcast(inputs["input"], inputs["other"]) == inputs["other"]
    total: Shape | None = ()
    for shape in inputs.values():
        total = broadcast(total, shape) if total is not None else None
    return total is not None


def _rows_pass(op: str, shapes: dict[str, Shape]) -> bool:
    """A loss over classes: one target a row, a weight for each class. A norm: one entry of the others a channel."""
    rows = shapes["input"]
    count = rows[:1] if op in CLASSES and len(rows) == 1 else rows[1:2]
    others = {name: shape for name, shape in shapes.items() if name != "input"}
    target = others.pop("target", None)
    fits = target is None or target in (rows[:-1] if len(rows) == 1 else rows[:1] + rows[2:], rows)
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
        if len(b) not in (1, 2) or not a or a[-1] != b[-1]:
            return False
        bias = shapes.get("bias")
        return bias is None or bias == b[:-1]
    result = product(a, b)
    if result is None:
        return False
    if op in ("addmm", "baddbmm"):
        return broadcast(shapes["input"], result) == result
    return True


def _conv_passes(shapes: dict[str, Shape], groups: int | None) -> bool | None:
    x, w, bias = shapes["input"], shapes["weight"], shapes.get("bias")
    if len(x) not in (3, 4) or len(w) != 4 or not w[1]:
        return False
    if (bias is not None and bias != w[:1]) or x[-3] % w[1] or (groups is not None and x[-3] != groups * w[1]):
        return False
    return None if x[-2] < w[2] or x[-1] < w[3] else True


def _with_height(name: str, shape: Shape) -> Shape:
    """What conv2d takes for the operand of a conv1d."""
    return shape if name == "bias" else (*shape[:-1], 1, *shape[-1:])


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
    size = 1
    for n in shape:
        size *= n
    if text == ".reshape(-1)":
        return (size,)
    ones = text.count("1") - 1  # .reshape(-1, 1, 1)
    return (size, *([1] * ones))


def _only(op: str, shapes: dict[str, Shape], candidates: list[Reading], groups: int | None = None) -> Reading | None:
    """The one candidate with which everything passes; None where there are several, or none."""
    good = [c for c in candidates if passes(op, {**shapes, c[0]: _after(shapes[c[0]], c[1])}, groups) is True]
    return good[0] if len(good) == 1 else None


def reading(op: str, code: str, message: str, shapes: dict[str, Shape]) -> Reading | None:
    """The one sure reading of shapes that were refused: an operand, and what makes it pass."""
    if code in ("read-only", "overlapping-write") or "out" in shapes:
        return None
    find: Callable[[str, dict[str, Shape], str], Reading | None]
    find = _read_product if op in PRODUCTS else _read_conv if op == "conv2d" else _read_broadcast
    return find(op, shapes, message)


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


def explanation(op: str, code: str, message: str, shapes: dict[str, Shape]) -> str | None:
    """The sizes that disagree, dimension by dimension, where that helps."""
    if code != "shape-mismatch":
        return None
    if op == "conv2d" and "channels instead" in message:
        x, w = shapes["input"], shapes["weight"]
        said = re.search(r"groups=(\d+)", message)
        groups = int(said.group(1)) if said else 1
        text = f"input has {x[-3]} channels (dim {len(x) - 3}); weight takes {w[1]} x groups={groups} = {w[1] * groups}"
        if w[1] and x[-3] % w[1] == 0 and w[0] % (x[-3] // w[1]) == 0:
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
