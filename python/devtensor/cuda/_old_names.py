"""Names of torch.cuda for what has another name here, or needs nothing to be done."""

from __future__ import annotations

from devtensor import _C, cuda
from devtensor._types import Device


def init() -> None:
    """Begin to use CUDA, which the first use does by itself. Raises DeviceNotAvailableError where there is none.

    >>> dt.cuda.init()
    """
    cuda.current_device()


def ipc_collect() -> None:
    """Changes nothing: no other process has memory of this one.

    >>> dt.cuda.ipc_collect()
    """


def seed() -> None:
    """Start the default generator, which all devices share, at a seed from the operating system.

    >>> dt.cuda.seed()
    """
    _C.seed()


def seed_all() -> None:
    """seed.

    >>> dt.cuda.seed_all()
    """
    _C.seed()


def initial_seed() -> int:
    """The seed of the default generator.

    >>> dt.cuda.manual_seed(3)
    >>> dt.cuda.initial_seed()
    3
    """
    return _C.initial_seed()


def is_current_stream_capturing() -> bool:
    """False: launches are not captured.

    >>> dt.cuda.is_current_stream_capturing()
    False
    """
    return False


def memory_summary(device: Device | None = None, abbreviated: bool = False) -> str:
    """memory_stats as lines to print; abbreviated: what is current.

    >>> dt.cuda.memory_summary().splitlines()[0]
    'cuda:0'
    """
    _C._need_bool("memory_summary", "abbreviated", abbreviated)
    place = _C._need_device("memory_summary", "device", "cuda" if device is None else device)
    stats = cuda.memory_stats(place)
    return "\n".join(
        [
            str(place),
            *(
                f"  {name:<40} {value:>16,}"
                for name, value in stats.items()
                if name.endswith("current") or not abbreviated
            ),
        ]
    )


def memory_cached(device: Device | None = None) -> int:
    """memory_reserved.

    >>> dt.cuda.memory_cached() == dt.cuda.memory_reserved()
    True
    """
    return cuda.memory_reserved(cuda._checked("memory_cached", device))


def max_memory_cached(device: Device | None = None) -> int:
    """max_memory_reserved.

    >>> dt.cuda.max_memory_cached() == dt.cuda.max_memory_reserved()
    True
    """
    return cuda.max_memory_reserved(cuda._checked("max_memory_cached", device))


def reset_max_memory_allocated(device: Device | None = None) -> None:
    """reset_peak_memory_stats.

    >>> dt.cuda.reset_max_memory_allocated()
    """
    cuda.reset_peak_memory_stats(cuda._checked("reset_max_memory_allocated", device))


def reset_max_memory_cached(device: Device | None = None) -> None:
    """reset_peak_memory_stats.

    >>> dt.cuda.reset_max_memory_cached()
    """
    cuda.reset_peak_memory_stats(cuda._checked("reset_max_memory_cached", device))


__all__ = [
    "init",
    "initial_seed",
    "ipc_collect",
    "is_current_stream_capturing",
    "max_memory_cached",
    "memory_cached",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "seed",
    "seed_all",
]
