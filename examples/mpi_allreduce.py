"""Data-parallel training over MPI: each rank has its part of the data, and the gradient is the mean over all ranks.

    mpiexec -n 4 python -m mpi4py examples/mpi_allreduce.py                # on the cpu
    mpiexec -n 4 python -m mpi4py examples/mpi_allreduce.py cuda           # GPUs; sums go by way of the host
    mpiexec -n 4 python -m mpi4py examples/mpi_allreduce.py cuda --aware   # GPUs, and an MPI that was built for CUDA

Needs mpi4py 4.1 and an MPI; with -m mpi4py an exception of one rank ends them all. Arrays on the cpu reach MPI by the
buffer protocol. Arrays on a GPU reach it by DLPack or the CUDA array interface, and only an MPI that is CUDA-aware can
use such addresses: another one crashes on them, and nothing that mpi4py offers tells which it is, so that --aware has
to be said. A simulated GPU lends its addresses to nobody.
"""

from __future__ import annotations

import sys

from mpi4py import MPI

import devtensor as dt

comm = MPI.COMM_WORLD


def mean(x: dt.DeviceArray, aware: bool) -> dt.DeviceArray:
    """The mean of x over all ranks, on the device of x."""
    if x.is_cuda and not aware:
        return mean(x.cpu(), aware).to(x.device)
    x = x.contiguous()
    total = dt.empty_like(x)
    if x.is_cuda:
        dt.cuda.synchronize(x.device)  # MPI knows nothing of streams
    comm.Allreduce(x, total)
    return total / comm.size


def choose_device(kind: str) -> dt.device:
    """The cpu, or the ranks of one machine take turns over its GPUs."""
    if kind == "cpu":
        return dt.device("cpu")
    local = comm.Split_type(MPI.COMM_TYPE_SHARED).rank
    return dt.device("cuda", local % dt.cuda.device_count())


def train(device: dt.device, aware: bool, steps: int = 200, rows: int = 240) -> tuple[dt.DeviceArray, float]:
    """Least squares by gradient descent; every rank makes the same data and keeps its part."""
    dt.manual_seed(0)
    x, truth = dt.randn(rows, 5), dt.arange(1, 6, dtype=dt.float32).reshape(5, 1)
    y = x @ truth + 0.01 * dt.randn(rows, 1)
    part = slice(comm.rank * rows // comm.size, (comm.rank + 1) * rows // comm.size)
    x, y = x[part].to(device), y[part].to(device)
    weights = dt.zeros(5, 1, device=device)
    for _ in range(steps):
        error = x @ weights - y
        weights -= 0.1 * mean(2 / len(x) * (x.T @ error), aware)
    loss = mean((x @ weights - y).square().mean(), aware)
    return weights, loss.item()


def main() -> None:
    aware = "--aware" in sys.argv
    device = choose_device("cuda" if "cuda" in sys.argv else "cpu")
    weights, loss = train(device, aware)
    mine = weights.cpu().flatten()
    others = dt.empty(comm.size, 5)
    comm.Allgather(mine, others)
    if comm.rank == 0:
        rounded = [round(weight, 2) for weight in mine.tolist()]
        print(f"{comm.size} ranks, loss {loss:.5f}, weights {rounded}, all ranks agree: {bool((others == mine).all())}")
    comm.Barrier()


if __name__ == "__main__":
    main()
