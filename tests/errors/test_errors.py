"""What users are told: the text of every mismatch, as data, alike on every device.

The first line is a sentence that a search finds, then all operands. It is checked whole, so a change of one word is
seen here.
"""

from __future__ import annotations

import itertools
import operator
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cases
import numpy as np
import pytest
from cases import CASES, Case, Operand
from formats import FLOATS, INTS
from support import DEVICES, Built, call, name_of

import devtensor as dt

PAIRS = list(itertools.permutations(DEVICES, 2))
SAME_DEVICE = "Expected all tensors to be on the same device, but found at least two devices, {a} and {b}!"


@dataclass(frozen=True)
class Row:
    """One mistake: the call on devices a and b (the same one unless the row is about devices), and what it says."""

    name: str
    call: Callable[[str, str], Any]
    error: str
    code: str
    line: str


def z(*shape: int, on: str, dtype: str = "float32") -> dt.DeviceArray:
    return dt.zeros(shape, dtype=getattr(dt, dtype), device=on)


def device_rows() -> list[Row]:
    rows: list[tuple[str, Callable[[str, str], Any], str]] = [
        (
            "conv2d weight",
            lambda a, b: dt.conv2d(z(1, 1, 3, 3, on=a), z(1, 1, 3, 3, on=b), z(1, on=a)),
            "conv2d: input on {a}, weight on {b}, bias on {a}",
        ),
        (
            "conv2d bias",
            lambda a, b: dt.conv2d(z(1, 1, 3, 3, on=a), z(1, 1, 3, 3, on=a), z(1, on=b)),
            "conv2d: input on {a}, weight on {a}, bias on {b}",
        ),
        (
            "conv2d without bias",
            lambda a, b: dt.conv2d(z(1, 1, 3, 3, on=a), z(1, 1, 3, 3, on=b)),
            "conv2d: input on {a}, weight on {b}",
        ),
        (
            "conv2d, empty batch",
            lambda a, b: dt.conv2d(z(0, 1, 3, 3, on=a), z(1, 1, 3, 3, on=b)),
            "conv2d: input on {a}, weight on {b}",
        ),
        ("matmul", lambda a, b: z(2, 3, on=a) @ z(3, 2, on=b), "matmul: input on {a}, other on {b}"),
        ("matmul, k = 0", lambda a, b: z(2, 0, on=a) @ z(0, 2, on=b), "matmul: input on {a}, other on {b}"),
        ("mm", lambda a, b: dt.mm(z(2, 3, on=a), z(3, 2, on=b)), "mm: input on {a}, mat2 on {b}"),
        ("bmm", lambda a, b: dt.bmm(z(1, 2, 3, on=a), z(1, 3, 2, on=b)), "bmm: input on {a}, mat2 on {b}"),
        ("mv", lambda a, b: dt.mv(z(2, 3, on=a), z(3, on=b)), "mv: input on {a}, vec on {b}"),
        ("dot", lambda a, b: dt.dot(z(3, on=a), z(3, on=b)), "dot: input on {a}, tensor on {b}"),
        ("outer", lambda a, b: dt.outer(z(3, on=a), z(3, on=b)), "outer: input on {a}, vec2 on {b}"),
        (
            "addmm",
            lambda a, b: dt.addmm(z(2, on=a), z(2, 3, on=a), z(3, 2, on=b)),
            "addmm: input on {a}, mat1 on {a}, mat2 on {b}",
        ),
        (
            "baddbmm",
            lambda a, b: dt.baddbmm(z(2, on=a), z(1, 2, 3, on=b), z(1, 3, 2, on=b)),
            "baddbmm: input on {a}, batch1 on {b}, batch2 on {b}",
        ),
        (
            "linear",
            lambda a, b: dt.linear(z(2, 3, on=a), z(4, 3, on=b), z(4, on=b)),
            "linear: input on {a}, weight on {b}, bias on {b}",
        ),
        ("linear, out", lambda a, b: dt.linear(z(2, 3, on=a), z(4, 3, on=a), out=z(2, 4, on=b)),
         "linear: input on {a}, weight on {a}, out on {b}"),
        ("matmul, out", lambda a, b: dt.matmul(z(2, 3, on=a), z(3, 2, on=a), out=z(2, 2, on=b)),
         "matmul: input on {a}, other on {a}, out on {b}"),
        ("conv2d, out", lambda a, b: dt.conv2d(z(1, 1, 3, 3, on=a), z(1, 1, 3, 3, on=a), out=z(1, 1, 1, 1, on=b)),
         "conv2d: input on {a}, weight on {a}, out on {b}"),
        ("add", lambda a, b: z(2, on=a) + z(2, on=b), "add: input on {a}, other on {b}"),
        ("0-dim", lambda a, b: z(2, on=a) * z(on=b), "mul: input on {a}, other on {b}"),
        ("0-dim first", lambda a, b: z(on=a) - z(2, on=b), "sub: input on {a}, other on {b}"),
        ("empty", lambda a, b: z(0, on=a) / z(0, on=b), "div: input on {a}, other on {b}"),
        ("in place", lambda a, b: operator.iadd(z(2, on=a), z(2, on=b)), "add: input on {a}, other on {b}"),
        ("method in place", lambda a, b: z(2, on=a).mul_(z(2, on=b)), "mul: input on {a}, other on {b}"),
        ("comparison", lambda a, b: z(2, on=a) < z(2, on=b), "lt: input on {a}, other on {b}"),
        ("add, out", lambda a, b: dt.add(z(2, on=a), 1, out=z(2, on=b)), "add: input on {a}, out on {b}"),
        ("exp, out", lambda a, b: dt.exp(z(2, on=a), out=z(2, on=b)), "exp: input on {a}, out on {b}"),
        (
            "where condition",
            lambda a, b: dt.where(z(2, on=a, dtype="bool"), z(2, on=b), z(2, on=b)),
            "where: condition on {a}, input on {b}, other on {b}",
        ),
        (
            "where other",
            lambda a, b: dt.where(z(2, on=a, dtype="bool"), z(2, on=a), z(on=b)),
            "where: condition on {a}, input on {a}, other on {b}",
        ),
        ("where scalar", lambda a, b: dt.where(z(2, on=a, dtype="bool"), z(2, on=b), 1.0),
         "where: condition on {a}, input on {b}"),
        ("lerp", lambda a, b: dt.lerp(z(2, on=a), z(2, on=a), z(2, on=b)),
         "lerp: input on {a}, end on {a}, weight on {b}"),
        ("cat", lambda a, b: dt.cat([z(1, on=a), z(1, on=a), z(1, on=b)]),
         "cat: tensors[0] on {a}, tensors[1] on {a}, tensors[2] on {b}"),
        ("stack", lambda a, b: dt.stack([z(1, on=a), z(1, on=b)]), "stack: tensors[0] on {a}, tensors[1] on {b}"),
        ("setitem", lambda a, b: operator.setitem(z(2, on=a), 0, z(on=b)), "setitem: input on {a}, value on {b}"),
    ]  # fmt: skip
    return [
        Row(name, mistake, "DeviceMismatchError", "device-mismatch", f"{SAME_DEVICE} ({operands})")
        for name, mistake, operands in rows
    ]


