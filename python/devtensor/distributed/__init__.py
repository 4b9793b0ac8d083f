"""Several processes that train one model, over MPI: torch.distributed.

mpiexec starts the processes, one for each device; init_process_group finds the others. A program started without
mpiexec is a world of one process, which needs no MPI. All backends mean MPI, by mpi4py.
"""

from __future__ import annotations

import importlib.util
import os
from typing import Any

from devtensor import _C
from devtensor.distributed import _world
from devtensor.distributed._collectives import (
    ReduceOp,
    Work,
    all_gather,
    all_gather_object,
    all_reduce,
    barrier,
    broadcast,
    broadcast_object_list,
    gather,
    reduce,
    scatter,
)
from devtensor.distributed._exchanges import (
    P2POp,
    all_to_all,
    all_to_all_single,
    batch_isend_irecv,
    irecv,
    isend,
    monitored_barrier,
    reduce_scatter,
    scatter_object_list,
)
from devtensor.distributed._messages import (
    all_gather_into_tensor,
    gather_object,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    recv,
    reduce_scatter_tensor,
    send,
)
from devtensor.distributed._world import ProcessGroup, group

from devtensor.distributed import nn as nn  # isort: skip

__all__ = [
    "P2POp",
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "isend",
    "monitored_barrier",
    "new_group",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
]


def __dir__() -> list[str]:
    return __all__


_world.tell_environment()


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
    _ranks: Any = None,
) -> None:
    """Find the processes that mpiexec has started with this one.

    backend "mpi", "gloo" and "nccl" all mean MPI, and a message says so once. world_size and rank, or WORLD_SIZE, must
    be what MPI says; init_method, timeout, store, group_name, pg_options and device_id are accepted and change nothing.
    RANK, WORLD_SIZE and LOCAL_RANK are set where they are not.

    Raises ValueError for a backend that is not known, for another number of processes than there are, and the second
    time, ImportError where mpi4py is needed and not there.

    >>> dt.distributed.init_process_group("gloo")
    >>> dt.distributed.get_rank(), dt.distributed.get_world_size()
    (0, 1)
    >>> dt.distributed.destroy_process_group()
    """
    op = "init_process_group"
    _world.open_group(backend, _C._need_int(op, "world_size", world_size), _C._need_int(op, "rank", rank))


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Forget the group of processes. Raises ValueError if there is none.

    >>> dt.distributed.init_process_group()
    >>> dt.distributed.destroy_process_group()
    """
    _world.current(group)
    _world.close_group()


def is_available() -> bool:
    """True: one process is a group too. is_mpi_available tells whether there can be more.

    >>> dt.distributed.is_available()
    True
    """
    return True


def is_initialized() -> bool:
    """Whether init_process_group has been called.

    >>> dt.distributed.is_initialized()
    False
    """
    return _world.initialized()


def is_mpi_available() -> bool:
    """Whether mpi4py is installed.

    >>> available = dt.distributed.is_mpi_available()
    """
    return importlib.util.find_spec("mpi4py") is not None


def is_gloo_available() -> bool:
    """As is_mpi_available: "gloo" means MPI.

    >>> available = dt.distributed.is_gloo_available()
    """
    return is_mpi_available()


def is_nccl_available() -> bool:
    """As is_mpi_available: "nccl" means MPI.

    >>> available = dt.distributed.is_nccl_available()
    """
    return is_mpi_available()


def is_backend_available(backend: str) -> bool:
    """Whether init_process_group takes the backend for several processes.

    >>> dt.distributed.is_backend_available("ucx")
    False
    """
    return _C._need_str("is_backend_available", "backend", backend).lower() in _world.BACKENDS and is_mpi_available()


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process on its machine: LOCAL_RANK, else fallback_rank. Raises RuntimeError without both.

    >>> local = dt.distributed.get_node_local_rank(fallback_rank=0)
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError(
            "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to "
            "work, or start the program by mpiexec"
        )
    return _C._need_int("get_node_local_rank", "fallback_rank", fallback_rank)


def is_torchelastic_launched() -> bool:
    """False: torchrun does not start processes of devtensor.

    >>> dt.distributed.is_torchelastic_launched()
    False
    """
    return False


def get_rank(group: ProcessGroup | None = None) -> int:
    """The number of this process. Raises ValueError before init_process_group.

    >>> dt.distributed.init_process_group()
    >>> dt.distributed.get_rank()
    0
    >>> dt.distributed.destroy_process_group()
    """
    return _world.current(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many processes there are. Raises ValueError before init_process_group.

    >>> dt.distributed.init_process_group()
    >>> dt.distributed.get_world_size()
    1
    >>> dt.distributed.destroy_process_group()
    """
    return _world.current(group).size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """The name that init_process_group was given; it means MPI.

    >>> dt.distributed.init_process_group("gloo")
    >>> dt.distributed.get_backend()
    'gloo'
    >>> dt.distributed.destroy_process_group()
    """
    return _world.current(group)._backend


def new_group(
    ranks: list[int] | None = None,
    timeout: Any = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> ProcessGroup:
    """The group of all processes. Groups of some of them are not there: NotImplementedError.

    >>> dt.distributed.init_process_group()
    >>> dt.distributed.new_group().size()
    1
    >>> dt.distributed.destroy_process_group()
    """
    group = _world.current()
    if ranks is not None and sorted(ranks) != list(range(group.size())):
        raise NotImplementedError(
            f"new_group(ranks={ranks!r}): only the group of all {group.size()} processes is there"
        )
    return group
