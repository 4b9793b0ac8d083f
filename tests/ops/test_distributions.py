"""Distributions: samples against means, errors, divergences; beside PyTorch's where it is installed."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

import devtensor as dt

D = dt.distributions
RNG = np.random.default_rng(0)


def real(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def share(*shape: int) -> np.ndarray:
    return (RNG.random(shape) * 0.8 + 0.1).astype(np.float32)


FACTOR = np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.48, -0.6, 0.64]], np.float32)
MATRIX = np.array([[2.0, 0.6], [0.6, 1.0]], np.float32)

# Class, parameters, parameters of another for the divergence, a value.
CASES: list[tuple[str, dict[str, Any], dict[str, Any], Any]] = [
    ("Normal", {"loc": real(3), "scale": share(2, 3)}, {"loc": real(3), "scale": share(3)}, real(2, 3)),
    ("Normal", {"loc": 0.5, "scale": 2.0}, {"loc": 1.0, "scale": 1.0}, real()),
    ("Laplace", {"loc": real(3), "scale": share(2, 3)}, {"loc": real(3), "scale": share(3)}, real(2, 3)),
    ("Uniform", {"low": share(3), "high": share(3) + 2}, {"low": share(3) - 1, "high": share(3) + 2}, share(3) + 1),
    ("Uniform", {"low": 0.0, "high": 1.0}, {"low": -1.0, "high": 2.0}, share()),
    ("Exponential", {"rate": share(3)}, {"rate": share(3)}, share(3)),
    ("Exponential", {"rate": 2.0}, {"rate": 1.0}, share()),
    ("Bernoulli", {"probs": share(3)}, {"probs": share(3)}, np.array([0, 1, 1], np.float32)),
    ("Bernoulli", {"logits": real(2, 3)}, {"logits": real(2, 3)}, np.array([0, 1, 1], np.float32)),
    ("Bernoulli", {"probs": 0.3}, {"logits": 1.0}, np.array(1, np.float32)),
    ("Categorical", {"probs": share(5)}, {"probs": share(5)}, np.array(3)),
    ("Categorical", {"logits": real(2, 5)}, {"logits": real(2, 5)}, np.array([1, 4])),
    ("Categorical", {"probs": share(2, 5)}, {"logits": real(2, 5)}, np.array(2)),
    (
        "Gamma",
        {"concentration": share(3) * 9, "rate": share(2, 3)},
        {"concentration": share(3), "rate": share(3)},
        share(2, 3),
    ),
    ("Gamma", {"concentration": 0.5, "rate": 2.0}, {"concentration": 1.5, "rate": 1.0}, share()),
    ("Chi2", {"df": share(3) * 9}, {"df": share(3)}, share(3)),
    (
        "Beta",
        {"concentration1": share(3) * 4, "concentration0": share(2, 3)},
        {"concentration1": share(3), "concentration0": share(3)},
        share(2, 3),
    ),
    (
        "Dirichlet",
        {"concentration": share(2, 3) * 3},
        {"concentration": share(3)},
        np.array([0.25, 0.5, 0.25], np.float32),
    ),
    ("StudentT", {"df": share(3) + 6, "loc": real(3), "scale": share(2, 3)}, {}, real(2, 3)),
    ("StudentT", {"df": 8.0}, {}, real()),
    ("Cauchy", {"loc": real(3), "scale": share(2, 3)}, {"loc": real(3), "scale": share(3)}, real(2, 3)),
    ("Gumbel", {"loc": real(3), "scale": share(2, 3)}, {"loc": real(3), "scale": share(3)}, real(2, 3)),
    ("Pareto", {"scale": share(3), "alpha": share(2, 3) + 5}, {"scale": share(3), "alpha": share(3)}, share(2, 3) + 1),
    ("Weibull", {"scale": share(3), "concentration": share(2, 3) + 1}, {}, share(2, 3)),
    ("Geometric", {"probs": share(3)}, {"probs": share(3)}, np.array([0, 1, 4], np.float32)),
    ("Geometric", {"logits": real(2, 3)}, {"logits": real(2, 3)}, np.array([0, 1, 4], np.float32)),
    ("Poisson", {"rate": share(3) * 20}, {"rate": share(3)}, np.array([0, 1, 4], np.float32)),
    (
        "Binomial",
        {"total_count": np.float32(7), "probs": share(3)},
        {"total_count": 7.0, "logits": real(3)},
        np.array([0, 1, 7], np.float32),
    ),
    (
        "Binomial",
        {"total_count": 40.0, "logits": real(2, 3)},
        {"total_count": 40.0, "probs": share(3)},
        np.array([0, 1, 7], np.float32),
    ),
    ("NegativeBinomial", {"total_count": share(3) * 9, "probs": share(3)}, {}, np.array([0, 1, 7], np.float32)),
    ("NegativeBinomial", {"total_count": 3.0, "logits": real(2, 3)}, {}, np.array([0, 1, 7], np.float32)),
    ("LogNormal", {"loc": real(3), "scale": share(2, 3) / 2}, {"loc": real(3), "scale": share(3)}, share(2, 3)),
    ("HalfNormal", {"scale": share(3)}, {"scale": share(3)}, share(3)),
    ("HalfNormal", {"scale": 2.0}, {"scale": 1.0}, share()),
    ("HalfCauchy", {"scale": share(3)}, {}, share(3)),
    ("VonMises", {"loc": real(3) / 4, "concentration": share(2, 3) * 9 + 1}, {}, real(2, 3)),
    ("OneHotCategorical", {"probs": share(2, 4)}, {"logits": real(2, 4)}, np.eye(4, dtype=np.float32)[[1, 3]]),
    ("OneHotCategoricalStraightThrough", {"logits": real(4)}, {"logits": real(4)}, np.eye(4, dtype=np.float32)[1]),
    ("Multinomial", {"total_count": 6, "probs": share(2, 4)}, {}, np.array([1, 0, 3, 2], np.float32)),
    ("Multinomial", {"total_count": 6, "logits": real(4)}, {}, np.array([1, 0, 3, 2], np.float32)),
    ("RelaxedBernoulli", {"temperature": np.float32(0.7), "probs": share(3)}, {}, share(3)),
    ("RelaxedBernoulli", {"temperature": np.float32(0.7), "logits": real(2, 3)}, {}, share(2, 3)),
    (
        "RelaxedOneHotCategorical",
        {"temperature": np.float32(0.7), "probs": share(2, 3)},
        {},
        np.array([0.25, 0.5, 0.25], np.float32),
    ),
    (
        "MultivariateNormal",
        {"loc": real(4, 2), "covariance_matrix": MATRIX},
        {"loc": real(2), "scale_tril": np.eye(2, dtype=np.float32)},
        real(4, 2),
    ),
    (
        "MultivariateNormal",
        {"loc": real(2), "precision_matrix": MATRIX * np.ones((3, 1, 1), np.float32)},
        {"loc": real(2), "covariance_matrix": MATRIX},
        real(3, 2),
    ),
    (
        "MultivariateNormal",
        {"loc": real(2), "scale_tril": np.linalg.cholesky(MATRIX)},
        {"loc": real(2), "precision_matrix": MATRIX},
        real(2),
    ),
    ("InverseGamma", {"concentration": share(3) + 6, "rate": share(2, 3)}, {}, share(2, 3)),
    ("InverseGamma", {"concentration": 7.0, "rate": 2.0}, {"concentration": 5.0, "rate": 3.0}, share()),
    ("FisherSnedecor", {"df1": share(3) * 9, "df2": share(2, 3) + 12}, {}, share(2, 3)),
    ("Kumaraswamy", {"concentration1": share(3) * 4, "concentration0": share(2, 3)}, {}, share(2, 3)),
    ("Kumaraswamy", {"concentration1": 0.5, "concentration0": 3.0}, {}, share()),
    ("ContinuousBernoulli", {"probs": share(3)}, {"logits": np.array([-2.0, 0.7, 3.0], np.float32)}, share(3)),
    ("ContinuousBernoulli", {"logits": real(2, 3)}, {}, share(2, 3)),
    ("ContinuousBernoulli", {"probs": np.array([0.5, 0.4995, 0.9999], np.float32)}, {}, share(3)),
    (
        "LowRankMultivariateNormal",
        {"loc": real(3, 4), "cov_factor": real(4, 2), "cov_diag": share(3, 4)},
        {"loc": real(4), "cov_factor": real(3, 4, 1), "cov_diag": share(4)},
        real(3, 4),
    ),
    (
        "GeneralizedPareto",
        {"loc": -share(3), "scale": share(2, 3), "concentration": np.array([0.0, 0.2, -0.2], np.float32)},
        {},
        np.array([0.3, 0.9, 0.01], np.float32),
    ),
    ("GeneralizedPareto", {"loc": 0.0, "scale": 2.0, "concentration": 0.3}, {}, share()),
    ("LKJCholesky", {"dim": 3, "concentration": share(3) + 0.5}, {}, FACTOR),
    ("LKJCholesky", {"dim": 3, "concentration": 2.0}, {}, FACTOR),
    (
        "Wishart",
        {"df": np.float32(4.5), "covariance_matrix": MATRIX},
        {"df": 3.5, "scale_tril": np.eye(2, dtype=np.float32)},
        MATRIX * 3,
    ),
    (
        "Wishart",
        {"df": share(3) + 4, "covariance_matrix": MATRIX},
        {},
        MATRIX * np.ones((3, 1, 1), np.float32),
    ),
    ("Wishart", {"df": 5.0, "precision_matrix": MATRIX}, {"df": 3.5, "covariance_matrix": MATRIX}, MATRIX),
]
LAPACK = ("MultivariateNormal", "LowRankMultivariateNormal", "Wishart")  # on the cpu alone
NAMES = [f"{case[0]}-{'-'.join(case[1])}-{np.shape(next(iter(case[1].values())))}" for case in CASES]


def made(lib: Any, kind: str, parameters: dict[str, Any], device: str) -> tuple[Any, list[Any]]:
    """The distribution, and its arrays."""
    given = {name: array(lib, value, device) for name, value in parameters.items()}
    arrays = [value.requires_grad_() for value in given.values() if not isinstance(value, (int, float))]
    return getattr(lib.distributions, kind)(**given), arrays


def array(lib: Any, value: Any, device: str) -> Any:
    if isinstance(value, (int, float)):
        return value
    found = lib.from_numpy(np.array(value))
    return found.to(device) if lib is dt else found


def has(kind: str, name: str) -> bool:
    """Whether both libraries' classes do more than refuse. Relaxed ones have a cdf in name only."""
    if kind.startswith("Relaxed"):
        return name == "log_prob"
    return getattr(getattr(D, kind), name) is not getattr(D.Distribution, name)


