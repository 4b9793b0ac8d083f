"""torch.nn.utils.fusion: the older place of the functions that put a batch normalisation into the layer before it."""

from __future__ import annotations

from devtensor.nn.utils.weights import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def __dir__() -> list[str]:
    return __all__
