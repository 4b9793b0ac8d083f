"""Ops made of compiled ones, with the checks and errors of those. They move nothing between devices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray

_HALVES = (_C.float16, _C.bfloat16)


def _wide(x: DeviceArray) -> DeviceArray:
    """The dtype that sums are formed in: float32 for the half types."""
    return x.to(_C.float32) if x.dtype in _HALVES else x


def _dims(op: str, dim: Any, ndim: int, input: DeviceArray | None = None) -> tuple[int, ...]:
    """dim, an int, some of them or None for all, counted from the front. Errors speak of input."""
    if dim is None:
        return tuple(range(ndim))
    wanted = (dim,) if isinstance(dim, int) else tuple(dim)
    most = max(ndim, 1)
    for d in wanted:
        if not -most <= d < most:
            text = f"Dimension out of range (expected to be in range of [{-most}, {most - 1}], but got {d})"
            raise _C._explained(op, ("input",), (input,), "dimension-out-of-range", IndexError(text))
    found = tuple(d % most for d in wanted)
    for d in found:
        if found.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims of {op}")
    return found or tuple(range(ndim))


def _one_of(op: str, a: Any, b: Any, names: str) -> Any:
    if a is not None and b is not None:
        raise TypeError(f"{op}() got multiple values for argument '{names}'")
    return b if a is None else a


def is_tensor(obj: object) -> bool:
    """Whether obj is a DeviceArray."""
    return isinstance(obj, DeviceArray)


# ---------------------------------------------------------------- statistics


def _variance(
    op: str,
    input: DeviceArray,
    dim: Any,
    unbiased: bool | None,
    keepdim: bool,
    correction: float | None,
    axis: Any,
    keepdims: bool | None,
) -> DeviceArray:
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, unbiased = None, dim
    _C._check(op, ("input",), (input,))
    if unbiased is not None and correction is not None:
        raise TypeError(f"{op}() takes unbiased or correction, not both")
    lost = (1 if unbiased is None else int(unbiased)) if correction is None else correction
    dims = _dims(op, _one_of(op, dim, axis, "dim"), input.ndim, input)
    keep = keepdim if keepdims is None else keepdims
    x = _wide(input)
    count = math.prod(x.shape[d] for d in dims) if x.ndim else 1
    if x.ndim:
        distance = x - (x.sum(dims, keepdim=True) / count if count else x.sum(dims, keepdim=True))
        total = distance.square().sum(dims, keepdim=keep)
    else:
        total = (x - x).square()
    rest = max(count - lost, 0)
    return total / rest if rest else total / _C.zeros_like(total)


def var(
    input: DeviceArray,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Any = None,
    keepdims: bool | None = None,
) -> DeviceArray:
    """Variance over the given dimensions, all by default: the sum of squared distances to the mean over n - correction.

    Floats only, computed in float32 for the half types; correction is 1 by default (unbiased=True), NaN comes of too
    few elements. Raises DTypeMismatchError for integers, IndexError for a dim out of range.
    """
    return _variance("var", input, dim, unbiased, keepdim, correction, axis, keepdims).to(input.dtype)


def std(
    input: DeviceArray,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Any = None,
    keepdims: bool | None = None,
) -> DeviceArray:
    """Standard deviation over the given dimensions: the square root of var, with its parameters and errors."""
    return _variance("std", input, dim, unbiased, keepdim, correction, axis, keepdims).sqrt().to(input.dtype)


def logsumexp(input: DeviceArray, dim: Any, keepdim: bool = False, *, keepdims: bool | None = None) -> DeviceArray:
    """log(sum(exp(x))) over the given dimensions, without overflow.

    Floats only. Raises DTypeMismatchError for integers, IndexError for a dim out of range.
    """
    _C._check("logsumexp", ("input",), (input,))
    keep = keepdim if keepdims is None else keepdims
    if input.ndim == 0:
        _dims("logsumexp", dim, 0, input)
        return input.clone()
    dims = _dims("logsumexp", dim, input.ndim, input)
    x = _wide(input)
    if any(x.shape[d] == 0 for d in dims):
        return x.exp().sum(dims, keepdim=keep).log().to(input.dtype)
    most = x.amax(dims, keepdim=True)
    most = _C.where(most.isfinite(), most, 0.0)
    result = (x - most).exp().sum(dims, keepdim=True).log() + most
    return (result if keep else result.squeeze(dims)).to(input.dtype)


def norm(
    input: DeviceArray,
    p: float | str | None = "fro",
    dim: Any = None,
    keepdim: bool = False,
    *,
    axis: Any = None,
    keepdims: bool | None = None,
) -> DeviceArray:
    """The vector norm over the given dimensions: sum(abs(x) ** p) ** (1 / p); "fro" is 2, inf the largest element.

    Floats only. Raises DTypeMismatchError for integers, IndexError for a dim out of range, NotImplementedError for
    "nuc".
    """
    _C._check("norm", ("input",), (input,))
    if p == "nuc":
        raise NotImplementedError("norm(): the nuclear norm is not there")
    keep = keepdim if keepdims is None else keepdims
    order = 2.0 if p in ("fro", None) else float(p)
    x = _wide(input).abs()
    dims = _dims("norm", _one_of("norm", dim, axis, "dim"), x.ndim, input)
    if x.ndim == 0:
        x, dims, keep = x.reshape(1), (0,), False
    if order == math.inf:
        result = x.amax(dims, keepdim=keep)
    elif order == -math.inf:
        result = x.amin(dims, keepdim=keep)
    elif order == 0:
        result = (x != 0).sum(dims, keepdim=keep).to(x.dtype)
    elif order == 1:
        result = x.sum(dims, keepdim=keep)
    elif order == 2:
        result = x.square().sum(dims, keepdim=keep).sqrt()
    else:
        result = (x**order).sum(dims, keepdim=keep) ** (1.0 / order)
    return result.to(input.dtype)


# ---------------------------------------------------------------- shape


def flip(input: DeviceArray, dims: int | Sequence[int], *more: int) -> DeviceArray:
    """The elements in reverse along the given dimensions: a copy.

    Raises IndexError for a dim out of range.
    """
    wanted = (dims, *more) if isinstance(dims, int) else tuple(dims)
    result = input.clone()
    for d in _dims("flip", wanted, input.ndim, input) if wanted else ():
        if result.ndim and result.shape[d] > 1:
            result = _C.cat([result.narrow(d, i, 1) for i in reversed(range(result.shape[d]))], d)
    return result


def pad(input: DeviceArray, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> DeviceArray:
    """The array with elements added at its edges; negative numbers take some away.

    pad counts from the last dimension: (left, right, top, bottom, ...). mode: "constant" with value (0 by default),
    "reflect" without the edge itself, "replicate" its edge, "circular" the other side. Raises ShapeMismatchError where
    pad does not fit the shape, NotImplementedError for another mode.
    """
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    amounts = [int(n) for n in pad]
    names, arrays = ("input",), (input,)
    if len(amounts) % 2:
        raise RuntimeError(f"Padding length must be divisible by 2, but got {len(amounts)}")
    _C._check_rank("pad", names, arrays, 0, len(amounts) // 2, 64)
    if mode != "constant" and value not in (None, 0, 0.0):
        raise ValueError(f'Padding mode "{mode}" doesn\'t take in value argument')
    sides = [(input.ndim - 1 - k, amounts[2 * k], amounts[2 * k + 1]) for k in range(len(amounts) // 2)]
    for d, before, after in sides:
        size, most = input.shape[d], max(before, after)
        wrong = size + before + after < 0
        wrong |= mode == "reflect" and most >= max(size, 1) and most > 0
        wrong |= mode == "replicate" and size == 0 and most > 0
        wrong |= mode == "circular" and most > size
        if wrong:
            wanted = [-1] * input.ndim
            wanted[d] = most + 1 if mode == "reflect" else most if mode == "circular" else max(-before - after, 1)
            _C._check_shape("pad", names, arrays, 0, wanted)
    if mode == "constant":
        return _pad_constant(input, sides, 0 if value is None else value)
    result = input
    for d, before, after in sides:
        if before or after:
            size = result.shape[d]
            places = [_source(i, size, mode) for i in range(-before, size + after)]
            result = _C.cat([result.narrow(d, i, n) for i, n in _runs(places)], d) if places else result.narrow(d, 0, 0)
    return result.clone() if result is input else result


def _pad_constant(x: DeviceArray, sides: list[tuple[int, int, int]], value: float) -> DeviceArray:
    shape, inner = list(x.shape), x
    for d, before, after in sides:
        shape[d] += before + after
        start, stop = max(-before, 0), x.shape[d] - max(-after, 0)
        inner = inner.narrow(d, min(start, x.shape[d]), max(stop - start, 0))
    result = _C.full(shape, value, dtype=x.dtype, device=x.device)
    target = result
    for d, before, _ in sides:
        target = target.narrow(d, min(max(before, 0), shape[d]), inner.shape[d])
    target.copy_(inner)
    return result


def _source(i: int, size: int, mode: str) -> int:
    """Which element stands at place i, which may lie outside."""
    if mode == "circular":
        return i % size
    if mode == "reflect":
        i = abs(i)
        return 2 * (size - 1) - i if i >= size else i
    return min(max(i, 0), size - 1)


def _runs(places: list[int]) -> list[tuple[int, int]]:
    """Ascending runs of places as (first, length)."""
    found: list[tuple[int, int]] = []
    for place in places:
        if found and place == sum(found[-1]):
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((place, 1))
    return found
