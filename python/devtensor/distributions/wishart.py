"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings
from typing import ClassVar

from devtensor import _C
from devtensor._C import DeviceArray, _need_number
from devtensor._composed.elementwise.error_functions import mvlgamma
from devtensor._composed.shapes.joining import broadcast_shapes
from devtensor._dtypes.info import finfo
from devtensor.distributions import constraints
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.covariances import (
    OfCovariance,
    factor_of,
    given_form,
    inverse_of,
    log_diagonal,
    need_matrix,
)
from devtensor.distributions.distribution import Shape
from devtensor.distributions.exp_family import ExponentialFamily
from devtensor.distributions.gamma import Chi2
from devtensor.linalg import slogdet


class Wishart(OfCovariance, ExponentialFamily):
    """The sum of x @ x.mT over df normal vectors of a covariance (..., n, n), also for a df between whole numbers.

    One of covariance_matrix, precision_matrix (its inverse) and scale_tril (its lower Cholesky factor) is given; df is
    above n - 1. Samples are not looked at and drawn again where they are singular, which a df below n makes likely and
    of which PyTorch and this warn. Works on the cpu, because it needs LAPACK; sampling with scale_tril on every device.

    >>> dt.distributions.Wishart(3.0, scale_tril=dt.eye(2)).mean.tolist()
    [[3.0, 0.0], [0.0, 3.0]]
    """

    support: ClassVar[Constraint] = constraints.positive_definite
    has_rsample: bool = True
    _mean_carrier_measure = 0.0

    df: DeviceArray

    def __init__(
        self,
        df: DeviceArray | float,
        covariance_matrix: DeviceArray | None = None,
        precision_matrix: DeviceArray | None = None,
        scale_tril: DeviceArray | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = given_form("Wishart", covariance_matrix, precision_matrix, scale_tril)
        if isinstance(df, DeviceArray):
            _C._check("Wishart", ("df", name), (df, matrix))
        else:
            df = _C.tensor(_need_number("Wishart", "df", df), dtype=matrix.dtype, device=matrix.device)
        need_matrix(name, matrix)
        batch, event = broadcast_shapes(matrix.shape[:-2], df.shape), matrix.shape[-2:]
        self.df = df.expand(batch)
        if not df.is_cuda:
            if bool((df <= event[-1] - 1).any()):
                raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event[-1] - 1}.")
            if bool((df < event[-1]).any()):
                text = "Singular samples are highly likely to occur for ndim - 1 < df < ndim."
                warnings.warn(f"Low df values detected. {text}", stacklevel=2)
        self._keep(name, matrix, batch)
        super().__init__(batch, event, validate_args=validate_args)
        self._factor = factor_of(name, matrix)

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    def expand(self, batch_shape: Shape) -> Wishart:
        made = self._expanded(batch_shape, "df")
        made._expand_forms(self)
        return made

    def _times(self, factor: DeviceArray, matrix: DeviceArray) -> DeviceArray:
        return factor[..., None, None] * matrix

    @property
    def mean(self) -> DeviceArray:
        return self._times(self.df, self.covariance_matrix)

    @property
    def mode(self) -> DeviceArray:
        factor = self.df - self._event_shape[-1] - 1
        return self._times(_C.where(factor > 0, factor, math.nan), self.covariance_matrix)

    @property
    def variance(self) -> DeviceArray:
        own = self.covariance_matrix
        diagonal = own.diagonal(dim1=-2, dim2=-1)
        return self._times(self.df, own.square() + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        """By Bartlett's decomposition: a triangle of normal numbers with roots of chi-squared ones on the diagonal."""
        like, n = self._factor, self._event_shape[-1]
        freedom = self.df.unsqueeze(-1) - _C.arange(n, dtype=like.dtype, device=like.device)
        roots = Chi2(freedom, validate_args=False).rsample(sample_shape).sqrt().clamp(min=finfo(like.dtype).eps)
        below = _C.randn(*roots.shape, n, dtype=like.dtype, device=like.device).tril(-1)
        factor: DeviceArray = like @ (below + roots.diag_embed())
        return factor @ factor.mT

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self._beside("log_prob", value, "df")
        inverse, n = inverse_of(self._factor), self._event_shape[-1]
        distance = (inverse.mT @ inverse * value).sum((-2, -1))
        density = 0.5 * ((self.df - n - 1) * slogdet(value).logabsdet - distance)
        return density - self.df * (0.5 * n * math.log(2) + log_diagonal(self._factor)) - mvlgamma(self.df / 2, n)

    def entropy(self) -> DeviceArray:
        n, half = self._event_shape[-1], self.df / 2
        steps = _C.arange(n, dtype=half.dtype, device=half.device) / 2
        slopes = (half.unsqueeze(-1) - steps).digamma().sum(-1)
        volume = (n + 1) * (0.5 * n * math.log(2) + log_diagonal(self._factor))
        return volume + mvlgamma(half, n) - 0.5 * (self.df - n - 1) * slopes + half * n

    @property
    def _natural_params(self) -> tuple[DeviceArray, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, *natural_params: DeviceArray) -> DeviceArray:
        x, y = natural_params
        n = self._event_shape[-1]
        half = y + (n + 1) / 2
        return half * (n * math.log(2) - slogdet(-2 * x).logabsdet) + mvlgamma(half, n)
