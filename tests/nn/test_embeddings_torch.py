"""embedding, embedding_bag and their modules beside PyTorch: numbers, gradients, names and text."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import devtensor as dt

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

RNG = np.random.default_rng(0)
WEIGHT = RNG.standard_normal((10, 4)).astype(np.float32)


def both(x: np.ndarray | None, device: str, learns: bool = False) -> tuple[Any, Any]:
    if x is None:
        return None, None
    return dt.from_numpy(x.copy()).to(device).requires_grad_(learns), torch.from_numpy(x.copy()).requires_grad_(learns)


def close(got: Any, want: Any, case: object = "") -> None:
    np.testing.assert_allclose(got.detach().cpu().numpy(), want.detach().numpy(), atol=1e-5, err_msg=str(case))


def test_bags(device: str) -> None:
    """Modes, padding, factors, rows and offsets, bags without rows at either end: values and gradients."""
    for mode, padding, ended, factors, rows in itertools.product(
        ("sum", "mean", "max"), (None, 2, -8), (False, True), (False, True), (False, True)
    ):
        if (factors and mode != "sum") or (rows and ended):
            continue
        case = (mode, padding, ended, factors, rows)
        index = RNG.integers(0, 5, (3, 4) if rows else 12)
        offsets = None if rows else np.array([0, 0, 3, 3, 9, 12])
        a, b = both(WEIGHT, device, True)
        p, q = both(RNG.standard_normal(index.shape).astype(np.float32) if factors else None, device, True)
        options = {"mode": mode, "padding_idx": padding, "include_last_offset": ended}
        (i, j), (o, r) = both(index, device), both(offsets, device)
        x = dt.nn.functional.embedding_bag(i, a, o, per_sample_weights=p, **options)
        y = torch.nn.functional.embedding_bag(j, b, r, per_sample_weights=q, **options)
        close(x, y, case)
        x.square().sum().backward(), y.square().sum().backward()
        close(a.grad, b.grad, case)
        if factors:
            close(p.grad, q.grad, case)


def test_embedding_and_its_gradient(device: str) -> None:
    """padding_idx, max_norm, which changes the weight, and gradients by frequency."""
    for padding, limit, often in itertools.product((None, 2, -1), (None, 1.0), (False, True)):
        (a, b), (i, j) = both(WEIGHT, device, True), both(RNG.integers(0, 10, (3, 4)), device)
        x = dt.nn.functional.embedding(i, a, padding, limit, 1.5, often)
        y = torch.nn.functional.embedding(j, b, padding, limit, 1.5, often)
        close(x, y)
        close(a, b)
        x.square().sum().backward(), y.square().sum().backward()
        close(a.grad, b.grad)


def test_gradients_by_frequency_in_bags(device: str) -> None:
    """PyTorch on the cpu takes the count of another row."""
    w = dt.ones(4, 1, device=device, requires_grad=True)
    i, o = dt.tensor([1, 1, 2], device=device), dt.tensor([0], device=device)
    dt.nn.functional.embedding_bag(i, w, o, mode="sum", scale_grad_by_freq=True).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [[0], [1], [1], [0]]


MODULES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Embedding", (10, 4), {}),
    ("Embedding", (10, 4, 3), {"sparse": True}),
    ("Embedding", (10, 4, -1, 0.5, 3.0, True), {}),
    ("EmbeddingBag", (10, 4), {}),
    ("EmbeddingBag", (10, 4, 0.5, 3.0), {"mode": "sum", "padding_idx": 0}),
    ("EmbeddingBag", (10, 4), {"mode": "max", "padding_idx": -2}),
]


def test_modules(device: str) -> None:
    for name, args, options in MODULES:
        ours, theirs = getattr(dt.nn, name)(*args, **options), getattr(torch.nn, name)(*args, **options)
        assert repr(ours) == repr(theirs)
        assert list(ours.state_dict()) == list(theirs.state_dict())
        if ours.padding_idx is not None:
            assert not ours.weight[ours.padding_idx].any()
        ours.load_state_dict({"weight": dt.from_numpy(theirs.weight.detach().numpy().copy())})
        i, j = both(RNG.integers(0, 10, (3, 4)), device)
        close(ours.to(device)(i), theirs(j))
        close(ours.weight, theirs.weight)


def test_from_pretrained() -> None:
    rows = dt.ones(3, 2)
    for kind in (dt.nn.Embedding, dt.nn.EmbeddingBag):
        layer = kind.from_pretrained(rows, padding_idx=1, max_norm=9.0, norm_type=1.0, scale_grad_by_freq=True)
        assert layer.weight.data_ptr() == rows.data_ptr() and not layer.weight.requires_grad
        assert (layer.padding_idx, layer.max_norm, layer.norm_type, layer.scale_grad_by_freq) == (1, 9, 1, True)
        assert kind.from_pretrained(rows, freeze=False).weight.requires_grad
        with pytest.raises(ValueError, match="2-dimensional"):
            kind.from_pretrained(rows[0])
    assert not dt.nn.Embedding(3, 2, _freeze=True).weight.requires_grad


def test_what_is_refused(device: str) -> None:
    F = dt.nn.functional
    w, i, o = dt.ones(5, 2, device=device), dt.tensor([1, 2, 3], device=device), dt.tensor([0, 2], device=device)
    p = dt.ones(3, device=device)
    for call, error, text in (
        (lambda: F.embedding_bag(i, w), dt.ShapeMismatchError, "offsets"),
        (lambda: F.embedding_bag(i[None], w, o), dt.ShapeMismatchError, "offsets has to be None"),
        (lambda: F.embedding_bag(i, w, o, mode="min"), ValueError, "mode"),
        (lambda: F.embedding_bag(i, w, o, mode="mean", per_sample_weights=p), NotImplementedError, "mode='sum'"),
        (lambda: F.embedding_bag(i, w, o, mode="sum", per_sample_weights=p[:2]), dt.ShapeMismatchError, "per_sample"),
        (lambda: F.embedding_bag(i, w, o, mode="sum", per_sample_weights=p.double()), dt.DTypeMismatchError, "float64"),
        (lambda: F.embedding_bag(i, w, o, mode="max", scale_grad_by_freq=True), ValueError, "frequency"),
        (lambda: F.embedding_bag(i, w, o, padding_idx=5), ValueError, "padding_idx"),
        (lambda: F.embedding_bag(p, w, o), dt.DTypeMismatchError, "indices"),
        (lambda: F.embedding(i, w, 5), ValueError, "padding_idx"),
        (lambda: F.embedding(i, w[0]), dt.ShapeMismatchError, "embedding"),
    ):
        with pytest.raises(error, match=text):
            call()
    if device == "cpu":
        for wrong in ([1, 2], [0, 4], [0, 2, 1]):
            with pytest.raises(IndexError, match="offsets"):
                F.embedding_bag(i, w, dt.tensor(wrong))
    assert F.embedding_bag(i[:0], w, o[:0]).shape == (0, 2)
    assert F.embedding_bag(i[:0], w, o * 0, mode="max").tolist() == [[0, 0], [0, 0]]
