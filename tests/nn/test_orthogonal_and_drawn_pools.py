"""parametrizations.orthogonal, LazyInstanceNorm, fractional pools and pdist beside PyTorch's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import devtensor as dt
from devtensor.nn import functional as F
from devtensor.nn.utils import parametrizations

SHAPES = ((3, 3), (5, 3), (3, 5), (2, 4, 3))


def test_orthogonal() -> None:
    for shape, way, based in itertools.product(SHAPES, (None, "matrix_exp", "cayley", "householder"), (True, False)):
        if not based and way != "householder":
            continue
        layer = dt.nn.Module()
        layer.weight = dt.nn.Parameter(dt.nn.init.orthogonal_(dt.empty(shape, dtype=dt.float64)))
        before = layer.weight.detach().clone()
        assert parametrizations.orthogonal(layer, "weight", way, use_trivialization=based) is layer
        for step in range(2):
            w = layer.weight if shape[-2] >= shape[-1] else layer.weight.mT
            unit = dt.eye(w.shape[-1], dtype=dt.float64)
            dt.testing.assert_close((w.mT @ w), unit.expand(*w.shape[:-2], *unit.shape), rtol=1e-9, atol=1e-9)
            if step == 0:
                if len(shape) == 2:
                    dt.testing.assert_close(layer.weight, before, rtol=1e-9, atol=1e-9)
                (layer.weight * dt.arange(layer.weight.numel()).reshape(shape)).sum().backward()
                original = layer.parametrizations.weight.original
                assert original.grad is not None and original.grad.abs().sum().item() > 0
                with dt.no_grad():
                    original.sub_(original.grad.tril(-1) * 0.01)


def test_orthogonal_maps_are_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    for (rows, columns), way in itertools.product(((4, 4), (5, 3), (3, 5)), ("matrix_exp", "cayley", "householder")):
        start = np.random.default_rng(1).normal(size=(rows, columns))
        theirs = torch.nn.Linear(columns, rows, dtype=torch.float64)
        ours = dt.nn.Linear(columns, rows, dtype=dt.float64)
        torch.nn.utils.parametrizations.orthogonal(theirs, orthogonal_map=way)
        parametrizations.orthogonal(ours, orthogonal_map=way)
        assert list(ours.state_dict()) == list(theirs.state_dict())
        with torch.no_grad():
            theirs.parametrizations.weight.original.add_(torch.from_numpy(start * 0.1))
        ours.load_state_dict({k: dt.from_numpy(v.detach().numpy()) for k, v in theirs.state_dict().items()})
        np.testing.assert_allclose(ours.weight.detach().numpy(), theirs.weight.detach().numpy(), rtol=1e-9, atol=1e-9)
        (ours.weight.square() * ours.weight).sum().backward()
        (theirs.weight.square() * theirs.weight).sum().backward()
        np.testing.assert_allclose(
            ours.parametrizations.weight.original.grad.numpy(),
            theirs.parametrizations.weight.original.grad.numpy(),
            rtol=1e-7,
            atol=1e-9,
        )


def test_orthogonal_refuses() -> None:
    layer = dt.nn.Linear(3, 2)
    for arguments, text in (
        (("bias",), "1 dimensions"),
        (("weights",), "no parameter"),
        (("weight", "qr"), "Got: 'qr'"),
    ):
        with pytest.raises(ValueError, match=text):
            parametrizations.orthogonal(layer, *arguments)


def test_lazy_instance_norm(device: str) -> None:
    for dims, lazy, plain in ((1, dt.nn.LazyInstanceNorm1d, dt.nn.InstanceNorm1d),
                              (2, dt.nn.LazyInstanceNorm2d, dt.nn.InstanceNorm2d),
                              (3, dt.nn.LazyInstanceNorm3d, dt.nn.InstanceNorm3d)):  # fmt: skip
        for lead in ((2, 3), (3,)):
            layer, wanted = lazy(device=device), plain(3, affine=True, track_running_stats=True, device=device)
            x = dt.arange(2 * 3 * 4**dims, device=device).float()[: 3 * 4**dims * ((len(lead) > 1 and 2) or 1)]
            x = x.reshape(*lead, *[4] * dims).sin()
            dt.testing.assert_close(layer(x), wanted(x))
            assert (
                type(layer) is plain
                and repr(layer) == repr(wanted)
                and list(layer.state_dict()) == list(wanted.state_dict())
            )
        grown = lazy()
        grown.load_state_dict(plain(5, affine=True, track_running_stats=True).state_dict())
        assert grown.num_features == 5


def test_fractional_pools_are_pytorchs(device: str) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    for dims, shape, kernel, options in (
        (2, (2, 3, 9, 11), 2, {"output_size": (4, 5)}),
        (2, (3, 8, 8), (2, 3), {"output_ratio": (0.5, 0.6)}),
        (2, (1, 2, 7, 7), 3, {"output_size": 1}),
        (3, (2, 2, 7, 8, 9), 2, {"output_size": (3, 4, 5)}),
        (3, (2, 6, 6, 6), (2, 1, 2), {"output_ratio": 0.5}),
    ):
        x = rng.normal(size=shape)
        lead = shape[:-dims] if len(shape) == dims + 2 else (1, *shape[:-dims])
        samples = rng.random((*lead, dims))
        name = f"fractional_max_pool{dims}d"
        t = torch.from_numpy(x).requires_grad_()
        y, indices = getattr(torch.nn.functional, name)(
            t, kernel, **options, return_indices=True, _random_samples=torch.from_numpy(samples)
        )
        ours = dt.array(x, device=device, requires_grad=True)
        drawn = dt.array(samples, device=device)
        with dt.forbid_transfers():
            got, at = getattr(F, name)(ours, kernel, **options, return_indices=True, _random_samples=drawn)
        np.testing.assert_array_equal(got.detach().cpu().numpy(), y.detach().numpy())
        np.testing.assert_array_equal(at.cpu().numpy(), indices.numpy())
        y.square().sum().backward()
        got.square().sum().backward()
        np.testing.assert_allclose(ours.grad.cpu().numpy(), t.grad.numpy())
        layer = getattr(dt.nn, f"FractionalMaxPool{dims}d")(kernel, **options)
        assert layer.to(device)(ours).shape == got.shape
    for wrong, text in (
        ({}, "either"),
        ({"output_size": 2, "output_ratio": 0.5}, "not both"),
        ({"output_ratio": 2}, "between"),
    ):
        with pytest.raises(ValueError, match=text):
            F.fractional_max_pool2d(dt.ones(1, 4, 4, device=device), 2, **wrong)
        with pytest.raises(ValueError, match=text):
            dt.nn.FractionalMaxPool2d(2, **wrong)
    with pytest.raises(dt.ShapeMismatchError):
        F.fractional_max_pool2d(dt.ones(1, 4, 4, device=device), 3, 3)
    image = dt.ones(1, 1, 3, 3, device=device)
    image[0, 0, 1, 1] = float("nan")
    assert F.fractional_max_pool2d(image, 2, 2).isnan().any().item()


def test_pdist(device: str) -> None:
    x = dt.arange(12, device=device).reshape(4, 3).float().sin()
    for p in (0.0, 1.0, 2.0, 3.5, float("inf")):
        whole = dt.cdist(x, x, p)
        places = dt.triu_indices(4, 4, 1, device=device)
        dt.testing.assert_close(dt.pdist(x, p), whole[places[0], places[1]])
    assert F.pdist(x[:1]).shape == (0,)
    with pytest.raises(RuntimeError, match="non-negative"):
        dt.pdist(x, -1.0)
