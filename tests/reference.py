"""The slow, obvious truth about every op, in plain NumPy.

Floats of every width are computed in float64, integers in Python's unbounded integers; `round_to`
then brings the answer to the result's dtype once. Arrays here are "wide": float64 for floats,
objects (int) for integers and bool.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Size = int | tuple[int, int]

INTS = ("uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
DTYPES = ("bool", *INTS, *FLOATS)
ITEMSIZE = dict(zip(DTYPES, (1, 1, 1, 2, 4, 8, 2, 2, 4, 8), strict=True))
# NumPy's dtype with the same bytes; bfloat16 has none of its own.
STORAGE = {name: np.dtype(name) for name in DTYPES if name != "bfloat16"} | {"bfloat16": np.dtype("uint16")}
RANGE = {name: (int(np.iinfo(name).min), int(np.iinfo(name).max)) for name in INTS} | {"bool": (0, 1)}


@dataclass(frozen=True)
class Format:
    """A binary floating-point format: bits of precision, least and largest exponent."""

    precision: int
    emin: int
    emax: int

    @property
    def eps(self) -> float:
        return math.ldexp(1.0, 1 - self.precision)

    @property
    def largest(self) -> float:
        return math.ldexp(2.0 - self.eps, self.emax)

    @property
    def smallest(self) -> float:
        return math.ldexp(1.0, self.emin - self.precision + 1)


FORMATS = {
    "float16": Format(11, -14, 15),
    "bfloat16": Format(8, -126, 127),
    "float32": Format(24, -126, 127),
    "float64": Format(53, -1022, 1023),
}


# ---------------------------------------------------------------- dtypes


def category(dtype: str) -> int:
    return 0 if dtype == "bool" else 1 if dtype in INTS else 2


def promote(a: str, b: str) -> str:
    """PyTorch's lattice."""
    if a == b:
        return a
    if category(a) != category(b):
        return max(a, b, key=category)
    if category(a) == 2:
        return "float32" if {a, b} == {"float16", "bfloat16"} else max(a, b, key=FLOATS.index)
    if {a, b} == {"uint8", "int8"}:
        return "int16"
    return max(a, b, key=INTS.index)


def promote_scalar(dtype: str, scalar: complex) -> str:
    """A Python number decides only when it is of a higher category than the array."""
    kind = {bool: "bool", int: "int64", float: "float32"}[type(scalar)]
    return kind if category(kind) > category(dtype) else dtype


# ---------------------------------------------------------------- rounding and casts


def round_float(x: Array, dtype: str) -> Array:
    """float64 to the nearest value of a narrower format, ties to even, still as float64."""
    x = np.asarray(x, dtype=np.float64)
    if dtype == "float64":
        return x
    form = FORMATS[dtype]
    finite = np.where(np.isfinite(x), x, 0.0)
    exponent = np.maximum(np.frexp(finite)[1] - 1, form.emin) - form.precision + 1
    nearest = np.ldexp(np.rint(np.ldexp(finite, -exponent)), exponent)
    nearest = np.where(np.abs(nearest) > form.largest, np.copysign(np.inf, nearest), nearest)
    return np.where(np.isfinite(x), nearest, x)


def round_int(n: int, precision: int) -> int:
    """An integer to the nearest one of so many significant bits, ties to even."""
    shift = abs(n).bit_length() - precision
    if shift <= 0:
        return n
    low = abs(n) & ((1 << shift) - 1)
    high = abs(n) >> shift
    half = 1 << (shift - 1)
    high += low > half or (low == half and high & 1)
    return (high << shift) * (1 if n > 0 else -1)


def wrap(n: int, dtype: str) -> int:
    low, high = RANGE[dtype]
    return (n - low) % (high - low + 1) + low


def saturate(x: float, dtype: str) -> int:
    low, high = RANGE[dtype]
    if math.isnan(x):
        return 0
    if math.isinf(x):
        return high if x > 0 else low
    return min(max(math.trunc(x), low), high)


