"""The names of the ops of this folder that `devtensor` shows, and the ops that arrays have as methods.

devtensor imports them file by file: mypy loses names that come through one more module.
"""

from __future__ import annotations

from devtensor._composed.creating import creation, ranges, sampling, windows
from devtensor._composed.elementwise import activations, bessel, bits, extremes, in_place, neighbours, pointwise, reals
from devtensor._composed.images import convolutions, pooling, shuffles
from devtensor._composed.layers import basic as basic_layers
from devtensor._composed.layers import noise, norms
from devtensor._composed.losses import basic as basic_losses
from devtensor._composed.matrices import contraction, distances, forms, products
from devtensor._composed.reductions import covariance, groups, moments, order, summaries
from devtensor._composed.shapes import (
    arrange,
    diagonals,
    exchanged,
    joining,
    places,
    scattered_views,
    sizes,
    strided,
    turning,
)

_FILES = (
    activations,
    arrange,
    bessel,
    bits,
    contraction,
    convolutions,
    covariance,
    creation,
    diagonals,
    distances,
    exchanged,
    extremes,
    forms,
    groups,
    in_place,
    joining,
    basic_layers,
    basic_losses,
    neighbours,
    noise,
    norms,
    order,
    places,
    pointwise,
    pooling,
    products,
    ranges,
    reals,
    sampling,
    scattered_views,
    shuffles,
    sizes,
    moments,
    strided,
    summaries,
    turning,
    windows,
)

__all__ = [name for file in _FILES for name in file.__all__]

METHODS = tuple(method for file in _FILES for method in getattr(file, "METHODS", ()))
