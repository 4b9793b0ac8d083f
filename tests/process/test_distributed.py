"""dt.distributed and DistributedDataParallel: alone, and in processes that MPI starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import test_mpi
from support import REAL, python_path

import devtensor as dt
from devtensor import distributed as dist
from devtensor import nn

with_mpi = [mark for mark in test_mpi.pytestmark if "mpi" in str(mark.kwargs["reason"])]


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("OMPI_", "PMI_", "MV2_")) or name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
            monkeypatch.delenv(name)
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):  # what is set is taken away afterwards
        monkeypatch.setenv(name, "0" if name != "WORLD_SIZE" else "1")


WRONG: list[tuple[Callable[[dt.DeviceArray], object], str]] = [
    (lambda x: dist.all_reduce(3), r"all_reduce\(\): argument 'tensor'"),  # type: ignore[arg-type]
    (lambda x: dist.broadcast(3, 0), r"broadcast\(\): argument 'tensor'"),  # type: ignore[arg-type]
    (lambda x: dist.all_gather([x], 3), r"all_gather\(\): argument 'tensor'"),  # type: ignore[arg-type]
    (lambda x: dist.all_to_all_single(x, 3), r"all_to_all_single\(\): argument 'input'"),  # type: ignore[arg-type]
    (lambda x: dist.all_to_all_single(3, x), r"all_to_all_single\(\): argument 'output'"),  # type: ignore[arg-type]
    (lambda x: dist.reduce_scatter(3, [x]), r"reduce_scatter\(\): argument 'output'"),  # type: ignore[arg-type]
]


def test_what_is_no_array_is_told_by_op_and_name(alone: None) -> None:
    dist.init_process_group()
    try:
        for call, text in WRONG:
            with pytest.raises(TypeError, match=text):
                call(dt.ones(1))
    finally:
        dist.destroy_process_group()


def test_one_process_says_nothing_of_its_backend(alone: None, capsys: pytest.CaptureFixture[str]) -> None:
    dist.init_process_group("gloo")
    dist.destroy_process_group()
    assert capsys.readouterr() == ("", "")


def test_one_process(alone: None) -> None:
    assert dist.is_available() and not dist.is_initialized() and not dist.is_torchelastic_launched()
    for call in (dist.get_rank, dist.get_world_size, dist.barrier, dist.destroy_process_group, dist.new_group):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            call()
    dist.init_process_group("nccl", init_method="env://")
    try:
        assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "nccl")
        with pytest.raises(ValueError, match="twice"):
            dist.init_process_group()
        x = dt.arange(3)
        for work in (dist.all_reduce(x, async_op=True), dist.broadcast(x, 0, async_op=True)):
            assert work.wait() and work.is_completed()
        parts = [dt.zeros(3, dtype=dt.int64)]
        dist.all_gather(parts, x)
        assert parts[0].tolist() == x.tolist() == [0, 1, 2]
        found = [None]
        dist.all_gather_object(found, "a")
        assert found == ["a"] and dist.new_group([0]).size() == 1
        with pytest.raises(NotImplementedError, match="only the group of all 1 processes"):
            dist.new_group([])
        with pytest.raises(TypeError, match="argument 'op' must be a ReduceOp, not str"):
            dist.all_reduce(x, "sum")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="AVG needs floats, but got devtensor.int64"):
            dist.all_reduce(x, dist.ReduceOp.AVG)
        with pytest.raises(ValueError, match="gradients flow through ReduceOp.SUM and ReduceOp.AVG, not ReduceOp.MAX"):
            dist.nn.all_reduce(dt.ones(1), dist.ReduceOp.MAX)
        y = dt.ones(2, requires_grad=True)
        (dist.nn.all_reduce(y) + dist.nn.all_gather(y)[0]).sum().backward()
        assert y.grad is not None and y.grad.tolist() == [2.0, 2.0]
        with pytest.raises(TypeError, match="BOR needs integers"):
            dist.all_reduce(dt.ones(1), dist.ReduceOp.BOR)
        with pytest.raises(ValueError, match="src=3, and the ranks are 0 to 0"):
            dist.broadcast(x, 3)
        with pytest.raises(ValueError, match="tensor_list must be a list of 1 arrays"):
            dist.all_gather([], x)
        with pytest.raises(ValueError, match="this process itself"):
            dist.send(x, 0)
        with pytest.raises(ValueError, match="there is no other process"):
            dist.recv(x)
        with pytest.raises(dt.ShapeMismatchError):
            dist.all_gather_into_tensor(dt.zeros(4, dtype=dt.int64), x)
        with pytest.raises(dt.DTypeMismatchError):
            dist.reduce_scatter_tensor(dt.zeros(3), x)
        world = dist.group.WORLD
        assert world is not None and dist.get_process_group_ranks(world) == [0]
        assert dist.get_global_rank(world, 0) == dist.get_group_rank(world, 0) == 0
        with pytest.raises(ValueError, match="group_rank=1 is not part of the group"):
            dist.get_global_rank(world, 1)
        assert dist.get_node_local_rank() == 0 and not dist.is_backend_available("ucx")
        with pytest.raises(dt.ShapeMismatchError):
            dist.all_gather([dt.zeros(4, dtype=dt.int64)], x)
        with pytest.raises(ValueError, match=r"isend\(\): dst=0 is this process itself"):
            dist.isend(x, 0)
        with pytest.raises(ValueError, match=r"irecv\(\): there is no other process"):
            dist.irecv(x)
        with pytest.raises(ValueError, match="'op' must be distributed.isend or distributed.irecv"):
            dist.P2POp(dist.send, x, 0)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="'p2p_op_list' must be a list of P2POp"):
            dist.batch_isend_irecv([x])  # type: ignore[list-item]
        with pytest.raises(ValueError, match="process 0 sends itself 3 elements, and expects 2"):
            dist.all_to_all([x[:2]], [x])
        with pytest.raises(ValueError, match="output_split_sizes must be 1 sizes whose sum is 3"):
            dist.all_to_all_single(x, x, [2])
        for call in (dist.all_to_all_single, lambda a, b: dist.all_to_all([a], [b])):
            with pytest.raises(dt.DTypeMismatchError):
                call(dt.zeros(3), x)
        with pytest.raises(dt.ShapeMismatchError):
            dist.all_to_all_single(dt.zeros(3, 2, dtype=dt.int64), x)
        with pytest.raises(dt.ShapeMismatchError):
            dist.reduce_scatter(x, [x[:2]])
        with pytest.raises(ValueError, match="must be a list of 1, one for each process"):
            dist.scatter_object_list([None], [])
        with pytest.raises(dt.DTypeMismatchError):
            dist.all_gather([dt.zeros(3)], x)
    finally:
        dist.destroy_process_group()


def test_the_number_of_processes(alone: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"4 processes are asked for .* started 1: mpiexec -n 4 python"):
        dist.init_process_group(world_size=4, rank=0)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="mpiexec -n 2 python"):
        dist.init_process_group()
    with pytest.raises(ValueError, match="rank=1 was given, and MPI calls this process 0"):
        dist.init_process_group(world_size=1, rank=1)
    with pytest.raises(ValueError, match="Unknown backend 'ucx'"):
        dist.init_process_group("ucx")
    assert not dist.is_initialized()


def test_data_parallel_of_one_process(alone: None) -> None:
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    dist.init_process_group()
    try:
        net = nn.Linear(2, 1)
        model = nn.parallel.DistributedDataParallel(net)
        assert model.module is net and list(model.state_dict()) == ["module.weight", "module.bias"]
        model(dt.ones(3, 2)).sum().backward()
        assert net.weight.grad.tolist() == [[3, 3]]
        with model.no_sync():
            model(dt.ones(3, 2)).sum().backward()
        assert net.weight.grad.tolist() == [[6, 6]] and model.require_backward_grad_sync
        with pytest.raises(RuntimeError, match="is not needed when a module doesn't have any parameter"):
            nn.parallel.DistributedDataParallel(nn.ReLU())
        with pytest.raises(ValueError, match="device_ids has one device"):
            nn.parallel.DistributedDataParallel(net, device_ids=[0, 1])
        with pytest.raises(NotImplementedError, match="device_mesh="):
            nn.parallel.DistributedDataParallel(net, device_mesh=3)
    finally:
        dist.destroy_process_group()


def test_spawn(alone: None) -> None:
    calls: list[int] = []
    dt.multiprocessing.spawn(calls.append)
    assert calls == [0]
    with pytest.raises(RuntimeError, match="are those of MPI, and 1 is there: mpiexec -n 4 python"):
        dt.multiprocessing.spawn(calls.append, nprocs=4)
    with pytest.raises(TypeError, match="argument 'fn' must be callable, not int"):
        dt.multiprocessing.spawn(3)  # type: ignore[arg-type]
    assert dt.multiprocessing.Queue and dt.multiprocessing.cpu_count() > 0
    with pytest.raises(AttributeError, match="module 'devtensor.multiprocessing' has no attribute 'fork_all'"):
        dt.multiprocessing.fork_all()
    dt.multiprocessing.set_sharing_strategy("file_descriptor")
    with pytest.raises(ValueError, match="new_strategy must be 'file_system'"):
        dt.multiprocessing.set_sharing_strategy("pipes")


class Half(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(2, 1), nn.Linear(2, 1)

    def forward(self, x: dt.DeviceArray) -> dt.DeviceArray:
        return self.a(x)


def test_parameters_without_a_gradient(alone: None) -> None:
    dist.init_process_group()
    try:
        model = nn.parallel.DistributedDataParallel(Half())
        model(dt.ones(3, 2)).sum().backward()
        with pytest.raises(RuntimeError, match=r"find_unused_parameters=True.*had no gradient: b.bias, b.weight"):
            model(dt.ones(3, 2))
        model = nn.parallel.DistributedDataParallel(Half(), find_unused_parameters=True)
        for _ in range(3):
            model(dt.ones(3, 2)).sum().backward()
        assert model.module.b.weight.grad is None
        model.eval()
        with dt.no_grad():
            model(dt.ones(3, 2))
    finally:
        dist.destroy_process_group()


def test_each_process_takes_its_part() -> None:
    Sampler = dt.data.distributed.DistributedSampler
    for count, replicas in ((10, 4), (8, 4), (3, 4), (1, 3), (0, 2)):
        data = range(count)
        for drop in (False, True):
            parts = [list(Sampler(data, replicas, rank, drop_last=drop)) for rank in range(replicas)]
            assert {len(part) for part in parts} == {len(Sampler(data, replicas, 0, drop_last=drop))}
            if not drop and count:
                assert {index for part in parts for index in part} == set(data)
            if drop:
                assert len({index for part in parts for index in part}) == count // replicas * replicas
    sampler = Sampler(range(20), 2, 0)
    first = list(sampler)
    assert list(sampler) == first
    sampler.set_epoch(1)
    assert list(sampler) != first
    with pytest.raises(ValueError, match="Invalid rank 2"):
        Sampler(range(3), 2, 2)
    with pytest.raises(ValueError, match="Default process group"):
        Sampler(range(3))
    try:
        from torch.utils.data.distributed import DistributedSampler as Theirs
    except ImportError:
        return
    for count in (7, 3, 12):
        ours = [list(Sampler(range(count), 3, rank, shuffle=False)) for rank in range(3)]
        assert ours == [list(Theirs(range(count), 3, rank, shuffle=False)) for rank in range(3)]


# ---------------------------------------------------------------- with MPI


def run(ranks: int, cuda: str, program: str, path: Path) -> list[str]:
    script = path / "train.py"
    script.write_text(program)
    environment = os.environ | test_mpi.MANY | {"DEVTENSOR_CUDA": cuda, "PYTHONPATH": python_path()}
    launcher = [str(test_mpi.LAUNCHER), "-n", str(ranks)] if ranks > 1 else []
    command = [*launcher, sys.executable, *(["-m", "mpi4py"] if ranks > 1 else []), str(script)]
    child = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert child.returncode == 0, child.stderr
    return child.stdout.splitlines()


TRAIN = """
import os
import devtensor as dt
import devtensor.distributed as dist
from devtensor import nn

