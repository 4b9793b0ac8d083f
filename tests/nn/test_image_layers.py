"""Convolutions, pools, other sizes and padding beside torch.nn, over many shapes and parameters."""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from torch_version import assert_same_text

import devtensor as dt
import devtensor.nn._modules_utils

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

Call = tuple[str, tuple[Any, ...], dict[str, Any]]


def compare(call: Call, arrays: list[np.ndarray], device: str, tolerance: float = 1e-4) -> bool:
    """The results of both and the gradients of the first; whether PyTorch takes it."""
    name, args, options = call
    theirs = [torch.tensor(x, requires_grad=x.dtype.kind == "f") for x in arrays]
    ours = [dt.tensor(x, device=device, requires_grad=x.dtype.kind == "f") for x in arrays]
    text = f"{name} {[x.shape for x in arrays]} {args} {options} on {device}"
    try:
        want = getattr(torch.nn.functional, name)(*theirs, *args, **options)
    except (RuntimeError, ValueError):
        return False
    got = getattr(dt.nn.functional, name)(*ours, *args, **options)
    wanted, found = (x if isinstance(x, tuple) else (x,) for x in (want, got))
    for a, b in zip(found, wanted, strict=True):
        assert a.shape == tuple(b.shape), text
        assert str(a.dtype).rpartition(".")[2] == str(b.dtype).rpartition(".")[2], text
        np.testing.assert_allclose(a.detach().cpu().numpy(), b.detach().numpy(), tolerance, tolerance, err_msg=text)
    if wanted[0].numel() == 0:
        return True
    weights = np.cos(np.arange(wanted[0].numel(), dtype=np.float32)).reshape(wanted[0].shape)
    leaves = [i for i, x in enumerate(theirs) if x.requires_grad]
    right = torch.autograd.grad(wanted[0], [theirs[i] for i in leaves], torch.tensor(weights).to(wanted[0].dtype))
    own = dt.autograd.grad(found[0], [ours[i] for i in leaves], dt.tensor(weights, device=device).to(found[0].dtype))
    for a, b in zip(own, right, strict=True):
        np.testing.assert_allclose(a.cpu().numpy(), b.numpy(), tolerance * 5, tolerance * 5, err_msg=text)
    return True


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def of(chance: random.Random, choices: list[Any], dims: int) -> Any:
    return chance.choice(choices) if chance.random() < 0.5 else tuple(chance.choice(choices) for _ in range(dims))


def convolutions(dims: int, transposed: bool) -> Iterator[tuple[Call, list[np.ndarray]]]:
    chance = random.Random(dims)
    while True:
        groups, inside, outside = chance.choice([1, 1, 2, 3]), chance.choice([1, 2]), chance.choice([1, 2])
        size, kernel = ([chance.choice(c) for _ in range(dims)] for c in ([1, 2, 4, 5], [1, 2, 3]))
        stride, dilation, padding = (
            [chance.choice(c) for _ in range(dims)] for c in ([1, 2, 3], [1, 1, 2, 3], [0, 1, 2])
        )
        options: dict[str, Any] = {"stride": stride, "dilation": dilation, "padding": padding, "groups": groups}
        weight = (groups * outside, inside, *kernel)
        if transposed:
            options["output_padding"] = [chance.randrange(max(a, b)) for a, b in zip(stride, dilation, strict=True)]
            weight = (groups * inside, outside, *kernel)
        elif chance.random() < 0.2:
            options.update(stride=1, padding="same")
        arrays = [normal(*chance.choice([(), (2,)]), groups * inside, *size), normal(*weight)]
        arrays += [normal(groups * outside)] if chance.random() < 0.7 else []
        yield (f"conv_transpose{dims}d" if transposed else f"conv{dims}d", (), options), arrays


@pytest.mark.parametrize(("dims", "transposed"), [(3, False), (1, True), (2, True), (3, True)])
def test_convolutions(dims: int, transposed: bool, device: str) -> None:
    done = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's, of "same" for even kernels
        rows = convolutions(dims, transposed)
        while done < 12:
            done += compare(*next(rows), device)


