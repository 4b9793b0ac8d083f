"""Transforms of distributions, what is made of them, and mixtures, beside PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import devtensor as dt

D = dt.distributions
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3))

# A transform, and what it takes.
TRANSFORMS: list[tuple[Callable[[Any, Callable[[Any], Any]], Any], np.ndarray]] = [
    (lambda d, a: d.ExpTransform(), X),
    (lambda d, a: d.ExpTransform().inv, np.exp(X)),
    (lambda d, a: d.PowerTransform(a(2.5)), np.exp(X)),
    (lambda d, a: d.SigmoidTransform(), X),
    (lambda d, a: d.SigmoidTransform().inv, 1 / (1 + np.exp(X))),
    (lambda d, a: d.SoftplusTransform(), X),
    (lambda d, a: d.TanhTransform(), X),
    (lambda d, a: d.AffineTransform(a([1.0, 2.0, 3.0]), a([2.0, -3.0, 0.5])), X),
    (lambda d, a: d.AffineTransform(1.0, -2.0), X),
    (lambda d, a: d.AffineTransform(1.0, -2.0, event_dim=1), X),
    (lambda d, a: d.AffineTransform(a([1.0, 2.0, 3.0]), a([2.0, -3.0, 0.5]), event_dim=1), X),
    (lambda d, a: d.StickBreakingTransform(), X),
    (lambda d, a: d.CorrCholeskyTransform(), X),
    (lambda d, a: d.ReshapeTransform((3,), (3, 1)), X),
    (lambda d, a: d.IndependentTransform(d.TanhTransform(), 1), X),
    (lambda d, a: d.ComposeTransform([d.TanhTransform(), d.AffineTransform(1.0, 0.5), d.ExpTransform()]), X),
    (lambda d, a: d.ComposeTransform([d.ExpTransform(), d.StickBreakingTransform()]), X),
    (
        lambda d, a: d.ComposeTransform([d.ExpTransform(), d.StickBreakingTransform()]).inv,
        np.array([[0.7, 0.2, 0.06, 0.04]]),
    ),
    (lambda d, a: d.CatTransform([d.ExpTransform(), d.AffineTransform(0.0, 3.0)], -1, [2, 1]), X),
    (lambda d, a: d.StackTransform([d.ExpTransform(), d.TanhTransform()], 0), X),
    (lambda d, a: d.CumulativeDistributionTransform(d.Normal(a(0.0), a(1.0))), X),
]
# These have no density of their own.
ONE_WAY: list[tuple[Callable[[Any], Any], np.ndarray]] = [
    (lambda d: d.AbsTransform(), X),
    (lambda d: d.SoftmaxTransform(), X),
    (lambda d: d.transform_to(d.constraints.lower_cholesky), RNG.standard_normal((2, 3, 3))),
    (lambda d: d.transform_to(d.constraints.positive_definite), RNG.standard_normal((2, 3, 3))),
]


def of(lib: Any, device: str) -> Callable[[Any], Any]:
    def array(value: Any) -> Any:
        found = lib.from_numpy(np.array(value, np.float64))
        return found.to(device) if lib is dt else found

    return array


def text(shown: Any) -> str:
    return repr(shown).replace("tensor", "")


def test_transforms_are_pytorchs(device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for make, x in TRANSFORMS:
        found = []
        for lib in (dt, torch):
            array = of(lib, device)
            t, given = make(lib.distributions, array), array(x).requires_grad_()
            y = t(given)
            change = t.log_abs_det_jacobian(given, y)
            (y.sum() + change.sum()).backward()
            whole = [y, change, t.inv(y), given.grad]
            if not any(part in repr(t) for part in ("Stick", "Cat", "Stack", "Reshape", "Corr")):
                whole.append(t.sign * array(1.0))
            shapes = [tuple(t.forward_shape(given.shape)), tuple(t.inverse_shape(y.shape)), t.bijective]
            about = [text(t), text(t.inv), text(t.domain), text(t.codomain), shapes, [tuple(v.shape) for v in whole]]
            found.append((about, [v.tolist() for v in whole]))
        assert found[0][0] == found[1][0]
        for one, other in zip(found[0][1], found[1][1], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=found[0][0][0])
    for way, x in ONE_WAY:
        if device != "cpu" and "PositiveDefinite" in repr(way(D)):
            continue  # its inverse is LAPACK's
        ours, theirs = way(D), way(torch.distributions)
        y, wanted = ours(of(dt, device)(x)), theirs(of(torch, device)(x))
        np.testing.assert_allclose(y.tolist(), wanted.tolist(), rtol=1e-12)
        np.testing.assert_allclose(ours.inv(y).tolist(), theirs.inv(wanted).tolist(), rtol=1e-9, atol=1e-12)


def test_registries_are_pytorchs() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for make in (
        lambda c: c.real, lambda c: c.positive, lambda c: c.nonnegative, lambda c: c.greater_than(2.0),
        lambda c: c.less_than(2.0), lambda c: c.unit_interval, lambda c: c.interval(-1.0, 3.0), lambda c: c.simplex,
        lambda c: c.real_vector, lambda c: c.independent(c.positive, 1), lambda c: c.half_open_interval(0.0, 2.0),
        lambda c: c.stack([c.real, c.positive], -2), lambda c: c.cat([c.real, c.positive], -2),
    ):  # fmt: skip
        for name in ("biject_to", "transform_to"):
            ours = getattr(D, name)(make(D.constraints))
            theirs = getattr(torch.distributions, name)(make(torch.distributions.constraints))
            if "Stack" not in repr(ours) and "Cat" not in repr(ours):
                assert repr(ours) == repr(theirs)
            y = ours(dt.tensor(X))
            np.testing.assert_allclose(y.tolist(), theirs(torch.tensor(X)).tolist())
            assert bool(make(D.constraints).check(y).all())
    with pytest.raises(NotImplementedError, match="Cannot transform _IntegerGreaterThan constraints"):
        D.biject_to(D.constraints.nonnegative_integer)
    with pytest.raises(TypeError, match="Constraint subclass or instance, but got 3"):
        D.biject_to.register(3, lambda c: D.identity_transform)


def test_constraints_are_pytorchs(device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    square = X[:, :2] @ X[:, :2].T
    values = [X, np.abs(X), np.eye(3), np.tril(np.ones((3, 3))), square, -square, np.ones((2, 3, 3)), np.rint(X)]
    names = (
        "lower_triangular lower_cholesky corr_cholesky square symmetric positive_semidefinite positive_definite "
        "one_hot simplex boolean positive_integer nonnegative_integer real real_vector"
    ).split()
    for name in names:
        if device != "cpu" and "definite" in name:
            continue  # eigenvalues are LAPACK's
        ours, theirs = getattr(D.constraints, name), getattr(torch.distributions.constraints, name)
        assert repr(ours).replace("GreaterThanEq", "GreaterThan") == repr(theirs).replace(
            "GreaterThanEq", "GreaterThan"
        )
        assert (ours.is_discrete, ours.event_dim) == (theirs.is_discrete, theirs.event_dim)
        for value in values:
            wanted = theirs.check(of(torch, device)(value)).tolist()
            assert ours.check(of(dt, device)(value)).tolist() == wanted, (name, value)


def test_a_cache_gives_back_what_was_given(device: str) -> None:
    t = D.TanhTransform(cache_size=1)
    x = of(dt, device)([30.0])
    assert t.inv(t(x)) is x and t.with_cache(0) == t and t.with_cache() is t
    assert D.ComposeTransform([D.ExpTransform()], cache_size=1).parts[0]._cache_size == 1
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        D.ExpTransform(2)
    with pytest.raises(ValueError, match="different numbers of elements"):
        D.ReshapeTransform((2,), (3,))


DISTRIBUTIONS: list[tuple[Callable[[Any, Callable[[Any], Any]], Any], np.ndarray]] = [
    (lambda d, a: d.TransformedDistribution(d.Normal(a(X), a(2.0)), [d.TanhTransform()]), np.tanh(X)),
    (lambda d, a: d.TransformedDistribution(d.Normal(a(X), a(2.0)), d.ExpTransform().inv), X),
    (lambda d, a: d.TransformedDistribution(d.Normal(a([0.0]), a([2.0])), d.AffineTransform(a(X), a(-3.0))), X),
    (lambda d, a: d.TransformedDistribution(d.Independent(d.Normal(a(X), a(2.0)), 1), [d.ExpTransform()]), np.exp(X)),
    (lambda d, a: d.TransformedDistribution(d.Normal(a(X), a(2.0)), d.StickBreakingTransform()), np.full((2, 4), 0.25)),
    (lambda d, a: d.MixtureSameFamily(d.Categorical(a([1.0, 2.0, 3.0])), d.Normal(a(X[0]), a(2.0))), X[:1, 0]),
    (lambda d, a: d.MixtureSameFamily(d.Categorical(a(np.exp(X))), d.Normal(a(X), a(2.0))), X[:, 0]),
    (lambda d, a: d.MixtureSameFamily(d.Categorical(a([1.0, 2.0])), d.Independent(d.Normal(a(X), a(2.0)), 1)), X[0]),
]  # fmt: skip


def test_distributions_are_pytorchs(device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for make, x in DISTRIBUTIONS:
        found = []
        for lib in (dt, torch):
            d, array = make(lib.distributions, of(lib, device)), of(lib, device)
            value = array(x)
            results = [d.log_prob(value), d.expand((4, *d.batch_shape)).log_prob(value)]
            if not d.event_shape:
                results.append(d.cdf(value))
            if not hasattr(d, "transforms"):
                results += [d.mean, d.variance]
            elif not d.event_shape:
                results.append(d.icdf(array(np.full(d.batch_shape, 0.3))))
            about = (d.batch_shape, d.event_shape, d.sample((5,)).shape, d.has_rsample, text(d.support))
            found.append((str([tuple(a) if isinstance(a, tuple) else a for a in about]), [r.tolist() for r in results]))
        assert found[0][0] == found[1][0]
        for one, other in zip(found[0][1], found[1][1], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_utils_are_pytorchs(device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from devtensor.distributions import utils

    theirs = torch.distributions.utils
    for value in (0.0, 1.0, 0.3):
        for binary in (False, True):
            for name in ("probs_to_logits", "logits_to_probs"):
                got = getattr(utils, name)(of(dt, device)([value, 0.5]), binary)
                wanted = getattr(theirs, name)(of(torch, device)([value, 0.5]), binary)
                np.testing.assert_allclose(got.tolist(), wanted.tolist(), rtol=1e-12)
    one, other = utils.broadcast_all(2, of(dt, device)(X))
    assert (one.shape, one.dtype, one.device) == (other.shape, other.dtype, other.device)
    with pytest.raises(ValueError, match="must all be instances of Number"):
        utils.broadcast_all("a")


def test_divergences_of_pairs_are_pytorchs(device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    parameters: dict[str, tuple[Any, ...]] = {
        "Bernoulli": (0.3,), "Beta": (1.5, 2.5), "Binomial": (3.0, 0.4), "Exponential": (1.5,), "Gamma": (2.5, 1.5),
        "Gumbel": (0.3, 1.2), "Laplace": (0.3, 1.2), "Normal": (0.3, 1.2), "Pareto": (0.1, 3.5), "Poisson": (2.5,),
        "Uniform": ([0.2, -0.5, -0.5, 0.2], [0.8, 0.8, 1.5, 1.5]), "Cauchy": (0.3, 1.2), "LogNormal": (0.3, 1.2),
        "Dirichlet": ([1.5, 2.5],), "HalfNormal": (0.3,), "Geometric": (0.3,),
    }  # fmt: skip
    pairs = 0
    for one, of_one in parameters.items():
        for other, of_other in parameters.items():
            found = []
            for lib in (torch, dt):
                array = of(lib, device)
                leaves = [array(value).requires_grad_() for value in of_one]
                p = getattr(lib.distributions, one)(*leaves)
                q = getattr(lib.distributions, other)(*(array(value) for value in of_other))
                try:
                    result = lib.distributions.kl_divergence(p, q)
                except NotImplementedError:
                    found.append(None)
                    continue
                if bool(result.isfinite().all()):
                    result.sum().backward()
                found.append([result.tolist(), *(leaf.grad.tolist() for leaf in leaves if leaf.grad is not None)])
            assert (found[0] is None) == (found[1] is None), (one, other)
            if found[0] is not None:
                pairs += 1
                for wanted, got in zip(found[0], found[1], strict=True):
                    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-9, err_msg=f"{one} {other}")
    assert pairs > 60


def test_mixtures_draw_from_each_part(device: str) -> None:
    dt.manual_seed(0)
    place = of(dt, device)
    d = D.MixtureSameFamily(D.Categorical(place([1.0, 3.0])), D.Normal(place([-50.0, 50.0]), place(1.0)))
    drawn = d.sample((4000,))
    assert abs(float((drawn > 0).double().mean()) - 0.75) < 0.03 and float(drawn.abs().std()) < 1.1
    whole = D.MixtureSameFamily(
        D.Categorical(place([1.0, 3.0])), D.Independent(D.Normal(place([[-50.0] * 2, [50.0] * 2]), place(1.0)), 1)
    ).sample((300,))
    assert whole.shape == (300, 2) and bool((whole[:, 0].sign() == whole[:, 1].sign()).all())
    leaf = place([0.5, 1.0]).requires_grad_()
    D.TransformedDistribution(D.Normal(leaf, 1.0), [D.TanhTransform()]).rsample((3,)).sum().backward()
    assert leaf.grad is not None and bool((leaf.grad > 0).all())


def test_one_number_serves_all_devices(device: str) -> None:
    value = dt.ones(2, device=device) / 2
    for d in (D.HalfNormal(1.0), D.LogNormal(0.0, 1.0), D.Gumbel(0.0, 1.0), D.Gamma(1.0, 1.0), D.Beta(2.0, 2.0),
              D.RelaxedBernoulli(0.5, probs=0.3), D.StudentT(3.0), D.VonMises(0.0, 1.0)):  # fmt: skip
        assert d.log_prob(value).device == dt.device(device)


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), 3),
        ValueError,
        "transforms must be a Transform or list, but",
    ),
    (lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), [3]), ValueError, "a Transform or a list of Transforms"),
    (lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), D.StickBreakingTransform()), ValueError, "size at least 1"),
    (lambda: D.LogNormal(0.0, 1.0).log_prob(dt.tensor(-1.0)), ValueError, r"support \(GreaterThan\(lower_bound=0.0"),
    (lambda: D.LogNormal(0.0, 1.0).log_prob(1.0), ValueError, "The value argument to log_prob must be a Tensor"),
    (lambda: D.MixtureSameFamily(3, D.Normal(0.0, 1.0)), ValueError, "The Mixture distribution needs"),
    (lambda: D.MixtureSameFamily(D.Categorical(dt.ones(2)), 3), ValueError, "The Component distribution needs"),
    (
        lambda: D.MixtureSameFamily(D.Categorical(dt.ones(2)), D.Normal(dt.zeros(3), 1.0)),
        ValueError,
        r"component` \(2\)",
    ),
    (lambda: D.MultivariateNormal(dt.zeros(2)), ValueError, "Exactly one of covariance_matrix"),
    (lambda: D.MultivariateNormal(dt.zeros(2), -dt.eye(2)), ValueError, r"constraint PositiveDefinite\(\)"),
    (lambda: D.MultivariateNormal(dt.zeros(2), scale_tril=dt.ones(2, 2)), ValueError, r"constraint LowerCholesky\(\)"),
    (lambda: D.MultivariateNormal(dt.zeros(2), dt.eye(2).double()), dt.DTypeMismatchError, "loc and covariance_matrix"),
    (lambda: D.Multinomial(dt.tensor(2), dt.ones(2)), NotImplementedError, "inhomogeneous total_count"),
    (lambda: D.Geometric(0.0), ValueError, "to be positive but found invalid values"),
    (lambda: D.Binomial(dt.tensor([1, 2]), 0.5).entropy(), NotImplementedError, "Inhomogeneous total count"),
    (lambda: D.Dirichlet(dt.tensor(1.0)), ValueError, "must be at least one-dimensional"),
    (lambda: D.Gamma(-1.0, 1.0), ValueError, "parameter concentration"),
    (lambda: D.Poisson(1.0).log_prob(dt.tensor(0.5)), ValueError, r"IntegerGreaterThan\(lower_bound=0\)"),
    (lambda: D.RelaxedBernoulli("a", 0.5), TypeError, "argument 'temperature'"),
]


def test_what_does_not_fit() -> None:
    for call, kind, wanted in ERRORS:
        with pytest.raises(kind, match=wanted):
            call()
