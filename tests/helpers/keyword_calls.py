"""What test_keywords.py tries for each keyword, besides what its annotation says, and the keywords that this does not
reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import devtensor as dt

# Values by the name of a keyword.
VALUES: dict[str, list[Any]] = {
    "rounding_mode": ["floor", "trunc"],
    "memory_format": [dt.channels_last, dt.contiguous_format],
    "mode": ["reflect", "bilinear", "sum", "max", "mean", "r", "complete"],
    "padding_mode": ["reflect", "circular", "border"],
    "interpolation": ["lower", "nearest"],
    "UPLO": ["U"],
    "indexing": ["xy"],
    "side": ["right"],
    "activation": ["gelu"],
    "reduce": ["add", "multiply", "sum", "amax"],
    "profile": ["full", "short"],
    "nonlinearity": ["tanh", "relu"],
    "output_ratio": [0.5, (0.5, 0.5), (0.5, 0.5, 0.5)],
    "generator": [dt.Generator().manual_seed(99)],
    "sorter": [dt.tensor([2, 0, 1])],
    "device_ids": [[0]],
    "size": [3, (3, 3)],
    "scale_factor": [2.0, 3.0],
    "range": [(0.0, 1.0)],
    "dims": [(0,)],
    "spacing": [2.0],
}


def numbers(*shape: int) -> dt.DeviceArray:
    count = dt.zeros(shape).numel()
    return (dt.arange(count, dtype=dt.float32) * 7 % 11 - 3).reshape(shape) / 4


def pooled(n: int) -> Callable[[], dict[str, Any]]:
    return lambda: {"input": numbers(1, 2, *[7] * n), "kernel_size": 2, "stride": 2}


def grouped(n: int) -> Callable[[], dict[str, Any]]:
    return lambda: {"input": numbers(1, 4, *[5] * n), "weight": numbers(4, 2, *[3] * n)}


def special() -> dict[str, Any]:
    return {"input": dt.tensor([float("nan"), float("inf"), -float("inf"), 1.0])}


def definite() -> dict[str, Any]:
    x = numbers(3, 3)
    x = x @ x.T + dt.eye(3)
    return {"input": x, "A": x}


# Other arguments to begin with, by ops: those of the test of parameters are arrays of two rows and three columns.
_CALLS: dict[str, list[Callable[[], dict[str, Any]]]] = {
    "isclose allclose": [
        lambda: {"input": dt.tensor([1.0, 2.0]), "other": dt.tensor([1.05, 2.0])},
        lambda: {"input": dt.tensor([1.0, float("nan")]), "other": dt.tensor([1.0, float("nan")])},
    ],
    "assert_close": [
        lambda: {"actual": dt.tensor([1.0, 2.0]), "expected": dt.tensor([1.05, 2.0])},
        lambda: {"actual": dt.tensor([float("nan")]), "expected": dt.tensor([float("nan")])},
        lambda: {"actual": dt.tensor([1.0]), "expected": dt.tensor([1.0], dtype=dt.float64)},
        lambda: {"actual": dt.tensor([1.0]), "expected": dt.tensor([1.0], device="cuda:0")},
        lambda: {"actual": dt.tensor([1.0]), "expected": dt.tensor([2.0]), "atol": 5.0, "rtol": 0.0},
    ],
    **{f"{op}_pool{n}d": [pooled(n)] for op in ("avg", "max", "lp") for n in (1, 2, 3)},
    **{f"conv{n}d": [grouped(n)] for n in (1, 2, 3)},
    "cat": [lambda: {"tensors": [numbers(2, 3), numbers(2, 3)]}],
    "squeeze squeeze_": [lambda: {"input": numbers(1, 2, 1)}],
    "diagonal diagonal_scatter": [lambda: {"input": numbers(2, 3, 4), "src": numbers(4, 2)}],
    "nan_to_num nan_to_num_": [special],
    "rot90": [lambda: {"input": numbers(2, 2, 2)}],
    "cross vecdot": [
        lambda: {
            "input": numbers(3, 3),
            "other": numbers(3, 3).T.contiguous(),
            "x": numbers(3, 3),
            "y": numbers(3, 3).T.contiguous(),
        }
    ],
    "quantile nanquantile": [lambda: {"input": numbers(5), "q": 0.3}],
    "dist": [lambda: {"input": numbers(4), "other": numbers(4) * 2 + 1}],
    "diff": [lambda: {"input": numbers(2, 3), "prepend": numbers(2, 1)}],
    "smooth_l1_loss huber_loss": [lambda: {"input": numbers(4), "target": numbers(4) * 3 + 0.1}],
    "mse_loss l1_loss": [lambda: {"input": numbers(4), "target": numbers(4) * 3 + 0.1}],
    "binary_cross_entropy": [lambda: {"input": dt.tensor([0.2, 0.7]), "target": dt.tensor([1.0, 0.0])}],
    "cholesky cholesky_ex eigh eigvalsh": [definite],
    "lu lu_factor lu_factor_ex": [
        lambda: {"input": numbers(3, 3), "A": numbers(3, 3)},
        lambda: {"A": dt.zeros(2, 2), "check_errors": True},
    ],
    "tensorinv": [lambda: {"A": dt.eye(4).reshape(4, 2, 2)}],
    "tensorsolve": [lambda: {"A": dt.eye(4).reshape(4, 2, 2), "B": dt.ones(2, 2)}],
    "histogram": [lambda: {"input": numbers(3)}],
    "gradient": [lambda: {"input": numbers(5)}],
    "poisson": [lambda: {"input": dt.tensor([0.3, 5.0, 9.0])}],
    "binomial": [lambda: {"count": dt.tensor([10.0, 20.0]), "prob": dt.tensor([0.3, 0.7])}],
    "qr svd": [lambda: {"input": numbers(4, 2), "A": numbers(4, 2)}],
    "bernoulli multinomial": [lambda: {"input": dt.tensor([0.2, 0.3, 0.5] * 20), "num_samples": 20}],
    "slice_scatter": [lambda: {"input": numbers(4, 4), "src": numbers(2, 4), "start": 0, "end": 2}],
    "searchsorted": [lambda: {"sorted_sequence": dt.tensor([1.0, 2.0, 3.0]), "input": dt.tensor([2.0, 1.0])}],
    "interpolate": [lambda: {"input": numbers(1, 2, 4, 4), "scale_factor": 1.7, "mode": "bilinear"}],
    "upsample": [lambda: {"input": numbers(1, 2, 4, 4), "scale_factor": 1.7, "mode": "bilinear"}],
    "grid_sample": [lambda: {"input": numbers(1, 2, 4, 4), "grid": numbers(1, 2, 2, 2)}],
    "fold": [lambda: {"input": numbers(1, 4, 4), "output_size": (3, 3), "kernel_size": 2}],
    "round": [lambda: {"input": numbers(4) / 7}],
    "repeat_interleave": [lambda: {"input": numbers(3), "repeats": dt.tensor([1, 2, 1])}],
    "div div_": [lambda: {"input": numbers(4) * 5, "other": dt.tensor(2.0)}],
    "meshgrid": [lambda: {"tensors": (numbers(2), numbers(3))}],
    "embedding_bag": [lambda: {"input": dt.tensor([[0, 1]]), "weight": numbers(4, 3)}],
    "triplet_margin_loss": [
        lambda: {"anchor": numbers(2, 3), "positive": -numbers(2, 3), "negative": numbers(2, 3) + 1}
    ],
    "cosine_embedding_loss": [
        lambda: {"input1": numbers(2, 3), "input2": numbers(2, 3) + 1, "target": dt.tensor([-1, -1])}
    ],
    "scaled_dot_product_attention": [
        lambda: {"query": numbers(1, 4, 3, 2), "key": numbers(1, 2, 3, 2), "value": numbers(1, 2, 3, 2)}
    ],
    "contiguous clone to is_contiguous empty_like full_like ones_like rand_like randint_like randn_like zeros_like": [
        lambda: {"input": numbers(1, 2, 3, 3)}
    ],
    "empty": [lambda: {"size": (1, 2, 3, 3)}],
    "matrix_norm": [lambda: {"A": numbers(2, 3, 4), "input": numbers(2, 3, 4)}],
    "vector_norm": [lambda: {"x": numbers(2, 3), "input": numbers(2, 3)}],
    "instance_norm": [lambda: {"input": numbers(2, 3, 4)}],
    "gumbel_softmax": [lambda: {"logits": numbers(2, 3)}],
    "max_unpool1d": [lambda: {"input": numbers(1, 2, 4), "indices": dt.tensor([[[0, 2, 4, 6]] * 2]), "kernel_size": 2}],
    "split_with_sizes": [lambda: {"input": numbers(4, 4), "split_sizes": (1, 3)}],
    "frombuffer": [lambda: {"buffer": bytes(range(16)), "dtype": dt.uint8}],
}
CALLS = {name: some for names, some in _CALLS.items() for name in names.split()}
