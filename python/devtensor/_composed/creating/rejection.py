"""Random numbers that are drawn by rejection: every element takes the same number of rounds, on every device."""

from __future__ import annotations

from collections.abc import Callable

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import widened
from devtensor._dtypes.info import finfo
from devtensor.autograd.grad_mode import no_grad

Proposal = Callable[[], tuple[DeviceArray, DeviceArray]]


def by_rejection(rounds: int, otherwise: DeviceArray, propose: Proposal) -> DeviceArray:
    """The last of the proposals that were accepted: propose() gives values and whether each is.

    All are equally good. rounds is so many that none is accepted about once in 1e11 times.
    """
    found = otherwise
    for _ in range(rounds):
        value, right = propose()
        found = _C.where(right, value, found)
    return found


def standard_gamma(concentration: DeviceArray, shape: tuple[int, ...]) -> DeviceArray:
    """Gamma numbers of rate 1 by Marsaglia and Tsang's method, whose gradient to concentration is the implicit one.

    That keeps the probability of at most x: d x / d a = -(d cdf / d a) / density.
    """
    wide = widened(concentration)
    with no_grad():
        alpha = wide.detach().expand(shape)
        drawn = _gamma(alpha)
    if wide.requires_grad:
        with no_grad():
            slope = gamma_slope(alpha, drawn)
        given = wide.expand(shape)
        drawn = drawn + slope * (given - given.detach())
    return drawn.to(concentration.dtype)


def _gamma(alpha: DeviceArray) -> DeviceArray:
    shape, dtype, device = alpha.shape, alpha.dtype, alpha.device
    small = alpha < 1
    d = _C.where(small, alpha + 1, alpha) - 1 / 3
    c = (9 * d).rsqrt()

    def propose() -> tuple[DeviceArray, DeviceArray]:
        x = _C.randn(shape, dtype=dtype, device=device)
        v = (1 + c * x) ** 3
        bound = 0.5 * x.square() + d * (1 - v + v.log())
        return v, (v > 0) & (_C.rand(shape, dtype=dtype, device=device).log() < bound)

    value = d * by_rejection(9, _C.ones_like(d), propose)  # 95 of 100 are accepted
    boost = _C.rand(shape, dtype=dtype, device=device) ** alpha.reciprocal()
    return _C.where(small, value * boost, value).clamp(min=finfo(dtype).tiny)


# Coefficients of u**i of those of v**j in the numerator (0 to 3) and the denominator (4 to 7), as PyTorch has them.
_RATIONAL = (
    (0.16009398, -0.094634809, 0.025146376, -0.0030648343, 1, 0.32668115, 0.10406089, 0.0014179084),
    (0.53487893, 0.1298071, 0.065735949, -0.0015649758, 0.16639465, 0.020070113, -0.0035938915, -0.00058392623),
    (
        0.040121004,
        -0.0065914022,
        -0.0026286047,
        -0.0013441777,
        0.017050642,
        -0.0021309326,
        0.00085092367,
        -1.5247877e-7,
    ),
)


def gamma_slope(alpha: DeviceArray, x: DeviceArray) -> DeviceArray:
    """d x / d alpha of standard gamma numbers, by PyTorch's approximations: one for each region."""
    # x below 0.8: the series of the incomplete gamma function.
    term, denominator = _C.ones_like(x), alpha
    first, second = 1 / alpha, 1 / alpha.square()
    for i in range(1, 6):
        term, denominator = term * (-x / i), denominator + 1
        first = first + term / denominator
        second = second + term / denominator.square()
    power = x**alpha
    below = -((x.log() - alpha.digamma()) * power * first - power * second) / (x ** (alpha - 1) * (-x).exp())
    below = _C.where(below == below, below, 0.0)
    # alpha above 8: Rice's saddle point expansion, which has a form of its own near x = alpha.
    near = (1 + 24 * alpha * (1 + 12 * alpha)) / (1244160 * alpha.square().square())
    near = near * (1440 * alpha.square() + 6 * x * (53 - 120 * x) - 65 * x.square() / alpha + alpha * (107 + 3600 * x))
    ratio, distance, root = (x / alpha).log(), alpha - x, (8 * alpha).sqrt()
    cube = (x - alpha - alpha * ratio) ** -1.5
    inner = ratio * (root / distance + _C.where(x < alpha, -cube, cube))
    inner = inner - (2 / alpha).sqrt() * (alpha + x) / distance.square()
    far = -(1 + (1 + 1 / (24 * alpha)) / (12 * alpha)) * x * inner / root
    large = _C.where((x >= 0.9 * alpha) & (x <= 1.1 * alpha), near, far)
    # Elsewhere a rational function.
    v = alpha.log()
    c = [a + ratio * (b + ratio * e) for a, b, e in zip(*_RATIONAL, strict=True)]
    top = c[0] + v * (c[1] + v * (c[2] + v * c[3]))
    middle = (top / (c[4] + v * (c[5] + v * (c[6] + v * c[7])))).exp()
    return _C.where(x < 0.8, below, _C.where(alpha > 8, large, middle))


