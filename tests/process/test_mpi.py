"""examples/mpi_allreduce.py and mpi4py's view of arrays, with real ranks."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import REAL, ROOT, python_path

EXAMPLE = ROOT / "examples" / "mpi_allreduce.py"
LAUNCHER = shutil.which("mpiexec") or shutil.which("mpiexec", path=os.path.dirname(sys.executable))

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed"),
    pytest.mark.skipif(LAUNCHER is None, reason="there is no mpiexec"),
    pytest.mark.skipif(not EXAMPLE.exists(), reason="reads the source tree"),
]

# Open MPI starts as many processes as asked for, also as the superuser of a container.
MANY = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def run(ranks: int, cuda: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | MANY | {"DEVTENSOR_CUDA": cuda, "PYTHONPATH": python_path()}
    # -m mpi4py: an exception of one rank ends them all
    command = [str(LAUNCHER), "-n", str(ranks), sys.executable, "-m", "mpi4py", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)


def said(ranks: int) -> str:
    return f"{ranks} ranks, loss 0.00009, weights [1.0, 2.0, 3.0, 4.0, 5.0], all ranks agree: True\n"


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_on_the_cpu(ranks: int) -> None:
    child = run(ranks, "off", str(EXAMPLE))
    assert (child.returncode, child.stdout) == (0, said(ranks)), child.stderr


@pytest.mark.parametrize(("ranks", "gpus"), [(2, 1), (2, 2), (4, 2)])
def test_on_gpus_by_way_of_the_host(ranks: int, gpus: int) -> None:
    child = run(ranks, "auto" if REAL else f"sim:{gpus}", str(EXAMPLE), "cuda")
    assert (child.returncode, child.stdout) == (0, said(ranks)), child.stderr


@pytest.mark.skipif(REAL, reason="whether the MPI is CUDA-aware cannot be asked")
def test_a_simulated_gpu_is_refused_with_the_reason() -> None:
    child = run(2, "sim:1", str(EXAMPLE), "cuda", "--aware")
    assert child.returncode != 0
    assert "simulated GPU" in child.stderr


DTYPES = """
from mpi4py import MPI
import devtensor as dt
comm = MPI.COMM_WORLD
for name in "bool uint8 int8 int16 int32 int64 float32 float64".split():
    dtype = getattr(dt, name)
    x = dt.full((3, 2), comm.rank, device="cpu").to(dtype)
    everyone = dt.empty(comm.size, 3, 2, dtype=dtype)
    comm.Allgather(x, everyone)
    assert everyone[:, 2, 1].tolist() == dt.arange(comm.size).to(dtype).tolist(), name
    if comm.rank == 0:
        comm.Send(x + 1 if name != "bool" else x, dest=1)
    if comm.rank == 1:
        comm.Recv(x, source=0)
        assert x.tolist() == dt.full((3, 2), int(name != "bool")).to(dtype).tolist(), name
    try:
        comm.Irecv(dt.frombuffer(bytes(8), dtype=dtype))
        raise AssertionError
    except BufferError as error:
        assert "read-only" in str(error) or "not writable" in str(error), error
    part = comm.bcast(dt.arange(5).to(dtype) if comm.rank == 0 else None)   # by pickle
    assert part.tolist() == dt.arange(5).to(dtype).tolist()
print("right", flush=True)
"""


def test_every_dtype_that_mpi_has(tmp_path: Path) -> None:
    script = tmp_path / "dtypes.py"
    script.write_text(DTYPES)
    child = run(2, "off", str(script))
    said = "".join(child.stdout.split())  # a launcher may join lines of two processes
    assert (child.returncode, said) == (0, "rightright"), child.stderr
