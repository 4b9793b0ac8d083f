"""The ops of this folder that `devtensor` shows, and those that arrays have as methods."""

from __future__ import annotations

from devtensor._composed import (
    activations,
    arrange,
    contraction,
    convolutions,
    covariance,
    diagonals,
    distances,
    in_place,
    joining,
    layers,
    losses,
    noise,
    norms,
    places,
    pointwise,
    pooling,
    products,
    ranges,
    sampling,
    shuffles,
    statistics,
    summaries,
    turning,
)
from devtensor._composed.activations import *
from devtensor._composed.arrange import *
from devtensor._composed.contraction import *
from devtensor._composed.convolutions import *
from devtensor._composed.covariance import *
from devtensor._composed.diagonals import *
from devtensor._composed.distances import *
from devtensor._composed.in_place import *
from devtensor._composed.joining import *
from devtensor._composed.layers import *
from devtensor._composed.losses import *
from devtensor._composed.noise import *
from devtensor._composed.norms import *
from devtensor._composed.places import *
from devtensor._composed.pointwise import *
from devtensor._composed.pooling import *
from devtensor._composed.products import *
from devtensor._composed.ranges import *
from devtensor._composed.sampling import *
from devtensor._composed.shuffles import *
from devtensor._composed.statistics import *
from devtensor._composed.summaries import *
from devtensor._composed.turning import *

__all__: list[str] = []
__all__ += activations.__all__
__all__ += arrange.__all__
__all__ += contraction.__all__
__all__ += convolutions.__all__
__all__ += covariance.__all__
__all__ += diagonals.__all__
__all__ += distances.__all__
__all__ += in_place.__all__
__all__ += joining.__all__
__all__ += layers.__all__
__all__ += losses.__all__
__all__ += noise.__all__
__all__ += norms.__all__
__all__ += places.__all__
__all__ += pointwise.__all__
__all__ += pooling.__all__
__all__ += products.__all__
__all__ += ranges.__all__
__all__ += sampling.__all__
__all__ += shuffles.__all__
__all__ += statistics.__all__
__all__ += summaries.__all__
__all__ += turning.__all__

METHODS = (
    *activations.METHODS,
    *arrange.METHODS,
    *covariance.METHODS,
    *diagonals.METHODS,
    *joining.METHODS,
    *places.METHODS,
    *pointwise.METHODS,
    *products.METHODS,
    *sampling.METHODS,
    *statistics.METHODS,
    *summaries.METHODS,
    *turning.METHODS,
)
