"""The slow, obvious truth about every op, in plain NumPy.

Floats of every width are computed in float64, integers in Python's unbounded integers; `formats.round_to` then brings
the answer to the result's dtype once.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from typing import Any

import images
import numpy as np
from elementwise_ops import gelu
from formats import FLOATS, Array, promote, promote_scalar, round_to
from op_table import OPS, Op, op

# ---------------------------------------------------------------- answers


def result_dtype(rule: str, dtype: str) -> str:
    """rule applied to the promoted dtype of the operands."""
    if rule in ("same", "first"):  # first: of the operand that has it, whatever the others are
        return dtype
    if rule in ("float", "sum"):
        return dtype if dtype in FLOATS else {"float": "float32", "sum": "int64"}[rule]
    if rule == "test":
        return "uint8" if dtype == "uint8" else "bool"
    return rule


def expected(name: str, args: Sequence[Any], dtypes: Sequence[str], **parameters: Any) -> Any:
    """The result of an op on wide arrays (and numbers) and its dtype.

    dtypes are those of the arrays; operands of a matching position that are numbers have "".
    """
    entry = OPS[name]
    compute = ""
    for dtype in dtypes:
        compute = promote(compute or dtype, dtype) if dtype else compute
    for value in [*args, *(parameters[k] for k in ("min", "max") if k in parameters)]:
        if type(value) in (bool, int, float) and compute and entry.rule != "first":
            compute = promote_scalar(compute, value)
    dtype = parameters.pop("dtype", None) or result_dtype(entry.rule, compute)
    if entry.rule == "float" or dtype in FLOATS:
        args = [as_float(a) for a in args]
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        result = entry.function(*args, **parameters)
    if isinstance(result, tuple | list):
        return [(round_to(r, dtype), dtype) for r in result]
    result = np.asarray(result)
    if name == "bitwise_not" and dtype == "bool":
        result = result + 2
    return round_to(result, dtype), dtype


def as_float(a: Any) -> Any:
    return a.astype(np.float64) if isinstance(a, np.ndarray) else a


# ---------------------------------------------------------------- reductions


def axes(dim: int | tuple[int, ...] | None) -> int | tuple[int, ...] | None:
    return tuple(dim) if isinstance(dim, list) else dim


@op("sum", sums=True)
def sum_(x: Array, dim: Any = None, keepdim: bool = False) -> Array:
    return np.sum(x, axis=axes(dim), keepdims=keepdim)


@op("sum")
def prod(x: Array, dim: Any = None, keepdim: bool = False) -> Array:
    return np.prod(x, axis=axes(dim), keepdims=keepdim)


@op("same", sums=True)
def mean(x: Array, dim: Any = None, keepdim: bool = False) -> Array:
    total = np.sum(x, axis=axes(dim), keepdims=keepdim)
    return total / np.divide(x.size, np.size(total))


@op("same")
def var(x: Array, dim: Any = None, correction: int = 1, keepdim: bool = False) -> Array:
    return np.var(x, axis=axes(dim), ddof=correction, keepdims=keepdim)


@op("same")
def std(x: Array, dim: Any = None, correction: int = 1, keepdim: bool = False) -> Array:
    return np.std(x, axis=axes(dim), ddof=correction, keepdims=keepdim)


@op("same")
def amax(x: Array, dim: Any = None, keepdim: bool = False) -> Array:
    return np.max(x, axis=axes(dim), keepdims=keepdim)


@op("same")
def amin(x: Array, dim: Any = None, keepdim: bool = False) -> Array:
    return np.min(x, axis=axes(dim), keepdims=keepdim)


@op("int64")
def argmax(x: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    return np.argmax(x, axis=dim, keepdims=keepdim)


@op("int64")
def argmin(x: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    return np.argmin(x, axis=dim, keepdims=keepdim)


@op("test")
def any_(x: Array, dim: Any = None, keepdim: bool = False) -> Array:
    return np.any(x != 0, axis=axes(dim), keepdims=keepdim)


@op("test")
def all_(x: Array, dim: Any = None, keepdim: bool = False) -> Array:
    return np.all(x != 0, axis=axes(dim), keepdims=keepdim)


@op("float")
def logsumexp(x: Array, dim: Any, keepdim: bool = False) -> Array:
    return np.log(np.sum(np.exp(x), axis=axes(dim), keepdims=keepdim))


@op("float")
def softmax(x: Array, dim: int) -> Array:
    e = np.exp(x - np.max(x, axis=dim, keepdims=True, initial=-np.inf))
    return e / np.sum(e, axis=dim, keepdims=True)


@op("float")
def log_softmax(x: Array, dim: int) -> Array:
    x = x - np.max(x, axis=dim, keepdims=True, initial=-np.inf)
    return x - np.log(np.sum(np.exp(x), axis=dim, keepdims=True))


# ---------------------------------------------------------------- matrix products


@op("same", sums=True)
def matmul(a: Array, b: Array) -> Array:
    """Rows times columns, one by one."""
    left = a if a.ndim > 1 else a[None, :]
    right = b if b.ndim > 1 else b[:, None]
    if left.shape[-1] != right.shape[-2]:
        raise ValueError("rows and columns of different length")
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    left = np.broadcast_to(left, batch + left.shape[-2:])
    right = np.broadcast_to(right, batch + right.shape[-2:])
    result = np.zeros((*batch, left.shape[-2], right.shape[-1]))
    for i, j in itertools.product(range(left.shape[-2]), range(right.shape[-1])):
        result[..., i, j] = np.sum(left[..., i, :] * right[..., :, j], axis=-1)
    if a.ndim == 1:
        result = result[..., 0, :]
    return result[..., 0] if b.ndim == 1 else result


for _name in ("mm", "bmm", "mv", "dot"):
    OPS[_name] = OPS["matmul"]


@op("same", sums=True)
def outer(a: Array, b: Array) -> Array:
    return a[:, None] * b[None, :]


def activate(x: Array, activation: str | None) -> Array:
    """The activation= of linear and conv2d."""
    if activation == "gelu_tanh":
        return gelu(x, "tanh")
    return x if activation is None else OPS[activation].function(x)


@op("same", sums=True)
def linear(x: Array, weight: Array, bias: Array | None = None, *, activation: str | None = None) -> Array:
    result = matmul(x, weight.T if weight.ndim > 1 else weight)
    return activate(result if bias is None else result + bias, activation)


def conv2d(*operands: Array, activation: str | None = None, **parameters: Any) -> Array:
    return activate(images.conv2d(*operands, **parameters), activation)


@op("same", sums=True)
def addmm(x: Array, a: Array, b: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    product = alpha * matmul(a, b)
    x = np.broadcast_to(x, product.shape)
    return product if beta == 0 else product + beta * x


OPS["baddbmm"] = OPS["addmm"]


# ---------------------------------------------------------------- convolution and pooling

OPS["conv2d"] = Op(conv2d, "same", sums=True)
OPS["max_pool2d"] = Op(images.max_pool2d, "same")
OPS["avg_pool2d"] = Op(images.avg_pool2d, "same", sums=True)
OPS["adaptive_avg_pool2d"] = Op(images.adaptive_avg_pool2d, "same", sums=True)

# ---------------------------------------------------------------- shapes


def parts(x: Array, sizes: Sequence[int], dim: int) -> list[Array]:
    return np.split(x, np.cumsum(sizes)[:-1], axis=dim)


@op("same")
def reshape(x: Array, shape: tuple[int, ...]) -> Array:
    return x.reshape(shape)


OPS["view"] = OPS["reshape"]


@op("same")
def flatten(x: Array, start_dim: int = 0, end_dim: int = -1) -> Array:
    if x.ndim == 0:
        return x.reshape(1)
    start, end = start_dim % x.ndim, end_dim % x.ndim
    merged = math.prod(x.shape[start : end + 1])
    return x.reshape(*x.shape[:start], merged, *x.shape[end + 1 :])


@op("same")
def unflatten(x: Array, dim: int, sizes: tuple[int, ...]) -> Array:
    dim %= x.ndim
    whole = [s if s >= 0 else x.shape[dim] // -math.prod(sizes) for s in sizes]
    return x.reshape(*x.shape[:dim], *whole, *x.shape[dim + 1 :])


@op("same")
def transpose(x: Array, dim0: int, dim1: int) -> Array:
    return np.swapaxes(x, dim0, dim1)


@op("same")
def permute(x: Array, dims: tuple[int, ...]) -> Array:
    return np.transpose(x, dims)


@op("same")
def movedim(x: Array, source: Any, destination: Any) -> Array:
    return np.moveaxis(x, source, destination)


@op("same")
def squeeze(x: Array, dim: int | tuple[int, ...] | None = None) -> Array:
    if dim is None:
        return x.squeeze()
    dims = (dim,) if isinstance(dim, int) else dim
    return x.squeeze(tuple(d for d in dims if x.shape[d] == 1))


@op("same")
def unsqueeze(x: Array, dim: int) -> Array:
    return np.expand_dims(x, dim)


@op("same")
def expand(x: Array, shape: tuple[int, ...]) -> Array:
    lead = len(shape) - x.ndim
    return np.broadcast_to(x, [x.shape[i - lead] if size == -1 else size for i, size in enumerate(shape)])


@op("same")
def broadcast_to(x: Array, size: tuple[int, ...]) -> Array:
    return np.broadcast_to(x, size)


@op("same")
def narrow(x: Array, dim: int, start: int, length: int) -> Array:
    start += x.shape[dim] if start < 0 else 0
    if not 0 <= start <= start + length <= x.shape[dim]:
        raise IndexError("a part beyond the whole")
    return np.take(x, np.arange(start, start + length), axis=dim)


@op("same")
def diagonal(x: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    return np.diagonal(x, offset, dim1, dim2)


@op("same")
def select(x: Array, dim: int, index: int) -> Array:
    return np.take(x, index, axis=dim)


@op("same")
def cat(arrays: Sequence[Array], dim: int = 0) -> Array:
    return np.concatenate(arrays, axis=dim)


@op("same")
def stack(arrays: Sequence[Array], dim: int = 0) -> Array:
    return np.stack(arrays, axis=dim)


@op("same")
def split(x: Array, split_size_or_sections: int | Sequence[int], dim: int = 0) -> list[Array]:
    n, size = x.shape[dim], split_size_or_sections
    if isinstance(size, int):
        size = [min(size, n - i) for i in range(0, n, size)] or [0]
    if sum(size) != n:
        raise ValueError("sections that are not the whole")
    return parts(x, size, dim)


@op("same")
def chunk(x: Array, chunks: int, dim: int = 0) -> list[Array]:
    if x.shape[dim] == 0:
        return [x] * chunks
    return split(x, -(-x.shape[dim] // chunks), dim)


@op("same")
def unbind(x: Array, dim: int = 0) -> list[Array]:
    return [np.take(x, i, axis=dim) for i in range(x.shape[dim])]


@op("same")
def flip(x: Array, dims: tuple[int, ...]) -> Array:
    return np.flip(x, dims)


for _name, _function in {"tril": np.tril, "triu": np.triu}.items():
    OPS[_name] = Op(lambda x, diagonal=0, f=_function: np.where(f(np.ones(x.shape[-2:], bool), diagonal), x, 0), "same")


# ---------------------------------------------------------------- selection


def whole(index: Array) -> Any:
    return np.asarray(index).astype(np.int64)


@op("first")
def gather(x: Array, dim: int, index: Array) -> Array:
    if np.ndim(x) == 0:
        return x
    places = list(np.indices(np.shape(index)))
    if any(d != dim % x.ndim and size > x.shape[d] for d, size in enumerate(np.shape(index))):
        raise IndexError("index is larger than x")
    places[dim] = whole(index)
    return x[tuple(places)]


def added(x: Array, places: tuple[Any, ...], values: Array) -> Array:
    """x with values added at places, as often as each is meant."""
    sums = np.array(x)
    np.add.at(sums, places, values)
    return sums


@op("first")
def scatter_add(x: Array, dim: int, index: Array, src: Array) -> Array:
    if np.ndim(x) == 0:
        return scatter_add(np.reshape(x, 1), 0, np.reshape(index, -1), np.reshape(src, -1)).reshape(())
    sizes = zip(np.shape(index), np.shape(src), x.shape, strict=True)
    if any(size > own or (d != dim % x.ndim and size > other) for d, (size, own, other) in enumerate(sizes)):
        raise IndexError("index is larger than src or x")
    places = list(np.indices(np.shape(index)))
    values = src[tuple(slice(size) for size in np.shape(index))]
    places[dim] = whole(index)
    return added(x, tuple(places), values)


@op("first")
def index_add(x: Array, dim: int, index: Array, source: Array, alpha: float = 1) -> Array:
    if np.ndim(x) == 0:
        return index_add(np.reshape(x, 1), 0, np.reshape(index, -1), np.reshape(source, 1), alpha).reshape(())
    rows = np.reshape(whole(index), -1)
    if np.shape(source) != (*x.shape[:dim], len(rows), *x.shape[dim % x.ndim + 1 :]):
        raise IndexError("source does not have the shape of x")
    return added(x, (*(slice(None),) * (dim % x.ndim), rows), source * alpha)


@op("first")
def index_select(x: Array, dim: int, index: Array) -> Array:
    return np.take(x, whole(index), axis=dim) if np.ndim(x) else np.reshape(np.reshape(x, 1)[whole(index)], ())


@op("first")
def take(x: Array, index: Array) -> Array:
    return np.reshape(x, -1)[whole(index)]


@op("first")
def take_along_dim(x: Array, indices: Array, dim: int | None = None) -> Array:
    return np.take_along_axis(x, whole(indices), dim)


@op("first")
def embedding(x: Array, weight: Array) -> Array:
    return weight[whole(x)]


@op("first")
def masked_fill(x: Array, mask: Array, value: Any) -> Array:
    return np.where(np.asarray(mask).astype(bool), value, x)
