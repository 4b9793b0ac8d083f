"""Gives devtensor PyTorch's own samples (OpInfo) and compares the gradients, and those of the gradients.

python torch_gradient_samples.py [--device cuda:0] [--samples N] [op ...] prints a line of JSON for each difference, and
at last the counts; test_torch_gradients.py runs it.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch_samples import (
    OPS,
    RANDOM,
    UNSET,
    NotThere,
    _drops,
    describe,
    duplicate,
    leaves,
    map_leaves,
    names_of,
    our_function,
    samples,
    to_ours,
)

import devtensor as dt

FAR = {"first": 1e-7, "second": 1e-6}


def floats(value: Any, kind: Any) -> list[Any]:
    return [x for x in leaves(value) if isinstance(x, kind) and x.dtype.is_floating_point]


def wanting(leaf: Any, lib: Any) -> Any:
    kind = torch.Tensor if lib is torch else dt.DeviceArray
    return leaf.requires_grad_() if isinstance(leaf, kind) and leaf.dtype.is_floating_point else leaf


def weighted(x: Any, lib: Any) -> Any:
    weights = lib.arange(x.numel(), dtype=x.dtype, device=x.device).cos().reshape(x.shape)
    return (x * weights).sum()


def gradients(lib: Any, call: Callable[..., Any], sample: Any, second: bool) -> tuple[list[bool], list[Any]]:
    """Which results want a gradient; those of each float operand in turn, None where no result does."""
    kind = torch.Tensor if lib is torch else dt.DeviceArray
    args, options = map_leaves(lambda leaf: wanting(leaf, lib), sample)
    operands = floats([list(args), list(options.values())], kind)
    found = floats(call(*args, **options), kind)
    flags, results = [x.requires_grad for x in found], [x for x in found if x.requires_grad]
    if not results:
        return flags, [None, None]
    total = sum(weighted(x, lib) for x in results)
    first = lib.autograd.grad(total, operands, create_graph=second, allow_unused=True)
    orders: list[list[Any] | None] = [list(first), None]
    if second:
        steps = [weighted(g, lib) for g in first if g is not None and g.requires_grad]
        if steps:
            orders[1] = list(lib.autograd.grad(sum(steps), operands, allow_unused=True))
    return flags, orders


def said(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"


def far(ours: Any, theirs: Any, order: str) -> str | None:
    """How one gradient differs: none and zeros are the same."""
    if ours is None or theirs is None:
        one = theirs if ours is None else torch.from_dlpack(ours.detach().cpu())
        return None if one is None or not bool((one != 0).any()) else f"only {'PyTorch' if ours is None else 'ours'}"
    got, want = torch.from_dlpack(ours.detach().cpu().clone()), theirs.detach()
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{tuple(got.shape)} {got.dtype}, not {tuple(want.shape)} {want.dtype}"
    scale = want[want.isfinite()].abs().max().item() if want.isfinite().any() else 1.0
    off = ~torch.isclose(got, want, rtol=FAR[order], atol=FAR[order] * max(scale, 1.0), equal_nan=True)
    if not off.any():
        return None
    at = tuple(int(i) for i in off.nonzero()[0])
    return f"{int(off.sum())} of {want.numel()}: {got[at].item()!r}, not {want[at].item()!r}"


def compare(op: Any, sample: Any, device: str, counts: Counter[str]) -> dict[str, str] | None:
    theirs, ours = op.op, our_function(op)
    assert ours is not None
    try:
        given = map_leaves(lambda leaf: to_ours(device, leaf), sample)
    except NotThere:
        return None
    try:
        wanted, want = gradients(torch, theirs, duplicate(sample), op.supports_gradgrad)
    except Exception:  # PyTorch has no second one of this sample
        try:
            wanted, want = gradients(torch, theirs, duplicate(sample), False)
        except Exception:
            return None
    if want[0] is None:
        return None
    counts["samples"] += 1
    where = {"op": names_of(op), "sample": describe(sample)}
    try:
        flags, got = gradients(dt, ours, given, want[1] is not None)
    except Exception as error:
        counts["refused"] += 1
        return {**where, "kind": "refused", "text": said(error)}
    if flags != wanted:
        counts["other results want one"] += 1
        return {**where, "kind": "wanted", "text": f"{flags}, not {wanted}"}
    for order, a, b in zip(("first", "second"), got, want, strict=True):
        if b is None:
            continue
        if a is None and all(g is None or not bool((g != 0).any()) for g in b):
            continue
        if a is None or len(a) != len(b):
            counts[f"no {order}"] += 1
            return {**where, "kind": f"no {order}", "text": ""}
        for x, y in zip(a, b, strict=True):
            text = far(x, y, order)
            if text is not None:
                counts[f"{order} differs"] += 1
                return {**where, "kind": order, "text": text}
        counts[order] += 1
    counts["agreed"] += 1
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops", nargs="*")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--samples", type=int, default=6, help="of each op")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    for op in OPS:
        if not op.supports_autograd or op.name in RANDOM | UNSET or (options.ops and op.name not in options.ops):
            continue
        before = counts["samples"]
        for sample in samples(op, torch.float64, False):
            if counts["samples"] - before >= options.samples:
                break
            found = None if _drops(sample) else compare(op, sample, options.device, counts)
            if found is not None:
                print(json.dumps(found), flush=True)
        counts["ops"] += counts["samples"] > before
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
