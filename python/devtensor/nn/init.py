"""Filling of parameters with numbers: torch.nn.init. Each function writes into its array and returns it.

The random ones take a generator and give the same numbers on every device.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from devtensor import _C
from devtensor._C import DeviceArray, _need_generator, _need_int, _need_number, float32, float64
from devtensor._composed.arguments import need_array
from devtensor._dtypes.info import finfo
from devtensor.autograd.grad_mode import no_grad

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]


def __dir__() -> list[str]:
    return __all__


Nonlinearity = Literal["linear", "conv1d", "conv2d", "conv3d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"]


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which an activation makes values smaller, to be undone by larger weights. Raises ValueError.

    >>> nn.init.calculate_gain("relu")
    1.4142135623730951
    """
    slope = None if param is None else _need_number("calculate_gain", "param", param)
    return _gain("calculate_gain", nonlinearity, slope)


def _gain(op: str, nonlinearity: str, param: float | None) -> float:
    if not isinstance(nonlinearity, str):
        raise TypeError(f"{op}(): argument 'nonlinearity' must be str, not {type(nonlinearity).__name__}")
    if nonlinearity in ("linear", "conv1d", "conv2d", "conv3d", "sigmoid"):
        return 1.0
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else float(param)
        return math.sqrt(2.0 / (1 + slope**2))
    gains = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
    if nonlinearity not in gains:
        raise ValueError(f"{op}(): Unsupported nonlinearity {_C._shown(nonlinearity)}")
    return gains[nonlinearity]


def _calculate_fan_in_and_fan_out(tensor: DeviceArray) -> tuple[int, int]:
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _fan(tensor: DeviceArray, mode: str) -> int:
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def _kaiming(
    op: str, tensor: DeviceArray, a: float, mode: str, nonlinearity: str, generator: _C.Generator | None
) -> float:
    """gain / sqrt(fan): the standard deviation; 0 where there is no element."""
    need_array(op, "tensor", tensor)
    _need_generator(op, "generator", generator)
    gain = _gain(op, nonlinearity, _need_number(op, "a", a))
    if not isinstance(mode, str) or mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"{op}(): mode {_C._shown(mode)} not supported, please use one of ['fan_in', 'fan_out']")
    return 0.0 if 0 in tensor.shape else gain / math.sqrt(_fan(tensor, mode.lower()))


def _options(tensor: DeviceArray, generator: Any) -> dict[str, Any]:
    wide = float64 if tensor.dtype is float64 else float32
    return {"dtype": wide, "device": tensor.device, "generator": generator}


@no_grad()
def constant_(tensor: DeviceArray, val: float) -> DeviceArray:
    """Every element is val.

    >>> nn.init.constant_(dt.empty(2), 0.5)
    DeviceArray([0.5000, 0.5000], device='cpu', dtype=float32)
    """
    need_array("constant_", "tensor", tensor)
    return tensor.fill_(_need_number("constant_", "val", val))


@no_grad()
def zeros_(tensor: DeviceArray) -> DeviceArray:
    """Every element is 0.

    >>> nn.init.zeros_(dt.empty(2))
    DeviceArray([0., 0.], device='cpu', dtype=float32)
    """
    need_array("zeros_", "tensor", tensor)
    return tensor.zero_()


@no_grad()
def ones_(tensor: DeviceArray) -> DeviceArray:
    """Every element is 1.

    >>> nn.init.ones_(dt.empty(2))
    DeviceArray([1., 1.], device='cpu', dtype=float32)
    """
    need_array("ones_", "tensor", tensor)
    return tensor.fill_(1)


