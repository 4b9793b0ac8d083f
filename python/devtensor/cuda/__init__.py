"""CUDA devices, real or simulated: the names of torch.cuda."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NamedTuple

from devtensor import _C
from devtensor import random as _random
from devtensor._C import Event, Stream
from devtensor._errors import OutOfMemoryError
from devtensor._names.old_names import typed_classes
from devtensor._types import Device
from devtensor.cuda._raw_kernel import RawKernel

if TYPE_CHECKING:
    from devtensor.cuda import amp

__all__ = [
    "DeviceProperties",
    "Event",
    "OutOfMemoryError",
    "RawKernel",
    "Stream",
    "amp",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "host_memory_stats",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_simulated",
    "library_versions",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "set_workspace_limit",
    "stream",
    "synchronize",
    "tune",
    "workspace_limit",
]


def __dir__() -> list[str]:
    return __all__


# Where NVIDIA's wheels put their libraries, below a directory of sys.path.
_WHEELS = ("nvidia/cu13/lib", "nvidia/cudnn/lib", "nvidia/cublas/lib", "nvidia/cuda_nvrtc/lib")


def _wheel_directories() -> list[str]:
    """Existing, absolute and without the separator; never the working directory."""
    roots = [p for p in sys.path if os.path.isabs(p) and ":" not in p and os.path.isdir(os.path.join(p, "nvidia"))]
    found = [os.path.join(root, wheel) for root in roots for wheel in _WHEELS]
    if os.path.isdir(os.path.join(sys.prefix, "conda-meta")) and ":" not in sys.prefix:  # also when it is not activated
        found.append(os.path.join(sys.prefix, "lib"))
    return [directory for directory in found if os.path.isdir(directory)]


_C._cuda_set_search_path(":".join(_wheel_directories()))


def _checked(op: str, device: Device | None) -> _C.device | None:
    return None if device is None else _C._need_device(op, "device", device)


globals().update(typed_classes("cuda", "devtensor.cuda"))


def manual_seed(seed: int) -> None:
    """Start the default generator at seed: its numbers are the same on every device, so there is one for all.

    Without a CUDA device nothing happens.

    >>> dt.cuda.manual_seed(1)
    """
    if is_available():
        _C.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """manual_seed.

    >>> dt.cuda.manual_seed_all(1)
    """
    manual_seed(_C._need_int("manual_seed_all", "seed", seed))


def get_rng_state(device: Device = "cuda") -> _C.DeviceArray:
    """The state of the default generator, which all devices share, as random.get_rng_state gives it.

    >>> dt.cuda.get_rng_state().shape
    (16,)
    """
    _C._need_device("get_rng_state", "device", device)
    return _random.get_rng_state()


def get_rng_state_all() -> list[_C.DeviceArray]:
    """The same state once for each device.

    >>> len(dt.cuda.get_rng_state_all()) == dt.cuda.device_count()
    True
    """
    return [_random.get_rng_state() for _ in range(device_count())]


def set_rng_state(new_state: _C.DeviceArray, device: Device = "cuda") -> None:
    """Sets the default generator, which all devices share. Raises RuntimeError for what is no state.

    >>> dt.cuda.set_rng_state(dt.cuda.get_rng_state())
    """
    _C._need_device("set_rng_state", "device", device)
    _random.set_rng_state(new_state)


def set_rng_state_all(new_states: Iterable[_C.DeviceArray]) -> None:
    """Sets the default generator to the last of the states, of which all are the same.

    >>> dt.cuda.set_rng_state_all(dt.cuda.get_rng_state_all())
    """
    for state in new_states:
        _random.set_rng_state(state)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether ops take bfloat16 on the current device: always, if there is one.

    >>> dt.cuda.is_bf16_supported()
    True
    """
    _C._need_bool("is_bf16_supported", "including_emulation", including_emulation)
    return is_available()


def is_initialized() -> bool:
    """Whether this process has used CUDA, so that a fork of it cannot. Asking for the number of devices is a use.

    >>> isinstance(dt.cuda.is_initialized(), bool)
    True
    """
    return _C._cuda_is_initialized()


