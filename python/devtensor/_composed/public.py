"""The names of the ops of this folder that `devtensor` shows, and the ops that arrays have as methods.

devtensor imports them file by file: mypy loses names that come through one more module.
"""

from __future__ import annotations

from devtensor._composed import (
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
    layers,
    losses,
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
    statistics,
    strided,
    summaries,
    turning,
    windows,
)

__all__: list[str] = []
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
__all__ += groups.__all__
__all__ += in_place.__all__
__all__ += joining.__all__
__all__ += layers.__all__
__all__ += losses.__all__
__all__ += neighbours.__all__
__all__ += noise.__all__
__all__ += norms.__all__
__all__ += order.__all__
__all__ += places.__all__
__all__ += pointwise.__all__
__all__ += pooling.__all__
__all__ += products.__all__
__all__ += ranges.__all__
__all__ += reals.__all__
__all__ += sampling.__all__
__all__ += scattered_views.__all__
__all__ += shuffles.__all__
__all__ += sizes.__all__
__all__ += statistics.__all__
__all__ += strided.__all__
__all__ += summaries.__all__
__all__ += turning.__all__
__all__ += windows.__all__

METHODS = (
    *activations.METHODS,
    *arrange.METHODS,
    *bessel.METHODS,
    *bits.METHODS,
    *covariance.METHODS,
    *diagonals.METHODS,
    *exchanged.METHODS,
    *extremes.METHODS,
    *groups.METHODS,
    *joining.METHODS,
    *neighbours.METHODS,
    *order.METHODS,
    *places.METHODS,
    *pointwise.METHODS,
    *products.METHODS,
    *reals.METHODS,
    *sampling.METHODS,
    *scattered_views.METHODS,
    *sizes.METHODS,
    *statistics.METHODS,
    *strided.METHODS,
    *summaries.METHODS,
    *turning.METHODS,
)
