"""Memory of the cpu: large blocks that arrays gave back are kept warm for the next ones, and weights of convolutions
are packed once for as long as nothing writes them."""

from __future__ import annotations

from devtensor import _C

__all__ = [
    "empty_cache",
    "memory_stats",
    "set_cache_limit",
    "set_packed_limit",
]


def __dir__() -> list[str]:
    return __all__


def memory_stats() -> dict[str, int]:
    """Bytes kept (`kept_bytes`, at most `limit_bytes`); `requests` for a large block, and how many were `reused`.

    `packed_bytes`: of packed weights, at most `packed_limit_bytes`.

    >>> dt.cpu.memory_stats()["kept_bytes"] <= dt.cpu.memory_stats()["limit_bytes"]
    True
    """
    cache = _C._cpu_cache()
    return {
        "kept_bytes": cache["kept"],
        "limit_bytes": cache["limit"],
        "requests": cache["requests"],
        "reused": cache["reused"],
        "packed_bytes": cache["packed"],
        "packed_limit_bytes": cache["packed_limit"],
    }


def empty_cache() -> None:
    """Give all kept blocks, packed weights included, back to the system.

    >>> dt.cpu.empty_cache()
    """
    _C._cpu_trim_cache()


def set_cache_limit(nbytes: int) -> None:
    """Keep at most `nbytes` bytes of blocks; 0 keeps none. At first an eighth of the machine's memory, at most 1 GiB.

    Raises RuntimeError for a negative number.

    >>> dt.cpu.set_cache_limit(1 << 30)
    """
    _C._cpu_limit_cache(nbytes)


def set_packed_limit(nbytes: int) -> None:
    """Keep at most `nbytes` bytes of packed weights; 0 keeps none. At first `DEVTENSOR_PACKED_LIMIT`, or 64 MiB.

    A weight is packed for keeping when a convolution meets it again and nothing was written to its memory since. Memory
    that other libraries have the address of (`numpy()`, `data_ptr()`, DLPack, the buffer protocol) is never kept so.

    Raises RuntimeError for a negative number.

    >>> dt.cpu.set_packed_limit(64 << 20)
    """
    _C._cpu_limit_packed(nbytes)
