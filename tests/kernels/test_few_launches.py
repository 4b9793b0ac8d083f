"""Statistics, normalised channels and moved places by kernels of their own: beside the host, which makes them of other
ops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import devtensor as dt

F = dt.nn.functional
CLOSE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 3e-6, "float64": 1e-12}


def numbers(shape: tuple[int, ...], dtype: str, middle: float = 0.0, seed: int = 0) -> dt.DeviceArray:
    return dt.array(np.random.default_rng(seed).normal(middle, 1, shape)).to(getattr(dt, dtype))


def assert_near(found: dt.DeviceArray, wanted: dt.DeviceArray, most: float) -> None:
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    p, q = (a.detach().cpu().to(dt.float64).numpy() for a in (found, wanted))
    np.testing.assert_allclose(p, q, rtol=most, atol=3 * most * max(1.0, float(np.nanmax(np.abs(q), initial=0))))


def assert_same(found: dt.DeviceArray, wanted: dt.DeviceArray) -> None:
    assert (found.shape, found.dtype, found.stride()) == (wanted.shape, wanted.dtype, wanted.stride())
    p, q = (a.detach().cpu().to(dt.float64).numpy() for a in (found, wanted))
    assert np.array_equal(p, q, equal_nan=True)


# ---------------------------------------------------------------- variances


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("shape", ((5,), (3, 7), (70, 33, 5), (1, 50000), (4000, 40)))
def test_variances(shape: tuple[int, ...], dtype: str, cuda: str) -> None:
    x = numbers(shape, dtype, 3.0)
    for dims in (None, 0, -1, (0, -1) if len(shape) > 1 else (0,)):
        for keep, correction in ((False, 1), (True, 0), (False, 5.5)):
            for op in (dt.var, dt.std):
                wanted = op(x, dims, correction=correction, keepdim=keep)
                assert_near(op(x.to(cuda), dims, correction=correction, keepdim=keep), wanted, CLOSE[dtype])
    if len(shape) > 1:
        turned = x.transpose(0, 1)
        assert_near(turned.to(cuda).var(0), turned.var(0), CLOSE[dtype])


def test_a_variance_far_from_0_is_that_of_two_passes(cuda: str) -> None:
    x = np.random.default_rng(1).normal(1e8, 1, (3, 100000))
    x[1, 0] = -1e8  # what a thread compares others with is far from them
    for axis in (None, 0, 1):
        found = dt.from_numpy(x.copy()).to(cuda).var(axis)
        np.testing.assert_allclose(found.cpu().numpy(), x.var(axis, ddof=1), 1e-10)


@pytest.mark.parametrize("values", ([1.0], [1.0, np.nan], [1.0, np.inf], [1e200, -1e200, 3.0], [2.5] * 9))
def test_variances_of_numbers_that_are_none(values: list[float], cuda: str) -> None:
    x = dt.tensor(values, dtype=dt.float64)
    for found, wanted in ((x.to(cuda).var(), x.var()), (x.to(cuda).std(), x.std())):
        assert np.array_equal(found.cpu().numpy(), wanted.numpy(), equal_nan=True)


# ---------------------------------------------------------------- channels


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("shape", ((4, 3, 5, 5), (2, 5, 7, 7), (3, 2, 100, 101), (1, 3, 64), (3, 4), (2, 3, 70, 70, 3)))
@pytest.mark.parametrize("affine", (True, False))
def test_batch_norm(shape: tuple[int, ...], dtype: str, affine: bool, cuda: str) -> None:
    channels = shape[1:2]
    x, grad = numbers(shape, dtype, 3.0), numbers(shape, dtype, seed=1)
    parts = [numbers(channels, dtype, 1.0, seed) for seed in (2, 3)] if affine else []
    running = [numbers(channels, dtype), numbers(channels, dtype).abs() + 0.5]

    def all_of(device: str, x: dt.DeviceArray) -> tuple[list[dt.DeviceArray], list[dt.DeviceArray]]:
        mean, var = (a.clone().to(device) for a in running)
        inputs = [a.to(device).requires_grad_(True) for a in (x.clone(), *(p.clone() for p in parts))]
        weight, bias = inputs[1:] if affine else (None, None)
        with dt.no_grad():
            in_use = F.batch_norm(inputs[0], mean, var, weight, bias)
        trained = F.batch_norm(inputs[0], mean, var, weight, bias, True, 0.1)
        return [in_use], [trained, mean, var, *dt.autograd.grad(trained, inputs, grad.to(device))]

    layouts = [x, x.transpose(0, -1).contiguous().transpose(0, -1)]
    layouts += [x.contiguous(memory_format=dt.channels_last)] if len(shape) == 4 else []
    for laid in layouts:
        host, device = all_of("cpu", laid), all_of(cuda, laid)
        assert_same(device[0][0], host[0][0])
        for found, wanted in zip(device[1], host[1], strict=True):
            assert_near(found, wanted, 2 * CLOSE[dtype])


@pytest.mark.parametrize("n", (40, 20000))
@pytest.mark.parametrize("place", (0, 39))
def test_a_mean_that_is_infinite(n: int, place: int, cuda: str) -> None:
    x = np.ones((2, 2, n), np.float32)
    x[0, 0, place], x[1, 1, -1] = np.inf, -np.inf
    for device in ("cpu", cuda):
        mean, var = dt.zeros(2, device=device), dt.ones(2, device=device)
        F.batch_norm(dt.array(x).to(device), mean, var, training=True)
        assert mean.tolist() == [np.inf, -np.inf] and bool(var.isnan().all())


# ---------------------------------------------------------------- places


@pytest.mark.parametrize("dtype", ("float32", "float64", "float16", "uint8"))
@pytest.mark.parametrize(("shape", "linear"), [((2, 3, 7), "linear"), ((2, 3, 5, 7), "bilinear"),
                                               ((2, 3, 4, 5, 6), "trilinear")])  # fmt: skip
def test_images_of_another_size(shape: tuple[int, ...], linear: str, dtype: str, cuda: str) -> None:
    x = dt.array(np.random.default_rng(0).integers(0, 200, shape)).to(getattr(dt, dtype))
    layouts = [x, x.contiguous(memory_format=dt.channels_last)] if len(shape) == 4 else [x]
    sizes: list[dict[str, Any]] = [{"scale_factor": factor} for factor in (2, 3, 0.5, 1.7)]
    sizes += [{"size": (3, 9, 5)[: len(shape) - 2]}, {"size": shape[2:]}]
    for laid in layouts:
        for options in sizes:
            for mode in ("nearest", "nearest-exact"):
                assert_same(
                    F.interpolate(laid.to(cuda), mode=mode, **options), F.interpolate(laid, mode=mode, **options)
                )
            for aligned in (True, False) if dtype != "uint8" else ():
                options = {**options, "mode": linear, "align_corners": aligned}
                found, wanted = F.interpolate(laid.to(cuda), **options), F.interpolate(laid, **options)
                assert found.stride() == wanted.stride()
                assert_near(found, wanted, CLOSE[dtype])


def test_means_along_three_dimensions_are_rounded_once(cuda: str) -> None:
    x = numbers((1, 2, 5, 6, 7), "float16")
    found = F.interpolate(x.to(cuda), (7, 9, 11), mode="trilinear").cpu().double().numpy()
    exact = F.interpolate(x.double(), (7, 9, 11), mode="trilinear").numpy()
    assert (np.abs(found - exact) <= 0.52 * np.spacing(np.abs(found).astype(np.float16))).all()


@pytest.mark.parametrize("dtype", ("bool", "uint8", "float16", "int32", "float32", "int64"))
@pytest.mark.parametrize("shape", ((7,), (5, 6), (2, 5, 6), (2, 3, 4, 5)))
def test_turned_and_padded(shape: tuple[int, ...], dtype: str, cuda: str) -> None:
    x = dt.array(np.random.default_rng(0).integers(0, 9, shape)).to(getattr(dt, dtype))
    for dims in {(0,), (len(shape) - 1,), tuple(range(len(shape)))}:
        assert_same(dt.flip(x.to(cuda), dims), dt.flip(x, dims))
    amounts = ((1, 2), (3, 0), (0, 1), (-1, 2), (1, -2), (2, 2, 1, 0), (1, 1, 1, 1, 1, 1))
    for mode in ("reflect", "replicate", "circular"):
        for amount in amounts:
            try:
                wanted = dt.pad(x, amount, mode)
            except (RuntimeError, ValueError):
                continue
            assert_same(dt.pad(x.to(cuda), amount, mode), wanted)
