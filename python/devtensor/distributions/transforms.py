"""Transforms of random numbers: functions whose inverse and whose change of density are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._dtypes.info import finfo
from devtensor.distributions import constraints
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.correlation import CorrCholeskyTransform
from devtensor.distributions.element_transforms import (
    AbsTransform,
    AffineTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
    clipped_sigmoid,
)
from devtensor.distributions.transform import Shape, Transform
from devtensor.distributions.utils import sum_rightmost
from devtensor.linalg import cholesky

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]


def __dir__() -> list[str]:
    return __all__


# ---------------------------------------------------------------- of rows and matrices


class SoftmaxTransform(Transform):
    """softmax(x) along the last dimension; log is a right inverse.

    >>> dt.distributions.SoftmaxTransform()(dt.zeros(2))
    DeviceArray([0.5000, 0.5000], device='cpu', dtype=float32)
    """

    domain: constraints.Constraint = constraints.real_vector
    codomain: constraints.Constraint = constraints.simplex

    def _call(self, x: DeviceArray) -> DeviceArray:
        return x.softmax(-1)

    def _inverse(self, y: DeviceArray) -> DeviceArray:
        return y.log()

    def forward_shape(self, shape: Shape) -> Shape:
        return _at_least(1, shape)

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """K numbers as K + 1 shares: each breaks a share off what is left of a stick.

    >>> dt.distributions.StickBreakingTransform()(dt.zeros(2))
    DeviceArray([0.3333, 0.3333, 0.3333], device='cpu', dtype=float32)
    """

    domain: constraints.Constraint = constraints.real_vector
    codomain: constraints.Constraint = constraints.simplex
    bijective = True

    def _offsets(self, x: DeviceArray) -> DeviceArray:
        return _C.arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x: DeviceArray) -> DeviceArray:
        z = clipped_sigmoid(x - self._offsets(x))
        one = _C.ones_like(x[..., :1])
        return _C.cat((z, one), -1) * _C.cat((one, (1 - z).cumprod(-1)), -1)

    def _inverse(self, y: DeviceArray) -> DeviceArray:
        shares = y[..., :-1]
        left = (1 - shares.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return shares.log() - left.log() + self._offsets(shares)

    def log_abs_det_jacobian(self, x: DeviceArray, y: DeviceArray) -> DeviceArray:
        x = x - self._offsets(x)
        return (-_C.softplus(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Shape) -> Shape:
        shape = _at_least(1, shape)
        return _C.Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Shape) -> Shape:
        shape = _at_least(1, shape)
        return _C.Size((*shape[:-1], shape[-1] - 1))


def _at_least(dims: int, shape: Shape) -> Shape:
    if len(shape) < dims:
        raise ValueError("Too few dimensions on input")
    return _C.Size(shape)


class LowerCholeskyTransform(Transform):
    """The lower triangle of matrices with exp of the diagonal.

    >>> dt.distributions.LowerCholeskyTransform()(dt.zeros(2, 2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    domain: constraints.Constraint = constraints.independent(constraints.real, 2)
    codomain: constraints.Constraint = constraints.lower_cholesky

    def _call(self, x: DeviceArray) -> DeviceArray:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: DeviceArray) -> DeviceArray:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """L @ L.mT of the lower triangular L that LowerCholeskyTransform makes.

    >>> dt.distributions.PositiveDefiniteTransform()(dt.zeros(2, 2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    domain: constraints.Constraint = constraints.independent(constraints.real, 2)
    codomain: constraints.Constraint = constraints.positive_definite

    def _call(self, x: DeviceArray) -> DeviceArray:
        lower = LowerCholeskyTransform()(x)
        return lower @ lower.mT

    def _inverse(self, y: DeviceArray) -> DeviceArray:
        return LowerCholeskyTransform().inv(cholesky(y))


class ReshapeTransform(Transform):
    """The last dimensions, which are in_shape, as out_shape.

    >>> dt.distributions.ReshapeTransform((4,), (2, 2))(dt.zeros(3, 4)).shape
    (3, 2, 2)
    """

    bijective = True

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0) -> None:
        self.in_shape: _C.Size = _C.Size(in_shape)
        self.out_shape: _C.Size = _C.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        self.domain: constraints.Constraint = constraints.independent(constraints.real, len(self.in_shape))
        self.codomain: constraints.Constraint = constraints.independent(constraints.real, len(self.out_shape))
        super().__init__(cache_size)

    def _call(self, x: DeviceArray) -> DeviceArray:
        return x.reshape(*x.shape[: x.ndim - len(self.in_shape)], *self.out_shape)

    def _inverse(self, y: DeviceArray) -> DeviceArray:
        return y.reshape(*y.shape[: y.ndim - len(self.out_shape)], *self.in_shape)

    def log_abs_det_jacobian(self, x: DeviceArray, y: DeviceArray) -> DeviceArray:
        return _C.zeros(x.shape[: x.ndim - len(self.in_shape)], dtype=x.dtype, device=x.device)

    def forward_shape(self, shape: Shape) -> Shape:
        return _reshaped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return _reshaped(shape, self.out_shape, self.in_shape)


def _reshaped(shape: Shape, old: Shape, new: Shape) -> Shape:
    cut = len(_at_least(len(old), shape)) - len(old)
    if tuple(shape[cut:]) != tuple(old):
        raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
    return _C.Size((*shape[:cut], *new))


# ---------------------------------------------------------------- of other transforms


class ComposeTransform(Transform):
    """parts, one after the other.

    >>> exp = dt.distributions.ExpTransform()
    >>> dt.distributions.ComposeTransform([exp, dt.distributions.AffineTransform(1.0, 2.0)])(dt.tensor(0.0))
    DeviceArray(3., device='cpu', dtype=float32)
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts: list[Transform] = [part.with_cache(cache_size) if cache_size else part for part in parts]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    @property
    def domain(self) -> Constraint:  # type: ignore[override]
        if not self.parts:
            return constraints.real
        dims = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            dims = max(dims + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return _with_dims(self.parts[0].domain, dims)

    @property
    def codomain(self) -> Constraint:  # type: ignore[override]
        if not self.parts:
            return constraints.real
        dims = self.parts[0].domain.event_dim
        for part in self.parts:
            dims = max(dims + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return _with_dims(self.parts[-1].codomain, dims)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        sign: Any = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self) -> Transform:
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    def __call__(self, x: DeviceArray) -> DeviceArray:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: DeviceArray, y: DeviceArray) -> DeviceArray:
        if not self.parts:
            return _C.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        dims, terms = self.domain.event_dim, []
        for part, before, after in zip(self.parts, values[:-1], values[1:], strict=True):
            terms.append(sum_rightmost(part.log_abs_det_jacobian(before, after), dims - part.domain.event_dim))
            dims += part.codomain.event_dim - part.domain.event_dim
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    def forward_shape(self, shape: Shape) -> Shape:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Shape) -> Shape:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return "ComposeTransform(\n    " + ",\n    ".join(repr(part) for part in self.parts) + "\n)"


