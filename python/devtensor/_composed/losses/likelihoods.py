"""Losses that are the negative logarithms of densities."""

from __future__ import annotations

import math

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_number
from devtensor._composed.arguments import need_array, widened
from devtensor._composed.losses.basic import Reduction, chosen, matched, reduced
from devtensor._dtypes.autocast import autocasts
from devtensor._dtypes.rules import promotes


@promotes("input", "target")
@autocasts
def poisson_nll_loss(
    input: DeviceArray,
    target: DeviceArray,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: Reduction = "mean",
) -> DeviceArray:
    """exp(input) - target * input, for counts that are Poisson: their mean, their sum, or all of them.

    log_input=False: input is the rate itself, for input - target * log(input + eps). full adds Stirling's
    approximation of log(target!) where target is above 1. Floats of one dtype on one device; the shapes broadcast,
    with a warning where they differ. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, ValueError for
    another reduction.

    >>> F.poisson_nll_loss(dt.tensor([0.0, 1.0]), dt.tensor([1.0, 2.0]), reduction="none")
    DeviceArray([1.0000, 0.7183], device='cpu', dtype=float32)
    """
    op = "poisson_nll_loss"
    reduction = chosen(op, size_average, reduce, reduction)
    log_input, full = _need_bool(op, "log_input", log_input), _need_bool(op, "full", full)
    eps = _need_number(op, "eps", eps)
    x, y = matched(op, input, target)
    losses = x.exp() - y * x if log_input else x - y * (x + eps).log()
    if full:
        large = y > 1
        counts = _C.where(large, y, 1.0)
        stirling = counts * counts.log() - counts + 0.5 * (counts * (2 * math.pi)).log()
        losses = losses + _C.where(large, stirling, 0.0)
    return reduced(losses, reduction, input.dtype)


@promotes("input", "target", "var")
def gaussian_nll_loss(
    input: DeviceArray,
    target: DeviceArray,
    var: DeviceArray | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: Reduction = "mean",
) -> DeviceArray:
    """(log(var) + (input - target) ** 2 / var) / 2 with var at least eps: their mean, their sum, or all of them.

    full adds log(2 pi) / 2. var is a number, or has the shape of input, that without the last size, or that with one
    size 1. Floats of one dtype on one device; the shapes of input and target broadcast. Raises DeviceMismatchError,
    DTypeMismatchError, ShapeMismatchError, ValueError for another reduction, and for a negative var: of an array on the
    cpu only, as it would wait for a CUDA device.

    >>> F.gaussian_nll_loss(dt.tensor([1.0]), dt.tensor([3.0]), dt.tensor([4.0]))
    DeviceArray(1.1931, device='cpu', dtype=float32)
    """
    op = "gaussian_nll_loss"
    reduction = chosen(op, None, None, reduction)
    full, eps = _need_bool(op, "full", full), _need_number(op, "eps", eps)
    need_array(op, "target", target)
    array = var if isinstance(var, DeviceArray) else None
    number = 0.0 if isinstance(var, DeviceArray) else _need_number(op, "var", var)
    names, arrays = ("input", "target", "var"), (input, target, array)
    _C._check(op, names, arrays)
    whole = array is not None and array.ndim == input.ndim  # else it has its own rule, below
    _C._check_broadcast(op, names, (input, target, array if whole else None))
    if number < 0 or (array is not None and not array.is_cuda and (array < 0).any()):
        raise ValueError("var has negative entry/entries")
    if array is None:
        wide = _C.full((), number, dtype=widened(input).dtype, device=input.device)
    else:
        wide = widened(_fitting(op, names, (input, target, array)))
    wide = _C.where(wide.detach() < eps, wide - wide.detach() + eps, wide)  # gradients flow below eps, as in PyTorch
    losses = 0.5 * (wide.log() + (widened(input) - widened(target)).square() / wide)
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return reduced(losses, reduction, input.dtype)


def _fitting(op: str, names: tuple[str, ...], arrays: tuple[DeviceArray, ...]) -> DeviceArray:
    """var, which comes last, in a shape that broadcasts with that of input."""
    input, _, var = arrays
    if var.shape == input.shape:
        return var
    if input.ndim and var.shape == input.shape[:-1]:
        return var.unsqueeze(-1)
    wanted = list(input.shape)
    if var.ndim == input.ndim:
        differing = [d for d, size in enumerate(var.shape) if size != wanted[d]]
        if len(differing) == 1:
            wanted[differing[0]] = 1
    _C._check_shape(op, names, arrays, 2, wanted)
    return var
