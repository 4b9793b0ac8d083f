"""Images of another size: what interpolate computes, one dimension after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_ints, _need_number, _need_str
from devtensor._composed.arguments import need_array, widened
from devtensor._composed.images.pooling import adaptive_avg_pool1d, adaptive_avg_pool3d
from devtensor._composed.shapes.arrange import _memory_order, _permuted_back
from devtensor._composed.shapes.remapped import LINEAR, NEAREST, SAME, Along, has_pass, remapped
from devtensor._dtypes.autocast import autocasts

_Size: TypeAlias = int | Sequence[int]
_Factor: TypeAlias = float | Sequence[float]

_NEAREST = ("nearest", "nearest-exact")
_RANKS = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5}
_PHASES = (2, 4, 8)  # factors by which all coordinates are exact in float32


@autocasts
def interpolate(
    input: DeviceArray,
    size: _Size | None = None,
    scale_factor: _Factor | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> DeviceArray:
    """Images (N, C, ...) of another size, which size or scale_factor gives.

    mode: "nearest", "nearest-exact" and "area" of 3 to 5 dimensions, "linear" of 3, "bilinear" and "bicubic" of 4,
    "trilinear" of 5. Floats, computed in float32 for the half types; uint8 by the nearest. Raises DTypeMismatchError,
    ValueError or NotImplementedError for parameters that do not fit, RuntimeError for a size that is not positive.

    >>> F.interpolate(dt.tensor([[[1.0, 3.0]]]), scale_factor=2, mode="linear")
    DeviceArray([[[1.0000, 1.5000, 2.5000, 3.0000]]], device='cpu', dtype=float32)
    """
    return _interpolate(
        "interpolate", input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias
    )


def upsample(
    input: DeviceArray,
    size: _Size | None = None,
    scale_factor: _Factor | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> DeviceArray:
    """interpolate, by its old name.

    >>> F.upsample(dt.tensor([[[1.0, 3.0]]]), scale_factor=2)
    DeviceArray([[[1., 1., 3., 3.]]], device='cpu', dtype=float32)
    """
    return _interpolate("upsample", input, size, scale_factor, mode, align_corners, None, False)


def upsample_nearest(input: DeviceArray, size: _Size | None = None, scale_factor: _Factor | None = None) -> DeviceArray:
    """interpolate with mode="nearest", by its old name.

    >>> F.upsample_nearest(dt.tensor([[[1.0, 3.0]]]), scale_factor=2)
    DeviceArray([[[1., 1., 3., 3.]]], device='cpu', dtype=float32)
    """
    return _interpolate("upsample_nearest", input, size, scale_factor, "nearest", None, None, False)


def upsample_bilinear(
    input: DeviceArray, size: _Size | None = None, scale_factor: _Factor | None = None
) -> DeviceArray:
    """interpolate with mode="bilinear" and align_corners=True, by its old name.

    >>> F.upsample_bilinear(dt.tensor([[[[1.0, 3.0]]]]), size=(1, 3))
    DeviceArray([[[[1., 2., 3.]]]], device='cpu', dtype=float32)
    """
    return _interpolate("upsample_bilinear", input, size, scale_factor, "bilinear", True, None, False)


def _interpolate(
    op: str,
    input: DeviceArray,
    size: Any,
    scale_factor: Any,
    mode: str,
    align_corners: bool | None,
    recompute_scale_factor: bool | None,
    antialias: bool,
) -> DeviceArray:
    need_array(op, "input", input)
    mode = _need_str(op, "mode", mode)
    if input.dtype is not _C.uint8 or mode not in _NEAREST:
        _C._check(op, ("input",), (input,))
    antialias = _need_bool(op, "antialias", antialias)
    aligned = align_corners is not None and _need_bool(op, "align_corners", align_corners)
    if align_corners is not None and mode not in _RANKS:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    if antialias and (mode not in ("bilinear", "bicubic") or input.ndim != 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input"
        )
    _need_mode(mode, input.ndim)
    recompute = recompute_scale_factor is not None and _need_bool(op, "recompute_scale_factor", recompute_scale_factor)
    own = input.shape[2:]
    sizes, factors = _result_size(op, own, size, scale_factor, recompute)
    if any(n < (mode != "area") for n in (*own, *sizes)):
        text = f"{op}: input and output sizes should be greater than 0, but got {tuple(own)} and {sizes}"
        raise _C._explained(op, ("input",), (input,), "invalid-parameter", RuntimeError(text))
    if mode == "area":
        return _means(input, sizes)
    shape = (*input.shape[:2], *sizes)
    if math.prod(shape) >= 1 << 59:
        _C.zeros(()).expand(shape)  # which says that no memory has so many bytes
    order = _memory_order(input)
    # Steps within a row cost most: after rows became fewer, before they become more.
    fewer = [i for i, n in enumerate(sizes) if n < own[i]]
    more = [i for i in reversed(range(len(sizes))) if i not in fewer]
    turned = input.permute(order)
    if not antialias and mode != "bicubic" and has_pass(turned):
        alongs = {i: _along_of(own[i], sizes[i], factors[i], mode, aligned) for i in fewer + more}
        return _permuted_back(_at_once(turned, order, alongs), order)
    x = whole = turned if mode in _NEAREST else widened(turned)
    for i in fewer + more:
        x = _resampled(x, order.index(i + 2), sizes[i], factors[i], mode, aligned, antialias)
    x = x.clone() if x is whole else x
    return _permuted_back(x, order).to(input.dtype)


def _need_mode(mode: str, ndim: int) -> None:
    if mode in _RANKS:
        if ndim != _RANKS[mode] and ndim in (3, 4, 5):
            raise NotImplementedError(f"Got {ndim}D input, but {mode} mode needs {_RANKS[mode]}D input")
    if (mode not in (*_NEAREST, "area") and mode not in _RANKS) or ndim not in (3, 4, 5):
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported "
            f"(got {ndim}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact "
            f"(got {_C._shown(mode)})"
        )


def _result_size(
    op: str, own: Sequence[int], size: Any, scale_factor: Any, recompute: bool
) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """The size of the result, and the factors that coordinates follow from, where they do."""
    dims = len(own)
    sizes = None if size is None else _need_ints(op, "size", size)
    factors = None if scale_factor is None else _need_factors(op, scale_factor, dims)
    if sizes is not None and factors is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if sizes is not None and recompute:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if sizes is not None:
        if isinstance(size, (tuple, list)) and len(sizes) != dims:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input with spatial "
                f"dimensions of {list(own)} and output size of {list(sizes)}."
            )
        return (sizes if len(sizes) == dims else sizes * dims), (None,) * dims
    if factors is None:
        raise ValueError("either size or scale_factor should be defined")
    if len(factors) != dims:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
            f"dimensions of {list(own)} and scale_factor of shape {list(factors)}."
        )
    products = [n * f for n, f in zip(own, factors, strict=True)]
    if not all(abs(p) < 2**63 for p in products):  # NaN too
        raise RuntimeError(f"{op}: scale_factor={factors} is too large")
    return tuple(math.floor(p) for p in products), (None,) * dims if recompute else factors


def _need_factors(op: str, scale_factor: Any, dims: int) -> tuple[float, ...]:
    if isinstance(scale_factor, (tuple, list)):
        return tuple(_need_number(op, "scale_factor", factor) for factor in scale_factor)
    return (_need_number(op, "scale_factor", scale_factor),) * dims


def _means(x: DeviceArray, sizes: tuple[int, ...]) -> DeviceArray:
    if x.ndim == 3:
        return adaptive_avg_pool1d(x, sizes)
    return _C.adaptive_avg_pool2d(x, sizes) if x.ndim == 4 else adaptive_avg_pool3d(x, sizes)


def _along_of(own: int, size: int, factor: float | None, mode: str, aligned: bool) -> Along:
    """The same as _resampled."""
    step = _step(own, size, factor, aligned)
    if own == size and (step == 1.0 or mode in _RANKS):
        return Along(SAME, size)
    if mode in _NEAREST:
        return Along(NEAREST, size, 0, step, 0.5 if mode == "nearest-exact" else 0.0)
    return Along(LINEAR, size, 0, step, 0.0 if aligned else 0.5)


def _at_once(x: DeviceArray, order: Sequence[int], alongs: dict[int, Along]) -> DeviceArray:
    """alongs: of the dimensions behind the channels, in the order in which means are made."""
    places = {order.index(i + 2): along for i, along in alongs.items() if along.kind != SAME}
    if not places:
        return x.clone()
    dims = list(places)
    is_pair = len(dims) == 2 and abs(dims[0] - dims[1]) == 1
    if len(dims) == 1 or is_pair or all(along.kind == NEAREST for along in places.values()):
        return remapped(x, places, dims[0] > dims[-1])
    means = widened(x)  # rounded once
    for d in dims:
        means = remapped(means, {d: places[d]})
    return means.to(x.dtype)


# ---------------------------------------------------------------- one dimension


def _step(own: int, size: int, factor: float | None, aligned: bool) -> float:
    """From element to element of the result, in those of the input."""
    if aligned:
        return (own - 1) / (size - 1) if size > 1 else 0.0
    return 1.0 / factor if factor is not None and factor > 0 else own / size


def _resampled(
    x: DeviceArray, dim: int, size: int, factor: float | None, mode: str, aligned: bool, antialias: bool
) -> DeviceArray:
    own, step = x.shape[dim], _step(x.shape[dim], size, factor, aligned)
    if own == size and (step == 1.0 or antialias or mode in ("linear", "bilinear", "trilinear")):
        return x  # PyTorch looks at no factor here, where the size stays
    if antialias:
        return _filtered(x, dim, size, step, mode)
    times = size // own if size % own == 0 and size // own * step == 1.0 and not aligned else 0
    if mode in _NEAREST:
        return _nearest(x, dim, size, step, mode, times)
    if mode == "bicubic":
        return _cubic(x, dim, size, step, aligned)
    if times in _PHASES and not _has_loop(x, dim):
        return _phases(x, dim, times)
    return _linear(x, dim, size, step, aligned)


def _has_loop(x: DeviceArray, dim: int) -> bool:
    """Whether sums of neighbours, each with its share, are one call. Its lists are as long as dim: many lines pay."""
    return not x.is_cuda and x.dtype in (_C.float32, _C.float64) and x.numel() >= 32 * x.shape[dim]


def _nearest(x: DeviceArray, dim: int, size: int, step: float, mode: str, times: int) -> DeviceArray:
    own = x.shape[dim]
    if times in _PHASES and dim == x.ndim - 1:
        return _C.stack([x] * times, -1).flatten(-2)
    places = _C.arange(size, dtype=_C.float32, device=x.device)
    places = (places + 0.5 if mode == "nearest-exact" else places) * step
    return x.index_select(dim, places.floor().to(_C.int64).clamp(max=own - 1))


def _along(values: DeviceArray, x: DeviceArray, dim: int) -> DeviceArray:
    """values, one for each index of dim, as x broadcasts with it."""
    return values.reshape([-1] + [1] * (x.ndim - 1 - dim))


def _sources(x: DeviceArray, size: int, step: float, aligned: bool) -> DeviceArray:
    """Where each element of the result lies in the input; in the dtype of x, as in PyTorch."""
    places = _C.arange(size, dtype=x.dtype, device=x.device)
    return places * step if aligned else (places + 0.5) * step - 0.5


def _linear(x: DeviceArray, dim: int, size: int, step: float, aligned: bool) -> DeviceArray:
    last = x.shape[dim] - 1
    places = _sources(x, size, step, aligned).clamp(min=0.0)
    first = places.to(_C.int64).clamp(max=last)
    share = (places - first).clamp(0.0, 1.0)
    second = (first + 1).clamp(max=last)
    if _has_loop(x, dim):
        return _C._resample(x, _C.stack([first, second]), _C.stack([1.0 - share, share]), dim)
    share = _along(share, x, dim)
    return _between(x.index_select(dim, first), x.index_select(dim, second), 1.0 - share, share)


def _between(a: DeviceArray, b: DeviceArray, of_a: DeviceArray | float, of_b: DeviceArray | float) -> DeviceArray:
    """As PyTorch has it: with lerp, which takes differences, an inf beside another number would be NaN."""
    return a * of_a + b * of_b if isinstance(of_b, DeviceArray) else _C.add(a * of_a, b, alpha=of_b)


def _phases(x: DeviceArray, dim: int, times: int) -> DeviceArray:
    """_linear by a whole factor: elements with the same remainder have the same share of two neighbours."""
    n = x.shape[dim]
    # What stands before the first element is that, and 0 times the second.
    front = _between(x.narrow(dim, 0, 1), x.narrow(dim, min(1, n - 1), 1), 1.0, 0.0)
    padded = _C.cat([front, x, x.narrow(dim, n - 1, 1)], dim)
    neighbours = [padded.narrow(dim, i, n) for i in range(3)]
    parts = []
    for i in range(times):
        place = (i + 0.5) / times + 0.5  # counted from the neighbour in front
        left = int(place)
        parts.append(_between(neighbours[left], neighbours[left + 1], 1.0 - place + left, place - left))
    return _C.stack(parts, dim + 1).flatten(dim, dim + 1)


def _cubic(x: DeviceArray, dim: int, size: int, step: float, aligned: bool) -> DeviceArray:
    places = _sources(x, size, step, aligned)
    first = places.floor()
    t, index = places - first, first.to(_C.int64)
    shares = cubic_shares(t, -0.75)
    last, result = x.shape[dim] - 1, None
    if _has_loop(x, dim):
        places = _C.stack([(index + (tap - 1)).clamp(0, last) for tap in range(len(shares))])
        return _C._resample(x, places, _C.stack(shares), dim)
    for tap, share in enumerate(shares):
        part = x.index_select(dim, (index + (tap - 1)).clamp(0, last)) * _along(share, x, dim)
        result = part if result is None else result + part
    assert result is not None
    return result


def cubic_shares(t: DeviceArray, a: float) -> tuple[DeviceArray, DeviceArray, DeviceArray, DeviceArray]:
    """What the elements at -1, 0, 1 and 2 count for, at t of 0 to 1."""
    return _outer(t + 1.0, a), _inner(t, a), _inner(1.0 - t, a), _outer(2.0 - t, a)


def _inner(t: DeviceArray, a: float) -> DeviceArray:
    return ((t * (a + 2.0) - (a + 3.0)) * t) * t + 1.0


def _outer(t: DeviceArray, a: float) -> DeviceArray:
    return ((t * a - 5.0 * a) * t + 8.0 * a) * t - 4.0 * a


def _filtered(x: DeviceArray, dim: int, size: int, step: float, mode: str) -> DeviceArray:
    """Each element is a mean over as many as `step` covers, with the shares of a triangle or a cubic."""
    own = x.shape[dim]
    reach = (1.0 if mode == "bilinear" else 2.0) * max(step, 1.0)
    shrink = 1.0 / step if step >= 1.0 else 1.0
    centers = (_C.arange(size, dtype=x.dtype, device=x.device) + 0.5) * step
    first = (centers - reach + 0.5).to(_C.int64).clamp(min=0)
    count = (centers + reach + 0.5).to(_C.int64).clamp(max=own) - first
    shares = []
    for tap in range(min(math.ceil(reach) * 2 + 1, own)):
        distance = (((first + tap).to(x.dtype) - centers + 0.5) * shrink).abs()
        if mode == "bilinear":
            share = (1.0 - distance).clamp(min=0.0)
        else:
            outer = _C.where(distance < 2.0, _outer(distance, -0.5), 0.0)
            share = _C.where(distance < 1.0, _inner(distance, -0.5), outer)
        shares.append(_C.where(count > tap, share, 0.0))
    total = sum(shares[1:], shares[0])
    if _has_loop(x, dim):
        places = _C.stack([_C.where(count > tap, first + tap, -1) for tap in range(len(shares))])
        return _C._resample(x, places, _C.stack([share / total for share in shares]), dim)
    result = None
    for tap, share in enumerate(shares):
        part = x.index_select(dim, (first + tap).clamp(max=own - 1)) * _along(share / total, x, dim)
        part = _C.where(_along(count > tap, x, dim), part, 0.0)
        result = part if result is None else result + part
    assert result is not None
    return result