def dtype_rows() -> list[Row]:
    products = "float16, bfloat16, float32 and float64"
    rows: list[tuple[str, Callable[[str, str], Any], str, str]] = [
        (
            "linear",
            lambda a, _: dt.linear(z(2, 3, on=a, dtype="float64"), z(4, 3, on=a), z(4, on=a)),
            "dtype-mismatch",
            "mat1 and mat2 must have the same dtype, but got float64 and float32 "
            "(linear: input float64, weight float32, bias float32)",
        ),
        (
            "matmul",
            lambda a, _: z(2, 3, on=a) @ z(3, 2, on=a, dtype="float16"),
            "dtype-mismatch",
            "mat1 and mat2 must have the same dtype, but got float32 and float16 "
            "(matmul: input float32, other float16)",
        ),
        (
            "matmul, empty",
            lambda a, _: z(0, 3, on=a) @ z(3, 2, on=a, dtype="float64"),
            "dtype-mismatch",
            "mat1 and mat2 must have the same dtype, but got float32 and float64 "
            "(matmul: input float32, other float64)",
        ),
        (
            "linear of integers",
            lambda a, _: dt.linear(z(2, 3, on=a, dtype="int64"), z(2, 3, on=a, dtype="int64")),
            "dtype-not-supported",
            f"\"linear\" not implemented for 'int64': it takes {products} (linear: input int64, weight int64)",
        ),
        (
            "addmm",
            lambda a, _: dt.addmm(z(2, on=a), z(2, 3, on=a), z(3, 2, on=a, dtype="bfloat16")),
            "dtype-mismatch",
            "mat1 and mat2 must have the same dtype, but got float32 and bfloat16 "
            "(addmm: input float32, mat1 float32, mat2 bfloat16)",
        ),
        (
            "conv2d weight",
            lambda a, _: dt.conv2d(z(1, 1, 3, 3, on=a, dtype="float64"), z(1, 1, 3, 3, on=a), z(1, on=a)),
            "dtype-mismatch",
            "Input type (float64) and weight type (float32) should be the same "
            "(conv2d: input float64, weight float32, bias float32)",
        ),
        (
            "conv2d bias",
            lambda a, _: dt.conv2d(z(0, 1, 3, 3, on=a), z(1, 1, 3, 3, on=a), z(1, on=a, dtype="float64")),
            "dtype-mismatch",
            "Input type (float32) and bias type (float64) should be the same "
            "(conv2d: input float32, weight float32, bias float64)",
        ),
        (
            "conv2d of integers",
            lambda a, _: dt.conv2d(z(1, 1, 3, 3, on=a, dtype="int32"), z(1, 1, 3, 3, on=a, dtype="int32")),
            "dtype-not-supported",
            f"\"conv2d\" not implemented for 'int32': it takes {products} (conv2d: input int32, weight int32)",
        ),
        (
            "in place, category",
            lambda a, _: operator.iadd(z(2, on=a, dtype="int64"), z(2, on=a)),
            "dtype-mismatch",
            "result type float32 can't be cast to the desired output type int64 (add: input int64, other float32)",
        ),
        (
            "in place, scalar",
            lambda a, _: operator.imul(z(2, on=a, dtype="int64"), 1.5),
            "dtype-mismatch",
            "result type float32 can't be cast to the desired output type int64 (mul: input int64)",
        ),
        (
            "out",
            lambda a, _: dt.add(z(2, on=a), z(2, on=a), out=z(2, on=a, dtype="float64")),
            "dtype-mismatch",
            "Expected out tensor to have dtype float32, but got float64 instead "
            "(add: input float32, other float32, out float64)",
        ),
        (
            "softmax of integers",
            lambda a, _: dt.softmax(z(2, on=a, dtype="int64"), dim=0),
            "dtype-not-supported",
            f"\"softmax\" not implemented for 'int64': it takes {products} (or dtype= one of those) "
            "(softmax: input int64)",
        ),
        (
            "max_pool2d of integers",
            lambda a, _: dt.max_pool2d(z(1, 2, 2, on=a, dtype="uint8"), 2),
            "dtype-not-supported",
            f"\"max_pool2d\" not implemented for 'uint8': it takes {products} (max_pool2d: input uint8)",
        ),
    ]
    return [Row(name, mistake, "DTypeMismatchError", code, line) for name, mistake, code, line in rows]