def round_to(x: Array, dtype: str) -> Array:
    """A wide array to the values of dtype, still wide: the cast rule."""
    x = np.asarray(x)
    source_is_int = x.dtype == object or x.dtype.kind in "bui"
    if dtype == "bool":
        return elementwise(lambda v: int(v != 0), x)
    if dtype in INTS:
        if source_is_int:
            return elementwise(lambda v: wrap(int(v), dtype), x)
        return elementwise(lambda v: saturate(float(v), dtype), x)
    if source_is_int:
        exact = elementwise(lambda v: round_int(int(v), FORMATS[dtype].precision), x)
        return round_float(exact.astype(np.float64), dtype)
    return round_float(x, dtype)


def elementwise(f: Callable[..., object], *arrays: Array) -> Array:
    """Python's function on every element, giving objects."""
    return np.asarray(np.frompyfunc(f, len(arrays), 1)(*arrays), dtype=object)


def bits_to_wide(bits: Array, dtype: str) -> Array:
    """Stored elements (STORAGE, bool as 0 or 1) to a wide array."""
    if dtype == "bfloat16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype in FLOATS:
        return bits.astype(np.float64)
    return bits.astype(object)


def wide_to_bits(x: Array, dtype: str) -> Array:
    """Values that dtype can hold to stored elements; NaN is the positive quiet one."""
    if dtype not in FLOATS:
        return np.asarray(x).astype(STORAGE[dtype])
    x = np.asarray(x, dtype=np.float64)
    x = np.where(np.isnan(x), np.nan, x)
    if dtype == "bfloat16":
        return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return x.astype(STORAGE[dtype])


def cast(bits: Array, source: str, target: str) -> Array:
    """Stored elements of one dtype to those of another; the same dtype keeps its bits."""
    if source == target:
        return bits.copy()
    return wide_to_bits(round_to(bits_to_wide(bits, source), target), target)


# ---------------------------------------------------------------- the table of ops


@dataclass(frozen=True)
class Op:
    """A reference function; rule: how the result's dtype follows from the promoted one."""

    function: Callable[..., Any]
    rule: str
    # The result is a sum of products, so its error is bounded by the same sum of absolute values.
    sums: bool = False


OPS: dict[str, Op] = {}


