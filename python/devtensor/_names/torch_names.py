"""Functions of PyTorch's top level that devtensor has elsewhere: methods in place (`torch.sin_`), layers and losses by
their compiled signatures (`torch.kl_div(input, target, 1)`), in which reductions and modes are numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray

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
    return _C.add(-input, other) if alpha == 1 else _C.add(input * -alpha, other)


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
            *(rsub, unsafe_chunk, unsafe_split, fill, typename),
        )
    },
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
    return _FUNCTIONS.get(name)
