"""GradScaler beside PyTorch's, on every device; autocast turned off."""

from __future__ import annotations

from typing import Any

import pytest
from support import DEVICES

import devtensor as dt

SETTINGS = {"init_scale": 8.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2}
# what the loss is multiplied by in each iteration
LOSSES = [1.0, 2.0, float("inf"), 1.0, 1.0, float("nan"), float("nan"), 0.5, 0.25, 1.0]


def kind(device: str) -> str:
    return device.partition(":")[0]


def iterate(lib: Any, scaler: Any, device: str, clip: bool) -> list[Any]:
    """Scale and weights after each iteration."""
    weight = lib.nn.Parameter(lib.ones(3, device=device))
    optimizer = lib.optim.SGD([weight], lr=0.125)
    seen = []
    for factor in LOSSES:
        optimizer.zero_grad()
        scaler.scale((weight * weight).sum() * factor).backward()
        if clip:
            scaler.unscale_(optimizer)
            lib.nn.utils.clip_grad_norm_([weight], 1.0)
        scaler.step(optimizer)
        scaler.update()
        seen.append((scaler.get_scale(), weight.tolist(), scaler.state_dict()))
    return seen


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("clip", [False, True])
def test_as_in_pytorch(device: str, clip: bool) -> None:
    torch = pytest.importorskip("torch")
    ours = iterate(dt, dt.amp.GradScaler(kind(device), **SETTINGS), device, clip)
    theirs = iterate(torch, torch.amp.GradScaler("cpu", **SETTINGS), "cpu", clip)
    for (scale, weight, state), (scale_there, weight_there, state_there) in zip(ours, theirs, strict=True):
        assert (scale, state) == (scale_there, state_there)
        assert weight == pytest.approx(weight_there, rel=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_scale_goes_down_and_up(device: str) -> None:
    scales = [scale for scale, _, _ in iterate(dt, dt.amp.GradScaler(kind(device), **SETTINGS), device, False)]
    assert scales == [8.0, 16.0, 8.0, 8.0, 16.0, 8.0, 4.0, 4.0, 8.0, 8.0]


@pytest.mark.parametrize("device", DEVICES)
def test_small_gradients_of_half_precision_survive(device: str) -> None:
    weight = dt.nn.Parameter(dt.ones(4, device=device))
    optimizer = dt.optim.SGD([weight], lr=1.0)
    scaler = dt.amp.GradScaler(kind(device), init_scale=1024.0)
    for factor, expected in ((None, 0.0), (scaler, 2.0**-26)):
        optimizer.zero_grad()
        loss = (weight.half() * 2.0**-13).float().sum() * 2.0**-13
        (loss if factor is None else factor.scale(loss)).backward()
        if factor is not None:
            factor.unscale_(optimizer)
        assert weight.grad.tolist() == [expected] * 4


def test_order_of_calls() -> None:
    weight = dt.nn.Parameter(dt.ones(2))
    optimizer, scaler = dt.optim.SGD([weight], lr=1.0), dt.amp.GradScaler("cpu", init_scale=4.0)
    for call, what in ((scaler.step, "step"), (scaler.unscale_, "unscale_"), (lambda _: scaler.update(), "update")):
        with pytest.raises(AssertionError, match=f"Attempted {what} but _scale is None"):
            call(optimizer)
    scaler.scale(weight.sum()).backward()
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.update()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="Closure use"):
        scaler.step(optimizer, closure=lambda: None)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="step\\(\\) has already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="being called after step"):
        scaler.unscale_(optimizer)
    scaler.update(2.0)
    assert scaler.get_scale() == 2.0


def test_gradients_of_float16_are_refused() -> None:
    weight = dt.nn.Parameter(dt.ones(2, dtype=dt.float16))
    scaler = dt.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(weight.sum()).backward()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler.unscale_(dt.optim.SGD([weight], lr=1.0))


def test_settings() -> None:
    scaler = dt.amp.GradScaler("cpu", init_scale=4.0)
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.25)
    scaler.set_growth_interval(7)
    found = (scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval())
    assert found == (3.0, 0.25, 7) and scaler.is_enabled()
    again = dt.amp.GradScaler("cpu")
    again.load_state_dict(scaler.state_dict())
    assert again.state_dict() == scaler.state_dict()
    with pytest.raises(RuntimeError, match="empty"):
        again.load_state_dict({})
    for wrong in ({"growth_factor": 1.0}, {"backoff_factor": 1.0}):
        with pytest.raises(ValueError, match="must be"):
            dt.amp.GradScaler("cpu", **wrong)
    with pytest.raises(RuntimeError, match="device must be"):
        dt.amp.GradScaler("xpu")


def test_turned_off() -> None:
    weight = dt.nn.Parameter(dt.ones(2))
    optimizer, scaler = dt.optim.SGD([weight], lr=0.5), dt.amp.GradScaler("cpu", enabled=False)
    loss = weight.sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [0.5, 0.5]
    assert (scaler.get_scale(), scaler.state_dict()) == (1.0, {})
    scaler.load_state_dict({})


def test_lists_of_outputs() -> None:
    scaler = dt.amp.GradScaler("cpu", init_scale=4.0)
    one, two = scaler.scale([dt.ones(()), dt.ones(())])
    assert (one.item(), two.item()) == (4.0, 4.0)
    assert isinstance(scaler.scale((one, two)), tuple)
    with pytest.raises(ValueError, match="must be a Tensor"):
        scaler.scale(3.0)  # type: ignore[call-overload]


def test_autocast() -> None:
    with dt.autocast("cpu", enabled=False), dt.cuda.amp.autocast(enabled=False), dt.amp.autocast("cpu", None, False):
        assert (dt.ones(2) @ dt.ones(2)).dtype == dt.float32
    assert dt.autocast("cuda", enabled=False)(lambda x: x + 1)(1) == 2
    assert not dt.is_autocast_enabled() and not dt.amp.is_autocast_enabled("cpu")
    with pytest.raises(RuntimeError, match="device_type must be"):
        dt.autocast("xpu")


def test_without_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dt.cuda, "device_count", lambda: 0)
    with pytest.warns(UserWarning, match="CUDA is not available. Disabling"), dt.autocast("cuda"):
        pass
    with pytest.warns(UserWarning, match="CUDA is not available. Disabling"), dt.cuda.amp.autocast():
        pass
    with pytest.warns(UserWarning, match="GradScaler is enabled, but CUDA is not available"):
        assert not dt.cuda.amp.GradScaler().is_enabled()


def test_a_step_without_a_gradient() -> None:
    """backward() was forgotten."""
    w = dt.nn.Parameter(dt.ones(2))
    optimizer, scaler = dt.optim.SGD([w], lr=0.5), dt.amp.GradScaler("cpu")
    scaler.scale(w.sum())
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer: none of its parameters"):
        scaler.step(optimizer)
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()
    assert w.tolist() == [1.0, 1.0]
