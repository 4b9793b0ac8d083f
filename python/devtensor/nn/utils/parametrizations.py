"""Weight and spectral normalisation as parametrizations: torch.nn.utils.parametrizations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number
from devtensor._composed.layers.basic import normalize
from devtensor._dtypes.info import finfo
from devtensor.autograd.grad_mode import no_grad
from devtensor.linalg import matrix_exp, qr, solve
from devtensor.nn.module import Module
from devtensor.nn.utils.parametrize import register_parametrization
from devtensor.nn.utils.weights import (
    drawn_direction,
    is_transposed,
    iterate,
    length_beside,
    matrix_of,
    need_iterations,
    need_module,
    scaled,
)

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

M = TypeVar("M", bound=Module)


def __dir__() -> list[str]:
    return __all__


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim: int = -1 if dim is None else dim

    def forward(self, weight_g: DeviceArray, weight_v: DeviceArray) -> DeviceArray:
        return scaled(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        return length_beside(weight, self.dim), weight

    def _renamed(self, state: Mapping[str, Any], path: str) -> Mapping[str, Any]:
        """The keys of nn.utils.weight_norm, weight_g and weight_v, become those of here, original0 and original1."""
        place = path.removesuffix(".0")  # net.parametrizations.weight
        owner, _, name = place.rpartition("parametrizations.")
        g, v = f"{owner}{name}_g", f"{owner}{name}_v"
        if g not in state or v not in state:
            return state
        others = {key: value for key, value in state.items() if key not in (g, v)}
        return {**others, f"{place}.original0": state[g], f"{place}.original1": state[v]}


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Make a parameter of module g * v / norm(v), with original0 = g, its norms, and original1 = v, its direction.

    A norm is over all dimensions but dim, or, for None, over all. load_state_dict also takes the keys of
    nn.utils.weight_norm, weight_g and weight_v. Raises ValueError for an array that is not there.

    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    >>> list(layer.state_dict())
    ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    need_module("weight_norm", module)
    way = _WeightNorm(None if dim is None else _need_int("weight_norm", "dim", dim))
    register_parametrization(module, name, way, unsafe=True)
    return module


class _SpectralNorm(Module):
    _u: DeviceArray
    _v: DeviceArray

    def __init__(self, weight: DeviceArray, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{weight.ndim}, {weight.ndim - 1}] but got {dim})"
            )
        self.dim: int = dim % weight.ndim
        self.n_power_iterations: int = n_power_iterations
        self.eps: float = eps
        if weight.ndim > 1:
            with no_grad():
                matrix = matrix_of(weight.detach(), self.dim)
                rows, columns = matrix.shape
                self.register_buffer("_u", drawn_direction(weight, rows, eps))
                self.register_buffer("_v", drawn_direction(weight, columns, eps))
                iterate(matrix.t(), self._v, self._u, 15, eps)

    def forward(self, weight: DeviceArray) -> DeviceArray:
        if weight.ndim == 1:  # a vector: its norm
            return normalize(weight, dim=0, eps=self.eps)
        matrix = matrix_of(weight, self.dim)
        if self.training:
            iterate(matrix.detach().t(), self._v, self._u, self.n_power_iterations, self.eps)  # u first
        u, v = self._u.clone(), self._v.clone()  # the graph of another call may read these two
        return weight / _C.dot(u, _C.mv(matrix, v))

    def right_inverse(self, value: DeviceArray) -> DeviceArray:
        return value


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Divide a parameter of module by its largest singular value, found by power iterations.

    In training each use makes n_power_iterations. dim is that of the outputs: 1 in a transposed convolution, else 0.
    Raises ValueError for an array that is not there and for n_power_iterations below 1, IndexError for a dim out of
    range.

    >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2))
    >>> list(layer.state_dict())[1:]
    ['parametrizations.weight.original', 'parametrizations.weight.0._u', 'parametrizations.weight.0._v']
    """
    op = "spectral_norm"
    times, eps = need_iterations(op, n_power_iterations), _need_number(op, "eps", eps)
    need_module(op, module)
    weight = getattr(module, name, None) if isinstance(name, str) else None
    if not isinstance(weight, DeviceArray):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    at = int(is_transposed(module)) if dim is None else _need_int(op, "dim", dim)
    register_parametrization(module, name, _SpectralNorm(weight, times, at, eps))
    return module


# ---------------------------------------------------------------- orthogonal matrices

_MAPS = ("matrix_exp", "cayley", "householder")


def _made_orthogonal(matrix: DeviceArray) -> DeviceArray:
    """The Q of a QR decomposition whose R has a positive diagonal."""
    found = qr(matrix)
    return found.Q * found.R.diagonal(0, -2, -1).sign().unsqueeze(-2)


def _is_orthogonal(matrix: DeviceArray) -> bool:
    """Whether the columns are orthonormal within rounding; waits for the device."""
    size = matrix.shape[-1]
    far = (matrix.mT @ matrix - _C.eye(size, dtype=matrix.dtype, device=matrix.device)).abs()
    return bool((far <= 10 * matrix.shape[-2] * finfo(matrix.dtype).eps).all())


