"""Connectionist temporal classification: how likely a row of scores reads as a row of labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_ints
from devtensor._composed.arguments import need_array, widened
from devtensor._composed.losses.basic import Reduction, chosen
from devtensor._dtypes.autocast import autocasts
from devtensor.autograd.function import Function

_NEVER = -1e30  # the logarithm of 0, with which a difference is still a number
_NAMES = ("log_probs", "targets")


@autocasts
def ctc_loss(
    log_probs: DeviceArray,
    targets: DeviceArray,
    input_lengths: DeviceArray | Sequence[int],
    target_lengths: DeviceArray | Sequence[int],
    blank: int = 0,
    reduction: Reduction = "mean",
    zero_infinity: bool = False,
) -> DeviceArray:
    """-log of the probability that log_probs (T, N, C), or (T, C), read as targets, with blanks and repeats left out.

    targets (N, S), or the labels of all samples in one row, int64 or int32; input_lengths and target_lengths (N):
    numbers, or integer arrays on the cpu or beside log_probs. "mean" divides each loss by its target length first;
    "none" gives (N). Where no reading has the length the loss is infinite, or 0 with zero_infinity. Floats, computed in
    float32 for the half types. Lengths on a CUDA device are read from it only with targets in one row. Raises
    DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, RuntimeError for a blank or lengths that are too large,
    and on the cpu IndexError for a label that is no class.

    >>> scores = dt.zeros(2, 1, 2).log_softmax(2)
    >>> F.ctc_loss(scores, dt.tensor([[1]]), [2], [1])
    DeviceArray(0.2877, device='cpu', dtype=float32)
    """
    op = "ctc_loss"
    if _C._as_torch() and isinstance(targets, DeviceArray) and isinstance(log_probs, DeviceArray):
        targets = targets.to(log_probs.device)  # which PyTorch does by itself
    arrays = (log_probs, targets)
    reduction = chosen(op, None, None, reduction)
    blank, zero_infinity = _need_int(op, "blank", blank), _need_bool(op, "zero_infinity", zero_infinity)
    need_array(op, "targets", targets)
    _C._check(op, _NAMES, arrays, apart=1)
    _C._check_indices(op, _NAMES, arrays, 1)
    _C._check_rank(op, _NAMES, arrays, 0, 2, 3)
    _C._check_rank(op, _NAMES, arrays, 1, 1, 2)
    one = log_probs.ndim == 2
    scores = widened(log_probs.unsqueeze(1) if one else log_probs)
    steps, n, classes = scores.shape
    if targets.ndim == 2:
        _C._check_shape(op, _NAMES, arrays, 1, (n, -1))
    if not scores.numel():
        raise RuntimeError("log_probs tensor must not be empty")
    if not 0 <= blank < classes:
        raise RuntimeError(f"blank must be in label range, from 0 to {classes - 1}, but got {blank}")
    _, inputs = _lengths(op, "input_lengths", input_lengths, log_probs, n, steps)
    rows = targets.unsqueeze(0) if one and targets.ndim == 1 else targets
    in_one_row = rows.ndim == 1
    known, lengths = _lengths(op, "target_lengths", target_lengths, log_probs, n, None if in_one_row else rows.shape[1])
    if in_one_row:
        rows = _in_rows(op, targets, known or _read(lengths), arrays)
    labels = _C.arange(rows.shape[1], device=rows.device) < lengths.unsqueeze(1)
    labels = _C.where(labels, rows.to(_C.int64), blank)
    if not targets.is_cuda and labels.numel() and not 0 <= int(labels.amin()) <= int(labels.amax()) < classes:
        text = f"{op}(): labels must be at least 0 and smaller than the number of classes ({classes})"
        raise _C._explained(op, _NAMES, arrays, "index-out-of-range", IndexError(text), 1)
    losses = _of_paths(scores, labels, inputs, lengths, blank)
    infinite = losses > -_NEVER / 10
    losses = _C.where(infinite, 0.0, losses) if zero_infinity else _Readings.apply(losses, scores, infinite, inputs)
    if reduction == "mean":
        losses = (losses / lengths.clamp(min=1).to(losses.dtype)).mean()
    elif reduction == "sum":
        losses = losses.sum()
    elif one:
        losses = losses.squeeze(0)
    return losses.to(log_probs.dtype)


class _Readings(Function):
    """losses, or infinity where no reading has the length, which makes the gradient of that sample NaN."""

    @staticmethod
    def forward(
        ctx: Any, losses: DeviceArray, scores: DeviceArray, infinite: DeviceArray, inputs: DeviceArray
    ) -> DeviceArray:
        ctx.save_for_backward(infinite, inputs)
        ctx.shape = scores.shape
        return _C.where(infinite, math.inf, losses)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        infinite, inputs = ctx.saved_tensors
        steps = _C.arange(ctx.shape[0], device=grad.device).unsqueeze(1)
        lost = _C.where(infinite & (steps < inputs), math.nan, 0.0).to(grad.dtype)
        return _C.where(infinite, 0.0, grad), lost.unsqueeze(2).expand(ctx.shape), None, None


def _read(lengths: DeviceArray) -> list[int]:
    numbers: list[int] = lengths.tolist()
    return numbers


def _lengths(
    op: str, name: str, value: DeviceArray | Sequence[int], log_probs: DeviceArray, n: int, most: int | None
) -> tuple[list[int] | None, DeviceArray]:
    """The numbers, where they are on the host, and as an array beside log_probs."""
    if isinstance(value, DeviceArray):
        if value.dtype.is_floating_point or value.dtype is _C.bool:
            _C._fail_dtype(op, ("log_probs", name), (log_probs, value), 1, "integers")
        shape = value.reshape(1) if not value.ndim else value
        _C._check_shape(op, ("log_probs", name), (log_probs, shape), 1, (n,))
        if value.is_cuda:
            _C._check_devices(op, ("log_probs", name), (log_probs, value))
            return None, shape.to(_C.int64)
        numbers = _read(shape)
    else:
        numbers = list(_need_ints(op, name, value))
    if len(numbers) != n:
        raise RuntimeError(f"{name} must be of size batch_size, {n}, but got {len(numbers)}")
    for number in numbers:
        if number < 0 or (most is not None and number > most):
            raise RuntimeError(f"Expected {name} to have values from 0 to {most}, but got value {number}")
    return numbers, _C.tensor(numbers, dtype=_C.int64, device=log_probs.device)


def _in_rows(op: str, targets: DeviceArray, lengths: list[int], arrays: tuple[DeviceArray, ...]) -> DeviceArray:
    """The labels of all samples, one row for each."""
    _C._check_shape(op, _NAMES, arrays, 1, (sum(lengths),))
    longest = max(lengths, default=0)
    if not longest:
        return _C.zeros((len(lengths), 0), dtype=_C.int64, device=targets.device)
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    places = _C.tensor(starts, dtype=_C.int64, device=targets.device).unsqueeze(1)
    places = places + _C.arange(longest, device=targets.device)
    return _C.take(targets, places.clamp(max=sum(lengths) - 1))


def _of_paths(
    scores: DeviceArray, labels: DeviceArray, inputs: DeviceArray, lengths: DeviceArray, blank: int
) -> DeviceArray:
    """-log of the sum over all paths: forward through time, at all places of all samples at once."""
    steps, n, _ = scores.shape
    size = 2 * labels.shape[1] + 1
    blanks = _C.full((n, labels.shape[1]), blank, dtype=_C.int64, device=labels.device)
    spread = _C.stack([blanks, labels], 2).reshape(n, size - 1)  # blanks around each label
    spread = _C.cat([spread, _C.full((n, 1), blank, dtype=_C.int64, device=labels.device)], 1)
    emitted = scores.clamp(min=_NEVER).gather(2, spread.unsqueeze(0).expand(steps, n, size)).unbind(0)
    never = _C.full((n, 2), _NEVER, dtype=scores.dtype, device=scores.device)
    # from a label to the next without a blank, where they differ
    skips = _C.logical_and(spread[:, 2:] != blank, spread[:, 2:] != spread[:, :-2])
    started = _C.arange(size, device=scores.device) < 2
    paths = _C.where(started, emitted[0], _NEVER)
    for t in range(1, steps):
        moved = _C.logaddexp(paths, _C.cat([never[:, :1], paths[:, :-1]], 1))
        if size > 2:
            skipped = _C.cat([never, _C.where(skips, paths[:, :-2], _NEVER)], 1)
            moved = _C.logaddexp(moved, skipped)
        paths = _C.where((inputs > t).unsqueeze(1), moved + emitted[t], paths)
    last = 2 * lengths.unsqueeze(1)
    ends = paths.gather(1, last).squeeze(1)
    before = _C.where(lengths > 0, paths.gather(1, (last - 1).clamp(min=0)).squeeze(1), _NEVER)
    total = -_C.logaddexp(ends, before)
    # without a step there is one reading: that of no label
    return _C.where(inputs > 0, total, _C.where(lengths > 0, -_NEVER, 0.0))
