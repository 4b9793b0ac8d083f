"""Divisors, parts of floats, incomplete gamma functions, counts and slopes: beside PyTorch and SciPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import devtensor as dt

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed")
INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_divisors_and_multiples(dtype: str, device: str) -> None:
    """Neighbours of the Fibonacci sequence take the most rounds of Euclid's algorithm."""
    limits = np.iinfo(dtype)
    numbers = [0, 1, 6, 12, 89, 100, limits.max, limits.max - 1, *([-6, -1, -limits.max] if limits.min else [])]
    a, b = 1, 1
    while b <= limits.max:
        numbers += [b] if b > limits.max // 8 else []
        a, b = b, a + b
    x = dt.tensor(numbers, dtype=getattr(dt, dtype), device=device)
    found, multiples = dt.gcd(x.unsqueeze(1), x), dt.lcm(x.unsqueeze(1), x).tolist()
    assert found.dtype == x.dtype and found.tolist() == [[math.gcd(a, b) for b in numbers] for a in numbers]
    for a, row in zip(numbers, multiples, strict=True):
        for b, multiple in zip(numbers, row, strict=True):
            assert math.lcm(a, b) > limits.max or multiple == math.lcm(a, b), (a, b)
    assert dt.gcd(x, x.long()).dtype == dt.int64
    for call in (dt.gcd, dt.lcm):
        with pytest.raises(dt.DTypeMismatchError, match="integers"):
            call(x, dt.ones(1, device=device))
        with pytest.raises(dt.DTypeMismatchError, match="integers"):
            call(x.bool(), x.bool())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_parts_of_floats(dtype: str, device: str) -> None:
    """Subnormal numbers too, and the largest."""
    limits = torch.finfo(getattr(torch, dtype))
    numbers = [0.0, -0.0, 1.0, -3.5, 0.1, INF, -INF, NAN, limits.max, limits.tiny, limits.tiny * limits.eps]
    x = torch.tensor([*numbers, limits.tiny * 0.7, -limits.tiny / 4, 1e-7, 6e4, 2.0**-14], dtype=getattr(torch, dtype))
    given = dt.tensor(x.tolist(), dtype=getattr(dt, dtype), device=device)
    mantissa, exponent = dt.frexp(given)
    wanted = torch.frexp(x)
    assert exponent.dtype == dt.int32 and exponent.tolist() == wanted.exponent.tolist()
    assert str(mantissa.tolist()) == str(wanted.mantissa.tolist())
    with pytest.raises(dt.DTypeMismatchError):
        dt.frexp(dt.ones(2, dtype=dt.int32, device=device))


def test_polygamma(device: str) -> None:
    scipy = pytest.importorskip("scipy.special")
    points = np.array([1e-3, 0.1, 0.49, 0.5, 0.7, 1.0, 3.3, 9.0, 15.0, 40.0, 1e3, 1e8, -0.5, -0.3, -1.7, -10.2, -30.9])
    x = dt.tensor(points, device=device)
    for n in (0, 1, 2, 3, 5, 8, 13):
        np.testing.assert_allclose(dt.polygamma(n, x[:12]).cpu().numpy(), scipy.polygamma(n, points[:12]), 1e-12)
        theirs = torch.polygamma(n, torch.tensor(points)).numpy()
        np.testing.assert_allclose(dt.polygamma(n, x).cpu().numpy(), theirs, 1e-9 if n < 8 else 1e-6)
        if n:
            poles = dt.polygamma(n, dt.tensor([0.0, -1.0, -7.0, INF, NAN], device=device)).tolist()
            sign = 1 if n % 2 else -1
            assert poles[:4] == [sign * INF] * 3 + [0.0] and math.isnan(poles[4])
    for n in (50, 100):
        found = dt.polygamma(n, dt.tensor([0.7, 3.0], dtype=dt.float64, device=device)).cpu().numpy()
        np.testing.assert_allclose(found, scipy.polygamma(n, np.array([0.7, 3.0])), 1e-12)
    for n in (170, 171, 10**9 + 1):  # what grows with n has an end
        assert all(math.isinf(one) for one in dt.polygamma(n, dt.tensor([0.3, 1e-3, -1.3], device=device)).tolist())
    y = x[:1].clone().polygamma_(2)
    assert y.tolist() == dt.polygamma(2, x[:1]).tolist()
    with pytest.raises(RuntimeError, match="does not support negative n"):
        dt.polygamma(-1, x)


