"""Convolution on CUDA: what is launched, planned, refused, tuned and rounded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import formats
import images
import numpy as np
import pytest
from formats import FLOATS
from support import REAL, bits_of, wide_of
from test_cuda_matmul import forget_plans, watch, whole

import devtensor as dt

EXECUTE, FINALIZE = "cudnnBackendExecute", "cudnnBackendFinalize"
NOT_SUPPORTED, EXECUTION_FAILED = 3000, 5000
simulated = pytest.mark.skipif(REAL, reason="the simulated GPU fails calls and lowers limits on demand")


def operands(cuda: str, dtype: str = "float32", layout: str = "contiguous", seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """Input, weight and bias of small integers, and the convolution with padding 1."""
    x, wide_x = whole((2, 4, 6, 7), dtype, cuda, seed, layout=layout)
    weight, wide_weight = whole((5, 4, 3, 3), dtype, cuda, seed + 1, layout=layout)
    bias, wide_bias = whole((5,), dtype, cuda, seed + 2)
    return x, weight, bias, images.conv2d(wide_x, wide_weight, wide_bias, padding=1)


@pytest.fixture
def fault() -> Iterator[Any]:
    yield dt._C._test.api_fail
    dt._C._test.api_fail(None, -1, 0)


@pytest.fixture
def small_limit() -> Iterator[Any]:
    yield dt._C._test.set_size_limit
    dt._C._test.set_size_limit(0)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("DEVTENSOR_CACHE_DIR", str(tmp_path / "cache"))
    yield tmp_path / "cache"
    dt._C._cuda_tuning(False)


# ---------------------------------------------------------------- exactness


@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "sliced"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_whole_numbers_are_exact(dtype: str, layout: str, cuda: str) -> None:
    x, weight, bias, want = operands(cuda, dtype, layout)
    got = dt.conv2d(x, weight, bias, padding=1)
    assert np.array_equal(wide_of(got).astype(np.float64), formats.round_to(want, dtype).astype(np.float64))


def test_strict_float32_keeps_24_bits(cuda: str) -> None:
    x = dt.tensor([[[[2.0**23 + 1, 1.0]]]], device=cuda)
    weight = dt.tensor([[[[1.0, -(2.0**23)]]]], device=cuda)
    assert dt.conv2d(x, weight).tolist() == [[[[1.0]]]]


@simulated
def test_tf32_is_a_policy(cuda: str) -> None:
    x = dt.full((1, 1, 1, 1), 1 + 2.0**-12, device=cuda)
    one = dt.ones((1, 1, 1, 1), device=cuda)
    dt.set_float32_precision("tf32")
    try:
        assert dt.conv2d(x, one).item() == 1.0
        assert dt.conv2d(x.double(), one.double()).item() == 1 + 2.0**-12
        assert dt.conv2d(x.cpu(), one.cpu()).item() == 1 + 2.0**-12
    finally:
        dt.set_float32_precision("highest")
    assert dt.conv2d(x, one).item() == 1 + 2.0**-12


# ---------------------------------------------------------------- launches and plans


@pytest.mark.parametrize("dtype", FLOATS)
def test_bias_and_relu_are_in_one_launch(dtype: str, cuda: str) -> None:
    x, weight, bias, want = operands(cuda, dtype)
    for activation, launches in ((None, 1), ("relu", 1), ("gelu", 2), ("gelu_tanh", 2)):
        dt.conv2d(x, weight, bias, padding=1, activation=activation)  # type: ignore[arg-type]
        with watch() as change:
            got = dt.conv2d(x, weight, bias, padding=1, activation=activation)  # type: ignore[arg-type]
        assert change.launches == launches, activation
        assert change.calls[EXECUTE] == 1
        if activation == "relu":
            assert np.array_equal(wide_of(got), np.maximum(formats.round_to(want, dtype), 0))


def test_padding_same_needs_no_copy(cuda: str) -> None:
    x, wide_x = whole((2, 3, 6, 7), "float32", cuda, 1)
    weight, wide_weight = whole((4, 3, 2, 4), "float32", cuda, 2)
    dt.conv2d(x, weight, padding="same")
    with watch() as change:
        got = dt.conv2d(x, weight, padding="same")
    assert change.launches == 1
    assert np.array_equal(wide_of(got), images.conv2d(wide_x, wide_weight, padding="same"))


def test_channels_last_stays(cuda: str) -> None:
    x, weight, bias, want = operands(cuda, layout="channels_last")
    dt.conv2d(x, weight, bias, padding=1)
    with watch() as change:
        got = dt.conv2d(x, weight, bias, padding=1, activation="relu")
    assert change.launches == 1
    assert got.stride() == (5 * 6 * 7, 1, 7 * 5, 5)
    assert np.array_equal(wide_of(got), np.maximum(want, 0))


def test_no_plan_is_made_twice(cuda: str) -> None:
    x, weight, bias, _ = operands(cuda)
    dt.conv2d(x, weight, bias, padding=1, activation="relu")
    with watch() as change:
        for _ in range(20):
            dt.conv2d(x, weight, bias, padding=1, activation="relu")
    assert change.calls[EXECUTE] == 20
    assert change.calls[FINALIZE] == 20  # the packs of pointers
    assert "cudnnBackendGetAttribute" not in change.calls and "cudnnSetStream" not in change.calls


# ---------------------------------------------------------------- refusals of the library


@simulated
def test_the_next_engine_is_tried_when_one_refuses_to_run(cuda: str, fault: Any) -> None:
    x, weight, bias, want = operands(cuda, "float16", seed=20)
    fault(EXECUTE, 0, NOT_SUPPORTED)
    with watch() as change:
        got = dt.conv2d(x, weight, bias, padding=1)
    assert change.calls[EXECUTE] == 2
    assert np.array_equal(wide_of(got), formats.round_to(want, "float16"))
    with watch() as change:  # remembered
        dt.conv2d(x, weight, bias, padding=1)
    assert change.calls[EXECUTE] == 1 and "cudnnBackendGetAttribute" not in change.calls


@simulated
@pytest.mark.parametrize("status", [NOT_SUPPORTED, 3002, EXECUTION_FAILED])
def test_the_next_engine_is_tried_when_one_refuses_to_be_planned(status: int, cuda: str, fault: Any) -> None:
    x, weight, bias, want = operands(cuda, "float16", seed=30 + status)
    forget_plans(cuda)
    with watch() as whole_plan:
        dt.conv2d(x[:1], weight, bias, padding=1)
    last = whole_plan.calls[FINALIZE] - 2  # before the pack of pointers
    assert last > 0
    fault(FINALIZE, last, status)
    got = dt.conv2d(x, weight, bias, padding=1)
    assert np.array_equal(wide_of(got), formats.round_to(want, "float16"))


@simulated
def test_no_engine_for_the_graph_with_bias_and_relu(cuda: str, fault: Any) -> None:
    x, weight, bias, want = operands(cuda, seed=40)
    weights = weight.contiguous()
    forget_plans(cuda)
    with watch() as change:
        dt.conv2d(x[:1], weights, bias, padding=1, activation="relu")
    graph = change.calls[FINALIZE] - 5  # the graph: before two lists, plan and pack
    fault(FINALIZE, graph, 3001)
    with watch() as change:
        got = dt.conv2d(x, weights, bias, padding=1, activation="relu")
    assert change.launches == 2 and change.calls[EXECUTE] == 1
    assert np.array_equal(wide_of(got), np.maximum(want, 0))


@simulated
def test_no_engine_at_all_is_an_error_that_says_so(cuda: str, fault: Any) -> None:
    x, weight, bias, want = operands(cuda, seed=50)
    fault(EXECUTE, 0, NOT_SUPPORTED, True)
    with pytest.raises(dt.CudaError, match=r"no engine for this convolution on cuda:\d .*input \(2, 4, 6, 7\)"):
        dt.conv2d(x, weight, bias, padding=1, activation="relu")
    fault(None, -1, 0)
    assert np.array_equal(wide_of(dt.conv2d(x, weight, bias, padding=1)), want)


@simulated
def test_zeros_are_written_out_where_no_engine_pads_the_sides_differently(cuda: str, fault: Any) -> None:
    x, wide_x = whole((2, 3, 5, 7), "float32", cuda, 1)
    weight, wide_weight = whole((4, 3, 2, 4), "float32", cuda, 2)
    want = images.conv2d(wide_x, wide_weight, padding="same")
    fault(FINALIZE, 3, NOT_SUPPORTED)  # the convolution's descriptor, after three tensors
    assert np.array_equal(wide_of(dt.conv2d(x, weight, padding="same")), want)
    with watch() as change:  # remembered
        assert np.array_equal(wide_of(dt.conv2d(x, weight, padding="same")), want)
    assert change.launches == 3 and change.calls[FINALIZE] == 1


@simulated
def test_batches_beyond_32_bits_are_split(cuda: str, small_limit: Any) -> None:
    x, weight, bias, want = operands(cuda, seed=70)
    small_limit(5 * 6 * 7)
    with watch() as change:
        got = dt.conv2d(x, weight, bias, padding=1, activation="relu")
    assert change.calls[EXECUTE] == 2
    assert np.array_equal(wide_of(got), np.maximum(want, 0))
    small_limit(60)
    with pytest.raises(dt.CudaError):
        dt.conv2d(x, weight, bias, padding=1)


# ---------------------------------------------------------------- tuning


def test_tuning_keeps_a_plan_and_a_file(cache: Path, cuda: str) -> None:
    x, weight, bias, want = operands(cuda, "float16", seed=80)
    with dt.cuda.device(cuda):
        with dt.cuda.tune(), watch() as change:
            got = dt.conv2d(x, weight, bias, padding=1)
        assert np.array_equal(wide_of(got), formats.round_to(want, "float16"))
        assert change.calls[EXECUTE] > 2 and change.calls["cuEventElapsedTime"] >= 1
        (file,) = cache.iterdir()
        rows = json.loads(file.read_text())
        assert len({len(row) for row in rows}) == 1 and file.stat().st_mode & 0o077 == 0
        with dt.cuda.tune(), watch() as change:
            dt.conv2d(x, weight, bias, padding=1)
        assert change.calls[EXECUTE] == 1 and "cuEventCreate" not in change.calls
    with watch() as change:
        dt.conv2d(x, weight, bias, padding=1)
    assert change.calls[EXECUTE] == 1


def test_a_stored_plan_is_taken_without_timing(cache: Path, cuda: str) -> None:
    x, weight, bias, want = operands(cuda, "bfloat16", seed=90)
    with dt.cuda.device(cuda):
        with dt.cuda.tune():
            dt.conv2d(x, weight, bias, padding=1)
        (file,) = cache.iterdir()
        rows = json.loads(file.read_text())
        stale = [[*row[:-1], row[-1] + 77] for row in rows]
        for stored, timed in ((rows, False), (stale, True)):
            file.write_text(json.dumps(stored))
            got, calls = fresh_plan(x, weight, bias)
            assert np.array_equal(wide_of(got), formats.round_to(want, "bfloat16"))
            assert ("cuEventCreate" in calls) is timed


def fresh_plan(x: Any, weight: Any, bias: Any) -> tuple[Any, dict[str, int]]:
    """A tuned convolution whose plan is in no cache, as what was found before counts only if its file says so."""
    forget_plans(str(x.device))
    with dt.cuda.tune(), watch() as change:
        got = dt.conv2d(x, weight, bias, padding=1)
    return got, change.calls


@pytest.mark.parametrize("text", ["", "{}", "[[1, 2]]", "[1]", '[["a"]]', "[" * 100_000, "\xff"])
def test_a_file_that_is_not_ours_is_nothing_known(text: str, cache: Path, cuda: str) -> None:
    x, weight, bias, want = operands(cuda, seed=100)
    with dt.cuda.device(cuda):
        with dt.cuda.tune():
            dt.conv2d(x, weight, bias, padding=1)
        (file,) = cache.iterdir()
        file.write_bytes(text.encode("latin-1"))
        with dt.cuda.tune():
            got = dt.conv2d(x, weight, bias, padding=1)
    assert np.array_equal(wide_of(got), want)


def test_a_place_that_cannot_be_written_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuda: str
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DEVTENSOR_CACHE_DIR", str(tmp_path / "file" / "below"))
    x, weight, bias, want = operands(cuda, seed=110)
    with dt.cuda.device(cuda), dt.cuda.tune():
        got = dt.conv2d(x, weight, bias, padding=1, activation="relu")
    assert np.array_equal(wide_of(got), np.maximum(want, 0))
    assert dt._C._cuda_tuning() is False


def test_without_a_home_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuda: str) -> None:
    """What the user database says is not asked: compiled kernels and plans have one place, or none."""
    for name in ("DEVTENSOR_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    x, weight, bias, want = operands(cuda, seed=115)
    with dt.cuda.device(cuda), dt.cuda.tune():
        got = dt.conv2d(x, weight, bias, padding=1)
    assert np.array_equal(wide_of(got), want)
    assert list(tmp_path.iterdir()) == []


@simulated
def test_tuning_survives_engines_that_refuse(cache: Path, cuda: str, fault: Any) -> None:
    x, weight, bias, want = operands(cuda, "float16", seed=120)
    fault(EXECUTE, 0, NOT_SUPPORTED)
    with dt.cuda.device(cuda), dt.cuda.tune():
        got = dt.conv2d(x, weight, bias, padding=1)
    assert np.array_equal(wide_of(got), formats.round_to(want, "float16"))
    fault(EXECUTE, 0, NOT_SUPPORTED, True)
    with dt.cuda.device(cuda), dt.cuda.tune(), pytest.raises(dt.CudaError, match="no engine"):
        dt.conv2d(x[:1], weight, bias, padding=1)


@simulated
def test_a_tuned_plan_that_refuses_later_is_replaced_for_good(cache: Path, cuda: str, fault: Any) -> None:
    x, weight, bias, want = operands(cuda, "float16", seed=130)
    with dt.cuda.device(cuda), dt.cuda.tune():
        dt.conv2d(x, weight, bias, padding=1)
        fault(EXECUTE, 0, NOT_SUPPORTED)
        got = dt.conv2d(x, weight, bias, padding=1)
        with watch() as change:
            dt.conv2d(x, weight, bias, padding=1)
    assert np.array_equal(wide_of(got), formats.round_to(want, "float16"))
    assert change.calls[EXECUTE] == 1 and "cuEventCreate" not in change.calls


# ---------------------------------------------------------------- plans with no device


@simulated
def test_a_plan_for_a_described_device(device: str) -> None:
    sizes = ((2, 4, 6, 7), (5, 4, 3, 3), (1, 1), (0, 1), (1, 1), (1, 1))
    found = dt._C._test.describe_conv2d('{"deviceVer": 900}', dt.float32, *sizes, False, True, "relu")
    assert found["bias"] and found["activation"] and found["out"] == (2, 5, 5, 7)
    assert found["notes"] & 1 == 0
    half = dt._C._test.describe_conv2d('{"deviceVer": 900}', dt.float16, *sizes, True, False)
    assert half["notes"] & 1 == 1
    assert not found["product"] and not half["product"]
    with pytest.raises(dt.CudaError, match="cudnnBackendFinalize"):
        dt._C._test.describe_conv2d("no JSON", dt.float32, *sizes, False, True)
    assert bits_of(dt.zeros(1, device=device)).tolist() == [0]


@simulated
@pytest.mark.parametrize(("dtype", "bias"), [("float32", True), ("float64", False), ("float16", True)])
def test_a_product_is_described_as_one(dtype: str, bias: bool, device: str) -> None:
    """What cuda_conv2d gives to cuBLASLt has no plan of cuDNN's: not in a description, and not when it runs."""
    x, weight = (2, 4, 6, 7), (5, 4, 1, 1)
    sizes, channels_last = (x, weight, (1, 1), (0, 0), (0, 0), (1, 1)), dtype == "float16"
    found = dt._C._test.describe_conv2d("never read", getattr(dt, dtype), *sizes, channels_last, bias)
    assert found["product"] and found["engine"] == found["workspace"] == 0 and found["out"] == (2, 5, 6, 7)


@simulated
def test_library_versions() -> None:
    assert dt.cuda.library_versions() == {"cublasLt": 130000, "cudnn": 91900}
