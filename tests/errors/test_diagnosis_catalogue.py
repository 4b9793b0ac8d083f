"""The catalogue: for every op, each operand flipped to another device, dtype or size, written as a call in source.

The class, the culprit and the expressions are checked, and every fix that is proposed is executed.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any

import cases
import pytest
import source_files
from cases import CASES, Case, Operand
from support import CUDA_DEVICES, Built

import devtensor as dt

GPU = CUDA_DEVICES[0]
ROW = tuple[str, str, dict[str, Any], str]  # (mistake, source, variables, the odd operand's variable)


def chosen() -> list[Case]:
    """One case for each op, number of arrays and rank."""
    found: dict[tuple[Any, ...], Case] = {}
    for case in CASES:
        if len(case.arrays) > 1:
            found.setdefault((case.op, len(case.arrays), max(len(o.shape) for o in case.arrays)), case)
    return list(found.values())


def source(case: Case) -> str:
    given = [f"a{i}" if isinstance(o, Operand) else repr(o) for i, o in enumerate(case.operands)]
    parameters = [f"{key}={value!r}" for key, value in case.parameters.items() if key != "dtype"]
    if case.listed:
        return f"dt.{case.op}([{', '.join(given)}]{''.join(', ' + p for p in parameters)})  # here"
    return f"dt.{case.op}({', '.join(given + parameters)})  # here"


def built(case: Case, dtype: str, device: str) -> dict[str, Any]:
    operands = Built(case, dtype, device).operands
    return {f"a{i}": x for i, x in enumerate(operands) if isinstance(x, dt.DeviceArray)}


def rows(case: Case) -> Iterator[ROW]:
    for home, away in (("cpu", GPU), (GPU, "cpu")):
        for name in built(case, case.dtypes[-1], home):
            flipped = built(case, case.dtypes[-1], home)
            flipped[name] = flipped[name].to(away)
            yield "DeviceMismatchError", source(case), flipped, name
    if case.op in (*cases.SUMS_OF_PRODUCTS, "conv2d"):
        for name in built(case, "float32", "cpu"):
            for other in ("float64", "bfloat16", "int64"):
                flipped = built(case, "float32", "cpu")
                flipped[name] = flipped[name].to(getattr(dt, other))
                yield "DTypeMismatchError", source(case), flipped, name
    for name, x in built(case, case.dtypes[-1], "cpu").items():
        for dim in range(x.ndim):
            flipped = built(case, case.dtypes[-1], "cpu")
            shape = [n + 97 * (d == dim) for d, n in enumerate(x.shape)]
            flipped[name] = dt.zeros(shape, dtype=x.dtype)
            yield "ShapeMismatchError", source(case), flipped, name
        if x.ndim > 1 and 0 not in x.shape and case.op != "embedding":  # fewer rows: another mistake
            flipped = built(case, case.dtypes[-1], "cpu")
            flipped[name] = x.mT.contiguous()
            yield "ShapeMismatchError", source(case), flipped, name


counts: collections.Counter[str] = collections.Counter()


@pytest.mark.parametrize("case", chosen(), ids=str)
def test_catalogue(case: Case) -> None:
    for kind, text, variables, odd in rows(case):
        error = source_files.run(text, source_files.names() | variables)
        if error is None:
            assert kind == "ShapeMismatchError"  # that size is free
            continue
        assert type(error).__name__ == kind, (text, error)
        counts[kind] += 1
        written = {operand.expression for operand in error.operands}
        if kind != "ShapeMismatchError":
            assert written == set(variables)
        assert written <= set(variables)
        if kind == "DeviceMismatchError" and len(variables) > 2:
            assert error.culprit.expression == odd
        if error.fix is None:
            assert kind == "ShapeMismatchError", text
            continue
        counts[kind + " with a fix"] += 1
        after = source_files.run(source_files.repaired(text, error), source_files.names() | variables)
        assert after is None, (text, error.fix, after)


def test_size_of_the_catalogue() -> None:
    if counts:
        print(dict(counts))
        assert counts["DeviceMismatchError with a fix"] == counts["DeviceMismatchError"]
        assert counts["DTypeMismatchError with a fix"] == counts["DTypeMismatchError"]
