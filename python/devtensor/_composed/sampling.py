"""Random numbers of given distributions, made of uniform ones: for one seed the same on every device, as far as a
logarithm is."""

from __future__ import annotations

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_generator, _need_int, _need_number
from devtensor._composed.arguments import need_array, widened
from devtensor.autograd.grad_mode import no_grad

_LEAST = {_C.float32: 2.0**-24, _C.float64: 2.0**-53}  # of an exponential number: nothing is divided by 0
_BLOCK = 128  # of the cumulative sums


def _exponential(x: DeviceArray, generator: _C.Generator | None) -> DeviceArray:
    """Exponential numbers in the shape of x, above 0, float32 for the half types."""
    wide = x.dtype if x.dtype in _LEAST else _C.float32
    uniform = _C.rand(x.shape, generator=generator, dtype=wide, device=x.device)
    return -(-uniform).log1p().clamp(max=-_LEAST[wide])


def _cumulative(x: DeviceArray) -> DeviceArray:
    """Sums of each row up to each place: within blocks a product with a triangle, then of the blocks."""
    rows, n = x.shape
    if n <= _BLOCK:
        return x @ _C.triu(_C.ones((n, n), dtype=x.dtype, device=x.device))
    blocks = (n + _BLOCK - 1) // _BLOCK
    padded = _C.zeros((rows, blocks * _BLOCK), dtype=x.dtype, device=x.device)
    padded[:, :n] = x
    inside = _cumulative(padded.reshape(rows * blocks, _BLOCK)).reshape(rows, blocks, _BLOCK)
    ends = _cumulative(inside[:, :, -1])
    inside[:, 1:] += ends[:, :-1].unsqueeze(-1)
    return inside.reshape(rows, blocks * _BLOCK)[:, :n]


def _by_bisection(sums: DeviceArray, wanted: DeviceArray) -> DeviceArray:
    """For each number in a row of wanted the first place whose sum is above it."""
    n = sums.shape[1]
    found = _C.zeros_like(wanted, dtype=_C.int64)
    step = 1 << (n - 1).bit_length() >> 1 if n > 1 else 0
    while step:
        ahead = found + step  # so many places are known not to reach it, if the last of them does not
        reached = sums.gather(1, (ahead - 1).clamp(max=n - 1)) <= wanted
        found = _C.where(_C.logical_and(reached, ahead < n), ahead, found)
        step >>= 1
    return found


def multinomial(
    input: DeviceArray, num_samples: int, replacement: bool = False, *, generator: _C.Generator | None = None
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
    sums = _cumulative(rows.to(_C.float64))
    total = sums[:, -1:]
    uniform = _C.rand(rows.shape[0], count, generator=generator, dtype=_C.float64, device=rows.device)
    return _by_bisection(sums, _C.minimum(uniform * total, total * (1 - 2.0**-52)))


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


def bernoulli(input: DeviceArray, *, generator: _C.Generator | None = None) -> DeviceArray:
    """1 with the probability that input holds, else 0, in its shape and dtype.

    Floats. Raises DTypeMismatchError, and on the cpu RuntimeError for a number outside of 0 to 1.

    >>> dt.bernoulli(dt.tensor([0.0, 1.0]))
    DeviceArray([0., 1.], device='cpu', dtype=float32)
    """
    _need_generator("bernoulli", "generator", generator)
    _C._check("bernoulli", ("input",), (input,))
    return _bernoulli("bernoulli", input.detach(), input, generator).to(input.dtype)


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


__all__ = [
    "bernoulli",
    "multinomial",
]
METHODS = (
    multinomial,
    bernoulli,
    bernoulli_,
    exponential_,
)
