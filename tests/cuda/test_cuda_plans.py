"""Plans of convolutions and products on CUDA: which are kept, what memory they may want, where the search goes on."""

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
from support import REAL, wide_of
from test_cuda_faults import output_of
from test_cuda_matmul import by_cudnn, forget_plans, middle, watch, whole

import devtensor as dt

EXECUTE, FINALIZE, PRODUCT, HEURISTIC = (
    "cudnnBackendExecute",
    "cudnnBackendFinalize",
    "cublasLtMatmul",
    "cublasLtMatmulAlgoGetHeuristic",
)
pytestmark = pytest.mark.skipif(REAL, reason="the simulated GPU fails calls and lowers limits on demand")


@pytest.fixture
def fault() -> Iterator[Any]:
    yield dt._C._test.api_fail
    dt._C._test.api_fail(None, -1, 0)


@pytest.fixture
def plan_limit() -> Iterator[Any]:
    yield dt._C._test.set_plan_limit
    dt._C._test.set_plan_limit(0)


@pytest.fixture
def workspace() -> Iterator[Any]:
    yield dt.cuda.set_workspace_limit
    dt.cuda.set_workspace_limit(None)


@pytest.fixture
def tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("DEVTENSOR_CACHE_DIR", str(tmp_path / "cache"))
    yield tmp_path / "cache"
    dt._C._cuda_tuning(False)


def operands(cuda: str, dtype: str, n: int, seed: int, layout: str = "contiguous") -> tuple[Any, Any, Any, Any]:
    """Input of n images, weight and bias of small integers, and the convolution with padding 1."""
    x, wide_x = whole((n, 4, 6, 7), dtype, cuda, seed, layout=layout)
    weight, wide_weight = whole((5, 4, 3, 3), dtype, cuda, seed + 1, layout=layout)
    bias, wide_bias = whole((5,), dtype, cuda, seed + 2)
    return (
        x,
        weight,
        bias,
        formats.round_to(images.conv2d(wide_x, wide_weight, wide_bias, padding=1), dtype),
    )


# ---------------------------------------------------------------- which are kept


def test_many_plans_are_kept(cuda: str) -> None:
    """184 plans are those of ResNet-50 at 8 sizes of images."""
    weight = middle(cuda)
    row = dt.ones((1, 1, 1, 1000), device=cuda)
    for n in range(1, 1000):
        by_cudnn(row[..., :n], weight)
    with watch() as change:
        for n in range(1, 1000):
            by_cudnn(row[..., :n], weight)
    assert "cudnnBackendGetAttribute" not in change.calls
    for n in range(1, 1000):
        row[0, 0, :, :n] @ row[0, 0, :, :n].t()
    with watch() as change:
        for n in range(1, 1000):
            row[0, 0, :, :n] @ row[0, 0, :, :n].t()
    assert HEURISTIC not in change.calls


def test_the_least_recently_used_plan_goes(cuda: str, plan_limit: Any) -> None:
    weight, row = middle(cuda), dt.ones((1, 1, 2, 64), device=cuda)

    def planned(n: int) -> bool:
        with watch() as change:
            by_cudnn(row[..., :n], weight)
        return "cudnnBackendGetAttribute" in change.calls

    plan_limit(4)
    for n in (11, 12, 13, 14):
        planned(n)
    assert not planned(11)  # used again: 12 is the oldest now
    assert planned(15)
    assert [planned(n) for n in (11, 13, 14, 15)] == [False] * 4
    assert planned(12)

    def described(n: int) -> bool:
        with watch() as change:
            row[0, 0, :, :n] @ row[0, 0, :, :n].t()
        return HEURISTIC in change.calls

    for n in (11, 12, 13, 14):
        described(n)
    assert not described(11) and described(15)
    assert [described(n) for n in (11, 13, 14, 15)] == [False] * 4
    assert described(12)