def op(rule: str, *, sums: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        OPS[function.__name__.rstrip("_")] = Op(function, rule, sums)
        return function

    return enter


def result_dtype(rule: str, dtype: str) -> str:
    """rule applied to the promoted dtype of the operands."""
    if rule == "same":
        return dtype
    if rule == "float":
        return dtype if dtype in FLOATS else "float32"
    if rule == "sum":
        return dtype if dtype in FLOATS else "int64"
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
        if type(value) in (bool, int, float) and compute:
            compute = promote_scalar(compute, value)
    dtype = parameters.pop("dtype", None) or result_dtype(entry.rule, compute)
    if entry.rule == "float" or dtype in FLOATS:
        args = [as_float(a) for a in args]
    with np.errstate(all="ignore"):
        result = entry.function(*args, **parameters)
    if isinstance(result, tuple | list):
        return [(round_to(r, dtype), dtype) for r in result]
    result = np.asarray(result)
    if name == "bitwise_not" and dtype == "bool":
        result = result + 2
    return round_to(result, dtype), dtype


def as_float(a: Any) -> Any:
    return a.astype(np.float64) if isinstance(a, np.ndarray) else a


# ---------------------------------------------------------------- elementwise, one operand

SQRT_HALF = math.sqrt(0.5)


@op("same")
def neg(x: Array) -> Array:
    return -x


@op("same")
def abs_(x: Array) -> Array:
    return np.abs(x)


@op("same")
def sign(x: Array) -> Array:
    return (x > 0).astype(int) - (x < 0).astype(int)


@op("same")
def square(x: Array) -> Array:
    return x * x


for _name, _function in {
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "silu": lambda x: x / (1 + np.exp(-x)),
}.items():
    OPS[_name] = Op(_function, "float")

for _name, _function in {
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
}.items():
    OPS[_name] = Op(lambda x, f=_function: x if x.dtype == object else f(x), "same")

for _name, _function in {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}.items():
    OPS[_name] = Op(lambda x, f=_function: f(x.astype(np.float64)), "bool")


@op("bool")
def logical_not(x: Array) -> Array:
    return x == 0


@op("same")
def bitwise_not(x: Array) -> Array:
    return elementwise(lambda v: ~v, x)


@op("same")
def relu(x: Array) -> Array:
    return np.where(x <= 0, 0, x)


@op("same")
def relu6(x: Array) -> Array:
    return np.where(x <= 0, 0, np.where(x >= 6, 6, x))


@op("float")
def leaky_relu(x: Array, negative_slope: float = 0.01) -> Array:
    return np.where(x > 0, x, x * negative_slope)


@op("float")
def elu(x: Array, alpha: float = 1.0) -> Array:
    return np.where(x > 0, x, alpha * np.expm1(x))


@op("float")
def gelu(x: Array, approximate: str = "none") -> Array:
    if approximate == "tanh":
        return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x / 2 * (1 + OPS["erf"].function(x * SQRT_HALF))


@op("float")
def softplus(x: Array, beta: float = 1.0, threshold: float = 20.0) -> Array:
    return np.where(x * beta > threshold, x, np.log1p(np.exp(x * beta)) / beta)


@op("same")
def hardtanh(x: Array, min_val: float = -1, max_val: float = 1) -> Array:
    return np.where(x < min_val, min_val, np.where(x > max_val, max_val, x))


@op("same")
def clamp(x: Array, min: float | None = None, max: float | None = None) -> Array:
    if min is not None:
        x = np.where(x < min, min, x)
    return x if max is None else np.where(x > max, max, x)


# ---------------------------------------------------------------- elementwise, two or three operands


@op("same")
def add(a: Array, b: Array, alpha: float = 1) -> Array:
    return a + b * alpha


@op("same")
def sub(a: Array, b: Array, alpha: float = 1) -> Array:
    return a - b * alpha


@op("same")
def mul(a: Array, b: Array) -> Array:
    return a * b


@op("float")
def div(a: Array, b: Array, rounding_mode: str | None = None) -> Array:
    return np.true_divide(a, b)


def is_int(*values: Any) -> bool:
    return all(np.asarray(v).dtype.kind in "Obi" for v in values)


@op("same")
def floor_divide(a: Array, b: Array) -> Array:
    if is_int(a, b):
        return elementwise(lambda v, w: v // w if w else 0, a, b)
    return np.floor_divide(a, b)


@op("same")
def remainder(a: Array, b: Array) -> Array:
    if is_int(a, b):
        return elementwise(lambda v, w: v % w if w else 0, a, b)
    return np.remainder(a, b)


@op("same")
def pow_(a: Array, b: Array) -> Array:
    if is_int(a, b):
        return elementwise(lambda v, w: v**w if w >= 0 else math.trunc(v**w) if v else 0, a, b)
    return np.power(a, b)


@op("same")
def maximum(a: Array, b: Array) -> Array:
    return np.maximum(a, b)


@op("same")
def minimum(a: Array, b: Array) -> Array:
    return np.minimum(a, b)


for _name, _function in {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "logical_and": lambda a, b: (a != 0) & (b != 0),
    "logical_or": lambda a, b: (a != 0) | (b != 0),
    "logical_xor": lambda a, b: (a != 0) ^ (b != 0),
}.items():
    OPS[_name] = Op(lambda a, b, f=_function: f(np.asarray(a), np.asarray(b)), "bool")

for _name, _function in {
    "bitwise_and": lambda v, w: v & w,
    "bitwise_or": lambda v, w: v | w,
    "bitwise_xor": lambda v, w: v ^ w,
}.items():
    OPS[_name] = Op(lambda a, b, f=_function: elementwise(f, a, b), "same")


@op("same")
def where(condition: Array, a: Array, b: Array) -> Array:
    return np.where(condition.astype(bool), a, b)


@op("float")
def lerp(a: Array, b: Array, weight: Array | float) -> Array:
    return a + weight * (b - a)


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


@op("bool")
def any_(x: Array, dim: Any = None, keepdim: bool = False) -> Array:
    return np.any(x != 0, axis=axes(dim), keepdims=keepdim)


@op("bool")
def all_(x: Array, dim: Any = None, keepdim: bool = False) -> Array:
    return np.all(x != 0, axis=axes(dim), keepdims=keepdim)


@op("float")
def logsumexp(x: Array, dim: Any, keepdim: bool = False) -> Array:
    return np.log(np.sum(np.exp(x), axis=axes(dim), keepdims=keepdim))


@op("float")
def softmax(x: Array, dim: int) -> Array:
    e = np.exp(x - np.max(x, axis=dim, keepdims=True))
    return e / np.sum(e, axis=dim, keepdims=True)


@op("float")
def log_softmax(x: Array, dim: int) -> Array:
    x = x - np.max(x, axis=dim, keepdims=True)
    return x - np.log(np.sum(np.exp(x), axis=dim, keepdims=True))


# ---------------------------------------------------------------- matrix products


@op("same", sums=True)
def matmul(a: Array, b: Array) -> Array:
    """Rows times columns, one by one."""
    left = a if a.ndim > 1 else a[None, :]
    right = b if b.ndim > 1 else b[:, None]
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


@op("same", sums=True)
def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    result = matmul(x, weight.T if weight.ndim > 1 else weight)
    return result if bias is None else result + bias


@op("same", sums=True)
def addmm(x: Array, a: Array, b: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    product = alpha * matmul(a, b)
    return product if beta == 0 else product + beta * x


OPS["baddbmm"] = OPS["addmm"]


# ---------------------------------------------------------------- convolution and pooling


def pair(size: Size) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[1])


def padding_of(padding: Size | str, kernel: tuple[int, int], dilation: tuple[int, int]) -> list[tuple[int, int]]:
    """Zeros before and after, for each direction."""
    if padding == "valid":
        return [(0, 0), (0, 0)]
    if padding == "same":
        totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return [(t // 2, t - t // 2) for t in totals]
    assert not isinstance(padding, str)
    return [(p, p) for p in pair(padding)]


@op("same", sums=True)
def conv2d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Array:
    if x.ndim == 3:
        return conv2d(x[None], weight, bias, stride, padding, dilation, groups)[0]
    k, c, r, s = weight.shape
    (sy, sx), (dy, dx) = pair(stride), pair(dilation)
    x = np.pad(x, [(0, 0), (0, 0), *padding_of(padding, (r, s), (dy, dx))])
    n, _, h, w = x.shape
    result = np.zeros((n, k, (h - dy * (r - 1) - 1) // sy + 1, (w - dx * (s - 1) - 1) // sx + 1))
    for o, i, j in itertools.product(range(k), range(r), range(s)):
        first = o // (k // groups) * c
        window = x[:, first : first + c, i * dy :: sy, j * dx :: sx]
        window = window[:, :, : result.shape[2], : result.shape[3]]
        result[:, o] += np.sum(window * weight[o, :, i, j, None, None], axis=1)
    return result if bias is None else result + bias[:, None, None]


def pooled_size(size: int, k: int, s: int, p: int, d: int, ceil_mode: bool) -> int:
    span = size + 2 * p - d * (k - 1) - 1
    n = -(-span // s) + 1 if ceil_mode else span // s + 1
    return n - 1 if ceil_mode and (n - 1) * s >= size + p else n


def windows(
    x: Array, kernel: Size, stride: Size | None, padding: Size, dilation: Size, ceil_mode: bool
) -> tuple[tuple[int, int], list[tuple[int, int, Array, Array]]]:
    """Every output position with the rows and columns (some outside) that its window covers."""
    ks, ps, ds = pair(kernel), pair(padding), pair(dilation)
    ss = ks if stride is None else pair(stride)
    sizes = [pooled_size(x.shape[i - 2], ks[i], ss[i], ps[i], ds[i], ceil_mode) for i in range(2)]
    found = []
    for i, j in itertools.product(range(sizes[0]), range(sizes[1])):
        rows = i * ss[0] - ps[0] + np.arange(ks[0]) * ds[0]
        columns = j * ss[1] - ps[1] + np.arange(ks[1]) * ds[1]
        found.append((i, j, rows, columns))
    return (sizes[0], sizes[1]), found


def inside(positions: Array, size: int) -> Array:
    return positions[(positions >= 0) & (positions < size)]


@op("same")
def max_pool2d(
    x: Array,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
) -> Array:
    size, places = windows(x, kernel_size, stride, padding, dilation, ceil_mode)
    result = np.empty(x.shape[:-2] + size)
    for i, j, rows, columns in places:
        window = x[..., inside(rows, x.shape[-2]), :][..., inside(columns, x.shape[-1])]
        result[..., i, j] = np.max(window, axis=(-2, -1))
    return result


@op("same", sums=True)
def avg_pool2d(
    x: Array,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    size, places = windows(x, kernel_size, stride, padding, 1, ceil_mode)
    result = np.empty(x.shape[:-2] + size)
    py, px = pair(padding)
    for i, j, rows, columns in places:
        real_rows, real_columns = inside(rows, x.shape[-2]), inside(columns, x.shape[-1])
        total = np.sum(x[..., real_rows, :][..., real_columns], axis=(-2, -1))
        if divisor_override is not None:
            count = divisor_override
        elif count_include_pad:
            count = int(np.sum(rows < x.shape[-2] + py)) * int(np.sum(columns < x.shape[-1] + px))
        else:
            count = len(real_rows) * len(real_columns)
        result[..., i, j] = total / count
    return result


@op("same", sums=True)
def adaptive_avg_pool2d(x: Array, output_size: Any) -> Array:
    wanted = (output_size, output_size) if isinstance(output_size, int) else output_size
    h, w = x.shape[-2:]
    p, q = (size if given is None else given for given, size in zip(wanted, (h, w), strict=True))
    result = np.empty((*x.shape[:-2], p, q))
    for i, j in itertools.product(range(p), range(q)):
        rows = slice(i * h // p, -(-(i + 1) * h // p))
        columns = slice(j * w // q, -(-(j + 1) * w // q))
        result[..., i, j] = np.mean(x[..., rows, columns], axis=(-2, -1))
    return result


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
def broadcast_to(x: Array, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(x, shape)


@op("same")
def narrow(x: Array, dim: int, start: int, length: int) -> Array:
    return np.take(x, range(start % x.shape[dim], start % x.shape[dim] + length), axis=dim)


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
    return parts(x, size, dim)


@op("same")
def chunk(x: Array, chunks: int, dim: int = 0) -> list[Array]:
    return split(x, max(-(-x.shape[dim] // chunks), 1), dim)


@op("same")
def unbind(x: Array, dim: int = 0) -> list[Array]:
    return [np.take(x, i, axis=dim) for i in range(x.shape[dim])]


@op("same")
def flip(x: Array, dims: tuple[int, ...]) -> Array:
    return np.flip(x, dims)


@op("same")
def tril(x: Array, diagonal: int = 0) -> Array:
    keep = np.tril(np.ones(x.shape[-2:], dtype=bool), diagonal)
    return np.where(keep, x, 0)


@op("same")
def triu(x: Array, diagonal: int = 0) -> Array:
    keep = np.triu(np.ones(x.shape[-2:], dtype=bool), diagonal)
    return np.where(keep, x, 0)


# ---------------------------------------------------------------- random numbers


def philox(seed: int, counter: int) -> tuple[int, int, int, int]:
    """Philox4x32-10 (Salmon, Moraes, Dror and Shaw, 2011)."""
    mask = 0xFFFFFFFF
    c = [counter & mask, counter >> 32 & mask, 0, 0]
    k = [seed & mask, seed >> 32 & mask]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & mask, (p0 >> 32) ^ c[3] ^ k[1], p0 & mask]
        k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
    return c[0], c[1], c[2], c[3]


def random_bits(seed: int, counter: int) -> int:
    block = philox(seed, counter)
    return block[1] << 32 | block[0]


def rand(seed: int, offset: int, n: int, dtype: str) -> Array:
    """Uniform numbers in [0, 1): 53 bits for float64, 24 for the others."""
    width = 53 if dtype == "float64" else 24
    bits = [random_bits(seed, offset + i) >> (64 - width) for i in range(n)]
    return round_float(np.array(bits, dtype=np.float64) * 2.0**-width, dtype)


def randint(seed: int, offset: int, n: int, low: int, high: int) -> list[int]:
    return [low + (random_bits(seed, offset + i) * (high - low) >> 64) for i in range(n)]


def randn(seed: int, offset: int, n: int) -> Array:
    """Box and Muller; both uniforms come from one block."""
    values = []
    for i in range(n):
        w = philox(seed, offset + i)
        first, second = (w[1] << 32 | w[0]) >> 11, (w[3] << 32 | w[2]) >> 11
        radius = math.sqrt(-2 * math.log((first + 1) * 2.0**-53))
        values.append(radius * math.cos(2 * math.pi * second * 2.0**-53))
    return np.array(values)