@no_grad()
def eye_(tensor: DeviceArray) -> DeviceArray:
    """A matrix with ones on its diagonal, else 0. Raises ValueError for another rank.

    >>> nn.init.eye_(dt.empty(2, 2))
    DeviceArray([[1., 0.],
                 [0., 1.]], device='cpu', dtype=float32)
    """
    need_array("eye_", "tensor", tensor)
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return tensor.copy_(_C.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


@no_grad()
def dirac_(tensor: DeviceArray, groups: int = 1) -> DeviceArray:
    """A weight by which a convolution gives its channels back, as many as there are; groups do so each for itself.

    Raises ValueError for another rank than 3, 4 or 5 and for channels that groups do not divide.

    >>> nn.init.dirac_(dt.empty(2, 2, 1)).squeeze(2)
    DeviceArray([[1., 0.],
                 [0., 1.]], device='cpu', dtype=float32)
    """
    need_array("dirac_", "tensor", tensor)
    groups = _need_int("dirac_", "groups", groups)
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if groups < 1 or tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    tensor.zero_()
    if 0 in tensor.shape:
        return tensor
    each = tensor.shape[0] // groups
    middle = tuple(size // 2 for size in tensor.shape[2:])
    identity = _C.eye(each, tensor.shape[1], dtype=tensor.dtype, device=tensor.device)
    for g in range(groups):
        tensor[(slice(g * each, (g + 1) * each), slice(None), *middle)] = identity
    return tensor


def _below(bound: float, dtype: _C.dtype) -> float:
    """The largest number of a float dtype that is less than bound."""
    limits = finfo(dtype)
    if not -limits.max < bound <= limits.max:
        return limits.max if bound > 0 else -math.inf
    part, power = math.frexp(bound)
    step = limits.eps * max(2.0 ** (power - 1) if bound else 0.0, limits.tiny)  # between the numbers at bound
    if part == 0.5 and step > limits.eps * limits.tiny:  # a power of two: those below are twice as dense
        step /= 2
    return (math.ceil(bound / step) - 1) * step


@no_grad()
def uniform_(tensor: DeviceArray, a: float = 0.0, b: float = 1.0, generator: _C.Generator | None = None) -> DeviceArray:
    """Uniform from a up to b, which no number reaches. Raises DTypeMismatchError for integers, RuntimeError for a above
    b.

    >>> bool((nn.init.uniform_(dt.empty(100), -1.0, 1.0).abs() <= 1).all())
    True
    """
    need_array("uniform_", "tensor", tensor)
    _C._check("uniform_", ("tensor",), (tensor,))
    a, b = _need_number("uniform_", "a", a), _need_number("uniform_", "b", b)
    _need_generator("uniform_", "generator", generator)
    if not a <= b:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={a} > to={b}")
    drawn = _C.rand(tensor.shape, **_options(tensor, generator)) * (b - a) + a
    return tensor.copy_(drawn.clamp_(max=max(_below(b, tensor.dtype), a)))  # rounding would reach b


@no_grad()
def normal_(
    tensor: DeviceArray, mean: float = 0.0, std: float = 1.0, generator: _C.Generator | None = None
) -> DeviceArray:
    """Normal with a mean and a standard deviation. Raises DTypeMismatchError for integers, RuntimeError for std < 0.

    >>> nn.init.normal_(dt.empty(1000), std=0.02).std().item() < 0.03
    True
    """
    need_array("normal_", "tensor", tensor)
    _C._check("normal_", ("tensor",), (tensor,))
    mean, std = _need_number("normal_", "mean", mean), _need_number("normal_", "std", std)
    _need_generator("normal_", "generator", generator)
    if not std >= 0:
        raise RuntimeError(f"normal_ expects std >= 0.0, but found std {std}")
    return tensor.copy_(_C.randn(tensor.shape, **_options(tensor, generator)) * std + mean)


def xavier_uniform_(tensor: DeviceArray, gain: float = 1.0, generator: _C.Generator | None = None) -> DeviceArray:
    """Uniform in [-a, a), a = gain * sqrt(6 / (fan in + fan out)). Raises ValueError for fewer than 2 dimensions.

    >>> bool((nn.init.xavier_uniform_(dt.empty(3, 3)).abs() <= 1).all())
    True
    """
    need_array("xavier_uniform_", "tensor", tensor)
    gain = _need_number("xavier_uniform_", "gain", gain)
    _need_generator("xavier_uniform_", "generator", generator)
    fans = sum(_calculate_fan_in_and_fan_out(tensor))
    if 0 in tensor.shape:
        return tensor
    bound = gain * math.sqrt(6.0 / fans)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: DeviceArray, gain: float = 1.0, generator: _C.Generator | None = None) -> DeviceArray:
    """Normal, std = gain * sqrt(2 / (fan in + fan out)). Raises ValueError for fewer than 2 dimensions.

    >>> nn.init.xavier_normal_(dt.empty(3, 5)).shape
    (3, 5)
    """
    need_array("xavier_normal_", "tensor", tensor)
    gain = _need_number("xavier_normal_", "gain", gain)
    _need_generator("xavier_normal_", "generator", generator)
    fans = sum(_calculate_fan_in_and_fan_out(tensor))
    if 0 in tensor.shape:
        return tensor
    std = gain * math.sqrt(2.0 / fans)
    return normal_(tensor, 0.0, std, generator)


def kaiming_uniform_(
    tensor: DeviceArray,
    a: float = 0,
    mode: Literal["fan_in", "fan_out"] = "fan_in",
    nonlinearity: Nonlinearity = "leaky_relu",
    generator: _C.Generator | None = None,
) -> DeviceArray:
    """Uniform in [-b, b), b = gain * sqrt(3 / fan). Raises ValueError for fewer than 2 dimensions.

    >>> bound = 3**0.5 / 100**0.5
    >>> bool((nn.init.kaiming_uniform_(dt.empty(8, 100), nonlinearity="linear").abs() <= bound).all())
    True
    """
    std = _kaiming("kaiming_uniform_", tensor, a, mode, nonlinearity, generator)
    if 0 in tensor.shape:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: DeviceArray,
    a: float = 0,
    mode: Literal["fan_in", "fan_out"] = "fan_in",
    nonlinearity: Nonlinearity = "leaky_relu",
    generator: _C.Generator | None = None,
) -> DeviceArray:
    """Normal, std = gain / sqrt(fan). Raises ValueError for fewer than 2 dimensions.

    >>> nn.init.kaiming_normal_(dt.empty(64, 3, 7, 7), mode="fan_out").shape
    (64, 3, 7, 7)
    """
    std = _kaiming("kaiming_normal_", tensor, a, mode, nonlinearity, generator)
    if 0 in tensor.shape:
        return tensor
    return normal_(tensor, 0.0, std, generator)


