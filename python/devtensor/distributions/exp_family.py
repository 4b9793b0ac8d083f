"""Families of densities exp(<t(x), p> - F(p) + k(x)): what follows from F alone."""

from __future__ import annotations

from devtensor._C import DeviceArray
from devtensor.autograd import grad
from devtensor.autograd.grad_mode import enable_grad
from devtensor.distributions.distribution import Distribution
from devtensor.distributions.utils import sum_rightmost


class ExponentialFamily(Distribution):
    """The base of distributions whose density is exp(<t(x), p> - F(p) + k(x)).

    A subclass gives the p as _natural_params, F as _log_normalizer, and the mean of k as _mean_carrier_measure: entropy
    and the divergence of two of one class follow from them, by the gradient of F. Only Wishart is one of these here.

    >>> issubclass(dt.distributions.Wishart, dt.distributions.ExponentialFamily)
    True
    """

    _mean_carrier_measure: float

    @property
    def _natural_params(self) -> tuple[DeviceArray, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: DeviceArray) -> DeviceArray:
        raise NotImplementedError

    def _slopes(self) -> tuple[list[DeviceArray], DeviceArray, tuple[DeviceArray, ...]]:
        """The natural parameters, apart from where they come from, F of them, and its gradient."""
        with enable_grad():
            own = [p.detach().requires_grad_() for p in self._natural_params]
            normalizer = self._log_normalizer(*own)
            return own, normalizer, tuple(grad(normalizer.sum(), own, create_graph=True))

    def entropy(self) -> DeviceArray:
        own, result, slopes = self._slopes()
        for p, slope in zip(own, slopes, strict=True):
            result = result - (p * slope).reshape(*self._batch_shape, -1).sum(-1)
        return result - self._mean_carrier_measure


def divergence(p: ExponentialFamily, q: ExponentialFamily) -> DeviceArray:
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman "
            "divergences"
        )
    own, normalizer, slopes = p._slopes()
    others = q._natural_params
    result = q._log_normalizer(*others) - normalizer
    for of_p, of_q, slope in zip(own, others, slopes, strict=True):
        term = (of_q - of_p) * slope
        result = result - sum_rightmost(term, term.ndim - result.ndim)
    return result