@pytest.mark.parametrize("streams", [1, 3])
def test_a_plan_that_goes_is_waited_for_by_nobody(streams: int, cuda: str, plan_limit: Any) -> None:
    """It is destroyed when its runs are over, on each stream that ran it; a device would be lost else."""
    weight = middle(cuda)
    rows = [dt.full((1, 1, 1, 40), float(i), device=cuda) for i in range(streams)]
    queues = [dt.cuda.Stream(cuda) for _ in range(streams - 1)]
    dt.cuda.synchronize(cuda)
    plan_limit(2)
    got = []
    with watch() as change:
        for n in range(20, 40):
            for i, row in enumerate(rows):
                with dt.cuda.stream(queues[i - 1] if i else dt.cuda.default_stream(cuda)):
                    got.append((n, i, by_cudnn(row[..., :n], weight)))
    assert not {"cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize"} & set(change.calls)
    for n, i, y in got:
        assert y.tolist() == [[[[float(i)] * n]]]
    high = dt._C._test.ledger()["descriptors"]
    for n in range(20, 40):
        by_cudnn(rows[0][..., :n], weight)
        dt.cuda.synchronize(cuda)
    assert dt._C._test.ledger()["descriptors"] <= high  # those before are gone


def test_what_was_tuned_is_added_to_the_file(cuda: str, tuned: Path, plan_limit: Any, fault: Any) -> None:
    """Also what the cache has lost since, and what another process wrote; what no longer holds is taken out."""
    weight, row = middle(cuda), dt.ones((1, 1, 1, 64), device=cuda)
    plan_limit(2)
    with dt.cuda.device(cuda):
        with dt.cuda.tune():
            by_cudnn(row[..., :20], weight)
        (file,) = tuned.iterdir()
        earlier = len(json.loads(file.read_text()))  # also what this process tuned before
        for n in (21, 22, 23, 24):
            with dt.cuda.tune():
                by_cudnn(row[..., :n], weight)
        rows = json.loads(file.read_text())
        assert len(rows) == earlier + 4
        other = [rows[0][0], 77, *rows[0][2:]]
        file.write_text(json.dumps([*rows, other, ["no row"], [1, 2]]))
        with dt.cuda.tune():
            by_cudnn(row[..., :26], weight)
        after = json.loads(file.read_text())
        assert len(after) == earlier + 6 and all(row in after for row in [*rows, other])
        plan_limit(100)  # the cache knows all rows of the file again
        with dt.cuda.tune():
            fault(EXECUTE, 0, 3000, True)
            with pytest.raises(dt.CudaError, match="no engine"):
                by_cudnn(row[..., :26], weight)
    assert len(json.loads(file.read_text())) == earlier + 5


# ---------------------------------------------------------------- workspace


def test_engines_beyond_the_workspace_limit_are_passed_over(cuda: str, workspace: Any) -> None:
    """One image in half precision with channels first wants about 2 KiB for transposed copies, none without."""
    x, weight, bias, want = operands(cuda, "float16", 1, 60)

    def peak() -> int:
        dt.cuda.synchronize(cuda)
        dt.cuda.reset_peak_memory_stats(cuda)
        before = dt.cuda.memory_allocated(cuda)
        got = dt.conv2d(x, weight, bias, padding=1)
        assert np.array_equal(wide_of(got), want)
        return dt.cuda.max_memory_allocated(cuda) - before

    assert dt.cuda.workspace_limit() is None
    high = peak()
    workspace(2000)
    assert dt.cuda.workspace_limit() == 2000
    assert peak() < high
    workspace(0)
    assert peak() < high
    with pytest.raises(RuntimeError, match="number of bytes"):
        workspace(-1)


