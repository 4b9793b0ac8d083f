"""One right call for each op of several arrays: what test_error_operands.py flips operand by operand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from elementwise_ops import BINARY, UNARY, Tried


@dataclass(frozen=True)
class Array:
    """An array of zeros; entries > 0 makes it a list of so many."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    entries: int = 0


@dataclass(frozen=True)
class Sample:
    """Arrays by parameter, and the other parameters.

    own: arrays whose shape or dtype follows from the others', so that they are to blame whatever is wrong with them.
    decides: arrays whose dtype decides which shape they must have.
    free: what is not looked at of an array ("device", "dtype").
    """

    arrays: dict[str, Array]
    others: dict[str, Any] = field(default_factory=dict)
    own: tuple[str, ...] = ()
    decides: tuple[str, ...] = ()
    free: dict[str, tuple[str, ...]] = field(default_factory=dict)


def f(*shape: int) -> Array:
    return Array(shape)


def i(*shape: int) -> Array:
    return Array(shape, "int64")


def b(*shape: int) -> Array:
    return Array(shape, "bool")


def of_kind(tried: Tried) -> Array:
    return i(2, 3) if tried.kind == "BITS" else f(2, 3)


OTHER_PAIRS = ("max", "min", "isclose", "allclose", "equal", "array_equal")
REDUCTIONS = "sum prod mean amax amin argmax argmin any all".split()
METADATA = ("device", "dtype")

