"""Two arrays on two devices, of all shapes: a fix that is shown makes the call pass, whatever else is wrong with it.

Of ops whose shapes are known; of others it corrects the device.
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest
import source_files
from source_files import GPU

import devtensor as dt
from devtensor._diagnosis import shapes

OPS = sorted(
    shapes.ELEMENTWISE | shapes.PRODUCTS | shapes.PROBABILITIES | shapes.CLASSES | shapes.CONVOLUTIONS
    | {"embedding", "outer", "take", "gather", "kron"}
)  # fmt: skip
PAIRS = [
    ((4, 1), (4,)), ((4, 3), (4, 3)), ((4, 3), (3,)), ((2, 4, 3), (2, 3, 4)), ((2, 3, 5, 5), (3,)), ((4, 4), (4,)),
    ((3, 4), (5, 4)), ((2, 3, 6), (4, 3, 2)), ((2, 6, 6), (4, 3, 2)), ((2, 3, 6, 6), (4, 3, 2, 2)), ((4,), (4,)),
]  # fmt: skip
DTYPES = [("float32", "float32"), ("float32", "int64"), ("int64", "float64"), ("float32", "bool")]
THREE = {
    "addcdiv": "a, b, b",
    "addcmul": "a, b, b",
    "lerp": "a, b, 0.5",
    "masked_fill": "a, b, 0",
    "where": "b, a, a",
}
MODULES = {"dt": dt, "F": dt.nn.functional, "dt.special": dt.special}


def called(op: str) -> str | None:
    return next((f"{name}.{op}" for name, module in MODULES.items() if hasattr(module, op)), None)


@pytest.mark.parametrize("op", OPS)
def test_a_fix_that_is_shown_is_sure(op: str) -> None:
    function = called(op)
    assert function is not None
    text, fixes = f"{function}({THREE.get(op, 'a, b')})  # here", 0
    for (left, right), (first, second) in itertools.product(PAIRS, DTYPES):
        space: dict[str, Any] = {"dt": dt, "F": dt.nn.functional}
        space |= {"a": dt.zeros(left, dtype=first), "b": dt.zeros(right, dtype=second, device=GPU)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of losses that broadcast
            error = source_files.run(text, dict(space))
            if getattr(error, "fix", None) is None or error.code != "device-mismatch":
                continue
            fixes += 1
            after = source_files.run(source_files.repaired(text, error), dict(space))
        assert after is None, (left, right, first, second, error.fix, after)
    assert fixes or op not in shapes.ELEMENTWISE - shapes.BITS
