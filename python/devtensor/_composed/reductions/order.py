"""What is read off sorted elements: medians, modes, quantiles."""

from __future__ import annotations

from typing import Any, overload

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number, _need_str
from devtensor._composed.arguments import dims_of, need_array
from devtensor._composed.written import takes_out
from devtensor._dtypes.autocast import autocasts
from devtensor._dtypes.info import iinfo
from devtensor.autograd.function import Function, FunctionCtx

__all__ = [
    "kthvalue",
    "median",
    "mode",
    "msort",
    "nanmedian",
    "nanquantile",
    "quantile",
]


def _along(op: str, input: DeviceArray, dim: int) -> int:
    need_array(op, "input", input)
    (d,) = dims_of(op, _need_int(op, "dim", dim), input.ndim, input)
    return d


def _need_elements(op: str, input: DeviceArray, d: int) -> int:
    """The size of dim d. Raises IndexError for none."""
    size = input.shape[d] if input.ndim else 1
    if not size:
        text = f"{op}(): Expected reduction dim {d} to have non-zero size."
        raise _C._explained(op, ("input",), (input,), "empty-reduction", IndexError(text))
    return size


def _picked(input: DeviceArray, d: int, indices: DeviceArray, keepdim: bool) -> tuple[DeviceArray, DeviceArray]:
    """The elements at indices, which keep dim d with size 1, and these: gradients go to those alone."""
    values = input.gather(d, indices)
    return (values, indices) if keepdim or not input.ndim else (values.squeeze(d), indices.squeeze(d))


@takes_out
def kthvalue(
    input: DeviceArray,
    k: int,
    dim: int = -1,
    keepdim: bool = False,
    *,
    out: tuple[DeviceArray, DeviceArray] | None = None,
) -> _C.kthvalue_result:
    """The k-th smallest element along dim, and its index: a named tuple (values, indices).

    k counts from 1. indices are int64 and name the k-th element of a stable sort; NaN counts as the largest. Raises
    IndexError for a dim out of range, RuntimeError for a k that is not in 1 to the size of dim.

    >>> dt.kthvalue(dt.tensor([3, 1, 2]), 2).values
    DeviceArray(2, device='cpu', dtype=int64)
    """
    d = _along("kthvalue", input, dim)
    k, keepdim = _need_int("kthvalue", "k", k), _need_bool("kthvalue", "keepdim", keepdim)
    size = _need_elements("kthvalue", input, d)
    if not 1 <= k <= size:
        text = f"kthvalue(): selected number k out of range for dimension {d}: k={k} of {size} elements"
        raise _C._explained("kthvalue", ("input",), (input,), "selected-out-of-range", RuntimeError(text))
    return _C.kthvalue_result(_picked(input, d, _C._kth(input.detach(), k, d), keepdim))


