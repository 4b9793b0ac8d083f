"""DataParallel and its parts, on the simulated GPUs that there are."""

from __future__ import annotations

import copy
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import devtensor as dt
from devtensor import nn
from devtensor.nn import parallel

Pair = namedtuple("Pair", "a b")


@pytest.fixture
def gpus() -> list[str]:
    if dt.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    return ["cuda:0", "cuda:1"]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.norm, self.b = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)
        self.again = self.b
        self.calls = 0

    def forward(self, x: dt.DeviceArray, scale: float = 1.0) -> dict[str, Any]:
        self.calls += 1
        y = self.again(self.norm(self.a(x)).relu()) * scale
        return {"y": y, "devices": [y.mean(dim=1)], "none": None}


def test_results_and_gradients(gpus: list[str]) -> None:
    net = Net().to(gpus[0]).eval()
    alone = copy.deepcopy(net)
    both = nn.DataParallel(net)
    assert both.device_ids[:2] == [0, 1] and next(iter(both.state_dict())) == "module.a.weight"
    assert both.module is net
    x = dt.randn(7, 4)
    with dt.record_transfers() as log:
        got = both(x, scale=2.0)
    assert {str(t.target) for t in log} >= {"cuda:0", "cuda:1"}
    want = alone(x.to(gpus[0]), scale=2.0)
    assert str(got["y"].device) == gpus[0] and got["y"].shape == (7, 2) and got["none"] is None
    np.testing.assert_allclose(got["y"].tolist(), want["y"].tolist(), rtol=1e-5)
    np.testing.assert_allclose(got["devices"][0].tolist(), want["devices"][0].tolist(), rtol=1e-5)
    (got["y"] ** 2).sum().backward()
    (want["y"] ** 2).sum().backward()
    for p, q in zip(net.parameters(), alone.parameters(), strict=True):
        assert p.device == q.device
        np.testing.assert_allclose(p.grad.tolist(), q.grad.tolist(), rtol=1e-4, atol=1e-6)
    assert net.calls == 0  # the copies counted


def test_training_as_on_one_device(gpus: list[str]) -> None:
    dt.manual_seed(0)
    first = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(gpus[0])
    second = copy.deepcopy(first)
    x = dt.randn(10, 4).to(gpus[0])
    losses: list[list[float]] = []
    for model, net in ((nn.DataParallel(first, gpus), first), (second, second)):
        optimizer = dt.optim.SGD(net.parameters(), lr=0.1)
        losses.append([])
        for _ in range(5):
            loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)


def test_places(gpus: list[str]) -> None:
    net = nn.Linear(2, 2).to(gpus[0])
    assert str(nn.DataParallel(net, gpus, output_device=gpus[1])(dt.ones(4, 2)).device) == gpus[1]
    assert str(nn.DataParallel(net, [0, 1], output_device=-1)(dt.ones(4, 2)).device) == "cpu"
    assert nn.DataParallel(net, gpus)(dt.ones(1, 2)).shape == (1, 2)  # fewer rows than devices
    with dt.no_grad():
        assert not nn.DataParallel(net, gpus)(dt.ones(4, 2)).requires_grad
    across = nn.DataParallel(nn.Linear(2, 2, bias=False).to(gpus[0]), gpus, dim=1)
    with pytest.raises(dt.ShapeMismatchError):
        across(dt.ones(4, 2))
    moved = nn.DataParallel(nn.Linear(2, 2), [gpus[1]])
    assert str(moved.module.weight.device) == gpus[1] and str(moved(dt.ones(4, 2)).device) == gpus[1]
    with pytest.raises(RuntimeError, match=r"found one of them on device: cpu. module.to\('cuda:0'\) moves them"):
        nn.DataParallel(nn.Linear(2, 2), gpus)(dt.ones(4, 2))


def test_running_means_stay(gpus: list[str]) -> None:
    net = nn.BatchNorm1d(3).to(gpus[0])
    nn.DataParallel(net, gpus)(dt.ones(4, 3) * 5)
    assert net.running_mean.tolist() == pytest.approx([0.5] * 3) and net.num_batches_tracked.item() == 1


def test_without_a_gpu() -> None:
    net = nn.Linear(2, 1)
    model = nn.DataParallel(net, [])
    x = dt.ones(3, 2)
    assert dt.equal(model(x), net(x)) and model.device_ids == [] and model.output_device is None
    two = nn.DataParallel(net, ["cpu", "cpu"])
    np.testing.assert_allclose(two(x).tolist(), net(x).tolist(), rtol=1e-6)