def is_available() -> bool:
    """Whether there is at least one CUDA device, real or simulated. Never raises.

    >>> device = "cuda" if dt.cuda.is_available() else "cpu"
    """
    return device_count() > 0


def device_count() -> int:
    """Number of CUDA devices; 0 where CUDA cannot be used. Never raises.

    >>> devices = [dt.device("cuda", i) for i in range(dt.cuda.device_count())]
    >>> devices[0]
    device(type='cuda', index=0)
    """
    try:
        return _C._cuda_device_count()
    except (RuntimeError, MemoryError):
        return 0


def current_device() -> int:
    """Index of the current device of this thread: what a bare "cuda" means.

    >>> dt.cuda.current_device()
    0
    """
    return _C._cuda_current_device()


def set_device(device: Device) -> None:
    """Choose the current device of this thread. Raises DeviceNotAvailableError.

    >>> dt.cuda.set_device(0)
    """
    _C._cuda_set_device(_C._need_device("set_device", "device", device))


class device(_C._Scope):
    """Context manager: `with device(1):` makes cuda:1 the current device of this thread; None changes nothing.

    >>> with dt.cuda.device(1):
    ...     x = dt.zeros(2, device="cuda")
    >>> x.device
    device(type='cuda', index=1)
    """

    def __init__(self, device: Device | None) -> None:
        self.idx: int = _C._cuda_index(device)
        self._aim(self.idx, None)


