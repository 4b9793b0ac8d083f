"""Equal elements found and counted, and places in what is sorted."""

from __future__ import annotations

from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number, _need_str
from devtensor._composed.arguments import dims_of, need_array, widened
from devtensor._composed.written import takes_out

__all__ = [
    "argwhere",
    "bincount",
    "bucketize",
    "histc",
    "isin",
    "searchsorted",
    "unique",
    "unique_consecutive",
]

# ---------------------------------------------------------------- unique


def _begins(x: DeviceArray) -> DeviceArray:
    """Along the first dimension of x: where an element differs from the one before."""
    size = x.shape[0]
    differs = x.narrow(0, 1, max(size - 1, 0)) != x.narrow(0, 0, max(size - 1, 0)) if size else x != x
    return _C.cat([_C.ones_like(x.narrow(0, 0, min(size, 1)), dtype=_C.bool), differs], 0)


def _ranks(x: DeviceArray) -> DeviceArray:
    """Along the first dimension: how many different elements are less, column by column."""
    values, order = x.sort(0)
    places = _begins(values).cumsum(0) - 1
    return _C.zeros_like(places).scatter_add(0, order, places)


def _row_ranks(x: DeviceArray) -> DeviceArray:
    """How many different rows of a matrix come before, by their first different element: pairs of columns become one,
    until one is left."""
    ranks = _ranks(x)
    while ranks.shape[1] > 1:
        even = ranks.shape[1] // 2 * 2
        pairs = ranks[:, 0:even:2] * max(ranks.shape[0], 1) + ranks[:, 1:even:2]
        ranks = _ranks(_C.cat([pairs, ranks[:, even:]], 1))
    return ranks.flatten()


def _groups(begins: DeviceArray, order: DeviceArray | None, inverse: bool, counts: bool) -> tuple[DeviceArray, ...]:
    """Where groups begin among the elements in order, by default as they stand: the group of each element, and how
    many each group has."""
    found = []
    if inverse:
        places = begins.cumsum(0) - 1
        found.append(places if order is None else _C.zeros_like(places).scatter_add(0, order, places))
    if counts:
        first = begins.nonzero().flatten()
        end = _C.full((min(begins.shape[0], 1),), begins.shape[0], dtype=_C.int64, device=begins.device)
        found.append(_C.cat([first, end])[1:] - first)
    return tuple(found)


def _rows_along(op: str, input: DeviceArray, dim: int) -> tuple[DeviceArray, DeviceArray, int]:
    """input with dim first, the same as a matrix of rows, and dim."""
    (d,) = dims_of(op, _need_int(op, "dim", dim), input.ndim, input)
    x = input.reshape(1) if not input.ndim else input.movedim(d, 0)
    if 0 in x.shape[1:] or (x.shape[0] == 0 and x.ndim > 1 and 0 in x.shape[1:]):
        text = f"{op}(): There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
        raise _C._explained(op, ("input",), (input,), "empty-reduction", RuntimeError(text))
    return x, x.reshape([x.shape[0], -1]) if x.shape[0] else x.reshape([0, 1]), d


