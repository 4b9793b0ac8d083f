"""The names of the ops of this folder that `devtensor` shows, and the ops that arrays have as methods.

devtensor imports them file by file: mypy loses names that come through one more module.
"""

from __future__ import annotations

from devtensor._composed.creating import creation, ranges, sampling, windows
from devtensor._composed.elementwise import (
    activations,
    bessel,
    bits,
    extremes,
    gamma_functions,
    in_place,
    neighbours,
    parts,
    pointwise,
    reals,
    whole_numbers,
)
from devtensor._composed.images import convolutions, pooling, shuffles
from devtensor._composed.layers import basic as basic_layers
from devtensor._composed.layers import noise, norms
from devtensor._composed.losses import basic as basic_losses
from devtensor._composed.matrices import contraction, distances, forms, products
from devtensor._composed.reductions import covariance, groups, histograms, moments, order, summaries
from devtensor._composed.shapes import (
    arrange,
    diagonals,
    exchanged,
    joining,
    places,
    questions,
    scattered_views,
    sizes,
    slopes,
    strided,
    turning,
)

__all__: list[str] = []  # pyright reads a list that is added to file by file
__all__ += activations.__all__
__all__ += arrange.__all__
__all__ += bessel.__all__
__all__ += bits.__all__
__all__ += contraction.__all__
__all__ += convolutions.__all__
__all__ += covariance.__all__
__all__ += creation.__all__
__all__ += diagonals.__all__
__all__ += distances.__all__
__all__ += exchanged.__all__
__all__ += extremes.__all__
__all__ += forms.__all__
__all__ += gamma_functions.__all__
__all__ += histograms.__all__
__all__ += groups.__all__
__all__ += in_place.__all__
__all__ += joining.__all__
__all__ += basic_layers.__all__
__all__ += basic_losses.__all__
__all__ += neighbours.__all__
__all__ += noise.__all__
__all__ += norms.__all__
__all__ += order.__all__
__all__ += parts.__all__
__all__ += places.__all__
__all__ += pointwise.__all__
__all__ += pooling.__all__
__all__ += products.__all__
__all__ += questions.__all__
__all__ += ranges.__all__
__all__ += reals.__all__
__all__ += sampling.__all__
__all__ += scattered_views.__all__
__all__ += shuffles.__all__
__all__ += sizes.__all__
__all__ += slopes.__all__
__all__ += moments.__all__
__all__ += strided.__all__
__all__ += summaries.__all__
__all__ += turning.__all__
__all__ += whole_numbers.__all__
__all__ += windows.__all__

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
    gamma_functions,
    groups,
    histograms,
    in_place,
    joining,
    basic_layers,
    basic_losses,
    neighbours,
    noise,
    norms,
    order,
    parts,
    places,
    pointwise,
    pooling,
    products,
    questions,
    ranges,
    reals,
    sampling,
    scattered_views,
    shuffles,
    sizes,
    slopes,
    moments,
    strided,
    summaries,
    turning,
    whole_numbers,
    windows,
)

METHODS = tuple(method for file in _FILES for method in getattr(file, "METHODS", ()))