SAMPLES: dict[str, Sample] = {
    **{op: Sample({"input": of_kind(tried)}) for op, tried in UNARY.items()},
    **{op: Sample({"input": of_kind(tried), "other": of_kind(tried)}) for op, tried in BINARY.items()},
    **{op: Sample({"input": f(2, 3), "other": f(2, 3)}) for op in OTHER_PAIRS},
    "pow": Sample({"input": f(2, 3), "exponent": f(2, 3)}),
    "clamp": Sample({"input": f(2, 3), "min": f(2, 3), "max": f(2, 3)}),
    "lerp": Sample({"input": f(2, 3), "end": f(2, 3), "weight": f(2, 3)}),
    "where": Sample({"condition": b(2, 3), "input": f(2, 3), "other": f(2, 3)}),
    "masked_fill": Sample({"input": f(2, 3), "mask": b(2, 3), "value": f()}, own=("value",)),
    "masked_select": Sample({"input": f(2, 3), "mask": b(2, 3)}),
    "copy_": Sample({"input": f(2, 3), "src": f(2, 3)}, free={"src": METADATA, "input": METADATA}),
    "expand_as": Sample({"input": f(2, 3), "other": f(2, 3)}, free={"input": METADATA, "other": METADATA}),
    "view_as": Sample({"input": f(2, 3), "other": f(2, 3)}, free={"input": METADATA, "other": METADATA}),
    "type_as": Sample({"input": f(2, 3), "other": f(2, 3)}, free={"input": METADATA, "other": METADATA}),
    **{op: Sample({"input": f(2, 3)}) for op in REDUCTIONS},
    # products
    "matmul": Sample({"input": f(2, 3), "other": f(3, 4)}),
    "mm": Sample({"input": f(2, 3), "mat2": f(3, 4)}),
    "bmm": Sample({"input": f(5, 2, 3), "mat2": f(5, 3, 4)}),
    "mv": Sample({"input": f(2, 3), "vec": f(3)}),
    "dot": Sample({"input": f(3), "tensor": f(3)}),
    "outer": Sample({"input": f(3), "vec2": f(4)}),
    **{op: Sample({"input": i(2, 3), "other": i(2, 3)}) for op in ("bitwise_left_shift", "bitwise_right_shift")},
    "vdot": Sample({"input": f(3), "other": f(3)}),
    "addmm": Sample({"input": f(2, 4), "mat1": f(2, 3), "mat2": f(3, 4)}, own=("input",)),
    "baddbmm": Sample({"input": f(5, 2, 4), "batch1": f(5, 2, 3), "batch2": f(5, 3, 4)}, own=("input",)),
    "linear": Sample({"input": f(2, 3), "weight": f(4, 3), "bias": f(4)}, own=("bias",)),
    "conv1d": Sample({"input": f(2, 3, 8), "weight": f(4, 3, 3), "bias": f(4)}, own=("bias",)),
    "conv2d": Sample({"input": f(2, 3, 8, 9), "weight": f(4, 3, 3, 3), "bias": f(4)}, own=("bias",)),
    "tensordot": Sample({"a": f(2, 3), "b": f(3, 4)}, {"dims": 1}),
    "inner": Sample({"input": f(2, 3), "other": f(4, 3)}),
    "kron": Sample({"input": f(2, 3), "other": f(4, 3)}),
    "cross": Sample({"input": f(2, 3), "other": f(2, 3)}, {"dim": 1}, own=("input", "other")),
    "cdist": Sample({"x1": f(2, 3), "x2": f(4, 3)}),
    "addmv": Sample({"input": f(2), "mat": f(2, 3), "vec": f(3)}, own=("input",)),
    "addr": Sample({"input": f(3, 4), "vec1": f(3), "vec2": f(4)}, own=("input",)),
    "addbmm": Sample({"input": f(2, 4), "batch1": f(5, 2, 3), "batch2": f(5, 3, 4)}, own=("input",)),
    "cov": Sample({"input": f(2, 3), "fweights": i(3), "aweights": f(3)}, own=("fweights", "aweights")),
    "diff": Sample({"input": f(2, 3), "prepend": f(2, 1), "append": f(2, 2)}, own=("prepend", "append")),
    "trapezoid": Sample({"y": f(2, 3), "x": f(2, 3)}, own=("x",)),
    "cumulative_trapezoid": Sample({"y": f(2, 3), "x": f(2, 3)}, own=("x",)),
    **{
        f"fractional_max_pool{n}d{tail}": Sample(
            {"input": f(2, 3, *[5] * n), "_random_samples": f(2, 3, n)},
            {"kernel_size": 2, "output_size": 3},
            own=("_random_samples",),
        )
        for n in (2, 3)
        for tail in ("", "_with_indices")
    },
    **{op: Sample({"input": f(2, 3), "other": f(2, 3)}) for op in ("fmax", "fmin", "logaddexp2")},
    "select_scatter": Sample(
        {"input": f(2, 3), "src": f(3)}, {"dim": 0, "index": 1}, own=("src",), free={"src": ("dtype",)}
    ),
    "slice_scatter": Sample(
        {"input": f(2, 3), "src": f(1, 3)}, {"dim": 0, "start": 1}, own=("src",), free={"src": ("dtype",)}
    ),
    "diagonal_scatter": Sample({"input": f(2, 3), "src": f(2)}, own=("src",), free={"src": ("dtype",)}),
    **{op: Sample({"input": f(2, 3), "other": f(2, 3)}) for op in ("igamma", "igammac")},
    **{op: Sample({"input": i(2, 3), "other": i(2, 3)}) for op in ("gcd", "lcm")},
    "binomial": Sample({"count": f(2, 3), "prob": f(2, 3)}),
    "histogram": Sample({"input": f(2, 3), "bins": f(4), "weight": f(2, 3)}, own=("bins", "weight")),
    "nextafter": Sample({"input": f(2, 3), "other": f(2, 3)}),
    "resize_as_": Sample({"input": f(2, 3), "the_template": f(3)}, free={"input": METADATA, "the_template": METADATA}),
    "reshape_as": Sample({"input": f(2, 3), "other": f(3, 2)}, free={"input": METADATA, "other": METADATA}),
    "conv3d": Sample({"input": f(2, 3, 4, 5, 6), "weight": f(4, 3, 3, 3, 3), "bias": f(4)}, own=("bias",)),
    "conv_transpose1d": Sample({"input": f(2, 3, 8), "weight": f(3, 4, 3), "bias": f(4)}, own=("bias",)),
    "conv_transpose2d": Sample({"input": f(2, 3, 8, 9), "weight": f(3, 4, 3, 3), "bias": f(4)}, own=("bias",)),
    "conv_transpose3d": Sample({"input": f(2, 3, 4, 5, 6), "weight": f(3, 4, 3, 3, 3), "bias": f(4)}, own=("bias",)),
    "grid_sample": Sample({"input": f(2, 3, 4, 5), "grid": f(2, 6, 7, 2)}, own=("grid",)),
    "bilinear": Sample(
        {"input1": f(2, 3), "input2": f(2, 4), "weight": f(5, 3, 4), "bias": f(5)}, own=("input1", "input2", "bias")
    ),
    "max_unpool1d": Sample({"input": f(2, 3, 4), "indices": i(2, 3, 4)}, {"kernel_size": 2}, own=("indices",)),
    "max_unpool2d": Sample({"input": f(2, 3, 4, 4), "indices": i(2, 3, 4, 4)}, {"kernel_size": 2}, own=("indices",)),
    "max_unpool3d": Sample(
        {"input": f(2, 3, 4, 4, 4), "indices": i(2, 3, 4, 4, 4)}, {"kernel_size": 2}, own=("indices",)
    ),
    # lists
    **{op: Sample({"tensors": Array((2, 3), entries=3)}) for op in ("hstack", "vstack", "dstack", "column_stack")},
    "cat": Sample({"tensors": Array((2, 3), entries=3)}),
    "stack": Sample({"tensors": Array((2, 3), entries=3)}),
    # selection
    "gather": Sample({"input": f(4, 3), "index": i(2, 3)}, {"dim": 0}, own=("index",)),
    "scatter_add": Sample({"input": f(4, 3), "index": i(2, 3), "src": f(2, 3)}, {"dim": 0}, own=("index", "src")),
    "index_add": Sample({"input": f(4, 3), "index": i(2), "source": f(2, 3)}, {"dim": 0}, own=("index", "source")),
    **{op: Sample({"input": f(2, 3), "out": f(2, 3)}, {"dim": 0}) for op in ("cumsum", "cumprod", "logcumsumexp")},
    "searchsorted": Sample(
        {"sorted_sequence": f(2, 4), "input": f(2, 3), "sorter": i(2, 4)},
        own=("input", "sorter"),
        free={"input": ("dtype",), "sorted_sequence": ("dtype",)},
    ),
    "bucketize": Sample({"input": f(2, 3), "boundaries": f(4)}, free={"input": ("dtype",), "boundaries": ("dtype",)}),
    "isin": Sample(
        {"elements": f(2, 3), "test_elements": f(4)}, free={"elements": ("dtype",), "test_elements": ("dtype",)}
    ),
    "bincount": Sample({"input": i(4), "weights": f(4)}, free={"weights": ("dtype",)}),
    **{op: Sample({"input": f(2, 3), "q": f(4)}, {"dim": 0}) for op in ("quantile", "nanquantile")},
    "scatter": Sample({"input": f(4, 3), "index": i(2, 3), "src": f(2, 3)}, {"dim": 0}, own=("index", "src")),
    "scatter_reduce": Sample(
        {"input": f(4, 3), "index": i(2, 3), "src": f(2, 3)}, {"dim": 0, "reduce": "sum"}, own=("index", "src")
    ),
    "index_reduce": Sample(
        {"input": f(4, 3), "index": i(2), "source": f(2, 3)}, {"dim": 0, "reduce": "mean"}, own=("index", "source")
    ),
    "index_copy": Sample({"input": f(4, 3), "index": i(2), "source": f(2, 3)}, {"dim": 0}, own=("index", "source")),
    "index_fill": Sample({"input": f(4, 3), "index": i(2), "value": f()}, {"dim": 0}, own=("index", "value")),
    "put": Sample({"input": f(4, 3), "index": i(2), "source": f(2)}, own=("index", "source")),
    "masked_scatter": Sample({"input": f(2, 3), "mask": b(2, 3), "source": f(2, 3)}, own=("source",)),
    "addcmul": Sample({"input": f(2, 3), "tensor1": f(2, 3), "tensor2": f(2, 3)}),
    "addcdiv": Sample({"input": f(2, 3), "tensor1": f(2, 3), "tensor2": f(2, 3)}),
    "heaviside": Sample({"input": f(2, 3), "values": f(2, 3)}),
    **{op: Sample({"input": f(2, 3), "other": f(2, 3)}) for op in ("copysign", "ldexp", "xlogy", "dist")},
    "float_power": Sample({"input": Array((2, 3), "float64"), "exponent": Array((2, 3), "float64")}),
    "clamp_min": Sample({"input": f(2, 3), "min": f(2, 3)}),
    "clamp_max": Sample({"input": f(2, 3), "max": f(2, 3)}),
    "normal": Sample({"mean": f(2, 3), "std": f(2, 3)}),
    "repeat_interleave": Sample({"input": f(4, 3), "repeats": i(4)}, {"dim": 0}, own=("repeats",)),
    "index_select": Sample({"input": f(4, 3), "index": i(2)}, {"dim": 0}, own=("index",)),
    "take": Sample({"input": f(4, 3), "index": i(2)}, own=("index",)),
    "take_along_dim": Sample({"input": f(4, 3), "indices": i(2, 3)}, {"dim": 0}, own=("indices",)),
    "embedding": Sample({"input": i(2), "weight": f(4, 3)}, own=("input", "weight")),
    "embedding_bag": Sample(
        {"input": i(4), "weight": f(5, 3), "offsets": i(2), "per_sample_weights": f(4)},
        {"mode": "sum"},
        own=("input", "weight", "offsets", "per_sample_weights"),
    ),
    "scaled_dot_product_attention": Sample(
        {"query": f(2, 3), "key": f(4, 3), "value": f(4, 5), "attn_mask": f(2, 4)}, own=("key", "value", "attn_mask")
    ),
    "multi_head_attention_forward": Sample(
        {
            "query": f(2, 3, 4),
            "key": f(5, 3, 4),
            "value": f(5, 3, 4),
            "in_proj_weight": f(12, 4),
            "out_proj_weight": f(4, 4),
        },
        {
            **dict.fromkeys(("in_proj_bias", "bias_k", "bias_v", "out_proj_bias")),
            "embed_dim_to_check": 4,
            "num_heads": 2,
            "add_zero_attn": False,
            "dropout_p": 0.0,
        },
        own=("query", "key", "value", "in_proj_weight", "out_proj_weight"),
    ),
    # normalisation, losses
    "batch_norm": Sample(
        {"input": f(2, 3), "running_mean": f(3), "running_var": f(3), "weight": f(3), "bias": f(3)},
        own=("running_mean", "running_var", "weight", "bias"),
    ),
    "prelu": Sample({"input": f(2, 3), "weight": f(3)}, own=("weight",)),
    "group_norm": Sample({"input": f(2, 4, 9), "weight": f(4), "bias": f(4)}, {"num_groups": 2}),
    "instance_norm": Sample(
        {"input": f(2, 3, 4), "running_mean": f(3), "running_var": f(3), "weight": f(3), "bias": f(3)}
    ),
    "rms_norm": Sample({"input": f(2, 3), "weight": f(3)}, {"normalized_shape": 3}, own=("input", "weight")),
    "layer_norm": Sample(
        {"input": f(2, 3), "weight": f(3), "bias": f(3)}, {"normalized_shape": 3}, own=("input", "weight", "bias")
    ),
    "cross_entropy": Sample(
        {"input": f(2, 3), "target": i(2), "weight": f(3)}, own=("target", "weight"), decides=("target",)
    ),
    "nll_loss": Sample({"input": f(2, 3), "target": i(2), "weight": f(3)}, own=("target", "weight")),
    "mse_loss": Sample({"input": f(2, 3), "target": f(2, 3), "weight": f(2, 3)}, own=("weight",)),
    "l1_loss": Sample({"input": f(2, 3), "target": f(2, 3), "weight": f(2, 3)}, own=("weight",)),
    "huber_loss": Sample({"input": f(2, 3), "target": f(2, 3), "weight": f(2, 3)}, own=("weight",)),
    "smooth_l1_loss": Sample({"input": f(2, 3), "target": f(2, 3)}),
    "kl_div": Sample({"input": f(2, 3), "target": f(2, 3)}, {"reduction": "batchmean"}),
    "poisson_nll_loss": Sample({"input": f(2, 3), "target": f(2, 3)}),
    "gaussian_nll_loss": Sample({"input": f(2, 3), "target": f(2, 3), "var": f(2, 3)}, own=("var",)),
    "soft_margin_loss": Sample({"input": f(2, 3), "target": f(2, 3)}),
    "hinge_embedding_loss": Sample({"input": f(2, 3), "target": f(2, 3)}),
    "margin_ranking_loss": Sample({"input1": f(2, 3), "input2": f(2, 3), "target": f(2, 3)}),
    "cosine_embedding_loss": Sample({"input1": f(2, 3), "input2": f(2, 3), "target": f(2)}, own=("target",)),
    "triplet_margin_loss": Sample({"anchor": f(2, 3), "positive": f(2, 3), "negative": f(2, 3)}),
    "multi_margin_loss": Sample({"input": f(2, 3), "target": i(2), "weight": f(3)}, own=("target", "weight")),
    "multilabel_margin_loss": Sample({"input": f(2, 3), "target": i(2, 3)}, own=("target",)),
    "multilabel_soft_margin_loss": Sample({"input": f(2, 3), "target": f(2, 3), "weight": f(2, 3)}),
    "triplet_margin_with_distance_loss": Sample({"anchor": f(2, 3), "positive": f(2, 3), "negative": f(2, 3)}),
    "ctc_loss": Sample(
        {"log_probs": f(5, 2, 3), "targets": i(2, 2)},
        {"input_lengths": [5, 5], "target_lengths": [2, 2]},
        own=("targets",),
    ),
    "cosine_similarity": Sample({"x1": f(2, 3), "x2": f(2, 3)}),
    "pairwise_distance": Sample({"x1": f(2, 3), "x2": f(2, 3)}),
    "binary_cross_entropy": Sample({"input": f(2, 3), "target": f(2, 3), "weight": f(2, 3)}, own=("target", "weight")),
    "binary_cross_entropy_with_logits": Sample(
        {"input": f(2, 3), "target": f(2, 3), "weight": f(2, 3), "pos_weight": f(2, 3)},
        own=("target", "weight", "pos_weight"),
    ),
}
# Parameters that read as if they took operands, and what they are.
NOT_OPERANDS = {
    "ctc_loss": {"input_lengths", "target_lengths"},  # numbers, which may come in an array of the cpu
    "triplet_margin_with_distance_loss": {"distance_function"},
    "multi_head_attention_forward": {  # which may be None: an error lists eight arrays
        *("in_proj_bias", "bias_k", "bias_v", "out_proj_bias", "q_proj_weight", "k_proj_weight", "v_proj_weight"),
        *("key_padding_mask", "attn_mask", "static_k", "static_v"),
    },
}
# Signatures that read as if they took arrays, and why they have no sample.
NO_SAMPLE = {
    **dict.fromkeys(
        ("cholesky_solve", "lu_solve", "lu_unpack"), "LAPACK works on the cpu alone: tests/ops/test_linalg.py"
    ),
    **dict.fromkeys(("is_same_size", "is_set_to"), "any two arrays can be compared so"),
    **dict.fromkeys(
        ("full", "full_like", "linspace", "logspace", "new_full"), "their arrays stand for numbers: test_strided.py"
    ),
    "fill": "a value stands for a number",
    "map": "of the cpu alone",
    "result_type": "of the arrays dtypes and dimensions count",
    "index_put": "its arrays of indices stand in a tuple",
    "bernoulli": "the probabilities need not have the dtype of input",
    **dict.fromkeys(
        "atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors cartesian_prod meshgrid".split(),
        "it takes any number of arrays by position: test_joining.py",
    ),
    "to": "of the other array only dtype and device count",
    "backward": "a graph decides what gradients look like",
    "register_hook": "it takes a function of gradients",
    "register_post_accumulate_grad_hook": "it takes a function of a leaf",
}
