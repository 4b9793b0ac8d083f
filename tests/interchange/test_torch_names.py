"""Functions of PyTorch's top level that devtensor finds elsewhere give what PyTorch gives."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import devtensor as dt
from devtensor._names import torch_names

torch = pytest.importorskip("torch")

# In place, of one array; the others with their arguments.
OTHERS = """
clamp_max_(x, 0.5); clamp_min_(x, 0.5); clamp_(x, 0.2, 0.6); clip_(x, 0.2, 0.6)
fill_(x, 2.0); zero_(x); as_strided_(x, (2,), (1,)); index_put_(x, (i,), y[0]); xlogy_(x, y); logit_(x, 0.1)
round_(x); resize_as_(x, x[:2]); nan_to_num_(x, 1.0); detach_(x)
"""
CALLS = """
binary_cross_entropy_with_logits(x, y); binary_cross_entropy_with_logits(x, y, None, None, 2); kl_div(x, y)
kl_div(x, y, 0, log_target=True); cosine_embedding_loss(x, y, s, 0.1, 2); hinge_embedding_loss(x, s3, 1.0, 0)
margin_ranking_loss(x[0], y[0], s, 0.5); poisson_nll_loss(x, y, True, False, 1e-8, 1)
triplet_margin_loss(x, y, x * 2, 0.5, 2, 1e-6, False, 2)
ctc_loss(x.reshape(3, 1, 3).log_softmax(2), i.reshape(1, 3)[:, :1] + 1, (3,), (1,), 0, 1, False)
constant_pad_nd(x, (1, 2), 0.5); adaptive_max_pool1d(x[None], 2)[0]; adaptive_max_pool1d(x[None], 2)[1]
max_pool1d_with_indices(x[None], 2)[1]
grid_sampler(x[None, None], x[None, :, :2].unsqueeze(0)[0][:, None], 0, 1, False)
grid_sampler_2d(x[None, None], x[None, :, :2][:, None], 1, 0, True)
grid_sampler_3d(x[None, None, None], x[None, None, None], 0, 0, True)
affine_grid_generator(x[None, :2], (1, 1, 2, 2), False); rsub(x, y); rsub(x, 3.0, alpha=2); unsafe_chunk(x, 2)[1]
unsafe_split(x, 2)[0]; unsafe_split_with_sizes(x, (1, 2))[1]; fill(x, 2.0); dropout_(x, 0.5, False)
alpha_dropout_(x, 0.5, False); feature_alpha_dropout_(x[None], 0.5, False); feature_dropout(x[None], 0.5, False)
feature_dropout_(x[None], 0.0, True)
"""


def split(text: str) -> list[str]:
    return [call.strip() for call in text.replace("\n", ";").split(";") if call.strip()]


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_they_give_what_pytorch_gives(device: str) -> None:
    arrays = {
        "x": np.array([[0.1, 0.9, 0.4], [0.5, 0.3, 0.7], [0.8, 0.2, 0.6]]),
        "y": np.array([[0.3, 0.6, 0.2], [0.9, 0.4, 0.1], [0.7, 0.5, 0.8]]),
        "s": np.array([1.0, -1.0, 1.0]),
        "s3": np.array([[1.0, -1.0, 1.0]] * 3),
        "i": np.array([0, 1, 1]),
    }
    named = {call.partition("(")[0] for call in split(OTHERS + CALLS)}
    in_place = [name for name in torch_names.names() if name not in named and name != "typename"]
    wrong = []
    for call in [*split(OTHERS), *split(CALLS), *(f"{name}(x)" for name in in_place)]:
        if call.partition("(")[0] in {"gcd_", "lcm_", "ldexp_"}:
            continue
        found = []
        for lib, where in ((torch, "cpu"), (dt, device)):
            names: dict[str, Any] = {name: lib.tensor(value.tolist()).to(where) for name, value in arrays.items()}
            names = {key: value.double() if key != "i" else value for key, value in names.items()}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = eval(f"lib.{call}", {"lib": lib, **names})
            found.append(result.detach().cpu().numpy())
        if found[0].shape != found[1].shape or not np.allclose(found[0], found[1], equal_nan=True):
            wrong.append((call, *found))
    assert wrong == []


def test_wrong_numbers_are_refused() -> None:
    x = dt.ones(2)
    for call in (lambda: dt.kl_div(x, x, 3), lambda: dt.kl_div(x, x, True), lambda: dt.grid_sampler(x, x, 7, 0, True)):
        with pytest.raises(ValueError, match="must be one of"):
            call()
    with pytest.raises(AttributeError):
        dt.cosine_(x)
    assert dt.typename(x) == "devtensor.DeviceArray" and dt.typename(3) == "int"