@pytest.mark.parametrize("activation", [None, "relu"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_batch_is_convolved_in_parts_before_tensor_cores_are_given_up(
    dtype: str, activation: Any, cuda: str, workspace: Any
) -> None:
    x, weight, bias, want = operands(cuda, dtype, 13, 70)
    want = formats.round_to(images.conv2d(wide_of(x), wide_of(weight), wide_of(bias), padding=1), dtype)
    whole_batch = 2 * (13 * (4 + 5) * 42 + 5 * 4 * 9) + 1024
    for limit, runs in ((whole_batch, 1), (whole_batch - 1, 2), (whole_batch // 2, 4), (1500, 1)):
        workspace(limit)
        for _ in range(2):
            with watch() as change:
                got = dt.conv2d(x, weight, bias, padding=1, activation=activation)
            assert change.calls[EXECUTE] == runs, limit
        assert "cudnnBackendGetAttribute" not in change.calls
        reference = dt.conv2d(x.cpu(), weight.cpu(), bias.cpu(), padding=1, activation=activation)
        assert np.array_equal(wide_of(got), wide_of(reference))
    assert np.array_equal(wide_of(dt.conv2d(x, weight, bias, padding=1)), want)


def test_there_is_room_for_what_is_free(cuda: str) -> None:
    """No limit but memory: 300 MiB of transposed copies are had, or a part of them."""
    x = dt.zeros((8, 64, 256, 256), dtype=dt.float16, device=cuda)
    weight = dt.zeros((64, 64, 1, 1), dtype=dt.float16, device=cuda)
    dt.cuda.empty_cache()
    with watch() as change:
        y = dt.conv2d(x, weight)
    assert change.calls[EXECUTE] == 1
    dt.cuda.reset_peak_memory_stats(cuda)
    before = dt.cuda.memory_allocated(cuda)
    y = dt.conv2d(x, weight)
    assert dt.cuda.max_memory_allocated(cuda) - before > 3 * y.nbytes - 1
    del y
    dt.cuda.empty_cache()
    info = dt._C._cuda_info(int(cuda[-1]))["total_memory"]
    used = dt.cuda.memory_reserved(cuda)
    dt.cuda.set_per_process_memory_fraction((used + 100 * (1 << 20)) / info, cuda)
    try:
        with watch() as change:
            dt.conv2d(x, weight)  # planned with more room: what it wants cannot be had any more
        assert change.calls[EXECUTE] > 1
        with watch() as change:
            dt.conv2d(x, weight)  # remembered
        assert change.calls[EXECUTE] > 1 and "cudnnBackendGetAttribute" not in change.calls
    finally:
        dt.cuda.set_per_process_memory_fraction(1.0, cuda)


def test_another_engine_where_cudnn_finds_no_memory(cuda: str, fault: Any) -> None:
    x, weight, bias, want = operands(cuda, "float16", 1, 600)
    fault(EXECUTE, 0, 4004)
    with watch() as change:
        got = dt.conv2d(x, weight, bias, padding=1)
    assert change.calls[EXECUTE] == 2 and np.array_equal(wide_of(got), want)
    fault(EXECUTE, 0, 4004, True)
    with pytest.raises(dt.OutOfMemoryError):
        dt.conv2d(x[..., 1:], weight, bias, padding=1)


def test_a_plan_made_while_memory_was_short_is_made_anew_when_there_is_more(cuda: str) -> None:
    """One image, which is in no parts: the engine with tensor cores wants copies of its operands."""
    x, weight, bias, want = operands(cuda, "float16", 1, 610)
    forget_plans(cuda)
    dt.cuda.empty_cache()
    total = dt._C._cuda_info(int(cuda[-1]))["total_memory"]
    dt.cuda.set_per_process_memory_fraction((dt.cuda.memory_allocated(cuda) + 1536) / total, cuda)
    got, planned = [], []
    try:
        for _ in range(2):
            with watch() as change:
                got.append(dt.conv2d(x, weight, bias, padding=1))
            planned.append("cudnnBackendGetAttribute" in change.calls)
    finally:
        dt.cuda.set_per_process_memory_fraction(1.0, cuda)
    for _ in range(2):
        with watch() as change:
            got.append(dt.conv2d(x, weight, bias, padding=1))
        planned.append("cudnnBackendGetAttribute" in change.calls)
    assert planned == [True, False, True, False]
    assert all(np.array_equal(wide_of(y), want) for y in got)


REFUSED_AND_SHORT = """
import devtensor as dt
x = dt.ones(1, 6, 6, 8, dtype=dt.float16, device="cuda").permute(0, 3, 1, 2)
weight = dt.ones(8, 3, 3, 8, dtype=dt.float16, device="cuda").permute(0, 3, 1, 2)
dt.conv2d(x, weight[:, :, :2])
total = dt.cuda.get_device_properties(0).total_memory
for room in (1024, 1600, 2000, 2600):
    dt.cuda.empty_cache()
    dt.cuda.set_per_process_memory_fraction((dt.cuda.memory_allocated() + 512 + room) / total)
    dt._C._test.api_fail("cudnnBackendExecute", 0, 3000, True)
    try:
        dt.conv2d(x, weight)
    except (dt.CudaError, dt.OutOfMemoryError) as error:
        print(type(error).__name__)
"""


def test_the_search_ends_where_one_plan_refuses_and_the_next_has_no_memory() -> None:
    """They took turns for ever, with the device's lock held: a process of its own can be ended."""
    assert output_of(REFUSED_AND_SHORT).split() == ["OutOfMemoryError"] * 4


def test_one_lack_of_memory_ends_no_search_for_the_best_plan(cuda: str, tuned: Path, fault: Any) -> None:
    """What was found before stays in the file; where nothing was, the other candidates are still tried."""
    x, weight, bias, want = operands(cuda, "float16", 1, 620)
    forget_plans(cuda)

    def rows() -> list[list[int]]:
        return [row for file in tuned.iterdir() for row in json.loads(file.read_text())]

    with dt.cuda.device(cuda):
        with dt.cuda.tune():
            dt.conv2d(x, weight, bias, padding=1)
        best = rows()
        assert best
        fault(EXECUTE, 0, 4004)
        with dt.cuda.tune():
            assert np.array_equal(wide_of(dt.conv2d(x, weight, bias, padding=1)), want)
        assert rows() == best
        fault(EXECUTE, 0, 4004)
        with dt.cuda.tune():
            got = dt.conv2d(x, weight, padding=1)
        assert got.tolist() == dt.conv2d(x.cpu(), weight.cpu(), padding=1).tolist()
        assert len(rows()) == len(best) + 1


# ---------------------------------------------------------------- ReLU


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_relu_without_bias_compiles_nothing(dtype: str, layout: str, cuda: str) -> None:
    """cuDNN's engines for a ReLU right after the convolution are compiled at run time; a bias of -0 changes nothing."""
    x, weight, _, _ = operands(cuda, dtype, 2, 80, layout)
    want = np.maximum(images.conv2d(wide_of(x), wide_of(weight), padding=1), 0)
    dt.conv2d(x, weight, padding=1, activation="relu")
    with watch() as change:
        got = dt.conv2d(x, weight, padding=1, activation="relu")
    assert change.launches == 1 and change.calls[EXECUTE] == 1
    assert np.array_equal(wide_of(got), formats.round_to(want, dtype))


def test_relu_of_more_channels_than_the_empty_bias_has(cuda: str) -> None:
    weight = dt.arange(8193.0, device=cuda).reshape(8193, 1, 1, 1)
    got = dt.conv2d(dt.full((1, 1, 1, 1), -1.0, device=cuda), weight, padding=(0, 1), activation="relu")
    assert got.sum().item() == 0 and got.shape == (1, 8193, 1, 3)


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_passes_a_fused_relu_as_on_every_device(dtype: str, device: str) -> None:
    nan = float("nan")
    kind = getattr(dt, dtype)
    x = dt.tensor([[[[nan, -1.0, 2.0]]]], dtype=kind, device=device)
    one = dt.ones((1, 1, 1, 1), dtype=kind, device=device)
    bias = dt.zeros((1,), dtype=kind, device=device)
    rows = dt.tensor([[nan, 0.0], [-1.0, 0.0], [2.0, 0.0], [1.0, nan]], dtype=kind, device=device)
    weight = dt.ones((3, 2), dtype=kind, device=device)
    for b in (None, bias):
        for padding, edge in ((0, []), ((0, 1), [0.0])):  # a product of matrices, and a convolution of cuDNN's
            got = wide_of(dt.conv2d(x, one, b, padding=padding, activation="relu"))
            want = [*edge, nan, 0.0, 2.0, *edge]
            assert np.array_equal(got.ravel().astype(np.float64), want, equal_nan=True), b
    for b in (None, dt.zeros((3,), dtype=kind, device=device)):
        got = wide_of(dt.linear(rows, weight, b, activation="relu"))
        assert np.array_equal(got[:, 0].astype(np.float64), [nan, 0.0, 2.0, nan], equal_nan=True), b


# ---------------------------------------------------------------- where the search goes on


@pytest.mark.parametrize("status", [2000, 2002, 3000, 4001, 5000, 5003])
def test_the_search_goes_on_where_an_engine_cannot_be_planned(status: int, cuda: str, fault: Any) -> None:
    x, weight, bias, want = operands(cuda, "float16", 2, 900 + status)
    forget_plans(cuda)
    with watch() as change:
        dt.conv2d(x[:1], weight, bias, padding=1)
    assert change.calls[FINALIZE] > 2
    fault(FINALIZE, change.calls[FINALIZE] - 2, status)  # the plan: before the pack of pointers
    assert np.array_equal(wide_of(dt.conv2d(x, weight, bias, padding=1)), want)


LOST = """
import devtensor as dt
row, weight = dt.ones((1, 1, 1, 9), device="cuda"), dt.ones((1, 1, 1, 3), device="cuda")
a = dt.ones((4, 4), device="cuda")
a @ a
dt._C._test.set_plan_limit(1)
for n in (1, 2):
    dt.conv2d(row[..., :n], weight, padding=1)
dt._C._test.api_fail("cuLaunchKernel", 0, 700, False, True)
row + row
dt.conv2d(row[..., :3], weight, padding=1)  # a plan goes, and its event is asked for: from here on the context is lost
try:
    CALL
except dt.CudaError as error:
    print(error.symbol, error.status)
try:
    dt.ones(2, device="cuda")
except dt.CudaError as error:
    print(str(error).splitlines()[0])
"""


@pytest.mark.parametrize(
    "call", ["dt.conv2d(row, weight, padding=1)", "dt.conv2d(row[..., :3], weight, padding=1)", "a @ a"]
)
def test_a_lost_context_is_told_as_such(call: str) -> None:
    """cuDNN and cuBLASLt say that their execution failed; why, the driver knows."""
    out = output_of(LOST.replace("CALL", call)).splitlines()
    assert out[0] == "cuStreamQuery 700"
    assert out[1].startswith("cuda:0 cannot be used any more in this process")


@pytest.mark.parametrize("status", [7, 14, 15])
def test_no_heuristic_for_a_product_with_an_epilogue(status: int, cuda: str, fault: Any) -> None:
    k = 100 + status
    x, weight, bias = dt.ones((5, k), device=cuda), dt.ones((3, k), device=cuda), dt.full((3,), 0.5 - k, device=cuda)
    fault(HEURISTIC, 0, status)
    with watch() as change:
        got = dt.linear(x, weight, bias, activation="relu")
    assert got.tolist() == [[0.5] * 3] * 5 and change.calls[HEURISTIC] == 2
    fault(HEURISTIC, 0, status, True)
    with pytest.raises(dt.CudaError, match=HEURISTIC):
        dt.linear(x[:2], weight, bias, activation="relu")


@pytest.mark.parametrize("sizes", [(1, 200, 300), (200, 200, 1), (1, 200, 1)])
def test_products_with_a_size_of_one_and_a_bias(sizes: tuple[int, int, int], cuda: str) -> None:
    """Which cuBLASLt may refuse with an epilogue; and the ways that leave the library out are held to the same."""
    m, k, n = sizes
    x, wide_x = whole((m, k), "float32", cuda, 1)
    weight, wide_weight = whole((n, k), "float32", cuda, 2)
    bias, wide_bias = whole((n,), "float32", cuda, 3)
    dt._C._test.kernel_settings(skinny=False)
    try:
        got = dt.linear(x, weight, bias, activation="relu")
    finally:
        dt._C._test.kernel_settings(skinny=True)
    assert np.array_equal(wide_of(got), np.maximum(wide_x @ wide_weight.T + wide_bias, 0))


def test_batches_above_what_a_grid_counts_are_split(cuda: str) -> None:
    n = 65535 + 3
    a = dt.arange(float(n), dtype=dt.float64, device=cuda).reshape(n, 1, 1).expand(n, 1, 1).contiguous()
    with watch() as change:
        got = dt.bmm(a, a)
    assert change.calls.get(PRODUCT, 2) == 2
    assert got[-1].item() == float((n - 1) ** 2)


def test_alignments_above_16_share_a_plan(cuda: str) -> None:
    flat = dt.ones((400,), device=cuda)
    with watch() as change:
        for offset in (0, 4, 8, 16, 32, 64):
            x = flat[offset : offset + 9 * 9].reshape(9, 9)
            x @ x
    assert change.calls[HEURISTIC] == 1


LT_CALLS = """cublasLtMatmul cublasLtMatmulAlgoGetHeuristic cublasLtMatmulDescCreate cublasLtMatrixLayoutCreate
cublasLtMatmulPreferenceCreate"""


@pytest.mark.parametrize("call", LT_CALLS.split())
def test_what_cublaslt_cannot_allocate_is_out_of_memory(call: str, cuda: str, fault: Any) -> None:
    """Once the cache has been given back; a product that goes then goes."""
    k = 300 + LT_CALLS.index(call)
    x, y = dt.ones((5, k), device=cuda), dt.ones((k, 3), device=cuda)
    spare = dt.ones((1 << 20,), device=cuda)
    del spare
    reserved = dt.cuda.memory_reserved(cuda)
    fault(call, 0, 3, True)
    with pytest.raises(dt.OutOfMemoryError, match=call):
        x @ y
    fault(call, 0, 3)
    if call == PRODUCT:
        assert dt.cuda.memory_reserved(cuda) < reserved
        assert (x @ y).tolist() == [[float(k)] * 3] * 5