def shape_rows() -> list[Row]:
    rows: list[tuple[str, Callable[[str, str], Any], str, str]] = [
        (
            "matmul",
            lambda a, _: z(2, 3, 4, on=a) @ z(5, 2, on=a),
            "shape-mismatch",
            "mat1 and mat2 shapes cannot be multiplied: (2, 3, 4) and (5, 2) "
            "(matmul: size 4 of input at dim -1 must equal size 5 of other at dim -2)",
        ),
        (
            "matmul of vectors",
            lambda a, _: z(3, on=a) @ z(5, on=a),
            "shape-mismatch",
            "mat1 and mat2 shapes cannot be multiplied: (3,) and (5,) "
            "(matmul: size 3 of input at dim -1 must equal size 5 of other at dim -1)",
        ),
        (
            "matmul of empty",
            lambda a, _: z(0, 3, on=a) @ z(5, 0, on=a),
            "shape-mismatch",
            "mat1 and mat2 shapes cannot be multiplied: (0, 3) and (5, 0) "
            "(matmul: size 3 of input at dim -1 must equal size 5 of other at dim -2)",
        ),
        (
            "matmul batches",
            lambda a, _: z(2, 3, 4, on=a) @ z(5, 4, 2, on=a),
            "shape-mismatch",
            "Expected the batch dimensions of input and other to match, but got (2, 3, 4) and (5, 4, 2) "
            "(matmul: input (2, 3, 4), other (5, 4, 2))",
        ),
        (
            "matmul of a number",
            lambda a, _: z(on=a) @ z(2, 2, on=a),
            "rank-mismatch",
            "both arguments to matmul need to be at least 1D, but input is 0D (matmul: input (), other (2, 2))",
        ),
        (
            "mm rank",
            lambda a, _: dt.mm(z(2, 3, 4, on=a), z(4, 2, on=a)),
            "rank-mismatch",
            "input must be a matrix (2D), but got a 3D tensor (mm: input (2, 3, 4), mat2 (4, 2))",
        ),
        (
            "linear",
            lambda a, _: dt.linear(z(2, 7, 3, on=a), z(4, 5, on=a), z(4, on=a)),
            "shape-mismatch",
            "mat1 and mat2 shapes cannot be multiplied: (2, 7, 3) and (4, 5) "
            "(linear: size 3 of input at dim -1 must equal size 5 of weight at dim -1; bias (4,))",
        ),
        (
            "linear bias",
            lambda a, _: dt.linear(z(2, 3, on=a), z(4, 3, on=a), z(3, on=a)),
            "shape-mismatch",
            "Given weight of size (4, 3), expected bias to be 1-dimensional with 4 elements, but got bias of size "
            "(3,) instead (linear: input (2, 3), weight (4, 3), bias (3,))",
        ),
        (
            "addmm input",
            lambda a, _: dt.addmm(z(3, on=a), z(2, 3, on=a), z(3, 4, on=a)),
            "shape-mismatch",
            "input of shape (3,) cannot be expanded to the shape (2, 4) of the product "
            "(addmm: input (3,), mat1 (2, 3), mat2 (3, 4))",
        ),
        (
            "broadcast",
            lambda a, _: z(2, 3, on=a) + z(4, on=a),
            "shape-mismatch",
            "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1 "
            "(add: input (2, 3), other (4,))",
        ),
        (
            "broadcast of empty",
            lambda a, _: z(0, 3, on=a) + z(2, 3, on=a),
            "shape-mismatch",
            "The size of tensor a (0) must match the size of tensor b (2) at non-singleton dimension 0 "
            "(add: input (0, 3), other (2, 3))",
        ),
        (
            "in place",
            lambda a, _: operator.iadd(z(3, on=a), z(2, 3, on=a)),
            "shape-mismatch",
            "output with shape (3,) doesn't match the broadcast shape (2, 3) (add: input (3,), other (2, 3))",
        ),
        (
            "out",
            lambda a, _: dt.mul(z(3, on=a), z(2, 3, on=a), out=z(3, on=a)),
            "shape-mismatch",
            "Expected out tensor to have shape (2, 3), but got (3,) instead (mul: input (3,), other (2, 3), out (3,))",
        ),
        (
            "conv2d channels",
            lambda a, _: dt.conv2d(z(1, 4, 5, 5, on=a), z(2, 3, 3, 3, on=a)),
            "shape-mismatch",
            "Given groups=1, weight of size (2, 3, 3, 3), expected input (1, 4, 5, 5) to have 3 channels, but got 4 "
            "channels instead (conv2d: input (1, 4, 5, 5), weight (2, 3, 3, 3))",
        ),
        (
            "conv2d groups",
            lambda a, _: dt.conv2d(z(1, 4, 5, 5, on=a), z(3, 2, 3, 3, on=a), groups=2),
            "shape-mismatch",
            "Given groups=2, expected weight to be divisible by 2 at dimension 0, but got weight of size "
            "(3, 2, 3, 3) instead (conv2d: input (1, 4, 5, 5), weight (3, 2, 3, 3))",
        ),
        (
            "conv2d rank",
            lambda a, _: dt.conv2d(z(4, 5, on=a), z(2, 3, 3, 3, on=a)),
            "rank-mismatch",
            "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: (4, 5) "
            "(conv2d: input (4, 5), weight (2, 3, 3, 3))",
        ),
        (
            "conv2d weight rank",
            lambda a, _: dt.conv2d(z(1, 3, 5, 5, on=a), z(3, 3, 3, on=a)),
            "rank-mismatch",
            "Expected 4D weight to conv2d (out channels, in channels / groups, height, width), but got weight of "
            "size: (3, 3, 3) (conv2d: input (1, 3, 5, 5), weight (3, 3, 3))",
        ),
        (
            "conv2d bias",
            lambda a, _: dt.conv2d(z(1, 3, 5, 5, on=a), z(2, 3, 3, 3, on=a), z(1, 2, on=a)),
            "shape-mismatch",
            "Given weight of size (2, 3, 3, 3), expected bias to be 1-dimensional with 2 elements, but got bias of "
            "size (1, 2) instead (conv2d: input (1, 3, 5, 5), weight (2, 3, 3, 3), bias (1, 2))",
        ),
        (
            "conv2d window",
            lambda a, _: dt.conv2d(z(1, 3, 2, 5, on=a), z(2, 3, 3, 3, on=a)),
            "shape-mismatch",
            "Calculated padded input size per channel: (2 x 5). Kernel size: (3 x 3). Kernel size can't be greater "
            "than actual input size (conv2d: input (1, 3, 2, 5), weight (2, 3, 3, 3))",
        ),
        (
            "cat sizes",
            lambda a, _: dt.cat([z(2, 3, on=a), z(2, 4, on=a)]),
            "shape-mismatch",
            "Sizes of tensors must match except in dimension 0 (cat: tensors[0] (2, 3), tensors[1] (2, 4))",
        ),
        (
            "cat ranks",
            lambda a, _: dt.cat([z(2, 3, on=a), z(3, on=a)]),
            "rank-mismatch",
            "Tensors must have same number of dimensions: got 2 and 1 (cat: tensors[0] (2, 3), tensors[1] (3,))",
        ),
        (
            "stack",
            lambda a, _: dt.stack([z(2, on=a), z(2, on=a), z(3, on=a)]),
            "shape-mismatch",
            "stack expects each tensor to be equal size (stack: tensors[0] (2,), tensors[1] (2,), tensors[2] (3,))",
        ),
        (
            "reshape",
            lambda a, _: z(3, 4, on=a).reshape(5, 2),
            "shape-mismatch",
            "shape '(5, 2)' is invalid for input of size 12 (reshape: input (3, 4))",
        ),
        (
            "expand",
            lambda a, _: z(3, 4, on=a).expand(2, 4),
            "shape-mismatch",
            "The expanded size of the tensor (2) must match the existing size (3) at non-singleton dimension 0. "
            "Target sizes: (2, 4) (expand: input (3, 4))",
        ),
        (
            "amax of nothing",
            lambda a, _: z(0, 3, on=a).amax(dim=0),
            "empty-reduction",
            "amax(): Expected reduction dim 0 to have non-zero size. (amax: input (0, 3))",
        ),
    ]
    return [Row(name, mistake, "ShapeMismatchError", code, line) for name, mistake, code, line in rows]


