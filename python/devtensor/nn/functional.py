"""The functions behind the layers: PyTorch's torch.nn.functional, values only."""

from __future__ import annotations

from devtensor._C import (
    adaptive_avg_pool2d,
    avg_pool2d,
    conv2d,
    embedding,
    linear,
    log_softmax,
    max_pool2d,
    sigmoid,
    softmax,
    softplus,
    tanh,
)
from devtensor._composed.activations import elu, gelu, hardtanh, leaky_relu, relu, relu6, silu
from devtensor._composed.arrange import pad
from devtensor._composed.attention import scaled_dot_product_attention
from devtensor._composed.distances import (
    cosine_embedding_loss,
    cosine_similarity,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    pairwise_distance,
    soft_margin_loss,
    triplet_margin_loss,
)
from devtensor._composed.layers import batch_norm, conv1d, dropout, layer_norm, normalize, one_hot
from devtensor._composed.likelihoods import gaussian_nll_loss, poisson_nll_loss
from devtensor._composed.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)

__all__ = [
    "adaptive_avg_pool2d",
    "avg_pool2d",
    "batch_norm",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "conv1d",
    "conv2d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "dropout",
    "elu",
    "embedding",
    "gaussian_nll_loss",
    "gelu",
    "hardtanh",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "margin_ranking_loss",
    "max_pool2d",
    "mse_loss",
    "multi_margin_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "poisson_nll_loss",
    "relu",
    "relu6",
    "scaled_dot_product_attention",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softplus",
    "tanh",
    "triplet_margin_loss",
]

for _name in __all__:
    if (_function := globals()[_name]).__module__.startswith("devtensor._composed"):
        _function.__module__ = __name__  # where users see and pickles find it


def __dir__() -> list[str]:
    return __all__
