"""Dimensions of a batch as dimensions of one value."""

from __future__ import annotations

from typing import ClassVar

from devtensor._C import DeviceArray, _need_int, _need_ints
from devtensor.distributions import constraints
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.distribution import Distribution, Shape
from devtensor.distributions.utils import sum_rightmost


class Independent(Distribution):
    """base_distribution whose last reinterpreted_batch_ndims dimensions are one value: log_prob sums over them.

    >>> normal = dt.distributions.Normal(dt.zeros(3), 1.0)
    >>> dt.distributions.Independent(normal, 1).log_prob(dt.zeros(3))
    DeviceArray(-2.7568, device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        if not isinstance(base_distribution, Distribution):
            given = type(base_distribution).__name__
            raise TypeError(f"Independent(): argument 'base_distribution' must be Distribution, not {given}")
        dims = _need_int("Independent", "reinterpreted_batch_ndims", reinterpreted_batch_ndims)
        batch = base_distribution.batch_shape
        if not 0 <= dims <= len(batch):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {dims} vs {len(batch)}"
            )
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims: int = dims
        kept = len(batch) - dims
        super().__init__(batch[:kept], batch[kept:] + base_distribution.event_shape, validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether there is rsample."""
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        """Whether there is enumerate_support."""
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @property
    def support(self) -> Constraint:
        """What a value is."""
        base = self.base_dist.support
        dims = self.reinterpreted_batch_ndims
        return constraints.independent(base, dims) if dims else base

    def expand(self, batch_shape: Shape) -> Independent:
        made = self._expanded(batch_shape)
        inner = self.event_shape[: self.reinterpreted_batch_ndims]
        made.base_dist = self.base_dist.expand((*_need_ints("expand", "batch_shape", batch_shape), *inner))
        return made

    @property
    def mean(self) -> DeviceArray:
        return self.base_dist.mean

    @property
    def mode(self) -> DeviceArray:
        return self.base_dist.mode

    @property
    def variance(self) -> DeviceArray:
        return self.base_dist.variance

    def sample(self, sample_shape: Shape = ()) -> DeviceArray:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> DeviceArray:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> DeviceArray:
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"