def check(row: Row, a: str, b: str) -> Any:
    kind = getattr(dt, row.error)
    with pytest.raises(kind) as caught:
        row.call(a, b)
    error = caught.value
    assert str(error) == row.line.format(a=a, b=b)
    assert type(error) is kind
    assert error.code == row.code
    assert isinstance(error, RuntimeError)
    check_attributes(error)
    return error


def check_attributes(error: Any) -> None:
    assert f"({error.op}: " in str(error)
    assert error.operands
    for operand in error.operands:
        assert operand.name in str(error)
        assert isinstance(operand.shape, tuple)
        assert name_of(operand.dtype) in ("bool", *INTS, *FLOATS)
        assert str(operand.device) in DEVICES
    if error.culprit is not None:
        assert any(error.culprit is operand for operand in error.operands)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), again.op, again.code) == (str(error), error.op, error.code)
    assert [o.name for o in again.operands] == [o.name for o in error.operands]
    assert [o.shape for o in again.operands] == [o.shape for o in error.operands]


@pytest.mark.parametrize(("a", "b"), PAIRS)
@pytest.mark.parametrize("row", device_rows(), ids=lambda row: row.name)
def test_device_mismatch(row: Row, a: str, b: str) -> None:
    error = check(row, a, b)
    found = {str(operand.device) for operand in error.operands}
    assert found == {a, b}
    assert error.culprit is not None


