"""Functions of PyTorch's top level that devtensor has elsewhere: methods in place (`torch.sin_`), layers and losses by
their compiled signatures (`torch.kl_div(input, target, 1)`), in which reductions and modes are numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._names import foreach
from devtensor._names.modes import MODES
from devtensor.amp.grad_scaler import GradScaler
from devtensor.linalg._lowrank import pca_lowrank, svd_lowrank

_IN_PLACE = frozenset(
    """abs_ acos_ acosh_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ asin_ asinh_
    atan_ atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ detach_ erf_ erfc_
    exp2_ exp_ expm1_ fill_ fix_ floor_ frac_ gcd_ i0_ index_put_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_
    nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ resize_as_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_
    square_ tan_ tanh_ trunc_ xlogy_ zero_""".split()
)
_REDUCTIONS = {0: "none", 1: "mean", 2: "sum"}
_INTERPOLATIONS = {0: "bilinear", 1: "nearest", 2: "bicubic"}
_PADDINGS = {0: "zeros", 1: "border", 2: "reflection"}


def _one_of(op: str, name: str, value: Any, choices: dict[int, str]) -> str:
    if isinstance(value, bool) or value not in choices:
        listed = ", ".join(f"{number} ({word})" for number, word in choices.items())
        raise ValueError(f"{op}(): argument '{name}' must be one of {listed}, not {_C._shown(value)}")
    return choices[value]


def _with_number(name: str, defaults: dict[str, Any], order: str) -> Callable[..., Any]:
    """The loss name of nn.functional, whose reduction is a number; order has its parameters, in PyTorch's order."""
    names = order.split()

    def loss(*args: Any, **options: Any) -> Any:
        from devtensor.nn import functional

        if len(args) > len(names):
            raise TypeError(f"{name}() takes at most {len(names)} positional arguments but {len(args)} were given")
        given = {**defaults, **dict(zip(names, args, strict=False)), **options}
        given["reduction"] = _one_of(name, "reduction", given.get("reduction", 0), _REDUCTIONS)
        return getattr(functional, name)(**given)

    loss.__name__ = loss.__qualname__ = name
    loss.__doc__ = (
        f"nn.functional.{name}, with reduction 0 (none, which is PyTorch's default here), 1 (mean) or 2 (sum)."
    )
    return loss


_LOSSES = {
    "binary_cross_entropy_with_logits": "input target weight pos_weight reduction",
    "cosine_embedding_loss": "input1 input2 target margin reduction",
    "ctc_loss": "log_probs targets input_lengths target_lengths blank reduction zero_infinity",
    "hinge_embedding_loss": "input target margin reduction",
    "kl_div": "input target reduction",
    "margin_ranking_loss": "input1 input2 target margin reduction",
    "poisson_nll_loss": "input target log_input full eps reduction",
    "triplet_margin_loss": "anchor positive negative margin p eps swap reduction",
}


def _dropped(name: str, in_place: bool) -> Callable[..., Any]:
    inner = {"feature_dropout": "dropout2d"}.get(name, name)

    def dropout(input: DeviceArray, p: float, train: bool) -> DeviceArray:
        from devtensor.nn import functional

        result = getattr(functional, inner)(input, p, train)
        return input.copy_(result) if in_place else result

    dropout.__name__ = dropout.__qualname__ = f"{name}_" if in_place else name
    dropout.__doc__ = f"nn.functional.{inner}{', written into input' if in_place else ''}."
    return dropout


def constant_pad_nd(input: DeviceArray, pad: Any, value: float = 0) -> DeviceArray:
    """nn.functional.pad with value."""
    from devtensor.nn.functional import pad as padded

    return padded(input, pad, "constant", value)


def adaptive_max_pool1d(input: DeviceArray, output_size: Any) -> tuple[DeviceArray, DeviceArray]:
    """The maxima and their positions."""
    from devtensor.nn import functional

    values, places = functional.adaptive_max_pool1d(input, output_size, return_indices=True)
    return values, places


def max_pool1d_with_indices(input: DeviceArray, *args: Any, **options: Any) -> tuple[DeviceArray, DeviceArray]:
    """The maxima of windows and their positions."""
    from devtensor.nn import functional

    values, places = functional.max_pool1d(input, *args, **options, return_indices=True)
    return values, places