def test_scatter_and_gather() -> None:
    x = dt.arange(6, dtype=dt.float32).reshape(3, 2)
    parts = parallel.scatter((x, [x, 3], {"a": x, "b": None}, Pair(x, "s")), ["cpu", "cpu"])
    assert len(parts) == 2 and [part[0].tolist() for part in parts] == [[[0, 1], [2, 3]], [[4, 5]]]
    assert type(parts[0][1]) is list and parts[1][2]["b"] is None and type(parts[1][3]) is Pair and parts[0][3].b == "s"
    assert [part.shape for part in parallel.scatter(x, ["cpu"] * 2, dim=1)] == [(3, 1), (3, 1)]
    assert parallel.gather([(x, {"a": x}), (x, {"a": x[:1]})], "cpu")[1]["a"].shape == (4, 2)
    assert type(parallel.gather([Pair(x, None), Pair(x, None)], "cpu")) is Pair
    assert parallel.gather([x, x], -1, dim=1).shape == (3, 4)
    with pytest.warns(UserWarning, match="all input tensors were scalars"):
        assert parallel.gather([dt.tensor(1.0), dt.tensor(2.0)], "cpu").tolist() == [1, 2]
    with pytest.raises(ValueError, match="All dicts must have the same number of keys"):
        parallel.gather([{"a": x}, {"b": x}], "cpu")
    with pytest.raises(TypeError, match="a result of class int cannot be joined"):
        parallel.gather([1, 2], "cpu")
    with pytest.raises(AssertionError, match="number of modules 1 is not equal to the number of inputs 2"):
        parallel.parallel_apply([nn.ReLU()], [x, x])
    for wrong in ("cuda:0", 1, None):
        if wrong is not None:
            with pytest.raises(TypeError, match="argument 'target_gpus' must be a list of devices"):
                parallel.scatter(x, wrong)  # type: ignore[arg-type]
    for call in (nn.DataParallel, lambda m: parallel.replicate(m, ["cpu"]), lambda m: parallel.data_parallel(m, x)):
        with pytest.raises(TypeError, match="must be a Module, not int"):
            call(3)


def test_functions_of_parallel(gpus: list[str]) -> None:
    net = nn.Linear(2, 1).to(gpus[0])
    x = dt.ones(4, 2)
    want = net(x.to(gpus[0])).tolist()
    np.testing.assert_allclose(parallel.data_parallel(net, x, gpus).tolist(), want, rtol=1e-6)
    copies = parallel.replicate(net, gpus)
    assert copies[0].weight is net.weight and str(copies[1].weight.device) == gpus[1]
    assert list(copies[1].parameters()) == [] and list(net.parameters()) != []
    assert not parallel.replicate(net, gpus, detach=True)[1].weight.requires_grad


def test_keys_without_a_prefix() -> None:
    from devtensor.nn._modules_utils import _pair, _triple, consume_prefix_in_state_dict_if_present

    state = nn.DataParallel(nn.Linear(2, 1), []).state_dict()
    consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["weight", "bias"] and nn.Linear(2, 1).load_state_dict(state).missing_keys == []
    consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["weight", "bias"] and _pair(3) == (3, 3) and _triple([1, 2, 3]) == (1, 2, 3)


class Listed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scales = nn.ParameterList([nn.Parameter(dt.full((2,), 2.0)), nn.Parameter(dt.full((2,), 3.0))])
        self.named = nn.ParameterDict({"a": nn.Parameter(dt.full((2,), 5.0))})

    def forward(self, x: dt.DeviceArray) -> dt.DeviceArray:
        for scale in self.scales:
            x = x * scale
        for key in self.named:
            x = x + self.named[key]
        return x + len(self.scales) + len(self.named) + self.scales[-1]


def test_lists_of_parameters_are_there_in_copies() -> None:
    net = Listed()
    x = dt.arange(8.0).reshape(4, 2)
    alone = net(x)
    got = nn.parallel.data_parallel(net, x, ["cpu", "cpu"])
    assert got.tolist() == alone.tolist()
    got.sum().backward()
    assert net.scales[0].grad.tolist() == [36.0, 48.0] and net.named["a"].grad.tolist() == [4.0, 4.0]
    (copied,) = parallel.replicate(net, ["cpu"])
    assert list(copied.named.keys()) == ["a"] and "a" in copied.named and list(copied.parameters()) == []


def test_a_lazy_module_is_called_before_it_is_copied() -> None:
    net = nn.Sequential(nn.ReLU(), nn.LazyLinear(2))
    want = "can't be copied to several devices: 1 is a LazyLinear that has had no call yet"
    with pytest.raises(RuntimeError, match=want):
        nn.DataParallel(net, ["cpu", "cpu"])(dt.ones(4, 3))
    dt.distributed.init_process_group()
    try:
        with pytest.raises(RuntimeError, match="can't be used with DistributedDataParallel: 1 is a LazyLinear"):
            nn.parallel.DistributedDataParallel(net)
    finally:
        dt.distributed.destroy_process_group()
    net(dt.ones(4, 3))
    assert nn.DataParallel(net, ["cpu", "cpu"])(dt.ones(4, 3)).shape == (4, 2)