@pytest.mark.parametrize("row", dtype_rows(), ids=lambda row: row.name)
def test_dtype_mismatch(row: Row, device: str) -> None:
    error = check(row, device, device)
    assert isinstance(error, TypeError)
    shown = str(error).rpartition(" (")[2]
    for operand in error.operands:
        assert f"{operand.name} {name_of(operand.dtype)}" in shown


@pytest.mark.parametrize("row", shape_rows(), ids=lambda row: row.name)
def test_shape_mismatch(row: Row, device: str) -> None:
    error = check(row, device, device)
    assert isinstance(error, ValueError)


def test_devices_are_checked_before_dtypes_and_shapes() -> None:
    """One fixed order on every device: device, dtype, rank, shape."""
    for a, b in PAIRS:
        with pytest.raises(dt.DeviceMismatchError):
            z(2, 3, on=a) @ z(7, on=b, dtype="int8")
    for device in DEVICES:
        with pytest.raises(dt.DTypeMismatchError):
            z(2, 3, on=device) @ z(7, on=device, dtype="float64")


CULPRITS: list[tuple[str, Callable[[str, str], Any], str]] = [
    ("majority", lambda a, b: dt.conv2d(z(1, 1, 3, 3, on=b), z(1, 1, 3, 3, on=a), z(1, on=a)), "input"),
    ("majority, bias", lambda a, b: dt.linear(z(2, 3, on=a), z(4, 3, on=a), z(4, on=b)), "bias"),
    ("tie: the cpu one", lambda a, b: z(1, on=a) + z(1, on=b), "other"),
    ("tie: the cpu one first", lambda a, b: z(1, on=b) + z(1, on=a), "input"),
    ("tie: data before weight", lambda a, b: dt.linear(z(2, 3, on=b), z(4, 3, on=a)), "input"),
]


