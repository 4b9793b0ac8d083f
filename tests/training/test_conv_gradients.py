"""conv2d and max_pool2d have gradients of their own besides the formulas, which create_graph takes: both agree."""

from __future__ import annotations

import random

import numpy as np
import pytest
from support import CUDA_DEVICES, DEVICES

import devtensor as dt

F = dt.nn.functional
EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def sizes(draw):
    """Shapes of input and weight, stride, padding, dilation, groups of a convolution that has a result."""
    while True:
        groups = draw.choice((1, 1, 1, 2, 3, 20))
        inside, outputs = draw.choice(((1, 1), (1, 1), (1, 2), (1, 5), (2, 3), (5, 9), (17, 8)))
        x = (draw.choice((1, 2, 5)), groups * inside, draw.randint(1, 19), draw.randint(1, 19))
        w = (groups * outputs, inside, draw.choice((1, 2, 3, 5)), draw.choice((1, 1, 3, 4)))
        stride, padding, dilation = ([draw.choice(p) for _ in "hw"] for p in ((1, 1, 2, 3, 5), (0, 1, 4), (1, 1, 2, 3)))
        if all(x[2 + i] + 2 * padding[i] > dilation[i] * (w[2 + i] - 1) for i in (0, 1)):
            return x, w, stride, padding, dilation, groups


def channels_last(a):
    return a.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)


def numbers(rng, shape, dtype, device, last):
    a = dt.tensor(rng.standard_normal(shape), dtype=getattr(dt, dtype), device=device)
    return channels_last(a) if last else a


def both(x, w, grad, *parameters):
    """The gradients, and the formulas' in float64; the same for magnitudes."""
    y = dt.conv2d(x, w, None, *parameters)
    own = dt.autograd.grad(y, (x, w), grad, retain_graph=True)
    exact = []
    for change in (lambda a: a.double(), lambda a: a.double().abs()):
        wide = [change(a.detach()).requires_grad_() for a in (x, w)]
        y = dt.conv2d(*wide, None, *parameters)
        exact.append(dt.autograd.grad(y, wide, change(grad), create_graph=True))
    return own, *exact


def compare(rng, device, x_shape, w_shape, parameters, dtype, last):
    x = numbers(rng, x_shape, dtype, device, last[0]).requires_grad_()
    w = numbers(rng, w_shape, dtype, device, last[1]).requires_grad_()
    grad = numbers(rng, dt.conv2d(x.detach(), w.detach(), None, *parameters).shape, dtype, device, last[2])
    for own, exact, size in zip(*both(x, w, grad, *parameters), strict=True):
        assert own.dtype is x.dtype and own.device == x.device and own.shape == exact.shape
        error = (own.double() - exact.detach()).abs().cpu().numpy()
        smallest = 2.0**-24 if dtype == "float16" else 0.0
        count = max(grad.numel() // grad.shape[1], w.numel()) ** 0.5 if dtype in ("float32", "float64") else 1
        bound = 2 * EPS[dtype] * count * size.detach().cpu().numpy() + smallest
        assert (error <= bound).all(), (x_shape, w_shape, parameters, dtype, last)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(6))
def test_conv2d(device, seed):
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    for _ in range(12):
        x_shape, w_shape, *parameters = sizes(draw)
        dtype, last = draw.choice(list(EPS)), [draw.random() < 0.4 for _ in "xwg"]
        compare(rng, device, x_shape, w_shape, parameters, dtype, last)


# What the cpu cuts, joins or reads in place: (x, weight, stride, padding, dilation, groups).
LARGE = (
    ((3, 40, 12, 12), (130, 40, 3, 3), 1, 1, 1, 1),  # planes read in place, more outputs than rows of one product
    ((2, 130, 9, 9), (20, 130, 3, 3), 1, 1, 1, 1),  # several blocks of channels
    ((5, 20, 40, 40), (12, 20, 3, 2), 1, 1, 1, 1),  # several slices of patches
    ((4, 24, 40, 40), (140, 12, 1, 1), 1, 0, 1, 2),
    ((6, 200, 5, 4), (150, 200, 3, 3), 1, 1, 1, 1),  # a weight beside which planes are small: one product of all images
    ((3, 140, 6, 6), (70, 140, 3, 3), 2, 1, 1, 1),
    ((3, 300, 7, 7), (260, 300, 1, 1), 1, 0, 1, 1),
    ((2, 300, 13, 12), (40, 300, 1, 1), 2, 0, 1, 1),
    ((2, 3, 30, 31), (16, 3, 7, 7), 2, 3, 1, 1),  # whole pixels of patches are copied
    ((2, 5, 13, 11), (8, 5, 3, 4), (3, 1), (4, 5), (2, 1), 1),
    ((2, 5, 13, 17), (8, 5, 3, 4), 1, 2, (1, 2), 1),
    ((2, 20, 12, 14), (20, 1, 3, 5), (2, 1), (1, 2), 1, 20),  # depthwise, a stride of one side
    ((2, 37, 12, 14), (37, 1, 4, 2), (1, 3), (0, 4), 1, 37),
    ((2, 20, 14, 20), (20, 1, 9, 12), (1, 2), (3, 6), 1, 20),  # more taps than a pixel is made from in one go
    ((2, 20, 14, 20), (20, 1, 3, 3), 2, 2, (1, 2), 20),
)

