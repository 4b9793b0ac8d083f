"""Images at any places: grid_sample, and the grids of affine maps."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TypeAlias

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_ints, _need_str
from devtensor._composed.arguments import need_array, widened
from devtensor._composed.images.resampling import cubic_shares
from devtensor._dtypes.autocast import autocasts

_Taps: TypeAlias = list[tuple[DeviceArray, DeviceArray]]  # whole coordinates, and what they count for

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


@autocasts
def grid_sample(
    input: DeviceArray,
    grid: DeviceArray,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> DeviceArray:
    """Pixels of input (N, C, H, W) at the places of grid (N, P, Q, 2): (N, C, P, Q). Volumes likewise, with (..., 3).

    A place is (x, y) or (x, y, z) from -1 to 1: the centers of the outermost pixels with align_corners, else their
    edges. mode: "bilinear", "nearest", or "bicubic" of images. padding_mode: what stands outside, "zeros", the "border"
    or a "reflection". Floats of one dtype on one device, computed in float32 for the half types. Raises
    DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, ValueError for another mode.

    >>> F.grid_sample(dt.tensor([[[[1.0, 3.0]]]]), dt.zeros(1, 1, 1, 2), align_corners=False)
    DeviceArray([[[[2.]]]], device='cpu', dtype=float32)
    """
    names, arrays = ("input", "grid"), (input, grid)
    need_array("grid_sample", "grid", grid)
    _C._check("grid_sample", names, arrays)
    _C._check_rank("grid_sample", names, arrays, 0, 4, 5)
    dims = input.ndim - 2
    _C._check_shape("grid_sample", names, arrays, 1, [input.shape[0], *[-1] * dims, dims])
    if 0 in input.shape[2:]:
        _C._check_shape("grid_sample", names, arrays, 0, [-1, -1, *(max(n, 1) for n in input.shape[2:])])
    for name, value, known in (("mode", mode, _MODES), ("padding_mode", padding_mode, _PADDINGS)):
        if _need_str("grid_sample", name, value) not in known:
            raise ValueError(f"grid_sample(): expected {name} to be one of {known}, but got {_C._shown(value)}")
    if mode == "bicubic" and dims == 3:
        raise NotImplementedError("grid_sample(): bicubic interpolation only supports 4D input")
    aligned = align_corners is not None and _need_bool("grid_sample", "align_corners", align_corners)
    x, places, sizes = widened(input), widened(grid), input.shape[2:]
    taps = []
    # where a place is no number the result is none, but the nearest pixel to it, and the border, are the first
    lost = None
    if mode == "bicubic" or (mode == "bilinear" and padding_mode == "zeros"):
        lost = (places.detach() * 0).sum(-1)
    for i, size in enumerate(sizes):
        place = places.select(-1, dims - 1 - i)
        place = (place + 1) * (0.5 * (size - 1)) if aligned else ((place + 1) * size - 1) * 0.5
        taps.append(_taps(place, size, mode, padding_mode, aligned))
    flat, shape = x.flatten(2), (*x.shape[:2], *grid.shape[1:-1])
    result = None
    for corner in itertools.product(*taps):
        part = _values(flat, sizes, corner)
        result = part if result is None else result + part
    assert result is not None
    result = result.reshape(shape)
    result = result if lost is None else result + lost.unsqueeze(1)
    return result.to(input.dtype)


def _taps(place: DeviceArray, size: int, mode: str, padding_mode: str, aligned: bool) -> _Taps:
    """The elements that count at a place along one dimension, and for how much."""
    if mode == "bicubic":
        first = place.detach().floor()
        shares = cubic_shares(place - first, -0.75)
        return [(_inside(first + (i - 1), size, padding_mode, aligned), share) for i, share in enumerate(shares)]
    place = _inside(place, size, padding_mode, aligned)
    if padding_mode != "zeros":
        place = _C.where(place.isnan(), 0.0, place)
    if mode == "nearest":
        return [(place.detach().round(), place.sign() * 0 + 1)]  # 1, with a gradient of zeros
    first = place.detach().floor()
    share = place - first
    return [(first, 1 - share), (first + 1, share)]


def _inside(place: DeviceArray, size: int, padding_mode: str, aligned: bool) -> DeviceArray:
    if padding_mode == "reflection":
        place = _reflected(place, *((0.0, size - 1.0) if aligned else (-0.5, size - 0.5)))
    if padding_mode == "zeros":
        return place
    limited = place.detach().clamp(0, size - 1)
    return _C.where((place > 0) & (place < size - 1), place, limited)  # no gradient outside, nor at the edge


def _reflected(place: DeviceArray, low: float, high: float) -> DeviceArray:
    span = high - low
    if span == 0:
        return _C.zeros_like(place)
    distance = (place - low).abs()
    times = (distance.detach() / span).floor()
    rest = _C.fmod(distance, span)
    return _C.where(times % 2 == 0, rest + low, (span + low) - rest)


def _values(flat: DeviceArray, sizes: Sequence[int], corner: Sequence[tuple[DeviceArray, DeviceArray]]) -> DeviceArray:
    """The elements at one corner of every place, times what it counts for; 0 outside."""
    index, share, inside, step = None, None, None, 1
    for size, (place, part) in reversed(list(zip(sizes, corner, strict=True))):
        within = (place >= 0) & (place <= size - 1)
        along = _C.where(within, place, 0.0).to(_C.int64) * step
        index = along if index is None else index + along
        share = part if share is None else part * share
        inside = within if inside is None else inside & within
        step *= size
    assert index is not None and share is not None and inside is not None
    n, channels = flat.shape[:2]
    index = index.reshape(n, 1, index.numel() // max(n, 1)).expand(n, channels, index.numel() // max(n, 1))
    return flat.gather(2, index) * _C.where(inside, share, 0.0).reshape(n, 1, -1 if share.numel() else 0)


def affine_grid(theta: DeviceArray, size: Sequence[int], align_corners: bool | None = None) -> DeviceArray:
    """The places theta @ (x, y, 1) for each pixel (x, y) of images of this size (N, C, H, W): (N, H, W, 2).

    theta (N, 2, 3) is a matrix for each image; (N, 3, 4) for volumes (N, C, D, H, W) gives (N, D, H, W, 3). Pixels lie
    from -1 to 1, see grid_sample. Floats. Raises DTypeMismatchError, ShapeMismatchError, ValueError for another size.

    >>> F.affine_grid(dt.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 1, 2), align_corners=False)
    DeviceArray([[[[-0.5000,  0.0000],
                   [ 0.5000,  0.0000]]]], device='cpu', dtype=float32)
    """
    _C._check("affine_grid", ("theta",), (theta,))
    sizes = _need_ints("affine_grid", "size", size)
    if len(sizes) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            f"Got size {sizes}"
        )
    if any(n <= 0 for n in sizes):
        raise ValueError(f"Expected non-zero, positive output size. Got {sizes}")
    dims = len(sizes) - 2
    _C._check_shape("affine_grid", ("theta",), (theta,), 0, [sizes[0], dims, dims + 1])
    aligned = align_corners is not None and _need_bool("affine_grid", "align_corners", align_corners)
    matrix, result = widened(theta), None
    for i, n in enumerate(sizes[2:]):
        line = _C.linspace(-1, 1, n, dtype=matrix.dtype, device=theta.device) if n > 1 else None
        line = _C.zeros(n, dtype=matrix.dtype, device=theta.device) if line is None else line
        line = line if aligned or n == 1 else line * (n - 1) / n
        column = matrix.select(2, dims - 1 - i).reshape(sizes[0], *[1] * dims, dims)
        part = line.reshape(*[1] * (i + 1), n, *[1] * (dims - i)) * column
        result = part if result is None else result + part
    assert result is not None
    return (result + matrix.select(2, dims).reshape(sizes[0], *[1] * dims, dims)).to(theta.dtype)