@no_grad()
def trunc_normal_(
    tensor: DeviceArray,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: _C.Generator | None = None,
) -> DeviceArray:
    """Drawn from the normal distribution of mean and std between a and b: uniform numbers through its inverse.

    Raises RuntimeError for std <= 0.

    >>> nn.init.trunc_normal_(dt.empty(1000), std=0.5, a=-1.0).amin().item() >= -1.0
    True
    """
    need_array("trunc_normal_", "tensor", tensor)
    _C._check("trunc_normal_", ("tensor",), (tensor,))
    mean, std = _need_number("trunc_normal_", "mean", mean), _need_number("trunc_normal_", "std", std)
    a, b = _need_number("trunc_normal_", "a", a), _need_number("trunc_normal_", "b", b)
    _need_generator("trunc_normal_", "generator", generator)
    if not std > 0:
        raise RuntimeError(f"trunc_normal_ expects std > 0.0, but found std {std}")
    low, high = (math.erf((limit - mean) / (std * math.sqrt(2.0))) for limit in (a, b))
    dtype = float64 if tensor.dtype is float64 else float32
    uniform = _C.rand(tensor.shape, dtype=dtype, device=tensor.device, generator=generator)
    drawn = (uniform * (high - low) + low).clamp(-1.0 + 1e-7, 1.0 - 1e-7).erfinv() * (std * math.sqrt(2.0)) + mean
    return tensor.copy_(drawn.clamp(a, b).to(tensor.dtype))


