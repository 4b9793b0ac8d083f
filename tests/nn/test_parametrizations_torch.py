"""Weight and spectral normalisation, by hooks and as parametrizations, and fused layers, beside PyTorch."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest

import devtensor as dt

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

RNG = np.random.default_rng(0)


def load(ours: Any, theirs: Any, device: str) -> None:
    ours.load_state_dict({key: dt.from_numpy(value.numpy().copy()) for key, value in theirs.state_dict().items()})
    ours.to(device)


def close(got: Any, want: Any) -> None:
    """A small sum of large terms is as exact as they are."""
    size = max(1.0, want.detach().abs().max().item())
    np.testing.assert_allclose(got.detach().cpu().numpy(), want.detach().numpy(), rtol=1e-4, atol=1e-5 * size)


def same(ours: Any, theirs: Any, x: np.ndarray, device: str) -> None:
    """Values, gradients, and what is learned and kept: in training, twice, and in evaluation."""
    for training in (True, True, False):
        ours.train(training), theirs.train(training)
        y, z = ours(dt.from_numpy(x).to(device)), theirs(torch.from_numpy(x))
        close(y, z)
        ours.zero_grad(), theirs.zero_grad()
        y.square().sum().backward(), z.square().sum().backward()
        for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
            close(p.grad, q.grad)
    for key, value in theirs.state_dict().items():
        close(ours.state_dict()[key], value)


LAYERS: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = [
    ("Linear", (5, 3), (4, 5)),
    ("Conv1d", (3, 4, 2), (2, 3, 6)),
    ("Conv2d", (3, 4, 2), (2, 3, 6, 5)),
]


@pytest.fixture(autouse=True)
def without_theirs() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def pairs(device: str, change: Any, layers: Any = LAYERS) -> Any:
    for kind, args, shape in layers:
        ours, theirs = (change(lib, getattr(lib.nn, kind)(*args)) for lib in (dt, torch))
        assert list(ours.state_dict()) == list(theirs.state_dict())
        assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
        assert repr(ours) == repr(theirs)
        load(ours, theirs, device)
        yield ours, theirs, RNG.standard_normal(shape).astype(np.float32)


def test_weight_norm(device: str) -> None:
    for dim in (0, 1, None):
        for ours, theirs, x in pairs(device, lambda lib, m, d=dim: lib.nn.utils.weight_norm(m, dim=d)):
            same(ours, theirs, x, device)
            dt.nn.utils.remove_weight_norm(ours), torch.nn.utils.remove_weight_norm(theirs)
            assert list(ours.state_dict()) == list(theirs.state_dict()) == ["bias", "weight"]
            same(ours, theirs, x, device)


def test_spectral_norm(device: str) -> None:
    for options in ({}, {"n_power_iterations": 3, "eps": 1e-6}, {"dim": 1}):
        for ours, theirs, x in pairs(device, lambda lib, m, o=options: lib.nn.utils.spectral_norm(m, **o)):
            same(ours, theirs, x, device)
            dt.nn.utils.remove_spectral_norm(ours), torch.nn.utils.remove_spectral_norm(theirs)
            assert list(ours.state_dict()) == list(theirs.state_dict())
            same(ours, theirs, x, device)


def test_parametrizations(device: str) -> None:
    changes: list[Any] = [
        lambda lib, m: lib.nn.utils.parametrizations.weight_norm(m),
        lambda lib, m: lib.nn.utils.parametrizations.weight_norm(m, dim=None),
        lambda lib, m: lib.nn.utils.parametrizations.spectral_norm(m),
        lambda lib, m: lib.nn.utils.parametrizations.spectral_norm(m, n_power_iterations=2, dim=1),
        lambda lib, m: lib.nn.utils.parametrize.register_parametrization(m, "weight", lib.nn.Softplus()),
        lambda lib, m: lib.nn.utils.parametrize.register_parametrization(
            lib.nn.utils.parametrizations.weight_norm(m), "weight", lib.nn.Tanh()
        ),
    ]
    for change in changes:
        for ours, theirs, x in pairs(device, change, LAYERS[::2]):
            same(ours, theirs, x, device)
            close(ours.weight, theirs.weight)
            for module, lib in ((ours, dt), (theirs, torch)):
                lib.nn.utils.parametrize.remove_parametrizations(module, "weight")
            assert list(ours.state_dict()) == list(theirs.state_dict())
            assert type(ours).__name__ == type(theirs).__name__
            same(ours, theirs, x, device)


def test_checkpoints_of_the_older_weight_norm(device: str) -> None:
    """weight_g and weight_v become original0 and original1, as in PyTorch; one of the two alone does not."""

    def nets(lib: Any, norm: str, dim: int | None) -> Any:
        change = (lib.nn.utils if norm == "old" else lib.nn.utils.parametrizations).weight_norm
        layers = [change(lib.nn.Linear(3, 2), dim=dim), change(lib.nn.Linear(2, 2), "bias", None)]
        return lib.nn.Sequential(*layers, layers[0])  # the first stands there twice

    for dim in (0, None):
        (old, theirs), (ours, new) = ([nets(lib, kind, dim) for lib in (dt, torch)] for kind in ("old", "new"))
        load(old.to(device), theirs, device)
        state, expected = old.state_dict(), theirs.state_dict()
        keys = list(state)
        ours.to(device)
        for assign in (False, True):
            assert str(ours.load_state_dict(state, assign=assign)) == "<All keys matched successfully>"
            new.load_state_dict(expected, assign=assign)
            assert list(state) == keys and list(ours.state_dict()) == list(new.state_dict())
            for key, value in new.state_dict().items():
                assert (ours.state_dict()[key].cpu().numpy() == value.numpy()).all(), key
        for some in (["0.weight_g"], ["0.weight_g", "0.weight_v", "2.weight_g"]):
            found = ours.load_state_dict({k: state[k] for k in some}, strict=False)
            known = new.load_state_dict({k: expected[k] for k in some}, strict=False)
            assert found.missing_keys == known.missing_keys and found.unexpected_keys == known.unexpected_keys
    with pytest.raises(dt.ShapeMismatchError, match="size mismatch for 0.parametrizations.weight.original1"):
        ours.load_state_dict({**state, "0.weight_v": dt.ones(7, device=device)})


def test_what_a_parametrization_is(device: str) -> None:
    P = dt.nn.utils.parametrize

    class Doubled(dt.nn.Module):
        calls = 0

        def forward(self, x: dt.DeviceArray) -> dt.DeviceArray:
            type(self).calls += 1
            return x * 2

        def right_inverse(self, x: dt.DeviceArray) -> dt.DeviceArray:
            return x / 2

    layer = dt.nn.Linear(3, 2, device=device)
    first, weight = layer.weight.detach().clone(), layer.weight
    assert P.register_parametrization(layer, "weight", Doubled()) is layer
    assert P.is_parametrized(layer) and P.is_parametrized(layer, "weight") and not P.is_parametrized(layer, "bias")
    assert P.type_before_parametrizations(layer) is dt.nn.Linear and isinstance(layer, dt.nn.Linear)
    assert layer.parametrizations.weight.original is weight  # which optimizers know
    assert (layer.weight == first).all() and (weight == first / 2).all()
    layer.weight = dt.ones(2, 3, device=device)
    assert (layer.weight == 1).all() and (weight == 0.5).all()
    Doubled.calls = 0
    with P.cached():
        assert layer.weight is layer.weight and Doubled.calls == 1
    twin = copy.deepcopy(layer)
    assert twin.parametrizations.weight.original is not weight and (twin.weight == 1).all()
    P.register_parametrization(layer, "weight", Doubled())
    assert (layer.weight == 2).all()
    P.remove_parametrizations(layer, "weight", leave_parametrized=False)
    assert type(layer) is dt.nn.Linear and layer.weight is weight and (weight == 0.5).all()
    assert not P.is_parametrized(layer) and not P.is_parametrized(dt.nn.ReLU())
    buffered = dt.nn.BatchNorm1d(3)
    P.register_parametrization(buffered, "running_var", dt.nn.Softplus())
    assert "parametrizations.running_var.original" in dict(buffered.named_buffers())


def test_what_is_refused() -> None:
    U, P, layer = dt.nn.utils, dt.nn.utils.parametrize, dt.nn.Linear(3, 2)
    normed, spectral = U.weight_norm(dt.nn.Linear(3, 2)), U.spectral_norm(dt.nn.Linear(3, 2))
    calls: list[tuple[Any, type[Exception], str]] = [
        (lambda: U.weight_norm(layer, "w"), KeyError, "no parameter 'w'"),
        (lambda: U.weight_norm(dt.nn.Linear(2, 2, bias=False), "bias"), ValueError, "is None"),
        (lambda: U.weight_norm(normed), RuntimeError, "two weight_norm hooks"),
        (lambda: U.weight_norm(layer, dim=2), IndexError, "out of range"),
        (lambda: U.remove_weight_norm(layer), ValueError, "not found"),
        (lambda: U.spectral_norm(spectral), RuntimeError, "two spectral_norm hooks"),
        (lambda: U.spectral_norm(layer, n_power_iterations=0), ValueError, "positive"),
        (lambda: U.remove_spectral_norm(layer), ValueError, "not found"),
        (lambda: P.register_parametrization(layer, "w", dt.nn.ReLU()), ValueError, "does not have a parameter"),
        (lambda: P.register_parametrization(layer, "weight", dt.nn.Flatten(0)), ValueError, "may not change the dtype"),
        (lambda: P.remove_parametrizations(layer, "weight"), ValueError, "does not have a parametrization"),
        (lambda: P.ParametrizationList([], layer.weight), ValueError, "one or more"),
        (lambda: U.fuse_conv_bn_eval(dt.nn.Conv1d(1, 1, 1), dt.nn.BatchNorm1d(1)), RuntimeError, "only for eval"),
    ]
    for call, error, text in calls:
        with pytest.raises(error, match=text):
            call()
    assert list(layer.state_dict()) == ["weight", "bias"] and type(layer) is dt.nn.Linear


def test_fused(device: str) -> None:
    for bias in (True, False):
        for kind, norm, args, shape in (
            ("Conv1d", "BatchNorm1d", (3, 4, 2), (2, 3, 6)),
            ("Conv2d", "BatchNorm2d", (3, 4, 2), (2, 3, 6, 5)),
            ("Linear", "BatchNorm1d", (5, 4), (2, 5)),
        ):
            layer, bn = getattr(dt.nn, kind)(*args, bias=bias), getattr(dt.nn, norm)(4)
            dt.nn.init.uniform_(bn.running_mean), dt.nn.init.uniform_(bn.running_var, 0.5, 1.5)
            dt.nn.init.uniform_(bn.weight), dt.nn.init.uniform_(bn.bias)
            layer.to(device).eval(), bn.to(device).eval()
            x = dt.randn(shape, device=device)
            fuse = dt.nn.utils.fuse_linear_bn_eval if kind == "Linear" else dt.nn.utils.fuse_conv_bn_eval
            fused = fuse(layer, bn)
            assert (
                fused is not layer
                and type(fused) is type(layer)
                and bool(((fused(x) - bn(layer(x))).abs() < 1e-5).all())
            )