def _by_steps(first: DeviceArray, ratio: Callable[[int], DeviceArray], uniform: DeviceArray) -> DeviceArray:
    """How many of the sums of probabilities, which begin with first and grow by ratio(k), uniform has reached.

    49 steps are enough for a mean below 10: more has probability 1e-16.
    """
    term = below = first
    count = _C.zeros_like(uniform)
    for k in range(1, 50):
        count = count + (uniform >= below).to(_C.float64)
        term = term * ratio(k)
        below = below + term
    return count


def poisson(rate: DeviceArray, shape: tuple[int, ...], generator: _C.Generator | None = None) -> DeviceArray:
    """Poisson numbers: by sums of probabilities below a mean of 10, by Hoermann's PTRS from there on."""
    with no_grad():
        mean = rate.detach().double().expand(shape)
        few = mean < 10
        small, large = _C.where(few, mean, 0.0), mean.clamp(min=10.0)
        uniform = _C.rand(shape, generator=generator, dtype=_C.float64, device=rate.device)
        counted = _by_steps((-small).exp(), lambda k: small / k, uniform)
        b = 0.931 + 2.53 * large.sqrt()
        a = 0.02483 * b - 0.059
        scale = (1.1239 + 1.1328 / (b - 3.4)).log()
        log_mean, squeeze = large.log(), 0.9277 - 3.6224 / (b - 2)

        def propose() -> tuple[DeviceArray, DeviceArray]:
            u, v, us = _uniforms(large, generator)
            k = ((2 * a / us + b) * u + large + 0.43).floor()
            level = v.log() + scale - (a / us.square() + b).log()
            right = level <= k * log_mean - large - (k + 1).lgamma()
            return k, ((us >= 0.07) & (v <= squeeze)) | ((k >= 0) & right & ~((us < 0.013) & (v > us)))

        drawn = _C.where(few, counted, by_rejection(20, large.floor(), propose))
        return drawn.to(rate.dtype)


def binomial(
    total_count: DeviceArray, probs: DeviceArray, shape: tuple[int, ...], generator: _C.Generator | None = None
) -> DeviceArray:
    """Binomial numbers: by sums of probabilities below a mean of 10, by Hoermann's BTRS from there on."""
    with no_grad():
        n, given = total_count.detach().double().expand(shape), probs.detach().double().expand(shape)
        p = _C.where(given > 0.5, 1 - given, given)
        few = n * p < 10
        uniform = _C.rand(shape, generator=generator, dtype=_C.float64, device=probs.device)
        small = _C.where(few, p, 0.0)
        odds = small / (1 - small)
        counted = _by_steps((n * (-small).log1p()).exp(), lambda k: (n - k + 1) / k * odds, uniform)
        counted = counted.minimum(n)
        m, p = _C.where(few, 100.0, n), _C.where(few, 0.5, p)  # the other way needs a mean from 10
        deviation = (m * p * (1 - p)).sqrt()
        b = 1.15 + 2.53 * deviation
        a = 0.0248 * b + 0.01 * p - 0.0873
        alpha, squeeze = (2.83 + 5.1 / b) * deviation, 0.92 - 4.2 / b
        odds, top = (p / (1 - p)).log(), ((m + 1) * p).floor()
        highest = (top + 1).lgamma() + (m - top + 1).lgamma()

        def propose() -> tuple[DeviceArray, DeviceArray]:
            u, v, us = _uniforms(m, generator)
            k = ((2 * a / us + b) * u + m * p + 0.5).floor()
            level = (v * alpha / (a / us.square() + b)).log()
            right = level <= highest - (k + 1).lgamma() - (m - k + 1).lgamma() + (k - top) * odds
            return k, ((us >= 0.07) & (v <= squeeze)) | ((k >= 0) & (k <= m) & right)

        drawn = _C.where(few, counted, by_rejection(20, top, propose))
        return _C.where(given > 0.5, n - drawn, drawn).to(probs.dtype)


def _uniforms(like: DeviceArray, generator: _C.Generator | None) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """Uniform from -0.5 to 0.5, uniform from 0 to 1, and how far the first is from its ends."""
    u = _C.rand(like.shape, generator=generator, dtype=like.dtype, device=like.device) - 0.5
    v = _C.rand(like.shape, generator=generator, dtype=like.dtype, device=like.device)
    return u, v, (0.5 - u.abs()).clamp(min=finfo(like.dtype).eps)