def outcome(lib: Any, case: tuple[str, dict[str, Any], dict[str, Any], Any], device: str) -> dict[str, Any]:
    kind, parameters, others, value = case
    d, arrays = made(lib, kind, parameters, device)
    x, found = array(lib, value, device), {}
    for name in ("log_prob", "cdf", "icdf"):
        if has(kind, name):
            found[name] = getattr(d, name)(x)
    for name in ("mean", "variance", "stddev", "mode"):
        if has(kind, name):
            found[name] = getattr(d, name)
    if has(kind, "entropy"):
        found |= {"entropy": d.entropy(), "perplexity": d.perplexity()}
    if others:
        found["divergence"] = lib.distributions.kl_divergence(d, made(lib, kind, others, device)[0])
    found["expanded"] = d.expand((4, *d.batch_shape)).log_prob(x)
    if d.has_enumerate_support:
        found |= {"values": d.enumerate_support(), "plain values": d.enumerate_support(False)}
    if d.batch_shape:
        whole = lib.distributions.Independent(d, 1)
        found["whole"] = whole.log_prob(x)
        if others:
            if "entropy" in found:
                found["whole entropy"] = whole.entropy()
            found["whole divergence"] = lib.distributions.kl_divergence(whole, whole)
    if arrays:
        sum(found[name].sum() for name in ("log_prob", "entropy", "divergence") if name in found).backward()
        found |= {f"gradient {i}": leaf.grad for i, leaf in enumerate(arrays)}
    return found


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_values_and_gradients_are_pytorchs(case: Any, device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if device != "cpu" and isinstance(next(iter(case[1].values())), float):
        pytest.skip("numbers make arrays of the default device")
    if device != "cpu" and case[0] in LAPACK:
        pytest.skip("LAPACK works on the cpu alone")
    ours, theirs = outcome(dt, case, device), outcome(torch, case, device)
    assert list(ours) == list(theirs)
    for name, got in ours.items():
        assert got.shape == tuple(theirs[name].shape), name
        np.testing.assert_allclose(got.tolist(), theirs[name].tolist(), rtol=2e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_samples(case: Any, device: str) -> None:
    if device != "cpu" and case[0] in ("MultivariateNormal", "Wishart") and "scale_tril" not in case[1]:
        pytest.skip("LAPACK works on the cpu alone")
    dt.manual_seed(2)
    d, arrays = made(dt, case[0], case[1], device)
    shape = d.batch_shape + d.event_shape
    assert d.sample().shape == shape and d.sample((2, 3)).shape == (2, 3, *shape)
    assert d.sample_n(2).shape == (2, *shape) and d.sample((0,)).shape == (0, *shape)
    drawn = d.sample((4000,)).double()
    assert not drawn.requires_grad
    if case[0] == "Categorical":
        for k in range(5):
            got = (drawn == k).double().mean(0)
            np.testing.assert_allclose(got.tolist(), d.probs[..., k].tolist(), atol=0.04)
    elif has(case[0], "variance") and "Cauchy" not in case[0] and case[0] != "VonMises":
        far = 0.08 * max(1.0, float(d.stddev.amax()))
        np.testing.assert_allclose(drawn.mean(0).tolist(), d.mean.tolist(), atol=far)
        np.testing.assert_allclose(drawn.std(0).tolist(), d.stddev.tolist(), atol=far)
    if has(case[0], "cdf"):
        assert distance(d.cdf(drawn.to(d.mean.dtype)).detach().numpy(force=True)) < 0.035
    if d.has_rsample and arrays:
        d.rsample((2,)).sum().backward()
        assert arrays[0].grad is not None
    elif not d.has_rsample:
        with pytest.raises(NotImplementedError):
            d.rsample()


def test_normal_numbers_of_low_rank_and_on_a_simplex() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    loc, factor, diagonal, value = real(3, 4), real(4, 2), share(3, 4), real(3, 4)
    point = np.array([[0.1, 0.2, 0.3, 0.15, 0.25]], np.float32)
    found = []
    for lib in (torch, dt):
        arrays = [array(lib, x, "cpu").requires_grad_() for x in (loc, factor, diagonal)]
        low, flat = lib.distributions.LowRankMultivariateNormal(*arrays), lib.distributions.LogisticNormal
        parts = [low.log_prob(array(lib, value, "cpu")), low.entropy(), low.variance, low.mean, low.covariance_matrix]
        parts += [low.scale_tril, low.precision_matrix, low.expand((2, 3)).log_prob(array(lib, value, "cpu"))]
        simplex = flat(arrays[0], arrays[2])
        parts += [simplex.log_prob(array(lib, point, "cpu")), simplex.loc, simplex.scale]
        sum(part.sum() for part in parts).backward()
        found.append([*(part.detach() for part in parts), *(x.grad for x in arrays)])
        assert tuple(simplex.sample((2,)).shape) == (2, 3, 5) and flat(0.0, 1.0).event_shape == (2,)
    for ours, theirs in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(ours.tolist(), theirs.tolist(), 2e-3, 1e-4)
    drawn = low.sample((20000,)).double()
    assert (drawn.mean(0) - low.mean).abs().max().item() < 0.08
    assert (drawn.var(0) / low.variance - 1).abs().max().item() < 0.06
    for wrong in ((loc[0, 0], factor, diagonal), (loc, factor[:3], diagonal), (loc, factor, diagonal[:, :2])):
        with pytest.raises(ValueError):
            D.LowRankMultivariateNormal(*(array(dt, np.asarray(x), "cpu") for x in wrong))


def distance(probabilities: np.ndarray) -> float:
    """Kolmogorov's and Smirnov's, of numbers along the first dimension that should be uniform from 0 to 1."""
    steps = (np.arange(len(probabilities)) + 0.5) / len(probabilities)
    return float(np.abs(np.sort(probabilities.reshape(len(steps), -1), 0) - steps[:, None]).max())


def test_drawn_numbers_have_their_distribution(device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    dt.manual_seed(3)
    for a in (0.1, 0.7, 1.0, 4.0, 60.0):
        d = D.Gamma(dt.full((8000,), a, device=device), 2.0)
        drawn = torch.from_numpy(d.sample().numpy(force=True)).double()
        assert distance(torch.special.gammainc(torch.tensor(a).double(), 2 * drawn).numpy()) < 0.025, a
        beta = D.Beta(dt.full((8000,), a, device=device), 1.0)  # its distribution function is x**a
        assert distance((beta.sample() ** a).numpy(force=True)) < 0.025, a
    counts = [
        *((D.Poisson, {"rate": rate}) for rate in (0.5, 9.0, 11.0, 200.0)),
        *(
            (D.Binomial, {"total_count": n, "probs": p})
            for n, p in ((1, 0.3), (40, 0.1), (40, 0.9), (100, 0.4), (2000, 0.3))
        ),
        *((D.NegativeBinomial, {"total_count": n, "probs": p}) for n, p in ((0.5, 0.5), (30.0, 0.6))),
        (D.Geometric, {"probs": 0.2}),
    ]
    for kind, given in counts:
        values = {name: dt.tensor(value, device=device, dtype=dt.float64) for name, value in given.items()}
        drawn = kind(**values).sample((20000,)).numpy(force=True)
        own = getattr(torch.distributions, kind.__name__)
        most = int(drawn.max())
        if "total_count" in given and kind is D.Binomial:
            most = min(most, int(given["total_count"]))
        wanted = own(**{name: torch.tensor(value).double() for name, value in given.items()})
        wanted = wanted.log_prob(torch.arange(most + 1).double()).exp().cumsum(0).numpy()
        found = np.bincount(drawn.astype(int), minlength=most + 1).cumsum() / drawn.size
        assert np.abs(found - wanted).max() < 0.014, (kind, given)


def test_gamma_numbers_have_pytorchs_gradients(device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from devtensor._composed.creating.rejection import gamma_slope

    a = np.exp(np.random.default_rng(1).uniform(-3, 5, (500, 1))) * np.ones((1, 8))
    wanted = torch.tensor(a, requires_grad=True)
    torch.manual_seed(0)
    numbers = torch._standard_gamma(wanted)
    numbers.sum().backward()
    found = gamma_slope(dt.tensor(a, device=device), dt.tensor(numbers.detach().numpy(), device=device))
    np.testing.assert_allclose(found.tolist(), wanted.grad.tolist(), rtol=1e-10)
    leaf = dt.tensor(a, device=device, requires_grad=True)
    dt.manual_seed(0)
    ours = D.Gamma(leaf, 1.0).rsample()
    ours.sum().backward()
    assert (leaf.grad == gamma_slope(leaf.detach(), ours.detach())).all()


def test_numbers_are_on_every_device(device: str) -> None:
    value = dt.ones(2, device=device)
    for d in (D.Normal(0.0, 1.0), D.Bernoulli(0.5), D.Uniform(0.0, 2.0), D.Bernoulli(logits=0.0).expand((2,))):
        assert d.log_prob(value).device == dt.device(device)
    assert D.Uniform(0.0, 2.0).cdf(value).tolist() == [0.5, 0.5]


def test_independent(device: str) -> None:
    base = D.Normal(dt.zeros(4, 3, 2, device=device), 1.0)
    d = D.Independent(base, 2)
    assert (d.batch_shape, d.event_shape) == ((4,), (3, 2)) and d.has_rsample and not d.has_enumerate_support
    assert d.log_prob(d.rsample()).shape == (4,) and d.expand((5, 4)).sample().shape == (5, 4, 3, 2)
    assert repr(d) == "Independent(Normal(loc: (4, 3, 2), scale: (4, 3, 2)), 2)"
    assert repr(d.support) == "IndependentConstraint(Real(), 2)"
    assert d.support.check(d.sample()).shape == (4,)
    assert d.mean is base.mean and d.stddev.shape == (4, 3, 2)
    categorical = D.Independent(D.Categorical(dt.ones(2, device=device)), 0)
    assert categorical.enumerate_support().tolist() == [0, 1]


def test_a_class_of_the_users() -> None:
    class Half(D.Normal):
        def log_prob(self, value: dt.DeviceArray) -> dt.DeviceArray:
            return super().log_prob(value) + 1

    @D.register_kl(Half, D.Normal)
    def divergence(p: Half, q: D.Normal) -> dt.DeviceArray:
        return dt.tensor(7.0)

    half, normal = Half(0.0, 1.0), D.Normal(0.0, 1.0)
    assert float(D.kl_divergence(half, normal)) == 7 and float(D.kl_divergence(normal, half)) == 0
    assert type(half.expand((2,))) is Half
    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        D.Distribution()
    with pytest.raises(TypeError, match="Expected type_q to be a Distribution subclass"):
        D.register_kl(Half, int)


ERRORS: list[tuple[Any, type[Exception], str]] = [
    (lambda: D.Normal(0.0, -1.0), ValueError, r"constraint GreaterThan\(lower_bound=0.0\), but found invalid values"),
    (lambda: D.Normal(dt.zeros(2), dt.ones(3)), dt.ShapeMismatchError, "must match the size"),
    (lambda: D.Normal(dt.zeros(2), dt.ones(2).double()), dt.DTypeMismatchError, "loc and scale must have"),
    (lambda: D.Normal("a", 1.0), TypeError, r"Normal\(\): argument 'loc' must be"),
    (lambda: D.Normal(dt.zeros(2), dt.ones(2, device="cuda:0")), dt.DeviceMismatchError, "Normal: loc on cpu"),
    (lambda: D.Normal(dt.zeros(2), 1.0).log_prob(dt.ones(2, device="cuda:0")), dt.DeviceMismatchError, "value on cuda"),
    (lambda: D.Normal(dt.zeros(2), 1.0).log_prob(dt.ones(3)), ValueError, "not broadcastable with batch_shape"),
    (lambda: D.Normal(0.0, 1.0).log_prob(1.0), ValueError, "The value argument to log_prob must be a Tensor"),
    (lambda: D.Bernoulli(0.5).icdf(dt.ones(1)), NotImplementedError, "Bernoulli does not implement icdf"),
    (lambda: D.Uniform(2.0, 1.0), ValueError, r"LessThan\(upper_bound=1.0\)"),
    (lambda: D.Uniform(0.0, 1.0).log_prob(dt.tensor(2.0)), ValueError, r"support \(Interval\(lower_bound=0.0"),
    (lambda: D.Bernoulli(), ValueError, "Either `probs` or `logits` must be specified"),
    (lambda: D.Bernoulli(0.5).log_prob(dt.tensor(0.3)), ValueError, r"within the support \(Boolean\(\)\)"),
    (lambda: D.Categorical(dt.ones(2), dt.ones(2)), ValueError, "Either `probs` or `logits` must be specified"),
    (lambda: D.Categorical(dt.tensor(1.0)), ValueError, "must be at least one-dimensional"),
    (lambda: D.Categorical(dt.tensor([-1.0, 3.0])), ValueError, r"constraint Simplex\(\)"),
    (lambda: D.Categorical(logits=dt.tensor([float("nan")])), ValueError, r"IndependentConstraint\(Real\(\), 1\)"),
    (lambda: D.Categorical(dt.ones(3)).log_prob(dt.tensor(3)), ValueError, r"IntegerInterval\(lower_bound=0, upper"),
    (lambda: D.Categorical([1.0]), TypeError, "argument 'probs' must be DeviceArray, not list"),
    (lambda: D.Independent(D.Normal(0.0, 1.0), 1), ValueError, "actual 1 vs 0"),
    (lambda: D.Independent(3, 1), TypeError, "must be Distribution, not int"),
    (lambda: D.kl_divergence(D.Normal(0.0, 1.0), D.Bernoulli(0.5)), NotImplementedError, "type Normal and q type Bern"),
]


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS)
def test_what_does_not_fit(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


def test_a_value_that_does_not_fit_is_the_culprit() -> None:
    for value, text in ((dt.ones(3), "not broadcastable"), (-dt.ones(2), "within the support")):
        with pytest.raises(ValueError, match=text) as caught:
            D.Exponential(dt.ones(2)).log_prob(value)
        assert [operand.name for operand in caught.value.operands] == ["rate", "value"]
        assert caught.value.culprit.name == "value"


def test_nothing_is_looked_at_where_nobody_wants_it() -> None:
    assert D.Normal(0.0, -1.0, validate_args=False).mean.item() == 0
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)
    assert D.Normal(dt.zeros(1, device="cuda:0"), -1.0).scale.item() == -1  # it would wait for the device


# Of torch.distributions.kl, apart from those that CASES has: both ways between all of them.
SIMPLE = {
    "Beta": (2.0, 3.0), "ContinuousBernoulli": (0.3,), "Exponential": (2.0,), "Gamma": (2.0, 3.0), "Gumbel": (0.5, 2.0),
    "Laplace": (0.5, 2.0), "Normal": (0.5, 2.0), "Pareto": (0.5, 3.0), "Uniform": (0.25, 0.75), "Poisson": (2.0,),
    "Bernoulli": (0.3,),
}  # fmt: skip


def test_there_is_a_divergence_wherever_pytorch_has_one(device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from devtensor.distributions.kl import _FORMULAS

    ours = {(p.__name__, q.__name__) for p, q in _FORMULAS}
    assert {(p.__name__, q.__name__) for p, q in torch.distributions.kl._KL_REGISTRY} <= ours
    found = 0
    for p, of_p in SIMPLE.items():
        for q, of_q in SIMPLE.items():
            given = [
                [lib.tensor(x, device=place) for x in values]
                for values in (of_p, of_q)
                for lib, place in ((dt, device), (torch, "cpu"))
            ]
            try:
                want = torch.distributions.kl_divergence(
                    getattr(torch.distributions, p)(*given[1]), getattr(torch.distributions, q)(*given[3])
                )
            except NotImplementedError:
                continue
            found += 1
            if (p, q) == ("ContinuousBernoulli", "Uniform"):  # which does not hold all numbers from 0 to 1
                assert D.kl_divergence(
                    D.ContinuousBernoulli(given[0][0]), D.Uniform(-1.0 * given[2][1], 1.5 + given[2][1])
                ).isfinite()
            got = D.kl_divergence(getattr(D, p)(*given[0]), getattr(D, q)(*given[2]))
            np.testing.assert_allclose(got.item(), want.item(), 1e-4, err_msg=f"{p}, {q}")
    assert found > 60


def test_uniform_numbers_of_all_of_0_to_1_have_a_divergence_of_shares(device: str) -> None:
    """PyTorch says infinity, where the end of one is the end of the other."""
    flat = D.Uniform(dt.zeros((), device=device), 1.0 + dt.zeros((), device=device))
    half = D.ContinuousBernoulli(dt.full((), 0.5, device=device))
    assert abs(D.kl_divergence(flat, half).item()) < 1e-5 and abs(D.kl_divergence(half, flat).item()) < 1e-5
    wide = D.Uniform(dt.zeros((), device=device), dt.full((), 1.5, device=device))
    assert D.kl_divergence(wide, half).item() == float("inf") and D.kl_divergence(half, wide).isfinite()


def test_drawn_matrices(device: str) -> None:
    dt.manual_seed(4)
    lkj = D.LKJCholesky(3, dt.tensor(1.5, dtype=dt.float64, device=device))
    drawn = lkj.sample((20000,))
    assert bool(lkj.support.check(drawn).all()) and drawn.device == dt.device(device)
    variance = (drawn @ drawn.mT).var(0)[1, 0].item()  # of a beta number (2, 2) from -1 to 1
    assert abs(variance - 0.2) < 0.01
    root = dt.tensor([[1.0, 0.0], [0.3, 0.8]], dtype=dt.float64, device=device, requires_grad=True)
    wishart = D.Wishart(4.5, scale_tril=root)
    wishart.rsample((3,)).sum().backward()
    assert root.grad is not None and wishart.expand((2,)).sample().shape == (2, 2, 2)
    with pytest.warns(UserWarning, match="Low df values") if device == "cpu" else contextlib.nullcontext():
        D.Wishart(1.5, scale_tril=root.detach())
    for wrong in ({}, {"scale_tril": root, "covariance_matrix": root}):
        with pytest.raises(ValueError, match="Exactly one of covariance_matrix"):
            D.Wishart(3.0, **wrong)
    with pytest.raises(ValueError, match="at least two-dimensional"):
        D.Wishart(3.0, scale_tril=root[0])
    if device == "cpu":
        with pytest.raises(ValueError, match="expected to be greater than ndim - 1 = 1"):
            D.Wishart(1.0, scale_tril=root)
    with pytest.raises(ValueError, match="greater than or equal to 2. Found dim=1"):
        D.LKJCholesky(1)


def test_entropies_and_divergences_by_the_normalizer() -> None:
    class Exponential(D.ExponentialFamily):
        arg_constraints = {}  # noqa: RUF012
        _mean_carrier_measure = 0.0

        def __init__(self, rate: Any) -> None:
            self.rate = rate
            super().__init__(rate.shape)

        @property
        def _natural_params(self) -> Any:
            return (-self.rate,)

        def _log_normalizer(self, *natural_params: Any) -> Any:
            return -(-natural_params[0]).log()

    rates = [dt.tensor([0.5, 2.0], requires_grad=True), dt.tensor([1.5, 3.0], requires_grad=True)]
    wishart = D.Wishart(4.5, covariance_matrix=dt.from_numpy(MATRIX))
    (p, q), plain = (Exponential(rate) for rate in rates), [D.Exponential(rate) for rate in rates]
    for got, want in (
        (p.entropy(), plain[0].entropy()),
        (D.kl_divergence(p, q), D.kl_divergence(*plain)),
        (wishart.entropy(), D.ExponentialFamily.entropy(wishart)),
    ):
        np.testing.assert_allclose(got.tolist(), want.tolist(), 1e-4)
    with pytest.raises(NotImplementedError, match="different exponential families"):
        D.kl_divergence(p, wishart)