def pools(chance: random.Random) -> Iterator[tuple[Call, list[np.ndarray]]]:
    for name in ("max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool", "lp_pool"):
        for dims in {"lp_pool": (1, 2), "adaptive_max_pool": (1, 2, 3)}.get(name, (1, 3)):
            shape = (*chance.choice([(), (2,)]), 3, *(chance.choice([2, 5, 7, 8]) for _ in range(dims)))
            kernel, stride = of(chance, [1, 2, 3], dims), chance.choice([None, of(chance, [1, 2, 3], dims)])
            options: dict[str, Any] = {"ceil_mode": chance.random() < 0.5}
            args: tuple[Any, ...] = (kernel, stride)
            if name.startswith("adaptive"):
                args = (of(chance, [1, 2, 3, 9] if dims == 1 else [1, 3, None], dims),)
                args = (2,) if args == (None,) else args
                options = {"return_indices": True} if "max" in name and chance.random() < 0.5 else {}
            elif name == "lp_pool":
                args = (2, kernel if isinstance(kernel, int) or dims > 1 else kernel[0], stride)
            else:
                options["padding"] = of(chance, [0, 0, 1], dims)
                if name == "avg_pool":
                    options["count_include_pad"] = chance.random() < 0.5
                    options.update({"divisor_override": 5} if dims == 3 and chance.random() < 0.3 else {})
                else:
                    options["return_indices"] = chance.random() < 0.5
            x = normal(*shape)
            yield (f"{name}{dims}d", args, options), [x.round() if chance.random() < 0.3 and name != "lp_pool" else x]


def test_steps_as_long_as_the_padding(device: str) -> None:
    """Take no time for the places between them, which are outside of the result."""
    for transposed in (False, True):
        x, weight = (dt.ones(1, 1, 1, 3, device=device, requires_grad=True) for _ in range(2))
        if transposed:
            y = dt.nn.functional.conv_transpose2d(x, weight, stride=(1, 10**9), padding=(0, 10**9))
        else:
            y = dt.nn.functional.conv2d(x, weight, stride=(1, 10**9), padding=(0, 10**9))
        y.sum().backward()
        assert x.grad is not None and x.grad.sum() == 3
        assert y.flatten().tolist() == ([1, 1, 1] if transposed else [0, 3, 0])


def test_pools(device: str) -> None:
    chance, done = random.Random(0), 0
    while done < 40:
        for row in pools(chance):
            done += compare(*row, device)


LONG: list[tuple[Call, tuple[int, ...]]] = [
    (("avg_pool1d", (2,), {}), (2, 3, 1000)),
    (("avg_pool1d", (5, 3, 2, True, False), {}), (3, 999)),
    (("avg_pool1d", (7, 1, 3), {}), (2, 1, 400)),
    (("avg_pool2d", (3, 2, 1, True, False), {}), (1, 2, 300, 280)),
    (("avg_pool2d", ((3, 2), (2, 1), 1, True, True, 7), {}), (1, 2, 300, 20)),
    (("avg_pool3d", (2, 2, 1, True, False), {}), (1, 1, 300, 4, 6)),
]