@pytest.mark.parametrize(("mistake", "name"), [row[1:] for row in CULPRITS], ids=[r[0] for r in CULPRITS])
def test_culprit_of_devices(mistake: Callable[[str, str], Any], name: str, cuda: str) -> None:
    with pytest.raises(dt.DeviceMismatchError) as caught:
        mistake(cuda, "cpu")
    assert caught.value.culprit.name == name


def test_culprit_of_dtypes(device: str) -> None:
    with pytest.raises(dt.DTypeMismatchError) as caught:
        dt.linear(z(2, 3, on=device, dtype="float64"), z(4, 3, on=device))
    assert caught.value.culprit.name == "input"
    with pytest.raises(dt.DTypeMismatchError) as caught:
        z(2, 3, on=device) @ z(3, 2, on=device, dtype="float64")
    assert caught.value.culprit.name == "other"
    assert caught.value.culprit.dtype == dt.float64
    assert caught.value.culprit.shape == (3, 2)


# ---------------------------------------------------------------- generated: every case, every operand flipped


def flippable() -> list[Case]:
    """One case per op and number of arrays: plain shapes, and with an empty operand where there is one."""
    found: dict[tuple[str, int, bool], Case] = {}
    for case in CASES:
        if len(case.arrays) > 1:
            empty = any(0 in o.shape for o in case.arrays)
            found.setdefault((case.op, len(case.arrays), empty), case)
    return list(found.values())