def _middle(input: DeviceArray, d: int) -> DeviceArray:
    """Where the lower of the middle elements stands along d, the first NaN if there is one; d is kept."""
    x = input.detach()
    size = x.shape[d] if x.ndim else 1
    middle = _C._kth(x, (size + 1) // 2, d)
    if not x.dtype.is_floating_point:
        return middle
    last = x.argmax(d, keepdim=True) if x.ndim else middle
    return _C.where(x.gather(d, last).isnan(), last, middle)


def _middle_number(input: DeviceArray, d: int) -> DeviceArray:
    """The same among those that are not NaN; of none of them a NaN."""
    x = input.detach()
    order = x.argsort(d)
    if not x.ndim:
        return order
    count = x.isnan().logical_not().sum(d, keepdim=True)
    return order.gather(d, (count - 1).clamp(0) // 2)


@overload
def median(input: DeviceArray, dim: None = None, keepdim: bool = False) -> DeviceArray: ...
@overload
def median(input: DeviceArray, dim: int, keepdim: bool = False) -> _C.median_result: ...
def median(input: DeviceArray, dim: int | None = None, keepdim: bool = False) -> DeviceArray | _C.median_result:
    """The lower of the middle elements: of all, 0-dimensional; with dim, a named tuple (values, indices).

    NaN if there is one, and of no elements at all. indices are int64 and name that element of a stable sort. Raises
    IndexError for a dim out of range, or for one of size 0.

    >>> dt.median(dt.tensor([4.0, 1.0, 2.0, 3.0]))
    DeviceArray(2., device='cpu', dtype=float32)
    """
    if dim is None:
        return _median_of_all("median", input, keepdim, False)
    d = _along("median", input, dim)
    keepdim = _need_bool("median", "keepdim", keepdim)
    _need_elements("median", input, d)
    return _C.median_result(_picked(input, d, _middle(input, d), keepdim))


@overload
def nanmedian(input: DeviceArray, dim: None = None, keepdim: bool = False) -> DeviceArray: ...
@overload
def nanmedian(input: DeviceArray, dim: int, keepdim: bool = False) -> _C.nanmedian_result: ...
def nanmedian(input: DeviceArray, dim: int | None = None, keepdim: bool = False) -> DeviceArray | _C.nanmedian_result:
    """median of the elements that are not NaN; NaN if there is none.

    Raises IndexError for a dim out of range, or for one of size 0.

    >>> dt.nanmedian(dt.tensor([1.0, float("nan"), 3.0]))
    DeviceArray(1., device='cpu', dtype=float32)
    """
    if dim is None:
        return _median_of_all("nanmedian", input, keepdim, True)
    d = _along("nanmedian", input, dim)
    keepdim = _need_bool("nanmedian", "keepdim", keepdim)
    _need_elements("nanmedian", input, d)
    return _C.nanmedian_result(_picked(input, d, _middle_number(input, d), keepdim))


def _median_of_all(op: str, input: DeviceArray, keepdim: bool, numbers: bool) -> DeviceArray:
    need_array(op, "input", input)
    if _need_bool(op, "keepdim", keepdim):
        raise TypeError(f"{op}() takes keepdim with a dim alone")
    x = input.flatten()
    if not x.shape[0]:
        counts = not x.dtype.is_floating_point and x.dtype != _C.bool
        nothing = iinfo(x.dtype).min if counts else float("nan")
        return _C.full((), nothing, dtype=x.dtype, device=x.device)
    value = _picked(x.detach(), 0, (_middle_number if numbers else _middle)(x, 0), False)[0]
    result: DeviceArray = _OfEquals.apply(x, value) if x.dtype.is_floating_point else value
    return result


class _OfEquals(Function):
    """value, an element of x: its gradient is shared evenly by those that are equal to it."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: DeviceArray, value: DeviceArray) -> DeviceArray:
        ctx.save_for_backward(x, value)
        return value.clone()

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Any) -> Any:
        x, value = ctx.saved_tensors
        equal = (x == value) | (x.isnan() & value.isnan())
        return _C.where(equal, grad / equal.sum().to(grad.dtype), 0.0), None


@takes_out
def mode(
    input: DeviceArray, dim: int = -1, keepdim: bool = False, *, out: tuple[DeviceArray, DeviceArray] | None = None
) -> _C.mode_result:
    """The most frequent element along dim, the smallest of equally frequent ones: a named tuple (values, indices).

    indices are int64 and name the last of equal elements. Raises IndexError for a dim out of range, or of size 0.

    >>> dt.mode(dt.tensor([1, 2, 2, 3])).values
    DeviceArray(2, device='cpu', dtype=int64)
    """
    d = _along("mode", input, dim)
    keepdim = _need_bool("mode", "keepdim", keepdim)
    size = _need_elements("mode", input, d)
    values, order = input.detach().sort(d)
    if not input.ndim:
        return _C.mode_result(_picked(input, d, order, keepdim))
    shape = [1] * input.ndim
    shape[d] = size
    places = _C.arange(size, device=input.device).reshape(shape)
    begins = places * 0
    if size > 1:
        goes_on = values.narrow(d, 1, size - 1) == values.narrow(d, 0, size - 1)
        begins = _C.where(_C.cat([_C.zeros_like(goes_on.narrow(d, 0, 1)), goes_on], d), 0, places)
    length = places - begins.cummax(d).values
    return _C.mode_result(_picked(input, d, order.gather(d, length.argmax(d, keepdim=True)), keepdim))


@takes_out
def msort(input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """The elements along the first dimension in order: sort(input, 0).values.

    >>> dt.msort(dt.tensor([3, 1, 2]))
    DeviceArray([1, 2, 3], device='cpu', dtype=int64)
    """
    need_array("msort", "input", input)
    return input.sort(0).values


# ---------------------------------------------------------------- quantiles

_BETWEEN = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(
    op: str,
    input: DeviceArray,
    q: float | DeviceArray,
    dim: int | None,
    keepdim: bool,
    interpolation: str,
    numbers: bool,
) -> DeviceArray:
    """numbers: NaN is left out."""
    names, both = ("input", "q"), (input, q if isinstance(q, DeviceArray) else None)
    _C._check(op, names, both)
    for which, array in enumerate(both):
        if array is not None and array.dtype not in (_C.float32, _C.float64):
            _C._fail_dtype(op, names, both, which, "float32 and float64")
    if both[1] is not None:
        _C._check_rank(op, names, both, 1, 0, 1)
    (d,) = (0,) if dim is None else dims_of(op, _need_int(op, "dim", dim), input.ndim, input)
    keepdim = _need_bool(op, "keepdim", keepdim)
    if not isinstance(q, DeviceArray):
        q = _need_number(op, "q", q)
        if not 0 <= q <= 1:
            raise ValueError(f"{op}() q must be in the range [0, 1] but got {_C._shown(q)}")
        q = _C.full((), q, dtype=input.dtype, device=input.device)
    if _need_str(op, "interpolation", interpolation) not in _BETWEEN:
        text = f"{op}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got "
        raise ValueError(text + _C._shown(interpolation))
    x = input.flatten() if dim is None or not input.ndim else input.movedim(d, -1)
    size = x.shape[-1]
    if not size:
        text = f"{op}() input tensor must be non-empty"
        raise _C._explained(op, names, both, "empty-reduction", RuntimeError(text))
    result = _at_ranks(x.sort(-1).values, q.reshape(-1), interpolation, numbers)
    shape = list(x.shape[:-1])
    if keepdim and dim is None:
        shape = [1] * input.ndim
    elif keepdim and input.ndim:
        shape.insert(d, 1)
    return result.movedim(-1, 0).reshape([*q.shape, *shape])


def _at_ranks(x: DeviceArray, q: DeviceArray, interpolation: str, numbers: bool) -> DeviceArray:
    """What stands at the share q, of one dimension, of the sorted rows x: all of q along the last dimension."""
    size = x.shape[-1]
    nan = x.detach().isnan()
    if numbers:
        rank = q * (nan.logical_not().sum(-1, keepdim=True).to(x.dtype) - 1).clamp(0)
    else:  # the last element is a NaN if there is one
        rank = _C.where(nan.narrow(-1, size - 1, 1), float(size - 1), q * (size - 1))
    inside = (q >= 0).logical_and(q <= 1)
    rank = _C.where(inside, rank, 0.0)
    if interpolation == "nearest":
        found = x.gather(-1, rank.detach().round().to(_C.int64))
    elif interpolation == "higher":
        found = x.gather(-1, rank.detach().ceil().to(_C.int64))
    else:
        below = rank.detach().floor()
        found = x.gather(-1, below.to(_C.int64))
        if interpolation != "lower":
            above = x.gather(-1, rank.detach().ceil().to(_C.int64))
            weight = _C.full_like(rank, 0.5) if interpolation == "midpoint" else rank - below
            found = _C.lerp(found, above, weight)
    return _C.where(inside, found, float("nan"))


@takes_out
@autocasts
def quantile(
    input: DeviceArray,
    q: float | DeviceArray,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: DeviceArray | None = None,
) -> DeviceArray:
    """What a share q of the elements along dim, of all by default, is below: element q * (n - 1) of them in order.

    Between two elements "linear" weighs both, "midpoint" takes their mean, "lower", "higher" and "nearest" one. q is a
    number or an array of up to one dimension, which goes first in the result; NaN comes of a q outside [0, 1] in an
    array and where there is a NaN. float32 and float64. Raises DTypeMismatchError for other dtypes and unequal ones,
    ValueError for a number q outside [0, 1], RuntimeError for no elements.

    >>> dt.quantile(dt.tensor([0.0, 1.0, 4.0]), 0.75)
    DeviceArray(2.5000, device='cpu', dtype=float32)
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False)


@takes_out
@autocasts
def nanquantile(
    input: DeviceArray,
    q: float | DeviceArray,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: DeviceArray | None = None,
) -> DeviceArray:
    """quantile of the elements that are not NaN, with its parameters and errors; NaN if there is none.

    >>> dt.nanquantile(dt.tensor([0.0, float("nan"), 4.0]), 0.5)
    DeviceArray(2., device='cpu', dtype=float32)
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True)


METHODS = (kthvalue, median, mode, msort, nanmedian, nanquantile, quantile)