def _with_dims(constraint: Constraint, dims: int) -> Constraint:
    more = dims - constraint.event_dim
    return constraints.independent(constraint, more) if more else constraint


identity_transform: ComposeTransform = ComposeTransform([])


class IndependentTransform(Transform):
    """base_transform for values whose last reinterpreted_batch_ndims dimensions belong together.

    >>> exp = dt.distributions.IndependentTransform(dt.distributions.ExpTransform(), 1)
    >>> exp.log_abs_det_jacobian(dt.ones(3), dt.ones(3))
    DeviceArray(3., device='cpu', dtype=float32)
    """

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform: Transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims: int = reinterpreted_batch_ndims
        self.domain: constraints.Constraint = constraints.independent(base_transform.domain, reinterpreted_batch_ndims)
        self.codomain: constraints.Constraint = constraints.independent(
            base_transform.codomain, reinterpreted_batch_ndims
        )
        self.bijective: bool = base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: DeviceArray) -> DeviceArray:
        _at_least(self.domain.event_dim, x.shape)
        return self.base_transform(x)

    def _inverse(self, y: DeviceArray) -> DeviceArray:
        _at_least(self.codomain.event_dim, y.shape)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: DeviceArray, y: DeviceArray) -> DeviceArray:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Shape) -> Shape:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class _OfSeveral(Transform):
    """A transform for each part of dimension dim."""

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        super().__init__(cache_size)
        self.transforms: list[Transform] = [t.with_cache(cache_size) if cache_size else t for t in tseq]
        self.dim: int = dim
        self.bijective: bool = all(t.bijective for t in self.transforms)

    def _parts(self, x: DeviceArray) -> list[DeviceArray]:
        raise NotImplementedError

    def _whole(self, parts: list[DeviceArray]) -> DeviceArray:
        raise NotImplementedError

    def _each(self, apply: Callable[..., DeviceArray], *arrays: DeviceArray) -> list[DeviceArray]:
        parts = [self._parts(array) for array in arrays]
        return [apply(t, *values) for t, *values in zip(self.transforms, *parts, strict=True)]

    def _call(self, x: DeviceArray) -> DeviceArray:
        return self._whole(self._each(lambda t, part: t(part), x))

    def _inverse(self, y: DeviceArray) -> DeviceArray:
        return self._whole(self._each(lambda t, part: t.inv(part), y))