def names_of(case: Case) -> list[str]:
    names = cases.operand_names(case.op)
    return [names[i] for i, o in enumerate(case.operands) if isinstance(o, Operand)]


@pytest.mark.parametrize("case", flippable(), ids=str)
@pytest.mark.parametrize(("home", "away"), PAIRS)
def test_every_operand_on_the_wrong_device(case: Case, home: str, away: str) -> None:
    for i, operand in enumerate(case.operands):
        if not isinstance(operand, Operand):
            continue
        built = Built(case, case.dtypes[-1], home)
        built.operands[i] = built.operands[i].to(away)
        with pytest.raises(dt.DeviceMismatchError) as caught:
            built.call()
        error = caught.value
        assert error.op == case.op
        assert [o.name for o in error.operands] == names_of(case)
        where = [str(x.device) for x in built.arrays]
        first = next(device for device in where if device != where[0])
        listed = ", ".join(f"{name} on {d}" for name, d in zip(names_of(case), where, strict=True))
        assert str(error) == f"{SAME_DEVICE.format(a=where[0], b=first)} ({case.op}: {listed})"
        check_attributes(error)


@pytest.mark.parametrize("case", [c for c in flippable() if c.op in (*cases.SUMS_OF_PRODUCTS, "conv2d")], ids=str)
def test_every_operand_of_the_wrong_dtype(case: Case, device: str) -> None:
    for i, _ in enumerate(case.operands):
        for other in ("float64", "bfloat16", "int64", "bool"):
            built = Built(case, "float32", device)
            built.operands[i] = built.operands[i].to(getattr(dt, other))
            with pytest.raises(dt.DTypeMismatchError) as caught:
                built.call()
            error = caught.value
            assert error.op == case.op
            assert [o.name for o in error.operands] == names_of(case)
            assert [o.dtype for o in error.operands] == [x.dtype for x in built.arrays]
            check_attributes(error)


@pytest.mark.parametrize(
    "case",
    [c for c in flippable() if c.op not in ("cat", "stack", "outer") and all(o.shape for o in c.arrays)],
    ids=str,
)
def test_every_operand_of_a_wrong_size(case: Case) -> None:
    """The same class and the same text on every device."""
    for i, operand in enumerate(case.operands):
        if not isinstance(operand, Operand):
            continue
        texts = set()
        for device in DEVICES:
            built = Built(case, case.dtypes[-1], device)
            shape = (*operand.shape[:-1], operand.shape[-1] + 97)
            kind = built.operands[i].dtype
            built.operands[i] = dt.zeros(shape, dtype=kind, device=device)
            try:
                built.call()
                texts.add("")
            except dt.ShapeMismatchError as error:
                check_attributes(error)
                assert error.op == case.op
                texts.add(str(error))
        assert len(texts) == 1


# ---------------------------------------------------------------- classes


def test_classes() -> None:
    for name, bases in {
        "DeviceMismatchError": (RuntimeError,),
        "DTypeMismatchError": (RuntimeError, TypeError),
        "ShapeMismatchError": (RuntimeError, ValueError),
        "DeviceNotAvailableError": (RuntimeError,),
        "HostAccessError": (RuntimeError, TypeError),
        "OutOfMemoryError": (RuntimeError, MemoryError),
        "CudaError": (RuntimeError,),
    }.items():
        kind = getattr(dt, name)
        assert issubclass(kind, bases[0])
        assert all(issubclass(kind, base) for base in bases)
        assert kind.__module__ == "devtensor"
        assert kind.__doc__


def test_an_unrelated_operator_is_left_to_the_other_side(device: str) -> None:
    class Other:
        def __radd__(self, x: Any) -> str:
            return "mine"

    x = z(2, on=device)
    assert x + Other() == "mine"
    for bad in ("text", None, object(), [1.0]):
        with pytest.raises(TypeError):
            operator.add(x, bad)
    assert (x == "text") is False or (x == None) is False  # noqa: E711
    with pytest.raises(TypeError):
        call("matmul", [x, np.zeros(2)])