class DeviceProperties(NamedTuple):
    """What does not change about a device."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    is_simulated: bool


def get_device_name(device: Device | None = None) -> str:
    """The name of a device, the current one by default; a simulated one says so.

    >>> dt.cuda.get_device_name()
    'devtensor simulated GPU'
    """
    name: str = _C._cuda_info(_checked("get_device_name", device))["name"]
    return name


def get_device_properties(device: Device | None = None) -> DeviceProperties:
    """Name, compute capability, memory and multiprocessors of a device.

    >>> dt.cuda.get_device_properties(0).total_memory
    4294967296
    """
    info = _C._cuda_info(_checked("get_device_properties", device))
    return DeviceProperties(
        info["name"],
        info["major"],
        info["minor"],
        info["total_memory"],
        info["multi_processor_count"],
        info["simulated"],
    )


def get_device_capability(device: Device | None = None) -> tuple[int, int]:
    """The compute capability, such as (9, 0).

    >>> dt.cuda.get_device_capability()
    (9, 0)
    """
    info = _C._cuda_info(_checked("get_device_capability", device))
    return info["major"], info["minor"]


def is_simulated() -> bool:
    """Whether the CUDA devices are simulated ones; False where there are none.

    >>> dt.cuda.is_simulated()
    True
    """
    return is_available() and _C._cuda_is_simulated()


def synchronize(device: Device | None = None) -> None:
    """Wait for all work on a device. Raises CudaError for what went wrong in it.

    >>> dt.cuda.synchronize()
    """
    _C._cuda_synchronize(device)


def current_stream(device: Device | None = None) -> Stream:
    """The stream that this thread sends its work for a device to. Raises DeviceNotAvailableError.

    >>> with dt.cuda.stream(dt.cuda.default_stream()):
    ...     dt.cuda.current_stream() == dt.cuda.default_stream()
    True
    """
    return _C._cuda_current_stream(device)


def default_stream(device: Device | None = None) -> Stream:
    """The stream of a device that work goes to where none is chosen. Raises DeviceNotAvailableError.

    >>> dt.cuda.default_stream("cuda:1").device
    device(type='cuda', index=1)
    """
    return _C._cuda_default_stream(device)


def set_stream(stream: Stream | None) -> None:
    """Send this thread's work to a stream from now on, and make its device the current one; None changes nothing.

    >>> dt.cuda.set_stream(dt.cuda.default_stream())
    """
    if stream is not None:
        _C._cuda_set_stream(stream)
        set_device(stream.device)


class stream(_C._Scope):
    """Context manager: `with stream(s):` sends this thread's work to s, on the device of s; None changes nothing.

    No waiting is needed on either side: an op waits for what other streams still do to its operands.

    >>> s = dt.cuda.Stream()
    >>> with dt.cuda.stream(s):
    ...     x = dt.ones(2, device="cuda")
    >>> x.sum().item()
    2.0
    """

    def __init__(self, stream: Stream | None) -> None:
        if stream is not None and not isinstance(stream, _C.Stream):
            raise TypeError(f"stream(): argument 'stream' must be Stream, not {type(stream).__name__}")
        self.stream = stream
        self._aim(-1 if stream is None else _C._cuda_index(stream.device), stream)


StreamContext = stream  # PyTorch's name of the class


def empty_cache() -> None:
    """Give unused memory, of devices and page-locked, back to the driver; nothing to do without CUDA. Waits for
    the devices.

    >>> dt.cuda.empty_cache()
    """
    if is_available():
        _C._cuda_empty_cache()


def memory_stats(device: Device | None = None) -> dict[str, int]:
    """What the allocator of a device holds and has done, by PyTorch's names; empty without CUDA.

    Bytes are given for requested (asked for by arrays), allocated and active (the same, rounded up), reserved (taken
    from the driver) and inactive (reserved and not allocated) memory. Blocks are never split. Of what is allocated,
    kept_weights_bytes are copies of weights in the layout that a convolution wants: they go first when memory is short.

    >>> dt.cuda.memory_stats()["allocated_bytes.all.current"] == dt.cuda.memory_allocated()
    True
    """
    return _C._cuda_memory_stats(device) if is_available() else {}


def memory_allocated(device: Device | None = None) -> int:
    """Bytes of device memory that arrays hold, each block rounded up to its size class.

    >>> before = dt.cuda.memory_allocated()
    >>> x = dt.zeros(1000, device="cuda")
    >>> dt.cuda.memory_allocated() - before
    4096
    """
    return memory_stats(_checked("memory_allocated", device)).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device: Device | None = None) -> int:
    """The most bytes that arrays have held at once.

    >>> dt.cuda.reset_peak_memory_stats()
    >>> dt.cuda.max_memory_allocated() == dt.cuda.memory_allocated()
    True
    """
    return memory_stats(_checked("max_memory_allocated", device)).get("allocated_bytes.all.peak", 0)


def memory_reserved(device: Device | None = None) -> int:
    """Bytes of device memory taken from the driver for arrays, unused ones included.

    >>> dt.cuda.memory_reserved() >= dt.cuda.memory_allocated()
    True
    """
    return memory_stats(_checked("memory_reserved", device)).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device: Device | None = None) -> int:
    """The most bytes that were taken from the driver at once.

    >>> dt.cuda.max_memory_reserved() >= dt.cuda.memory_reserved()
    True
    """
    return memory_stats(_checked("max_memory_reserved", device)).get("reserved_bytes.all.peak", 0)


def reset_peak_memory_stats(device: Device | None = None) -> None:
    """Start the counts of max_memory_allocated and max_memory_reserved anew.

    >>> dt.cuda.reset_peak_memory_stats()
    """
    if is_available():
        _C._cuda_reset_peak(device)


def set_per_process_memory_fraction(fraction: float, device: Device | None = None) -> None:
    """Let arrays take at most this part, from 0 to 1, of a device's memory.

    A request beyond it raises OutOfMemoryError, once unused memory was given back. Raises RuntimeError for another
    fraction, DeviceNotAvailableError without CUDA.

    >>> dt.cuda.set_per_process_memory_fraction(1.0)
    """
    _C._cuda_set_memory_fraction(fraction, device)


def mem_get_info(device: Device | None = None) -> tuple[int, int]:
    """Free and total bytes of a device. Raises DeviceNotAvailableError without CUDA.

    >>> free, total = dt.cuda.mem_get_info()
    >>> free <= total
    True
    """
    info = _C._cuda_info(_checked("mem_get_info", device))
    return info["free_memory"], info["total_memory"]


def host_memory_stats() -> dict[str, int | float]:
    """Page-locked memory of the host by PyTorch's names: counts, bytes, and microseconds in the driver.

    "allocated" is what the driver has locked, the buffers that transfers pass through included; "active" is what is
    in use. empty_cache gives the difference back.

    >>> "num_host_alloc" in dt.cuda.host_memory_stats()
    True
    """
    found = _C._cuda_host_memory()
    stats = {f"{name}.{key}": number for name, numbers in found.items() for key, number in numbers.items()}
    stats["num_host_alloc"] = found["allocations"]["allocated"]
    stats["num_host_free"] = found["allocations"]["freed"]
    return stats


def library_versions() -> dict[str, int | None]:
    """Version numbers of cuBLASLt and cuDNN, as the libraries give them; None where one cannot be loaded.

    >>> sorted(dt.cuda.library_versions())
    ['cublasLt', 'cudnn']
    """
    return _C._cuda_library_versions()


_NO_LIMIT = 2**63 - 1


def workspace_limit() -> int | None:
    """The most bytes of scratch memory for a convolution, if it has a choice; None, the default, for what is free.

    See set_workspace_limit.

    >>> dt.cuda.workspace_limit()
    """
    nbytes = _C._cuda_workspace_limit()
    return None if nbytes == _NO_LIMIT else nbytes


def set_workspace_limit(nbytes: int | None) -> None:
    """Do not use convolution algorithms that need more scratch memory, in the whole process; None: more than is free.

    Where there is no room for tensor cores, the batch is convolved in parts, if they have room then. If every algorithm
    needs more, the one that needs least is used. With a limit the choice does not depend on what else is in memory.
    Raises RuntimeError for a negative number.

    >>> dt.cuda.set_workspace_limit(256 << 20)
    >>> dt.cuda.workspace_limit()
    268435456
    >>> dt.cuda.set_workspace_limit(None)
    """
    _C._cuda_workspace_limit(_NO_LIMIT if nbytes is None else nbytes)


class tune:
    """Try several of cuDNN's engines the first time that a convolution of some shape is run, and keep the fastest.

    `dt.cuda.tune()` switches this on for the process, `dt.cuda.tune(False)` off; `with dt.cuda.tune():` for a block.
    What was found on the current device is kept for later processes, for its kind and the version of cuDNN, in
    $DEVTENSOR_CACHE_DIR, $XDG_CACHE_HOME/devtensor or ~/.cache/devtensor: read when tuning is switched on, written at
    the end of the block or when it is switched off. Without tuning the first engine that cuDNN recommends runs. Results
    stay within the same error bounds, but two engines may round differently.

    >>> with dt.cuda.tune():
    ...     y = dt.conv2d(dt.ones(1, 3, 8, 8, device="cuda"), dt.ones(4, 3, 3, 3, device="cuda"))
    >>> y.shape
    (1, 4, 6, 6)
    """

    def __init__(self, enabled: bool = True) -> None:
        self._before = _C._cuda_tuning()
        enabled = _C._need_bool("tune", "enabled", enabled)
        if enabled and not self._before:
            self._exchange("load")
        _C._cuda_tuning(enabled)
        if self._before and not enabled:
            self._exchange("save")

    def __enter__(self) -> tune:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if _C._cuda_tuning(self._before) and not self._before:
            self._exchange("save")

    @staticmethod
    def _exchange(way: Literal["load", "save"]) -> None:
        from devtensor.cuda import _plans  # which reads and writes files, as nothing else at import does

        if is_available():
            (_plans.load if way == "load" else _plans.save)(current_device())


from devtensor.cuda._old_names import (  # noqa: E402
    init,
    initial_seed,
    ipc_collect,
    is_current_stream_capturing,
    max_memory_cached,
    memory_cached,
    memory_summary,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    seed,
    seed_all,
)


def __getattr__(name: str) -> bool:
    """cuda._initialized, which reversible layers ask as PyTorch's own checkpoint does."""
    if name == "_initialized":
        return is_initialized()
    raise AttributeError(f"module 'devtensor.cuda' has no attribute {name!r}")
