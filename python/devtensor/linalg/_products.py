"""Products of vectors and matrices by the names of torch.linalg."""

from __future__ import annotations

from collections.abc import Sequence

from devtensor import _C
from devtensor._C import DeviceArray, _need_int
from devtensor._composed.arguments import dims_of, misshapen, need_array, need_entries, widened
from devtensor._composed.matrices import products
from devtensor._composed.written import takes_out
from devtensor._dtypes.autocast import autocasts
from devtensor.linalg._solving import inv


@takes_out
@autocasts
def multi_dot(tensors: Sequence[DeviceArray], *, out: DeviceArray | None = None) -> DeviceArray:
    """The product of two or more matrices, in the order that takes the fewest multiplications.

    The first may be a vector, which counts as a row, and the last, which counts as a column. Floats of one dtype on one
    device. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, RuntimeError for fewer than two.

    >>> dt.linalg.multi_dot([dt.ones(2, 3), dt.ones(3, 4), dt.ones(4)])
    DeviceArray([12., 12.], device='cpu', dtype=float32)
    """
    op = "multi_dot"
    names, arrays = need_entries(op, "tensors", tensors)
    if len(arrays) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(arrays)}")
    products.check_floats(op, names, arrays)
    last = len(arrays) - 1
    for k in range(len(arrays)):
        _C._check_rank(op, names[k : k + 1], arrays[k : k + 1], 0, 1 if k in (0, last) else 2, 2)
    matrices = list(arrays)
    matrices[0] = arrays[0].unsqueeze(0) if arrays[0].ndim == 1 else arrays[0]
    matrices[last] = arrays[last].unsqueeze(1) if arrays[last].ndim == 1 else arrays[last]
    for k in range(1, len(arrays)):
        if matrices[k].shape[0] != matrices[k - 1].shape[1]:
            wanted = [matrices[k - 1].shape[1], -1][: arrays[k].ndim]
            _C._check_shape(op, names[k - 1 : k + 1], arrays[k - 1 : k + 1], 1, wanted)
    result = products.chained(tuple(matrices))
    result = result.squeeze(1) if arrays[last].ndim == 1 else result
    return result.squeeze(0) if arrays[0].ndim == 1 else result


@takes_out
def matrix_power(A: DeviceArray, n: int, *, out: DeviceArray | None = None) -> DeviceArray:
    """A @ A @ ..., n times, for each square matrix; of its inverse for a negative n, the identity for 0.

    Floats on any device; a negative n takes float32 and float64 on the cpu. Raises DTypeMismatchError,
    ShapeMismatchError, for a negative n what inv raises.

    >>> dt.linalg.matrix_power(dt.tensor([[1.0, 1.0], [0.0, 1.0]]), -2)
    DeviceArray([[ 1., -2.],
                 [ 0.,  1.]], device='cpu', dtype=float32)
    """
    op = "matrix_power"
    _C._check(op, ("A",), (A,))
    products.check_square(op, "A", A)
    times = _need_int(op, "n", n)
    return products.powered(inv(A) if times < 0 else A, abs(times))


@takes_out
def cross(input: DeviceArray, other: DeviceArray, *, dim: int = -1, out: DeviceArray | None = None) -> DeviceArray:
    """The cross product of vectors of 3 elements along dim.

    Numbers of one dtype on one device, whose shapes broadcast. Raises DeviceMismatchError, DTypeMismatchError,
    ShapeMismatchError, IndexError for a dim out of range.

    >>> dt.linalg.cross(dt.tensor([1, 0, 0]), dt.tensor([0, 1, 0]))
    DeviceArray([0, 0, 1], device='cpu', dtype=int64)
    """
    return products.crossed("cross", input, other, _need_int("cross", "dim", dim))


@takes_out
@autocasts
def vecdot(x: DeviceArray, y: DeviceArray, *, dim: int = -1, out: DeviceArray | None = None) -> DeviceArray:
    """sum(x * y) along dim.

    Floats of one dtype on one device, whose shapes broadcast. Raises DeviceMismatchError, DTypeMismatchError,
    ShapeMismatchError, IndexError for a dim out of range.

    >>> dt.linalg.vecdot(dt.ones(2, 3), dt.ones(3))
    DeviceArray([3., 3.], device='cpu', dtype=float32)
    """
    op, names, arrays = "vecdot", ("x", "y"), (x, y)
    need_array(op, "y", y)
    _C._check(op, names, arrays)
    _C._check_broadcast(op, names, arrays)
    wide, of = (x, "x") if x.ndim >= y.ndim else (y, "y")
    (d,) = dims_of(op, _need_int(op, "dim", dim), wide.ndim, wide, of=of)
    return (widened(x) * widened(y)).sum(d).to(x.dtype)


def diagonal(A: DeviceArray, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> DeviceArray:
    """The diagonal of each matrix, offset places above the main one, as the last dimension: a view.

    Any dtype, on any device. Raises ShapeMismatchError for fewer than 2 dimensions, IndexError for dims out of range,
    RuntimeError where they are one.

    >>> dt.linalg.diagonal(dt.eye(2))
    DeviceArray([1., 1.], device='cpu', dtype=float32)
    """
    op = "diagonal"
    need_array(op, "A", A)
    _C._check_rank(op, ("A",), (A,), 0, 2, 8)
    first, second = _need_int(op, "dim1", dim1), _need_int(op, "dim2", dim2)
    (a,), (b,) = dims_of(op, first, A.ndim, A, "dim1", "A"), dims_of(op, second, A.ndim, A, "dim2", "A")
    if a == b:
        raise misshapen(op, ("A",), (A,), f"diagonal dimensions cannot be identical {first}, {second}", 0)
    return A.diagonal(_need_int(op, "offset", offset), a, b)