def test_means_of_long_rows(device: str) -> None:
    """Their gradients go by a convolution: a matrix of shares would be as large as the square of a row."""
    for call, shape in LONG:
        assert compare(call, [normal(*shape)], device)
    x = dt.ones(1, 1, 100_000, device=device, requires_grad=True)
    y = dt.nn.functional.avg_pool1d(x, 4, 2)
    grad = dt.ones_like(y, requires_grad=True)
    (found,) = dt.autograd.grad(y, x, grad, create_graph=True)
    assert found[0, 0, :4].tolist() == [0.25, 0.25, 0.5, 0.5]
    (again,) = dt.autograd.grad(found.sum(), grad)
    assert dt.allclose(again, dt.ones_like(again))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_unpooling(dims: int, device: str) -> None:
    x = torch.tensor(normal(2, 3, *[7] * dims))
    for kernel, stride, size in [(2, None, (7,) * dims), (3, 2, None), (2, 2, (2, 3) + (7,) * dims), (3, 1, None)]:
        pool = getattr(torch.nn.functional, f"max_pool{dims}d")
        values, indices = pool(x, kernel, stride, return_indices=True)
        options = {"stride": stride, "output_size": size}
        arrays = [values.numpy(), indices.numpy()]
        assert compare((f"max_unpool{dims}d", (kernel,), options), arrays, device)
    with pytest.raises(ValueError, match="invalid output_size"):
        call = getattr(dt.nn.functional, f"max_unpool{dims}d")
        shape = (1, *[2] * dims)
        call(dt.ones(shape), dt.zeros(shape, dtype=dt.int64), 2, output_size=(9,) * dims)


MODES = ("nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area")


@pytest.mark.parametrize("mode", MODES)
def test_interpolate(mode: str, device: str) -> None:
    chance, done = random.Random(1), 0
    while done < 16:
        ndim = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5}.get(mode) or chance.choice([3, 4, 5])
        lines = chance.choice([(2, 3), (6, 7)])  # many lines take another way on the cpu
        shape = (*lines, *(chance.choice([1, 2, 3, 5, 8]) for _ in range(ndim - 2)))
        options: dict[str, Any] = {"mode": mode}
        if chance.random() < 0.5:
            options["size"] = of(chance, [2, 4, 5, 7, 10, 16], ndim - 2)
        else:
            options["scale_factor"] = of(chance, [2, 4, 0.5, 1.0, 3, 1.7, 3.3], ndim - 2)
        if mode in MODES[2:6] and chance.random() < 0.5:
            options["align_corners"] = chance.random() < 0.5
        if "size" not in options and chance.random() < 0.2:
            options["recompute_scale_factor"] = True
        if mode in ("bilinear", "bicubic") and chance.random() < 0.3:
            options["antialias"] = True
        x = normal(*shape)
        done += compare(("interpolate", (), options), [x if chance.random() < 0.7 else x.astype(np.float64)], device)