def test_the_upper_incomplete_gamma_function_of_tiny_numbers(device: str) -> None:
    """Where the lower one is nearly 1; computed by mpmath with 40 digits."""
    rows = {
        (1e-10, 0.5): 5.597735948054988e-11,
        (1e-10, 1e-20): 4.547448609166519e-09,
        (1e-200, 0.3): 9.056766516758468e-201,
        (1e-5, 1.05): 2.018749526533529e-06,
        (0.2, 1.0): 0.05238043127907781,
        (0.3, 1e-3): 0.8597575410751326,
    }
    a, x = dt.tensor(list(rows), dtype=dt.float64, device=device).unbind(1)
    assert dt.igammac(a, x).tolist() == pytest.approx(list(rows.values()), rel=1e-14)
    assert dt.igamma(a, x).tolist() == pytest.approx([1 - y for y in rows.values()], rel=1e-14)


@pytest.mark.parametrize("low", [-3, 0, 1.5, 2, 4])
def test_incomplete_gamma_functions(low: float, device: str) -> None:
    """All three ways of computing, near the mean where the function changes and far from it."""
    scipy = pytest.importorskip("scipy.special")
    rng = np.random.default_rng(int(low * 10) + 50)
    a = 10 ** rng.uniform(low, low + 2, 800)
    x = np.concatenate([a[:500] * np.exp(rng.normal(0, 3, 500) / np.sqrt(1 + a[:500])), 10 ** rng.uniform(-3, 6, 300)])
    for ours, theirs in ((dt.igamma, scipy.gammainc), (dt.special.gammaincc, scipy.gammaincc)):
        got = ours(dt.tensor(a, device=device), dt.tensor(x, device=device)).cpu().numpy()
        wanted = theirs(a, x)
        near = (a < 200) | (np.abs(x - a) < 4.4 * np.sqrt(a))  # beyond it SciPy stops its series early
        np.testing.assert_allclose(got[near], wanted[near], 1e-11, 1e-13)
        np.testing.assert_allclose(got, wanted, 1e-4, 1e-10)
        seen = near & (wanted > 1e-60) & (wanted < 1e-3)  # small ones are as exact
        np.testing.assert_allclose(got[seen], wanted[seen], 1e-7)


def test_incomplete_gamma_functions_at_the_ends(device: str) -> None:
    ends = [0.0, -0.0, 1.0, 2.0, INF, -1.0]
    a, x = ([one for one in ends for _ in ends], ends * len(ends))
    for name in ("igamma", "igammac"):
        wanted = getattr(torch, name)(*(torch.tensor(v, dtype=torch.float64) for v in (a, x)))
        got = getattr(dt, name)(*(dt.tensor(v, dtype=dt.float64, device=device) for v in (a, x)))
        np.testing.assert_allclose(got.cpu().numpy(), wanted.numpy(), 1e-12)
        with pytest.raises(NotImplementedError, match="no gradient for input"):
            p = dt.ones(2, device=device, requires_grad=True)
            getattr(dt, name)(p, p).sum().backward()
        with pytest.raises(dt.DTypeMismatchError, match="floats"):
            getattr(dt, name)(dt.tensor([1], device=device), dt.tensor([1], device=device))


