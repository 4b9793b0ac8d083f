"""Gives devtensor PyTorch's own samples (OpInfo) and prints what differs, a line of JSON for each.

python torch_samples.py [--all] [op ...]: all samples, or a share of them; test_torch_samples.py runs it.
"""

from __future__ import annotations

import argparse
import copy
import functools
import inspect
import itertools
import json
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch_seen import Seen

import devtensor as dt
from devtensor._names import refusals

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
TOLERANCE = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}
DROPOUTS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
RANDOM = {
    "rand_like",
    "randn",
    "randn_like",
    "randint",
    "randint_like",
    "normal",
    "bernoulli",
    "multinomial",
    "nn.functional.rrelu",
}
RANDOM |= {f"nn.functional.{name}" for name in DROPOUTS}
RANDOM |= {f"nn.functional.fractional_max_pool{n}d" for n in (2, 3)}
UNSET = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}  # whatever the memory held


class NotThere(Exception):
    """The sample holds something that devtensor has no counterpart of."""


# ---------------------------------------------------------------- the same arguments for both


def duplicate(value: Any) -> Any:
    """Another sample with memory and strides like those of value."""
    return map_leaves(lambda leaf: copy.deepcopy(leaf.detach()) if isinstance(leaf, torch.Tensor) else leaf, value)


def map_leaves(change: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, dict):
        return {k: map_leaves(change, v) for k, v in value.items()}
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, (list, tuple)):
        return getattr(type(value), "_make", type(value))(map_leaves(change, v) for v in value)
    return change(value)


