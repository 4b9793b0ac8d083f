"""ctc_loss beside PyTorch: padded targets and targets in one row, lengths of each kind, readings that cannot be."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import devtensor as dt

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

RNG = np.random.default_rng(0)


def test_values_and_gradients(device: str) -> None:
    scores = RNG.standard_normal((9, 4, 5)).astype(np.float32)
    labels = RNG.integers(1, 5, (4, 4))
    labels[0] = [1, 1, 2, 2]  # repeats, which need blanks between
    inputs, lengths = [9, 7, 9, 2], [4, 2, 0, 4]  # the last cannot be read
    for reduction, in_one_row, zero in itertools.product(("mean", "sum", "none"), (False, True), (False, True)):
        given = np.concatenate([labels[k, :n] for k, n in enumerate(lengths)]) if in_one_row else labels
        a = dt.from_numpy(scores.copy()).to(device).requires_grad_()
        b = torch.from_numpy(scores.copy()).requires_grad_()
        ours: tuple[Any, Any] = (inputs, dt.tensor(lengths, device=device)) if zero else (dt.tensor(inputs), lengths)
        x = dt.nn.functional.ctc_loss(
            a.log_softmax(2), dt.from_numpy(given).to(device), *ours, reduction=reduction, zero_infinity=zero
        )
        y = torch.nn.functional.ctc_loss(
            b.log_softmax(2), torch.from_numpy(given), inputs, lengths, reduction=reduction, zero_infinity=zero
        )
        np.testing.assert_allclose(x.detach().cpu().numpy(), y.detach().numpy(), rtol=1e-5)
        if zero:
            x.sum().backward(), y.sum().backward()
            assert a.grad is not None
            np.testing.assert_allclose(a.grad.cpu().numpy(), b.grad.numpy(), atol=1e-5)


def test_one_sample_and_modules(device: str) -> None:
    scores = RNG.standard_normal((6, 5)).astype(np.float32)
    for reduction in ("mean", "sum", "none"):
        x = dt.nn.CTCLoss(blank=2, reduction=reduction)(
            dt.from_numpy(scores).to(device).log_softmax(1), dt.tensor([1, 3], device=device), (6,), (2,)
        )
        y = torch.nn.CTCLoss(blank=2, reduction=reduction)(
            torch.from_numpy(scores).log_softmax(1), torch.tensor([1, 3]), (6,), (2,)
        )
        np.testing.assert_allclose(x.cpu().numpy(), y.numpy(), rtol=1e-5)
        assert x.shape == tuple(y.shape)


def test_what_is_refused(device: str) -> None:
    F = dt.nn.functional
    p, t = dt.zeros(5, 2, 3, device=device), dt.ones(2, 2, dtype=dt.int64, device=device)
    calls: list[tuple[Any, type[Exception], str]] = [
        (lambda: F.ctc_loss(p, t, [5, 5], [2, 2], blank=3), RuntimeError, "blank must be in label range"),
        (lambda: F.ctc_loss(p, t, [6, 5], [2, 2]), RuntimeError, "input_lengths"),
        (lambda: F.ctc_loss(p, t, [5, 5], [3, 2]), RuntimeError, "target_lengths"),
        (lambda: F.ctc_loss(p, t, [5], [2, 2]), RuntimeError, "batch_size"),
        (lambda: F.ctc_loss(p, t[:1], [5, 5], [2, 2]), dt.ShapeMismatchError, "targets"),
        (lambda: F.ctc_loss(p, t[0], [5, 5], [2, 2]), dt.ShapeMismatchError, "targets"),
        (lambda: F.ctc_loss(p, t, p[:, 0, 0], [2, 2]), dt.DTypeMismatchError, "input_lengths"),
        (lambda: F.ctc_loss(p[:0], t, [0, 0], [0, 0]), RuntimeError, "must not be empty"),
    ]
    for call, error, text in calls:
        with pytest.raises(error, match=text):
            call()
    if device == "cpu":
        with pytest.raises(IndexError, match="labels"):
            F.ctc_loss(p, t + 2, [5, 5], [2, 2])