# The stride divides the weight's sizes: all phases of the input's gradient are one product, of the same patches.
JOINT = (
    ((3, 8, 28, 28), (16, 8, 4, 4), 2, 1, 1, 1),
    ((2, 8, 29, 27), (16, 8, 4, 4), 2, 1, 1, 1),  # phases of different sizes
    ((2, 3, 12, 15), (9, 3, 2, 6), (2, 3), (0, 2), 1, 1),
    ((2, 4, 20, 21), (9, 4, 2, 4), 2, 1, 3, 1),  # taps of a phase lie three apart
    ((2, 2, 18, 40), (9, 2, 3, 2), (3, 1), (0, 1), 1, 1),
    ((5, 20, 56, 56), (40, 20, 2, 2), 2, 0, 1, 1),  # several pieces
    ((2, 3, 32, 32), (300, 3, 16, 16), 16, 0, 1, 1),  # a weight beside which planes are small
    ((2, 2, 9, 30), (5, 2, 4, 4), 2, (3, 7), 1, 1),  # entries that no result reaches
)


@pytest.mark.parametrize("last", ((False,) * 3, (True, False, True), (True,) * 3, (False, True, False)))
def test_conv2d_of_many_numbers(last):
    rng = np.random.default_rng(11)
    for i, (x_shape, w_shape, *parameters) in enumerate(LARGE + JOINT):
        for dtype in ("float32", ("float64", "float16", "bfloat16")[i % 3]):
            compare(rng, "cpu", x_shape, w_shape, parameters, dtype, last)


def depthwise_sizes():
    """Around the ends of vectors: width of the result, channels, kernel, stride, padding, dilation, outputs."""
    for stride in (1, 2, 3):
        for width in (1, 2, 7, 15, 16, 17, 31, 33, 57):
            yield width, 3, 3, stride, width % 2, 1, 1
        for channels in (1, 4, 7, 8, 15, 16, 17, 33, 40):
            yield 6, channels, 3, stride, 1, 1, 1
    for kernel, padding, dilation in ((1, 0, 1), (2, 1, 1), (5, 2, 1), (7, 3, 1), (3, 2, 2), (4, 5, 3), (11, 4, 1)):
        for stride in (1, 2):
            yield 9, 18, kernel, stride, padding, dilation, 1
            yield 5, 18, kernel, stride, padding, dilation, 1
            yield 9, 3, kernel, stride, padding, dilation, 1
    for outputs in (2, 3, 5):
        yield 9, 17, 3, 2, 1, 1, outputs
    for padding in (0, 1, 2, 3, 4):
        yield 8, 37, 3, 2, padding, 1, 1
        yield 13, 5, 3, 2, padding, 1, 1
        yield 13, 18, 3, 1, padding, 1, 1


@pytest.mark.parametrize("dtype", list(EPS))
@pytest.mark.parametrize("last", [False, True])
def test_depthwise(dtype, last):
    rng = np.random.default_rng(3)
    for width, channels, kernel, stride, padding, dilation, outputs in depthwise_sizes():
        size = (width - 1) * stride + (kernel - 1) * dilation + 1 - 2 * padding
        if size < 1:
            continue
        shape = (2, channels, size + width % stride, size + stride - 1)
        x = numbers(rng, shape, dtype, "cpu", last).requires_grad_()
        w = numbers(rng, (channels * outputs, 1, kernel, kernel), dtype, "cpu", False).requires_grad_()
        parameters = stride, padding, dilation, channels
        grad = numbers(rng, dt.conv2d(x.detach(), w.detach(), None, *parameters).shape, dtype, "cpu", last)
        for own, exact, bound in zip(*both(x, w, grad, *parameters), strict=True):
            error = (own.double() - exact.detach()).abs()
            smallest = 2.0**-24 if dtype == "float16" else 0.0
            assert (error <= 8 * EPS[dtype] * bound.detach() + smallest).all().item(), (shape, kernel, *parameters)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("stride", [1, 2])
def test_depthwise_weights_get_no_infinity_that_they_never_met(stride, last):
    """The last column of x is under no tap but the last one, and under that one in no window but the last."""
    size = {1: 9, 2: 17}[stride]
    values = np.ones((1, 16, size, size), "float32")
    values[..., -1] = np.inf
    x, w = dt.tensor(values), dt.ones((16, 1, 3, 3), requires_grad=True)
    x = channels_last(x) if last else x
    y = dt.conv2d(x, w, None, stride, 0, 1, 16)
    (own,) = dt.autograd.grad(y.sum(), w)
    assert np.isfinite(own.numpy()[..., :2]).all() and np.isinf(own.numpy()[..., 2]).all()