def test_one_element_twice_as_large(device: str) -> None:
    """In front of it is that element, and 0 times the next one, which is the same: of inf NaN, as in PyTorch."""
    x = dt.tensor([[[float("inf")]]], device=device)
    assert str(dt.nn.functional.interpolate(x, scale_factor=2, mode="linear").tolist()) == "[[[nan, inf]]]"


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_interpolate_keeps_the_layout(mode: str, device: str) -> None:
    x = dt.tensor(normal(2, 5, 6, 3), device=device).permute(0, 3, 1, 2)
    for options in ({"scale_factor": 2}, {"size": (3, 4)}, {"size": (5, 6)}):
        got = dt.nn.functional.interpolate(x, mode=mode, **options)
        assert got.permute(0, 2, 3, 1).is_contiguous()
        assert dt.equal(got.contiguous(), dt.nn.functional.interpolate(x.contiguous(), mode=mode, **options))
    assert got.data_ptr() != x.data_ptr()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({}, ValueError, "either size or scale_factor"),
        ({"size": 2, "scale_factor": 2}, ValueError, "only one of"),
        ({"size": (2, 2, 2)}, ValueError, "same number of spatial"),
        ({"scale_factor": (2, 2, 2)}, ValueError, "same number of spatial"),
        ({"size": 2, "align_corners": True}, ValueError, "align_corners option"),
        ({"size": 2, "antialias": True}, ValueError, "Anti-alias"),
        ({"size": 2, "mode": "linear"}, NotImplementedError, "needs 3D"),
        ({"size": 2, "mode": "lanczos"}, NotImplementedError, "lanczos"),
        ({"size": 0}, RuntimeError, "greater than 0"),
        ({"scale_factor": float("nan")}, RuntimeError, "too large"),
        ({"size": 2, "recompute_scale_factor": True}, ValueError, "not meaningful"),
    ],
)
def test_interpolate_refuses(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        dt.nn.functional.interpolate(dt.ones(1, 2, 4, 4), **options)


def test_shuffles_and_folds(device: str) -> None:
    chance, done = random.Random(1), 0
    for _ in range(20):
        lead, factor = chance.choice([(), (2,), (2, 1)]), (chance.choice([1, 2, 3]),)
        done += compare(("pixel_shuffle", factor, {}), [normal(*lead, chance.choice([4, 8, 9]), 2, 3)], device)
        done += compare(("pixel_unshuffle", factor, {}), [normal(*lead, 2, chance.choice([4, 6]), 6)], device)
        done += compare(("channel_shuffle", factor, {}), [normal(2, 6, 3, *lead)], device)
        window = [of(chance, choices, 2) for choices in ([1, 2, 3], [1, 1, 2], [0, 1], [1, 2])]
        x = normal(*chance.choice([(), (2,)]), 2, 5, 6)
        if compare(("unfold", tuple(window), {}), [x], device):
            columns = torch.nn.functional.unfold(torch.tensor(x), *window).numpy()
            done += compare(("fold", ((5, 6), *window), {}), [columns], device)
    assert done > 45


LAYERS: list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = [
    ("Conv3d", (2, 4, 3), {"padding": 1, "groups": 2}, (1, 2, 4, 5, 6)),
    ("Conv3d", (2, 4, (1, 2, 3)), {"padding": 1, "padding_mode": "replicate", "bias": False}, (2, 4, 5, 6)),
    ("ConvTranspose1d", (4, 6, 3), {"stride": 2, "groups": 2}, (2, 4, 5)),
    ("ConvTranspose2d", (4, 6, (3, 4)), {"stride": 2, "padding": 1, "output_padding": (0, 1)}, (2, 4, 5, 6)),
    ("ConvTranspose2d", (4, 6, 3), {"dilation": 2, "bias": False}, (4, 5, 6)),
    ("ConvTranspose3d", (4, 2, 2), {"stride": 2}, (1, 4, 2, 3, 4)),
    ("MaxPool1d", (3,), {"stride": 2, "padding": 1, "ceil_mode": True}, (2, 3, 8)),
    ("MaxPool3d", ((1, 2, 2),), {"stride": 1}, (2, 3, 4, 5, 6)),
    ("AvgPool1d", (2,), {"padding": 1, "count_include_pad": False}, (3, 9)),
    ("AvgPool3d", (2, 1), {"divisor_override": 3}, (2, 3, 4, 5, 6)),
    ("AdaptiveAvgPool1d", (3,), {}, (2, 3, 8)),
    ("AdaptiveAvgPool3d", ((2, None, 3),), {}, (2, 3, 4, 5, 6)),
    ("AdaptiveMaxPool1d", (3,), {}, (2, 3, 8)),
    ("AdaptiveMaxPool2d", ((None, 3),), {}, (2, 3, 4, 8)),
    ("AdaptiveMaxPool3d", (2,), {}, (2, 3, 4, 5, 6)),
    ("LPPool1d", (2, 3), {"stride": 2}, (2, 3, 8)),
    ("LPPool2d", (2, (3, 2)), {"ceil_mode": True}, (2, 3, 8, 7)),
    ("LPPool3d", (2, (3, 2, 1)), {"stride": 2}, (2, 3, 4, 8, 7)),
    ("Upsample", (), {"scale_factor": 2}, (2, 3, 5)),
    ("Upsample", ((4, 9),), {"mode": "bilinear"}, (2, 3, 5, 6)),
    ("Upsample", (), {"scale_factor": (2, 1.5), "mode": "bicubic", "align_corners": True}, (2, 3, 5, 6)),
    ("UpsamplingNearest2d", (7,), {}, (2, 3, 5, 6)),
    ("UpsamplingBilinear2d", (), {"scale_factor": 2}, (2, 3, 5, 6)),
    ("Unfold", (3,), {"padding": 1}, (2, 3, 5, 6)),
    ("Fold", ((4, 4), (2, 2)), {"stride": 2}, (2, 8, 4)),
    ("PixelShuffle", (2,), {}, (2, 8, 3, 4)),
    ("PixelUnshuffle", (2,), {}, (2, 3, 4, 6)),
    ("ChannelShuffle", (2,), {}, (2, 6, 4)),
    *(
        (f"{kind}Pad{dims}d", (padding, *([3.5] if kind == "Constant" else [])), {}, (2, 3, *[5] * dims))
        for kind in ("Constant", "Zero", "Reflection", "Replication", "Circular")
        for dims in (1, 2, 3)
        for padding in (1, tuple(range(2 * dims - 1, -1, -1)) if dims < 3 else (1, 2, 0, 3, 2, 1))
    ),
]


def test_layers(device: str) -> None:
    for name, args, options, shape in LAYERS:
        ours, theirs = getattr(dt.nn, name)(*args, **options), getattr(torch.nn, name)(*args, **options)
        assert repr(ours) == repr(theirs)
        state = theirs.state_dict()
        assert list(ours.state_dict()) == list(state)
        ours.load_state_dict({k: dt.from_numpy(v.numpy().copy()) for k, v in state.items()})
        ours.to(device)
        x = normal(*shape)
        got, want = ours(dt.tensor(x, device=device)), theirs(torch.tensor(x))
        assert got.shape == tuple(want.shape), name
        np.testing.assert_allclose(got.detach().cpu().numpy(), want.detach().numpy(), 1e-4, 1e-4, err_msg=repr(ours))


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample(mode: str, device: str) -> None:
    for padding, aligned in itertools.product(("zeros", "border", "reflection"), (True, False)):
        for shape, grid in [
            ((2, 3, 4, 5), (2, 6, 7, 2)),
            ((1, 2, 1, 3), (1, 2, 5, 2)),
            ((2, 3, 3, 4, 5), (2, 2, 3, 4, 3)),
            ((0, 2, 3, 3), (0, 2, 2, 2)),
        ]:
            if mode != "bicubic" or len(shape) == 4:
                arrays = [normal(*shape), normal(*grid) * np.float32(1.3)]
                assert compare(("grid_sample", (mode, padding, aligned), {}), arrays, device)
    far = dt.full((1, 1, 4, 2), float("nan"), device=device)
    far[0, 0, 1] = 1e30
    far[0, 0, 2] = float("-inf")
    got = dt.nn.functional.grid_sample(dt.ones(1, 1, 2, 2, device=device), far, mode, align_corners=False)
    assert got.flatten()[1].item() == 0  # far away


def test_affine_grid_and_bilinear(device: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's, of one pixel
        for size, aligned in itertools.product([(2, 3, 4, 5), (2, 1, 1, 3), (2, 3, 2, 3, 4)], (True, False)):
            dims = len(size) - 2
            assert compare(("affine_grid", (size, aligned), {}), [normal(2, dims, dims + 1)], device)
    for lead in [(), (3,), (2, 3), (0,)]:
        arrays = [normal(*lead, 4), normal(*lead, 5), normal(3, 4, 5), normal(3)]
        assert compare(("bilinear", (), {}), arrays, device)
    for bad in ((1, 1, 4), (1, 1, 0, 4)):
        with pytest.raises((ValueError, NotImplementedError)):
            dt.nn.functional.affine_grid(dt.ones(1, 2, 3, device=device), bad)


LAZY: list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = [
    ("LazyLinear", (3,), {}, (2, 4)),
    ("LazyLinear", (3, False), {}, (4,)),
    ("LazyConv1d", (4, 3), {"groups": 2}, (2, 6, 8)),
    ("LazyConv2d", (4, 3), {"padding": 1, "bias": False}, (6, 5, 5)),
    ("LazyConv3d", (2, 2), {}, (1, 2, 3, 4, 5)),
    ("LazyConvTranspose1d", (4, 3), {"stride": 2}, (2, 6, 4)),
    ("LazyConvTranspose2d", (4, 3), {"groups": 2, "output_padding": 1, "stride": 2}, (2, 6, 4, 4)),
    ("LazyConvTranspose3d", (2, 2), {}, (1, 2, 2, 2, 2)),
    ("LazyBatchNorm1d", (), {}, (4, 3)),
    ("LazyBatchNorm2d", (), {"affine": False}, (4, 3, 2, 2)),
    ("LazyBatchNorm3d", (), {"track_running_stats": False}, (4, 3, 2, 2, 2)),
]


def test_lazy_layers(device: str) -> None:
    for name, args, options, shape in LAZY:
        ours, theirs = getattr(dt.nn, name)(*args, **options), getattr(torch.nn, name)(*args, **options)
        assert_same_text(ours, theirs)
        assert list(ours.state_dict()) == list(theirs.state_dict())
        held = list(ours.parameters())
        ours.to(device)
        x = normal(*shape)
        assert ours(dt.tensor(x, device=device)).shape == tuple(theirs(torch.tensor(x)).shape)
        assert type(ours).__name__ == type(theirs).__name__ == name.removeprefix("Lazy")
        assert_same_text(ours, theirs)
        assert all(a is b for a, b in zip(held, ours.parameters(), strict=True))
        assert all(value.device == dt.device(device) for value in ours.state_dict().values())
        late = dt.nn.Sequential(getattr(dt.nn, name)(*args, **options)).to(device)
        late.load_state_dict({f"0.{k}": dt.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()})
        ours.eval(), theirs.eval(), late.eval()
        got, want = late(dt.tensor(x, device=device)), theirs(torch.tensor(x))
        np.testing.assert_allclose(got.detach().cpu().numpy(), want.detach().numpy(), 1e-4, 1e-4, err_msg=name)


def test_a_lazy_layer_learns(device: str) -> None:
    net = dt.nn.Sequential(dt.nn.LazyConv2d(4, 3), dt.nn.ReLU(), dt.nn.Flatten(), dt.nn.LazyLinear(2)).to(device)
    optimizer = dt.optim.SGD(net.parameters(), lr=0.1)
    x = dt.tensor(normal(3, 2, 5, 5), device=device)
    first = net(x).square().mean()
    first.backward()
    optimizer.step()
    assert net(x).square().mean().item() < first.item()
    with pytest.raises(dt.ShapeMismatchError, match="LazyConv2d"):
        dt.nn.LazyConv2d(4, 3)(dt.ones(5))
    with pytest.raises(TypeError, match="LazyLinear"):
        dt.nn.LazyLinear(4)([1.0])


class Standardised(dt.nn.Conv2d):
    """As public programs write it: the weight is changed on its way."""

    def _conv_forward(self, input: Any, weight: Any, bias: Any) -> Any:
        return super()._conv_forward(input, weight - weight.mean((1, 2, 3), keepdim=True), bias)


def test_a_convolution_of_the_users_own(device: str) -> None:
    own = Standardised(2, 3, 3, padding=1, padding_mode="circular", device=device)
    x = dt.tensor(normal(1, 2, 5, 5), device=device)
    weight = own.weight - own.weight.mean((1, 2, 3), keepdim=True)
    want = dt.conv2d(dt.pad(x, (1, 1, 1, 1), "circular"), weight, own.bias)
    assert dt.allclose(own(x), want)
    assert isinstance(own, dt.nn.conv._ConvNd)
    assert dt.nn._modules_utils._pair(3) == (3, 3) and dt.nn._modules_utils._triple([1, 2, 3]) == (1, 2, 3)


def test_output_size(device: str) -> None:
    for dims in (1, 2, 3):
        ours = getattr(dt.nn, f"ConvTranspose{dims}d")(2, 3, 3, stride=2, padding=1, device=device)
        x = dt.ones(1, 2, *[4] * dims, device=device)
        for size in (7, 8):
            assert ours(x, output_size=[size] * dims).shape == (1, 3, *[size] * dims)
            assert ours(x, output_size=[1, 3] + [size] * dims).shape == (1, 3, *[size] * dims)
        with pytest.raises(ValueError, match="valid sizes range"):
            ours(x, output_size=[9] * dims)
        with pytest.raises(ValueError, match="elements"):
            ours(x, output_size=[9] * (dims + 1))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves(dtype: str, device: str) -> None:
    f = dt.nn.functional
    x, volume = (dt.tensor(normal(2, 4, *[6] * n), device=device) for n in (2, 3))
    kernel, block = dt.tensor(normal(4, 3, 3, 3), device=device), dt.tensor(normal(4, 3, 3, 3, 3), device=device)
    narrow = getattr(dt, dtype)
    for call, arrays in [
        (lambda a, w: f.conv_transpose2d(a, w, stride=2), (x, kernel)),
        (lambda a, w: f.conv_transpose3d(a, w), (volume, block)),
        (lambda a, w: f.conv3d(a, w.transpose(0, 1)), (volume, block)),
        (lambda a, _: f.avg_pool3d(a, 3), (volume, block)),
        (lambda a, _: f.interpolate(a, scale_factor=2, mode="bilinear"), (x, kernel)),
        (lambda a, _: f.fold(f.unfold(a, 3), (6, 6), 3), (x, kernel)),
    ]:
        got = call(*(a.to(narrow) for a in arrays))
        assert got.dtype is narrow
        want = call(*(a.to(narrow).float() for a in arrays))
        error = (got.float() - want).abs().max().item()
        assert error <= 0.02 * want.abs().max().item()


def test_state_between_lazy_modules() -> None:
    """As in PyTorch: between two that have had no call nothing changes; one that has had a call refuses the other."""

    def made(called: bool) -> dt.nn.Sequential:
        net = dt.nn.Sequential(dt.nn.LazyConv1d(4, 1), dt.nn.LazyBatchNorm1d(), dt.nn.Flatten(), dt.nn.LazyLinear(3))
        if called:
            net(dt.rand(2, 5, 6))
        return net

    x = dt.rand(2, 5, 6)
    target = made(False)
    target.load_state_dict(made(False).state_dict())
    assert isinstance(target[0], dt.nn.LazyConv1d) and isinstance(target[3], dt.nn.LazyLinear)
    assert target(x).shape == (2, 3) and target[3].in_features == 24

    with pytest.raises(RuntimeError, match="size mismatch for 0.weight"):
        made(True).load_state_dict(made(False).state_dict())

    source, target = made(True).eval(), made(False).eval()
    dt.manual_seed(3)
    want = dt.rand(3).tolist()
    dt.manual_seed(3)
    target.load_state_dict(source.state_dict())
    assert dt.rand(3).tolist() == want  # no random number is drawn for what is loaded
    assert target(x).tolist() == source(x).tolist()
    target = made(True).eval()
    target.load_state_dict(source.state_dict())
    assert target(x).tolist() == source(x).tolist()


@pytest.mark.parametrize(("shape", "factor"), [((1, 2, 3, 3), 1), ((1, 4, 1, 1), 2), ((1, 4, 2, 2), 2)])
def test_shuffled_pixels_are_no_view(shape: tuple[int, ...], factor: int) -> None:
    x = dt.ones(shape)
    y = dt.nn.functional.pixel_shuffle(x, factor)
    dt.nn.functional.pixel_unshuffle(y, factor).zero_()
    assert y.min() == 1
    y.zero_()
    assert x.min() == 1
