"""Writes at the places that indices or a mask choose. Of places that are meant twice the last one stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number, _need_str
from devtensor._composed.arguments import broadcast_shape, dims_of, in_place, need_array, widened
from devtensor._composed.written import takes_out
from devtensor._errors import ShapeMismatchError


def _along(op: str, dim: int, x: DeviceArray) -> int:
    (d,) = dims_of(op, _need_int(op, "dim", dim), x.ndim, x)
    return d


def _vector(x: DeviceArray) -> DeviceArray:
    return x.reshape(1) if x.ndim == 0 else x


# ---------------------------------------------------------------- scatter


def _check_scatter(op: str, input: DeviceArray, dim: int, index: DeviceArray, src: DeviceArray | None) -> int:
    """All checks; the dimension."""
    need_array(op, "input", input)
    need_array(op, "index", index)
    names: tuple[str, ...] = ("input", "index")
    arrays: tuple[DeviceArray, ...] = (input, index)
    if src is not None:
        names, arrays = (*names, "src"), (*arrays, src)
    _C._check_devices(op, names, arrays)
    _C._check_indices(op, names, arrays, 1)
    if src is not None:
        _C._check_dtypes(op, names, arrays, 1)
    at = _along(op, dim, input)
    low, high = (0, 1) if input.ndim <= 1 else (input.ndim, input.ndim)
    for which in range(1, len(arrays)):
        _C._check_rank(op, names, arrays, which, low, high)
    most = [-1 if d == at or n <= input.shape[d] else input.shape[d] for d, n in enumerate(index.shape)]
    _C._check_shape(op, names, arrays, 1, most)
    if src is not None and src.ndim == index.ndim:
        least = [-1 if n <= have else n for n, have in zip(index.shape, src.shape, strict=True)]
        _C._check_shape(op, names, arrays, 2, least)
    elif src is not None and src.numel() < index.numel():
        _C._check_shape(op, names, arrays, 2, index.shape)
    return at


def _grid(index: DeviceArray, at: int) -> tuple[DeviceArray, ...]:
    """index along dimension `at`, and beside it where each of its elements stands: what x[...] takes."""
    n = index.ndim
    return tuple(
        index if d == at else _C.arange(size, device=index.device).reshape([-1 if k == d else 1 for k in range(n)])
        for d, size in enumerate(index.shape)
    )


def _part(src: DeviceArray, index: DeviceArray) -> DeviceArray:
    """The elements of src that index has elements for, in its shape."""
    if src.shape == index.shape:
        return src
    return _vector(src)[tuple(slice(0, n) for n in _vector(index).shape)]


def _scattered(
    target: DeviceArray, dim: int, index: DeviceArray, src: Any, value: float | None, reduce: str | None, copies: bool
) -> DeviceArray:
    op, called = "scatter", "value"
    if value is None:
        if src is None:
            raise TypeError(f"{op}() missing a required argument: 'src' or 'value'")
        if not isinstance(src, DeviceArray):
            src, value, called = None, src, "src"
    elif src is not None:
        raise TypeError(f"{op}() takes src or value, not both")
    number = 0 if value is None else _need_number(op, called, value)
    if reduce is not None and _need_str(op, "reduce", reduce) not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    at = _check_scatter(op, target, dim, index, src)
    if reduce == "multiply" and index.numel():
        factors = _C.full(index.shape, number, dtype=target.dtype, device=index.device) if src is None else src
        product = _joined("prod", target, at, index, _part(factors, index), True)
        return product if copies else target.copy_(product)
    if reduce == "add":
        added = _C.full(index.shape, number, dtype=target.dtype, device=index.device) if src is None else src
        return target.scatter_add(at, index, added) if copies else target.scatter_add_(at, index, added)
    result = target.clone() if copies else target
    if not index.numel():
        return result
    written = number if src is None else _part(src, index)
    _C._put_selected(op, _vector(result), _grid(_vector(index), at), written, False)
    return result


@takes_out
def scatter(
    input: DeviceArray,
    dim: int,
    index: DeviceArray,
    src: DeviceArray | float | None = None,
    *,
    value: float | None = None,
    reduce: str | None = None,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """input with result[i][index[i][j][k]][k] = src[i][j][k] for dim 1: a copy. Of several the last one stays.

    index, int64 or int32, has as many dimensions as input and src, and is nowhere larger than src, nor than input but
    in dim. src is an array of the dtype of input, or a number, which value is too; with reduce="add" it is added.
    Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, IndexError for an index out of range (a CUDA
    device skips it, and the next wait raises).

    >>> dt.scatter(dt.zeros(2, 3), 1, dt.tensor([[2], [0]]), 1.0)
    DeviceArray([[0., 0., 1.],
                 [1., 0., 0.]], device='cpu', dtype=float32)
    """
    return _scattered(input, dim, index, src, value, reduce, True)


def scatter_(
    input: DeviceArray,
    dim: int,
    index: DeviceArray,
    src: DeviceArray | float | None = None,
    *,
    value: float | None = None,
    reduce: str | None = None,
) -> DeviceArray:
    """scatter, written into input.

    >>> dt.zeros(3).scatter_(0, dt.tensor([1]), dt.tensor([5.0]))
    DeviceArray([0., 5., 0.], device='cpu', dtype=float32)
    """
    return _scattered(input, dim, index, src, value, reduce, False)


# ---------------------------------------------------------------- scatter_reduce


def _reduced(
    input: DeviceArray, dim: int, index: DeviceArray, src: DeviceArray, reduce: str, include_self: bool
) -> DeviceArray:
    op = "scatter_reduce"
    need_array(op, "src", src)
    at = _check_scatter(op, input, dim, index, src)
    include_self = _need_bool(op, "include_self", include_self)
    if _need_str(op, "reduce", reduce) not in ("sum", "mean", "prod", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}.")
    if not index.numel():
        return input.clone()
    part = _part(src, index)
    if reduce == "prod":
        return _joined(reduce, input, at, index, part, include_self)
    if reduce in ("amax", "amin"):
        return _extremes(reduce, input, at, index, part, include_self)
    start = input if include_self else scatter(input, at, index, 0)
    total = start.scatter_add(at, index, part)
    if reduce == "sum":
        return total
    first = _C.ones_like(input) if include_self else scatter(_C.ones_like(input), at, index, 0)
    count = first.scatter_add(at, index, _C.ones_like(part))
    return total / count if input.dtype.is_floating_point else total.floor_divide(count)


_JOINS = {"prod": _C.logical_and, "amax": _C.logical_or, "amin": _C.logical_and}  # of bools
_JOIN = {"prod": _C.mul, "amax": _C.maximum, "amin": _C.minimum}


def _joined(
    reduce: str, input: DeviceArray, at: int, index: DeviceArray, part: DeviceArray, include_self: bool
) -> DeviceArray:
    """What goes to one place side by side, then joined in as many steps as the number of elements has bits."""
    join = (_JOINS if input.dtype == _C.bool else _JOIN)[reduce]
    flat = widened(input).flatten()
    places = _ordinals(input).reshape(_vector(input).shape).gather(at, _vector(index)).flatten()
    order = places.argsort(stable=True)
    places, values = places.index_select(0, order), widened(part).flatten().index_select(0, order)
    step = 1
    while step < places.shape[0]:
        same = places[step:] == places[:-step]
        values = _C.cat([values[:step], _C.where(same, join(values[step:], values[:-step]), values[step:])])
        step *= 2
    last = _C.ones_like(places, dtype=_C.bool)  # of each place: it has all of it, and the gradient
    last[:-1] = places[1:] != places[:-1]
    result = _C._put_selected("scatter", flat.clone(), places, _C.where(last, values, values.detach()))
    if include_self:
        reached = _C._put_selected("scatter", _C.zeros_like(flat, dtype=_C.bool), places, True)
        result = _C.where(reached, join(flat, result), result)
    return result.reshape(input.shape).to(input.dtype)


def _extremes(
    reduce: str, input: DeviceArray, at: int, index: DeviceArray, part: DeviceArray, include_self: bool
) -> DeviceArray:
    """The same; a gradient is shared by all that are as large, or as small."""
    result = _joined(reduce, input.detach(), at, index, part.detach(), include_self)
    if not (_C.is_grad_enabled() and (input.requires_grad or part.requires_grad)):
        return result
    own = input.detach() == result
    if not include_self:
        own = own & scatter(_C.ones_like(own), at, index, 0)
    best = part.detach() == result.reshape(_vector(input).shape).gather(at, _vector(index)).reshape(part.shape)
    count = own.to(input.dtype).scatter_add(at, index, best.to(input.dtype))
    chosen = _C.where(own, input, 0.0).scatter_add(at, index, _C.where(best, part, 0.0))
    return result + (chosen - chosen.detach()) / count


@takes_out
def scatter_reduce(
    input: DeviceArray,
    dim: int,
    index: DeviceArray,
    src: DeviceArray,
    reduce: str,
    *,
    include_self: bool = True,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """Of all src that go to one place, as in scatter, their "sum", "mean", "prod", "amax" or "amin": a copy of input.

    include_self: what input holds there counts too. Other places stay as they are. Sums are formed in the order of src,
    products in pairs. Parameters and errors as in scatter; RuntimeError for another reduce.

    >>> dt.scatter_reduce(dt.zeros(2), 0, dt.tensor([0, 0]), dt.tensor([1.0, 3.0]), "mean", include_self=False)
    DeviceArray([2., 0.], device='cpu', dtype=float32)
    """
    return _reduced(input, dim, index, src, reduce, include_self)


scatter_reduce_ = in_place(scatter_reduce)


# ---------------------------------------------------------------- along one dimension


def _check_along(op: str, target: DeviceArray, dim: int, index: DeviceArray, source: DeviceArray) -> int:
    """The dimension along which index places the entries of source."""
    names, arrays = ("input", "index", "source"), (target, index, source)
    for name, array in zip(names, arrays, strict=True):
        need_array(op, name, array)
    _C._check_devices(op, names, arrays)
    _C._check_indices(op, names, arrays, 1)
    _C._check_dtypes(op, names, arrays, 1)
    at = _along(op, dim, target)
    _C._check_rank(op, names, arrays, 1, 0, 1)
    shape = list(target.shape)
    if target.ndim:
        shape[at] = index.numel()
    else:
        _C._check_shape(op, names, arrays, 1, [1] * index.ndim)
    _C._check_shape(op, names, arrays, 2, shape)
    return at


def _copied(target: DeviceArray, dim: int, index: DeviceArray, source: DeviceArray, copies: bool) -> DeviceArray:
    op, at = "index_copy", _check_along("index_copy", target, dim, index, source)
    result = target.clone() if copies else target
    place = (*[slice(None)] * at, _vector(index))
    _C._put_selected(op, _vector(result), place, _vector(source), False)
    return result


@takes_out
def index_copy(
    input: DeviceArray, dim: int, index: DeviceArray, source: DeviceArray, *, out: DeviceArray | None = None
) -> DeviceArray:
    """input with the entries of source in place of those of dimension dim at the places of index, a vector: a copy.

    source has the dtype of input, and its shape but along dim that of index, int64 or int32. Negative indices are
    refused. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, IndexError for an index out of range (a
    CUDA device skips it, and the next wait raises).

    >>> dt.index_copy(dt.zeros(3, 2), 0, dt.tensor([2]), dt.ones(1, 2))
    DeviceArray([[0., 0.],
                 [0., 0.],
                 [1., 1.]], device='cpu', dtype=float32)
    """
    return _copied(input, dim, index, source, True)


def index_copy_(input: DeviceArray, dim: int, index: DeviceArray, source: DeviceArray) -> DeviceArray:
    """index_copy, written into input.

    >>> dt.zeros(3).index_copy_(0, dt.tensor([1]), dt.tensor([5.0]))
    DeviceArray([0., 5., 0.], device='cpu', dtype=float32)
    """
    return _copied(input, dim, index, source, False)


@takes_out
def index_reduce(
    input: DeviceArray,
    dim: int,
    index: DeviceArray,
    source: DeviceArray,
    reduce: str,
    *,
    include_self: bool = True,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """Of all entries of source that index, a vector, sends to one place of dimension dim, what scatter_reduce makes.

    reduce: "prod", "mean", "amax" or "amin". source is as in index_copy, with its errors, and RuntimeError for another
    reduce. A copy of input.

    >>> dt.index_reduce(dt.ones(2), 0, dt.tensor([1, 1]), dt.tensor([2.0, 3.0]), "prod")
    DeviceArray([1., 6.], device='cpu', dtype=float32)
    """
    if _need_str("index_reduce", "reduce", reduce) not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either prod, mean, amax or amin, got {reduce}.")
    include_self = _need_bool("index_reduce", "include_self", include_self)
    at = _check_along("index_reduce", input, dim, index, source)
    places = _vector(index).reshape([-1 if d == at else 1 for d in range(source.ndim)]).expand(source.shape)
    return _reduced(input, at, places, source, reduce, include_self)


index_reduce_ = in_place(index_reduce)


def _filled(target: DeviceArray, dim: int, index: DeviceArray, value: DeviceArray | float, copies: bool) -> DeviceArray:
    op = "index_fill"
    need_array(op, "input", target)
    need_array(op, "index", index)
    names: tuple[str, ...] = ("input", "index")
    arrays: tuple[DeviceArray, ...] = (target, index)
    if isinstance(value, DeviceArray):
        names, arrays = (*names, "value"), (*arrays, value)
    else:
        value = _need_number(op, "value", value)
    _C._check_devices(op, names, arrays)
    _C._check_indices(op, names, arrays, 1)
    at = _along(op, dim, target)
    _C._check_rank(op, names, arrays, 1, 0, 1)
    if len(arrays) == 3:
        _C._check_in_place(op, names, arrays, arrays[2].dtype, target.shape)
        _C._check_rank(op, names, arrays, 2, 0, 0)
    result = target.clone() if copies else target
    entries, places = _vector(result), _vector(index)
    if isinstance(value, DeviceArray) and value.requires_grad and _C.is_grad_enabled():
        mask = _C.zeros(entries.shape[at], dtype=_C.bool, device=target.device)
        _C._put_selected(op, mask, (places,), True)  # an index that stands twice counts once
        entries.masked_fill_(mask.reshape(-1, *[1] * (entries.ndim - at - 1)), value)
    else:
        _C._put_selected(op, entries, (*[slice(None)] * at, places), value)
    return result


def index_fill(input: DeviceArray, dim: int, index: DeviceArray, value: DeviceArray | float) -> DeviceArray:
    """input with value in all entries of dimension dim at the places of index, a vector: a copy.

    value is a number or a 0-dimensional array on the same device. Negative indices count from the end. Raises
    DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, IndexError for an index out of range (a CUDA device
    skips it, and the next wait raises).

    >>> dt.index_fill(dt.zeros(2, 3), 1, dt.tensor([0, 2]), 1)
    DeviceArray([[1., 0., 1.],
                 [1., 0., 1.]], device='cpu', dtype=float32)
    """
    return _filled(input, dim, index, value, True)


def index_fill_(input: DeviceArray, dim: int, index: DeviceArray, value: DeviceArray | float) -> DeviceArray:
    """index_fill, written into input.

    >>> dt.zeros(3).index_fill_(0, dt.tensor([1]), 5)
    DeviceArray([0., 5., 0.], device='cpu', dtype=float32)
    """
    return _filled(input, dim, index, value, False)


# ---------------------------------------------------------------- several arrays of indices


def _ordinals(x: DeviceArray) -> DeviceArray:
    """Which element stands where, counted from 0."""
    return _C.arange(x.numel(), device=x.device).reshape(x.shape)


def _put_at(
    target: DeviceArray, indices: Sequence[DeviceArray | None], values: DeviceArray, accumulate: bool, copies: bool
) -> DeviceArray:
    op = "index_put"
    names: tuple[str, ...] = ("input", "values")
    arrays: tuple[DeviceArray, ...] = (target, values)
    need_array(op, "input", target)
    need_array(op, "values", values)
    accumulate = _need_bool(op, "accumulate", accumulate)
    if not isinstance(indices, (tuple, list)) or not any(isinstance(i, DeviceArray) for i in indices):
        raise TypeError(f"{op}(): argument 'indices' must be a tuple of DeviceArrays, not {_C._shown(indices)}")
    given = [(f"indices[{k}]", i) for k, i in enumerate(indices) if i is not None]
    for name, index in given:
        need_array(op, name, index)
    names += tuple(name for name, _ in given)
    arrays += tuple(index for _, index in given)
    _C._check_devices(op, names, arrays)
    for which in range(2, len(arrays)):
        _C._check_indices(op, names, arrays, which, True)
    _C._check_dtypes(op, names[:2], arrays[:2])
    place = tuple(slice(None) if i is None else i for i in indices)
    result = target.clone() if copies else target
    if not accumulate:
        return _C._put_selected(op, result, place, values)
    places = _C._get_selected(op, _ordinals(target), place)
    spread = [-1] * places.ndim
    if values.ndim <= places.ndim:
        ends = zip(values.shape, places.shape[places.ndim - values.ndim :], strict=True)
        spread = [own if own == 1 else size for own, size in ends]
    _C._check_shape(op, names, arrays, 1, spread)
    added = values.expand(places.shape).flatten()
    flat = target.reshape(-1).index_add(0, places.flatten(), added)
    total = flat.reshape(target.shape)
    return total if copies else target.copy_(total)


def index_put(
    input: DeviceArray, indices: Sequence[DeviceArray | None], values: DeviceArray, accumulate: bool = False
) -> DeviceArray:
    """A copy of input with copy[indices] = values; with accumulate each of values is added, in their order.

    indices: arrays of int64, int32 or bool, None for all of a dimension. values has the dtype of input, and a shape
    that broadcasts to that of input[indices]. A mask on a CUDA device waits for its count. Raises DeviceMismatchError,
    DTypeMismatchError, ShapeMismatchError, IndexError for an index out of range (a CUDA device skips it, and the next
    wait raises).

    >>> dt.index_put(dt.zeros(3), (dt.tensor([1, 1]),), dt.tensor([2.0, 3.0]), accumulate=True)
    DeviceArray([0., 5., 0.], device='cpu', dtype=float32)
    """
    return _put_at(input, indices, values, accumulate, True)


def index_put_(
    input: DeviceArray, indices: Sequence[DeviceArray | None], values: DeviceArray, accumulate: bool = False
) -> DeviceArray:
    """index_put, written into input.

    >>> dt.zeros(3).index_put_((dt.tensor([1]),), dt.tensor(2.0))
    DeviceArray([0., 2., 0.], device='cpu', dtype=float32)
    """
    return _put_at(input, indices, values, accumulate, False)


def _put(target: DeviceArray, index: DeviceArray, source: DeviceArray, accumulate: bool) -> DeviceArray:
    op, names, arrays = "put", ("input", "index", "source"), (target, index, source)
    for name, array in zip(names, arrays, strict=True):
        need_array(op, name, array)
    accumulate = _need_bool(op, "accumulate", accumulate)
    _C._check_devices(op, names, arrays)
    _C._check_indices(op, names, arrays, 1)
    _C._check_dtypes(op, names, arrays, 1)
    if source.numel() != index.numel():
        _C._check_shape(op, names, arrays, 2, index.shape)
    flat, place, put_in = target.reshape(-1), index.reshape(-1), source.reshape(-1)
    if accumulate:
        order = _C.arange(flat.shape[0], device=flat.device)
        total = flat.index_add(0, _C._get_selected(op, order, place), put_in)
    else:
        total = _C._put_selected(op, flat.clone(), place, put_in)
    return total.reshape(target.shape)


def put(input: DeviceArray, index: DeviceArray, source: DeviceArray, accumulate: bool = False) -> DeviceArray:
    """A copy of input, of which as one row the places of index get the elements of source; negative ones from its end.

    source has the dtype of input and as many elements as index; with accumulate they are added, in their order. Raises
    DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, IndexError for an index out of range (a CUDA device
    skips it, and the next wait raises).

    >>> dt.put(dt.zeros(2, 2), dt.tensor([3]), dt.tensor([5.0]))
    DeviceArray([[0., 0.],
                 [0., 5.]], device='cpu', dtype=float32)
    """
    return _put(input, index, source, accumulate)


put_ = in_place(put)


def _mask_filled(target: DeviceArray, mask: DeviceArray, source: DeviceArray, copies: bool) -> DeviceArray:
    op, names, arrays = "masked_scatter", ("input", "mask", "source"), (target, mask, source)
    for name, array in zip(names, arrays, strict=True):
        need_array(op, name, array)
    _C._check_devices(op, names, arrays)
    if mask.dtype != _C.bool:
        _C._fail_dtype(op, names, arrays, 1, "bool")
    _C._check_dtypes(op, names, arrays, 1)
    try:
        _C._check_broadcast(op, names[:2], arrays[:2])
    except ShapeMismatchError:  # which lists source too
        _C._check_broadcast(op, names, arrays)
        raise
    shape = broadcast_shape(target, mask)
    if copies:
        result = target.expand(shape).clone()
    else:
        _C._check_in_place(op, names, arrays, target.dtype, shape)
        result = target
    place = mask.expand(shape).nonzero(as_tuple=True)
    count = place[0].shape[0]
    if count > source.numel():
        text = f"Number of elements of source < number of ones in mask ({op}: source {source.numel()}, mask {count})"
        raise _C._explained(op, names, arrays, "shape-mismatch", ShapeMismatchError(text), 2)
    if count:
        _C._put_selected(op, _vector(result), place, source.flatten()[:count])
    return result


def masked_scatter(input: DeviceArray, mask: DeviceArray, source: DeviceArray) -> DeviceArray:
    """input, but where mask is True the elements of source, one after the other: a copy in the broadcast shape of both.

    mask is bool, source of the dtype of input, with as many elements at least as mask has True. On a CUDA device this
    waits for their number, 8 bytes. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError.

    >>> dt.masked_scatter(dt.zeros(3), dt.tensor([True, False, True]), dt.tensor([1.0, 2.0]))
    DeviceArray([1., 0., 2.], device='cpu', dtype=float32)
    """
    return _mask_filled(input, mask, source, True)


def masked_scatter_(input: DeviceArray, mask: DeviceArray, source: DeviceArray) -> DeviceArray:
    """masked_scatter, written into input.

    >>> dt.zeros(3).masked_scatter_(dt.tensor([True, False, True]), dt.tensor([1.0, 2.0]))
    DeviceArray([1., 0., 2.], device='cpu', dtype=float32)
    """
    return _mask_filled(input, mask, source, False)


__all__ = [
    "index_copy",
    "index_fill",
    "index_put",
    "index_reduce",
    "masked_scatter",
    "put",
    "scatter",
    "scatter_reduce",
]
METHODS = (
    index_copy,
    index_fill,
    index_put,
    index_reduce,
    masked_scatter,
    put,
    scatter,
    scatter_reduce,
    index_copy_,
    index_fill_,
    index_put_,
    index_reduce_,
    masked_scatter_,
    put_,
    scatter_,
    scatter_reduce_,
)