def grid_sampler(
    input: DeviceArray, grid: DeviceArray, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> DeviceArray:
    """nn.functional.grid_sample: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection."""
    from devtensor.nn.functional import grid_sample

    mode = _one_of("grid_sampler", "interpolation_mode", interpolation_mode, _INTERPOLATIONS)
    return grid_sample(
        input, grid, mode, _one_of("grid_sampler", "padding_mode", padding_mode, _PADDINGS), align_corners
    )


def affine_grid_generator(theta: DeviceArray, size: Any, align_corners: bool) -> DeviceArray:
    """nn.functional.affine_grid."""
    from devtensor.nn.functional import affine_grid

    return affine_grid(theta, size, align_corners)


def rsub(input: DeviceArray, other: Any, *, alpha: float = 1) -> DeviceArray:
    """other - alpha * input."""
    return _C.sub(other, input, alpha=alpha)


def unsafe_chunk(input: DeviceArray, chunks: int, dim: int = 0) -> tuple[DeviceArray, ...]:
    """chunk."""
    return _C.chunk(input, chunks, dim)


def unsafe_split(tensor: DeviceArray, split_size: Any, dim: int = 0) -> tuple[DeviceArray, ...]:
    """split."""
    return _C.split(tensor, split_size, dim)


def fill(input: DeviceArray, value: Any) -> DeviceArray:
    """An array like input in which every element is value."""
    return _C.full_like(input, value)


def typename(obj: object) -> str:
    """The name of the class of an object, with its module."""
    kind = type(obj)
    return kind.__qualname__ if kind.__module__ in ("", "builtins", None) else f"{kind.__module__}.{kind.__qualname__}"


def _copied(name: str) -> Callable[..., Any]:
    """The function of this name, whose results share no memory with its operand."""

    def copy(*args: Any, **options: Any) -> Any:
        found = getattr(DeviceArray, name)(*args, **options)
        return tuple(part.clone() for part in found) if isinstance(found, (tuple, list)) else found.clone()

    copy.__name__ = copy.__qualname__ = f"{name}_copy"
    copy.__doc__ = f"{name}, as a copy."
    return copy


_COPIES = """as_strided detach diagonal expand permute select split split_with_sizes squeeze t transpose unbind unfold
unsqueeze view""".split()


def as_strided_scatter(input: DeviceArray, src: DeviceArray, size: Any, stride: Any, storage_offset: Any = 0) -> Any:
    """A copy of input in which src stands where as_strided(size, stride, storage_offset) looks."""
    flat = _C.arange(input.numel(), device=input.device).as_strided(size, stride, storage_offset or 0)
    return input.flatten().index_put((flat.flatten(),), src.expand(flat.shape).flatten()).reshape(input.shape)


def frobenius_norm(input: DeviceArray, dim: Any = None, keepdim: bool = False) -> DeviceArray:
    """linalg.vector_norm."""
    from devtensor.linalg import vector_norm

    return vector_norm(input, 2, dim or None, keepdim)


def nuclear_norm(input: DeviceArray, dim: Any = (-2, -1), keepdim: bool = False) -> DeviceArray:
    """linalg.matrix_norm of "nuc"."""
    from devtensor.linalg import matrix_norm

    return matrix_norm(input, "nuc", dim, keepdim)


def norm_except_dim(v: DeviceArray, pow: int = 2, dim: int = 0) -> DeviceArray:
    """The norm over all dimensions but one, which stay with size 1; over all of them for dim -1."""
    from devtensor.nn.utils.weights import length_beside

    return length_beside(v, dim, pow)


def triangular_solve(
    b: DeviceArray, A: DeviceArray, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[DeviceArray, DeviceArray]:
    """linalg.solve_triangular(A, b), and a copy of A."""
    from devtensor.linalg import solve_triangular

    turned, is_upper = (A.mT, not upper) if transpose else (A, upper)
    return solve_triangular(turned, b, upper=is_upper, unitriangular=unitriangular), A.clone()


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """true_fn(*operands), or false_fn where pred, a bool or an array of one, is false."""
    return (true_fn if bool(pred) else false_fn)(*operands)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _with_number(name, {}, order) for name, order in _LOSSES.items()},
    **{name: _dropped(name, False) for name in ("feature_dropout",)},
    **{
        f"{name}_": _dropped(name, True)
        for name in ("dropout", "alpha_dropout", "feature_alpha_dropout", "feature_dropout")
    },
    **{
        function.__name__: function
        for function in (
            *(constant_pad_nd, adaptive_max_pool1d, max_pool1d_with_indices, grid_sampler, affine_grid_generator),
            *(rsub, unsafe_chunk, unsafe_split, fill, typename, as_strided_scatter, frobenius_norm, nuclear_norm),
            *(norm_except_dim, triangular_solve, cond, pca_lowrank, svd_lowrank),
        )
    },
    **{f"{name}_copy": _copied(name) for name in _COPIES},
    **MODES,
    "GradScaler": GradScaler,
    "grid_sampler_2d": grid_sampler,
    "grid_sampler_3d": grid_sampler,
    "unsafe_split_with_sizes": unsafe_split,
}


def names() -> list[str]:
    """All of them."""
    return sorted([*_FUNCTIONS, *(name for name in _IN_PLACE if hasattr(DeviceArray, name))])


def find(name: str) -> Any:
    """The function of this name; None where there is none."""
    if name in _IN_PLACE:
        return getattr(DeviceArray, name, None)
    return _FUNCTIONS[name] if name in _FUNCTIONS else foreach.find(name)
