"""Convolution and pooling by definition, in plain NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from formats import Array

Size = int | tuple[int, int]


def pair(size: Size) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[1])


def padding_of(padding: Size | str, kernel: tuple[int, int], dilation: tuple[int, int]) -> list[tuple[int, int]]:
    """Zeros before and after, for each direction."""
    if padding == "valid":
        return [(0, 0), (0, 0)]
    if padding == "same":
        totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return [(t // 2, t - t // 2) for t in totals]
    assert not isinstance(padding, str)
    return [(p, p) for p in pair(padding)]


def conv2d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Array:
    if x.ndim == 3:
        return conv2d(x[None], weight, bias, stride, padding, dilation, groups)[0]
    k, c, r, s = weight.shape
    (sy, sx), (dy, dx) = pair(stride), pair(dilation)
    if x.shape[1] != c * groups or k % groups or k < groups or (bias is not None and bias.shape != (k,)):
        raise ValueError("channels that do not fit")
    x = np.pad(x, [(0, 0), (0, 0), *padding_of(padding, (r, s), (dy, dx))])
    n, _, h, w = x.shape
    if 0 in (r, s) or dy * (r - 1) >= h or dx * (s - 1) >= w:
        raise ValueError("a kernel larger than the image")
    result = np.zeros((n, k, (h - dy * (r - 1) - 1) // sy + 1, (w - dx * (s - 1) - 1) // sx + 1))
    for o, i, j in itertools.product(range(k), range(r), range(s)):
        first = o // (k // groups) * c
        window = x[:, first : first + c, i * dy :: sy, j * dx :: sx]
        window = window[:, :, : result.shape[2], : result.shape[3]]
        result[:, o] += np.sum(window * weight[o, :, i, j, None, None], axis=1)
    return result if bias is None else result + bias[:, None, None]


def pooled_size(size: int, k: int, s: int, p: int, d: int, ceil_mode: bool) -> int:
    span = size + 2 * p - d * (k - 1) - 1
    n = -(-span // s) + 1 if ceil_mode else span // s + 1
    return n - 1 if ceil_mode and (n - 1) * s >= size + p else n


def windows(
    x: Array, kernel: Size, stride: Size | None, padding: Size, dilation: Size, ceil_mode: bool
) -> tuple[tuple[int, int], list[tuple[int, int, Array, Array]]]:
    """Every output position with the rows and columns (some outside) that its window covers."""
    ks, ps, ds = pair(kernel), pair(padding), pair(dilation)
    ss = ks if stride is None else pair(stride)
    sizes = [pooled_size(x.shape[i - 2], ks[i], ss[i], ps[i], ds[i], ceil_mode) for i in range(2)]
    if min(sizes) <= 0 or 0 in x.shape[-2:]:
        raise ValueError("a window larger than the image")
    found = []
    for i, j in itertools.product(range(sizes[0]), range(sizes[1])):
        rows = i * ss[0] - ps[0] + np.arange(ks[0]) * ds[0]
        columns = j * ss[1] - ps[1] + np.arange(ks[1]) * ds[1]
        found.append((i, j, rows, columns))
    return (sizes[0], sizes[1]), found


def inside(positions: Array, size: int) -> Array:
    return positions[(positions >= 0) & (positions < size)]


def max_pool2d(
    x: Array,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
) -> Array:
    size, places = windows(x, kernel_size, stride, padding, dilation, ceil_mode)
    result = np.empty(x.shape[:-2] + size)
    for i, j, rows, columns in places:
        window = x[..., inside(rows, x.shape[-2]), :][..., inside(columns, x.shape[-1])]
        result[..., i, j] = np.max(window, axis=(-2, -1))
    return result


def avg_pool2d(
    x: Array,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    size, places = windows(x, kernel_size, stride, padding, 1, ceil_mode)
    result = np.empty(x.shape[:-2] + size)
    py, px = pair(padding)
    for i, j, rows, columns in places:
        real_rows, real_columns = inside(rows, x.shape[-2]), inside(columns, x.shape[-1])
        total = np.sum(x[..., real_rows, :][..., real_columns], axis=(-2, -1))
        if divisor_override is not None:
            count = divisor_override
        elif count_include_pad:
            count = int(np.sum(rows < x.shape[-2] + py)) * int(np.sum(columns < x.shape[-1] + px))
        else:
            count = len(real_rows) * len(real_columns)
        result[..., i, j] = total / count
    return result


def adaptive_avg_pool2d(x: Array, output_size: Any) -> Array:
    wanted = (output_size, output_size) if isinstance(output_size, int) else output_size
    h, w = x.shape[-2:]
    p, q = (size if given is None else given for given, size in zip(wanted, (h, w), strict=True))
    if h == 0 < p or w == 0 < q:
        raise ValueError("a window over nothing")
    result = np.empty((*x.shape[:-2], p, q))
    for i, j in itertools.product(range(p), range(q)):
        rows = slice(i * h // p, -(-(i + 1) * h // p))
        columns = slice(j * w // q, -(-(j + 1) * w // q))
        result[..., i, j] = np.mean(x[..., rows, columns], axis=(-2, -1))
    return result
