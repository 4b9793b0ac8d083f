"""Weights that are recomputed before each call from what is learned: weight and spectral normalisation, by hooks."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from devtensor import _C
from devtensor._C import DeviceArray, _need_int, _need_number, _need_str, _Parameter
from devtensor._composed.arguments import need_array
from devtensor._composed.layers.basic import normalize
from devtensor._composed.reductions.moments import norm
from devtensor.autograd._transforms import own_writes
from devtensor.autograd.grad_mode import no_grad
from devtensor.nn.module import Module

M = TypeVar("M", bound=Module)
_TRANSPOSED = ("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")


def length_beside(weight: DeviceArray, dim: int, pow: float = 2) -> DeviceArray:
    """The norms of weight over all dimensions but dim, which stay as ones; of all of it, a number, for dim -1."""
    if dim == -1:
        return norm(weight, pow)
    rest = [d for d in range(weight.ndim) if d != dim % max(weight.ndim, 1)]
    return norm(weight, pow, rest, keepdim=True) if rest else weight.abs()


def scaled(v: DeviceArray, g: DeviceArray, dim: int) -> DeviceArray:
    """g times the direction of v."""
    return v * (g / length_beside(v, dim))


def matrix_of(weight: DeviceArray, dim: int) -> DeviceArray:
    """weight as a matrix whose rows are the slices along dim."""
    return weight.movedim(dim, 0).reshape(weight.shape[dim], -1) if weight.ndim > 1 else weight.reshape(-1, 1)


def is_transposed(module: Module) -> bool:
    """Whether the outputs of its weight are the second dimension, as in a transposed convolution."""
    return any(kind.__name__ in _TRANSPOSED for kind in type(module).__mro__)


def iterate(matrix: DeviceArray, u: DeviceArray, v: DeviceArray, times: int, eps: float) -> None:
    """Power iterations towards the first singular vectors of matrix, written into v and u."""
    with no_grad(), own_writes():
        for _ in range(times):
            v.copy_(normalize(_C.mv(matrix.t(), u), dim=0, eps=eps))
            u.copy_(normalize(_C.mv(matrix, v), dim=0, eps=eps))


def drawn_direction(weight: DeviceArray, size: int, eps: float) -> DeviceArray:
    """A random vector of norm 1, of the dtype and on the device of weight."""
    return normalize(_C.randn(size, dtype=weight.dtype, device=weight.device), dim=0, eps=eps)


def need_module(op: str, module: Module) -> None:
    if not isinstance(module, Module):
        raise TypeError(f"{op}(): argument 'module' must be Module, not {type(module).__name__}")


def _parameter(op: str, module: Module, name: str) -> _Parameter:
    need_module(op, module)
    _need_str(op, "name", name)
    if name not in module._parameter_names:
        raise KeyError(f"{op}(): {type(module).__name__} has no parameter '{name}'")
    weight = module.__dict__[name]
    if weight is None:
        raise ValueError(f"{op}() cannot be applied as parameter '{name}' is None")
    parameter: _Parameter = weight
    return parameter


class _Recomputed:
    """The hook before forward that writes a weight from what is learned."""

    def __init__(self, name: str) -> None:
        self.name = name

    def compute(self, module: Module, training: bool) -> DeviceArray:
        raise NotImplementedError

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute(module, module.training))


def _hooks_of(module: Module, kind: type[_Recomputed], name: str) -> list[int]:
    hooks = module._own_hooks().before
    return [key for key, hook in hooks.items() if isinstance(hook, kind) and hook.name == name]


def _recompute(op: str, module: Module, hook: _Recomputed) -> None:
    if _hooks_of(module, type(hook), hook.name):
        raise RuntimeError(f"Cannot register two {op} hooks on the same parameter {hook.name}")
    module.register_forward_pre_hook(hook)


def _removed(op: str, module: Module, kind: type[_Recomputed], name: str, parts: tuple[str, ...]) -> None:
    """The weight that the hook gives becomes a parameter again."""
    need_module(op, module)
    _need_str(op, "name", name)
    found = _hooks_of(module, kind, name)
    if not found:
        raise ValueError(f"{op.removeprefix('remove_')} of '{name}' not found in {module}")
    hook = module._own_hooks().before.pop(found[0])
    with no_grad():
        weight = hook.compute(module, False)
    for part in ("", *parts):
        delattr(module, name + part)
    module.register_parameter(name, _Parameter(weight.detach()))


class WeightNorm(_Recomputed):
    """weight = g * v / norm(v): the hook of weight_norm."""

    def __init__(self, name: str, dim: int) -> None:
        super().__init__(name)
        self.dim = dim

    def compute(self, module: Module, training: bool) -> DeviceArray:
        return scaled(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Replace a parameter of module by name_g, its norms, and name_v, its direction: g * v / norm(v) before each call.

    A norm is over all dimensions but dim, or, for None, over all. Raises KeyError for a parameter that is not there,
    RuntimeError where it is normalised already.

    >>> layer = nn.utils.weight_norm(nn.Linear(3, 2))
    >>> [name for name, _ in layer.named_parameters()], layer.weight_g.shape
    (['bias', 'weight_g', 'weight_v'], (2, 1))
    """
    op = "weight_norm"
    dim = -1 if dim is None else _need_int(op, "dim", dim)
    hook = WeightNorm(name, dim)
    need_module(op, module)
    if _hooks_of(module, WeightNorm, name):
        _recompute(op, module, hook)
    weight = _parameter(op, module, name)
    if dim != -1 and not -weight.ndim <= dim < weight.ndim:
        raise IndexError(f"{op}(): dim {dim} is out of range for a parameter of {weight.ndim} dimensions")
    with no_grad():
        lengths = length_beside(weight.detach(), dim)
    delattr(module, name)
    module.register_parameter(name + "_g", _Parameter(lengths))
    module.register_parameter(name + "_v", _Parameter(weight.detach()))
    setattr(module, name, hook.compute(module, module.training))
    _recompute(op, module, hook)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Undo weight_norm: the parameter keeps its current value. Raises ValueError if there is no weight_norm.

    >>> layer = nn.utils.remove_weight_norm(nn.utils.weight_norm(nn.Linear(3, 2)))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'weight']
    """
    _removed("remove_weight_norm", module, WeightNorm, name, ("_g", "_v"))
    return module


class SpectralNorm(_Recomputed):
    """weight / its largest singular value, by power iterations in training: the hook of spectral_norm."""

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__(name)
        self.n_power_iterations = n_power_iterations
        self.dim = dim
        self.eps = eps

    def compute(self, module: Module, training: bool) -> DeviceArray:
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = matrix_of(weight, self.dim)
        if training:
            iterate(matrix, u, v, self.n_power_iterations, self.eps)
            u, v = u.clone(), v.clone()  # the graph of another call may read these two
        result: DeviceArray = weight / _C.dot(u, _C.mv(matrix, v))
        return result


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Divide a parameter of module by its largest singular value before each call, found by power iterations.

    What is learned becomes name_orig; name_u and name_v are buffers. In training each call makes n_power_iterations.
    dim is that of the outputs: 1 in a transposed convolution, else 0. Raises KeyError for a parameter that is not
    there, ValueError for n_power_iterations below 1, RuntimeError where it is normalised already.

    >>> layer = nn.utils.spectral_norm(nn.Linear(3, 2))
    >>> list(layer.state_dict())
    ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    op = "spectral_norm"
    times, eps = need_iterations(op, n_power_iterations), _need_number(op, "eps", eps)
    need_module(op, module)
    at = int(is_transposed(module)) if dim is None else _need_int(op, "dim", dim)
    hook = SpectralNorm(name, times, at, eps)
    if _hooks_of(module, SpectralNorm, name):
        _recompute(op, module, hook)
    weight = _parameter(op, module, name)
    with no_grad():
        rows, columns = matrix_of(weight, at).shape
        u, v = drawn_direction(weight, rows, eps), drawn_direction(weight, columns, eps)
    delattr(module, name)
    module.register_parameter(name + "_orig", weight)
    setattr(module, name, weight.detach())
    module.register_buffer(name + "_u", u)
    module.register_buffer(name + "_v", v)
    _recompute(op, module, hook)
    return module


def need_iterations(op: str, n_power_iterations: int) -> int:
    times = _need_int(op, "n_power_iterations", n_power_iterations)
    if times <= 0:
        raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={times}")
    return times


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Undo spectral_norm: the parameter keeps its current value. Raises ValueError if there is no spectral_norm.

    >>> layer = nn.utils.remove_spectral_norm(nn.utils.spectral_norm(nn.Linear(3, 2)))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'weight']
    """
    _removed("remove_spectral_norm", module, SpectralNorm, name, ("_u", "_v", "_orig"))
    return module


