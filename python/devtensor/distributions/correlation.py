"""Cholesky factors of correlation matrices: the distribution of Lewandowski, Kurowicka and Joe, and a transform."""

from __future__ import annotations

import math
from typing import ClassVar

from devtensor import _C
from devtensor._C import DeviceArray, _need_int
from devtensor._composed.elementwise.error_functions import mvlgamma
from devtensor._composed.shapes.arrange import pad
from devtensor._composed.shapes.diagonals import tril_indices
from devtensor._composed.shapes.places import index_copy
from devtensor._dtypes.info import finfo
from devtensor.autograd.grad_mode import no_grad
from devtensor.distributions import constraints
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.distribution import Distribution, Shape
from devtensor.distributions.gamma import Beta
from devtensor.distributions.transform import Shape as Sizes
from devtensor.distributions.transform import Transform


class LKJCholesky(Distribution):
    """Lower Cholesky factors of correlation matrices (dim, dim), whose density is det(matrix) ** (concentration - 1).

    A concentration of 1 is uniform over correlation matrices. Works on every device. Raises ValueError for dim below 2.

    >>> dt.distributions.LKJCholesky(2, 1.0).log_prob(dt.eye(2))
    DeviceArray(-0.6931, device='cpu', dtype=float32)
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {"concentration": constraints.positive}
    support: ClassVar[Constraint] = constraints.corr_cholesky
    _names: tuple[str, ...] = ("concentration",)

    dim: int
    concentration: DeviceArray

    def __init__(self, dim: int, concentration: DeviceArray | float = 1.0, validate_args: bool | None = None) -> None:
        self.dim = _need_int("LKJCholesky", "dim", dim)
        if self.dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        (self.concentration,) = self._broadcast(concentration=concentration)
        super().__init__(self.concentration.shape, (self.dim, self.dim), validate_args=validate_args)

    def sample(self, sample_shape: Shape = ()) -> DeviceArray:
        """By the onion method: each row is a point of a ball, whose distance from the centre is drawn first."""
        a = self.concentration.detach().unsqueeze(-1)
        with no_grad():
            rows = _C.arange(-1, self.dim - 1, dtype=a.dtype, device=a.device).clamp(min=0)
            part = Beta(rows + 0.5, a + 0.5 * (self.dim - 2) - 0.5 * rows, validate_args=False).sample(sample_shape)
            normal = _C.randn(self._extended_shape(sample_shape), dtype=a.dtype, device=a.device).tril(-1)
            tiny = finfo(a.dtype).tiny
            below = part.sqrt().unsqueeze(-1) * normal / normal.norm(dim=-1, keepdim=True).clamp(min=tiny)
            return below + (1 - below.square().sum(-1)).clamp(min=tiny).sqrt().diag_embed()

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        self = self._beside("log_prob", value, "concentration")
        a, below = self.concentration, self.dim - 1
        powers = 2 * (a - 1).unsqueeze(-1) + _C.arange(below - 1, -1, -1, dtype=a.dtype, device=a.device)
        density = (powers * value.diagonal(dim1=-1, dim2=-2)[..., 1:].log()).sum(-1)
        alpha = a + 0.5 * below
        constant = 0.5 * below * math.log(math.pi) + mvlgamma(alpha - 0.5, below) - alpha.lgamma() * below
        return density - constant


class CorrCholeskyTransform(Transform):
    """dim * (dim - 1) / 2 numbers, row by row, as the lower Cholesky factor of a correlation matrix (dim, dim).

    tanh of a number says which share of what is left of its row's length 1 its element takes.

    >>> dt.distributions.CorrCholeskyTransform()(dt.zeros(1)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    domain: Constraint = constraints.real_vector
    codomain: Constraint = constraints.corr_cholesky
    bijective = True

    def _call(self, x: DeviceArray) -> DeviceArray:
        most = 1 - finfo(x.dtype).eps
        dim = self.forward_shape(x.shape)[-1]
        flat = _C.zeros(*x.shape[:-1], dim * dim, dtype=x.dtype, device=x.device)
        share = index_copy(flat, -1, _places(dim, -1, x.device), x.tanh().clamp(-most, most)).unflatten(-1, (dim, dim))
        one = _C.eye(dim, dtype=x.dtype, device=x.device)
        return (share + one) * _before((1 - share.square()).sqrt().cumprod(-1))

    def _inverse(self, y: DeviceArray) -> DeviceArray:
        share = _below(y, -1) / _below(_before(_left(y)), -1).sqrt()
        return (share.log1p() - (-share).log1p()) / 2

    def log_abs_det_jacobian(self, x: DeviceArray, y: DeviceArray) -> DeviceArray:
        """Of x and the elements of y below the diagonal."""
        return 0.5 * _below(_left(y), -2).log().sum(-1) - 2 * (x + _C.softplus(-2 * x) - math.log(2.0)).sum(-1)

    def forward_shape(self, shape: Sizes) -> Sizes:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        dim = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if dim * (dim - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return _C.Size((*shape[:-1], dim, dim))

    def inverse_shape(self, shape: Sizes) -> Sizes:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return _C.Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


def _places(dim: int, offset: int, device: _C.device) -> DeviceArray:
    """Of the elements of a lower triangle in the flattened matrix."""
    rows, columns = tril_indices(dim, dim, offset, device=device).unbind(0)
    return rows * dim + columns


def _below(matrix: DeviceArray, offset: int) -> DeviceArray:
    """The elements of the lower triangle, row by row."""
    return matrix.flatten(-2).index_select(-1, _places(matrix.shape[-1], offset, matrix.device))


def _left(y: DeviceArray) -> DeviceArray:
    """What is left of a row's length after each element."""
    return 1 - y.square().cumsum(-1)


def _before(left: DeviceArray) -> DeviceArray:
    """The same before each element."""
    return pad(left[..., :-1], (1, 0), value=1.0)
