"""Weight and spectral normalisation as parametrizations: torch.nn.utils.parametrizations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from devtensor import _C
from devtensor._C import DeviceArray, _need_int, _need_number
from devtensor._composed.layers import normalize
from devtensor.autograd.grad_mode import no_grad
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

__all__ = ["spectral_norm", "weight_norm"]

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