class CatTransform(_OfSeveral):
    """tseq[0] of the first lengths[0] entries along dim, and so on.

    >>> both = dt.distributions.CatTransform([dt.distributions.ExpTransform(), dt.distributions.AbsTransform()])
    >>> both(dt.tensor([0.0, -2.0])).tolist()
    [1.0, 2.0]
    """

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths: list[int] = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})")
        self.domain: constraints.Constraint = constraints.cat([t.domain for t in self.transforms], dim, self.lengths)
        self.codomain: constraints.Constraint = constraints.cat(
            [t.codomain for t in self.transforms], dim, self.lengths
        )

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """How many entries dimension dim has."""
        return sum(self.lengths)

    def _parts(self, x: DeviceArray) -> list[DeviceArray]:
        if x.shape[self.dim] != self.length:
            raise AssertionError(f"x.size({self.dim}) = {x.shape[self.dim]} must equal length {self.length}")
        starts = [sum(self.lengths[:k]) for k in range(len(self.lengths))]
        return [x.narrow(self.dim, start, length) for start, length in zip(starts, self.lengths, strict=True)]

    def _whole(self, parts: list[DeviceArray]) -> DeviceArray:
        return _C.cat(parts, self.dim)

    def log_abs_det_jacobian(self, x: DeviceArray, y: DeviceArray) -> DeviceArray:
        def log_det(t: Transform, before: DeviceArray, after: DeviceArray) -> DeviceArray:
            return sum_rightmost(t.log_abs_det_jacobian(before, after), self.event_dim - t.event_dim)

        found = self._each(log_det, x, y)
        dim = (self.dim - x.ndim if self.dim >= 0 else self.dim) + self.event_dim
        if dim < 0:
            return _C.cat(found, dim)
        total = found[0]
        for one in found[1:]:
            total = total + one
        return total


class StackTransform(_OfSeveral):
    """tseq[k] of entry k along dim.

    >>> both = dt.distributions.StackTransform([dt.distributions.ExpTransform(), dt.distributions.AbsTransform()])
    >>> both(dt.tensor([0.0, -2.0])).tolist()
    [1.0, 2.0]
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)
        self.domain: constraints.Constraint = constraints.stack([t.domain for t in self.transforms], dim)
        self.codomain: constraints.Constraint = constraints.stack([t.codomain for t in self.transforms], dim)

    def _parts(self, x: DeviceArray) -> list[DeviceArray]:
        count = x.shape[self.dim]
        if count != len(self.transforms):
            raise AssertionError(f"x.size({self.dim}) = {count} must equal len(transforms) {len(self.transforms)}")
        return [x.select(self.dim, k) for k in range(count)]

    def _whole(self, parts: list[DeviceArray]) -> DeviceArray:
        return _C.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: DeviceArray, y: DeviceArray) -> DeviceArray:
        return self._whole(self._each(lambda t, before, after: t.log_abs_det_jacobian(before, after), x, y))
