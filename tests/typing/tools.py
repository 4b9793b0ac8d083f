"""Data, devices, transfers, errors and the helpers for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import devtensor as dt
from devtensor import cpu, cuda, data, digits, testing, utils

# ---------------------------------------------------------------- data: what a loader gives

x, labels = dt.rand(6, 4), dt.arange(6)


class Squares(data.Dataset[dt.DeviceArray]):
    def __getitem__(self, index: int) -> dt.DeviceArray:
        return dt.full((2,), index * index)

    def __len__(self) -> int:
        return 6


class Named(Squares):
    """A subclass keeps what its samples are."""


class Words(data.Dataset[tuple[str, int]]):
    def __getitem__(self, index: int) -> tuple[str, int]:
        return "word", index

    def __len__(self) -> int:
        return 4


class Scans(data.Dataset[tuple[npt.NDArray[np.float32], int]]):
    def __getitem__(self, index: int) -> tuple[npt.NDArray[np.float32], int]:
        return np.ones((2, 2), dtype=np.float32), index

    def __len__(self) -> int:
        return 4


class Fields(data.Dataset[dict[str, dt.DeviceArray]]):
    def __getitem__(self, index: int) -> dict[str, dt.DeviceArray]:
        return {"x": dt.ones(2)}

    def __len__(self) -> int:
        return 4


class Endless(data.IterableDataset[dt.DeviceArray]):
    pass


def longest(samples: list[tuple[str, int]]) -> str:
    return max(word for word, _ in samples)


pairs = data.TensorDataset(x, labels)
assert_type(pairs[0], tuple[dt.DeviceArray, ...])
assert_type(data.DataLoader(pairs, 2, True), data.DataLoader[list[dt.DeviceArray]])
for batch, target in data.DataLoader(pairs, batch_size=2, shuffle=True, generator=dt.Generator()):
    assert_type(batch, dt.DeviceArray)
    assert_type(target, dt.DeviceArray)
assert_type(next(iter(data.DataLoader(Squares(), 3))), dt.DeviceArray)
assert_type(next(iter(data.DataLoader(Named(), drop_last=True))), dt.DeviceArray)
assert_type(next(iter(data.DataLoader(Scans(), 2, pin_memory=False))), list[dt.DeviceArray])
assert_type(next(iter(data.DataLoader(Fields(), 2))), dict[str, dt.DeviceArray])
assert_type(next(iter(data.DataLoader(Words(), 2, collate_fn=longest))), str)
anything: Any = next(iter(data.DataLoader(Words(), batch_size=None)))
for ahead in data.prefetch(data.DataLoader(Squares(), 3), "cpu"):
    assert_type(ahead, dt.DeviceArray)
assert_type(data.random_split(pairs, [4, 2])[0], data.Subset[tuple[dt.DeviceArray, ...]])
assert_type(data.Subset(Squares(), [0, 2])[1], dt.DeviceArray)
assert_type((Squares() + Squares())[7], dt.DeviceArray)
assert_type(data.ConcatDataset([Squares(), Squares()])[0], dt.DeviceArray)
assert_type(data.default_collate([x, x]), dt.DeviceArray)
converted: Any = data.default_convert(np.ones(2))
assert_type(data.get_worker_info() is None, bool)
order = data.BatchSampler(data.RandomSampler(pairs), 2, drop_last=False)
assert_type(list(order), list[list[int]])
assert_type(list(data.SequentialSampler(pairs)), list[int])
assert_type(list(data.SubsetRandomSampler([0, 1])), list[int])
assert_type(list(data.WeightedRandomSampler([0.5, 1.5], 3, replacement=True)), list[int])
assert_type(data.ChainDataset([Endless()]).datasets is None, bool)
stacked: Any = data.StackDataset(Squares(), Squares())[0]
assert_type(len(data.StackDataset(a=Squares(), b=Squares())), int)
sampler: data.Sampler[int] = data.SequentialSampler(pairs)
assert_type(utils.data.DataLoader(pairs, sampler=sampler, batch_sampler=None), data.DataLoader[list[dt.DeviceArray]])

# ---------------------------------------------------------------- devices

assert_type(cuda.is_available(), bool)
assert_type(cuda.device_count(), int)
assert_type(cuda.library_versions(), dict[str, int | None])
if cuda.is_available():
    assert_type(cuda.current_device(), int)
    cuda.set_device("cuda:0")
    with cuda.device(0), cuda.stream(cuda.Stream()):
        assert_type(cuda.current_stream(), cuda.Stream)
        dt.ones(2, device="cuda").record_stream(cuda.current_stream())
    assert_type(cuda.default_stream(0), dt.Stream)
    cuda.set_stream(cuda.default_stream())
    assert_type(cuda.Event(enable_timing=True).query(), bool)
    assert_type(dt.Event().device, dt.device | None)
    assert_type(cuda.get_device_name(0), str)
    assert_type(cuda.get_device_properties("cuda"), cuda.DeviceProperties)
    assert_type(cuda.get_device_properties().total_memory, int)
    assert_type(cuda.get_device_capability(dt.device("cuda:0")), tuple[int, int])
    assert_type(cuda.is_simulated(), bool)
    assert_type(cuda.mem_get_info(), tuple[int, int])
    assert_type(cuda.memory_stats(), dict[str, int])
    assert_type(cuda.memory_summary(0, abbreviated=True), str)
    assert_type(cuda.memory_cached() + cuda.max_memory_cached(0) + cuda.initial_seed(), int)
    assert_type(cuda.is_current_stream_capturing(), bool)
    cuda.init()
    cuda.ipc_collect()
    cuda.seed()
    cuda.seed_all()
    cuda.reset_max_memory_allocated()
    cuda.reset_max_memory_cached(0)
    assert_type(cuda.host_memory_stats(), dict[str, int | float])
    used = cuda.memory_allocated() + cuda.max_memory_allocated() + cuda.memory_reserved() + cuda.max_memory_reserved()
    assert_type(used, int)
    assert_type(cuda.workspace_limit(), int | None)
    cuda.set_workspace_limit(cuda.workspace_limit())
    cuda.set_per_process_memory_fraction(1.0)
    cuda.reset_peak_memory_stats()
    cuda.synchronize()
    cuda.empty_cache()
    with cuda.tune(False):
        pass
    y = dt.ones(4, device="cuda")
    double = cuda.RawKernel('extern "C" __global__ void twice(float *y) { y[threadIdx.x] *= 2; }', "twice")
    double(1, 4, (y,), stream=None)
    double[1, (4, 1, 1)](y)
    external = dt.from_cuda_array_interface(y) if not cuda.is_simulated() else y
    assert_type(external, dt.DeviceArray)
assert_type(cpu.memory_stats(), dict[str, int])
cpu.set_cache_limit(cpu.memory_stats()["limit_bytes"])
cpu.set_packed_limit(cpu.memory_stats()["packed_limit_bytes"])
cpu.empty_cache()

# ---------------------------------------------------------------- transfers and errors

with dt.record_transfers() as log:
    x.to("cpu")
assert_type(log, dt.TransferLog)
copies: list[dt.Transfer] = list(log)
assert_type(log.nbytes, int)


@dt.forbid_transfers(allow="metrics.py")
def guarded(n: int) -> int:
    with dt.allow_transfers():
        return n


assert_type(guarded(1), int)
kinds: list[type[RuntimeError]] = [
    dt.DeviceMismatchError, dt.DTypeMismatchError, dt.ShapeMismatchError, dt.DeviceNotAvailableError,
    dt.HostAccessError, dt.OutOfMemoryError, dt.CudaError, dt.KernelCompileError, dt.KernelArgumentError,
    dt.TransferForbiddenError,
]  # fmt: skip
try:
    dt.ones(2).add(dt.ones(3))
except dt.ShapeMismatchError as error:
    assert_type(error.fix, str | None)
    assert_type(error.to_dict(), dict[str, Any])
    assert_type(error.operands[0].to_dict(), dict[str, Any])
    assert_type(error.operands[0].device, dt.device)
    assert_type(error.operands[0].shape, tuple[int, ...])

# ---------------------------------------------------------------- helpers for tests

testing.assert_close(x, x.numpy(), rtol=1e-3, atol=0.0)
assert_type(testing.devices(), list[str])
assert_type(testing.make_array(2, 3, dtype=dt.float16, device="cpu"), dt.DeviceArray)
assert_type(testing.reset_simulated, Callable[[], None])
simulate: Callable[[int, int | None], None] = testing.simulate_cuda
images, digit = digits.load()
assert_type(images, npt.NDArray[np.float64])
assert_type(digits.load_weights(), dict[str, npt.NDArray[np.float32]])
