"""Under --as-torch losses take arrays of several dtypes, as in PyTorch, and elsewhere refuse them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import devtensor as dt
import devtensor.nn.functional as F

LOSSES: dict[str, Callable[..., dt.DeviceArray]] = {
    "mse_loss": F.mse_loss,
    "l1_loss": F.l1_loss,
    "smooth_l1_loss": lambda a, b: F.smooth_l1_loss(a, target=b),
    "binary_cross_entropy_with_logits": F.binary_cross_entropy_with_logits,
    "kl_div": lambda a, b: F.kl_div(input=a, target=b, reduction="sum"),
    "poisson_nll_loss": F.poisson_nll_loss,
    "gaussian_nll_loss": lambda a, b: F.gaussian_nll_loss(a, b, dt.ones_like(a).detach()),
    "multilabel_soft_margin_loss": F.multilabel_soft_margin_loss,
    "cross_entropy": F.cross_entropy,
    "margin_ranking_loss": lambda a, b: F.margin_ranking_loss(a, b, dt.ones_like(b)),
    "cosine_embedding_loss": lambda a, b: F.cosine_embedding_loss(a, b, dt.ones(2, dtype=b.dtype, device=b.device)),
    "triplet_margin_loss": lambda a, b: F.triplet_margin_loss(a, b, -b),
    "cosine_similarity": F.cosine_similarity,
    "pairwise_distance": F.pairwise_distance,
    "hinge_embedding_loss": F.hinge_embedding_loss,
    "soft_margin_loss": F.soft_margin_loss,
}
BY_INPUT = {"hinge_embedding_loss", "soft_margin_loss"}  # whose target only has signs
PAIRS = [("float32", "float64"), ("float64", "float32"), ("float16", "float32"), ("float32", "float16"),
         ("float32", "int64")]  # fmt: skip
FLOATS_ALONE = {"binary_cross_entropy_with_logits", "kl_div", "cross_entropy"}


@pytest.fixture
def as_torch() -> Iterator[None]:
    dt._C._as_torch(True)
    yield
    dt._C._as_torch(False)


def arrays(device: str, input: str, target: str) -> tuple[dt.DeviceArray, dt.DeviceArray]:
    numbers = np.array([[0.25, 0.5, 0.75], [0.5, -1.0, 2.0]])
    a = dt.tensor(numbers, dtype=input, device=device).requires_grad_(input.startswith("float"))
    return a, dt.tensor([[1, 0, 1], [0, 1, 1]], dtype=target, device=device)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_promote_as_in_pytorch(name: str, device: str, as_torch: None) -> None:
    for input, target in PAIRS:
        a, b = arrays(device, input, target)
        if target == "int64" and name in FLOATS_ALONE:
            with pytest.raises(RuntimeError):
                LOSSES[name](a, b)
            continue
        both = dt.promote_types(a.dtype, b.dtype)
        wanted = a.dtype if name in BY_INPUT else both
        found = LOSSES[name](a, b)
        found.sum().backward()
        x = a.detach().to(wanted).requires_grad_(True)
        right = LOSSES[name](x, b.to(wanted))
        right.sum().backward()
        assert found.dtype is wanted and dt.equal(found, right), (input, target)
        assert a.grad is not None and x.grad is not None
        assert a.grad.dtype is a.dtype and dt.equal(a.grad, x.grad.to(a.dtype)), (input, target)


@pytest.mark.parametrize("name", sorted(set(LOSSES) - BY_INPUT))
def test_elsewhere_they_refuse(name: str, device: str) -> None:
    a, b = arrays(device, "float32", "float64")
    with pytest.raises(dt.DTypeMismatchError, match="must have the same dtype, but got float32 and float64"):
        LOSSES[name](a, b)


def test_classes_are_not_cast(as_torch: None) -> None:
    logits: Any = dt.zeros(2, 3)
    assert F.cross_entropy(logits, dt.tensor([0, 2])).dtype is dt.float32


def test_weights_of_a_formula_promote_too(device: str, as_torch: None) -> None:
    x, ones = dt.ones(3, device=device), dt.ones(3, device=device, dtype=dt.float64)
    for kind in ("weight", "pos_weight"):
        found = F.binary_cross_entropy_with_logits(x, x, **{kind: ones})  # type: ignore[arg-type]
        assert found.dtype is dt.float64
