"""Gradients, and those of gradients, of every op that PyTorch has too, at PyTorch's own samples.

Needs PyTorch and expecttest. DEVTENSOR_TORCH_SAMPLES=all takes all samples of each op, else a few.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from typing import Any

import pytest
from support import HELPERS

WHOLE = os.environ.get("DEVTENSOR_TORCH_SAMPLES") == "all"
# What differs, by the name of the op and the kind, and why.
KNOWN = {
    ("as_strided/partial_views", "first"): "the memory is that of the samples' own arrays",
    ("as_strided/partial_views", "refused"): "the memory is that of the samples' own arrays",
    ("as_strided_scatter", "first"): "PyTorch gives the part of input that is written over a gradient",
    **{(op, "first"): "each library draws its own vectors" for op in ("svd_lowrank", "pca_lowrank")},
    ("linalg.eigh", "first"): "eigenvectors have any sign, and so has this gradient",
    ("linalg.pinv/hermitian", "first"): "the samples are not symmetric: one triangle is read",
    (
        "nn.functional.ctc_loss",
        "first",
    ): "the samples are no logarithms of probabilities, which PyTorch's formula needs",
    ("linalg.norm/subgradients_at_zero", "second"): "0, where PyTorch has NaN",
    **{(op, "wanted"): "a constant has no gradient" for op in ("cdist", "fill", "linalg.matrix_power", "norm")},
    ("linalg.norm/subgradients_at_zero", "wanted"): "a constant has no gradient",
    **{(op, "wanted"): "residuals have no gradient" for op in ("linalg.lstsq", "linalg.lstsq/grad_oriented")},
    ("scatter_reduce/prod", "second"): "gradgradcheck holds ours (test_gradients.py)",
    **{(op, "refused"): "no memory_format= there" for op in ("bfloat16", "double", "float", "half")},
    **{(op, "first"): "one triangle is read" for op in ("cholesky_inverse", "cholesky_solve")},
    ("gather", "refused"): "indices are int32 or int64",
    ("tensor_split", "refused"): "places are numbers, no array",
    ("nn.functional.batch_norm", "refused"): "an empty batch has no statistics",
    ("nn.functional.batch_norm/without_cudnn", "refused"): "an empty batch has no statistics",
    ("nn.functional.multi_head_attention_forward", "refused"): "bias_k has three dimensions",
    ("nn.functional.multi_margin_loss", "refused"): "one shape for one row",
    ("nn.functional.triplet_margin_with_distance_loss", "refused"): "the samples hold a Module of PyTorch's",
}


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_samples(device: str) -> None:
    for module in ("torch", "expecttest"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"PyTorch's samples need {module}, which is not installed")
    share = ["--samples", "100000" if WHOLE else "2"]
    command = [sys.executable, str(HELPERS / "pytorch" / "torch_gradient_samples.py"), "--device", device, *share]
    env = {**os.environ, "DEVTENSOR_CUDA": "sim:1", "DEVTENSOR_CACHE": "0"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=7200 if WHOLE else 900)
    assert done.returncode == 0, done.stderr[-4000:]
    *found, counts = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    unknown = [one for one in found if not (is_lapack(one) or (one["op"], one["kind"]) in KNOWN)]
    lapack = sum(map(is_lapack, found))
    print(f"{counts['agreed']} of {counts['samples']} samples of {counts['ops']} ops agree on {device}: {counts}")
    assert not unknown, "\n".join(map(str, unknown[:20]))
    assert counts["ops"] > 380 and counts["agreed"] > 0.95 * (counts["samples"] - lapack)


def is_lapack(one: dict[str, Any]) -> bool:
    return "LAPACK computes it on the cpu" in one["text"]
