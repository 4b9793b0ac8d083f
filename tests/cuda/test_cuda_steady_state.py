"""A loop like a training loop, once warm, asks nothing of the driver but copies and launches: no memory, no plans, no
algorithms, no modules, no events, and no byte moves that the program does not move."""

from __future__ import annotations

import numpy as np
import pytest
from support import CUDA_DEVICES

import devtensor as dt
from devtensor import _C

WARM, STEPS, BATCH = 40, 20, 8  # the slots that transfers pass through are each made at first use
FORBIDDEN = """cuMemAllocAsync cuMemAlloc_v2 cuMemFreeAsync cuMemFree_v2 cuMemHostAlloc cuMemFreeHost cuMemPoolTrimTo
cuEventCreate cuEventDestroy_v2 cuStreamCreate cuModuleLoadData cuModuleGetFunction nvrtcCompileProgram cudnnCreate
cudnnBackendGetAttribute cudnnSetStream cublasLtCreate cublasLtMatmulDescCreate
cublasLtMatrixLayoutCreate cublasLtMatmulAlgoGetHeuristic cuDeviceGetAttribute cuCtxSynchronize""".split()

pytestmark = pytest.mark.skipif(not CUDA_DEVICES, reason="no CUDA device, real or simulated")


class Net:
    """Convolution, pooling, two linear layers; the last one is updated as if there were a gradient."""

    def __init__(self, device: str) -> None:
        dt.manual_seed(0)
        self.filters = dt.randn(8, 1, 3, 3, device=device)
        self.shift = dt.randn(8, device=device)
        self.w1, self.b1 = dt.randn(32, 8 * 16, device=device) * 0.1, dt.zeros(32, device=device)
        self.w2 = dt.randn(10, 32, device=device) * 0.1

    def step(self, images: dt.DeviceArray, labels: dt.DeviceArray) -> dt.DeviceArray:
        x = dt.conv2d(images, self.filters, self.shift, padding=1, activation="relu")
        x = dt.linear(dt.max_pool2d(x, 2).flatten(1), self.w1, self.b1, activation="relu")
        wrong = dt.softmax(x @ self.w2.T, dim=1) - labels
        self.w2 -= (wrong.T @ x) * 0.01
        return (wrong * wrong).sum()


@pytest.fixture(scope="module", params=CUDA_DEVICES[:1])
def run(request: pytest.FixtureRequest) -> dict[str, dict[str, int]]:
    device = request.param
    random = np.random.default_rng(0)
    images = dt.from_numpy(random.random((BATCH, 1, 8, 8), np.float32))
    labels = dt.from_numpy(np.eye(10, dtype=np.float32)[random.integers(0, 10, BATCH)])
    net = Net(device)

    def loop(steps: int) -> list[float]:
        return [net.step(images.to(device), labels.to(device)).item() for _ in range(steps)]

    loop(WARM)
    calls, counters = _C._test.api_calls(), dt.counters()
    losses = loop(STEPS)
    assert losses[-1] < losses[0] and np.isfinite(losses).all()
    return {
        "calls": {name: n - calls[name] for name, n in _C._test.api_calls().items()},
        "counters": {name: n - counters[name] for name, n in dt.counters().items()},
    }


@pytest.mark.parametrize("symbol", FORBIDDEN)
def test_the_driver_is_not_asked_for(run: dict[str, dict[str, int]], symbol: str) -> None:
    assert run["calls"][symbol] == 0


@pytest.mark.parametrize("symbol", ["cudnnBackendCreateDescriptor", "cudnnBackendFinalize", "cudnnBackendExecute"])
def test_a_convolution_makes_its_pack_of_pointers_only(run: dict[str, dict[str, int]], symbol: str) -> None:
    assert run["calls"][symbol] == STEPS


def test_only_what_the_program_moves_is_moved(run: dict[str, dict[str, int]]) -> None:
    counters = run["counters"]
    assert counters["bytes_to_device"] == STEPS * BATCH * (64 + 10) * 4
    assert counters["bytes_to_host"] == STEPS * 4
    assert counters["bytes_between_devices"] == 0
    assert counters["transfers"] == STEPS * 3


def test_launches_are_those_of_the_ops(run: dict[str, dict[str, int]]) -> None:
    """conv2d, max_pool2d, linear, its ReLU, product, softmax, sub, product, mul, sub in place, mul and sum."""
    assert run["counters"]["launches"] == STEPS * 12


@pytest.mark.parametrize("device", CUDA_DEVICES[:1])
@pytest.mark.parametrize("activation", [None, "relu"])
@pytest.mark.parametrize("op", ["conv2d", "linear"])
def test_bias_and_activation_are_in_the_launch(op: str, activation: str | None, device: str) -> None:
    dt.manual_seed(1)
    x, w, b = dt.randn(4, 8, 9, 9), dt.randn(16, 8, 3, 3), dt.randn(16)
    if op == "linear":
        x, w, b = dt.randn(64, 96), dt.randn(48, 96), dt.randn(48)
    x, w, b = x.to(device), w.to(device), b.to(device)
    function = getattr(dt, op)
    function(x, w, b, activation=activation)
    before = dt.counters()["launches"]
    function(x, w, b, activation=activation)
    apart = op == "linear" and activation == "relu"  # cuBLASLt's may lose a NaN
    assert dt.counters()["launches"] == before + 1 + apart
