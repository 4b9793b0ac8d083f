"""The ops that are composed of others, against slow references, on every device and dtype."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import formats
import nn_reference as slow
import numpy as np
import pytest
from formats import FLOATS
from support import bits_of, from_bits, name_of, no_transfers, wide_of

import devtensor as dt
from devtensor._diagnosis.sources import file_name
from devtensor.nn import functional as F

# Relative to the largest result: a few roundings of the dtype itself, or of float32 inside.
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 3e-6, "float64": 1e-13}


def values(*shape: int, seed: int = 0, dtype: str = "float32") -> np.ndarray:
    """Numbers of about 1 that the dtype holds exactly, as float64."""
    raw = np.random.default_rng(seed).standard_normal(shape)
    return formats.round_float(raw, dtype)


def put(x: np.ndarray, dtype: str, device: str) -> dt.DeviceArray:
    wide = x if dtype in FLOATS else x.astype(object)
    return from_bits(formats.wide_to_bits(wide, dtype), dtype, device)


def check(got: dt.DeviceArray, want: np.ndarray, dtype: str, device: str) -> None:
    want = np.asarray(want, dtype=np.float64)
    assert name_of(got.dtype) == dtype
    assert str(got.device) == device
    assert got.shape == want.shape
    scale = np.max(np.abs(want[np.isfinite(want)]), initial=1.0)
    np.testing.assert_allclose(wide_of(got).astype(float), want, rtol=0, atol=TOLERANCE.get(dtype, 0) * scale)


CONV1D: list[dict[str, Any]] = [
    {},
    {"stride": 2, "padding": 1},
    {"dilation": 2},
    {"groups": 2, "padding": 2},
    {"stride": (3,), "padding": (1,), "dilation": (1,)},
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("options", CONV1D, ids=str)
def test_conv1d(options: dict[str, Any], dtype: str, device: str) -> None:
    x, b = values(2, 4, 9, dtype=dtype), values(6, seed=2, dtype=dtype)
    w = values(6, 4 // options.get("groups", 1), 3, seed=1, dtype=dtype)
    plain = {k: v[0] if isinstance(v, tuple) else v for k, v in options.items()}
    arrays = [put(a, dtype, device) for a in (x, w, b)]
    check(dt.conv1d(*arrays, **options), slow.conv1d(x, w, b, **plain), dtype, device)
    check(dt.conv1d(arrays[0][0], arrays[1], **options), slow.conv1d(x[0], w, **plain), dtype, device)


@pytest.mark.parametrize("taps", [1, 2, 3, 4])
def test_conv1d_same_padding(taps: int, device: str) -> None:
    x, w = values(1, 2, 7), values(3, 2, taps, seed=1)
    total = taps - 1
    wide = np.pad(x, ((0, 0), (0, 0), (total // 2, total - total // 2)))
    got = dt.conv1d(put(x, "float32", device), put(w, "float32", device), padding="same")
    check(got, slow.conv1d(wide, w), "float32", device)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(3, 4), (2, 4, 5), (2, 4, 3, 5), (0, 4, 2)])
def test_batch_norm(shape: tuple[int, ...], dtype: str, device: str) -> None:
    x, mean, weight, bias = (values(*s, seed=i, dtype=dtype) for i, s in enumerate([shape, (4,), (4,), (4,)]))
    var = np.abs(values(4, seed=9, dtype=dtype)) + 0.5
    var = formats.round_float(var, dtype)
    arrays = [put(a, dtype, device) for a in (x, mean, var, weight, bias)]
    check(F.batch_norm(*arrays), slow.batch_norm(x, mean, var, weight, bias), dtype, device)
    check(F.batch_norm(*arrays[:3], eps=0.1), slow.batch_norm(x, mean, var, eps=0.1), dtype, device)
    if not x.size:
        return
    batch_mean, batch_var, unbiased = slow.batch_statistics(x)
    got = F.batch_norm(*arrays, training=True, momentum=0.25)
    check(got, slow.batch_norm(x, batch_mean, batch_var, weight, bias), dtype, device)
    check(arrays[1], 0.75 * mean + 0.25 * batch_mean, dtype, device)
    check(arrays[2], 0.75 * var + 0.25 * unbiased, dtype, device)


def odd_values(*shape: int, dtype: str) -> np.ndarray:
    """Numbers, some of them zeros with a sign, infinite, NaN, subnormal or next to the largest."""
    found = np.array(values(*shape, seed=5, dtype=dtype))
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 6e-8, -6e-8, 6e4, 1e-42 if dtype == "float32" else 2**-14]
    found.reshape(-1)[::11] = np.resize(special, found.reshape(-1)[::11].shape)
    return formats.round_float(found, dtype)


ARRANGED: dict[str, Callable[[dt.DeviceArray], dt.DeviceArray]] = {
    "channels first": lambda x: x,
    "channels last": lambda x: x.movedim(1, -1).contiguous().movedim(-1, 1),
    "half of each row": lambda x: dt.cat([x, x], -1)[..., x.shape[-1] :],
    "every second": lambda x: dt.stack([x, -x], -1)[..., 0],
    "batch last": lambda x: x.movedim(0, -1).contiguous().movedim(-1, 0),
    "behind an element": lambda x: dt.cat([x.reshape(-1)[:1], x.reshape(-1)])[1:].reshape(x.shape),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape", [(3, 4), (2, 5, 7), (700, 3), (2, 33, 5, 7), (9, 16, 17, 3), (1, 1, 2, 3), (3, 600, 5)]
)
@pytest.mark.parametrize("layout", ARRANGED)
def test_batch_norm_rounds_after_each_operation(layout: str, shape: tuple[int, ...], dtype: str, device: str) -> None:
    """x * scale + shift to the last bit: in no set of instructions are the two fused."""
    c = shape[1]
    x = odd_values(*shape, dtype=dtype)
    mean, weight, bias = (values(c, seed=i, dtype=dtype) for i in range(3))
    var = formats.round_float(np.abs(values(c, seed=9, dtype=dtype)) + 0.5, dtype)
    wide = np.float64 if dtype == "float64" else np.float32
    across = (1, c) + (1,) * (len(shape) - 2)
    arrays = [put(a, dtype, device) for a in (x, mean, var, weight, bias)]
    arrays[0] = ARRANGED[layout](arrays[0])
    scale = 1 / np.sqrt(var.astype(wide) + wide(1e-5))
    for given in ((), (weight,), (weight, bias)):
        factor = scale * given[0].astype(wide) if given else scale
        offset = mean.astype(wide) * factor
        shift = given[1].astype(wide) - offset if given[1:] else -offset
        with np.errstate(all="ignore"):
            want = x.astype(wide) * factor.reshape(across) + shift.reshape(across)
        want = put(formats.round_float(want.astype(np.float64), dtype), dtype, device)
        got = F.batch_norm(*arrays[: 3 + len(given)])
        assert got.dtype == arrays[0].dtype
        assert got.is_contiguous() or layout in ("channels last", "batch last")
        same = (bits_of(got) == bits_of(want)) | (np.isnan(wide_of(got)) & np.isnan(wide_of(want)))
        assert same.all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 5)])
def test_layer_norm(shape: tuple[int, ...], dtype: str, device: str) -> None:
    x = values(2, 3, 5, dtype=dtype)
    weight, bias = values(*shape, seed=1, dtype=dtype), values(*shape, seed=2, dtype=dtype)
    arrays = [put(a, dtype, device) for a in (x, weight, bias)]
    check(F.layer_norm(arrays[0], shape, *arrays[1:]), slow.layer_norm(x, shape, weight, bias), dtype, device)
    check(F.layer_norm(arrays[0], shape, eps=0.5), slow.layer_norm(x, shape, eps=0.5), dtype, device)
    with no_transfers():
        F.layer_norm(arrays[0], shape, *arrays[1:])


LOSSES: list[dict[str, Any]] = [
    {"shape": (4, 5), "target": (4,)},
    {"shape": (4, 5, 3, 2), "target": (4, 3, 2)},
    {"shape": (5,), "target": ()},
    {"shape": (4, 5), "target": (4,), "weighted": True},
    {"shape": (4, 5, 3), "target": (4, 3), "weighted": True, "ignore_index": 2},
]


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("row", LOSSES, ids=str)
def test_nll_and_cross_entropy(row: dict[str, Any], dtype: str, reduction: Any, device: str) -> None:
    x = values(*row["shape"], dtype=dtype)
    target = np.random.default_rng(3).integers(0, 5, row["target"])
    options: dict[str, Any] = {"reduction": reduction}
    given: dict[str, Any] = {"reduction": reduction}
    if "ignore_index" in row:
        target.flat[0] = options["ignore_index"] = given["ignore_index"] = row["ignore_index"]
    if "weighted" in row:
        options["weight"] = np.abs(values(5, seed=5, dtype=dtype))
        given["weight"] = put(options["weight"], dtype, device)
    a, t = put(x, dtype, device), put(np.asarray(target), "int64", device)
    check(F.nll_loss(a, t, **given), slow.nll_loss(x, target, **options), dtype, device)
    check(F.cross_entropy(a, t, **given), slow.cross_entropy(x, target, **options), dtype, device)
    smooth = {"label_smoothing": 0.2}
    want = slow.cross_entropy(x, target, **options, **smooth)
    check(F.cross_entropy(a, t, **given, **smooth), want, dtype, device)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_cross_entropy_of_probabilities(reduction: Any, device: str) -> None:
    for dtype in FLOATS:
        x, weight = values(4, 5, 2, dtype=dtype), np.abs(values(5, seed=5, dtype=dtype))
        shares = formats.round_float(np.random.default_rng(1).dirichlet(np.ones(5), (4, 2)).swapaxes(1, 2), dtype)
        a, t, w = (put(v, dtype, device) for v in (x, shares, weight))
        for smoothing in (0.0, 0.3):
            want = slow.cross_entropy(x, shares, reduction, weight=weight, label_smoothing=smoothing)
            got = F.cross_entropy(a, t, w, reduction=reduction, label_smoothing=smoothing)
            check(got, want, dtype, device)


def test_a_class_out_of_range(device: str) -> None:
    x, weight = dt.zeros(2, 3, device=device), dt.ones(3, device=device)
    for loss in (F.cross_entropy, F.nll_loss):
        for wrong in (3, -1, 2**40):
            target = dt.array([0, wrong], device=device)
            with pytest.raises(IndexError, match=rf"Target {wrong} is out of bounds: there are 3 classes") as caught:
                loss(x, target, weight).item()
            if device == "cpu":
                assert [(o.name, o.shape) for o in caught.value.operands] == [("input", (2, 3)), ("target", (2,))]
            else:  # the next wait tells it, and which call it was
                line = inspect.getsourcelines(test_a_class_out_of_range)[1] + 6
                assert f"({loss.__name__} on {device}, which tells it" in str(caught.value)
                assert str(caught.value).endswith(f"the call is at {file_name(__file__)}:{line}")
            assert loss(x, target, ignore_index=wrong, reduction="none").tolist()[1] == 0


def test_losses_move_nothing(cuda: str) -> None:
    x, target = dt.zeros(2, 3, device=cuda), dt.zeros(2, dtype=dt.int64, device=cuda)
    with no_transfers():
        F.cross_entropy(x, target)
        F.mse_loss(x, x)
        dt.var(x)
        dt.gather(x, 1, target.reshape(2, 1))
        F.embedding(target, x)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_distances(dtype: str, reduction: str, device: str) -> None:
    x, y = values(3, 4, dtype=dtype), values(3, 4, seed=1, dtype=dtype)
    a, b = put(x, dtype, device), put(y, dtype, device)
    reduce: Callable[[np.ndarray], Any] = {"none": lambda v: v, "mean": np.mean, "sum": np.sum}[reduction]
    check(F.mse_loss(a, b, reduction=reduction), reduce((x - y) ** 2), dtype, device)  # type: ignore[arg-type]
    check(F.l1_loss(a, b, reduction=reduction), reduce(np.abs(x - y)), dtype, device)  # type: ignore[arg-type]


def test_other_sizes_broadcast_with_a_warning(device: str) -> None:
    x, y = dt.ones(3, 1, device=device), dt.zeros(3, device=device)
    with pytest.warns(UserWarning, match=r"target size \(\(3,\)\) that is different to the input size \(\(3, 1\)\)"):
        assert F.mse_loss(x, y, reduction="sum").item() == 9


PADS: list[tuple[tuple[int, ...], tuple[int, ...], str]] = [
    ((3, 4), (1, 2), "constant"),
    ((3, 4), (1, 2, 3, 0), "constant"),
    ((3, 4), (-1, 2, 0, -2), "constant"),
    ((3, 4), (-1, -2), "constant"),
    ((2, 3, 4), (1, 0, 0, 1, 2, 2), "constant"),
    ((0, 2), (1, 1, 2, 2), "constant"),
    ((3, 4), (0, 0), "constant"),
    ((), (), "constant"),
    *[((2, 3, 4), p, m) for p in ((1, 2), (2, 0, 1, 2), (-1, 1)) for m in ("reflect", "replicate", "circular")],
    ((1, 1, 3), (7, 7), "replicate"),
]


@pytest.mark.parametrize(("shape", "amounts", "mode"), PADS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "int16", "bool", "bfloat16"])
def test_pad(shape: tuple[int, ...], amounts: tuple[int, ...], mode: str, dtype: str, device: str) -> None:
    x = np.arange(math.prod(shape)).reshape(shape) % (2 if dtype == "bool" else 99) * 1.0
    a = put(x, dtype, device)
    got = dt.pad(a, amounts, mode) if mode != "constant" else dt.pad(a, amounts, value=1)
    check(got, slow.pad(x, amounts, mode, 1.0), dtype, device)
    assert got.data_ptr() != a.data_ptr() or got.numel() == 0


INDEX_DTYPES = ["float32", "bfloat16", "float16", "float64", "int64", "uint8", "bool"]


@pytest.mark.parametrize("dtype", INDEX_DTYPES)
def test_gather_select_take(dtype: str, device: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2 if dtype == "bool" else 120, (3, 5, 4)) * 1.0
    a = put(x, dtype, device)
    for dim in (0, 1, 2, -1):
        for shape in ((3, 5, 4), (2, 3, 1), (1, 2, 4), (0, 1, 1)):
            index = rng.integers(0, x.shape[dim], shape)
            got = dt.gather(a, dim, put(index, "int64", device))
            check(got, slow.gather(x, dim % 3, index), dtype, device)
        for n in (0, 1, 7):
            index = rng.integers(0, x.shape[dim], n)
            got = a.index_select(dim, put(index, "int32", device))
            check(got, np.take(x, index, axis=dim), dtype, device)
    index = rng.integers(-60, 60, (2, 3))
    check(a.take(put(index, "int64", device)), np.take(x.reshape(-1), index), dtype, device)


def test_gather_keeps_what_is_not_finite(device: str) -> None:
    x = dt.array([[1.0, float("inf"), float("nan"), -float("inf")]], device=device)
    index = dt.array([[1, 2, 3, 0, 0]], device=device)
    assert str(x.gather(1, index).tolist()) == "[[inf, nan, -inf, 1.0, 1.0]]"


def test_an_index_out_of_range(device: str) -> None:
    x, wrong = dt.ones(3, 2, device=device), dt.array([0, 3], device=device)
    calls: list[Callable[[], dt.DeviceArray]] = [
        lambda: x.index_select(0, wrong),
        lambda: F.embedding(wrong, x),
        lambda: x.gather(0, wrong.reshape(2, 1)),
    ]
    for call in calls:
        with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size 3"):
            call().cpu()


@pytest.mark.parametrize("dtype", FLOATS)
def test_embedding(dtype: str, device: str) -> None:
    weight = values(7, 3, dtype=dtype)
    for shape in ((), (4,), (2, 5), (0, 2)):
        ids = np.random.default_rng(1).integers(0, 7, shape)
        got = F.embedding(put(np.asarray(ids), "int64", device), put(weight, dtype, device))
        check(got, weight[ids], dtype, device)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [None, 0, -1, (0, 2), (0, 1, 2)])
def test_statistics(dim: Any, keepdim: bool, dtype: str, device: str) -> None:
    x = values(3, 4, 5, dtype=dtype)
    a = put(x, dtype, device)
    for correction in (0, 1, 2):
        want = np.var(x, axis=dim, ddof=correction, keepdims=keepdim)
        check(a.var(dim, correction=correction, keepdim=keepdim), want, dtype, device)
        check(a.std(dim, correction=correction, keepdim=keepdim), np.sqrt(want), dtype, device)
    everything = dim or (0, 1, 2) if dim != 0 else 0
    want = np.log(np.exp(x).sum(everything, keepdims=keepdim))
    check(a.logsumexp(everything, keepdim), want, dtype, device)
    for p in (0, 1, 2, 3, math.inf, -math.inf):
        if dim is not None:
            check(a.norm(p, dim, keepdim), slow.norm(x, p, dim, keepdim), dtype, device)


def test_statistics_of_little(device: str) -> None:
    assert np.isnan(dt.var(dt.ones(1, device=device)).item())
    assert dt.var(dt.ones(1, device=device), unbiased=False).item() == 0
    assert np.isnan(dt.array(2.0, device=device).var().item())
    assert dt.array(2.0, device=device).var(correction=0).item() == 0
    assert np.isnan(dt.zeros(0, device=device).std().item())
    assert dt.array([1.0, 3.0], device=device).var(False).item() == 1
    assert dt.ones(2, 3, device=device).var(axis=0, keepdims=True).shape == (1, 3)
    assert dt.array([-math.inf, -math.inf], device=device).logsumexp(0).item() == -math.inf
    assert dt.array([1e4, 1e4], device=device).logsumexp(0).item() == pytest.approx(1e4 + math.log(2))
    assert dt.zeros(0, device=device).logsumexp(0).item() == -math.inf
    assert dt.array([3.0, 4.0], device=device).norm().item() == 5


@pytest.mark.parametrize("dtype", INDEX_DTYPES)
def test_flip_and_masked_fill(dtype: str, device: str) -> None:
    x = np.random.default_rng(0).integers(0, 2, (2, 3, 4)) * 1.0
    a = put(x, dtype, device)
    for dims in (0, 1, (0, 2), (-1,), (0, 1, 2), ()):
        check(dt.flip(a, dims), np.flip(x, dims), dtype, device)
    check(a.flip(0, 1), np.flip(x, (0, 1)), dtype, device)
    mask = np.random.default_rng(1).integers(0, 2, (3, 1)) * 1.0
    want = np.where(np.broadcast_to(mask, x.shape) > 0, 1, x)
    check(a.masked_fill(put(mask, "bool", device), 1), want, dtype, device)
    check(a.masked_fill(put(mask, "bool", device), a.new_ones(())), want, dtype, device)


LAYOUTS: dict[str, Callable[[dt.DeviceArray], dt.DeviceArray]] = {
    "flip": lambda x: x.flip(1, -1),
    **{
        mode: functools.partial(dt.pad, pad=(1, -1, 2, 0), mode=mode)
        for mode in ("constant", "reflect", "replicate", "circular")
    },
    "cat": lambda x: dt.cat([x, x], 1),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_channels_last_stays(name: str, device: str) -> None:
    x = dt.arange(2 * 3 * 4 * 5, device=device).reshape(2, 3, 4, 5)
    last = x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    want, got = LAYOUTS[name](x), LAYOUTS[name](last)
    assert dt.equal(got, want) and want.is_contiguous()
    assert got.permute(0, 2, 3, 1).is_contiguous() and not got.is_contiguous()
    assert dt.cat([last, x]).is_contiguous()


def test_what_circular_padding_cannot_do(device: str) -> None:
    for amounts in ((4, 0), (-3, 1), (-1, 3, 0, 9)):
        with pytest.raises(dt.ShapeMismatchError, match="pad: input"):
            dt.pad(dt.zeros(2, 3, device=device), amounts, "circular")


def test_roll_and_repeat(device: str) -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    a = dt.from_numpy(x).to(device)
    with no_transfers():
        rolled = [a.roll(-5), dt.roll(a, (1, 7), (0, -1)), a.roll(0, 1)]
        repeated = [a.repeat(1, 1, 1), a[:1].repeat(3, 2, 1, 2), a.repeat((0, 1, 2)), a.repeat_interleave(2, -1)]
        flat = dt.repeat_interleave(a, repeats=3)
    for got, want in zip(rolled, (np.roll(x, -5), np.roll(x, (1, 7), (0, -1)), x), strict=True):
        check(got, want, "float64", device)
        assert got.data_ptr() != a.data_ptr()
    wants = x, np.tile(x[:1], (3, 2, 1, 2)), np.zeros((0, 3, 8)), np.repeat(x, 2, -1)
    for got, want in zip(repeated, wants, strict=True):
        check(got, want, "float64", device)
    check(flat, np.repeat(x, 3), "float64", device)
    one = dt.zeros(1, device=device).repeat(3)
    one[0] = 1
    assert one.tolist() == [1, 0, 0]
    with pytest.raises(RuntimeError, match="can not be smaller"):
        a.repeat(2)
    with pytest.raises(RuntimeError, match="from 0, not -1"):
        a.repeat(1, -1, 1)
    assert a.repeat(*[2] * 8).shape == (2, 2, 2, 2, 2, 4, 6, 8)
    with pytest.raises(RuntimeError, match="must align"):
        a.roll((1, 2), 0)
    with pytest.raises(IndexError, match="out of range"):
        a.roll(1, 3)
    with pytest.raises(dt.ShapeMismatchError, match=r"Expected repeats to have shape \(24,\)"):
        a.repeat_interleave(dt.array([1, 2], device=device))


def test_ravel_is_contiguous(device: str) -> None:
    """A view only where the elements lie side by side, so that a write to it is one to x there and nowhere else."""
    x = dt.arange(6.0, device=device).reshape(2, 3)
    for given, is_view in ((x, True), (x[1], True), (x[:, 0], False), (x.t(), False), (x.expand(2, 2, 3), False)):
        flat = given.ravel()
        assert flat.is_contiguous() and flat.tolist() == given.flatten().tolist()
        assert (flat.data_ptr() == given.data_ptr()) == is_view


def test_other_names(device: str) -> None:
    """PyTorch's and NumPy's second names, and its methods for what is a function here."""
    x = dt.array([[-3.0, 1.0]], device=device)
    assert dt.clip(x, 0, 2).tolist() == x.clip(0, 2).tolist() == [[0, 1]]
    assert dt.absolute(x).tolist() == x.absolute().tolist() == [[3, 1]]
    assert x.swapaxes(0, 1).shape == x.moveaxis(0, 1).shape == dt.swapaxes(x, 0, 1).shape == (2, 1)
    assert dt.concat([x, x]).shape == dt.concatenate([x, x]).shape == (2, 2)
    assert x.expand_as(dt.ones(4, 2)).shape == (4, 2) and x.view_as(dt.ones(2)).shape == x.ravel().shape == (2,)
    assert x.is_floating_point() and not dt.is_floating_point(x.type_as(dt.ones(1, dtype=dt.int8)))
    assert (dt.pi, dt.e, dt.inf) == (math.pi, math.e, math.inf) and math.isnan(dt.nan)
    y = dt.zeros(1000, device=device)
    assert y.normal_(5.0, 0.1) is y and abs(y.mean().item() - 5) < 0.1
    assert y.uniform_(2, 3) is y and 2 <= y.amin().item() < y.amax().item() < 3


def test_dropout(device: str) -> None:
    x = dt.ones(100, 100, device=device)
    assert F.dropout(x, 0.5, training=False) is x
    assert F.dropout(x, 0.0) is x
    assert F.dropout(x, 1.0).sum().item() == 0
    y = F.dropout(x, 0.25)
    kept = int((y != 0).sum())
    assert 7200 < kept < 7800
    assert y.amax().item() == pytest.approx(1 / 0.75)
    assert y.sum().item() == pytest.approx(kept / 0.75, rel=1e-5)
    dt.manual_seed(1)
    first = F.dropout(x, 0.5)
    dt.manual_seed(1)
    assert dt.equal(F.dropout(x, 0.5), first)
    assert F.dropout(x, 0.5, inplace=True) is x
    assert x.amin().item() == 0
    with pytest.raises(ValueError, match="between 0 and 1"):
        F.dropout(x, 1.5)


def test_dropout_is_the_same_on_every_device(cuda: str) -> None:
    dt.manual_seed(3)
    host = F.dropout(dt.ones(50))
    dt.manual_seed(3)
    assert F.dropout(dt.ones(50, device=cuda)).tolist() == host.tolist()


def test_one_hot_and_normalize(device: str) -> None:
    labels = dt.array([[0, 2], [1, 0]], device=device)
    assert F.one_hot(labels, 3).tolist() == np.eye(3, dtype=int)[[[0, 2], [1, 0]]].tolist()
    assert F.one_hot(labels).shape == (2, 2, 3)
    got = F.normalize(dt.array([[3.0, 4.0], [0.0, 0.0]], device=device))
    np.testing.assert_allclose(got.tolist(), [[0.6, 0.8], [0, 0]], rtol=1e-6)
    x = dt.array([[2.0, 2.0], [2.0, -2.0]], device=device)
    for dims in ((0, 1), [-1, 0], None):
        assert F.normalize(x, dim=dims).tolist() == [[0.5, 0.5], [0.5, -0.5]]


def test_activations_in_place(device: str) -> None:
    for name in ("relu", "relu6", "leaky_relu", "elu", "silu", "hardtanh"):
        x = dt.randn(20, device=device) * 4
        want = getattr(dt, name)(x).tolist()
        assert getattr(F, name)(x).tolist() == want
        assert getattr(F, name)(x, inplace=True) is x
        assert x.tolist() == want


@pytest.mark.parametrize("shape, taken", [((), 0), ((3,), 0), ((2, 3), 1), ((2, 3, 4), 0), ((2, 3, 4, 5), 1)])
def test_softmax_without_dim_says_which_it_took(shape: tuple[int, ...], taken: int) -> None:
    x = dt.rand(*shape) if shape else dt.tensor(0.5)
    for function, layer in ((dt.softmax, dt.nn.Softmax()), (dt.log_softmax, dt.nn.LogSoftmax())):
        with pytest.warns(UserWarning, match=f"include dim={taken} as an argument"):
            result = function(x)
        with pytest.warns(UserWarning, match="Implicit dimension choice"):
            assert layer(x).tolist() == result.tolist() == function(x, taken).tolist()


@pytest.mark.parametrize("n", [127, 128, 1000])
def test_a_norm_of_the_largest_numbers(n: int) -> None:
    """Four of them have no sum in float32: a norm of many goes the way of a norm of few."""
    x = dt.full((2, n), 2e38)
    assert F.layer_norm(x, (n,)).tolist() == [[0.0] * n] * 2


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64])
@pytest.mark.parametrize(("m", "n", "k"), [(196, 96, 64), (64, 100, 256), (65, 128, 257), (40, 64, 512), (40, 64, 513)])
def test_a_bias_is_added_to_sums_that_are_there(m: int, n: int, k: int, dtype: dt.dtype) -> None:
    """Whoever adds it: to the same bits as by itself."""
    x, weight, bias = dt.randn(m, k, dtype=dtype), dt.randn(n, k, dtype=dtype), dt.randn(n, dtype=dtype)
    assert (F.linear(x, weight, bias) == F.linear(x, weight) + bias).all()
