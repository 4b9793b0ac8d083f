"""nn.utils.prune beside PyTorch's: masks, names, order of parameters, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import devtensor as dt
from devtensor.nn.utils import prune

CALLS = {
    "identity": [("weight",)],
    "l1_unstructured": [("weight", 0.3), ("bias", 2), ("weight", 0)],
    "ln_structured": [("weight", 0.5, 2, 0), ("weight", 1, 1, -1), ("weight", 1, float("inf"), 1)],
    "custom_from_mask": [],
    "random_unstructured": [("weight", 7), ("weight", 0.5)],
    "random_structured": [("weight", 2, 0), ("weight", 0.5, -1)],
}


def pair(torch: Any, device: str) -> tuple[Any, Any]:
    theirs, ours = torch.nn.Linear(4, 6), dt.nn.Linear(4, 6, device=device)
    ours.load_state_dict({k: dt.from_numpy(v.numpy()).to(device) for k, v in theirs.state_dict().items()})
    return theirs, ours


def same(theirs: Any, ours: Any) -> None:
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for name, value in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[name].cpu().numpy(), value.numpy(), rtol=1e-6)


def test_masks_are_pytorchs(device: str) -> None:
    torch = pytest.importorskip("torch")
    from torch.nn.utils import prune as reference

    for name in ("identity", "l1_unstructured", "ln_structured"):
        for arguments in CALLS[name]:
            theirs, ours = pair(torch, device)
            getattr(reference, name)(theirs, *arguments)
            getattr(prune, name)(ours, *arguments)
            same(theirs, ours)
    theirs, ours = pair(torch, device)
    for step in (lambda p, m: p.l1_unstructured(m, "weight", 5), lambda p, m: p.ln_structured(m, "weight", 2, 2, 0),
                 lambda p, m: p.l1_unstructured(m, "weight", 0.5)):  # fmt: skip
        step(reference, theirs)
        step(prune, ours)
        same(theirs, ours)
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    theirs(torch.from_numpy(x)).square().sum().backward()
    ours(dt.array(x, device=device)).square().sum().backward()
    np.testing.assert_allclose(ours.weight_orig.grad.cpu().numpy(), theirs.weight_orig.grad.numpy(), rtol=1e-5)
    assert prune.is_pruned(dt.nn.Sequential(ours)) and not prune.is_pruned(dt.nn.Linear(2, 2))
    reference.remove(theirs, "weight")
    prune.remove(ours, "weight")
    same(theirs, ours)
    assert not prune.is_pruned(ours) and isinstance(ours.weight, dt.nn.Parameter)


def test_several_parameters_as_one(device: str) -> None:
    torch = pytest.importorskip("torch")
    from torch.nn.utils import prune as reference

    theirs, ours = pair(torch, device)
    for _ in range(2):
        reference.global_unstructured(
            [(theirs, "weight"), (theirs, "bias")], pruning_method=reference.L1Unstructured, amount=0.4
        )
        prune.global_unstructured([(ours, "weight"), (ours, "bias")], pruning_method=prune.L1Unstructured, amount=0.4)
        same(theirs, ours)
    with pytest.raises(TypeError, match="unstructured"):
        prune.global_unstructured([(ours, "weight")], prune.LnStructured, amount=1, n=2)


def test_random_pruning_has_as_many_zeros(device: str) -> None:
    for name, arguments, zeros in (
        ("random_unstructured", (7,), 7),
        ("random_unstructured", (0.5,), 12),
        ("random_structured", (2, 0), 8),
        ("random_structured", (0.5, -1), 12),
    ):
        layer = dt.nn.Linear(4, 6, device=device)
        assert getattr(prune, name)(layer, "weight", *arguments) is layer
        assert int((layer.weight_mask == 0).sum().cpu()) == zeros
        assert layer(dt.ones(2, 4, device=device)).shape == (2, 6)


def test_what_is_refused_changes_nothing() -> None:
    layer = dt.nn.Linear(4, 6)
    names = [name for name, _ in layer.named_parameters()]
    for call, error in (
        (lambda: prune.l1_unstructured(layer, "weight", 1.5), ValueError),
        (lambda: prune.l1_unstructured(layer, "weight", 25), ValueError),
        (lambda: prune.l1_unstructured(layer, "weight", "all"), TypeError),
        (lambda: prune.l1_unstructured(layer, "weights", 1), AttributeError),
        (lambda: prune.ln_structured(layer, "bias", 1, 2, 0), ValueError),
        (lambda: prune.ln_structured(layer, "weight", 1, 2, 2), IndexError),
        (lambda: prune.l1_unstructured(layer, "weight", 1, dt.ones(2)), AssertionError),
        (lambda: prune.remove(layer, "weight"), ValueError),
    ):
        with pytest.raises(error):
            call()
        assert [name for name, _ in layer.named_parameters()] == names and not prune.is_pruned(layer)
    method = prune.L1Unstructured(2)
    assert (method.prune(dt.tensor([3.0, 1.0, -2.0])) == dt.tensor([3.0, 0.0, 0.0])).all()
    prune.custom_from_mask(layer, "bias", dt.tensor([1, 0, 1, 0, 1, 1]))
    with pytest.raises(ValueError, match="smaller than"):
        prune.l1_unstructured(layer, "bias", 7)
    assert prune.l1_unstructured(layer, "bias", 1).bias_mask.sum().item() == 3
