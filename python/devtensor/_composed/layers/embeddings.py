"""Rows of a matrix by index, and their sums, means and largest numbers in bags."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number
from devtensor._composed.arguments import misshapen, need_array, widened
from devtensor._composed.reductions.groups import searchsorted
from devtensor._composed.reductions.moments import norm
from devtensor.autograd.function import Function, FunctionCtx
from devtensor.autograd.grad_mode import no_grad

Mode: TypeAlias = Literal["sum", "mean", "max"]


def _limit_norms(op: str, index: DeviceArray, weight: DeviceArray, max_norm: float, norm_type: float) -> None:
    """Scales the rows of weight that index names, and whose norm is above max_norm, to it, in place."""
    with no_grad():
        flat = index.reshape(-1)
        rows = _C.embedding(flat, weight)
        wide = widened(rows)
        length = norm(wide, norm_type, 1, keepdim=True)
        scaled = _C.where(length > max_norm, wide * (max_norm / (length + 1e-7)), wide)
        weight[flat] = scaled.to(weight.dtype)


class _ByFrequency(Function):
    """rows as they are; the gradient of each is divided by how often its index comes."""

    @staticmethod
    def forward(ctx: FunctionCtx, rows: DeviceArray, times: DeviceArray) -> DeviceArray:
        ctx.save_for_backward(times)
        return rows.clone()

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Any) -> Any:
        (times,) = ctx.saved_tensors
        return grad / times, None


def _by_frequency(rows: DeviceArray, index: DeviceArray, count: int) -> DeviceArray:
    flat = index.reshape(-1)
    ones = _C.ones(flat.shape, dtype=rows.dtype, device=rows.device)
    times = _C.index_add(_C.zeros(count, dtype=rows.dtype, device=rows.device), 0, flat, ones)
    result: DeviceArray = _ByFrequency.apply(rows, _C.take(times, index.to(_C.int64)).unsqueeze(-1))
    return result


def _padding(op: str, padding_idx: int | None, count: int) -> int | None:
    """padding_idx from 0. Raises ValueError for a row that is not there."""
    if padding_idx is None:
        return None
    padding_idx = _need_int(op, "padding_idx", padding_idx)
    if not -count <= padding_idx < count:
        raise ValueError(f"{op}(): padding_idx must be within the {count} rows of weight, but got {padding_idx}")
    return padding_idx % count


def embedding(
    input: DeviceArray,
    weight: DeviceArray,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> DeviceArray:
    """The rows of weight (n, d) at the indices in input, int64 or int32 of any shape: (*, d).

    The row padding_idx gets no gradient. max_norm: rows of a larger norm_type-norm are first scaled to it, in weight.
    scale_grad_by_freq: the gradient of a row is divided by how often input names it. sparse changes nothing. Raises
    DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, ValueError for a padding_idx that is no row, IndexError
    for an index out of range: on a CUDA device the next wait raises it, and zeros are read there.

    >>> F.embedding(dt.tensor([1, 0]), dt.tensor([[1.0, 2.0], [3.0, 4.0]]))
    DeviceArray([[3., 4.],
                 [1., 2.]], device='cpu', dtype=float32)
    """
    op = "embedding"
    _need_bool(op, "sparse", sparse)
    scale_grad_by_freq = _need_bool(op, "scale_grad_by_freq", scale_grad_by_freq)
    norm_type = _need_number(op, "norm_type", norm_type)
    if max_norm is not None:
        max_norm = _need_number(op, "max_norm", max_norm)
        with no_grad():
            _C.embedding(input, weight)  # checks
        _limit_norms(op, input, weight, max_norm, norm_type)
    found = _C.embedding(input, weight)
    padding = _padding(op, padding_idx, weight.shape[0])
    if not found.requires_grad:
        return found
    if scale_grad_by_freq:
        found = _by_frequency(found, input, weight.shape[0])
    if padding is not None:
        found = _C.where((input == padding).unsqueeze(-1), found.detach(), found)
    return found


# ---------------------------------------------------------------- bags


def embedding_bag(
    input: DeviceArray,
    weight: DeviceArray,
    offsets: DeviceArray | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: Mode = "mean",
    sparse: bool = False,
    per_sample_weights: DeviceArray | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> DeviceArray:
    """The sum, mean or largest number, by mode, of the rows of weight (n, d) that each bag of indices names: (bags, d).

    A row of input (bags, size) is a bag; with offsets (bags) input is (count), and a bag begins at each offset.
    include_last_offset: the last one only ends the bag before. The row padding_idx counts nowhere, and a bag without
    rows gives zeros. per_sample_weights, like input, are factors of a sum. max_norm, norm_type, scale_grad_by_freq and
    sparse are those of embedding. Indices and offsets are int64 or int32, weights floats of one dtype, all on one
    device. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, ValueError, NotImplementedError for
    per_sample_weights in another mode, and on the cpu IndexError for offsets that do not begin at 0 or go too far.

    >>> F.embedding_bag(dt.tensor([0, 1, 1]), dt.tensor([[1.0], [3.0]]), dt.tensor([0, 2]))
    DeviceArray([[2.],
                 [3.]], device='cpu', dtype=float32)
    """
    op = "embedding_bag"
    names = ("input", "weight", "offsets", "per_sample_weights")
    arrays = (input, weight, offsets, per_sample_weights)
    scale_grad_by_freq = _need_bool(op, "scale_grad_by_freq", scale_grad_by_freq)
    include_last_offset = _need_bool(op, "include_last_offset", include_last_offset)
    norm_type, sparse = _need_number(op, "norm_type", norm_type), _need_bool(op, "sparse", sparse)
    check_mode(op, mode, scale_grad_by_freq, sparse)
    for name, array in zip(names[:2], arrays[:2], strict=True):
        need_array(op, name, array)
    _check_bags(op, names, arrays)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            f"embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}')."
        )
    padding = _padding(op, padding_idx, weight.shape[0])
    if max_norm is not None:
        with no_grad():
            _C.embedding(input, weight)  # its checks
        _limit_norms(op, input, weight, _need_number(op, "max_norm", max_norm), norm_type)
    rows = widened(_C.embedding(input, weight))
    if scale_grad_by_freq and rows.requires_grad:
        rows = _by_frequency(rows, input, weight.shape[0])
    counts = None if padding is None else input != padding
    if per_sample_weights is not None:
        rows = rows * widened(per_sample_weights).unsqueeze(-1)
    if offsets is None:
        return _of_rows(rows, counts, mode).to(weight.dtype)
    starts = offsets.to(_C.int64)
    if not offsets.is_cuda:
        _check_offsets(op, input, offsets, starts, include_last_offset)
    return _of_segments(rows, counts, mode, starts, include_last_offset).to(weight.dtype)


def check_mode(op: str, mode: str, scale_grad_by_freq: bool, sparse: bool) -> None:
    """Raises ValueError for another mode, and for what the largest numbers do not have."""
    if _C._need_str(op, "mode", mode) not in ("sum", "mean", "max"):
        raise ValueError(f"{op}(): mode has to be one of sum, mean or max, but got {mode!r}")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")


def _check_bags(op: str, names: tuple[str, ...], arrays: tuple[DeviceArray | None, ...]) -> None:
    input, weight, offsets, factors = arrays
    assert input is not None and weight is not None  # which has been looked at
    _C._check_devices(op, names, arrays)
    _C._check_indices(op, names, arrays, 0)
    if offsets is not None:
        _C._check_indices(op, names, arrays, 2)
    if not weight.dtype.is_floating_point:
        _C._fail_dtype(op, names, arrays, 1, "floats")
    if factors is not None:
        if factors.dtype != weight.dtype:
            _C._fail_dtype(op, names, arrays, 3, f"the dtype of weight, {str(weight.dtype).removeprefix('devtensor.')}")
        _C._check_shape(op, names, arrays, 3, input.shape)
    _C._check_rank(op, names, arrays, 1, 2, 2)
    if offsets is not None:
        _C._check_rank(op, names, arrays, 2, 1, 1)
    rank = 2 if offsets is None else 1
    if input.ndim != rank:
        text = (
            "if input is 2D, then offsets has to be None, as input is treated as a mini-batch of fixed length sequences"
            if input.ndim == 2
            else f"input has to be 1D with offsets, or 2D without, but got {input.ndim}D"
        )
        given = [(name, x) for name, x in zip(names, arrays, strict=True) if x is not None]
        raise misshapen(op, [name for name, _ in given], [x for _, x in given], text, 0)


def _check_offsets(
    op: str, input: DeviceArray, offsets: DeviceArray, starts: DeviceArray, include_last_offset: bool
) -> None:
    count = starts.shape[0]
    if count == 0:
        if include_last_offset:
            raise ValueError("include_last_offset: number of offset should be at least 1")
        return
    text = ""
    if int(starts[0]) != 0:
        text = "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0."
    elif not bool((starts[1:] >= starts[:-1]).all()):
        text = "offsets has to be sorted: each bag begins where the one before ends"
    elif int(starts[-1]) > input.shape[0]:
        text = f"offsets[-1] can not be greater than input's length ({input.shape[0]})"
    if text:
        raise _C._explained(
            op, ("input", "offsets"), (input, offsets), "index-out-of-range", IndexError(f"{op}(): {text}"), 1
        )


def _of_rows(rows: DeviceArray, counts: DeviceArray | None, mode: Mode) -> DeviceArray:
    """Of rows (bags, size, d), but for those that counts says nothing of."""
    if mode == "max":
        if not rows.shape[1]:
            return rows.sum(1)
        found = rows.detach()
        if counts is not None:
            found = found.masked_fill(~counts.unsqueeze(-1), float("-inf"))
        largest = rows.gather(1, found.argmax(1, keepdim=True)).squeeze(1)
        return largest if counts is None else _C.where(counts.any(1).unsqueeze(-1), largest, 0.0)
    if counts is None:
        total = rows.sum(1)
        return total if mode == "sum" else total / max(rows.shape[1], 1)
    total = _C.where(counts.unsqueeze(-1), rows, 0.0).sum(1)
    return total if mode == "sum" else total / counts.sum(1, keepdim=True).clamp(min=1).to(total.dtype)


def _of_segments(
    rows: DeviceArray, counts: DeviceArray | None, mode: Mode, starts: DeviceArray, include_last_offset: bool
) -> DeviceArray:
    """Of rows (count, d), where a bag begins at each of starts."""
    bags = starts.shape[0] - include_last_offset
    places = _C.arange(rows.shape[0], device=rows.device)
    if not bags or not rows.shape[0]:
        return _C.zeros((bags, rows.shape[1]), dtype=rows.dtype, device=rows.device) + rows.sum() * 0
    beginnings = starts[:bags]
    # the last bag that begins there or before
    bag = (searchsorted(beginnings, places, right=True) - 1).clamp(min=0)
    within = counts
    if include_last_offset:
        ended = places < starts[-1]
        within = ended if within is None else _C.logical_and(within, ended)
    if mode == "max":
        return _largest(rows, within, bag, starts, bags)
    kept = rows if within is None else _C.where(within.unsqueeze(-1), rows, 0.0)
    zeros = _C.zeros((bags, rows.shape[1]), dtype=rows.dtype, device=rows.device)
    total = _C.index_add(zeros, 0, bag, kept)
    return total if mode == "sum" else total / _sizes(rows, within, bag, bags).clamp(min=1)


def _sizes(rows: DeviceArray, within: DeviceArray | None, bag: DeviceArray, bags: int) -> DeviceArray:
    """How many rows count in each bag: (bags, 1)."""
    ones = _C.ones(bag.shape, dtype=rows.dtype, device=rows.device) if within is None else within.to(rows.dtype)
    return _C.index_add(_C.zeros(bags, dtype=rows.dtype, device=rows.device), 0, bag, ones).unsqueeze(-1)


def _largest(
    rows: DeviceArray, within: DeviceArray | None, bag: DeviceArray, starts: DeviceArray, bags: int
) -> DeviceArray:
    """The largest of each bag: of each place and those before it in its bag, by steps that double, and then of the
    last place of each bag."""
    best = rows.detach()
    if within is not None:
        best = best.masked_fill(~within.unsqueeze(-1), float("-inf"))
    place = _C.arange(rows.shape[0], device=rows.device).unsqueeze(-1).expand(rows.shape)
    step = 1
    while step < rows.shape[0]:
        same = (bag[step:] == bag[:-step]).unsqueeze(-1)
        before = _C.logical_and(same, ~(best[:-step] < best[step:]))  # of equal ones the first
        place = _C.cat([place[:step], _C.where(before, place[:-step], place[step:])])
        best = _C.cat([best[:step], _C.where(before, best[:-step], best[step:])])
        step *= 2
    following = starts[1:]
    if starts.shape[0] == bags:  # the last bag ends with the rows
        following = _C.cat([following, _C.full((1,), rows.shape[0], dtype=_C.int64, device=rows.device)])
    largest = rows.gather(0, place[(following - 1).clamp(min=0)])
    counted = following > starts[:bags] if within is None else _sizes(rows, within, bag, bags).squeeze(-1) > 0
    return _C.where(counted.unsqueeze(-1), largest, 0.0)