# ---------------------------------------------------------------- one layer of two


def fuse_conv_bn_weights(
    conv_w: _Parameter,
    conv_b: _Parameter | None,
    bn_rm: DeviceArray,
    bn_rv: DeviceArray,
    bn_eps: float,
    bn_w: DeviceArray | None,
    bn_b: DeviceArray | None,
    transpose: bool = False,
) -> tuple[_Parameter, _Parameter]:
    """weight and bias of the convolution that does what a convolution and then a batch norm do in evaluation.

    >>> w, b = nn.utils.fuse_conv_bn_weights(dt.ones(1, 1, 1), None, dt.ones(1), dt.ones(1), 0.0, None, None)
    >>> w.tolist(), b.tolist()
    ([[[1.0]]], [-1.0])
    """
    op = "fuse_conv_bn_weights"
    for name, array in (("conv_w", conv_w), ("bn_rm", bn_rm), ("bn_rv", bn_rv)):
        need_array(op, name, array)
    bn_eps = _need_number(op, "bn_eps", bn_eps)
    transpose = _C._need_bool(op, "transpose", transpose)
    bias = _C.zeros_like(bn_rm) if conv_b is None else conv_b
    factor = (bn_rv + bn_eps).rsqrt()
    factor = factor if bn_w is None else bn_w * factor
    shape = [1, -1] if transpose else [-1, 1]
    weight = conv_w * factor.reshape(shape + [1] * (conv_w.ndim - 2))
    shift = (bias - bn_rm) * factor
    shift = shift if bn_b is None else shift + bn_b
    learns = conv_w.requires_grad, bias.requires_grad
    return _Parameter(weight.detach(), learns[0]), _Parameter(shift.detach(), learns[1])