def unique(
    input: DeviceArray,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The different elements in order, or with dim the different slices along it.

    With return_inverse also where in them each element is, with return_counts also how often each occurs, both int64:
    a tuple then. They are in order, whatever sorted says; NaN differs from NaN. On a device a call waits, as their
    number decides a shape. Raises IndexError for a dim out of range, RuntimeError for slices of no elements.

    >>> dt.unique(dt.tensor([3, 1, 3]), return_counts=True)
    (DeviceArray([1, 3], device='cpu', dtype=int64), DeviceArray([1, 2], device='cpu', dtype=int64))
    """
    need_array("unique", "input", input)
    _need_bool("unique", "sorted", sorted)
    inverse = _need_bool("unique", "return_inverse", return_inverse)
    counts = _need_bool("unique", "return_counts", return_counts)
    input = input.detach()
    if dim is None:
        values, order = input.flatten().sort()
        begins = _begins(values)
        found = _groups(begins, order, inverse, counts)
        if inverse:
            found = (found[0].reshape(input.shape), *found[1:])
        result = values.masked_select(begins)
    else:
        x, rows, d = _rows_along("unique", input, dim)
        ranks, order = _row_ranks(rows).sort()
        begins = _begins(ranks)
        found = _groups(begins, order, inverse, counts)
        result = x.index_select(0, order.masked_select(begins)).movedim(0, d)
    return (result, *found) if found else result


def unique_consecutive(
    input: DeviceArray, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements without those that equal the one before, or with dim the slices along it.

    With return_inverse also where in them each element is, with return_counts also how many equal ones each stands for,
    both int64: a tuple then. On a device a call waits, as their number decides a shape. Raises IndexError for a dim out
    of range, RuntimeError for slices of no elements.

    >>> dt.unique_consecutive(dt.tensor([1, 1, 3, 1]))
    DeviceArray([1, 3, 1], device='cpu', dtype=int64)
    """
    need_array("unique_consecutive", "input", input)
    inverse = _need_bool("unique_consecutive", "return_inverse", return_inverse)
    counts = _need_bool("unique_consecutive", "return_counts", return_counts)
    input = input.detach()
    if dim is None:
        values = input.flatten()
        begins = _begins(values)
        found = _groups(begins, None, inverse, counts)
        if inverse:
            found = (found[0].reshape(input.shape), *found[1:])
        result = values.masked_select(begins)
    else:
        x, rows, d = _rows_along("unique_consecutive", input, dim)
        begins = _begins(rows).any(1)
        found = _groups(begins, None, inverse, counts)
        result = x.index_select(0, begins.nonzero().flatten()).movedim(0, d)
    return (result, *found) if found else result


# ---------------------------------------------------------------- places in what is sorted


def _search(sequence: DeviceArray, values: DeviceArray | float, right: bool) -> DeviceArray:
    """How many elements of each row of sequence are less than a value, with right no more than it. Rows are those of
    values; one row alone is for all values."""
    size = sequence.shape[-1]
    array = isinstance(values, DeviceArray)
    rows = sequence.ndim > 1
    place = _C.zeros(values.shape if isinstance(values, DeviceArray) else (), dtype=_C.int64, device=sequence.device)
    step = 1 << size.bit_length() >> 1
    while step and (place.numel() or not array):
        there = place + step
        last = there.clamp(max=size) - 1
        element = sequence.gather(-1, last) if rows else sequence.index_select(0, last.flatten()).reshape(place.shape)
        stays = element > values if right else element >= values
        place = _C.where(stays.logical_or(there > size), place, there)
        step //= 2
    return place


@takes_out
def searchsorted(
    sorted_sequence: DeviceArray,
    input: DeviceArray | float,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: DeviceArray | None = None,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """Where to insert each value into a sorted row: the number of elements that are less, with right=True or
    side="right" less or equal.

    sorted_sequence is one row, or has the shape of input but for the last dimension. input: an array of the same dtype,
    or with one row a number. sorter: int64 places that put the rows in order. The result is int64, or int32. Raises
    DeviceMismatchError, DTypeMismatchError, ShapeMismatchError.

    >>> dt.searchsorted(dt.tensor([1, 3, 5]), dt.tensor([3, 6]))
    DeviceArray([1, 3], device='cpu', dtype=int64)
    """
    op, names = "searchsorted", ("sorted_sequence", "input", "sorter")
    values = input if isinstance(input, DeviceArray) else _need_number(op, "input", input)
    arrays = (sorted_sequence, input if isinstance(input, DeviceArray) else None, sorter)
    _C._check_devices(op, names, arrays)
    if sorter is not None and sorter.dtype != _C.int64:
        _C._fail_dtype(op, names, arrays, 2, "int64")
    _C._check_rank(op, names, arrays, 0, 1, 64 if isinstance(input, DeviceArray) else 1)
    if sorted_sequence.ndim > 1:
        _C._check_shape(op, names, arrays, 1, [*sorted_sequence.shape[:-1], -1])
    if sorter is not None:
        _C._check_shape(op, names, arrays, 2, sorted_sequence.shape)
    right = _need_bool(op, "right", right)
    if side is not None:
        if _need_str(op, "side", side) not in ("left", "right"):
            raise RuntimeError(f"{op}(): side can only be 'left' or 'right' but got {_C._shown(side)}")
        if side == "left" and right:
            text = "side and right can't be set to opposites, got side of left while right was True"
            raise RuntimeError(f"{op}(): {text}")
        right = side == "right"
    sequence = sorted_sequence if sorter is None else sorted_sequence.detach().gather(-1, sorter)
    return _found(op, sequence, values, out_int32, right)


def _found(op: str, sequence: DeviceArray, values: DeviceArray | float, out_int32: bool, right: bool) -> DeviceArray:
    narrow, right = _need_bool(op, "out_int32", out_int32), _need_bool(op, "right", right)
    values = values.detach() if isinstance(values, DeviceArray) else values
    place = _search(sequence.detach(), values, right)
    return place.to(_C.int32) if narrow else place


@takes_out
def bucketize(
    input: DeviceArray | float,
    boundaries: DeviceArray,
    *,
    out_int32: bool = False,
    right: bool = False,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """Between which boundaries, sorted and of one dimension, each value is: how many are less, with right=True no more.

    input is an array or a number. The result is int64, or int32. Raises DeviceMismatchError, ShapeMismatchError.

    >>> dt.bucketize(dt.tensor([0.5, 1.5]), dt.tensor([1.0, 2.0]))
    DeviceArray([0, 1], device='cpu', dtype=int64)
    """
    need_array("bucketize", "boundaries", boundaries)
    names: tuple[str, ...] = ("boundaries",)
    arrays: tuple[DeviceArray, ...] = (boundaries,)
    if isinstance(input, DeviceArray):
        names, arrays = ("input", "boundaries"), (input, boundaries)
    _C._check_devices("bucketize", names, arrays)
    _C._check_rank("bucketize", names, arrays, len(arrays) - 1, 1, 1)
    values = input if isinstance(input, DeviceArray) else _need_number("bucketize", "input", input)
    return _found("bucketize", boundaries, values, out_int32, right)


@takes_out
def isin(
    elements: DeviceArray | float,
    test_elements: DeviceArray | float,
    *,
    assume_unique: bool = False,
    invert: bool = False,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """Whether each of elements equals one of test_elements, with invert none of them: bool.

    One of both may be a number. assume_unique changes nothing. Raises DeviceMismatchError.

    >>> dt.isin(dt.tensor([1, 2, 3]), dt.tensor([3, 1]))
    DeviceArray([ True, False,  True], device='cpu', dtype=bool)
    """
    names = ("elements", "test_elements")
    if not isinstance(elements, DeviceArray):
        need_array("isin", "test_elements", test_elements)  # type: ignore[arg-type]
    other = test_elements if isinstance(test_elements, DeviceArray) else None
    if isinstance(elements, DeviceArray):
        _C._check_devices("isin", names, (elements, other))
    wanted = elements if isinstance(elements, DeviceArray) else _need_number("isin", "elements", elements)
    if other is None:
        number = _need_number("isin", "test_elements", test_elements)
    _need_bool("isin", "assume_unique", assume_unique)
    invert = _need_bool("isin", "invert", invert)
    if other is None:
        assert isinstance(wanted, DeviceArray)
        found = wanted.eq(number)
    elif not isinstance(wanted, DeviceArray):
        found = other.eq(wanted).any()
    elif other.numel() <= _FEW:
        found = wanted.unsqueeze(-1).eq(other.flatten()).any(-1)
    else:
        values = other.detach().flatten().sort().values
        place = _search(values, wanted.detach(), False).clamp(max=values.shape[0] - 1)
        found = values.index_select(0, place.flatten()).reshape(place.shape).eq(wanted)
    return found.logical_not() if invert else found


_FEW = 16  # elements that each element is compared with


# ---------------------------------------------------------------- counts


def bincount(input: DeviceArray, weights: DeviceArray | None = None, minlength: int = 0) -> DeviceArray:
    """How often each number from 0 on occurs in a vector of integers, or the sum of the weights where it does.

    int64, of weights their dtype if that is float32, else float64. The result has minlength elements, or as many as the
    largest number needs: on a device a call waits for that. Raises DTypeMismatchError for other dtypes,
    ShapeMismatchError, RuntimeError for a negative number.

    >>> dt.bincount(dt.tensor([0, 2, 2]))
    DeviceArray([1, 0, 2], device='cpu', dtype=int64)
    """
    names, arrays = ("input", "weights"), (input, weights)
    _C._check_devices("bincount", names, arrays)
    if input.dtype.is_floating_point or input.dtype == _C.bool:
        _C._fail_dtype("bincount", names, arrays, 0, "integers")
    _C._check_rank("bincount", names, arrays, 0, 1, 1)
    if weights is not None:
        _C._check_shape("bincount", names, arrays, 1, input.shape)
    least = _need_int("bincount", "minlength", minlength)
    if least < 0:
        raise RuntimeError(f"bincount(): minlength should be >= 0, not {least}")
    if not input.shape[0]:
        return _C.zeros(least, dtype=_C.int64, device=input.device)
    places = input.to(_C.int64)
    low, high = _C.stack([places.amin(), places.amax()]).tolist()
    if low < 0:
        text = "bincount(): only non-negative integers are counted"
        raise _C._explained("bincount", names, arrays, "index-out-of-range", RuntimeError(text), 0)
    if weights is None:
        each = _C.ones_like(places)
    else:
        each = weights if weights.dtype == _C.float32 else weights.to(_C.float64)
    return _C.zeros(max(high + 1, least), dtype=each.dtype, device=input.device).scatter_add(0, places, each)


@takes_out
def histc(
    input: DeviceArray, bins: int = 100, min: float = 0, max: float = 0, *, out: DeviceArray | None = None
) -> DeviceArray:
    """How many elements are in each of so many equal parts of the range from min to max, which is in the last one.

    Without a range, or an empty one, that of the elements, and 1 on both sides if they are all equal. Others and NaN
    are not counted. Floats; the result has their dtype. Raises DTypeMismatchError for ints, RuntimeError for bins below
    1 and a max below min.

    >>> dt.histc(dt.tensor([0.0, 1.0, 4.0]), bins=2)
    DeviceArray([2., 1.], device='cpu', dtype=float32)
    """
    _C._check("histc", ("input",), (input,))
    bins = _need_int("histc", "bins", bins)
    low, high = _need_number("histc", "min", min), _need_number("histc", "max", max)
    if bins < 1:
        raise RuntimeError(f"histc(): bins must be > 0, but got {bins}")
    if low > high or low != low or high != high:
        raise RuntimeError(f"histc(): max must be larger than min, but got {_C._shown(low)} and {_C._shown(high)}")
    x = widened(input.detach()).flatten()
    if not x.shape[0]:
        return _C.zeros(bins, dtype=input.dtype, device=input.device)
    first, last = (_C.full((), limit, dtype=x.dtype, device=x.device) for limit in (low, high))
    if low == high:
        first, last = x.amin(), x.amax()
    equal = first == last
    first, last = _C.where(equal, first - 1, first), _C.where(equal, last + 1, last)
    inside = (x >= first).logical_and(x <= last)
    share = _C.where(inside, (x - first) / (last - first), 0.0)
    place = _C.where(inside, (share * bins).to(_C.int64).clamp(max=bins - 1), bins)
    counts = _C.zeros(bins + 1, dtype=_C.int64, device=x.device).scatter_add(0, place, _C.ones_like(place))
    return counts.narrow(0, 0, bins).to(input.dtype)


def argwhere(input: DeviceArray) -> DeviceArray:
    """The coordinates of the elements that are not zero, in order: nonzero(input).

    On a device a call waits, as their number decides the shape.

    >>> dt.argwhere(dt.tensor([0, 3, 4]))
    DeviceArray([[1],
                 [2]], device='cpu', dtype=int64)
    """
    need_array("argwhere", "input", input)
    return input.nonzero()


METHODS = (argwhere, bincount, histc, unique, unique_consecutive)
