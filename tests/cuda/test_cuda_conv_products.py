"""Convolutions on CUDA whose windows do not overlap: products of matrices."""

from __future__ import annotations

from typing import Any

import formats
import images
import numpy as np
import pytest
from formats import FLOATS
from support import wide_of
from test_cuda_matmul import PRODUCT, watch, whole

import devtensor as dt

EXECUTE = "cudnnBackendExecute"
# name: input, weight, stride
SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...], Any]] = {
    "pixels": ((3, 9, 6, 7), (12, 9, 1, 1), 1),
    "every other pixel": ((3, 9, 6, 7), (12, 9, 1, 1), 2),
    "patches": ((3, 3, 12, 10), (12, 3, 4, 5), (4, 5)),
    "patches of a larger image": ((3, 3, 14, 11), (12, 3, 4, 5), (4, 5)),
    "whole image": ((12, 4, 5, 4), (12, 4, 5, 4), 1),
    "more than a window": ((12, 4, 6, 5), (12, 4, 5, 4), 3),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "sliced"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_values(dtype: str, layout: str, name: str, cuda: str) -> None:
    """All of strict float32 and float64 are products; whatever runs, the values are those of the definition."""
    x_shape, weight_shape, stride = SHAPES[name]
    x, wide_x = whole(x_shape, dtype, cuda, 1, layout=layout)
    bias, wide_bias = whole(weight_shape[:1], dtype, cuda, 3)
    for weight_layout in ("contiguous", "channels_last"):
        weight, wide_weight = whole(weight_shape, dtype, cuda, 2, layout=weight_layout)
        for b, wide_b in ((None, None), (bias, wide_bias)):
            for activation in (None, "relu"):
                want = images.conv2d(wide_x, wide_weight, wide_b, stride)
                want = formats.round_to(np.maximum(want, 0) if activation else want, dtype).astype(np.float64)
                with watch() as change:
                    got = dt.conv2d(x, weight, b, stride=stride, activation=activation)  # type: ignore[arg-type]
                assert np.array_equal(wide_of(got).astype(np.float64), want), (weight_layout, activation)
                assert dtype not in ("float32", "float64") or EXECUTE not in change.calls


@pytest.mark.parametrize("dtype", FLOATS)
def test_no_copies_where_the_rows_lie_in_memory(dtype: str, cuda: str) -> None:
    """Rows of whole 16 bytes: others begin with the bias where a half type would round twice."""
    for x_shape, weight_shape, layout in (
        ((3, 16, 6, 7), (24, 16, 1, 1), "channels_last"),
        ((12, 4, 5, 4), (24, 4, 5, 4), "contiguous"),
        ((12, 4, 5, 4), (24, 4, 5, 4), "channels_last"),
    ):
        x, weight = (
            whole(x_shape, dtype, cuda, 1, layout=layout)[0],
            whole(weight_shape, dtype, cuda, 2, layout=layout)[0],
        )
        with watch() as change:
            dt.conv2d(x, weight, dt.zeros((24,), dtype=x.dtype, device=cuda))
        assert change.calls[PRODUCT] == 1 and EXECUTE not in change.calls
        assert change.launches == 2  # with the zeros


@pytest.mark.parametrize("stride", (1, 2, (3, 1)))
@pytest.mark.parametrize("layout", ("contiguous", "channels_last"))
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", ((3, 9, 7, 8), (1, 9, 7, 8), (3, 9, 1, 1), (3, 1, 7, 8)))
def test_gradients_of_pixels(shape: tuple[int, ...], dtype: str, layout: str, stride: Any, cuda: str) -> None:
    """All of strict float32 and float64 are products, and of other dtypes those whose pixels are rows of a matrix."""
    x, wide_x = whole(shape, dtype, cuda, 1, layout=layout)
    weight, wide_weight = whole((6, shape[1], 1, 1), dtype, cuda, 2)
    x, weight = x.requires_grad_(), weight.requires_grad_()
    y = dt.conv2d(x, weight, stride=stride)
    grad, wide_grad = whole(tuple(y.shape), dtype, cuda, 3, layout=layout)
    with watch() as change:
        of_x, of_weight = dt.autograd.grad(y, (x, weight), grad)
    down, across = stride if isinstance(stride, tuple) else (stride, stride)
    spread = np.zeros(shape)
    spread[:, :, ::down, ::across] = np.einsum("nkpq,kc->ncpq", wide_grad, wide_weight[:, :, 0, 0])
    products = np.einsum("nkpq,ncpq->kc", wide_grad, wide_x[:, :, ::down, ::across])
    for got, want in ((of_x, spread), (of_weight, products[:, :, None, None])):
        assert np.array_equal(wide_of(got).astype(np.float64), formats.round_to(want, dtype).astype(np.float64))
    rows = layout == "channels_last" and stride == 1 and shape[1] > 1
    assert EXECUTE not in change.calls or not (rows or dtype in ("float32", "float64"))


def test_few_pixels_of_many_channels_are_left_to_cudnn(cuda: str) -> None:
    """In planes their products, one for each image, are more than the planes."""
    for size, products in ((4, True), (2, False)):
        x = dt.ones((3, 16, size, size), device=cuda)
        weight = dt.ones((16, 16, 1, 1), device=cuda, requires_grad=True)
        y = dt.conv2d(x, weight)
        with watch() as change:
            (got,) = dt.autograd.grad(y.sum(), weight)
        assert (EXECUTE not in change.calls) is products
        assert (got == 3 * size * size).all().item()
