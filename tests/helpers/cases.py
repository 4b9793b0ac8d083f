"""The table: every op with shapes, parameters, dtypes, layouts and tolerance.

The tests run each row on every device against `reference`; the benchmarks read the same rows.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import elementwise_ops
import numpy as np
from case_values import fill
from elementwise_ops import NUMBERS
from formats import DTYPES, FLOATS, INTS

Shape = tuple[int, ...]
STRIDED = ("contiguous", "transposed", "sliced")
BROADCAST = (*STRIDED, "expanded")
IMAGES = (*STRIDED, "channels_last")


@dataclass(frozen=True)
class Operand:
    """An array to be made: kind names how `make_values` fills it; dtype "" is that of the case."""

    shape: Shape
    kind: str = "signed"
    dtype: str = ""


@dataclass(frozen=True, eq=False)
class Case:
    """One row. An error of `ulps` units in the last place of |result| + slack is allowed."""

    op: str
    operands: tuple[Operand | float, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    dtypes: tuple[str, ...] = FLOATS
    layouts: tuple[str, ...] = ("contiguous",)
    ulps: float = 0
    slack: float = 0

    @property
    def listed(self) -> bool:
        """Whether the operands are given as one list."""
        return self.op in ("cat", "stack")

    @property
    def arrays(self) -> tuple[Operand, ...]:
        return tuple(o for o in self.operands if isinstance(o, Operand))

    def __str__(self) -> str:
        operands = ",".join(
            ("x".join(map(str, o.shape)) or "0d") + ("" if o.kind == "signed" else o.kind)
            if isinstance(o, Operand)
            else repr(o)
            for o in self.operands
        )
        parameters = ",".join(f"{k}={v}" for k, v in self.parameters.items())
        return f"{self.op}({operands}{';' + parameters if parameters else ''})".replace(" ", "")


# ---------------------------------------------------------------- values


def make_values(operand: Operand, dtype: str, seed: str, layout: str = "contiguous") -> np.ndarray:
    """A wide array that dtype holds exactly; equal along dimension 0 for the layout "expanded"."""
    rng = np.random.default_rng(zlib.crc32(f"{seed}/{operand.shape}/{dtype}".encode()))
    dtype = operand.dtype or dtype
    shape = operand.shape
    if layout == "expanded" and shape:
        shape = (min(1, shape[0]), *shape[1:])
    values = fill(operand.kind, shape, dtype, rng)
    return np.broadcast_to(values, operand.shape)


# ---------------------------------------------------------------- rows


def array(*shape: int, kind: str = "signed", dtype: str = "") -> Operand:
    return Operand(shape, kind, dtype)


def unary_rows() -> list[Case]:
    rows = []
    for op, tried in elementwise_ops.UNARY.items():
        x, dtypes, ulps, slack = array(3, 17, kind=tried.values), tried.dtypes, tried.ulps, tried.slack
        special = FLOATS if tried.kind == "FLOAT" else dtypes
        rows += [
            Case(op, (x,), {}, dtypes, BROADCAST, ulps, slack),
            Case(op, (array(16, kind="special"),), {}, special, ("contiguous",), ulps, slack),
        ]
        if tried.kind == "FLOAT":
            rows.append(Case(op, (array(),), {}, ("float32",), ("contiguous",), ulps, slack))
            rows.append(Case(op, (array(0, 3),), {}, ("float32", "int64")))
        elif tried.kind in ("ARITH", "ROUND"):
            rows += [Case(op, (array(),), {}, dtypes), Case(op, (array(2, 0),), {}, dtypes)]
    rows += [
        Case("exp", (array(70_001),), {}, ("float32",), STRIDED, 4),
        Case("neg", (array(5, 3, 4, 2, 3),), {}, ("float32", "int8"), STRIDED),
        Case("relu", (array(2, 3, 5, 7),), {}, FLOATS, IMAGES),
        Case("leaky_relu", (array(3, 17),), {"negative_slope": 0.25}, FLOATS),
        Case("elu", (array(3, 17),), {"alpha": 0.5}, FLOATS, ulps=4, slack=1),
        Case("softplus", (array(3, 17),), {"beta": 2.0, "threshold": 3.0}, FLOATS, ulps=4),
        Case("hardtanh", (array(3, 17),), {"min_val": -2.0, "max_val": 0.5}, FLOATS),
        Case("gelu", (array(3, 17),), {"approximate": "tanh"}, FLOATS, STRIDED, 4, 8),
        Case("clamp", (array(3, 17),), {"min": -1, "max": 2}, NUMBERS, BROADCAST),
        Case("clamp", (array(16, kind="special"),), {"min": -1.5}, FLOATS),
        Case("clamp", (array(3, 17),), {"max": 2}, NUMBERS),
        Case("clamp", (array(3, 17),), {"min": 3, "max": 2}, NUMBERS),
    ]
    return rows


COMPARISONS = [op for op, tried in elementwise_ops.BINARY.items() if tried.kind == "COMPARE"]


def binary_rows() -> list[Case]:
    rows = []
    for op, tried in elementwise_ops.BINARY.items():
        dtypes, ulps, slack = tried.dtypes, tried.ulps, tried.slack
        rows += [
            Case(op, (array(3, 17), array(3, 17)), {}, dtypes, BROADCAST, ulps, slack),
            Case(op, (array(16, 1, kind="special"), array(1, 16, kind="special")), {}, dtypes,
                 ("contiguous",), ulps, slack),
            Case(op, (array(4, 1, 5), array(3, 1)), {}, dtypes, STRIDED, ulps, slack),
            Case(op, (array(2, 3), array()), {}, dtypes, ("contiguous",), ulps, slack),
            Case(op, (array(0, 3), array(1, 3)), {}, dtypes),
        ]  # fmt: skip
        if tried.numbers:
            rows += scalar_rows(op, tried)
    whole = array(3, 17, kind="unit", dtype="int64")
    rows += [
        Case("pow", (array(3, 17, kind="positive"), array(3, 17)), {}, FLOATS, BROADCAST, 4),
        Case("pow", (array(16, 1, kind="special"), array(1, 16, kind="special")), {}, FLOATS,
             ("contiguous",), 4),
        Case("pow", (array(3, 17), array(3, 17, kind="unit")), {}, INTS, BROADCAST),
        Case("pow", (array(3, 17), 2), {}, NUMBERS, ("contiguous",), 4),
        Case("pow", (array(3, 17), 3), {}, NUMBERS, ("contiguous",), 4),
        Case("pow", (array(3, 17, kind="positive"), 0.5), {}, FLOATS, ("contiguous",), 4),
        Case("pow", (array(3, 17, kind="positive"), -1.5), {}, FLOATS, ("contiguous",), 4),
        Case("pow", (2, whole), {}, ("int64",)),
        Case("pow", (2.0, array(3, 17)), {}, FLOATS, ("contiguous",), 4),
        Case("add", (array(3, 17), array(3, 17)), {"alpha": 2}, NUMBERS, STRIDED, 1, 8),
        Case("sub", (array(3, 17), array(3, 17)), {"alpha": 3}, NUMBERS, STRIDED, 1, 16),
        Case("add", (array(3, 17), array(3, 17)), {"alpha": 0.5}, FLOATS, STRIDED, 1, 8),
        Case("add", (array(70_001), array(70_001)), {}, ("float32", "uint8"), STRIDED),
        Case("mul", (array(257, 130), array(130)), {}, ("float64", "bfloat16"), STRIDED),
        Case("add", (array(2, 3, 5, 7), array(3, 1, 1)), {}, FLOATS, IMAGES),
        Case("add", (array(3, 2, 1, 2, 3, 1, 2), array(2, 2, 1, 3, 2)), {}, ("float32",), STRIDED),
        Case("where", (array(3, 17, dtype="bool"), array(3, 17), array(3, 17)), {}, DTYPES,
             BROADCAST),
        Case("where", (array(4, 1, dtype="bool"), array(5), array(4, 5)), {}, DTYPES, STRIDED),
        Case("where", (array(3, 17, dtype="bool"), array(3, 17), 2), {}, NUMBERS),
        Case("where", (array(3, 17, dtype="bool"), 0.0, array(3, 17)), {}, FLOATS),
        Case("where", (array(0, dtype="bool"), array(0), array(0)), {}, ("float32",)),
        Case("lerp", (array(3, 17), array(3, 17), 0.25), {}, FLOATS, BROADCAST, 4, 8),
        Case("lerp", (array(3, 17), array(3, 17), 0.75), {}, FLOATS, STRIDED, 4, 8),
        Case("lerp", (array(3, 17), array(17), array(3, 1, kind="unit")), {}, FLOATS, STRIDED, 4,
             8),
    ]  # fmt: skip
    return rows


def scalar_rows(op: str, tried: elementwise_ops.Tried) -> list[Case]:
    """A Python number on either side; it never changes the dtype within its category."""
    x, ulps = array(3, 17), tried.ulps
    if tried.kind not in ("ARITH", "FLOAT"):
        return [Case(op, (x, 3), {}, tried.dtypes[1:] if tried.kind == "COMPARE" else tried.dtypes, ulps=ulps)]
    return [
        Case(op, (x, 3), {}, NUMBERS, ulps=ulps),
        Case(op, (3, x), {}, NUMBERS, ulps=ulps),
        Case(op, (x, 2.5), {}, NUMBERS, STRIDED, ulps),
        Case(op, (-1.5, x), {}, FLOATS, ulps=ulps),
        Case(op, (x, True), {}, NUMBERS, ulps=ulps),
    ]


def reduction_rows() -> list[Case]:
    rows = []
    dims: list[Mapping[str, Any]] = [
        {},
        {"dim": 0},
        {"dim": -1},
        {"dim": (0, 2)},
        {"dim": (-1, 0), "keepdim": True},
        {"dim": 1, "keepdim": True},
    ]
    x = array(4, 5, 6)
    for op in ["sum", "prod", "mean", "amax", "amin", "any", "all", "argmax", "argmin"]:
        dtypes = {"mean": FLOATS, "any": DTYPES, "all": DTYPES}.get(op, NUMBERS)
        if op in ("sum", "prod"):
            dtypes = DTYPES
        ulps = 64 if op == "prod" else 1
        for parameters in dims:
            if op in ("argmax", "argmin") and isinstance(parameters.get("dim"), tuple):
                continue
            operand = array(4, 5, 6, kind="unit") if op == "prod" else x
            rows.append(Case(op, (operand,), parameters, dtypes, STRIDED, ulps))
        rows += [
            Case(op, (array(),), {}, ("float32",), ulps=ulps),
            Case(op, (array(1),), {"dim": 0}, ("float32",), ulps=ulps),
            Case(op, (array(3, 0),), {"dim": 0}, ("float32",)),
            Case(op, (array(2, 70_001, kind="distinct"),), {"dim": 1}, ("float32",), STRIDED, 2)
            if op not in ("prod",)
            else Case(op, (array(2, 9),), {"dim": 1}, ("float32",), STRIDED, ulps),
        ]
        if op not in ("amax", "amin", "argmax", "argmin"):
            rows.append(Case(op, (array(0, 3),), {"dim": 0}, dtypes))
            rows.append(Case(op, (array(0),), {}, dtypes))
    for op in ("amax", "amin", "argmax", "argmin", "any", "all"):
        rows.append(Case(op, (array(16, kind="special"),), {}, FLOATS))
        rows.append(Case(op, (array(2, 8, kind="special"),), {"dim": 1}, NUMBERS))
    rows += [
        Case("sum", (array(3, 4),), {"dtype": "float64"}, ("float32", "int32"), ulps=1),
        Case("sum", (array(300, kind="positive"),), {}, FLOATS, ulps=2),
        Case("mean", (array(2, 3, 4, 4),), {"dim": (2, 3)}, FLOATS, IMAGES, 2),
    ]
    for op, slack in (("softmax", 0), ("log_softmax", 16)):
        for dim in (0, 1, -1):
            rows.append(Case(op, (array(4, 5, 6),), {"dim": dim}, FLOATS, STRIDED, 16, slack))
        rows += [
            Case(op, (array(3, 1001),), {"dim": -1}, FLOATS, STRIDED, 24, slack),
            Case(op, (array(0, 3),), {"dim": 1}, FLOATS),
            Case(op, (array(3, 1),), {"dim": 1}, FLOATS, ulps=1),
        ]
    return rows


def activated_rows(case: Case) -> list[Case]:
    """A case with each activation; half a unit more for a sum that CUDA rounds before the activation."""
    return [
        replace(case, parameters={**case.parameters, "activation": name}, ulps=ulps, slack=slack)
        for name, ulps, slack in (("relu", 2, 0), ("gelu", 4, 8), ("gelu_tanh", 4, 8))
    ]


def matmul_rows() -> list[Case]:
    def row(op: str, *shapes: Shape, **parameters: Any) -> Case:
        layouts = STRIDED if all(shapes) else ("contiguous",)
        return Case(op, tuple(array(*s) for s in shapes), parameters, FLOATS, layouts, 1)

    return [
        row("matmul", (4, 5), (5, 6)),
        row("matmul", (5,), (5,)),
        row("matmul", (5,), (5, 6)),
        row("matmul", (4, 5), (5,)),
        row("matmul", (3, 4, 5), (5, 6)),
        row("matmul", (4, 5), (3, 5, 6)),
        row("matmul", (3, 4, 5), (3, 5, 6)),
        row("matmul", (2, 1, 4, 5), (3, 5, 6)),
        row("matmul", (5,), (2, 5, 3)),
        row("matmul", (2, 4, 5), (5,)),
        row("matmul", (1, 1), (1, 1)),
        row("matmul", (1, 7), (7, 1)),
        row("matmul", (7, 1), (1, 7)),
        row("matmul", (33, 65), (65, 17)),
        row("matmul", (70, 129), (129, 66)),
        row("matmul", (0, 5), (5, 6)),
        row("matmul", (4, 0), (0, 6)),
        row("matmul", (4, 5), (5, 0)),
        row("matmul", (0, 4, 5), (5, 6)),
        row("matmul", (0,), (0,)),
        row("matmul", (3, 4, 0), (3, 0, 2)),
        row("mm", (4, 5), (5, 6)),
        row("mm", (4, 0), (0, 6)),
        row("bmm", (3, 4, 5), (3, 5, 6)),
        row("bmm", (0, 4, 5), (0, 5, 6)),
        row("mv", (4, 5), (5,)),
        row("dot", (5,), (5,)),
        row("dot", (1000,), (1000,)),
        row("outer", (4,), (6,)),
        row("linear", (4, 5), (6, 5)),
        row("linear", (4, 5), (6, 5), (6,)),
        row("linear", (5,), (6, 5), (6,)),
        row("linear", (2, 3, 5), (6, 5), (6,)),
        row("linear", (0, 5), (6, 5), (6,)),
        row("linear", (4, 0), (6, 0), (6,)),
        row("linear", (64, 100), (40, 100), (40,)),
        *activated_rows(row("linear", (4, 5), (6, 5), (6,))),
        *activated_rows(row("linear", (33, 70), (40, 70))),
        *activated_rows(row("linear", (2, 3, 300), (130, 300), (130,))),
        *activated_rows(row("linear", (4, 0), (6, 0), (6,))),
        row("addmm", (4, 6), (4, 5), (5, 6)),
        row("addmm", (6,), (4, 5), (5, 6), beta=0.5, alpha=2),
        row("addmm", (4, 1), (4, 5), (5, 6), beta=0),
        row("addmm", (4, 6), (4, 0), (0, 6), beta=2),
        row("baddbmm", (3, 4, 6), (3, 4, 5), (3, 5, 6)),
        row("baddbmm", (6,), (3, 4, 5), (3, 5, 6), beta=2, alpha=0.5),
    ]


def conv_rows() -> list[Case]:
    def row(x: Shape, weight: Shape, bias: bool = True, **parameters: Any) -> Case:
        operands = [array(*x), array(*weight)] + [array(weight[0])] * bias
        layouts = IMAGES if len(x) == 4 and x[0] else ("contiguous",)
        return Case("conv2d", tuple(operands), parameters, FLOATS, layouts, 1)

    return [
        row((2, 3, 7, 8), (4, 3, 3, 3)),
        row((2, 3, 7, 8), (4, 3, 3, 3), bias=False),
        row((2, 3, 7, 8), (4, 3, 3, 3), padding=1),
        row((2, 3, 7, 8), (4, 3, 3, 2), padding=(2, 1), stride=(2, 1)),
        row((2, 3, 7, 8), (4, 3, 3, 3), padding="same"),
        row((2, 3, 7, 8), (4, 3, 2, 4), padding="same", dilation=(1, 2)),
        row((2, 3, 7, 8), (4, 3, 3, 3), padding="valid", stride=2),
        row((2, 3, 9, 10), (4, 3, 3, 3), dilation=(2, 3)),
        row((2, 3, 9, 10), (4, 3, 3, 3), dilation=2, stride=3, padding=4),
        row((2, 4, 7, 8), (6, 2, 3, 3), groups=2, padding=1),
        row((2, 4, 7, 8), (4, 1, 3, 3), groups=4, padding=1),
        row((2, 4, 7, 8), (8, 1, 3, 3), groups=4, bias=False, stride=2),
        row((3, 7, 8), (4, 3, 3, 3), padding=1),
        row((0, 3, 7, 8), (4, 3, 3, 3)),
        row((2, 3, 7, 8), (4, 3, 1, 1)),
        row((2, 3, 7, 8), (4, 3, 1, 1), stride=2, bias=False),
        row((2, 3, 7, 8), (4, 3, 7, 8)),
        row((1, 1, 1, 1), (1, 1, 1, 1)),
        row((1, 3, 5, 5), (2, 3, 3, 3), padding=5),
        row((1, 16, 14, 14), (33, 16, 3, 3), padding=1),
        row((1, 3, 24, 24), (8, 3, 7, 7), stride=2, padding=3),
        *activated_rows(row((2, 3, 7, 8), (4, 3, 3, 3), padding=1)),
        *activated_rows(row((2, 4, 7, 8), (4, 1, 3, 3), groups=4, padding="same", bias=False)),
        *activated_rows(row((1, 16, 14, 14), (33, 16, 3, 3), padding=1)),
        *activated_rows(row((2, 3, 7, 8), (4, 3, 2, 4), padding="same")),
    ]


def pool_rows() -> list[Case]:
    rows = []
    x = array(2, 3, 9, 10)
    for op in ("max_pool2d", "avg_pool2d"):
        ulps = 0 if op == "max_pool2d" else 1
        settings: list[Mapping[str, Any]] = [
            {"kernel_size": 2},
            {"kernel_size": (3, 2), "stride": (2, 1)},
            {"kernel_size": 3, "stride": 2, "padding": 1},
            {"kernel_size": 3, "stride": 2, "ceil_mode": True},
            {"kernel_size": 2, "stride": 3, "padding": 1, "ceil_mode": True},
            {"kernel_size": (9, 10)},
            {"kernel_size": 3, "stride": 2, "padding": 1, "dilation": 2}
            if op == "max_pool2d"
            else {"kernel_size": 3, "padding": 1, "count_include_pad": False},
        ]
        rows += [Case(op, (x,), s, FLOATS, IMAGES, ulps) for s in settings]
        rows.append(Case(op, (array(3, 9, 10),), {"kernel_size": 2}, FLOATS, STRIDED, ulps))
        rows.append(Case(op, (array(0, 3, 8, 8),), {"kernel_size": 2}, FLOATS))
    rows.append(Case("avg_pool2d", (x,), {"kernel_size": 2, "divisor_override": 3}, FLOATS, ulps=1))
    rows.append(Case("max_pool2d", (array(1, 1, 4, 4, kind="special"),), {"kernel_size": 2}, FLOATS))
    for size in (1, (3, 4), (None, 5), (9, 10), 7):
        parameters = {"output_size": size}
        rows.append(Case("adaptive_avg_pool2d", (x,), parameters, FLOATS, IMAGES, 1))
    rows.append(Case("adaptive_avg_pool2d", (array(3, 9, 10),), {"output_size": 2}, FLOATS, ulps=1))
    return rows


def shape_rows() -> list[Case]:
    def row(op: str, *shapes: Shape, **parameters: Any) -> Case:
        operands = tuple(array(*s) for s in shapes)
        return Case(op, operands, parameters, ("float32", "int8", "bfloat16", "bool"), STRIDED)

    return [
        row("reshape", (4, 6), shape=(3, 8)),
        row("reshape", (4, 6), shape=(2, -1, 3)),
        row("reshape", (4, 6), shape=(24,)),
        row("reshape", (1,), shape=()),
        row("reshape", (0, 3), shape=(3, 0)),
        row("flatten", (2, 3, 4)),
        row("flatten", (2, 3, 4), start_dim=1),
        row("flatten", (2, 3, 4), start_dim=0, end_dim=-2),
        row("flatten", ()),
        row("unflatten", (2, 12), dim=1, sizes=(3, -1)),
        row("transpose", (2, 3, 4), dim0=0, dim1=2),
        row("transpose", (2, 3, 4), dim0=-1, dim1=-2),
        row("permute", (2, 3, 4), dims=(2, 0, 1)),
        row("permute", (2, 3, 4), dims=(-1, 0, 1)),
        row("movedim", (2, 3, 4), source=0, destination=-1),
        row("movedim", (2, 3, 4), source=(0, 1), destination=(1, 2)),
        row("squeeze", (2, 1, 3, 1)),
        row("squeeze", (2, 1, 3, 1), dim=1),
        row("squeeze", (2, 1, 3, 1), dim=0),
        row("squeeze", (2, 1, 3, 1), dim=(1, -1)),
        row("unsqueeze", (2, 3), dim=1),
        row("unsqueeze", (2, 3), dim=-1),
        row("broadcast_to", (2, 1, 3), size=(4, 2, 5, 3)),
        row("broadcast_to", (1, 3), size=(0, 3)),
        row("narrow", (5, 6), dim=0, start=1, length=3),
        row("narrow", (5, 6), dim=-1, start=2, length=0),
        row("select", (5, 6), dim=1, index=-2),
        row("diagonal", (5, 6)),
        row("diagonal", (3, 4, 5), offset=1, dim1=-1, dim2=0),
        row("diagonal", (3, 4, 5), offset=-2, dim1=1, dim2=2),
        row("diagonal", (3, 4), offset=7),
        row("cat", (2, 3), (4, 3)),
        row("cat", (2, 3), (2, 1), (2, 4), dim=1),
        row("cat", (2, 3), (2, 3), dim=-2),
        row("cat", (0, 3), (2, 3)),
        row("cat", (2, 3)),
        row("stack", (2, 3), (2, 3)),
        row("stack", (2, 3), (2, 3), (2, 3), dim=-1),
        row("stack", (), ()),
        row("split", (7, 3), split_size_or_sections=3),
        row("split", (7, 3), split_size_or_sections=(2, 5)),
        row("split", (7, 3), split_size_or_sections=2, dim=1),
        row("chunk", (7, 3), chunks=3),
        row("chunk", (7, 3), chunks=2, dim=-1),
        row("unbind", (3, 4)),
        row("unbind", (3, 4), dim=1),
        row("tril", (4, 5)),
        row("tril", (2, 4, 5), diagonal=1),
        row("triu", (4, 5), diagonal=-1),
        row("triu", (5, 4), diagonal=2),
    ]


def selection_rows() -> list[Case]:
    def index(*shape: int, size: int, dtype: str = "int64", wrapped: bool = False) -> Operand:
        return array(*shape, kind=f"{'wrapped' if wrapped else 'index'}{size}", dtype=dtype)

    def row(op: str, *operands: Operand | float, layouts: tuple[str, ...] = BROADCAST) -> Case:
        return Case(op, operands, {}, DTYPES, layouts)

    def summed(op: str, *operands: Operand | float, layouts: tuple[str, ...] = BROADCAST, **parameters: int) -> Case:
        return Case(op, operands, parameters, DTYPES, layouts, ulps=2, slack=32)

    x = array(4, 5, 6)
    plain = ("contiguous",)
    rows = []
    for dim, shape, size in ((0, (4, 5, 6), 4), (1, (2, 3, 4), 5), (-1, (4, 5, 9), 6)):
        rows.append(row("gather", x, dim, index(*shape, size=size)))
        rows.append(row("gather", x, dim, index(*shape[:-1], 1, size=size, dtype="int32")))
    for dim, n, size in ((0, 7, 4), (1, 3, 5), (2, 9, 6), (-3, 1, 4)):
        rows.append(row("index_select", x, dim, index(n, size=size)))
        rows.append(row("index_select", x, dim, index(n + 1, size=size, dtype="int32")))
    for dim, shape, size in ((0, (2, 5, 6), 4), (1, (1, 7, 6), 5), (2, (4, 1, 2), 6)):
        rows.append(row("take_along_dim", x, index(*shape, size=size, wrapped=True), dim))
    rows += [
        row("gather", array(3, 0), 0, index(2, 0, size=3), layouts=plain),
        row("gather", array(), 0, index(size=1), layouts=plain),
        row("index_select", array(), 0, index(1, size=1), layouts=plain),
        row("index_select", array(40, 100), 0, index(70, size=40)),
        row("take", x, index(7, size=120, wrapped=True)),
        row("take", x, index(2, 3, size=120, dtype="int32", wrapped=True)),
        row("take_along_dim", x, index(9, size=120, wrapped=True)),
        row("masked_fill", array(3, 17), array(3, 17, dtype="bool"), 1),
        row("masked_fill", array(2, 3, 5), array(3, 1, dtype="bool"), 0),
        row("masked_fill", array(3, 17), array(3, 17, dtype="bool"), array()),
        row("masked_fill", array(0, 3), array(3, dtype="bool"), 1, layouts=plain),
    ]
    for dim, shape, size in ((0, (9, 5, 6), 4), (1, (2, 3, 4), 5), (-1, (4, 5, 9), 6)):
        rows += [
            summed("scatter_add", x, dim, index(*shape, size=size), array(*(n + 1 for n in shape))),
            summed("scatter_add", x, dim, index(*shape[:-1], 1, size=size, dtype="int32"), array(*shape)),
        ]
    for dim, shape, size in ((0, (7, 5, 6), 4), (1, (4, 3, 6), 5), (2, (4, 5, 9), 6)):
        rows.append(summed("index_add", x, dim, index(shape[dim], size=size), array(*shape)))
    rows += [
        summed("scatter_add", array(40), 0, index(300, size=40), array(300), layouts=STRIDED),
        summed("scatter_add", array(3, 0), 0, index(2, 0, size=3), array(2, 0), layouts=plain),
        summed("scatter_add", array(), 0, index(size=1), array(), layouts=plain),
        summed("index_add", array(4, 6), 0, index(5, size=4, dtype="int32"), array(5, 6), alpha=2),
        summed("index_add", array(9, 20), 0, index(300, size=9), array(300, 20), layouts=STRIDED),
        summed("index_add", array(), 0, index(1, size=1), array(), layouts=plain),
    ]
    for shape, width in (((5,), 3), ((2, 4), 16), ((3, 1), 100), ((0, 2), 4)):
        rows.append(row("embedding", index(*shape, size=7), array(7, width), layouts=STRIDED))
    return rows


CASES = [
    *unary_rows(),
    *binary_rows(),
    *reduction_rows(),
    *matmul_rows(),
    *conv_rows(),
    *pool_rows(),
    *shape_rows(),
    *selection_rows(),
]

# ---------------------------------------------------------------- what the ops are called

MATMULS = ("matmul", "mm", "bmm", "mv", "dot", "outer", "linear", "addmm", "baddbmm")
SUMS_OF_PRODUCTS = tuple(op for op in MATMULS if op != "outer")  # floats of one dtype; outer only multiplies
POOLS = ("max_pool2d", "avg_pool2d", "adaptive_avg_pool2d")
TEST_RESULTS = tuple(op for op, tried in elementwise_ops.UNARY.items() if "TEST" in tried.kind) + (*COMPARISONS,)
UNARY = tuple(dict.fromkeys(c.op for c in unary_rows()))
BINARY = tuple(dict.fromkeys(c.op for c in binary_rows() if c.op not in ("where", "lerp")))
REDUCTIONS = tuple(dict.fromkeys(c.op for c in reduction_rows()))
SELECTIONS = tuple(dict.fromkeys(c.op for c in selection_rows()))
# Ops with a method of their name that takes the other operands.
SHAPES = tuple(dict.fromkeys(c.op for c in shape_rows() if not c.listed))
METHODS = (*UNARY, *BINARY, *REDUCTIONS, *MATMULS[:6], "addmm", "baddbmm", "lerp", *SHAPES)
METHODS += tuple(op for op in SELECTIONS if op != "embedding")
# Ops with an in-place method, name_ ; the target keeps its dtype.
NOT_IN_PLACE = (*TEST_RESULTS, "maximum", "minimum", "gelu")
IN_PLACE = tuple(
    op for op in (*UNARY, *BINARY, "lerp", "masked_fill", "scatter_add", "index_add") if op not in NOT_IN_PLACE
)
# Ops that take out=.
OUT = (
    *UNARY,
    *BINARY,
    *(op for op in REDUCTIONS if "softmax" not in op),
    "lerp",
    "where",
    "matmul",
    "mm",
    "bmm",
    "addmm",
    "linear",
    "conv2d",
)
# The names of operators in the module operator.
OPERATORS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "div": "truediv",
    "floor_divide": "floordiv",
    "remainder": "mod",
    "pow": "pow",
    "matmul": "matmul",
    "neg": "neg",
    "abs": "abs",
    "bitwise_not": "invert",
    "bitwise_and": "and_",
    "bitwise_or": "or_",
    "bitwise_xor": "xor",
    **{name: name for name in ("eq", "ne", "lt", "le", "gt", "ge")},
}
IN_PLACE_OPERATORS = {
    "add": "iadd",
    "sub": "isub",
    "mul": "imul",
    "div": "itruediv",
    "floor_divide": "ifloordiv",
    "remainder": "imod",
    "pow": "ipow",
    "bitwise_and": "iand",
    "bitwise_or": "ior",
    "bitwise_xor": "ixor",
}

OPERAND_NAMES = {
    "linear": ("input", "weight", "bias"),
    "conv2d": ("input", "weight", "bias"),
    "mm": ("input", "mat2"),
    "bmm": ("input", "mat2"),
    "mv": ("input", "vec"),
    "dot": ("input", "tensor"),
    "outer": ("input", "vec2"),
    "addmm": ("input", "mat1", "mat2"),
    "baddbmm": ("input", "batch1", "batch2"),
    "where": ("condition", "input", "other"),
    "lerp": ("input", "end", "weight"),
    "pow": ("input", "exponent"),
    **dict.fromkeys(("gather", "index_select"), ("input", "dim", "index")),
    "scatter_add": ("input", "dim", "index", "src"),
    "index_add": ("input", "dim", "index", "source"),
    "take": ("input", "index"),
    "take_along_dim": ("input", "indices", "dim"),
    "embedding": ("input", "weight"),
    "masked_fill": ("input", "mask", "value"),
    "cat": ("tensors[0]", "tensors[1]", "tensors[2]"),
    "stack": ("tensors[0]", "tensors[1]", "tensors[2]"),
}


# Which operand has the dtype of the result, where the others do not take part in it.
VALUES = dict.fromkeys(("gather", "scatter_add", "index_add", "index_select", "take", "take_along_dim"), 0)
VALUES |= {"embedding": 1, "masked_fill": 0}


def operand_names(op: str) -> tuple[str, ...]:
    """The public parameter names, as an error spells them."""
    return OPERAND_NAMES.get(op, ("input", "other"))
