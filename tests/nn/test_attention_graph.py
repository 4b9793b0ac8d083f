"""Attention of the half types on CUDA as a graph of cuDNN: which calls go by it, and what happens where it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np
import pytest
from support import CUDA_DEVICES
from test_attention_blocks import TOLERANCE, attend, values
from test_cuda_matmul import simulated, watch

import devtensor as dt
from devtensor.nn import functional as F

CUDA = CUDA_DEVICES[0]
EXECUTE, FINALIZE, CREATE, PRODUCT = (
    "cudnnBackendExecute",
    "cudnnBackendFinalize",
    "cudnnBackendCreateDescriptor",
    "cublasLtMatmul",
)
# batch, heads of keys, heads of query for each, L, S, E, V
SHAPES = {
    "blocks": (2, 3, 1, 128, 256, 64, 64),
    "odd lengths": (2, 3, 1, 70, 133, 64, 64),
    "more queries": (1, 2, 1, 150, 65, 64, 64),
    "groups": (2, 2, 3, 70, 130, 64, 64),
    "wide": (1, 2, 1, 65, 200, 128, 128),
    "narrow": (1, 2, 1, 65, 200, 16, 16),
    "eighty": (1, 2, 1, 130, 130, 80, 80),
}
SIZES = SHAPES["blocks"]
LENGTHS = count(8)


@pytest.fixture(autouse=True)
def all_by_cudnn() -> Iterator[None]:
    """However little there is to do."""
    dt._C._test.kernel_settings(attention_work=1, attention_shapes=1 << 20)
    yield
    dt._C._test.api_fail(None, -1, 0)
    dt._C._test.set_plan_limit(0)
    dt._C._test.kernel_settings()


def forget_all() -> None:
    """All plans of attention but that of a length which nothing else has."""
    dt._C._test.set_plan_limit(1)
    x = dt.rand(1, 1, next(LENGTHS), 8, device=CUDA).half()
    F.scaled_dot_product_attention(x, x, x)
    dt._C._test.set_plan_limit(0)


def close(found: dt.DeviceArray, expected: np.ndarray, dtype: str, name: str = "") -> None:
    np.testing.assert_allclose(found.cpu().double().numpy(), expected, rtol=0, atol=TOLERANCE[dtype], err_msg=name)


@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize("layout", ["contiguous", "heads beside each other"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_values(dtype: str, layout: str, mask: str) -> None:
    for name, sizes in SHAPES.items():
        with watch() as change:
            found, expected = attend(sizes, layout, dtype, mask, CUDA)
        close(found, expected, dtype, name)
        if simulated:
            assert change.calls[EXECUTE] == 1 and PRODUCT not in change.calls, name
        with watch() as change:
            again = attend(sizes, layout, dtype, mask, CUDA)[0]
        assert dt.equal(again, found), name
        if simulated:
            assert change.calls[FINALIZE] == 1, "the plan is kept"


@pytest.mark.parametrize(("queries", "work"), [(63, 2 * 2 * 64 * 64 * 128), (64, 2 * 2 * 64 * 64 * 128)])
def test_little_work_goes_another_way(queries: int, work: int) -> None:
    """A plan is compiled at run time: as long as a hundred calls of that size take."""
    dt._C._test.kernel_settings(attention_work=work, attention_shapes=1 << 20)
    with watch() as change:
        found, expected = attend((2, 2, 1, queries, 64, 64, 64), "contiguous", "float16", "none", CUDA)
    assert (EXECUTE in change.calls) == (queries == 64)
    close(found, expected, "float16")


def test_plans_are_made_for_so_many_shapes() -> None:
    """Others go another way, also later: lengths that never come again would wait half a second each."""
    first, second = ((1, 1, 1, next(LENGTHS), 64, 8, 8) for _ in range(2))
    attend(first, "contiguous", "float16", "none", CUDA)
    for shapes in (0, 1 << 20):
        dt._C._test.kernel_settings(attention_work=1, attention_shapes=shapes)
        for sizes, executes in ((first, True), (second, False)):
            with watch() as change:
                found, expected = attend(sizes, "contiguous", "float16", "none", CUDA)
            close(found, expected, "float16")
            assert (EXECUTE in change.calls) == executes


def test_the_usual_settings_leave_little_work_alone() -> None:
    dt._C._test.kernel_settings()
    with watch() as change:
        attend((1, 12, 1, 128, 128, 64, 64), "contiguous", "float16", "none", CUDA)
    assert EXECUTE not in change.calls


@pytest.mark.parametrize(
    ("sizes", "layout", "dtype", "mask"),
    [
        (SIZES, "contiguous", "float32", "none"),
        (SIZES, "contiguous", "float16", "bool"),
        (SIZES, "contiguous", "float16", "numbers"),
        (SIZES, "strided", "float16", "none"),
        ((2, 3, 1, 64, 128, 20, 64), "contiguous", "float16", "none"),
        ((2, 3, 1, 64, 128, 64, 20), "contiguous", "float16", "none"),
    ],
)
def test_what_it_does_not_do(sizes: tuple[int, ...], layout: str, dtype: str, mask: str) -> None:
    with watch() as change:
        found, expected = attend(sizes, layout, dtype, mask, CUDA)
    assert EXECUTE not in change.calls
    close(found, expected, dtype)


def test_ranks_and_places() -> None:
    """Two to four dimensions; an address that is no multiple of 16 bytes, and heads that are one, go another way."""
    x = dt.rand(3, 2, 64, 64, device=CUDA).half()
    want = F.scaled_dot_product_attention(x.cpu(), x.cpu(), x.cpu())
    for part in (x, x[1], x[1, 1], x.unsqueeze(0)):
        found = F.scaled_dot_product_attention(part, part, part)
        whole = want if part.ndim >= 4 else want[1] if part.ndim == 3 else want[1, 1]
        assert found.shape == part.shape and dt.allclose(found.cpu().reshape(whole.shape), whole, atol=2e-3)
    flat = dt.zeros(x.numel() + 1, device=CUDA).half()
    flat[1:] = x.reshape(-1)
    shifted, shared = flat[1:].reshape(x.shape), x[:1, :1].expand(3, 2, 64, 64)
    for query, key in ((shifted, x), (x, shared)):
        with watch() as change:
            found = F.scaled_dot_product_attention(query, key, x)
        assert EXECUTE not in change.calls
        want = F.scaled_dot_product_attention(query.cpu(), key.cpu(), x.cpu())
        assert dt.allclose(found.cpu(), want, atol=2e-3)


def test_the_scale_is_no_part_of_a_plan() -> None:
    x = dt.rand(2, 2, 64, 64, device=CUDA).half()
    F.scaled_dot_product_attention(x, x, x)
    for scale in (0.01, 0.5, 3.0, 0.0, -2.0, 1e-50):
        taken = scale > 1e-30
        with watch() as change:
            found = F.scaled_dot_product_attention(x, x, x, scale=scale)
        assert change.calls.get(EXECUTE, 0) == taken, "the library's kernels want a positive float32"
        assert not simulated or change.calls.get(FINALIZE, 0) == taken
        want = F.scaled_dot_product_attention(x.cpu(), x.cpu(), x.cpu(), scale=scale)
        assert dt.allclose(found.cpu(), want, atol=2e-3)


@pytest.mark.skipif(not simulated, reason="the simulated GPU fails calls on demand")
@pytest.mark.parametrize(
    ("call", "status"),
    [(EXECUTE, 3000), (FINALIZE, 3000), (EXECUTE, 4004), (CREATE, 4003)],
    ids=["refused at its run", "refused as a graph", "no memory on the device", "no memory on the host"],
)
def test_where_the_library_refuses(call: str, status: int) -> None:
    forget_all()
    dt._C._test.api_fail(call, 0, status, True)
    if status == 4003:
        with pytest.raises((dt.OutOfMemoryError, MemoryError)):
            attend(SIZES, "contiguous", "float16", "causal", CUDA)
    else:
        found, expected = attend(SIZES, "contiguous", "float16", "causal", CUDA)
        close(found, expected, "float16")
    dt._C._test.api_fail(None, -1, 0)
    with watch() as change:
        found, expected = attend(SIZES, "contiguous", "float16", "causal", CUDA)
    close(found, expected, "float16")
    assert (EXECUTE in change.calls) == (status >= 4000), "a refusal is remembered, a want of memory is not"


def differentiated(
    sizes: tuple[int, ...], dtype: str, causal: bool, device: str, wide: bool = False
) -> tuple[dt.DeviceArray, ...]:
    """The gradients of query, key and value, in float64 from the same numbers where wide is true."""
    batch, heads, group, rows, keys, depth, columns = sizes
    shapes = ((batch, heads * group, rows, depth), (batch, heads, keys, depth), (batch, heads, keys, columns))
    numbers = [values(shape, i) for i, shape in enumerate((*shapes, (*shapes[0][:3], columns)))]
    half = [dt.from_numpy(x).to(getattr(dt, dtype)).to(dt.float64 if wide else getattr(dt, dtype)) for x in numbers]
    query, key, value, grad = (x.to(device) for x in half)
    operands = [x.requires_grad_() for x in (query, key, value)]
    result = F.scaled_dot_product_attention(*operands, is_causal=causal, scale=0.3, enable_gqa=group > 1)
    return dt.autograd.grad(result, operands, grad)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradients(dtype: str, causal: bool) -> None:
    for name, sizes in SHAPES.items():
        with watch() as change:
            found = differentiated(sizes, dtype, causal, CUDA)
        if simulated:
            assert change.calls[EXECUTE] == 3 and PRODUCT not in change.calls, "the result, again, and the gradient"
        for got, want in zip(found, differentiated(sizes, dtype, causal, "cpu", wide=True), strict=True):
            exact = want.numpy()
            bound = 4 * TOLERANCE[dtype] * max(np.abs(exact).max(), 1)
            np.testing.assert_allclose(got.cpu().double().numpy(), exact, rtol=0, atol=bound, err_msg=name)
        for got, again in zip(found, differentiated(sizes, dtype, causal, CUDA), strict=True):
            assert dt.equal(got, again), name


@pytest.mark.skipif(not simulated, reason="the simulated GPU fails calls on demand")
@pytest.mark.parametrize("which", [1, 2], ids=["the result again", "the gradient"])
@pytest.mark.parametrize("status", [3000, 4004])
def test_where_a_gradient_is_refused(which: int, status: int) -> None:
    forget_all()
    want = differentiated(SIZES, "float16", True, CUDA)
    forget_all()
    dt._C._test.api_fail(EXECUTE, which, status)
    found = differentiated(SIZES, "float16", True, CUDA)
    dt._C._test.api_fail(None, -1, 0)
    for got, exact in zip(found, want, strict=True):
        assert dt.allclose(got, exact, atol=2e-2, rtol=1e-2)


@pytest.mark.skipif(not simulated, reason="a simulated GPU has the memory that it is told to have")
def test_a_workspace_is_a_small_part_of_the_memory() -> None:
    forget_all()
    dt.cuda.set_workspace_limit(255)  # the simulated library wants 256
    try:
        with watch() as change:
            differentiated(SIZES, "float16", False, CUDA)
        assert EXECUTE not in change.calls
    finally:
        dt.cuda.set_workspace_limit(None)


def test_a_gradient_that_is_differentiated_goes_by_parts() -> None:
    operands = [dt.rand(1, 1, 16, 8, device=CUDA).half().requires_grad_() for _ in range(3)]
    result = F.scaled_dot_product_attention(*operands)
    with watch() as change:
        first = dt.autograd.grad(result.float().square().sum(), operands, create_graph=True)
    assert EXECUTE not in change.calls
    second = dt.autograd.grad(sum(x.float().sum() for x in first), operands)
    assert all(x.isfinite().all().item() for x in second)


def test_gradients_of_other_layouts() -> None:
    """What comes back need not be dense; operands may be views."""
    x = dt.rand(2, 64, 3, 3, 64, device=CUDA).half().requires_grad_()
    query, key, value = x.permute(3, 0, 2, 1, 4).unbind(0)
    result = F.scaled_dot_product_attention(query, key, value)
    weights = dt.rand(2, 64, 3, 64, device=CUDA).half().transpose(1, 2)
    found = dt.autograd.grad(result, x, weights)[0]
    wide = x.detach().cpu().double().requires_grad_()
    query, key, value = wide.permute(3, 0, 2, 1, 4).unbind(0)
    want = dt.autograd.grad(F.scaled_dot_product_attention(query, key, value), wide, weights.cpu().double())[0]
    assert dt.allclose(found.cpu().double(), want, atol=1e-2)


def test_all_is_checked() -> None:
    x = dt.rand(1, 1, 16, 8, device=CUDA).half()
    for grad in (x[..., :4], x.float(), x.cpu()):
        with pytest.raises(RuntimeError, match="grad"):
            dt._C._attention_grad(x, x, x, grad, 1.0, False)
    empty = x[:, :, :0]
    assert dt._C._attention_grad(empty, empty, empty, empty, 1.0, False) is None
