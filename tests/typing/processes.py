"""Files, models of others, several devices and several processes."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any, assert_type

import devtensor as dt
from devtensor import data, distributed, hub, multiprocessing, nn, serialization
from devtensor.nn import parallel

x = dt.rand(4, 3)
net = nn.Linear(3, 2)

# ---------------------------------------------------------------- files

file = io.BytesIO()
dt.save({"epoch": 3, "model": net.state_dict(), "sizes": [1, (2, 3)]}, file, pickle_protocol=4)
file.seek(0)
checkpoint = dt.load(file, map_location={"cuda:0": "cpu"}, weights_only=True)
file.seek(0)
dt.load(file, lambda storage, location: storage, weights_only=False)
net.load_state_dict(checkpoint["model"], strict=False, assign=True)


class Options:
    lr = 0.1


serialization.add_safe_globals([Options])
assert_type(serialization.get_safe_globals(), list[Any])
serialization.clear_safe_globals()
with serialization.safe_globals([Options]):
    dt.save(Options(), io.BytesIO())

folder = Path(tempfile.mkdtemp())
hub.set_dir(folder)
assert_type(hub.get_dir(), str)
(folder / "checkpoints").mkdir()
dt.save(net.state_dict(), folder / "checkpoints" / "net.pth")
hub.download_url_to_file("https://example.com/net.pth", __file__)
hub.load_state_dict_from_url("https://example.com/net.pth", map_location="cpu", progress=False)
dt.utils.model_zoo.load_url("https://example.com/net.pth")
(folder / "someone_nets_main").mkdir()
(folder / "someone_nets_main" / "hubconf.py").write_text("def net(size):\n    'A net.'\n    return size\n")
made: Any = hub.load("someone/nets", "net", 3)
assert_type(hub.list("someone/nets"), list[str])
assert_type(hub.help("someone/nets", "net"), str | None)

# ---------------------------------------------------------------- several devices

both = nn.DataParallel(net, device_ids=["cpu", "cpu"])
whole: dt.Tensor = both(x)
parallel.DataParallel(net, [], None, dim=0)
parts: list[Any] = parallel.scatter(x, ["cpu", "cpu"])
copies = parallel.replicate(net, ["cpu", "cpu"])
assert_type(copies, list[nn.Linear])
results = parallel.parallel_apply(copies, parts)
joined: dt.Tensor = parallel.gather(results, "cpu")
again: dt.Tensor = parallel.data_parallel(net, (x,), ["cpu", "cpu"])

# ---------------------------------------------------------------- several processes

assert_type(distributed.is_available(), bool)
assert_type(distributed.is_initialized(), bool)
assert_type(distributed.is_mpi_available() or distributed.is_gloo_available(), bool)
assert_type(distributed.is_nccl_available(), bool)
distributed.is_torchelastic_launched()
distributed.init_process_group(backend="gloo", init_method="env://")
assert_type(distributed.group.WORLD, distributed.ProcessGroup | None)
assert_type(distributed.get_rank(), int)
assert_type(distributed.get_world_size(), int)
assert_type(distributed.get_backend(), str)
group: distributed.ProcessGroup = distributed.new_group()
assert_type(group.rank() + group.size(), int)
distributed.all_reduce(x, op=distributed.ReduceOp.SUM)
work: distributed.Work = distributed.all_reduce(x, distributed.ReduceOp.AVG, async_op=True)
assert_type(work.wait() and work.is_completed() and work.is_success(), bool)
distributed.reduce(x, 0, distributed.ReduceOp.MAX)
distributed.broadcast(x, src=0)
distributed.all_gather([dt.zeros(4, 3)], x)
distributed.gather(x, [dt.zeros(4, 3)], dst=0)
distributed.scatter(x, [dt.zeros(4, 3)], src=0)
distributed.broadcast_object_list(["a"], src=0)
found: list[Any] = [None]
distributed.all_gather_object(found, {"loss": 0.5})
distributed.gather_object("a", found, dst=0)
distributed.all_gather_into_tensor(dt.zeros(1, 4, 3), x)
distributed.reduce_scatter_tensor(dt.zeros(4, 3), x)
distributed.reduce_scatter(x, [dt.zeros(4, 3)], op=distributed.ReduceOp.MAX)
distributed.all_to_all([dt.zeros(4, 3)], [x])
distributed.all_to_all_single(dt.zeros(4, 3), x, [4], input_split_sizes=[4])
distributed.scatter_object_list([None], ["a"], src=0)
distributed.monitored_barrier()
assert_type(distributed.batch_isend_irecv([]), list[distributed.Work])
message = distributed.P2POp(distributed.isend, x, 1, tag=3)
assert distributed.group.WORLD is not None
assert_type(distributed.get_process_group_ranks(None), list[int])
assert_type(distributed.get_global_rank(distributed.group.WORLD, 0), int)
assert_type(distributed.get_group_rank(distributed.group.WORLD, 0), int)
if distributed.get_world_size() > 1:
    distributed.send(x, dst=1)
    assert_type(distributed.isend(x, dst=1).wait(), bool)
    assert_type(distributed.irecv(x, src=1).is_completed(), bool)
    assert_type(distributed.recv(x, src=1), int)
assert_type(distributed.get_node_local_rank(fallback_rank=0), int)
assert_type(distributed.is_backend_available("gloo"), bool)
distributed.barrier()
sampler = data.distributed.DistributedSampler(range(6), shuffle=True, seed=1)
sampler.set_epoch(1)
loader = data.DataLoader(data.TensorDataset(x), batch_size=2, sampler=data.distributed.DistributedSampler(x))
model = parallel.DistributedDataParallel(net, find_unused_parameters=True)
with model.no_sync():
    model(x).sum().backward()
model(x).sum().backward()
distributed.destroy_process_group()


def run(rank: int, name: str) -> None:
    assert rank == 0 and name


multiprocessing.spawn(run, args=("x",), nprocs=1)
multiprocessing.set_sharing_strategy(multiprocessing.get_sharing_strategy())
assert_type(multiprocessing.get_all_sharing_strategies(), set[str])