def _fused(op: str, layer: Any, bn: Any, transpose: bool) -> Any:
    for name, module in (("conv" if "conv" in op else "linear", layer), ("bn", bn)):
        if not isinstance(module, Module):
            raise TypeError(f"{op}(): argument '{name}' must be Module, not {type(module).__name__}")
    if layer.training or bn.training:
        raise RuntimeError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise RuntimeError("bn.running_mean and bn.running_var must not be None")
    fused = copy.deepcopy(layer)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_conv_bn_eval(conv: M, bn: Module, transpose: bool = False) -> M:
    """A convolution that does what conv and then bn do, both in evaluation. Raises RuntimeError for one in training.

    >>> fused = nn.utils.fuse_conv_bn_eval(nn.Conv1d(2, 3, 1).eval(), nn.BatchNorm1d(3).eval())
    >>> fused(dt.ones(1, 2, 4)).shape
    (1, 3, 4)
    """
    transpose = _C._need_bool("fuse_conv_bn_eval", "transpose", transpose)
    result: M = _fused("fuse_conv_bn_eval", conv, bn, transpose)
    return result


def fuse_linear_bn_weights(
    linear_w: _Parameter,
    linear_b: _Parameter | None,
    bn_rm: DeviceArray,
    bn_rv: DeviceArray,
    bn_eps: float,
    bn_w: DeviceArray | None,
    bn_b: DeviceArray | None,
) -> tuple[_Parameter, _Parameter]:
    """weight and bias of the linear layer that does what a linear layer and then a batch norm do in evaluation.

    >>> w, b = nn.utils.fuse_linear_bn_weights(dt.ones(1, 1), None, dt.ones(1), dt.ones(1), 0.0, None, None)
    >>> w.tolist(), b.tolist()
    ([[1.0]], [-1.0])
    """
    for name, array in (("linear_w", linear_w), ("bn_rm", bn_rm), ("bn_rv", bn_rv)):
        need_array("fuse_linear_bn_weights", name, array)
    bn_eps = _need_number("fuse_linear_bn_weights", "bn_eps", bn_eps)
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_linear_bn_eval(linear: M, bn: Module) -> M:
    """A linear layer that does what linear and then bn do, both in evaluation. Raises RuntimeError for one in training.

    >>> nn.utils.fuse_linear_bn_eval(nn.Linear(2, 3).eval(), nn.BatchNorm1d(3).eval())(dt.ones(1, 2)).shape
    (1, 3)
    """
    result: M = _fused("fuse_linear_bn_eval", linear, bn, False)
    return result
