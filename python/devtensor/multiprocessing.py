"""torch.multiprocessing: Python's own multiprocessing, whose names are here too, and spawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from devtensor import _C
from devtensor.distributed import _world

__all__ = ["get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """Process, Queue, set_start_method and the others of Python's multiprocessing."""
    import multiprocessing  # which takes longer to import than devtensor does

    try:
        return getattr(multiprocessing, name)
    except AttributeError:
        raise AttributeError(f"module 'devtensor.multiprocessing' has no attribute {name!r}") from None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> None:
    """Call fn(i, *args) as process i of nprocs: here, where mpiexec has started nprocs processes or nprocs is 1.

    A process that is started in another way is none of MPI's and could not join the others, so more than one is
    refused with the mpiexec to type. join, daemon and start_method are accepted. Raises what fn raises, and
    RuntimeError for another number of processes than mpiexec has started.

    >>> dt.multiprocessing.spawn(print, args=("hello",))
    0 hello
    """
    count = _C._need_int("spawn", "nprocs", nprocs)
    if not callable(fn):
        raise TypeError(f"spawn(): argument 'fn' must be callable, not {type(fn).__name__}")
    started = max(_world.started_by_mpi(), 1)
    if count != started:
        there = "1 is" if started == 1 else f"{started} are"
        raise RuntimeError(
            f"spawn(nprocs={count}): devtensor's processes are those of MPI, and {there} there: {_world.launch(count)} "
            "starts them, and spawn then calls fn in each"
        )
    fn(_world.started_rank(), *args)


def get_all_sharing_strategies() -> set[str]:
    """What set_sharing_strategy takes.

    >>> dt.multiprocessing.get_all_sharing_strategies()
    {'file_system'}
    """
    return {"file_system"}


def get_sharing_strategy() -> str:
    """How arrays go to the workers of a DataLoader: in named shared memory.

    >>> dt.multiprocessing.get_sharing_strategy()
    'file_system'
    """
    return "file_system"


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepts "file_system", the one there is, and "file_descriptor", which it serves as well. Raises ValueError.

    >>> dt.multiprocessing.set_sharing_strategy("file_system")
    """
    if new_strategy not in ("file_system", "file_descriptor"):
        raise ValueError(f"set_sharing_strategy(): new_strategy must be 'file_system', not {_C._shown(new_strategy)}")