def to_ours(device: str, leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return array_of(leaf, device)
    if isinstance(leaf, torch.dtype):
        return dtype_of(leaf)
    if isinstance(leaf, torch.device):
        return dt.device(device)
    if isinstance(leaf, complex):
        raise NotThere("complex")
    if isinstance(leaf, torch.memory_format):
        return getattr(dt, str(leaf).removeprefix("torch."))
    if leaf is torch.strided:
        return dt.strided
    if isinstance(leaf, (torch.layout, torch.Generator)):
        raise NotThere(type(leaf).__name__)
    return leaf


def dtype_of(dtype: torch.dtype) -> dt.dtype:
    name = str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise NotThere("complex" if dtype.is_complex else name)
    return getattr(dt, name)


def array_of(x: torch.Tensor, device: str) -> dt.DeviceArray:
    dtype_of(x.dtype)
    if x.layout != torch.strided or x.is_meta:
        raise NotThere("meta" if x.is_meta else str(x.layout))
    if x.ndim > 8:
        raise NotThere("more than 8 dimensions")
    return dt.from_dlpack(copy.deepcopy(x.detach())).to(device)


def to_theirs(leaf: Any) -> Any:
    return torch.from_dlpack(leaf.cpu()) if isinstance(leaf, dt.DeviceArray) else leaf


# ---------------------------------------------------------------- the same function of both


def our_function(op: Any) -> Callable[..., Any] | None:
    """What devtensor calls op.op; where that is a function of the test suite, its text with devtensor for torch."""
    name = op.name.removeprefix("nn.functional.")
    home: Any = dt.nn.functional if op.name.startswith("nn.functional.") else dt
    if op.name.startswith("linalg."):
        home, name = dt.linalg, name.removeprefix("linalg.")
    found = getattr(home, name, None)
    if found is None and home is dt:
        found = getattr(dt.DeviceArray, name, None)
    if found is None:
        return None
    body = inspect.unwrap(op.op)
    if isinstance(body, types.FunctionType) and body.__module__.startswith("torch.testing"):
        names = {**body.__globals__, "torch": dt}
        return types.FunctionType(body.__code__, names, body.__name__, body.__defaults__, body.__closure__)
    return found if callable(found) else lambda x: getattr(x, name)


def variants(op: Any) -> Iterator[tuple[str, Callable[..., Any], Callable[..., Any]]]:
    """("function", theirs, ours), the method, the method in place."""
    ours = our_function(op)
    if ours is not None:
        yield "function", op.op, ours
    for label, theirs in (("method", op.method_variant), ("in place", op.inplace_variant)):
        name = getattr(theirs, "__name__", "")
        if isinstance(theirs, types.MethodDescriptorType) and hasattr(dt.DeviceArray, name):
            yield label, theirs, getattr(dt.DeviceArray, name)
    for alias in op.aliases:
        if hasattr(dt, alias.name):
            yield alias.name, alias.op, getattr(dt, alias.name)


def names_of(op: Any) -> str:
    return f"{op.name}/{op.variant_test_name}" if op.variant_test_name else op.name


# bmm/triton_optimized is bmm again, with other shapes for another compiler.
OPS = [
    op
    for op in op_db
    if our_function(op) is not None
    and op.variant_test_name != "triton_optimized"
    and op.name not in (*refusals.METHODS, *refusals.names())
]


# ---------------------------------------------------------------- samples


def samples(op: Any, dtype: torch.dtype, whole: bool) -> Iterator[Any]:
    """Each sample as (arguments, options). A generator that fails for the dtype ends."""
    maker = op.reference_inputs if whole else op.sample_inputs
    try:
        for sample in maker("cpu", dtype, requires_grad=False):
            yield (sample.input, *sample.args), dict(sample.kwargs)
    except Exception:
        return


def wrong_samples(op: Any) -> Iterator[Any]:
    if op.error_inputs_func is not None:
        for wrong in op.error_inputs("cpu"):
            sample = wrong.sample_input
            yield (sample.input, *sample.args), dict(sample.kwargs)


# ---------------------------------------------------------------- comparing


def answer(call: Callable[..., Any], sample: Any) -> Any:
    args, options = sample
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call(*args, **options)
        except Exception as error:
            return error


def leaves(value: Any) -> list[Any]:
    shape = isinstance(value, tuple) and all(isinstance(size, int) for size in value)
    if isinstance(value, (list, tuple)) and not shape:
        return list(itertools.chain.from_iterable(leaves(v) for v in value))
    return [value]


def short(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"


def lacking(error: BaseException) -> bool:
    """Whether the call has a form that devtensor does not have: no mismatch of dtypes, shapes or values."""
    return type(error) in (NotImplementedError, TypeError, AttributeError)


def compare(op: Any, variant: str, theirs: Callable[..., Any], ours: Callable[..., Any], sample: Any, dtype: str,
            device: str) -> Seen | None:  # fmt: skip
    saw = functools.partial(Seen, names_of(op), variant, dtype, sample=describe(sample))
    want = answer(theirs, duplicate(sample))
    try:
        given = map_leaves(functools.partial(to_ours, device), sample)
    except NotThere as lack:
        return None if isinstance(want, Exception) else saw("not there", str(lack))
    got = answer(ours, given)
    if isinstance(got, Exception):
        if isinstance(want, Exception):
            return None
        return saw("not there" if lacking(got) else "refused", short(got))
    try:
        got = map_leaves(to_theirs, got)
    except Exception as error:
        return None if isinstance(want, Exception) else saw("refused", short(error))
    if isinstance(want, Exception):
        return saw("accepted", short(want))
    return difference(op, theirs, sample, leaves(want), leaves(got), saw)


def _drops(sample: Any) -> bool:
    """Whether a sample asks for dropout, whose numbers are each framework's own."""
    return any(isinstance(part, dict) and part.get("dropout_p") for part in sample)


def difference(op: Any, theirs: Any, sample: Any, want: list[Any], got: list[Any], saw: Any) -> Seen | None:
    if len(want) != len(got):
        return saw("shape", f"{len(got)} results, not {len(want)}")
    for at, (w, g) in enumerate(zip(want, got, strict=True)):
        if not isinstance(w, torch.Tensor):
            if w != g and not (w != w and g != g):
                return saw("values", f"{g!r}, not {w!r}")
            continue
        if not isinstance(g, torch.Tensor):
            return saw("dtype", f"{type(g).__name__}, not a tensor")
        if w.dtype != g.dtype:
            return saw("dtype", f"{short_dtype(g)}, not {short_dtype(w)}")
        if w.shape != g.shape:
            return saw("shape", f"{tuple(g.shape)}, not {tuple(w.shape)}")
        if op.name in RANDOM | UNSET or _drops(sample):
            continue
        far = too_far(g, w, functools.partial(exact, theirs, sample, at))
        if far.any():
            n = int(far.sum())
            where = tuple(int(i) for i in far.nonzero()[0])
            return saw("values", f"{n} of {w.numel()}: {g[where].item()!r}, not {w[where].item()!r} at {where}")
    return None


def short_dtype(x: torch.Tensor) -> str:
    return str(x.dtype).removeprefix("torch.")


def too_far(got: torch.Tensor, want: torch.Tensor, exactly: Callable[[], torch.Tensor | None]) -> torch.Tensor:
    """Where got is not want: by torch.testing's tolerance, and farther than want from the result in float64."""
    if not want.is_floating_point():
        return got != want
    relative, absolute = TOLERANCE[short_dtype(want)]
    g, w = got.double(), want.double()
    far = ~torch.isclose(g, w, relative, absolute, equal_nan=True)
    if far.any():
        true = exactly()
        if true is not None and true.shape == want.shape:
            t = true.double()
            nearer = (g - t).abs() <= torch.maximum((w - t).abs(), absolute + relative * t.abs())
            far &= ~(nearer | (g.isnan() & t.isnan()) | (g == t))
    return far


def exact(theirs: Callable[..., Any], sample: Any, at: int) -> torch.Tensor | None:
    """Result number `at` with every float widened to float64."""

    def widened(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor) and leaf.is_floating_point():
            return leaf.detach().to(torch.float64)
        if isinstance(leaf, torch.dtype) and leaf.is_floating_point:
            return torch.float64
        return leaf

    found = answer(theirs, map_leaves(widened, duplicate(sample)))
    found = None if isinstance(found, Exception) else leaves(found)[at]
    return found if isinstance(found, torch.Tensor) else None


def describe(sample: Any) -> str:
    def text(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            values = (
                f"={leaf.tolist()}" if leaf.numel() <= 6 and leaf.layout == torch.strided and not leaf.is_meta else ""
            )
            return Text(f"{short_dtype(leaf)}{list(leaf.shape)}{values}")
        return leaf

    args, options = map_leaves(text, sample)
    return ", ".join([*map(repr, args), *(f"{k}={v!r}" for k, v in options.items())])


class Text(str):
    __repr__ = str.__str__


def overlapping(sample: Any) -> bool:
    """Whether two elements of an array share memory: a layout to read from, which no other device is given."""
    found: list[bool] = []
    map_leaves(lambda leaf: found.append(isinstance(leaf, torch.Tensor) and shares_memory(leaf)), sample)
    return any(found)


def shares_memory(x: torch.Tensor) -> bool:
    if x.layout != torch.strided or x.numel() < 2 or x.is_contiguous():
        return False
    extent = 1 + sum((size - 1) * step for size, step in zip(x.shape, x.stride(), strict=True))
    places = torch.as_strided(torch.arange(extent), x.shape, x.stride())
    return places.unique().numel() < x.numel()


def run_op(op: Any, dtype: str, whole: bool, most: int, share: int = 3) -> Iterator[Seen | None]:
    """For each comparison what differs or None: every variant of op over `most` samples, spread over all that it has.

    Every share-th sample runs on the simulated device too.
    """
    torch.manual_seed(0)
    found = list(itertools.islice(samples(op, getattr(torch, dtype), whole), 4000))
    if len(found) > most:
        found = [found[i * len(found) // most] for i in range(most)]
    if dtype == "float32":
        found += list(wrong_samples(op))
    if op.name.startswith("__r"):  # a method: of an array
        found = [(args, options) for args, options in found if isinstance(args[0], torch.Tensor)]
    for at, sample in enumerate(found):
        shared = overlapping(sample)
        for variant, theirs, ours in variants(op):
            if shared and variant == "in place":  # what is written last stays, whichever that is
                continue
            for device in ("cpu",) if shared or at % share else ("cpu", "cuda:0"):
                yield compare(op, variant, theirs, ours, sample, dtype, device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="reference inputs too, up to 200 of an op and dtype")
    parser.add_argument("ops", nargs="*")
    options = parser.parse_args()
    torch.set_num_threads(1)
    compared = agreed = 0
    for op, dtype in itertools.product(OPS, DTYPES):
        if options.ops and op.name not in options.ops:
            continue
        for seen in run_op(op, dtype, options.all, 200 if options.all else 16):
            compared += 1
            agreed += seen is None
            if seen is not None:
                print(json.dumps(asdict(seen)))
    dt.cuda.synchronize()
    print(json.dumps({"compared": compared, "agreed": agreed, "violations": dt._C._test.guard_violations()}))


if __name__ == "__main__":
    main()
