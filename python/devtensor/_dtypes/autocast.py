"""What ops do inside an autocast block: in which dtype each computes, and how its operands are cast.

The user's own calls are asked, and those of layers; what a composed op computes inside is not. The rules are PyTorch
2.13's: its lists for CUDA, and for the CPU what its ops return there.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from devtensor import _C
from devtensor._C import DeviceArray

_F = TypeVar("_F", bound=Callable[..., Any])

LOWER = "lower"  # computes in the dtype of the block
FLOAT32 = "float32"  # computes in float32, whose range sums, exponentials and losses need
WIDEST = "widest"  # computes in the widest dtype of its operands
REFUSED = "refused"  # its operands would lose too much
KEEP = "keep"  # computes in float32 where its operands differ, and gives the dtype of the first


def _both(rule: str, names: str) -> dict[str, tuple[str | None, str | None]]:
    return dict.fromkeys(names.split(), (rule, rule))


def _cuda(rule: str, names: str, cpu: str | None = None) -> dict[str, tuple[str | None, str | None]]:
    return dict.fromkeys(names.split(), (cpu, rule))


# For each op the rule on the CPU and on CUDA.
RULES: dict[str, tuple[str | None, str | None]] = {
    **_both(
        LOWER,
        "matmul mm bmm addmm baddbmm addbmm linear conv1d conv2d conv3d prelu einsum chain_matmul"
        " conv_transpose1d conv_transpose2d conv_transpose3d linalg.multi_dot linalg.vecdot"
        " scaled_dot_product_attention MultiheadAttention LSTM GRU RNN",
    ),
    **_cuda(LOWER, "mv addmv addr"),
    **_both(
        FLOAT32,
        "prod cdist poisson_nll_loss cosine_embedding_loss nll_loss cross_entropy hinge_embedding_loss kl_div l1_loss"
        " smooth_l1_loss huber_loss mse_loss margin_ranking_loss multilabel_margin_loss multilabel_soft_margin_loss"
        " soft_margin_loss triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits ctc_loss",
    ),
    **_cuda(
        FLOAT32,
        "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus cosine_similarity"
        " dist pdist renorm logsumexp interpolate softmax log_softmax cumsum cumprod norm sum linalg.vector_norm"
        " linalg.matrix_norm linalg.norm softmin",
    ),
    **_cuda(FLOAT32, "layer_norm group_norm rms_norm", cpu=KEEP),
    **_both(KEEP, "batch_norm instance_norm"),
    **_cuda(WIDEST, "addcdiv addcmul atan2 bilinear cross dot scatter_add"),
    "grid_sample": (FLOAT32, WIDEST),
    "tensordot": (LOWER, WIDEST),
    "trace": (FLOAT32, None),
    "quantile": (FLOAT32, None),
    "nanquantile": (FLOAT32, None),
    "avg_pool3d": (FLOAT32, None),
    "binary_cross_entropy": (FLOAT32, REFUSED),
}


class _Here(threading.local):
    """The state of a thread."""

    def __init__(self) -> None:
        self.dtypes: dict[str, _C.dtype] = {}  # of the kinds of device that are on
        self.depth = 0
        self.caching = True
        self.leaves: dict[int, tuple[DeviceArray, DeviceArray]] = {}  # by id: the leaf and its cast
        self.originals: dict[int, DeviceArray] = {}  # by the id of a cast: what it was made of, for explanations


here = _Here()


class Mode:
    """A block in which ops on these kinds of device choose these dtypes, whatever holds outside of it."""

    def __init__(self, dtypes: dict[str, _C.dtype], caching: bool) -> None:
        self.dtypes, self.caching = dtypes, caching
        self._outer: list[tuple[dict[str, _C.dtype], bool, bool]] = []

    def __enter__(self) -> None:
        self._outer.append((here.dtypes, here.caching, _C._autocast_on(bool(self.dtypes))))
        here.dtypes, here.caching = self.dtypes, self.caching
        if here.depth == 0:
            here.leaves.clear()
        here.depth += 1

    def __exit__(self, *_: object) -> None:
        here.depth = max(here.depth - 1, 0)  # a generator's block may end in another thread
        here.dtypes, here.caching, on = self._outer.pop()
        _C._autocast_on(on)
        if here.depth == 0:
            here.leaves.clear()


def current() -> Mode:
    """The mode that holds here: for a function that runs later, or in another thread."""
    return Mode(here.dtypes, here.caching)


@contextlib.contextmanager
def standing_for(originals: dict[int, Any]) -> Iterator[None]:
    """What stands for operands of the caller's, which explanations name: by the id of the cast."""
    outer = here.originals
    here.originals = originals
    try:
        yield
    finally:
        here.originals = outer


def original(array: Any) -> Any:
    """The operand that the caller passed, where array is what became of it."""
    return here.originals.get(id(array), array)


