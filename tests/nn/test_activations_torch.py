"""Activations, normalisations and dropouts beside torch.nn, where PyTorch is installed: values, names, gradients."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from torch_version import assert_same_text, needs_torch

import devtensor as dt

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

LAYERS: list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = [
    *((name, (), {}, (50,)) for name in ("Mish", "LogSigmoid", "Softsign", "GLU", "SELU", "CELU", "Hardswish")),
    *((name, (), {}, (50,)) for name in ("Hardsigmoid", "Tanhshrink", "Hardshrink", "Softshrink", "PReLU")),
    ("GLU", (1,), {}, (3, 4, 2)),
    ("Softmin", (1,), {}, (5, 10)),
    ("Softmax2d", (), {}, (3, 4, 2)),
    ("Softmax2d", (), {}, (2, 3, 4, 2)),
    ("PReLU", (3, 0.1), {}, (2, 3, 4)),
    ("CELU", (0.3,), {}, (50,)),
    ("Threshold", (0.1, 20.0), {}, (50,)),
    ("Hardshrink", (0.1,), {}, (50,)),
    ("Softshrink", (0.1,), {}, (50,)),
    ("BatchNorm3d", (3,), {}, (2, 3, 2, 4, 3)),
    ("BatchNorm3d", (3,), {"bias": False}, (2, 3, 2, 4, 3)),
    ("GroupNorm", (2, 4), {}, (3, 4, 5, 2)),
    ("GroupNorm", (2, 4), {"affine": False, "eps": 0.1}, (3, 4)),
    ("GroupNorm", (1, 4), {"bias": False}, (3, 4, 5)),
    ("InstanceNorm1d", (3,), {}, (2, 3, 5)),
    ("InstanceNorm1d", (3,), {"affine": True}, (3, 5)),
    ("InstanceNorm2d", (3,), {"affine": True, "track_running_stats": True}, (2, 3, 4, 5)),
    ("InstanceNorm2d", (3,), {"track_running_stats": True, "momentum": 0.3, "bias": False}, (3, 4, 5)),
    ("InstanceNorm3d", (3,), {"eps": 0.1}, (2, 3, 2, 4, 3)),
    ("RMSNorm", (4,), {}, (2, 3, 4)),
    ("RMSNorm", ((3, 4), 0.1), {"elementwise_affine": False}, (2, 3, 4)),
    ("LocalResponseNorm", (2,), {"alpha": 0.5}, (2, 5, 4)),
    ("LocalResponseNorm", (3, 0.5, 0.5, 2.0), {}, (2, 5, 4, 3)),
    ("LocalResponseNorm", (9, 0.5), {}, (2, 5, 2, 4, 3)),
    *((name, (), {}, (2, 3, 4)) for name in ("Dropout1d", "AlphaDropout", "FeatureAlphaDropout", "RReLU")),
    ("Dropout2d", (0.2, True), {}, (2, 3, 4, 4)),
    ("Dropout3d", (0.2,), {}, (2, 3, 2, 4, 4)),
]


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def both(x: np.ndarray, device: str) -> tuple[Any, Any]:
    return dt.from_numpy(x.copy()).to(device).requires_grad_(), torch.from_numpy(x.copy()).requires_grad_()


def close(got: Any, want: Any) -> None:
    assert got.shape == tuple(want.shape)
    np.testing.assert_allclose(got.detach().cpu().float().numpy(), want.detach().float().numpy(), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(("name", "args", "options", "shape"), LAYERS, ids=lambda v: str(v)[:40])
def test_layers(name: str, args: Any, options: Any, shape: tuple[int, ...], device: str) -> None:
    """Values, gradients, keys and statistics in training, where nothing is drawn, and in evaluation."""
    if "bias" in options:
        needs_torch("2.13")
    ours, theirs = getattr(dt.nn, name)(*args, **options), getattr(torch.nn, name)(*args, **options)
    assert_same_text(ours, theirs)
    state = {key: torch.rand(value.shape) if value.ndim else value for key, value in theirs.state_dict().items()}
    theirs.load_state_dict(state)
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict({key: dt.from_numpy(value.numpy().copy()) for key, value in state.items()})
    ours.to(device)
    drawn = "Dropout" in name or name == "RReLU"
    for training in (True, True, False):
        ours.train(training), theirs.train(training)
        a, b = both(random(*shape), device)
        if training and drawn:
            continue
        x, y = ours(a), theirs(b)
        close(x, y)
        x.square().sum().backward(), y.square().sum().backward()
        close(a.grad, b.grad)
        for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
            close(p.grad, q.grad)
        ours.zero_grad(), theirs.zero_grad()
    for key, value in theirs.state_dict().items():
        close(ours.state_dict()[key], value)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_dtypes(dtype: str, device: str) -> None:
    """Half types are computed in float32; what is bigger is not made smaller."""
    for call in (
        lambda f, x: f.group_norm(x, 2),
        lambda f, x: f.instance_norm(x),
        lambda f, x: f.rms_norm(x * 1e-3, (4,)),
        lambda f, x: f.local_response_norm(x, 3, 0.5),
        lambda f, x: f.mish(x),
        lambda f, x: f.logsigmoid(x * 30),
        lambda f, x: f.softmin(x, 1),
        lambda f, x: f.prelu(x, x[0, :, 0]),
        lambda f, x: f.celu(x, 0.3),
    ):
        x = dt.from_numpy(random(2, 6, 4)).to(device).to(getattr(dt, dtype))
        y = torch.from_numpy(random(2, 6, 4)).to(getattr(torch, dtype))
        got, want = call(dt.nn.functional, x), call(torch.nn.functional, y)
        assert str(got.dtype).split(".")[1] == dtype
        digits = {"float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-9}[dtype]
        np.testing.assert_allclose(got.cpu().double().numpy(), want.double().numpy(), rtol=digits, atol=digits)


def test_numbers_at_the_ends(device: str) -> None:
    """Infinities, NaN, zeros and the bends themselves."""
    values = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 0.5, -0.5, 3.0, -3.0, 100.0, -100.0], np.float32)
    for call in (
        *(lambda f, x, op=op: getattr(f, op)(x) for op in ("selu", "celu", "mish", "hardswish", "hardsigmoid")),
        *(lambda f, x, op=op: getattr(f, op)(x) for op in ("logsigmoid", "hardshrink", "softshrink", "softsign")),
        lambda f, x: f.threshold(x, 0.5, 7.0),
        lambda f, x: f.prelu(x, x[5:6].detach()),
    ):
        a, b = both(values, device)
        x, y = call(dt.nn.functional, a), call(torch.nn.functional, b)
        np.testing.assert_allclose(x.detach().cpu().numpy(), y.detach().numpy(), rtol=1e-6, atol=1e-40)
        x.sum().backward(), y.sum().backward()
        finite = np.isfinite(values)
        np.testing.assert_allclose(a.grad.cpu().numpy()[finite], b.grad.numpy()[finite], rtol=1e-6, atol=1e-40)


def test_long_groups_and_their_gradients(device: str) -> None:
    """Where no gradient is wanted, groups of many elements go another way."""
    x = random(2, 4, 40, 20) + 100
    with dt.no_grad():
        close(
            dt.nn.functional.group_norm(dt.from_numpy(x).to(device), 2),
            torch.nn.functional.group_norm(torch.from_numpy(x), 2),
        )
    a, b = both(x, device)
    one, other = dt.nn.functional.group_norm(a, 2), torch.nn.functional.group_norm(b, 2)
    one.square().sum().backward(), other.square().sum().backward()
    close(one, other)
    assert dt.nn.functional.group_norm(dt.zeros(0, 4, 3, device=device), 2).shape == (0, 4, 3)


# ---------------------------------------------------------------- what is drawn


def test_dropouts_leave_out_as_many_as_asked(device: str) -> None:
    dt.manual_seed(1)
    F, x = dt.nn.functional, dt.randn(40, 50, 4, 5, device=device)
    for drop, channels in ((F.dropout, False), (F.dropout2d, True), (F.dropout3d, True), (F.dropout1d, True)):
        input = x.reshape(40, 50, 20) if drop is F.dropout1d else x.unsqueeze(-1) if drop is F.dropout3d else x
        for inplace in (False, True):
            given = input.clone()
            result = drop(given, 0.3, True, inplace)
            assert (result is given) == inplace
            kept = result != 0
            assert 0.65 < float(kept.to(dt.float32).mean()) < 0.75
            assert bool((result == dt.where(kept, input / 0.7, 0.0)).all()) or bool(
                ((result - dt.where(kept, input / 0.7, 0.0)).abs() < 1e-5).all()
            )
            whole = kept.reshape(40, 50, 20)
            assert bool((whole.all(2) == whole.any(2)).all()) == channels
        assert drop(input, 0.3, False) is input and float(drop(input, 1.0).abs().sum()) == 0


def test_alpha_dropouts_keep_mean_and_variance(device: str) -> None:
    dt.manual_seed(2)
    F, x = dt.nn.functional, dt.randn(100, 100, 4, device=device)
    for drop in (F.alpha_dropout, F.feature_alpha_dropout):
        result = drop(x, 0.2, True)
        assert abs(float(result.mean())) < 0.05 and abs(float(result.var()) - 1) < 0.06
        least = -1.7580993408473766 * 0.8 / ((1.7580993408473766**2 * 0.2 + 1) * 0.8) ** 0.5
        share = ((result - least).abs() < 1e-5).to(dt.float32)
        assert 0.17 < float(share.mean()) < 0.23
        assert bool((share.amax(2) == share.amin(2)).all()) == (drop is F.feature_alpha_dropout)


def test_rrelu_draws_slopes(device: str) -> None:
    dt.manual_seed(3)
    x = dt.randn(2000, device=device).requires_grad_()
    y = dt.nn.functional.rrelu(x, 0.2, 0.4, training=True)
    slopes = (y / x).detach()[x.detach() < 0]
    assert 0.2 <= float(slopes.amin()) < 0.21 and 0.39 < float(slopes.amax()) <= 0.4
    assert bool((y == x)[x.detach() > 0].all())
    y.sum().backward()
    assert bool(((x.grad * x.detach() - y.detach()).abs() < 1e-6).all())


def test_gumbel_softmax(device: str) -> None:
    dt.manual_seed(4)
    logits = dt.tensor([0.2, 0.5, 0.3], device=device).log().requires_grad_()
    hard = dt.nn.functional.gumbel_softmax(logits.expand(4000, 3), tau=0.5, hard=True)
    assert bool((hard.detach().sum(1) == 1).all())
    np.testing.assert_allclose(hard.detach().mean(0).cpu().numpy(), [0.2, 0.5, 0.3], atol=0.03)
    (hard * dt.arange(3, device=device)).sum().backward()
    assert bool((logits.grad != 0).all())
    soft = dt.nn.functional.gumbel_softmax(logits.detach().expand(5, 3).t(), dim=0)
    np.testing.assert_allclose(soft.sum(0).cpu().numpy(), np.ones(5), rtol=1e-5)


def test_dropouts_warn_of_other_ranks() -> None:
    x = dt.ones(2, 3, 4)
    for name in ("dropout2d", "dropout3d"):
        with pytest.warns(UserWarning, match=name):
            getattr(dt.nn.functional, name)(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dt.nn.functional.dropout1d(x)


# ---------------------------------------------------------------- batch norm of several processes


def test_sync_batch_norm(device: str) -> None:
    net = dt.nn.Sequential(dt.nn.Linear(3, 4), dt.nn.Sequential(dt.nn.BatchNorm1d(4, bias=False)), dt.nn.BatchNorm1d(4))
    net.to(device).eval()
    plain = list(net.state_dict())
    weight = net[2].weight
    x = dt.randn(5, 3, device=device)
    before = net(x)
    made = dt.nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert made is net and isinstance(net[1][0], dt.nn.SyncBatchNorm) and net[2].weight is weight
    assert list(net.state_dict()) == plain and not net[2].training
    assert bool((net(x) == before).all())
    theirs = torch.nn.SyncBatchNorm(4)
    assert_same_text(dt.nn.SyncBatchNorm(4), theirs)
    assert list(dt.nn.SyncBatchNorm(4).state_dict()) == list(theirs.state_dict())
    with pytest.raises(TypeError, match="process_group"):
        dt.nn.SyncBatchNorm(4, process_group=object())


def test_what_is_refused(device: str) -> None:
    F, x = dt.nn.functional, dt.ones(2, 4, 3, device=device)
    for call, text in (
        (lambda: F.group_norm(x, 3), "divisible by num_groups"),
        (lambda: F.group_norm(x, 0), "greater than 0"),
        (lambda: F.group_norm(x[:1, :1, :1], 1), "more than 1 value"),
        (lambda: F.instance_norm(x[:, :, :1]), "more than 1 spatial element"),
        (lambda: F.instance_norm(x, use_input_stats=False), "running_mean and running_var"),
        (lambda: F.local_response_norm(x[0], 2), "3D or higher"),
        (lambda: F.local_response_norm(x, 0), "size must be greater than zero"),
        (lambda: F.glu(x), "Halving dimension must be even"),
        (lambda: F.celu(x, 0), "alpha cannot be 0"),
        (lambda: F.softshrink(x, -1), "lambda must be greater or equal to 0"),
        (lambda: F.rrelu(x, 0.5, 0.1), "[Ll]ower bound"),
        (lambda: F.prelu(x, x[0, :2, 0]), "weight"),
        (lambda: F.dropout2d(x[None], 1.5), "between 0 and 1"),
        (lambda: dt.nn.GroupNorm(3, 4), "must be divisible"),
        (lambda: dt.nn.InstanceNorm1d(5, affine=True, device=device)(x), "match num_features"),
        (lambda: dt.nn.InstanceNorm2d(4)(x[0]), "instance_norm"),
    ):
        with pytest.raises((RuntimeError, ValueError), match=text):
            call()
    with pytest.warns(UserWarning, match="does not match num_features"):
        dt.nn.InstanceNorm1d(5)(x)
    with pytest.warns(UserWarning, match="eps"):
        F.gumbel_softmax(x, eps=0.1)