def test_the_same_bits_for_any_number_of_threads():
    draw, rng = random.Random(7), np.random.default_rng(7)
    before = dt.get_num_threads()
    cases = [sizes(draw) for _ in range(10)] + list(LARGE[:8] + LARGE[11:] + JOINT)
    try:
        for x_shape, w_shape, *parameters in cases:
            for last in (False, True):
                x = numbers(rng, x_shape, "float32", "cpu", last).requires_grad_()
                w = numbers(rng, w_shape, "float32", "cpu", False).requires_grad_()
                grad = numbers(rng, dt.conv2d(x.detach(), w.detach(), None, *parameters).shape, "float32", "cpu", last)
                found = []
                for n in (1, 2, 3):
                    dt.set_num_threads(n)
                    y = dt.conv2d(x, w, None, *parameters)
                    found.append([g.numpy().tobytes() for g in dt.autograd.grad(y, (x, w), grad)])
                assert found[0] == found[1] == found[2], (x_shape, w_shape, parameters)
    finally:
        dt.set_num_threads(before)


def test_a_stride_that_is_never_taken():
    """Sizes added to it would leave the range of an int64."""
    x, w = dt.ones(1, 1, 1, 1, requires_grad=True), dt.full((1, 1, 1, 1), 3.0)
    y = dt.conv2d(x, w, None, (2**63 - 1, 1), (2**62 - 1, 0))
    (own,) = dt.autograd.grad(y.sum(), x)
    assert y.shape == (1, 1, 1, 1) and own.item() == 0


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    "parameters",
    [
        *((2,), ((2, 3),)),  # windows that tile some of the shapes
        *((3, 2, 1), (3, 1, 1, 2), ((2, 3), (3, 1), (1, 1)), (2, 1, 1, 5), (3, 2, 0), (5, 2, 2), (3, 3, 1, 2)),
    ],
)
def test_max_pool2d(device, last, parameters):
    """Integers: sums are exact. Ties go to the first, NaN to the last."""
    rng = np.random.default_rng(5)
    shapes = (2, 3, 9, 11), (1, 70, 7, 8), (2, 21, 6, 12), (2, 9, 5, 300), (1, 17, 33, 32), (1, 2, 8, 67)
    for shape in (*shapes, (1, 1, 90, 100)):
        values = rng.integers(-3, 4, shape).astype("float32")
        values[rng.random(shape) < 0.2] = -np.inf
        x = dt.tensor(values, device=device)
        x = (channels_last(x) if last else x).requires_grad_()
        y = F.max_pool2d(x, *parameters)
        grad = dt.tensor(rng.integers(-8, 9, tuple(y.shape)), dtype=dt.float32, device=device)
        grad = channels_last(grad) if last else grad
        (own,) = dt.autograd.grad(y, x, grad, retain_graph=True)
        (formula,) = dt.autograd.grad(y, x, grad, create_graph=True)
        missed = parameters == (2, 1, 1, 5)  # some of its windows miss the image; they have nobody to give to
        assert missed or np.array_equal(own.cpu().numpy(), formula.detach().cpu().numpy())
        assert not missed or abs(own.sum().item()) <= grad.abs().sum().item()


@pytest.mark.parametrize("device", DEVICES)
def test_max_pool2d_gives_to_the_last_nan(device):
    x = dt.tensor([[[[1.0, float("nan")], [float("nan"), 5.0]]]], device=device, requires_grad=True)
    dt.max_pool2d(x, 2).sum().backward()
    assert x.grad.tolist() == [[[[0.0, 0.0], [1.0, 0.0]]]]


@pytest.mark.parametrize("device", CUDA_DEVICES)
def test_large_batches_go_in_parts(device):
    """A weight's gradient is added up."""
    x = dt.ones((4, 2, 6, 6), device=device, requires_grad=True)
    w = dt.ones((3, 2, 3, 3), device=device, requires_grad=True)
    whole = [g.cpu().numpy() for g in dt.autograd.grad(dt.conv2d(x, w, padding=1).sum(), (x, w))]
    dt._C._test.set_size_limit(250)
    try:
        parts = [g.cpu().numpy() for g in dt.autograd.grad(dt.conv2d(x, w, padding=1).sum(), (x, w))]
    finally:
        dt._C._test.set_size_limit(0)
    assert all(np.array_equal(*pair) for pair in zip(whole, parts, strict=True))


@pytest.mark.parametrize("device", CUDA_DEVICES)
def test_cudnn_makes_one_call_a_gradient(device):
    shapes = {"x": (4, 8, 6, 6), "w": (8, 8, 3, 3)}
    grad = dt.ones((4, 8, 6, 6), device=device)
    for leaf in shapes:
        made = {name: dt.ones(shape, device=device, requires_grad=name == leaf) for name, shape in shapes.items()}
        y = dt.conv2d(made["x"], made["w"], padding=1)
        before = dt._C.counters()["launches"]
        dt.autograd.grad(y, made[leaf], grad)
        assert dt._C.counters()["launches"] - before == 1
