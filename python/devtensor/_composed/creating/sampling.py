"""Random numbers of given distributions, made of uniform ones: for one seed the same on every device, as far as a
logarithm is."""

from __future__ import annotations

import math

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_generator, _need_int, _need_number
from devtensor._composed.arguments import broadcast_shape, need_array, widened
from devtensor._composed.creating import rejection
from devtensor._composed.reductions.groups import searchsorted
from devtensor._composed.written import made_as_asked, takes_out
from devtensor._dtypes.info import finfo, iinfo
from devtensor._memory_formats import layout
from devtensor._types import Device, Dims, DType
from devtensor.autograd.grad_mode import no_grad

_LEAST = {_C.float32: 2.0**-24, _C.float64: 2.0**-53}  # of an exponential number: nothing is divided by 0


def _exponential(x: DeviceArray, generator: _C.Generator | None) -> DeviceArray:
    """Exponential numbers in the shape of x, above 0, float32 for the half types."""
    wide = x.dtype if x.dtype in _LEAST else _C.float32
    uniform = _C.rand(x.shape, generator=generator, dtype=wide, device=x.device)
    return -(-uniform).log1p().clamp(max=-_LEAST[wide])


@takes_out
def multinomial(
    input: DeviceArray,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: _C.Generator | None = None,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """Places of a row, drawn in proportion to its elements: input (C) or (N, C) gives int64 (num_samples) or (N, ...).

    Floats that are not negative; a row need not sum to 1. Without replacement each place comes once. Raises
    DTypeMismatchError, ShapeMismatchError, RuntimeError for more samples than places without replacement, and on the
    cpu for rows that are no weights: on a CUDA device that would wait.

    >>> dt.multinomial(dt.tensor([0.0, 3.0, 0.0]), 4, replacement=True)
    DeviceArray([1, 1, 1, 1], device='cpu', dtype=int64)
    """
    op = "multinomial"
    num_samples = _need_int(op, "num_samples", num_samples)
    replacement = _need_bool(op, "replacement", replacement)
    _need_generator(op, "generator", generator)
    _C._check(op, ("input",), (input,))
    _C._check_rank(op, ("input",), (input,), 0, 1, 2)
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > input.shape[-1]:
        raise _refused(op, input, "cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    with no_grad():
        rows = widened(input.detach().reshape(-1, input.shape[-1]))
        if not rows.is_cuda and rows.numel():
            if not _C.logical_and(rows.isfinite(), rows >= 0).all():
                raise _refused(op, input, "probability tensor contains either `inf`, `nan` or element < 0")
            if not (rows.sum(1) > 0).all():
                raise _refused(op, input, "invalid multinomial distribution (sum of probabilities <= 0)")
        if num_samples > 1 and replacement:
            found = _drawn(rows, num_samples, generator)
        else:
            found = _raced(rows, num_samples, generator)
    return found.reshape(*input.shape[:-1], num_samples)


def _refused(op: str, input: DeviceArray, text: str) -> Exception:
    return _C._explained(op, ("input",), (input,), "invalid-argument", RuntimeError(text), 0)


def _raced(rows: DeviceArray, count: int, generator: _C.Generator | None) -> DeviceArray:
    """Who has the least exponential time, at a rate that is its weight, comes first; then the next ones."""
    speed = rows / _exponential(rows, generator)
    places, found = _C.arange(rows.shape[1], device=rows.device), []
    while True:
        first = speed.argmax(1, keepdim=True)
        found.append(first)
        if len(found) == count:
            return found[0] if count == 1 else _C.cat(found, 1)
        speed = _C.where(places == first, -1.0, speed)


def _drawn(rows: DeviceArray, count: int, generator: _C.Generator | None) -> DeviceArray:
    sums = rows.to(_C.float64).cumsum(1)
    total = sums[:, -1:]
    uniform = _C.rand(rows.shape[0], count, generator=generator, dtype=_C.float64, device=rows.device)
    wanted = _C.minimum(uniform * total, total * (1 - 2.0**-52))
    return searchsorted(sums, wanted, right=True).clamp(max=rows.shape[1] - 1)  # of a row of NaN there is none


def _bernoulli(op: str, p: DeviceArray | float, like: DeviceArray, generator: _C.Generator | None) -> DeviceArray:
    """Where it is 1, in the shape of like."""
    wide = _C.float64 if isinstance(p, DeviceArray) and p.dtype is _C.float64 else _C.float32
    if not isinstance(p, DeviceArray):
        right = 0 <= p <= 1
    else:
        right = p.is_cuda or bool(_C.logical_and(p >= 0, p <= 1).all())
    if not right:
        raise RuntimeError(f"{op}(): Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    return _C.rand(like.shape, generator=generator, dtype=wide, device=like.device) < p


@takes_out
def bernoulli(
    input: DeviceArray, *, generator: _C.Generator | None = None, out: DeviceArray | None = None
) -> DeviceArray:
    """1 with the probability that input holds, else 0, in its shape and dtype.

    Floats. Raises DTypeMismatchError, and on the cpu RuntimeError for a number outside of 0 to 1.

    >>> dt.bernoulli(dt.tensor([0.0, 1.0]))
    DeviceArray([0., 1.], device='cpu', dtype=float32)
    """
    _need_generator("bernoulli", "generator", generator)
    _C._check("bernoulli", ("input",), (input,))
    return _bernoulli("bernoulli", input.detach(), input, generator).to(input.dtype)


def poisson(input: DeviceArray, generator: _C.Generator | None = None) -> DeviceArray:
    """Poisson numbers, whose means input holds, in its shape and dtype; no gradients.

    Floats. Raises DTypeMismatchError, and on the cpu RuntimeError for a number below 0. The numbers are drawn as
    distributions.Poisson draws them: for one seed the same on every device.

    >>> dt.poisson(dt.zeros(3))
    DeviceArray([0., 0., 0.], device='cpu', dtype=float32)
    """
    _need_generator("poisson", "generator", generator)
    _C._check("poisson", ("input",), (input,))
    if not input.is_cuda and not (input >= 0).all():
        raise _refused("poisson", input, "invalid Poisson rate, expected rate to be non-negative")
    return rejection.poisson(input, tuple(input.shape), generator)


def binomial(count: DeviceArray, prob: DeviceArray, generator: _C.Generator | None = None) -> DeviceArray:
    """Of so many trials, each with a probability, how many succeed; no gradients.

    Two arrays of floats, of one dtype, which the result has; the shapes broadcast. Raises DeviceMismatchError,
    DTypeMismatchError, ShapeMismatchError, and on the cpu RuntimeError for a count below 0 or a prob that is none.

    >>> dt.binomial(dt.tensor([5.0, 7.0]), dt.tensor([0.0, 1.0]))
    DeviceArray([0., 7.], device='cpu', dtype=float32)
    """
    op, names, arrays = "binomial", ("count", "prob"), (count, prob)
    for name, array in zip(names, arrays, strict=True):
        need_array(op, name, array)
    _need_generator(op, "generator", generator)
    _C._check(op, names, arrays)
    _C._check_broadcast(op, names, arrays)
    if not prob.is_cuda and not (_C.logical_and(prob >= 0, prob <= 1).all() and (count >= 0).all()):
        text = "binomial(): count must be from 0 on, and prob between 0 and 1"
        raise _C._explained(op, names, arrays, "invalid-argument", RuntimeError(text), 0)
    return rejection.binomial(count.floor(), prob, broadcast_shape(count, prob), generator)


def _spread(p: DeviceArray, input: DeviceArray) -> list[int]:
    """The shape that p should have: its own where it broadcasts to that of input."""
    if p.ndim > input.ndim:
        return list(input.shape)
    ends = zip(p.shape, input.shape[input.ndim - p.ndim :], strict=True)
    return [1 if own == 1 else size for own, size in ends]


def bernoulli_(
    input: DeviceArray, p: DeviceArray | float = 0.5, *, generator: _C.Generator | None = None
) -> DeviceArray:
    """1 with probability p, else 0, written into input.

    p is a number, or an array of floats on the device of input whose shape broadcasts to its shape. Raises
    DeviceMismatchError, ShapeMismatchError, and RuntimeError for a p outside of 0 to 1 (of an array on the cpu only).

    >>> dt.zeros(2).bernoulli_(1.0)
    DeviceArray([1., 1.], device='cpu', dtype=float32)
    """
    _need_generator("bernoulli_", "generator", generator)
    need_array("bernoulli_", "input", input)
    if isinstance(p, DeviceArray):
        names, arrays = ("input", "p"), (input, p)
        if p.device != input.device or not p.dtype.is_floating_point:
            _C._check("bernoulli_", names[::-1], arrays[::-1])
        _C._check_shape("bernoulli_", names, arrays, 1, _spread(p, input))
        drawn = _bernoulli("bernoulli_", p.detach(), input, generator)
    else:
        drawn = _bernoulli("bernoulli_", float(_need_number("bernoulli_", "p", p)), input, generator)
    return input.copy_(drawn)


def exponential_(input: DeviceArray, lambd: float = 1.0, *, generator: _C.Generator | None = None) -> DeviceArray:
    """Exponential numbers of the rate lambd, above 0, written into input.

    Floats. Raises DTypeMismatchError for integers, RuntimeError for a lambd that is not above 0.

    >>> bool((dt.zeros(100).exponential_(2.0) > 0).all())
    True
    """
    _need_generator("exponential_", "generator", generator)
    _C._check("exponential_", ("input",), (input,))
    lambd = _need_number("exponential_", "lambd", lambd)
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    return input.copy_(_exponential(input, generator) / lambd)


# ---------------------------------------------------------------- written into an array


def _top(dtype: _C.dtype) -> int:
    """The largest number to which all integers of a dtype are exact."""
    if dtype == _C.bool:
        return 1
    return iinfo(dtype).max if not dtype.is_floating_point else round(2 / finfo(dtype).eps)


def random_(input: DeviceArray, *args: int, generator: _C.Generator | None = None) -> DeviceArray:
    """Integers evenly distributed over [from, to), written into input: random_(), random_(to), random_(from, to).

    Without to as far as the dtype holds all integers; without from they start at 0. Any dtype. Raises RuntimeError for
    an empty interval and for bounds that the dtype does not hold.

    >>> bool((dt.zeros(100).random_(5, 7) >= 5).all())
    True
    """
    op = "random_"
    need_array(op, "input", input)
    _need_generator(op, "generator", generator)
    if len(args) > 2:
        raise TypeError(f"{op}() takes at most 2 bounds, but got {len(args)}")
    low = _need_int(op, "from", args[0]) if len(args) == 2 else 0
    top = _top(input.dtype)
    given = args[-1] if args else None
    high = min(top, 2**63 - 2) + 1 if given is None else _need_int(op, "to", given)
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if high - 1 > top or low < (-top - 1 if input.dtype not in (_C.uint8, _C.bool) else 0):
        raise RuntimeError(f"random_: [{low}, {high}) is out of bounds for {input.dtype}")
    return input.copy_(_C.randint(low, high, input.shape, generator=generator, dtype=_C.int64, device=input.device))


def log_normal_(
    input: DeviceArray, mean: float = 1.0, std: float = 2.0, *, generator: _C.Generator | None = None
) -> DeviceArray:
    """exp of normal numbers with this mean and this standard deviation, written into input.

    Floats. Raises DTypeMismatchError for integers, RuntimeError for a std that is not above 0.

    >>> bool((dt.zeros(100).log_normal_() > 0).all())
    True
    """
    _need_generator("log_normal_", "generator", generator)
    _C._check("log_normal_", ("input",), (input,))
    mean, std = _need_number("log_normal_", "mean", mean), _need_number("log_normal_", "std", std)
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    wide = input.dtype if input.dtype in _LEAST else _C.float32
    drawn = _C.randn(input.shape, generator=generator, dtype=wide, device=input.device)
    return input.copy_((drawn * std + mean).exp())


def cauchy_(
    input: DeviceArray, median: float = 0.0, sigma: float = 1.0, *, generator: _C.Generator | None = None
) -> DeviceArray:
    """median + sigma * tan(pi * (u - 1/2)) of evenly distributed u, written into input.

    Floats. Raises DTypeMismatchError for integers, RuntimeError for a sigma that is not above 0.

    >>> dt.zeros(2).cauchy_().shape
    (2,)
    """
    _need_generator("cauchy_", "generator", generator)
    _C._check("cauchy_", ("input",), (input,))
    median, sigma = _need_number("cauchy_", "median", median), _need_number("cauchy_", "sigma", sigma)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    wide = input.dtype if input.dtype in _LEAST else _C.float32
    uniform = _C.rand(input.shape, generator=generator, dtype=wide, device=input.device)
    return input.copy_(((uniform - 0.5) * math.pi).tan() * sigma + median)


def geometric_(input: DeviceArray, p: float, *, generator: _C.Generator | None = None) -> DeviceArray:
    """How many trials it takes to the first success, each with probability p: from 1, written into input.

    Any dtype but bool. Raises DTypeMismatchError for bools, RuntimeError for a p that is not between 0 and 1.

    >>> bool((dt.zeros(100).geometric_(0.5) >= 1).all())
    True
    """
    _need_generator("geometric_", "generator", generator)
    need_array("geometric_", "input", input)
    p = _need_number("geometric_", "p", p)
    if input.dtype == _C.bool:
        _C._fail_dtype("geometric_", ("input",), (input,), 0, "numbers")
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    wide = _C.empty(input.shape, dtype=_C.float64, device=input.device)
    return input.copy_((_exponential(wide, generator) / -math.log1p(-p)).ceil())


@made_as_asked
def normal(
    mean: DeviceArray | float,
    std: DeviceArray | float = 1.0,
    size: Dims | None = None,
    *,
    generator: _C.Generator | None = None,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
    layout: layout | None = None,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """Normal numbers: normal(mean, std, size) of two numbers, or in the broadcast shape of arrays.

    Arrays are floats on one device; the result has the dtype of the first of them. Raises DeviceMismatchError,
    DTypeMismatchError, ShapeMismatchError, RuntimeError for a std below 0 (of an array on the cpu only).

    >>> dt.normal(dt.tensor([0.0, 100.0]), 0.0)
    DeviceArray([  0., 100.], device='cpu', dtype=float32)
    """
    op = "normal"
    if not isinstance(mean, DeviceArray) and not isinstance(std, DeviceArray):
        shape = () if size is None else size
        return _C._normal(
            mean, std, shape, generator=generator, dtype=dtype, device=device, requires_grad=requires_grad, out=out
        )
    if size is not None or dtype is not None or device is not None:
        raise TypeError(f"{op}() of arrays takes no size, dtype or device: those of the arrays decide")
    _need_generator(op, "generator", generator)
    given = [(name, x) for name, x in (("mean", mean), ("std", std)) if isinstance(x, DeviceArray)]
    names, arrays = tuple(name for name, _ in given), tuple(x for _, x in given)
    _C._check(op, names, arrays)
    _C._check_broadcast(op, names, arrays)
    mean = mean if isinstance(mean, DeviceArray) else _need_number(op, "mean", mean)
    std = std if isinstance(std, DeviceArray) else _need_number(op, "std", std)
    negative = not (std.is_cuda or bool((std >= 0).all())) if isinstance(std, DeviceArray) else not std >= 0
    if negative:
        raise RuntimeError("normal expects all elements of std >= 0.0")
    with no_grad():
        x = arrays[0]
        wide = x.dtype if x.dtype in _LEAST else _C.float32
        drawn = _C.randn(broadcast_shape(*arrays), generator=generator, dtype=wide, device=x.device)
        result = (drawn * std + mean).to(x.dtype)
    result = result if out is None else _C._write_out(op, result, out)
    return result.requires_grad_() if requires_grad else result


__all__ = [
    "bernoulli",
    "binomial",
    "multinomial",
    "normal",
    "poisson",
]
METHODS = (
    multinomial,
    bernoulli,
    bernoulli_,
    exponential_,
    cauchy_,
    geometric_,
    log_normal_,
    random_,
)