def _product_of_reflections(vectors: DeviceArray) -> DeviceArray:
    """The first columns of H1 H2 ... of which H reflects at a column of vectors, below a 1 on the diagonal."""
    rows, columns = vectors.shape[-2:]
    below = vectors.tril(-1)
    product = _C.eye(rows, columns, dtype=vectors.dtype, device=vectors.device).expand(vectors.shape)
    unit = _C.eye(rows, columns, dtype=vectors.dtype, device=vectors.device)
    for k in reversed(range(columns)):
        v = (below[..., k] + unit[:, k]).unsqueeze(-1)
        factor = 2 / v.square().sum(-2, keepdim=True)
        product = product - factor * v @ (v.mT @ product)
    return product


def _reflections_of(matrix: DeviceArray) -> DeviceArray:
    """Vectors whose reflections make the Q of matrix, with the signs of its columns on the diagonal."""
    rest, columns = matrix.clone(), []
    rows = matrix.shape[-2]
    for k in range(matrix.shape[-1]):
        top, tail = rest[..., k, k], rest[..., k + 1 :, k]
        straight = (tail == 0).all(-1)
        length = (top.square() + tail.square().sum(-1)).sqrt()
        beta = _C.where(top < 0, length, -length)
        v = tail / _C.where(straight, 1.0, top - beta).unsqueeze(-1)
        tau = _C.where(straight, 0.0, (beta - top) / _C.where(straight, 1.0, beta))
        whole = _C.cat([_C.ones_like(v[..., :0].sum(-1, keepdim=True)), v], -1).unsqueeze(-1)
        part = rest[..., k:, k:]
        part = part - tau.reshape(*tau.shape, 1, 1) * whole @ (whole.mT @ part)
        rest = _C.cat([rest[..., :k, :], _C.cat([rest[..., k:, :k], part], -1)], -2)
        sign = _C.where(straight, -top.sign(), beta.sign())
        above = _C.zeros(*matrix.shape[:-2], k, dtype=matrix.dtype, device=matrix.device)
        columns.append(_C.cat([above, sign.unsqueeze(-1), v], -1)[..., :rows])
    return _C.stack(columns, -1)


class _Orthogonal(Module):
    base: DeviceArray | None

    def __init__(self, weight: DeviceArray, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        self.shape: tuple[int, ...] = weight.shape
        self.orthogonal_map: str = orthogonal_map
        self.use_trivialization: bool = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: DeviceArray) -> DeviceArray:
        wide = X.shape[-2] < X.shape[-1]
        x = X.mT if wide else X
        rows, columns = x.shape[-2:]
        if self.orthogonal_map == "householder":
            signs = x.detach().diagonal(0, -2, -1).trunc()
            result = _product_of_reflections(x) * signs.unsqueeze(-2)
        else:
            x = x.tril()
            if rows != columns:
                nothing = _C.zeros(*x.shape[:-1], rows - columns, dtype=x.dtype, device=x.device)
                x = _C.cat([x, nothing], -1)
            turned = x - x.mT
            if self.orthogonal_map == "matrix_exp":
                result = matrix_exp(turned)
            else:
                unit = _C.eye(rows, dtype=x.dtype, device=x.device)
                result = solve(unit - 0.5 * turned, unit + 0.5 * turned)
            result = result[..., :columns]
        if self.use_trivialization and self.base is not None:
            result = self.base @ result
        return result.mT if wide else result

    def right_inverse(self, Q: DeviceArray) -> DeviceArray:
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        with no_grad():
            wide = Q.shape[-2] < Q.shape[-1]
            q = Q.detach().mT if wide else Q.detach()
            rows, columns = q.shape[-2:]
            if not self.use_trivialization:
                if self.orthogonal_map != "householder":
                    raise NotImplementedError(
                        "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                        "use_trivialization=False."
                    )
                found = _reflections_of(q)
                return found.mT if wide else found
            if rows != columns:
                drawn = _C.randn(*q.shape[:-1], rows - columns, dtype=q.dtype, device=q.device)
                q = _made_orthogonal(_C.cat([q, drawn], -1))
            else:
                q = q.clone() if _is_orthogonal(q) else _made_orthogonal(q)
            self.base = q
            return -_C.eye(*Q.shape[-2:], dtype=Q.dtype, device=Q.device).expand(Q.shape).clone()


def orthogonal(
    module: M, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> M:
    """Make a parameter of module, a matrix or a batch of them, orthogonal: orthonormal columns, or rows if it is wide.

    orthogonal_map: "matrix_exp" of a skew-symmetric matrix (of square ones by default), its "cayley" map
    (I + A/2) / (I - A/2), or "householder", a product of reflections. use_trivialization multiplies by a constant
    matrix, so that the value at the start is the parameter if that is orthogonal, else the Q of its QR decomposition;
    that and the first two maps need LAPACK, which is on the cpu alone. Raises ValueError for an array that is not there
    or no matrix, and for another map.

    >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(3, 2))
    >>> dt.allclose(layer.weight @ layer.weight.T, dt.eye(2), atol=1e-6)
    True
    """
    op = "orthogonal"
    need_module(op, module)
    weight = getattr(module, name, None) if isinstance(name, str) else None
    if not isinstance(weight, DeviceArray):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {_C._shown(orthogonal_map)}'
        )
    way = _Orthogonal(weight, orthogonal_map, _need_bool(op, "use_trivialization", use_trivialization))
    register_parametrization(module, name, way, unsafe=True)
    return module
