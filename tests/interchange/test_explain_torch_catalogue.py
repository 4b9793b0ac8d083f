"""The catalogue on PyTorch: for every op, each operand flipped to another device, dtype or size.

Class and sentence are PyTorch's, the expressions are the caller's variables, and every proposed fix is executed.
"""

from __future__ import annotations

import collections
import linecache
from typing import Any

import pytest
from test_diagnosis_catalogue import chosen, rows, source

import devtensor as dt

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def converted(x: dt.DeviceArray) -> Any:
    """The same in PyTorch; what was on a GPU is on the meta device."""
    if x.device != dt.device("cpu"):
        return torch.empty(tuple(x.shape), dtype=getattr(torch, str(x.dtype).rpartition(".")[2]), device="meta")
    return torch.from_numpy(x.float().numpy().copy()).to(getattr(torch, str(x.dtype).rpartition(".")[2]))


def run(text: str, variables: dict[str, Any]) -> Exception | None:
    linecache.cache["<case>"] = (len(text), None, text.splitlines(keepends=True), "<case>")
    try:
        exec(compile(text, "<case>", "exec"), {"dt": torch, "F": torch.nn.functional} | variables)
    except Exception as error:
        return error
    return None


@pytest.mark.filterwarnings("ignore")
def test_catalogue() -> None:
    counts: collections.Counter[str] = collections.Counter()
    for case in chosen():
        text = source(case)
        if not hasattr(torch, case.op):
            text = text.replace(f"dt.{case.op}(", f"F.{case.op}(")
            if not hasattr(torch.nn.functional, case.op):
                continue
        for kind, _, variables, odd in rows(case):
            given = {name: converted(x) for name, x in variables.items()}
            plain = run(text, dict(given))
            if plain is None or isinstance(plain, TypeError) or ("meta" in str(plain) and "device" not in str(plain)):
                continue  # what PyTorch takes, or calls by other names
            counts["refused"] += 1
            error = run(text, dict(given))
            assert (type(error), str(error)) == (type(plain), str(plain))
            found = dt.explanation(error) if error is not None else None
            if found is None:
                counts[f"not explained: {kind}"] += 1
                continue
            counts["explained"] += 1
            written = {operand.expression for operand in found.operands}
            assert written <= {*given, None}, (text, found.notes)
            if kind == "DeviceMismatchError" and len(found.operands) > 2 and found.culprit is not None:
                assert found.culprit.expression == odd, (text, found.notes)
            if found.fix is None:
                continue
            counts["fix"] += 1
            assert found.fix_at is None and found.fix_how == "before", found.fix
            after = run(f"{found.fix}\n{text}", dict(given))
            assert after is None, (text, {k: (v.shape, v.dtype, v.device) for k, v in given.items()}, found.fix, after)
    print(dict(counts))
    assert counts["explained"] > 0.8 * counts["refused"] and counts["fix"] > 100