@no_grad()
def sparse_(
    tensor: DeviceArray, sparsity: float, std: float = 0.01, generator: _C.Generator | None = None
) -> DeviceArray:
    """Normal numbers, of which a part, sparsity, of each column is 0 (Martens 2010): ceil(sparsity * rows) of them.

    Raises ValueError for other than 2 dimensions.

    >>> w = nn.init.sparse_(dt.empty(10, 3), sparsity=0.3)
    >>> (w == 0).sum(0).tolist()
    [3, 3, 3]
    """
    op = "sparse_"
    need_array(op, "tensor", tensor)
    _C._check(op, ("tensor",), (tensor,))
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    zeros = math.ceil(_need_number(op, "sparsity", sparsity) * tensor.shape[0])
    _need_number(op, "std", std)
    _need_generator(op, "generator", generator)
    normal_(tensor, 0, std, generator)
    order = _C.rand(*tensor.shape, device=tensor.device, generator=generator).argsort(0).argsort(0)
    return tensor.masked_fill_(order < zeros, 0)


@no_grad()
def orthogonal_(tensor: DeviceArray, gain: float = 1, generator: _C.Generator | None = None) -> DeviceArray:
    """Orthonormal rows, or columns where there are more rows, times gain; dimensions behind the second count as one.

    The Q of normal numbers (Saxe 2013), by LAPACK on the cpu: fill a model before it goes to a CUDA device. Raises
    ValueError for fewer than 2 dimensions, NotImplementedError on a CUDA device.

    >>> w = nn.init.orthogonal_(dt.empty(2, 3))
    >>> dt.allclose(w @ w.t(), dt.eye(2), atol=1e-6)
    True
    """
    op = "orthogonal_"
    need_array(op, "tensor", tensor)
    _C._check(op, ("tensor",), (tensor,))
    gain = _need_number(op, "gain", gain)
    _need_generator(op, "generator", generator)
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.is_cuda and not _C._as_torch():
        text = f"{op}(): LAPACK computes it on the cpu alone: fill the array there, and move it then"
        raise _C._explained(op, ("tensor",), (tensor,), "not-implemented", NotImplementedError(text), 0)
    if tensor.numel() == 0:
        return tensor
    from devtensor import linalg

    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    dtype = float64 if tensor.dtype is float64 else float32
    drawn = _C.randn(rows, columns, dtype=dtype, device=tensor.device, generator=generator)
    Q, R = linalg.qr(drawn.t() if rows < columns else drawn)
    Q = Q * R.diagonal().sign() * gain
    return tensor.copy_((Q.t() if rows < columns else Q).reshape(tensor.shape).to(tensor.dtype))


def _old_name(function: Callable[..., DeviceArray]) -> Callable[..., DeviceArray]:
    """A function by its name without the underscore, which PyTorch calls deprecated."""
    new = function.__name__

    @functools.wraps(function)
    def _old(*args: Any, **kwargs: Any) -> DeviceArray:
        warnings.warn(
            f"`nn.init.{new[:-1]}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning, stacklevel=2
        )
        return function(*args, **kwargs)

    _old.__name__ = _old.__qualname__ = new[:-1]
    return _old


_Old: TypeAlias = Callable[..., DeviceArray]
constant: _Old = _old_name(constant_)
dirac: _Old = _old_name(dirac_)
eye: _Old = _old_name(eye_)
kaiming_normal: _Old = _old_name(kaiming_normal_)
kaiming_uniform: _Old = _old_name(kaiming_uniform_)
normal: _Old = _old_name(normal_)
orthogonal: _Old = _old_name(orthogonal_)
uniform: _Old = _old_name(uniform_)
xavier_normal: _Old = _old_name(xavier_normal_)
xavier_uniform: _Old = _old_name(xavier_uniform_)
