"""Arrays joined side by side, taken apart, and spread to one shape."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_ints, _need_str
from devtensor._composed.arguments import check_entries, dims_of, misshapen, need_array, need_entries
from devtensor._composed.written import takes_out
from devtensor._dtypes.rules import common_dtype
from devtensor._types import Dims


def given(tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    """What *tensors holds: the arrays, or one list of them."""
    return tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors


# ---------------------------------------------------------------- at least so many dimensions


def _raised_1d(x: DeviceArray) -> DeviceArray:
    return x if x.ndim else x.reshape(1)


def _raised_2d(x: DeviceArray) -> DeviceArray:
    return x if x.ndim > 1 else x.reshape(1, -1) if x.numel() else x.reshape(1, 0)


def _raised_3d(x: DeviceArray) -> DeviceArray:
    return x if x.ndim > 2 else _raised_2d(x).unsqueeze(-1)


def _column(x: DeviceArray) -> DeviceArray:
    return x if x.ndim > 1 else x.reshape(x.numel(), 1)


def _raised(op: str, tensors: tuple[Any, ...], raise_one: Callable[[DeviceArray], DeviceArray]) -> Any:
    if len(tensors) == 1 and not isinstance(tensors[0], (list, tuple)):
        need_array(op, "tensors", tensors[0])
        return raise_one(tensors[0])
    return tuple(raise_one(x) for x in need_entries(op, "tensors", given(tensors))[1])


def atleast_1d(*tensors: DeviceArray | Sequence[DeviceArray]) -> Any:
    """Each array with at least one dimension: a view; a tuple of them for several arrays or a list.

    >>> dt.atleast_1d(dt.tensor(3.0)).shape
    (1,)
    """
    return _raised("atleast_1d", tensors, _raised_1d)


def atleast_2d(*tensors: DeviceArray | Sequence[DeviceArray]) -> Any:
    """Each array with at least two dimensions, new ones in front: a view; a tuple of them for several arrays or a list.

    >>> dt.atleast_2d(dt.ones(3)).shape
    (1, 3)
    """
    return _raised("atleast_2d", tensors, _raised_2d)


def atleast_3d(*tensors: DeviceArray | Sequence[DeviceArray]) -> Any:
    """Each array with at least three dimensions: a view; a tuple of them for several arrays or a list.

    A vector (n) becomes (1, n, 1), a matrix (n, m) becomes (n, m, 1).

    >>> dt.atleast_3d(dt.ones(3)).shape
    (1, 3, 1)
    """
    return _raised("atleast_3d", tensors, _raised_3d)


# ---------------------------------------------------------------- side by side


def _joined(op: str, tensors: Any, raise_one: Callable[[DeviceArray], DeviceArray], dim: int | None) -> DeviceArray:
    """cat of the arrays with as many dimensions as raise_one gives them; dim None is 1, or 0 of vectors."""
    names, arrays = need_entries(op, "tensors", tensors)
    if not arrays:
        raise RuntimeError(f"{op} expects a non-empty TensorList")
    check_entries(op, names, arrays)
    raised = [raise_one(x) for x in arrays]
    model = next((x for x in raised if x.shape != (0,)), raised[0])
    d = min(model.ndim - 1, 1) if dim is None else dim
    apart = [x.shape != (0,) and (x.ndim != model.ndim or _without(x, d) != _without(model, d)) for x in raised]
    if any(apart):
        first, k = next(i for i, x in enumerate(raised) if x is model), apart.index(True)
        shown = [i for i in range(len(arrays)) if i < 6 or i in (first, k)]
        agrees = apart.count(False) > 1 or len(arrays) == 2  # with any other, else it is the odd one
        text = f"Sizes of tensors must match except in dimension {d}. Expected {tuple(model.shape)} but got "
        raise misshapen(
            op,
            [names[i] for i in shown],
            [arrays[i] for i in shown],
            f"{text}{tuple(raised[k].shape)} for tensor number {k} in the list.",
            shown.index(k if agrees else first),
        )
    return _C.cat(raised, d)


def _without(x: DeviceArray, d: int) -> list[int]:
    """The sizes of x but for that of one dimension."""
    return [size for k, size in enumerate(x.shape) if k != d]


@takes_out
def hstack(tensors: Sequence[DeviceArray], *, out: DeviceArray | None = None) -> DeviceArray:
    """The arrays joined along dimension 1; vectors along their only one.

    dtypes promote. Raises DeviceMismatchError, ShapeMismatchError, RuntimeError for an empty list.

    >>> dt.hstack([dt.zeros(2), dt.ones(1)])
    DeviceArray([0., 0., 1.], device='cpu', dtype=float32)
    """
    return _joined("hstack", tensors, _raised_1d, None)


@takes_out
def vstack(tensors: Sequence[DeviceArray], *, out: DeviceArray | None = None) -> DeviceArray:
    """The arrays joined along dimension 0, vectors as rows.

    dtypes promote. Raises DeviceMismatchError, ShapeMismatchError, RuntimeError for an empty list.

    >>> dt.vstack([dt.zeros(2), dt.ones(2)])
    DeviceArray([[0., 0.],
                 [1., 1.]], device='cpu', dtype=float32)
    """
    return _joined("vstack", tensors, _raised_2d, 0)


@takes_out
def dstack(tensors: Sequence[DeviceArray], *, out: DeviceArray | None = None) -> DeviceArray:
    """The arrays joined along dimension 2, each first as atleast_3d gives it.

    dtypes promote. Raises DeviceMismatchError, ShapeMismatchError, RuntimeError for an empty list.

    >>> dt.dstack([dt.zeros(2), dt.ones(2)]).shape
    (1, 2, 2)
    """
    return _joined("dstack", tensors, _raised_3d, 2)


@takes_out
def column_stack(tensors: Sequence[DeviceArray], *, out: DeviceArray | None = None) -> DeviceArray:
    """The arrays joined along dimension 1, vectors as columns.

    dtypes promote. Raises DeviceMismatchError, ShapeMismatchError, RuntimeError for an empty list.

    >>> dt.column_stack([dt.zeros(2), dt.ones(2)])
    DeviceArray([[0., 1.],
                 [0., 1.]], device='cpu', dtype=float32)
    """
    return _joined("column_stack", tensors, _column, 1)


def block_diag(*tensors: DeviceArray) -> DeviceArray:
    """A matrix with the arrays along its diagonal and zeros elsewhere; vectors and numbers count as one row.

    dtypes promote. Raises DeviceMismatchError, ShapeMismatchError for more than two dimensions.

    >>> dt.block_diag(dt.ones(1, 2), dt.ones(1))
    DeviceArray([[1., 1., 0.],
                 [0., 0., 1.]], device='cpu', dtype=float32)
    """
    from devtensor._composed.shapes.arrange import pad

    op = "block_diag"
    names, arrays = need_entries(op, "tensors", tensors)
    if not arrays:
        return _C.zeros(1, 0)
    check_entries(op, names, arrays)
    for k, x in enumerate(arrays):
        if x.ndim > 2:
            _C._check_rank(op, names[k : k + 1], arrays[k : k + 1], 0, 0, 2)
    dtype = common_dtype(*arrays)
    blocks = [_raised_2d(x.to(dtype)) for x in arrays]
    width, at, rows = sum(x.shape[1] for x in blocks), 0, []
    for x in blocks:
        rows.append(pad(x, (at, width - at - x.shape[1])))
        at += x.shape[1]
    return _C.cat(rows, 0)


# ---------------------------------------------------------------- taken apart


_MOST_SECTIONS = 1 << 24  # each is an array, though it may have no elements


def _sections(op: str, input: DeviceArray, places: Any, d: int) -> tuple[DeviceArray, ...]:
    """The pieces between places, or so many of about one size."""
    size = input.shape[d]
    count = _C._need_size(op, "indices_or_sections", places)
    if isinstance(count, int):
        if count <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {count}")
        if count > _MOST_SECTIONS:
            raise RuntimeError(f"{op}(): number of sections must be at most {_MOST_SECTIONS}, got {count}")
        least, more = divmod(size, count)
        ends = list(itertools.accumulate(least + (k < more) for k in range(count)))
        starts = [0, *ends[:-1]]
    else:
        cuts = [min(max(p + size if p < 0 else p, 0), size) for p in count]
        starts, ends = [0, *cuts], [*cuts, size]
    return tuple(input.narrow(d, i, max(j - i, 0)) for i, j in zip(starts, ends, strict=True))


def tensor_split(
    input: DeviceArray,
    indices_or_sections: Dims | None = None,
    dim: int = 0,
    *,
    indices: Dims | None = None,
    sections: int | None = None,
) -> tuple[DeviceArray, ...]:
    """A tuple of pieces along dim: so many, the first ones longer by 1 where needed, or cut before each index: views.

    indices and sections are other names of indices_or_sections. Any dtype. Raises ShapeMismatchError for an array
    without dimensions, IndexError for a dim out of range, RuntimeError for less than one piece or more than 2^24,
    TypeError unless one of the three is given.

    >>> [part.shape for part in dt.tensor_split(dt.ones(7), 3)]
    [(3,), (2,), (2,)]
    """
    op = "tensor_split"
    need_array(op, "input", input)
    named = {"indices_or_sections": indices_or_sections, "indices": indices, "sections": sections}
    given = [_C._need_size(op, name, places) for name, places in named.items() if places is not None]
    if len(given) != 1:
        raise TypeError(f"{op}(): one of 'indices_or_sections', 'indices' and 'sections' must be given")
    _C._check_rank(op, ("input",), (input,), 0, 1, 8)
    (d,) = dims_of(op, _need_int(op, "dim", dim), input.ndim, input)
    return _sections(op, input, given[0], d)


def _split(op: str, input: DeviceArray, places: Any, least: int, d: int) -> tuple[DeviceArray, ...]:
    need_array(op, "input", input)
    _C._check_rank(op, ("input",), (input,), 0, least, 8)
    size = _C._need_size(op, "indices_or_sections", places)
    if isinstance(size, int) and (size <= 0 or input.shape[d] % size):
        text = f"{op} attempted to split along dimension {d}, but the size of the dimension {input.shape[d]} is not "
        raise misshapen(op, ("input",), (input,), f"{text}divisible by the split_size {size}!", 0)
    return _sections(op, input, places, d)


def hsplit(input: DeviceArray, indices_or_sections: Dims) -> tuple[DeviceArray, ...]:
    """A tuple of equal pieces along dimension 1, of a vector along its only one, or cut before each index: views.

    Raises ShapeMismatchError where the size is not divisible.

    >>> [part.shape for part in dt.hsplit(dt.ones(2, 4), 2)]
    [(2, 2), (2, 2)]
    """
    need_array("hsplit", "input", input)
    return _split("hsplit", input, indices_or_sections, 1, min(input.ndim - 1, 1))


def vsplit(input: DeviceArray, indices_or_sections: Dims) -> tuple[DeviceArray, ...]:
    """A tuple of equal pieces along dimension 0 of at least two, or cut before each index: views.

    Raises ShapeMismatchError where the size is not divisible.

    >>> [part.shape for part in dt.vsplit(dt.ones(4, 2), (1,))]
    [(1, 2), (3, 2)]
    """
    return _split("vsplit", input, indices_or_sections, 2, 0)


def dsplit(input: DeviceArray, indices_or_sections: Dims) -> tuple[DeviceArray, ...]:
    """A tuple of equal pieces along dimension 2 of at least three, or cut before each index: views.

    Raises ShapeMismatchError where the size is not divisible.

    >>> [part.shape for part in dt.dsplit(dt.ones(1, 1, 4), 2)]
    [(1, 1, 2), (1, 1, 2)]
    """
    return _split("dsplit", input, indices_or_sections, 3, 2)


# ---------------------------------------------------------------- spread


def meshgrid(*tensors: DeviceArray | Sequence[DeviceArray], indexing: str | None = None) -> tuple[DeviceArray, ...]:
    """A grid of as many dimensions as there are vectors, once for each of them: a tuple of views.

    indexing: "ij" (the default) has a dimension for each vector in order, "xy" exchanges the first two. Vectors and
    numbers of one dtype on one device. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError,
    RuntimeError for another indexing or no array.

    >>> dt.meshgrid(dt.tensor([1, 2]), dt.tensor([3, 4]), indexing="xy")[0]
    DeviceArray([[1, 2],
                 [1, 2]], device='cpu', dtype=int64)
    """
    op = "meshgrid"
    names, arrays = need_entries(op, "tensors", given(tensors))
    if not arrays:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    check_entries(op, names, arrays, True)
    for k in range(len(arrays)):
        _C._check_rank(op, names[k : k + 1], arrays[k : k + 1], 0, 0, 1)
    if len(arrays) > 8:
        raise misshapen(op, names, arrays, f"arrays have at most 8 dimensions, but got {len(arrays)}")
    order = "ij" if indexing is None else _need_str(op, "indexing", indexing)
    if order not in ("ij", "xy"):
        raise RuntimeError(f'meshgrid: indexing must be one of "xy" or "ij", but received: {_C._shown(order)}')
    flat = [_raised_1d(x) for x in arrays]
    shape = [x.shape[0] for x in flat]
    whole = [x.reshape([1] * k + [shape[k]] + [1] * (len(shape) - k - 1)).expand(shape) for k, x in enumerate(flat)]
    return tuple(x.transpose(0, 1) if order == "xy" and len(shape) > 1 else x for x in whole)


def cartesian_prod(*tensors: DeviceArray) -> DeviceArray:
    """All choices of one element from each vector, a row each; the vector itself if there is one.

    Vectors of one dtype on one device. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, RuntimeError
    for no array.

    >>> dt.cartesian_prod(dt.tensor([1, 2]), dt.tensor([3, 4]))
    DeviceArray([[1, 3],
                 [1, 4],
                 [2, 3],
                 [2, 4]], device='cpu', dtype=int64)
    """
    op = "cartesian_prod"
    names, arrays = need_entries(op, "tensors", tensors)
    if not arrays:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    check_entries(op, names, arrays, True)
    for k in range(len(arrays)):
        _C._check_rank(op, names[k : k + 1], arrays[k : k + 1], 0, 1, 1)
    if len(arrays) > 8:
        raise misshapen(op, names, arrays, f"arrays have at most 8 dimensions, but got {len(arrays)}")
    return arrays[0] if len(arrays) == 1 else _C.stack([x.flatten() for x in meshgrid(*arrays)], 1)


def combinations(input: DeviceArray, r: int = 2, with_replacement: bool = False) -> DeviceArray:
    """All choices of r elements of a vector in their order, a row each; with_replacement takes one more than once.

    For r above 2 the host waits for the device, which finds the places. Raises ShapeMismatchError for another number of
    dimensions, RuntimeError for a negative r.

    >>> dt.combinations(dt.tensor([1, 2, 3]))
    DeviceArray([[1, 2],
                 [1, 3],
                 [2, 3]], device='cpu', dtype=int64)
    """
    op = "combinations"
    need_array(op, "input", input)
    _C._check_rank(op, ("input",), (input,), 0, 1, 1)
    count, again = _need_int(op, "r", r), _need_bool(op, "with_replacement", with_replacement)
    if count < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {count}")
    if count > 8:
        raise RuntimeError(f"{op}(): argument 'r' must be at most 8, as arrays have at most 8 dimensions, not {count}")
    if count == 0:
        return _C.empty(0, dtype=input.dtype, device=input.device)
    if count == 1:
        return input.reshape(-1, 1) if input.shape[0] else input.reshape(0, 1)
    size = input.shape[0]
    places = meshgrid(*[_C.arange(size, device=input.device)] * count)
    mask = None
    for i, j in itertools.pairwise(places):
        rises = i <= j if again else i < j
        mask = rises if mask is None else mask & rises
    assert mask is not None
    return input[mask.nonzero()]


def broadcast_tensors(*tensors: DeviceArray | Sequence[DeviceArray]) -> tuple[DeviceArray, ...]:
    """The arrays, each expanded to the shape that all of them broadcast to: a tuple of views.

    Any dtypes, on any devices. Raises ShapeMismatchError.

    >>> [x.shape for x in dt.broadcast_tensors(dt.ones(2, 1), dt.ones(3))]
    [(2, 3), (2, 3)]
    """
    op = "broadcast_tensors"
    names, arrays = need_entries(op, "tensors", given(tensors))
    shape: tuple[int, ...] = ()
    for k, x in enumerate(arrays):
        found = _common(shape, tuple(x.shape))
        if found is None:
            shown = [i for i in range(len(arrays)) if i < 7 or i == k]
            text = f"the shape {tuple(x.shape)} of {names[k]} does not broadcast with {shape} of those before"
            raise misshapen(op, [names[i] for i in shown], [arrays[i] for i in shown], text, shown.index(k))
        shape = found
    return tuple(x.expand(shape) for x in arrays)


def _common(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that two broadcast to, None where they do not."""
    ndim = max(len(first), len(second))
    pairs = list(zip((1,) * (ndim - len(first)) + first, (1,) * (ndim - len(second)) + second, strict=True))
    return tuple(j if i == 1 else i for i, j in pairs) if all(i == j or 1 in (i, j) for i, j in pairs) else None


def broadcast_shapes(*shapes: Dims) -> _C.Size:
    """The shape that arrays of these shapes broadcast to; an int is a shape of one dimension.

    Raises RuntimeError where they do not broadcast, ValueError for a negative size.

    >>> dt.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    op = "broadcast_shapes"
    shape: tuple[int, ...] = ()
    for k, one in enumerate(shapes):
        sizes = _need_ints(op, "shapes", one)
        if any(size < 0 for size in sizes):
            raise ValueError("Attempting to broadcast a dimension with negative length!")
        found = _common(shape, sizes)
        if found is None:
            raise RuntimeError(
                f"{op}(): the shape {sizes} at index {k} does not broadcast with {shape}, that of the shapes before it"
            )
        shape = found
    return _C.Size(shape)


row_stack = vstack  # its second name

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_shapes",
    "broadcast_tensors",
    "cartesian_prod",
    "column_stack",
    "combinations",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "meshgrid",
    "row_stack",
    "tensor_split",
    "vsplit",
    "vstack",
]
METHODS = (
    tensor_split,
    hsplit,
    vsplit,
    dsplit,
)