def _cast(array: DeviceArray, dtype: _C.dtype) -> DeviceArray:
    """array in dtype; recorded. The cast of a leaf is made once in a block: a weight that is used often."""
    if array.dtype == dtype:
        return array
    if not (here.caching and array.requires_grad and array.is_leaf and _C.is_grad_enabled()):
        return array.to(dtype)
    known = here.leaves.get(id(array))
    if known is None or known[1].dtype != dtype:
        here.leaves[id(array)] = known = (array, array.to(dtype))
    return known[1]


def _arrays(value: Any) -> Iterator[DeviceArray]:
    if isinstance(value, DeviceArray):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _arrays(one)


def mapped(value: Any, change: Callable[[DeviceArray], DeviceArray]) -> Any:
    """value with its arrays changed, also those in lists and tuples."""
    if isinstance(value, DeviceArray):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(mapped(one, change) for one in value)
    return value


def _rule(name: str, arrays: list[DeviceArray]) -> tuple[str | None, _C.dtype | None]:
    """The rule of an op on the device of its operands, and the dtype of the block; None if there is none."""
    kinds = {array.device for array in arrays}
    if len(kinds) != 1:
        return None, None  # the op refuses them, or has none
    kind = kinds.pop().type
    dtype = here.dtypes.get(kind)
    return (None, None) if dtype is None else (RULES[name][kind == "cuda"], dtype)


def _run(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """function(*args, **kwargs) by the rule of the op; NotImplemented where it has none here."""
    if kwargs.get("out") is not None:
        return NotImplemented
    arrays = [*_arrays(args), *_arrays(tuple(kwargs.values()))]
    rule, lower = _rule(name, arrays)
    if rule is not None and name in SOME and not arrays[0].is_cuda and not SOME[name](*args, **kwargs):
        return NotImplemented
    if rule is None or lower is None:
        return NotImplemented
    if rule == REFUSED:
        raise RuntimeError(
            f"{name} is unsafe to autocast: half types are too coarse for probabilities and their logarithms. Use "
            "binary_cross_entropy_with_logits (BCEWithLogitsLoss) without the sigmoid before it, or call it in "
            "autocast(enabled=False)."
        )
    floats = {array.dtype for array in arrays if array.dtype.is_floating_point}
    target = lower if rule == LOWER else _C.float32
    first = args[0] if args else kwargs.get("input", arrays[0])
    if rule == KEEP and any(array.dtype != _C.float32 for array in arrays if array is not first):
        return NotImplemented  # of the others some are written: no cast of them would be seen
    if len(floats) == 1 and rule in (WIDEST, KEEP):
        target = next(iter(floats))
    if _C.float64 in floats:  # never narrowed: alone it stays, beside others the op refuses it
        target = _C.float64
        floats = {target}
    before, outer = _C._autocast_on(False), here.originals
    here.originals = {}
    try:
        if floats <= {target}:
            return function(*args, **kwargs)

        def change(array: DeviceArray) -> DeviceArray:
            cast = _cast(array, target) if array.dtype.is_floating_point else array
            if cast is array:
                return array
            here.originals[id(cast)] = array
            kept.append(cast)
            return cast

        kept: list[DeviceArray] = []
        result = function(*mapped(args, change), **{key: mapped(value, change) for key, value in kwargs.items()})
        return result.to(first.dtype) if rule == KEEP else result
    finally:
        here.originals = outer
        _C._autocast_on(before)


def _native(name: str, arguments: dict[str, Any]) -> Any:
    """Asked by the compiled ops that have a rule."""
    caller = sys._getframe(1).f_globals.get("__name__", "")
    if caller.startswith(("devtensor._composed", "devtensor.linalg")):
        return NotImplemented
    return _run(name, getattr(_C, name), (), arguments)


# Composed ops whose rule on the CPU is for some of their calls: which, by their arguments.
SOME: dict[str, Callable[..., bool]] = {}


def autocasts(function: _F) -> _F:
    """A composed op that has a rule under its name."""
    name = function.__name__
    if function.__module__.startswith("devtensor.linalg"):
        name = f"linalg.{name}"
    if name not in RULES:
        raise KeyError(name)

    @functools.wraps(function)
    def _call(*args: Any, **kwargs: Any) -> Any:
        if not here.depth:
            return function(*args, **kwargs)
        result = _run(name, function, args, kwargs) if _C._autocast_on() else NotImplemented
        return function(*args, **kwargs) if result is NotImplemented else result

    return _call  # type: ignore[return-value]


def lowered(name: str, arrays: Sequence[Any]) -> Sequence[Any]:
    """Operands and parameters of a layer that has the rule LOWER; one cast for each array. None stays None."""
    if not here.depth or not _C._autocast_on():
        return arrays
    given = list(_arrays(tuple(arrays)))
    rule, dtype = _rule(name, given)
    if rule is None or dtype is None or any(array.dtype == _C.float64 for array in given):
        return arrays
    casts = {id(array): _cast(array, dtype) if array.dtype.is_floating_point else array for array in given}
    return [casts.get(id(array), array) for array in arrays]


_C._set_autocast(RULES, _native)
