"""What NumPy makes of the same call, where it has the op under the same name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from fuzz import evil

if TYPE_CHECKING:
    from fuzz.judge import Outcome
    from fuzz.programs import Program

SAME = frozenset(
    """abs add all amax amin any argmax argmin bitwise_and bitwise_not bitwise_or bitwise_xor broadcast_to
    ceil cos eq exp expm1 floor ge gt isfinite isinf isnan le log log10 log1p log2 logical_and logical_not
    logical_or logical_xor lt maximum mean minimum moveaxis mul ne neg outer prod round sin
    sqrt square sub sum swapaxes tan tanh trunc where""".split()
)
NAMES = {
    "eq": "equal", "ge": "greater_equal", "gt": "greater", "le": "less_equal", "lt": "less", "mul": "multiply",
    "ne": "not_equal", "neg": "negative", "sub": "subtract",
}  # fmt: skip
WORDS = {"dim=": "axis=", "keepdim=": "keepdims="}


class Host:
    """The array constructor of programs, in NumPy."""

    @staticmethod
    def arr(dtype: str, shape: tuple[int, ...], layout: str, kind: str, device: str) -> np.ndarray:
        if dtype == "bfloat16":
            raise TypeError("NumPy has no bfloat16")
        values = evil.values(dtype, int(np.prod(shape, dtype=np.int64)), kind).reshape(shape)
        if layout == "negative":
            return values[::-1] if values.ndim else values
        return np.broadcast_to(values[:1], shape) if layout == "expanded" and shape else values


def differs(program: Program, outcome: Outcome) -> str:
    """How NumPy's result differs: shapes, or numbers beyond the precision of the narrowest dtype."""
    from fuzz.judge import Stored, floats, near, shown

    plain = re.fullmatch(r"dt\.(\w+)\((.*)\)", program.call)
    if outcome.error or plain is None or plain[1] not in SAME or not isinstance(outcome.value, Stored):
        return ""
    if re.search(r"[A-Za-z]\w+\(|out=|dtype=|alpha=|\*|dt\.|unsafe", plain[2]):
        return ""
    if re.search(r"(, |dim=)(\(\)|\[\])", plain[2]) and plain[1] not in ("all", "any"):
        return ""  # over no dimension, which means all of them here and in PyTorch
    if plain[1].startswith("logical_") and "float16" in program.source:
        return ""  # a number beside the array is one of its dtype, and may be 0 there
    text = plain[2]
    for ours, theirs in WORDS.items():
        text = text.replace(ours, theirs)
    names: dict[str, Any] = {"arr": Host.arr, "D": "cpu", "np": np, "nan": np.nan, "inf": np.inf}
    try:
        with np.errstate(all="ignore"):
            exec("\n".join(program.lines), names)
            want = np.asarray(eval(f"np.{NAMES.get(plain[1], plain[1])}({text})", names))
    except Exception:
        return ""
    got = outcome.value
    if want.shape != got.shape:
        return f"NumPy gives shape {want.shape}: {shown(outcome)}"
    if got.dtype.endswith(("16", "int8", "int16", "int32")) or want.dtype == object:  # wrap and round in their own ways
        return ""
    values = floats(got) if "float" in got.dtype else got.bits.astype(np.float64)
    if got.dtype.endswith("float32") and want.dtype == np.float64:
        if re.search(r"\de[-+]?\d{3}", text):
            return ""  # a number beyond float32, which is infinity or 0 there, as in PyTorch
        with np.errstate(all="ignore"):
            want = want.astype(np.float32)  # of integers NumPy makes float64
    if near(want.astype(np.float64), values, 1e-2 if want.dtype == np.float16 else 1e-5):
        return ""
    return f"NumPy gives {want.reshape(-1)[:12].tolist()}: {shown(outcome)}"
