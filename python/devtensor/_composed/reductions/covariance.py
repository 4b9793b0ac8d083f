"""Covariances and correlations of variables."""

from __future__ import annotations

from devtensor import _C
from devtensor._C import DeviceArray, _need_int
from devtensor._composed.arguments import misshapen, need_array

_NAMES = ("input", "fweights", "aweights")


def _refused(arrays: tuple[DeviceArray | None, ...], which: int, text: str) -> Exception:
    return _C._explained("cov", _NAMES, arrays, "invalid-argument", RuntimeError(f"cov(): {text}"), which)


def _check_weights(arrays: tuple[DeviceArray | None, ...], observations: int) -> None:
    for which, array in enumerate(arrays):
        if which == 0 or array is None:
            continue
        name = _NAMES[which]
        need_array("cov", name, array)
        if (which == 1) != (not array.dtype.is_floating_point) or array.dtype == _C.bool:
            _C._fail_dtype("cov", _NAMES, arrays, which, "an integer" if which == 1 else "a float")
        _C._check_rank("cov", _NAMES, arrays, which, 0, 1)
        if array.numel() != observations:
            text = f"cov(): expected {name} to have the same numel as there are observations in the input but got "
            given = [(n, x) for n, x in zip(_NAMES, arrays, strict=True) if x is not None]
            names, shown = [n for n, _ in given], [x for _, x in given]
            raise misshapen("cov", names, shown, f"{text}{array.numel()} != {observations}", names.index(name))
        if not array.is_cuda and array.numel() and bool((array < 0).any()):
            raise _refused(arrays, which, f"{name} cannot be negative")


def cov(
    input: DeviceArray,
    *,
    correction: int = 1,
    fweights: DeviceArray | None = None,
    aweights: DeviceArray | None = None,
) -> DeviceArray:
    """The covariance matrix of the rows of input, of which each column is an observation; of a vector its variance.

    The sum of products of distances to the mean, over n - correction. fweights says how often each observation counts,
    aweights how much: weights must not be negative, which is checked on the cpu only. Numbers on one device; integers
    are computed in the default float dtype. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError.

    >>> dt.cov(dt.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    DeviceArray([[ 1., -1.],
                 [-1.,  1.]], device='cpu', dtype=float32)
    """
    arrays = (input, fweights, aweights)
    need_array("cov", "input", input)
    _C._check_devices("cov", _NAMES, arrays)
    if input.dtype == _C.bool:
        _C._fail_dtype("cov", _NAMES, arrays, 0, "a number")
    _C._check_rank("cov", _NAMES, arrays, 0, 0, 2)
    lost = _need_int("cov", "correction", correction)
    x = input if input.dtype.is_floating_point else input.to(_C.get_default_dtype())
    x = x if x.ndim == 2 else x.reshape(1, x.numel())
    _check_weights(arrays, x.shape[1])
    often = None if fweights is None else fweights.reshape(fweights.numel())
    much = None if aweights is None else aweights.reshape(aweights.numel())
    weights = often if much is None else much if often is None else often * much
    if weights is None:
        total = x.sum(1, keepdim=True)
        return _products(x, total / x.shape[1] if x.shape[1] else total / _C.zeros_like(total), None, x.shape[1] - lost)
    count = weights.sum()
    mean = (x * weights).sum(1, keepdim=True) / count
    norm = count - lost if much is None else count - lost * (weights * much).sum() / count
    return _products(x, mean, weights, norm)


def _products(x: DeviceArray, mean: DeviceArray, weights: DeviceArray | None, norm: DeviceArray | float) -> DeviceArray:
    """The weighted products of distances to the mean over norm, which is at least 0."""
    distance = x - mean
    weighted = distance if weights is None else distance * weights
    result = distance.to(weighted.dtype) @ weighted.t()
    if not isinstance(norm, DeviceArray):
        result = result / norm if norm > 0 else result / _C.zeros_like(result)
    else:
        result = result / norm.clamp(min=0)
    return result.squeeze()


def corrcoef(input: DeviceArray) -> DeviceArray:
    """The correlations of the rows of input, of which each column is an observation: cov over both deviations.

    At least -1 and at most 1. Numbers; integers are computed in the default float dtype. Raises DTypeMismatchError for
    bools, ShapeMismatchError for more than 2 dimensions.

    >>> dt.corrcoef(dt.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    DeviceArray([[ 1., -1.],
                 [-1.,  1.]], device='cpu', dtype=float32)
    """
    need_array("corrcoef", "input", input)
    if input.dtype == _C.bool:
        _C._fail_dtype("corrcoef", ("input",), (input,), 0, "a number")
    _C._check_rank("corrcoef", ("input",), (input,), 0, 0, 2)
    found = cov(input)
    if not found.ndim:
        return found / found
    deviation = found.diagonal().sqrt()
    return (found / deviation.unsqueeze(1) / deviation.unsqueeze(0)).clamp(-1, 1)


__all__ = [
    "corrcoef",
    "cov",
]
METHODS = (
    corrcoef,
    cov,
)
