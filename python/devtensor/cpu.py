"""Memory of the cpu: large blocks that arrays gave back are kept warm for the next ones."""

from __future__ import annotations

from devtensor import _C


def memory_stats() -> dict[str, int]:
    """Bytes kept (`kept_bytes`, at most `limit_bytes`); `requests` for a large block, and how many were `reused`."""
    cache = _C._cpu_cache()
    return {
        "kept_bytes": cache["kept"],
        "limit_bytes": cache["limit"],
        "requests": cache["requests"],
        "reused": cache["reused"],
    }


def empty_cache() -> None:
    """Give all kept blocks back to the system."""
    _C._cpu_trim_cache()


def set_cache_limit(nbytes: int) -> None:
    """Keep at most `nbytes` bytes of blocks; 0 keeps none. At first an eighth of the machine's memory, at most 1 GiB.

    Raises RuntimeError for a negative number.
    """
    _C._cpu_limit_cache(nbytes)