@pytest.mark.parametrize("options", [{}, {"range": (-1.0, 1.5)}, {"density": True}, {"weight": True}])
def test_histogram(options: dict[str, Any], device: str) -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(size=(30, 20))
    values[0, :3] = [NAN, -1.0, 1.5] if "range" in options else values[0, :3]
    for bins in (1, 7, np.array([-2.0, -0.5, 0.25, 1.0])):
        found = []
        for lib, where in ((torch, "cpu"), (dt, device)):
            given = dict(options)
            if "weight" in given:
                given["weight"] = lib.tensor(np.abs(values), device=where)
            edges = lib.tensor(bins, device=where) if isinstance(bins, np.ndarray) else bins
            if isinstance(bins, np.ndarray):
                given.pop("range", None)
            found.append([x.cpu().numpy() for x in lib.histogram(lib.tensor(values, device=where), edges, **given)])
        np.testing.assert_allclose(found[1][0], found[0][0], 1e-12)
        np.testing.assert_allclose(found[1][1], found[0][1], 1e-12)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: dt.histogram(x, 0), "bins must be > 0, but got 0"),
        (lambda x: dt.histogram(x, 2, range=(2, 1)), "min should not exceed max, but got min 2 max 1"),
        (lambda x: dt.histogram(x, 2, range=(0, INF)), "is not finite"),
        (lambda x: dt.histogram(x, x[:1]), "two edges or more"),
        (lambda x: dt.gradient(x, edge_order=3), "only supports edge_order=1 and edge_order=2"),
        (lambda x: dt.gradient(x, spacing=[1, 2]), "as long as the list of dimensions, 1, but got 2"),
        (lambda x: dt.gradient(x[:2], edge_order=2), "at least edge_order\\+1, which is 3"),
    ],
)
def test_what_is_refused(call: Any, text: str, device: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        call(dt.tensor([1.0, 2.0, 3.0], device=device))


def test_gradient(device: str) -> None:
    numbers = [[1.0, 2.0, 4.0, 7.0], [2.0, 3.0, 5.0, 9.0], [0.0, 1.0, 1.0, 3.0]]
    places = ([0.0, 1.0, 4.0], [0.0, 2.0, 3.0, 4.5])
    for order in (1, 2):
        for space in (None, 2.0, (2.0, 3.0), "scalar", "places", "mixed"):
            for dim in (None, 0, -1, (1, 0)):
                found = []
                for lib, where in ((torch, "cpu"), (dt, device)):
                    along = [lib.tensor(one, device=where) for one in places]
                    dims = [0, 1] if dim is None else [d % 2 for d in (dim if isinstance(dim, tuple) else (dim,))]
                    given = {"scalar": lib.tensor(0.5, device=where), "places": [along[d] for d in dims]}.get(
                        space, space
                    )
                    if space == "mixed":
                        given = None if lib is torch and len(dims) > 1 else [along[dims[0]], *[2.0] * (len(dims) - 1)]
                    elif isinstance(space, tuple) and len(dims) == 1:
                        given = [space[0]]
                    if given is None and space == "mixed":
                        parts = [
                            lib.gradient(lib.tensor(numbers), spacing=[along[dims[0]]], dim=dims[0], edge_order=order)[
                                0
                            ]
                        ]
                        parts += [lib.gradient(lib.tensor(numbers), spacing=2.0, dim=dims[1], edge_order=order)[0]]
                    else:
                        options = {} if given is None else {"spacing": given}
                        parts = lib.gradient(lib.tensor(numbers, device=where), dim=dim, edge_order=order, **options)
                    found.append([part.cpu().numpy() for part in parts])
                assert len(found[0]) == len(found[1])
                for ours, theirs in zip(*found, strict=True):
                    np.testing.assert_allclose(ours, theirs, 1e-5, 1e-6)
    assert dt.gradient(dt.tensor([1, 2, 4], device=device))[0].tolist() == [1.0, 1.5, 2.0]
    with pytest.raises(dt.DTypeMismatchError):
        dt.gradient(dt.ones(3, dtype=dt.uint8, device=device))


def test_counts_are_drawn(device: str) -> None:
    """Means and variances within five standard errors; no gradients; for one seed the same numbers."""
    n = 40000
    for mean in (0.3, 4.0, 60.0):
        dt.manual_seed(3)
        x = dt.poisson(dt.full((n,), mean, device=device))
        assert abs(x.mean().item() - mean) < 5 * math.sqrt(mean / n)
        assert abs(x.var().item() / mean - 1) < 0.06 and bool((x == x.floor()).all())
        again = dt.poisson(dt.full((n,), mean, device=device), dt.Generator().manual_seed(3))
        assert again.tolist() == x.tolist()
    for count, p in ((5.0, 0.3), (200.0, 0.9)):
        x = dt.binomial(dt.tensor(count, device=device), dt.full((n,), p, device=device))
        assert x.shape == (n,) and abs(x.mean().item() - count * p) < 5 * math.sqrt(count * p * (1 - p) / n)
        assert 0 <= x.min().item() and x.max().item() <= count
    assert not dt.poisson(dt.ones(2, device=device, requires_grad=True)).requires_grad
    with pytest.raises(dt.DTypeMismatchError):
        dt.poisson(dt.ones(2, dtype=dt.int64, device=device))
    for call in (lambda: dt.poisson(dt.tensor([-1.0])), lambda: dt.binomial(dt.tensor([2.0]), dt.tensor([1.5]))):
        with pytest.raises(RuntimeError):
            call()


def test_what_programs_ask(device: str) -> None:
    x = dt.ones(2, 3, device=device)
    assert x.is_same_size(dt.zeros(2, 3)) and not dt.is_same_size(x, x.T)
    assert x.is_set_to(x.view(2, 3)) and not x.is_set_to(x[:1]) and not x.is_set_to(x.clone())
    for name in ("is_conj", "is_neg", "is_distributed", "is_inference", "is_shared"):
        assert getattr(x, name)() is False
    assert x.resolve_neg() is x and x.T.dim_order() == (1, 0) and x[0, :1].is_nonzero()
    made = x.double().new_empty_strided((2, 3), (1, 2))
    assert made.stride() == (1, 2) and made.dtype == dt.float64 and made.device == x.device
    with pytest.raises(TypeError, match="'stream' must be Stream"):
        x.record_stream(3)  # type: ignore[arg-type]
    if x.is_cuda:
        x.record_stream(dt.cuda.current_stream())
    y = dt.ones(3, device=device)
    assert y.addmv_(dt.ones(3, 2, device=device), dt.ones(2, device=device), beta=2).tolist() == [4.0] * 3
    z = dt.ones(2, 2, device=device)
    assert z.addmm_(z, z, alpha=2).tolist() == [[5.0] * 2] * 2
    assert dt.tensor([0.0], device=device).i0_().tolist() == [1.0]
    assert dt.tensor([3], device=device).bitwise_left_shift_(2).tolist() == [12]


def test_logarithms_of_gamma_beside_its_poles(device: str) -> None:
    """There the distance to the pole decides: gamma(-n + d) is 1 / (n! d), and its sign (-1) ** n."""
    for n in range(4):
        for away in (1e-6, -1e-6, -1e-11, 1e-12) if n else (-1e-6, -1e-10, -1e-16, -1e-20, -1e-300, 1e-300):
            x = away - n
            exact = x + n  # of the float
            want = -math.log(abs(exact)) - math.lgamma(n + 1)
            got = dt.lgamma(dt.tensor(x, dtype=dt.float64, device=device)).item()
            assert abs(got - want) <= 4e-6 * abs(exact / 1e-6) + 1e-14 * abs(want), (x, got, want)
    assert abs(dt.lgamma(dt.tensor(-1e-45, device=device)).item() + math.log(2.0**-149)) < 1e-4


def test_rounding_to_decimals_writes_to_arrays_alone(device: str) -> None:
    x, out = dt.tensor([1.26, 2.31], device=device), dt.empty(2, device=device)
    assert dt.round(x, decimals=1, out=out) is out and np.allclose(out.cpu().numpy(), [1.3, 2.3])
    for wrong in (np.zeros(2), [0.0, 0.0], 3):
        with pytest.raises(TypeError, match="argument 'out' must be DeviceArray"):
            dt.round(x, decimals=1, out=wrong)  # type: ignore[arg-type]
    with pytest.raises(dt.ShapeMismatchError):
        dt.round(x, decimals=1, out=dt.empty(3, device=device))
