"""What distributions of a covariance matrix share: its three forms, of which one is given."""

from __future__ import annotations

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import need_array
from devtensor.distributions.distribution import Distribution
from devtensor.distributions.utils import lazy_property
from devtensor.linalg import cholesky, solve_triangular

_FORMS = ("covariance_matrix", "precision_matrix", "scale_tril")


def given_form(op: str, *forms: DeviceArray | None) -> tuple[str, DeviceArray]:
    """The one that is given, and its name."""
    given = [(name, matrix) for name, matrix in zip(_FORMS, forms, strict=True) if matrix is not None]
    if len(given) != 1:
        raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
    ((name, matrix),) = given
    need_array(op, name, matrix)
    return name, matrix


def need_matrix(name: str, matrix: DeviceArray) -> None:
    if matrix.ndim < 2:
        raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")


class OfCovariance(Distribution):
    """_factor is the lower Cholesky factor, of any batch that broadcasts to that of the distribution."""

    _factor: DeviceArray

    def _keep(self, name: str, matrix: DeviceArray, batch: tuple[int, ...]) -> None:
        """The form that is given, to be looked at before its factor is made."""
        self.__dict__[name] = matrix.expand(*batch, *matrix.shape[-2:])

    def _expand_forms(self, original: OfCovariance) -> None:
        for name in _FORMS:
            if name in original.__dict__:
                self.__dict__[name] = self._whole(original.__dict__[name])

    def _whole(self, matrix: DeviceArray) -> DeviceArray:
        n = self._event_shape[-1]
        return matrix.expand(*self._batch_shape, n, n)

    @lazy_property
    def scale_tril(self) -> DeviceArray:
        """The lower Cholesky factor of covariance_matrix."""
        return self._whole(self._factor)

    @lazy_property
    def covariance_matrix(self) -> DeviceArray:
        """The covariance of each pair of elements of a vector."""
        return self._whole(self._factor @ self._factor.mT)

    @lazy_property
    def precision_matrix(self) -> DeviceArray:
        """The inverse of covariance_matrix."""
        inverse = inverse_of(self._factor)
        return self._whole(inverse.mT @ inverse)


def log_diagonal(factor: DeviceArray) -> DeviceArray:
    """The logarithm of the determinant of a triangular matrix."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def inverse_of(factor: DeviceArray) -> DeviceArray:
    """The inverse of a lower triangular matrix."""
    n = factor.shape[-1]
    one = _C.eye(n, dtype=factor.dtype, device=factor.device)
    return solve_triangular(factor, one.expand(factor.shape), upper=False)


def factor_of(name: str, matrix: DeviceArray) -> DeviceArray:
    """The lower Cholesky factor of the covariance whose form of this name is given."""
    if name == "scale_tril":
        return matrix
    if name == "covariance_matrix":
        return cholesky(matrix)
    return inverse_of(cholesky(matrix.flip((-2, -1))).flip((-2, -1)).mT)