dist.init_process_group("nccl")
rank, size = dist.get_rank(), dist.get_world_size()
assert (os.environ["RANK"], os.environ["WORLD_SIZE"]) == (str(rank), str(size)) and "LOCAL_RANK" in os.environ
device = "cuda:0" if dt.cuda.is_available() else "cpu"
dt.manual_seed(rank)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 1)).to(device)
dt.manual_seed(0)
model = nn.parallel.DistributedDataParallel(net, device_ids=[0] if device != "cpu" else None, bucket_cap_mb=0.0003)
optimizer = dt.optim.Adam(model.parameters(), lr=0.01)
x = dt.randn(16, 4)
y = x.sum(1, keepdim=True)
mine = slice(rank * 16 // size, (rank + 1) * 16 // size)
for step in range(6):
    optimizer.zero_grad()
    if step == 3:
        with model.no_sync():
            ((model(x[mine]) - y[mine].to(device)) ** 2).mean().backward()
    loss = ((model(x[mine]) - y[mine].to(device)) ** 2).mean()
    loss.backward()
    optimizer.step()
    total = loss.detach().clone()
    dist.all_reduce(total, op=dist.ReduceOp.AVG)
    if rank == 0:
        print(total.item())
dist.destroy_process_group()
"""


@pytest.mark.parametrize("cuda", ["off", "sim:1"])
def test_losses_are_those_of_one_process(cuda: str, tmp_path: Path) -> None:
    for mark in with_mpi:
        if mark.args[0]:
            pytest.skip(mark.kwargs["reason"])
    if REAL and cuda != "off":
        pytest.skip("one GPU for four processes")
    want = [float(line) for line in run(1, cuda, TRAIN, tmp_path)]
    got = [float(line) for line in run(4, cuda, TRAIN, tmp_path)]
    np.testing.assert_allclose(got, want, rtol=1e-5)


TOGETHER = """
import devtensor as dt
import devtensor.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
x = dt.full((2,), rank + 1.0, requires_grad=True)
total = dist.nn.all_reduce(x)
assert total.tolist() == [10, 10]
(total * (rank + 1)).sum().backward()  # each process weighs the sum by its own number
assert x.grad.tolist() == [10, 10], x.grad
x.grad = None
mean = dist.nn.functional.all_reduce(x, op=dist.ReduceOp.AVG)
assert mean.tolist() == [2.5, 2.5]
mean.sum().backward()
assert x.grad.tolist() == [1, 1], x.grad
x.grad = None
parts = dist.nn.all_gather(x)
assert [part.tolist() for part in parts] == [[r + 1, r + 1] for r in range(size)]
sum((r + 1) * (rank + 1) * part.sum() for r, part in enumerate(parts)).backward()
assert x.grad.tolist() == [10 * (rank + 1)] * 2, x.grad
for dtype in (dt.float32, dt.float64, dt.float16, dt.bfloat16, dt.int64, dt.uint8):
    x = dt.full((2, 3), rank + 1, dtype=dtype).T
    dist.all_reduce(x)
    assert x.tolist() == [[10, 10]] * 3, x
    x = dt.full((2,), rank + 1, dtype=dtype)
    dist.all_reduce(x, dist.ReduceOp.MAX)
    assert x.tolist() == [4, 4]
    x = dt.full((2,), rank + 1, dtype=dtype)
    dist.reduce(x, dst=1, op=dist.ReduceOp.PRODUCT)
    assert x.tolist() == [24 if rank == 1 else rank + 1] * 2
    x = dt.full((2,), rank, dtype=dtype)
    dist.broadcast(x, src=2)
    assert x.tolist() == [2, 2]
    parts = [dt.zeros(2, dtype=dtype) for _ in range(size)]
    dist.all_gather(parts, dt.full((2,), rank, dtype=dtype))
    assert [part.tolist() for part in parts] == [[i, i] for i in range(size)]
    parts = [dt.zeros(2, dtype=dtype) for _ in range(size)]
    dist.gather(dt.full((2,), rank, dtype=dtype), parts if rank == 3 else None, dst=3)
    assert rank != 3 or [part.tolist() for part in parts] == [[i, i] for i in range(size)]
    x = dt.zeros(2, dtype=dtype)
    dist.scatter(x, [dt.full((2,), i, dtype=dtype) for i in range(size)] if rank == 0 else None, src=0)
    assert x.tolist() == [rank, rank]
flags = dt.tensor([rank == 2, False])
dist.all_reduce(flags, dist.ReduceOp.MAX)
assert flags.tolist() == [True, False]
mean = dt.tensor([float(rank)])
dist.all_reduce(mean, dist.ReduceOp.AVG)
assert mean.tolist() == [1.5]
things = [rank, {"a": rank}]
dist.broadcast_object_list(things, src=1)
assert things == [1, {"a": 1}]
found = [None] * size
dist.all_gather_object(found, rank * 2)
assert found == [0, 2, 4, 6]
gathered = [None] * size if rank == 2 else None
dist.gather_object({"rank": rank}, gathered, dst=2)
assert rank != 2 or gathered == [{"rank": i} for i in range(size)]
for dtype in (dt.float32, dt.bfloat16, dt.int32, dt.bool):
    if rank == 0:
        dist.send(dt.ones(2, dtype=dtype), dst=3, tag=7)
    if rank == 3:
        x = dt.zeros(2, dtype=dtype)
        assert dist.recv(x, src=0, tag=7) == 0 and x.tolist() == [1, 1]
        assert dist.recv(x) == 1 and x.tolist() == [0, 0]
    if rank == 1:
        dist.send(dt.zeros(2, dtype=dtype), dst=3)
    dist.barrier()
whole = dt.zeros(8)
dist.all_gather_into_tensor(whole, dt.full((2,), float(rank)))
assert whole.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
part = dt.zeros(2)
dist.reduce_scatter_tensor(part, whole)
assert dist.get_process_group_ranks(None) == [0, 1, 2, 3]
assert part.tolist() == [4 * rank, 4 * rank]
dist.barrier()
for dtype in (dt.float32, dt.bfloat16, dt.int64, dt.bool, dt.float64):
    x, y = dt.ones(3).to(dtype), dt.zeros(3, dtype=dtype)
    sent, got = dist.isend(x, (rank + 1) % size, tag=5), dist.irecv(y, (rank - 1) % size, tag=5)
    x.zero_()  # it was copied
    assert got.wait() and sent.wait() and sent.is_completed() and got.is_completed() and y.tolist() == [1, 1, 1]
y = dt.zeros(2)
ahead = dist.P2POp(dist.isend, dt.full((2,), float(rank)), (rank + 1) % size)
for work in dist.batch_isend_irecv([ahead, dist.P2POp(dist.irecv, y, (rank - 1) % size)]):
    work.wait()
assert y.tolist() == [(rank - 1) % size] * 2
places = [dt.zeros(rank + 1) for _ in range(size)]
dist.all_to_all(places, [dt.full((i + 1,), 10.0 * rank + i) for i in range(size)])
assert [place.tolist() for place in places] == [[10.0 * i + rank] * (rank + 1) for i in range(size)]
whole = dt.zeros(size, 2)
dist.all_to_all_single(whole, dt.arange(2 * size).reshape(size, 2).float() + 100 * rank)
assert whole.tolist() == [[100.0 * i + 2 * rank, 100.0 * i + 2 * rank + 1] for i in range(size)]
rows = [(rank + i) % 3 for i in range(size)]
whole = dt.zeros(sum(rows), 2, dtype=dt.float16)
dist.all_to_all_single(whole, dt.cat([dt.full((n, 2), 10.0 * rank + i) for i, n in enumerate(rows)]).half(), rows, rows)
assert whole.tolist() == [[10.0 * i + rank] * 2 for i, n in enumerate(rows) for _ in range(n)]
for how, wanted in ((dist.ReduceOp.SUM, 6 + 4 * rank), (dist.ReduceOp.AVG, 1.5 + rank), (dist.ReduceOp.MAX, 3 + rank)):
    part = dt.zeros(2)
    dist.reduce_scatter(part, [dt.full((2,), float(i + rank)) for i in range(size)], how)
    assert part.tolist() == [wanted] * 2, (how, part)
found = [None]
dist.scatter_object_list(found, [f"for {i}" for i in range(size)] if rank == 1 else None, src=1)
assert found == [f"for {rank}"]
dist.monitored_barrier()

from devtensor import nn
class Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(2, 1), nn.Linear(2, 1), nn.Linear(2, 1)
        self.norm = nn.BatchNorm1d(2)
    def forward(self, x):
        x = self.norm(x)
        return self.a(x) + (self.b(x) if rank == 0 else 0)
model = nn.parallel.DistributedDataParallel(Half(), find_unused_parameters=True, bucket_cap_mb=1e-5)
for _ in range(2):
    model.zero_grad()
    model(dt.ones(3, 2) * rank).sum().backward()
assert model.module.c.weight.grad is None and model.module.b.bias.grad.tolist() == [0.75]
assert model.module.a.bias.grad.tolist() == [3]

def both(make, x):
    # outputs, gradients and running statistics of batch norm
    dt.manual_seed(1)
    norm = make(3)
    x = x.clone().requires_grad_()
    y = norm(x)
    (y * y * dt.arange(3, dtype=dt.float32).reshape(1, 3, *[1] * (x.ndim - 2)) + y.exp()).sum().backward()
    return norm, y.detach(), x.grad
dt.manual_seed(5)
for shape in ((8, 3), (8, 3, 2, 2)):
    rows = dt.randn(*shape) * 3 + 1
    plain = both(nn.BatchNorm1d if len(shape) == 2 else nn.BatchNorm2d, rows)
    part = slice(rank * 2, rank * 2 + 2)
    synced = both(nn.SyncBatchNorm, rows[part])
    assert dt.allclose(synced[1], plain[1][part], rtol=1e-4, atol=1e-5)
    assert dt.allclose(synced[2], plain[2][part], rtol=1e-3, atol=1e-4), (synced[2], plain[2][part])
    for name in ("running_mean", "running_var"):
        assert dt.allclose(getattr(synced[0], name), getattr(plain[0], name), rtol=1e-5)
    total = synced[0].weight.grad.clone()
    dist.all_reduce(total)
    assert dt.allclose(total, plain[0].weight.grad, rtol=1e-3, atol=1e-4)
calls = []
dt.multiprocessing.spawn(lambda i, a: calls.append((i, a)), args=("x",), nprocs=4)
assert calls == [(rank, "x")]
print("right", flush=True)
"""


def test_what_processes_do_together(tmp_path: Path) -> None:
    for mark in with_mpi:
        if mark.args[0]:
            pytest.skip(mark.kwargs["reason"])
    said = "".join(run(4, "off", TOGETHER, tmp_path))  # a launcher may join lines of two processes
    assert said == "right" * 4
