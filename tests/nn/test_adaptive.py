"""AdaptiveLogSoftmaxWithLoss and CrossMapLRN2d, beside PyTorch's and by their formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import devtensor as dt
from devtensor import nn

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed")
TARGETS = [0, 3, 4, 9, 10, 14, 15, 19, 2]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("targets", [TARGETS, [0, 1, 3], [19, 4], 16, 2])
def test_adaptive_softmax(targets: Any, bias: bool, device: str) -> None:
    torch.manual_seed(0)
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10, 15], div_value=2.0, head_bias=bias)
    ours = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10, 15], div_value=2.0, head_bias=bias)
    ours.load_state_dict({key: dt.from_numpy(value.numpy()) for key, value in theirs.state_dict().items()})
    ours.to(device)
    shape = (len(targets), 8) if isinstance(targets, list) else (8,)
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    a, b = torch.tensor(x, requires_grad=True), dt.tensor(x, device=device, requires_grad=True)
    want, got = theirs(a, torch.tensor(targets)), ours(b, dt.tensor(targets, device=device))
    want.loss.backward()
    got.loss.backward()
    assert got._fields == ("output", "loss") and got.output.shape == tuple(want.output.shape)
    near = {"rtol": 1e-5, "atol": 1e-6}
    np.testing.assert_allclose(got.output.tolist(), want.output.tolist(), **near)
    np.testing.assert_allclose(got.loss.item(), want.loss.item(), **near)
    np.testing.assert_allclose(b.grad.cpu().numpy(), a.grad.numpy(), **near)  # type: ignore[union-attr]
    for p, q in zip(theirs.parameters(), ours.parameters(), strict=True):
        assert (p.grad is None) == (q.grad is None)
        if p.grad is not None:
            np.testing.assert_allclose(q.grad.cpu().numpy(), p.grad.numpy(), **near)  # type: ignore[union-attr]
    if isinstance(targets, list):
        np.testing.assert_allclose(ours.log_prob(b).tolist(), theirs.log_prob(a).tolist(), rtol=1e-5, atol=1e-5)
        assert ours.predict(b).tolist() == theirs.predict(a).tolist()
        far = b.detach() * 40  # rows whose best class is rare
        assert ours.predict(far).tolist() == theirs.predict(a.detach() * 40).tolist()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"cutoffs": []}, "length larger than 0"),
        ({"cutoffs": [3, 2]}, "unique, positive integers sorted"),
        ({"cutoffs": [2, 2]}, "unique, positive integers sorted"),
        ({"cutoffs": [20]}, "unique, positive integers sorted"),
        ({"cutoffs": [0]}, "unique, positive integers sorted"),
    ],
)
def test_cutoffs_that_cannot_be(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        nn.AdaptiveLogSoftmaxWithLoss(8, 20, **options)


def test_operands_that_cannot_be(device: str) -> None:
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10]).to(device)
    x = dt.ones(3, 8, device=device)
    with pytest.raises(RuntimeError, match=r"Target values should be in \[0, 19\], but values in \[1, 20\]"):
        layer(x, dt.tensor([1, 20, 3], device=device))
    with pytest.raises(dt.ShapeMismatchError, match="same size in the batch"):
        layer(x, dt.tensor([1, 2], device=device))
    with pytest.raises(dt.ShapeMismatchError):
        layer(x, dt.tensor(1, device=device))
    with pytest.raises(dt.DTypeMismatchError, match="int64 or int32"):
        layer(x, dt.ones(3, device=device))


def test_cross_map_normalization(device: str) -> None:
    """By its formula. PyTorch's agrees where no channel leaves the window: later the first one stays in its sums."""
    x = np.random.default_rng(2).normal(size=(2, 7, 3, 2))
    given = dt.tensor(x, device=device, requires_grad=True)
    for size in (1, 3, 4, 5):
        reach = (size - 1) // 2
        sums = np.stack([(x[:, max(c - reach, 0) : c + reach + 1] ** 2).sum(1) for c in range(7)], 1)
        layer = nn.CrossMapLRN2d(size, alpha=0.5, beta=0.6, k=2.0)
        np.testing.assert_allclose(layer(given).detach().cpu().numpy(), x / (2 + 0.5 / size * sums) ** 0.6, 1e-9)
    assert dt.autograd.gradcheck(nn.CrossMapLRN2d(3, alpha=0.5), (given,))
    few = torch.tensor(x[:, :3])
    got, want = nn.CrossMapLRN2d(5)(dt.tensor(x[:, :3], device=device)), torch.nn.CrossMapLRN2d(5)(few)
    np.testing.assert_allclose(got.cpu().numpy(), want.numpy(), 1e-9)
    with pytest.raises(dt.ShapeMismatchError):
        nn.CrossMapLRN2d(3)(given[0])
    with pytest.raises(RuntimeError, match="size must be at least 1, but got 0"):
        nn.CrossMapLRN2d(0)(given)
